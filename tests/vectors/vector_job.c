/* vector-job [--deviations RULES] FILE…: run vectors of the job life cycle against the libraries.
 *
 * Reads inputs and expectations from the files alone. One line a case: `ok ID`,
 * `FAIL ID: wanted …, got …` or `skip ID: why`; exit 1 when any failed, 2 when a file is unusable.
 *
 * Where the original has a defect, job-deviations.json beside this file says what we do instead; a
 * case is compared with that only if its input and its expectation are as recorded there.
 *
 * The file's name tells the family: retry-decision.json, retry-decision-more.json. vector-spec and
 * vector-env are the same program, for v0-job-config.json and v0-environment.json.
 */
#include "vector_job.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct arena vector_arena;
const char *spec_deviations = SPEC_DEVIATIONS;
static const char *family; /* of the file being run */
static unsigned failed, reported;
static json_t *deviations;

/* `lists`: members of the file that hold cases this driver knows; other lists are skipped. */
static const struct {
    const char *file;
    vector_function *run;
    const char *lists, *skip;
} files[] = {
    {"retry-decision", retry_decision, "vectors", NULL},
    {"attempt-sequence", attempt_sequence, "vectors", NULL},
    {"completion-policy", completion_policy, "vectors special", NULL},
    {"pod-classification", pod_classification,
     "vectors predefinedCodes reservedRanges defaultPodFailureSpec", NULL},
    {"pod-creation-error", pod_creation_error, "vectors", NULL},
    {"state-machine", state_machine,
     "traces executionTypeChanges illegalExamples instanceAssociated completing", NULL},
    {"rescale", rescale, "scenarios", NULL},
    {"controller-config", controller_config, "vectors", NULL},
    {"framework-object-validation", framework_object, "vectors", NULL},
    {"naming-and-injection", naming, "roles", NULL},
    {"barrier", barrier, "configVectors outcomes readiness", NULL},
    {"large-framework", NULL, "", "no Kubernetes object of limited size holds our status"},
    {"v0-kill-all", kill_all, "vectors", NULL},
    {"v0-launcher-exit", launcher_exit, "vectors", NULL},
    {"v0-launcher-retry", launcher_retry, "retryCountMapping conflictBackoff", NULL},
    {"v0-gpu-placement", gpu_placement, "vectors", NULL},
    {"v0-ports", ports, "portString rangeArithmetic sharedFree", NULL},
    {"v0-job-state", job_state, "vectors taskStateEraC kubernetesEra", NULL},
    {"v0-vc-quota", vc_quota, "vectors", NULL},
    {"v0-rest-results", NULL, "", "answers over HTTP: the API's tests"},
    {"v0-environment", environment, "qizhi pai_0_14 sshConfigQizhi", NULL},
    {"v0-job-config", job_config, "vectors documentedButNotEnforced", NULL},
};

/* ---- reports ---- */

/* Does `whole` have all members of `part`, with the same values? */
static bool includes(const json_t *whole, const json_t *part)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)part, key, value)
        if (!json_equal(json_object_get(whole, key), value))
            return false;
    return true;
}

json_t *wanted_of(const char *id, const json_t *vector, json_t *expectation)
{
    size_t i;
    json_t *entry;
    json_array_foreach (deviations, i, entry) {
        if (strcmp(string_at(entry, "file"), family) != 0 ||
            !includes(vector, json_object_get(entry, "input")) ||
            !json_equal(json_object_get(entry, "original"), expectation))
            continue;
        fprintf(stderr, "deviates %s: %s\n", id, string_at(entry, "why"));
        json_decref(expectation);
        return json_incref(json_object_get(entry, "instead"));
    }
    return expectation;
}

static bool fits(const json_t *wanted, const json_t *got, bool is_partial)
{
    if (!is_partial || !json_is_object(wanted) || !json_is_object(got))
        return json_equal(wanted, got) || (json_is_number(wanted) && json_is_number(got) &&
                                           json_number_value(wanted) == json_number_value(got));
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)wanted, key, value)
        if (!fits(value, json_object_get(got, key), false) ||
            (!json_object_get(got, key) && !json_is_null(value)))
            return false;
    return true;
}

