/* directory_login.h — login by the password that a user has at an LDAP directory.
 *
 * A thread of its own asks the directory, one login after the other: a directory that is slow, or
 * away, keeps nobody waiting who has a password here. DIRECTORY_WAITING_MAX of users may wait, and
 * as many of strangers (sys/worker.h). Guesses are slowed down as those of other passwords
 * (login.h), by the name as it was typed, whatever its case.
 */
#ifndef API_DIRECTORY_LOGIN_H
#define API_DIRECTORY_LOGIN_H
#include "api/signon_user.h"
#include "base/text.h"
#include "signon/directory.h"
#include <stdbool.h>
#include <stdint.h>

struct api;
struct call;
struct err;
struct store_user;

enum { DIRECTORY_WAITING_MAX = 64 };

struct api_ldap { /* strings are borrowed */
    struct directory_config directory;
    struct signon_policy policy;
};

/* Of api->config.ldap, if there is one. Errors of directory_new and worker_start. */
int directory_login_start(struct api *api, struct err *err);
void directory_login_stop(struct api *api);
void directory_login_free(struct api *api);

/* Does the directory say whether a password is right? Not of a user (NULL: there is none) who has
 * one here, who comes by another way, or who has been deactivated. */
bool directory_login_is_for(const struct api *api, const struct store_user *user);

/* Then a token that lives for life_s. `is_known`: there is a user of that name here. */
int directory_login(struct call *call, struct text name, bool is_known, struct text password,
                    int64_t life_s);

#endif
