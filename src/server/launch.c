/* launch.c — see launch.h. */
#include "server/launch.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/peers.h"
#include "init/layout.h"
#include "server/container.h"
#include "server/state.h"
#include "sys/clock.h"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ORPHAN_GRACE_MS = 10000, LAUNCH_URL_SIZE = 100, COMPLETE_MAX = 10000 };

struct launch_mail {
    struct mail mail;
    enum command_kind kind;
    uint8_t engine;  /* ENGINE_NONE: the node's is not configured */
    bool is_opening; /* no command: from now on the engine takes some */
    bool is_peers;   /* likewise: tasks of the job may be told where their peers are … */
    bool is_end;     /* … as one of this attempt of it has ended */
    uint32_t job_attempt;
    bool is_orphan, is_held;
    struct job_id job;
    struct task_ref task;
    struct attempt_id attempt; /* of an opening: the first of the last epoch */
    uint32_t grace_ms;
    char reason[64];
};

struct launcher {
    struct server *server;
    struct mailbox mailbox;
    _Atomic size_t count; /* of mails that are neither done nor among those of `waiting` */
    pthread_t thread;
    bool is_running;
    struct { /* of each engine, until it is open */
        struct mail *first, **last;
        _Atomic size_t count;
    } waiting[ENGINES_MAX];
    bool is_open[ENGINES_MAX];
    struct store_reader *reader;
    struct launch_job job; /* that was read last in this round; .job.v == 0: none */
    struct {               /* whose tasks were told last in this round, with those rows */
        struct job_id job;
        uint8_t engine;
    } told;
    /* jobs whose ends change nothing any more: the attempt whose tasks have been told */
    struct id_map complete;
    size_t complete_count; /* since it was empty */
    /* attempts that could not be created, until they are forgotten: what became of them may wait
     * for the disk, and a core that is made anew meanwhile asks for them once more */
    struct id_map failed;
    struct arena arena;
};

struct launcher *launcher_new(struct server *server)
{
    struct launcher *launcher = mem_zero(1, sizeof *launcher);
    launcher->server = server;
    /* never full: what has been committed must be carried out; the core's limits bound it */
    mailbox_init(&launcher->mailbox, SIZE_MAX / 2, 0);
    arena_init(&launcher->arena);
    for (size_t i = 0; i < ENGINES_MAX; i++)
        launcher->waiting[i].last = &launcher->waiting[i].first;
    return launcher;
}

static void launcher_post(struct launcher *launcher, const struct launch_mail *what)
{
    struct launch_mail *mail = mem_alloc(sizeof *mail);
    *mail = *what;
    atomic_fetch_add(&launcher->count, 1);
    if (mailbox_post(&launcher->mailbox, &mail->mail, NULL) == 0)
        return;
    mem_free(mail); /* ending: the next server does it */
    atomic_fetch_sub(&launcher->count, 1);
}

/* Has its engine tasks that must be told where their peers are? */
static bool engine_tells(struct server *server, uint8_t number)
{
    const struct engine *engine =
        number == ENGINE_NONE ? NULL : atomic_load(&server->engines.items[number].engine);
    return engine && engine->capabilities & ENGINE_CAN(ENGINE_CAN_TELL_ADDRESSES);
}

/* Tasks of a job have begun, or ended: others may have waited for that. */
static void peers_take(struct launcher *launcher, const struct output *output)
{
    struct launch_mail mail = {.is_peers = true, .engine = ENGINE_NONE};
    for (size_t i = 0; i < output->records.count; i++) {
        const struct task_record *task = &output->records.items[i].task;
        if (output->records.items[i].kind != RECORD_TASK || !peer_is_news(task))
            continue;
        const uint8_t engine = engine_of_node(launcher->server, task->node);
        const bool is_end = task->state == LIFE_COMPLETED;
        const bool is_same =
            engine == mail.engine && mail.job.v == task->job.v && mail.is_end == is_end;
        if (is_same || !engine_tells(launcher->server, engine))
            continue;
        mail.engine = engine;
        mail.job = task->job;
        mail.is_end = is_end;
        mail.job_attempt = task->job_attempt;
        launcher_post(launcher, &mail);
    }
}

