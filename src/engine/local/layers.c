#include "engine/local/layers.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/image.h"
#include "engine/local/layer.h"
#include "engine/local/task.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/mailbox.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { RANGE_NAME_MAX = 16 };

/* A layer that is being made, or will be. */
struct layer_making {
    struct layers *layers;
    struct image *image; /* held */
    uint32_t first;
    bool is_begun;
    atomic_bool is_given_up; /* nobody waits for it any more, and nobody finds it */
    struct task *waiters;    /* by task->next */
    struct layer_making *next;
};

struct layers {
    struct local_engine *local;
    pthread_mutex_t lock; /* inside the engine's */
    pthread_cond_t has_work;
    struct layer_making *makings;
    size_t waiting_count, idle_count, thread_count; /* makings not begun, threads */
    uint64_t next_name;
    atomic_bool is_stopping;
    pthread_t threads[LAYERS_AT_ONCE];
};

/* --- folders --- */

static bool is_plain_directory(const struct image *image)
{
    return image->bytes == 0;
}

void layer_path(const struct local_engine *local, const struct image *image, uint32_t first,
                char *path, size_t size)
{
    if (is_plain_directory(image))
        snprintf(path, size, "%s/layers/%u/%s", local->directory, first, image->id);
    else
        snprintf(path, size, "%s/images/%s/ids/%u", local->directory, image->id, first);
}

struct layer_entry {
    uint32_t first;
    int64_t used_s;
};

struct layer_entries {
    struct layer_entry *items;
    size_t count, room;
};

static int newest_first(const void *a, const void *b)
{
    const struct layer_entry *x = a, *y = b;
    return (x->used_s < y->used_s) - (x->used_s > y->used_s);
}

/* What is in a folder by the numbers of ranges. */
static struct layer_entries entries_read(const char *folder)
{
    struct layer_entries list = {0};
    cleanup_dir DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct stat stat;
        int64_t first;
        if (text_to_int64(text_of(entry->d_name), &first) && first > 0 && first <= UINT32_MAX &&
            fstatat(dirfd(dir), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) == 0)
            *ARRAY_ADD(&list) = (struct layer_entry){(uint32_t)first, stat.st_mtim.tv_sec};
    }
    if (list.count > 1)
        qsort(list.items, list.count, sizeof *list.items, newest_first);
    return list;
}

size_t layers_ranges(const struct local_engine *local, const struct image *image, uint32_t *firsts,
                     size_t room)
{
    char folder[RUNTIME_PATH_MAX];
    if (is_plain_directory(image))
        return 0;
    snprintf(folder, sizeof folder, "%s/images/%s/ids", local->directory, image->id);
    cleanup_array struct layer_entries list = entries_read(folder);
    const size_t count = list.count < room ? list.count : room;
    for (size_t i = 0; i < count; i++)
        firsts[i] = list.items[i].first;
    return count;
}

/* --- making one --- */

static bool making_is_over(void *context)
{
    const struct layer_making *making = context;
    return making->is_given_up || making->layers->is_stopping;
}

static int parent_make(const char *path, struct err *err)
{
    char parent[RUNTIME_PATH_MAX];
    snprintf(parent, sizeof parent, "%s", path);
    *strrchr(parent, '/') = '\0';
    if (access(parent, F_OK) == 0)
        return 0;
    return mkdir(parent, 0700) < 0 && errno != EEXIST ? err_errno(err, errno, "make %s", parent)
                                                      : 0;
}

/* With the lock: who gives a making up may wish for the same layer again at once. */
static int layer_rename(const struct layer_making *making, const char *from, const char *path,
                        struct err *err)
{
    if (making->is_given_up)
        return err_fail(err, ERR_BUSY, "", "nobody waits for the layer any more");
    return rename(from, path) < 0 ? err_errno(err, errno, "rename %s", from) : 0;
}

