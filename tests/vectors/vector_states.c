/* state-machine.json and rescale.json. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "vector_job.h"

/* ---- traces: is there a run of the real state machine that gives exactly this trace? ---- */

enum { TRACE_MAX = 32, SEARCH_DEPTH = 9 };

struct trace {
    enum life_state states[TRACE_MAX];
    size_t count;
    bool is_task;
    struct id_map seen; /* (job, place in the trace) → depth left */
};

static struct completion make(int32_t code, uint8_t attributes)
{
    struct completion completion = completion_of(code, "%s", "");
    completion.attributes = attributes;
    return completion;
}

/* The events that the search may try; the completions are static for the search. */
static size_t alphabet(struct job_event *events)
{
    static struct completion ends[7];
    ends[0] = make(0, 0);
    ends[1] = make(1, 0);
    ends[2] = make(CODE_NODE_LOST, EXIT_TRANSIENT);
    ends[3] = make(CODE_CONTAINER_DELETED, EXIT_TRANSIENT);
    ends[4] = make(201, EXIT_TRANSIENT | EXIT_CONFLICT);
    ends[5] = make(CODE_CREATION_TIMEOUT, EXIT_TRANSIENT);
    ends[6] = make(CODE_CREATION_PERMANENT, EXIT_PERMANENT);
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        events[count++] = (struct job_event){.kind = JOB_EVENT_TASK_EXITED, .completion = &ends[i]};
    static const enum job_event_kind plain[] = {
        JOB_EVENT_PLACED, JOB_EVENT_TASK_PREPARING, JOB_EVENT_TASK_RUNNING, JOB_EVENT_STOP,
        JOB_EVENT_START,  JOB_EVENT_LOST,           JOB_EVENT_TIMER};
    for (size_t i = 0; i < COUNT_OF(plain); i++)
        events[count++] = (struct job_event){.kind = plain[i]};
    events[count++] = (struct job_event){.kind = JOB_EVENT_REFUSED, .completion = &ends[6]};
    events[count++] = (struct job_event){.kind = JOB_EVENT_TASK_REFUSED, .completion = &ends[6]};
    return count;
}

/* Follow the transitions of the last step. `at` is the place in the trace, SIZE_MAX before its
 * begin. False: the step leaves the trace. */
static bool follow(const struct trace *trace, const struct job_bench *bench, size_t *at)
{
    for (size_t i = 0; i < bench->out.count; i++) {
        const struct job_action *action = &bench->out.items[i];
        const bool is_ours =
            trace->is_task ? action->kind == JOB_ACTION_TASK_CHANGED && action->task.index == 0
                           : action->kind == JOB_ACTION_JOB_CHANGED;
        if (!is_ours || (action->from == action->to && action->to != trace->states[0]))
            continue;
        if (*at == SIZE_MAX) {
            if (action->to == trace->states[0])
                *at = 0;
            continue;
        }
        if (*at + 1 == trace->count || action->from == action->to)
            continue; /* what comes after it is no business of the trace */
        if (action->to != trace->states[*at + 1])
            return false;
        ++*at;
    }
    return true;
}

static bool is_reached(const struct trace *trace, size_t at)
{
    return at != SIZE_MAX && at + 1 == trace->count;
}

static bool search(struct trace *trace, const struct job_bench *from, size_t at, uint32_t depth)
{
    if (is_reached(trace, at))
        return true;
    const uint64_t key = (job_hash(&from->job) ^ (at + 1) * 0x9e3779b97f4a7c15u) | 1;
    const uint32_t before = id_map_get(&trace->seen, key);
    if (depth == 0 || (before != MAP_NONE && before >= depth))
        return false;
    id_map_set(&trace->seen, key, depth);
    struct job_event events[24];
    const size_t count = alphabet(events);
    bool is_found = false;
    for (size_t i = 0; i < count && !is_found; i++) {
        struct job_bench next = *from;
        next.policy.roles = next.roles;
        next.out = (struct job_output){.arena = &vector_arena};
        job_clone(&next.job, &from->job);
        if (events[i].kind == JOB_EVENT_TIMER && job_wake_ms(&next.job, &next.policy) > 0)
            next.now_ms = job_wake_ms(&next.job, &next.policy);
        size_t place = at;
        bench_step(&next, events[i]);
        if (next.out.count > 0 && follow(trace, &next, &place))
            is_found = search(trace, &next, place, depth - 1);
        bench_release(&next);
    }
    return is_found;
}

