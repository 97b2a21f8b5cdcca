/* core_thread.c — the one thread that steps the core and writes the store.
 *
 * Round: take what has come, step through all of it, commit once; only then give the commands to
 * the launcher and the answers to those who wait. When the commit fails, the core has run ahead of
 * the store: it is thrown away, requests are refused, facts are kept, and once the store can be
 * written again a new core is made from its rows and steps through the facts.
 */
#include "base/err.h"
#include "base/memory.h"
#include "core/plan.h"
#include "hived/hived.h"
#include "placement/hived.h"
#include "server/clock.h"
#include "server/state.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { TRIAL_REST = 10 }; /* times as long as a trial took before the next one */

int64_t core_thread_now(struct server *server)
{
    struct server_clock *clock = &server->core.clock;
    int64_t now = server_clock_step(clock, clock_boot_ms(), clock_wall_ms());
    char text[200];

    if (clock->stepped_ms)
        log_warning("server",
                    "the machine's clock was set by %lld s: what waits goes by the time that has "
                    "passed, and times that are shown near the clock by a tenth of it",
                    (long long)clock->stepped_ms / 1000);
    clock->stepped_ms = 0;
    if (server_clock_warns(clock)) {
        server_clock_text(server_clock_behind_ms(clock), text, sizeof text);
        log_warning("server", "%s", text);
    }
    atomic_store(&server->metrics.clock_behind_ms, server_clock_behind_ms(clock));
    return now;
}

static uint64_t core_thread_random(void)
{
    uint64_t value;

    secret_random(&value, sizeof value);
    return value;
}

/* The log's row is made before the step: the plan is the core's afterwards. */
void core_thread_log(struct core_thread *core, const struct event *event)
{
    size_t begin = core->log.length;

    event_encode(event, &core->log);
    core->events[core->event_count++] = (struct store_event){
        .at_ms = event->now_ms,
        .kind = (uint8_t)event->kind,
        .body = {NULL, core->log.length - begin}, /* `at` when the buffer moves no more */
    };
}

static void core_thread_event(struct server *server, struct event *event)
{
    struct core_thread *core = &server->core;
    size_t record;

    event->now_ms = core_thread_now(server);
    event->random = core_thread_random();
    core_thread_log(core, event);
    record = core->output.records.count;
    core_step(core->core, event, &core->output);
    for (; record < core->output.records.count; record++)
        if (core->output.records.items[record].kind == RECORD_JOB_DELETED)
            id_map_set(&core->deleted, core->output.records.items[record].deleted.v, 1);
}

static void mail_reject(struct server_mail *mail, const struct err *err)
{
    mail->is_done = true;
    mail_answer(mail,
                &(struct service_answer){.code = err->code, .path = err->path, .text = err->text});
}

/* What the core does not know any more, the store does. Returns false after an answer. */
static bool prepare_submit(struct server *server, struct server_mail *mail)
{
    const struct plan *plan = mail->event.submit.plan;
    struct job_id job;
    struct err err;

    if (store_job_find(server->store, text_of(plan->user), text_of(plan->name), &job, NULL) < 0)
        return true;
    err_fail(&err, ERR_CONFLICT, "name", "job %.64s~%.120s exists already", plan->user, plan->name);
    mail_reject(mail, &err);
    return false;
}

/* The rows are as they were before this batch. */
static int job_still_there(const struct core_thread *core, struct job_id job, struct err *err)
{
    if (id_map_get(&core->deleted, job.v) == MAP_NONE)
        return 0;
    return err_fail(err, ERR_NOT_FOUND, "", "job %u has been deleted", job.v);
}

static bool prepare_start(struct server *server, struct server_mail *mail)
{
    struct store_job *row = ARENA_NEW(&mail->arena, struct store_job);
    struct recall *start = &mail->event.start;
    struct err err;
    int code = job_still_there(&server->core, start->job, &err);

    start->plan = NULL;
    start->record = NULL;
    if (code == 0)
        code = store_job_read(server->core.reader, start->job, &mail->arena, row, &err);
    if (code == 0 && row->record.state == LIFE_COMPLETED)
        code = store_job_plan(server->core.reader, start->job, &start->plan, &err);
    if (code == 0 && start->plan)
        start->record = &row->record;
    if (code == 0)
        return true;
    mail_reject(mail, &err);
    return false;
}

