/* call.h — one request inside the API: who asks, what for, and the helpers of every handler.
 *
 * A handler returns 0 after it has given a reply or suspended the call, or ERR_* by call_fail. It
 * may run again as `resume` after a suspension. Everything lives in the exchange's arena.
 */
#ifndef API_CALL_H
#define API_CALL_H
#include "api/api.h"
#include "api/http.h"
#include "api/route.h"
#include "api/service.h"
#include "api/web_ports.h"
#include "auth/auth.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/origin.h"
#include "doc/doc.h"
#include "store/read.h"
#include <stdatomic.h>

struct directory;
struct exec_sessions;
struct file_threads;
struct http_tls;
struct login_table;
struct oidc_thread;
struct passwords;
struct relay;
struct byte_budget;
struct throttle;
struct token_cache;
struct snapshot;
struct stream_guards;
struct worker;

struct api {
    struct api_config config;
    struct service *service;
    _Atomic(struct http_server *) http; /* NULL while it starts: its threads run already */
    struct http_tls *tls;               /* NULL: plain HTTP */
    char *socket_folder;                /* NULL: no socket */
    const char **origins;               /* of http_server_config, when there are plugins */
    struct login_table *logins;
    struct passwords *passwords;
    struct throttle *throttle;
    struct byte_budget *held;
    struct token_cache *tokens;
    struct oidc_thread *oidc;        /* NULL: not configured */
    struct directory *directory;     /* likewise; its thread's … */
    struct worker *directory_worker; /* … which is this */
    struct snapshot *snapshot;
    struct exec_sessions *sessions;
    struct worker *search_worker; /* searches logs */
    struct file_threads *files;   /* read and write storages */
    struct web_ports *web_ports;  /* NULL: not set up, nor is … */
    struct relay *relay;
    struct origin_pattern web_port_origin;
    struct service_watch watch;
    struct stream_guards *guards;
    atomic_uint_fast64_t generation;  /* grows with every commit that a stream may tell of */
    atomic_uint_fast32_t followers;   /* of logs */
    atomic_uint_fast32_t changes;     /* streams of them */
    atomic_uint_fast32_t stories;     /* that are followed */
    atomic_uint_fast64_t requests[6]; /* by class of status: 1xx … 5xx */
    atomic_uint_fast64_t request_us;
    int64_t started_ms;
};

struct caller {
    struct auth_caller auth; /* without virtual clusters: the server looks them up */
    const char *token_id;    /* "": by this machine's socket, or by a client certificate */
    int64_t expires_ms;      /* of the token, or of the certificate; 0: never */
    bool is_by_socket;       /* of this machine: it counts as an admin alone */
};

struct call {
    struct api *api;
    struct exchange *exchange;
    struct arena *arena; /* the exchange's */
    const struct route *route;
    struct text parameters[ROUTE_PARAMETERS_MAX];
    struct caller caller;
    struct store_reader *reader;    /* put back after every step */
    const struct exit_rules *rules; /* likewise */

    struct err err;            /* of the handler */
    const char *error_code;    /* stable name for clients; NULL: the usual one of err.code */
    const char *missing_right; /* told with ERR_FORBIDDEN when set */
    bool is_by_admin;          /* nothing but being an admin has given a right it was asked for */
    const char *reason;        /* told beside a message that is OpenPAI's, or NULL */
    struct problems *problems; /* of a job file; told with the error */
    int64_t retry_s;           /* of ERR_BUSY: when it is worth another try; 0: at once */

    /* what is to be written down of a request that changes something: audit.h */
    struct store_audit audit;
    bool is_audited; /* it has been, or the server will */
    bool is_trial;   /* nothing is changed after all */

    bool is_list; /* the reply is one: `fields` counts */

    /* a suspended change: what the server answered */
    int (*resume)(struct call *call);
    void (*abandon)(struct call *call); /* instead of `resume`, when the client has gone; or NULL */
    void *resume_state;
    void *task; /* of a handler that suspends more than once: nothing else uses it … */
    void *flow; /* … and of one that calls such a one */
    struct job_id answer_job;
    char answer_name[256]; /* of a submission that was taken before; "": it was not */
    bool is_held;          /* waits for others by intention: its time is not measured */
    int answer_code;
    struct err answer_err;
};

/* Fill call->err; the name may be NULL. Returns `code`. */
int call_fail(struct call *call, int code, const char *name, const char *path, const char *format,
              ...) __attribute__((format(printf, 5, 6)));

