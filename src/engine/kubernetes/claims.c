/* claims.c — the life of an attempt's ResourceClaim: docs/rfc/0017-kubernetes-engine.md, "GPUs as
 * claims". It begins when the pod is there, as that is its owner. */
#include "base/arena.h"
#include "base/err.h"
#include "doc/doc.h"
#include "engine/kubernetes/claim.h"
#include "engine/kubernetes/devices.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/pod_object.h"
#include "engine/kubernetes/state.h"
#include <assert.h>
#include <string.h>

enum {
    STATUS_OK = 200,
    STATUS_NOT_FOUND = 404,
    STATUS_CONFLICT = 409,
};

static const struct doc *json_read(struct text text, struct arena *arena)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, arena);
    return doc_parse(text, DOC_JSON, arena, &problems);
}

/* False: its line is none (somebody has written over it), and it is given up. */
static bool claim_of_task(struct kube *kube, struct kube_task *task, struct device_pick *pick,
                          struct claim_of *of, struct tells *tells)
{
    if (!device_pick_read(task->devices, &tells->arena, pick)) {
        kube_task_give_up(
            kube, task, "CreationError",
            "the annotation " OBJECT_NOTE_DEVICES " of its pod is not as Skep wrote it", tells);
        return false;
    }
    *of = (struct claim_of){task->attempt, task->node, task->uid, pick};
    return true;
}

static void claim_created(void *context, uint64_t key, const struct kube_answer *answer);
static void claim_got(void *context, uint64_t key, const struct kube_answer *answer);
static void claim_put(void *context, uint64_t key, const struct kube_answer *answer);

/* --- what is asked --- */

/* Before the secrets of others: its kubelet waits for it, and looks again only seconds later. */
static void create_send(struct kube *kube, struct kube_task *task, struct tells *tells)
{
    struct device_pick pick;
    struct claim_of of;
    struct kube_call call = {.method = "POST",
                             .context = kube,
                             .key = task->attempt.v,
                             .is_next = true,
                             .done = claim_created};
    task->claim.is_asked = false;
    if (!claim_of_task(kube, task, &pick, &of, tells))
        return;
    task->claim.is_asked = true;
    ask_path(kube, ASK_CLAIMS, NULL, &call.path);
    claim_write(&of, &kube->settings, &call.body);
    kube_client_send(kube->client, &call, 0);
}

static void get_send(struct kube *kube, const struct kube_task *task)
{
    struct kube_call call = {.method = "GET",
                             .context = kube,
                             .key = task->attempt.v,
                             .is_next = true,
                             .done = claim_got};
    ask_path(kube, ASK_CLAIMS, task, &call.path);
    kube_client_send(kube->client, &call, 0);
}

static void put_send(struct kube *kube, struct kube_task *task, const struct doc *claim,
                     struct tells *tells)
{
    struct device_pick pick;
    struct claim_of of;
    struct kube_call call = {.method = "PUT",
                             .context = kube,
                             .key = task->attempt.v,
                             .is_next = true,
                             .done = claim_put};
    if (!claim_of_task(kube, task, &pick, &of, tells)) {
        task->claim.is_asked = false;
        return;
    }
    ask_path(kube, ASK_CLAIMS, task, &call.path);
    buf_string(&call.path, "/status");
    claim_status_write(&of, &kube->settings, claim, &call.body);
    kube_client_send(kube->client, &call, 0);
}

/* --- what is answered --- */

static void refused(struct kube *kube, struct kube_task *task, const struct kube_answer *answer,
                    struct tells *tells)
{
    const char *message = ask_refusal(answer, &tells->arena);
    const char *reason =
        refusal_read(answer->status, answer->body, answer->is_right_missing, &tells->arena);
    task->claim.is_asked = false;
    kube_task_give_up(kube, task, reason ? reason : "CreationError",
                      arena_format(&tells->arena, "its resource claim: %.400s", message), tells);
}

