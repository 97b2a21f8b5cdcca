#include "engine/local/log_keep.h"
#include "base/memory.h"
#include "engine/local/runtime.h"
#include "sys/cleanup.h"
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char owner_name[] = "trusted.skep.owner"; /* needs CAP_SYS_ADMIN: no task has it */

struct log_limits log_limits_of(uint64_t room, uint64_t inodes, int64_t keep_s)
{
    const uint64_t for_logs = inodes / 4;
    return (struct log_limits){
        .cost = room, .inode_cost = for_logs ? room / for_logs : 0, .keep_s = keep_s};
}

/* --- choosing --- */

struct owner_share {
    uint64_t cost;
    size_t first, count; /* of one owner's logs */
};

static int by_owner_and_age(const void *a, const void *b)
{
    const struct log_kept *left = a, *right = b;
    int order = strcmp(left->owner, right->owner);
    return order ? order : (left->used_s > right->used_s) - (left->used_s < right->used_s);
}

static int by_cost(const void *a, const void *b)
{
    const struct owner_share *left = a, *right = b;
    return (left->cost > right->cost) - (left->cost < right->cost);
}

static size_t shares_make(const struct log_kept *logs, size_t count, struct owner_share *shares)
{
    size_t made = 0;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(logs[i].owner, logs[i - 1].owner) != 0)
            shares[made++] = (struct owner_share){.first = i};
        shares[made - 1].count++;
        if (!logs[i].is_chosen)
            shares[made - 1].cost += logs[i].cost;
    }
    return made;
}

/* The most that one user may take, so that all together take `room`; shares by rising cost. */
static uint64_t share_limit(const struct owner_share *shares, size_t count, uint64_t room)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t even = room / (count - i);
        if (shares[i].cost > even)
            return even;
        room -= shares[i].cost;
    }
    return UINT64_MAX;
}

static void share_cut(struct log_kept *logs, struct owner_share *share, uint64_t most)
{
    for (size_t i = share->first; i < share->first + share->count && share->cost > most; i++) {
        if (logs[i].is_live || logs[i].is_chosen)
            continue;
        logs[i].is_chosen = true;
        share->cost -= logs[i].cost;
    }
}

void log_keep_choose(struct log_kept *logs, size_t count, const struct log_limits *limits,
                     int64_t now_s)
{
    if (count == 0)
        return;
    qsort(logs, count, sizeof *logs, by_owner_and_age);
    for (size_t i = 0; i < count; i++)
        logs[i].is_chosen = !logs[i].is_live && now_s - logs[i].used_s > limits->keep_s;
    cleanup_free struct owner_share *shares = mem_zero(count, sizeof *shares);
    const size_t owners = shares_make(logs, count, shares);
    qsort(shares, owners, sizeof *shares, by_cost);
    const uint64_t most = share_limit(shares, owners, limits->cost);
    for (size_t i = 0; i < owners; i++)
        share_cut(logs, &shares[i], most);
}

/* --- measuring --- */

struct measure {
    struct log_kept *log;
    const struct log_limits *limits;
    size_t entries;
};

/* A file in the folder; NULL: the folder itself. */
static void entry_count(struct measure *measure, int folder, const char *name,
                        const struct stat *stat)
{
    struct log_kept *log = measure->log;
    int64_t used_s = stat->st_mtim.tv_sec;
    if (measure->limits->latest_s)
        used_s = tree_time_settle(folder, name, used_s, measure->limits->latest_s);
    log->cost += (uint64_t)stat->st_blocks * 512 + measure->limits->inode_cost;
    if (used_s > log->used_s)
        log->used_s = used_s;
    measure->entries++;
}

/* Takes `folder`. False: there is more than anybody's log has. */
static bool folder_measure(struct measure *measure, int folder, unsigned levels)
{
    struct stat stat;
    cleanup_dir DIR *dir = fdopendir(folder);
    if (!dir) {
        close(folder);
        return true;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(folder, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        entry_count(measure, folder, entry->d_name, &stat);
        if (measure->entries > LOG_ENTRIES_MAX || (S_ISDIR(stat.st_mode) && levels == 0))
            return false;
        if (!S_ISDIR(stat.st_mode))
            continue;
        int below = openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0 && !folder_measure(measure, below, levels - 1))
            return false;
    }
    return true;
}

void log_measure(const char *directory, const struct log_limits *limits, struct log_kept *log)
{
    struct measure measure = {.log = log, .limits = limits};
    struct stat stat;
    int folder = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return;
    if (fstat(folder, &stat) == 0)
        entry_count(&measure, folder, NULL, &stat);
    if (!folder_measure(&measure, folder, LOG_LEVELS_MAX) && log->cost < limits->cost)
        log->cost = limits->cost;
}

/* --- owners --- */

void log_owner_put(const char *directory, const char *job)
{
    size_t length = strcspn(job, "~");
    if (job[length] && length < LOG_OWNER_MAX)
        lsetxattr(directory, owner_name, job, length, 0);
}

void log_owner_read(const char *directory, char owner[LOG_OWNER_MAX])
{
    ssize_t length = lgetxattr(directory, owner_name, owner, LOG_OWNER_MAX - 1);
    owner[length > 0 ? length : 0] = 0;
}