/* A JSON reply: write one value into the writer, nothing else to do. */
void call_json(struct call *call, int status, struct json_writer *json);
/* {"message": …} */
void call_message(struct call *call, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void call_text(struct call *call, int status, const char *content_type, struct text text);

/* A reader until the handler returns. NULL: call->err says why (ERR_BUSY). */
struct store_reader *call_reader(struct call *call);

/* Where the call comes from: its address; of IPv6 the /64, as whoever has one address there has as
 * many as they like beside it. In the arena. */
const char *call_network(struct call *call);
/* Whose bytes are counted, for byte_budget.h: the user, else the network. */
const char *call_client(struct call *call);

/* The exit table until the handler returns. */
const struct exit_rules *call_rules(struct call *call);

/* Suspend for a change; then give `reply` to the service. When the service refuses at once, call
 * call_refused. `resume` runs when answer_code and answer_err are there. */
struct service_reply call_suspend(struct call *call, int (*resume)(struct call *call));
void call_refused(struct call *call, int code, const struct err *err);

/* ---- what is asked for ---- */

/* A job by "user~name" (also "name": the caller's own), or v1's user and name. NoJobError. */
int call_job(struct call *call, struct text name, struct store_job *job);
int call_job_of(struct call *call, struct text user, struct text name, struct store_job *job);
/* As call_job, for many: of a job that is not there nobody looks for one that is named alike. */
int call_job_exactly(struct call *call, struct text name, struct store_job *job);
/* May the caller do this, to this job (NULL: a right that is about no job)? Else call->err says
 * which right was missing. */
int call_may(struct call *call, enum auth_right right, const struct store_job *job);
/* The same of another subject. */
int call_may_about(struct call *call, enum auth_right right, const struct auth_subject *subject);
/* The same as a question: call->err stays. */
bool call_can(const struct call *call, enum auth_right right, const struct store_job *job);

/* The body as JSON (or a form, when its type says so) as a tree; problems become call->err with
 * LINE:COLUMN. An empty body is an empty map. */
int call_body(struct call *call, const struct doc **doc);
/* Refuses what the body's map has beside the keys: `what` names them for people. */
int call_body_keys(struct call *call, const struct doc *doc, const char *const *keys, size_t count,
                   const char *what);
/* Both in one: the body, which has these keys alone. */
int call_body_of(struct call *call, const char *const *keys, size_t count, const char *what,
                 const struct doc **doc);
/* The same for handlers that paths of v1 have as well: on these, unknown keys are passed over, so
 * that clients of the originals go on working. */
int call_body_of_v2(struct call *call, const char *const *keys, size_t count, const char *what,
                    const struct doc **doc);
/* A string of the body's map; NULL in *value when absent. InvalidParametersError otherwise. */
int call_body_string(struct call *call, const struct doc *doc, const char *key, bool is_required,
                     struct text *value);

/* A query value as a number in min … max; `fallback` when absent. */
int call_number(struct call *call, const char *name, int64_t min, int64_t max, int64_t fallback,
                int64_t *value);
bool call_flag(const struct call *call, const char *name);
/* A query value "a,b,c", without empty parts; none when it is absent. */
enum { CALL_WORDS_MAX = 256 };
struct call_words {
    struct text *items;
    size_t count;
};
int call_words(struct call *call, const char *name, struct call_words *words);
/* A part of the path as a number. */
int call_index(struct call *call, struct text part, const char *what, int64_t max, int64_t *value);

/* Who follows logs, changes or a story has a connection and a place among the streams: they are
 * counted, so that none is cut for want of these, and so that no user has more than the quota. */
int call_follower_add(struct call *call);
void call_follower_remove(struct api *api, const char *user);
/* Likewise of streams of changes. */
int call_changes_add(struct call *call);
void call_changes_remove(struct api *api, const char *user);
/* Likewise of stories. */
int call_story_add(struct call *call);
void call_story_remove(struct api *api, const char *user);

/* ---- the app behind the edge, without a socket ---- */

struct http_app api_app(struct api *api);

/* ERR_* → HTTP status and OpenPAI's name of the error. */
struct status {
    int http;
    const char *name;
};
struct status status_of(int code);
/* Names of the errors of API v1 before 0.7, by the newer name; the newer one when there is none. */
const char *status_old_name(const char *name);

#endif
