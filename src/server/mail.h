/* mail.h — what is put into the core thread's mailbox.
 *
 * A mail owns everything that it carries (in its arena) and is freed by the core thread, after the
 * commit. A request has somebody who waits for `reply`; a fact (the engine's) has nobody and must
 * not be lost: it is kept while the store cannot be written.
 */
#ifndef SERVER_MAIL_H
#define SERVER_MAIL_H
#include "api/service.h"
#include "base/arena.h"
#include "base/err.h"
#include "core/event.h"
#include "store/read.h"
#include "sys/mailbox.h"

struct placer;
struct server_config;

enum mail_kind {
    MAIL_EVENT,    /* step the core */
    MAIL_CHANGE,   /* a change beside the core */
    MAIL_CONFIG,   /* the configuration was read again */
    MAIL_SNAPSHOT, /* what HiveD's state and the use of nodes are */
    MAIL_BARRIER,  /* a task has come */
    MAIL_TRIAL,    /* a submission, to a core of the rows (trial.h) */
};

struct server_mail {
    struct mail mail;
    enum mail_kind kind;
    struct arena arena;
    struct event event;
    struct store_change change; /* MAIL_CHANGE; or beside an event, in the same transaction … */
    bool has_change;            /* … then this is set */
    struct err change_err;
    struct service_barrier barrier; /* without its token */
    struct server_config *config;
    struct placer *placer; /* of that, until the core has it; NULL: it makes one when it needs it */
    uint8_t engine;        /* of an event: which one tells it; ENGINE_NONE: the server itself */
    struct service_snapshot *snapshot; /* where what is seen goes */
    struct core_trial *trial;          /* likewise, with its memory */
    struct arena *trial_arena;
    bool is_request;            /* of the API, not a fact or upkeep: its time is measured */
    bool is_done;               /* its effect is not to be repeated: refused, or in force */
    struct service_reply reply; /* done == NULL: a fact */
    /* Of what needs a place among the quotas of the job's owner; NULL: nothing does. */
    struct mail_quota {
        const char *owner;
        struct store_user_quotas quotas;
        /* what it adds to what the owner has, from admission on: nothing when it was refused */
        uint64_t live_jobs, gpus, stored_jobs;
        bool is_counted; /* among the submissions of this minute */
    } * quota;
    struct store_audit *audit; /* to be written down with it; NULL: nothing */
    /* Of a submission with an idempotency key; NULL: it has none. `repeat`: the next one of the
     * batch that is the same, and gets the same answer. */
    struct store_submit_key *submit_key;
    struct server_mail *repeat;
    int64_t posted_us;
};

/* An empty mail; the sender's until it is posted. */
struct server_mail *mail_new(enum mail_kind kind);
/* Also of a plan that no step has taken. */
void mail_free(struct server_mail *mail);

/* An event of this kind; `user` is copied. */
struct server_mail *mail_event(enum event_kind kind, const char *user);

/* An event of an attempt; one after which the attempt has no container. */
bool mail_is_of_task(const struct server_mail *mail);
bool mail_is_end(const struct server_mail *mail);
/* Retention removes a job: nobody has asked. */
bool mail_is_purge(const struct server_mail *mail);

/* A copy of what reply.audit says, with the time. */
void mail_audit(struct server_mail *mail, int64_t now_ms);
/* What becomes of it, for the audit record. */
void mail_outcome(struct server_mail *mail, int code, const char *reason);

/* Answer whoever waits, at most once. */
void mail_answer(struct server_mail *mail, const struct service_answer *answer);
/* The same, and nothing of it is stored. */
void mail_refuse(struct server_mail *mail, int code, const char *text);

#endif
