#include "engine/local/image.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "engine/local/blobs.h"
#include "engine/local/document.h"
#include "engine/local/image_pull.h"
#include "engine/local/reference.h"
#include "engine/local/task.h"
#include "engine/local/trash.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/log.h"
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
    TOUCH_MS = 60000,  /* how exactly the last use is kept on disk */
    ENTRY_VERSION = 2, /* what was found before the right to it had to be shown is forgotten */
    YOUNG_S = 60,      /* a blob of a pull under way is the image's after a moment */
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

/* Removed behind our back: forgotten here, too (unless somebody uses it). */
struct image *image_get(struct images *images, const char *id)
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

struct image *image_take(struct images *images, const char *id)
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
                       const struct stat *file, char out[2 * ENTRY_NAME_BYTES + 1])
{
    cleanup_buf struct buf key = BUF_INIT;
    unsigned char hash[ENTRY_NAME_BYTES];
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
    sodium_bin2hex(out, 2 * ENTRY_NAME_BYTES + 1, hash, sizeof hash);
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

void entry_save(struct images *images, struct entry *entry)
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

void entry_release(struct images *images, struct entry *entry)
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
    char name[2 * ENTRY_NAME_BYTES + 1];
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
    pulls_add(images, entry, task);
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
        pull_answer(images->local, task);
        return;
    }
    pthread_mutex_lock(&images->lock);
    bool is_settled = request_serve(images, task, &reference, is_local ? &file : NULL);
    pthread_mutex_unlock(&images->lock);
    if (is_settled)
        pull_answer(images->local, task);
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
    const bool is_sweeping = is_wanted || images->has_leftovers;
    const bool is_alone = pulls_are_none(&images->pulls);
    if (is_sweeping)
        pulls_hold(&images->pulls);
    images->has_leftovers = false;
    pthread_mutex_unlock(&images->lock);
    if (!is_sweeping)
        return;
    const uint64_t young_s = !is_wanted ? keep_s : is_alone ? 0 : YOUNG_S;
    const size_t left = blobs_sweep(images->local->directory, young_s);
    pthread_mutex_lock(&images->lock);
    images->has_leftovers |= left > 0;
    pulls_resume(&images->pulls);
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
    pthread_mutex_init(&images->lock, NULL);
    pulls_init(&images->pulls);
    images_scan(images);
    return images;
}

void images_free(struct images *images)
{
    if (!images)
        return;
    trash_free(images->trash);
    for (size_t i = 0; i < images->entries.count; i++)
        entry_free(images->entries.items[i]);
    ARRAY_FREE(&images->entries);
    while (images->images.count)
        image_forget(images, images->images.items[0]);
    ARRAY_FREE(&images->images);
    pulls_release(&images->pulls);
    pthread_mutex_destroy(&images->lock);
    mem_free(images);
}
