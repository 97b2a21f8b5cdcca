/* OpenPAI's /virtual-clusters and /cluster/sku-types, and the same as trees in HiveD's own paths */
#include "api/cluster_status.h"
#include "api/handlers.h"
#include "api/page.h"
#include "api/snapshot.h"
#include "base/map.h"
#include "base/memory.h"
#include "core/core.h"
#include "hived/hived.h"

struct resources {
    uint64_t cpu, memory_mib, gpu;
};

/* Of all virtual clusters and nodes that a reply needs. */
struct clusters {
    struct hived *hived; /* NULL: another policy, all is one virtual cluster */
    const struct service_snapshot *snapshot;
    struct store_clusters closed; /* none in a list of nodes */
    struct store_nodes nodes;     /* of the page, in a list of nodes */
    struct known_jobs *jobs;      /* likewise; else NULL */
    uint64_t gpu_total;           /* of all nodes */
};

/* Jobs of a reply, each looked up once: a large one is on many nodes. */
struct known_jobs {
    struct id_map by_id; /* to rows */
    struct {
        const struct store_job **items; /* NULL: deleted since the copy was made */
        size_t count, room;
    } rows;
};

static void cleanup_release_known_jobs(struct known_jobs *jobs)
{
    id_map_release(&jobs->by_id);
    ARRAY_FREE(&jobs->rows);
}

static const struct store_job *known_job(struct call *call, struct known_jobs *jobs,
                                         struct job_id job)
{
    const uint32_t at = id_map_get(&jobs->by_id, job.v);
    if (at != MAP_NONE)
        return jobs->rows.items[at];
    struct store_job *row = ARENA_NEW(call->arena, struct store_job);
    struct err err;
    const int code = store_job_summary(call->api->service->store, job, call->arena, row, &err);
    id_map_set(&jobs->by_id, job.v, (uint32_t)jobs->rows.count);
    *ARRAY_ADD(&jobs->rows) = code ? NULL : row;
    return code ? NULL : row;
}

static struct resources sku_of(struct hived *hived, const char *leaf_type)
{
    const struct hived_sku *sku = hived_config_sku(hived_config_of(hived), leaf_type);
    if (!sku)
        return (struct resources){.gpu = 1}; /* as HiveD counts without SKUs */
    return (struct resources){.cpu = sku->cpu, .memory_mib = sku->memory_mib, .gpu = sku->gpu};
}

static void resources_add(struct resources *sum, struct resources sku, uint64_t leaves)
{
    sum->cpu += sku.cpu * leaves;
    sum->memory_mib += sku.memory_mib * leaves;
    sum->gpu += sku.gpu * leaves;
}

static void resources_json(struct json_writer *json, const char *key, struct resources sum)
{
    json_key(json, key);
    json_object(json);
    json_key_int(json, "cpu", (int64_t)sum.cpu);
    json_key_int(json, "memory", (int64_t)sum.memory_mib);
    json_key_int(json, "gpu", (int64_t)sum.gpu);
    json_key_int(json, "vCores", (int64_t)sum.cpu);
    json_key_int(json, "GPUs", (int64_t)sum.gpu);
    json_object_end(json);
}

static void percent_json(struct json_writer *json, const char *key, uint64_t part, uint64_t whole)
{
    json_key(json, key);
    json_real(json, whole ? 100.0 * (double)part / (double)whole : 0);
}

static void quota_json(struct json_writer *json, const struct hived_quota *quota, uint32_t count)
{
    json_key(json, "skus");
    json_object(json);
    for (uint32_t i = 0; i < count; i++) {
        if (!quota[i].total && !quota[i].oppo)
            continue;
        json_key(json, quota[i].leaf_type);
        json_object(json);
        json_key_int(json, "total", quota[i].total);
        json_key_int(json, "used", quota[i].used);
        json_key_int(json, "bad", quota[i].bad);
        json_key_int(json, "opportunistic", quota[i].oppo);
        json_object_end(json);
    }
    json_object_end(json);
}

