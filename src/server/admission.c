#include "server/admission.h"
#include "base/err.h"
#include "base/utc.h"
#include "core/core.h"
#include "core/plan.h"
#include "server/state.h"
#include "server/submit_key.h"
#include "sys/clock.h"
#include <assert.h>

enum { RETRY_S = 60, MINUTE_US = 60000000 };

static void mail_reject(struct server_mail *mail, const struct err *err, int64_t retry_s)
{
    mail->is_done = true;
    mail_outcome(mail, err->code, err->text);
    mail_answer(mail,
                &(struct service_answer){
                    .code = err->code, .path = err->path, .text = err->text, .retry_s = retry_s});
}

/* What the owner has, with what others of this batch have been admitted with. */
static struct store_use use_now(struct server *server, const char *owner)
{
    const struct core_thread *core = &server->core;
    struct store_use use;
    store_use_of(server->store, text_of(owner), &use);
    for (size_t i = 0; i < core->batch_count; i++) {
        const struct mail_quota *other = core->batch[i]->quota;
        if (!other || strcmp(other->owner, owner) != 0)
            continue;
        use.live_jobs += other->live_jobs;
        use.gpus += other->gpus;
        use.stored_jobs += other->stored_jobs;
    }
    return use;
}

static int quota_check(const struct mail_quota *quota, enum quota_kind kind, uint64_t used,
                       uint64_t more, struct err *err)
{
    const int64_t value = quota->quotas.values.values[kind];
    if (value == QUOTA_NONE || more == 0 || used + more <= (uint64_t)value)
        return 0;
    return quota_refuse(kind, quota->quotas.groups[kind], value, (int64_t)used, err);
}

/* Of what asks for GPUs, when the hours of this month have been used. What was let in before runs
 * on. */
static int hours_check(struct server *server, const struct mail_quota *quota, uint64_t gpus,
                       int64_t *retry_s, struct err *err)
{
    enum { HOUR_MS = 3600 * 1000 };
    const int64_t value = quota->quotas.values.values[QUOTA_GPU_HOURS];
    const int64_t now_ms = core_thread_now(server);
    uint64_t used_ms;
    if (value == QUOTA_NONE || gpus == 0)
        return 0;
    int code = store_gpu_use(server->core.reader, text_of(quota->owner), now_ms, &used_ms, err);
    if (code < 0 || used_ms < (uint64_t)value * HOUR_MS)
        return code;
    const int64_t end_ms = utc_month_of(now_ms).end_ms;
    *retry_s = (end_ms - now_ms + 999) / 1000;
    return quota_refuse_hours(quota->quotas.groups[QUOTA_GPU_HOURS], value,
                              (int64_t)(used_ms / HOUR_MS), end_ms, err);
}

/* The last to be asked, as it takes what it gives. */
static int submits_check(struct server *server, struct mail_quota *quota, int64_t *retry_s,
                         struct err *err)
{
    const int64_t value = quota->quotas.values.values[QUOTA_SUBMITS_MINUTE];
    int64_t wait_us = MINUTE_US;
    if (value == QUOTA_NONE || quota->is_counted)
        return 0;
    pthread_mutex_lock(&server->state_lock);
    if (value > 0)
        wait_us = rate_take(&server->submits, text_of(quota->owner), value, MINUTE_US,
                            clock_monotonic_us());
    pthread_mutex_unlock(&server->state_lock);
    quota->is_counted = wait_us == 0;
    if (quota->is_counted)
        return 0;
    *retry_s = (wait_us + 999999) / 1000000;
    return quota_refuse(QUOTA_SUBMITS_MINUTE, quota->quotas.groups[QUOTA_SUBMITS_MINUTE], value,
                        value, err);
}

static bool quota_is_set(const struct mail_quota *quota)
{
    for (int i = 0; i < QUOTA_KIND_COUNT; i++)
        if (quota->quotas.values.values[i] != QUOTA_NONE)
            return true;
    return false;
}