static void seen(struct kube *kube, struct kube_task *task, const struct doc *claim,
                 struct tells *tells)
{
    switch (claim_read(claim, kube->settings.instance, task->attempt, task->uid)) {
    case CLAIM_BARE:
        task->claim.is_ours = true;
        put_send(kube, task, claim, tells);
        return;
    case CLAIM_READY:
        task->claim.is_ours = true;
        task->claim.is_asked = false;
        task->claim.is_ready = true;
        return;
    case CLAIM_FOREIGN:
        task->claim.is_asked = task->claim.is_ours = false; /* ours may have been deleted */
        kube_task_give_up(kube, task, "CreationError",
                          "a resource claim of its name is there, and is not for its pod", tells);
        return;
    }
}

/* Its task, while that still wants the claim; NULL: it does not, and what is ours goes with it. */
static struct kube_task *wanted(struct kube *kube, uint64_t key)
{
    struct kube_task *task = kube_task_find(kube, (struct attempt_id){key});
    if (!task || (task->state == TASK_WAITS && !task->is_kill_wanted))
        return task;
    task->claim.is_asked = false;
    return NULL;
}

static void claim_created(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct tells tells;
    kube_enter(kube, &tells);
    struct kube_task *known = kube_task_find(kube, (struct attempt_id){key});
    struct kube_task *task = wanted(kube, key);
    if (ask_is_made(answer) && (!known || known->state == TASK_FORGOTTEN))
        ask_delete_stray(kube, key, ASK_CLAIMS, "");
    else if (ask_is_made(answer) && !task)
        known->claim.is_ours = true; /* it goes with `forget` */
    else if (!task)
        ; /* whatever was answered, nobody wants it */
    else if (ask_is_made(answer))
        seen(kube, task, json_read(answer->body, &tells.arena), &tells);
    else if (answer->status == STATUS_CONFLICT)
        get_send(kube, task);
    else
        refused(kube, task, answer, &tells);
    kube_leave(kube, &tells);
}

static void claim_got(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct tells tells;
    kube_enter(kube, &tells);
    struct kube_task *task = wanted(kube, key);
    if (task && answer->status == STATUS_OK)
        seen(kube, task, json_read(answer->body, &tells.arena), &tells);
    else if (task && answer->status == STATUS_NOT_FOUND)
        create_send(kube, task, &tells);
    else if (task)
        refused(kube, task, answer, &tells);
    kube_leave(kube, &tells);
}

static void claim_put(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct tells tells;
    kube_enter(kube, &tells);
    struct kube_task *task = wanted(kube, key);
    if (task && answer->status == STATUS_OK) {
        task->claim.is_asked = false;
        task->claim.is_ready = true;
    } else if (task && (answer->status == STATUS_CONFLICT || answer->status == STATUS_NOT_FOUND)) {
        get_send(kube, task); /* somebody has changed or deleted it in between */
    } else if (task) {
        refused(kube, task, answer, &tells);
    }
    kube_leave(kube, &tells);
}

/* --- doors --- */

void task_claim_ask(struct kube *kube, struct kube_task *task, struct tells *tells)
{
    if (!task->devices || task->claim.is_asked || task->claim.is_ready || !task->uid[0] ||
        task->is_kill_wanted)
        return;
    create_send(kube, task, tells);
}

static void look_again(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct tells tells;
    (void)answer;
    kube_enter(kube, &tells);
    struct kube_task *task = kube_task_find(kube, (struct attempt_id){key});
    if (task)
        task->claim.is_watched = false;
    if (task && task->state == TASK_WAITS && task->waits_for &&
        strcmp(task->waits_for, POD_UNPREPARED) == 0) {
        task->claim.is_ready = false;
        task_claim_ask(kube, task, &tells);
        task_claim_watch(kube, task);
    }
    kube_leave(kube, &tells);
}

void task_claim_watch(struct kube *kube, struct kube_task *task)
{
    if (!task->devices || task->claim.is_watched)
        return;
    const struct kube_call call = {.context = kube, .key = task->attempt.v, .done = look_again};
    task->claim.is_watched = true;
    kube_client_send(kube->client, &call, KUBE_CLAIM_AGAIN_MS);
}
