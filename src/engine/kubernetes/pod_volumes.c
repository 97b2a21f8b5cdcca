#include "engine/kubernetes/pod_volumes.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/json_writer.h"
#include "doc/doc.h"
#include "engine/engine.h"
#include "init/layout.h"

/* names of the pod's volumes */
#define VOLUME_PROGRAM "skep"
#define VOLUME_FILES   "files"
#define VOLUME_LOG     "log"
#define VOLUME_RUN     "run"
#define VOLUME_PRIVATE "private"
#define VOLUME_SHM     "shm"

enum { VOLUME_NAME_SIZE = 32 };

void pod_amount_write(struct json_writer *json, const char *resource, uint64_t amount,
                      const char *unit)
{
    char text[40];
    snprintf(text, sizeof text, "%llu%s", (unsigned long long)amount, unit);
    json_key_string(json, resource, text);
}

/* --- storages --- */

/* The first mount of the same claim. */
static size_t first_of(const struct container *container, size_t i)
{
    const char *claim = container->mounts[i].claim;
    for (size_t j = 0; claim && j < i; j++)
        if (container->mounts[j].claim && strcmp(container->mounts[j].claim, claim) == 0)
            return j;
    return i;
}

static void volume_name(char name[VOLUME_NAME_SIZE], const struct container *container, size_t i)
{
    snprintf(name, VOLUME_NAME_SIZE, "storage-%zu", first_of(container, i));
}

/* The API server makes keys of paths (metadata.managedFields), in which a character may take seven
 * bytes, and objects are read with keys of DOC_KEY_MAX at most: one pod that cannot be read would
 * hold up all that is heard of the others. */
enum { MOUNT_PATH_MAX = 512 };
static_assert(7 * MOUNT_PATH_MAX + 64 <= DOC_KEY_MAX, "a key of a path that cannot be read");

int pod_mounts_check(const struct container *container, struct err *err)
{
    for (size_t i = 0; i < container->mount_count; i++) {
        const struct engine_mount *mount = &container->mounts[i];
        assert(mount->claim ? mount->claim_folder != NULL : mount->source[0] == '/');
        if (mount->is_root_squashed)
            return err_fail(err, ERR_UNSUPPORTED, "",
                            "the storage at %.100s has rootSquash, and tasks of the Kubernetes "
                            "engine have the node's user ids",
                            mount->target);
        if (text_find(text_of(mount->target), TEXT(":")) != SIZE_MAX)
            return err_fail(err, ERR_UNSUPPORTED, "",
                            "a pod can have nothing mounted at %.100s: the path has a \":\"",
                            mount->target);
        if (strlen(mount->target) > MOUNT_PATH_MAX)
            return err_fail(err, ERR_UNSUPPORTED, "",
                            "a pod can have nothing mounted at %.100s...: the path has more than "
                            "%d bytes",
                            mount->target, MOUNT_PATH_MAX);
    }
    return 0;
}

/* --- in the container --- */

/* `sub_path`: one file of the volume; NULL: the whole of it. */
static void mount_write(struct json_writer *json, const char *volume, const char *path,
                        const char *sub_path, bool is_read_only)
{
    json_object(json);
    json_key_string(json, "name", volume);
    json_key_string(json, "mountPath", path);
    if (sub_path)
        json_key_string(json, "subPath", sub_path);
    if (is_read_only)
        json_key_bool(json, "readOnly", true);
    json_object_end(json);
}

void pod_mounts_write(struct json_writer *json, const struct container *container)
{
    json_key(json, "volumeMounts");
    json_array(json);
    mount_write(json, VOLUME_PROGRAM, "/skep", NULL, true);
    for (size_t i = 0; i < container->file_count; i++) {
        char path[300];
        snprintf(path, sizeof path, "/skep/%.250s", container->files[i].name);
        mount_write(json, VOLUME_FILES, path, container->files[i].name, true);
    }
    mount_write(json, VOLUME_LOG, LAYOUT_LOG, NULL, false);
    mount_write(json, VOLUME_RUN, LAYOUT_RUN, NULL, false);
    mount_write(json, VOLUME_PRIVATE, LAYOUT_PRIVATE, NULL, false);
    if (container->shm_mib > 0)
        mount_write(json, VOLUME_SHM, "/dev/shm", NULL, false);
    for (size_t i = 0; i < container->mount_count; i++) {
        const struct engine_mount *mount = &container->mounts[i];
        char volume[VOLUME_NAME_SIZE];
        volume_name(volume, container, i);
        mount_write(json, volume, mount->target,
                    mount->claim && mount->claim_folder[0] ? mount->claim_folder : NULL,
                    mount->is_read_only);
    }
    json_array_end(json);
}

void pod_program_mount_write(struct json_writer *json)
{
    json_key(json, "volumeMounts");
    json_array(json);
    mount_write(json, VOLUME_PROGRAM, "/skep", NULL, false);
    json_array_end(json);
}

/* --- in the pod --- */

/* In memory or on the node's disk; 0: without a limit. */
static void space_write(struct json_writer *json, const char *name, bool is_memory,
                        uint64_t most_mib)
{
    json_object(json);
    json_key_string(json, "name", name);
    json_key(json, "emptyDir");
    json_object(json);
    if (is_memory)
        json_key_string(json, "medium", "Memory");
    if (most_mib > 0)
        pod_amount_write(json, "sizeLimit", most_mib, "Mi");
    json_object_end(json);
    json_object_end(json);
}

static void files_write(struct json_writer *json, const struct container *container,
                        const char *secret)
{
    json_object(json);
    json_key_string(json, "name", VOLUME_FILES);
    json_key(json, "secret");
    json_object(json);
    json_key_string(json, "secretName", secret);
    json_key_int(json, "defaultMode", 0444); /* the image's user must read them */
    json_key(json, "items");
    json_array(json);
    for (size_t i = 0; i < container->file_count; i++) {
        json_object(json);
        json_key_string(json, "key", container->files[i].name);
        json_key_string(json, "path", container->files[i].name);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
    json_object_end(json);
}

/* A claim, or a folder of the node. A claim that is mounted twice is one volume: a kubelet waits
 * for ever for the second of two that name the same. */
static void storage_write(struct json_writer *json, const struct container *container, size_t i)
{
    const struct engine_mount *mount = &container->mounts[i];
    char name[VOLUME_NAME_SIZE];
    if (first_of(container, i) != i)
        return;
    volume_name(name, container, i);
    json_object(json);
    json_key_string(json, "name", name);
    json_key(json, mount->claim ? "persistentVolumeClaim" : "hostPath");
    json_object(json);
    if (mount->claim) {
        json_key_string(json, "claimName", mount->claim);
    } else {
        json_key_string(json, "path", mount->source);
        json_key_string(json, "type", "Directory"); /* a node without it does not get one made */
    }
    json_object_end(json);
    json_object_end(json);
}

void pod_volumes_write(struct json_writer *json, const struct container *container,
                       uint64_t log_mib, const char *secret)
{
    json_key(json, "volumes");
    json_array(json);
    space_write(json, VOLUME_PROGRAM, false, 0);
    files_write(json, container, secret);
    space_write(json, VOLUME_LOG, false, log_mib);
    space_write(json, VOLUME_RUN, false, 0);
    space_write(json, VOLUME_PRIVATE, true, LAYOUT_PRIVATE_MIB);
    if (container->shm_mib > 0)
        space_write(json, VOLUME_SHM, true, container->shm_mib);
    for (size_t i = 0; i < container->mount_count; i++)
        storage_write(json, container, i);
    json_array_end(json);
}
