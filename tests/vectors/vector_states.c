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
    const char *id = id_of(vector, "traces", index);
    struct trace trace = {.is_task = strcmp(string_at(vector, "object"), "task") == 0};
    size_t i;
    json_t *name;
    if (!case_fits(id, vector, "object:s states:a"))
        return;
    if ((!trace.is_task && strcmp(string_at(vector, "object"), "framework") != 0) ||
        json_array_size(json_object_get(vector, "states")) == 0) {
        report_skip(id, "no trace of a task or a framework");
        return;
    }
    json_array_foreach (json_object_get(vector, "states"), i, name) {
        const int state = json_is_string(name) ? state_named(json_string_value(name)) : -1;
        if (state < 0 || trace.count == TRACE_MAX) {
            report_fail(id, state < 0 ? "a state" : "fewer states",
                        json_is_string(name) ? json_string_value(name) : "nothing");
            return;
        }
        trace.states[trace.count++] = (enum life_state)state;
    }
    if (!trace_exists(&trace))
        report_fail(id, "the trace", "no run that gives it");
    else
        report_bool(id, true, true);
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
        const int from = state_named(from_name);
        json_t *got = json_object(), *wanted = json_object();
        size_t i;
        json_t *name;
        json_array_foreach (list, i, name)
            if (json_is_string(name))
                json_object_set_new(wanted, json_string_value(name), json_true());
        for (int to = LIFE_CREATION_PENDING; from >= 0 && to <= LIFE_COMPLETED; to++)
            if (life_can_follow((enum life_state)from, (enum life_state)to))
                json_object_set_new(got, life_state_name((enum life_state)to), json_true());
        report(arena_format(&vector_arena, "transitions/%s", from_name), wanted, got);
    }
    size_t i;
    json_t *pair;
    json_array_foreach (json_object_get(file, "illegalExamples"), i, pair) {
        const char *names[2] = {json_string_value(json_array_get(pair, 0)),
                                json_string_value(json_array_get(pair, 1))};
        if (!names[0] || !names[1]) {
            report_skip(id_of(pair, "illegalExamples", i), "no pair of states");
            continue;
        }
        const int from = state_named(names[0]), to = state_named(names[1]);
        report_bool(id_of(pair, "illegalExamples", i), false,
                    from < 0 || to < 0 ||
                        life_can_follow((enum life_state)from, (enum life_state)to));
    }
    if (json_object_get(file, "completing"))
        report("completing", json_incref(json_object_get(file, "completing")),
               states_where(life_is_completing));
    if (json_object_get(file, "instanceAssociated"))
        report("instanceAssociated", json_incref(json_object_get(file, "instanceAssociated")),
               states_where(has_instance));
    struct job_bench bench;
    bench_init(&bench);
    bench_role(&bench, "a", 1, 1, -1);
    bench_begin(&bench);
    if (json_object_get(file, "startState"))
        report("startState", json_incref(json_object_get(file, "startState")),
               json_string(life_state_name(bench.job.state)));
    bench_simple(&bench, JOB_EVENT_STOP);
    if (json_object_get(file, "finalState"))
        report("finalState", json_incref(json_object_get(file, "finalState")),
               json_string(life_state_name(bench.job.state)));
    if (json_object_get(file, "attemptFinalState"))
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
        if (!case_fits(id_of(vector, "executionTypeChanges", i), vector, "from:s to:s allowed:b"))
            continue;
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
static bool rescale_delete(struct job_bench *bench, const char **text)
{
    long index;
    do {
        if (!strpbrk(*text, "0123456789"))
            return false;
        *text = number_after(*text, &index);
        const struct task_ref task = {0, (uint16_t)index};
        if (index > 9 || !job_task_find(&bench->job, task))
            return false;
        bench_exit(bench, task, completion_of(CODE_CONTAINER_DELETED, "%s", ""));
    } while (strncmp(*text, " and ", 5) == 0);
    return true;
}

static bool rescale_patch(struct job_bench *bench, const char **text)
{
    long instances, minimum = 0;
    *text = number_after(*text, &instances);
    const bool has_minimum = strncmp(*text, ",minFailedTaskCount=", 20) == 0;
    if (has_minimum)
        *text = number_after(*text, &minimum);
    if (instances > JOB_INSTANCES_MAX)
        return false;
    const int32_t min_failed = (int32_t)minimum;
    scale(bench, instances, has_minimum ? &min_failed : NULL);
    return true;
}

