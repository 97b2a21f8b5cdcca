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
    id_map_release(&unstored->at);
    ARRAY_FREE(unstored);
}

static bool is_listed(const struct unstored *unstored, struct node_id node)
{
    return id_map_get(&unstored->at, node.v) != MAP_NONE;
}

static void list_add(struct server *server, struct node_id node, const struct err *why)
{
    struct unstored *unstored = &server->core.unstored;
    assert(!is_listed(unstored, node));
    id_map_set(&unstored->at, node.v, (uint32_t)unstored->count);
    *ARRAY_ADD(unstored) = node;
    atomic_store(&server->metrics.nodes_unstored, unstored->count);
    log_error(
        "store",
        "what becomes of node number %u cannot be stored, so that its row stays as it was; it "
        "is tried every minute: %s",
        node.v, why->text);
}

/* The last one takes its place. */
static void list_remove(struct unstored *unstored, size_t index)
{
    assert(index < unstored->count);
    id_map_remove(&unstored->at, unstored->items[index].v);
    const struct node_id last = unstored->items[--unstored->count];
    if (index == unstored->count)
        return;
    unstored->items[index] = last;
    id_map_set(&unstored->at, last.v, (uint32_t)index);
}

/* All of them at once: each would cost a core made of the rows again. Nodes are numbered by their
 * rows: one that has none yet must not be missing among those after it. */
bool unstored_find(struct server *server)
{
    struct unstored *unstored = &server->core.unstored;
    const struct output *output = unstored_pass(server);
    const size_t before = unstored->count;
    struct node_id node;
    struct err why;
    size_t at = 0;
    int64_t rows;
    if (store_node_count(server->core.reader, &rows, &why) < 0)
        return false;
    while (store_refused_node(server->store, output, &at, &node, &why) == 0)
        if (node.v < rows && !is_listed(unstored, node)) /* it may have several records */
            list_add(server, node, &why);
    if (unstored->count == before)
        return false;
    unstored->retry_ms = clock_monotonic_ms() + UPKEEP_MS;
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

/* NULL: nothing was said of it since the start. */
static struct server_mail *node_mail(struct server *server, struct node_id node)
{
    cleanup_output struct output output;
    struct server_mail *mail = NULL;
    output_init(&output);
    core_node_row(server->core.core, node, &output);
    assert(output.records.count == 1);
    pthread_mutex_lock(&server->state_lock);
    const struct node_known *known =
        server_node_find(server, output.records.items[0].node.facts.name);
    if (known && known->is_seen && known->engine != ENGINE_NONE) {
        mail = mail_event(known->is_lost ? EVENT_NODE_LOST : EVENT_NODE, "");
        mail->engine = known->engine;
        mail->event.node = node_facts_keep(&mail->arena, &known->facts);
        mail->event.node.engine =
            arena_copy(&mail->arena, text_of(server->engines.items[known->engine].name));
    }
    pthread_mutex_unlock(&server->state_lock);
    return mail;
}

struct server_mail *unstored_told(struct server *server)
{
    struct unstored *unstored = &server->core.unstored;
    struct server_mail *first = NULL;
    assert(server->core.core);
    if (unstored->told_core == server->core.cores)
        return NULL;
    for (size_t i = 0; i < unstored->count; i++) {
        struct server_mail *mail = node_mail(server, unstored->items[i]);
        if (!mail)
            continue;
        mail->mail.next = first ? &first->mail : NULL;
        first = mail;
    }
    return first;
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
        const int code = row_store(server, unstored->items[i], &err);
        if (code < 0)
            log_debug("store", "node number %u is still refused: %s", unstored->items[i].v,
                      err.text);
        if (code < 0 && code != ERR_INTERNAL) /* the store is away: it is so for all of them */
            break;
        if (code < 0)
            continue;
        log_info("store", "the row of node number %u is stored again", unstored->items[i].v);
        list_remove(unstored, i);
    }
    atomic_store(&server->metrics.nodes_unstored, unstored->count);
}
