#include "engine/local/pull.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "engine/local/document.h"
#include "engine/local/runtime.h"
#include "engine/local/trash.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include "sys/mailbox.h"
#include "sys/process.h"
#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PATH_ROOM = 1200,
    MANIFEST_MAX = 4 << 20,
    LAYERS_MAX = 512,
    INSPECT_TIMEOUT_MS = 60000,
    PROGRESS_MS = 1000,
};

#if defined(__x86_64__)
static const char machine[] = "amd64";
#elif defined(__aarch64__)
static const char machine[] = "arm64";
#endif

/* One pull's working memory. */
struct work {
    struct pull *pull;
    struct arena arena;
    char folder[PATH_ROOM];    /* pulls/N */
    char auth_file[PATH_ROOM]; /* "" = none */
    bool is_plain_http;
    const char *layers[LAYERS_MAX]; /* hex names of blobs that are to come */
    size_t layer_count;
    uint64_t total_bytes; /* 0: unknown */
};

/* --- words --- */

void pull_complaint(const char *text, char *out, unsigned long size)
{
    struct text rest = text_trim(text_of(text)), last = rest;
    while (rest.at) {
        struct text line = text_trim(text_cut(&rest, '\n'));
        if (line.length)
            last = line;
    }
    size_t at = text_find(last, TEXT("msg=\""));
    if (at != SIZE_MAX) {
        assert(last.at);
        last = (struct text){last.at + at + 5, last.length - at - 5};
        if (last.length && last.at[last.length - 1] == '"')
            last.length--;
    }
    size_t used = 0;
    assert(last.at || !last.length);
    for (size_t i = 0; i < last.length && used + 1 < size; i++) {
        if (last.at[i] == '\\' && i + 1 < last.length)
            i++; /* \" and \\ of the log format */
        out[used++] = last.at[i];
    }
    out[used] = 0;
}

const char *pull_reason(const char *complaint, bool *is_final)
{
    static const struct {
        const char *words, *reason;
        bool is_final;
    } table[] = {
        {"no space left on device", "DiskFull", true},
        {"disk quota exceeded", "DiskFull", true},
        {"manifest unknown", "ImageNotFound", true},
        {"name unknown", "ImageNotFound", true},
        {"not found", "ImageNotFound", true},
        {"no such file or directory", "ImageNotFound", true},
        {"unauthorized", "ImagePullUnauthorized", true},
        {"authentication required", "ImagePullUnauthorized", true},
        {"denied", "ImagePullUnauthorized", true},
        {"invalid username/password", "ImagePullUnauthorized", true},
        {"connection refused", "RegistryUnavailable", false},
        {"no such host", "RegistryUnavailable", false},
        {"i/o timeout", "RegistryUnavailable", false},
        {"connection reset", "RegistryUnavailable", false},
        {"unexpected eof", "RegistryUnavailable", false},
        {"service unavailable", "RegistryUnavailable", false},
    };
    char lower[1024];
    size_t i = 0;
    for (; complaint[i] && i + 1 < sizeof lower; i++)
        lower[i] = (char)tolower((unsigned char)complaint[i]);
    lower[i] = 0;
    for (i = 0; i < COUNT_OF(table); i++)
        if (strstr(lower, table[i].words)) {
            *is_final = table[i].is_final;
            return table[i].reason;
        }
    *is_final = false;
    return "ImagePullError";
}

static int fail(struct work *work, const char *complaint, struct err *err)
{
    char words[sizeof err->text];
    pull_complaint(complaint, words, sizeof words);
    work->pull->reason = pull_reason(words, &work->pull->is_final);
    return err_fail(err, ERR_UNAVAILABLE, "", "%s", words[0] ? words : "the program said nothing");
}

static int fail_here(struct work *work, struct err *err)
{
    bool is_final;
    const char *reason = pull_reason(err->text, &is_final);
    work->pull->reason = strcmp(reason, "DiskFull") == 0 ? reason : "ImagePullError";
    work->pull->is_final = true;
    return err->code;
}

/* --- programs --- */

static bool registry_is_insecure(const struct pull *pull)
{
    const char *host = pull->reference->host;
    for (size_t i = 0; i < pull->config->insecure_registry_count; i++)
        if (strcmp(pull->config->insecure_registries[i], host) == 0)
            return true;
    return reference_is_loopback(host);
}