static bool trace_exists(struct trace *trace)
{
    for (int variant = 0; variant < 8; variant++) {
        struct job_bench bench;
        bench_init(&bench);
        bench_role(&bench, "a", 1, variant & 2 ? 1 : -1, -1);
        bench.policy.is_gang = !trace->is_task;
        bench.policy.is_created_only = variant & 1;
        bench.policy.retry.is_fancy = !trace->is_task;
        bench.policy.retry.max = variant & 4 ? 1 : 0;
        bench.roles[0].task_retry =
            (struct retry_policy){.max = variant & 4 ? 1 : 0, .is_fancy = trace->is_task};
        bench_begin(&bench);
        size_t at = SIZE_MAX;
        trace->seen = (struct id_map){0};
        follow(trace, &bench, &at);
        const bool is_found = search(trace, &bench, at, SEARCH_DEPTH);
        id_map_release(&trace->seen);
        bench_release(&bench);
        if (is_found)
            return true;
    }
    return false;
}

static void run_trace(const json_t *vector, size_t index)
{
    struct trace trace = {.is_task = strcmp(string_at(vector, "object"), "task") == 0};
    size_t i;
    json_t *name;
    json_array_foreach (json_object_get(vector, "states"), i, name) {
        const int state = life_state_of(json_string_value(name));
        if (state < 0 || trace.count == TRACE_MAX) {
            report_fail(id_of(vector, "traces", index), json_string_value(name), "no such state");
            return;
        }
        trace.states[trace.count++] = (enum life_state)state;
    }
    if (!trace_exists(&trace))
        report_fail(id_of(vector, "traces", index), "the trace", "no run that gives it");
    else
        report_bool(id_of(vector, "traces", index), true, true);
}

/* ---- tables ---- */

static json_t *states_where(bool (*is_one)(enum life_state))
{
    json_t *names = json_array();
    for (int s = LIFE_CREATION_PENDING; s <= LIFE_COMPLETED; s++)
        if (is_one((enum life_state)s))
            json_array_append_new(names, json_string(life_state_name((enum life_state)s)));
    return names;
}

/* A container exists or may exist: what reconciliation takes for live. */
static bool has_instance(enum life_state state)
{
    return state > LIFE_CREATION_PENDING && state < LIFE_ATTEMPT_COMPLETED;
}

static void tables(const json_t *file)
{
    const char *from_name;
    json_t *list;
    json_object_foreach (json_object_get(file, "transitions"), from_name, list) {
        const int from = life_state_of(from_name);
        json_t *got = json_object(), *wanted = json_object();
        size_t i;
        json_t *name;
        json_array_foreach (list, i, name)
            json_object_set_new(wanted, json_string_value(name), json_true());
        for (int to = LIFE_CREATION_PENDING; from >= 0 && to <= LIFE_COMPLETED; to++)
            if (life_can_follow((enum life_state)from, (enum life_state)to))
                json_object_set_new(got, life_state_name((enum life_state)to), json_true());
        report(arena_format(&vector_arena, "transitions/%s", from_name), wanted, got);
    }
    size_t i;
    json_t *pair;
    json_array_foreach (json_object_get(file, "illegalExamples"), i, pair) {
        const int from = life_state_of(json_string_value(json_array_get(pair, 0)));
        const int to = life_state_of(json_string_value(json_array_get(pair, 1)));
        report_bool(id_of(pair, "illegalExamples", i), false,
                    from < 0 || to < 0 ||
                        life_can_follow((enum life_state)from, (enum life_state)to));
    }
    report("completing", json_incref(json_object_get(file, "completing")),
           states_where(life_is_completing));
    report("instanceAssociated", json_incref(json_object_get(file, "instanceAssociated")),
           states_where(has_instance));
    struct job_bench bench;
    bench_init(&bench);
    bench_role(&bench, "a", 1, 1, -1);
    bench_begin(&bench);
    report("startState", json_incref(json_object_get(file, "startState")),
           json_string(life_state_name(bench.job.state)));
    bench_simple(&bench, JOB_EVENT_STOP);
    report("finalState", json_incref(json_object_get(file, "finalState")),
           json_string(life_state_name(bench.job.state)));
    report("attemptFinalState", json_incref(json_object_get(file, "attemptFinalState")),
           json_string(life_state_name(LIFE_ATTEMPT_COMPLETED)));
    bench_release(&bench);
}

