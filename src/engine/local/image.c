#include "engine/local/image.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "engine/local/blobs.h"
#include "engine/local/document.h"
#include "engine/local/pull.h"
#include "engine/local/reference.h"
#include "engine/local/task.h"
#include "engine/local/trash.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/mailbox.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
    RETRY_MS = 2000,   /* first pause; doubled each time */
    TOUCH_MS = 60000,  /* how exactly the last use is kept on disk */
    NAME_BYTES = 16,   /* of a reference's file: BLAKE2b-128 */
    ENTRY_VERSION = 2, /* what was found before the right to it had to be shown is forgotten */
    YOUNG_S = 60,      /* a blob of a pull under way is the image's after a moment */
};

/* One reference under one set of credentials. */
struct entry {
    char name[2 * NAME_BYTES + 1];
    struct reference reference;
    char *user, *password;
    char *owner;       /* whose turn the pull is; NULL: it has not begun */
    char image_id[80]; /* "" = never resolved */
    int64_t checked_ms;
    bool is_queued; /* or being pulled */
    bool is_pulled; /* now */
    bool is_left;   /* its pull was told to end, as nobody waited for it any more */
    bool is_unsaved;
    struct task *waiters; /* by task->next */
    struct entry *next;   /* in the queue of pulls */
};

struct images {
    struct local_engine *local;
    struct trash *trash;
    pthread_mutex_t lock;
    pthread_cond_t has_pull;
    struct {
        struct image **items;
        size_t count, room;
    } images;
    struct { /* those that have a pull, and what could not be stored */
        struct entry **items;
        size_t count, room;
    } entries;
    struct entry *queue, **queue_end;
    struct entry *pulled[ENGINE_LOCAL_PULLS_MAX]; /* NULL: a free place */
    uint64_t next_number;
    size_t active; /* pulls under way */
    bool is_stopping, is_sweeping;
    bool has_leftovers; /* there may be blobs that no image needs */
    pthread_t threads[ENGINE_LOCAL_PULLS_MAX];
    size_t thread_count, idle_count, queue_count;
};

/* --- unpacked images --- */

int image_load(const char *directory, struct image *image, struct err *err)
{
    char path[PATH_MAX];
    cleanup_buf struct buf text = BUF_INIT;
    struct stat stat;
    arena_init(&image->arena);
    snprintf(path, sizeof path, "%s/image.json", directory);
    int code = file_read(path, IMAGE_DESCRIPTION_MAX, &text, err);
    const struct doc *doc =
        code == 0 ? document_read(buf_as_text(&text), false, &image->arena) : NULL;
    if (code == 0 && (!doc || doc->kind != DOC_MAP))
        code = err_fail(err, ERR_CORRUPT, "", "%s is not an image's description", path);
    snprintf(image->rootfs, sizeof image->rootfs, "%s/rootfs", directory);
    if (code == 0 && access(image->rootfs, X_OK) < 0)
        code = err_errno(err, errno, "use %s", image->rootfs);
    if (code < 0) {
        arena_release(&image->arena);
        return code;
    }
    image->user = document_string(doc, "user");
    const char *cwd = document_string(doc, "cwd");
    image->cwd = cwd[0] == '/' ? cwd : "/";
    image->env = document_strings(doc, "env", &image->arena, &image->env_count);
    image->bytes = (uint64_t)document_int(doc, "bytes");
    image->used_ms = lstat(path, &stat) == 0 ? (int64_t)stat.st_mtim.tv_sec * 1000 : 0;
    return 0;
}

static struct image *image_find(struct images *images, const char *id)
{
    for (size_t i = 0; i < images->images.count; i++)
        if (strcmp(images->images.items[i]->id, id) == 0)
            return images->images.items[i];
    return NULL;
}

static void image_forget(struct images *images, struct image *image)
{
    for (size_t i = 0; i < images->images.count; i++)
        if (images->images.items[i] == image) {
            images->images.items[i] = images->images.items[--images->images.count];
            break;
        }
    arena_release(&image->arena);
    mem_free(image);
}