/* Always a file of our own or the operator's: never the credentials of whoever started us. */
static int auth_put(struct work *work, struct err *err)
{
    struct pull *pull = work->pull;
    if (pull->reference->kind != REFERENCE_REGISTRY)
        return 0;
    if (!pull->user[0] && pull->config->registry_auth_file[0]) {
        snprintf(work->auth_file, sizeof work->auth_file, "%s", pull->config->registry_auth_file);
        return 0;
    }
    struct buf text = BUF_INIT;
    struct json_writer json;
    json_init(&json, &text);
    json_object(&json);
    json_key(&json, "auths");
    json_object(&json);
    if (pull->user[0]) {
        char *plain = arena_format(&work->arena, "%s:%s", pull->user, pull->password);
        size_t room = sodium_base64_ENCODED_LEN(strlen(plain), sodium_base64_VARIANT_ORIGINAL);
        char *encoded = arena_alloc(&work->arena, room);
        sodium_bin2base64(encoded, room, (const unsigned char *)plain, strlen(plain),
                          sodium_base64_VARIANT_ORIGINAL);
        sodium_memzero(plain, strlen(plain));
        bool is_hub = strcmp(pull->reference->host, "docker.io") == 0;
        json_key(&json, is_hub ? "https://index.docker.io/v1/" : pull->reference->host);
        json_object(&json);
        json_key_string(&json, "auth", encoded);
        json_object_end(&json);
        sodium_memzero(encoded, room);
    }
    json_object_end(&json);
    json_object_end(&json);
    snprintf(work->auth_file, sizeof work->auth_file, "%s/auth-%llu", pull->run_directory,
             (unsigned long long)pull->number);
    int result = file_write(work->auth_file, buf_as_text(&text), 0600, err);
    if (text.at)
        sodium_memzero(text.at, text.length);
    buf_release(&text);
    return result;
}

static void auth_remove(struct work *work)
{
    if (work->auth_file[0] && strcmp(work->auth_file, work->pull->config->registry_auth_file) != 0)
        unlink(work->auth_file);
}

enum { ARGS_MAX = 24 };

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
    if (work->is_plain_http)
        argv[count++] = is_copy ? "--src-tls-verify=false" : "--tls-verify=false";
    return count;
}

/* `skopeo inspect --raw`: a manifest's bytes. */
static int manifest_fetch(struct work *work, const char *digest, struct buf *out, struct err *err)
{
    const char *argv[ARGS_MAX];
    char name[REFERENCE_MAX + 400];
    reference_skopeo(work->pull->reference, digest, name, sizeof name);
    size_t count = skopeo_args(work, "inspect", false, argv);
    argv[count++] = "--raw";
    argv[count++] = name;
    argv[count] = NULL;
    struct buf complaint = BUF_INIT;
    struct process process = {.argv = argv, .in = -1, .out = -1, .err = -1, .is_bound = true};
    int code = 0;
    int result = process_run(&process, INSPECT_TIMEOUT_MS, out, &complaint, &code, err);
    if (result < 0)
        work->pull->reason = "RegistryUnavailable";
    else if (code != 0)
        result = fail(work, buf_cstr(&complaint), err);
    buf_release(&complaint);
    return result;
}

const char *pull_choose(const struct doc *manifest, bool *is_list)
{
    const struct doc *items = doc_get(manifest, "manifests");
    *is_list = items != NULL;
    for (size_t i = 0; items && i < document_count(items); i++) {
        const struct doc *item = items->as.list.items[i];
        const struct doc *platform = doc_get(item, "platform");
        if (strcmp(document_string(platform, "os"), "linux") == 0 &&
            strcmp(document_string(platform, "architecture"), machine) == 0)
            return document_string(item, "digest");
    }
    return "";
}

static void digest_of(struct text bytes, char out[72])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(hash, (const unsigned char *)bytes.at, bytes.length);
    memcpy(out, "sha256:", 7);
    sodium_bin2hex(out + 7, 65, hash, sizeof hash);
}

/* A digest names a file: nothing but sha256 and hex digits may become part of a path. */
static const char *digest_hex(const char *digest)
{
    if (strncmp(digest, "sha256:", 7) != 0 || strlen(digest) != 71 ||
        strspn(digest + 7, "0123456789abcdef") != 64)
        return NULL;
    return digest + 7;
}

