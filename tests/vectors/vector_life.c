/* Retry, completion, states: the job's life. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "vector_job.h"

static const char POLICY_SHAPE[] = "maxRetryCount:i fancyRetryPolicy:b";

static struct retry_policy policy_read(const json_t *policy)
{
    return (struct retry_policy){
        .max = (int32_t)int_at(policy, "maxRetryCount", 0),
        .is_fancy = json_is_true(json_object_get(policy, "fancyRetryPolicy")),
    };
}

/* ---- retry-decision.json ---- */

void retry_decision(const json_t *file)
{
    size_t i;
    json_t *vector;
    json_array_foreach (json_object_get(file, "vectors"), i, vector) {
        const char *id = id_of(vector, "vectors", i);
        if (!case_fits(id, vector, "policy:o completion:o accountableRetriedCount:i expect:o") ||
            !case_fits(id, json_object_get(vector, "policy"), POLICY_SHAPE) ||
            !case_fits(id, json_object_get(vector, "completion"), "code:i attributes:a outcome:s"))
            continue;
        const struct completion completion = completion_read(json_object_get(vector, "completion"));
        const struct retry_decision decision =
            retry_decide(policy_read(json_object_get(vector, "policy")),
                         (uint32_t)int_at(vector, "accountableRetriedCount", 0), &completion);
        json_t *got = json_pack("{s:b, s:n, s:n}", "retry", decision.is_retried,
                                "countsAsAccountable", "delay");
        if (decision.is_retried) {
            json_object_set_new(got, "countsAsAccountable", json_boolean(decision.is_counted));
            json_object_set_new(got, "delay",
                                decision.is_backoff ? json_string("conflictBackoff")
                                                    : json_integer(0));
        }
        report_partial(id, json_incref(json_object_get(vector, "expect")), got);
    }
}

/* ---- attempt-sequence.json ---- */

static const char *outcome_of(const struct completion *completion)
{
    return completion->is_success ? "Succeeded" : "Failed";
}

struct sequence {
    json_t *ids;
    unsigned backoffs;
    bool is_completed;
};

static void sequence_run(struct job_bench *bench, const json_t *attempts, bool is_task,
                         struct sequence *sequence)
{
    const struct task_ref task = {0, 0};
    size_t i;
    json_t *attempt;
    json_array_foreach (attempts, i, attempt) {
        if (job_is_final(&bench->job))
            break;
        bench_run_waiting(bench);
        json_array_append_new(sequence->ids,
                              json_integer(is_task ? job_task_find(&bench->job, task)->task_attempt
                                                   : bench->job.attempt));
        bench_exit(bench, task, completion_read(attempt));
        if (bench->job.retry_at_ms > 0) { /* the retry counts when its delay is over */
            sequence->backoffs++;
            bench->now_ms = bench->job.retry_at_ms;
            bench_simple(bench, JOB_EVENT_TIMER);
        }
    }
    sequence->is_completed = job_is_final(&bench->job);
}

static json_t *sequence_json(const struct job_bench *bench, bool is_task,
                             const struct sequence *sequence)
{
    const struct job *job = &bench->job;
    const struct job_task *task = job_task_find(job, (struct task_ref){0, 0});
    const struct completion *completion = is_task && task ? task->completion : job->completion;
    const uint32_t counted = is_task && task ? task->retries_counted : job->retries_user;
    const uint32_t total = is_task && task
                               ? task->retries
                               : job->retries_user + job->retries_platform + job->retries_resource;
    json_t *got =
        json_pack("{s:b, s:i, s:i, s:O, s:i, s:n, s:n, s:n}", "completed", sequence->is_completed,
                  "totalRetriedCount", (int)total, "accountableRetriedCount", (int)counted,
                  "attemptIds", sequence->ids, "backoffRetries", (int)sequence->backoffs,
                  "finalCode", "finalOutcome", "nextAttemptId");
    if (!sequence->is_completed)
        json_object_set_new(got, "nextAttemptId",
                            json_integer(is_task && task ? task->task_attempt : job->attempt));
    if (sequence->is_completed && completion) {
        json_object_set_new(got, "finalCode", json_integer(completion->code));
        json_object_set_new(got, "finalOutcome", json_string(outcome_of(completion)));
    }
    return got;
}

void attempt_sequence(const json_t *file)
{
    size_t i;
    json_t *vector;
    json_array_foreach (json_object_get(file, "vectors"), i, vector) {
        const char *id = id_of(vector, "vectors", i);
        if (!case_fits(id, vector, "level:s policy:o attempts:a expect:o") ||
            !case_fits(id, json_object_get(vector, "policy"), POLICY_SHAPE) ||
            !cases_fit(id, json_object_get(vector, "attempts"), "code:i outcome:s? attributes:a?"))
            continue;
        const bool is_task = strcmp(string_at(vector, "level"), "task") == 0;
        if (!is_task && strcmp(string_at(vector, "level"), "framework") != 0) {
            report_skip(id, "neither a task nor a framework");
            continue;
        }
        const struct retry_policy policy = policy_read(json_object_get(vector, "policy"));
        struct job_bench bench;
        bench_init(&bench);
        bench_role(&bench, "a", 1, 1, -1);
        bench.policy.is_gang = !is_task;
        if (is_task)
            bench.roles[0].task_retry = policy;
        else
            bench.policy.retry = policy;
        bench_begin(&bench);
        struct sequence sequence = {.ids = json_array()};
        sequence_run(&bench, json_object_get(vector, "attempts"), is_task, &sequence);
        report_partial(id, json_incref(json_object_get(vector, "expect")),
                       sequence_json(&bench, is_task, &sequence));
        json_decref(sequence.ids);
        bench_release(&bench);
    }
}

