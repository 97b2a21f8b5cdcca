/* The early platform: v0-*.json. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "originals/early.h"
#include "originals/gpu_mask.h"
#include "originals/ranges.h"
#include "originals/vc_share.h"
#include "vector_job.h"

/* ---- v0-kill-all.json ---- */

/* [role, index, exit code], each of a task that there is */
static bool exits_fit(const char *id, const struct job_bench *bench, const json_t *exits)
{
    size_t i;
    json_t *end;
    json_array_foreach (exits, i, end) {
        const char *name = json_string_value(json_array_get(end, 0));
        const int role = name ? bench_role_of(bench, name) : -1;
        const json_int_t index = json_integer_value(json_array_get(end, 1));
        if (role < 0 || index < 0 || index >= bench->roles[role].instances ||
            !json_is_integer(json_array_get(end, 2))) {
            report_skip(id, "an exit of a task that it does not have");
            return false;
        }
    }
    return true;
}

static void kill_all_vector(const json_t *vector, size_t index)
{
    const char *id = id_of(vector, "vectors", index);
    struct job_bench bench;
    bench_init(&bench);
    bench.policy.is_gang = true;
    bench.policy.kill_all_on_completed =
        (uint32_t)int_at(vector, "killAllOnCompletedTaskNumber", 0);
    const char *name;
    json_t *count;
    if (!case_fits(id, vector, "killAllOnCompletedTaskNumber:i? roles:o commandExits:a expect:o"))
        return;
    json_t *roles = json_array();
    json_object_foreach (json_object_get(vector, "roles"), name, count)
        json_array_append_new(roles, json_pack("{s:s, s:O, s:i}", "name", name, "taskNumber", count,
                                               "minFailedTaskCount", 1));
    const bool is_known = bench_roles(&bench, id, roles) &&
                          exits_fit(id, &bench, json_object_get(vector, "commandExits"));
    json_decref(roles);
    if (!is_known)
        return;
    bench_begin(&bench);
    bench_run_waiting(&bench);
    json_t *got = json_pack("{s:n, s:n}", "afterEvent", "appExitCode");
    size_t i;
    json_t *end;
    json_array_foreach (json_object_get(vector, "commandExits"), i, end) {
        const int role = bench_role_of(&bench, json_string_value(json_array_get(end, 0)));
        const struct task_ref task = {(uint16_t)role,
                                      (uint16_t)json_integer_value(json_array_get(end, 1))};
        bench_exit(&bench, task,
                   completion_of((int32_t)json_integer_value(json_array_get(end, 2)), "%s", ""));
        if (bench.job.completion && json_is_null(json_object_get(got, "afterEvent")))
            json_object_set_new(got, "afterEvent", json_integer((json_int_t)i + 1));
    }
    bench_end_kills(&bench);
    const int32_t code = bench.job.completion ? bench.job.completion->code : 0;
    json_object_set_new(got, "jobState",
                        json_string(public_state_name(
                            life_public(bench.job.state, code, bench.job.retry_at_ms != 0))));
    if (job_is_final(&bench.job))
        json_object_set_new(got, "appExitCode",
                            json_integer(early_exit_code(EARLY_A, bench.job.completion)));
    report_partial(id, wanted_of(id, vector, json_incref(json_object_get(vector, "expect"))), got);
    bench_release(&bench);
}

void kill_all(const json_t *file)
{
    size_t i;
    json_t *vector;
    json_array_foreach (json_object_get(file, "vectors"), i, vector)
        kill_all_vector(vector, i);
}

/* ---- v0-launcher-exit.json ---- */

