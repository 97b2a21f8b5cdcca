/* Exits and FrameworkController's documents. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "exits/judge.h"
#include "originals/framework.h"
#include "vector_job.h"

static struct exit_rules *rules_make(json_t *failure_spec)
{
    json_t *document = json_pack("{s:b}", "builtin", 0);
    /* the vectors write the attributes beside the code; the file format has them in `type` */
    json_t *list = json_deep_copy(failure_spec);
    size_t i;
    json_t *entry;
    json_array_foreach (list, i, entry) {
        json_t *attributes = json_object_get(entry, "attributes");
        if (attributes)
            json_object_set_new(entry, "type", json_pack("{s:O}", "attributes", attributes));
        json_object_del(entry, "attributes");
    }
    if (list)
        json_object_set_new(document, "podFailureSpec", list);
    char *text = json_dumps(document, 0);
    struct problems problems;
    problems_init(&problems, &vector_arena);
    struct exit_rules *rules = exit_rules_new(text_of(text), &problems);
    if (!rules) {
        struct buf said = BUF_INIT;
        problems_print(&problems, "podFailureSpec", &said);
        fputs(buf_cstr(&said), stderr);
        buf_release(&said);
    }
    problems_release(&problems);
    free(text);
    json_decref(document);
    return rules;
}

static json_t *completion_json(const struct completion *completion)
{
    return json_pack("{s:i, s:s, s:s, s:o}", "code", completion->code, "phrase", completion->phrase,
                     "outcome", completion->is_success ? "Succeeded" : "Failed", "attributes",
                     attributes_json(completion->attributes));
}

static const char CONTAINER_SHAPE[] =
    "name:s? reason:s? message:s? exitCode:i? signal:i? finishedAt:i?";

static void containers_read(const json_t *list, struct exit_container *containers, size_t *count)
{
    size_t i;
    json_t *item;
    json_array_foreach (list, i, item)
        containers[(*count)++] = (struct exit_container){
            .name = string_at(item, "name"),
            .reason = string_at(item, "reason"),
            .message = string_at(item, "message"),
            .exit_code = (int32_t)int_at(item, "exitCode", 0),
            .signal = (int32_t)int_at(item, "signal", 0),
            .finished_at = int_at(item, "finishedAt", 0),
            .is_terminated = json_is_integer(json_object_get(item, "exitCode")),
        };
}

static json_t *pod_judge(const struct exit_rules *rules, const json_t *pod)
{
    const json_t *init = json_object_get(pod, "initContainers");
    const json_t *list = json_object_get(pod, "containers");
    struct exit_container *containers = ARENA_ARRAY(
        &vector_arena, struct exit_container, json_array_size(init) + json_array_size(list) + 1);
    size_t count = 0;
    containers_read(init, containers, &count);
    containers_read(list, containers, &count);
    const struct exit_report input = {
        .name = string_at(pod, "name"),
        .reason = string_at(pod, "reason"),
        .message = string_at(pod, "message"),
        .is_user_command = true,
        .containers = containers,
        .container_count = count,
    };
    struct exit_verdict verdict;
    exit_judge(rules, &input, &verdict);
    return completion_json(&verdict.completion);
}

static bool takes_code(int64_t code)
{
    json_t *spec = json_pack("[{s:I, s:[{s:s}]}]", "code", (json_int_t)code, "podPatterns",
                             "reasonRegex", "x");
    struct problems problems;
    problems_init(&problems, &vector_arena);
    char *text = json_dumps(spec, 0);
    struct buf document = BUF_INIT;
    buf_format(&document, "{\"podFailureSpec\": %s}", text);
    struct exit_rules *rules = exit_rules_new(buf_as_text(&document), &problems);
    const bool is_taken = rules != NULL;
    exit_rules_free(rules);
    buf_release(&document);
    free(text);
    problems_release(&problems);
    json_decref(spec);
    return is_taken;
}

