/* tasks.c — the life of an attempt as a pod: docs/rfc/0017-kubernetes-engine.md, "A pod as a task".
 */
#include "base/err.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "engine/kubernetes/attempt_files.h"
#include "engine/kubernetes/given_up.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/object_read.h"
#include "engine/kubernetes/pod_object.h"
#include "engine/kubernetes/secret_note.h"
#include "engine/kubernetes/state.h"
#include "sys/clock.h"
#include "sys/log.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    STATUS_OK = 200,
    STATUS_CREATED = 201,
    STATUS_NOT_FOUND = 404,
    STATUS_CONFLICT = 409,
    CODE_KILLED = 137,
    SIGNAL_KILL = 9,
    GIVE_UP_GRACE_MS = 1000,
};

/* --- the table --- */

struct kube_task *kube_task_find(struct kube *kube, struct attempt_id attempt)
{
    uint32_t at = id_map_get(&kube->attempts, attempt.v);
    return at == MAP_NONE ? NULL : kube->tasks.items[at];
}

/* Tasks are made while thousands of orders and calls wait, which stand around them and are freed
 * before them: so they stand apart, each with the name of its node. */
static struct pool *pool_of(struct kube *kube, size_t name_size)
{
    static const size_t NAME_SIZES[TASK_POOLS] = {16, 32, 64, NODE_NAME_MAX + 1};
    size_t i = 0;
    while (NAME_SIZES[i] < name_size)
        i++;
    assert(i < TASK_POOLS);
    kube->tasks.pools[i].size = sizeof(struct kube_task) + NAME_SIZES[i];
    return &kube->tasks.pools[i];
}

struct kube_task *kube_task_add(struct kube *kube, struct attempt_id attempt, const char *node)
{
    assert(!kube_task_find(kube, attempt));
    const size_t length = strnlen(node, NODE_NAME_MAX); /* no node has a longer one */
    struct kube_task *task = pool_take(pool_of(kube, length + 1));
    task->attempt = attempt;
    task->node = memcpy(task + 1, node, length);
    id_map_set(&kube->attempts, attempt.v, (uint32_t)kube->tasks.count);
    *ARRAY_ADD(&kube->tasks) = task;
    return task;
}

/* What its pod is made of is not needed any more. */
static void order_drop(struct kube *kube, struct kube_task *task)
{
    pod_order_free(task->order, &kube->shares);
    task->order = NULL;
}

static void end_free(struct kube_end *end)
{
    if (!end)
        return;
    mem_free(end->reason);
    mem_free(end->text);
    mem_free(end);
}

static void task_free(struct kube *kube, struct kube_task *task)
{
    order_drop(kube, task);
    task_addresses_drop(task);
    mem_free(task->devices);
    mem_free(task->waits_for);
    mem_free(task->gives_up);
    mem_free(task->gives_why);
    mem_free(task->address);
    mem_free(task->reason);
    end_free(task->end);
    log_store_task_free(task->log.store);
    pod_gpus_free(task->gpus);
    pool_give(pool_of(kube, strlen(task->node) + 1), task);
}

static void task_drop(struct kube *kube, struct kube_task *task)
{
    const uint32_t at = id_map_get(&kube->attempts, task->attempt.v);
    struct kube_task *last = kube->tasks.items[kube->tasks.count - 1];
    kube->tasks.items[at] = last;
    id_map_set(&kube->attempts, last->attempt.v, at);
    id_map_remove(&kube->attempts, task->attempt.v);
    kube->tasks.count--;
    task_free(kube, task);
}

void tasks_free(struct kube *kube)
{
    for (size_t i = 0; i < kube->tasks.count; i++)
        task_free(kube, kube->tasks.items[i]);
    ARRAY_FREE(&kube->tasks);
    for (size_t i = 0; i < TASK_POOLS; i++)
        pool_release(&kube->tasks.pools[i]);
    pod_shares_release(&kube->shares);
    id_map_release(&kube->attempts);
}

/* --- what is told --- */

/* Its strings are the end's. */
static struct exit_report exit_of(const struct kube_end *end)
{
    struct exit_report exit = end->exit;
    exit.name = "";
    exit.reason = end->reason;
    exit.message = end->text;
    return exit;
}

/* What its log has of it is read by kube_leave. */
static void end_tell(const struct kube_task *task, struct tells *tells)
{
    const struct kube_end *end = task->end;
    const struct exit_report exit = exit_of(end);
    tells_add(tells, &(struct engine_event){
                         .kind = end->is_refused ? ENGINE_REFUSED : ENGINE_EXITED,
                         .attempt = task->attempt,
                         .exit = end->is_refused ? NULL : &exit,
                         .reason = end->reason,
                         .message = end->text,
                     });
}

