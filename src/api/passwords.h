/* passwords.h — the thread that checks passwords, one after the other.
 *
 * A check takes long and 64 MiB, by intention: on the threads that serve requests it would make
 * everybody wait for who guesses. Users take turns, and so do the networks of strangers, among
 * themselves: at most PASSWORDS_WAITING_MAX wait of each kind, and the first one of each who has
 * none there, but of strangers no more than PASSWORDS_STRANGERS_MAX.
 */
#ifndef API_PASSWORDS_H
#define API_PASSWORDS_H
#include "base/text.h"
#include "sys/secret.h"
#include "sys/worker.h"
#include <stdbool.h>

struct err;
struct passwords;

enum { PASSWORDS_WAITING_MAX = 8, PASSWORDS_STRANGERS_MAX = 64 };

/* One check, or a hash of a new password; the caller's until `done` is called, once, by the thread.
 */
struct password_check {
    struct worker_task task; /* first; the thread's, but for `owner` and `is_stranger` */
    struct text password;
    const char *hash; /* NULL or "": there is no such user; it costs the same, and is wrong */
    bool wants_hash;  /* do not check: make a hash, into … */
    char made[PASSWORD_HASH_SIZE];
    /* `is_tried` false: the server ends. `is_right` false of a hash: there is no memory for it. */
    void (*done)(struct password_check *check, bool is_tried, bool is_right);
    void *context;
    bool is_right; /* the thread's */
};

int passwords_start(struct passwords **passwords, struct err *err);
/* What waits is answered untried; later checks are refused. */
void passwords_stop(struct passwords *passwords);
void passwords_free(struct passwords *passwords);

/* ERR_BUSY: too many wait; ERR_UNAVAILABLE: stopped. Then `done` is not called. */
int passwords_check(struct passwords *passwords, struct password_check *check, struct err *err);

#endif