void pod_classification(const json_t *file)
{
    size_t i;
    json_t *vector;
    json_array_foreach (json_object_get(file, "predefinedCodes"), i, vector) {
        const char *id = id_of(vector, "predefinedCodes", i);
        if (!case_fits(id, vector, "code:i phrase:s outcome:s attributes:a"))
            continue;
        const struct completion completion =
            completion_of((int32_t)int_at(vector, "code", 0), "%s", "");
        report_partial(arena_format(&vector_arena, "predefined/%d", completion.code),
                       json_incref(vector), completion_json(&completion));
    }
    json_array_foreach (json_object_get(file, "reservedRanges"), i, vector) {
        if (!json_is_integer(json_array_get(vector, 0)) ||
            !json_is_integer(json_array_get(vector, 1))) {
            report_skip(id_of(vector, "reservedRanges", i), "a range is [first, last]");
            continue;
        }
        const int64_t first = json_integer_value(json_array_get(vector, 0));
        const int64_t last = json_integer_value(json_array_get(vector, 1));
        json_t *got = json_pack("[b, b, b, b]", takes_code(first - 1), takes_code(first),
                                takes_code(last), takes_code(last + 1));
        report(arena_format(&vector_arena, "reserved/%zu", i),
               json_pack("[b, b, b, b]", 1, 0, 0, 1), got);
    }
    struct exit_rules *none = rules_make(NULL);
    struct exit_rules *usual = rules_make(json_object_get(file, "defaultPodFailureSpec"));
    json_array_foreach (json_object_get(file, "vectors"), i, vector) {
        const char *id = id_of(vector, "vectors", i);
        const json_t *pod = json_object_get(vector, "pod");
        if (!case_fits(id, vector, "podFailureSpec:s pod:o expect:o") ||
            !case_fits(id, pod, "name:s? reason:s? message:s? initContainers:a? containers:a?") ||
            !cases_fit(id, json_object_get(pod, "initContainers"), CONTAINER_SHAPE) ||
            !cases_fit(id, json_object_get(pod, "containers"), CONTAINER_SHAPE))
            continue;
        const char *which = string_at(vector, "podFailureSpec");
        const bool is_usual = strcmp(which, "default") == 0;
        const struct exit_rules *rules = is_usual ? usual : none;
        if (!is_usual && strcmp(which, "none") != 0)
            report_skip(id, "rules that the file does not have");
        else if (!rules)
            report_fail(id, "rules", "a file with errors");
        else
            report_partial(id, json_incref(json_object_get(vector, "expect")),
                           pod_judge(rules, pod));
    }
    exit_rules_free(none);
    exit_rules_free(usual);
}

void pod_creation_error(const json_t *file)
{
    size_t i;
    json_t *vector;
    json_array_foreach (json_object_get(file, "vectors"), i, vector) {
        const char *id = id_of(vector, "vectors", i);
        const json_t *error = json_object_get(vector, "apiError");
        if (!case_fits(id, vector, "apiError:o expect:o") ||
            !case_fits(id, error, "httpStatus:i? message:s? networkError:s?"))
            continue;
        const int32_t code =
            framework_creation_code((int)int_at(error, "httpStatus", 0),
                                    string_at(error, "message"), string_at(error, "networkError"));
        report_partial(id, json_incref(json_object_get(vector, "expect")),
                       json_pack("{s:i, s:b}", "code", code, "completesTaskAttempt",
                                 code != CODE_CREATION_TRANSIENT));
    }
}

/* ---- controller-config.json ---- */

