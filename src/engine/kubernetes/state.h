/* state.h — what the parts of the Kubernetes engine share.
 *
 * `lock` guards all tables. What is to be told is gathered under it (struct tells) and told after
 * it, by the client's thread alone: so of one attempt and of one node things are told in order.
 */
#ifndef ENGINE_KUBERNETES_STATE_H
#define ENGINE_KUBERNETES_STATE_H
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/pool.h"
#include "engine/engine.h"
#include "engine/kubernetes/client.h"
#include "engine/kubernetes/devices.h"
#include "engine/kubernetes/feed.h"
#include "engine/kubernetes/gpu_table.h"
#include "engine/kubernetes/list_cut.h"
#include "engine/kubernetes/log_store.h"
#include "engine/kubernetes/node_metrics.h"
#include "engine/kubernetes/pod_gpus.h"
#include "engine/kubernetes/pod_make.h"
#include "engine/kubernetes/pod_order.h"
#include "engine/kubernetes/refusal.h"
#include "engine/kubernetes/slices.h"
#include "kube/access.h"
#include "sys/watcher.h"
#include <pthread.h>

enum {
    KUBE_UID_SIZE = 40, /* a UUID, as the API server gives each object */
    KUBE_PATH_SIZE = 400,
    KUBE_UNREACHABLE_MS = 10 * 1000,
    KUBE_LOG_STREAMS_MAX = 2000,      /* at a time; the other logs wait for one to end */
    KUBE_FETCHES_MAX = 8,             /* likewise: each has two threads */
    KUBE_LOG_PATIENCE_MS = 30 * 1000, /* an end is told without the rest of its log after that */
    KUBE_LOG_TAIL_MAX = 10 << 20,     /* of what is judged */
    KUBE_PLATFORM_TAIL_MAX = 4096,
    KUBE_USE_OLD_MS = 60 * 1000,      /* what was told before that says nothing of now */
    KUBE_COLLECT_MS = 10 * 60 * 1000, /* between two looks at what logs may go */
    KUBE_WORD_MS = 5 * 1000,          /* for the late word that memory ran out */
    KUBE_NODE_REFUSALS_MAX = 3,       /* devices in a row, then the node is held back */
    KUBE_NODE_HOLD_MS = 10 * 60 * 1000,
    KUBE_NODE_AGAIN_MS = 10 * 1000, /* between two looks at a node that is silent */
    KUBE_REASONS_MAX = 16,          /* tasks that are told why they end, at a time */
    /* They end without having heard it after a part of their grace, within these bounds. */
    KUBE_REASON_PART = 4,
    KUBE_REASON_MS = 3 * 1000,
    KUBE_REASON_MAX_MS = 60 * 1000,
    KUBE_REASON_SIZE = 64,
    KUBE_TELLINGS_MAX = 16,             /* tasks that are told where their peers are, at a time */
    KUBE_TELL_MS = 30 * 1000,           /* it is tried again after that */
    KUBE_CLAIM_AGAIN_MS = 10 * 1000,    /* likewise at the claim of a pod that is not prepared */
    KUBE_GPU_LOOK_MS = 1000,            /* between two looks at which exporters are to be asked */
    KUBE_GPU_AGAIN_MS = 10 * 1000,      /* between two answers of one */
    KUBE_GPU_FAILED_MAX_MS = 60 * 1000, /* the same of one that fails */
    KUBE_GPU_CONNECT_MS = 2 * 1000,
    KUBE_GPU_ANSWER_MS = 5 * 1000,     /* all of it */
    KUBE_GPU_BYTES_MAX = 4 << 20,      /* likewise */
    KUBE_GPU_ASKS_MAX = 64,            /* at a time */
    KUBE_METRICS_AGAIN_MS = 10 * 1000, /* between two lists of what nodes use */
    KUBE_METRICS_LOOKS = 10,           /* in that time, at whether one is due */
    KUBE_METRICS_PAUSE_MAX = 30,       /* times as long, where they fail */
    KUBE_METRICS_PAGES_MAX = 1000,     /* of a list */
    /* What a skepd that was killed had asked for is not carried out any more: an API server ends
     * each request after a minute (--request-timeout). */
    KUBE_LATE_MS = 2 * 60 * 1000,
    KUBE_PASSED_LOG_MS = 60 * 1000, /* between two lines about objects that cannot be read */
    KUBE_PING_MS = 30 * 1000,       /* of a program's connection on which nothing moves */
    /* What is fetched comes at once: a connection that brings nothing for so long is dead. */
    KUBE_FETCH_SILENCE_MS = 30 * 1000,
    KUBE_FETCH_LOOK_MS = 1000, /* between two looks at whether it is still wanted */
};

