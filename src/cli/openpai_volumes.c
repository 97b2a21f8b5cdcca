#include "cli/openpai_volumes.h"
#include "base/arena.h"
#include "base/json_writer.h"
#include "cli/openpai.h"
#include <string.h>

#define VOLUMES "volumes.yaml"
#define LAYOUT  "layout.yaml"

/* ---- storages ---- */

static const struct doc *inner(const struct doc *doc, const char *first, const char *second)
{
    return doc_get_map(doc_get(doc, first), second);
}

static struct text name_of(const struct doc *object)
{
    return doc_get_text(doc_get(object, "metadata"), "name", "");
}

/* The volume to which a claim is bound; NULL: it is bound to none, or that is not there. */
static const struct doc *volume_of(const struct doc *items, const struct doc *claim)
{
    struct text name = doc_get_text(doc_get(claim, "spec"), "volumeName", "");
    for (size_t i = 0; i < items->as.list.count; i++) {
        const struct doc *item = items->as.list.items[i];
        if (text_is(doc_get_text(item, "kind", ""), "PersistentVolume") && name.length &&
            text_equal(name_of(item), name))
            return item;
    }
    return NULL;
}

static bool is_read_only(const struct doc *claim)
{
    const struct doc *modes = doc_get_list(doc_get(claim, "spec"), "accessModes");
    for (size_t i = 0; i < modes->as.list.count; i++)
        if (modes->as.list.items[i]->kind != DOC_STRING ||
            !text_is(modes->as.list.items[i]->as.string, "ReadOnlyMany"))
            return false;
    return modes->as.list.count > 0;
}

static void line(struct buf *out, const char *key, struct text value)
{
    struct json_writer json;
    buf_string(out, key);
    json_init(&json, out);
    json_text(&json, value);
    buf_char(out, '\n');
}

static void storage_write(const struct doc *claim, const struct doc *nfs, struct arena *arena,
                          struct buf *out)
{
    const struct text name = name_of(claim);
    const struct doc *labels = inner(claim, "metadata", "labels");
    line(out, "- name: ", name);
    line(out, "  directory: ", text_of(arena_format(arena, "/mnt/%.*s", TEXT_ARG(name))));
    if (text_is(doc_get_text(labels, "share", "true"), "false"))
        buf_string(out, "  share: false\n");
    if (is_read_only(claim))
        buf_string(out, "  readOnly: true\n");
    if (!nfs)
        return;
    buf_string(out, "  type: nfs\n");
    line(out, "  server: ", doc_get_text(nfs, "server", ""));
    line(out, "  path: ", doc_get_text(nfs, "path", ""));
}

/* A name becomes a folder. */
static bool is_folder_name(struct text name)
{
    return name.length && name.at[0] != '.' && !memchr(name.at, '/', name.length);
}

static void claim_take(const struct doc *items, const struct doc *claim, struct arena *arena,
                       struct openpai_output *output)
{
    const struct doc *volume = volume_of(items, claim);
    const struct doc *nfs = doc_get_kind(doc_get(volume, "spec"), "nfs", DOC_MAP);
    const struct text name = name_of(claim);
    const char *path = arena_format(arena, "storages: %.*s", TEXT_ARG(name));
    if (!is_folder_name(name) || !volume) {
        openpai_note(output, NOTE_GONE, VOLUMES, path,
                     "the claim is bound to no volume of this file, so it was no storage");
        return;
    }
    if (!output->has_storages)
        buf_string(&output->skepd, "storages:\n");
    output->has_storages = true;
    storage_write(claim, nfs, arena, &output->skepd);
    openpai_note(output, NOTE_TAKEN, VOLUMES, path, "it stands in storages");
    openpai_note(output, NOTE_TO_DO, VOLUMES, path,
                 nfs ? arena_format(arena, "mount %.*s:%.*s at /mnt/%.*s on every machine",
                                    TEXT_ARG(doc_get_text(nfs, "server", "")),
                                    TEXT_ARG(doc_get_text(nfs, "path", "")), TEXT_ARG(name))
                     : arena_format(arena,
                                    "its volume is no NFS: mount what it is at /mnt/%.*s on every "
                                    "machine",
                                    TEXT_ARG(name)));
}

