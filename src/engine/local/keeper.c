/* Housekeeping: disk space, unused images, files and logs of what has ended. */
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/image.h"
#include "engine/local/inventory.h"
#include "engine/local/task.h"
#include "sys/cleanup.h"
#include "sys/log.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* A disk that is rather full of other things must not cost every job its image. */
enum { PRESSURE_AGE_S = 3600 };

struct log_folder {
    char id[24];
    int64_t used_s; /* Unix time of the last write */
    uint64_t bytes;
};

struct log_folders {
    struct log_folder *items;
    size_t count, room;
    uint64_t bytes;
};

static bool task_is_known(struct local_engine *local, const char *id)
{
    int64_t value;
    if (!text_to_int64(text_of(id), &value) || value <= 0)
        return false;
    pthread_mutex_lock(&local->lock);
    bool is_known = task_find(local, (struct attempt_id){(uint64_t)value}) != NULL;
    pthread_mutex_unlock(&local->lock);
    return is_known;
}

static void folder_measure(const char *path, struct log_folder *folder)
{
    struct stat stat;
    cleanup_dir DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (strcmp(entry->d_name, "..") != 0 &&
            fstatat(dirfd(dir), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) == 0) {
            folder->bytes += (uint64_t)stat.st_blocks * 512;
            if (stat.st_mtim.tv_sec > folder->used_s)
                folder->used_s = stat.st_mtim.tv_sec;
        }
}

static int folder_order(const void *a, const void *b)
{
    const struct log_folder *left = a, *right = b;
    return (left->used_s > right->used_s) - (left->used_s < right->used_s);
}

/* Logs of tasks that are no more: the old ones, then the oldest until all fit. */
static void logs_collect(struct local_engine *local)
{
    char path[RUNTIME_PATH_MAX], below[RUNTIME_PATH_MAX];
    struct log_folders folders = {0};
    snprintf(path, sizeof path, "%s/logs", local->directory);
    cleanup_dir DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof folders.items->id)
            continue;
        struct log_folder folder = {0};
        snprintf(folder.id, sizeof folder.id, "%.23s", entry->d_name);
        task_log_path(local, folder.id, below);
        folder_measure(below, &folder);
        folders.bytes += folder.bytes;
        if (!task_is_known(local, folder.id))
            *ARRAY_ADD(&folders) = folder;
    }
    if (folders.count)
        qsort(folders.items, folders.count, sizeof *folders.items, folder_order);
    int64_t now = time(NULL);
    uint64_t limit = local->config.log_keep_mib << 20;
    for (size_t i = 0; i < folders.count; i++) {
        const struct log_folder *folder = &folders.items[i];
        if (now - folder->used_s <= (int64_t)local->config.log_keep_s && folders.bytes <= limit)
            break;
        task_log_path(local, folder->id, below);
        tree_remove(below, NULL);
        folders.bytes -= folder->bytes;
    }
    ARRAY_FREE(&folders);
}

/* Overlays of ended tasks that nobody forgot in time, and folders that no task explains. */
static void containers_collect(struct local_engine *local)
{
    char path[RUNTIME_PATH_MAX], ended[RUNTIME_PATH_MAX];
    snprintf(path, sizeof path, "%s/containers", local->directory);
    cleanup_dir DIR *dir = opendir(path);
    int64_t now = time(NULL);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct stat stat;
        int64_t attempt;
        if (!text_to_int64(text_of(entry->d_name), &attempt))
            continue;
        if (!task_is_known(local, entry->d_name)) {
            task_erase(local, entry->d_name);
            continue;
        }
        task_path(local, entry->d_name, "ended", ended);
        if (lstat(ended, &stat) < 0 ||
            now - stat.st_mtim.tv_sec <= (int64_t)local->config.container_keep_s)
            continue;
        static const char *const parts[] = {"upper", "work"};
        for (size_t i = 0; i < COUNT_OF(parts); i++) {
            char part[RUNTIME_PATH_MAX];
            task_path(local, entry->d_name, parts[i], part);
            tree_remove(part, NULL);
        }
    }
}

