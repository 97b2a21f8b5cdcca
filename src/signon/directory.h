/* directory.h — who somebody is by their password at an LDAP directory.
 *
 * Edge, over libldap. Blocks: never on a thread that serves requests; one thread at a time. Each
 * question opens a connection of its own: encrypted, by ldaps or StartTLS, with a certificate that
 * is checked (only to a loopback address the operator may leave that out). Referrals are not
 * followed. After a failure the directory is left alone for DIRECTORY_PAUSE_S.
 *
 * Rules: RFC 4511 (the protocol; 5.1.2: a bind without a password proves nothing), 4513, 4514 and
 * 4515 (names and filters).
 */
#ifndef SIGNON_DIRECTORY_H
#define SIGNON_DIRECTORY_H
#include "base/text.h"
#include "signon/identity.h"
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct buf;
struct directory;
struct err;

enum {
    DIRECTORY_PAUSE_S = 5,
    DIRECTORY_SECRET_MAX = 1024,
    DIRECTORY_NAME_MAX = 128, /* bytes of what somebody calls themselves */
    DIRECTORY_ID_MAX = 128,   /* bytes of an entry's number */
};

/* Strings are borrowed. In `bind_as` and the filters {user} stands for what was typed, in
 * `group_filter` {dn} for the user's entry as well; both are escaped. */
struct directory_config {
    const char *url;         /* ldaps://HOST[:PORT] or ldap://HOST[:PORT] */
    bool is_plain;           /* no StartTLS: of loopback addresses alone */
    const char *ca_file;     /* PEM: whom to trust; NULL: whom the system trusts */
    const char *base;        /* below which users are */
    const char *user_filter; /* which finds one user; not used with `bind_as` */
    const char *bind_as;     /* the user's name in the directory; NULL: it is searched for */
    const char *bind_dn, *bind_password_file; /* who searches; NULL: nobody, or the user */
    const char *id_attribute;                 /* stays when the name changes: entryUUID */
    const char *name_attribute, *mail_attribute;
    const char *group_base; /* below which groups are; NULL: they are not looked at */
    const char *group_filter, *group_attribute;
    uint32_t timeout_s; /* of each step */
};

/* May this be the address? ldaps://, or ldap:// (is_plain: to a loopback address). */
bool directory_url_is_good(const char *url, bool is_plain);

/* The configuration is copied. ERR_INVALID, and the errors of file_read of the password's file. */
int directory_new(const struct directory_config *config, struct directory **directory,
                  struct err *err);
void directory_free(struct directory *directory);

/* May it be the name of a user there? Printable ASCII without spaces: others could be written in
 * many ways that the directory takes for the same, and guesses are counted by name. */
bool directory_name_is_good(struct text name);

/* Strings in the arena. ERR_UNAUTHORIZED: no such user, or not the password. ERR_FORBIDDEN: the
 * entry cannot be a user here. ERR_UNAVAILABLE: the directory is away, or cannot be trusted. */
int directory_check(struct directory *directory, struct text name, struct text password,
                    int64_t now_s, struct arena *arena, struct identity *identity, struct err *err);

/* Append `text` so that it is no more than a value, in a filter (RFC 4515) as in a name (4514):
 * every byte but letters, digits, - . _ and @ as \XX. */
void directory_escape(struct buf *out, struct text text);
/* `pattern` with {user} and {dn} filled in, escaped. */
void directory_fill(struct buf *out, const char *pattern, struct text user, struct text dn);

#endif