/* Why attempts of a node that is lost are given up (given_up.h). */
#define KUBE_NODE_LOST "NodeLost"
/* How the log of a task comes here: logs.c. All but the first two under the lock. */
struct kube_log {
    struct log_store_task *store; /* the client's thread alone; NULL: nothing is brought now */
    bool is_failing;              /* likewise: what came last could not be written */
    bool is_wanted;               /* its container has begun */
    bool is_open;                 /* a stream runs, or will begin after a pause */
    bool is_done;                 /* nothing more will come, or is waited for */
    bool is_held;                 /* its end is not told before that */
    uint8_t fetch_failures;       /* fetches that failed, or were in vain; in a row */
    uint32_t failures;            /* in a row */
    uint32_t fetch_turn;          /* what is missing waits behind smaller ones; 0: not */
    int64_t again_ms;             /* in the pause, it is asked for again then; 0: none */
    struct log_line_use use;      /* what the store has of it, for any thread */
    int64_t use_ms;               /* it was told then; 0: not yet */
};

/* The ResourceClaim of a task: claims.c. */
struct kube_claim {
    bool is_asked;   /* a call for it is under way */
    bool is_ready;   /* it was allocated, and reserved for the pod */
    bool is_ours;    /* it is there, and goes with the task */
    bool is_watched; /* a timer will look at it */
};

/* Where its peers are: addresses.c. */
struct kube_task_addresses {
    struct kube_addresses *list; /* that it is to be told; NULL: none, or it has been */
    bool is_asked;               /* it waits for its turn, has it, or waits for the next one */
    bool are_told;
    uint32_t failures; /* in a row */
};

/* docs/rfc/0017-kubernetes-engine.md, "A pod as a task" */
enum task_state {
    TASK_SECRET_ASKED,
    TASK_POD_ASKED,
    TASK_WAITS,
    TASK_RUNS,
    TASK_ENDED,
    TASK_FORGOTTEN,
};

/* Why it is ended: reason.c. */
enum reason_state { REASON_NONE, REASON_WAITS, REASON_TOLD, REASON_OVER };

/* How a task has ended. */
struct kube_end {
    bool is_refused;
    struct exit_report exit; /* its strings are these two */
    char *reason, *text;
};

enum { TASK_POOLS = 4 };

/* There are tens of thousands, and most of them run: what only few tasks have, or have only at
 * their end, stands elsewhere. */
struct kube_task {
    struct attempt_id attempt;
    enum task_state state;
    char uid[KUBE_UID_SIZE]; /* of its pod; "" not known yet, or none was made */
    uint32_t mark;           /* the list that it was in, or that was being made when it came */
    char *node;              /* stands behind it */
    struct pod_order *order; /* until its pod has been taken; NULL */
    char *devices;           /* as devices.h writes them; NULL: it has no claim */
    char *address;           /* of its pod, with KUBE_NETWORK_POD; NULL: not known yet */
    bool has_own_users;      /* its pod is asked for with user ids of its own */
    struct kube_claim claim;
    bool is_kill_wanted; /* Skep has asked, or gives it up: the end is ours */
    uint32_t grace_ms;
    enum reason_state reason_state;
    char *reason; /* WAITS, TOLD, OVER; NULL */
    bool is_preparing_told, is_started_told;
    char *waits_for;            /* the reason that was told last; NULL: none */
    bool is_wait_short;         /* POD_WAIT_SHORTLY */
    bool is_timed;              /* its patience ends some time */
    uint32_t patience_ms;       /* is_wait_short: so long is it waited for */
    int64_t short_ms;           /* is_wait_short: it has waited for this reason since then */
    bool is_word_awaited;       /* ENDED: whether its memory had run out; not told before */
    bool is_gone;               /* so is its pod: nothing is to be deleted */
    bool is_lost;               /* ENDED, FORGOTTEN: its pod may still run; its node is held */
    bool is_secret_unsure;      /* its secret was asked for, without an answer */
    unsigned deletes;           /* FORGOTTEN: not answered yet; with is_lost its pod, too */
    char *gives_up, *gives_why; /* it could not be started: the reason, and for people; NULL */
    struct kube_end *end;       /* since ENDED, FORGOTTEN as well; before: with which it ends if a
                                 * create that was refused has made no pod; NULL */
    struct kube_task_addresses addresses;
    struct kube_log log;
    struct pod_gpus *gpus; /* since its container runs, where GPUs are asked for figures; NULL */
};

