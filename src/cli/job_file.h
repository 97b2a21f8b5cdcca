/* job_file.h — a job file's name is changed, and nothing else of it.
 *
 * Pure. Files of all formats; of JSON with comments too.
 */
#ifndef CLI_JOB_FILE_H
#define CLI_JOB_FILE_H
#include "base/text.h"
#include <stdbool.h>

struct buf;

/* Append the file with the name NAME; NULL: its own with a number behind an underscore, 2 or the
 * next one. False: it has no name. */
bool job_file_rename(struct text source, const char *name, struct buf *out);

#endif