static void exit_table(const json_t *table)
{
    const json_t *given = json_object_get(table, "given");
    const size_t count = json_array_size(given);
    struct early_row *in = ARENA_ARRAY(&vector_arena, struct early_row, count + 1);
    struct early_row *out = ARENA_ARRAY(&vector_arena, struct early_row, count + 1);
    json_t *row;
    size_t i;
    json_array_foreach (given, i, row) {
        const int type = early_exit_type_of(string_at(row, "type"));
        in[i] = (struct early_row){.code = (int32_t)int_at(row, "code", 0),
                                   .has_code = json_is_integer(json_object_get(row, "code")),
                                   .has_type = type >= 0,
                                   .type = type < 0 ? EARLY_UNKNOWN : (enum early_exit_type)type};
    }
    const size_t used = early_rows_normalise(in, count, out);
    json_t *got = json_array();
    for (size_t r = 0; r < used; r++)
        json_array_append_new(got, json_pack("{s:i, s:s}", "code", out[r].code, "type",
                                             early_exit_type_name(out[r].type)));
    report("userTableNormalisation", json_incref(json_object_get(table, "expect")), got);
}

void launcher_exit(const json_t *file)
{
    struct early_row rows[64];
    const size_t usual = early_rows_normalise(early_default_rows, early_default_count, rows);
    size_t i;
    json_t *vector;
    json_array_foreach (json_object_get(file, "vectors"), i, vector) {
        const char *id = id_of(vector, "vectors", i);
        if (!case_fits(id, vector, "rawExitCode:i rawDiagnostics:s? expect:o"))
            continue;
        const struct early_exit end = early_exit_judge(
            (int32_t)int_at(vector, "rawExitCode", 0),
            json_string_value(json_object_get(vector, "rawDiagnostics")), rows, usual);
        report_partial(
            id, json_incref(json_object_get(vector, "expect")),
            json_pack("{s:i, s:s}", "code", end.code, "type", early_exit_type_name(end.type)));
    }
    const json_t *table = json_object_get(file, "userTableNormalisation");
    if (table)
        exit_table(table);
}

/* ---- v0-launcher-retry.json ---- */

enum { DELAY_MAX_S = 1000000 }; /* each second of a window is drawn once */

/* Which counter an exit of that type moves when it is retried. */
static const char *counter_of(const char *type)
{
    struct job_bench bench;
    bench_init(&bench);
    bench_role(&bench, "a", 1, 1, -1);
    bench.policy.retry = (struct retry_policy){.max = 1, .is_fancy = true};
    bench_begin(&bench);
    bench_run_waiting(&bench);
    struct completion completion = completion_of(1, "%s", "");
    const int kind = early_exit_type_of(type);
    completion.attributes = kind < 0 ? 0 : early_exit_attributes((enum early_exit_type)kind);
    bench_exit(&bench, (struct task_ref){0, 0}, completion);
    if (bench.job.retry_at_ms > 0) {
        bench.now_ms = bench.job.retry_at_ms;
        bench_simple(&bench, JOB_EVENT_TIMER);
    }
    const char *counter = bench.job.retries_user       ? "user"
                          : bench.job.retries_platform ? "platform"
                          : bench.job.retries_resource ? "resource"
                                                       : "none";
    bench_release(&bench);
    return counter;
}

/* Our counters under the names they had: of the launcher, and of the job API since 0.12. */
static void retry_counters(const json_t *file)
{
    static const struct {
        const char *type, *ours, *launcher, *shown;
    } kinds[] = {
        {"UNKNOWN", "user", "unKnownRetriedCount", "user=unKnown"},
        {"TRANSIENT_NORMAL", "platform", "transientNormalRetriedCount", "platform=transientNormal"},
        {"TRANSIENT_CONFLICT", "resource", "transientConflictRetriedCount",
         "resource=transientConflict"},
        {"NON_TRANSIENT", "none", "nonTransientRetriedCount", NULL}};
    const char *api = string_at(json_object_get(file, "jobApiRetries"), "since 0.12");
    const json_t *counters = json_object_get(file, "counters");
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const char *id = arena_format(&vector_arena, "counters/%s", kinds[i].type);
        const bool is_moved = strcmp(counter_of(kinds[i].type), kinds[i].ours) == 0;
        if (counters)
            report(id, json_incref(json_object_get(counters, kinds[i].type)),
                   json_string(is_moved ? kinds[i].launcher : counter_of(kinds[i].type)));
        if (api[0] != '\0' && kinds[i].shown)
            report_bool(arena_format(&vector_arena, "jobApiRetries/%s", kinds[i].type), true,
                        is_moved && strstr(api, kinds[i].shown));
    }
}

