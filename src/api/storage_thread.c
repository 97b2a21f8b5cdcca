#include "api/storage_thread.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/log.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct storage_thread {
    struct worker_task look; /* first; its thread's while is_looking */
    struct storage_threads *owner;
    char *name, *directory;
    struct worker *worker;
    struct storage_health seen; /* the look under way writes it; nobody else reads it meanwhile */
    /* under the owner's lock */
    struct storage_health health;
    int64_t look_from_ms, look_end_ms; /* monotonic; 0: none has begun, none has ended */
    unsigned holds;
    bool is_looking, is_gone;
    struct storage_thread *next;
};

struct storage_threads {
    int64_t patience_ms;
    pthread_mutex_t lock; /* guards what follows */
    struct storage_thread *first;
    bool is_stopping; /* nothing is taken out of the list any more */
};

static bool is_of(const struct storage_thread *thread, const struct storage *storage)
{
    return strcmp(thread->name, storage->name) == 0 &&
           strcmp(thread->directory, storage->directory) == 0;
}

/* With the lock. NULL: there is none. */
static struct storage_thread *thread_find(const struct storage_threads *threads,
                                          const struct storage *storage)
{
    struct storage_thread *at = threads->first;
    while (at && (at->is_gone || !is_of(at, storage)))
        at = at->next;
    return at;
}

static void thread_free(struct storage_thread *thread)
{
    worker_free(thread->worker);
    mem_free(thread->name);
    mem_free(thread->directory);
    mem_free(thread);
}

static void threads_free(struct storage_thread *first)
{
    while (first) {
        struct storage_thread *next = first->next;
        thread_free(first);
        first = next;
    }
}

/* With the lock: takes out those that are gone and that nobody holds. Such a thread is idle, so
 * that joining it takes no time. */
static struct storage_thread *ended_take(struct storage_threads *threads)
{
    struct storage_thread *taken = NULL;
    for (struct storage_thread **at = &threads->first; *at;) {
        struct storage_thread *thread = *at;
        if (!thread->is_gone || thread->holds || threads->is_stopping) {
            at = &thread->next;
            continue;
        }
        *at = thread->next;
        thread->next = taken;
        taken = thread;
    }
    return taken;
}

/* ---- how it is ---- */

static void look_run(struct worker_task *task, void *context)
{
    struct storage_thread *thread = (struct storage_thread *)task;
    struct statvfs disk;
    (void)context;
    thread->seen = (struct storage_health){.state = STORAGE_ABSENT};
    cleanup_close int folder = open(thread->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || fstatvfs(folder, &disk) < 0) {
        thread->seen.number = errno;
        return;
    }
    thread->seen.total_bytes = (uint64_t)disk.f_blocks * disk.f_frsize;
    thread->seen.free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    const bool is_writable = faccessat(folder, ".", W_OK | X_OK, AT_EACCESS) == 0;
    thread->seen.number = is_writable ? 0 : errno;
    thread->seen.state = is_writable ? STORAGE_WELL : STORAGE_UNWRITABLE;
}

static void look_done(struct worker_task *task, bool is_run)
{
    struct storage_thread *thread = (struct storage_thread *)task;
    struct storage_threads *threads = thread->owner;
    pthread_mutex_lock(&threads->lock);
    thread->is_looking = false;
    if (is_run) {
        thread->health = thread->seen;
        thread->health.looked_ms = clock_unix_ms();
        thread->look_end_ms = clock_monotonic_ms();
    }
    assert(thread->holds);
    thread->holds--;
    pthread_mutex_unlock(&threads->lock);
}

/* With the lock. A thread with too much to do looks another time. */
static void look_ask(struct storage_thread *thread)
{
    struct err err;
    if (thread->is_looking)
        return;
    thread->look = (struct worker_task){.run = look_run, .done = look_done};
    thread->is_looking = true;
    thread->look_from_ms = clock_monotonic_ms();
    thread->holds++;
    if (worker_give(thread->worker, &thread->look, &err) == 0)
        return;
    thread->holds--;
    thread->is_looking = false;
}

void storage_health(struct storage_threads *threads, const struct storage *storage,
                    struct storage_health *health)
{
    const int64_t now_ms = clock_monotonic_ms();
    *health = (struct storage_health){.state = STORAGE_ELSEWHERE};
    pthread_mutex_lock(&threads->lock);
    struct storage_thread *thread = thread_find(threads, storage);
    if (thread) {
        if (!thread->look_end_ms || now_ms - thread->look_end_ms >= threads->patience_ms)
            look_ask(thread);
        *health = thread->health;
        if (thread->is_looking)
            health->silent_ms = now_ms - thread->look_from_ms;
        if (thread->is_looking && health->silent_ms >= threads->patience_ms)
            health->state = STORAGE_SILENT;
    }
    pthread_mutex_unlock(&threads->lock);
}

