/* account.h — changes of users and groups: what their handlers share.
 *
 * A change may take several steps, each with a suspension of the call: do the virtual clusters
 * exist, is the old password right, the hash of the new one, and last the store.
 */
#ifndef API_ACCOUNT_H
#define API_ACCOUNT_H
#include "api/call.h"
#include "api/login.h"
#include "api/passwords.h"

enum { ACCOUNT_PASSWORD_MIN = 6 };

/* In the call's arena. */
struct account_edit {
    struct password_check check; /* first */
    struct store_change change;
    struct store_names clusters; /* that must exist */
    struct text old_password;    /* to be checked against old_hash; at == NULL: none */
    const char *old_hash;
    struct text password; /* its hash goes into change.user; at == NULL: none */
    int status;           /* of the reply */
    const char *message;
    /* the rest is account_change's */
    struct call *call;
    struct login_try attempt;
    bool is_tried, is_right;
};

/* An edit of this kind with the reply that it will get. */
struct account_edit *account_edit_new(struct call *call, enum store_change_kind kind, int status,
                                      const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Carry it out and reply; returns what a handler returns. */
int account_change(struct call *call, struct account_edit *edit);

/* Of the store's ERR_CONFLICT: UsedNameError, when the name is a removed user's; else `other`. */
const char *account_conflict_name(const struct err *err, const char *other);
/* A new user with the fields of this body, whose keys the caller has checked; replies. user.c */
int account_user_create(struct call *call, const struct doc *doc);

/* The user becomes an admin, or is none any more; by a group, neither. */
void account_admin(struct call *call, const struct store_user *user, bool is_admin,
                   struct account_edit *edit);

/* The user of this name, whole, or the group without its members. NoUserError, NoGroupError. */
int account_user(struct call *call, struct text name, struct store_user *user);
int account_group(struct call *call, struct text name, struct store_group *group);
/* Does the group exist? Else NoGroupError. */
int account_group_exists(struct call *call, struct text name);

/* ---- what bodies hold ---- */

/* Names as OpenPAI allows them: of users [A-Za-z0-9_.-]+, of groups [A-Za-z0-9_]+ and the dash. */
int account_user_name(struct call *call, struct text name);
int account_group_name(struct call *call, struct text name);
/* A mail address (base/mail_address.h), or none. */
int account_email(struct call *call, struct text email);
/* ACCOUNT_PASSWORD_MIN … PASSWORD_MAX bytes; `key` for the message. */
int account_password(struct call *call, const char *key, struct text password);
/* A boolean of a map; *is_given false when it is not there. */
int account_bool(struct call *call, const struct doc *doc, const char *key, bool *value,
                 bool *is_given);
/* A list of strings; `items` NULL when it is not there. */
int account_names(struct call *call, const struct doc *doc, const char *key,
                  struct store_names *names);
/* A map; NULL when it is not there. */
int account_map(struct call *call, const struct doc *doc, const char *key, const struct doc **map);
/* The map under "data", which must be there. */
int account_data(struct call *call, const struct doc *doc, const struct doc **data);

/* A stored extension as a tree; an empty map when it is none. */
const struct doc *account_extension(struct call *call, const char *json);
/* `base` with the keys of `over` put over its own. */
const struct doc *account_merge(struct arena *arena, const struct doc *base,
                                const struct doc *over);
/* A tree as JSON, in the arena. ERR_TOO_BIG. */
int account_json(struct call *call, const struct doc *doc, const char **json);

#endif
