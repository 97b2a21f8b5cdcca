#include "engine/local/cdi.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/document.h"
#include "engine/local/inventory.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include "sys/log.h"
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

void cdi_release(struct cdi *cdi)
{
    ARRAY_FREE(cdi);
}

int cdi_parse(struct cdi *cdi, struct text text, struct arena *arena, struct err *err)
{
    const struct doc *root = document_read(text, true, arena); /* JSON is YAML, too */
    const char *kind = document_string(root, "kind");
    const struct doc *devices = doc_get(root, "devices");
    if (!document_string(root, "cdiVersion")[0] || !strchr(kind, '/') || !document_count(devices))
        return err_fail(err, ERR_INVALID, "",
                        "a specification has cdiVersion, kind \"vendor/class\" and devices");
    if (cdi->count + document_count(devices) > CDI_DEVICES_MAX)
        return err_fail(err, ERR_TOO_BIG, "", "more than %d devices", CDI_DEVICES_MAX);
    for (size_t i = 0; i < document_count(devices); i++) {
        const struct doc *device = devices->as.list.items[i];
        if (document_string(device, "name")[0])
            *ARRAY_ADD(cdi) = (struct cdi_device){.kind = kind,
                                                  .name = document_string(device, "name"),
                                                  .edits = doc_get(device, "containerEdits"),
                                                  .edits_all = doc_get(root, "containerEdits")};
    }
    return 0;
}

static int is_specification(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return entry->d_name[0] != '.' && dot &&
           (strcmp(dot, ".json") == 0 || strcmp(dot, ".yaml") == 0);
}

void cdi_load(struct cdi *cdi, const char *const *directories, size_t count, struct arena *arena)
{
    for (size_t i = 0; i < count; i++) {
        struct dirent **names;
        int found = scandir(directories[i], &names, is_specification, alphasort);
        for (int j = 0; j < found; j++) {
            char path[1024];
            cleanup_buf struct buf text = BUF_INIT;
            struct err err = {0};
            snprintf(path, sizeof path, "%s/%s", directories[i], names[j]->d_name);
            if (file_read(path, CDI_FILE_MAX, &text, &err) < 0 ||
                cdi_parse(cdi, buf_as_text(&text), arena, &err) < 0)
                log_warning("engine", "%s: %s", path, err.text);
            free(names[j]);
        }
        if (found >= 0)
            free(names);
    }
}

const struct cdi_device *cdi_find(const struct cdi *cdi, const char *kind, const char *name)
{
    for (size_t i = cdi->count; i-- > 0;)
        if (strcmp(cdi->items[i].kind, kind) == 0 && strcmp(cdi->items[i].name, name) == 0)
            return &cdi->items[i];
    return NULL;
}

/* Arrays that grow while the edits of several devices are gathered. */
struct gathered {
    struct arena *arena;
    struct oci_mount *mounts;
    struct oci_device *devices;
    struct oci_hook *hooks;
    const char **env;
    size_t mount_count, device_count, hook_count, env_count;
};

static bool device_is_there(const struct gathered *all, const char *path)
{
    for (size_t i = 0; i < all->device_count; i++)
        if (strcmp(all->devices[i].path, path) == 0)
            return true;
    return false;
}

static int device_add(struct gathered *all, const struct doc *node, struct err *err)
{
    const char *path = document_string(node, "path"), *host = document_string(node, "hostPath");
    const char *type = document_string(node, "type"),
               *access = document_string(node, "permissions");
    struct stat stat_buf;
    if (device_is_there(all, path))
        return 0;
    bool is_there = stat(host[0] ? host : path, &stat_buf) == 0;
    bool has_numbers = doc_get(node, "major") && doc_get(node, "minor");
    if (!is_there && !has_numbers)
        return err_fail(err, ERR_NOT_FOUND, "", "there is no device %s", host[0] ? host : path);
    struct oci_device *device = &all->devices[all->device_count++];
    *device = (struct oci_device){.path = path, .access = access[0] ? access : "rwm"};
    if (type[0])
        device->type = type[0];
    else
        device->type = (char)(is_there && S_ISBLK(stat_buf.st_mode) ? 'b' : 'c');
    device->major = has_numbers ? (uint32_t)document_int(node, "major") : major(stat_buf.st_rdev);
    device->minor = has_numbers ? (uint32_t)document_int(node, "minor") : minor(stat_buf.st_rdev);
    device->mode = doc_get(node, "fileMode") ? (uint32_t)document_int(node, "fileMode")
                   : is_there                ? stat_buf.st_mode & 07777
                                             : 0666;
    device->uid = doc_get(node, "uid") ? (uint32_t)document_int(node, "uid")
                  : is_there           ? stat_buf.st_uid
                                       : 0;
    device->gid = doc_get(node, "gid") ? (uint32_t)document_int(node, "gid")
                  : is_there           ? stat_buf.st_gid
                                       : 0;
    return 0;
}