void launcher_take(struct launcher *launcher, const struct output *output)
{
    peers_take(launcher, output);
    for (size_t i = 0; i < output->commands.count; i++) {
        const struct command *command = &output->commands.items[i];
        struct launch_mail mail = {.kind = command->kind,
                                   .engine = engine_of_node(launcher->server, command->node),
                                   .job = command->job,
                                   .task = command->task,
                                   .attempt = command->attempt,
                                   .grace_ms = command->grace_ms,
                                   .is_held = command->is_held};
        if (command->kind == COMMAND_WAKE)
            continue;
        if (command->reason)
            strncpy(mail.reason, command->reason, sizeof mail.reason - 1);
        launcher_post(launcher, &mail);
    }
}

void launcher_open(struct launcher *launcher, uint8_t engine)
{
    const struct store_epoch epoch = store_epoch_last(launcher->server->store);
    launcher_post(launcher, &(struct launch_mail){.engine = engine,
                                                  .is_opening = true,
                                                  .attempt = epoch.first_attempt});
}

void launcher_kill(struct launcher *launcher, uint8_t engine, struct attempt_id attempt)
{
    launcher_post(launcher, &(struct launch_mail){.kind = COMMAND_KILL,
                                                  .engine = engine,
                                                  .is_orphan = true,
                                                  .attempt = attempt,
                                                  .grace_ms = ORPHAN_GRACE_MS,
                                                  .reason = "orphan"});
}

void launcher_forget(struct launcher *launcher, uint8_t engine, struct attempt_id attempt)
{
    launcher_post(launcher, &(struct launch_mail){
                                .kind = COMMAND_FORGET, .engine = engine, .attempt = attempt});
}

static void post_failure(struct launcher *launcher, const struct launch_mail *mail, int32_t code,
                         const struct err *err)
{
    struct server_mail *fact = mail_event(EVENT_TASK_EXITED, "");
    fact->event.task.attempt = mail->attempt;
    fact->event.task.completion = completion_of(code, "%s", err->text);
    server_post_fact(launcher->server, fact);
}

/* The engine does not take it now: it goes back to the queue. */
static void post_refusal(struct launcher *launcher, const struct launch_mail *mail,
                         const struct err *err)
{
    struct server_mail *fact = mail_event(EVENT_TASK_REFUSED, "");
    fact->event.task.attempt = mail->attempt;
    fact->event.task.reason = err->code == ERR_BUSY ? "EngineBusy" : "EngineUnavailable";
    fact->event.task.message = arena_copy(&fact->arena, text_of(err->text));
    server_post_fact(launcher->server, fact);
}

/* An error of ours may pass; one of the request does not. */
static void post_creation(struct launcher *launcher, const struct launch_mail *mail,
                          const struct err *err)
{
    if (err->code == ERR_BUSY || err->code == ERR_UNAVAILABLE)
        post_refusal(launcher, mail, err);
    else if (err->code == ERR_IO)
        post_failure(launcher, mail, CODE_CREATION_TRANSIENT, err);
    else
        post_failure(launcher, mail, CODE_CREATION_PERMANENT, err);
}

/* The API's address for a task that shares the host's network: what listens everywhere is reached
 * over the loopback. */
static void api_url(struct server *server, char url[LAUNCH_URL_SIZE])
{
    struct text listen = text_of(server->listen), host = listen;
    unsigned port = atomic_load(&server->api_port);
    int64_t number = 0;
    url[0] = '\0';
    if (server->door) { /* whatever network the task has */
        snprintf(url, LAUNCH_URL_SIZE, "unix:" LAYOUT_DOOR "/" LAYOUT_DOOR_API_NAME ":");
        return;
    }
    while (host.length > 0 && host.at[host.length - 1] != ':')
        host.length--;
    if (host.length == 0)
        return;
    if (port == 0 &&
        text_to_int64((struct text){listen.at + host.length, listen.length - host.length}, &number))
        port = (unsigned)number;
    host.length--;
    if (host.length == 0 || text_is(host, "0.0.0.0"))
        host = TEXT("127.0.0.1");
    else if (text_is(host, "[::]"))
        host = TEXT("[::1]");
    if (port > 0 && host.length < LAUNCH_URL_SIZE / 2)
        snprintf(url, LAUNCH_URL_SIZE, "http://%.*s:%u", TEXT_ARG(host), port);
}

