#include "core/clusters.h"

#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/nodes.h"
#include "core/records.h"
#include "core/reserve.h"

/* Where it stands, or would stand. */
static uint32_t place_of(const struct core *core, const char *name)
{
    uint32_t first = 0, end = (uint32_t)core->closed.count;
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        if (strcmp(core->closed.items[middle].name, name) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

static bool is_at(const struct core *core, uint32_t at, const char *name)
{
    return at < core->closed.count && !strcmp(core->closed.items[at].name, name);
}

const struct cluster_record *cluster_closed(const struct core *core, const char *name)
{
    assert(name);
    const uint32_t at = place_of(core, name);
    return is_at(core, at, name) ? &core->closed.items[at] : NULL;
}

static void closing_put(struct core *core, const char *name, const struct node_closing *closing)
{
    const uint32_t at = place_of(core, name);
    assert(closing->is_closed);
    if (!is_at(core, at, name)) {
        ARRAY_ADD(&core->closed);
        struct cluster_record *place = &core->closed.items[at];
        memmove(place + 1, place, (core->closed.count - 1 - at) * sizeof *place);
        *place = (struct cluster_record){.name = mem_copy(name)};
    }
    node_closing_copy(&core->closed.items[at].closing, closing);
}

static void record_release(struct cluster_record *record)
{
    mem_free((char *)(uintptr_t)record->name);
    node_closing_release(&record->closing);
}

/* No job is touched: each class of waiting jobs is told with its next turn, as after a change of a
 * node. */
static void turns_begin(struct core *core)
{
    queue_reopen(core->queue);
    nodes_note_change(core);
    core->is_unblocked = true;
}

/* What the event names, or NULL after an answer. */
static const char *cluster_asked(struct core *core, const struct event *event)
{
    const char *name = event->cluster.name ? event->cluster.name : "";
    struct err err = {0};
    if (*name && strlen(name) <= CLUSTER_NAME_MAX)
        return name;
    err_fail(&err, ERR_INVALID, "virtualCluster", "a virtual cluster needs a name of 1…%d bytes",
             CLUSTER_NAME_MAX);
    core_answer(core, event, (struct job_id){0}, &err);
    return NULL;
}

void cluster_close_event(struct core *core, const struct event *event)
{
    assert(event->kind == EVENT_CLUSTER_CLOSE);
    const char *name = cluster_asked(core, event);
    const char *why = event->cluster.reason ? event->cluster.reason : "";
    struct err err = {0};
    int code = 0;
    if (!name)
        return;
    if (strlen(why) > CLUSTER_CLOSED_WHY_MAX)
        code = err_fail(&err, ERR_TOO_BIG, "reason", "more than %d bytes", CLUSTER_CLOSED_WHY_MAX);
    else if (!cluster_closed(core, name) && core->closed.count >= CLUSTERS_CLOSED_MAX)
        code = err_fail(&err, ERR_TOO_BIG, "virtualCluster",
                        "%d virtual clusters are closed already", CLUSTERS_CLOSED_MAX);
    if (code) {
        core_answer(core, event, (struct job_id){0}, &err);
        return;
    }
    const char *user = *event->user ? event->user : "the platform";
    closing_put(core, name, &(struct node_closing){true, user, why, core->now_ms});
    const struct cluster_record *closed = cluster_closed(core, name);
    core_trace(core, "%s", cluster_closed_text(closed, &core->scratch));
    record_cluster(core, closed);
    reserve_drop_cluster(core, name);
    turns_begin(core);
    core_answer(core, event, (struct job_id){0}, NULL);
}

void cluster_open_event(struct core *core, const struct event *event)
{
    assert(event->kind == EVENT_CLUSTER_OPEN);
    const char *name = cluster_asked(core, event);
    if (!name)
        return;
    const uint32_t at = place_of(core, name);
    if (is_at(core, at, name)) {
        core_trace(core, "virtual cluster %s is opened", name);
        record_cluster(core, &(struct cluster_record){.name = name});
        struct cluster_record *place = &core->closed.items[at];
        record_release(place);
        memmove(place, place + 1, (--core->closed.count - at) * sizeof *place);
        turns_begin(core);
    }
    core_answer(core, event, (struct job_id){0}, NULL);
}

int cluster_restore(struct core *core, const struct cluster_record *record, struct err *err)
{
    assert(record->closing.is_closed);
    if (cluster_closed(core, record->name))
        return err_fail(err, ERR_CORRUPT, "clusters", "virtual cluster %s is closed twice",
                        record->name);
    closing_put(core, record->name, &record->closing);
    return 0;
}

uint32_t core_closed_count(const struct core *core)
{
    return (uint32_t)core->closed.count;
}

const struct cluster_record *core_closed_at(const struct core *core, uint32_t nth)
{
    assert(nth < core->closed.count);
    return &core->closed.items[nth];
}

void core_clusters_copy(struct core *to, const struct core *from)
{
    assert(!to->closed.count);
    for (size_t i = 0; i < from->closed.count; i++)
        closing_put(to, from->closed.items[i].name, &from->closed.items[i].closing);
}

void core_clusters_release(struct core *core)
{
    for (size_t i = 0; i < core->closed.count; i++)
        record_release(&core->closed.items[i]);
    ARRAY_FREE(&core->closed);
}
