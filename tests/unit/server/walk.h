/* walk.h — a whole server that is walked through requests, faults and restarts, and what is known
 * of it: every request that was answered, and nothing else.
 *
 * Under it are the store as it is, with commits that fail and a power that fails (faults.h), an
 * engine whose containers outlive the server (yard.h), and time that stands still (quiet.h). A step
 * is one thing that happens; it is over when the server has nothing more to do. Then everything
 * that must hold is looked at (walk_check.c). docs/rfc/0014-mutation-testing.md has the table.
 */
#ifndef TEST_WALK_H
#define TEST_WALK_H
#include "world.h"
#include "yard.h"

enum walk_kind { WALK_GANG, WALK_LOOSE, WALK_BIG, WALK_DEBUG, WALK_URGENT, WALK_KINDS };

enum walk_op {
    /* requests; the argument chooses the kind, the job or the node */
    WALK_SUBMIT,
    WALK_SUBMIT_AGAIN, /* with the key of one that was sent before */
    WALK_STOP,
    WALK_START,
    WALK_DELETE,
    WALK_SCALE,
    WALK_RELEASE,
    WALK_CORDON,
    WALK_DRAIN,
    WALK_UNCORDON,
    WALK_CLOSE, /* the virtual cluster */
    WALK_OPEN,
    WALK_SETTING,
    WALK_ROUND, /* several of them, in one round of the core thread */
    /* what the engine tells; the argument chooses the container or the node */
    WALK_RUN, /* all that are made start */
    WALK_END,
    WALK_FAIL,
    WALK_VANISH,
    WALK_REFUSE,
    WALK_UNHEARD, /* it ends, and nobody hears of it before the next start */
    WALK_NODE_SICK,
    WALK_NODE_GONE,
    WALK_NODE_FINE,
    WALK_AGAIN,       /* all is told again */
    WALK_STRANGER,    /* the end of one that nobody knows */
    WALK_CREATE_FAIL, /* the next creation is refused for now */
    /* the machine */
    WALK_PASS,     /* so many seconds */
    WALK_CLOCK,    /* the wall clock is set by so many minutes, forward or back */
    WALK_DISK,     /* the next commits are refused, so many of them */
    WALK_ROW,      /* the next commit is refused because of one record */
    WALK_UNREAD,   /* rows of attempts cannot be read from now on … */
    WALK_READABLE, /* … and can be again */
    WALK_RELOAD,   /* another of the configurations */
    WALK_RELOAD_BAD,
    WALK_RESTART,
    WALK_BOOT,  /* the machine with it: nothing runs any more, its clock begins anew */
    WALK_CRASH, /* the power of the server's machine fails, the containers go on */
    WALK_OPS
};

struct walk_step {
    enum walk_op op;
    int argument;
};

enum { WALK_JOBS_MAX = 64 };

struct walk_job {
    char name[16];
    enum walk_kind kind;
    struct job_id id;
    bool is_there;    /* it was taken, and no deletion since */
    bool is_gone;     /* a deletion was taken */
    bool is_stopped;  /* a stop was taken, and no start since */
    bool is_doubtful; /* a request about it has got no answer: its row says what became of it */
    uint32_t instances;
};

struct walk {
    struct world *world;
    const char *what;  /* the world's name, for people … */
    unsigned seed, at; /* … and where it is in it */
    const struct walk_step *step;
    struct walk_job jobs[WALK_JOBS_MAX];
    size_t job_count;
    bool is_cordoned[YARD_NODES], is_closed;
    bool is_admin_doubtful; /* likewise, of what is no job's */
    unsigned setting;
    unsigned audits, audits_doubtful;   /* records of requests that must be there, may be */
    unsigned reloads, reloads_doubtful; /* likewise */
    bool is_unreadable;
    struct store_reader *reader; /* while it is looked at */
    unsigned starts;
};

/* A world with a server; the walk is the world's from then on until walk_end, which ends all jobs,
 * deletes them, looks whether anything is left, and has the event log audited. */
void walk_begin(struct walk *walk, struct world *world, const char *what, unsigned seed);
void walk_end(struct walk *walk);

/* One step, until the server has nothing more to do, and what must hold then. */
void walk_step(struct walk *walk, const struct walk_step *step);
/* Something else happens to the server first, or comes when the power has failed: a start anew. */
void walk_restart(struct walk *walk, bool is_boot);
void walk_crash(struct walk *walk);

/* Until it has nothing more to do, over a disk that is good; it stays so until quiet_release. */
void walk_hold(struct walk *walk);

/* walk_check.c: everything that must hold while nothing moves. */
void walk_check(struct walk *walk);
/* Nothing is left of any job. */
void walk_check_empty(struct walk *walk);
/* What requests without an answer have become. */
void walk_learn(struct walk *walk);

/* The test fails, and says where the walk was. */
_Noreturn void walk_fail(const struct walk *walk, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