/* docs/rfc/0017-kubernetes-engine.md, "When a node is lost" */
struct kube_node {
    struct node_facts facts; /* a copy; of one that was never there the name alone; all zero: its
                              * place is free */
    bool has_own_users;      /* its runtime gives pods user ids of their own */
    bool has_infiniband;     /* it offers what settings.infiniband_resource names */
    uint32_t pods_max;       /* that its kubelet takes at a time */
    char *gpu_label;         /* KUBE_GPUS_DRA: the type of those of which no slice tells it */
    struct device_table devices; /* likewise */
    char *devices_trouble;       /* likewise: why it takes no tasks; NULL */
    uint32_t mark;               /* as of tasks */
    bool is_there;
    unsigned timers;            /* that will look at it */
    bool is_silent, is_watched; /* its kubelet tells nothing; a timer will look at that */
    int64_t silent_ms;          /* since then */
    uint32_t left;              /* pods of attempts that have ended, which may still run there */
    uint32_t refusals;          /* of devices, in a row */
    bool is_held;               /* for these */
    char *refusal;              /* the last one's words; NULL */
    struct gpu_table gpus;      /* as its exporter tells */
    bool has_gpu_users, had_gpu_users; /* some task has GPUs there; or had when it was asked last */
    uint32_t gpu_failures;             /* of that, in a row */
    int64_t gpu_due_ms;                /* it is not asked before */
    struct node_use use;               /* as the resource metrics API tells */
};

/* Follows one kind of objects. */
struct kube_follow {
    struct feed feed;
    uint32_t mark; /* the number of the list */
    bool is_synced, is_expired;
    int64_t passed_said_ms; /* the log has told of an object that cannot be read then; 0: never */
};

enum { FOLLOW_NODES, FOLLOW_PODS, FOLLOW_SLICES, FOLLOWS };

enum fetch_result {
    FETCH_FAILED,
    FETCH_PART,   /* LOG_PIECE_MAX bytes at least */
    FETCH_LITTLE, /* fewer */
    FETCH_NOTHING,
    FETCH_WHOLE,
    FETCH_BROKEN,
};

/* What the kubelet has no more of one log is fetched from its pod: fetch.c. */
struct kube_fetch {
    struct kube *kube;
    struct attempt_id attempt; /* 0: the turn is free */
    pthread_t thread;
    bool has_thread; /* otherwise none could be made, and the turn has failed */
    void (*done)(void *context, uint64_t key, const struct kube_answer *answer);
    enum fetch_result result; /* the thread's, until it has ended */
    char trouble[200];        /* likewise; FETCH_FAILED: why */
};

/* A task that is being told why it ends. */
struct kube_reason {
    struct kube *kube;
    struct attempt_id attempt; /* 0: the turn is free */
    pthread_t thread;
    char word[KUBE_REASON_SIZE];
    uint32_t grace_ms;
};

/* A task that is being told where its peers are. */
struct kube_telling {
    struct kube *kube;
    struct attempt_id attempt; /* 0: the turn is free */
    pthread_t thread;
    bool has_thread;             /* otherwise none could be made, and the turn has failed */
    struct kube_addresses *list; /* the turn's own share */
    bool is_told;                /* the thread's, until it has ended */
    char trouble[200];           /* likewise; otherwise: why not */
};