/* One place decides, one request after the other: none slips by another. */
static bool admission_quota(struct server *server, struct server_mail *mail,
                            const struct store_use *more)
{
    struct mail_quota *quota = mail->quota;
    int64_t retry_s = RETRY_S;
    if (!quota || !quota_is_set(quota))
        return true;
    /* a mail that is stepped again, alone, is not to be counted twice */
    quota->live_jobs = quota->gpus = quota->stored_jobs = 0;
    struct store_use use = use_now(server, quota->owner);
    struct err err;
    int code = quota_check(quota, QUOTA_LIVE_JOBS, use.live_jobs, more->live_jobs, &err);
    if (code == 0)
        code = quota_check(quota, QUOTA_GPUS, use.gpus, more->gpus, &err);
    if (code == 0)
        code = quota_check(quota, QUOTA_STORED_JOBS, use.stored_jobs, more->stored_jobs, &err);
    if (code == 0)
        code = hours_check(server, quota, more->gpus, &retry_s, &err);
    if (code == 0 && mail->event.kind != EVENT_SCALE)
        code = submits_check(server, quota, &retry_s, &err);
    if (code < 0) {
        mail_reject(mail, &err, retry_s);
        return false;
    }
    quota->live_jobs = more->live_jobs;
    quota->gpus = more->gpus;
    quota->stored_jobs = more->stored_jobs;
    return true;
}

static uint64_t plan_gpus(const struct plan *plan)
{
    uint64_t gpus = 0;
    for (uint16_t i = 0; i < plan->role_count; i++)
        gpus += (uint64_t)plan->roles[i].instances * plan->roles[i].gpu;
    return gpus;
}

/* What the core does not know any more, the store does. */
bool admission_submit(struct server *server, struct server_mail *mail)
{
    const struct plan *plan = mail->event.submit.plan;
    struct job_id job;
    if (store_job_find(server->store, text_of(plan->user), text_of(plan->name), &job, NULL) < 0)
        return true;
    struct err err;
    err_fail(&err, ERR_CONFLICT, "name", "job %.64s~%.120s exists already", plan->user, plan->name);
    mail_reject(mail, &err, 0);
    return false;
}

/* Its row is as this batch leaves it: core_thread.c commits before, where the batch writes it. */
static bool admission_start(struct server *server, struct server_mail *mail)
{
    struct store_job *row = ARENA_NEW(&mail->arena, struct store_job);
    struct recall *start = &mail->event.start;
    struct err err;
    start->plan = NULL;
    start->record = NULL;
    int code = store_job_read(server->core.reader, start->job, &mail->arena, row, &err);
    if (code == 0 && row->record.state == LIFE_COMPLETED)
        code = store_job_plan(server->core.reader, start->job, &start->plan, &err);
    if (code == 0 && start->plan)
        start->record = &row->record;
    if (code == 0 && start->plan) /* it lives again */
        return admission_quota(server, mail,
                               &(struct store_use){.live_jobs = 1, .gpus = plan_gpus(start->plan)});
    if (code == 0)
        return true;
    mail_reject(mail, &err, 0);
    return false;
}

static bool admission_delete(struct server *server, struct server_mail *mail)
{
    struct err err;
    struct store_job row;
    if (store_job_summary(server->store, mail->event.job, &mail->arena, &row, &err) == 0)
        return true;
    mail_reject(mail, &err, 0);
    return false;
}

static bool event_grows(enum event_kind kind)
{
    return kind == EVENT_SUBMIT || kind == EVENT_START || kind == EVENT_SCALE;
}

