#include "model/cluster.h"

#include <assert.h>

#include "base/arena.h"
#include "base/utc.h"

const char *cluster_closed_text(const struct cluster_record *cluster, struct arena *arena)
{
    char since[UTC_SIZE];
    const struct node_closing *closing = &cluster->closing;
    assert(closing->is_closed);
    return arena_format(arena, "virtual cluster %s is closed by %s since %s%s%s", cluster->name,
                        closing->by, utc_text(closing->at_ms, since), *closing->why ? ": " : "",
                        closing->why);
}