static void started_tell(const struct kube_task *task, struct tells *tells)
{
    tells_add(tells, &(struct engine_event){.kind = ENGINE_STARTED,
                                            .attempt = task->attempt,
                                            .runs_on = task->node[0] ? task->node : NULL,
                                            .address = task->address});
}

void kube_task_tell(const struct kube_task *task, struct tells *tells)
{
    const bool is_live = task->state < TASK_ENDED || (task->state == TASK_ENDED &&
                                                      (task->log.is_held || task->is_word_awaited));
    if (task->state == TASK_ENDED && !is_live)
        end_tell(task, tells);
    else if (is_live && task->is_started_told)
        started_tell(task, tells);
    else if (is_live && task->is_preparing_told)
        tells_add(tells,
                  &(struct engine_event){.kind = ENGINE_PREPARING, .attempt = task->attempt});
}

static void started(struct kube *kube, struct kube_task *task, const struct pod_object *pod,
                    struct tells *tells)
{
    task->state = TASK_RUNS;
    mem_free(task->waits_for);
    task->waits_for = NULL;
    task->claim.is_ours = task->devices != NULL; /* its kubelet has seen that */
    task_log_want(kube, task);
    if (task->is_started_told)
        return;
    task->is_started_told = true;
    if (pod->asks_devices)
        nodes_took(kube, task->node);
    if (kube->is_listed)
        started_tell(task, tells);
}

static void preparing(struct kube *kube, struct kube_task *task, struct tells *tells)
{
    if (task->is_preparing_told)
        return;
    task->is_preparing_told = true;
    if (kube->is_listed)
        tells_add(tells,
                  &(struct engine_event){.kind = ENGINE_PREPARING, .attempt = task->attempt});
}

static struct kube_end *end_new(bool is_refused, const struct exit_report *exit)
{
    struct kube_end *end = mem_zero(1, sizeof *end);
    end->is_refused = is_refused;
    end->exit = *exit;
    end->exit.log_tail = end->exit.platform_tail = TEXT("");
    end->reason = mem_copy(exit->reason ? exit->reason : "");
    end->text = mem_copy(exit->message ? exit->message : "");
    return end;
}

static void ended(struct kube *kube, struct kube_task *task, bool is_refused,
                  const struct exit_report *exit, struct tells *tells)
{
    assert(task->state < TASK_ENDED);
    struct kube_end *refusal = task->end; /* may be this very end */
    task->state = TASK_ENDED;
    pthread_cond_broadcast(&kube->synced);
    task->end = end_new(is_refused, exit);
    end_free(refusal);
    order_drop(kube, task);
    if (!task_log_hold(kube, task) && !task->is_word_awaited && kube->is_listed)
        end_tell(task, tells);
}

static struct exit_report exit_early(const char *reason, const char *message)
{
    return (struct exit_report){
        .exit_code = CODE_KILLED, .signal = SIGNAL_KILL, .reason = reason, .message = message};
}

/* It ended before there was a pod. */
static void ended_early(struct kube *kube, struct kube_task *task, const char *reason,
                        const char *message, struct tells *tells)
{
    const struct exit_report exit = exit_early(reason, message);
    ended(kube, task, false, &exit, tells);
}

/* It was given up for what the operator of the cluster must mend, which is no failure of the job.
 */
static bool is_operators(const struct kube_task *task)
{
    return refusal_is_operators(task->gives_up) && !task->is_started_told;
}

static void given_up_refused(struct kube *kube, struct kube_task *task, struct tells *tells)
{
    const struct exit_report exit = {.reason = task->gives_up, .message = task->gives_why};
    ended(kube, task, true, &exit, tells);
}

/* --- what is asked --- */

/* How a write that was refused for good ends its task. True: it is the operator's to mend, not the
 * job's failure. */
static bool refusal_exit(const struct kube_answer *answer, struct arena *arena,
                         struct exit_report *exit)
{
    const char *message = ask_refusal(answer, arena);
    const char *reason =
        refusal_read(answer->status, answer->body, answer->is_right_missing, arena);
    *exit = reason ? (struct exit_report){.reason = reason, .message = message}
                   : exit_early("CreationError", message);
    return reason != NULL;
}

