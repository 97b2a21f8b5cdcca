/* mail.c — see mail.h. */
#include "server/mail.h"
#include "base/memory.h"
#include "server/clock.h"
#include "server/config.h"
#include "server/engines.h"

struct server_mail *mail_new(enum mail_kind kind)
{
    struct server_mail *mail = mem_zero(1, sizeof *mail);

    mail->kind = kind;
    mail->engine = ENGINE_NONE;
    mail->has_change = kind == MAIL_CHANGE;
    mail->posted_us = clock_us();
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

void mail_answer(struct server_mail *mail, const struct service_answer *answer)
{
    struct service_reply reply = mail->reply;

    mail->reply.done = NULL;
    if (reply.done)
        reply.done(reply.context, answer);
}

void mail_refuse(struct server_mail *mail, int code, const char *text)
{
    mail_answer(mail, &(struct service_answer){.code = code, .path = "", .text = text});
}

bool mail_is_end(const struct server_mail *mail)
{
    const enum event_kind kind = mail->event.kind;

    return mail->kind == MAIL_EVENT && (kind == EVENT_TASK_EXITED || kind == EVENT_TASK_REFUSED);
}

bool mail_is_of_task(const struct server_mail *mail)
{
    const enum event_kind kind = mail->event.kind;

    return mail->kind == MAIL_EVENT && ((kind >= EVENT_TASK_PREPARING && kind <= EVENT_TASK_IDLE) ||
                                        kind == EVENT_TASK_REFUSED);
}