struct kube {
    struct engine engine;
    struct engine_sink sink;
    struct arena arena; /* of the configuration */
    struct kube_access access;
    struct pod_settings settings;
    struct kube_client *client;
    struct kube_forwards *forwards;
    pthread_mutex_t lock;
    pthread_cond_t synced; /* a list is complete, or an attempt has ended */
    bool is_listed;        /* from then on attempts are told of */
    bool is_unreachable;   /* nodes have been told to be not healthy */
    char trouble[256];     /* why not synced; "" */
    uint32_t node_lost_ms;
    bool is_deaf; /* no node is heard: that has been logged */
    struct kube_follow follows[FOLLOWS];
    size_t follow_count; /* without KUBE_GPUS_DRA slices are not followed */
    struct slices slices;
    bool are_devices_known; /* KUBE_GPUS_DRA: nodes are not told before */
    uint64_t chance;
    const char *given_up;      /* the folder of given_up.h; NULL: there is none */
    const char *secret_notes;  /* that of secret_note.h; likewise */
    struct id_map noted;       /* attempts with one at the open, until the first list is complete */
    const char *address_notes; /* of attempts that know where their peers are; NULL */
    uint32_t late_ms;          /* KUBE_LATE_MS; tests have less */
    int ping_ms;               /* KUBE_PING_MS; likewise */
    struct {
        const char *directory; /* NULL: no logs are kept */
        uint64_t segment_bytes, room_bytes;
        int64_t keep_s;
        struct log_watch *watch; /* NULL: whoever follows a log looks from time to time */
        size_t streams;
        bool has_waiting;     /* some log may wait for its turn */
        uint32_t fetch_turns; /* that have been given out */
        uint32_t pauses;      /* of logs that are asked for again; tests look at it */
        struct kube_fetch fetches[KUBE_FETCHES_MAX];
        int fetch_end;        /* becomes readable when they are to end */
        int fetch_silence_ms; /* KUBE_FETCH_SILENCE_MS; tests have less */
        bool is_ending;
        struct watcher collector;
    } logs;
    struct {
        const char *path;
        uint16_t port; /* 0: nobody is asked */
        CURLM *multi;  /* its thread's; may be woken by any */
        struct watcher watcher;
    } gpu_metrics;
    struct {
        bool is_off;
        uint32_t again_ms; /* KUBE_METRICS_AGAIN_MS; tests have less */
        /* the client's thread alone */
        struct feed feed; /* of pages; only its path and its place in the list count */
        struct list_cut cut;
        uint32_t pages;
        int64_t begun_ms, due_ms;
        uint32_t failures;   /* in a row */
        int said_status;     /* what the log says of the last failure; -1: nothing is wrong */
        size_t untold;       /* nodes of this list of which it says nothing that can be read */
        bool is_untold_said; /* the log says so */
    } metrics;
    struct kube_reason reasons[KUBE_REASONS_MAX];
    bool has_reasons; /* some task may wait for its turn */
    struct {
        struct kube_telling turns[KUBE_TELLINGS_MAX];
        struct { /* in their order; some may not be wanted any more */
            struct attempt_id *items;
            size_t count, room;
        } waiting;
    } tellings;
    struct pod_shares shares; /* of the orders */
    struct id_map attempts;
    struct {
        struct kube_task **items;
        size_t count, room;
        struct pool pools[TASK_POOLS]; /* where they stand, by the length of their node's name */
    } tasks;
    struct text_map node_names;
    struct {
        struct kube_node *items;
        size_t count, room;
        size_t free; /* places */
    } nodes;
};

/* An attempt that is given up, and why (given_up.h). */
struct kube_given_up {
    struct attempt_id attempt;
    const char *reason, *message;
};

/* What is to be told, and what is to be durable before. */
struct tells {
    struct arena arena;
    struct {
        struct engine_event *items;
        size_t count, room;
    } events;
    struct {
        struct kube_given_up *items;
        size_t count, room;
    } given_up;
};

/* Take the lock, to gather what is to be told. */
void kube_enter(struct kube *kube, struct tells *tells);
void tells_add(struct tells *tells, const struct engine_event *event); /* copies all of it */
void tells_give_up(struct tells *tells, struct attempt_id attempt, const char *reason,
                   const char *message); /* likewise */
