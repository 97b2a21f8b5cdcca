#include "engine/kubernetes/given_up.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "sys/cleanup.h"
#include "sys/file.h"

enum { PATH_MAX_OWN = 440, FILE_MAX = 64 << 10, PART_MAX = FILE_MAX / 2 - 1 };

static void path_of(const char *directory, struct attempt_id attempt, char path[PATH_MAX_OWN])
{
    snprintf(path, PATH_MAX_OWN, "%.400s/%" PRIu64, directory, attempt.v);
}

/* Durable itself, or what is in it is not. */
static int folder_make(const char *directory, struct err *err)
{
    char above[PATH_MAX_OWN];
    if (mkdir(directory, 0700) < 0)
        return errno == EEXIST ? 0 : err_errno(err, errno, "make %.200s", directory);
    snprintf(above, sizeof above, "%.400s/..", directory);
    return dir_sync(above, err);
}

int given_up_put(const char *directory, struct attempt_id attempt, const char *reason,
                 const char *message, struct err *err)
{
    char path[PATH_MAX_OWN];
    cleanup_buf struct buf whole = BUF_INIT;
    int code = folder_make(directory, err);
    if (code < 0)
        return code;
    path_of(directory, attempt, path);
    buf_format(&whole, "%.*s\n%.*s", PART_MAX, reason, PART_MAX, message);
    return file_write(path, buf_as_text(&whole), 0600, err);
}

bool given_up_read(const char *directory, struct attempt_id attempt, struct buf *reason,
                   struct buf *message)
{
    char path[PATH_MAX_OWN];
    cleanup_buf struct buf whole = BUF_INIT;
    path_of(directory, attempt, path);
    if (file_read(path, FILE_MAX, &whole, NULL) < 0)
        return false;
    struct text rest = buf_as_text(&whole);
    buf_text(reason, text_cut(&rest, '\n'));
    buf_text(message, rest);
    return true;
}

void given_up_drop(const char *directory, struct attempt_id attempt)
{
    char path[PATH_MAX_OWN];
    path_of(directory, attempt, path);
    unlink(path);
}

void given_up_each(const char *directory, void (*seen)(void *context, struct attempt_id attempt),
                   void *context)
{
    cleanup_dir DIR *dir = opendir(directory);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        int64_t attempt;
        if (text_to_int64(text_of(entry->d_name), &attempt) && attempt > 0)
            seen(context, (struct attempt_id){(uint64_t)attempt});
    }
}
