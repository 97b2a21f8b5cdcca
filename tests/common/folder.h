/* folder.h — an empty folder for the tests of one file; folder_setup and folder_teardown are what
 * UNIT_FILE takes, or are called by it. */
#ifndef TEST_FOLDER_H
#define TEST_FOLDER_H
#include <stddef.h>

/* Make an empty folder of a name of its own, which the caller removes; `name` is a part of it. It
 * lies in memory where the machine has a file system there: a test with a store in it waits for no
 * disk with each commit, and whether a disk keeps what it was told to keep no unit test can say.
 * 0 or -1; ends the program when `path` is too small. */
int folder_make(const char *name, char *path, size_t size);

/* Make the folder, and remove it with all that is in it. 0 or -1, as cmocka has it. */
int folder_setup(void **state);
int folder_teardown(void **state);

/* The path of `name` in the folder; "" for the folder itself. Good until the eighth call after it.
 */
const char *in_folder(const char *name);

/* A file in the folder, and the folders that it stands in. */
void folder_put(const char *name, const char *text);

#endif