static void cluster_json(struct json_writer *json, const struct clusters *clusters,
                         struct resources total, struct resources good, struct resources used)
{
    json_key_bool(json, "dedicated", false);
    percent_json(json, "capacity", total.gpu, clusters->gpu_total);
    percent_json(json, "usedCapacity", used.gpu, clusters->gpu_total);
    percent_json(json, "maxCapacity", total.gpu, clusters->gpu_total);
    resources_json(json, "resourcesTotal", total);
    resources_json(json, "resourcesGuaranteed", good);
    resources_json(json, "resourcesUsed", used);
}

static void hived_cluster_json(struct call *call, struct json_writer *json,
                               const struct clusters *clusters, uint32_t vc)
{
    uint32_t count = 0;
    const struct hived_quota *quota = hived_vc_quota(clusters->hived, vc, call->arena, &count);
    struct resources total = {0}, good = {0}, used = {0};
    for (uint32_t i = 0; i < count; i++) {
        struct resources sku = sku_of(clusters->hived, quota[i].leaf_type);
        resources_add(&total, sku, quota[i].total);
        resources_add(&good, sku, quota[i].total - quota[i].bad);
        resources_add(&used, sku, quota[i].used);
    }
    cluster_json(json, clusters, total, good, used);
    quota_json(json, quota, count);
}

/* GPUs of a node that live tasks hold. */
static uint64_t gpus_used(const struct clusters *clusters, const struct node_record *node)
{
    if (node->id.v >= clusters->snapshot->node_count)
        return 0; /* came after the copy */
    return clusters->snapshot->nodes[node->id.v].gpus;
}

/* Without HiveD all nodes are one virtual cluster. */
static void plain_cluster_json(struct json_writer *json, const struct clusters *clusters)
{
    struct resources total = {0}, good = {0}, used = {0};
    for (uint32_t i = 0; i < clusters->snapshot->node_count; i++) {
        const struct core_node_use *node = &clusters->snapshot->nodes[i];
        struct resources all = {node->cpu_total, node->memory_mib_total, node->gpu_total};
        resources_add(&total, all, node->is_lost ? 0 : 1);
        resources_add(&good, all, node->is_lost || !node->is_healthy ? 0 : 1);
        resources_add(&used, (struct resources){node->cpus, node->memory_mib, node->gpus}, 1);
    }
    cluster_json(json, clusters, total, good, used);
}

/* `vc`: of HiveD's. */
static void vc_json(struct call *call, struct json_writer *json, const struct clusters *clusters,
                    uint32_t vc)
{
    if (clusters->hived)
        hived_cluster_json(call, json, clusters, vc);
    else
        plain_cluster_json(json, clusters);
    const char *name = clusters->hived ? hived_vc_name(clusters->hived, vc) : "default";
    view_cluster_status(json, closed_cluster_find(&clusters->closed, text_of(name)));
}

/* Of the snapshot alone: no row of a node is read. */
static struct clusters clusters_of(const struct service_snapshot *snapshot)
{
    struct clusters clusters = {.hived = snapshot->hived, .snapshot = snapshot};
    for (uint32_t i = 0; i < snapshot->node_count; i++)
        if (!snapshot->nodes[i].is_lost)
            clusters.gpu_total += snapshot->nodes[i].gpu_total;
    return clusters;
}

/* Index of a virtual cluster, HIVED_NONE when there is none of that name. */
static uint32_t vc_find(const struct hived *hived, struct text name)
{
    for (uint32_t i = 0; i < hived_vc_count(hived); i++)
        if (text_is(name, hived_vc_name(hived, i)))
            return i;
    return HIVED_NONE;
}

bool vc_exists(const struct service_snapshot *snapshot, struct text name)
{
    return snapshot->hived ? vc_find(snapshot->hived, name) != HIVED_NONE
                           : text_is(name, "default");
}

struct store_names vc_names(struct call *call, const struct service_snapshot *snapshot)
{
    const struct hived *hived = snapshot->hived;
    size_t count = hived ? hived_vc_count(hived) : 1;
    const char **names = ARENA_ARRAY(call->arena, const char *, count + 1);
    names[0] = "default";
    for (uint32_t i = 0; hived && i < count; i++)
        names[i] = arena_copy(call->arena, text_of(hived_vc_name(hived, i)));
    return (struct store_names){names, count};
}

/* "[A-Za-z0-9_]+", as OpenPAI asks. Those that are configured may have other names. */
static bool is_vc_name(struct text name)
{
    for (size_t i = 0; i < name.length; i++) {
        char c = name.at[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && c != '_')
            return false;
    }
    return true;
}