static int execution_of(const char *name)
{
    static const char *const names[] = {"Create", "Start", "Stop"};
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static void times(const json_t *rules)
{
    struct job_bench bench;
    bench_init(&bench);
    bench_role(&bench, "a", 1, 1, -1);
    bench.policy.retry.max = 1;
    bench_begin(&bench);
    bench_run_waiting(&bench);
    const int64_t first_ms = bench.job.launched_ms;
    const bool is_first = first_ms > 0 && bench.job.attempt_launched_ms == first_ms;
    bench_exit(&bench, (struct task_ref){0, 0}, completion_of(1, "%s", ""));
    bench_run_waiting(&bench);
    const bool each = is_first && bench.job.attempt_launched_ms > first_ms;
    bench_exit(&bench, (struct task_ref){0, 0}, completion_of(1, "%s", ""));
    const bool ends = bench.job.attempt_completed_ms == bench.now_ms;
    json_t *got = json_pack("{s:s, s:s, s:s, s:s}", "attempt.runTime",
                            each ? "set on each entry to AttemptRunning" : "not so", "runTime",
                            bench.job.launched_ms == first_ms ? "first entry only" : "not so",
                            "attempt.completionTime", ends ? "on AttemptCompleted" : "not so",
                            "completionTime",
                            bench.job.completed_ms == bench.now_ms ? "on Completed" : "not so");
    report_partial("times", json_incref((json_t *)rules), got);
    bench_release(&bench);
}

void state_machine(const json_t *file)
{
    tables(file);
    size_t i;
    json_t *vector;
    json_array_foreach (json_object_get(file, "traces"), i, vector)
        run_trace(vector, i);
    json_array_foreach (json_object_get(file, "executionTypeChanges"), i, vector) {
        const int from = execution_of(string_at(vector, "from"));
        const int to = execution_of(string_at(vector, "to"));
        report_bool(id_of(vector, "executionTypeChanges", i),
                    json_is_true(json_object_get(vector, "allowed")),
                    from >= 0 && to >= 0 &&
                        execution_can_change((enum execution)from, (enum execution)to));
    }
    if (json_object_get(file, "times"))
        times(json_object_get(file, "times"));
}

/* ---- rescale.json: the steps are sentences ---- */

static uint64_t attempt_of(const struct job_bench *bench, long index)
{
    const struct job_task *task = job_task_find(&bench->job, (struct task_ref){0, (uint16_t)index});
    return task ? task->attempt.v : 0;
}

static const char *number_after(const char *text, long *number)
{
    while (*text && (*text < '0' || *text > '9'))
        text++;
    char *end;
    *number = strtol(text, &end, 10);
    return end;
}

static void scale(struct job_bench *bench, long instances, const int32_t *min_failed)
{
    bench_step(bench, (struct job_event){.kind = JOB_EVENT_SCALE,
                                         .scale = {.role = 0,
                                                   .instances = (uint32_t)instances,
                                                   .min_failed = min_failed}});
}

/* "delete pod(s) (of task(s)) 2 (and 3)"; "patch (taskNumber=)2(,minFailedTaskCount=2)"; "wait …";
 * what stands between is for people. A deletion asked for by a patch lasts until the sentence ends
 * (`was_there` is how things stood just before). */
static void rescale_do(struct job_bench *bench, const char *text)
{
    while (*text) {
        if (strncmp(text, "delete pod", 10) == 0) {
            long index;
            do {
                text = number_after(text, &index);
                bench_exit(bench, (struct task_ref){0, (uint16_t)index},
                           completion_of(CODE_CONTAINER_DELETED, "%s", ""));
            } while (strncmp(text, " and ", 5) == 0);
        } else if (strncmp(text, "patch ", 6) == 0 || strncmp(text, "then ", 5) == 0) {
            const bool is_patch = text[0] == 'p';
            const char *rest = text + (is_patch ? 6 : 5);
            const bool is_number =
                strncmp(rest, "taskNumber=", 11) == 0 || (*rest >= '0' && *rest <= '9');
            text = rest;
            if (!is_number)
                continue;
            long instances, minimum;
            text = number_after(text, &instances);
            int32_t min_failed;
            const bool has_minimum = strncmp(text, ",minFailedTaskCount=", 20) == 0;
            if (has_minimum)
                text = number_after(text, &minimum);
            min_failed = has_minimum ? (int32_t)minimum : 0;
            scale(bench, instances, has_minimum ? &min_failed : NULL);
        } else if (strncmp(text, "wait running", 12) == 0) {
            bench_run_waiting(bench);
            text += 12;
        } else {
            text++;
        }
    }
}

struct moment { /* of tasks 0 … 9 */
    bool is_there[10], waits[10], runs[10], is_completed[10], is_surplus[10];
    uint64_t attempt[10];
    int32_t code[10];
};

static void moment_take(const struct job_bench *bench, struct moment *moment)
{
    *moment = (struct moment){0};
    for (long i = 0; i < 10; i++) {
        const struct job_task *task = job_task_find(&bench->job, (struct task_ref){0, (uint16_t)i});
        if (!task)
            continue;
        moment->is_there[i] = true;
        moment->waits[i] = task->state == LIFE_CREATION_PENDING;
        moment->runs[i] = task->state == LIFE_RUNNING;
        moment->is_completed[i] = task->state == LIFE_COMPLETED;
        moment->is_surplus[i] = task->is_deletion_pending;
        moment->attempt[i] = attempt_of(bench, i);
        moment->code[i] = task->completion ? task->completion->code : 0;
    }
}

/* One clause about some tasks: `before` the step, at `once` after it, at the `end` of it. */
static bool clause_holds(const char *clause, long task, const struct moment *before,
                         const struct moment *once, const struct moment *end)
{
    const char *code = strstr(clause, "code ");
    if (strstr(clause, "Completed"))
        return once->is_completed[task] && (!code || once->code[task] == atoi(code + 5));
    if (strstr(clause, "removed at once"))
        return before->is_there[task] && !once->is_there[task];
    if (strstr(clause, "finally removed"))
        return once->is_surplus[task] && !end->is_there[task];
    if (strstr(clause, "replaced at once"))
        return once->waits[task] && end->runs[task] && end->attempt[task] != before->attempt[task];
    if (strstr(clause, "replaced when"))
        return once->is_surplus[task] && end->runs[task] && !end->is_surplus[task] &&
               end->attempt[task] != before->attempt[task];
    if (strstr(clause, "added at once"))
        return !before->is_there[task] && once->waits[task] && end->runs[task];
    if (strstr(clause, "run"))
        return end->runs[task] && end->attempt[task] > before->attempt[task];
    return false;
}

static bool clause_check(char *clause, const struct job_bench *bench, const struct moment *before,
                         const struct moment *once, const struct moment *end)
{
    const char *state = strstr(clause, "framework ");
    if (state) {
        state += 10;
        state += strncmp(state, "still ", 6) == 0 ? 6 : 0;
        return strncmp(state, life_state_name(bench->job.state),
                       strlen(life_state_name(bench->job.state))) == 0;
    }
    const char *tasks = strstr(clause, "task");
    tasks = strstr(clause, "instances ") ? strstr(clause, "instances ") : tasks;
    if (!tasks)
        return true; /* "their instance ids differ from before" is looked at with the tasks */
    bool holds = true;
    long task;
    do {
        tasks = number_after(tasks, &task);
        if (task > 9)
            return false;
        holds &= clause_holds(clause, task, before, once, end);
    } while (*tasks == ',' && tasks[1] >= '0' && tasks[1] <= '9');
    return holds;
}

static bool rescale_expect(const char *expect, const struct job_bench *bench,
                           const struct moment *before, const struct moment *once,
                           const struct moment *end)
{
    char *text = arena_copy(&vector_arena, text_of(expect));
    bool holds = true;
    for (char *clause = text; clause;) {
        char *next = strpbrk(clause, ";,");
        /* "tasks 2,3" is one clause */
        while (next && *next == ',' && next[1] >= '0' && next[1] <= '9')
            next = strpbrk(next + 1, ";,");
        if (next)
            *next++ = '\0';
        holds &= clause_check(clause, bench, before, once, end);
        clause = next;
    }
    return holds;
}

static void rescale_steps(const json_t *scenario)
{
    const json_t *role = json_object_get(scenario, "role");
    const json_t *retry = json_object_get(scenario, "taskRetry");
    struct job_bench bench;
    bench_init(&bench);
    bench_role(&bench, string_at(role, "name"), (uint32_t)int_at(role, "taskNumber", 1),
               (int32_t)int_at(role, "minFailedTaskCount", -1),
               (int32_t)int_at(role, "minSucceededTaskCount", -1));
    bench.roles[0].task_retry = (struct retry_policy){
        (int32_t)int_at(retry, "maxRetryCount", 0),
        json_is_true(json_object_get(retry, "fancyRetryPolicy")),
    };
    bench_begin(&bench);
    bench_run_waiting(&bench);
    size_t i;
    json_t *step;
    struct moment gone = {0}; /* the last attempts of tasks that are no longer there */
    json_array_foreach (json_object_get(scenario, "steps"), i, step) {
        struct moment before, once, end;
        moment_take(&bench, &before);
        for (int t = 0; t < 10; t++)
            before.attempt[t] = before.is_there[t] ? before.attempt[t] : gone.attempt[t];
        for (int t = 0; t < 10; t++)
            gone.attempt[t] = before.attempt[t];
        rescale_do(&bench, string_at(step, "do"));
        moment_take(&bench, &once);
        bench_end_kills(&bench);
        bench_run_waiting(&bench);
        moment_take(&bench, &end);
        const bool holds = rescale_expect(string_at(step, "expect"), &bench, &before, &once, &end);
        report_bool(arena_format(&vector_arena, "%s/%zu", string_at(scenario, "id"), i + 1), true,
                    holds);
    }
    bench_release(&bench);
}

static void rescale_ignored(const char *id, const char *given, const char *expect)
{
    bool has_effect = false;
    for (int state = LIFE_DELETION_PENDING; state <= LIFE_COMPLETED; state++) {
        /* "AttemptDeletionPending/DeletionRequested/…" */
        const char *name = life_state_name((enum life_state)state);
        if (!strstr(given, name) && !strstr(given, name + strlen("Attempt")))
            has_effect = true; /* a state that the file does not name */
    }
    struct job_bench bench;
    bench_init(&bench);
    bench_role(&bench, "a", 3, 1, -1);
    bench.policy.retry = (struct retry_policy){.is_fancy = true};
    bench_begin(&bench);
    bench_run_waiting(&bench);
    bench_exit(&bench, (struct task_ref){0, 0}, make(201, EXIT_TRANSIENT | EXIT_CONFLICT));
    for (int round = 0; round < 4; round++) { /* ending, ended, in its delay, stopped */
        const uint64_t hash = job_hash(&bench.job);
        scale(&bench, 5, NULL);
        scale(&bench, 1, NULL);
        has_effect |= bench.out.count > 0 || job_hash(&bench.job) != hash;
        if (round == 0)
            bench_end_kills(&bench);
        if (round == 1)
            bench_simple(&bench, JOB_EVENT_STOP);
    }
    has_effect |= !job_is_final(&bench.job);
    report_bool(id, strstr(expect, "no effect") == NULL, has_effect);
    bench_release(&bench);
}

static void rescale_shrink(const char *id, const json_t *given, const char *expect)
{
    struct job_bench bench;
    bench_init(&bench);
    bench_role(&bench, "a", (uint32_t)int_at(given, "taskNumber", 1),
               (int32_t)int_at(given, "minFailed", -1), (int32_t)int_at(given, "minSucceeded", -1));
    bench_begin(&bench);
    bench_run_waiting(&bench);
    size_t i;
    json_t *index;
    json_array_foreach (json_object_get(given, "completed"), i, index)
        bench_exit(&bench, (struct task_ref){0, (uint16_t)json_integer_value(index)},
                   completion_of(0, "%s", ""));
    const bool was_running = bench.job.state == LIFE_RUNNING;
    scale(&bench, int_at(given, "to", 0), NULL);
    bench_end_kills(&bench);
    const struct completion *completion = bench.job.completion;
    char got[80] = "still running";
    if (completion)
        snprintf(got, sizeof got, "attempt %s code %d",
                 completion->is_success ? "Succeeded" : "Failed", completion->code);
    if (was_running && strstr(expect, got))
        report_bool(id, true, true);
    else
        report_fail(id, expect, got);
    bench_release(&bench);
}

void rescale(const json_t *file)
{
    size_t i;
    json_t *scenario;
    json_array_foreach (json_object_get(file, "scenarios"), i, scenario) {
        const char *id = id_of(scenario, "scenarios", i);
        const json_t *given = json_object_get(scenario, "given");
        if (json_object_get(scenario, "steps"))
            rescale_steps(scenario);
        else if (json_is_string(given))
            rescale_ignored(id, json_string_value(given), string_at(scenario, "expect"));
        else if (json_is_object(given))
            rescale_shrink(id, given, string_at(scenario, "expect"));
        else
            report_skip(id, "neither steps nor given");
    }
}
