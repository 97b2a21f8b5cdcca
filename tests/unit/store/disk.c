/* disk.c — see disk.h. */
#include "disk.h"
#include "base/memory.h"
#include <assert.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { IMAGES_MAX = 16 };

struct pending {
    struct pending *next;
    sqlite3_int64 at;
    int size; /* -1: the file is cut at `at` */
    char bytes[];
};

/* What is on the disk of one file, and what is only under way to it. */
struct image {
    char *path; /* NULL: not used */
    enum disk_file file;
    char *bytes;
    size_t size, room;
    struct pending *first, **last;
};

struct handle {
    sqlite3_file base;
    struct image *image; /* NULL: of a file without a name */
    sqlite3_file *real;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t synced;
    struct image images[IMAGES_MAX], lost[IMAGES_MAX];
    struct disk_counts counts[DISK_FILES];
    struct {
        bool is_on;
        enum disk_op op;
        enum disk_file file;
        uint64_t after;
        int code;
        char while_there[120];       /* "": always */
        uint64_t bounds[DISK_FILES]; /* bytes; 0: none */
    } fault;
    struct {
        bool is_due, has_failed;
        uint64_t after;
        unsigned seed;
        void (*at)(void *context);
        void *context;
    } power;
    struct {
        enum disk_file file;
        pthread_t thread;
        bool is_on;
        uint64_t count;
    } watch;
    struct {
        enum disk_file file;
        void (*at)(void *context); /* NULL: nothing is to be called */
        void *context;
    } hook;
    uint64_t waits;
    sqlite3_vfs *real;
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER, .synced = PTHREAD_COND_INITIALIZER};

static enum disk_file file_of(const char *path)
{
    size_t length = strlen(path);

    if (length > 4 && strcmp(path + length - 4, "-wal") == 0)
        return DISK_LOG;
    return length > 3 && strcmp(path + length - 3, ".db") == 0 ? DISK_DATABASE : DISK_OTHER;
}

static void image_apply(struct image *image, const struct pending *pending)
{
    size_t end = (size_t)pending->at + (pending->size > 0 ? (size_t)pending->size : 0);

    if (end > image->room) {
        image->room = end * 2;
        image->bytes = mem_realloc(image->bytes, image->room);
    }
    if (end > image->size) {
        memset(image->bytes + image->size, 0, end - image->size);
        image->size = end;
    }
    if (pending->size < 0)
        image->size = end;
    else
        memcpy(image->bytes + pending->at, pending->bytes, (size_t)pending->size);
}

static void image_drop(struct image *image)
{
    for (struct pending *next, *pending = image->first; pending; pending = next) {
        next = pending->next;
        mem_free(pending);
    }
    image->first = NULL;
    image->last = &image->first;
}

static void image_free(struct image *image)
{
    image_drop(image);
    mem_free(image->path);
    mem_free(image->bytes);
    *image = (struct image){0};
}

static struct image *image_of(const char *path)
{
    struct image *unused = NULL;

    for (size_t i = 0; i < IMAGES_MAX; i++) {
        if (disk.images[i].path && strcmp(disk.images[i].path, path) == 0)
            return &disk.images[i];
        if (!disk.images[i].path && !unused)
            unused = &disk.images[i];
    }
    assert(unused);
    *unused = (struct image){.path = mem_copy(path), .file = file_of(path)};
    unused->last = &unused->first;
    return unused;
}

/* Under the lock. */
static void power_fail(void)
{
    disk.power.is_due = false;
    disk.power.has_failed = true;
    for (size_t i = 0; i < IMAGES_MAX; i++) {
        const struct image *image = &disk.images[i];
        struct image *lost = &disk.lost[i];
        image_free(lost);
        if (!image->path)
            continue;
        *lost = (struct image){.path = mem_copy(image->path), .size = image->size};
        lost->room = image->size + 1;
        lost->bytes = mem_alloc(lost->room);
        if (image->size > 0)
            memcpy(lost->bytes, image->bytes, image->size);
        for (const struct pending *at = image->first; at; at = at->next)
            if (rand_r(&disk.power.seed) % 2)
                image_apply(lost, at);
    }
    disk.power.at(disk.power.context);
}

/* Counts the operation, under the lock; what it shall fail with, or SQLITE_OK. */
static int disk_take(struct image *image, enum disk_op op)
{
    if (disk.power.is_due && disk.power.after-- == 0)
        power_fail();
    if (op == DISK_WRITE && image && disk.hook.at && disk.hook.file == image->file) {
        void (*at)(void *context) = disk.hook.at;
        disk.hook.at = NULL;
        at(disk.hook.context);
    }
    if (disk.fault.while_there[0])
        return op == DISK_WRITE && access(disk.fault.while_there, F_OK) == 0 ? SQLITE_FULL
                                                                             : SQLITE_OK;
    if (disk.fault.is_on && disk.fault.op == op && image && disk.fault.file == image->file) {
        if (disk.fault.after == 0)
            return disk.fault.code;
        disk.fault.after--;
    }
    return SQLITE_OK;
}

