#include "server/batch_failure.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/plan.h"
#include "server/batch.h"
#include "server/notices.h"
#include "server/snapshot.h"
#include "server/state.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void fact_keep(struct server *server, struct server_mail *mail)
{
    struct core_thread *core = &server->core;
    /* progress is only for people; everything else would be missed, a reload as well */
    if (mail->kind == MAIL_EVENT && mail->event.kind == EVENT_TASK_NOTE) {
        atomic_fetch_add(&server->metrics.facts_dropped, 1);
        mail_free(mail);
        return;
    }
    mail->mail.next = NULL;
    *core->last_fact = mail;
    core->last_fact = (struct server_mail **)(void *)&mail->mail.next;
    atomic_fetch_add(&server->metrics.facts_kept, 1);
    if (mail_is_end(mail))
        log_debug("store", "attempt %llu has ended, which cannot be stored yet",
                  (unsigned long long)mail->event.task.attempt.v);
}

/* Nobody would tell these again. A reload that is in force, or refused, has its audit record left.
 */
static bool is_to_keep(const struct server_mail *mail)
{
    if (mail_is_purge(mail)) /* retention asks again */
        return false;
    if (mail->kind == MAIL_CHANGE)
        return mail->change.kind == CHANGE_NOTICES_REMOVE;
    return mail->kind == MAIL_EVENT ||
           (mail->kind == MAIL_CONFIG && (!mail->is_done || mail->audit));
}

void batch_failure_mail(struct server *server, struct server_mail *mail)
{
    if (!mail->reply.done && is_to_keep(mail)) {
        fact_keep(server, mail);
        return;
    }
    pthread_mutex_lock(&server->state_lock);
    char text[240];
    snprintf(text, sizeof text, "nothing can be stored: %s", server->store_trouble);
    pthread_mutex_unlock(&server->state_lock);
    mail_refuse(mail, ERR_UNAVAILABLE, text);
    mail_free(mail);
}

/* What engines were told goes beyond the rows as well: only a start compares both (recover.c). The
 * main thread takes the signal, and whoever supervises this process starts it again. */
void batch_failure_end(const struct server *server, const struct err *err)
{
    if (!store_is_behind(server->store) || atomic_load(&server->is_draining))
        return;
    log_error("server", "ending, to be started again: %s", err->text);
    kill(getpid(), SIGTERM);
}

/* The core has run ahead of the store. */
void batch_failure_all(struct server *server, const struct err *err)
{
    struct core_thread *core = &server->core;
    size_t count = core->batch_count;
    log_error("store", "cannot be written, requests are refused until it can: %s", err->text);
    server_trouble(server, server->store_trouble, err->text);
    atomic_store(&server->is_writable, false);
    core_free(core->core);
    core->core = NULL;
    core->batch_count = 0;
    unpurged_find(server, core->batch, count, err->code);
    for (size_t i = 0; i < count; i++)
        batch_failure_mail(server, core->batch[i]);
    batch_begin(core);
    barrier_clear(server->barriers, "nothing can be stored now");
    snapshots_refuse(&core->snapshots, "nothing can be stored now");
    core->probe_at_ms = clock_monotonic_ms() + PROBE_MS;
    batch_failure_end(server, err);
}

static void submission_log(const struct submission *submit, char *what, size_t size)
{
    cleanup_plan struct plan *plan = plan_decode(submit->plan_bytes, NULL);
    snprintf(what, size, "the submission of %.64s~%.90s", plan ? plan->user : "",
             plan ? plan->name : "");
}

