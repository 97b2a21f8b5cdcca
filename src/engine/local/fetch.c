/* What a registry has, and what it has shown to have; skopeo brings the rest. */
#include "base/buf.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "engine/local/pull_work.h"
#include "engine/local/storage.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/mailbox.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    AUTH_FILE_MAX = 1 << 20,
    INSPECT_TIMEOUT_MS = 60000,
    PROGRESS_MS = 1000,
    PROGRESS_BYTES = 1 << 20, /* less within a stall's time is none: 9 KiB/s by default */
    MANIFESTS_BYTES =
        2 * MANIFEST_BYTES_MAX, /* what a copy holds besides the blobs of its manifest */
};

/* --- credentials --- */

static bool host_is_named(const struct pull *pull)
{
    for (size_t i = 0; i < pull->config->insecure_registry_count; i++)
        if (strcmp(pull->config->insecure_registries[i], pull->reference->host) == 0)
            return true;
    return false;
}

/* The operator's file is skopeo's business; we read one entry for questions of our own. */
static void auth_read(struct work *work, struct registry_config *registry)
{
    cleanup_buf struct buf file = BUF_INIT;
    enum registry_auth found = REGISTRY_AUTH_OTHER;
    if (file_read(work->auth_file, AUTH_FILE_MAX, &file, NULL) == 0)
        found = registry_auth_find(buf_as_text(&file), registry->host, registry->path, &work->arena,
                                   &registry->user, &registry->password);
    registry->has_other_credentials = found == REGISTRY_AUTH_OTHER;
    if (file.at)
        sodium_memzero(file.at, file.length);
}

static bool registry_is_stopping(void *context)
{
    const struct pull_watch *watch = context;
    return watch->is_stopping(watch->context, 0);
}

/* Who is to be asked, and with which credentials. */
static void registry_open(struct work *work)
{
    struct pull *pull = work->pull;
    const struct reference *reference = pull->reference;
    bool is_named = host_is_named(pull);
    work->is_insecure = is_named || reference_is_loopback(reference->host);
    work->is_believed = is_named || !work->is_insecure;
    work->source = blob_source_of(reference->host, reference->path);
    work->host_source = blob_source_of(reference->host, NULL);
    struct registry_config registry = {.host = reference->host,
                                       .path = reference->path,
                                       .user = pull->user,
                                       .password = pull->password,
                                       .is_insecure = work->is_insecure,
                                       .context = &pull->watch,
                                       .is_stopping = registry_is_stopping};
    if (!pull->user[0] && pull->config->registry_auth_file[0]) {
        snprintf(work->auth_file, sizeof work->auth_file, "%s", pull->config->registry_auth_file);
        auth_read(work, &registry);
    }
    work->registry = registry_new(&registry);
}

static void auth_encode(struct work *work, struct json_writer *json)
{
    const struct pull *pull = work->pull;
    char *plain = arena_format(&work->arena, "%s:%s", pull->user, pull->password);
    size_t room = sodium_base64_ENCODED_LEN(strlen(plain), sodium_base64_VARIANT_ORIGINAL);
    char *encoded = arena_alloc(&work->arena, room);
    sodium_bin2base64(encoded, room, (const unsigned char *)plain, strlen(plain),
                      sodium_base64_VARIANT_ORIGINAL);
    sodium_memzero(plain, strlen(plain));
    bool is_hub = strcmp(pull->reference->host, "docker.io") == 0;
    json_key(json, is_hub ? "https://index.docker.io/v1/" : pull->reference->host);
    json_object(json);
    json_key_string(json, "auth", encoded);
    json_object_end(json);
    sodium_memzero(encoded, room);
}

