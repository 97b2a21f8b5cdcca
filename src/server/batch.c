#include "server/batch.h"
#include "base/err.h"
#include "server/snapshot.h"
#include "server/state.h"
#include "sys/clock.h"

/* The tasks that came and those that ended in this round. A report's reply may wait: it is the
 * barrier's from here on. */
static void batch_barriers(struct server *server)
{
    struct core_thread *core = &server->core;
    barrier_take(server->barriers, core->output.records.items, core->output.records.count);
    for (size_t i = 0; i < core->batch_count; i++) {
        struct server_mail *mail = core->batch[i];
        struct service_reply reply = mail->reply;
        if (mail->kind != MAIL_BARRIER || mail->is_done)
            continue;
        mail->reply.done = NULL;
        mail->is_done = true;
        barrier_report(server->barriers, core->core, &mail->barrier, reply, &core->output);
    }
}

/* What the core has answered goes into the audit records of those who asked. */
static void batch_outcomes(struct core_thread *core)
{
    for (size_t i = 0; i < core->output.answers.count; i++) {
        const struct answer *answer = &core->output.answers.items[i];
        if (answer->request > 0 && answer->request <= core->batch_count)
            mail_outcome(core->batch[answer->request - 1], answer->code, answer->text);
    }
}

/* The batch's changes in one array, in order; behind them those of the barriers, and the audit
 * records of what was no change. */
static struct store_change *batch_changes(struct server *server, size_t *count)
{
    struct core_thread *core = &server->core;
    size_t passed = barrier_change_count(server->barriers);
    const size_t notices = notices_change_count(server->notices);
    struct store_change *changes =
        arena_array(&core->scratch, core->batch_count + passed + notices + 1, sizeof *changes);
    *count = 0;
    for (size_t i = 0; i < core->batch_count; i++) {
        struct server_mail *mail = core->batch[i];
        if (!mail->has_change)
            continue;
        if (mail->change.kind == CHANGE_REQUEST_ACT)
            mail->change.request.is_told =
                server->config->notify.has_smtp && !notices_are_mute(server->notices);
        changes[*count] = mail->change;
        changes[*count].audit = mail->audit;
        changes[(*count)++].err = &mail->change_err;
    }
    barrier_changes(server->barriers, changes + *count);
    *count += passed;
    notices_changes(server->notices, changes + *count);
    *count += notices;
    batch_outcomes(core);
    for (size_t i = 0; i < core->batch_count; i++) {
        const struct server_mail *mail = core->batch[i];
        if (mail->audit && !mail->has_change)
            changes[(*count)++] = (struct store_change){.kind = CHANGE_AUDIT, .audit = mail->audit};
    }
    return changes;
}

/* Somebody is told of a request. */
static bool has_decision(const struct core_thread *core)
{
    for (size_t i = 0; i < core->batch_count; i++) {
        const struct server_mail *mail = core->batch[i];
        if (mail->has_change && mail->change.kind == CHANGE_REQUEST_ACT &&
            mail->change.request.is_told && mail->change.code == 0)
            return true;
    }
    return false;
}

int batch_commit(struct server *server, struct err *err)
{
    struct core_thread *core = &server->core;
    struct store_batch batch = {.events = core->events, .event_count = core->event_count};
    const char *at = buf_cstr(&core->log);
    int64_t begin_us = clock_monotonic_us();
    for (size_t i = 0; i < core->event_count; i++) {
        core->events[i].body.at = at;
        at += core->events[i].body.length;
    }
    batch_barriers(server);
    notices_take(server->notices, &server->config->notify, server->config->core.debug_hold_s,
                 core->output.records.items, core->output.records.count);
    batch.changes = batch_changes(server, &batch.change_count);
    batch.output = unstored_pass(server);
    if (batch.event_count == 0 && batch.change_count == 0 && batch.output->records.count == 0)
        return 0;
    const int code = store_commit(server->store, &batch, err);
    histogram_add(&server->metrics.commit, clock_monotonic_us() - begin_us);
    if (code < 0)
        return code;
    for (size_t i = 0, c = 0; i < core->batch_count; i++)
        if (core->batch[i]->has_change)
            core->batch[i]->change.code = batch.changes[c++].code;
    if (notices_committed(server->notices) || has_decision(core))
        notify_watch_wake(server->notify_watch);
    atomic_fetch_add(&server->metrics.batches, 1);
    atomic_fetch_add(&server->metrics.batch_mails, core->batch_count);
    return 0;
}

static void batch_answer(struct server *server)
{
    struct core_thread *core = &server->core;
    for (size_t i = 0; i < core->output.answers.count; i++) {
        const struct answer *answer = &core->output.answers.items[i];
        if (answer->request == 0 || answer->request > core->batch_count)
            continue;
        for (struct server_mail *mail = core->batch[answer->request - 1]; mail; mail = mail->repeat)
            mail_answer(mail, &(struct service_answer){.code = answer->code,
                                                       .job = answer->job,
                                                       .path = answer->path ? answer->path : "",
                                                       .text = answer->text ? answer->text : ""});
    }
    for (size_t i = 0; i < core->batch_count; i++) {
        struct server_mail *mail = core->batch[i];
        if (mail->kind == MAIL_CHANGE)
            mail_answer(mail, &(struct service_answer){
                                  .code = mail->change.code,
                                  .path = mail->change.code < 0 ? mail->change_err.path : "",
                                  .text = mail->change.code < 0 ? mail->change_err.text : ""});
        else if (mail->reply.done && mail->kind != MAIL_SNAPSHOT && mail->kind != MAIL_TRIAL)
            mail_refuse(mail, ERR_INTERNAL, "the core gave no answer");
    }
}

