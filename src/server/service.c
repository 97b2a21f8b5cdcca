/* service.c — the port that the API sees: what it asks for becomes mails for the core thread. */
#include "api/service.h"
#include "auth/auth.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/plan.h"
#include "server/admission.h"
#include "server/container.h"
#include "server/job_network.h"
#include "server/kept_secrets.h"
#include "server/state.h"
#include "server/storage.h"
#include "spec/spec.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/secret.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

static int service_post(struct server *server, struct server_mail *mail, struct err *err)
{
    int code = 0;
    mail->is_request = true;
    if (mail->reply.audit && (mail->kind == MAIL_EVENT || mail->kind == MAIL_CHANGE))
        mail_audit(mail, clock_unix_ms());
    if (atomic_load(&server->is_draining))
        code = err_fail(err, ERR_UNAVAILABLE, "", "the server is ending");
    else
        code = mailbox_post(&server->mailbox, &mail->mail, err);
    if (code < 0) {
        atomic_fetch_add(&server->metrics.refused, 1);
        mail_free(mail);
        return code;
    }
    atomic_fetch_add(&server->metrics.requests, 1);
    return 0;
}

static int check_cluster(struct server *server, const char *name, const char *cluster,
                         struct arena *arena, struct err *err)
{
    struct store_names granted = {0};
    const struct auth_subject subject = {.cluster = cluster};
    if (strcmp(cluster, "default") == 0)
        return 0;
    struct store_reader *reader = server->service.reader_get(server, err);
    if (!reader)
        return ERR_UNAVAILABLE;
    struct store_user user;
    int code = store_user(reader, text_of(name), arena, &user, err);
    if (code == 0)
        code = store_user_clusters(reader, name, arena, &granted, err);
    server->service.reader_put(server, reader);
    if (code < 0)
        return code;
    const struct auth_caller caller = {
        .user = name,
        .is_admin = user.is_admin || user.is_admin_by_group,
        .clusters = granted.items,
        .cluster_count = granted.count,
    };
    return auth_check(&caller, AUTH_USE_CLUSTER, &subject, err);
}

static int check_storages(struct server *server, const char *user, struct spec *spec,
                          struct problems *problems, struct arena *arena, struct err *err)
{
    if (spec->storage_count == 0 && !spec->wants_default_storages)
        return 0;
    struct store_reader *reader = server->service.reader_get(server, err);
    if (!reader)
        return ERR_UNAVAILABLE;
    int code = storage_submit_check(server_storages(server, arena), reader, user, spec, problems,
                                    arena, err);
    server->service.reader_put(server, reader);
    return code;
}

static int check_network(struct server *server, const struct spec *spec, struct err *err)
{
    struct store_reader *reader = server->service.reader_get(server, err);
    if (!reader)
        return ERR_UNAVAILABLE;
    const int code = job_network_check(server, reader, spec, err);
    server->service.reader_put(server, reader);
    return code;
}

static struct text mail_bytes(struct server_mail *mail, struct buf *buf)
{
    struct text copy = {arena_copy(&mail->arena, buf_as_text(buf)), buf->length};
    buf_release(buf);
    return copy;
}

/* Everything that can be made off the core thread is made here. */
static struct server_mail *mail_of_submission(struct server *server, const char *user,
                                              const struct spec_parsed *parsed)
{
    struct server_mail *mail = mail_event(EVENT_SUBMIT, user);
    struct submission *submit = &mail->event.submit;
    struct buf spec = BUF_INIT, plan = BUF_INIT, sealed = BUF_INIT;
    submit->plan = plan_of_spec(parsed->spec, user);
    plan_encode(submit->plan, &plan);
    spec_encode(parsed->spec, &spec);
    secrets_seal(parsed->secrets, parsed->secret_count, server->keys.seal, &sealed);
    submit->spec_bytes = mail_bytes(mail, &spec);
    submit->plan_bytes = mail_bytes(mail, &plan);
    submit->sealed = mail_bytes(mail, &sealed);
    submit->source = (struct text){arena_copy(&mail->arena, buf_as_text(parsed->masked)),
                                   parsed->masked->length};
    submit->has_priority = parsed->spec->has_priority;
    submit->format = (uint8_t)parsed->spec->format;
    submit->notices = (uint8_t)notices_of_file(parsed->spec);
    return mail;
}