/* From memory or disk. Removed behind our back: forgotten here, too (unless somebody uses it). */
static struct image *image_get(struct images *images, const char *id)
{
    struct image *image = image_find(images, id);
    if (image && access(image->rootfs, X_OK) == 0)
        return image;
    if (image && image->users > 0)
        return NULL;
    if (image)
        image_forget(images, image);
    char path[RUNTIME_PATH_MAX];
    snprintf(path, sizeof path, "%s/images/%.79s", images->local->directory, id);
    image = mem_zero(1, sizeof *image);
    snprintf(image->id, sizeof image->id, "%.79s", id);
    if (image_load(path, image, NULL) < 0) {
        mem_free(image);
        return NULL;
    }
    *ARRAY_ADD(&images->images) = image;
    return image;
}

static void image_touch(struct images *images, struct image *image)
{
    int64_t now = clock_unix_ms();
    char path[RUNTIME_PATH_MAX];
    /* also when the clock was ahead at the last use */
    if (image->bytes && (now - image->used_ms > TOUCH_MS || now < image->used_ms)) {
        const struct timespec times[2] = {clock_moment(now), clock_moment(now)};
        snprintf(path, sizeof path, "%s/images/%s/image.json", images->local->directory, image->id);
        utimensat(AT_FDCWD, path, times, 0);
    }
    image->used_ms = now;
    image->ahead_boot_ms = 0;
}

static struct image *image_take(struct images *images, const char *id)
{
    struct image *image = image_get(images, id);
    if (!image)
        return NULL;
    image->users++;
    image_touch(images, image);
    return image;
}

struct image *images_adopt(struct images *images, const char *id)
{
    pthread_mutex_lock(&images->lock);
    struct image *image = image_take(images, id);
    pthread_mutex_unlock(&images->lock);
    return image;
}

void images_hold(struct images *images, struct image *image)
{
    pthread_mutex_lock(&images->lock);
    assert(image->users > 0);
    image->users++;
    pthread_mutex_unlock(&images->lock);
}

void images_return(struct images *images, struct image *image)
{
    pthread_mutex_lock(&images->lock);
    assert(image->users > 0);
    image->users--;
    image_touch(images, image);
    pthread_mutex_unlock(&images->lock);
}

/* --- references --- */

static void entry_path(const struct images *images, const char *name, char path[RUNTIME_PATH_MAX])
{
    snprintf(path, RUNTIME_PATH_MAX, "%s/refs/%s", images->local->directory, name);
}

/* A reference's name on disk says nothing about who may use it but to those who know all of it. */
static void entry_name(const struct reference *reference, const char *user, const char *password,
                       const struct stat *file, char out[2 * NAME_BYTES + 1])
{
    cleanup_buf struct buf key = BUF_INIT;
    unsigned char hash[NAME_BYTES];
    buf_put_u32(&key, ENTRY_VERSION);
    buf_put_u32(&key, reference->kind);
    buf_put_text(&key, text_of(reference->host));
    buf_put_text(&key, text_of(reference->path));
    buf_put_text(&key, text_of(reference->tag));
    buf_put_text(&key, text_of(reference->digest));
    buf_put_text(&key, text_of(user));
    buf_put_text(&key, text_of(password));
    if (file) { /* another file under the same name is another image */
        buf_put_u64(&key, (uint64_t)file->st_ino);
        buf_put_u64(&key, (uint64_t)file->st_size);
        buf_put_u64(&key, (uint64_t)file->st_mtim.tv_sec);
        buf_put_u64(&key, (uint64_t)file->st_mtim.tv_nsec);
    }
    crypto_generichash(hash, sizeof hash, (const unsigned char *)key.at, key.length, NULL, 0);
    sodium_memzero(key.at, key.length);
    sodium_bin2hex(out, 2 * NAME_BYTES + 1, hash, sizeof hash);
}

static void entry_load(struct images *images, struct entry *entry)
{
    char path[RUNTIME_PATH_MAX];
    cleanup_buf struct buf text = BUF_INIT;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    entry_path(images, entry->name, path);
    if (file_read(path, 65536, &text, NULL) == 0) {
        const struct doc *doc = document_read(buf_as_text(&text), false, &arena);
        snprintf(entry->image_id, sizeof entry->image_id, "%.79s", document_string(doc, "image"));
        entry->checked_ms = document_int(doc, "checked_ms");
    }
}

