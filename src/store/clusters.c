/* clusters.c — virtual clusters that are closed. */
#include "base/err.h"
#include "store/noun.h"
#include <assert.h>

#define COLUMNS(C) C(name) "," C(closed_by) "," C(closed_why) "," C(closed_ms)

static const char replace[] = REPLACE_INTO("cluster_closings", COLUMNS, "name");
static const char delete[] = "DELETE FROM cluster_closings WHERE name = ?";
static const char select_all[] =
    "SELECT " COLUMNS(COLUMN_NAME) " FROM cluster_closings ORDER BY name";

int cluster_write(struct store *store, const struct cluster_record *cluster, struct err *err)
{
    const struct node_closing *closing = &cluster->closing;
    struct sql sql = sql_of(&store->session, closing->is_closed ? replace : delete);
    assert(cluster->name);
    sql_put_string(&sql, cluster->name);
    if (closing->is_closed) {
        sql_put_string(&sql, closing->by);
        sql_put_string(&sql, closing->why);
        sql_put_int(&sql, closing->at_ms);
    }
    return sql_run(&sql, NULL, err);
}

int store_closed_clusters(struct store_reader *reader, struct arena *arena,
                          struct store_clusters *clusters, struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_all);
    struct {
        struct cluster_record *items;
        size_t count, room;
    } list = {0};
    int code;
    assert(reader->session.db);
    while ((code = sql_next(&sql, err)) > 0) {
        struct cluster_record *cluster = ARRAY_ADD(&list);
        cluster->name = sql_string(&sql, arena);
        cluster->closing.is_closed = true;
        cluster->closing.by = sql_string(&sql, arena);
        cluster->closing.why = sql_string(&sql, arena);
        cluster->closing.at_ms = sql_int(&sql);
    }
    LIST_HAND_OVER(&list, arena, clusters);
    return code;
}
