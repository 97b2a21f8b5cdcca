#include "engine/kubernetes/given_up.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "engine/kubernetes/attempt_files.h"
#include "sys/file.h"

enum { FILE_MAX = 64 << 10, PART_MAX = FILE_MAX / 2 - 1 };

/* Durable itself, or what is in it is not. */
static int folder_make(const char *directory, struct err *err)
{
    char above[ATTEMPT_FILE_PATH_MAX];
    if (mkdir(directory, 0700) < 0)
        return errno == EEXIST ? 0 : err_errno(err, errno, "make %.200s", directory);
    snprintf(above, sizeof above, "%.400s/..", directory);
    return dir_sync(above, err);
}

int given_up_put(const char *directory, struct attempt_id attempt, const char *reason,
                 const char *message, struct err *err)
{
    char path[ATTEMPT_FILE_PATH_MAX];
    cleanup_buf struct buf whole = BUF_INIT;
    int code = folder_make(directory, err);
    if (code < 0)
        return code;
    attempt_file_path(directory, attempt, path);
    buf_format(&whole, "%.*s\n%.*s", PART_MAX, reason, PART_MAX, message);
    return file_write(path, buf_as_text(&whole), 0600, err);
}

bool given_up_read(const char *directory, struct attempt_id attempt, struct buf *reason,
                   struct buf *message)
{
    char path[ATTEMPT_FILE_PATH_MAX];
    cleanup_buf struct buf whole = BUF_INIT;
    attempt_file_path(directory, attempt, path);
    if (file_read(path, FILE_MAX, &whole, NULL) < 0)
        return false;
    struct text rest = buf_as_text(&whole);
    buf_text(reason, text_cut(&rest, '\n'));
    buf_text(message, rest);
    return true;
}

void given_up_drop(const char *directory, struct attempt_id attempt)
{
    char path[ATTEMPT_FILE_PATH_MAX];
    attempt_file_path(directory, attempt, path);
    unlink(path);
}
