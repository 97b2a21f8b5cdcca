/* v1_files.h — turns codeDir, dataDir, outputDir and authFile of a v1 job into mounts and a login
 * when its tasks start.
 *
 * Launcher's thread only. Source: early PAI's REST server and container scripts.
 */
#ifndef SERVER_V1_FILES_H
#define SERVER_V1_FILES_H
#include "engine/engine.h"
#include "server/auth_file.h"
#include "server/file_space.h"

struct job_file;
struct spec;

struct v1_files {
    bool is_mounted; /* one of the three directories is named: tasks see the file space */
    struct engine_mount mount;
    const char *code_path; /* of codeDir in the container; "" = none */
    const char *auth_path; /* below the space; NULL = none */
};

/* `file` has the job's name, user and is_namespaced already and gets fs_uri and the three
 * directories, as URIs. dataDir and outputDir may name places elsewhere: they stay as written. The
 * outputDir is made. Nothing for jobs of protocol 2. Memory is `arena`'s or the space's. Errors as
 * file_space.h. */
int v1_files_make(const struct spec *spec, const struct file_space *space, struct arena *arena,
                  struct job_file *file, struct v1_files *files, struct err *err);

/* Read authFile, if the job has one, for an image. A registry of another name gets "", "". The
 * password is in `arena`, which is to be wiped. */
int v1_files_login(const struct v1_files *files, const struct file_space *space, const char *image,
                   struct arena *arena, const char **user, const char **password, struct err *err);

#endif