/* Give the lock back, then tell, as that waits for the disk: of an end the log is read there, which
 * may be long; frees. */
void kube_leave(struct kube *kube, struct tells *tells);

struct doc;

/* --- follow.c: lists and watches --- */

void follows_start(struct kube *kube);
/* Under the lock. The log tells why an object of this kind is passed over, now and then. */
void follow_passed(struct kube *kube, uint64_t which, const struct doc *object, const char *why);
/* Answers of the client's watcher. */
void follow_failed(void *context, const char *trouble, int64_t for_ms);
void follow_answered(void *context);

/* --- ask.c; under the lock --- */

#define ASK_CLAIMS "resourceclaims"

/* Append where objects of a kind are, or the task's own. */
void ask_path(const struct kube *kube, const char *kind, const struct kube_task *task,
              struct buf *path);
/* Of a pod, with its uid. */
void ask_delete(struct kube *kube, const struct kube_task *task, const char *kind, uint32_t grace_s,
                void (*done)(void *, uint64_t, const struct kube_answer *));
/* The answer of one that nobody waits for, and that nobody asks for again: it lasts until it is
 * allowed. */
void ask_deleted(void *context, uint64_t key, const struct kube_answer *answer);
/* It was made after its attempt had been given up: nobody else takes it away. */
void ask_delete_stray(struct kube *kube, uint64_t attempt, const char *kind, const char *uid);
bool ask_is_made(const struct kube_answer *answer);
/* What a Status says; the text of an answer that is none. */
const char *ask_refusal(const struct kube_answer *answer, struct arena *arena);

/* --- claims.c; under the lock --- */

/* It is made, allocated and reserved, unless that is so, or under way, or the task has none. */
void task_claim_ask(struct kube *kube, struct kube_task *task, struct tells *tells);
/* Its pod is not prepared: its claim is looked at from time to time, as long as that is so. */
void task_claim_watch(struct kube *kube, struct kube_task *task);

/* --- secrets.c; under the lock --- */

/* At the open: which attempts have a note, so that pods that are adopted need no other. */
void secrets_noted_read(struct kube *kube);
/* Of an attempt that is being forgotten: it is one of its `deletes`. */
void secret_delete(struct kube *kube, const struct kube_task *task);
/* Of one that nobody waits for, and then its note; it lasts until it is allowed. */
void secret_delete_late(struct kube *kube, struct attempt_id attempt, uint32_t delay_ms);

/* --- reason.c --- */

/* Under the lock. A task that runs is told; then, or when that takes too long, kube_task_end is
 * called. False: it is not, or has been. */
bool task_reason_tell(struct kube *kube, struct kube_task *task, const char *reason);
/* After kube_fetches_end, by which they end; not under the lock. */
void kube_reasons_end(struct kube *kube);

/* --- addresses.c --- */

/* engine_ops */
void kube_tell_addresses(struct engine *engine, const struct attempt_id *attempts, size_t count,
                         struct text text);
/* Under the lock. What its pod says of its own: true: it has one, or needs none. */
bool task_address_take(const struct kube *kube, struct kube_task *task, const char *address);
/* Under the lock: it was there before; it ends; it is forgotten; the first list is complete. */
void task_addresses_adopt(const struct kube *kube, struct kube_task *task);
void task_addresses_drop(struct kube_task *task);
void task_addresses_forget(const struct kube *kube, struct attempt_id attempt);
void addresses_left(struct kube *kube);
/* As kube_reasons_end. */
void kube_tellings_end(struct kube *kube);

/* --- patience.c; under the lock --- */

struct pod_object;

/* Its pod waits, for this reason. */
void task_waits(struct kube *kube, struct kube_task *task, const struct pod_object *pod,
                struct tells *tells);

/* --- nodes.c; under the lock --- */

void nodes_seen(struct kube *kube, const struct doc *object, bool is_removed, uint32_t mark,
                struct tells *tells);
/* It cannot be read, but for its head (object_read.h): what is known of it stays. */
void nodes_passed(struct kube *kube, const struct doc *head, bool is_removed, uint32_t mark,
                  struct tells *tells);
