/* loopback.h — takes the one answer that the user's browser brings back to a program (RFC
 * 8252, 7.3).
 *
 * It listens at a port of 127.0.0.1 that the system chooses, and answers at one path alone, which
 * no page that the user visits can guess. Limits: LOOPBACK_CLIENTS connections at a time (then the
 * oldest is closed: browsers open some that they do not use), LOOPBACK_REQUEST_MAX bytes of each.
 */
#ifndef CLI_LOOPBACK_H
#define CLI_LOOPBACK_H
#include "base/buf.h"
#include <stdint.h>

struct err;

enum { LOOPBACK_CLIENTS = 8, LOOPBACK_REQUEST_MAX = 16 << 10, LOOPBACK_WORD_MAX = 64 };

struct loopback {
    int fd; /* listens; -1: closed */
    char url[96];
    const char *path; /* of it */
    struct {
        int fd; /* -1: free */
        struct buf request;
    } clients[LOOPBACK_CLIENTS];
    unsigned next; /* to be closed when all are taken */
};

/* Each decoded; "": not given. Free both. */
struct loopback_answer {
    char *code, *problem;
};

/* `word` is the path: random, of letters, digits, - and _, LOOPBACK_WORD_MAX at most. ERR_IO: there
 * is no port. */
int loopback_open(struct loopback *loopback, const char *word, struct err *err);
void loopback_close(struct loopback *loopback);
#define cleanup_loopback __attribute__((cleanup(loopback_close)))

/* Until the browser comes with `code` or `errorMessage`; other requests are answered with 404, and
 * what is no request is cut. ERR_UNAVAILABLE: it did not come within wait_ms. */
int loopback_wait(struct loopback *loopback, int64_t wait_ms, struct loopback_answer *answer,
                  struct err *err);

#endif