static void write_refused(struct kube *kube, struct kube_task *task,
                          const struct kube_answer *answer, struct tells *tells)
{
    struct exit_report exit;
    const bool is_refused = refusal_exit(answer, &tells->arena, &exit);
    ended(kube, task, is_refused, &exit, tells);
}

void kube_task_end(struct kube *kube, const struct kube_task *task)
{
    /* with 0 the object goes at once, and its containers may run on devices that are free then */
    const uint32_t grace_s = (task->grace_ms + 999) / 1000;
    ask_delete(kube, task, "pods", grace_s > 0 ? grace_s : 1, ask_deleted);
}

static bool is_label_ours(const struct kube *kube, const struct kube_task *task,
                          const struct doc *object)
{
    return object_attempt(object, kube->settings.instance).v == task->attempt.v;
}

/* An API server whose gate is off drops the field without a word: nothing runs so. */
static void users_check(struct kube *kube, struct kube_task *task, const struct doc *object,
                        struct tells *tells)
{
    if (kube->settings.network.users == KUBE_USERS_REQUIRED && task->state == TASK_WAITS &&
        doc_get_bool(doc_get(object, "spec"), "hostUsers", true))
        kube_task_give_up(kube, task, KUBE_USERS,
                          "the API server made its pod without hostUsers: false, which "
                          "userNamespaces: required asks for",
                          tells);
}

/* The pod is there, and it is ours. `is_head`: no more of it can be read. */
static void pod_taken(struct kube *kube, struct kube_task *task, const struct doc *object,
                      bool is_head, struct tells *tells)
{
    if (task->state != TASK_POD_ASKED) /* the watch was faster */
        return;
    snprintf(task->uid, sizeof task->uid, "%s", object_string(object, "metadata.uid"));
    task->state = TASK_WAITS;
    task->mark = kube->follows[FOLLOW_PODS].mark;
    order_drop(kube, task);
    preparing(kube, task, tells);
    if (task->is_kill_wanted)
        kube_task_end(kube, task);
    if (!is_head)
        users_check(kube, task, object, tells);
    task_claim_ask(kube, task, tells);
}

/* It may have run, and nothing of it is left: to make it again could be to start it twice. */
static void ended_unknown(struct kube *kube, struct kube_task *task, struct tells *tells)
{
    const struct exit_report exit = {
        .exit_code = CODE_KILLED,
        .signal = SIGNAL_KILL,
        .is_missing = true,
        .reason = "ContainerMissing",
        .message = "it was asked for before, and nothing of it is left",
    };
    if (task->is_kill_wanted)
        ended_early(kube, task, "", "it was ended before it had a pod", tells);
    else
        ended(kube, task, false, &exit, tells);
}

static void pod_got(void *context, uint64_t key, const struct kube_answer *answer);

static void pod_ask(struct kube *kube, struct kube_task *task)
{
    task->state = TASK_POD_ASKED;
    struct kube_call call = {
        .method = "GET", .context = kube, .key = task->attempt.v, .done = pod_got};
    ask_path(kube, "pods", task, &call.path);
    kube_client_send(kube->client, &call, 0);
}

/* An earlier try of this create may have made the pod: it ends so if there is none. */
static void refusal_doubt(struct kube *kube, struct kube_task *task,
                          const struct kube_answer *answer, struct tells *tells)
{
    struct exit_report exit;
    const bool is_refused = refusal_exit(answer, &tells->arena, &exit);
    assert(!task->end); /* a create is refused once */
    task->end = end_new(is_refused, &exit);
    pod_ask(kube, task);
}

/* There is no pod of its name. */
static void pod_missing(struct kube *kube, struct kube_task *task, struct tells *tells)
{
    if (!task->end) {
        ended_unknown(kube, task, tells);
        return;
    }
    const struct exit_report exit = exit_of(task->end);
    ended(kube, task, task->end->is_refused, &exit, tells);
}

/* The answer to a create, or to the question which pod has our name. */
static void pod_answered(struct kube *kube, struct kube_task *task, bool is_create,
                         const struct kube_answer *answer, struct tells *tells)
{
    const struct doc *object = NULL;
    const char *trouble;
    if (ask_is_made(answer))
        object = object_read(answer->body, &tells->arena, &trouble);
    if (object && is_label_ours(kube, task, object))
        pod_taken(kube, task, object, trouble != NULL, tells);
    else if (object)
        ended_early(kube, task, "CreationError", "a pod of its name is there, and is not Skep's",
                    tells);
    else if (is_create && answer->status == STATUS_CONFLICT)
        pod_ask(kube, task);
    else if (!is_create && answer->status == STATUS_NOT_FOUND)
        pod_missing(kube, task, tells);
    else if (is_create && answer->tries > 0)
        refusal_doubt(kube, task, answer, tells);
    else
        write_refused(kube, task, answer, tells);
}

