/* world.h — the API over a real store and a real core in one thread, without a socket or an engine.
 *
 * Every request is answered when world_ask returns. Logs are what the test says they are.
 */
#ifndef TEST_API_WORLD_H
#define TEST_API_WORLD_H
#include "api/call.h"
#include "core/core.h"
#include "exits/rules.h"

struct world_attempt_log {
    struct attempt_id attempt;
    struct buf text;
    bool is_ended, is_unreadable;
    uint64_t removed; /* so many bytes of the beginning are gone */
    uint64_t piece;   /* bytes; a read ends where one of these does; 0: only at the end */
    const char *late; /* is written just before somebody watches; NULL: nothing */
    int follower;     /* our end of the latest watch, or -1 */
};

struct world {
    char directory[64];
    struct store *store;
    struct core *core;
    struct exit_rules *rules;
    struct output output;
    struct service service;
    struct api api;
    uint8_t key[32];
    int64_t now_ms;
    uint64_t core_version;
    uint8_t engine;     /* of all attempts: no other has their logs */
    bool cannot_follow; /* the engine cannot follow logs */
    bool can_watch;     /* logs wake who follows them: world_log_wake */
    bool is_degraded;   /* one of the server's checks */
    int refuse;         /* not 0: changes are refused with this ERR_* */
    bool has_no_reader; /* nothing of the store can be read but its index in memory */
    void (*reading)(struct world *world); /* once: before the next reader of the store is given */
    void (*between)(struct world *world); /* once: while a request has read a part of what it needs,
                                             when it asks for the engine of an attempt */
    struct service_watch *watch;
    struct {
        struct world_attempt_log *items;
        size_t count, room;
    } logs;
    struct service_barrier barrier; /* the latest report */
    int barrier_code;               /* what it is answered */
    const char *address;            /* of who asks */
    int64_t peer_uid;               /* of who asks by this machine's socket; -1: nobody does */
    /* of the latest reply */
    int status;
    struct buf body;
    char content_type[80];
    char retry_after[24];                          /* "" without the header */
    char removed[24];                              /* likewise: X-Skep-Removed */
    char offset[24];                               /* likewise: X-Skep-Offset */
    char etag[48];                                 /* likewise */
    char location[80];                             /* likewise */
    char link[600];                                /* likewise */
    char content_range[80];                        /* likewise */
    const char *range, *if_range;                  /* of the next requests; NULL: none */
    const char *if_none_match;                     /* of the next requests; NULL: none */
    const char *idempotency_key;                   /* likewise */
    bool is_length_unknown;                        /* likewise: of the body */
    char submit_key[300];                          /* what came of it, with the latest submission */
    const struct service_answer *submitted_before; /* to those that follow; NULL: they are new */
    struct job_id secrets_job;  /* of the latest submission or dry run: whose secrets are taken */
    struct exchange *streaming; /* while a stream is open */
};

/* Users: "admin" (password "admin-password"), "alice" and "bob" ("alice-password", …); one node of
 * 8 CPUs and 4 GPUs. */
struct world *world_new(void); /* places by first fit */
struct world *world_new_policy(const char *policy);
struct world *world_new_placing(const char *policy, struct text document); /* its own section */
void world_free(struct world *world);

/* One request; the reply is in world->status and world->body. `token` may be NULL. */
int world_ask(struct world *world, enum http_method method, const char *target, const char *token,
              const char *content_type, struct text body);
int world_get(struct world *world, const char *target, const char *token);
int world_send(struct world *world, enum http_method method, const char *target, const char *token,
               const char *body);

/* A token by login; lives as long as the world. */
const char *world_login(struct world *world, const char *user);

/* What an administrator might do, without a request. */
void world_change(struct world *world, const struct store_change *change);
void world_admin_set(struct world *world, const char *user, bool is_admin);

/* A job of `instances` tasks; its id. */
struct job_id world_submit(struct world *world, const char *token, const char *name,
                           unsigned instances);
/* What an engine would tell: all placed tasks run; one ends. */
void world_run(struct world *world, struct job_id job);
void world_exit(struct world *world, struct job_id job, unsigned index, int code);
void world_refuse(struct world *world, struct job_id job, unsigned index); /* by its node */
struct attempt_id world_attempt(struct world *world, struct job_id job, unsigned index);
struct world_attempt_log *world_log(struct world *world, struct attempt_id attempt);
void world_log_wake(struct world_attempt_log *log);

/* Read on from the reply's stream: bytes (also in world->body), or HTTP_STREAM_*. */
ssize_t world_stream(struct world *world);
void world_stream_close(struct world *world);

/* To the end of what there is now: all of it, and what the last read gave. */
ssize_t world_read_all(struct world *world, struct buf *out);

bool world_body_has(const struct world *world, const char *part);

/* Of each test: *state is a new world. */
int world_setup(void **state);
int world_teardown(void **state);

#define assert_body(world, part)                                                                   \
    do {                                                                                           \
        if (!world_body_has((world), (part)))                                                      \
            fail_msg("'%s' is not in: %s", (part), buf_cstr(&(world)->body));                      \
    } while (0)
#define assert_no_body(world, part) assert_false(world_body_has((world), (part)))

#endif
