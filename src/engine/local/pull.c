#include "engine/local/pull.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "engine/local/document.h"
#include "engine/local/image.h"
#include "engine/local/pull_work.h"
#include "engine/local/runtime.h"
#include "engine/local/trash.h"
#include "sys/file.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_ROOM = PULL_PATH_MAX, INDEX_MAX = 4 << 20 };

/* --- layouts --- */

static const struct doc *blob_read(struct work *work, const char *layout, const char *digest)
{
    char path[PATH_ROOM + 96];
    const char *hex = digest_hex(digest);
    cleanup_buf struct buf text = BUF_INIT;
    if (!hex)
        return NULL;
    snprintf(path, sizeof path, "%s/blobs/sha256/%s", layout, hex);
    return file_read(path, INDEX_MAX, &text, NULL) == 0
               ? document_read(buf_as_text(&text), false, &work->arena)
               : NULL;
}

/* The manifest digest of one tag of a layout; "" when there is none. */
static const char *layout_digest(struct work *work, const char *layout, const char *tag)
{
    char path[PATH_ROOM + 16];
    cleanup_buf struct buf text = BUF_INIT;
    snprintf(path, sizeof path, "%s/index.json", layout);
    const struct doc *index = file_read(path, INDEX_MAX, &text, NULL) == 0
                                  ? document_read(buf_as_text(&text), false, &work->arena)
                                  : NULL;
    const struct doc *items = doc_get(index, "manifests");
    for (size_t i = 0; i < document_count(items); i++) {
        const struct doc *item = items->as.list.items[i];
        const char *name =
            document_string(doc_get(item, "annotations"), "org.opencontainers.image.ref.name");
        if (strcmp(name, tag) == 0)
            return document_string(item, "digest");
    }
    return "";
}

/* The manifest that a layout has by this digest. */
static int layout_manifest(const char *layout, const char *digest, struct manifest *manifest,
                           struct err *err)
{
    char path[PATH_ROOM + 96];
    cleanup_buf struct buf text = BUF_INIT;
    snprintf(path, sizeof path, "%s/blobs/sha256/%s", layout, digest_hex(digest));
    int code = file_read(path, MANIFEST_BYTES_MAX, &text, err);
    if (code == 0)
        code = digest_check(buf_as_text(&text), digest, err);
    if (code == 0)
        code = manifest_read(buf_as_text(&text), manifest, err);
    if (code == 0 && manifest->is_list)
        code = err_fail(err, ERR_CORRUPT, "", "%s names a list of images where one is expected",
                        layout);
    return code;
}

/* Whoever names a digest in a layout must have what it stands for. */
static int layout_verify(const char *layout, const struct manifest *manifest, struct err *err)
{
    char path[PATH_ROOM + 96];
    int code = 0;
    for (size_t i = 0; i < manifest->blob_count && code == 0; i++) {
        const char *digest = manifest->blobs[i].digest;
        snprintf(path, sizeof path, "%s/blobs/sha256/%s", layout, digest_hex(digest));
        code = digest_check_file(path, digest, err);
    }
    return code;
}

/* image.json: what a start must know of the image's configuration. */
static int image_describe(struct work *work, const char *layout, const char *digest, uint64_t bytes,
                          struct err *err)
{
    const struct doc *manifest = blob_read(work, layout, digest);
    const struct doc *config =
        blob_read(work, layout, document_string(doc_get(manifest, "config"), "digest"));
    const struct doc *inner = doc_get(config, "config");
    if (!config) {
        err_fail(err, ERR_CORRUPT, "", "the image has no readable configuration");
        return work_fail_final(work, "ImageBroken", err);
    }
    char path[PATH_ROOM + 16];
    cleanup_buf struct buf text = BUF_INIT;
    struct json_writer json;
    size_t count;
    const char *const *env = document_strings(inner, "Env", &work->arena, &count);
    json_init(&json, &text);
    json_object(&json);
    json_key_string(&json, "user", document_string(inner, "User"));
    json_key_string(&json, "cwd", document_string(inner, "WorkingDir"));
    json_key(&json, "env");
    json_array(&json);
    for (size_t i = 0; i < count; i++)
        json_string(&json, env[i]);
    json_array_end(&json);
    json_key_int(&json, "bytes", (int64_t)bytes);
    json_object_end(&json);
    if (text.length > IMAGE_DESCRIPTION_MAX) {
        err_fail(err, ERR_TOO_BIG, "", "the image's variables are larger than %d KiB",
                 IMAGE_DESCRIPTION_MAX >> 10);
        return work_fail_final(work, "ImageBroken", err);
    }
    snprintf(path, sizeof path, "%s/image.json", work->folder);
    int code = file_write(path, buf_as_text(&text), 0644, err);
    return code < 0 ? work_fail_here(work, err) : 0;
}

/* pulls/N → images/ID, in one step; its blobs are then those of the store. Somebody else may have
 * been faster: then theirs stays. */