/* What the round has read of it is good: all of the round's mails were posted before. */
static int job_load(struct launcher *launcher, struct job_id job, struct err *err)
{
    struct server *server = launcher->server;
    const struct launch_places places = {.space = &server->space};
    if (launcher->job.job.v == job.v)
        return 0;
    launch_job_release(&launcher->job);
    int code = launch_job_load(launcher->reader, job, &places, &launcher->job, err);
    if (code == 0) /* those of this moment: what runs keeps what it was given */
        launcher->job.places.storages = server_storages(server, &launcher->job.arena);
    return code;
}

static int create(struct launcher *launcher, const struct launch_mail *mail, struct err *err)
{
    struct server *server = launcher->server;
    char url[LAUNCH_URL_SIZE];
    uint8_t epoch_key[SECRET_KEY_SIZE];
    struct engine *engine = engine_open(server, mail->engine, err);
    struct container_keys keys = {.sealing = &server->keys,
                                  .master_key = server->keys.master,
                                  .epoch_key = epoch_key,
                                  .api_url = url};
    struct store_epoch epoch = store_epoch_of(server->store, mail->job);
    int code = 0;
    if (!engine)
        return err->code;
    keys.log_segment_bytes = server->engines.items[mail->engine].log_segment_bytes;
    const struct engine_config *own = server->engines.items[mail->engine].config;
    api_url(server, url);
    if (own->kind == ENGINE_KIND_KUBERNETES) { /* it is another machine */
        keys.api_url = own->kubernetes.api_url ? own->kubernetes.api_url : "";
        keys.has_claims = true;
    }
    code = job_load(launcher, mail->job, err);
    if (code < 0)
        return code;
    const struct task_record *task;
    task = launch_job_task(&launcher->job, mail->task, mail->attempt);
    if (!task)
        return 0; /* overtaken: a kill of it follows, or its exit is known already */
    epoch_key_make(server->keys.master, &epoch, epoch_key);
    struct container container;
    code = container_make(&launcher->job, task, &keys, server_node_is_simulated(server, task->node),
                          &launcher->arena, &container, err);
    secret_wipe(epoch_key, sizeof epoch_key);
    if (code == 0)
        code = engine->ops->create(engine, &container, err);
    return code;
}

static void run_create(struct launcher *launcher, const struct launch_mail *mail)
{
    struct metrics *metrics = &launcher->server->metrics;
    int64_t begin_us = clock_monotonic_us();
    if (id_map_get(&launcher->failed, mail->attempt.v) != MAP_NONE)
        return;
    atomic_fetch_add(&metrics->creates, 1); /* before the task can be heard of */
    struct err err;
    int code = create(launcher, mail, &err);
    arena_wipe(&launcher->arena);
    histogram_add(&metrics->launch, clock_monotonic_us() - begin_us);
    if (code == 0)
        return;
    atomic_fetch_add(&metrics->create_failures, 1);
    log_warning("launch", "attempt %llu of job %u cannot be created: %s",
                (unsigned long long)mail->attempt.v, mail->job.v, err.text);
    id_map_set(&launcher->failed, mail->attempt.v, 1);
    post_creation(launcher, mail, &err);
}

/* Of an engine that is not configured any more nothing is known. */
static struct engine *engine_asked(struct launcher *launcher, const struct launch_mail *mail,
                                   struct err *err)
{
    struct engine *engine = engine_open(launcher->server, mail->engine, err);
    if (!engine)
        err->code = ERR_NOT_FOUND;
    return engine;
}