static void layers_note(struct work *work, const struct doc *manifest)
{
    const struct doc *layers = doc_get(manifest, "layers");
    for (size_t i = 0; i < document_count(layers) && i < LAYERS_MAX; i++) {
        const struct doc *layer = layers->as.list.items[i];
        const char *hex = digest_hex(document_string(layer, "digest"));
        int64_t size = document_int(layer, "size");
        if (hex && size > 0) {
            work->layers[work->layer_count++] = hex;
            work->total_bytes += (uint64_t)size;
        }
    }
}

/* What the registry has under the name now: `digest` of the manifest for this machine. */
static int registry_resolve(struct work *work, char digest[72], struct err *err)
{
    struct buf bytes = BUF_INIT;
    int result = manifest_fetch(work, NULL, &bytes, err);
    if (result == 0) {
        digest_of(buf_as_text(&bytes), digest);
        const struct doc *manifest = document_read(buf_as_text(&bytes), false, &work->arena);
        bool is_list;
        const char *chosen = pull_choose(manifest, &is_list);
        if (is_list && !digest_hex(chosen)) {
            work->pull->reason = "ImageNotFound";
            work->pull->is_final = true;
            result =
                err_fail(err, ERR_NOT_FOUND, "", "the image has no variant for linux/%s", machine);
        } else if (is_list) {
            snprintf(digest, 72, "%s", chosen);
            buf_clear(&bytes);
            result = manifest_fetch(work, digest, &bytes, err);
            manifest = document_read(buf_as_text(&bytes), false, &work->arena);
        }
        layers_note(work, manifest);
    }
    buf_release(&bytes);
    return result;
}

/* --- copying, watched --- */

