/* login.h — slows down whoever guesses passwords (docs/rfc/0010, "Passwords"). Any thread.
 *
 * A brake counts the wrong tries of one kind: LOGIN_FREE are free, then each must wait twice as
 * long as the one before, up to LOGIN_DELAY_MAX_MS; LOGIN_FORGET_MS without a try forgive one. A
 * try that is refused counts nothing, so that nobody can make others wait longer than that. Who has
 * logged in before, by the token kept or from the same address, has a brake of their own, which
 * strangers cannot touch. All tokens of a user together have one more, for a thief has several.
 */
#ifndef API_LOGIN_H
#define API_LOGIN_H
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

struct api;
struct call;
struct err;
struct login_table;
struct worker_task;

enum {
    LOGIN_FREE = 5,
    LOGIN_FREE_DEVICES = 10, /* of one user by all tokens together */
    LOGIN_FREE_ADDRESS = 20, /* of all users from one address */
    LOGIN_DELAY_MS = 1000,
    LOGIN_DELAY_MAX_MS = 32000,
    LOGIN_FORGET_MS = 60000,
    LOGIN_BRAKES_MAX = 4096, /* of each kind; then the one that brakes least is forgotten */
    LOGIN_KNOWN_MAX = 4096,  /* addresses from which a user has logged in; then the oldest */
    LOGIN_RECALL_DAYS = 30,
};

struct login_who {
    struct text user;    /* as given: there may be no such user */
    struct text address; /* numeric */
    const char *device;  /* number of a token that a login once gave the user, and that was shown
                            now, or NULL */
};

/* A try under way; to be handed to login_end. */
struct login_try {
    uint64_t own, devices, user, address; /* keys of the brakes that it has moved; 0: none */
    uint64_t pair;                        /* user and address */
};

struct login_table *login_table_new(void); /* nobody has tried yet */
void login_table_free(struct login_table *table);

/* May this be tried now (`now_ms` monotonic)? It counts as wrong until login_end says otherwise.
 * ERR_BUSY: not before *wait_s seconds have passed; nothing is counted and no login_end follows. */
int login_begin(struct login_table *table, const struct login_who *who, int64_t now_ms,
                struct login_try *attempt, int64_t *wait_s, struct err *err);
/* How it ended; `is_tried` false: the password was not looked at. */
void login_end(struct login_table *table, const struct login_try *attempt, int64_t now_ms,
               bool is_tried, bool is_right);

/* Whom brakes take for one: the network of an address; all addresses of this machine are one. */
struct text login_network(struct text address);
/* For brakes a user is one in any case of the name's letters, and with a domain behind it: so
 * people type what a directory knows. */
bool login_is_same_user(struct text a, struct text b);

/* The user has logged in from this address, at `at_ms` (monotonic; before the start it is less than
 * 0). A newer login from there, or that needs the place, counts more. */
void login_known_add(struct login_table *table, struct text user, struct text address,
                     int64_t at_ms);
/* At the start: from where users have logged in by password in the last LOGIN_RECALL_DAYS, by the
 * audit records. What else has been asked for since then, or refused, does not matter. */
int login_recall(struct api *api, struct err *err);

/* login_begin of who makes this request; call->err. */
int login_try_begin(struct call *call, struct text user, struct login_try *attempt);
/* Whose task the check of this try is: the user's, or that of a stranger's network. */
void login_owner_set(struct call *call, struct text user, const struct login_try *attempt,
                     struct worker_task *task);
/* The task of who makes this request is a stranger's. */
void login_stranger_set(struct call *call, struct worker_task *task);
/* Nobody shall learn which users there are: the one answer to all that is wrong. */
int login_wrong(struct call *call);

#endif
