/* reason.c — a task hears why it is ended before its pod is deleted, which is its SIGTERM:
 * docs/rfc/0017-kubernetes-engine.md, "Why a task is ended".
 *
 * skep-init is started once more in the pod, to write the file (init/reason.c). Nobody waits for
 * that longer than a part of the task's grace: the end of a task does not depend on it.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/state.h"
#include "init/layout.h"
#include "sys/log.h"

static void reasons_start(struct kube *kube);

/* Its pod may be deleted now, unless it has been. */
static void reason_over(struct kube *kube, struct attempt_id attempt)
{
    struct kube_task *task = kube_task_find(kube, attempt);
    if (!task || task->reason_state == REASON_NONE || task->reason_state == REASON_OVER)
        return;
    task->reason_state = REASON_OVER;
    if (task->state < TASK_ENDED)
        kube_task_end(kube, task);
}

/* So long is it waited for: who gives a task long to end lets it have long to hear of that. */
static uint32_t limit_ms(uint32_t grace_ms)
{
    const uint32_t part_ms = grace_ms / KUBE_REASON_PART;
    if (part_ms < KUBE_REASON_MS)
        return KUBE_REASON_MS;
    return part_ms < KUBE_REASON_MAX_MS ? part_ms : KUBE_REASON_MAX_MS;
}

/* --- the program --- */

static void trouble_log(struct attempt_id attempt, const char *why)
{
    log_info("engine", "kubernetes: attempt %llu is not told why it is ended: %.160s",
             (unsigned long long)attempt.v, why);
}

/* Until it has ended; the engine's end cuts it short. */
static bool is_over(const struct kube_reason *turn, const struct engine_exec *exec)
{
    struct pollfd waits[] = {{.fd = exec->end, .events = POLLIN},
                             {.fd = turn->kube->logs.fetch_end, .events = POLLIN}};
    int got;
    do
        got = poll(waits, 2, (int)limit_ms(turn->grace_ms));
    while (got < 0 && errno == EINTR);
    return got > 0 && waits[0].revents;
}

static void reason_do(const struct kube_reason *turn)
{
    char grace[24], error[160] = "";
    struct err err = {0};
    struct engine_exec *exec = NULL;
    struct engine_exec_end end = {0};
    const char *const words[] = {LAYOUT_INIT, LAYOUT_REASON, "/skep", turn->word, grace, NULL};
    const char *const nothing[] = {NULL};
    const struct engine_exec_request request = {.argv = nothing};
    snprintf(grace, sizeof grace, "%u", turn->grace_ms);
    if (kube_exec_words(turn->kube, turn->attempt, words, &request, &exec, &err) < 0) {
        trouble_log(turn->attempt, err.text);
        return;
    }
    if (!is_over(turn, exec)) {
        trouble_log(turn->attempt, "its pod does not answer");
    } else if (exec->ops->ended(exec, &end) && end.code != 0) {
        if (recv(exec->error, error, sizeof error - 1, MSG_DONTWAIT) < 0)
            error[0] = '\0';
        error[strcspn(error, "\n")] = '\0';
        trouble_log(turn->attempt, error[0]      ? error
                                   : end.is_lost ? "the connection to its pod was lost"
                                                 : "skep-init could not be started in its pod");
    }
    exec->ops->free(exec);
}

/* --- turns --- */

/* On the client's thread. */
static void turn_over(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    (void)answer;
    pthread_mutex_lock(&kube->lock);
    for (size_t i = 0; i < KUBE_REASONS_MAX && !kube->logs.is_ending; i++) {
        struct kube_reason *turn = &kube->reasons[i];
        if (turn->attempt.v != key)
            continue;
        pthread_join(turn->thread, NULL); /* it has told all that it does */
        turn->attempt.v = 0;
    }
    reason_over(kube, (struct attempt_id){key});
    reasons_start(kube);
    pthread_mutex_unlock(&kube->lock);
}

static void *turn_run(void *context)
{
    const struct kube_reason *turn = context;
    reason_do(turn);
    const struct kube_call call = {
        .context = turn->kube, .key = turn->attempt.v, .done = turn_over};
    kube_client_send(turn->kube->client, &call, 0);
    return NULL;
}

static bool turn_take(struct kube *kube, const struct kube_task *task)
{
    for (size_t i = 0; i < KUBE_REASONS_MAX && !kube->logs.is_ending; i++) {
        struct kube_reason *turn = &kube->reasons[i];
        if (turn->attempt.v != 0)
            continue;
        *turn = (struct kube_reason){
            .kube = kube, .attempt = task->attempt, .grace_ms = task->grace_ms};
        snprintf(turn->word, sizeof turn->word, "%s", task->reason);
        if (pthread_create(&turn->thread, NULL, turn_run, turn) == 0)
            return true;
        turn->attempt.v = 0;
        return false;
    }
    return false;
}

/* Those that wait, while there are turns. */
static void reasons_start(struct kube *kube)
{
    bool has_turn = kube->has_reasons;
    for (size_t i = 0; i < kube->tasks.count && has_turn; i++) {
        struct kube_task *task = kube->tasks.items[i];
        if (task->reason_state != REASON_WAITS)
            continue;
        has_turn = turn_take(kube, task);
        if (has_turn)
            task->reason_state = REASON_TOLD;
    }
    kube->has_reasons = kube->has_reasons && !has_turn;
}

static void reason_late(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    (void)answer;
    pthread_mutex_lock(&kube->lock);
    reason_over(kube, (struct attempt_id){key});
    pthread_mutex_unlock(&kube->lock);
}

/* --- doors --- */

bool task_reason_tell(struct kube *kube, struct kube_task *task, const char *reason)
{
    if (task->reason_state != REASON_NONE || task->state != TASK_RUNS || !reason[0])
        return task->reason_state == REASON_WAITS || task->reason_state == REASON_TOLD;
    const struct kube_call call = {.context = kube, .key = task->attempt.v, .done = reason_late};
    mem_free(task->reason);
    task->reason = mem_copy(reason);
    task->reason_state = REASON_WAITS;
    kube->has_reasons = true;
    reasons_start(kube);
    kube_client_send(kube->client, &call, limit_ms(task->grace_ms));
    return true;
}

void kube_reasons_end(struct kube *kube)
{
    for (size_t i = 0; i < KUBE_REASONS_MAX; i++)
        if (kube->reasons[i].attempt.v != 0)
            pthread_join(kube->reasons[i].thread, NULL);
}
