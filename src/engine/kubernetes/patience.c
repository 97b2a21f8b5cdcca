/* patience.c — how long a pod may wait for its container: docs/rfc/0017-kubernetes-engine.md, "Life
 * of a pod". */
#include "base/memory.h"
#include "engine/kubernetes/pod_object.h"
#include "engine/kubernetes/state.h"
#include "sys/clock.h"
#include <string.h>

/* What a pod waits for, as far as its patience is concerned: another one has its own time. */
enum wait_kind { WAIT_OTHER, WAIT_UNPREPARED, WAIT_INIT };

static enum wait_kind kind_of(const char *reason)
{
    if (reason && strcmp(reason, POD_UNPREPARED) == 0)
        return WAIT_UNPREPARED;
    return reason && strcmp(reason, POD_INIT_FAILED) == 0 ? WAIT_INIT : WAIT_OTHER;
}

/* Rules of exits search them, so nothing of them may be a name that a user has chosen: kubelet's
 * own words are told before, as a note. */
static const char *patience_words(const struct kube_task *task, struct arena *arena)
{
    const unsigned minutes = task->patience_ms / 60000;
    switch (kind_of(task->waits_for)) {
    case WAIT_UNPREPARED:
        return arena_format(arena,
                            "its volumes were not mounted, its devices were not prepared, or its "
                            "sandbox was not made, within %u minutes: the events of the pod say "
                            "which (kubectl describe pod)",
                            minutes);
    case WAIT_INIT:
        return arena_format(arena,
                            "the container that brings skep-init (initImage of the configuration) "
                            "could not be started within %u minutes: can the node fetch its image?",
                            minutes);
    case WAIT_OTHER:
        break;
    }
    return arena_format(arena, "it could not be started within %u minutes", minutes);
}

static void patience_begin(struct kube *kube, struct kube_task *task, uint32_t wait_ms);

/* Its patience is over, if it still waits for the same. */
static void patience_over(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct tells tells;
    (void)answer;
    kube_enter(kube, &tells);
    struct kube_task *task = kube_task_find(kube, (struct attempt_id){key});
    if (task)
        task->is_timed = false;
    if (task && task->state == TASK_WAITS && task->is_wait_short) {
        const int64_t left_ms = task->short_ms + task->patience_ms - clock_monotonic_ms();
        if (left_ms > 0) /* another reason came meanwhile */
            patience_begin(kube, task, (uint32_t)left_ms);
        else
            kube_task_give_up(kube, task, task->waits_for, patience_words(task, &tells.arena),
                              &tells);
    }
    kube_leave(kube, &tells);
}

static void patience_begin(struct kube *kube, struct kube_task *task, uint32_t wait_ms)
{
    const struct kube_call call = {.context = kube, .key = task->attempt.v, .done = patience_over};
    task->is_timed = true;
    kube_client_send(kube->client, &call, wait_ms);
}

void task_waits(struct kube *kube, struct kube_task *task, const struct pod_object *pod,
                struct tells *tells)
{
    task->state = TASK_WAITS;
    if (pod->patience == POD_GIVE_UP) {
        kube_task_give_up(kube, task, pod->reason, pod->message, tells);
        return;
    }
    const enum wait_kind kind = kind_of(pod->reason);
    const bool is_short = pod->patience == POD_WAIT_SHORTLY;
    if (is_short && (!task->is_wait_short || kind_of(task->waits_for) != kind))
        task->short_ms = clock_monotonic_ms();
    task->is_wait_short = is_short;
    task->patience_ms = pod->patience_ms;
    if (is_short && !task->is_timed)
        patience_begin(kube, task, POD_PATIENCE_MS);
    task_claim_ask(kube, task, tells);
    if (kind == WAIT_UNPREPARED)
        task_claim_watch(kube, task);
    if (!pod->reason[0] || (task->waits_for && strcmp(task->waits_for, pod->reason) == 0))
        return;
    mem_free(task->waits_for);
    task->waits_for = mem_copy(pod->reason);
    if (kube->is_listed && pod->message[0])
        tells_add(tells, &(struct engine_event){.kind = ENGINE_NOTE,
                                                .attempt = task->attempt,
                                                .reason = pod->reason,
                                                .message = pod->message});
}