static int refuse_unwritable(struct server *server, struct err *err)
{
    pthread_mutex_lock(&server->state_lock);
    err_fail(err, ERR_UNAVAILABLE, "", "nothing can be stored: %s", server->store_trouble);
    pthread_mutex_unlock(&server->state_lock);
    return ERR_UNAVAILABLE;
}

int server_room(struct server *server, struct err *err)
{
    if (!store_is_short(server->store))
        return 0;
    return err_fail(err, ERR_UNAVAILABLE, "",
                    "the disk of the data directory is full: only what ends or removes jobs is "
                    "taken");
}

/* Read a job file and check everything that can be checked off the core thread. */
static int submission_read(struct server *server, const struct service_submission *submission,
                           struct problems *problems, struct server_mail **mail, struct err *err)
{
    const char *user = submission->user;
    cleanup_buf struct buf masked = BUF_INIT;
    struct spec_kept kept;
    struct spec_parsed parsed = {.masked = &masked, .kept = submission->secrets_of ? &kept : NULL};
    cleanup_arena struct arena scratch;
    arena_init(&scratch);
    int code =
        submission->secrets_of ? kept_secrets_read(server, submission, &scratch, &kept, err) : 0;
    if (code == 0 && spec_parse(submission->source, &scratch, &parsed, problems) < 0)
        code = err_fail(err, ERR_INVALID, "", "the job file has %zu error%s", problems->error_count,
                        problems->error_count == 1 ? "" : "s");
    if (code == 0)
        code = check_cluster(server, user, parsed.spec->virtual_cluster, &scratch, err);
    if (code == 0)
        code = check_storages(server, user, parsed.spec, problems, &scratch, err);
    if (code == 0)
        code = check_network(server, parsed.spec, err);
    if (code == 0)
        code = notify_submit_check(server, user, parsed.spec, problems, &scratch, err);
    if (code == 0)
        *mail = mail_of_submission(server, user, &parsed);
    spec_free(parsed.spec);
    arena_wipe(&scratch);
    return code;
}

/* The quotas of a job's owner are read here, and decided about by the core thread. */
static int quota_attach(struct server *server, struct server_mail *mail, const char *owner,
                        struct err *err)
{
    struct mail_quota *quota = ARENA_NEW(&mail->arena, struct mail_quota);
    struct store_reader *reader = server->service.reader_get(server, err);
    if (!reader)
        return ERR_UNAVAILABLE;
    quota->owner = arena_copy(&mail->arena, text_of(owner));
    int code = store_user_quotas(reader, text_of(owner), &mail->arena, &quota->quotas, err);
    server->service.reader_put(server, reader);
    mail->quota = quota;
    return code;
}

/* Of a job that is there. */
static int quota_attach_job(struct server *server, struct server_mail *mail, struct job_id job,
                            struct err *err)
{
    struct store_job row;
    if (store_job_summary(server->store, job, &mail->arena, &row, err) < 0)
        return 0; /* the core says so */
    return quota_attach(server, mail, row.record.user, err);
}

static int64_t service_submits_used(void *context, const char *user)
{
    struct server *server = context;
    struct store_reader *reader = server->service.reader_get(server, NULL);
    cleanup_arena struct arena arena;
    int64_t value = QUOTA_NONE, used = 0;
    arena_init(&arena);
    struct store_user_quotas quotas;
    if (reader && store_user_quotas(reader, text_of(user), &arena, &quotas, NULL) == 0)
        value = quotas.values.values[QUOTA_SUBMITS_MINUTE];
    server->service.reader_put(server, reader);
    pthread_mutex_lock(&server->state_lock);
    if (value > 0)
        used = rate_used(&server->submits, text_of(user), value, 60000000, clock_monotonic_us());
    pthread_mutex_unlock(&server->state_lock);
    return used;
}