static bool prepare_delete(struct server *server, struct server_mail *mail)
{
    struct store_job row;
    struct err err;
    int code = job_still_there(&server->core, mail->event.job, &err);

    if (code == 0)
        code = store_job_summary(server->store, mail->event.job, &mail->arena, &row, &err);
    if (code == 0)
        return true;
    mail_reject(mail, &err);
    return false;
}

/* Of a disk that is nearly full, what would only fill it. */
static bool prepare_room(struct server *server, struct server_mail *mail)
{
    struct err err;

    if (!mail->reply.done || !event_grows(mail->event.kind) || server_room(server, &err) == 0)
        return true;
    mail_reject(mail, &err);
    return false;
}

/* After it the attempt has no container. */
static bool is_end(const struct event *event)
{
    return event->kind == EVENT_TASK_EXITED || event->kind == EVENT_TASK_REFUSED;
}

static bool is_of_task(enum event_kind kind)
{
    return (kind >= EVENT_TASK_PREPARING && kind <= EVENT_TASK_IDLE) || kind == EVENT_TASK_REFUSED;
}

/* An engine has no say in what runs on the nodes of another: what it has of that is an orphan. */
static bool is_of_other(struct server *server, const struct server_mail *mail)
{
    const struct event *event = &mail->event;
    const char *node;

    if (mail->engine == ENGINE_NONE || !is_of_task(event->kind))
        return false;
    node = core_attempt_node(server->core.core, event->task.attempt);
    return node && engine_of_node(server, node) != mail->engine;
}

static void other_refuse(struct server *server, struct server_mail *mail)
{
    const struct attempt_id attempt = mail->event.task.attempt;

    log_warning("engine", "%s tells of attempt %llu, which is another engine's: not believed",
                server->engines.items[mail->engine].name, (unsigned long long)attempt.v);
    mail->is_done = true;
    mail->has_change = false;
    if (is_end(&mail->event))
        launcher_forget(server->launcher, mail->engine, attempt);
    else
        launcher_kill(server->launcher, mail->engine, attempt);
}

static void core_thread_mail_event(struct server *server, struct server_mail *mail, size_t index)
{
    struct event *event = &mail->event;

    if (is_of_other(server, mail)) {
        other_refuse(server, mail);
        return;
    }
    if (!prepare_room(server, mail))
        return;
    if (event->kind == EVENT_SUBMIT && !prepare_submit(server, mail))
        return;
    if (event->kind == EVENT_START && !prepare_start(server, mail))
        return;
    if (event->kind == EVENT_DELETE && !prepare_delete(server, mail))
        return;
    event->request = mail->reply.done ? index + 1 : 0;
    core_thread_event(server, event);
    if (event->kind == EVENT_SUBMIT)
        event->submit.plan = NULL; /* taken */
    if (event->kind == EVENT_START)
        event->start.plan = NULL;
}

/* Why the core refused the event that it stepped through last, as `request`; NULL: it did not. */
static const struct answer *core_refusal(const struct core_thread *core, uint64_t request)
{
    for (size_t i = core->output.answers.count; i > 0; i--) {
        const struct answer *answer = &core->output.answers.items[i - 1];
        if (answer->request == request && answer->code < 0)
            return answer;
    }
    return NULL;
}