/* Mounts of a specification are bind mounts; their options come without "bind" as a rule. */
static void mount_add(struct gathered *all, const struct doc *mount)
{
    size_t count;
    const char *const *options = document_strings(mount, "options", all->arena, &count);
    const char **with_bind = ARENA_ARRAY(all->arena, const char *, count + 2);
    size_t kept = 0;
    bool has_bind = false;
    for (size_t i = 0; i < count; i++) {
        has_bind |= strcmp(options[i], "bind") == 0 || strcmp(options[i], "rbind") == 0;
        with_bind[kept++] = options[i];
    }
    if (!has_bind)
        with_bind[kept++] = "rbind";
    all->mounts[all->mount_count++] =
        (struct oci_mount){.source = document_string(mount, "hostPath"),
                           .target = document_string(mount, "containerPath"),
                           .options = with_bind,
                           .option_count = kept};
}

static int edits_add(struct gathered *all, const struct doc *edits, struct err *err)
{
    const struct doc *nodes = doc_get(edits, "deviceNodes"), *mounts = doc_get(edits, "mounts"),
                     *hooks = doc_get(edits, "hooks");
    size_t count;
    const char *const *env = document_strings(edits, "env", all->arena, &count);
    for (size_t i = 0; i < count; i++)
        all->env[all->env_count++] = env[i];
    for (size_t i = 0; i < document_count(mounts); i++)
        mount_add(all, mounts->as.list.items[i]);
    for (size_t i = 0; i < document_count(hooks); i++) {
        const struct doc *item = hooks->as.list.items[i];
        struct oci_hook *hook = &all->hooks[all->hook_count++];
        hook->kind = document_string(item, "hookName");
        hook->path = document_string(item, "path");
        hook->args = document_strings(item, "args", all->arena, &hook->arg_count);
        hook->env = document_strings(item, "env", all->arena, &hook->env_count);
        hook->timeout_s = document_int(item, "timeout");
    }
    for (size_t i = 0; i < document_count(nodes); i++) {
        int code = device_add(all, nodes->as.list.items[i], err);
        if (code < 0)
            return code;
    }
    return 0;
}

static void edits_count(const struct doc *edits, struct gathered *all)
{
    all->device_count += document_count(doc_get(edits, "deviceNodes"));
    all->mount_count += document_count(doc_get(edits, "mounts"));
    all->hook_count += document_count(doc_get(edits, "hooks"));
    all->env_count += document_count(doc_get(edits, "env"));
}

int cdi_edits(const struct cdi_device *const *devices, size_t count, struct arena *arena,
              struct device_edits *edits, struct err *err)
{
    struct gathered all = {.arena = arena};
    for (size_t i = 0; i < count; i++) {
        edits_count(devices[i]->edits, &all);
        edits_count(devices[i]->edits_all, &all);
    }
    all.mounts = ARENA_ARRAY(arena, struct oci_mount, all.mount_count);
    all.devices = ARENA_ARRAY(arena, struct oci_device, all.device_count);
    all.hooks = ARENA_ARRAY(arena, struct oci_hook, all.hook_count);
    all.env = ARENA_ARRAY(arena, const char *, all.env_count);
    all.mount_count = all.device_count = all.hook_count = all.env_count = 0;
    int code = 0;
    for (size_t i = 0; i < count && code == 0; i++) {
        bool is_new_file = true;
        for (size_t j = 0; j < i; j++)
            is_new_file &= devices[j]->edits_all != devices[i]->edits_all;
        if (is_new_file)
            code = edits_add(&all, devices[i]->edits_all, err);
        if (code == 0)
            code = edits_add(&all, devices[i]->edits, err);
    }
    *edits = (struct device_edits){all.mounts, all.mount_count, all.devices, all.device_count,
                                   all.hooks,  all.hook_count,  all.env,     all.env_count};
    return code;
}