/* What admission.c looks for, and keeps beside the job. */
static void key_attach(struct server *server, struct server_mail *mail,
                       const struct service_submission *submission)
{
    struct store_submit_key *key = ARENA_NEW(&mail->arena, struct store_submit_key);
    uint8_t digest_key[SECRET_KEY_SIZE];
    assert(submission->key.length <= STORE_SUBMIT_KEY_MAX);
    secret_key_derive(server->keys.master, 1, "skepskey", digest_key);
    key->user = arena_copy(&mail->arena, text_of(submission->user));
    key->key = arena_copy(&mail->arena, submission->key);
    key->job_name = arena_copy(&mail->arena, text_of(mail->event.submit.plan->name));
    cleanup_buf struct buf named = BUF_INIT; /* a file with other secrets is another one */
    if (submission->secrets_of) {
        buf_format(&named, "%u\n", submission->secrets_job.v);
        buf_text(&named, submission->source);
    }
    secret_digest(digest_key, named.length ? buf_as_text(&named) : submission->source, key->digest);
    secret_wipe(digest_key, sizeof digest_key);
    mail->submit_key = key;
}

static int service_submit(void *context, const struct service_submission *submission,
                          struct problems *problems, struct service_reply reply, struct err *err)
{
    struct server *server = context;
    struct server_mail *mail = NULL;
    if (!atomic_load(&server->is_writable))
        return refuse_unwritable(server, err);
    int code;
    if (server_room(server, err) < 0)
        return err->code;
    code = submission_read(server, submission, problems, &mail, err);
    if (code < 0)
        return code;
    assert(mail);
    mail->reply = reply;
    if (submission->key.length > 0)
        key_attach(server, mail, submission);
    code = quota_attach(server, mail, submission->user, err);
    if (code < 0) {
        mail_free(mail);
        return code;
    }
    return service_post(server, mail, err);
}

/* As many parameters as the port's. NOLINTNEXTLINE(readability-function-size) */
static int service_trial(void *context, const struct service_submission *submission,
                         struct problems *problems, struct arena *arena, struct core_trial *trial,
                         struct service_reply reply, struct err *err)
{
    struct server_mail *mail = NULL;
    int code = submission_read(context, submission, problems, &mail, err);
    if (code < 0)
        return code;
    assert(mail);
    mail->kind = MAIL_TRIAL;
    mail->trial = trial;
    mail->trial_arena = arena;
    mail->reply = reply;
    return service_post(context, mail, err);
}

static int service_check(void *context, const struct service_submission *submission,
                         struct problems *problems, struct err *err)
{
    struct server_mail *mail = NULL;
    int code = submission_read(context, submission, problems, &mail, err);
    mail_free(mail);
    return code;
}

static int service_act(void *context, enum service_action action, const char *user,
                       struct job_id job, struct service_reply reply, struct err *err)
{
    static const enum event_kind kinds[] = {
        [SERVICE_STOP] = EVENT_STOP,
        [SERVICE_START] = EVENT_START,
        [SERVICE_DELETE] = EVENT_DELETE,
        [SERVICE_RELEASE] = EVENT_RELEASE,
    };
    struct server_mail *mail = mail_event(kinds[action], user);
    mail->event.job = job;
    mail->reply = reply;
    if (action == SERVICE_START && quota_attach_job(context, mail, job, err) < 0) {
        mail_free(mail);
        return err->code;
    }
    return service_post(context, mail, err);
}

static int service_scale(void *context, const char *user, struct job_id job, uint16_t role,
                         uint32_t instances, struct service_reply reply, struct err *err)
{
    struct server_mail *mail = mail_event(EVENT_SCALE, user);
    mail->event.scale.job = job;
    mail->event.scale.role = role;
    mail->event.scale.instances = instances;
    mail->reply = reply;
    if (quota_attach_job(context, mail, job, err) < 0) {
        mail_free(mail);
        return err->code;
    }
    return service_post(context, mail, err);
}