static int no_cluster(struct call *call, struct text name)
{
    if (!is_vc_name(name))
        return call_fail(call, ERR_INVALID, NULL, "", "%.*s is not a name of a virtual cluster",
                         TEXT_ARG(name));
    return call_fail(call, ERR_NOT_FOUND, "NoVirtualClusterError", "",
                     "there is no virtual cluster %.*s", TEXT_ARG(name));
}

/* GPUs of a node that a job could get. */
static uint64_t node_available(const struct clusters *clusters, const struct node_record *node)
{
    uint64_t used = gpus_used(clusters, node), free = 0;
    if (!node->facts.is_healthy || node->is_lost || node->is_cordoned)
        return 0;
    if (!clusters->hived)
        return node->facts.gpu_count > used ? node->facts.gpu_count - used : 0;
    for (uint32_t t = 0; t < hived_leaf_type_count(clusters->hived); t++) {
        const char *type = hived_leaf_type_name(clusters->hived, t);
        free += sku_of(clusters->hived, type).gpu *
                hived_node_free(clusters->hived, node->facts.name, type, NULL, 0);
    }
    return free;
}

/* Whose tasks have a place on the node, in the order of their submission. */
static void node_jobs_json(struct call *call, struct json_writer *json,
                           const struct clusters *clusters, struct node_id node)
{
    size_t count;
    const struct core_node_job *jobs = core_node_jobs_of(&clusters->snapshot->jobs, node, &count);
    json_key(json, "jobs");
    json_array(json);
    for (size_t i = 0; i < count; i++) {
        const struct store_job *job = known_job(call, clusters->jobs, jobs[i].job);
        if (!job)
            continue;
        json_object(json);
        json_key_string(json, "name",
                        arena_format(call->arena, "%s~%s", job->record.user, job->record.name));
        json_key_string(json, "virtualCluster", job->record.virtual_cluster);
        json_key_int(json, "taskCount", jobs[i].task_count);
        json_object_end(json);
    }
    json_array_end(json);
}

/* Of a node; of all, when the list is of virtual clusters. */
static void node_json(struct call *call, struct json_writer *json, const struct clusters *clusters,
                      uint32_t i)
{
    const struct node_record *node = &clusters->nodes.items[i];
    json_key_int(json, "gpuUsed", (int64_t)gpus_used(clusters, node));
    json_key_int(json, "gpuAvailable", (int64_t)node_available(clusters, node));
    json_key_int(json, "gpuTotal", node->facts.gpu_count);
    const char *owner =
        clusters->hived ? hived_node_owner(clusters->hived, node->facts.name) : NULL;
    if (owner)
        json_key_string(json, "virtualCluster", owner);
    node_jobs_json(call, json, clusters, node->id);
}

typedef void (*named_json_fn)(struct call *call, struct json_writer *json,
                              const struct clusters *clusters, uint32_t i);

/* The items of a page: their numbers in what `write` looks at, and their names. */
struct named {
    const struct text *names;
    const size_t *rows; /* NULL: in order */
    size_t count;
};

/* {"NAME": {…}, …}; with a cursor [{"name": "NAME", …}, …] */
static void named_reply(struct list_page *page, const struct clusters *clusters,
                        const struct named *named, named_json_fn write)
{
    struct call *call = page->call;
    struct json_writer json;
    call_json(call, 200, &json);
    if (page->has_cursor)
        page_begin(page, &json);
    else
        json_object(&json);
    for (size_t i = 0; i < named->count; i++) {
        const size_t row = named->rows ? named->rows[i] : i;
        if (!page->has_cursor)
            json_key(&json, named->names[row].at);
        json_object(&json);
        if (page->has_cursor)
            json_key_text(&json, "name", named->names[row]);
        write(call, &json, clusters, (uint32_t)row);
        json_object_end(&json);
    }
    if (page->has_cursor) {
        page_end(page, &json);
    } else {
        json_object_end(&json);
        page_link(page);
    }
}

