/* marker.c — see marker.h. */
#include "store/sqlite/marker.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One record of a fixed length, so that one write within one sector replaces it. */
enum { MARK_SIZE = 160, MARK_TEXT_MAX = MARK_SIZE - 18 };
#define MARK_FORMAT                                                                                \
    "skep-mark 1 epoch %016" PRIx64 " commits %" PRIu64 " events %" PRIu64 " job %" PRIu32         \
    " attempt %" PRIu64 " "
#define MARK_SCAN                                                                                  \
    "skep-mark 1 epoch %16" SCNx64 " commits %" SCNu64 " events %" SCNu64 " job %" SCNu32          \
    " attempt %" SCNu64 " "

/* FNV-1a: against tearing and slips, not against anybody. */
static uint64_t sum_of(const char *bytes, size_t length)
{
    uint64_t sum = 0xcbf29ce484222325;
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ (uint8_t)bytes[i]) * 0x100000001b3;
    return sum;
}

int marker_open(struct marker *marker, const char *directory, struct err *err)
{
    cleanup_free char *path = mem_alloc(strlen(directory) + sizeof "/mark");
    sprintf(path, "%s/mark", directory);
    marker->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (marker->fd < 0 && (errno == ENOSPC || errno == EDQUOT))
        return err_fail(err, ERR_UNAVAILABLE, "", "the disk of %s is full", path);
    return marker->fd < 0 ? err_errno(err, errno, "open %s", path) : dir_sync(directory, err);
}

void marker_close(struct marker *marker)
{
    if (marker->fd < 0)
        return;
    marker_sync(marker, NULL); /* nothing is lost by a mark that says less */
    close(marker->fd);
    marker->fd = -1;
}

int marker_read(struct marker *marker, struct mark *mark, struct err *err)
{
    char record[MARK_SIZE + 1] = "";
    ssize_t length = pread(marker->fd, record, MARK_SIZE, 0);
    assert(marker->fd >= 0);
    if (length < 0)
        return err_errno(err, errno, "read mark");
    if (length == 0)
        return 0;
    uint64_t sum;
    if (length != MARK_SIZE || sscanf(record + MARK_TEXT_MAX, "%16" SCNx64, &sum) != 1 ||
        sum != sum_of(record, MARK_TEXT_MAX) ||
        sscanf(record, MARK_SCAN, &mark->epoch, &mark->commits, &mark->events, &mark->last_job,
               &mark->last_attempt) != 5)
        return err_fail(err, ERR_CORRUPT, "", "the file mark beside the database is damaged");
    return 1;
}

int marker_write(struct marker *marker, const struct mark *mark, struct err *err)
{
    char record[MARK_SIZE + 1];
    int length = snprintf(record, sizeof record, MARK_FORMAT, mark->epoch, mark->commits,
                          mark->events, mark->last_job, mark->last_attempt);
    assert(length > 0 && length <= MARK_TEXT_MAX);
    memset(record + length, ' ', (size_t)(MARK_TEXT_MAX - length));
    sprintf(record + MARK_TEXT_MAX, "%016" PRIx64 " \n", sum_of(record, MARK_TEXT_MAX));
    if (pwrite(marker->fd, record, MARK_SIZE, 0) != MARK_SIZE)
        return err_errno(err, errno, "write mark");
    atomic_store(&marker->is_dirty, true);
    return 0;
}

int marker_sync(struct marker *marker, struct err *err)
{
    assert(marker->fd >= 0);
    if (!atomic_exchange(&marker->is_dirty, false))
        return 0;
    if (fdatasync(marker->fd) == 0)
        return 0;
    return err_errno(err, errno, "fsync mark");
}
