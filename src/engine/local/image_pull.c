#include "engine/local/image_pull.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/text.h"
#include "engine/local/image.h"
#include "engine/local/pull.h"
#include "engine/local/task.h"
#include "sys/clock.h"
#include "sys/log.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { RETRY_MS = 2000 }; /* first pause; doubled each time */

static void *puller_run(void *context);

void pulls_init(struct pulls *pulls)
{
    pulls->queue_end = &pulls->queue;
    clock_condition_init(&pulls->has_pull);
}

void pulls_release(struct pulls *pulls)
{
    assert(pulls->thread_count == 0);
    pthread_cond_destroy(&pulls->has_pull);
}

/* --- who waits --- */

/* There is more to do, or for others than before. */
static void pullers_wake(struct images *images)
{
    struct pulls *pulls = &images->pulls;
    if (pulls->queue_count > pulls->idle_count &&
        pulls->thread_count < images->local->config.pulls &&
        pthread_create(&pulls->threads[pulls->thread_count], NULL, puller_run, images) == 0)
        pulls->thread_count++;
    pthread_cond_broadcast(&pulls->has_pull);
}

static void queue_add(struct pulls *pulls, struct entry *entry)
{
    entry->is_queued = true;
    entry->next = NULL;
    *pulls->queue_end = entry;
    pulls->queue_end = &entry->next;
    pulls->queue_count++;
}

static void queue_remove(struct pulls *pulls, struct entry *entry)
{
    struct entry **at = &pulls->queue;
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    if (!*at)
        pulls->queue_end = at;
    pulls->queue_count--;
}

void pulls_add(struct images *images, struct entry *entry, struct task *task)
{
    task->next = entry->waiters;
    entry->waiters = task;
    if (!entry->is_queued)
        queue_add(&images->pulls, entry);
    pullers_wake(images); /* it may be this one's turn */
}

/* Where it is being pulled, or of no entry a free place; NULL: it is not, or there is none. */
static struct entry **place_of(struct pulls *pulls, const struct entry *entry)
{
    for (size_t i = 0; i < COUNT_OF(pulls->places); i++)
        if (pulls->places[i] == entry)
            return &pulls->places[i];
    return NULL;
}

bool pulls_are_none(const struct pulls *pulls)
{
    for (size_t i = 0; i < COUNT_OF(pulls->places); i++)
        if (pulls->places[i])
            return false;
    return true;
}

static bool waiter_remove(struct entry *entry, const struct task *task)
{
    for (struct task **at = &entry->waiters; *at; at = &(*at)->next)
        if (*at == task) {
            *at = task->next;
            return true;
        }
    return false;
}

/* Nobody waits for it any more: it leaves the queue, or its pull ends. */
static void entry_leave(struct images *images, struct entry *entry)
{
    if (place_of(&images->pulls, entry)) {
        pthread_cond_broadcast(&images->pulls.has_pull); /* a pause between tries ends */
        return;
    }
    queue_remove(&images->pulls, entry);
    entry->is_queued = false;
    entry_release(images, entry);
}

bool images_cancel(struct images *images, struct task *task)
{
    bool is_found = false;
    pthread_mutex_lock(&images->lock);
    for (size_t i = 0; i < images->entries.count && !is_found; i++) {
        struct entry *entry = images->entries.items[i];
        is_found = waiter_remove(entry, task);
        if (is_found && !entry->waiters)
            entry_leave(images, entry);
    }
    pthread_mutex_unlock(&images->lock);
    return is_found;
}

void pull_answer(struct local_engine *local, struct task *task)
{
    pthread_mutex_lock(&local->lock);
    task_image_settled(local, task);
    pthread_mutex_unlock(&local->lock);
}

/* --- one pull --- */

struct pulling {
    struct images *images;
    struct entry *entry;
};

/* Once it has been left it ends, also when somebody asks for it meanwhile: parts of it may have
 * been told to. */