static void disk_watch(struct local_engine *local)
{
    struct statvfs disk;
    if (statvfs(local->directory, &disk) < 0)
        return;
    uint64_t block = disk.f_frsize, total = disk.f_blocks * block, free = disk.f_bavail * block;
    uint64_t high = total / 100 * local->config.image_high_percent;
    uint64_t used = total - disk.f_bfree * block;
    bool is_short = free >> 20 < local->config.disk_reserve_mib;
    images_collect(local->images, local->config.image_keep_s, is_short ? 0 : PRESSURE_AGE_S,
                   used > high ? used - high : 0);
    if (statvfs(local->directory, &disk) == 0)
        free = disk.f_bavail * block;
    char reason[160] = "";
    if (free >> 20 < local->config.disk_reserve_mib)
        snprintf(reason, sizeof reason, "disk pressure: %llu MiB free, %u are kept in reserve",
                 (unsigned long long)(free >> 20), local->config.disk_reserve_mib);
    inventory_health(local->inventory, local, HEALTH_DISK, reason);
}

/* --- what could not be removed when its task ended --- */

struct leftover {
    struct local_engine *local;
    size_t count;
};

static bool remains_are_gone(struct local_engine *local, const char *id)
{
    char group[CGROUP_PATH_MAX];
    task_group(local, id, group);
    return cgroup_remove(&local->cgroups, group, 1000, NULL) == 0 && !task_mounts_remain(local, id);
}

/* Groups of ended tasks that nobody noted: of an earlier engine. */
static void leftover_visit(void *context, const char *name)
{
    struct leftover *leftover = context;
    struct local_engine *local = leftover->local;
    int64_t value;
    if (!text_to_int64(text_of(name), &value) || value <= 0)
        return;
    pthread_mutex_lock(&local->lock);
    struct task *task = task_find(local, (struct attempt_id){(uint64_t)value});
    bool is_over = !task || task->phase == TASK_ENDED;
    pthread_mutex_unlock(&local->lock);
    if (is_over && !remains_are_gone(local, name))
        leftover->count++;
}

/* The next one that was noted, from `at`; false: there is none. */
static bool remains_at(struct local_engine *local, size_t at, struct remains *one)
{
    pthread_mutex_lock(&local->lock);
    bool is_there = at < local->remains.count;
    if (is_there)
        *one = local->remains.items[at];
    pthread_mutex_unlock(&local->lock);
    return is_there;
}

static void remains_forget(struct local_engine *local, const char *id)
{
    pthread_mutex_lock(&local->lock);
    for (size_t i = 0; i < local->remains.count; i++)
        if (strcmp(local->remains.items[i].id, id) == 0) {
            local->remains.items[i] = local->remains.items[--local->remains.count];
            break;
        }
    pthread_mutex_unlock(&local->lock);
}

static void remains_retry(struct local_engine *local)
{
    struct leftover leftover = {.local = local};
    struct remains one;
    for (size_t at = 0; remains_at(local, at, &one);)
        if (remains_are_gone(local, one.id))
            remains_forget(local, one.id);
        else
            at++;
    cgroup_children(&local->cgroups, local->group, leftover_visit, &leftover);
    /* one may have been noted meanwhile: it is not to be called well because we looked before */
    bool has_remains = leftover.count > 0 || remains_at(local, 0, &one);
    static const char reason[] = "processes or mounts of ended tasks remain";
    inventory_health(local->inventory, local, HEALTH_REMAINS, has_remains ? reason : "");
    if (!has_remains && remains_at(local, 0, &one))
        inventory_health(local->inventory, local, HEALTH_REMAINS, reason);
}

void keeper_round(struct local_engine *local)
{
    pthread_mutex_lock(&local->keeper_lock);
    remains_retry(local);
    containers_collect(local);
    logs_collect(local);
    disk_watch(local);
    inventory_gpus_look(local->inventory, local);
    pthread_mutex_unlock(&local->keeper_lock);
}

void *keeper_run(void *context)
{
    struct local_engine *local = context;
    adopt_announce(local);
    pthread_mutex_lock(&local->lock);
    while (!local->is_stopping) {
        pthread_mutex_unlock(&local->lock);
        keeper_round(local);
        pthread_mutex_lock(&local->lock);
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += local->config.housekeeping_s;
        while (!local->is_stopping &&
               pthread_cond_timedwait(&local->keeper_wake, &local->lock, &until) == 0)
            continue;
    }
    pthread_mutex_unlock(&local->lock);
    return NULL;
}
