/* core_thread.c — the one thread that steps the core and writes the store.
 *
 * Round: take what has come, step through all of it, commit once; only then give the commands to
 * the launcher and the answers to those who wait. When the commit fails, the core has run ahead of
 * the store: it is thrown away, requests are refused, facts are kept, and once the store can be
 * written again a new core is made from its rows and steps through the facts.
 */
#include "base/err.h"
#include "core/plan.h"
#include "server/admission.h"
#include "server/batch.h"
#include "server/batch_failure.h"
#include "server/clock.h"
#include "server/snapshot.h"
#include "server/state.h"
#include "server/submit_key.h"
#include "sys/clock.h"

int64_t core_thread_now(struct server *server)
{
    struct server_clock *clock = &server->core.clock;
    int64_t now = server_clock_step(clock, clock_boot_ms(), clock_unix_ms());
    if (clock->stepped_ms)
        log_warning("server",
                    "the machine's clock was set by %lld s: what waits goes by the time that has "
                    "passed, and times that are shown near the clock by a tenth of it",
                    (long long)clock->stepped_ms / 1000);
    clock->stepped_ms = 0;
    char text[200];
    if (server_clock_warns(clock)) {
        server_clock_text(server_clock_behind_ms(clock), text, sizeof text);
        log_warning("server", "%s", text);
    }
    atomic_store(&server->metrics.clock_behind_ms, server_clock_behind_ms(clock));
    server_clock_publish(server);
    return now;
}

uint64_t core_thread_random(void)
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

static void job_written(struct core_thread *core, const struct record *record)
{
    if (record->kind == RECORD_JOB)
        id_map_set(&core->written, record->job.id.v, 1);
    else if (record->kind == RECORD_JOB_DELETED)
        id_map_set(&core->written, record->deleted.v, 1);
}

/* Once what runs has been told to the placer of the policy that was asked for. */
static void policy_tell(struct server *server)
{
    struct core_thread *core = &server->core;
    if (!core->is_policy_awaited || core_policy_changes(core->core))
        return;
    core->is_policy_awaited = false;
    log_info("config", "the policy %s and its virtual clusters are in force",
             server->config->core.policy);
}

static void core_thread_event(struct server *server, struct event *event)
{
    struct core_thread *core = &server->core;
    event->now_ms = core_thread_now(server);
    event->random = core_thread_random();
    core_thread_log(core, event);
    size_t record = core->output.records.count;
    atomic_fetch_add(&core->version, 1);
    core_step(core->core, event, &core->output);
    policy_tell(server);
    for (; record < core->output.records.count; record++)
        job_written(core, &core->output.records.items[record]);
}

/* An engine has no say in what runs on the nodes of another: what it has of that is an orphan. */
static bool is_of_other(struct server *server, const struct server_mail *mail)
{
    const struct event *event = &mail->event;
    if (mail->engine == ENGINE_NONE || !mail_is_of_task(mail))
        return false;
    const char *node = core_attempt_node(server->core.core, event->task.attempt);
    return node && engine_of_node(server, node) != mail->engine;
}