static void run_kill(struct launcher *launcher, const struct launch_mail *mail)
{
    struct err err;
    struct engine *engine = engine_asked(launcher, mail, &err);
    int code = engine ? engine->ops->kill(engine, mail->attempt, mail->grace_ms, mail->reason,
                                          mail->is_held, &err)
                      : err.code;
    atomic_fetch_add(&launcher->server->metrics.kills, 1);
    if (code == 0 || mail->is_orphan)
        return;
    if (code == ERR_NOT_FOUND) {
        err_fail(&err, ERR_NOT_FOUND, "", "there was no container to end");
        post_failure(launcher, mail, CODE_CONTAINER_DELETED, &err);
        return;
    }
    log_error("launch", "attempt %llu cannot be ended: %s", (unsigned long long)mail->attempt.v,
              err.text);
}

static void run_forget(struct launcher *launcher, const struct launch_mail *mail)
{
    struct err err;
    struct engine *engine = engine_asked(launcher, mail, &err);
    id_map_remove(&launcher->failed, mail->attempt.v);
    /* unknown: forgotten before, or never created */
    if (engine && engine->ops->forget(engine, mail->attempt, &err) < 0 && err.code != ERR_NOT_FOUND)
        log_warning("launch", "what is left of attempt %llu cannot be removed: %s",
                    (unsigned long long)mail->attempt.v, err.text);
}

/* By this round's rows; or for good: an end in a gang that has begun, or where nobody waits for
 * others. */
static bool peers_are_told(const struct launcher *launcher, const struct launch_mail *mail)
{
    if (launcher->told.job.v == mail->job.v && launcher->told.engine == mail->engine)
        return true;
    return mail->is_end && id_map_get(&launcher->complete, mail->job.v) == mail->job_attempt;
}

static void peers_note(struct launcher *launcher, const struct launch_job *job)
{
    if (launcher->complete_count++ >= COMPLETE_MAX) { /* their ends are looked at again */
        id_map_release(&launcher->complete);
        launcher->complete_count = 1;
    }
    id_map_set(&launcher->complete, job->job.v, job->attempt);
}

static void run_peers(struct launcher *launcher, const struct launch_mail *mail)
{
    struct err err;
    cleanup_buf struct buf text = BUF_INIT;
    struct server *server = launcher->server;
    struct engine *engine = engine_asked(launcher, mail, &err);
    struct launch_job *job = &launcher->job;
    if (!engine || peers_are_told(launcher, mail))
        return;
    const int code = job_load(launcher, mail->job, &err);
    if (code < 0) { /* it may have been deleted meanwhile */
        if (code != ERR_NOT_FOUND)
            log_error("launch", "tasks of job %u are not told where their peers are: %s",
                      mail->job.v, err.text);
        return;
    }
    launcher->told.job = mail->job;
    launcher->told.engine = mail->engine;
    struct attempt_id *attempts =
        ARENA_ARRAY(&launcher->arena, struct attempt_id, job->tasks.count);
    size_t count = 0;
    for (size_t i = 0; i < job->tasks.count; i++)
        if (peer_runs(&job->tasks.items[i], job->attempt) &&
            engine_of_node(server, job->tasks.items[i].node) == mail->engine)
            attempts[count++] = job->tasks.items[i].attempt;
    if (count > 0 && launch_job_peers(job, &launcher->arena, &text)) {
        engine->ops->tell_addresses(engine, attempts, count, buf_as_text(&text));
        peers_note(launcher, job);
    }
    arena_clear(&launcher->arena);
}

static void run(struct launcher *launcher, const struct launch_mail *mail)
{
    if (mail->is_peers) {
        run_peers(launcher, mail);
        return;
    }
    switch (mail->kind) {
    case COMMAND_CREATE:
        run_create(launcher, mail);
        return;
    case COMMAND_KILL:
        run_kill(launcher, mail);
        return;
    case COMMAND_FORGET:
        run_forget(launcher, mail);
        return;
    case COMMAND_WAKE:
        break;
    }
    assert(false && "a command for the engine");
}

static void mails_run(struct launcher *launcher, struct mail *mails);

/* Of an attempt that was given before an epoch began: if the engine does not hold it, it is lost
 * already, as it may have run in the time that the store does not know of (recover.c). */