static void set_aside_log(const struct server_mail *mail, const struct err *err)
{
    const struct event *event = &mail->event;
    char what[200];
    if (mail->kind != MAIL_EVENT)
        snprintf(what, sizeof what, "change %d", (int)mail->change.kind);
    else if (event->kind == EVENT_SUBMIT)
        submission_log(&event->submit, what, sizeof what);
    else if (mail_is_of_task(mail))
        snprintf(what, sizeof what, "event %s of attempt %llu, code %d", event_name(event->kind),
                 (unsigned long long)event->task.attempt.v, event->task.completion.code);
    else if ((event->kind >= EVENT_NODE && event->kind <= EVENT_NODE_PARDON) ||
             (event->kind >= EVENT_NODE_CORDON && event->kind <= EVENT_NODE_UNCORDON))
        snprintf(what, sizeof what, "event %s of node %.100s", event_name(event->kind),
                 event->node.name);
    else if (event->kind == EVENT_CLUSTER_CLOSE || event->kind == EVENT_CLUSTER_OPEN)
        snprintf(what, sizeof what, "event %s of %.100s", event_name(event->kind),
                 event->cluster.name);
    else
        snprintf(what, sizeof what, "event %s of job %u by %.60s", event_name(event->kind),
                 event->job.v, event->user[0] ? event->user : "the platform");
    log_error("store", "%s is set aside, what follows from it cannot be stored: %s", what,
              err->text);
}

/* A core that is made of the rows must not order again what ends like this again. */
static void end_set_aside(struct server *server, const struct server_mail *mail,
                          const struct err *err)
{
    const struct attempt_id attempt = mail->event.task.attempt;
    launcher_forget(server->launcher, mail->engine, attempt);
    quarantine_end(server, attempt, err);
}

/* This one alone cannot be stored, now or later. Whoever asked is told; a fact is forgotten, and
 * with it what it was about: a container of which nothing can be noted down must not stay. */
static void mail_set_aside(struct server *server, struct server_mail *mail, const struct err *err)
{
    const struct event *event = &mail->event;
    atomic_fetch_add(&server->metrics.set_aside, 1);
    set_aside_log(mail, err);
    struct err told;
    err_fail(&told, ERR_INTERNAL, "", "it cannot be stored: %.200s", err->text);
    mail_refuse(mail, told.code, told.text);
    if (mail_is_purge(mail))
        unpurged_add(server, event->job, err);
    else if (mail_is_end(mail))
        end_set_aside(server, mail, err);
    else if (mail_is_of_task(mail))
        launcher_kill(server->launcher, mail->engine, event->task.attempt);
    mail_free(mail);
}

/* Its first step has taken the plan. */
static bool mail_revive(struct server_mail *mail, struct err *err)
{
    struct submission *submit = &mail->event.submit;
    if (mail->kind == MAIL_EVENT && mail->event.kind == EVENT_SUBMIT && !mail->is_done &&
        !submit->plan)
        submit->plan = plan_decode(submit->plan_bytes, err);
    else
        return true;
    return submit->plan != NULL;
}

static void core_drop(struct server *server)
{
    batch_begin(&server->core);
    core_free(server->core.core);
    server->core.core = NULL;
}

static int batch_commit_told(struct server *server, bool is_mute, struct err *err)
{
    notices_mute(server->notices, is_mute);
    const int code = batch_commit(server, err);
    notices_mute(server->notices, false);
    return code;
}

/* The commit is refused: may a message be at fault? It hinders nothing (docs/rfc/0021), so that it
 * is given up. `mail`: what was stored alone; NULL: what has become due. */
static bool messages_give_up(const struct server *server, const struct server_mail *mail,
                             const struct err *err)
{
    const bool is_decision =
        mail && mail->kind == MAIL_CHANGE && mail->change.kind == CHANGE_REQUEST_ACT;
    const bool has_any =
        notices_change_count(server->notices) > 0 || (is_decision && mail->change.request.is_told);
    if (!has_any)
        return false;
    log_error("store",
              "a change is refused, and tried without its messages, which are not sent: %s",
              err->text);
    return true;
}