void launcher_retry(const json_t *file)
{
    size_t i;
    json_t *vector;
    json_array_foreach (json_object_get(file, "retryCountMapping"), i, vector) {
        const char *id = id_of(vector, "retryCountMapping", i);
        if (!case_fits(id, vector, "retryCount:i maxRetryCount:i fancyRetryPolicy:b"))
            continue;
        const struct retry_policy policy =
            retry_policy_early((int32_t)int_at(vector, "retryCount", 0));
        report_partial(id, json_incref(vector),
                       json_pack("{s:O, s:i, s:b}", "retryCount",
                                 json_object_get(vector, "retryCount"), "maxRetryCount", policy.max,
                                 "fancyRetryPolicy", policy.is_fancy));
    }
    json_array_foreach (json_object_get(file, "conflictBackoff"), i, vector) {
        const char *id = id_of(vector, "conflictBackoff", i);
        if (!case_fits(id, vector,
                       "conflictRetriesSoFar:i minDelaySec:i maxDelaySec:i expectRangeSec:a") ||
            int_at(vector, "minDelaySec", 0) < 0 ||
            int_at(vector, "minDelaySec", 0) > int_at(vector, "maxDelaySec", 0) ||
            int_at(vector, "maxDelaySec", 0) > DELAY_MAX_S) {
            report_skip(id, "no window of delays");
            continue;
        }
        const struct retry_window window =
            retry_window((struct retry_window){(uint32_t)int_at(vector, "minDelaySec", 0),
                                               (uint32_t)int_at(vector, "maxDelaySec", 0)},
                         (uint32_t)int_at(vector, "conflictRetriesSoFar", 0), true);
        /* and the delays drawn reach both ends */
        uint32_t low = UINT32_MAX, high = 0;
        for (uint64_t random = 0; random <= window.max_s; random++) {
            const uint32_t delay = retry_delay_s(window, random);
            low = delay < low ? delay : low;
            high = delay > high ? delay : high;
        }
        report(id, json_incref(json_object_get(vector, "expectRangeSec")),
               json_pack("[i, i]", (int)low, (int)high));
    }
    retry_counters(file);
}

/* ---- v0-gpu-placement.json ---- */

static uint64_t mask_at(const json_t *object, const char *key)
{
    return strtoull(string_at(object, key), NULL, 0);
}

static json_t *gpu_choose(const json_t *vector, struct gpu_node *nodes, size_t count)
{
    struct gpu_choice *choices = ARENA_ARRAY(&vector_arena, struct gpu_choice, count + 1);
    const struct gpu_request request = {.gpus = (uint32_t)int_at(vector, "gpus", 0),
                                        .mask = mask_at(vector, "mask"),
                                        .gpu_types = string_at(vector, "gpuType")};
    const size_t room = (size_t)int_at(vector, "candidates", (int64_t)count);
    const int found = gpu_mask_choose(nodes, count, &request, choices, room, NULL);
    if (found < 0)
        return json_string("request rejected");
    json_t *got = json_array();
    const bool wants_hosts = json_object_get(vector, "expectHosts") != NULL;
    for (int i = 0; i < found; i++) {
        const char *host = nodes[choices[i].node].host;
        char mask[24];
        snprintf(mask, sizeof mask, "0x%llX", (unsigned long long)choices[i].mask);
        json_array_append_new(got, wants_hosts
                                       ? json_string(host)
                                       : json_pack("{s:s, s:s}", "host", host, "mask", mask));
    }
    return got;
}

static int json_order(const void *a, const void *b)
{
    return strcmp(json_string_value(*(json_t *const *)a), json_string_value(*(json_t *const *)b));
}

static json_t *sorted(json_t *list)
{
    const size_t count = json_array_size(list);
    json_t **items = ARENA_ARRAY(&vector_arena, json_t *, count + 1);
    for (size_t i = 0; i < count; i++) {
        items[i] = json_array_get(list, i);
        if (!json_is_string(items[i]))
            return list;
    }
    qsort(items, count, sizeof *items, json_order);
    json_t *result = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append(result, items[i]);
    json_decref(list);
    return result;
}

