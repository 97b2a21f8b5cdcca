/* request.h — what a user or a visitor asks administrators for, and what may become of it.
 *
 * Pure. The tables of docs/rfc/0022-requests.md.
 */
#ifndef MODEL_REQUEST_H
#define MODEL_REQUEST_H
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    REQUEST_WHY_MAX = 1024,      /* bytes; of an answer, too */
    REQUESTS_OF_USER_MAX = 100,  /* that are kept, decided ones too */
    REQUESTS_OPEN_MAX = 2000,    /* for virtual clusters */
    REQUESTS_ACCOUNTS_MAX = 200, /* that are open */
    REQUESTS_OF_SITE_MAX = 10,   /* of them from one network: base/address.h, address_site */
    REQUESTS_CLOSED_MAX = 10000, /* decided or withdrawn ones that are kept … */
    REQUEST_KEEP_DAYS = 30,      /* … and for how long; an account's, when it is open, too */
};

/* Stored: never change one. */
enum request_kind {
    REQUEST_CLUSTER = 0, /* that a user may use a virtual cluster */
    REQUEST_ACCOUNT = 1, /* that a visitor becomes a user */
};
enum { REQUEST_KINDS = REQUEST_ACCOUNT + 1 };

/* Likewise. */
enum request_state {
    REQUEST_OPEN = 0,
    REQUEST_ACCEPTED = 1,
    REQUEST_REFUSED = 2,
    REQUEST_WITHDRAWN = 3,
};
enum { REQUEST_STATES = REQUEST_WITHDRAWN + 1 };

enum request_act { REQUEST_ACCEPT, REQUEST_REFUSE, REQUEST_WITHDRAW };

/* "virtualCluster", "account" */
const char *request_kind_name(enum request_kind kind);
/* "open", "accepted", "refused", "withdrawn" */
const char *request_state_name(enum request_state state);
bool request_state_find(struct text name, enum request_state *state);

/* What a request in `state` becomes; false: nothing, as it has been decided. */
bool request_step(enum request_state state, enum request_act act, enum request_state *next);

#endif