/* Always a file of our own or the operator's: never the credentials of whoever started us. */
int auth_put(struct work *work, struct err *err)
{
    struct pull *pull = work->pull;
    if (pull->reference->kind != REFERENCE_REGISTRY)
        return 0;
    registry_open(work);
    if (work->auth_file[0])
        return 0;
    cleanup_buf struct buf text = BUF_INIT;
    struct json_writer json;
    json_init(&json, &text);
    json_object(&json);
    json_key(&json, "auths");
    json_object(&json);
    if (pull->user[0])
        auth_encode(work, &json);
    json_object_end(&json);
    json_object_end(&json);
    snprintf(work->auth_file, sizeof work->auth_file, "%s/auth-%llu", pull->run_directory,
             (unsigned long long)pull->number);
    int code = file_write(work->auth_file, buf_as_text(&text), 0600, err);
    if (text.at)
        sodium_memzero(text.at, text.length);
    return code;
}

void auth_remove(struct work *work)
{
    if (work->auth_file[0] && strcmp(work->auth_file, work->pull->config->registry_auth_file) != 0)
        unlink(work->auth_file);
}

/* skopeo VERB, with what every call needs. */
static size_t skopeo_args(const struct work *work, const char *verb, bool is_copy,
                          const char **argv)
{
    size_t count = 0;
    argv[count++] = "skopeo";
    if (access("/etc/containers/policy.json", R_OK) < 0)
        argv[count++] = "--insecure-policy"; /* without the file skopeo refuses everything */
    argv[count++] = verb;
    if (work->auth_file[0]) {
        argv[count++] = "--authfile";
        argv[count++] = work->auth_file;
    }
    if (work->is_insecure)
        argv[count++] = is_copy ? "--src-tls-verify=false" : "--tls-verify=false";
    return count;
}

/* --- manifests --- */

/* What the registry itself says by its number counts; skopeo's words where it says none, or is kept
 * from it: by a token service that is away, by credentials that only skopeo has. */
static void reason_ask(struct work *work, const char *digest)
{
    const struct reference *reference = work->pull->reference;
    const char *name = digest ? digest : reference->digest[0] ? reference->digest : reference->tag;
    long status = 0;
    bool is_final;
    if (registry_manifest_status(work->registry, name, &status, NULL) < 0)
        return;
    const char *reason = pull_reason_of_status(status, &is_final);
    if (!reason)
        return;
    work->pull->reason = reason;
    work->pull->is_final = is_final;
}

static int inspect_check(struct work *work, pid_t pid, struct err *err)
{
    (void)pid;
    if (clock_monotonic_ms() < work->due_ms)
        return 0;
    work->pull->reason = "RegistryUnavailable";
    return err_fail(err, ERR_UNAVAILABLE, "", "no manifest within %d s", INSPECT_TIMEOUT_MS / 1000);
}

static int manifest_load(int fd, struct buf *out, struct err *err)
{
    enum { STEP = 1 << 16 };
    ssize_t got;
    do {
        got = pread(fd, buf_room(out, STEP), STEP, (off_t)out->length);
        if (got < 0)
            return err_errno(err, errno, "read a manifest");
        buf_wrote(out, (size_t)got);
    } while (got > 0 && out->length <= MANIFEST_BYTES_MAX);
    return 0;
}

/* `skopeo inspect --raw`: a manifest's bytes, which have this digest if one is asked for. */
static int manifest_fetch(struct work *work, const char *digest, struct buf *out, struct err *err)
{
    const char *argv[PULL_ARGS_MAX];
    char name[REFERENCE_MAX + 400];
    const char *wanted = digest ? digest : work->pull->reference->digest;
    cleanup_close int fd = memfd_create("manifest", MFD_CLOEXEC);
    if (fd < 0)
        return err_errno(err, errno, "make room for a manifest");
    reference_skopeo(work->pull->reference, digest, name, sizeof name);
    size_t count = skopeo_args(work, "inspect", false, argv);
    argv[count++] = "--raw";
    argv[count++] = name;
    argv[count] = NULL;
    struct program program = {
        .argv = argv, .out = fd, .check_ms = PROGRESS_MS, .check = inspect_check};
    work->due_ms = clock_monotonic_ms() + INSPECT_TIMEOUT_MS;
    int code = program_run(work, &program, err);
    if (code < 0 && work->exit_code > 0)
        reason_ask(work, digest);
    if (code == 0)
        code = manifest_load(fd, out, err);
    if (code == 0 && wanted[0] && digest_check(buf_as_text(out), wanted, err) < 0)
        code = work_fail_final(work, "ImageBroken", err);
    return code;
}