void gpu_placement(const json_t *file)
{
    size_t i;
    json_t *vector;
    json_array_foreach (json_object_get(file, "vectors"), i, vector) {
        const char *id = id_of(vector, "vectors", i);
        const json_t *list = json_object_get(vector, "nodes");
        if (!case_fits(id, vector, "nodes:a? gpus:i mask:s? gpuType:s? candidates:i?") ||
            !cases_fit(id, list, "host:s gpuTotalMask:s gpuUsedMask:s cpu:i memMB:i gpuType:s?"))
            continue;
        const size_t count = json_array_size(list);
        struct gpu_node *nodes = ARENA_ARRAY(&vector_arena, struct gpu_node, count + 1);
        size_t n;
        json_t *node;
        json_array_foreach (list, n, node)
            nodes[n] = (struct gpu_node){.host = string_at(node, "host"),
                                         .gpu_type = string_at(node, "gpuType"),
                                         .total = mask_at(node, "gpuTotalMask"),
                                         .used = mask_at(node, "gpuUsedMask"),
                                         .cpu = int_at(node, "cpu", 0),
                                         .memory_mib = int_at(node, "memMB", 0)};
        json_t *got = gpu_choose(vector, nodes, count);
        json_t *hosts = json_object_get(vector, "expectHosts");
        json_t *wanted = json_incref(hosts ? hosts : json_object_get(vector, "expect"));
        if (json_is_string(wanted) && strstr(json_string_value(wanted), "not available") &&
            json_array_size(got) == 0) {
            json_decref(got);
            got = json_incref(wanted); /* no candidate: the job waits */
        }
        if (json_is_true(json_object_get(vector, "anyOrder"))) {
            wanted = sorted(wanted);
            got = sorted(got);
        }
        report(id, wanted, got);
    }
}

/* ---- v0-ports.json ---- */

enum { PORT_LAST = 65535, LABELS_MAX = 256 };

static bool is_pair(const json_t *pair, json_int_t least, json_int_t most)
{
    const json_t *first = json_array_get(pair, 0), *second = json_array_get(pair, 1);
    return json_array_size(pair) == 2 && json_is_integer(first) && json_is_integer(second) &&
           json_integer_value(first) >= least && json_integer_value(first) <= most &&
           json_integer_value(second) >= least && json_integer_value(second) <= most;
}

static bool ranges_fit(const char *id, const json_t *list)
{
    size_t i;
    json_t *pair;
    json_array_foreach (list, i, pair)
        if (!is_pair(pair, INT32_MIN, INT32_MAX) ||
            json_integer_value(json_array_get(pair, 0)) >
                json_integer_value(json_array_get(pair, 1))) {
            report_skip(id, "a range is [first, last]");
            return false;
        }
    return true;
}

/* {label: [start, count]} */
static bool demands_fit(const char *id, const json_t *ports)
{
    const char *label;
    json_t *pair;
    bool is_good = json_object_size(ports) < LABELS_MAX;
    json_object_foreach ((json_t *)(uintptr_t)ports, label, pair)
        is_good = is_good && is_pair(pair, 0, PORT_LAST);
    if (!is_good)
        report_skip(id, "ports are {label: [start, count]}, below 65536");
    return is_good;
}

static void ranges_read(const json_t *list, struct ranges *ranges)
{
    size_t i;
    json_t *pair;
    json_array_foreach (list, i, pair)
        ranges_add(ranges, json_integer_value(json_array_get(pair, 0)),
                   json_integer_value(json_array_get(pair, 1)));
}

static json_t *ranges_json(const struct ranges *ranges)
{
    json_t *list = json_array();
    for (size_t i = 0; i < ranges->count; i++)
        json_array_append_new(list, json_pack("[I, I]", (json_int_t)ranges->items[i].first,
                                              (json_int_t)ranges->items[i].last));
    return list;
}

