/* mail.c — see mail.h. */
#include "server/mail.h"
#include "base/memory.h"
#include "core/plan.h"
#include "placement/placement.h"
#include "server/config.h"
#include "server/engines.h"
#include "sys/clock.h"

struct server_mail *mail_new(enum mail_kind kind)
{
    struct server_mail *mail = mem_zero(1, sizeof *mail);
    mail->kind = kind;
    mail->engine = ENGINE_NONE;
    mail->has_change = kind == MAIL_CHANGE;
    mail->posted_us = clock_monotonic_us();
    arena_init(&mail->arena);
    return mail;
}

void mail_free(struct server_mail *mail)
{
    if (!mail)
        return;
    if (mail->kind == MAIL_EVENT || mail->kind == MAIL_TRIAL)
        event_plan_free(&mail->event);
    server_config_free(mail->config);
    if (mail->placer)
        mail->placer->ops->free(mail->placer);
    arena_release(&mail->arena);
    mem_free(mail);
}

struct server_mail *mail_event(enum event_kind kind, const char *user)
{
    struct server_mail *mail = mail_new(MAIL_EVENT);
    mail->event.kind = kind;
    mail->event.user = arena_copy(&mail->arena, text_of(user));
    return mail;
}

static const char *kept(struct server_mail *mail, const char *string)
{
    return string ? arena_copy(&mail->arena, text_of(string)) : NULL;
}

void mail_audit(struct server_mail *mail, int64_t now_ms)
{
    const struct store_audit *from = mail->reply.audit;
    const struct plan *plan = mail->kind == MAIL_EVENT && mail->event.kind == EVENT_SUBMIT
                                  ? mail->event.submit.plan
                                  : NULL;
    struct store_audit *to = ARENA_NEW(&mail->arena, struct store_audit);
    *to = (struct store_audit){
        .at_ms = now_ms,
        .user = kept(mail, from->user),
        .token = kept(mail, from->token),
        .address = kept(mail, from->address),
        .right = kept(mail, from->right),
        .route = kept(mail, from->route),
        .subject_kind = kept(mail, from->subject_kind),
        .subject = plan ? arena_format(&mail->arena, "%s~%s", plan->user, plan->name)
                        : kept(mail, from->subject),
        .code = from->code,
        .reason = kept(mail, from->reason),
        .before = kept(mail, from->before),
        .after = kept(mail, from->after),
    };
    mail->audit = to;
    mail->reply.audit = NULL; /* the sender's */
}

void mail_outcome(struct server_mail *mail, int code, const char *reason)
{
    if (!mail->audit)
        return;
    mail->audit->code = code;
    mail->audit->reason = code < 0 ? kept(mail, reason) : "";
}

void mail_answer(struct server_mail *mail, const struct service_answer *answer)
{
    struct service_reply reply = mail->reply;
    struct service_answer told = *answer;
    told.is_noted = mail->audit != NULL;
    mail->reply.done = NULL;
    if (reply.done)
        reply.done(reply.context, &told);
}

void mail_refuse(struct server_mail *mail, int code, const char *text)
{
    mail->audit = NULL;
    mail_answer(mail, &(struct service_answer){.code = code, .path = "", .text = text});
}

bool mail_is_end(const struct server_mail *mail)
{
    const enum event_kind kind = mail->event.kind;
    return mail->kind == MAIL_EVENT && (kind == EVENT_TASK_EXITED || kind == EVENT_TASK_REFUSED);
}

bool mail_is_purge(const struct server_mail *mail)
{
    return mail->kind == MAIL_EVENT && mail->event.kind == EVENT_DELETE && !mail->is_request;
}

bool mail_is_of_task(const struct server_mail *mail)
{
    const enum event_kind kind = mail->event.kind;
    return mail->kind == MAIL_EVENT && ((kind >= EVENT_TASK_PREPARING && kind <= EVENT_TASK_IDLE) ||
                                        kind == EVENT_TASK_REFUSED);
}
