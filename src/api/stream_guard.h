/* stream_guard.h — cuts streams of whoever may read them no more.
 *
 * Whoever follows a log, or everything that changes, keeps a connection for hours. Each stream of
 * somebody known passes through a guard, which keeps its opener (opener.h). When its user may have
 * lost something (the service says so after the commit), or the time of the token is over, the
 * guard asks once more before the next byte whether they still may; else the stream is cut, so that
 * its client asks again and is told why. Any thread.
 */
#ifndef API_STREAM_GUARD_H
#define API_STREAM_GUARD_H
#include <stdbool.h>

struct call;
struct stream_guards;

enum {
    STREAM_GUARD_AGAIN_MS = 50,     /* when it could not be looked up: every reader was out */
    STREAM_GUARD_CHECK_MS = 600000, /* and from time to time, as clocks are set */
};

struct stream_guards *stream_guards_new(void);
void stream_guards_free(struct stream_guards *guards); /* every stream has ended; NULL is fine */

/* If the reply is a stream, it lasts no longer than its caller may have it. */
void stream_guard(struct call *call);

/* This user ("": anybody) may have lost a token or a right. Returns whether streams must be woken
 * for it. */
bool stream_guards_doubt(struct stream_guards *guards, const char *user);

#endif