static size_t demands_read(const json_t *ports, struct port_demand *demands)
{
    size_t count = 0;
    const char *label;
    json_t *pair;
    json_object_foreach ((json_t *)ports, label, pair)
        demands[count++] = (struct port_demand){label, json_integer_value(json_array_get(pair, 0)),
                                                json_integer_value(json_array_get(pair, 1))};
    return count;
}

/* "a:1,2;b:3;" → {"a": "1,2", "b": "3"} */
static json_t *port_set(const char *text)
{
    json_t *set = json_object();
    char *rest = arena_copy(&vector_arena, text_of(text));
    for (char *item = strtok(rest, ";"); item; item = strtok(NULL, ";")) {
        char *colon = strchr(item, ':');
        if (!colon)
            continue;
        *colon = '\0';
        json_object_set_new(set, item, json_string(colon + 1));
    }
    return set;
}

static void port_strings(const json_t *vectors)
{
    size_t i;
    json_t *vector;
    json_array_foreach (vectors, i, vector) {
        const char *id = id_of(vector, "portString", i);
        struct port_demand demands[LABELS_MAX];
        if (!case_fits(id, vector, "ports:o ranges:a expectSet:o? expectString:s?") ||
            !demands_fit(id, json_object_get(vector, "ports")) ||
            !ranges_fit(id, json_object_get(vector, "ranges")))
            continue;
        const size_t count = demands_read(json_object_get(vector, "ports"), demands);
        struct ranges given = {0};
        ranges_read(json_object_get(vector, "ranges"), &given);
        ranges_coalesce(&given);
        struct buf text = BUF_INIT;
        const bool is_enough = port_string(demands, count, &given, &text);
        json_t *wanted = json_object(), *got = json_object();
        if (json_object_get(vector, "expectSet")) {
            json_object_set(wanted, "set", json_object_get(vector, "expectSet"));
            json_object_set_new(got, "set", port_set(buf_cstr(&text)));
        }
        if (json_object_get(vector, "expectString")) {
            json_object_set(wanted, "string", json_object_get(vector, "expectString"));
            json_object_set_new(got, "string",
                                json_string(is_enough ? buf_cstr(&text) : "too few"));
        }
        report(id, wanted, got);
        buf_release(&text);
        ARRAY_FREE(&given);
    }
}

static json_t *range_result(const char *op, const struct ranges *a, const struct ranges *b)
{
    struct ranges out = {0};
    json_t *got = NULL;
    if (strcmp(op, "coalesce") == 0)
        return ranges_json(a);
    if (strcmp(op, "count") == 0)
        return json_integer((json_int_t)ranges_count(a));
    if (strcmp(op, "contains") == 0)
        return json_boolean(ranges_contain(a, b));
    if (strcmp(op, "union") == 0)
        ranges_union(a, b, &out);
    else if (strcmp(op, "intersect") == 0)
        ranges_intersect(a, b, &out);
    else if (strcmp(op, "subtract") == 0)
        ranges_subtract(a, b, &out);
    else
        return NULL;
    got = ranges_json(&out);
    ARRAY_FREE(&out);
    return got;
}

static void shared_free(const json_t *vector, size_t index)
{
    const char *id = id_of(vector, "sharedFree", index);
    struct ranges common = {0};
    size_t i;
    json_t *node;
    if (!case_fits(id, vector, "nodeFree:a expectCommon:a"))
        return;
    json_array_foreach (json_object_get(vector, "nodeFree"), i, node)
        if (!ranges_fit(id, node))
            return;
    json_array_foreach (json_object_get(vector, "nodeFree"), i, node) {
        struct ranges free_ports = {0}, both = {0};
        ranges_read(node, &free_ports);
        ranges_coalesce(&free_ports);
        if (i == 0)
            ranges_union(&free_ports, &(struct ranges){0}, &both);
        else
            ranges_intersect(&common, &free_ports, &both);
        ARRAY_FREE(&common);
        ARRAY_FREE(&free_ports);
        common = both;
    }
    report(id, json_incref(json_object_get(vector, "expectCommon")), ranges_json(&common));
    ARRAY_FREE(&common);
}