static json_t *config_json(const struct framework_config *config)
{
    json_t *framework = json_pack("{s:b, s:b}", "onFrameworkRetry", config->logs_framework_retry,
                                  "onFrameworkDeletion", config->logs_framework_deletion);
    json_t *task = json_pack("{s:b, s:b}", "onTaskRetry", config->logs_task_retry, "onTaskDeletion",
                             config->logs_task_deletion);
    json_t *pod = json_pack("{s:b}", "onPodDeletion", config->logs_pod_deletion);
    json_t *all =
        json_pack("{s:o}", "logObjectSnapshot",
                  json_pack("{s:o, s:o, s:o}", "framework", framework, "task", task, "pod", pod));
    json_object_set_new(all, "kubeClientQps", json_integer(config->kube_client_qps));
    json_object_set_new(all, "kubeClientBurst", json_integer(config->kube_client_burst));
    json_object_set_new(all, "workerNumber", json_integer(config->worker_count));
    json_object_set_new(all, "largeFrameworkCompression", json_boolean(config->compresses_large));
    json_object_set_new(all, "crdEstablishedCheckIntervalSec",
                        json_integer(config->crd_check_interval_s));
    json_object_set_new(all, "crdEstablishedCheckTimeoutSec",
                        json_integer(config->crd_check_timeout_s));
    json_object_set_new(all, "objectLocalCacheCreationTimeoutSec",
                        json_integer(config->cache_creation_timeout_s));
    json_object_set_new(all, "frameworkCompletedRetainSec",
                        json_integer(config->completed_retain_s));
    json_object_set_new(all, "frameworkMinRetryDelaySecForTransientConflictFailed",
                        json_integer(config->conflict_delay_min_s));
    json_object_set_new(all, "frameworkMaxRetryDelaySecForTransientConflictFailed",
                        json_integer(config->conflict_delay_max_s));
    return all;
}

void controller_config(const json_t *file)
{
    struct framework_config config;
    struct problems problems;
    problems_init(&problems, &vector_arena);
    framework_config_read((struct text){0}, &config, &problems);
    problems_release(&problems);
    if (json_object_get(file, "defaults"))
        report_partial("defaults", json_incref(json_object_get(file, "defaults")),
                       config_json(&config));
    size_t i;
    json_t *vector;
    json_array_foreach (json_object_get(file, "vectors"), i, vector) {
        const char *id = id_of(vector, "vectors", i);
        if (!case_fits(id, vector, "config:o accept:b"))
            continue;
        char *text = json_dumps(json_object_get(vector, "config"), 0);
        problems_init(&problems, &vector_arena);
        const bool is_taken = framework_config_read(text_of(text), &config, &problems);
        problems_release(&problems);
        free(text);
        report_bool(id, json_is_true(json_object_get(vector, "accept")), is_taken);
    }
}

/* ---- framework-object-validation.json ---- */

/* "spec.taskRoles[0].task.retryPolicy" → the value's parent and last key. */
static bool path_set(json_t *object, const char *path, json_t *value)
{
    char *rest = arena_copy(&vector_arena, text_of(path));
    json_t *at = object;
    for (char *part = strtok(rest, "."); part && at;) {
        char *next = strtok(NULL, ".");
        char *bracket = strchr(part, '[');
        if (bracket)
            *bracket = '\0';
        if (!next && !bracket) {
            return json_object_set(at, part, value) == 0;
        }
        at = json_object_get(at, part);
        if (bracket && !next) {
            const size_t index = (size_t)strtoul(bracket + 1, NULL, 10);
            return index == json_array_size(at) ? json_array_append(at, value) == 0
                                                : json_array_set(at, index, value) == 0;
        }
        if (bracket)
            at = json_array_get(at, (size_t)strtoul(bracket + 1, NULL, 10));
        part = next;
    }
    return false;
}

void framework_object(const json_t *file)
{
    size_t i;
    json_t *vector;
    json_array_foreach (json_object_get(file, "vectors"), i, vector) {
        const char *id = id_of(vector, "vectors", i);
        if (!case_fits(id, vector, "set:o accept:b") || !case_fits(id, file, "base:o"))
            continue;
        json_t *object = json_deep_copy(json_object_get(file, "base"));
        const char *path;
        json_t *value;
        bool is_set = true;
        json_object_foreach (json_object_get(vector, "set"), path, value)
            is_set = path_set(object, path, value) && is_set;
        if (!is_set) {
            report_skip(id, "the base has no such place");
            json_decref(object);
            continue;
        }
        char *text = json_dumps(object, 0);
        struct problems problems;
        problems_init(&problems, &vector_arena);
        const struct doc *doc = doc_parse(text_of(text), DOC_JSON, &vector_arena, &problems);
        const bool is_taken = doc && framework_object_check(doc, &problems);
        problems_release(&problems);
        free(text);
        json_decref(object);
        report_bool(id, json_is_true(json_object_get(vector, "accept")), is_taken);
    }
}

