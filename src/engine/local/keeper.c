/* Housekeeping: disk space, unused images, files and logs of what has ended. */
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/image.h"
#include "engine/local/inventory.h"
#include "engine/local/layers.h"
#include "engine/local/log_keep.h"
#include "engine/local/network.h"
#include "engine/local/storage.h"
#include "engine/local/task.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/mailbox.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* A disk that is rather full of other things must not cost every job its image. */
enum {
    PRESSURE_AGE_S = 3600,
    CHECK_MS = 2000, /* between two checks of a place that is short, and of the logs of what runs */
    LOG_INODE_COST = 16 << 10, /* a file costs at least so much of a log's limit */
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

struct log_list {
    struct log_kept *items;
    size_t count, room;
};

static void logs_list(struct local_engine *local, const struct log_limits *limits,
                      struct log_list *list)
{
    char path[RUNTIME_PATH_MAX], below[RUNTIME_PATH_MAX];
    snprintf(path, sizeof path, "%s/logs", local->directory);
    cleanup_dir DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct log_kept log = {.cost = 0};
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof log.id)
            continue;
        snprintf(log.id, sizeof log.id, "%.23s", entry->d_name);
        task_log_path(local, log.id, below);
        log_measure(below, limits, &log);
        log_owner_read(below, log.owner);
        log.is_live = task_is_known(local, log.id);
        *ARRAY_ADD(list) = log;
    }
}

static void logs_collect(struct local_engine *local, int64_t now_s)
{
    char path[RUNTIME_PATH_MAX];
    cleanup_array struct log_list list = {0};
    struct statvfs disk = {0};
    if (statvfs(local->directory, &disk) < 0)
        log_warning("engine", "%s: errno %d", local->directory, errno);
    struct log_limits limits = log_limits_of(local->config.log_keep_mib << 20, disk.f_files,
                                             (int64_t)local->config.log_keep_s);
    limits.latest_s = tree_latest_s(now_s);
    logs_list(local, &limits, &list);
    log_keep_choose(list.items, list.count, &limits, now_s);
    for (size_t i = 0; i < list.count; i++) {
        task_log_path(local, list.items[i].id, path);
        if (list.items[i].is_chosen)
            tree_remove(path, NULL);
    }
}

/* Overlays of ended tasks that nobody forgot in time, and folders that no task explains. */
static void containers_collect(struct local_engine *local, int64_t now_s)
{
    char path[RUNTIME_PATH_MAX], ended[RUNTIME_PATH_MAX];
    snprintf(path, sizeof path, "%s/containers", local->directory);
    cleanup_dir DIR *dir = opendir(path);
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
        if (lstat(ended, &stat) < 0)
            continue;
        const int64_t ended_s =
            tree_time_settle(AT_FDCWD, ended, stat.st_mtim.tv_sec, tree_latest_s(now_s));
        if (now_s - ended_s <= (int64_t)local->config.container_keep_s)
            continue;
        static const char *const parts[] = {"upper", "work", "image"};
        for (size_t i = 0; i < COUNT_OF(parts); i++) {
            char part[RUNTIME_PATH_MAX];
            task_path(local, entry->d_name, parts[i], part);
            tree_remove(part, NULL);
        }
    }
}

/* Images give way when the disk is full, and at once when space is short. */
static void images_give_way(struct local_engine *local, int64_t now_s)
{
    struct statvfs disk;
    char reason[STORAGE_REASON_MAX];
    if (statvfs(local->directory, &disk) < 0)
        return;
    const uint64_t total = disk.f_blocks * disk.f_frsize;
    const uint64_t high = total / 100 * local->config.image_high_percent;
    const uint64_t used = total - disk.f_bfree * disk.f_frsize;
    const struct storage_reserve reserve =
        storage_reserve_data(&disk, local->config.disk_reserve_mib);
    const bool is_short = storage_is_short(&disk, &reserve, false, "data", reason);
    uint64_t wanted = is_short ? reserve.bytes : 0;
    if (used > high)
        wanted = used - high;
    layers_collect(local, now_s, local->config.image_keep_s, wanted > 0);
    images_collect(local->images, now_s, local->config.image_keep_s, is_short ? 0 : PRESSURE_AGE_S,
                   wanted);
}

void storage_check(struct local_engine *local)
{
    const struct {
        const char *path, *name;
        enum health health;
    } places[] = {{local->directory, "data", HEALTH_DISK},
                  {local->run_directory, "run", HEALTH_RUN}};
    bool is_well = true;
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct statvfs disk;
        char reason[STORAGE_REASON_MAX] = "";
        if (statvfs(places[i].path, &disk) < 0) {
            snprintf(reason, sizeof reason, "the %s directory cannot be read: errno %d",
                     places[i].name, errno);
        } else {
            const struct storage_reserve reserve =
                places[i].health == HEALTH_DISK
                    ? storage_reserve_data(&disk, local->config.disk_reserve_mib)
                    : storage_reserve_run(&disk);
            storage_is_short(&disk, &reserve, inventory_is_ill(local->inventory, places[i].health),
                             places[i].name, reason);
        }
        is_well &= !reason[0];
        inventory_health(local->inventory, local, places[i].health, reason);
    }
    pthread_mutex_lock(&local->lock);
    local->is_storage_short = !is_well;
    pthread_cond_signal(&local->keeper_wake); /* it looks more often while that is so */
    pthread_mutex_unlock(&local->lock);
}