static void core_thread_mail_config(struct server *server, struct server_mail *mail, size_t index)
{
    struct server_config *config = mail->config;
    struct event event = {
        .kind = EVENT_CONFIG, .user = "", .config = &config->core, .request = index + 1};
    const struct answer *refusal;
    struct err err;

    core_thread_event(server, &event);
    refusal = core_refusal(&server->core, event.request);
    if (refusal) {
        mail->is_done = true;
        log_error("config", "the configuration stays as it was: %s: %s",
                  refusal->path ? refusal->path : "", refusal->text ? refusal->text : "");
        return;
    }
    if (server_rules_load(server, config->exit_rules_path, &err) < 0)
        log_error("server", "the exit rules stay as they were: %s", err.text);
    hang_watch_configure(server->hang_watch, config->hang_after_s);
    mail->is_done = true;
    /* freed with the mail; the engines borrow the first */
    mail->config = server->config == server->engines.config ? NULL : server->config;
    server->config = config;
    server->core.upkeep_at_ms = mailbox_now_ms(); /* retention may have changed */
}

static void snapshot_make(const struct core *core, struct service_snapshot *snapshot)
{
    int64_t begin_us = clock_us();
    const struct hived *hived = placer_hived_state(core_placer(core));
    if (hived)
        snapshot->hived = hived_copy(hived);
    snapshot->node_count = core_node_count(core);
    snapshot->nodes = mem_alloc(mem_size(snapshot->node_count + 1u, sizeof *snapshot->nodes));
    for (uint32_t i = 0; i < snapshot->node_count; i++)
        snapshot->nodes[i] = core_node_use(core, (struct node_id){i});
    snapshot->cost_us = clock_us() - begin_us;
}

static void core_thread_take(struct server *server, struct server_mail *mail)
{
    size_t index = server->core.batch_count;

    server->core.batch[server->core.batch_count++] = mail;
    if (mail->is_done)
        return;
    switch (mail->kind) {
    case MAIL_EVENT:
        core_thread_mail_event(server, mail, index);
        break;
    case MAIL_CONFIG:
        core_thread_mail_config(server, mail, index);
        break;
    case MAIL_CHANGE:   /* within the transaction */
    case MAIL_BARRIER:  /* when all records of the round are known */
    case MAIL_SNAPSHOT: /* after it */
    case MAIL_TRIAL:
        break;
    }
}

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
        barrier_report(server->barriers, &mail->barrier, reply, &core->output);
    }
}

/* The batch's changes in one array, in order, and behind them those of the barriers. */
static struct store_change *batch_changes(struct server *server, size_t *count)
{
    struct core_thread *core = &server->core;
    size_t passed = barrier_change_count(server->barriers);
    struct store_change *changes =
        arena_array(&core->scratch, core->batch_count + passed + 1, sizeof *changes);

    *count = 0;
    for (size_t i = 0; i < core->batch_count; i++) {
        struct server_mail *mail = core->batch[i];
        if (!mail->has_change)
            continue;
        changes[*count] = mail->change;
        changes[(*count)++].err = &mail->change_err;
    }
    barrier_changes(server->barriers, changes + *count);
    *count += passed;
    return changes;
}

int core_thread_commit(struct server *server, struct err *err)
{
    struct core_thread *core = &server->core;
    struct store_batch batch = {
        .events = core->events, .event_count = core->event_count, .output = &core->output};
    const char *at = buf_cstr(&core->log);
    int64_t begin_us = clock_us();
    int code;

    for (size_t i = 0; i < core->event_count; i++) {
        core->events[i].body.at = at;
        at += core->events[i].body.length;
    }
    batch_barriers(server);
    batch.changes = batch_changes(server, &batch.change_count);
    if (batch.event_count == 0 && batch.change_count == 0 && core->output.records.count == 0)
        return 0;
    code = store_commit(server->store, &batch, err);
    histogram_add(&server->metrics.commit, clock_us() - begin_us);
    if (code < 0)
        return code;
    for (size_t i = 0, c = 0; i < core->batch_count; i++)
        if (core->batch[i]->has_change)
            core->batch[i]->change.code = batch.changes[c++].code;
    atomic_fetch_add(&server->metrics.batches, 1);
    atomic_fetch_add(&server->metrics.batch_mails, core->batch_count);
    return 0;
}

static void batch_snapshot(struct server *server, struct server_mail *mail)
{
    snapshot_make(server->core.core, mail->snapshot);
    mail_answer(mail, &(struct service_answer){.path = "", .text = ""});
}

