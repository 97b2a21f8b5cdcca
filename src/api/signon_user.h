/* signon_user.h — the user of this server who belongs to somebody whom a provider or a directory
 * knows: made, or brought up to date, at each login.
 *
 * A user is found by the identity, which stays when the name changes. A user of the same name who
 * has a password here is somebody else, unless the operator says otherwise. Groups with an external
 * name are the provider's: whoever it does not put into them leaves them. Others stay as they are.
 */
#ifndef API_SIGNON_USER_H
#define API_SIGNON_USER_H
#include "signon/identity.h"
#include <stdbool.h>
#include <stddef.h>

struct call;
struct store_user;

struct signon_policy {
    bool creates_users;         /* at their first login */
    bool adopts_users;          /* who have a password here, and the same name */
    const char *const *allowed; /* groups of the provider, one of which the user must be in … */
    size_t allowed_count;       /* … 0: anybody */
};

/* Then `then` is called, at once or after a suspension, with the user, or with what call->err says.
 * Uses call->task. `identity` and `policy` must live until then. */
int signon_user(struct call *call, const struct identity *identity,
                const struct signon_policy *policy,
                int (*then)(struct call *call, int code, const struct store_user *user));

#endif
