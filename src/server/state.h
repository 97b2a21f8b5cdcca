/* state.h — what the files of the server share.
 *
 * Private to server.
 */
#ifndef SERVER_STATE_H
#define SERVER_STATE_H
#include "base/buf.h"
#include "base/map.h"
#include "base/rate.h"
#include "core/core.h"
#include "doc/problem.h"
#include "exits/rules.h"
#include "server/alert_watch.h"
#include "server/barrier.h"
#include "server/clock.h"
#include "server/deletion.h"
#include "server/engines.h"
#include "server/file_space.h"
#include "server/hang_watch.h"
#include "server/launch.h"
#include "server/mail.h"
#include "server/metrics.h"
#include "server/notices.h"
#include "server/notify_watch.h"
#include "server/quarantine.h"
#include "server/server.h"
#include "server/snapshot.h"
#include "server/trial.h"
#include "server/unpurged.h"
#include "server/unstored.h"
#include "server/use_watch.h"
#include "store/read.h"
#include "sys/clock.h"
#include "sys/key_file.h"
#include <pthread.h>
#include <stdatomic.h>

enum {
    FACTS_ROOM = 200000, /* facts that may wait, beside the requests */
    BATCH_MAX = 1000,    /* mails in one transaction */
    READERS_MAX = 64,
    PROBE_MS = 1000,       /* between two tries to write to the store again */
    UPKEEP_MS = 60 * 1000, /* between two rounds of retention */
};

/* What is known of a machine beside the core's row. */
struct node_known {
    struct node_facts facts; /* owned; as last told, or as stored */
    uint8_t engine;          /* whose it is; ENGINE_NONE */
    bool is_engine_guessed;  /* its row names none: any other may take it */
    bool is_contested;       /* another engine told of one of this name, which was said once */
    bool is_gpu_simulated;
    bool is_seen; /* the engine has spoken of it since the start */
    bool is_lost; /* and said last that it is gone for good; or its row does */
};

struct reader_pool {
    pthread_mutex_t lock;
    struct store_reader *idle[READERS_MAX];
    size_t idle_count, count;
};

/* What the core thread alone uses. */
struct core_thread {
    pthread_t thread;
    _Atomic bool is_running;
    struct core *core;        /* NULL while the store cannot be written */
    _Atomic uint64_t version; /* of the core: grows before each step, and when it is made anew */
    bool is_policy_awaited;   /* the log is to say when the one that was asked for is in force */
    struct output output;
    struct arena scratch;
    struct buf log;
    struct server_mail **batch;
    size_t batch_count;
    struct store_event *events; /* of the batch, in order */
    size_t event_count;
    uint64_t told_news;    /* the store's number when who watches was woken last */
    struct id_map written; /* jobs whose rows this batch writes or deletes */
    struct server_mail *first_fact, **last_fact; /* kept while the store cannot be written */
    struct server_clock clock;
    int64_t wake_ms;                             /* the core's time of its timer; 0 none */
    int64_t probe_at_ms, upkeep_at_ms, begin_ms; /* monotonic */
    char boot_id[CLOCK_BOOT_ID_MAX];             /* of the machine's boot; "" not known */
    struct snapshots snapshots;
    struct deletion deletion;
    uint64_t cores; /* that were made of the rows */
    struct quarantine quarantine;
    struct unstored unstored;
    struct unpurged unpurged;
    struct store_reader *reader;
    struct leftover_list {
        struct orphan_container *items;
        size_t count, room;
    } leftovers;
    struct { /* of the rows at the start: attempts that ran on engines not settled yet */
        struct {
            struct attempt_id attempt;
            uint8_t engine;
        } * items;
        size_t count, room;
    } running;
};

struct server {
    struct server_config *config; /* replaced by the core thread only */
    struct store *store;
    struct engine_table engines;
    struct mailbox mailbox;
    struct core_thread core;
    struct launcher *launcher;
    struct hang_watch *hang_watch;
    struct use_watch *use_watch;
    struct alert_watch *alert_watch;
    struct notify_watch *notify_watch;
    struct trials *trials;
    struct barrier_table *barriers; /* the core thread's */
    struct notice_book *notices;    /* likewise */
    _Atomic uint16_t api_port;      /* 0: not known yet */
    struct file_space space;
    struct reader_pool readers;
    char *door;           /* server_door; of realpath */
    bool is_network_auto; /* what a configuration without engine.network.mode means; since begin */
    char *listen;         /* as at the start: read by other threads */
    struct service service;
    struct metrics metrics;
    /* what server_clock_trusted gave last: by it all of the server and its engines remove what is
     * old; since the clock was restored, before the engines are opened */
    _Atomic int64_t trusted_ms;
    _Atomic int64_t boot_began_ms; /* in the core's time, as of its last step; server_now_ms */

    struct key_file keys;
    uint8_t token_key[SECRET_KEY_SIZE];

    pthread_rwlock_t rules_lock; /* of what follows */
    struct exit_rules *rules;
    char *rules_path;    /* the operator's file, "" when there is none */
    struct buf settings; /* server_config_settings */
    struct {
        struct arena arena; /* replaced as a whole */
        struct storage_list list;
    } storages;

    pthread_mutex_t watch_lock;
    struct service_watch *watches;

    pthread_mutex_t state_lock; /* of what follows */
    struct rate_table submits;  /* of users with a quota of them */
    char store_trouble[200];
    struct core_counts counts;
    struct {
        struct node_known *items;
        size_t count, room;
    } nodes;
    struct text_map node_names; /* to nodes, by facts.name */