static void pod_stray(struct kube *kube, uint64_t key, const struct kube_answer *answer,
                      struct tells *tells)
{
    const char *trouble;
    const struct doc *object = object_read(answer->body, &tells->arena, &trouble);
    const char *uid = object_string(object, "metadata.uid");
    if (uid[0] && object_attempt(object, kube->settings.instance).v == key)
        ask_delete_stray(kube, key, "pods", uid);
}

static void pod_done(struct kube *kube, uint64_t key, bool is_create,
                     const struct kube_answer *answer)
{
    struct tells tells;
    kube_enter(kube, &tells);
    struct kube_task *task = kube_task_find(kube, (struct attempt_id){key});
    if (task && task->state == TASK_POD_ASKED)
        pod_answered(kube, task, is_create, answer, &tells);
    else if ((!task || task->state == TASK_FORGOTTEN) && ask_is_made(answer))
        pod_stray(kube, key, answer, &tells);
    kube_leave(kube, &tells);
}

static void pod_created(void *context, uint64_t key, const struct kube_answer *answer)
{
    pod_done(context, key, true, answer);
}

static void pod_got(void *context, uint64_t key, const struct kube_answer *answer)
{
    pod_done(context, key, false, answer);
}

static bool pod_body(void *context, uint64_t key, struct buf *body)
{
    struct kube *kube = context;
    pthread_mutex_lock(&kube->lock);
    struct kube_task *task = kube_task_find(kube, (struct attempt_id){key});
    const bool is_asked = task && task->state == TASK_POD_ASKED && task->order;
    const bool is_wanted = is_asked && !task->is_kill_wanted;
    if (is_asked && !is_wanted) /* an earlier try may have made it */
        pod_ask(kube, task);
    struct pod_settings settings = kube->settings;
    settings.has_own_users = is_wanted && task->has_own_users;
    if (is_wanted)
        pod_write(&task->order->container, &settings, task->devices, body);
    pthread_mutex_unlock(&kube->lock);
    return is_wanted;
}

/* The server's own words, for those who wait for the task: a webhook may be away, for example. */
static void create_vain(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct tells tells;
    kube_enter(kube, &tells);
    const struct kube_task *task = kube_task_find(kube, (struct attempt_id){key});
    if (task && task->state <= TASK_POD_ASKED && !task->is_kill_wanted)
        tells_add(&tells, &(struct engine_event){.kind = ENGINE_NOTE,
                                                 .attempt = task->attempt,
                                                 .reason = "CreationFails",
                                                 .message = ask_refusal(answer, &tells.arena)});
    kube_leave(kube, &tells);
}

/* Before the secrets of others: what a pod is made of is kept until it is there. */
static void pod_send(struct kube *kube, struct kube_task *task)
{
    struct kube_call call = {.method = "POST",
                             .context = kube,
                             .key = task->attempt.v,
                             .write = pod_body,
                             .is_next = true,
                             .vain = create_vain,
                             .done = pod_created};
    ask_path(kube, "pods", NULL, &call.path);
    if (kube->settings.template_) /* a word that the cluster does not know is an error */
        buf_string(&call.path, "?fieldValidation=Strict");
    task->state = TASK_POD_ASKED;
    kube_client_send(kube->client, &call, 0);
}

static void secret_done(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct tells tells;
    kube_enter(kube, &tells);
    struct kube_task *task = kube_task_find(kube, (struct attempt_id){key});
    if (task)
        task->is_secret_unsure = answer->tries > 0;
    if ((!task || task->state == TASK_FORGOTTEN) && ask_is_made(answer))
        secret_delete_late(kube, (struct attempt_id){key}, 0); /* its node has gone */
    else if (!task || task->state != TASK_SECRET_ASKED)
        task = NULL;
    else if (answer->status == STATUS_CONFLICT && answer->tries == 0)
        pod_ask(kube, task); /* another skepd has begun it: its pod is there, or was */
    else if (task->is_kill_wanted)
        ended_early(kube, task, "", "it was ended before it had a pod", &tells);
    else if (answer->status == STATUS_CREATED || answer->status == STATUS_OK ||
             answer->status == STATUS_CONFLICT)
        pod_send(kube, task);
    else
        write_refused(kube, task, answer, &tells);
    kube_leave(kube, &tells);
}

