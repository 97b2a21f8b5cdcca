#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/placer_hived.h"
#include "core/state.h"

/* In the order in which they were placed; parts of one gang by their roles. */
struct group_key {
    uint64_t sequence;
    uint32_t first_role, group;
};

static int group_key_compare(const void *a, const void *b)
{
    const struct group_key *x = a, *y = b;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    if (x->first_role != y->first_role)
        return x->first_role < y->first_role ? -1 : 1;
    return x->group < y->group ? -1 : x->group > y->group;
}

void groups_sort(const struct core *core, uint32_t *groups, size_t count)
{
    struct group_key *keys = mem_alloc(mem_size(count + 1, sizeof *keys));
    for (size_t i = 0; i < count; i++) {
        const struct group *group = &core->groups.items[groups[i]];
        keys[i] = (struct group_key){group->sequence, group->first_role, groups[i]};
    }
    qsort(keys, count, sizeof *keys, group_key_compare);
    for (size_t i = 0; i < count; i++)
        groups[i] = keys[i].group;
    mem_free(keys);
}

struct hived *core_hived(const struct core *core)
{
    return placer_hived_state(core->placer);
}
