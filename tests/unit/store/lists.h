/* lists.h — the jobs that a filter lets through, for the tests of the job index. */
#ifndef TESTS_STORE_LISTS_H
#define TESTS_STORE_LISTS_H
#include "unit.h"

#include "world.h"

#include "store/read.h"

static inline size_t list(struct world *world, struct job_filter filter, uint32_t *first)
{
    struct job_page page;

    if (filter.limit == 0)
        filter.limit = 1000;
    store_job_list(world->store, &filter, &world->arena, &page);
    if (first)
        *first = page.count ? page.items[0].record.id.v : 0;
    return page.total;
}

#endif
