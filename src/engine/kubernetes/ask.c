/* ask.c — what the parts of the engine ask of the API server alike: where objects are, and how they
 * are deleted. */
#include "base/json_writer.h"
#include "doc/doc.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/state.h"
#include "sys/log.h"
#include <stdio.h>
#include <string.h>

enum {
    STATUS_OK = 200,
    STATUS_CREATED = 201,
    STATUS_ACCEPTED = 202,
    STATUS_NOT_FOUND = 404,
    STATUS_CONFLICT = 409,
};

void ask_path(const struct kube *kube, const char *kind, const struct kube_task *task,
              struct buf *path)
{
    const bool is_claim = strcmp(kind, ASK_CLAIMS) == 0;
    buf_format(path, "%s/namespaces/%s/%s", is_claim ? "/apis/resource.k8s.io/v1" : "/api/v1",
               kube->settings.space, kind);
    if (task) {
        char name[OBJECT_NAME_SIZE];
        object_name(name, kube->settings.instance, task->attempt);
        buf_format(path, "/%s", name);
    }
}

void ask_delete(struct kube *kube, const struct kube_task *task, const char *kind, uint32_t grace_s,
                void (*done)(void *, uint64_t, const struct kube_answer *))
{
    struct kube_call call = {.method = "DELETE",
                             .context = kube,
                             .key = task->attempt.v,
                             .is_lasting = done == ask_deleted,
                             .done = done};
    const bool is_pod = strcmp(kind, "pods") == 0;
    struct json_writer json;
    ask_path(kube, kind, task, &call.path);
    json_init(&json, &call.body);
    json_object(&json);
    json_key_string(&json, "apiVersion", "v1");
    json_key_string(&json, "kind", "DeleteOptions");
    if (is_pod) {
        json_key_int(&json, "gracePeriodSeconds", grace_s);
        json_key(&json, "preconditions");
        json_object(&json);
        json_key_string(&json, "uid", task->uid);
        json_object_end(&json);
    }
    json_object_end(&json);
    kube_client_send(kube->client, &call, 0);
}

/* What a Status says; the text of an answer that is none. */
const char *ask_refusal(const struct kube_answer *answer, struct arena *arena)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, arena);
    const struct doc *doc = doc_parse(answer->body, DOC_JSON, arena, &problems);
    const char *message = object_string(doc, "message");
    return message[0] ? message : arena_format(arena, "the API server answers %d", answer->status);
}

void ask_deleted(void *context, uint64_t key, const struct kube_answer *answer)
{
    (void)context;
    /* that it has gone is told by the watch, with its last state */
    if (answer->status != STATUS_OK && answer->status != STATUS_ACCEPTED &&
        answer->status != STATUS_NOT_FOUND && answer->status != STATUS_CONFLICT)
        log_error("engine", "kubernetes: an object of attempt %llu cannot be deleted: %d",
                  (unsigned long long)key, answer->status);
}

bool ask_is_made(const struct kube_answer *answer)
{
    return answer->status == STATUS_OK || answer->status == STATUS_CREATED ||
           answer->status == STATUS_ACCEPTED;
}

/* It was made after its attempt had been given up: nobody else takes it away. */
void ask_delete_stray(struct kube *kube, uint64_t attempt, const char *kind, const char *uid)
{
    struct kube_task stray = {.attempt = {attempt}};
    snprintf(stray.uid, sizeof stray.uid, "%s", uid);
    log_info("engine", "kubernetes: attempt %llu was given up while it was made: %s are deleted",
             (unsigned long long)attempt, kind);
    ask_delete(kube, &stray, kind, POD_GRACE_S, ask_deleted);
}
