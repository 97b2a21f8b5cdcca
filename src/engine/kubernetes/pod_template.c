#include "engine/kubernetes/pod_template.h"

#include <assert.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "engine/kubernetes/claim.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/pod_object.h"

#define KEY "engine.kubernetes.podTemplate"

/* --- what is Skep's alone --- */

static bool is_any(struct text word, const char *const *words)
{
    for (; *words; words++)
        if (text_is(word, *words))
            return true;
    return false;
}

static int taken(const char *where, struct text key, struct err *err)
{
    return err_fail(err, ERR_INVALID, KEY, "%s%.*s is Skep's", where,
                    (int)(key.length < 100 ? key.length : 100), key.at);
}

/* Keys that a map must not have; `allowed`: those that it may, NULL: all others. */
static int keys_check(const struct doc *map, const char *where, const char *const *refused,
                      const char *const *allowed, struct err *err)
{
    if (!map)
        return 0;
    if (map->kind != DOC_MAP)
        return err_fail(err, ERR_INVALID, KEY, "%s must be a map", where);
    for (size_t i = 0; i < map->as.map.count; i++) {
        const struct text key = map->as.map.entries[i].key;
        if ((refused && is_any(key, refused)) || (allowed && !is_any(key, allowed)))
            return taken(where, key, err);
    }
    return 0;
}

static int prefixes_check(const struct doc *map, const char *where, struct err *err)
{
    for (size_t i = 0; i < doc_count(map); i++) {
        const struct text key = map->as.map.entries[i].key;
        if (text_starts(key, TEXT("skep.internal/")) ||
            text_is(key, "app.kubernetes.io/managed-by"))
            return taken(where, key, err);
    }
    return 0;
}

static int metadata_check(const struct doc *metadata, struct err *err)
{
    static const char *const allowed[] = {"labels", "annotations", NULL};
    int code = keys_check(metadata, "metadata.", NULL, allowed, err);
    for (size_t i = 0; code == 0 && allowed[i]; i++)
        code = keys_check(doc_get(metadata, allowed[i]), "metadata.", NULL, NULL, err);
    if (code == 0)
        code = prefixes_check(doc_get(metadata, "labels"), "metadata.labels.", err);
    if (code == 0)
        code = prefixes_check(doc_get(metadata, "annotations"), "metadata.annotations.", err);
    return code;
}

static bool is_skeps_volume(const char *name)
{
    static const char *const own[] = {"skep", "files", "log", "run", "private", "shm", NULL};
    return is_any(text_of(name), own) || text_starts(text_of(name), TEXT("storage-"));
}

static bool is_skeps_path(struct text path)
{
    return text_is(path, "/skep") || text_starts(path, TEXT("/skep/")) || text_is(path, "/dev/shm");
}

/* A list of maps; each item's `key` must be there, and none of Skep's. */
static int items_check(const struct doc *list, const char *where, const char *key,
                       bool (*is_skeps)(const struct doc *item), struct err *err)
{
    if (!list)
        return 0;
    if (list->kind != DOC_LIST)
        return err_fail(err, ERR_INVALID, KEY, "%s must be a list", where);
    for (size_t i = 0; i < list->as.list.count; i++) {
        const struct doc *item = list->as.list.items[i];
        const char *name = object_string(item, key);
        if (!name[0])
            return err_fail(err, ERR_INVALID, KEY, "%s[%zu] has no %s", where, i, key);
        if (is_skeps(item))
            return err_fail(err, ERR_INVALID, KEY, "%s: %.100s is Skep's", where, name);
    }
    return 0;
}

static bool volume_is_skeps(const struct doc *item)
{
    return is_skeps_volume(object_string(item, "name"));
}

static bool mount_is_skeps(const struct doc *item)
{
    return is_skeps_path(text_of(object_string(item, "mountPath")));
}

static bool variable_is_skeps(const struct doc *item)
{
    const char *name = object_string(item, "name");
    return strcmp(name, "NVIDIA_VISIBLE_DEVICES") == 0 || strcmp(name, POD_ADDRESS_VARIABLE) == 0;
}