static int layer_place(const struct layer_making *making, const char *folder, struct err *err)
{
    struct layers *layers = making->layers;
    char from[RUNTIME_PATH_MAX + 16], path[RUNTIME_PATH_MAX];
    layer_path(layers->local, making->image, making->first, path, sizeof path);
    snprintf(from, sizeof from, "%s/" LAYER_UPPER, folder);
    int code = parent_make(path, err);
    if (code == 0 && utimensat(AT_FDCWD, from, NULL, 0) < 0)
        code = err_errno(err, errno, "touch %s", from);
    if (code)
        return code;
    pthread_mutex_lock(&layers->lock);
    code = layer_rename(making, from, path, err);
    pthread_mutex_unlock(&layers->lock);
    return code;
}

static int making_run(struct layer_making *making, uint64_t name, struct err *err)
{
    struct local_engine *local = making->layers->local;
    char folder[RUNTIME_PATH_MAX], points[RUNTIME_PATH_MAX];
    uint64_t entries = 0;
    const int64_t begun_ms = clock_monotonic_ms();
    snprintf(points, sizeof points, "%s/points", local->directory);
    snprintf(folder, sizeof folder, "%s/pulls/ids-%llu", local->directory,
             (unsigned long long)name);
    const struct layer_order order = {.lower = {making->image->rootfs, points},
                                      .folder = folder,
                                      .first = making->first,
                                      .nobody = local->config.first_id,
                                      .is_stopping = making_is_over,
                                      .context = making};
    int code = parent_make(folder, err);
    if (code == 0 && mkdir(folder, 0700) < 0)
        code = err_errno(err, errno, "make %s", folder);
    if (code == 0)
        code = layer_make(&order, &entries, err);
    if (code == 0)
        code = layer_place(making, folder, err);
    if (code == 0)
        log_info("engine",
                 "image %.24s has a metadata layer for the ids from %u on: %llu names, "
                 "%lld ms",
                 making->image->id, making->first, (unsigned long long)entries,
                 (long long)(clock_monotonic_ms() - begun_ms));
    images_discard(local->images, folder);
    return code;
}

/* With the lock. */
static void making_unlink(struct layer_making *making)
{
    struct layer_making **at = &making->layers->makings;
    while (*at != making)
        at = &(*at)->next;
    *at = making->next;
}

static void waiters_settle(struct local_engine *local, struct task *waiters, int code,
                           const struct err *err)
{
    while (waiters) {
        struct task *task = waiters;
        waiters = task->next;
        if (code < 0)
            task_fail(task, words_say_full(err->text) ? "DiskFull" : "CreationError",
                      "its image's files cannot get the ids of the job: %s", err->text);
        pthread_mutex_lock(&local->lock);
        task_image_settled(local, task);
        pthread_mutex_unlock(&local->lock);
    }
}

static void making_end(struct layer_making *making, int code, const struct err *err)
{
    struct layers *layers = making->layers;
    pthread_mutex_lock(&layers->lock);
    if (!making->is_given_up)
        making_unlink(making);
    struct task *waiters = making->waiters;
    making->waiters = NULL;
    /* they wait for the next server then, as they would for a pull */
    const bool is_stopping = layers->is_stopping;
    pthread_mutex_unlock(&layers->lock);
    if (!is_stopping || code == 0)
        waiters_settle(layers->local, waiters, code, err);
    images_return(layers->local->images, making->image);
    mem_free(making);
}

/* The oldest that is not begun. With the lock. */
static struct layer_making *making_next(const struct layers *layers)
{
    struct layer_making *found = NULL;
    for (struct layer_making *making = layers->makings; making; making = making->next)
        if (!making->is_begun)
            found = making; /* new ones come in front */
    return found;
}