/* --- what could not be removed when its task ended --- */

struct leftover_count {
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
    struct leftover_count *leftover = context;
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
    struct leftover_count leftover = {.local = local};
    struct remains one;
    for (size_t at = 0; remains_at(local, at, &one);)
        if (remains_are_gone(local, one.id)) {
            id_ranges_leave(local->id_ranges, (struct attempt_id){strtoull(one.id, NULL, 10)});
            remains_forget(local, one.id);
        } else {
            at++;
        }
    cgroup_children(&local->cgroups, local->group, leftover_visit, &leftover);
    pthread_mutex_lock(&local->lock);
    task_ids_settle(local);
    pthread_mutex_unlock(&local->lock);
    /* one may have been noted meanwhile: it is not to be called well because we looked before */
    bool has_remains = leftover.count > 0 || remains_at(local, 0, &one);
    static const char reason[] = "processes or mounts of ended tasks remain";
    inventory_health(local->inventory, local, HEALTH_REMAINS, has_remains ? reason : "");
    if (!has_remains && remains_at(local, 0, &one))
        inventory_health(local->inventory, local, HEALTH_REMAINS, reason);
}

/* --- logs of what runs --- */

struct attempt_list {
    struct attempt_id *items;
    size_t count, room;
};

static struct attempt_list running_list(struct local_engine *local)
{
    struct attempt_list list = {0};
    pthread_mutex_lock(&local->lock);
    for (size_t i = 0; i < local->task_room; i++) {
        const struct task *task = local->tasks[i];
        if (task && task->phase == TASK_RUNNING && !task->is_kill_wanted)
            *ARRAY_ADD(&list) = task->attempt;
    }
    pthread_mutex_unlock(&local->lock);
    return list;
}

/* At once: what fills a disk is given no time to go on. */
static void log_end(struct local_engine *local, struct attempt_id attempt)
{
    pthread_mutex_lock(&local->lock);
    struct task *task = task_find(local, attempt);
    if (task && task->phase == TASK_RUNNING && !task->is_kill_wanted) {
        task_fail(task, "TaskDiskFull", "its log is full: it may take %llu MiB",
                  (unsigned long long)local->config.log_max_mib);
        task->is_kill_wanted = true;
        task->kill_due_ms = clock_monotonic_ms();
        monitor_kill(local, task);
    }
    pthread_mutex_unlock(&local->lock);
}

/* skep-init keeps two segments of each stream, but the task may write anything into the folder. */
static void logs_limit(struct local_engine *local)
{
    const struct log_limits limits = {.cost = local->config.log_max_mib << 20,
                                      .inode_cost = LOG_INODE_COST};
    cleanup_array struct attempt_list list = running_list(local);
    for (size_t i = 0; i < list.count; i++) {
        struct log_kept log = {.cost = 0};
        char path[RUNTIME_PATH_MAX];
        bool is_ended;
        cleanup_close int held = task_log_find(local, list.items[i], &is_ended, path);
        (void)held;
        log_measure(path, &limits, &log);
        if (log.cost >= limits.cost)
            log_end(local, list.items[i]);
    }
}

void keeper_round(struct local_engine *local)
{
    pthread_mutex_lock(&local->keeper_lock);
    remains_retry(local);
    if (local->networks)
        networks_sweep(local->networks);
    const int64_t now_s = local->sink.trusted_ms(local->sink.context) / 1000;
    containers_collect(local, now_s);
    logs_collect(local, now_s);
    images_give_way(local, now_s);
    storage_check(local);
    inventory_gpus_check(local->inventory, local);
    pthread_mutex_unlock(&local->keeper_lock);
}

/* Until the next round; meanwhile a node without space is looked at more often, so that it serves
 * again soon after space was made, and so are the logs of tasks. With the lock. */
static void keeper_wait(struct local_engine *local)
{
    int64_t now_ms = clock_monotonic_ms();
    const int64_t end_ms = now_ms + (int64_t)local->config.housekeeping_s * 1000;
    while (!local->is_stopping && now_ms < end_ms) {
        const bool is_short = local->is_storage_short;
        const bool is_looking = (is_short || local->task_count > 0) && now_ms + CHECK_MS < end_ms;
        const struct timespec until = clock_moment(is_looking ? now_ms + CHECK_MS : end_ms);
        int code = pthread_cond_timedwait(&local->keeper_wake, &local->lock, &until);
        if (code == ETIMEDOUT && !local->is_stopping) {
            pthread_mutex_unlock(&local->lock);
            logs_limit(local);
            if (is_short)
                storage_check(local);
            pthread_mutex_lock(&local->lock);
        }
        now_ms = clock_monotonic_ms();
    }
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
        keeper_wait(local);
    }
    pthread_mutex_unlock(&local->lock);
    return NULL;
}