static void compare(const char *id, json_t *wanted, json_t *got, bool is_partial)
{
    if (fits(wanted, got, is_partial)) {
        reported++;
        printf("ok %s\n", id);
    } else {
        char *want_text = json_dumps(wanted, JSON_ENCODE_ANY | JSON_SORT_KEYS);
        char *got_text = json_dumps(got, JSON_ENCODE_ANY | JSON_SORT_KEYS);
        report_fail(id, want_text ? want_text : "null", got_text ? got_text : "nothing");
        free(want_text);
        free(got_text);
    }
    json_decref(wanted);
    json_decref(got);
}

void report(const char *id, json_t *wanted, json_t *got)
{
    compare(id, wanted, got, false);
}

void report_partial(const char *id, json_t *wanted, json_t *got)
{
    compare(id, wanted, got, true);
}

void report_bool(const char *id, bool wanted, bool got)
{
    compare(id, json_boolean(wanted), json_boolean(got), false);
}

void report_skip(const char *id, const char *why)
{
    reported++;
    printf("skip %s: %s\n", id, why);
}

void report_fail(const char *id, const char *wanted, const char *got)
{
    printf("FAIL %s: wanted %s, got %s\n", id, wanted, got);
    reported++;
    failed++;
}

const char *id_of(const json_t *vector, const char *list, size_t index)
{
    const char *id = json_string_value(json_object_get(vector, "id"));
    return id ? id : arena_format(&vector_arena, "%s/%s/%zu", family, list, index);
}

/* ---- reading ---- */

static bool is_type(const json_t *value, char type)
{
    switch (type) {
    case 's':
        return json_is_string(value);
    case 'i':
        return json_is_integer(value);
    case 'n':
        return json_is_number(value);
    case 'b':
        return json_is_boolean(value);
    case 'o':
        return json_is_object(value);
    case 'a':
        return json_is_array(value);
    default:
        return true;
    }
}

bool case_fits(const char *id, const json_t *object, const char *shape)
{
    struct text rest = text_of(shape);
    while (rest.length > 0) {
        struct text type = text_cut(&rest, ' ');
        const char *key = arena_copy(&vector_arena, text_cut(&type, ':'));
        const json_t *value = json_object_get(object, key);
        const bool is_absent = !value || json_is_null(value);
        const bool is_optional = type.length > 1 && type.at[1] == '?';
        if (is_absent ? is_optional || (value && type.at[0] == 'x') : is_type(value, type.at[0]))
            continue;
        report_skip(id, arena_format(&vector_arena, "%s is %s", key,
                                     value ? "of a kind not known here" : "missing"));
        return false;
    }
    return true;
}

bool cases_fit(const char *id, const json_t *list, const char *shape)
{
    size_t i;
    json_t *item;
    json_array_foreach (list, i, item)
        if (!case_fits(id, item, shape))
            return false;
    return true;
}

int state_named(const char *name)
{
    for (int i = LIFE_CREATION_PENDING; i <= LIFE_COMPLETED; i++)
        if (strcmp(life_state_name((enum life_state)i), name) == 0)
            return i;
    return -1;
}