static void pending_add(struct image *image, sqlite3_int64 at, const void *bytes, int size)
{
    struct pending *pending = mem_alloc(sizeof *pending + (size > 0 ? (size_t)size : 0));

    *pending = (struct pending){.at = at, .size = size};
    if (size > 0)
        memcpy(pending->bytes, bytes, (size_t)size);
    *image->last = pending;
    image->last = &pending->next;
    disk.counts[image->file].writes++;
    disk.counts[image->file].unsynced++;
    if (disk.watch.is_on && disk.watch.file == image->file &&
        pthread_equal(disk.watch.thread, pthread_self()))
        disk.watch.count++;
}

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct handle *)(void *)file)->real;
}

static int disk_close(sqlite3_file *file)
{
    struct handle *handle = (struct handle *)(void *)file;
    int code = handle->real->pMethods->xClose(handle->real);

    mem_free(handle->real);
    handle->base.pMethods = NULL;
    return code;
}

static int disk_read(sqlite3_file *file, void *bytes, int size, sqlite3_int64 at)
{
    return real_of(file)->pMethods->xRead(real_of(file), bytes, size, at);
}

static int disk_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at)
{
    struct image *image = ((struct handle *)(void *)file)->image;
    int code;

    pthread_mutex_lock(&disk.lock);
    code = disk_take(image, DISK_WRITE);
    if (code == SQLITE_OK && image && disk.fault.bounds[image->file] &&
        (uint64_t)(at + size) > disk.fault.bounds[image->file])
        code = SQLITE_FULL;
    if (code == SQLITE_OK)
        code = real_of(file)->pMethods->xWrite(real_of(file), bytes, size, at);
    if (code == SQLITE_OK && image)
        pending_add(image, at, bytes, size);
    pthread_mutex_unlock(&disk.lock);
    return code;
}

static int disk_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct image *image = ((struct handle *)(void *)file)->image;
    int code;

    pthread_mutex_lock(&disk.lock);
    code = disk_take(image, DISK_WRITE);
    if (code == SQLITE_OK)
        code = real_of(file)->pMethods->xTruncate(real_of(file), size);
    if (code == SQLITE_OK && image)
        pending_add(image, size, NULL, -1);
    pthread_mutex_unlock(&disk.lock);
    return code;
}

static int disk_sync(sqlite3_file *file, int flags)
{
    struct image *image = ((struct handle *)(void *)file)->image;
    int code;

    (void)flags; /* the real file may stay in memory */
    pthread_mutex_lock(&disk.lock);
    code = disk_take(image, DISK_SYNC);
    if (code == SQLITE_OK && image) {
        for (const struct pending *at = image->first; at; at = at->next)
            image_apply(image, at);
        image_drop(image);
        disk.counts[image->file].syncs++;
        disk.counts[image->file].unsynced = 0;
        pthread_cond_broadcast(&disk.synced);
    }
    pthread_mutex_unlock(&disk.lock);
    return code;
}

static int disk_file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int disk_lock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int disk_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int disk_reserved(sqlite3_file *file, int *is_reserved)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), is_reserved);
}

static int disk_control(sqlite3_file *file, int op, void *argument)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), op, argument);
}

static int disk_sector(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int disk_traits(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int disk_map(sqlite3_file *file, int page, int size, int extend, void volatile **at)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, at);
}

static int disk_shm_lock(sqlite3_file *file, int first, int count, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), first, count, flags);
}

static void disk_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int disk_unmap(sqlite3_file *file, int is_deleted)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), is_deleted);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2, /* without memory maps */
    .xClose = disk_close,
    .xRead = disk_read,
    .xWrite = disk_write,
    .xTruncate = disk_truncate,
    .xSync = disk_sync,
    .xFileSize = disk_file_size,
    .xLock = disk_lock,
    .xUnlock = disk_unlock,
    .xCheckReservedLock = disk_reserved,
    .xFileControl = disk_control,
    .xSectorSize = disk_sector,
    .xDeviceCharacteristics = disk_traits,
    .xShmMap = disk_map,
    .xShmLock = disk_shm_lock,
    .xShmBarrier = disk_barrier,
    .xShmUnmap = disk_unmap,
};

static int disk_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *out)
{
    struct handle *handle = (struct handle *)(void *)file;
    int code;

    (void)vfs;
    *handle = (struct handle){.real = mem_zero(1, (size_t)disk.real->szOsFile)};
    code = disk.real->xOpen(disk.real, path, handle->real, flags, out);
    if (code != SQLITE_OK) {
        mem_free(handle->real);
        return code;
    }
    handle->base.pMethods = &methods;
    if (path) {
        pthread_mutex_lock(&disk.lock);
        handle->image = image_of(path);
        pthread_mutex_unlock(&disk.lock);
    }
    return SQLITE_OK;
}

static int disk_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    (void)vfs;
    pthread_mutex_lock(&disk.lock);
    for (size_t i = 0; i < IMAGES_MAX; i++)
        if (disk.images[i].path && strcmp(disk.images[i].path, path) == 0)
            image_free(&disk.images[i]);
    pthread_mutex_unlock(&disk.lock);
    return disk.real->xDelete(disk.real, path, sync);
}