static bool secret_body(void *context, uint64_t key, struct buf *body)
{
    struct kube *kube = context;
    pthread_mutex_lock(&kube->lock);
    struct kube_task *task = kube_task_find(kube, (struct attempt_id){key});
    const bool is_asked = task && task->state == TASK_SECRET_ASKED && task->order;
    const bool is_wanted = is_asked && !task->is_kill_wanted;
    if (is_wanted) {
        pod_secret_write(&task->order->container, &kube->settings, body);
        task->is_secret_unsure = true; /* until it is answered */
    } else if (is_asked) {             /* another skepd may have made a pod */
        pod_ask(kube, task);
    }
    pthread_mutex_unlock(&kube->lock);
    return is_wanted;
}

void kube_task_begin(struct kube *kube, struct kube_task *task, const struct container *container)
{
    struct kube_call call = {.method = "POST",
                             .context = kube,
                             .key = task->attempt.v,
                             .write = secret_body,
                             .vain = create_vain,
                             .done = secret_done};
    task->order = pod_order_new(container, &kube->shares);
    ask_path(kube, "secrets", NULL, &call.path);
    kube_client_send(kube->client, &call, 0);
}

void kube_task_kill(struct kube *kube, struct kube_task *task, uint32_t grace_ms,
                    const char *reason)
{
    const bool is_sooner = !task->is_kill_wanted || grace_ms < task->grace_ms;
    if (task->state >= TASK_ENDED || !is_sooner)
        return;
    task->is_kill_wanted = true;
    task->grace_ms = grace_ms;
    if (task->uid[0] && !(grace_ms > 0 && task_reason_tell(kube, task, reason)))
        kube_task_end(kube, task);
}

static void give_up_note(struct kube_task *task, const char *reason, const char *message,
                         struct tells *tells)
{
    mem_free(task->gives_up);
    mem_free(task->gives_why);
    task->gives_up = mem_copy(reason);
    task->gives_why = mem_copy(message);
    tells_give_up(tells, task->attempt, reason, message);
}

/* --- forgotten --- */

void kube_task_left(struct kube *kube, struct kube_task *task)
{
    if (task->state == TASK_FORGOTTEN && --task->deletes == 0)
        task_drop(kube, task);
}

static void forget_done(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    if (answer->status >= 400 && answer->status != STATUS_NOT_FOUND &&
        answer->status != STATUS_CONFLICT)
        log_warning("engine", "kubernetes: what is left of attempt %llu cannot be deleted: %d",
                    (unsigned long long)key, answer->status);
    pthread_mutex_lock(&kube->lock);
    struct kube_task *task = kube_task_find(kube, (struct attempt_id){key});
    if (task)
        kube_task_left(kube, task);
    pthread_mutex_unlock(&kube->lock);
}

void kube_task_forget(struct kube *kube, struct kube_task *task)
{
    /* without grace the object of a pod goes whether or not it runs */
    const uint32_t grace_s = task->state == TASK_ENDED && !task->is_lost ? 0 : POD_GRACE_S;
    task->state = TASK_FORGOTTEN;
    task_addresses_forget(kube, task->attempt);
    task_log_leave(kube, task);
    if (kube->given_up && !task->is_lost)
        given_up_drop(kube->given_up, task->attempt);
    /* devices of a pod that may still run are not free for others, either */
    const bool has_claim = task->claim.is_ours && !task->is_lost;
    const bool has_left = task->uid[0] && !task->is_gone;
    task->deletes = 1u + has_left + has_claim + task->is_lost;
    if (has_left)
        ask_delete(kube, task, "pods", grace_s, forget_done);
    if (has_claim)
        ask_delete(kube, task, ASK_CLAIMS, 0, forget_done);
    secret_delete(kube, task);
}

/* --- its node is lost --- */

/* Its pod may still run: its node is held until that has gone. */
static void lost_begin(struct kube *kube, struct kube_task *task)
{
    task->is_lost = true;
    nodes_hold(kube, task->node);
}

static void lost_end(struct kube *kube, struct kube_task *task, struct tells *tells)
{
    if (!task->is_lost)
        return;
    task->is_lost = false;
    nodes_release(kube, task->node, tells);
    if (kube->given_up && task->state == TASK_FORGOTTEN)
        given_up_drop(kube->given_up, task->attempt);
    if (task->state == TASK_FORGOTTEN && task->claim.is_ours)
        ask_delete(kube, task, ASK_CLAIMS, 0, ask_deleted);
    kube_task_left(kube, task);
}

