/* folder.h — an empty folder for the tests of one file; folder_setup and folder_teardown are what
 * UNIT_FILE takes, or are called by it. */
#ifndef TEST_FOLDER_H
#define TEST_FOLDER_H

/* Make the folder, and remove it with all that is in it. 0 or -1, as cmocka has it. */
int folder_setup(void **state);
int folder_teardown(void **state);

/* The path of `name` in the folder; "" for the folder itself. Good until the eighth call after it.
 */
const char *in_folder(const char *name);

/* A file in the folder, and the folders that it stands in. */
void folder_put(const char *name, const char *text);

#endif