const char *string_at(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

struct text text_at(const json_t *object, const char *key)
{
    return text_of(string_at(object, key));
}

int64_t int_at(const json_t *object, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : otherwise;
}

static const struct {
    const char *name;
    uint8_t attribute;
} attribute_names[] = {
    {"Transient", EXIT_TRANSIENT}, {"Conflict", EXIT_CONFLICT}, {"Permanent", EXIT_PERMANENT}};

uint8_t attributes_read(const json_t *names)
{
    uint8_t attributes = 0;
    size_t i;
    json_t *name;
    json_array_foreach (names, i, name)
        for (size_t k = 0; k < COUNT_OF(attribute_names); k++)
            if (json_is_string(name) &&
                strcmp(json_string_value(name), attribute_names[k].name) == 0)
                attributes |= attribute_names[k].attribute;
    return attributes;
}

json_t *attributes_json(uint8_t attributes)
{
    json_t *names = json_array();
    for (size_t k = 0; k < COUNT_OF(attribute_names); k++)
        if (attributes & attribute_names[k].attribute)
            json_array_append_new(names, json_string(attribute_names[k].name));
    return names;
}

struct completion completion_read(const json_t *object)
{
    const int32_t code = (int32_t)int_at(object, "code", 0);
    struct completion completion = completion_of(code, "%s", "");
    if (json_object_get(object, "outcome"))
        completion.is_success = strcmp(string_at(object, "outcome"), "Succeeded") == 0;
    if (json_object_get(object, "attributes"))
        completion.attributes = attributes_read(json_object_get(object, "attributes"));
    return completion;
}

/* ---- one job ---- */

void bench_init(struct job_bench *bench)
{
    *bench = (struct job_bench){.now_ms = 1000000};
    bench->policy = (struct job_policy){.backoff = {60, 900}, .roles = bench->roles};
    bench->out.arena = &vector_arena;
}

void bench_role(struct job_bench *bench, const char *name, uint32_t instances, int32_t min_failed,
                int32_t min_succeeded)
{
    assert(bench->policy.role_count < BENCH_ROLES);
    bench->roles[bench->policy.role_count++] = (struct job_role_policy){
        .name = name,
        .instances = instances,
        .min_failed = min_failed,
        .min_succeeded = min_succeeded,
    };
}

bool bench_roles(struct job_bench *bench, const char *id, const json_t *roles)
{
    if (!cases_fit(id, roles,
                   "name:s taskNumber:i? minFailedTaskCount:i? minSucceededTaskCount:i?"))
        return false;
    size_t i;
    json_t *role;
    if (json_array_size(roles) < 1 || json_array_size(roles) > BENCH_ROLES) {
        report_skip(id, "a job has 1 to 64 roles here");
        return false;
    }
    json_array_foreach (roles, i, role) {
        const int64_t instances = int_at(role, "taskNumber", 1);
        if (instances < 0 || instances > JOB_INSTANCES_MAX) {
            report_skip(id, "a role has 0 to 10000 tasks");
            return false;
        }
        bench_role(bench, arena_copy(&vector_arena, text_at(role, "name")), (uint32_t)instances,
                   (int32_t)int_at(role, "minFailedTaskCount", -1),
                   (int32_t)int_at(role, "minSucceededTaskCount", -1));
    }
    return true;
}

void bench_begin(struct job_bench *bench)
{
    job_init(&bench->job, &bench->policy, bench->now_ms, &bench->out);
}

void bench_release(struct job_bench *bench)
{
    job_release(&bench->job);
    job_output_release(&bench->out);
}

void bench_step(struct job_bench *bench, struct job_event event)
{
    bench->now_ms += 1000;
    bench->out.count = 0;
    event.now_ms = bench->now_ms;
    event.attempt_last = &bench->attempt_last;
    job_step(&bench->job, &bench->policy, &event, &bench->out);
}

void bench_simple(struct job_bench *bench, enum job_event_kind kind)
{
    bench_step(bench, (struct job_event){.kind = kind});
}

void bench_run_waiting(struct job_bench *bench)
{
    if (job_waiting_count(&bench->job, &bench->policy) > 0)
        bench_simple(bench, JOB_EVENT_PLACED);
    for (uint16_t r = 0; bench->job.has_tasks && r < bench->job.role_count; r++)
        for (uint16_t i = 0; i < bench->job.roles[r].count; i++)
            if (bench->job.roles[r].items[i].state == LIFE_CREATION_REQUESTED)
                bench_step(bench,
                           (struct job_event){.kind = JOB_EVENT_TASK_RUNNING, .task = {r, i}});
}

void bench_exit(struct job_bench *bench, struct task_ref task, struct completion completion)
{
    bench_step(bench, (struct job_event){
                          .kind = JOB_EVENT_TASK_EXITED, .task = task, .completion = &completion});
}

void bench_end_kills(struct job_bench *bench)
{
    for (uint16_t r = 0; r < bench->policy.role_count; r++)
        for (uint16_t i = JOB_INSTANCES_MAX; i-- > 0;) {
            const struct job_task *task = job_task_find(&bench->job, (struct task_ref){r, i});
            if (task && life_is_completing(task->state))
                bench_exit(bench, (struct task_ref){r, i}, completion_of(143, "%s", ""));
        }
}

int bench_role_of(const struct job_bench *bench, const char *name)
{
    for (int r = 0; r < bench->policy.role_count; r++)
        if (strcmp(bench->roles[r].name, name) == 0)
            return r;
    return -1;
}

/* ---- main ---- */

static char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = mem_copy(slash ? slash + 1 : path);
    char *dot = strrchr(name, '.');
    if (dot)
        *dot = '\0';
    return name;
}