/* Copying the core takes its time: no more than a tenth of it may go there. */
static void batch_trial(struct server *server, struct server_mail *mail)
{
    struct core_thread *core = &server->core;
    struct event *event = &mail->event;
    int64_t begin_us = clock_us();
    struct err err = {0};
    int code;

    if (begin_us < core->trial_at_us) {
        mail_refuse(mail, ERR_BUSY, "others try jobs just now: ask again");
        return;
    }
    if (!prepare_submit(server, mail))
        return;
    event->now_ms = core_thread_now(server);
    event->random = core_thread_random();
    code = core_trial(core->core, event, mail->trial_arena, mail->trial, &err);
    core->trial_at_us = clock_us() + TRIAL_REST * (clock_us() - begin_us);
    mail_answer(mail, &(struct service_answer){.code = code, .path = err.path, .text = err.text});
}

static void batch_answer(struct server *server)
{
    struct core_thread *core = &server->core;

    for (size_t i = 0; i < core->output.answers.count; i++) {
        const struct answer *answer = &core->output.answers.items[i];
        if (answer->request == 0 || answer->request > core->batch_count)
            continue;
        mail_answer(core->batch[answer->request - 1],
                    &(struct service_answer){.code = answer->code,
                                             .job = answer->job,
                                             .path = answer->path ? answer->path : "",
                                             .text = answer->text ? answer->text : ""});
    }
    for (size_t i = 0; i < core->batch_count; i++) {
        struct server_mail *mail = core->batch[i];
        if (mail->kind == MAIL_CHANGE)
            mail_answer(mail, &(struct service_answer){
                                  .code = mail->change.code,
                                  .path = "",
                                  .text = mail->change.code < 0 ? mail->change_err.text : ""});
        else if (mail->kind == MAIL_SNAPSHOT)
            batch_snapshot(server, mail);
        else if (mail->kind == MAIL_TRIAL)
            batch_trial(server, mail);
        else if (mail->reply.done)
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
        if (mail->kind != MAIL_EVENT || mail->is_done || !is_end(&mail->event) ||
            id_map_get(&known, attempt.v) != MAP_NONE)
            continue;
        leftover_take(server, mail->engine, attempt, false);
    }
}

void core_thread_commands(struct server *server)
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

static bool has_job_records(const struct output *output)
{
    for (size_t i = 0; i < output->records.count; i++)
        if (output->records.items[i].kind != RECORD_NODE)
            return true;
    return false;
}

void core_thread_batch_begin(struct core_thread *core)
{
    output_clear(&core->output);
    arena_clear(&core->scratch);
    buf_clear(&core->log);
    core->batch_count = core->event_count = 0;
    id_map_release(&core->deleted);
}

static void batch_end(struct server *server)
{
    struct core_thread *core = &server->core;
    int64_t now_us = clock_us();

    for (size_t i = 0; i < core->batch_count; i++) {
        if (core->batch[i]->is_request)
            histogram_add(&server->metrics.request, now_us - core->batch[i]->posted_us);
        mail_free(core->batch[i]);
    }
    core_thread_batch_begin(core);
}

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
    if (mail->kind == MAIL_EVENT && is_end(&mail->event))
        log_debug("store", "attempt %llu has ended, which cannot be stored yet",
                  (unsigned long long)mail->event.task.attempt.v);
}

static void refuse_or_keep(struct server *server, struct server_mail *mail)
{
    char text[240];

    if (!mail->reply.done &&
        (mail->kind == MAIL_EVENT || (mail->kind == MAIL_CONFIG && !mail->is_done))) {
        fact_keep(server, mail);
        return;
    }
    pthread_mutex_lock(&server->state_lock);
    snprintf(text, sizeof text, "nothing can be stored: %s", server->store_trouble);
    pthread_mutex_unlock(&server->state_lock);
    mail_refuse(mail, ERR_UNAVAILABLE, text);
    mail_free(mail);
}