static int service_node_act(void *context, enum service_node_action action, const char *user,
                            const char *node, struct text reason, struct service_reply reply,
                            struct err *err)
{
    static const enum event_kind kinds[] = {
        [SERVICE_NODE_PARDON] = EVENT_NODE_PARDON,
        [SERVICE_NODE_CORDON] = EVENT_NODE_CORDON,
        [SERVICE_NODE_DRAIN] = EVENT_NODE_DRAIN,
        [SERVICE_NODE_UNCORDON] = EVENT_NODE_UNCORDON,
    };
    struct server_mail *mail = mail_event(kinds[action], user);
    mail->event.node.name = arena_copy(&mail->arena, text_of(node));
    mail->event.node.reason = arena_copy(&mail->arena, reason);
    mail->event.node.gpu_type = mail->event.node.address = "";
    mail->reply = reply;
    return service_post(context, mail, err);
}

static int service_cluster_act(void *context, enum service_cluster_action action, const char *user,
                               const char *cluster, struct text reason, struct service_reply reply,
                               struct err *err)
{
    static const enum event_kind kinds[] = {
        [SERVICE_CLUSTER_CLOSE] = EVENT_CLUSTER_CLOSE,
        [SERVICE_CLUSTER_OPEN] = EVENT_CLUSTER_OPEN,
    };
    struct server_mail *mail = mail_event(kinds[action], user);
    mail->event.cluster.name = arena_copy(&mail->arena, text_of(cluster));
    mail->event.cluster.reason = arena_copy(&mail->arena, reason);
    mail->reply = reply;
    return service_post(context, mail, err);
}

static const char *kept(struct server_mail *mail, const char *string)
{
    return string ? arena_copy(&mail->arena, text_of(string)) : NULL;
}

static struct store_names names_kept(struct server_mail *mail, const struct store_names *names)
{
    const char **items = ARENA_ARRAY(&mail->arena, const char *, names->count);
    for (size_t i = 0; i < names->count; i++)
        items[i] = kept(mail, names->items[i]);
    return (struct store_names){items, names->count};
}

static void user_copy(struct server_mail *mail, const struct store_user *from)
{
    struct store_user *to = &mail->change.user;
    struct store_member *groups =
        ARENA_ARRAY(&mail->arena, struct store_member, from->groups.count);
    for (size_t i = 0; i < from->groups.count; i++)
        groups[i] = (struct store_member){.name = kept(mail, from->groups.items[i].name),
                                          .is_admin = from->groups.items[i].is_admin};
    to->name = kept(mail, from->name);
    to->password_hash = kept(mail, from->password_hash);
    to->email = kept(mail, from->email);
    to->groups.items = groups;
    to->virtual_clusters = names_kept(mail, &from->virtual_clusters);
    to->extension_json = kept(mail, from->extension_json);
    to->identity = kept(mail, from->identity);
}

static void group_copy(struct server_mail *mail, const struct store_group *from)
{
    struct store_group *to = &mail->change.group;
    to->name = kept(mail, from->name);
    to->description = kept(mail, from->description);
    to->external_name = kept(mail, from->external_name);
    to->extension_json = kept(mail, from->extension_json);
    to->virtual_clusters = names_kept(mail, &from->virtual_clusters);
}

static void template_copy(struct server_mail *mail, const struct store_template *from)
{
    struct store_template *to = &mail->change.template.row;
    to->id = kept(mail, from->id);
    to->author = kept(mail, from->author);
    to->name = kept(mail, from->name);
    to->summary = kept(mail, from->summary);
    to->description = kept(mail, from->description);
    to->protocol = kept(mail, from->protocol);
    to->categories = names_kept(mail, &from->categories);
    to->tags = names_kept(mail, &from->tags);
    to->groups = names_kept(mail, &from->groups);
    to->reason = kept(mail, from->reason);
    to->reviewer = kept(mail, from->reviewer);
}

