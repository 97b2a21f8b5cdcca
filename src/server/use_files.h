/* use_files.h — series of use on disk: FOLDER/jobs/JOB/ATTEMPT and FOLDER/nodes/NAME.
 *
 * Edge. Each file is USE_SERIES_SIZE bytes and a sum of them. It is written over the old one,
 * without waiting for the disk: after a loss of power a file may be damaged, which its sum tells,
 * and what is damaged is as if it were not there. Nobody may read a file while it is written. They
 * are no part of a backup.
 */
#ifndef SERVER_USE_FILES_H
#define SERVER_USE_FILES_H
#include "model/ids.h"
#include "model/use_series.h"
#include <stdbool.h>

struct err;

enum { USE_FILE_SIZE = USE_SERIES_SIZE + 8 };

/* Whose series it is: of an attempt of a task, or (`node`) of a machine. */
struct use_key {
    struct job_id job;
    struct attempt_id attempt;
    const char *node; /* NULL: of an attempt */
};

/* ERR_NOT_FOUND: there is none, or none that can be read. ERR_IO. */
int use_file_load(const char *folder, const struct use_key *key, struct use_series *series,
                  struct err *err);
bool use_file_is_there(const char *folder, const struct use_key *key); /* it may be damaged */
int use_file_save(const char *folder, const struct use_key *key, const struct use_series *series,
                  struct err *err);

/* All of a job that has been deleted. What cannot be removed is found by the next sweep. */
void use_files_drop(const char *folder, struct job_id job);

/* Remove what is of no job that `is_known` knows, and then, until no more than `limit` bytes are in
 * use, the files that were written to the longest ago. Returns the bytes that stay. */
uint64_t use_files_sweep(const char *folder, uint64_t limit,
                         bool (*is_known)(void *context, struct job_id job), void *context);

#endif