static bool rescale_do(struct job_bench *bench, const char *text)
{
    bool is_understood = false;
    while (*text) {
        const size_t word = strncmp(text, "patch ", 6) == 0  ? 6
                            : strncmp(text, "then ", 5) == 0 ? 5
                                                             : 0;
        const char *rest = text + word;
        if (strncmp(text, "delete pod", 10) == 0) {
            is_understood = rescale_delete(bench, &text);
        } else if (word > 0 &&
                   (strncmp(rest, "taskNumber=", 11) == 0 || (*rest >= '0' && *rest <= '9'))) {
            is_understood = rescale_patch(bench, &text);
        } else if (strncmp(text, "wait running", 12) == 0) {
            bench_run_waiting(bench);
            text += 12;
            continue;
        } else {
            text += word > 0 ? word : 1;
            continue;
        }
        if (!is_understood)
            return false;
    }
    return is_understood;
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

enum verdict { NOT_UNDERSTOOD, HOLDS, DOES_NOT_HOLD };

struct step { /* how things stood before it, at once after it, at its end */
    struct moment before, once, end;
    long tasks[10]; /* that the last clause was about */
    size_t task_count;
};

static enum verdict verdict_of(bool holds)
{
    return holds ? HOLDS : DOES_NOT_HOLD;
}

/* One clause about one task. */
static enum verdict clause_holds(const char *clause, long task, const struct step *step)
{
    const struct moment *before = &step->before, *once = &step->once, *end = &step->end;
    const char *code = strstr(clause, "code ");
    const bool is_new = end->runs[task] && end->attempt[task] != before->attempt[task];
    if (strstr(clause, "Completed"))
        return verdict_of(once->is_completed[task] &&
                          (!code || once->code[task] == atoi(code + 5)));
    if (strstr(clause, "removed at once"))
        return verdict_of(before->is_there[task] && !once->is_there[task]);
    if (strstr(clause, "finally removed"))
        return verdict_of(once->is_surplus[task] && !end->is_there[task]);
    if (strstr(clause, "replaced at once"))
        return verdict_of(once->waits[task] && is_new);
    if (strstr(clause, "replaced when"))
        return verdict_of(once->is_surplus[task] && is_new && !end->is_surplus[task]);
    if (strstr(clause, "added at once"))
        return verdict_of(!before->is_there[task] && once->waits[task] && end->runs[task]);
    if (strstr(clause, "ids differ"))
        return verdict_of(is_new);
    if (strstr(clause, " run"))
        return verdict_of(end->runs[task] && end->attempt[task] > before->attempt[task]);
    return NOT_UNDERSTOOD;
}

/* "task 2 …", "tasks 2,3 …", "new task instances 2,3 …": the numbers. */
static bool tasks_read(const char *clause, struct step *step)
{
    const char *at = strstr(clause, "instances ");
    at = at ? at : strstr(clause, "task");
    step->task_count = 0;
    do {
        long task;
        if (!strpbrk(at, "0123456789"))
            return false;
        at = number_after(at, &task);
        if (task > 9 || step->task_count == COUNT_OF(step->tasks))
            return false;
        step->tasks[step->task_count++] = task;
    } while (*at == ',' && at[1] >= '0' && at[1] <= '9');
    return true;
}

static enum verdict clause_check(const char *clause, const struct job_bench *bench,
                                 struct step *step)
{
    const char *state = strstr(clause, "framework ");
    if (state) {
        state += 10;
        state += strncmp(state, "still ", 6) == 0 ? 6 : 0;
        const char *name = life_state_name(bench->job.state);
        return verdict_of(strncmp(state, name, strlen(name)) == 0);
    }
    const bool is_back = strstr(clause, "their ") != NULL; /* the tasks of the clause before */
    if (!is_back && (!strstr(clause, "task") || !tasks_read(clause, step)))
        return NOT_UNDERSTOOD;
    enum verdict all = step->task_count > 0 ? HOLDS : NOT_UNDERSTOOD;
    for (size_t i = 0; i < step->task_count; i++) {
        const enum verdict one = clause_holds(clause, step->tasks[i], step);
        all = one == HOLDS ? all : one;
    }
    return all;
}

static void rescale_expect(const char *id, const char *expect, const struct job_bench *bench,
                           struct step *step)
{
    char *text = arena_copy(&vector_arena, text_of(expect));
    for (char *clause = text; clause;) {
        char *next = strpbrk(clause, ";,");
        /* "tasks 2,3" is one clause */
        while (next && *next == ',' && next[1] >= '0' && next[1] <= '9')
            next = strpbrk(next + 1, ";,");
        if (next)
            *next++ = '\0';
        const enum verdict verdict = clause_check(clause, bench, step);
        if (verdict != HOLDS) {
            report_fail(id, clause,
                        verdict == NOT_UNDERSTOOD ? "words that are not understood" : "not so");
            return;
        }
        clause = next;
    }
    report_bool(id, true, true);
}

static void rescale_steps(const json_t *scenario, size_t scenario_index)
{
    const char *name = id_of(scenario, "scenarios", scenario_index);
    const json_t *retry = json_object_get(scenario, "taskRetry");
    struct job_bench bench;
    bench_init(&bench);
    if (!case_fits(name, scenario, "role:o steps:a taskRetry:o?") ||
        !cases_fit(name, json_object_get(scenario, "steps"), "do:s expect:s"))
        return;
    json_t *roles = json_pack("[O]", json_object_get(scenario, "role"));
    const bool is_known = bench_roles(&bench, name, roles);
    json_decref(roles);
    if (!is_known)
        return;
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
        struct step seen = {0};
        moment_take(&bench, &seen.before);
        for (int t = 0; t < 10; t++)
            if (!seen.before.is_there[t])
                seen.before.attempt[t] = gone.attempt[t];
        gone = seen.before;
        const char *id = arena_format(&vector_arena, "%s/%zu", name, i + 1);
        if (!rescale_do(&bench, string_at(step, "do"))) {
            report_skip(id, "the words of `do` are not understood");
            break;
        }
        moment_take(&bench, &seen.once);
        bench_end_kills(&bench);
        bench_run_waiting(&bench);
        moment_take(&bench, &seen.end);
        rescale_expect(id, string_at(step, "expect"), &bench, &seen);
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
    if (!strstr(expect, "effect"))
        report_fail(id, expect, "words that are not understood");
    else
        report_bool(id, strstr(expect, "no effect") == NULL, has_effect);
    bench_release(&bench);
}

static void rescale_shrink(const char *id, const json_t *given, const char *expect)
{
    struct job_bench bench;
    bench_init(&bench);
    const int64_t count = int_at(given, "taskNumber", 1), to = int_at(given, "to", -1);
    if (!case_fits(id, given, "taskNumber:i minFailed:i? minSucceeded:i? completed:a to:i"))
        return;
    if (count < 1 || count > JOB_INSTANCES_MAX || to < 0 || to > JOB_INSTANCES_MAX) {
        report_skip(id, "a role has 1 to 10000 tasks");
        return;
    }
    bench_role(&bench, "a", (uint32_t)count, (int32_t)int_at(given, "minFailed", -1),
               (int32_t)int_at(given, "minSucceeded", -1));
    bench_begin(&bench);
    bench_run_waiting(&bench);
    size_t i;
    json_t *index;
    json_array_foreach (json_object_get(given, "completed"), i, index)
        if (json_is_integer(index) && json_integer_value(index) >= 0 &&
            json_integer_value(index) < count)
            bench_exit(&bench, (struct task_ref){0, (uint16_t)json_integer_value(index)},
                       completion_of(0, "%s", ""));
    const bool was_running = bench.job.state == LIFE_RUNNING;
    scale(&bench, (long)to, NULL);
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
            rescale_steps(scenario, i);
        else if (json_is_string(given))
            rescale_ignored(id, json_string_value(given), string_at(scenario, "expect"));
        else if (json_is_object(given))
            rescale_shrink(id, given, string_at(scenario, "expect"));
        else
            report_skip(id, "neither steps nor given");
    }
}