static bool has_pod(const struct kube_task *task)
{
    return task->state == TASK_WAITS || task->state == TASK_RUNS;
}

static void lost(struct kube *kube, struct kube_task *task, struct tells *tells)
{
    const struct exit_report exit = {.exit_code = CODE_KILLED,
                                     .signal = SIGNAL_KILL,
                                     .is_user_command = task->is_started_told,
                                     .reason = KUBE_NODE_LOST,
                                     .message = task->gives_why};
    lost_begin(kube, task);
    ended(kube, task, false, &exit, tells);
}

static bool is_given_up_as_lost(const struct kube_task *task)
{
    return task->gives_up && strcmp(task->gives_up, KUBE_NODE_LOST) == 0;
}

void tasks_lose(struct kube *kube, const char *node, struct tells *tells)
{
    for (size_t i = 0; i < kube->tasks.count; i++) {
        struct kube_task *task = kube->tasks.items[i];
        if (!has_pod(task) || strcmp(task->node, node) != 0)
            continue;
        give_up_note(task, KUBE_NODE_LOST,
                     arena_format(&tells->arena, "node %s has said nothing for %u s", node,
                                  kube->node_lost_ms / 1000),
                     tells);
        kube_task_kill(kube, task, GIVE_UP_GRACE_MS, "");
        lost(kube, task, tells);
    }
}

void tasks_settle(struct kube *kube, const char *node, struct tells *tells)
{
    for (size_t i = 0; i < kube->tasks.count; i++) {
        struct kube_task *task = kube->tasks.items[i];
        const bool is_waiting =
            task->state == TASK_ENDED && (task->log.is_held || task->is_word_awaited);
        if (!is_waiting || strcmp(task->node, node) != 0)
            continue;
        task_log_leave(kube, task);
        task->is_word_awaited = false;
        if (kube->is_listed)
            end_tell(task, tells);
    }
}

void tasks_leave(struct kube *kube, const char *node, struct tells *tells)
{
    for (size_t i = 0; i < kube->tasks.count; i++) {
        struct kube_task *task = kube->tasks.items[i];
        /* what has ended is forgotten when its end is durable */
        if (task->state >= TASK_ENDED || strcmp(task->node, node) != 0)
            continue;
        if (has_pod(task)) {
            give_up_note(task, KUBE_NODE_LOST, "the cluster has its node no more", tells);
            lost_begin(kube, task);
        }
        kube_task_forget(kube, task);
    }
}

/* --- what is seen --- */

/* An earlier skepd gave it up. */
static bool given_up_take(const struct kube *kube, struct kube_task *task)
{
    cleanup_buf struct buf reason = BUF_INIT, message = BUF_INIT;
    if (!kube->given_up || !given_up_read(kube->given_up, task->attempt, &reason, &message))
        return false;
    task->gives_up = mem_copy(buf_cstr(&reason));
    task->gives_why = mem_copy(buf_cstr(&message));
    task->is_kill_wanted = true;
    task->grace_ms = GIVE_UP_GRACE_MS; /* it is asked for again: the first time may not have come */
    return true;
}

void kube_task_give_up(struct kube *kube, struct kube_task *task, const char *reason,
                       const char *message, struct tells *tells)
{
    if (task->gives_up || task->is_kill_wanted)
        return;
    give_up_note(task, reason, message, tells);
    kube_task_kill(kube, task, GIVE_UP_GRACE_MS, "");
}

/* --- whether its memory had run out --- */

static void word_end(struct kube *kube, struct kube_task *task, struct tells *tells)
{
    task->is_word_awaited = false;
    if (task->state == TASK_ENDED && !task->log.is_held && kube->is_listed)
        end_tell(task, tells);
}

static void word_over(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct tells tells;
    (void)answer;
    kube_enter(kube, &tells);
    struct kube_task *task = kube_task_find(kube, (struct attempt_id){key});
    if (task && task->is_word_awaited)
        word_end(kube, task, &tells);
    kube_leave(kube, &tells);
}

static void word_await(struct kube *kube, struct kube_task *task)
{
    const struct kube_call call = {.context = kube, .key = task->attempt.v, .done = word_over};
    task->is_word_awaited = true;
    kube_client_send(kube->client, &call, KUBE_WORD_MS);
}

static void word_came(struct kube *kube, struct kube_task *task, struct tells *tells)
{
    task->end->exit.is_oom_killed = true;
    mem_free(task->end->reason);
    task->end->reason = mem_copy("OOMKilled");
    word_end(kube, task, tells);
}