/* Every event would bring it along, so nobody else may pay for it: see quarantine.h. */
int batch_failure_due(struct server *server, struct err *err)
{
    enum { DUE_MAX = 100 }; /* steps of a pass, or timers; the next rounds have the rest */
    struct core_thread *core = &server->core;
    unsigned refusals = 0;
    bool is_mute = false;
    for (int i = 0; i < DUE_MAX; i++) {
        int code = core->core ? 0 : core_thread_renew(server, err);
        if (code < 0)
            return code;
        core_thread_timer(server);
        if (core->event_count == 0)
            return 0;
        code = batch_commit_told(server, is_mute, err);
        if (code == 0) {
            batch_carry_out(server);
            is_mute = false;
            continue;
        }
        bool goes_on = code == ERR_INTERNAL;
        if (goes_on && messages_give_up(server, NULL, err))
            is_mute = true;
        else
            goes_on = goes_on && (quarantine_find(server, &refusals, err) || unstored_find(server));
        core_drop(server);
        if (!goes_on)
            return code;
    }
    return core->core ? 0 : core_thread_renew(server, err);
}

/* A page of the database is damaged that nobody else needs: what can be asked for again is refused,
 * as for a row that is. A fact waits, as it would be forgotten. */
static bool is_damage_of_its_own(struct server *server, const struct server_mail *mail, int code)
{
    struct err err;
    return code == ERR_CORRUPT && (mail->is_request || mail_is_purge(mail)) &&
           core_thread_probe(server, &err) == 0;
}

/* One mail in a transaction of its own. *has_found: it is refused because of rows of nodes, or of a
 * job that a fact is not of, which are left out from now on. */
static int mail_step_alone(struct server *server, struct server_mail *mail, bool is_mute,
                           bool *has_found, struct err *err)
{
    *has_found = false;
    int code = batch_failure_due(server, err);
    if (code < 0)
        return code == ERR_INTERNAL ? err_fail(err, ERR_CORRUPT, "", "no core can be made") : code;
    if (!mail_revive(mail, err))
        return ERR_INTERNAL;
    core_thread_take(server, mail);
    code = batch_commit_told(server, is_mute, err);
    if (code == 0) {
        batch_carry_out(server);
        return 0;
    }
    if (code == ERR_INTERNAL)
        *has_found = unstored_find(server) || quarantine_other(server, mail);
    core_drop(server);
    return is_damage_of_its_own(server, mail, code) ? ERR_INTERNAL : code;
}

/* As often as that leaves out more, and once more without messages. */
static int mail_step(struct server *server, struct server_mail *mail, struct err *err)
{
    bool is_mute = false, has_found;
    for (;;) {
        const int code = mail_step_alone(server, mail, is_mute, &has_found, err);
        if (code != ERR_INTERNAL) /* a mail that is stored has been freed */
            return code;
        if (mail->kind == MAIL_BARRIER) /* changes no job and no node */
            return code;
        if (!has_found && (is_mute || !messages_give_up(server, mail, err)))
            return code;
        is_mute |= !has_found;
    }
}

/* A batch that the store refuses because of one row: which mail it comes from shows when each has
 * a transaction of its own, on a core made of the rows. That one is set aside, nobody else pays.
 * What has become due by itself goes first. */
void batch_failure_part(struct server *server, const struct err *why)
{
    struct core_thread *core = &server->core;
    size_t count = core->batch_count;
    cleanup_free struct server_mail **mails = mem_alloc(mem_size(count + 1, sizeof *mails));
    struct err err = *why;
    int code = 0;
    if (count > 0)
        log_warning("store", "a round of %zu is stored one by one: %s", count, err.text);
    barrier_clear(server->barriers, "ask again"); /* its reports have run ahead of the store, too */
    memcpy(mails, core->batch, count * sizeof *mails);
    core_drop(server);
    for (size_t i = 0; i < count; i++) {
        struct server_mail *mail = mails[i];
        if (code == 0 || code == ERR_INTERNAL)
            code = mail_step(server, mail, &err);
        if (code == ERR_INTERNAL && mail->has_change && mail->kind == MAIL_EVENT) {
            mail->has_change = false; /* a fact without what is kept beside it */
            code = mail_step(server, mail, &err);
        }
        if (code == ERR_INTERNAL)
            mail_set_aside(server, mail, &err);
        else if (code < 0)
            core->batch[core->batch_count++] = mail;
    }
    if (code == 0 || code == ERR_INTERNAL)
        code = batch_failure_due(server, &err);
    if (code < 0)
        batch_failure_all(server, &err);
}
