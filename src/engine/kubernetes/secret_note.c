#include "engine/kubernetes/secret_note.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/kubernetes/attempt_files.h"
#include "sys/cleanup.h"
#include "sys/log.h"

static int note_open(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

void secret_note_put(const char *directory, struct attempt_id attempt)
{
    char path[ATTEMPT_FILE_PATH_MAX];
    if (!directory)
        return;
    attempt_file_path(directory, attempt, path);
    cleanup_close int fd = note_open(path);
    if (fd < 0 && errno == ENOENT && mkdir(directory, 0700) == 0)
        fd = note_open(path);
    if (fd < 0)
        log_error("engine",
                  "kubernetes: the secret of attempt %" PRIu64
                  " will be left in the cluster if skepd is killed while it is there: %s: %s",
                  attempt.v, path, strerror(errno));
}

void secret_note_drop(const char *directory, struct attempt_id attempt)
{
    char path[ATTEMPT_FILE_PATH_MAX];
    if (!directory)
        return;
    attempt_file_path(directory, attempt, path);
    if (unlink(path) < 0 && errno != ENOENT)
        log_warning("engine", "kubernetes: %s cannot be removed: %s", path, strerror(errno));
}

void secret_note_each(const char *directory, void (*seen)(void *context, struct attempt_id attempt),
                      void *context)
{
    if (directory)
        attempt_files_each(directory, seen, context);
}
