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

static bool is_shared(const struct doc *claim)
{
    const struct doc *labels = inner(claim, "metadata", "labels");
    return !text_is(doc_get_text(labels, "share", "true"), "false");
}

/* Tasks that run here need the folder, pods the claim. */
static void storage_write(const struct doc *claim, const struct doc *nfs, bool is_local,
                          struct arena *arena, struct buf *out)
{
    const struct text name = name_of(claim);
    line(out, "- name: ", name);
    if (is_local)
        line(out, "  directory: ", text_of(arena_format(arena, "/mnt/%.*s", TEXT_ARG(name))));
    else
        line(out, "  claim: ", name);
    if (!is_shared(claim))
        buf_string(out, "  share: false\n");
    if (is_read_only(claim))
        buf_string(out, "  readOnly: true\n");
    if (!nfs)
        return;
    buf_string(out, "  type: nfs\n");
    line(out, "  server: ", doc_get_text(nfs, "server", ""));
    line(out, "  path: ", doc_get_text(nfs, "path", ""));
}

/* ---- claims: pods mount those of their own namespace alone ---- */

static const char claims_head[] =
    "# The storages of an OpenPAI cluster for the namespace " OPENPAI_NAMESPACE
    ": for each one a second volume of\n"
    "# what it was, and a claim that is bound to it. Nothing that OpenPAI has is changed:\n"
    "# kubectl apply -f claims.yaml\n";

static void object_begin(struct json_writer *json, struct buf *out, const char *kind)
{
    buf_string(out, "---\n");
    json_init(json, out);
    json_object(json);
    json_key_string(json, "apiVersion", "v1");
    json_key_string(json, "kind", kind);
    json_key(json, "metadata");
    json_object(json);
}

static void value_write(struct json_writer *json, const struct doc *value)
{
    cleanup_buf struct buf text = BUF_INIT;
    if (doc_to_json(value, DOC_BYTES_MAX, &text) < 0)
        buf_string(&text, "null"); /* it has been read from less */
    json_raw(json, buf_as_text(&text));
}

/* What stands behind it stays when the volume is deleted. */
static void volume_write(const struct doc *claim, const struct doc *volume, const char *name,
                         struct buf *out)
{
    static const char *const own[] = {"claimRef", "persistentVolumeReclaimPolicy",
                                      "storageClassName", NULL};
    const struct doc *spec = doc_get_map(volume, "spec");
    struct json_writer json;
    object_begin(&json, out, "PersistentVolume");
    json_key_string(&json, "name", name);
    json_object_end(&json);
    json_key(&json, "spec");
    json_object(&json);
    for (size_t i = 0; i < spec->as.map.count; i++) {
        const struct doc_entry *entry = &spec->as.map.entries[i];
        bool is_own = false;
        for (const char *const *key = own; *key; key++)
            is_own = is_own || text_is(entry->key, *key);
        if (is_own)
            continue;
        json_key(&json, entry->key.at);
        value_write(&json, entry->value);
    }
    json_key_string(&json, "storageClassName", "");
    json_key_string(&json, "persistentVolumeReclaimPolicy", "Retain");
    json_key(&json, "claimRef");
    json_object(&json);
    json_key_string(&json, "namespace", OPENPAI_NAMESPACE);
    json_key_text(&json, "name", name_of(claim));
    json_object_end(&json);
    json_object_end(&json);
    json_object_end(&json);
    buf_char(out, '\n');
}

static void claim_write(const struct doc *claim, const struct doc *volume, const char *name,
                        struct buf *out)
{
    const struct doc *spec = doc_get_map(claim, "spec");
    struct text amount = doc_get_text(inner(volume, "spec", "capacity"), "storage", "");
    struct json_writer json;
    if (!amount.length)
        amount = doc_get_text(inner(spec, "resources", "requests"), "storage", "1Gi");
    object_begin(&json, out, "PersistentVolumeClaim");
    json_key_text(&json, "name", name_of(claim));
    json_key_string(&json, "namespace", OPENPAI_NAMESPACE);
    json_object_end(&json);
    json_key(&json, "spec");
    json_object(&json);
    json_key(&json, "accessModes");
    value_write(&json, doc_get_list(doc_get(volume, "spec"), "accessModes"));
    json_key_string(&json, "storageClassName", "");
    json_key_string(&json, "volumeName", name);
    json_key(&json, "resources");
    json_object(&json);
    json_key(&json, "requests");
    json_object(&json);
    json_key_text(&json, "storage", amount);
    json_object_end(&json);
    json_object_end(&json);
    json_object_end(&json);
    json_object_end(&json);
    buf_char(out, '\n');
}

static void claims_write(const struct doc *claim, const struct doc *volume, struct arena *arena,
                         struct buf *out)
{
    const char *name = arena_format(arena, "skep-%.*s", TEXT_ARG(name_of(claim)));
    if (!out->length)
        buf_string(out, claims_head);
    volume_write(claim, volume, name, out);
    claim_write(claim, volume, name, out);
}

/* ---- each claim ---- */

/* A name becomes a folder. */
static bool is_folder_name(struct text name)
{
    return name.length && name.at[0] != '.' && !memchr(name.at, '/', name.length);
}

static const char *folder_words(const struct doc *nfs, struct text name, struct arena *arena)
{
    if (!nfs)
        return arena_format(arena,
                            "its volume is no NFS: mount what it is at /mnt/%.*s on every machine",
                            TEXT_ARG(name));
    return arena_format(arena, "mount %.*s:%.*s at /mnt/%.*s on every machine",
                        TEXT_ARG(doc_get_text(nfs, "server", "")),
                        TEXT_ARG(doc_get_text(nfs, "path", "")), TEXT_ARG(name));
}

static const char *claim_words(const struct doc *nfs)
{
    if (nfs)
        return "kubectl apply -f claims.yaml makes its claim in the namespace " OPENPAI_NAMESPACE;
    return "kubectl apply -f claims.yaml makes its claim in the namespace " OPENPAI_NAMESPACE
           "; its volume is no NFS: see that its driver takes a second volume of the same, and "
           "copy the secrets that it names";
}

static void claim_take(const struct doc *items, const struct doc *claim, bool is_local,
                       struct arena *arena, struct openpai_output *output)
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
    storage_write(claim, nfs, is_local, arena, &output->skepd);
    if (!is_local)
        claims_write(claim, volume, arena, &output->claims);
    openpai_note(output, NOTE_TAKEN, VOLUMES, path,
                 is_local ? "it stands in storages, as a folder"
                          : "it stands in storages, as a claim");
    openpai_note(output, NOTE_TO_DO, VOLUMES, path,
                 is_local ? folder_words(nfs, name, arena) : claim_words(nfs));
}

void openpai_storages(const struct doc *volumes, bool is_local, struct arena *arena,
                      struct openpai_output *output)
{
    const struct doc *items = doc_get_list(volumes, "items");
    for (size_t i = 0; i < items->as.list.count; i++) {
        const struct doc *item = items->as.list.items[i];
        if (text_is(doc_get_text(item, "kind", ""), "PersistentVolumeClaim"))
            claim_take(items, item, is_local, arena, output);
    }
    if (!doc_count(items))
        openpai_note(output, NOTE_TO_DO, VOLUMES, "items",
                     "it is no list with items, as kubectl get pvc,pv -o yaml prints it");
    if (output->has_storages && !is_local)
        openpai_note(output, NOTE_TO_DO, VOLUMES, "storages",
                     "the portal and skep storage reach the files of a storage without a job where "
                     "skepd has it mounted, too, and it has its folder as directory");
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
