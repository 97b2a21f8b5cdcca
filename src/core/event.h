/* event.h — everything that can happen to the core, with its time and any chance as data.
 *
 * Pure. Strings are borrowed for the step; `plan` is handed over. event_encode gives the body of
 * the event log's row; event_decode reads it back for replay (tests, forecasts, audits). What is
 * opaque to the core (the spec's bytes, source, secrets) is not in the log: the job's row has it.
 */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H
#include "base/text.h"
#include "model/completion.h"
#include "model/ids.h"
#include "model/node.h"
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct buf;
struct core_config;
struct placer;
struct err;
struct job_record;
struct plan;

enum event_kind {
    EVENT_SUBMIT,
    EVENT_STOP,           /* execution type STOP */
    EVENT_START,          /* execution type START of a stopped job */
    EVENT_DELETE,         /* forget a final job */
    EVENT_SCALE,          /* change the instances of a role of a running non-gang job */
    EVENT_RELEASE,        /* let go the containers held for debugging */
    EVENT_NODE,           /* appeared or changed */
    EVENT_NODE_LOST,      /* its tasks are lost */
    EVENT_NODE_PARDON,    /* forget the failures counted against it */
    EVENT_TASK_PREPARING, /* the engine has begun: pulling the image, creating */
    EVENT_TASK_STARTED,   /* the container runs */
    EVENT_TASK_EXITED,    /* ended, or could not be created; classified at the edge */
    EVENT_TASK_NOTE,      /* something to tell in the job's story: "pulling image … 40 %" */
    EVENT_TASK_IDLE,      /* no progress for the configured time while its peers move */
    EVENT_TIMER,          /* a time asked for by COMMAND_WAKE has come */
    EVENT_CONFIG,         /* new configuration */
    EVENT_RESTORE,        /* a server starts: a new core of this configuration is made of the rows;
                           * logged, never stepped (replay.h) */
    EVENT_TASK_REFUSED,   /* its node or cluster does not take it: it is placed anew, elsewhere */
    EVENT_NODE_CORDON,    /* somebody asks that nothing is started there */
    EVENT_NODE_DRAIN,     /* the same, and what runs there is ended and starts elsewhere */
    EVENT_NODE_UNCORDON,  /* it is used again */
    EVENT_CLUSTER_CLOSE,  /* somebody asks that nothing of a virtual cluster starts */
    EVENT_CLUSTER_OPEN,   /* it may start again */
};

/* Opaque to the core: rows that the store keeps with the job. */
struct submission {
    struct plan *plan;      /* becomes the core's */
    struct text spec_bytes; /* spec_encode */
    struct text plan_bytes; /* plan_encode, read back at a restart */
    bool has_priority;      /* the file named a priority class */
    struct text source;     /* the file with the secrets masked */
    struct text sealed;     /* secrets, sealed by the server's key; may be empty */
    uint8_t format;         /* enum spec_format */
    uint8_t notices;        /* what its user is told of: server/notices.h; nothing to the core */
};

/* START of a job that the core has forgotten (final for longer than finished_keep_s): its row and
 * its plan from the store bring it back. Without them it is ERR_NOT_FOUND. */
struct recall {
    struct job_id job;
    const struct job_record *record; /* NULL: the core should know it */
    struct plan *plan;               /* becomes the core's */
};

struct event {
    enum event_kind kind;
    int64_t now_ms;   /* Unix time; never goes back from one event to the next */
    uint64_t random;  /* for jitter */
    uint64_t request; /* who waits for an answer; 0 = nobody */
    const char *user; /* who asks, "" = the platform */
    union {
        struct submission submit;
        struct job_id job;   /* STOP, START, DELETE, RELEASE */
        struct recall start; /* START; `job` as above */
        struct {
            struct job_id job;
            uint16_t role;
            uint32_t instances;
        } scale;
        struct node_facts node; /* NODE; LOST, CORDON and DRAIN use name and reason, PARDON and
                                 * UNCORDON the name */
        struct {
            const char *name, *reason; /* CLOSE: for people, may be empty */
        } cluster;                     /* CLUSTER_CLOSE, CLUSTER_OPEN */
        struct {
            struct attempt_id attempt;
            struct completion completion; /* EXITED */
            double blame;                 /* EXITED: its weight against the node (blame_weight) */
            const char *reason, *message; /* NOTE, IDLE, REFUSED */
            const char *node;             /* STARTED: where it runs; NULL or "": as was asked */
            const char *address;          /* STARTED: its own; NULL or "": that of its node */
        } task;
        struct {
            const struct core_config *config; /* CONFIG, RESTORE */
            /* CONFIG: one of its policy and document that knows nothing yet, which becomes the
             * core's; NULL: the step makes it, which takes long for a large document */
            struct placer *placer;
            struct job_id last_job; /* RESTORE: numbers that are used */
            struct attempt_id last_attempt;
        };
    };
};

void event_encode(const struct event *event, struct buf *out);
/* Everything that the event points to is allocated in `arena` (a plan on the heap). */
int event_decode(struct text bytes, struct arena *arena, struct event *event, struct err *err);
/* "submit", "task exited", … for logs. */
const char *event_name(enum event_kind kind);
/* The plan of an event that no core was given. */
void event_plan_free(const struct event *event);

#endif
