/* auth_file.h — authFile of a v1 job: registry, user name and password, a line each.
 *
 * Pure. Errors never quote what the file says. Source: early PAI, which logs in with it before the
 * pull.
 */
#ifndef SERVER_AUTH_FILE_H
#define SERVER_AUTH_FILE_H
#include "base/text.h"
#include <stdbool.h>

struct arena;
struct err;

enum { AUTH_FILE_BYTES_MAX = 8192, AUTH_FILE_NAME_MAX = 255 };

struct auth_file {
    const char *registry; /* "HOST[:PORT]", Docker Hub as "docker.io" */
    const char *user, *password;
};

/* Empty lines after the third, CR at line ends and a byte order mark are allowed; an empty first
 * line means Docker Hub. ERR_INVALID, ERR_TOO_BIG. What `file` points to is in `arena`. */
int auth_file_parse(struct text source, struct arena *arena, struct auth_file *file,
                    struct err *err);

/* Is the image in the file's registry? As with Docker, no other sees the password. */
bool auth_file_fits(const struct auth_file *file, const char *image);

#endif