static int image_publish(struct work *work, struct err *err)
{
    char path[PATH_ROOM + 96];
    snprintf(path, sizeof path, "%s/blobs", work->folder);
    if (tree_remove(path, err) < 0)
        return work_fail_here(work, err);
    if (symlink("../../blobs", path) < 0) {
        err_errno(err, errno, "link %s", path);
        return work_fail_here(work, err);
    }
    snprintf(path, sizeof path, "%s/images/%s", work->pull->directory, work->pull->image_id);
    if (rename(work->folder, path) == 0 || errno == EEXIST || errno == ENOTEMPTY)
        return 0;
    err_errno(err, errno, "rename %s", work->folder);
    return work_fail_here(work, err);
}

static bool image_is_there(const struct work *work)
{
    char path[PATH_ROOM + 128];
    snprintf(path, sizeof path, "%s/images/%s/image.json", work->pull->directory,
             work->pull->image_id);
    return access(path, F_OK) == 0;
}

/* Blobs of its own: what the image may have from the store is put there, blob by blob. */
static int folder_make(struct work *work, struct err *err)
{
    struct pull *pull = work->pull;
    char path[PATH_ROOM + 16];
    int made = snprintf(work->folder, sizeof work->folder, "%s/pulls/%llu", pull->directory,
                        (unsigned long long)pull->number);
    assert(made < (int)sizeof work->folder);
    (void)made;
    trash_put(pull->trash, work->folder);
    snprintf(path, sizeof path, "%s/blobs/sha256", work->folder);
    int code = dir_make(path, 0711, err);
    return code < 0 ? work_fail_here(work, err) : 0;
}

/* From the layout to images/ID, unless it is there. */
static int layout_use(struct work *work, const char *layout, const char *tag, struct err *err)
{
    struct pull *pull = work->pull;
    struct manifest *manifest = ARENA_NEW(&work->arena, struct manifest);
    struct tree_size size;
    const char *digest = layout_digest(work, layout, tag);
    if (!digest_hex(digest)) {
        err_fail(err, ERR_NOT_FOUND, "", "%s has no image tagged %s", pull->reference->path, tag);
        return work_fail_final(work, "ImageNotFound", err);
    }
    if (layout_manifest(layout, digest, manifest, err) < 0)
        return work_fail_final(work, "ImageBroken", err);
    if (pull->reference->kind != REFERENCE_REGISTRY)
        snprintf(pull->image_id, sizeof pull->image_id, "%s", digest_hex(digest));
    if (image_is_there(work)) { /* what was copied was checked on the way */
        if (pull->reference->kind == REFERENCE_OCI && layout_verify(layout, manifest, err) < 0)
            return work_fail_final(work, "ImageBroken", err);
        return 0;
    }
    int code = image_unpack(work, layout, tag, manifest, &size, err);
    if (code == 0)
        code = image_describe(work, layout, digest, size.bytes, err);
    return code == 0 ? image_publish(work, err) : code;
}

/* What comes from elsewhere is copied into a layout first; an OCI layout on this machine is
 * unpacked from where it is. */
static int pull_steps(struct work *work, struct err *err)
{
    struct pull *pull = work->pull;
    const struct reference *reference = pull->reference;
    char digest[DIGEST_SIZE] = "";
    int code = 0;
    if (reference->kind == REFERENCE_REGISTRY) {
        code = registry_resolve(work, digest, err);
        if (code < 0)
            return code;
        snprintf(pull->image_id, sizeof pull->image_id, "%s", digest_hex(digest));
        if (image_is_there(work) &&
            (strcmp(pull->image_id, pull->known_id) == 0 || registry_has_shown(work)))
            return 0;
    }
    code = folder_make(work, err);
    if (code == 0 && reference->kind == REFERENCE_OCI)
        return layout_use(work, reference->path, reference->tag[0] ? reference->tag : "latest",
                          err);
    if (code == 0)
        code = image_copy(work, digest[0] ? digest : NULL, err);
    return code == 0 ? layout_use(work, work->folder, "image", err) : code;
}

int pull_run(struct pull *pull, struct err *err)
{
    struct work *work = mem_zero(1, sizeof *work);
    work->pull = pull;
    arena_init(&work->arena);
    pull->reason = "ImagePullError";
    pull->is_final = false;
    pull->image_id[0] = 0;
    int code = auth_put(work, err);
    if (code < 0)
        work_fail_here(work, err);
    else
        code = pull_steps(work, err);
    if (code < 0 && pull->reference->kind != REFERENCE_REGISTRY &&
        strcmp(pull->reason, "ImagePullError") == 0) {
        pull->reason = "ImageBroken"; /* the file will not be another one the next time */
        pull->is_final = true;
    }
    auth_remove(work);
    registry_free(work->registry);
    if (work->folder[0])
        trash_put(pull->trash, work->folder);
    arena_wipe(&work->arena); /* credentials were in it */
    arena_release(&work->arena);
    mem_free(work);
    return code;
}