static int disk_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    pthread_mutex_lock(&disk.lock);
    disk.waits++;
    pthread_mutex_unlock(&disk.lock);
    return disk.real->xSleep(disk.real, us);
}

void disk_begin(void)
{
    static sqlite3_vfs vfs;

    if (!disk.real) {
        sqlite3_initialize();
        disk.real = sqlite3_vfs_find(NULL);
        vfs = *disk.real;
        vfs.zName = "disk";
        vfs.szOsFile = sizeof(struct handle);
        vfs.xOpen = disk_open;
        vfs.xDelete = disk_delete;
        vfs.xSleep = disk_sleep;
        vfs.pNext = NULL;
        sqlite3_vfs_register(&vfs, 1);
    }
    for (size_t i = 0; i < IMAGES_MAX; i++) {
        image_free(&disk.images[i]);
        image_free(&disk.lost[i]);
    }
    memset(disk.counts, 0, sizeof disk.counts);
    memset(&disk.power, 0, sizeof disk.power);
    memset(&disk.watch, 0, sizeof disk.watch);
    memset(&disk.hook, 0, sizeof disk.hook);
    disk.waits = 0;
    disk_heal();
}

struct disk_counts disk_count(enum disk_file file)
{
    struct disk_counts counts;

    pthread_mutex_lock(&disk.lock);
    counts = disk.counts[file];
    pthread_mutex_unlock(&disk.lock);
    return counts;
}

bool disk_await_syncs(enum disk_file file, uint64_t syncs)
{
    struct timespec limit;
    int code = 0;

    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 60;
    pthread_mutex_lock(&disk.lock);
    while (code == 0 && disk.counts[file].syncs < syncs)
        code = pthread_cond_timedwait(&disk.synced, &disk.lock, &limit);
    pthread_mutex_unlock(&disk.lock);
    return code == 0;
}

void disk_watch(enum disk_file file, pthread_t thread)
{
    pthread_mutex_lock(&disk.lock);
    disk.watch.file = file;
    disk.watch.thread = thread;
    disk.watch.is_on = true;
    disk.watch.count = 0;
    pthread_mutex_unlock(&disk.lock);
}

uint64_t disk_watched(void)
{
    uint64_t count;

    pthread_mutex_lock(&disk.lock);
    count = disk.watch.count;
    pthread_mutex_unlock(&disk.lock);
    return count;
}

uint64_t disk_waits(void)
{
    pthread_mutex_lock(&disk.lock);
    const uint64_t waits = disk.waits;
    pthread_mutex_unlock(&disk.lock);
    return waits;
}

void disk_on_write(enum disk_file file, void (*at)(void *context), void *context)
{
    pthread_mutex_lock(&disk.lock);
    disk.hook.file = file;
    disk.hook.at = at;
    disk.hook.context = context;
    pthread_mutex_unlock(&disk.lock);
}

void disk_fail(enum disk_op op, enum disk_file file, uint64_t after, int code)
{
    pthread_mutex_lock(&disk.lock);
    disk.fault.is_on = true;
    disk.fault.op = op;
    disk.fault.file = file;
    disk.fault.after = after;
    disk.fault.code = code;
    pthread_mutex_unlock(&disk.lock);
}

void disk_fill_while(const char *path)
{
    pthread_mutex_lock(&disk.lock);
    snprintf(disk.fault.while_there, sizeof disk.fault.while_there, "%s", path);
    pthread_mutex_unlock(&disk.lock);
}

void disk_bound(enum disk_file file, uint64_t bytes)
{
    pthread_mutex_lock(&disk.lock);
    disk.fault.bounds[file] = bytes;
    pthread_mutex_unlock(&disk.lock);
}

void disk_heal(void)
{
    pthread_mutex_lock(&disk.lock);
    disk.fault.while_there[0] = '\0';
    disk.fault.is_on = false;
    memset(disk.fault.bounds, 0, sizeof disk.fault.bounds);
    pthread_mutex_unlock(&disk.lock);
}

void disk_lose_power(uint64_t after, unsigned seed, void (*at)(void *context), void *context)
{
    pthread_mutex_lock(&disk.lock);
    disk.power.is_due = true;
    disk.power.has_failed = false;
    disk.power.after = after;
    disk.power.seed = seed;
    disk.power.at = at;
    disk.power.context = context;
    pthread_mutex_unlock(&disk.lock);
}

bool disk_has_lost_power(void)
{
    bool has_failed;

    pthread_mutex_lock(&disk.lock);
    has_failed = disk.power.has_failed;
    pthread_mutex_unlock(&disk.lock);
    return has_failed;
}

void disk_restore(const char *directory)
{
    for (size_t i = 0; i < IMAGES_MAX; i++) {
        const struct image *lost = &disk.lost[i];
        char path[200];
        FILE *file;
        size_t written;
        if (!lost->path)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, strrchr(lost->path, '/') + 1);
        file = fopen(path, "w");
        assert(file);
        written = fwrite(lost->bytes, 1, lost->size, file);
        assert(written == lost->size);
        (void)written;
        fclose(file);
    }
}
