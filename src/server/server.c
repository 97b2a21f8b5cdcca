/* server.c — see server.h: putting the parts together and taking them apart. */
#include "server/server.h"
#include "base/err.h"
#include "base/memory.h"
#include "placement/placement.h"
#include "server/batch.h"
#include "server/engines.h"
#include "server/job_network.h"
#include "server/state.h"
#include "sys/clock.h"
#include "sys/file.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int server_keys(struct server *server, struct err *err)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/key", server->config->data_directory);
    int code = key_file_load(path, &server->keys, err);
    if (code < 0)
        return code;
    if (server->keys.has_old)
        log_warning("server", "a rotation of the sealing key was ended before it was done: end it "
                              "by skepd --rotate-key");
    secret_key_derive(server->keys.master, 1, "skeptokn", server->token_key);
    return 0;
}

static int server_space(struct server *server, struct err *err)
{
    const struct server_config *config = server->config;
    if (config->files_directory[0])
        return file_space_init(&server->space, config->files_directory, err);
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/files", config->data_directory) >= sizeof path)
        return err_fail(err, ERR_TOO_BIG, "dataDirectory", "the path is too long");
    return file_space_init(&server->space, path, err);
}

/* The local engine mounts it into each container: the socket's file may be made anew in it. */
static int server_door_make(struct server *server, struct err *err)
{
    const struct server_config *config = server->config;
    bool is_local = false;
    for (size_t i = 0; i < config->engine_count; i++)
        is_local = is_local || config->engines[i].kind == ENGINE_KIND_LOCAL;
    if (!is_local)
        return 0;
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/door", config->data_directory) >= sizeof path)
        return err_fail(err, ERR_TOO_BIG, "dataDirectory", "the path is too long");
    int code = dir_make(path, 0755, err);
    if (code == 0 && chmod(path, 0755) < 0) /* whatever the umask */
        code = err_errno(err, errno, "chmod %s", path);
    if (code == 0)
        server->door = realpath(path, NULL);
    return code;
}

static int server_open(struct server *server, const struct server_teller *teller, struct err *err)
{
    const struct server_config *config = server->config;
    int code = dir_make(config->data_directory, 0700, err);
    if (code == 0)
        code = store_open_with(config->data_directory,
                               &(struct store_opening){.accepts_loss = config->accepts_loss,
                                                       .address = config->database},
                               &server->store, err);
    if (code == 0)
        code = store_reader_open(server->store, &server->core.reader, err);
    if (code == 0) {
        server->barriers = barrier_table_new(server->core.reader);
        server->notices = notice_book_new(server->core.reader);
    }
    if (code == 0)
        code = server_keys(server, err);
    if (code == 0)
        code = server_space(server, err);
    if (code == 0)
        code = server_rules_load(server, config->exit_rules_path, err);
    if (code == 0)
        code = job_network_begin(server, err);
    if (code == 0)
        code = server_first_user(server, teller, err);
    if (code == 0)
        code = server_door_make(server, err);
    if (code == 0) /* engines ask for the time by which they remove what is old */
        code = server_clock_restore(server, err);
    /* what it tells waits in the mailbox for the core thread */
    if (code == 0)
        code = server_nodes_restore(server, err);
    if (code == 0)
        code = engines_open(server, err);
    for (size_t i = 0; code == 0 && i < server->engines.count; i++)
        if (atomic_load(&server->engines.items[i].engine))
            code = server_engine_epoch(server, &server->engines.items[i], &(bool){false}, err);
    if (code == 0)
        code = quarantine_load(server, err);
    if (code == 0)
        code = server_restore(server, err);
    if (code < 0)
        return code;
    /* into the launcher's queue, for when it starts: first the end of those that nobody knows, as
     * what is created next may have been given their devices */
    for (size_t i = 0; i < server->engines.count; i++)
        if (atomic_load(&server->engines.items[i].engine))
            server_reconcile(server, &server->engines.items[i]);
    batch_commands(server);
    batch_begin(&server->core);
    server_nodes_away(server);
    struct server_mail *notes[CLOCK_NOTES];
    server_clock_note(server, notes);
    for (size_t i = 0; i < CLOCK_NOTES; i++)
        server_post_fact(server, notes[i]);
    return 0;
}