static int manifest_take(struct work *work, const struct buf *bytes, struct err *err)
{
    if (manifest_read(buf_as_text(bytes), &work->manifest, err) < 0)
        return work_fail_final(work, "ImageBroken", err);
    return 0;
}

int registry_resolve(struct work *work, char digest[DIGEST_SIZE], struct err *err)
{
    cleanup_buf struct buf bytes = BUF_INIT;
    int code = manifest_fetch(work, NULL, &bytes, err);
    if (code == 0)
        code = manifest_take(work, &bytes, err);
    digest_of(buf_as_text(&bytes), digest);
    if (code == 0 && work->manifest.is_list) {
        snprintf(digest, DIGEST_SIZE, "%s", work->manifest.chosen);
        buf_clear(&bytes);
        code = digest[0] ? manifest_fetch(work, digest, &bytes, err)
                         : err_fail(err, ERR_NOT_FOUND, "", "the image has no variant for linux/%s",
                                    manifest_machine);
        if (!digest[0])
            work_fail_final(work, "ImageNotFound", err);
        if (code == 0)
            code = manifest_take(work, &bytes, err);
        if (code == 0 && work->manifest.is_list) {
            err_fail(err, ERR_CORRUPT, "", "the manifest of linux/%s is a list again",
                     manifest_machine);
            code = work_fail_final(work, "ImageBroken", err);
        }
    }
    return code;
}

/* --- the right to what is on this disk --- */

/* A registry that has delivered a blob has it: that its repository serves it to this user may be
 * asked. One that has not is not asked, because it could say anything. */
static bool blob_is_shown(struct work *work, const struct manifest_blob *blob)
{
    const char *directory = work->pull->directory, *hex = digest_hex(blob->digest);
    if (!work->is_believed)
        return false;
    if (blob_is_from(directory, &work->source, hex))
        return true;
    if (!blob_is_from(directory, &work->host_source, hex) ||
        !registry_has_blob(work->registry, blob->digest))
        return false;
    blob_note(directory, &work->source, hex);
    return true;
}

bool registry_has_shown(struct work *work)
{
    bool is_shown = true;
    for (size_t i = 0; i < work->manifest.blob_count; i++)
        is_shown = blob_is_shown(work, &work->manifest.blobs[i]) && is_shown;
    return is_shown;
}

/* --- copying, watched --- */

