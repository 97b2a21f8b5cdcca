/* HiveD's inspect API: its paths, its JSON, its errors (a status and a bare JSON string) */
#include "api/handlers.h"
#include "api/snapshot.h"
#include "hived/hived.h"

static int refuse(struct call *call, const char *format, const char *name)
{
    cleanup_buf struct buf text = BUF_INIT;
    struct json_writer json;
    buf_string(&text, "hivedscheduler: User Error: ");
    buf_format(&text, "%s %s", format, name);
    call_json(call, 400, &json);
    json_text(&json, buf_as_text(&text));
    return 0;
}

/* The reply's body, for a function that writes JSON by itself. */
static struct buf *body(struct call *call)
{
    struct json_writer ignored;
    call_json(call, 200, &ignored);
    return &call->exchange->reply.body;
}

static int no_hived(struct call *call, const struct service_snapshot *snapshot)
{
    struct json_writer json;
    if (snapshot->is_making) {
        call_json(call, 503, &json);
        json_string(&json, "hivedscheduler: the cells of the nodes are being made: ask again");
        return 0;
    }
    return refuse(call, "there are no cells: the server's scheduling.policy is not", "hived");
}

static int groups_read(struct call *call, const struct service_snapshot *snapshot)
{
    struct hived *hived = snapshot->hived;
    if (!hived)
        return no_hived(call, snapshot);
    hived_inspect_groups(hived, body(call));
    return 0;
}

/* What follows "affinitygroups/": a name may hold slashes, which HiveD's clients do not escape. */
static char *group_name(struct call *call)
{
    const struct exchange *exchange = call->exchange;
    cleanup_buf struct buf text = BUF_INIT;
    size_t first = 0;
    while (!text_is(exchange->segments[first++], "affinitygroups"))
        continue;
    for (size_t i = first; i < exchange->segment_count; i++)
        buf_format(&text, "%s%.*s", i > first ? "/" : "", TEXT_ARG(exchange->segments[i]));
    return arena_copy(call->arena, buf_as_text(&text));
}

static int group_read(struct call *call, const struct service_snapshot *snapshot)
{
    struct hived *hived = snapshot->hived;
    char *name = group_name(call);
    cleanup_buf struct buf text = BUF_INIT;
    if (!hived)
        return no_hived(call, snapshot);
    bool is_there = hived_inspect_group(hived, name, &text);
    if (is_there)
        buf_text(body(call), buf_as_text(&text));
    return is_there ? 0 : refuse(call, "there is no affinity group", name);
}

static int cluster_read(struct call *call, const struct service_snapshot *snapshot)
{
    struct hived *hived = snapshot->hived;
    if (!hived)
        return no_hived(call, snapshot);
    hived_inspect_cluster(hived, body(call));
    return 0;
}

static int physical_read(struct call *call, const struct service_snapshot *snapshot)
{
    struct hived *hived = snapshot->hived;
    if (!hived)
        return no_hived(call, snapshot);
    hived_inspect_physical(hived, body(call));
    return 0;
}

static int virtual_read(struct call *call, const struct service_snapshot *snapshot)
{
    struct hived *hived = snapshot->hived;
    if (!hived)
        return no_hived(call, snapshot);
    hived_inspect_vcs(hived, body(call));
    return 0;
}

static int virtual_one_read(struct call *call, const struct service_snapshot *snapshot)
{
    struct hived *hived = snapshot->hived;
    char *name = arena_copy(call->arena, call->parameters[0]);
    cleanup_buf struct buf text = BUF_INIT;
    if (!hived)
        return no_hived(call, snapshot);
    bool is_there = hived_inspect_vc(hived, name, &text);
    if (is_there)
        buf_text(body(call), buf_as_text(&text));
    return is_there ? 0 : refuse(call, "there is no virtual cluster", name);
}

int handle_inspect_paths(struct call *call)
{
    static const char *const PATHS[] = {
        "/v1/inspect/affinitygroups/",
        "/v1/inspect/clusterstatus",
        "/v1/inspect/clusterstatus/physicalcluster",
        "/v1/inspect/clusterstatus/virtualclusters/",
    };
    struct json_writer json;
    call_json(call, 200, &json);
    json_object(&json);
    json_key(&json, "paths");
    json_array(&json);
    for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0]; i++)
        json_string(&json, PATHS[i]);
    json_array_end(&json);
    json_object_end(&json);
    return 0;
}

int handle_inspect_groups(struct call *call)
{
    return snapshot_read(call, groups_read);
}

int handle_inspect_group(struct call *call)
{
    return snapshot_read(call, group_read);
}

int handle_inspect_cluster(struct call *call)
{
    return snapshot_read(call, cluster_read);
}

int handle_inspect_physical(struct call *call)
{
    return snapshot_read(call, physical_read);
}

int handle_inspect_virtual(struct call *call)
{
    return snapshot_read(call, virtual_read);
}

int handle_inspect_virtual_one(struct call *call)
{
    return snapshot_read(call, virtual_one_read);
}
