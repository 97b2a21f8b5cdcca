/* user.h — the user an image asks for, looked up in the image itself.
 *
 * Edge. "", "name", "uid", "name:group", "uid:gid" as in an image's configuration. Names are looked
 * up in the image's /etc/passwd and /etc/group, which are opened as if the image were the root
 * directory: links in it cannot lead out.
 */
#ifndef ENGINE_LOCAL_USER_H
#define ENGINE_LOCAL_USER_H
#include <stddef.h>
#include <stdint.h>

struct err;

enum { USER_GROUPS_MAX = 64 };

struct user {
    uint32_t uid, gid;
    uint32_t groups[USER_GROUPS_MAX];
    size_t group_count;
    char home[256]; /* "/" when the image does not say */
};

/* ERR_NOT_FOUND: a name that the image does not have. */
int user_find(const char *rootfs, const char *wanted, struct user *user, struct err *err);

#endif
