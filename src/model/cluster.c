#include "model/cluster.h"

#include <assert.h>

#include "base/arena.h"
#include "base/utc.h"
#include "model/reason.h"

const char *cluster_closed_text(const struct cluster_record *cluster, struct arena *arena)
{
    char since[UTC_SIZE];
    const struct node_closing *closing = &cluster->closing;
    assert(closing->is_closed);
    utc_text(closing->at_ms, since);
    if (!*closing->why)
        return arena_format(arena, REASON_CLOSED, cluster->name, closing->by, since);
    return arena_format(arena, REASON_CLOSED_WHY, cluster->name, closing->by, since, closing->why);
}
