/* extras: gang, storages, placement, notifications, and what Skep adds. */
#include <stdio.h>

#include "spec/fields.h"
#include "spec/read.h"

static const char *mount_path(struct spec_reader *reader, struct text name, struct text path)
{
    if (path.length == 0)
        return arena_format(reader->arena, "/mnt/%.*s", TEXT_ARG(name));
    while (path.length > 1 && path.at[path.length - 1] == '/')
        path.length--;
    return arena_format(reader->arena, "%s%.*s", path.at[0] == '/' ? "" : "/", TEXT_ARG(path));
}

static bool has_parent_step(struct text path)
{
    while (path.at) {
        if (text_is(text_cut(&path, '/'), ".."))
            return true;
    }
    return false;
}

/* Where images and the platform have what a task needs to start. */
static bool is_mountable(const char *path)
{
    static const char *const taken[] = {"/proc", "/sys", "/dev", "/skep"};
    if (strcmp(path, "/") == 0)
        return false;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        const size_t length = strlen(taken[i]);
        if (strncmp(path, taken[i], length) == 0 && (!path[length] || path[length] == '/'))
            return false;
    }
    return true;
}

void spec_storage_add(struct spec *spec, const char *name)
{
    struct spec_storage *storages =
        ARENA_ARRAY(spec->arena, struct spec_storage, spec->storage_count + 1);
    if (spec->storage_count)
        memcpy(storages, spec->storages, spec->storage_count * sizeof *storages);
    storages[spec->storage_count++] =
        (struct spec_storage){.name = arena_copy(spec->arena, text_of(name)),
                              .mount_path = arena_format(spec->arena, "/mnt/%s", name)};
    spec->storages = storages;
}

void storage_add(struct spec_reader *reader, const struct doc *doc, const char *path,
                 struct text name, struct text where)
{
    struct spec *spec = reader->spec;
    if (spec->storage_count == SPEC_LIST_MAX) {
        reader_problem(reader, doc, "more than 256 storages", "%s", path);
        return;
    }
    if (name.length == 0 || name.length > SPEC_NAME_MAX || where.length > SPEC_URI_MAX)
        return; /* the shape has complained */
    if (has_parent_step(where) || has_parent_step(name) || memchr(name.at, '/', name.length))
        reader_problem(reader, doc, "must not leave its directory", "%s", path);
    struct spec_storage storage = {.name = reader_copy(reader, name),
                                   .mount_path = mount_path(reader, name, where),
                                   .line = doc->place.line};
    if (!is_mountable(storage.mount_path))
        reader_problem(reader, doc, "cannot be mounted there: the platform needs the place", "%s",
                       path);
    for (size_t i = 0; i < spec->storage_count; i++)
        if (strcmp(spec->storages[i].mount_path, storage.mount_path) == 0)
            reader_problem(reader, doc, "another storage is mounted at the same place", "%s", path);
    *READER_ADD(reader, spec->storages, spec->storage_count) = storage;
}

static void storages_read(struct spec_reader *reader, const struct doc *list)
{
    if (!list)
        return;
    reader->spec->wants_default_storages = list->as.list.count == 0;
    reader->spec->default_storages_line = list->place.line;
    for (size_t i = 0; i < list->as.list.count && i < SPEC_LIST_MAX; i++) {
        const struct doc *item = list->as.list.items[i];
        char path[64];
        snprintf(path, sizeof path, "extras.storages[%zu]", i);
        storage_add(reader, item, path, doc_get_text(item, "name", ""),
                    doc_get_text(item, "mountPath", ""));
    }
}

/* `early` is what the field was called before OpenPAI 1.0. */
static const char *placement_text(struct spec_reader *reader, const struct doc *doc,
                                  const char *key, const char *early)
{
    const bool is_early = early && !doc_get_kind(doc, key, DOC_STRING);
    struct text text = doc_get_text(doc, is_early ? early : key, "");
    return text.length <= SPEC_NAME_MAX ? reader_copy(reader, text) : "";
}

/* Tasks that start one by one cannot be kept together. */
static void within_check(struct spec_reader *reader, const struct doc *doc, const char *type,
                         const char *path)
{
    if (type[0] && !reader->spec->is_gang)
        reader_warning(reader, doc_get(doc, "withinOneCell"),
                       "has no effect without gangAllocation", "%s", path);
}

static void placement_read(struct spec_reader *reader, const struct doc_entry *entry)
{
    struct spec_role *role = reader_role(reader, entry->key);
    const struct doc *doc = entry->value;
    if (!role) {
        struct doc at_key = {.place = entry->place};
        role_unknown(reader, &at_key, entry->key, false, "extras.hivedScheduler.taskRoles");
        return;
    }
    role->placement = (struct spec_placement){
        .sku_type = placement_text(reader, doc, "skuType", "gpuType"),
        .pinned_cell_id = placement_text(reader, doc, "pinnedCellId", "reservationId"),
        .affinity_group = placement_text(reader, doc, "affinityGroupName", NULL),
        .within_one_cell = placement_text(reader, doc, "withinOneCell", NULL)};
    char path[2 * SPEC_NAME_MAX];
    snprintf(path, sizeof path, "extras.hivedScheduler.taskRoles.%s.withinOneCell", role->name);
    within_check(reader, doc, role->placement.within_one_cell, path);
    if (role->placement.sku_type[0] && role->placement.pinned_cell_id[0])
        reader_problem(reader, doc, "skuType and pinnedCellId exclude each other",
                       "extras.hivedScheduler.taskRoles.%s", role->name);
}