static bool is_word_of(const char *word, const char *words)
{
    struct text rest = text_of(words);
    while (rest.length > 0)
        if (text_is(text_cut(&rest, ' '), word))
            return true;
    return false;
}

/* Cases under names that the driver does not know are not passed over in silence. */
static void skip_unknown(const json_t *file, const char *lists)
{
    const char *key;
    json_t *list, *item;
    json_object_foreach ((json_t *)(uintptr_t)file, key, list) {
        size_t i;
        if (is_word_of(key, lists))
            continue;
        json_array_foreach (list, i, item)
            report_skip(id_of(item, key, i), "no list that this driver knows");
    }
}

/* The family whose name the file's begins with: "rescale.more.json" is of rescale. */
static size_t family_find(const char *name)
{
    size_t best = COUNT_OF(files), longest = 0;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        const size_t length = strlen(files[i].file);
        if (length > longest && strncmp(name, files[i].file, length) == 0) {
            best = i;
            longest = length;
        }
    }
    return best;
}

static void run_family(const json_t *file, size_t index)
{
    family = files[index].file;
    if (files[index].run) {
        files[index].run(file);
        skip_unknown(file, files[index].lists);
        return;
    }
    const json_t *vectors = json_object_get(file, "vectors");
    size_t i;
    json_t *vector;
    json_array_foreach (vectors, i, vector)
        report_skip(id_of(vector, "vectors", i), files[index].skip);
    if (json_array_size(vectors) == 0)
        report_skip(family, files[index].skip);
}

static int run_file(const char *path)
{
    json_error_t error;
    json_t *file = json_load_file(path, 0, &error);
    if (!json_is_object(file)) {
        fprintf(stderr, "vector-job: %s:%d: %s\n", path, error.line,
                file ? "not an object" : error.text);
        json_decref(file);
        return -1;
    }
    char *name = base_name(path);
    const size_t index = family_find(name);
    const unsigned before = reported;
    if (index < COUNT_OF(files))
        run_family(file, index);
    else
        report_skip(name, "not about jobs");
    if (reported == before)
        report_skip(name, "it has no cases");
    arena_clear(&vector_arena);
    json_decref(file);
    mem_free(name);
    return 0;
}

int main(int argc, char **argv)
{
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "--deviations") == 0) {
        spec_deviations = argv[2];
        first = 3;
    }
    if (argc <= first) {
        fprintf(stderr, "usage: vector-job [--deviations RULES] FILE...\n");
        return 2;
    }
    json_error_t error;
    deviations = json_load_file(JOB_DEVIATIONS, 0, &error);
    if (!json_is_array(deviations)) {
        fprintf(stderr, "%s:%d: %s\n", JOB_DEVIATIONS, error.line, error.text);
        return 2;
    }
    arena_init(&vector_arena);
    int result = 0;
    for (int i = first; i < argc; i++)
        if (run_file(argv[i]) != 0)
            result = 2;
    arena_release(&vector_arena);
    json_decref(deviations);
    return result ? result : failed > 0;
}