bool change_grows(const struct store_change *change)
{
    switch (change->kind) {
    case CHANGE_TAG_ADD:
    case CHANGE_USER_ADD:
    case CHANGE_GROUP_ADD:
    case CHANGE_GROUP_SET:
    case CHANGE_MEMBER_ADD:
    case CHANGE_SETTING:
    case CHANGE_QUOTAS:
    case CHANGE_AUDIT:
    case CHANGE_TEMPLATE_ADD:
    case CHANGE_TEMPLATE_SET:
    case CHANGE_TEMPLATE_REVIEW:
    case CHANGE_TEMPLATE_OFFICIAL:
    case CHANGE_TEMPLATE_USE:
    case CHANGE_TEMPLATE_STAR:
    case CHANGE_REQUEST_ADD:
    case CHANGE_REQUEST_ACT:
    case CHANGE_NOTICE_ADD:
        return true;
    case CHANGE_TOKEN_ADD:
        return change->token.is_application;
    case CHANGE_TAG_REMOVE:
    case CHANGE_USER_SET:
    case CHANGE_USER_REMOVE:
    case CHANGE_MEMBER_REMOVE:
    case CHANGE_GROUP_REMOVE:
    case CHANGE_TOKEN_REMOVE:
    case CHANGE_TOKENS_REMOVE:
    case CHANGE_ACCOUNTS:
    case CHANGE_ATTEMPT_END:
    case CHANGE_BARRIER:
    case CHANGE_LOG_TRIM:
    case CHANGE_TOKENS_EXPIRE:
    case CHANGE_AUDIT_TRIM:
    case CHANGE_SUBMIT_KEY:
    case CHANGE_SUBMIT_KEYS_TRIM:
    case CHANGE_RESEAL:
    case CHANGE_GPU_USE_TRIM:
    case CHANGE_TEMPLATE_REMOVE:
    case CHANGE_REQUESTS_TRIM:
    case CHANGE_NOTICES_REMOVE:
    case CHANGE_DELETIONS:
        return false;
    }
    assert(false && "a kind of change");
    return true;
}

/* On a disk that is nearly full, what would only fill it is refused: also what would change
 * nothing, because its event and its audit record would be written all the same. */
static bool admission_room(struct server *server, struct server_mail *mail)
{
    const enum event_kind kind = mail->event.kind;
    const bool is_end = kind == EVENT_STOP || kind == EVENT_DELETE || kind == EVENT_RELEASE;
    struct err err;
    if (!mail->reply.done || server_room(server, &err) == 0)
        return true;
    if (is_end && !core_ends_anything(server->core.core, kind, mail->event.job))
        err_fail(&err, ERR_CONFLICT, "",
                 "nothing would be changed by it, and the disk of the data directory is full");
    else if (!event_grows(kind))
        return true;
    mail_reject(mail, &err, 0);
    return false;
}

/* Nothing is asked of a job that the core has been made without. */
static bool admission_quarantine(struct server *server, struct server_mail *mail)
{
    const enum event_kind kind = mail->event.kind;
    const bool is_of_job = kind == EVENT_STOP || kind == EVENT_START || kind == EVENT_DELETE ||
                           kind == EVENT_SCALE || kind == EVENT_RELEASE;
    const char *why = is_of_job ? quarantine_why(server, mail->event.job) : NULL;
    struct err err;
    if (!why)
        return true;
    err_fail(&err, ERR_CONFLICT, "",
             "the server could not store a change of this job and has set it aside; speak with an "
             "administrator: %.120s",
             why);
    mail_reject(mail, &err, 0);
    return false;
}

bool admission_pass(struct server *server, struct server_mail *mail)
{
    const enum event_kind kind = mail->event.kind;
    if (!admission_quarantine(server, mail))
        return false;
    if (mail->submit_key && !submit_key_pass(server, mail))
        return false;
    if (!admission_room(server, mail))
        return false;
    if (kind == EVENT_SUBMIT)
        return admission_submit(server, mail) &&
               admission_quota(server, mail,
                               &(struct store_use){.live_jobs = 1,
                                                   .gpus = plan_gpus(mail->event.submit.plan),
                                                   .stored_jobs = 1});
    if (kind == EVENT_SCALE)
        return admission_quota(
            server, mail,
            &(struct store_use){.gpus = core_scale_gpus(server->core.core, mail->event.scale.job,
                                                        mail->event.scale.role,
                                                        mail->event.scale.instances)});
    if (kind == EVENT_START)
        return admission_start(server, mail);
    return kind != EVENT_DELETE || admission_delete(server, mail);
}
