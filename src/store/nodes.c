/* nodes.c — machines: what they have, their health, their blame. */
#include "base/err.h"
#include "store/noun.h"
#include <assert.h>

#define COLUMNS(C)                                                                                                                                                                   \
    C(id)                                                                                                                                                                            \
    "," C(name) "," C(address) "," C(gpu_type) "," C(cpu) "," C(gpu_count) "," C(memory_mib) "," C(is_healthy) "," C(is_cordoned) "," C(is_lost) "," C(blame) "," C(blame_ms) "," C( \
        reason) "," C(is_reason_blame) "," C(gpu_numa) "," C(gpu_switch) "," C(engine) "," C(refusals) "," C(avoid_ms) "," C(is_closed) "," C(closed_by) "," C(closed_why) "," C(closed_ms)

static const char replace[] = REPLACE_INTO("nodes", COLUMNS, "id");
static const char select_all[] = "SELECT " COLUMNS(COLUMN_NAME) " FROM nodes ORDER BY id";

static const char select_page[] =
    "SELECT " COLUMNS(COLUMN_NAME) " FROM nodes WHERE name > ? ORDER BY name LIMIT ?";
static const char count_all[] = "SELECT count(*) FROM nodes";

static void row_put_places(struct sql *sql, const uint16_t *places, size_t count,
                           struct buf *scratch)
{
    if (places && count > 0)
        sql_put_blob(sql, numbers_put(scratch, places, count));
    else
        sql_put_null(sql);
}

static void row_put(struct sql *sql, const struct node_record *node, struct buf *scratch)
{
    buf_clear(scratch);
    /* reserved at once: the bytes must not move between the two columns */
    for (size_t i = 0; i < node->facts.gpu_count; i++)
        buf_put_u32(scratch, 0);
    buf_clear(scratch);
    sql_put_int(sql, node->id.v);
    sql_put_string(sql, node->facts.name);
    sql_put_string(sql, node->facts.address);
    sql_put_string(sql, node->facts.gpu_type);
    sql_put_int(sql, node->facts.cpu);
    sql_put_int(sql, node->facts.gpu_count);
    sql_put_int(sql, (int64_t)node->facts.memory_mib);
    sql_put_int(sql, node->facts.is_healthy);
    sql_put_int(sql, node->is_cordoned_for_blame);
    sql_put_int(sql, node->is_lost);
    sql_put_real(sql, node->blame);
    sql_put_int(sql, node->blame_ms);
    sql_put_string(sql, node->facts.reason);
    sql_put_int(sql, node->is_reason_blame);
    row_put_places(sql, node->facts.gpu_numa, node->facts.gpu_count, scratch);
    row_put_places(sql, node->facts.gpu_switch, node->facts.gpu_count, scratch);
    sql_put_string(sql, node->facts.engine);
    sql_put_int(sql, node->refusals);
    sql_put_int(sql, node->avoid_ms);
    sql_put_int(sql, node->closing.is_closed);
    sql_put_string(sql, node->closing.by);
    sql_put_string(sql, node->closing.why);
    sql_put_int(sql, node->closing.at_ms);
}

static int row_get_places(struct sql *sql, const struct node_record *node, const uint16_t **places,
                          struct arena *arena, struct err *err)
{
    struct text bytes = sql_text(sql, arena);
    assert(sql->statement);
    *places = NULL;
    if (!bytes.at)
        return 0;
    if (bytes.length != 2 * (size_t)node->facts.gpu_count)
        return err_fail(err, ERR_CORRUPT, "", "the topology of node %s is damaged",
                        node->facts.name);
    *places = numbers_get(bytes, node->facts.gpu_count, arena);
    return 0;
}

static int row_get(struct sql *sql, struct node_record *node, struct arena *arena, struct err *err)
{
    assert(sql->statement);
    *node = (struct node_record){.id = {(uint32_t)sql_int(sql)}};
    node->facts.name = sql_string(sql, arena);
    node->facts.address = sql_string(sql, arena);
    node->facts.gpu_type = sql_string(sql, arena);
    node->facts.cpu = (uint32_t)sql_int(sql);
    node->facts.gpu_count = (uint32_t)sql_int(sql);
    node->facts.memory_mib = (uint64_t)sql_int(sql);
    node->facts.is_healthy = sql_bool(sql);
    node->is_cordoned_for_blame = sql_bool(sql);
    node->is_lost = sql_bool(sql);
    node->blame = sql_real(sql);
    node->blame_ms = sql_int(sql);
    node->facts.reason = sql_string(sql, arena);
    node->is_reason_blame = sql_bool(sql);
    int code = row_get_places(sql, node, &node->facts.gpu_numa, arena, err);
    if (code == 0)
        code = row_get_places(sql, node, &node->facts.gpu_switch, arena, err);
    node->facts.engine = sql_string(sql, arena);
    node->refusals = (uint32_t)sql_int(sql);
    node->avoid_ms = sql_int(sql);
    node->closing.is_closed = sql_bool(sql);
    node->closing.by = sql_string(sql, arena);
    node->closing.why = sql_string(sql, arena);
    node->closing.at_ms = sql_int(sql);
    node->is_cordoned = node->is_cordoned_for_blame || node->closing.is_closed;
    return code;
}

int node_write(struct store *store, const struct node_record *node, struct err *err)
{
    struct sql sql = sql_of(&store->session, replace);
    assert(node->facts.name);
    row_put(&sql, node, &store->scratch);
    return sql_run(&sql, NULL, err);
}

static int read_nodes(struct sql *sql, struct arena *arena, struct store_nodes *nodes,
                      struct err *err)
{
    struct {
        struct node_record *items;
        size_t count, room;
    } list = {0};
    int code;
    while ((code = sql_next(sql, err)) > 0) {
        code = row_get(sql, ARRAY_ADD(&list), arena, err);
        if (code < 0) {
            sql_done(sql);
            break;
        }
    }
    LIST_HAND_OVER(&list, arena, nodes);
    return code;
}

int store_nodes(struct store_reader *reader, struct arena *arena, struct store_nodes *nodes,
                struct err *err)
{
    assert(reader->session.db);
    struct sql sql = sql_of(&reader->session, select_all);
    return read_nodes(&sql, arena, nodes, err);
}

int store_nodes_page(struct store_reader *reader, struct text after, uint64_t most,
                     struct arena *arena, struct store_nodes *nodes, struct err *err)
{
    assert(reader->session.db);
    struct sql sql = sql_of(&reader->session, select_page);
    sql_put_text(&sql, after.at ? after : TEXT(""));
    sql_put_int(&sql, most < INT64_MAX ? (int64_t)most : INT64_MAX);
    return read_nodes(&sql, arena, nodes, err);
}

int store_node_count(struct store_reader *reader, int64_t *count, struct err *err)
{
    assert(reader->session.db);
    struct sql sql = sql_of(&reader->session, count_all);
    return sql_number(&sql, count, err);
}