static void other_refuse(struct server *server, struct server_mail *mail)
{
    const struct attempt_id attempt = mail->event.task.attempt;
    log_warning("engine", "%s tells of attempt %llu, which is another engine's: not believed",
                server->engines.items[mail->engine].name, (unsigned long long)attempt.v);
    mail->is_done = true;
    mail->has_change = false;
    if (mail_is_end(mail))
        launcher_forget(server->launcher, mail->engine, attempt);
    else
        launcher_kill(server->launcher, mail->engine, attempt);
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

static void core_thread_mail_event(struct server *server, struct server_mail *mail, size_t index)
{
    struct event *event = &mail->event;
    if (is_of_other(server, mail)) {
        other_refuse(server, mail);
        return;
    }
    if (!admission_pass(server, mail))
        return;
    event->request = mail->reply.done ? index + 1 : 0;
    core_thread_event(server, event);
    const bool is_refused = core_refusal(&server->core, event->request);
    if (mail->quota && is_refused)
        mail->quota->live_jobs = mail->quota->gpus = mail->quota->stored_jobs = 0;
    if (mail->submit_key && !is_refused)
        submit_key_keep(&server->core, mail);
    if (event->kind == EVENT_SUBMIT)
        event->submit.plan = NULL; /* taken */
    if (event->kind == EVENT_START)
        event->start.plan = NULL;
}

static void core_thread_mail_config(struct server *server, struct server_mail *mail, size_t index)
{
    struct server_config *config = mail->config;
    struct event event = {.kind = EVENT_CONFIG,
                          .user = "",
                          .config = &config->core,
                          .placer = mail->placer,
                          .request = index + 1};
    mail->placer = NULL;
    core_thread_event(server, &event);
    const struct answer *refusal = core_refusal(&server->core, event.request);
    if (refusal) {
        mail->is_done = true;
        log_error("config", "the configuration stays as it was: %s: %s",
                  refusal->path ? refusal->path : "", refusal->text ? refusal->text : "");
        return;
    }
    struct err err;
    if (server_rules_load(server, config->exit_rules_path, &err) < 0)
        log_error("server", "the exit rules stay as they were: %s", err.text);
    hang_watch_configure(server->hang_watch, config->hang_after_s);
    use_watch_configure(server->use_watch, config->retention.use_mib << 20);
    notify_watch_configure(server->notify_watch, &config->notify);
    mail->is_done = true;
    server->core.is_policy_awaited |=
        !core_config_same_policy(&config->core, &server->config->core);
    /* freed with the mail; the engines borrow the first */
    mail->config = server->config == server->engines.config ? NULL : server->config;
    server->config = config;
    policy_tell(server);
    server_settings_keep(server);
    server_storages_keep(server);
    server->core.upkeep_at_ms = clock_monotonic_ms(); /* retention may have changed */
}

void core_thread_take(struct server *server, struct server_mail *mail)
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
    case MAIL_SNAPSHOT: /* between the rounds that follow */
    case MAIL_TRIAL:    /* on another thread, after the round */
        break;
    }
}

int core_thread_renew(struct server *server, struct err *err)
{
    atomic_fetch_add(&server->core.version, 1);
    core_free(server->core.core);
    server->core.core = NULL;
    notices_clear(server->notices); /* it has run ahead of the rows, too */
    int code = server_restore(server, err);
    if (code < 0)
        return code;
    batch_commands(server);
    batch_tell(server);
    batch_begin(&server->core);
    return 0;
}

static void batch_finish(struct server *server)
{
    struct err err;
    int code = batch_commit(server, &err);
    if (code == 0)
        batch_carry_out(server);
    else if (code == ERR_INTERNAL || code == ERR_CORRUPT) /* a row, or a page, may be at fault */
        batch_failure_part(server, &err);
    else
        batch_failure_all(server, &err);
}

void core_thread_timer(struct server *server)
{
    struct event event = {.kind = EVENT_TIMER, .user = ""};
    if (server->core.wake_ms == 0 || core_thread_now(server) < server->core.wake_ms)
        return;
    server->core.wake_ms = 0;
    core_thread_event(server, &event);
}

/* The job whose row decides it: its own, or the one that has the name; 0: none does. */
static struct job_id deciding_job(struct server *server, const struct server_mail *mail)
{
    const struct event *event = &mail->event;
    const struct plan *plan = event->kind == EVENT_SUBMIT ? event->submit.plan : NULL;
    struct job_id job = {0};
    if (event->kind == EVENT_START)
        job = event->start.job;
    else if (event->kind == EVENT_DELETE)
        job = event->job;
    else if (plan)
        store_job_find(server->store, text_of(plan->user), text_of(plan->name), &job, NULL);
    return job;
}

/* Does that row stand otherwise in what this batch has still to commit? */
static bool is_of_written(struct server *server, const struct server_mail *mail)
{
    const struct core_thread *core = &server->core;
    if (mail->kind != MAIL_EVENT || mail->is_done || core->event_count == 0)
        return false;
    return id_map_get(&core->written, deciding_job(server, mail).v) != MAP_NONE;
}