static void entry_save(struct images *images, struct entry *entry)
{
    char path[RUNTIME_PATH_MAX];
    cleanup_buf struct buf text = BUF_INIT;
    struct json_writer json;
    json_init(&json, &text);
    json_object(&json);
    json_key_string(&json, "host", entry->reference.host);
    json_key_string(&json, "path", entry->reference.path);
    json_key_string(&json, "tag", entry->reference.tag);
    json_key_string(&json, "image", entry->image_id);
    json_key_int(&json, "checked_ms", entry->checked_ms);
    json_object_end(&json);
    entry_path(images, entry->name, path);
    struct err err = {0};
    entry->is_unsaved = file_put(path, buf_as_text(&text), 0600, &err) < 0;
    if (entry->is_unsaved)
        log_warning("engine", "%s", err.text); /* asked again after a restart */
}

static void entry_free(struct entry *entry)
{
    sodium_memzero(entry->password, strlen(entry->password));
    mem_free(entry->password);
    mem_free(entry->user);
    mem_free(entry->owner);
    mem_free(entry);
}

/* Unless it has a pull it is read back when somebody asks for it: users may name as many references
 * and credentials as they like. */
static void entry_release(struct images *images, struct entry *entry)
{
    if (entry->is_queued || entry->is_unsaved)
        return;
    assert(!entry->waiters);
    for (size_t i = 0; i < images->entries.count; i++)
        if (images->entries.items[i] == entry) {
            images->entries.items[i] = images->entries.items[--images->entries.count];
            break;
        }
    entry_free(entry);
}

static struct entry *entry_get(struct images *images, const struct reference *reference,
                               const struct container *wanted, const struct stat *file)
{
    char name[2 * NAME_BYTES + 1];
    entry_name(reference, wanted->registry_user, wanted->registry_password, file, name);
    for (size_t i = 0; i < images->entries.count; i++)
        if (strcmp(images->entries.items[i]->name, name) == 0)
            return images->entries.items[i];
    struct entry *entry = mem_zero(1, sizeof *entry);
    memcpy(entry->name, name, sizeof entry->name);
    entry->reference = *reference;
    entry->user = mem_copy(wanted->registry_user);
    entry->password = mem_copy(wanted->registry_password);
    entry_load(images, entry);
    *ARRAY_ADD(&images->entries) = entry;
    return entry;
}

/* --- requests --- */

/* Local images come from folders that the operator allows: a task's root could else be the host's.
 */
static int local_check(struct images *images, struct reference *reference, struct stat *stat,
                       struct err *err)
{
    const struct engine_local_config *config = &images->local->config;
    cleanup_free char *real = realpath(reference->path, NULL);
    if (!real || strlen(real) >= sizeof reference->path)
        return err_fail(err, ERR_NOT_FOUND, "", "there is no image %s", reference->path);
    for (size_t i = 0; i < config->image_root_count; i++) {
        cleanup_free char *root = realpath(config->image_roots[i], NULL);
        size_t length = root ? strlen(root) : 0;
        if (!root || strncmp(real, root, length) != 0 || (real[length] != '/' && real[length]))
            continue;
        if (!reference_path_is_plain(text_of(real))) /* where a symbolic link led */
            return err_fail(err, ERR_INVALID, "",
                            "the path of a local image must not hold : , \\ \" or newline, and "
                            "%s is one that does",
                            reference->path);
        snprintf(reference->path, sizeof reference->path, "%s", real);
        char index[REFERENCE_MAX + 16];
        snprintf(index, sizeof index, "%s%s", real,
                 reference->kind == REFERENCE_OCI ? "/index.json" : "");
        if (lstat(index, stat) < 0)
            return err_fail(err, ERR_NOT_FOUND, "", "there is no image %s", reference->path);
        return 0;
    }
    return err_fail(err, ERR_FORBIDDEN, "",
                    "%s is not in a folder from which local images may be used", reference->path);
}

static bool is_plain_directory(const struct reference *reference)
{
    char path[REFERENCE_MAX + 32];
    struct stat stat;
    snprintf(path, sizeof path, "%s/manifest.json", reference->path);
    return reference->kind == REFERENCE_DIR && lstat(path, &stat) < 0;
}

