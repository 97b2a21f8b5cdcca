#include "server/unstored.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/core.h"
#include "core/output.h"
#include "server/state.h"
#include "sys/clock.h"
#include <assert.h>

void unstored_release(struct unstored *unstored)
{
    ARRAY_FREE(unstored);
}

static bool is_listed(const struct unstored *unstored, struct node_id node)
{
    for (size_t i = 0; i < unstored->count; i++)
        if (unstored->items[i].v == node.v)
            return true;
    return false;
}

bool unstored_find(struct server *server)
{
    struct unstored *unstored = &server->core.unstored;
    struct node_id node;
    struct err why;
    const int code = store_refused_node(server->store, &server->core.output, &node, &why);
    if (code < 0 || is_listed(unstored, node))
        return false;
    *ARRAY_ADD(unstored) = node;
    unstored->retry_ms = clock_monotonic_ms() + UPKEEP_MS;
    atomic_store(&server->metrics.nodes_unstored, unstored->count);
    log_error(
        "store",
        "what becomes of node number %u cannot be stored, so that its row stays as it was; it "
        "is tried every minute: %s",
        node.v, why.text);
    return true;
}

const struct output *unstored_pass(struct server *server)
{
    struct core_thread *core = &server->core;
    if (core->unstored.count == 0)
        return &core->output;
    struct output *output = ARENA_NEW(&core->scratch, struct output);
    *output = core->output;
    output->records.items = ARENA_ARRAY(&core->scratch, struct record, core->output.records.count);
    output->records.count = 0;
    for (size_t i = 0; i < core->output.records.count; i++) {
        const struct record *record = &core->output.records.items[i];
        if (record->kind != RECORD_NODE || !is_listed(&core->unstored, record->node.id))
            output->records.items[output->records.count++] = *record;
    }
    return output;
}

/* The row as the core has the node now. */
static int row_store(struct server *server, struct node_id node, struct err *err)
{
    cleanup_output struct output output;
    output_init(&output);
    core_node_row(server->core.core, node, &output);
    assert(output.records.count == 1);
    return store_commit(server->store, &(struct store_batch){.output = &output}, err);
}

void unstored_retry(struct server *server)
{
    struct unstored *unstored = &server->core.unstored;
    const int64_t now_ms = clock_monotonic_ms();
    assert(server->core.core);
    if (unstored->count == 0 || now_ms < unstored->retry_ms)
        return;
    unstored->retry_ms = now_ms + UPKEEP_MS;
    for (size_t i = unstored->count; i-- > 0;) {
        struct err err;
        if (row_store(server, unstored->items[i], &err) < 0) {
            log_debug("store", "node number %u is still refused: %s", unstored->items[i].v,
                      err.text);
            continue;
        }
        log_info("store", "the row of node number %u is stored again", unstored->items[i].v);
        unstored->items[i] = unstored->items[--unstored->count];
    }
    atomic_store(&server->metrics.nodes_unstored, unstored->count);
}