/* ---- threads ---- */

static int thread_start(struct storage_threads *threads, const struct storage *storage,
                        struct storage_thread **out, struct err *err)
{
    const struct worker_config config = {
        .name = "a thread that reads and writes a storage",
        .waiting_max = STORAGE_TASKS_MAX,
        .busy_text = "too many requests for files of this storage at this moment: try again",
    };
    struct storage_thread *thread = mem_zero(1, sizeof *thread);
    int code = worker_start(&config, &thread->worker, err);
    if (code) {
        mem_free(thread);
        return code;
    }
    thread->owner = threads;
    thread->name = mem_copy(storage->name);
    thread->directory = mem_copy(storage->directory);
    *out = thread;
    return 0;
}

/* With the lock: one for each storage that has none. The first error, when all have been tried. */
static int missing_start(struct storage_threads *threads, struct storage_list storages,
                         struct err *err)
{
    int first = 0;
    for (size_t i = 0; i < storages.count; i++) {
        const struct storage *storage = &storages.items[i];
        struct storage_thread *thread;
        struct err one;
        if (!storage->directory[0] || thread_find(threads, storage))
            continue;
        const int code = thread_start(threads, storage, &thread, &one);
        if (code && !first) {
            *err = one;
            first = code;
        }
        if (code)
            continue;
        thread->next = threads->first;
        threads->first = thread;
        look_ask(thread);
    }
    return first;
}

static bool is_among(const struct storage_thread *thread, struct storage_list storages)
{
    for (size_t i = 0; i < storages.count; i++)
        if (is_of(thread, &storages.items[i]))
            return true;
    return false;
}

int storage_threads_start(struct storage_list storages, uint32_t patience_ms,
                          struct storage_threads **out, struct err *err)
{
    struct storage_threads *threads = mem_zero(1, sizeof *threads);
    threads->patience_ms = patience_ms ? patience_ms : STORAGE_PATIENCE_MS;
    pthread_mutex_init(&threads->lock, NULL);
    *out = threads;
    pthread_mutex_lock(&threads->lock);
    int code = missing_start(threads, storages, err);
    pthread_mutex_unlock(&threads->lock);
    return code;
}

void storage_threads_change(struct storage_threads *threads, struct storage_list storages)
{
    struct err err;
    pthread_mutex_lock(&threads->lock);
    int code = threads->is_stopping ? 0 : missing_start(threads, storages, &err);
    for (struct storage_thread *at = threads->first; at; at = at->next)
        at->is_gone |= !is_among(at, storages);
    struct storage_thread *ended = ended_take(threads);
    pthread_mutex_unlock(&threads->lock);
    if (code)
        log_error("storages", "files of a new storage cannot be reached: %s", err.text);
    threads_free(ended);
}

void storage_threads_stop(struct storage_threads *threads)
{
    if (!threads)
        return;
    pthread_mutex_lock(&threads->lock);
    threads->is_stopping = true;
    pthread_mutex_unlock(&threads->lock);
    for (struct storage_thread *at = threads->first; at; at = at->next)
        worker_stop(at->worker);
}

void storage_threads_free(struct storage_threads *threads)
{
    if (!threads)
        return;
    storage_threads_stop(threads);
    threads_free(threads->first);
    pthread_mutex_destroy(&threads->lock);
    mem_free(threads);
}

int storage_thread_take(struct storage_threads *threads, const struct storage *storage,
                        struct storage_thread **out, struct err *err)
{
    pthread_mutex_lock(&threads->lock);
    struct storage_thread *thread = thread_find(threads, storage);
    if (thread)
        thread->holds++;
    struct storage_thread *ended = ended_take(threads);
    pthread_mutex_unlock(&threads->lock);
    threads_free(ended);
    *out = thread;
    return thread ? 0
                  : err_fail(err, ERR_UNAVAILABLE, "",
                             "storage %s is being changed on the server: try again", storage->name);
}

void storage_thread_again(struct storage_threads *threads, struct storage_thread *thread)
{
    pthread_mutex_lock(&threads->lock);
    assert(thread->holds);
    thread->holds++;
    pthread_mutex_unlock(&threads->lock);
}

void storage_thread_put(struct storage_threads *threads, struct storage_thread *thread)
{
    pthread_mutex_lock(&threads->lock);
    assert(thread->holds);
    thread->holds--;
    pthread_mutex_unlock(&threads->lock);
}

int storage_thread_give(struct storage_thread *thread, struct worker_task *task, struct err *err)
{
    return worker_give(thread->worker, task, err);
}

size_t storage_threads_count(struct storage_threads *threads)
{
    size_t count = 0;
    pthread_mutex_lock(&threads->lock);
    for (const struct storage_thread *at = threads->first; at; at = at->next)
        count++;
    pthread_mutex_unlock(&threads->lock);
    return count;
}