/* ---- naming-and-injection.json ---- */

static json_t *list_json(const char *const *names, const char *format)
{
    json_t *list = json_array();
    for (size_t i = 0; names[i]; i++) {
        if (format)
            json_array_append_new(list, json_sprintf("{{%s}}", names[i]));
        else
            json_array_append_new(list, json_string(names[i]));
    }
    return list;
}

static void naming_check(const json_t *expect, const char *key, json_t *got)
{
    if (json_object_get(expect, key))
        report(arena_format(&vector_arena, "naming/%s", key),
               json_incref(json_object_get(expect, key)), got);
    else
        json_decref(got);
}

static json_t *pod_names(const json_t *file, const char *framework)
{
    json_t *names = json_array();
    size_t i;
    json_t *role;
    json_array_foreach (json_object_get(file, "roles"), i, role)
        for (uint32_t t = 0; t < (uint32_t)int_at(role, "taskNumber", 0); t++) {
            struct buf name = BUF_INIT;
            framework_pod_name(framework, string_at(role, "name"), t, &name);
            json_array_append_new(names, json_string(buf_cstr(&name)));
            buf_release(&name);
        }
    return names;
}

void naming(const json_t *file)
{
    const json_t *expect = json_object_get(file, "expect");
    const char *framework = string_at(file, "frameworkName");
    if (!case_fits("naming", file, "frameworkName:s roles:a expect:o") ||
        !cases_fit("naming", json_object_get(file, "roles"), "name:s taskNumber:i"))
        return;
    size_t i;
    json_t *role;
    json_array_foreach (json_object_get(file, "roles"), i, role)
        if (int_at(role, "taskNumber", 0) < 0 || int_at(role, "taskNumber", 0) > 10000) {
            report_skip("naming", "a role has 0 to 10000 tasks");
            return;
        }
    struct buf text = BUF_INIT;
    framework_attempt_name(framework, &text);
    naming_check(expect, "attemptObjectName", json_string(buf_cstr(&text)));
    naming_check(expect, "podNames", pod_names(file, framework));
    /* the template's parts stand for the two numbers */
    static const char *const uids[] = {"frameworkAttemptInstanceUID", "taskAttemptInstanceUID"};
    static const char *const objects[] = {"{attemptObjectUid}", "{podUid}"};
    for (i = 0; i < COUNT_OF(uids); i++) {
        buf_clear(&text);
        framework_instance_uid(7, objects[i], &text);
        const char *uid = strchr(buf_cstr(&text), '_');
        const bool is_good = strncmp(buf_cstr(&text), "7_", 2) == 0;
        json_t *got = i == 0 ? json_sprintf("{attemptId}_%s", is_good ? uid + 1 : "?")
                             : json_sprintf("{taskAttemptId}_%s", is_good ? uid + 1 : "?");
        naming_check(expect, uids[i], got);
    }
    naming_check(expect, "podLabels", list_json(framework_pod_labels, NULL));
    naming_check(expect, "podAnnotationsAndEnv", list_json(framework_pod_annotations, NULL));
    naming_check(expect, "envOnly", list_json(framework_pod_variables, NULL));
    naming_check(expect, "placeholders", list_json(framework_placeholder_names, "{{}}"));
    buf_clear(&text);
    const struct framework_placeholder known = {"FC_POD_NAME", "p"};
    framework_placeholders_render(TEXT("a {{FC_POD_NAME}} {{X}} {{"), &known, 1, &text);
    naming_check(expect, "unknownPlaceholder",
                 json_string(strcmp(buf_cstr(&text), "a p {{X}} {{") == 0 ? "left unchanged"
                                                                          : buf_cstr(&text)));
    buf_release(&text);
    environment_naming(file);
}