static void request_copy(struct server_mail *mail, const struct store_request *from)
{
    struct store_request *to = &mail->change.request.row;
    to->id = kept(mail, from->id);
    to->user = kept(mail, from->user);
    to->virtual_cluster = kept(mail, from->virtual_cluster);
    to->email = kept(mail, from->email);
    to->password_hash = kept(mail, from->password_hash);
    to->address = kept(mail, from->address);
    to->why = kept(mail, from->why);
    to->decider = kept(mail, from->decider);
    to->answer = kept(mail, from->answer);
    to->group = kept(mail, from->group);
}

static void change_copy(struct server_mail *mail, const struct store_change *from)
{
    struct store_change *to = &mail->change;
    *to = *from;
    to->audit = NULL;
    to->extension_was = kept(mail, from->extension_was);
    to->token_kept = kept(mail, from->token_kept);
    switch (from->kind) {
    case CHANGE_TAG_ADD:
    case CHANGE_TAG_REMOVE:
        to->tag.name = kept(mail, from->tag.name);
        return;
    case CHANGE_USER_ADD:
    case CHANGE_USER_SET:
    case CHANGE_USER_REMOVE:
        user_copy(mail, &from->user);
        return;
    case CHANGE_GROUP_ADD:
    case CHANGE_GROUP_SET:
    case CHANGE_GROUP_REMOVE:
        group_copy(mail, &from->group);
        return;
    case CHANGE_MEMBER_ADD:
    case CHANGE_MEMBER_REMOVE:
        to->member.user = kept(mail, from->member.user);
        to->member.group = kept(mail, from->member.group);
        return;
    case CHANGE_TOKEN_ADD:
    case CHANGE_TOKEN_REMOVE:
    case CHANGE_TOKENS_REMOVE:
        to->token.id = kept(mail, from->token.id);
        to->token.user = kept(mail, from->token.user);
        return;
    case CHANGE_SETTING:
        to->setting.key = kept(mail, from->setting.key);
        to->setting.value = (struct text){arena_copy(&mail->arena, from->setting.value),
                                          from->setting.value.length};
        return;
    case CHANGE_ATTEMPT_END:    /* the engine's thread makes it, beside the exit */
    case CHANGE_SUBMIT_KEY:     /* admission.c does, beside the submission */
    case CHANGE_RESEAL:         /* only while no server runs */
    case CHANGE_NOTICE_ADD:     /* notices.c makes it, beside the records */
    case CHANGE_NOTICES_REMOVE: /* notify_watch.c does */
    case CHANGE_DELETIONS:      /* deletion.c does, alone */
        break;
    case CHANGE_BARRIER:
    case CHANGE_LOG_TRIM:
    case CHANGE_TOKENS_EXPIRE:
    case CHANGE_AUDIT:
    case CHANGE_AUDIT_TRIM:
    case CHANGE_SUBMIT_KEYS_TRIM:
    case CHANGE_GPU_USE_TRIM:
    case CHANGE_ACCOUNTS:
    case CHANGE_REQUESTS_TRIM:
        return;
    case CHANGE_REQUEST_ADD:
    case CHANGE_REQUEST_ACT:
        request_copy(mail, &from->request.row);
        return;
    case CHANGE_QUOTAS:
        to->quotas.holder = kept(mail, from->quotas.holder);
        return;
    case CHANGE_TEMPLATE_ADD:
    case CHANGE_TEMPLATE_SET:
    case CHANGE_TEMPLATE_REMOVE:
    case CHANGE_TEMPLATE_REVIEW:
    case CHANGE_TEMPLATE_OFFICIAL:
    case CHANGE_TEMPLATE_USE:
    case CHANGE_TEMPLATE_STAR:
        template_copy(mail, &from->template.row);
        to->template.user = kept(mail, from->template.user);
        return;
    }
    assert(false && "a kind of change");
}

static int service_change(void *context, const struct store_change *change,
                          struct service_reply reply, struct err *err)
{
    if (change_grows(change) && server_room(context, err) < 0)
        return ERR_UNAVAILABLE;
    struct server_mail *mail = mail_new(MAIL_CHANGE);
    change_copy(mail, change);
    /* without folders of users a removed user's name leads to nothing: clients that know of no
     * such rule make the user anew as ever */
    mail->change.reuses_name = change->reuses_name || !server_has_user_folders(context);
    mail->reply = reply;
    return service_post(context, mail, err);
}