void nodes_sweep(struct kube *kube, uint32_t mark, struct tells *tells); /* not in the list */
void nodes_tell(struct kube *kube, struct tells *tells);                 /* all of them, again */
void nodes_heard(struct kube *kube); /* the server answers again: who is silent is so from now */
/* Pods of a node that has been given up: one more may still run there, or it has gone. */
void nodes_hold(struct kube *kube, const char *name);
void nodes_release(struct kube *kube, const char *name, struct tells *tells);
/* A pod was refused for want of a working device; one that asked for a device runs. */
void nodes_refused(struct kube *kube, const char *name, const char *why, struct tells *tells);
void nodes_took(struct kube *kube, const char *name);
/* What its node is known to offer now is enough for the pod; it may have been more when the task
 * was placed. ERR_UNAVAILABLE. */
int nodes_check(struct kube *kube, const struct container *container, struct err *err);
struct kube_node *kube_node_find(struct kube *kube, const char *name); /* NULL: there is none */
/* KUBE_GPUS_DRA. A slice has been seen; those that the list has not have gone; slices and pods are
 * known for the first time. */
void nodes_slice_seen(struct kube *kube, const struct doc *object, bool is_removed, uint32_t mark,
                      struct tells *tells);
void nodes_slice_passed(struct kube *kube, const struct doc *head, bool is_removed, uint32_t mark,
                        struct tells *tells);
void nodes_slices_sweep(struct kube *kube, uint32_t mark, struct tells *tells);
void nodes_devices_known(struct kube *kube, struct tells *tells);
/* Append the devices that these GPUs are. ERR_UNAVAILABLE: not all of them are offered now. */
int nodes_pick(struct kube *kube, const struct container *container, struct buf *out,
               struct err *err);
void nodes_free(struct kube *kube);

/* --- logs.c --- */

/* `directory` of the configuration is made when it is missing. ERR_IO. */
int logs_open(struct kube *kube, const char *directory, struct err *err);
void logs_close(struct kube *kube);
int logs_start(struct kube *kube, struct err *err); /* looks from now on at what may go */
/* Under the lock. All that runs is known: its logs are followed from now on, and not before, so
 * that a restart does not wait for them. */
void logs_listed(struct kube *kube);
/* Under the lock: it is made; its container has begun; nothing more of it is waited for. */
void task_log_begin(const struct kube *kube, struct attempt_id attempt, const char *job);
void task_log_want(struct kube *kube, struct kube_task *task);
void task_log_leave(struct kube *kube, struct kube_task *task);
/* Under the lock. It has ended: true: its end is told when its log has come. */
bool task_log_hold(struct kube *kube, struct kube_task *task);
/* What is judged of it. */
void task_log_tails(const struct kube *kube, struct attempt_id attempt, struct buf *user,
                    struct buf *platform);
/* engine_ops */
ssize_t kube_log_read(struct engine *engine, struct attempt_id attempt, enum log_stream stream,
                      uint64_t *offset, char *bytes, size_t size, struct log_part *part,
                      struct err *err);
int kube_stats(struct engine *engine, struct attempt_id attempt, struct engine_stats *stats,
               struct err *err);
int kube_log_time(struct engine *engine, struct attempt_id attempt, enum log_stream stream,
                  int64_t at_ms, uint64_t *offset, struct err *err);
int kube_log_watch(struct engine *engine, struct attempt_id attempt, enum log_stream stream,
                   struct err *err);

/* --- gpu_ask.c: asks the exporters of the nodes --- */

/* ERR_INVALID: no such path; ERR_UNAVAILABLE: no thread. */
int kube_gpus_start(struct kube *kube, struct err *err);
void kube_gpus_stop(struct kube *kube); /* waits for its thread */

/* --- gpu_use.c: what they have told --- */

/* Under the lock. Its container runs: which GPUs it has. */
void kube_task_gpus_note(struct kube *kube, struct kube_task *task, const struct doc *pod);
/* Under the lock. Add them to what it uses; false: nothing is known of them now. */
bool kube_task_gpus_add(struct kube *kube, const struct kube_task *task,
                        struct engine_stats *stats);
/* The same of a node. */
void kube_node_gpus_add(const struct kube *kube, const struct kube_node *node,
                        struct engine_stats *stats);