static bool pull_is_over(const struct images *images, struct entry *entry)
{
    entry->is_left = entry->is_left || !entry->waiters;
    return images->pulls.is_stopping || entry->is_left;
}

static bool puller_is_stopping(void *context, uint32_t wait_ms)
{
    const struct pulling *pulling = context;
    struct images *images = pulling->images;
    pthread_mutex_lock(&images->lock);
    const struct timespec until = clock_moment(clock_monotonic_ms() + wait_ms);
    while (wait_ms && !pull_is_over(images, pulling->entry) &&
           pthread_cond_timedwait(&images->pulls.has_pull, &images->lock, &until) != ETIMEDOUT)
        continue;
    bool is_over = pull_is_over(images, pulling->entry);
    pthread_mutex_unlock(&images->lock);
    return is_over;
}

/* Everybody who waits is told. */
static void pull_progress(void *context, const char *reason, const char *message)
{
    struct pulling *pulling = context;
    struct attempt_id attempts[64];
    size_t count = 0;
    pthread_mutex_lock(&pulling->images->lock);
    for (struct task *task = pulling->entry->waiters; task && count < COUNT_OF(attempts);
         task = task->next)
        attempts[count++] = task->attempt;
    pthread_mutex_unlock(&pulling->images->lock);
    for (size_t i = 0; i < count; i++)
        event_note(pulling->images->local, attempts[i], reason, "%s", message);
}

static int pull_tries(struct images *images, struct entry *entry, struct pull *pull,
                      struct err *err)
{
    uint32_t pause_ms = RETRY_MS;
    for (uint32_t left = images->local->config.pull_tries;; left--) {
        int code = pull_run(pull, err);
        if (code == 0 || pull->is_final || left <= 1 || puller_is_stopping(pull->watch.context, 0))
            return code;
        char message[sizeof err->text + 64];
        snprintf(message, sizeof message, "%s; trying again in %u s", err->text, pause_ms / 1000);
        pull_progress(pull->watch.context, "PullFailed", message);
        log_warning("engine", "pull of %s: %s", entry->reference.path, message);
        if (puller_is_stopping(pull->watch.context, pause_ms))
            return code;
        pause_ms *= 2;
    }
}

/* The waiters of a pull that has ended; returns them as a list by task->next. */
static struct task *pull_settle(struct images *images, struct entry *entry, int code,
                                const struct pull *pull, const struct err *err)
{
    pthread_mutex_lock(&images->lock);
    entry->is_queued = false;
    *place_of(&images->pulls, entry) = NULL;
    images->has_leftovers |= code < 0;
    if (code < 0 && entry->is_left && entry->waiters && !images->pulls.is_stopping) {
        entry->is_left = false; /* they came after it was given up */
        queue_add(&images->pulls, entry);
        pullers_wake(images);
        pthread_mutex_unlock(&images->lock);
        return NULL;
    }
    bool is_kept =
        code < 0 && entry->image_id[0] && !pull->is_final && image_get(images, entry->image_id);
    if (code == 0) {
        snprintf(entry->image_id, sizeof entry->image_id, "%s", pull->image_id);
        entry->checked_ms = clock_unix_ms();
        entry_save(images, entry);
    } else if (is_kept) {
        log_warning("engine", "%s: %s; the image of the last pull is used", entry->reference.path,
                    err->text);
    }
    struct task *waiters = entry->waiters;
    entry->waiters = NULL;
    entry->is_left = false;
    for (struct task *task = waiters; task; task = task->next) {
        if (code == 0 || is_kept)
            task->image = image_take(images, entry->image_id);
        if (code < 0 && !is_kept)
            task_fail(task, pull->reason, "%s: %s", task->wanted->image, err->text);
        else if (!task->image)
            task_fail(task, "ImagePullError", "%s: removed while it was unpacked",
                      task->wanted->image);
    }
    entry_release(images, entry);
    pthread_mutex_unlock(&images->lock);
    return waiters;
}

