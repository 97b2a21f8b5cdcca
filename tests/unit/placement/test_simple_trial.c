/* How the work of a plain placer grows that looks for victims: whether the gang fits without one
 * more is counted, or kept places tell, and trials are bounded. */
#include "unit.h"

#include "plain.h"

#include "base/memory.h"
#include "placement/simple.h"

/* The slices that a search takes, on full nodes, for a gang that needs so many of their GPUs. Then
 * it gets its places. */
static uint32_t full_search(const char *policy, uint32_t nodes,
                            const struct placement_member *members, size_t count)
{
    static const struct placement_member one = {1, 1, 1, 1, "", ""};
    size_t gpus = 0;
    uint32_t pieces;
    for (size_t i = 0; i < count; i++)
        gpus += (size_t)members[i].count * members[i].gpu;
    struct placer *placer = placer_simple_new(policy);
    for (uint32_t i = 0; i < nodes; i++)
        plain_node_is(placer, i, true);
    plain_fill(placer, &one, nodes * PLAIN_GPUS);
    struct placement_request request = plain_ask("gang", members, count, 100);
    request.slice = 1;
    struct placement_result result = plain_place(placer, &request);
    uint32_t work = result.work;
    while (result.is_cut) {
        result = plain_place(placer, &request);
        work += result.work;
    }
    assert_int_equal(result.kind, PLACEMENT_PREEMPT);
    assert_int_equal(result.victim_count, gpus);
    for (size_t i = 0; i < result.victim_count; i++)
        placer->ops->release_group(placer, result.victims[i]);
    request.slice = nodes;
    result = plain_search(placer, &request, &pieces);
    plain_take(placer, &request, &result);
    plain_check(placer);
    placer->ops->free(placer);
    return work;
}

/* It needs half of them. */
static uint32_t half_search(const char *policy, uint32_t nodes, bool is_unequal)
{
    const uint32_t tasks = nodes / 2;
    /* the second kind needs other CPUs: what fits cannot be told by counting equal tasks */
    const struct placement_member half[] = {
        {is_unequal ? tasks / 2 : tasks, PLAIN_GPUS, PLAIN_GPUS, PLAIN_GPUS, "", ""},
        {tasks / 2, PLAIN_GPUS + 1, PLAIN_GPUS, PLAIN_GPUS, "", ""}};
    return full_search(policy, nodes, half, is_unequal ? 2 : 1);
}

/* A task of the one kind has no room beside one of the other, which counting does not see. */
static uint32_t odd_search(const char *policy, uint32_t nodes)
{
    const uint32_t tasks = nodes / 4;
    const struct placement_member odd[] = {{tasks, 3, 3, 3, "", ""}, {tasks, 3, 2, 2, "", ""}};
    return full_search(policy, nodes, odd, COUNT_OF(odd));
}

/* Whether the gang fits without one more is not found by looking at all nodes again: four times as
 * many nodes and groups take about four times as long. */
static void half_of_all_is_found_in_linear_time(void **state)
{
    (void)state;
    enum { FEW = 100, TIMES = 4, TASK_WORK = 9 };
    for (size_t p = 0; p < COUNT_OF(plain_policies); p++)
        for (int is_unequal = 0; is_unequal < 2; is_unequal++) {
            const uint32_t few = half_search(plain_policies[p], FEW, is_unequal),
                           many = half_search(plain_policies[p], FEW * TIMES, is_unequal);
            assert_in_range(few, FEW, FEW * TASK_WORK);
            assert_in_range(many, 0, few * (TIMES + 1));
        }
}

/* Nor where trials alone tell: there are so many of them, and no more. */
static void trials_are_bounded(void **state)
{
    (void)state;
    enum { FEW = 100, TIMES = 4, TASK_WORK = 50 };
    for (size_t p = 0; p < COUNT_OF(plain_policies); p++) {
        const uint32_t few = odd_search(plain_policies[p], FEW),
                       many = odd_search(plain_policies[p], FEW * TIMES);
        assert_in_range(many, 0, few * (TIMES + 1));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(half_of_all_is_found_in_linear_time),
    cmocka_unit_test(trials_are_bounded),
};
UNIT_FILE(tests, plain_setup, plain_teardown);