/* A root file system as it is: nothing to fetch, nothing to unpack. */
static struct image *directory_take(struct images *images, const struct reference *reference)
{
    char id[80];
    unsigned long long hash = text_hash(text_of(reference->path), 0);
    snprintf(id, sizeof id, "dir-%016llx", hash);
    struct image *image = image_find(images, id);
    if (!image) {
        image = mem_zero(1, sizeof *image);
        arena_init(&image->arena);
        memcpy(image->id, id, sizeof id);
        snprintf(image->rootfs, sizeof image->rootfs, "%.511s", reference->path);
        image->user = "";
        image->cwd = "/";
        *ARRAY_ADD(&images->images) = image;
    }
    image->users++;
    image->used_ms = clock_unix_ms();
    return image;
}

static void *puller_run(void *context);

/* There is more to do, or for others than before. */
static void pullers_wake(struct images *images)
{
    if (images->queue_count > images->idle_count &&
        images->thread_count < images->local->config.pulls &&
        pthread_create(&images->threads[images->thread_count], NULL, puller_run, images) == 0)
        images->thread_count++;
    pthread_cond_broadcast(&images->has_pull); /* pauses between tries wait for it, too */
}

static void pull_enqueue(struct images *images, struct entry *entry)
{
    entry->is_queued = true;
    entry->next = NULL;
    *images->queue_end = entry;
    images->queue_end = &entry->next;
    images->queue_count++;
}

static void settle(struct local_engine *local, struct task *task)
{
    pthread_mutex_lock(&local->lock);
    task_image_settled(local, task);
    pthread_mutex_unlock(&local->lock);
}

/* What was asked for by a clock that was ahead, as far as the clock of now says, is not fresh. */
static bool entry_is_fresh(const struct images *images, const struct entry *entry)
{
    const int64_t fresh_ms = (int64_t)images->local->config.image_fresh_s * 1000;
    const int64_t age_ms = clock_unix_ms() - entry->checked_ms;
    return !reference_is_moving(&entry->reference) || (age_ms >= 0 && age_ms < fresh_ms);
}

/* True: the task has its image, or an answer. False: it waits for a pull. With the images' lock. */
static bool request_serve(struct images *images, struct task *task,
                          const struct reference *reference, const struct stat *file)
{
    if (is_plain_directory(reference)) {
        if (strlen(reference->path) >= sizeof task->image->rootfs)
            task_fail(task, "InvalidImageName", "the path of the image is too long");
        else
            task->image = directory_take(images, reference);
        return true;
    }
    struct entry *entry = entry_get(images, reference, task->wanted, file);
    if (entry->image_id[0] && entry_is_fresh(images, entry) && !entry->is_queued) {
        task->image = image_take(images, entry->image_id);
        if (task->image) {
            entry_release(images, entry);
            return true;
        }
    }
    task->next = entry->waiters;
    entry->waiters = task;
    if (!entry->is_queued)
        pull_enqueue(images, entry);
    pullers_wake(images); /* it may be this one's turn */
    return false;
}

/* `skep/base` is ROOT/skep/base when an image root has it, as Docker looks among its own images
 * first: a root file system, or an OCI layout with a tag of that name. */
static void local_find(const struct images *images, struct reference *reference)
{
    const struct engine_local_config *config = &images->local->config;
    char path[REFERENCE_MAX + 16];
    struct stat stat;
    if (reference->kind != REFERENCE_REGISTRY || reference->digest[0] ||
        strcmp(reference->host, "docker.io") != 0)
        return;
    for (size_t i = 0; i < config->image_root_count; i++) {
        int length = snprintf(path, sizeof path, "%s/%s", config->image_roots[i], reference->path);
        if (length >= (int)sizeof reference->path || lstat(path, &stat) < 0)
            continue;
        snprintf(reference->path, sizeof reference->path, "%.*s", length, path);
        snprintf(path + length, sizeof path - (size_t)length, "/index.json");
        reference->kind = lstat(path, &stat) == 0 ? REFERENCE_OCI : REFERENCE_DIR;
        if (reference->kind == REFERENCE_DIR)
            reference->tag[0] = '\0';
        return;
    }
}

