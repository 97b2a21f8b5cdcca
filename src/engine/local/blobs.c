#include "engine/local/blobs.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/document.h"
#include "engine/local/manifest.h"
#include "engine/local/runtime.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/log.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEX_LENGTH = 64, DOCUMENT_MAX = 4 << 20 };

static bool is_hex(const char *name)
{
    return strlen(name) == HEX_LENGTH && strspn(name, "0123456789abcdef") == HEX_LENGTH;
}

static void blob_path(const char *directory, const char *hex, char path[RUNTIME_PATH_MAX])
{
    snprintf(path, RUNTIME_PATH_MAX, "%s/blobs/sha256/%s", directory, hex);
}

/* --- sources --- */

struct blob_source blob_source_of(const char *host, const char *path)
{
    struct blob_source source;
    unsigned char hash[(BLOB_SOURCE_SIZE - 1) / 2];
    cleanup_buf struct buf key = BUF_INIT;
    buf_put_text(&key, text_of(host));
    buf_put_text(&key, text_of(path ? path : ""));
    crypto_generichash(hash, sizeof hash, (const unsigned char *)key.at, key.length, NULL, 0);
    sodium_bin2hex(source.name, sizeof source.name, hash, sizeof hash);
    return source;
}

static void note_path(const char *directory, const struct blob_source *source, const char *hex,
                      char path[RUNTIME_PATH_MAX])
{
    snprintf(path, RUNTIME_PATH_MAX, "%s/sources/%s%s%s", directory, source->name,
             hex[0] ? "/" : "", hex);
}

bool blob_is_from(const char *directory, const struct blob_source *source, const char *hex)
{
    char path[RUNTIME_PATH_MAX];
    assert(is_hex(hex));
    note_path(directory, source, hex, path);
    return access(path, F_OK) == 0;
}

void blob_note(const char *directory, const struct blob_source *source, const char *hex)
{
    char path[RUNTIME_PATH_MAX];
    struct err err = {0};
    assert(is_hex(hex));
    note_path(directory, source, "", path);
    int code = dir_make(path, 0700, &err);
    note_path(directory, source, hex, path);
    cleanup_close int fd =
        code == 0 ? open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        log_warning("engine", "cannot note where a blob came from: %s", code < 0 ? err.text : path);
}

/* --- blobs --- */

bool blob_is_here(const char *directory, const char *hex)
{
    char path[RUNTIME_PATH_MAX];
    blob_path(directory, hex, path);
    return access(path, F_OK) == 0;
}

bool blob_lend(const char *directory, const char *hex, const char *folder)
{
    char from[RUNTIME_PATH_MAX], to[RUNTIME_PATH_MAX];
    assert(is_hex(hex));
    blob_path(directory, hex, from);
    blob_path(folder, hex, to);
    return link(from, to) == 0 || errno == EEXIST;
}

/* Also in the place of another file of this content: the store's is then the one that the pull has,
 * which is how a sweep knows that somebody has it. */
static int link_put(int folder, const char *name, const struct stat *file, const char *to)
{
    char beside[RUNTIME_PATH_MAX + 8];
    struct stat there;
    if (linkat(folder, name, AT_FDCWD, to, 0) == 0)
        return 0;
    if (errno != EEXIST)
        return -1;
    if (lstat(to, &there) == 0 && there.st_ino == file->st_ino)
        return 0;
    snprintf(beside, sizeof beside, "%s.new", to);
    unlink(beside); /* of somebody who was killed */
    if (linkat(folder, name, AT_FDCWD, beside, 0) < 0)
        return errno == EEXIST ? 0 : -1; /* another pull has just come with the same */
    return rename(beside, to);
}

void blobs_keep(const char *directory, const char *folder)
{
    char path[RUNTIME_PATH_MAX], to[RUNTIME_PATH_MAX];
    struct stat stat;
    snprintf(path, sizeof path, "%s/blobs/sha256", folder);
    cleanup_dir DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (!is_hex(entry->d_name) ||
            fstatat(dirfd(dir), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(stat.st_mode))
            continue;
        blob_path(directory, entry->d_name, to);
        if (link_put(dirfd(dir), entry->d_name, &stat, to) < 0)
            log_warning("engine", "cannot keep the blob %.12s: errno %d", entry->d_name, errno);
    }
}

/* --- collecting --- */