/* engine_ops */
void kube_gpus(struct engine *engine, struct arena *arena, const struct engine_gpu **gpus,
               size_t *count);

/* --- node_ask.c: asks the resource metrics API --- */

/* The list is asked for from now on, and what comes of it is on the client's thread. */
void kube_metrics_start(struct kube *kube);
void kube_metrics_release(struct kube *kube); /* the client has ended */
/* On the client's thread: the API server answers again, so it is asked soon. */
void kube_metrics_hurry(struct kube *kube);
/* engine_ops */
int kube_node_stats(struct engine *engine, const char *node, struct engine_stats *stats,
                    struct err *err);

/* --- fetch.c; under the lock --- */

/* False: no turn is free. `done` is called on the client's thread when it has ended. */
bool kube_fetch_start(struct kube *kube, struct attempt_id attempt,
                      void (*done)(void *context, uint64_t key, const struct kube_answer *answer));
/* It has ended: what came of it. Its turn is free. */
enum fetch_result kube_fetch_take(struct kube *kube, struct attempt_id attempt, char trouble[200]);
int kube_fetches_open(struct kube *kube, struct err *err); /* before anything else; no lock */
void kube_fetches_end(struct kube *kube); /* waits for all; takes the lock itself */

/* --- exec.c --- */

/* Whether the task runs, so that a program, or a connection, may be asked of its pod. Takes the
 * lock. ERR_NOT_FOUND: there is no such attempt; ERR_CONFLICT: it does not run, or is being ended.
 */
int kube_task_check(struct kube *kube, struct attempt_id attempt, struct err *err);

/* Starts a program in a pod: `begin`, then what is asked for; waits as kube_exec. It does not look
 * whether the task runs. */
int kube_exec_words(struct kube *kube, struct attempt_id attempt, const char *const *begin,
                    const struct engine_exec_request *request, struct engine_exec **out,
                    struct err *err);
/* engine_ops.exec */
int kube_exec(struct engine *engine, struct attempt_id attempt,
              const struct engine_exec_request *request, struct engine_exec **out, struct err *err);

/* --- tasks.c; under the lock --- */

struct kube_task *kube_task_find(struct kube *kube, struct attempt_id attempt);
struct kube_task *kube_task_add(struct kube *kube, struct attempt_id attempt, const char *node);
void kube_task_begin(struct kube *kube, struct kube_task *task,
                     const struct container *container); /* which is copied */
/* `reason` is one word for the task; "": it hears none. */
void kube_task_kill(struct kube *kube, struct kube_task *task, uint32_t grace_ms,
                    const char *reason);
/* It has heard why, or will not: its pod is deleted. */
void kube_task_end(struct kube *kube, const struct kube_task *task);
void kube_task_forget(struct kube *kube, struct kube_task *task);
/* One of its `deletes` has been answered. */
void kube_task_left(struct kube *kube, struct kube_task *task);
/* It cannot be started: its pod is deleted, and its end has this reason. */
void kube_task_give_up(struct kube *kube, struct kube_task *task, const char *reason,
                       const char *message, struct tells *tells);
/* What is known, again. */
void kube_task_tell(const struct kube_task *task, struct tells *tells);
void tasks_seen(struct kube *kube, const struct doc *object, bool is_removed, uint32_t mark,
                struct tells *tells);
/* As nodes_passed: one of an attempt that is not known yet is taken as one that waits. */
void tasks_passed(struct kube *kube, const struct doc *head, bool is_removed, uint32_t mark,
                  struct tells *tells);
void tasks_sweep(struct kube *kube, uint32_t mark, struct tells *tells);
/* The first list is complete: those that it does not have. */
void tasks_given_up(struct kube *kube, struct tells *tells);
void tasks_left(struct kube *kube, struct tells *tells);
/* It has gone, with all that ran there. Ends are told before that, also without the log that they
 * wait for: what has ended is not lost. */
void tasks_settle(struct kube *kube, const char *node, struct tells *tells);
void tasks_leave(struct kube *kube, const char *node, struct tells *tells);
/* Its node is silent: they end, and their pods are deleted. */
void tasks_lose(struct kube *kube, const char *node, struct tells *tells);
void tasks_free(struct kube *kube);

#endif