/* Room for BATCH_MAX mails, the timer, and what a restore has kept. */
static void batch_of(struct server *server, struct server_mail *mails)
{
    while (mails && server->core.core) {
        for (size_t i = 0; mails && i < BATCH_MAX && !is_of_written(server, mails); i++) {
            struct server_mail *next = (struct server_mail *)(void *)mails->mail.next;
            core_thread_take(server, mails);
            mails = next;
        }
        batch_finish(server);
    }
    while (mails) {
        struct server_mail *next = (struct server_mail *)(void *)mails->mail.next;
        batch_failure_mail(server, mails);
        mails = next;
    }
}

int core_thread_probe(struct server *server, struct err *err)
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
    if (clock_monotonic_ms() < core->probe_at_ms)
        return;
    core->probe_at_ms = clock_monotonic_ms() + PROBE_MS;
    struct err err;
    int code = core_thread_probe(server, &err);
    if (code == 0)
        code = batch_failure_due(server, &err);
    if (code < 0) {
        server_trouble(server, server->store_trouble, err.text);
        batch_failure_end(server, &err);
        return;
    }
    log_info("store", "can be written again");
    store_make_room(server->store);
    atomic_store(&server->is_writable, true);
    server_trouble(server, server->store_trouble, "");
    struct server_mail *facts = core->first_fact;
    core->first_fact = NULL;
    core->last_fact = &core->first_fact;
    atomic_store(&server->metrics.facts_kept, 0);
    batch_of(server, facts);
}

/* Is there room for the store's reserve again? */
static void core_thread_make_room(struct server *server)
{
    struct core_thread *core = &server->core;
    if (!store_is_short(server->store) || clock_monotonic_ms() < core->probe_at_ms)
        return;
    core->probe_at_ms = clock_monotonic_ms() + PROBE_MS;
    store_make_room(server->store);
}

static int64_t core_thread_deadline(struct server *server)
{
    const struct core_thread *core = &server->core;
    int64_t now = clock_monotonic_ms(), deadline = core->upkeep_at_ms;
    if (!core->core) /* upkeep, too, waits for the store */
        return core->probe_at_ms;
    if (core->snapshots.first)
        return now;
    if (store_is_short(server->store) && core->probe_at_ms < deadline)
        deadline = core->probe_at_ms;
    if (deletion_due(server) < deadline)
        deadline = deletion_due(server);
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
            batch_failure_all(server, &err);
            return;
        }
        server_reconcile(server, own);
    }
}

/* When that is refused, the core which is made then is not told again: it would not end. If it has
 * shown that more nodes are refused, it is: there are only so many. */
static void core_thread_unstored(struct server *server)
{
    struct unstored *unstored = &server->core.unstored;
    const size_t before = unstored->count;
    batch_of(server, unstored_told(server));
    if (unstored->count <= before)
        unstored->told_core = server->core.cores;
}

static void *core_thread_run(void *argument)
{
    struct server *server = argument;
    struct core_thread *core = &server->core;
    for (;;) {
        struct mail *mails =
            mailbox_take(&server->mailbox, BATCH_MAX, core_thread_deadline(server));
        atomic_store(&server->core_seen_ms, clock_monotonic_ms());
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
        core_thread_unstored(server);
        if (!core->core)
            continue;
        core_thread_make_room(server);
        core_thread_timer(server);
        if (core->event_count > 0)
            batch_finish(server);
        if (core->core && clock_monotonic_ms() >= core->upkeep_at_ms) {
            core->upkeep_at_ms = clock_monotonic_ms() + UPKEEP_MS;
            leftover_retry(server);
            unstored_retry(server);
            batch_of(server, server_upkeep(server));
        }
        if (core->core)
            snapshots_go_on(server);
        if (core->core)
            deletion_go_on(server, !mails);
    }
    barrier_clear(server->barriers, "the server is ending");
    snapshots_refuse(&core->snapshots, "the server is ending");
    return NULL;
}

void core_thread_start(struct server *server)
{
    struct core_thread *core = &server->core;
    atomic_store(&server->core_seen_ms, clock_monotonic_ms());
    core->begin_ms = clock_monotonic_ms();
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