static void pull_do(struct images *images, struct entry *entry, uint64_t number)
{
    struct local_engine *local = images->local;
    struct pulling pulling = {.images = images, .entry = entry};
    struct err err = {0};
    struct pull pull = {.config = &local->config,
                        .directory = local->directory,
                        .run_directory = local->run_directory,
                        .reference = &entry->reference,
                        .user = entry->user,
                        .password = entry->password,
                        .number = number,
                        .trash = images->trash,
                        .known_id = entry->image_id,
                        .watch = {&pulling, puller_is_stopping, pull_progress}};
    int64_t begun_ms = clock_monotonic_ms();
    int code = pull_tries(images, entry, &pull, &err);
    if (code == 0)
        log_info("engine", "image %s %s: ready after %lld ms", entry->reference.path,
                 entry->reference.tag, (long long)(clock_monotonic_ms() - begun_ms));
    struct task *waiters = pull_settle(images, entry, code, &pull, &err);
    while (waiters) {
        struct task *task = waiters;
        waiters = task->next;
        pull_answer(local, task);
    }
}

/* --- whose turn it is --- */

static struct text owner_of(const struct task *task)
{
    struct text job = text_of(task->wanted->job);
    return text_cut(&job, '~');
}

static bool has_turn(const struct images *images, struct text owner)
{
    const size_t most = images->local->config.pulls;
    struct entry *const *places = images->pulls.places;
    size_t count = 0;
    for (size_t i = 0; i < ENGINE_LOCAL_PULLS_MAX; i++)
        count += places[i] && text_is(owner, places[i]->owner);
    return most == 1 || count + 1 < most;
}

/* The first one that somebody waits for whose turn it is: of one user's at most all but one are
 * pulled at a time, as a registry may be slow on purpose. */
static struct entry *queue_first(const struct images *images, struct text *owner)
{
    for (struct entry *entry = images->pulls.queue; entry; entry = entry->next)
        for (const struct task *task = entry->waiters; task; task = task->next) {
            *owner = owner_of(task);
            if (has_turn(images, *owner))
                return entry;
        }
    return NULL;
}

static void place_take(struct pulls *pulls, struct entry *entry, struct text owner)
{
    *place_of(pulls, NULL) = entry;
    mem_free(entry->owner);
    entry->owner = mem_alloc(owner.length + 1);
    snprintf(entry->owner, owner.length + 1, "%.*s", TEXT_ARG(owner));
}

static void *puller_run(void *context)
{
    struct images *images = context;
    struct pulls *pulls = &images->pulls;
    pthread_mutex_lock(&images->lock);
    for (;;) {
        struct entry *entry = NULL;
        struct text owner;
        pulls->idle_count++;
        while (!pulls->is_stopping && (pulls->is_held || !(entry = queue_first(images, &owner))))
            pthread_cond_wait(&pulls->has_pull, &images->lock);
        pulls->idle_count--;
        if (pulls->is_stopping)
            break;
        queue_remove(pulls, entry);
        place_take(pulls, entry, owner);
        uint64_t number = ++pulls->next_number;
        pthread_mutex_unlock(&images->lock);
        pull_do(images, entry, number);
        pthread_mutex_lock(&images->lock);
    }
    pthread_mutex_unlock(&images->lock);
    return NULL;
}

void pulls_hold(struct pulls *pulls)
{
    pulls->is_held = true;
}

void pulls_resume(struct pulls *pulls)
{
    pulls->is_held = false;
    pthread_cond_broadcast(&pulls->has_pull);
}

void images_stop(struct images *images)
{
    struct pulls *pulls = &images->pulls;
    pthread_mutex_lock(&images->lock);
    pulls->is_stopping = true;
    pthread_cond_broadcast(&pulls->has_pull);
    pthread_mutex_unlock(&images->lock);
    for (size_t i = 0; i < pulls->thread_count; i++)
        pthread_join(pulls->threads[i], NULL);
    pulls->thread_count = 0;
}
