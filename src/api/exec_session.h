/* exec_session.h — programs that users have started in running tasks, and who sits before them.
 *
 * Edge. A session is one program (engine_ops.exec) with a thread of its own, which carries bytes
 * between it and one WebSocket. With a terminal it outlives the connection: the program goes on for
 * EXEC_DETACHED_S, and who comes back gets the last EXEC_REPLAY_BYTES of what it wrote, or what
 * they have not had yet. Without a terminal the session ends with its connection, because bytes
 * must not be lost silently. What is spoken there stands in docs/user/api.md.
 *
 * A session ends: with its program; with its task; when it is told to; when nobody is connected for
 * too long; when nothing has been typed or written for EXEC_IDLE_S; when its opener may no more
 * (opener.h); and with the server. Its opener is who started it, until somebody connects: then who
 * has connected last.
 */
#ifndef API_EXEC_SESSION_H
#define API_EXEC_SESSION_H
#include "api/http.h"
#include "api/opener.h"
#include "engine/engine.h"

struct arena;
struct err;
struct exec_sessions;
struct service;

enum {
    EXEC_SESSIONS_MAX = 64,
    EXEC_SESSIONS_USER_MAX = 16,
    EXEC_SESSIONS_TASK_MAX = 8,
    EXEC_REPLAY_BYTES = 64 << 10,
    EXEC_DETACHED_S = 60,
    EXEC_IDLE_S = 3600,
    EXEC_PING_S = 30,
    EXEC_ID_LENGTH = 32,
};

/* What is to be started, and for whom; all is copied. */
struct exec_wanted {
    struct opener opener;
    const char *job, *role; /* "user~job" */
    uint32_t index;
    struct text address; /* of the client */
    struct attempt_id attempt;
    uint8_t engine;
    struct engine_exec_request request;
    /* Called once, by the session's thread. `id`: of the session, for the call only; with an error
     * it is gone. */
    void (*started)(void *context, const char *id, int code, const struct err *err);
    void *context;
};

struct exec_sessions *exec_sessions_new(struct service *service);
/* Ends all, also those that wait for somebody to fetch the rest of what their program wrote; none
 * can be opened any more. Takes seconds at most: a farewell of 5 s, and what an engine needs to end
 * a program, or to find out that it does not start. Before the engines are closed. */
void exec_sessions_stop(struct exec_sessions *sessions);
void exec_sessions_free(struct exec_sessions *sessions); /* after the stop; NULL is fine */

/* ERR_BUSY: a limit; ERR_UNAVAILABLE: stopped, or no thread. Then `started` is not called. */
int exec_session_open(struct exec_sessions *sessions, const struct exec_wanted *wanted,
                      struct err *err);
/* Its user's, or ERR_NOT_FOUND: there is none of this id, or it is somebody else's. *job, in the
 * arena: whose right to enter the user needs still. */
int exec_session_check(struct exec_sessions *sessions, struct text id, const char *user,
                       struct arena *arena, const char **job, struct err *err);
/* How a connection becomes the session's, after that check; the one that it has is closed. `opener`
 * is the session's from then on. `from`: so many bytes of the output the client has had. A session
 * that has ended meanwhile closes the connection. */
void exec_session_attach(struct exec_sessions *sessions, struct text id,
                         const struct opener *opener, uint64_t from, struct http_upgrade *upgrade);
/* This user ("": anybody) may have lost a token or a right: sessions look at once. Any thread. */
void exec_sessions_doubt(struct exec_sessions *sessions, const char *user);
/* Told to end; it does so on its own. Errors as of exec_session_check. */
int exec_session_end(struct exec_sessions *sessions, struct text id, const char *user,
                     struct err *err);

#endif