static bool claim_is_skeps(const struct doc *item)
{
    return strcmp(object_string(item, "name"), CLAIM_REQUEST) == 0;
}

static bool none_is_skeps(const struct doc *item)
{
    (void)item;
    return false;
}

static int container_check(const struct doc *container, const char *list, const char *name,
                           struct err *err)
{
    static const char *const refused[] = {"image",
                                          "command",
                                          "args",
                                          "restartPolicy",
                                          "stdin",
                                          "tty",
                                          "workingDir",
                                          "terminationMessagePath",
                                          "terminationMessagePolicy",
                                          NULL};
    static const char *const amounts[] = {"cpu", "memory", NULL};
    const struct doc *resources = doc_get(container, "resources");
    char where[80];
    snprintf(where, sizeof where, "spec.%s: %s: ", list, name);
    if (strcmp(object_string(container, "name"), name) != 0)
        return err_fail(err, ERR_INVALID, KEY,
                        "spec.%s: the only one is \"%s\": a pod with other programs would not end "
                        "with its task",
                        list, name);
    int code = keys_check(container, where, refused, NULL, err);
    if (code == 0)
        code = keys_check(doc_get(resources, "limits"), where, amounts, NULL, err);
    if (code == 0)
        code = keys_check(doc_get(resources, "requests"), where, amounts, NULL, err);
    if (code == 0)
        code = items_check(doc_get(container, "env"), "env", "name", variable_is_skeps, err);
    if (code == 0)
        code = items_check(doc_get(container, "volumeMounts"), "volumeMounts", "mountPath",
                           mount_is_skeps, err);
    return code;
}

static int spec_check(const struct doc *spec, struct err *err)
{
    static const char *const refused[] = {"nodeName",
                                          "restartPolicy",
                                          "hostNetwork",
                                          "hostUsers",
                                          "ephemeralContainers",
                                          "schedulerName",
                                          "nodeSelector",
                                          "affinity",
                                          "activeDeadlineSeconds",
                                          NULL};
    static const struct {
        const char *list, *name;
    } containers[] = {{"containers", POD_CONTAINER_TASK}, {"initContainers", POD_CONTAINER_INIT}};
    int code = keys_check(spec, "spec.", refused, NULL, err);
    if (code == 0)
        code = items_check(doc_get(spec, "volumes"), "spec.volumes", "name", volume_is_skeps, err);
    if (code == 0)
        code = items_check(doc_get(spec, "resourceClaims"), "spec.resourceClaims", "name",
                           claim_is_skeps, err);
    for (size_t i = 0; code == 0 && i < COUNT_OF(containers); i++) {
        const struct doc *list = doc_get(spec, containers[i].list);
        code = items_check(list, containers[i].list, "name", none_is_skeps, err);
        for (size_t j = 0; code == 0 && j < doc_count(list); j++)
            code = container_check(list->as.list.items[j], containers[i].list, containers[i].name,
                                   err);
    }
    return code;
}

int pod_template_read(struct text bytes, struct arena *arena, const struct doc **template_,
                      struct err *err)
{
    static const char *const parts[] = {"apiVersion", "kind", "metadata", "spec", NULL};
    cleanup_problems struct problems problems;
    *template_ = NULL;
    problems_init(&problems, arena);
    const struct doc *doc = doc_parse(bytes, DOC_YAML, arena, &problems);
    if (!doc || problems.error_count > 0)
        return err_fail(err, ERR_INVALID, KEY, "line %u: %.200s", problems.items[0].place.line,
                        problems.items[0].text);
    if (doc->kind == DOC_NULL)
        return 0;
    if (doc->kind != DOC_MAP)
        return err_fail(err, ERR_INVALID, KEY, "it must be a map, a part of a Pod");
    int code = keys_check(doc, "", NULL, parts, err);
    if (code == 0)
        code = metadata_check(doc_get(doc, "metadata"), err);
    if (code == 0)
        code = spec_check(doc_get(doc, "spec"), err);
    if (code == 0)
        *template_ = doc;
    return code;
}

/* --- what a task has mounted --- */