struct names {
    char (*items)[HEX_LENGTH + 1];
    size_t count, room;
};

static int name_order(const void *a, const void *b)
{
    return memcmp(a, b, HEX_LENGTH);
}

static void names_sort(struct names *names)
{
    if (names->count)
        qsort(names->items, names->count, sizeof *names->items, name_order);
}

static bool name_is_in(const struct names *names, const char *hex)
{
    return names->count &&
           bsearch(hex, names->items, names->count, sizeof *names->items, name_order);
}

static void name_add(struct names *names, const char *hex)
{
    ARRAY_RESERVE(names, names->count + 1);
    memcpy(names->items[names->count++], hex, HEX_LENGTH + 1);
}

static const struct doc *document_of(const char *path, struct arena *arena)
{
    cleanup_buf struct buf text = BUF_INIT;
    return file_read(path, DOCUMENT_MAX, &text, NULL) == 0
               ? document_read(buf_as_text(&text), false, arena)
               : NULL;
}

static void digest_add(struct names *names, const char *digest)
{
    if (digest_hex(digest))
        name_add(names, digest_hex(digest));
}

/* A layout's index → manifest → configuration and layers. */
static void index_keep(const char *directory, const char *index, struct names *names)
{
    char path[RUNTIME_PATH_MAX];
    cleanup_arena struct arena arena;
    arena_init(&arena);
    const struct doc *items = doc_get(document_of(index, &arena), "manifests");
    for (size_t i = 0; i < document_count(items); i++) {
        const char *digest = document_string(items->as.list.items[i], "digest");
        if (!digest_hex(digest))
            continue;
        name_add(names, digest_hex(digest));
        blob_path(directory, digest_hex(digest), path);
        const struct doc *manifest = document_of(path, &arena);
        const struct doc *layers = doc_get(manifest, "layers");
        digest_add(names, document_string(doc_get(manifest, "config"), "digest"));
        for (size_t k = 0; k < document_count(layers); k++)
            digest_add(names, document_string(layers->as.list.items[k], "digest"));
    }
}

/* A pull has it in its folder by another link; a link that is made or removed counts as a change.
 */
static bool is_spared(const struct stat *blob, int64_t now_s, uint64_t young_s)
{
    return blob->st_nlink > 1 || now_s - blob->st_ctim.tv_sec < (int64_t)young_s;
}

/* Remove the blobs that are not among the names. Those that are spared are added to them. */
static size_t store_sweep(const char *path, struct names *names, uint64_t young_s)
{
    const int64_t now_s = clock_unix_ms() / 1000;
    struct stat stat;
    cleanup_array struct names spared = {0};
    cleanup_dir DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (!is_hex(entry->d_name) || name_is_in(names, entry->d_name))
            continue;
        if (fstatat(dirfd(dir), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) == 0 &&
            is_spared(&stat, now_s, young_s))
            name_add(&spared, entry->d_name);
        else
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    for (size_t i = 0; i < spared.count; i++)
        name_add(names, spared.items[i]);
    names_sort(names);
    return spared.count;
}

/* Of what lies in a folder, remove what is not among the names. */
static void folder_sweep(const char *path, const struct names *names)
{
    cleanup_dir DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (is_hex(entry->d_name) && !name_is_in(names, entry->d_name))
            unlinkat(dirfd(dir), entry->d_name, 0);
}

static void sources_sweep(const char *directory, const struct names *names)
{
    char path[RUNTIME_PATH_MAX], below[RUNTIME_PATH_MAX + 300];
    snprintf(path, sizeof path, "%s/sources", directory);
    cleanup_dir DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        folder_sweep(below, names);
        rmdir(below); /* when it is empty */
    }
}

size_t blobs_sweep(const char *directory, uint64_t young_s)
{
    char path[RUNTIME_PATH_MAX], index[RUNTIME_PATH_MAX + 300];
    cleanup_array struct names names = {0};
    snprintf(path, sizeof path, "%s/images", directory);
    cleanup_dir DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(index, sizeof index, "%s/%s/index.json", path, entry->d_name);
        if (entry->d_name[0] != '.')
            index_keep(directory, index, &names);
    }
    names_sort(&names);
    snprintf(path, sizeof path, "%s/blobs/sha256", directory);
    const size_t left = store_sweep(path, &names, young_s);
    sources_sweep(directory, &names);
    return left;
}