/* ---- completion-policy.json ---- */

static json_t *decision_json(const struct job_bench *bench)
{
    const struct job *job = &bench->job;
    if (!job->completion)
        return json_null();
    json_t *got =
        json_pack("{s:s, s:i, s:b, s:n}", "outcome", outcome_of(job->completion), "code",
                  job->completion->code, "inheritedFromTask", job->is_inherited, "trigger");
    if (job->trigger_role >= 0)
        json_object_set_new(got, "trigger",
                            json_pack("{s:s, s:i}", "taskRole",
                                      bench->roles[job->trigger_role].name, "taskIndex",
                                      job->trigger_index));
    return got;
}

static struct task_ref ref_read(const struct job_bench *bench, const json_t *task)
{
    const int role = bench_role_of(bench, string_at(task, "taskRole"));
    assert(role >= 0);
    return (struct task_ref){(uint16_t)role, (uint16_t)int_at(task, "taskIndex", 0)};
}

/* Are these completions of tasks that the roles have? */
static bool tasks_fit(const char *id, const struct job_bench *bench, const json_t *tasks)
{
    if (!cases_fit(id, tasks, "taskRole:s taskIndex:i code:i"))
        return false;
    size_t i;
    json_t *task;
    json_array_foreach (tasks, i, task) {
        const int role = bench_role_of(bench, string_at(task, "taskRole"));
        const int64_t index = int_at(task, "taskIndex", 0);
        if (role < 0 || index < 0 || index >= bench->roles[role].instances) {
            report_skip(id, "it has no such task");
            return false;
        }
    }
    return true;
}

static void completion_vector(const json_t *vector, size_t index)
{
    const char *id = id_of(vector, "vectors", index);
    struct job_bench bench;
    bench_init(&bench);
    if (!case_fits(id, vector, "taskRoles:a finalTaskCompletions:a expectAfterEach:a") ||
        !bench_roles(&bench, id, json_object_get(vector, "taskRoles")) ||
        !tasks_fit(id, &bench, json_object_get(vector, "finalTaskCompletions")))
        return;
    bench_begin(&bench);
    bench_run_waiting(&bench);
    const json_t *expected = json_object_get(vector, "expectAfterEach");
    json_t *got = json_array();
    size_t i;
    json_t *task;
    json_array_foreach (json_object_get(vector, "finalTaskCompletions"), i, task) {
        bench_exit(&bench, ref_read(&bench, task), completion_read(task));
        json_array_append_new(got, decision_json(&bench));
    }
    report(id, json_incref((json_t *)(uintptr_t)expected), got);
    bench_release(&bench);
}

/* What a restart finds: the tasks have ended, nothing has been decided yet. */
static void restore_ended(struct job_bench *bench, const json_t *given)
{
    struct buf saved = BUF_INIT;
    job_save(&bench->job, &saved);
    struct job restored;
    if (job_restore(&restored, &bench->policy, buf_as_text(&saved), NULL) != 0)
        abort();
    for (uint16_t r = 0; r < bench->job.role_count; r++)
        for (uint16_t i = 0; i < bench->job.roles[r].count; i++) {
            struct job_task task = bench->job.roles[r].items[i];
            struct completion completion;
            size_t k;
            json_t *ended;
            json_array_foreach (given, k, ended) {
                const struct task_ref ref = ref_read(bench, ended);
                if (ref.role != r || ref.index != i)
                    continue;
                completion = completion_read(ended);
                task.state = LIFE_COMPLETED;
                task.completed_ms = bench->now_ms + int_at(ended, "completionTime", 0);
                task.completion = &completion;
            }
            if (job_restore_task(&restored, (struct task_ref){r, i}, &task, NULL) != 0)
                abort();
        }
    bench->out.count = 0;
    if (job_restore_finish(&restored, &bench->policy, bench->now_ms, &bench->out, NULL) != 0)
        abort();
    buf_release(&saved);
    job_release(&bench->job);
    bench->job = restored;
    bench_simple(bench, JOB_EVENT_JUDGE);
}

/* The numbers in a sentence, in order. */
static size_t numbers_in(const char *text, long *numbers, size_t room)
{
    size_t count = 0;
    while (*text && count < room) {
        char *end;
        const long value = strtol(text, &end, 10);
        if (end != text && (*text == '-' || (*text >= '0' && *text <= '9'))) {
            numbers[count++] = value;
            text = end;
        } else {
            text++;
        }
    }
    return count;
}

