/* service.h — the port through which the API asks the server for everything that is not a plain
 * read of the store.
 *
 * Any thread may call. A request that changes something is answered by `reply.done`, called once,
 * from the core thread, after what it did is on disk: it must not block (resume a suspended
 * connection, signal a condition). A call that returns a negative code was refused at once
 * (ERR_BUSY: mailbox full; ERR_UNAVAILABLE: the disk is full, or the server is ending) and `done`
 * is never called. Strings given are copied.
 *
 * Rights (who may do what to whose job) are the caller's to check; the server checks only that the
 * user may use the virtual cluster named in a job file, and what users' quotas allow them to
 * submit, start and scale (ERR_QUOTA).
 */
#ifndef API_SERVICE_H
#define API_SERVICE_H
#include "base/text.h"
#include "core/core.h"
#include "core/trial.h"
#include "engine/engine.h"
#include "model/alert_book.h"
#include "model/ids.h"
#include "model/storage.h"
#include "model/use_series.h"
#include "store/store.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct err;
struct exit_rules;
struct hived;
struct problems;
struct store_reader;

struct service_submission {
    const char *user;
    struct text source;        /* the job file */
    struct text key;           /* by which it is the same when it is sent again; "": none.
                                * STORE_SUBMIT_KEY_MAX bytes at most */
    const char *secrets_of;    /* "user~name" of the job whose secrets stand for those that are
                                * masked in the file, which is the user's own; NULL: none do */
    struct job_id secrets_job; /* likewise */
};

struct service_answer { /* strings live for the call only */
    int code;           /* 0 or ERR_* */
    struct job_id job;  /* of a submission */
    const char *name;   /* likewise, when it was taken before by its key: the job may be gone. NULL:
                         * it was not */
    const char *path;   /* place in the user's document, or "" */
    const char *text;   /* why, when code is not 0 */
    int64_t retry_s;    /* of ERR_QUOTA and ERR_BUSY: when another try is worth it; 0: not known */
    bool is_noted;      /* what the reply's `audit` says has been stored with it */
};

struct service_reply {
    void (*done)(void *context, const struct service_answer *answer);
    void *context;
    /* To be written down in the same transaction as what is asked for, with what becomes of it; its
     * time, and the subject of a submission, are the server's to fill in. NULL: nothing is. */
    const struct store_audit *audit;
};

enum service_action {
    SERVICE_STOP,
    SERVICE_START,   /* execution type START of a stopped job */
    SERVICE_DELETE,  /* a final job and its history; ERR_CONFLICT while it lives */
    SERVICE_RELEASE, /* let go the containers held for debugging */
};

enum service_node_action {
    SERVICE_NODE_PARDON,   /* forget the failures counted against it */
    SERVICE_NODE_CORDON,   /* nothing is started there; `reason` is for people, may be empty */
    SERVICE_NODE_DRAIN,    /* the same, and what runs there is ended and starts elsewhere */
    SERVICE_NODE_UNCORDON, /* ERR_CONFLICT: the platform cordoned it, for its failures */
};

enum service_cluster_action {
    SERVICE_CLUSTER_CLOSE, /* nothing of it starts; `reason` is for people, may be empty */
    SERVICE_CLUSTER_OPEN,
};

/* "I have come", said by skep-init for its try (docs/rfc/0009). */
struct service_barrier {
    struct attempt_id attempt;
    struct text token; /* of the try */
    enum barrier_kind kind;
    bool is_up;      /* false: it came, but what the others wait for will not be there (ssh) */
    bool is_waiting; /* answered when all have come, else at once */
};

enum { SERVICE_CHECKS_MAX = 8 + 16 /* one for each engine */ };

struct service_check { /* one line of /readyz?verbose */
    const char *name;  /* as long as the service lives */
    bool is_ok;
    bool is_degraded; /* it is ok, as requests are welcome, but a person should look at it */
    char text[200];
};

/* Told after every commit that changed jobs, their tags, nodes or stories, from the core thread;
 * must not block. */