static void pod_over(struct kube *kube, struct kube_task *task, const struct pod_object *pod,
                     struct tells *tells)
{
    struct exit_report exit = pod->exit;
    if (pod->stage == POD_REFUSED) {
        if (strcmp(pod->reason, "UnexpectedAdmissionError") == 0)
            nodes_refused(kube, task->node, pod->message, tells);
        exit = (struct exit_report){.reason = pod->reason, .message = pod->message};
        ended(kube, task, true, &exit, tells);
        return;
    }
    if (pod->has_started)
        started(kube, task, pod, tells);
    if (is_operators(task)) {
        given_up_refused(kube, task, tells);
        return;
    }
    if (task->gives_up && !pod->has_started) {
        exit.is_missing = false;
        exit.is_user_command = false;
        exit.reason = task->gives_up;
        exit.message = task->gives_why;
    }
    if (pod->is_word_open)
        word_await(kube, task);
    ended(kube, task, false, &exit, tells);
}

/* A create that was under way when skepd was killed, or its node had gone, was carried out after
 * all: for Skep there is no such pod. */
static void late_pod_seen(struct kube *kube, struct attempt_id attempt, const struct doc *object,
                          bool is_removed)
{
    if (!is_removed && !object_at(object, "metadata.deletionTimestamp"))
        ask_delete_stray(kube, attempt.v, "pods", object_string(object, "metadata.uid"));
}

static void uid_take(struct kube *kube, struct kube_task *task, const char *uid)
{
    if (task->uid[0])
        return;
    snprintf(task->uid, sizeof task->uid, "%s", uid);
    if (task->is_kill_wanted)
        kube_task_end(kube, task);
}

/* Its pod, as the API server has told it now. */
static void pod_seen(struct kube *kube, struct kube_task *task, const struct doc *object,
                     bool is_removed, struct tells *tells)
{
    struct pod_object pod;
    pod_object_read(object, is_removed ? POD_REMOVED : POD_SEEN, task->is_kill_wanted,
                    &tells->arena, &pod);
    if (!task->uid[0] && task->state >= TASK_ENDED) {
        late_pod_seen(kube, task->attempt, object, is_removed);
        return;
    }
    uid_take(kube, task, pod.uid);
    if (strcmp(task->uid, pod.uid) != 0)
        return;
    task->is_gone |= is_removed;
    order_drop(kube, task); /* the watch may be faster than the answer to the create */
    if (has_pod(task) && is_given_up_as_lost(task)) /* by an earlier skepd */
        lost(kube, task, tells);
    if (task->state >= TASK_ENDED) {
        if (task->is_word_awaited && pod.exit.is_oom_killed)
            word_came(kube, task, tells);
        if (pod.stage == POD_ENDED || pod.stage == POD_REFUSED)
            lost_end(kube, task, tells);
        return;
    }
    preparing(kube, task, tells);
    const bool has_address = task_address_take(kube, task, pod.address);
    if (task->is_started_told)
        pod_object_had_started(&pod);
    switch (pod.stage) {
    case POD_WAITING:
        task_waits(kube, task, &pod, tells);
        users_check(kube, task, object, tells);
        return;
    case POD_RUNNING:
        if (pod.has_started && has_address) {
            started(kube, task, &pod, tells);
            kube_task_gpus_note(kube, task, object);
        }
        return;
    case POD_ENDED:
    case POD_REFUSED:
        pod_over(kube, task, &pod, tells);
        return;
    }
}

/* A pod that was there before this engine. */
static struct kube_task *task_adopt(struct kube *kube, struct attempt_id attempt,
                                    const struct doc *object)
{
    struct kube_task *task = kube_task_add(kube, attempt, object_string(object, "spec.nodeName"));
    task->state = TASK_WAITS;
    if (object_note(object, OBJECT_NOTE_DEVICES)[0])
        task->devices = mem_copy(object_note(object, OBJECT_NOTE_DEVICES));
    task_log_begin(kube, attempt, object_note(object, OBJECT_NOTE_JOB));
    given_up_take(kube, task);
    task_addresses_adopt(kube, task);
    if (id_map_get(&kube->noted, attempt.v) == MAP_NONE)
        secret_note_put(kube->secret_notes, attempt);
    return task;
}

/* The task of this pod. NULL: it has none. After the first list only what this engine makes is one
 * of Skep's: the rest is forgotten. */
