/* secrets.c — the end of an attempt's secret: docs/rfc/0017-kubernetes-engine.md, "What is left of
 * an attempt". */
#include "engine/kubernetes/secret_note.h"
#include "engine/kubernetes/state.h"
#include "sys/log.h"

enum { STATUS_OK = 200, STATUS_ACCEPTED = 202, STATUS_NOT_FOUND = 404 };

static void noted_add(void *context, struct attempt_id attempt)
{
    struct kube *kube = context;
    id_map_set(&kube->noted, attempt.v, 0);
}

void secrets_noted_read(struct kube *kube)
{
    secret_note_each(kube->secret_notes, noted_add, kube);
}

static bool was_there(const struct kube_answer *answer)
{
    return answer->status == STATUS_OK || answer->status == STATUS_ACCEPTED;
}

/* Whatever had been asked for before has been carried out by now, or never will be. */
static void late_done(void *context, uint64_t key, const struct kube_answer *answer)
{
    const struct kube *kube = context;
    ask_deleted(context, key, answer);
    if (was_there(answer) || answer->status == STATUS_NOT_FOUND)
        secret_note_drop(kube->secret_notes, (struct attempt_id){key});
}

void secret_delete_late(struct kube *kube, struct attempt_id attempt, uint32_t delay_ms)
{
    const struct kube_task task = {.attempt = attempt};
    struct kube_call call = {.method = "DELETE",
                             .context = kube,
                             .key = attempt.v,
                             .is_lasting = true,
                             .done = late_done};
    ask_path(kube, "secrets", &task, &call.path);
    kube_client_send(kube->client, &call, delay_ms);
}

static void forgotten_done(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    const struct attempt_id attempt = {key};
    pthread_mutex_lock(&kube->lock);
    struct kube_task *task = kube_task_find(kube, attempt);
    const bool has_gone = was_there(answer) && !(task && task->is_secret_unsure);
    if (!has_gone)
        secret_delete_late(kube, attempt, kube->late_ms);
    if (task)
        kube_task_left(kube, task);
    pthread_mutex_unlock(&kube->lock);
    if (has_gone)
        secret_note_drop(kube->secret_notes, attempt);
}

void secret_delete(struct kube *kube, const struct kube_task *task)
{
    ask_delete(kube, task, "secrets", 0, forgotten_done);
}
