/* secret_file.h — a secret that the operator keeps in a file. */
#ifndef SIGNON_SECRET_FILE_H
#define SIGNON_SECRET_FILE_H
#include <stddef.h>

struct err;

/* Its content without white space around it; wipe it, then mem_free. `key` names the file in the
 * configuration. ERR_INVALID: it is empty; errors of file_read. */
int secret_file_read(const char *path, const char *key, size_t max, char **secret, struct err *err);

#endif