    _Atomic bool is_draining, is_writable;
    _Atomic int64_t core_seen_ms; /* monotonic: last time the core thread came round */
};

/* core_thread.c */
void core_thread_start(struct server *server);
void core_thread_join(struct server *server);
/* Parts of a round: its time, and its chance; an event in the log; a mail, which is the batch's
 * from here on, stepped through; the core's timer. */
int64_t core_thread_now(struct server *server);
uint64_t core_thread_random(void);
void core_thread_log(struct core_thread *core, const struct event *event);
void core_thread_take(struct server *server, struct server_mail *mail);
void core_thread_timer(struct server *server); /* when it is due */
/* A core of the rows takes the place of one that has run ahead of them. */
int core_thread_renew(struct server *server, struct err *err);
/* Can the store be written? By a row that is of no use otherwise. */
int core_thread_probe(struct server *server, struct err *err);

/* recover.c: what is stored of nodes, before any engine tells of them: whose they are. */
int server_nodes_restore(struct server *server, struct err *err);
/* A core from the rows, its first output in server->core.output, committed. */
int server_restore(struct server *server, struct err *err);
/* Out of its output, and of each later one: attempts that were given before the epoch began are not
 * created (those whose creation was ordered before it, and waits for an engine: launcher_open).
 * What the store does not know of may have created them, and they may have run and ended: those
 * that the engine does not hold are lost, and their tasks tried again by a number of now. */
void server_past_creates_drop(struct server *server);
/* Before it: an engine may hold attempts of numbers that the store has never given, because the
 * store is a copy: then an epoch begins, and *has_begun is set. */
int server_engine_epoch(struct server *server, const struct server_engine *own, bool *has_begun,
                        struct err *err);
/* Compare what an engine that has been opened holds with what the core wants; then its commands
 * may go. */
void server_reconcile(struct server *server, struct server_engine *own);
/* Nodes of engines that are not open: not healthy, and why. */
void server_nodes_away(struct server *server);

/* leftover.c: the core thread's. Remove what is left at an engine of an attempt of which the core
 * knows nothing there, its container included when it runs, unless it is held for debugging. Retry:
 * those whose rows could not be read. */
void leftover_take(struct server *server, uint8_t engine, struct attempt_id attempt,
                   bool is_running);
void leftover_retry(struct server *server);

/* engine_in.c */
/* Under state_lock. Find: NULL when nothing is known of it. */
struct node_known *server_node(struct server *server, const char *name);
struct node_known *server_node_find(struct server *server, const char *name);
bool server_node_is_simulated(struct server *server, const char *name);
int server_rules_load(struct server *server, const char *path, struct err *err);

/* service.c */
void server_service_init(struct server *server);
/* The configuration has changed: what service.settings answers does, too. */
void server_settings_keep(struct server *server);
/* storage_list.c: those of service.h, and what tells that the configuration has others. */
struct storage_list server_storages(void *context, struct arena *arena);
/* Whether a storage has folders by users' names: then a name is more than a name. */
bool server_has_user_folders(struct server *server);
const struct storage *server_storage(void *context, struct text name, struct arena *arena);
void server_storages_keep(struct server *server);
void reader_pool_release(struct reader_pool *pool);
void server_notify(struct server *server);
/* This user ("": anybody) may have lost tokens, or the rights of an admin. */
void server_revoked(struct server *server, const char *user);

/* ERR_UNAVAILABLE: the disk is nearly full, and only what frees room is taken. */
int server_room(struct server *server, struct err *err);

void server_gpus(void *context, struct arena *arena, const struct engine_gpu **gpus, size_t *count);

/* engine_health.c: what is known of an engine and its nodes. */
struct engine_health {
    bool is_open, is_degraded;
    uint32_t nodes, healthy; /* that are not lost; of these */
    uint64_t gpus;           /* of the healthy ones */
    size_t held;             /* commands that wait until it is open */
    char trouble[200]; /* "" none: why it is not open, what it does not hear, or why a node is not
                          healthy */
};
void engine_health_of(struct server *server, uint8_t engine, struct engine_health *health);
/* A check of each engine; how many. */
size_t engine_checks(struct server *server, struct service_check *checks);
void engine_metrics_write(struct server *server, struct buf *out);

/* health.c: of the service, whose context is the server. */
bool server_is_alive(void *context);
size_t server_ready(void *context, struct service_check checks[SERVICE_CHECKS_MAX]);
void server_metrics(void *context, struct buf *out);

/* clock_note.c: the core's time goes on from what is stored. */
int server_clock_restore(struct server *server, struct err *err);
/* What the other threads may know of the clock, after each of its steps. The core's thread. */
void server_clock_publish(struct server *server);
/* The core's time, and what has passed since its last step. Any thread: all that waits, or is kept
 * with its time, goes by it and not by the wall clock, which anybody may set. While the core's time
 * nears a wall clock that is behind, it may go back by a tenth of what passes between two steps. */
int64_t server_now_ms(const struct server *server);
/* Mails that store, as settings, where the clock stands as of its last step: at the start and with
 * each round of upkeep. */
enum { CLOCK_NOTES = 2 };
void server_clock_note(struct server *server, struct server_mail *mails[CLOCK_NOTES]);

/* upkeep.c */
int server_first_user(struct server *server, const struct server_teller *teller, struct err *err);
struct server_mail *server_upkeep(struct server *server); /* mails for the core, linked */

/* A fact into the mailbox; waits while even the reserve is full. */
void server_post_fact(struct server *server, struct server_mail *mail);
void server_trouble(struct server *server, char trouble[200], const char *text);

#endif
