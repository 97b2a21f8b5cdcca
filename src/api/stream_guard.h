/* stream_guard.h — cuts streams when the token ends by which they were opened.
 *
 * Whoever follows a log, or everything that changes, keeps a connection for hours: the token that
 * was good at its beginning may be revoked meanwhile, expire, or lose its user. Each stream of
 * somebody known passes through a guard. When tokens of its user may have gone (the service says so
 * after the commit), or its own time is over, the guard looks the token up once more before the
 * next byte; a stream without one is cut, so that its client asks again and is told why. Any
 * thread.
 */
#ifndef API_STREAM_GUARD_H
#define API_STREAM_GUARD_H
#include <stdbool.h>

struct call;
struct stream_guards;

enum {
    STREAM_GUARD_AGAIN_MS = 50, /* when the token could not be looked up: every reader was out */
    STREAM_GUARD_CHECK_MS = 600000, /* and from time to time, as clocks are set */
};

struct stream_guards *stream_guards_new(void);
void stream_guards_free(struct stream_guards *guards); /* every stream has ended; NULL is fine */

/* If the reply is a stream, it lasts no longer than the caller's token. */
void stream_guard(struct call *call);

/* Tokens of this user may have gone. Returns whether streams must be woken for it. */
bool stream_guards_doubt(struct stream_guards *guards, const char *user);

#endif