int server_new(struct server_config *config, const struct server_teller *teller,
               struct server **out, struct err *err)
{
    struct server *server = mem_zero(1, sizeof *server);
    struct core_thread *core = &server->core;
    server->config = config;
    server->listen = mem_copy(config->listen);
    server->space.fd = -1;
    atomic_store(&server->is_writable, true);
    pthread_rwlock_init(&server->rules_lock, NULL);
    arena_init(&server->storages.arena);
    pthread_mutex_init(&server->watch_lock, NULL);
    engines_init(server);
    pthread_mutex_init(&server->state_lock, NULL);
    secret_random(&server->submits.map.seed, sizeof server->submits.map.seed);
    mailbox_init(&server->mailbox, config->requests_max, FACTS_ROOM);
    output_init(&core->output);
    arena_init(&core->scratch);
    core->batch = mem_zero(BATCH_MAX, sizeof(void *));
    core->events = mem_zero(BATCH_MAX + 1, sizeof *core->events);
    core->last_fact = &core->first_fact;
    snapshots_init(&core->snapshots);
    server->launcher = launcher_new(server);
    server->hang_watch = hang_watch_new(server);
    server->use_watch = use_watch_new(server);
    server->alert_watch = alert_watch_new(server);
    server->notify_watch = notify_watch_new(server);
    int code = server_open(server, teller, err);
    server_service_init(server);
    if (code == 0)
        code = launcher_start(server->launcher, err);
    if (code == 0)
        code = hang_watch_start(server->hang_watch, err);
    if (code == 0)
        code = use_watch_start(server->use_watch, err);
    if (code == 0)
        code = alert_watch_start(server->alert_watch, err);
    if (code == 0)
        code = notify_watch_start(server->notify_watch, err);
    if (code == 0)
        code = trials_new(server, &server->trials, err);
    if (code == 0)
        code = engines_keep(server, err);
    if (code < 0) {
        server_free(server);
        return code;
    }
    *out = server;
    return 0;
}

void server_start(struct server *server)
{
    core_thread_start(server);
}

void server_listens(struct server *server, uint16_t port)
{
    atomic_store(&server->api_port, port);
}

const char *server_door(const struct server *server)
{
    return server->door;
}

struct service *server_service(struct server *server)
{
    return &server->service;
}

void server_reload(struct server *server, struct server_config *config)
{
    struct server_mail *mail = mail_new(MAIL_CONFIG);
    mail->config = config;
    /* here, as that of a large document takes longer than the core thread has; one that cannot be
     * made is refused there */
    mail->placer = placer_new(config->core.policy, config->core.placement_document, NULL);
    mail->reply.audit = &(struct store_audit){.address = "this machine",
                                              .route = "skepd: configuration read again",
                                              .subject_kind = "configuration",
                                              .subject = config->path};
    mail_audit(mail, clock_unix_ms());
    server_post_fact(server, mail);
}

bool server_must_restart(const struct server *server)
{
    return store_is_behind(server->store);
}

void server_drain(struct server *server)
{
    atomic_store(&server->is_draining, true);
}

void server_stop(struct server *server)
{
    server_drain(server);
    alert_watch_stop(server->alert_watch);
    notify_watch_stop(server->notify_watch);
    engines_stop(server);
    hang_watch_stop(server->hang_watch);
    use_watch_stop(server->use_watch);
    core_thread_join(server);
    trials_stop(server->trials); /* nobody hands it more */
    launcher_stop(server->launcher);
}

static void server_free_core(struct core_thread *core)
{
    struct server_mail *next;
    for (struct server_mail *fact = core->first_fact; fact; fact = next) {
        next = (struct server_mail *)(void *)fact->mail.next;
        mail_free(fact);
    }
    core_free(core->core);
    output_release(&core->output);
    arena_release(&core->scratch);
    buf_release(&core->log);
    mem_free(core->batch);
    mem_free(core->events);
    id_map_release(&core->written);
    ARRAY_FREE(&core->leftovers);
    quarantine_release(&core->quarantine);
    unstored_release(&core->unstored);
    unpurged_release(&core->unpurged);
    ARRAY_FREE(&core->running);
    store_reader_close(core->reader);
}

void server_free(struct server *server)
{
    if (!server)
        return;
    server_stop(server);
    engines_free(server);
    for (struct mail *mails = mailbox_take(&server->mailbox, 0, 0), *next; mails; mails = next) {
        next = mails->next;
        mail_free((struct server_mail *)(void *)mails);
    }
    mailbox_release(&server->mailbox);
    launcher_free(server->launcher);
    alert_watch_free(server->alert_watch);
    notify_watch_free(server->notify_watch);
    trials_free(server->trials);
    hang_watch_free(server->hang_watch);
    use_watch_free(server->use_watch);
    barrier_table_free(server->barriers);
    notice_book_free(server->notices);
    server_free_core(&server->core);
    reader_pool_release(&server->readers);
    store_close(server->store);
    file_space_release(&server->space);
    exit_rules_free(server->rules);
    mem_free(server->rules_path);
    buf_release(&server->settings);
    arena_release(&server->storages.arena);
    mem_free(server->listen);
    free(server->door);
    for (size_t i = 0; i < server->nodes.count; i++)
        node_facts_release(&server->nodes.items[i].facts);
    ARRAY_FREE(&server->nodes);
    text_map_release(&server->node_names);
    if (server->engines.config != server->config)
        server_config_free(server->engines.config);
    server_config_free(server->config);
    pthread_rwlock_destroy(&server->rules_lock);
    pthread_mutex_destroy(&server->watch_lock);
    pthread_mutex_destroy(&server->state_lock);
    rate_release(&server->submits);
    key_file_wipe(&server->keys);
    mem_free(server);
}
