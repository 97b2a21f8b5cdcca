#include "server/storage.h"
#include "auth/auth.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "files/tree.h"
#include "spec/spec.h"
#include "store/read.h"
#include "sys/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int one_check(struct storage_list storages, const struct auth_caller *caller,
                     const struct spec_storage *wanted, struct err *err)
{
    const struct storage *storage = storage_find(storages, text_of(wanted->name));
    const struct auth_subject subject = {.storage = wanted->name};
    struct err refusal = {0};
    if (!storage)
        return err_fail(err, ERR_NOT_FOUND, "extras.storages",
                        "line %u: Storage %.100s is not found.", wanted->line, wanted->name);
    if (auth_check(caller, AUTH_USE_STORAGE, &subject, &refusal) == 0)
        return 0;
    return err_fail(err, refusal.code, "extras.storages", "line %u: %s", wanted->line,
                    refusal.text);
}

/* The user's defaults, as far as there are such storages; none is what the list says, but hardly
 * what the user means. */
static void defaults_add(struct storage_list storages, const struct store_storages *rights,
                         struct spec *spec, struct problems *problems)
{
    const struct place place = {.line = spec->default_storages_line, .column = 1};
    const size_t before = spec->storage_count;
    for (size_t i = 0; i < rights->defaults.count; i++) {
        const char *name = rights->defaults.items[i];
        if (storage_find(storages, text_of(name)))
            spec_storage_add(spec, name);
        else
            problem_warn(problems, place, "extras.storages",
                         "your default storage %.64s is not there: it is not mounted", name);
    }
    if (spec->storage_count == before)
        problem_warn(problems, place, "extras.storages",
                     "you have no default storage: nothing is mounted");
}

int storage_submit_check(struct storage_list storages, struct store_reader *reader,
                         const char *user, struct spec *spec, struct problems *problems,
                         struct arena *arena, struct err *err)
{
    struct store_storages rights;
    int code = store_user_storages(reader, user, arena, &rights, err);
    if (code < 0)
        return code;
    const struct auth_caller caller = {
        .user = user,
        .is_admin = rights.is_admin,
        .storages = rights.names.items,
        .storage_count = rights.names.count,
    };
    for (size_t i = 0; code == 0 && i < spec->storage_count; i++)
        code = one_check(storages, &caller, &spec->storages[i], err);
    if (code == 0 && spec->wants_default_storages)
        defaults_add(storages, &rights, spec, problems);
    return code;
}

static int compare(const void *a, const void *b)
{
    const struct engine_mount *left = a, *right = b;
    size_t length = strlen(left->target), other = strlen(right->target);
    return length < other ? -1 : length > other;
}

static bool is_folder_name(const char *user)
{
    return strcmp(user, ".") != 0 && strcmp(user, "..") != 0;
}

static int source_make(const struct storage *storage, const char *user, struct arena *arena,
                       const char **source, struct err *err)
{
    if (!storage->directory[0])
        return err_fail(err, ERR_INVALID, "extras.storages",
                        "storage %s is a claim of Kubernetes clusters, and no directory",
                        storage->name);
    cleanup_close int directory = open(storage->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = 0;
    *source = storage->directory;
    if (directory < 0)
        return err_errno(err, errno, "storage %s: %s", storage->name, storage->directory);
    if (!storage->is_shared) {
        cleanup_close int folder = files_user_folder(storage, directory, user, err);
        code = folder < 0 ? folder : 0;
        *source = arena_format(arena, "%s/%s", storage->directory, user);
    }
    return code;
}

static int mount_make(const struct storage *storage, const char *user, bool has_claims,
                      struct arena *arena, struct engine_mount *mount, struct err *err)
{
    mount->is_read_only = storage->is_read_only;
    mount->is_root_squashed = storage->is_root_squashed;
    if (!storage->is_shared && !is_folder_name(user))
        return err_fail(err, ERR_INVALID, "extras.storages", "storage %s has no folder for %s",
                        storage->name, user);
    if (!has_claims || !storage->claim[0])
        return source_make(storage, user, arena, &mount->source, err);
    mount->source = "";
    mount->claim = storage->claim;
    mount->claim_folder = storage->is_shared ? "" : user; /* made by who mounts it */
    return 0;
}

int storage_mounts_make(struct storage_list storages, const char *user, bool has_claims,
                        const struct spec *spec, struct arena *arena, struct engine_mount *mounts,
                        struct err *err)
{
    for (size_t i = 0; i < spec->storage_count; i++) {
        const struct spec_storage *wanted = &spec->storages[i];
        const struct storage *storage = storage_find(storages, text_of(wanted->name));
        if (!storage)
            return err_fail(err, ERR_INVALID, "extras.storages",
                            "storage %.100s is not configured any more", wanted->name);
        mounts[i] = (struct engine_mount){.target = wanted->mount_path};
        int code = mount_make(storage, user, has_claims, arena, &mounts[i], err);
        if (code < 0)
            return code;
    }
    qsort(mounts, spec->storage_count, sizeof *mounts, compare);
    return 0;
}