/* The core has run ahead of the store. */
static void batch_fail(struct server *server, const struct err *err)
{
    struct core_thread *core = &server->core;
    size_t count = core->batch_count;

    log_error("store", "cannot be written, requests are refused until it can: %s", err->text);
    server_trouble(server, server->store_trouble, err->text);
    atomic_store(&server->is_writable, false);
    core_free(core->core);
    core->core = NULL;
    core->batch_count = 0;
    for (size_t i = 0; i < count; i++)
        refuse_or_keep(server, core->batch[i]);
    core_thread_batch_begin(core);
    barrier_clear(server->barriers, "nothing can be stored now");
    core->probe_at_ms = mailbox_now_ms() + PROBE_MS;
}

/* What follows a commit. */
static void batch_carry_out(struct server *server)
{
    struct core_thread *core = &server->core;

    core_thread_commands(server);
    hang_watch_take(server->hang_watch, core->output.records.items, core->output.records.count);
    batch_forget(server); /* first: who has an answer may count on what came before it */
    batch_answer(server);
    barrier_answer(server->barriers);
    if (has_job_records(&core->output))
        server_notify(server);
    pthread_mutex_lock(&server->state_lock);
    core_count(core->core, &server->counts);
    pthread_mutex_unlock(&server->state_lock);
    batch_end(server);
}

/* A core of the rows takes the place of one that has run ahead of them. */
static int core_thread_renew(struct server *server, struct err *err)
{
    const struct output *output = &server->core.output;
    int code;

    core_free(server->core.core);
    server->core.core = NULL;
    code = server_restore(server, err);
    if (code < 0)
        return code;
    core_thread_commands(server);
    if (has_job_records(output))
        server_notify(server);
    core_thread_batch_begin(&server->core);
    return 0;
}

static void submission_log(const struct submission *submit, char *what, size_t size)
{
    struct plan *plan = plan_decode(submit->plan_bytes, NULL);

    snprintf(what, size, "the submission of %.64s~%.90s", plan ? plan->user : "",
             plan ? plan->name : "");
    plan_free(plan);
}

static void set_aside_log(const struct server_mail *mail, const struct err *err)
{
    const struct event *event = &mail->event;
    char what[200];

    if (mail->kind != MAIL_EVENT)
        snprintf(what, sizeof what, "change %d", (int)mail->change.kind);
    else if (event->kind == EVENT_SUBMIT)
        submission_log(&event->submit, what, sizeof what);
    else if (is_of_task(event->kind))
        snprintf(what, sizeof what, "event %s of attempt %llu, code %d", event_name(event->kind),
                 (unsigned long long)event->task.attempt.v, event->task.completion.code);
    else if (event->kind >= EVENT_NODE && event->kind <= EVENT_NODE_PARDON)
        snprintf(what, sizeof what, "event %s of node %.100s", event_name(event->kind),
                 event->node.name);
    else
        snprintf(what, sizeof what, "event %s of job %u by %.60s", event_name(event->kind),
                 event->job.v, event->user[0] ? event->user : "the platform");
    log_error("store", "%s is set aside, what follows from it cannot be stored: %s", what,
              err->text);
}

/* This one alone cannot be stored, now or later. Whoever asked is told; a fact is forgotten, and
 * with it what it was about: a container of which nothing can be noted down must not stay. */