static uint64_t bytes_here(const struct work *work)
{
    uint64_t sum = 0;
    char path[PULL_PATH_MAX + 80];
    struct stat stat;
    for (size_t i = 0; i < work->manifest.blob_count; i++) {
        snprintf(path, sizeof path, "%s/blobs/sha256/%s", work->folder,
                 digest_hex(work->manifest.blobs[i].digest));
        if (lstat(path, &stat) == 0)
            sum += (uint64_t)stat.st_size;
    }
    cleanup_dir DIR *dir = opendir(work->folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (strncmp(entry->d_name, "oci-put-blob", 12) == 0 &&
            fstatat(dirfd(dir), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) == 0)
            sum += (uint64_t)stat.st_size;
    return sum;
}

static void progress_tell(struct work *work, uint64_t bytes)
{
    const struct pull *pull = work->pull;
    char message[REFERENCE_MAX + 256];
    if (!work->manifest.bytes)
        return;
    int percent = (int)(bytes * 100 / work->manifest.bytes);
    percent = percent > 100 ? 100 : percent;
    if (percent < work->told_percent + 5)
        return;
    work->told_percent = percent;
    snprintf(message, sizeof message, "%s%s%s: %d %% of %llu MiB", pull->reference->path,
             pull->reference->tag[0] ? ":" : "", pull->reference->tag, percent,
             (unsigned long long)(work->manifest.bytes >> 20));
    pull->watch.progress(pull->watch.context, "Pulling", message);
}

int room_check(struct work *work, struct err *err)
{
    struct statvfs disk;
    if (statvfs(work->pull->directory, &disk) < 0)
        return 0; /* no more is known than before */
    const uint64_t reserve =
        storage_reserve_data(&disk, work->pull->config->disk_reserve_mib).bytes / 2;
    if (disk.f_bavail * disk.f_frsize >= reserve)
        return 0;
    err_fail(err, ERR_UNAVAILABLE, "", "the disk has less than %llu MiB left",
             (unsigned long long)(reserve >> 20));
    return work_fail_final(work, "DiskFull", err);
}

/* Tell how far it is, end it when it stalls or gets more than the manifest says. */
static int copy_check(struct work *work, pid_t pid, struct err *err)
{
    (void)pid;
    uint32_t stall_s = work->pull->config->pull_stall_s;
    uint64_t bytes = bytes_here(work);
    if (bytes < work->seen_bytes || bytes - work->seen_bytes >= PROGRESS_BYTES) {
        work->moved_ms = clock_monotonic_ms();
        work->seen_bytes = bytes;
    }
    progress_tell(work, bytes);
    if (work->manifest.blob_count && bytes > work->manifest.bytes + MANIFESTS_BYTES) {
        err_fail(err, ERR_TOO_BIG, "", "the registry sends more than the %llu bytes it has named",
                 (unsigned long long)work->manifest.bytes);
        return work_fail_final(work, "ImageBroken", err);
    }
    if (clock_monotonic_ms() - work->moved_ms <= (int64_t)stall_s * 1000)
        return room_check(work, err);
    work->pull->reason = "RegistryUnavailable";
    return err_fail(err, ERR_UNAVAILABLE, "", "less than 1 MiB came in %u s", stall_s);
}

/* What the registry has named, before any of it is fetched. */
static int named_check(struct work *work, struct err *err)
{
    const uint64_t max_mib = work->pull->config->image_max_mib;
    if (work->manifest.bytes <= max_mib << 20)
        return 0;
    err_fail(err, ERR_TOO_BIG, "",
             "the layers of the image have %llu MiB, and an image may have at most %llu MiB here",
             (unsigned long long)(work->manifest.bytes >> 20), (unsigned long long)max_mib);
    return work_fail_final(work, "ImageTooBig", err);
}

/* What came goes into the store, also of a copy that broke off: the next try begins there. */
static void copy_keep(struct work *work)
{
    const char *directory = work->pull->directory;
    blobs_keep(directory, work->folder);
    for (size_t i = 0; i < work->manifest.blob_count; i++) {
        const char *hex = digest_hex(work->manifest.blobs[i].digest);
        if (!blob_is_here(work->folder, hex))
            continue;
        blob_note(directory, &work->source, hex);
        blob_note(directory, &work->host_source, hex);
    }
}

int image_copy(struct work *work, const char *digest, struct err *err)
{
    char from[REFERENCE_MAX + 400], to[PULL_PATH_MAX + 16];
    const char *argv[PULL_ARGS_MAX];
    struct program program = {.argv = argv, .check_ms = PROGRESS_MS, .check = copy_check};
    if (named_check(work, err) < 0)
        return err->code;
    for (size_t i = 0; i < work->manifest.blob_count; i++)
        if (blob_is_shown(work, &work->manifest.blobs[i]))
            blob_lend(work->pull->directory, digest_hex(work->manifest.blobs[i].digest),
                      work->folder);
    reference_skopeo(work->pull->reference, digest, from, sizeof from);
    snprintf(to, sizeof to, "oci:%s:image", work->folder);
    size_t count = skopeo_args(work, "copy", true, argv);
    argv[count++] = "--quiet";
    argv[count++] = from;
    argv[count++] = to;
    argv[count] = NULL;
    work->told_percent = -5;
    work->seen_bytes = bytes_here(work);
    work->moved_ms = clock_monotonic_ms();
    int code = program_run(work, &program, err);
    copy_keep(work);
    return code;
}