/* ---- barrier.json ---- */

static const char *setting(const json_t *vector, const char *key)
{
    const json_t *value = json_object_get(vector, key);
    if (json_is_integer(value))
        return arena_format(&vector_arena, "%lld", (long long)json_integer_value(value));
    return json_string_value(value);
}

static void barrier_readiness(const json_t *vector, size_t index)
{
    const char *id = id_of(vector, "readiness", index);
    if (!case_fits(id, vector, "spec:o status:o passed:b"))
        return;
    struct framework_barrier_role roles[BENCH_ROLES];
    size_t count = 0;
    const char *name;
    json_t *wanted;
    json_object_foreach (json_object_get(vector, "spec"), name, wanted) {
        const json_t *tasks = json_object_get(json_object_get(vector, "status"), name);
        if (!json_is_integer(wanted) || json_integer_value(wanted) < 0 || count == BENCH_ROLES) {
            report_skip(id, "the spec is {role: tasks}");
            return;
        }
        bool *is_ready = ARENA_ARRAY(&vector_arena, bool, json_array_size(tasks) + 1);
        size_t t;
        json_t *task;
        json_array_foreach (tasks, t, task)
            is_ready[t] = string_at(task, "ip")[0] != '\0' &&
                          !json_is_true(json_object_get(task, "deletionPending"));
        roles[count++] = (struct framework_barrier_role){
            (uint32_t)json_integer_value(wanted), is_ready, (uint32_t)json_array_size(tasks)};
    }
    report_bool(id, json_is_true(json_object_get(vector, "passed")),
                framework_barrier_is_passed(roles, count));
}

void barrier(const json_t *file)
{
    size_t i;
    json_t *vector;
    if (json_object_get(file, "defaults"))
        report("barrier/defaults", json_incref(json_object_get(file, "defaults")),
               json_pack("{s:i, s:i}", "checkIntervalSec", BARRIER_INTERVAL_S, "checkTimeoutSec",
                         BARRIER_TIMEOUT_S));
    json_array_foreach (json_object_get(file, "configVectors"), i, vector) {
        const char *id = id_of(vector, "configVectors", i);
        if (!case_fits(id, vector, "frameworkName:s? accept:b exit:i?"))
            continue;
        const char *framework = json_string_value(json_object_get(vector, "frameworkName"));
        const int code =
            framework_barrier_check(framework ? framework : "f", setting(vector, "intervalSec"),
                                    setting(vector, "timeoutSec"));
        json_t *wanted =
            json_pack("{s:b}", "accept", json_is_true(json_object_get(vector, "accept")));
        if (json_object_get(vector, "exit"))
            json_object_set(wanted, "exit", json_object_get(vector, "exit"));
        report_partial(id, wanted, json_pack("{s:b, s:i}", "accept", code == 0, "exit", code));
    }
    json_array_foreach (json_object_get(file, "outcomes"), i, vector) {
        const char *id = id_of(vector, "outcomes", i);
        if (!case_fits(id, vector, "case:s exit:i"))
            continue;
        const char *what = string_at(vector, "case");
        const bool is_passed = strncmp(what, "all tasks", 9) == 0;
        const bool is_missing = strstr(what, "not found") != NULL;
        const bool is_good = strstr(what, "failed") == NULL;
        if (!is_passed && !is_missing && !strstr(what, "timeout")) {
            report_skip(id, "the words of `case` are not understood");
            continue;
        }
        report(id, json_incref(json_object_get(vector, "exit")),
               json_integer(framework_barrier_exit(is_passed, is_missing, is_good)));
    }
    json_array_foreach (json_object_get(file, "readiness"), i, vector)
        barrier_readiness(vector, i);
    if (json_object_get(file, "injected"))
        environment_barrier(json_object_get(file, "injected"));
}
