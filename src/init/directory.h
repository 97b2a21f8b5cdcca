/* directory.h — variables in the paths of a v1 job: codeDir, dataDir, outputDir, authFile.
 *
 * Pure. $PAI_DEFAULT_FS_URI, $PAI_JOB_NAME, $PAI_USER_NAME, $PAI_USERNAME and those of them that
 * early jobs write with QIZHI, when no word character follows. Everything else stays as it is.
 * Source: early PAI's REST server, since 0.8.
 */
#ifndef INIT_DIRECTORY_H
#define INIT_DIRECTORY_H

struct arena;
struct job_file;

/* What PAI_JOB_NAME says: "user~job", or the bare name. */
const char *job_full_name(const struct job_file *job, struct arena *arena);

/* fs_uri, name and user of `job` must be set. */
const char *directory_expand(const struct job_file *job, const char *directory,
                             struct arena *arena);

#endif