static struct kube_task *task_of(struct kube *kube, struct attempt_id attempt,
                                 const struct doc *object, bool is_removed)
{
    struct kube_task *task = kube_task_find(kube, attempt);
    if (!task && kube->is_listed)
        late_pod_seen(kube, attempt, object, is_removed);
    else if (!task && !is_removed)
        task = task_adopt(kube, attempt, object);
    return task;
}

void tasks_seen(struct kube *kube, const struct doc *object, bool is_removed, uint32_t mark,
                struct tells *tells)
{
    const struct attempt_id attempt = object_attempt(object, kube->settings.instance);
    struct kube_task *task = attempt.v > 0 ? task_of(kube, attempt, object, is_removed) : NULL;
    if (!task)
        return;
    task->mark = mark;
    pod_seen(kube, task, object, is_removed, tells);
}

/* Nothing is known of its end. */
static void pod_gone(struct kube *kube, struct kube_task *task, struct tells *tells)
{
    if (!has_pod(task)) {
        lost_end(kube, task, tells);
        return;
    }
    task->is_gone = true;
    if (is_operators(task)) {
        given_up_refused(kube, task, tells);
        return;
    }
    const struct exit_report exit = {.exit_code = CODE_KILLED,
                                     .signal = SIGNAL_KILL,
                                     .is_missing = !task->is_kill_wanted,
                                     .is_user_command = task->is_started_told,
                                     .reason = task->gives_up ? task->gives_up : "",
                                     .message = task->gives_why ? task->gives_why : ""};
    ended(kube, task, false, &exit, tells);
}

void tasks_passed(struct kube *kube, const struct doc *head, bool is_removed, uint32_t mark,
                  struct tells *tells)
{
    const struct attempt_id attempt = object_attempt(head, kube->settings.instance);
    struct kube_task *task = attempt.v > 0 ? task_of(kube, attempt, head, is_removed) : NULL;
    const char *uid = object_string(head, "metadata.uid");
    if (!task)
        return;
    if (!task->uid[0] && task->state >= TASK_ENDED) {
        late_pod_seen(kube, attempt, head, is_removed);
        return;
    }
    pod_taken(kube, task, head, true, tells);
    uid_take(kube, task, uid);
    if (strcmp(task->uid, uid) != 0)
        return;
    task->mark = mark;
    task->is_gone |= is_removed;
    if (has_pod(task) && is_given_up_as_lost(task)) /* by an earlier skepd */
        lost(kube, task, tells);
    if (is_removed)
        pod_gone(kube, task, tells);
}

struct note_sweep {
    struct kube *kube;
    struct tells *tells;
};

/* Its pod has gone while no skepd was there to see it. */
static void given_up_seen(void *context, struct attempt_id attempt)
{
    const struct note_sweep *sweep = context;
    if (kube_task_find(sweep->kube, attempt))
        return;
    struct kube_task *task = kube_task_add(sweep->kube, attempt, "");
    const bool is_read = given_up_take(sweep->kube, task);
    if (is_read && is_operators(task)) {
        given_up_refused(sweep->kube, task, sweep->tells);
        return;
    }
    if (is_read) {
        ended_early(sweep->kube, task, task->gives_up, task->gives_why, sweep->tells);
        return;
    }
    log_error("engine", "kubernetes: why attempt %llu was given up cannot be read",
              (unsigned long long)attempt.v);
    given_up_drop(sweep->kube->given_up, attempt);
    task_drop(sweep->kube, task);
}

void tasks_given_up(struct kube *kube, struct tells *tells)
{
    struct note_sweep sweep = {kube, tells};
    if (kube->given_up)
        attempt_files_each(kube->given_up, given_up_seen, &sweep);
}

/* Whatever had become of its pod has gone while no skepd was there to see it. */
static void left_seen(void *context, struct attempt_id attempt)
{
    const struct note_sweep *sweep = context;
    if (!kube_task_find(sweep->kube, attempt))
        ended_unknown(sweep->kube, kube_task_add(sweep->kube, attempt, ""), sweep->tells);
}

void tasks_left(struct kube *kube, struct tells *tells)
{
    struct note_sweep sweep = {kube, tells};
    addresses_left(kube);
    secret_note_each(kube->secret_notes, left_seen, &sweep);
    id_map_release(&kube->noted);
}

void tasks_sweep(struct kube *kube, uint32_t mark, struct tells *tells)
{
    for (size_t i = kube->tasks.count; i-- > 0;) /* one that is dropped has the last one's place */
        if (kube->tasks.items[i]->mark < mark)
            pod_gone(kube, kube->tasks.items[i], tells);
}