static void *maker_run(void *context)
{
    struct layers *layers = context;
    pthread_mutex_lock(&layers->lock);
    for (;;) {
        struct err err = {0};
        layers->idle_count++;
        while (layers->waiting_count == 0 && !layers->is_stopping)
            pthread_cond_wait(&layers->has_work, &layers->lock);
        layers->idle_count--;
        if (layers->is_stopping)
            break;
        struct layer_making *making = making_next(layers);
        making->is_begun = true;
        layers->waiting_count--;
        const uint64_t name = layers->next_name++;
        pthread_mutex_unlock(&layers->lock);
        const int code = making_run(making, name, &err);
        making_end(making, code, &err);
        pthread_mutex_lock(&layers->lock);
    }
    pthread_mutex_unlock(&layers->lock);
    return NULL;
}

/* --- tasks that wait --- */

/* With the lock. */
static struct layer_making *making_find(const struct layers *layers, const struct image *image,
                                        uint32_t first)
{
    struct layer_making *making = layers->makings;
    while (making && (making->image != image || making->first != first))
        making = making->next;
    return making;
}

/* With the lock. */
static struct layer_making *making_add(struct layers *layers, struct image *image, uint32_t first)
{
    struct layer_making *making = mem_zero(1, sizeof *making);
    making->layers = layers;
    making->image = image;
    making->first = first;
    making->next = layers->makings;
    images_hold(layers->local->images, image);
    layers->makings = making;
    if (++layers->waiting_count > layers->idle_count && layers->thread_count < LAYERS_AT_ONCE &&
        pthread_create(&layers->threads[layers->thread_count], NULL, maker_run, layers) == 0)
        layers->thread_count++;
    pthread_cond_signal(&layers->has_work);
    return making;
}

/* True: it is there. Its time says when it was used. */
static bool layer_use(const struct layers *layers, const struct image *image, uint32_t first)
{
    char path[RUNTIME_PATH_MAX];
    layer_path(layers->local, image, first, path, sizeof path);
    return utimensat(AT_FDCWD, path, NULL, 0) == 0;
}

bool layers_await(struct layers *layers, struct task *task, uint32_t first)
{
    struct local_engine *local = layers->local;
    const struct attempt_id attempt = task->attempt;
    if (layer_use(layers, task->image, first))
        return false;
    pthread_mutex_lock(&local->lock);
    pthread_mutex_lock(&layers->lock);
    struct layer_making *making = making_find(layers, task->image, first);
    const bool is_needed =
        !task->is_kill_wanted && (making || !layer_use(layers, task->image, first));
    if (is_needed) {
        if (!making)
            making = making_add(layers, task->image, first);
        assert(task->phase == TASK_STARTING);
        task->phase = TASK_WAITING;
        task->next = making->waiters;
        making->waiters = task;
    }
    pthread_mutex_unlock(&layers->lock);
    pthread_mutex_unlock(&local->lock);
    if (is_needed)
        event_note(local, attempt, "PreparingImage",
                   "the files of its image get the user ids of the job");
    return is_needed;
}

static bool waiter_remove(struct layer_making *making, struct task *task)
{
    for (struct task **at = &making->waiters; *at; at = &(*at)->next)
        if (*at == task) {
            *at = task->next;
            return true;
        }
    return false;
}

bool layers_cancel(struct layers *layers, struct task *task)
{
    struct layer_making *unwanted = NULL;
    bool is_found = false;
    pthread_mutex_lock(&layers->lock);
    for (struct layer_making *making = layers->makings; making && !is_found;
         making = making->next) {
        is_found = waiter_remove(making, task);
        if (is_found && !making->waiters)
            unwanted = making;
    }
    if (unwanted) { /* the range may be another job's soon */
        making_unlink(unwanted);
        unwanted->is_given_up = true;
        if (unwanted->is_begun)
            unwanted = NULL; /* its thread frees it */
        else
            layers->waiting_count--;
    }
    pthread_mutex_unlock(&layers->lock);
    if (unwanted) {
        images_return(layers->local->images, unwanted->image);
        mem_free(unwanted);
    }
    return is_found;
}