static uint64_t bytes_here(const struct work *work)
{
    uint64_t sum = 0;
    char path[PATH_ROOM + 80];
    struct stat stat;
    for (size_t i = 0; i < work->layer_count; i++) {
        snprintf(path, sizeof path, "%s/blobs/sha256/%s", work->folder, work->layers[i]);
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

static void progress_tell(struct work *work, uint64_t bytes, int *told_percent)
{
    char message[REFERENCE_MAX + 256];
    if (!work->total_bytes)
        return;
    int percent = (int)(bytes * 100 / work->total_bytes);
    percent = percent > 100 ? 100 : percent;
    if (percent < *told_percent + 5)
        return;
    *told_percent = percent;
    snprintf(message, sizeof message, "%s%s%s: %d %% of %llu MiB", work->pull->reference->path,
             work->pull->reference->tag[0] ? ":" : "", work->pull->reference->tag, percent,
             (unsigned long long)(work->total_bytes >> 20));
    work->pull->watch.progress(work->pull->watch.context, "Pulling", message);
}

/* Wait for a program that may take long: tell how far it is, end it when it stalls or we stop. */
static int program_await(struct work *work, pid_t pid, int *status, bool has_progress,
                         struct err *err)
{
    struct pull_watch *watch = &work->pull->watch;
    int result = 0, told = -5;
    uint64_t seen = 0;
    int64_t moved_ms = mailbox_now_ms(),
            stall_ms = (int64_t)work->pull->config->pull_stall_s * 1000;
    cleanup_close int ended = process_watch(pid, err);
    while (ended >= 0) {
        struct pollfd poll_fd = {.fd = ended, .events = POLLIN};
        if (poll(&poll_fd, 1, PROGRESS_MS) > 0)
            break;
        uint64_t bytes = has_progress ? bytes_here(work) : 0;
        if (bytes != seen || !has_progress)
            moved_ms = mailbox_now_ms();
        seen = bytes;
        if (has_progress)
            progress_tell(work, bytes, &told);
        if (watch->is_stopping(watch->context, 0))
            result = err_fail(err, ERR_BUSY, "", "the server stops");
        else if (mailbox_now_ms() - moved_ms > stall_ms)
            result = err_fail(err, ERR_UNAVAILABLE, "", "no data for %u s",
                              work->pull->config->pull_stall_s);
        if (result < 0) {
            work->pull->reason = "RegistryUnavailable";
            kill(pid, SIGKILL);
            break;
        }
    }
    int waited = process_wait(pid, status, result == 0 ? err : NULL);
    return result < 0 ? result : waited;
}

/* Run it; its complaint goes through a file, so that nobody has to read a pipe meanwhile, and not
 * on the disk of which it may complain. */
static int program_run(struct work *work, const char *const *argv, bool has_progress,
                       struct err *err)
{
    char path[PATH_ROOM + 48];
    snprintf(path, sizeof path, "%s/complaint-%llu", work->pull->run_directory,
             (unsigned long long)work->pull->number);
    cleanup_close int complaint = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (complaint < 0)
        return err_errno(err, errno, "open %s", path);
    pid_t pid;
    int status = 0;
    struct process process = {
        .argv = argv, .in = -1, .out = -1, .err = complaint, .is_bound = true};
    int result = process_spawn(&process, &pid, err);
    if (result == 0 && process_oom_score(0) < 0)
        process_oom_score_put(pid, 0); /* a pull can be repeated */
    if (result == 0)
        result = program_await(work, pid, &status, has_progress, err);
    if (result == 0 && process_exit_code(status) != 0) {
        char text[4096];
        off_t size = lseek(complaint, 0, SEEK_END);
        off_t from = size > (off_t)sizeof text - 1 ? size - (off_t)sizeof text + 1 : 0;
        ssize_t got = pread(complaint, text, sizeof text - 1, from);
        text[got > 0 ? got : 0] = 0;
        if (!text[0])
            snprintf(text, sizeof text, "%s ended with code %d", argv[0],
                     process_exit_code(status));
        result = fail(work, text, err);
    }
    unlink(path);
    return result;
}

static int image_copy(struct work *work, const char *digest, struct err *err)
{
    char from[REFERENCE_MAX + 400], to[PATH_ROOM + 16];
    const char *argv[ARGS_MAX];
    reference_skopeo(work->pull->reference, digest, from, sizeof from);
    snprintf(to, sizeof to, "oci:%s:image", work->folder);
    size_t count = skopeo_args(work, "copy", true, argv);
    argv[count++] = "--quiet";
    argv[count++] = from;
    argv[count++] = to;
    argv[count] = NULL;
    return program_run(work, argv, true, err);
}

/* --- layouts --- */

static const struct doc *blob_read(struct work *work, const char *layout, const char *digest)
{
    char path[PATH_ROOM + 96];
    const char *hex = digest_hex(digest);
    struct buf text = BUF_INIT;
    if (!hex)
        return NULL;
    snprintf(path, sizeof path, "%s/blobs/sha256/%s", layout, hex);
    const struct doc *doc = file_read(path, MANIFEST_MAX, &text, NULL) == 0
                                ? document_read(buf_as_text(&text), false, &work->arena)
                                : NULL;
    buf_release(&text);
    return doc;
}

/* The manifest digest of one tag of a layout; "" when there is none. */
static const char *layout_digest(struct work *work, const char *layout, const char *tag)
{
    char path[PATH_ROOM + 16];
    struct buf text = BUF_INIT;
    snprintf(path, sizeof path, "%s/index.json", layout);
    const struct doc *index = file_read(path, MANIFEST_MAX, &text, NULL) == 0
                                  ? document_read(buf_as_text(&text), false, &work->arena)
                                  : NULL;
    buf_release(&text);
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

static uint64_t tree_bytes(const char *path, int depth)
{
    uint64_t sum = 0;
    cleanup_dir DIR *dir = depth < 64 ? opendir(path) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct stat stat;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(dir), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        sum += (uint64_t)stat.st_blocks * 512;
        if (S_ISDIR(stat.st_mode)) {
            char below[PATH_MAX];
            if (snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < (int)sizeof below)
                sum += tree_bytes(below, depth + 1);
        }
    }
    return sum;
}

/* image.json: what a start must know of the image's configuration. */
static int image_describe(struct work *work, const char *layout, const char *digest,
                          struct err *err)
{
    const struct doc *manifest = blob_read(work, layout, digest);
    const struct doc *config =
        blob_read(work, layout, document_string(doc_get(manifest, "config"), "digest"));
    const struct doc *inner = doc_get(config, "config");
    if (!config) {
        work->pull->reason = "ImagePullError";
        work->pull->is_final = true;
        return err_fail(err, ERR_CORRUPT, "", "the image has no readable configuration");
    }
    char path[PATH_ROOM + 16];
    snprintf(path, sizeof path, "%s/rootfs", work->folder);
    struct buf text = BUF_INIT;
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
    json_key_int(&json, "bytes", (int64_t)tree_bytes(path, 0));
    json_object_end(&json);
    snprintf(path, sizeof path, "%s/image.json", work->folder);
    int result = file_write(path, buf_as_text(&text), 0644, err);
    buf_release(&text);
    return result < 0 ? fail_here(work, err) : 0;
}

static int image_unpack(struct work *work, const char *layout, const char *tag, struct err *err)
{
    char image[PATH_ROOM + 160], rootfs[PATH_ROOM + 16];
    snprintf(image, sizeof image, "%s:%s", layout, tag);
    snprintf(rootfs, sizeof rootfs, "%s/rootfs", work->folder);
    work->pull->watch.progress(work->pull->watch.context, "Unpacking", work->pull->reference->path);
    const char *argv[] = {"umoci", "raw", "unpack", "--image", image, rootfs, NULL};
    return program_run(work, argv, false, err);
}

/* pulls/N → images/ID, in one step. Somebody else may have been faster: then theirs stays. */
static int image_publish(struct work *work, struct err *err)
{
    char path[PATH_ROOM + 96];
    snprintf(path, sizeof path, "%s/images/%s", work->pull->directory, work->pull->image_id);
    if (rename(work->folder, path) == 0 || errno == EEXIST || errno == ENOTEMPTY)
        return 0;
    err_errno(err, errno, "rename %s", work->folder);
    return fail_here(work, err);
}

static bool image_is_there(const struct work *work)
{
    char path[PATH_ROOM + 128];
    snprintf(path, sizeof path, "%s/images/%s/image.json", work->pull->directory,
             work->pull->image_id);
    return access(path, F_OK) == 0;
}

static int folder_make(struct work *work, struct err *err)
{
    struct pull *pull = work->pull;
    char path[PATH_ROOM + 16];
    int made = snprintf(work->folder, sizeof work->folder, "%s/pulls/%llu", pull->directory,
                        (unsigned long long)pull->number);
    assert(made < (int)sizeof work->folder);
    (void)made;
    trash_put(pull->trash, work->folder);
    int result = dir_make(work->folder, 0711, err);
    if (result < 0)
        return fail_here(work, err);
    snprintf(path, sizeof path, "%s/blobs", work->folder);
    if (symlink("../../blobs", path) < 0) {
        err_errno(err, errno, "link %s", path);
        return fail_here(work, err);
    }
    return 0;
}

/* What comes from elsewhere is copied into the blob store first; an OCI layout on this machine is
 * unpacked from where it is. */
static int pull_steps(struct work *work, struct err *err)
{
    struct pull *pull = work->pull;
    char digest[72] = "";
    const char *layout = work->folder, *tag = "image";
    int result = 0;
    if (pull->reference->kind == REFERENCE_REGISTRY) {
        result = registry_resolve(work, digest, err);
        if (result < 0)
            return result;
        snprintf(pull->image_id, sizeof pull->image_id, "%s", digest + 7);
        if (image_is_there(work))
            return 0;
    }
    result = folder_make(work, err);
    if (result == 0 && pull->reference->kind == REFERENCE_OCI) {
        layout = pull->reference->path;
        tag = pull->reference->tag[0] ? pull->reference->tag : "latest";
    } else if (result == 0) {
        result = image_copy(work, digest[0] ? digest : NULL, err);
    }
    if (result < 0)
        return result;
    const char *local_digest = layout_digest(work, layout, tag);
    if (!digest_hex(local_digest)) {
        pull->reason = "ImageNotFound";
        pull->is_final = true;
        return err_fail(err, ERR_NOT_FOUND, "", "%s has no image tagged %s", pull->reference->path,
                        tag);
    }
    if (!digest[0])
        snprintf(pull->image_id, sizeof pull->image_id, "%s", local_digest + 7);
    if (image_is_there(work))
        return 0;
    result = image_unpack(work, layout, tag, err);
    if (result == 0)
        result = image_describe(work, layout, local_digest, err);
    return result == 0 ? image_publish(work, err) : result;
}

int pull_run(struct pull *pull, struct err *err)
{
    struct work *work = mem_zero(1, sizeof *work);
    work->pull = pull;
    arena_init(&work->arena);
    work->is_plain_http = pull->reference->kind == REFERENCE_REGISTRY && registry_is_insecure(pull);
    pull->reason = "ImagePullError";
    pull->is_final = false;
    pull->image_id[0] = 0;
    int result = auth_put(work, err);
    if (result < 0)
        fail_here(work, err);
    else
        result = pull_steps(work, err);
    if (result < 0 && pull->reference->kind != REFERENCE_REGISTRY &&
        strcmp(pull->reason, "ImagePullError") == 0) {
        pull->reason = "ImageBroken"; /* the file will not be another one the next time */
        pull->is_final = true;
    }
    auth_remove(work);
    if (work->folder[0])
        trash_put(pull->trash, work->folder);
    arena_release(&work->arena);
    mem_free(work);
    return result;
}
