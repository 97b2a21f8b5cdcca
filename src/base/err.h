/* err.h — what went wrong, and where in the user's document.
 *
 * Pure; no heap. A function that can fail returns 0 or a negative ERR_* and takes a caller-owned
 * `struct err` as its last parameter; on failure it fills it. Expected outcomes (a job must wait)
 * are values, not errors.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H
#include <stdarg.h>

enum {
    ERR_INVALID = -1,      /* the request or document is wrong: 400 */
    ERR_UNAUTHORIZED = -2, /* who are you: 401 */
    ERR_FORBIDDEN = -3,    /* not yours: 403 */
    ERR_NOT_FOUND = -4,    /* no such thing: 404 */
    ERR_CONFLICT = -5,     /* exists already, or the state forbids it: 409 */
    ERR_TOO_BIG = -6,      /* a stated limit: 413 or 400; nothing has changed */
    ERR_BUSY = -7,         /* try again later: 429 or 503 */
    ERR_UNAVAILABLE = -8,  /* something that we need is down: 503 */
    ERR_IO = -9,           /* the system refused: errno is in the text */
    ERR_CORRUPT = -10,     /* stored data cannot be what we wrote */
    ERR_UNSUPPORTED = -11, /* well formed, but not offered here */
    ERR_INTERNAL = -12,    /* a defect of ours */
    ERR_QUOTA = -13,       /* the user has, or does, as much as is allowed: 429 */
};

struct err {
    int code;       /* 0 or ERR_* */
    char path[96];  /* place in the user's document ("taskRoles.worker.instances"), may be empty */
    char text[240]; /* one sentence, no full stop, no newline */
};

/* Fill `err` (which may be NULL) and return `code`, so that a failure is one line. */
int err_fail(struct err *err, int code, const char *path, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
int err_vfail(struct err *err, int code, const char *path, const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));

/* As err_fail with ERR_IO, the text followed by ": " and what `number` (an errno) means. */
int err_errno(struct err *err, int number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Stable lower-case name of a code, for logs and tests: "invalid", "not-found", … */
const char *err_name(int code);

#endif
