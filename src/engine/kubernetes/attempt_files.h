/* attempt_files.h — a folder whose files are named by attempts: 123.
 *
 * Edge. What is in them is the business of given_up.h and secret_note.h.
 */
#ifndef ENGINE_KUBERNETES_ATTEMPT_FILES_H
#define ENGINE_KUBERNETES_ATTEMPT_FILES_H
#include "model/ids.h"

enum { ATTEMPT_FILE_PATH_MAX = 440 };

/* The folder's path counts with its first 400 bytes. */
void attempt_file_path(const char *directory, struct attempt_id attempt,
                       char path[ATTEMPT_FILE_PATH_MAX]);

/* All of them, in no order; none where there is no folder. */
void attempt_files_each(const char *directory,
                        void (*seen)(void *context, struct attempt_id attempt), void *context);

#endif