struct service_watch {
    void (*notify)(void *context);
    /* After a commit by which the user ("": anybody) may have lost tokens, or the rights of an
     * admin, before its answer; likewise. May be NULL. */
    void (*revoked)(void *context, const char *user);
    /* The storages are others from now on; likewise. May be NULL. */
    void (*storages)(void *context);
    void *context;
    struct service_watch *next; /* the server's */
};

/* The cluster at one instant. */
struct service_snapshot {
    struct hived *hived;         /* what readers see of it; NULL under another policy, … */
    bool is_making;              /* … or since its first cells are being made */
    struct hived *old;           /* or NULL: that of another snapshot, which nobody reads */
    struct core_node_use *nodes; /* by the node's id */
    uint32_t node_count;
    struct core_node_jobs jobs; /* whose tasks are on the nodes */
    uint64_t core;              /* the server's: of which of its cores they were copied */
    uint64_t version;           /* of the state that was copied */
    int64_t cost_us;            /* of the core's time */
};

struct service {
    void *context;
    struct store *store;      /* for store_job_list and its like, which need no reader */
    const uint8_t *token_key; /* 32 bytes, to sign tokens with */

    /* Read a job file and submit it. ERR_INVALID: `problems` has them all (their memory is the
     * caller's arena); warnings are there on success, too. With a key that the user has sent
     * before: the answer that it got then, or ERR_CONFLICT at "Idempotency-Key", for another file.
     */
    int (*submit)(void *context, const struct service_submission *submission,
                  struct problems *problems, struct service_reply reply, struct err *err);
    /* What would become of it, were it submitted now: in *trial, in the arena, before `done` is
     * called. Nothing is stored. Errors as submit; ERR_BUSY: it was asked too often. */
    int (*trial)(void *context, const struct service_submission *submission,
                 struct problems *problems, struct arena *arena, struct core_trial *trial,
                 struct service_reply reply, struct err *err);
    /* What can be said of the file alone, without asking the core. Errors as submit. */
    int (*check)(void *context, const struct service_submission *submission,
                 struct problems *problems, struct err *err);
    /* Of the user's quota of submissions a minute, now. */
    int64_t (*submits_used)(void *context, const char *user);
    int (*act)(void *context, enum service_action action, const char *user, struct job_id job,
               struct service_reply reply, struct err *err);
    int (*scale)(void *context, const char *user, struct job_id job, uint16_t role,
                 uint32_t instances, struct service_reply reply, struct err *err);
    /* Tags, users, tokens, settings, audit records. `code`, `err` and `audit` of the change are
     * not used. reply.done may be NULL: nobody waits. */
    int (*change)(void *context, const struct store_change *change, struct service_reply reply,
                  struct err *err);
    /* Answered 0: all have come. ERR_UNAUTHORIZED (at once): not the token of this try.
     * ERR_NOT_FOUND: no such try. ERR_CONFLICT: a task will never come, or this try has ended.
     * ERR_BUSY, ERR_UNAVAILABLE: noted or not, ask again. */
    int (*barrier)(void *context, const struct service_barrier *report, struct service_reply reply,
                   struct err *err);
    int (*node_act)(void *context, enum service_node_action action, const char *user,
                    const char *node, struct text reason, struct service_reply reply,
                    struct err *err);

    int (*cluster_act)(void *context, enum service_cluster_action action, const char *user,
                       const char *cluster, struct text reason, struct service_reply reply,
                       struct err *err);

    /* How the cluster is used, in *snapshot before `done` is called; the caller frees its `hived`,
     * `old` and `nodes` (also when the answer is an error). *snapshot must live until then. It is
     * empty, or another snapshot that the caller reads no more: then only what has changed is
     * copied, where that is possible; where it is not, its `hived` comes back as `old`. */
    int (*snapshot)(void *context, struct service_snapshot *snapshot, struct service_reply reply,
                    struct err *err);

    /* Grows with every step of the core, before it: a copy of this version shows the cluster as it
     * is. Any thread. */
    uint64_t (*snapshot_version)(void *context);

