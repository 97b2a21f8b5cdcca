/* directory.h — locks a data directory, so that one server at a time uses it.
 *
 * Private to store. Also with a database elsewhere a directory belongs to one server: its key, its
 * images and the files of its containers are there.
 */
#ifndef STORE_DIRECTORY_H
#define STORE_DIRECTORY_H
struct err;

/* A lock of the process on the file `lock`, which goes with it. ERR_CONFLICT: another has it. */
int directory_lock(const char *directory, int *fd, struct err *err);

#endif