void images_request(struct images *images, struct task *task)
{
    struct reference reference;
    struct stat file;
    struct err err = {0};
    bool is_local = false;
    int code = reference_parse(task->wanted->image, &reference, &err);
    if (code == 0)
        local_find(images, &reference);
    if (code == 0 && reference.kind != REFERENCE_REGISTRY) {
        is_local = true;
        code = local_check(images, &reference, &file, &err);
    }
    if (code < 0) {
        task_fail(task, code == ERR_NOT_FOUND ? "ImageNotFound" : "InvalidImageName", "%s",
                  err.text);
        settle(images->local, task);
        return;
    }
    pthread_mutex_lock(&images->lock);
    bool is_settled = request_serve(images, task, &reference, is_local ? &file : NULL);
    pthread_mutex_unlock(&images->lock);
    if (is_settled)
        settle(images->local, task);
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

static void queue_remove(struct images *images, struct entry *entry)
{
    struct entry **at = &images->queue;
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    if (!*at)
        images->queue_end = at;
    images->queue_count--;
}

/* Nobody waits for it any more: it leaves the queue, or its pull ends. */
static void entry_leave(struct images *images, struct entry *entry)
{
    if (entry->is_pulled) {
        pthread_cond_broadcast(&images->has_pull); /* a pause between tries ends */
        return;
    }
    queue_remove(images, entry);
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

/* --- pulls --- */

struct pulling {
    struct images *images;
    struct entry *entry;
};

/* Once it has been left it ends, also when somebody asks for it meanwhile: parts of it may have
 * been told to. */
static bool pull_is_over(const struct images *images, struct entry *entry)
{
    entry->is_left = entry->is_left || !entry->waiters;
    return images->is_stopping || entry->is_left;
}

static bool puller_is_stopping(void *context, uint32_t wait_ms)
{
    const struct pulling *pulling = context;
    struct images *images = pulling->images;
    pthread_mutex_lock(&images->lock);
    const struct timespec until = clock_moment(clock_monotonic_ms() + wait_ms);
    while (wait_ms && !pull_is_over(images, pulling->entry) &&
           pthread_cond_timedwait(&images->has_pull, &images->lock, &until) != ETIMEDOUT)
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

static void place_free(struct images *images, const struct entry *entry)
{
    for (size_t i = 0; i < COUNT_OF(images->pulled); i++)
        if (images->pulled[i] == entry)
            images->pulled[i] = NULL;
}

/* The waiters of a pull that has ended; returns them as a list by task->next. */
static struct task *pull_settle(struct images *images, struct entry *entry, int code,
                                const struct pull *pull, const struct err *err)
{
    pthread_mutex_lock(&images->lock);
    entry->is_queued = entry->is_pulled = false;
    place_free(images, entry);
    images->active--;
    images->has_leftovers |= code < 0;
    if (code < 0 && entry->is_left && entry->waiters && !images->is_stopping) {
        entry->is_left = false; /* they came after it was given up */
        pull_enqueue(images, entry);
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
        settle(local, task);
    }
}

static struct text owner_of(const struct task *task)
{
    struct text job = text_of(task->wanted->job);
    return text_cut(&job, '~');
}

static bool has_turn(const struct images *images, struct text owner)
{
    const size_t pulls = images->local->config.pulls;
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(images->pulled); i++)
        count += images->pulled[i] && text_is(owner, images->pulled[i]->owner);
    return pulls == 1 || count + 1 < pulls;
}

/* The first one that somebody waits for whose turn it is: of one user's at most all but one are
 * pulled at a time, as a registry may be slow on purpose. */
static struct entry *queue_first(const struct images *images, struct text *owner)
{
    for (struct entry *entry = images->queue; entry; entry = entry->next)
        for (const struct task *task = entry->waiters; task; task = task->next) {
            *owner = owner_of(task);
            if (has_turn(images, *owner))
                return entry;
        }
    return NULL;
}

static void place_take(struct images *images, struct entry *entry, struct text owner)
{
    size_t place = 0;
    while (images->pulled[place])
        place++;
    images->pulled[place] = entry;
    mem_free(entry->owner);
    entry->owner = mem_alloc(owner.length + 1);
    snprintf(entry->owner, owner.length + 1, "%.*s", TEXT_ARG(owner));
    entry->is_pulled = true;
    images->active++;
}

static void *puller_run(void *context)
{
    struct images *images = context;
    pthread_mutex_lock(&images->lock);
    for (;;) {
        struct entry *entry = NULL;
        struct text owner;
        images->idle_count++;
        while (!images->is_stopping &&
               (images->is_sweeping || !(entry = queue_first(images, &owner))))
            pthread_cond_wait(&images->has_pull, &images->lock);
        images->idle_count--;
        if (images->is_stopping)
            break;
        queue_remove(images, entry);
        place_take(images, entry, owner);
        uint64_t number = ++images->next_number;
        pthread_mutex_unlock(&images->lock);
        pull_do(images, entry, number);
        pthread_mutex_lock(&images->lock);
    }
    pthread_mutex_unlock(&images->lock);
    return NULL;
}

/* --- collecting --- */

/* Out of the way by a rename under the lock, removed afterwards. */
static bool image_retire(struct images *images, struct image *image, char trash[RUNTIME_PATH_MAX])
{
    char path[RUNTIME_PATH_MAX];
    snprintf(path, sizeof path, "%s/images/%s", images->local->directory, image->id);
    snprintf(trash, RUNTIME_PATH_MAX, "%s/images/.trash-%s", images->local->directory, image->id);
    if (rename(path, trash) < 0 && errno != ENOENT)
        return false;
    log_info("engine", "removing the unused image %.12s", image->id);
    image_forget(images, image);
    return true;
}

/* Since when an image's last use is of the future. Its age is not known then, and goes by the clock
 * from boot; it is not written over, as the wall clock may just as well be behind for a while. */
static void images_date(struct images *images, int64_t wall_ms, int64_t boot_ms)
{
    for (size_t i = 0; i < images->images.count; i++) {
        struct image *image = images->images.items[i];
        if (image->used_ms <= wall_ms)
            image->ahead_boot_ms = 0;
        else if (image->ahead_boot_ms == 0)
            image->ahead_boot_ms = boot_ms;
    }
}

/* As of `now_ms`, Unix time. */
static int64_t unused_ms(const struct image *image, int64_t now_ms, int64_t boot_ms)
{
    return image->ahead_boot_ms ? boot_ms - image->ahead_boot_ms : now_ms - image->used_ms;
}

static struct image *oldest_unused(struct images *images, int64_t wall_ms, int64_t boot_ms)
{
    struct image *oldest = NULL;
    int64_t most_ms = 0;
    for (size_t i = 0; i < images->images.count; i++) {
        struct image *image = images->images.items[i];
        const int64_t age_ms = unused_ms(image, wall_ms, boot_ms);
        if (image->users == 0 && image->bytes && (!oldest || age_ms > most_ms)) {
            oldest = image;
            most_ms = age_ms;
        }
    }
    return oldest;
}

/* Blobs that no image needs go with an image that has gone, or when space is wanted; those of pulls
 * that failed are good for the next try, and otherwise stay as long as an unused image. Pulls go on
 * meanwhile, but none begins. */
static void blobs_collect(struct images *images, bool is_wanted, uint64_t keep_s)
{
    pthread_mutex_lock(&images->lock);
    images->is_sweeping = is_wanted || images->has_leftovers;
    bool is_sweeping = images->is_sweeping;
    const bool is_alone = images->active == 0;
    images->has_leftovers = false;
    pthread_mutex_unlock(&images->lock);
    if (!is_sweeping)
        return;
    const uint64_t young_s = !is_wanted ? keep_s : is_alone ? 0 : YOUNG_S;
    const size_t left = blobs_sweep(images->local->directory, young_s);
    pthread_mutex_lock(&images->lock);
    images->has_leftovers |= left > 0;
    images->is_sweeping = false;
    pthread_cond_broadcast(&images->has_pull);
    pthread_mutex_unlock(&images->lock);
}

size_t images_collect(struct images *images, int64_t now_s, uint64_t keep_s, uint64_t least_s,
                      uint64_t bytes_wanted)
{
    size_t removed = 0;
    uint64_t freed = 0;
    for (;;) {
        char trash[RUNTIME_PATH_MAX];
        pthread_mutex_lock(&images->lock);
        const int64_t wall_ms = clock_unix_ms(), boot_ms = clock_boot_ms();
        images_date(images, wall_ms, boot_ms);
        struct image *image = oldest_unused(images, wall_ms, boot_ms);
        const bool is_old =
            image && unused_ms(image, now_s * 1000, boot_ms) > (int64_t)(keep_s * 1000);
        /* no more than is wanted goes, the longest unused first, whatever the wall clock says */
        const bool is_in_the_way = image && freed < bytes_wanted &&
                                   unused_ms(image, wall_ms, boot_ms) >= (int64_t)(least_s * 1000);
        uint64_t bytes = image ? image->bytes : 0;
        bool is_going = (is_old || is_in_the_way) && image_retire(images, image, trash);
        pthread_mutex_unlock(&images->lock);
        if (!is_going)
            break;
        tree_remove(trash, NULL);
        freed += bytes;
        removed++;
    }
    blobs_collect(images, removed > 0 || bytes_wanted > freed, keep_s);
    return removed;
}

void images_discard(struct images *images, const char *path)
{
    trash_put(images->trash, path);
}

/* --- birth and death --- */

/* Of pulls that were under way when the server was killed: credentials, and complaints of programs
 * as versions before this one kept them. */
static void run_files_remove(const struct images *images)
{
    cleanup_dir DIR *dir = opendir(images->local->run_directory);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (strncmp(entry->d_name, "auth-", 5) == 0 ||
            strncmp(entry->d_name, "complaint-", 10) == 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
}

/* A folder whose description says nothing, which a power failure may leave: no task can use it, and
 * as long as it is there its image cannot be pulled. */
static bool image_is_broken(const char *directory)
{
    struct image image = {0};
    const int code = image_load(directory, &image, NULL);
    if (code == 0)
        arena_release(&image.arena);
    return code == ERR_CORRUPT || code == ERR_TOO_BIG;
}

/* What an earlier server left half done goes; what is whole is known from now on. */
static void images_scan(struct images *images)
{
    char path[RUNTIME_PATH_MAX], below[RUNTIME_PATH_MAX + 300];
    run_files_remove(images);
    snprintf(path, sizeof path, "%s/pulls", images->local->directory);
    trash_put(images->trash, path);
    snprintf(path, sizeof path, "%s/images", images->local->directory);
    cleanup_dir DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        const bool is_trash = strncmp(entry->d_name, ".trash-", 7) == 0;
        const bool is_image = entry->d_name[0] != '.' && image_get(images, entry->d_name);
        if (is_trash || (entry->d_name[0] != '.' && !is_image && image_is_broken(below)))
            trash_put(images->trash, below);
    }
    images->has_leftovers = true;
}

struct images *images_new(struct local_engine *local, struct err *err)
{
    if (sodium_init() < 0) {
        err_fail(err, ERR_IO, "", "libsodium does not start");
        return NULL;
    }
    struct trash *trash = trash_new(local->directory, err);
    if (!trash)
        return NULL;
    struct images *images = mem_zero(1, sizeof *images);
    images->local = local;
    images->trash = trash;
    images->queue_end = &images->queue;
    pthread_mutex_init(&images->lock, NULL);
    clock_condition_init(&images->has_pull);
    images_scan(images);
    return images;
}

void images_stop(struct images *images)
{
    pthread_mutex_lock(&images->lock);
    images->is_stopping = true;
    pthread_cond_broadcast(&images->has_pull);
    pthread_mutex_unlock(&images->lock);
    for (size_t i = 0; i < images->thread_count; i++)
        pthread_join(images->threads[i], NULL);
    images->thread_count = 0;
}

void images_free(struct images *images)
{
    if (!images)
        return;
    assert(images->thread_count == 0);
    trash_free(images->trash);
    for (size_t i = 0; i < images->entries.count; i++)
        entry_free(images->entries.items[i]);
    ARRAY_FREE(&images->entries);
    while (images->images.count)
        image_forget(images, images->images.items[0]);
    ARRAY_FREE(&images->images);
    pthread_cond_destroy(&images->has_pull);
    pthread_mutex_destroy(&images->lock);
    mem_free(images);
}