/* --- removing --- */

void layers_forget(struct local_engine *local, uint32_t first)
{
    char path[RUNTIME_PATH_MAX];
    snprintf(path, sizeof path, "%s/layers/%u", local->directory, first);
    if (access(path, F_OK) == 0)
        images_discard(local->images, path);
}

struct collecting {
    struct local_engine *local;
    const char *folder;
    int64_t now_s;
    uint64_t keep_s;
    size_t kept, kept_max, removed;
    bool is_short;
    struct layer_entry entry;
};

/* No job gets its range meanwhile. */
static void entry_collect(void *context)
{
    struct collecting *collecting = context;
    char path[RUNTIME_PATH_MAX + RANGE_NAME_MAX];
    snprintf(path, sizeof path, "%s/%u", collecting->folder, collecting->entry.first);
    const int64_t unused_s =
        collecting->now_s - tree_time_settle(AT_FDCWD, path, collecting->entry.used_s,
                                             tree_latest_s(collecting->now_s));
    if (!collecting->is_short && collecting->kept < collecting->kept_max &&
        unused_s <= (int64_t)collecting->keep_s) {
        collecting->kept++;
        return;
    }
    images_discard(collecting->local->images, path);
    collecting->removed++;
}

static void folder_collect(struct collecting *collecting)
{
    cleanup_array struct layer_entries list = entries_read(collecting->folder);
    collecting->kept = 0;
    for (size_t i = 0; i < list.count; i++) {
        collecting->entry = list.items[i];
        id_ranges_while_free(collecting->local->id_ranges, list.items[i].first, entry_collect,
                             collecting);
    }
}

size_t layers_collect(struct local_engine *local, int64_t now_s, uint64_t keep_s, bool is_short)
{
    char path[RUNTIME_PATH_MAX], below[RUNTIME_PATH_MAX + 300];
    struct collecting collecting = {
        .local = local, .now_s = now_s, .keep_s = keep_s, .is_short = is_short};
    snprintf(path, sizeof path, "%s/layers", local->directory);
    collecting.folder = path;
    folder_collect(&collecting); /* of no use to the next job */
    snprintf(path, sizeof path, "%s/images", local->directory);
    cleanup_dir DIR *dir = opendir(path);
    collecting.folder = below;
    collecting.kept_max = LAYERS_KEPT;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(below, sizeof below, "%s/%s/ids", path, entry->d_name);
        if (entry->d_name[0] != '.')
            folder_collect(&collecting);
    }
    return collecting.removed;
}

/* --- birth and death --- */

struct layers *layers_new(struct local_engine *local, struct err *err)
{
    struct layers *layers = mem_zero(1, sizeof *layers);
    layers->local = local;
    pthread_mutex_init(&layers->lock, NULL);
    pthread_cond_init(&layers->has_work, NULL);
    if (pthread_create(&layers->threads[0], NULL, maker_run, layers) == 0) {
        layers->thread_count = 1;
        return layers;
    }
    err_fail(err, ERR_IO, "", "cannot start the thread that makes metadata layers");
    layers_free(layers);
    return NULL;
}

void layers_stop(struct layers *layers)
{
    pthread_mutex_lock(&layers->lock);
    layers->is_stopping = true;
    pthread_cond_broadcast(&layers->has_work);
    pthread_mutex_unlock(&layers->lock);
    for (size_t i = 0; i < layers->thread_count; i++)
        pthread_join(layers->threads[i], NULL);
    layers->thread_count = 0;
}

void layers_free(struct layers *layers)
{
    if (!layers)
        return;
    assert(layers->thread_count == 0);
    while (layers->makings) {
        struct layer_making *making = layers->makings;
        layers->makings = making->next;
        images_return(layers->local->images, making->image);
        mem_free(making);
    }
    pthread_cond_destroy(&layers->has_work);
    pthread_mutex_destroy(&layers->lock);
    mem_free(layers);
}
