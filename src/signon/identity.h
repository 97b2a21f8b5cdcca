/* identity.h — who a provider, or a directory, says that somebody is.
 */
#ifndef SIGNON_IDENTITY_H
#define SIGNON_IDENTITY_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>

enum { IDENTITY_NAME_MAX = 64, IDENTITY_GROUPS_MAX = 1000 };

struct identity {
    const char *id;    /* stays when the name changes; of one provider */
    const char *name;  /* a valid user name */
    const char *email; /* "": not known */
    const char *const *groups;
    size_t group_count;
};

/* A user name [A-Za-z0-9_.-]{1,64} out of what the provider calls the user: what stands before the
 * last @, each other character as an underscore. False: nothing is left, or too much. */
bool identity_name(struct text given, char name[IDENTITY_NAME_MAX + 1]);

#endif