    /* A reader for this thread until it is put back. NULL: too many are out (answer 503). */
    struct store_reader *(*reader_get)(void *context, struct err *err);
    void (*reader_put)(void *context, struct store_reader *reader);

    /* Which engine has the logs and figures of a node's tasks. */
    uint8_t (*engine_of)(void *context, const char *node);
    /* Can it follow logs? ERR_UNSUPPORTED, ERR_UNAVAILABLE. */
    int (*log_can_follow)(void *context, uint8_t engine, struct err *err);
    /* As in engine.h; ERR_UNAVAILABLE while the engine is not there, ERR_UNSUPPORTED when it cannot
     * do this. */
    ssize_t (*log_read)(void *context, uint8_t engine, struct attempt_id attempt,
                        enum log_stream stream, uint64_t *offset, char *bytes, size_t size,
                        struct log_part *part, struct err *err);
    int (*log_time)(void *context, uint8_t engine, struct attempt_id attempt,
                    enum log_stream stream, int64_t at_ms, uint64_t *offset, struct err *err);
    int (*log_watch)(void *context, uint8_t engine, struct attempt_id attempt,
                     enum log_stream stream, struct err *err);
    /* The storages that are offered at this moment, copied into the arena; or one of them, NULL
     * when there is none of that name. */
    struct storage_list (*storages)(void *context, struct arena *arena);
    const struct storage *(*storage)(void *context, struct text name, struct arena *arena);
    /* What an attempt, or (`node` not NULL) a machine, used over time. ERR_NOT_FOUND: nothing is
     * known. */
    int (*use)(void *context, struct job_id job, struct attempt_id attempt, const char *node,
               enum use_resolution resolution, struct use_points *points, struct err *err);
    /* What a machine uses now: its latest sample. False: there is none, or it is a minute old. */
    bool (*use_last)(void *context, const char *node, uint64_t values[USE_FIELDS]);
    /* As engine_ops.exec; ERR_UNAVAILABLE, ERR_UNSUPPORTED as above. */
    int (*exec)(void *context, uint8_t engine, struct attempt_id attempt,
                const struct engine_exec_request *request, struct engine_exec **exec,
                struct err *err);
    /* As engine_ops.connect; errors likewise. */
    int (*connect)(void *context, uint8_t engine, struct attempt_id attempt, uint16_t port,
                   struct err *err);
    /* A line of the story of the attempt's job. */
    void (*note)(void *context, struct attempt_id attempt, const char *reason, const char *message);
    /* GPUs that are sampled, by node and index; none while nothing samples them. */
    void (*gpus)(void *context, struct arena *arena, const struct engine_gpu **gpus, size_t *count);

    /* What needs attention at this moment, then what has needed it lately (model/alert_book.h); in
     * the arena. */
    int (*alerts)(void *context, struct arena *arena, struct alert **alerts, size_t *count,
                  struct err *err);

    /* The pair of keys by which the tasks of a job reach each other, in the arena, as OpenSSH
     * writes them. */
    void (*ssh_keys)(void *context, struct job_id job, const char *comment, struct arena *arena,
                     const char **private_key, const char **public_key);

    /* The exit table as it is now; it cannot be exchanged until it is put back: be short. */
    const struct exit_rules *(*rules_get)(void *context);
    void (*rules_put)(void *context);

    /* What is in force of the configuration, as JSON: the reply of GET /api/v2/settings. */
    void (*settings)(void *context, struct buf *out);

    void (*watch)(void *context, struct service_watch *watch);
    /* No call of notify is under way any more when it returns. */
    void (*unwatch)(void *context, struct service_watch *watch);

    /* Everything that must hold before requests are welcome; returns the number of checks. */
    size_t (*ready)(void *context, struct service_check checks[SERVICE_CHECKS_MAX]);
    /* The core thread has moved within the last seconds (or had nothing to do). */
    bool (*is_alive)(void *context);
    /* The server's share of /metrics, in Prometheus' text format. */
    void (*metrics)(void *context, struct buf *out);
};

#endif