static int service_snapshot(void *context, struct service_snapshot *snapshot,
                            struct service_reply reply, struct err *err)
{
    struct server_mail *mail = mail_new(MAIL_SNAPSHOT);
    snapshot->cost_us = 0;
    mail->snapshot = snapshot;
    mail->reply = reply;
    return service_post(context, mail, err);
}

static uint64_t service_snapshot_version(void *context)
{
    struct server *server = context;
    return atomic_load(&server->core.version);
}

static int service_barrier(void *context, const struct service_barrier *report,
                           struct service_reply reply, struct err *err)
{
    struct server *server = context;
    if (!barrier_token_is(server->keys.master, report->attempt, report->token))
        return err_fail(err, ERR_UNAUTHORIZED, "", "this is not the token of the try");
    struct server_mail *mail = mail_new(MAIL_BARRIER);
    mail->barrier = *report;
    mail->barrier.token = (struct text){NULL, 0};
    mail->reply = reply;
    return service_post(server, mail, err);
}

static struct store_reader *service_reader_get(void *context, struct err *err)
{
    struct server *server = context;
    struct reader_pool *pool = &server->readers;
    struct store_reader *reader = NULL;
    bool is_full = false;
    pthread_mutex_lock(&pool->lock);
    if (pool->idle_count > 0)
        reader = pool->idle[--pool->idle_count];
    else if (pool->count == READERS_MAX)
        is_full = true;
    else
        pool->count++;
    pthread_mutex_unlock(&pool->lock);
    if (is_full)
        err_fail(err, ERR_UNAVAILABLE, "", "%d readers are at work already", READERS_MAX);
    if (reader || is_full)
        return reader;
    if (store_reader_open(server->store, &reader, err) == 0)
        return reader;
    pthread_mutex_lock(&pool->lock);
    pool->count--;
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static void service_reader_put(void *context, struct store_reader *reader)
{
    struct reader_pool *pool = &((struct server *)context)->readers;
    if (!reader)
        return;
    pthread_mutex_lock(&pool->lock);
    assert(pool->idle_count < pool->count);
    pool->idle[pool->idle_count++] = reader;
    pthread_mutex_unlock(&pool->lock);
}

void reader_pool_release(struct reader_pool *pool)
{
    assert(pool->idle_count == pool->count);
    for (size_t i = 0; i < pool->idle_count; i++)
        store_reader_close(pool->idle[i]);
    pthread_mutex_destroy(&pool->lock);
}

static uint8_t service_engine_of(void *context, const char *node)
{
    return engine_of_node(context, node);
}

static int service_log_can_follow(void *context, uint8_t number, struct err *err)
{
    return engine_able(context, number, ENGINE_CAN_FOLLOW, err) ? 0 : err->code;
}

/* As many parameters as the engine's. NOLINTNEXTLINE(readability-function-size) */
static ssize_t service_log_read(void *context, uint8_t number, struct attempt_id attempt,
                                enum log_stream stream, uint64_t *offset, char *bytes, size_t size,
                                struct log_part *part, struct err *err)
{
    struct engine *engine = engine_able(context, number, ENGINE_CAN_LOG, err);
    if (!engine)
        return err->code;
    return engine->ops->log_read(engine, attempt, stream, offset, bytes, size, part, err);
}

/* As many parameters as the engine's. NOLINTNEXTLINE(readability-function-size) */
static int service_log_time(void *context, uint8_t number, struct attempt_id attempt,
                            enum log_stream stream, int64_t at_ms, uint64_t *offset,
                            struct err *err)
{
    struct engine *engine = engine_able(context, number, ENGINE_CAN_LOG, err);
    if (!engine)
        return err->code;
    return engine->ops->log_time(engine, attempt, stream, at_ms, offset, err);
}

static int service_log_watch(void *context, uint8_t number, struct attempt_id attempt,
                             enum log_stream stream, struct err *err)
{
    struct engine *engine = engine_able(context, number, ENGINE_CAN_FOLLOW, err);
    return engine ? engine->ops->log_watch(engine, attempt, stream, err) : err->code;
}

static int service_use(void *context, struct job_id job, struct attempt_id attempt,
                       const char *node, enum use_resolution resolution, struct use_points *points,
                       struct err *err)
{
    struct server *server = context;
    struct use_key key = {.job = job, .attempt = attempt, .node = node};
    return use_watch_points(server->use_watch, &key, resolution, points, err);
}

static bool service_use_last(void *context, const char *node, uint64_t values[USE_FIELDS])
{
    struct server *server = context;
    struct use_key key = {.node = node};
    return use_watch_last(server->use_watch, &key, values);
}

static int service_exec(void *context, uint8_t number, struct attempt_id attempt,
                        const struct engine_exec_request *request, struct engine_exec **exec,
                        struct err *err)
{
    struct engine *engine = engine_able(context, number, ENGINE_CAN_EXEC, err);
    return engine ? engine->ops->exec(engine, attempt, request, exec, err) : err->code;
}

static int service_connect(void *context, uint8_t number, struct attempt_id attempt, uint16_t port,
                           struct err *err)
{
    struct engine *engine = engine_able(context, number, ENGINE_CAN_CONNECT, err);
    return engine ? engine->ops->connect(engine, attempt, port, err) : err->code;
}

static void service_note(void *context, struct attempt_id attempt, const char *reason,
                         const char *message)
{
    struct server *server = context;
    if (store_is_short(server->store)) { /* it is only for people */
        atomic_fetch_add(&server->metrics.facts_dropped, 1);
        return;
    }
    struct server_mail *mail = mail_event(EVENT_TASK_NOTE, "");
    mail->event.task.attempt = attempt;
    mail->event.task.reason = arena_copy(&mail->arena, text_of(reason));
    mail->event.task.message = arena_copy(&mail->arena, text_of(message));
    server_post_fact(server, mail);
}

static int gpu_compare(const void *a, const void *b)
{
    const struct engine_gpu *x = a, *y = b;
    const int by_node = strcmp(x->node, y->node);
    return by_node ? by_node : (int)x->index - (int)y->index;
}

/* An engine mostly tells them so. */
static void gpus_sort(struct engine_gpu *gpus, size_t count)
{
    size_t sorted = 1;
    while (sorted < count && gpu_compare(&gpus[sorted - 1], &gpus[sorted]) <= 0)
        sorted++;
    if (sorted < count)
        qsort(gpus, count, sizeof *gpus, gpu_compare);
}

void server_gpus(void *context, struct arena *arena, const struct engine_gpu **gpus, size_t *count)
{
    struct server *server = context;
    cleanup_array struct {
        struct engine_gpu *items;
        size_t count, room;
    } all = {0};
    for (size_t i = 0; i < server->engines.count; i++) {
        struct err err;
        struct engine *engine = engine_able(server, (uint8_t)i, ENGINE_CAN_SAMPLE_GPUS, &err);
        const struct engine_gpu *own = NULL;
        size_t own_count = 0;
        if (engine)
            engine->ops->gpus(engine, arena, &own, &own_count);
        for (size_t j = 0; j < own_count; j++)
            *ARRAY_ADD(&all) = own[j];
    }
    struct engine_gpu *list = ARENA_ARRAY(arena, struct engine_gpu, all.count + 1);
    if (all.count)
        memcpy(list, all.items, all.count * sizeof *list);
    gpus_sort(list, all.count);
    *gpus = list;
    *count = all.count;
}

static int service_alerts(void *context, struct arena *arena, struct alert **alerts, size_t *count,
                          struct err *err)
{
    return alert_watch_list(((struct server *)context)->alert_watch, arena, alerts, count, err);
}

static void service_ssh_keys(void *context, struct job_id job, const char *comment,
                             struct arena *arena, const char **private_key, const char **public_key)
{
    struct server *server = context;
    struct store_epoch epoch = store_epoch_of(server->store, job);
    uint8_t key[SECRET_KEY_SIZE];
    epoch_key_make(server->keys.master, &epoch, key);
    ssh_key_make(key, job, comment, arena, private_key, public_key);
    secret_wipe(key, sizeof key);
}

static void service_watch(void *context, struct service_watch *watch)
{
    struct server *server = context;
    pthread_mutex_lock(&server->watch_lock);
    watch->next = server->watches;
    server->watches = watch;
    pthread_mutex_unlock(&server->watch_lock);
}

static void service_unwatch(void *context, struct service_watch *watch)
{
    struct server *server = context;
    pthread_mutex_lock(&server->watch_lock);
    for (struct service_watch **at = &server->watches; *at; at = &(*at)->next) {
        if (*at == watch) {
            *at = watch->next;
            break;
        }
    }
    pthread_mutex_unlock(&server->watch_lock);
}

void server_revoked(struct server *server, const char *user)
{
    pthread_mutex_lock(&server->watch_lock);
    for (struct service_watch *watch = server->watches; watch; watch = watch->next)
        if (watch->revoked)
            watch->revoked(watch->context, user);
    pthread_mutex_unlock(&server->watch_lock);
}

void server_notify(struct server *server)
{
    pthread_mutex_lock(&server->watch_lock);
    for (struct service_watch *watch = server->watches; watch; watch = watch->next)
        watch->notify(watch->context);
    pthread_mutex_unlock(&server->watch_lock);
}

void server_trouble(struct server *server, char trouble[200], const char *text)
{
    pthread_mutex_lock(&server->state_lock);
    snprintf(trouble, 200, "%s", text);
    pthread_mutex_unlock(&server->state_lock);
}

static const struct exit_rules *service_rules_get(void *context)
{
    struct server *server = context;
    pthread_rwlock_rdlock(&server->rules_lock);
    return server->rules;
}

static void service_rules_put(void *context)
{
    pthread_rwlock_unlock(&((struct server *)context)->rules_lock);
}

void server_settings_keep(struct server *server)
{
    struct buf settings = BUF_INIT;
    server_config_settings(server->engines.config, server->config, &settings);
    pthread_rwlock_wrlock(&server->rules_lock);
    struct buf old = server->settings;
    server->settings = settings;
    pthread_rwlock_unlock(&server->rules_lock);
    buf_release(&old);
}

static void service_settings(void *context, struct buf *out)
{
    struct server *server = context;
    pthread_rwlock_rdlock(&server->rules_lock);
    buf_text(out, buf_as_text(&server->settings));
    pthread_rwlock_unlock(&server->rules_lock);
}

void server_service_init(struct server *server)
{
    server_settings_keep(server);
    server_storages_keep(server);
    pthread_mutex_init(&server->readers.lock, NULL);
    server->service = (struct service){
        .context = server,
        .store = server->store,
        .token_key = server->token_key,
        .submit = service_submit,
        .submits_used = service_submits_used,
        .trial = service_trial,
        .check = service_check,
        .act = service_act,
        .scale = service_scale,
        .change = service_change,
        .node_act = service_node_act,
        .cluster_act = service_cluster_act,
        .barrier = service_barrier,
        .reader_get = service_reader_get,
        .reader_put = service_reader_put,
        .engine_of = service_engine_of,
        .log_can_follow = service_log_can_follow,
        .log_read = service_log_read,
        .log_time = service_log_time,
        .log_watch = service_log_watch,
        .use = service_use,
        .use_last = service_use_last,
        .storages = server_storages,
        .storage = server_storage,
        .exec = service_exec,
        .connect = service_connect,
        .note = service_note,
        .gpus = server_gpus,
        .alerts = service_alerts,
        .ssh_keys = service_ssh_keys,
        .watch = service_watch,
        .unwatch = service_unwatch,
        .snapshot = service_snapshot,
        .snapshot_version = service_snapshot_version,
        .rules_get = service_rules_get,
        .rules_put = service_rules_put,
        .settings = service_settings,
        .ready = server_ready,
        .is_alive = server_is_alive,
        .metrics = server_metrics,
    };
}