/* The nodes of the page alone are read. */
static int nodes_read(struct call *call, const struct service_snapshot *snapshot)
{
    __attribute__((cleanup(cleanup_release_known_jobs))) struct known_jobs jobs = {0};
    struct clusters clusters = clusters_of(snapshot);
    clusters.jobs = &jobs;
    struct list_page page;
    int code = page_parse(call, &page, "nodes of vcs", NULL);
    if (!code)
        code = page_nodes(&page, &clusters.nodes);
    if (code)
        return code;
    const size_t count = clusters.nodes.count;
    struct text *names = ARENA_ARRAY(call->arena, struct text, count + 1);
    for (size_t i = 0; i < count; i++)
        names[i] = text_of(clusters.nodes.items[i].facts.name);
    named_reply(&page, &clusters, &(struct named){names, NULL, count}, node_json);
    return 0;
}

static int list_read(struct call *call, const struct service_snapshot *snapshot)
{
    if (exchange_query(call->exchange, "nodes").at)
        return nodes_read(call, snapshot);
    struct clusters clusters = clusters_of(snapshot);
    struct list_page page;
    int code = page_parse(call, &page, "vcs", NULL);
    if (!code)
        code = closed_clusters_read(call, &clusters.closed);
    if (code)
        return code;
    const size_t all = clusters.hived ? hived_vc_count(clusters.hived) : 1;
    struct text *names = ARENA_ARRAY(call->arena, struct text, all + 1);
    for (uint32_t i = 0; i < all; i++)
        names[i] = text_of(clusters.hived ? hived_vc_name(clusters.hived, i) : "default");
    const size_t *rows, count = page_pick(&page, names, all, false, &rows);
    named_reply(&page, &clusters, &(struct named){names, rows, count}, vc_json);
    return 0;
}

int handle_vc_list(struct call *call)
{
    return snapshot_read(call, list_read);
}

static int one_read(struct call *call, const struct service_snapshot *snapshot)
{
    struct hived *hived = snapshot->hived;
    struct text name = call->parameters[0];
    uint32_t vc = hived ? vc_find(hived, name) : HIVED_NONE;
    if (vc == HIVED_NONE && (hived || !text_is(name, "default")))
        return no_cluster(call, name);
    struct clusters clusters = clusters_of(snapshot);
    int code = closed_clusters_read(call, &clusters.closed);
    if (code)
        return code;
    struct json_writer json;
    call_json(call, 200, &json);
    json_object(&json);
    vc_json(call, &json, &clusters, vc);
    json_object_end(&json);
    return 0;
}

int handle_vc(struct call *call)
{
    return snapshot_read(call, one_read);
}

/* They stand in the configuration of the cells. */
int handle_vc_change(struct call *call)
{
    if (!is_vc_name(call->parameters[0]))
        return call_fail(call, ERR_INVALID, NULL, "", "%.*s is not a name of a virtual cluster",
                         TEXT_ARG(call->parameters[0]));
    return call_fail(call, ERR_UNSUPPORTED, NULL, "",
                     "virtual clusters are changed in the server's configuration, which is read "
                     "again at SIGHUP");
}

static int skus_read(struct call *call, const struct service_snapshot *snapshot)
{
    struct hived *hived = snapshot->hived;
    struct text name =
        call->parameters[0].at ? call->parameters[0] : exchange_query(call->exchange, "vc");
    uint32_t vc = hived && name.length ? vc_find(hived, name) : HIVED_NONE;
    if (name.length && (hived ? vc == HIVED_NONE : !text_is(name, "default")))
        return no_cluster(call, name);
    uint32_t count = 0;
    const struct hived_quota *quota =
        vc == HIVED_NONE ? NULL : hived_vc_quota(hived, vc, call->arena, &count);
    struct json_writer json;
    call_json(call, 200, &json);
    json_object(&json);
    for (uint32_t i = 0; hived && i < hived_leaf_type_count(hived); i++) {
        const char *type = hived_leaf_type_name(hived, i);
        if (quota && (i >= count || !quota[i].total))
            continue;
        struct resources sku = sku_of(hived, type);
        json_key(&json, type);
        json_object(&json);
        json_key_int(&json, "cpu", (int64_t)sku.cpu);
        json_key_int(&json, "memory", (int64_t)sku.memory_mib);
        json_key_int(&json, "gpu", (int64_t)sku.gpu);
        json_object_end(&json);
    }
    json_object_end(&json);
    return 0;
}

int handle_sku_types(struct call *call)
{
    return snapshot_read(call, skus_read);
}