void openpai_storages(const struct doc *volumes, struct arena *arena, struct openpai_output *output)
{
    const struct doc *items = doc_get_list(volumes, "items");
    for (size_t i = 0; i < items->as.list.count; i++) {
        const struct doc *item = items->as.list.items[i];
        if (text_is(doc_get_text(item, "kind", ""), "PersistentVolumeClaim"))
            claim_take(items, item, arena, output);
    }
    if (!doc_count(items))
        openpai_note(output, NOTE_TO_DO, VOLUMES, "items",
                     "it is no list with items, as kubectl get pvc,pv -o yaml prints it");
}

/* ---- nodes ---- */

/* Of the kind of machine that the worker is; layouts before OpenPAI 1.3 call it `gpu`. */
static const struct doc *device_of(const struct doc *layout, const struct doc *machine)
{
    const struct text kind = doc_get_text(machine, "machine-type", "");
    const struct doc *skus = doc_get_map(layout, "machine-sku");
    const struct doc *sku = kind.length ? doc_find(skus, kind) : NULL;
    const struct doc *device = doc_get_kind(sku, "computing-device", DOC_MAP);
    return device ? device : doc_get_kind(sku, "gpu", DOC_MAP);
}

static bool is_worker(const struct doc *machine)
{
    return openpai_is_true(doc_get(machine, "pai-worker"));
}

struct text openpai_device(const struct doc *layout)
{
    const struct doc *machines = doc_get_list(layout, "machine-list");
    for (size_t i = 0; i < machines->as.list.count; i++) {
        const struct doc *machine = machines->as.list.items[i];
        const struct doc *device = is_worker(machine) ? device_of(layout, machine) : NULL;
        const struct text type = doc_get_text(device, "type", "");
        if (doc_get_int(device, "count", 0) > 0)
            /* the old key has the model there, and knows nothing but NVIDIA's */
            return text_find(type, TEXT("/")) < type.length ? type : TEXT("nvidia.com/gpu");
    }
    return TEXT("");
}

static const char nodes_head[] =
    "#!/bin/sh\n"
    "# The workers of an OpenPAI cluster, made Skep's. Run it as an administrator of the "
    "Kubernetes "
    "cluster\n"
    "# when OpenPAI's jobs have ended: from then on only pods that tolerate it come to these "
    "nodes.\n"
    "set -eu\n"
    "node() {\n"
    "    name=$1\n"
    "    shift\n"
    "    kubectl label --overwrite node \"$name\" pai-worker=true \"$@\"\n"
    "    kubectl taint --overwrite node \"$name\" skep.internal/dedicated=:NoSchedule\n"
    "}\n";

void openpai_nodes(const struct doc *layout, bool counts_gpus, struct arena *arena,
                   struct openpai_output *output)
{
    const struct doc *machines = doc_get_list(layout, "machine-list");
    struct buf *out = &output->nodes;
    size_t count = 0;
    for (size_t i = 0; i < machines->as.list.count; i++) {
        const struct doc *machine = machines->as.list.items[i];
        const struct text host = doc_get_text(machine, "hostname", "");
        struct text name = doc_get_text(machine, "nodename", "");
        const int64_t gpus = doc_get_int(device_of(layout, machine), "count", 0);
        name = name.length ? name : host;
        if (!is_worker(machine) || !name.length)
            continue;
        if (count++ == 0)
            buf_string(out, nodes_head);
        buf_string(out, "node ");
        buf_shell_word(out, name);
        if (counts_gpus && gpus > 0)
            buf_format(out, " nvidia.com/gpu.count=%lld", (long long)gpus);
        buf_char(out, '\n');
    }
    if (count > 0)
        openpai_note(output, NOTE_TO_DO, LAYOUT, "machine-list",
                     arena_format(arena, "run nodes.sh: it gives %zu nodes Skep's taint%s", count,
                                  counts_gpus ? ", and the number of their GPUs as a label, which "
                                                "without a device plugin nothing else says"
                                              : ""));
}