/* One affinity group is placed in one chain: its roles must ask for the same. */
static void affinity_check(struct spec_reader *reader, const struct doc *hived)
{
    const struct spec *spec = reader->spec;
    for (size_t i = 1; i < spec->role_count; i++) {
        const struct spec_placement *mine = &spec->roles[i].placement;
        for (size_t j = 0; j < i && mine->affinity_group[0]; j++) {
            const struct spec_placement *other = &spec->roles[j].placement;
            if (strcmp(mine->affinity_group, other->affinity_group) != 0 ||
                (strcmp(mine->sku_type, other->sku_type) == 0 &&
                 strcmp(mine->pinned_cell_id, other->pinned_cell_id) == 0))
                continue;
            const struct doc *doc = doc_get(doc_get(hived, "taskRoles"), spec->roles[i].name);
            reader_problem(
                reader, doc,
                "roles of one affinity group must have the same skuType and pinnedCellId",
                "extras.hivedScheduler.taskRoles.%s", spec->roles[i].name);
            break;
        }
    }
}

static void hived_read(struct spec_reader *reader, const struct doc *hived)
{
    struct spec *spec = reader->spec;
    const struct doc *roles = doc_get_map(hived, "taskRoles");
    struct text class = doc_get_text(hived, "jobPriorityClass", "");
    spec->has_priority = true;
    if (text_is(class, "oppo"))
        spec->priority = SPEC_OPPO;
    else if (text_is(class, "test"))
        spec->priority = SPEC_TEST;
    else if (text_is(class, "prod"))
        spec->priority = SPEC_PROD;
    else if (text_is(class, "crit"))
        spec->priority = SPEC_CRIT;
    else
        spec->has_priority = false;
    spec->is_lazy_preemptible = doc_get_bool(hived, "lazyPreemptionEnable", false);
    spec->within_one_cell = placement_text(reader, hived, "withinOneCell", NULL);
    within_check(reader, hived, spec->within_one_cell, "extras.hivedScheduler.withinOneCell");
    spec->ignores_suggested_nodes = doc_get_bool(hived, "ignoreK8sSuggestedNodes", true);
    for (size_t i = 0; i < roles->as.map.count; i++)
        if (i < SPEC_ROLES_MAX)
            placement_read(reader, &roles->as.map.entries[i]);
    affinity_check(reader, hived);
}

static uint64_t seconds(const struct doc *doc, const char *key)
{
    int64_t value = doc_get_int(doc, key, 0);
    return value > 0 ? (uint64_t)value : 0;
}

void spec_extensions_read(struct spec_reader *reader, const struct doc *extras)
{
    struct spec *spec = reader->spec;
    const struct doc *notify = doc_get(extras, "jobStatusChangeNotification");
    const struct doc *hang = doc_get(extras, "hang");
    spec->notify_line = notify ? notify->place.line : 0;
    spec->notify =
        (struct spec_notifications){.running = doc_get_bool(notify, "running", false),
                                    .succeeded = doc_get_bool(notify, "succeeded", false),
                                    .stopped = doc_get_bool(notify, "stopped", false),
                                    .failed = doc_get_bool(notify, "failed", false),
                                    .retried = doc_get_bool(notify, "retried", false)};
    spec->time_limit_s = seconds(extras, "timeLimitSeconds");
    spec->hang_after_s = seconds(hang, "afterSeconds");
    spec->hang_retry = doc_get_bool(hang, "retry", false);
    spec->is_debug |= doc_get_bool(extras, "debug", false);
    struct text tag = doc_get_text(extras, "submitFrom", "");
    spec->tag = tag.length <= SPEC_NAME_MAX ? reader_copy(reader, tag) : "";
}

void spec_v2_extras_read(struct spec_reader *reader)
{
    const struct doc *extras = doc_get(reader->root, "extras");
    const struct doc *roles = doc_get(reader->root, "taskRoles");
    struct spec *spec = reader->spec;
    spec->is_gang = doc_get_bool(extras, "gangAllocation", true);
    spec->has_start_barrier = doc_get_bool(extras, "startBarrier", false);
    int64_t minutes = doc_get_int(extras, "startBarrierTimeout", 0);
    if (minutes > 0 && minutes <= 100000) /* else the shape has complained */
        spec->start_barrier_timeout_s = (uint32_t)minutes * 60;
    if (spec->has_start_barrier && !spec->is_gang)
        reader_problem(reader, doc_get(extras, "startBarrier"),
                       "needs gangAllocation: else the tasks need not have places together",
                       "extras.startBarrier");
    for (size_t i = 0; i < spec->role_count; i++)
        if (spec->is_gang && spec->roles[i].task_retry_count != 0)
            reader_warning(reader, doc_get(doc_get(roles, spec->roles[i].name), "taskRetryCount"),
                           "has no effect while extras.gangAllocation is on",
                           "taskRoles.%s.taskRetryCount", spec->roles[i].name);
    spec->wants_host_network = doc_get_bool(extras, "hostNetwork", false);
    storages_read(reader, doc_get_kind(extras, "storages", DOC_LIST));
    hived_read(reader, doc_get(extras, "hivedScheduler"));
    plugins_read(reader, extras);
    spec_extensions_read(reader, extras);
}