/* An exit of which the core knew nothing (told again after a restart, or of an orphan): it gives no
 * command for it, and the store says whether the container is held for debugging. */
static void batch_forget(struct server *server)
{
    struct core_thread *core = &server->core;
    cleanup_id_map struct id_map known = {0};
    for (size_t i = 0; i < core->output.records.count; i++) {
        const struct record *record = &core->output.records.items[i];
        if (record->kind == RECORD_TASK && record->task.attempt.v)
            id_map_set(&known, record->task.attempt.v, 1);
    }
    for (size_t i = 0; i < core->batch_count; i++) {
        const struct server_mail *mail = core->batch[i];
        struct attempt_id attempt = mail->event.task.attempt;
        if (mail->is_done || !mail_is_end(mail) || id_map_get(&known, attempt.v) != MAP_NONE)
            continue;
        leftover_take(server, mail->engine, attempt, false);
    }
}

void batch_commands(struct server *server)
{
    struct core_thread *core = &server->core;
    for (size_t i = 0; i < core->output.commands.count; i++)
        if (core->output.commands.items[i].kind == COMMAND_WAKE)
            core->wake_ms = core->output.commands.items[i].at_ms;
    for (size_t i = 0; i < core->output.trace.count; i++)
        log_debug("core", "%s", core->output.trace.items[i]);
    server_past_creates_drop(server);
    launcher_take(server->launcher, &core->output);
}

void batch_tell(struct server *server)
{
    struct core_thread *core = &server->core;
    const uint64_t number = store_news_number(server->store);
    const bool is_news = number != core->told_news || core->output.records.count > 0;
    core->told_news = number;
    if (is_news)
        server_notify(server);
}

void batch_begin(struct core_thread *core)
{
    output_clear(&core->output);
    arena_clear(&core->scratch);
    buf_clear(&core->log);
    core->batch_count = core->event_count = 0;
    id_map_release(&core->written);
}

static void batch_end(struct server *server)
{
    struct core_thread *core = &server->core;
    int64_t now_us = clock_monotonic_us();
    for (size_t i = 0; i < core->batch_count; i++) {
        struct server_mail *mail = core->batch[i];
        if (mail->kind == MAIL_SNAPSHOT) {
            snapshots_add(&core->snapshots, mail);
            continue;
        }
        if (mail->kind == MAIL_TRIAL) {
            trials_take(server->trials, mail);
            continue;
        }
        if (mail->is_request)
            histogram_add(&server->metrics.request, now_us - mail->posted_us);
        mail_free(mail);
    }
    batch_begin(core);
}

/* Who may have lost tokens, or the rights of an admin, by it; "": the members of a group; NULL:
 * nobody. */
static const char *revoked_user(const struct store_change *change)
{
    const bool is_set = change->kind == CHANGE_USER_SET;
    const unsigned ending =
        USER_INACTIVE | USER_PASSWORD | USER_IDENTITY | USER_ADMIN | USER_GROUPS;
    if (change->code)
        return NULL;
    if (change->kind == CHANGE_MEMBER_REMOVE)
        return change->member.user;
    if (change->kind == CHANGE_GROUP_REMOVE ||
        (change->kind == CHANGE_GROUP_SET && (!change->fields || (change->fields & GROUP_ADMIN))))
        return "";
    if (change->kind == CHANGE_USER_REMOVE || (is_set && (change->fields & ending)) ||
        (is_set && !change->fields))
        return change->user.name;
    /* a login may end the oldest one */
    if (change->kind == CHANGE_TOKEN_REMOVE || change->kind == CHANGE_TOKENS_REMOVE ||
        (change->kind == CHANGE_TOKEN_ADD && !change->token.is_application))
        return change->token.user;
    return NULL;
}

static void batch_revoke(struct server *server)
{
    struct core_thread *core = &server->core;
    for (size_t i = 0; i < core->batch_count; i++) {
        const char *user =
            core->batch[i]->has_change ? revoked_user(&core->batch[i]->change) : NULL;
        if (user)
            server_revoked(server, user);
    }
}

/* What follows a commit. */
void batch_carry_out(struct server *server)
{
    struct core_thread *core = &server->core;
    batch_commands(server);
    hang_watch_take(server->hang_watch, core->output.records.items, core->output.records.count);
    use_watch_take(server->use_watch, core->output.records.items, core->output.records.count);
    alert_watch_take(server->alert_watch, core->output.records.items, core->output.records.count);
    batch_forget(server); /* first: who has an answer may count on what came before it */
    batch_revoke(server);
    batch_answer(server);
    barrier_answer(server->barriers);
    batch_tell(server);
    pthread_mutex_lock(&server->state_lock);
    core_count(core->core, &server->counts);
    pthread_mutex_unlock(&server->state_lock);
    batch_end(server);
}