static struct text path_trimmed(const char *path)
{
    struct text text = text_of(path);
    while (text.length > 1 && text.at[text.length - 1] == '/')
        text.length--;
    return text;
}

bool pod_template_mounts_at(const struct doc *template_, const char *path)
{
    const struct doc *containers = doc_get(doc_get(template_, "spec"), "containers");
    for (size_t i = 0; i < doc_count(containers); i++) {
        const struct doc *mounts = doc_get(containers->as.list.items[i], "volumeMounts");
        for (size_t j = 0; j < doc_count(mounts); j++) {
            const char *own = object_string(mounts->as.list.items[j], "mountPath");
            if (text_equal(path_trimmed(own), path_trimmed(path)))
                return true;
        }
    }
    return false;
}

/* --- merged --- */

static void merge(struct json_writer *json, const struct doc *pod, const struct doc *other);

static void value_write(struct json_writer *json, const struct doc *value)
{
    cleanup_buf struct buf bytes = BUF_INIT;
    int code = doc_to_json(value, 2 * POD_TEMPLATE_BYTES_MAX + DOC_BYTES_MAX, &bytes);
    assert(code == 0); /* both were read within these bounds */
    (void)code;
    json_raw(json, buf_as_text(&bytes));
}

/* What tells an item of a list from the others; "": nothing does. */
static const char *identity(const struct doc *item)
{
    const char *path = object_string(item, "mountPath");
    return path[0] ? path : object_string(item, "name");
}

static const struct doc *item_find(const struct doc *list, const struct doc *like)
{
    const char *name = identity(like);
    for (size_t i = 0; name[0] && i < doc_count(list); i++)
        if (strcmp(identity(list->as.list.items[i]), name) == 0)
            return list->as.list.items[i];
    return NULL;
}

static bool is_list_of_maps(const struct doc *list)
{
    return list->kind == DOC_LIST && doc_count(list) > 0 && list->as.list.items[0]->kind == DOC_MAP;
}

static void lists_merge(struct json_writer *json, const struct doc *pod, const struct doc *other)
{
    json_array(json);
    for (size_t i = 0; i < doc_count(pod); i++)
        merge(json, pod->as.list.items[i], item_find(other, pod->as.list.items[i]));
    for (size_t i = 0; i < doc_count(other); i++)
        if (!item_find(pod, other->as.list.items[i]))
            value_write(json, other->as.list.items[i]);
    json_array_end(json);
}

static void key_write(struct json_writer *json, struct text key)
{
    char name[DOC_KEY_MAX + 1];
    snprintf(name, sizeof name, "%.*s", (int)key.length, key.at);
    json_key(json, name);
}

static void maps_merge(struct json_writer *json, const struct doc *pod, const struct doc *other)
{
    json_object(json);
    for (size_t i = 0; i < doc_count(pod); i++) {
        const struct doc_entry *entry = &pod->as.map.entries[i];
        key_write(json, entry->key);
        merge(json, entry->value, doc_find(other, entry->key));
    }
    for (size_t i = 0; i < doc_count(other); i++) {
        const struct doc_entry *entry = &other->as.map.entries[i];
        if (doc_find(pod, entry->key))
            continue;
        key_write(json, entry->key);
        value_write(json, entry->value);
    }
    json_object_end(json);
}

static void merge(struct json_writer *json, const struct doc *pod, const struct doc *other)
{
    if (!other)
        value_write(json, pod);
    else if (pod->kind == DOC_MAP && other->kind == DOC_MAP)
        maps_merge(json, pod, other);
    else if (is_list_of_maps(pod) && is_list_of_maps(other))
        lists_merge(json, pod, other);
    else
        value_write(json, other);
}

void pod_template_merge(struct text pod, const struct doc *template_, struct buf *out)
{
    cleanup_arena struct arena arena;
    cleanup_problems struct problems problems;
    struct json_writer json;
    arena_init(&arena);
    problems_init(&problems, &arena);
    const struct doc *doc = doc_parse(pod, DOC_JSON, &arena, &problems);
    assert(doc && doc->kind == DOC_MAP);
    json_init(&json, out);
    merge(&json, doc, template_);
}