static void special_words(const char *id, struct job_bench *bench, const json_t *vector)
{
    /* "tasks A and B failed earlier … taskNumber went from C to D" */
    long n[4];
    const char *given = string_at(vector, "given");
    if (!strstr(given, "DeletionPending") || numbers_in(given, n, 4) != 4 || n[3] < 1 ||
        n[0] < n[3] || n[1] < n[3] || n[2] <= n[0] || n[2] <= n[1] || n[2] > JOB_INSTANCES_MAX) {
        report_skip(id, "the words of `given` are not understood");
        return;
    }
    const int32_t min_failed = bench->roles[0].min_failed;
    bench->roles[0].instances = (uint32_t)n[2];
    bench->roles[0].min_failed = (int32_t)n[2];
    bench_begin(bench);
    bench_run_waiting(bench);
    for (int k = 0; k < 2; k++)
        bench_exit(bench, (struct task_ref){0, (uint16_t)n[k]}, completion_of(1, "%s", ""));
    bench_step(bench,
               (struct job_event){
                   .kind = JOB_EVENT_SCALE,
                   .scale = {.role = 0, .instances = (uint32_t)n[3], .min_failed = &min_failed}});
    const bool runs = bench->job.state == LIFE_RUNNING;
    report(id, json_incref(json_object_get(vector, "expect")),
           json_string(runs ? "attempt keeps running" : life_state_name(bench->job.state)));
}

static void special_stop(const char *id, struct job_bench *bench, const json_t *vector)
{
    bench_begin(bench);
    bench_run_waiting(bench);
    bench_simple(bench, JOB_EVENT_STOP);
    json_t *got = decision_json(bench);
    bench_end_kills(bench);
    const struct job_task *task = job_task_find(&bench->job, (struct task_ref){0, 0});
    if (task && task->completion)
        json_object_set_new(got, "runningTasksCode", json_integer(task->completion->code));
    json_object_set_new(got, "frameworkRetried",
                        json_boolean(bench->job.attempt > 0 || !job_is_final(&bench->job)));
    report_partial(id, json_incref(json_object_get(vector, "expect")), got);
}

static bool is_said(const char *text, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        if (!strstr(text, words[i]))
            return false;
    return true;
}

/* A job without tasks: it waits for nothing, and only a person moves it on. */
static void special_pause(const char *id, struct job_bench *bench, const json_t *vector)
{
    static const char *const words[] = {"never completes", "paused",  "AttemptPreparing",
                                        "scaled up",       "stopped", NULL};
    bench_begin(bench);
    bench_simple(bench, JOB_EVENT_JUDGE);
    bool is_paused = bench->job.state == LIFE_PREPARING &&
                     job_wake_ms(&bench->job, &bench->policy) == 0 &&
                     job_waiting_count(&bench->job, &bench->policy) == 0;
    bench_step(bench,
               (struct job_event){.kind = JOB_EVENT_SCALE, .scale = {.role = 0, .instances = 1}});
    is_paused &= job_waiting_count(&bench->job, &bench->policy) == 1;
    bench_simple(bench, JOB_EVENT_STOP);
    bench_end_kills(bench);
    is_paused &= job_is_final(&bench->job);
    const char *expect = string_at(vector, "expect");
    if (is_said(expect, words) && is_paused)
        report_bool(id, true, true);
    else
        report_fail(id, expect, is_paused ? "it is paused" : "it is not paused");
}

static void special(const char *id, struct job_bench *bench, const json_t *vector)
{
    const json_t *given = json_object_get(vector, "given");
    const char *action = json_string_value(json_object_get(vector, "action"));
    if (json_is_string(given)) {
        special_words(id, bench, vector);
    } else if (json_is_array(given)) {
        if (!tasks_fit(id, bench, given))
            return;
        bench_begin(bench);
        bench_run_waiting(bench);
        restore_ended(bench, given);
        report_partial(id, json_incref(json_object_get(vector, "expect")), decision_json(bench));
    } else if (action && strstr(action, "Stop")) {
        special_stop(id, bench, vector);
    } else if (!action && bench->policy.role_count == 1 && bench->roles[0].instances == 0) {
        special_pause(id, bench, vector);
    } else {
        report_skip(id, "neither `given` nor an action known here");
    }
}

void completion_policy(const json_t *file)
{
    size_t i;
    json_t *vector;
    json_array_foreach (json_object_get(file, "vectors"), i, vector)
        completion_vector(vector, i);
    json_array_foreach (json_object_get(file, "special"), i, vector) {
        const char *id = id_of(vector, "special", i);
        struct job_bench bench;
        bench_init(&bench);
        if (case_fits(id, vector, "taskRoles:a expect:x") &&
            bench_roles(&bench, id, json_object_get(vector, "taskRoles")))
            special(id, &bench, vector);
        bench_release(&bench);
    }
}