void ports(const json_t *file)
{
    port_strings(json_object_get(file, "portString"));
    size_t i;
    json_t *vector;
    json_array_foreach (json_object_get(json_object_get(file, "defaultLabels"), "vectors"), i,
                        vector) {
        const char *id = id_of(vector, "defaultLabels", i);
        struct port_demand demands[LABELS_MAX + 2];
        if (!case_fits(id, vector, "given:o expect:o") ||
            !demands_fit(id, json_object_get(vector, "given")))
            continue;
        size_t count = demands_read(json_object_get(vector, "given"), demands);
        count = port_demands_default(demands, count);
        json_t *got = json_object();
        for (size_t d = 0; d < count; d++)
            json_object_set_new(
                got, demands[d].label,
                json_pack("[I, I]", (json_int_t)demands[d].start, (json_int_t)demands[d].count));
        report(id, json_incref(json_object_get(vector, "expect")), got);
    }
    json_array_foreach (json_object_get(file, "rangeArithmetic"), i, vector) {
        const char *id = id_of(vector, "rangeArithmetic", i);
        struct ranges a = {0}, b = {0};
        if (!case_fits(id, vector, "op:s a:a b:a? expect:x") ||
            !ranges_fit(id, json_object_get(vector, "a")) ||
            !ranges_fit(id, json_object_get(vector, "b")))
            continue;
        ranges_read(json_object_get(vector, "a"), &a);
        ranges_read(json_object_get(vector, "b"), &b);
        ranges_coalesce(&a);
        ranges_coalesce(&b);
        json_t *got = range_result(string_at(vector, "op"), &a, &b);
        if (got)
            report(id, json_incref(json_object_get(vector, "expect")), got);
        else
            report_skip(id, "no such operation");
        ARRAY_FREE(&a);
        ARRAY_FREE(&b);
    }
    json_array_foreach (json_object_get(file, "sharedFree"), i, vector)
        shared_free(vector, i);
}

/* ---- v0-job-state.json ---- */

static const int32_t *code_at(const json_t *vector, const char *key, int32_t *room)
{
    const json_t *value = json_object_get(vector, key);
    *room = (int32_t)json_integer_value(value);
    return json_is_integer(value) ? room : NULL;
}

static json_t *state_json(enum public_state state)
{
    return json_string(public_state_name(state));
}

void job_state(const json_t *file)
{
    static const char *const eras[] = {"A", "B", "C"};
    size_t i;
    json_t *vector;
    int32_t room;
    json_array_foreach (json_object_get(file, "vectors"), i, vector) {
        const char *id = id_of(vector, "vectors", i);
        if (!case_fits(id, vector, "frameworkState:s exitCode:i? A:s? B:s? C:s?"))
            continue;
        const int32_t *code = code_at(vector, "exitCode", &room);
        json_t *wanted = json_object(), *got = json_object();
        for (size_t e = 0; e < COUNT_OF(eras); e++) {
            if (!json_object_get(vector, eras[e]))
                continue;
            json_object_set(wanted, eras[e], json_object_get(vector, eras[e]));
            json_object_set_new(got, eras[e],
                                state_json(early_job_state(
                                    (enum early_era)e, string_at(vector, "frameworkState"), code)));
        }
        report(id, wanted, got);
    }
    json_array_foreach (json_object_get(file, "taskStateEraC"), i, vector) {
        const char *id = id_of(vector, "taskStateEraC", i);
        if (case_fits(id, vector, "taskState:s exitCode:i? expect:s"))
            report(id, wanted_of(id, vector, json_incref(json_object_get(vector, "expect"))),
                   state_json(early_task_state(string_at(vector, "taskState"),
                                               code_at(vector, "exitCode", &room))));
    }
    json_array_foreach (json_object_get(file, "kubernetesEra"), i, vector) {
        const char *id = id_of(vector, "kubernetesEra", i);
        if (!case_fits(id, vector, "state:s code:i? job:s jobAttempt:s"))
            continue;
        const int state = state_named(string_at(vector, "state"));
        const int32_t *code = code_at(vector, "code", &room);
        const enum life_state known = state < 0 ? (enum life_state)99 : (enum life_state)state;
        json_t *got =
            json_pack("{s:o, s:o}", "job", state_json(life_public(known, code ? *code : 0, false)),
                      "jobAttempt", state_json(life_public_attempt(known, code ? *code : 0)));
        json_t *wanted = json_pack("{s:O, s:O}", "job", json_object_get(vector, "job"),
                                   "jobAttempt", json_object_get(vector, "jobAttempt"));
        report(id, wanted_of(id, vector, wanted), got);
    }
}

