#include "server/use_files.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names ---- */

/* False: a machine's name that is none of a file. */
static bool key_path(const char *folder, const struct use_key *key, char path[PATH_MAX])
{
    int length;
    if (key->node && (!key->node[0] || key->node[0] == '.' || strchr(key->node, '/')))
        return false;
    if (key->node)
        length = snprintf(path, PATH_MAX, "%s/nodes/%s", folder, key->node);
    else
        length = snprintf(path, PATH_MAX, "%s/jobs/%" PRIu32 "/%" PRIu64, folder, key->job.v,
                          key->attempt.v);
    return length < PATH_MAX;
}

/* ---- one ---- */

/* Behind the series stands a sum of it. Files of before there was one end with the series. */
static bool is_whole(struct text bytes)
{
    struct cursor cursor = cursor_of(bytes);
    if (bytes.length == USE_SERIES_SIZE)
        return true;
    if (bytes.length != USE_FILE_SIZE)
        return false;
    cursor.at += USE_SERIES_SIZE;
    return cursor_u64(&cursor) == text_hash((struct text){bytes.at, USE_SERIES_SIZE}, 0);
}

int use_file_load(const char *folder, const struct use_key *key, struct use_series *series,
                  struct err *err)
{
    char path[PATH_MAX];
    cleanup_buf struct buf bytes = BUF_INIT;
    if (!key_path(folder, key, path))
        return err_fail(err, ERR_NOT_FOUND, "", "nothing is kept of %s", key->node);
    int code = file_read(path, USE_FILE_SIZE, &bytes, err);
    if (code == ERR_TOO_BIG)
        return err_fail(err, ERR_NOT_FOUND, "", "%s is no series of use", path);
    if (code < 0)
        return code;
    const struct text series_bytes = {bytes.at, bytes.length < USE_SERIES_SIZE ? bytes.length
                                                                               : USE_SERIES_SIZE};
    if (!is_whole(buf_as_text(&bytes)) || use_series_read(series, series_bytes, err) < 0)
        return err_fail(err, ERR_NOT_FOUND, "", "%s is damaged", path);
    return 0;
}

bool use_file_is_there(const char *folder, const struct use_key *key)
{
    char path[PATH_MAX];
    return key_path(folder, key, path) && access(path, F_OK) == 0;
}

/* A file of before there were sums: half written over, it would pass for a whole one. Another one
 * takes its place, which is whole when it has its whole size. */
static void odd_remove(const char *path, size_t size)
{
    struct stat stat;
    if (lstat(path, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size != (off_t)size)
        unlink(path);
}

/* Over what is there: to replace a file by renaming another one makes ext4 write that to the disk
 * first, which takes some milliseconds, and there may be 20,000. The sum tells what was half
 * written. */
static int file_put(const char *path, struct text bytes, struct err *err)
{
    odd_remove(path, bytes.length);
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 && errno == ENOENT)
        return err_fail(err, ERR_NOT_FOUND, "", "the folder of %s is not there", path);
    if (fd < 0)
        return err_errno(err, errno, "open %s", path);
    ssize_t written = write(fd, bytes.at, bytes.length);
    if (written == (ssize_t)bytes.length)
        return 0;
    int code = err_errno(err, written < 0 ? errno : ENOSPC, "write %s", path);
    if (written > 0) /* neither the old series nor the new one */
        unlink(path);
    return code;
}

int use_file_save(const char *folder, const struct use_key *key, const struct use_series *series,
                  struct err *err)
{
    char path[PATH_MAX];
    cleanup_buf struct buf bytes = BUF_INIT;
    if (!key_path(folder, key, path))
        return err_fail(err, ERR_INVALID, "", "the name %s cannot be that of a file", key->node);
    use_series_write(series, &bytes);
    buf_put_u64(&bytes, text_hash(buf_as_text(&bytes), 0));
    assert(bytes.length == USE_FILE_SIZE);
    int code = file_put(path, buf_as_text(&bytes), err);
    if (code != ERR_NOT_FOUND)
        return code;
    char *slash = strrchr(path, '/'); /* the first of its folder */
    *slash = 0;
    code = dir_make(path, 0700, err);
    *slash = '/';
    return code < 0 ? code : file_put(path, buf_as_text(&bytes), err);
}

/* ---- many ---- */

struct files {
    struct file {
        const char *path;
        time_t written;
        uint64_t size;
    } * items;
    size_t count, room;
    struct arena arena;
    uint64_t size;
};

/* Calls `visit` for each name; a folder that is not there has none. */
static void names_visit(const char *path, void (*visit)(void *context, const char *name),
                        void *context)
{
    cleanup_dir DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            visit(context, entry->d_name);
}

struct visit {
    const char *path;
    struct files *files;
    bool (*is_known)(void *context, struct job_id job);
    void *context;
};

static void file_visit(void *context, const char *name)
{
    struct visit *visit = context;
    struct stat stat;
    const char *path = arena_format(&visit->files->arena, "%s/%s", visit->path, name);
    if (lstat(path, &stat) < 0)
        return;
    *ARRAY_ADD(visit->files) = (struct file){path, stat.st_mtime, (uint64_t)stat.st_size};
    visit->files->size += (uint64_t)stat.st_size;
}

static void file_remove(void *context, const char *name)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", (const char *)context, name) < sizeof path)
        unlink(path);
}

void use_files_drop(const char *folder, struct job_id job)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/jobs/%" PRIu32, folder, job.v) >= sizeof path)
        return;
    names_visit(path, file_remove, path);
    rmdir(path);
}

static void job_visit(void *context, const char *name)
{
    struct visit *visit = context;
    char *end;
    unsigned long number = strtoul(name, &end, 10);
    if (*end || number > UINT32_MAX)
        return;
    struct job_id job = {(uint32_t)number};
    if (!visit->is_known(visit->context, job)) {
        use_files_drop(visit->path, job);
        return;
    }
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/jobs/%s", visit->path, name);
    struct visit inner = {.path = path, .files = visit->files};
    names_visit(path, file_visit, &inner);
}

static int by_age(const void *a, const void *b)
{
    const struct file *first = a, *second = b;
    if (first->written != second->written)
        return first->written < second->written ? -1 : 1;
    return strcmp(first->path, second->path);
}

uint64_t use_files_sweep(const char *folder, uint64_t limit,
                         bool (*is_known)(void *context, struct job_id job), void *context)
{
    cleanup_array struct files files = {0};
    char path[PATH_MAX];
    struct visit visit = {folder, &files, is_known, context};
    arena_init(&files.arena);
    if ((size_t)snprintf(path, sizeof path, "%s/jobs", folder) < sizeof path)
        names_visit(path, job_visit, &visit);
    if ((size_t)snprintf(path, sizeof path, "%s/nodes", folder) < sizeof path) {
        visit.path = path;
        names_visit(path, file_visit, &visit);
    }
    if (files.size > limit)
        qsort(files.items, files.count, sizeof *files.items, by_age);
    for (size_t i = 0; i < files.count && files.size > limit; i++)
        if (unlink(files.items[i].path) == 0)
            files.size -= files.items[i].size;
    arena_release(&files.arena);
    return files.size;
}