static void mail_set_aside(struct server *server, struct server_mail *mail, const struct err *err)
{
    const struct event *event = &mail->event;
    struct err told;

    atomic_fetch_add(&server->metrics.set_aside, 1);
    set_aside_log(mail, err);
    err_fail(&told, ERR_INTERNAL, "", "it cannot be stored: %.200s", err->text);
    mail_refuse(mail, told.code, told.text);
    if (mail->kind == MAIL_EVENT && is_end(event))
        launcher_forget(server->launcher, mail->engine, event->task.attempt);
    else if (mail->kind == MAIL_EVENT && is_of_task(event->kind))
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

/* One mail in a transaction of its own. A fact may have to do without what is kept beside it. */
static int mail_step_alone(struct server *server, struct server_mail *mail, struct err *err)
{
    int code = server->core.core ? 0 : core_thread_renew(server, err);

    if (code < 0)
        return code == ERR_INTERNAL ? err_fail(err, ERR_CORRUPT, "", "no core can be made") : code;
    if (!mail_revive(mail, err))
        return ERR_INTERNAL;
    core_thread_take(server, mail);
    code = core_thread_commit(server, err);
    if (code == 0) {
        batch_carry_out(server);
        return 0;
    }
    core_thread_batch_begin(&server->core);
    core_free(server->core.core);
    server->core.core = NULL;
    return code;
}

/* A batch that the store refuses because of one row: which mail it comes from shows when each has
 * a transaction of its own, on a core made of the rows. That one is set aside, nobody else pays. */
static void batch_part(struct server *server, const struct err *why)
{
    struct core_thread *core = &server->core;
    size_t count = core->batch_count;
    struct server_mail **mails = mem_alloc(mem_size(count, sizeof *mails));
    struct err err = *why;
    int code = 0;

    log_warning("store", "a round of %zu is stored one by one: %s", count, err.text);
    barrier_clear(server->barriers, "ask again"); /* its reports have run ahead of the store, too */
    memcpy(mails, core->batch, count * sizeof *mails);
    core_thread_batch_begin(core);
    core_free(core->core);
    core->core = NULL;
    for (size_t i = 0; i < count; i++) {
        struct server_mail *mail = mails[i];
        if (code == 0 || code == ERR_INTERNAL)
            code = mail_step_alone(server, mail, &err);
        if (code == ERR_INTERNAL && mail->has_change && mail->kind == MAIL_EVENT) {
            mail->has_change = false;
            code = mail_step_alone(server, mail, &err);
        }
        if (code == ERR_INTERNAL)
            mail_set_aside(server, mail, &err);
        else if (code < 0)
            core->batch[core->batch_count++] = mail;
    }
    mem_free(mails);
    if (code == ERR_INTERNAL)
        code = core_thread_renew(server, &err);
    if (code < 0)
        batch_fail(server, &err);
}

static void batch_finish(struct server *server)
{
    struct err err;
    int code = core_thread_commit(server, &err);

    if (code == 0)
        batch_carry_out(server);
    else if (code == ERR_INTERNAL && server->core.batch_count > 0)
        batch_part(server, &err);
    else
        batch_fail(server, &err);
}

static void core_thread_timer(struct server *server)
{
    struct event event = {.kind = EVENT_TIMER, .user = ""};

    if (server->core.wake_ms == 0 || core_thread_now(server) < server->core.wake_ms)
        return;
    server->core.wake_ms = 0;
    core_thread_event(server, &event);
}

/* Room for BATCH_MAX mails, the timer, and what a restore has kept. */
static void batch_of(struct server *server, struct server_mail *mails)
{
    while (mails && server->core.core) {
        for (size_t i = 0; mails && i < BATCH_MAX; i++) {
            struct server_mail *next = (struct server_mail *)(void *)mails->mail.next;
            core_thread_take(server, mails);
            mails = next;
        }
        batch_finish(server);
    }
    while (mails) {
        struct server_mail *next = (struct server_mail *)(void *)mails->mail.next;
        refuse_or_keep(server, mails);
        mails = next;
    }
}

static int store_probe(struct server *server, struct err *err)
{
    struct store_change change = {.kind = CHANGE_SETTING,
                                  .setting = {"store.probe", TEXT("written")}};
    struct store_batch batch = {.changes = &change, .change_count = 1};

    return store_commit(server->store, &batch, err);
}

/* Can the store be written again? Then a new core steps through what has been kept. */
static void core_thread_recover(struct server *server)
{
    struct core_thread *core = &server->core;
    struct server_mail *facts;
    struct err err;
    int code;

    if (mailbox_now_ms() < core->probe_at_ms)
        return;
    core->probe_at_ms = mailbox_now_ms() + PROBE_MS;
    code = store_probe(server, &err);
    if (code == 0)
        code = core_thread_renew(server, &err);
    if (code < 0) {
        server_trouble(server, server->store_trouble, err.text);
        return;
    }
    log_info("store", "can be written again");
    store_make_room(server->store);
    atomic_store(&server->is_writable, true);
    server_trouble(server, server->store_trouble, "");
    facts = core->first_fact;
    core->first_fact = NULL;
    core->last_fact = &core->first_fact;
    atomic_store(&server->metrics.facts_kept, 0);
    batch_of(server, facts);
}

/* Is there room for the store's reserve again? */
static void core_thread_make_room(struct server *server)
{
    struct core_thread *core = &server->core;

    if (!store_is_short(server->store) || mailbox_now_ms() < core->probe_at_ms)
        return;
    core->probe_at_ms = mailbox_now_ms() + PROBE_MS;
    store_make_room(server->store);
}

static int64_t core_thread_deadline(struct server *server)
{
    const struct core_thread *core = &server->core;
    int64_t now = mailbox_now_ms(), deadline = core->upkeep_at_ms;

    if (store_is_short(server->store) && core->probe_at_ms < deadline)
        deadline = core->probe_at_ms;
    if (!core->core)
        return core->probe_at_ms < deadline ? core->probe_at_ms : deadline;
    if (core->wake_ms) {
        int64_t wait = core->wake_ms - core_thread_now(server);
        int64_t wake = now + (wait > 0 ? wait : 0);
        if (wake < deadline)
            deadline = wake;
    }
    return deadline;
}

/* Engines that were opened after the start. One may hold numbers that this store has not given: a
 * core of the rows counts on from there, before the engine is told anything. */
static void core_thread_engines(struct server *server)
{
    for (size_t i = 0; i < server->engines.count && server->core.core; i++) {
        struct server_engine *own = &server->engines.items[i];
        struct err err;
        bool has_begun;
        if (own->is_settled || !atomic_load(&own->engine))
            continue;
        if (server_engine_epoch(server, own, &has_begun, &err) < 0 ||
            (has_begun && core_thread_renew(server, &err) < 0)) {
            batch_fail(server, &err);
            return;
        }
        server_reconcile(server, own);
    }
}

static void *core_thread_run(void *argument)
{
    struct server *server = argument;
    struct core_thread *core = &server->core;

    for (;;) {
        struct mail *mails =
            mailbox_take(&server->mailbox, BATCH_MAX, core_thread_deadline(server));
        atomic_store(&server->core_seen_ms, mailbox_now_ms());
        if (!mails && !atomic_load(&core->is_running))
            break;
        batch_of(server, (struct server_mail *)(void *)mails);
        if (!core->core) {
            core_thread_recover(server);
            continue;
        }
        core_thread_engines(server);
        if (!core->core)
            continue;
        core_thread_make_room(server);
        core_thread_timer(server);
        if (core->event_count > 0)
            batch_finish(server);
        if (core->core && mailbox_now_ms() >= core->upkeep_at_ms) {
            core->upkeep_at_ms = mailbox_now_ms() + UPKEEP_MS;
            leftover_retry(server);
            batch_of(server, server_upkeep(server));
        }
    }
    barrier_clear(server->barriers, "the server is ending");
    return NULL;
}

void core_thread_start(struct server *server)
{
    struct core_thread *core = &server->core;

    atomic_store(&server->core_seen_ms, mailbox_now_ms());
    core->begin_ms = mailbox_now_ms();
    core->upkeep_at_ms = core->begin_ms + UPKEEP_MS;
    atomic_store(&core->is_running, true);
    if (pthread_create(&core->thread, NULL, core_thread_run, server) != 0)
        abort(); /* at start, before anything was accepted */
}

void core_thread_join(struct server *server)
{
    if (!atomic_load(&server->core.is_running))
        return;
    /* in this order: whatever was posted before the end is still taken */
    mailbox_close(&server->mailbox);
    atomic_store(&server->core.is_running, false);
    mailbox_wake(&server->mailbox);
    pthread_join(server->core.thread, NULL);
}