/* ---- v0-vc-quota.json ---- */

static double number_at(const json_t *object, const char *key, double otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

static size_t shares_read(const json_t *vcs, struct vc_share *shares)
{
    size_t count = 0;
    const char *name;
    json_t *vc;
    json_object_foreach ((json_t *)vcs, name, vc)
        shares[count++] =
            (struct vc_share){.name = name,
                              .capacity = number_at(vc, "capacity", 0),
                              .max = number_at(vc, "max", 100),
                              .is_dedicated = json_is_true(json_object_get(vc, "dedicated"))};
    return count;
}

static void vc_vector(const json_t *vector, size_t index)
{
    const char *id = id_of(vector, "vectors", index);
    const char *name;
    json_t *vc;
    if (!case_fits(id, vector, "vcs:o op:o expect:o") ||
        !case_fits(id, json_object_get(vector, "op"),
                   "put:s? delete:s? vcCapacity:n? vcMaxCapacity:n? jobs:i?"))
        return;
    json_object_foreach (json_object_get(vector, "vcs"), name, vc)
        if (!case_fits(id, vc, "capacity:n max:n? dedicated:b?"))
            return;
    struct vc_share *shares = ARENA_ARRAY(&vector_arena, struct vc_share,
                                          json_object_size(json_object_get(vector, "vcs")) + 1);
    size_t count = shares_read(json_object_get(vector, "vcs"), shares);
    const json_t *op = json_object_get(vector, "op");
    const char *removed = json_string_value(json_object_get(op, "delete"));
    const enum vc_share_result result =
        removed ? vc_share_remove(shares, &count, removed, (uint64_t)int_at(op, "jobs", 0))
                : vc_share_put(shares, &count, string_at(op, "put"), number_at(op, "vcCapacity", 0),
                               number_at(op, "vcMaxCapacity", -1));
    json_t *got = json_object();
    if (result != VC_SHARE_OK)
        json_object_set_new(got, "error", json_string(vc_share_result_name(result)));
    else if (removed)
        json_object_set_new(got, "removed", json_string(removed));
    for (size_t i = 0; result == VC_SHARE_OK && i < count; i++) {
        json_object_set_new(got, shares[i].name, json_real(shares[i].capacity));
        json_object_set_new(got, arena_format(&vector_arena, "%sMax", shares[i].name),
                            json_real(shares[i].max));
    }
    json_t *wanted = json_copy(json_object_get(vector, "expect"));
    json_object_del(wanted, "order"); /* of calls to the cluster manager, in words */
    report_partial(id, wanted, got);
}

void vc_quota(const json_t *file)
{
    size_t i;
    json_t *vector;
    json_array_foreach (json_object_get(file, "vectors"), i, vector)
        vc_vector(vector, i);
    const json_t *total = json_object_get(file, "resourcesTotal");
    const json_t *given = json_object_get(total, "given");
    const json_t *list = json_object_get(given, "nodes");
    struct vc_resources *nodes =
        ARENA_ARRAY(&vector_arena, struct vc_resources, json_array_size(list) + 1);
    json_t *node;
    json_array_foreach (list, i, node)
        nodes[i] = (struct vc_resources){number_at(node, "gpus", 0), number_at(node, "vcores", 0),
                                         number_at(node, "memMB", 0)};
    const struct vc_resources share = vc_share_resources(
        nodes, json_array_size(list), json_number_value(json_object_get(given, "capacity")));
    if (total)
        report_partial("resourcesTotal", json_incref(json_object_get(total, "expect")),
                       json_pack("{s:f, s:f, s:f}", "GPUs", share.gpus, "vCores", share.cores,
                                 "memory", share.memory_mib));
}