static bool is_past_create(const struct launch_mail *mail, struct attempt_id first)
{
    return !mail->is_peers && mail->kind == COMMAND_CREATE && mail->attempt.v < first.v;
}

static void past_creates_drop(struct launcher *launcher, struct mail **at, struct attempt_id first)
{
    while (*at) {
        struct launch_mail *mail = (struct launch_mail *)(void *)*at;
        if (!is_past_create(mail, first)) {
            at = &mail->mail.next;
            continue;
        }
        *at = mail->mail.next;
        mem_free(mail);
        atomic_fetch_sub(&launcher->count, 1);
    }
}

/* What has waited for the engine, in order. An epoch may have begun meanwhile. */
static void engine_opened(struct launcher *launcher, const struct launch_mail *opening)
{
    const uint8_t engine = opening->engine;
    struct mail *waiting = launcher->waiting[engine].first;
    launcher->waiting[engine].first = NULL;
    launcher->waiting[engine].last = &launcher->waiting[engine].first;
    atomic_fetch_add(&launcher->count, atomic_exchange(&launcher->waiting[engine].count, 0));
    launcher->is_open[engine] = true;
    past_creates_drop(launcher, &waiting, opening->attempt);
    mails_run(launcher, waiting);
}

static void mails_run(struct launcher *launcher, struct mail *mails)
{
    while (mails) {
        struct launch_mail *mail = (struct launch_mail *)(void *)mails;
        mails = mails->next;
        if (mail->engine != ENGINE_NONE && !mail->is_opening && !launcher->is_open[mail->engine]) {
            mail->mail.next = NULL;
            *launcher->waiting[mail->engine].last = &mail->mail;
            launcher->waiting[mail->engine].last = &mail->mail.next;
            atomic_fetch_add(&launcher->waiting[mail->engine].count, 1);
            atomic_fetch_sub(&launcher->count, 1);
            continue;
        }
        if (mail->is_opening)
            engine_opened(launcher, mail);
        else
            run(launcher, mail);
        mem_free(mail);
        atomic_fetch_sub(&launcher->count, 1);
    }
}

static void *launcher_run(void *argument)
{
    struct launcher *launcher = argument;
    struct mail *mails;
    while ((mails = mailbox_take(&launcher->mailbox, 1000, -1))) {
        mails_run(launcher, mails);
        /* by the next round places may have changed */
        launch_job_release(&launcher->job);
        launcher->told.job.v = 0;
    }
    return NULL;
}

int launcher_start(struct launcher *launcher, struct err *err)
{
    int code = store_reader_open(launcher->server->store, &launcher->reader, err);
    if (code < 0)
        return code;
    if (pthread_create(&launcher->thread, NULL, launcher_run, launcher) != 0)
        return err_fail(err, ERR_UNAVAILABLE, "", "no thread can be made");
    launcher->is_running = true;
    return 0;
}

void launcher_stop(struct launcher *launcher)
{
    mailbox_close(&launcher->mailbox);
    if (launcher->is_running)
        pthread_join(launcher->thread, NULL);
    launcher->is_running = false;
}

void launcher_free(struct launcher *launcher)
{
    if (!launcher)
        return;
    launcher_stop(launcher);
    struct mail *mails;
    while ((mails = mailbox_take(&launcher->mailbox, 1, 0)))
        mem_free((struct launch_mail *)(void *)mails);
    for (size_t i = 0; i < ENGINES_MAX; i++)
        for (struct mail *at = launcher->waiting[i].first, *next; at; at = next) {
            next = at->next;
            mem_free((struct launch_mail *)(void *)at);
        }
    mailbox_release(&launcher->mailbox);
    launch_job_release(&launcher->job);
    store_reader_close(launcher->reader);
    id_map_release(&launcher->complete);
    id_map_release(&launcher->failed);
    arena_release(&launcher->arena);
    mem_free(launcher);
}

size_t launcher_count(struct launcher *launcher)
{
    return atomic_load(&launcher->count);
}

size_t launcher_held_count(const struct launcher *launcher, uint8_t engine)
{
    assert(engine < ENGINES_MAX);
    return atomic_load(&launcher->waiting[engine].count);
}
