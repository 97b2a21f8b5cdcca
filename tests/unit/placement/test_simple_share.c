/* What groups have of the nodes of a plain placer: a large one, of which each node is looked at
 * once, and a small one, among many nodes. */
#include "unit.h"

#include "plain.h"

#include "base/err.h"
#include "placement/simple.h"

enum { SIZES = 2, TASKS = 12 };

/* The group has tasks on three of so many nodes. */
static const uint32_t sizes[SIZES] = {3, 500};

static const struct placement_member tasks = {TASKS, 2, 64, 1, "", ""};

static struct placer *cluster_of(const char *policy, uint32_t nodes)
{
    struct placer *placer = placer_simple_new(policy);
    for (uint32_t i = 0; i < nodes; i++)
        plain_node_is(placer, i, true);
    return placer;
}

static void it_takes_its_places_and_gives_them_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(plain_policies) * SIZES; i++) {
        struct placer *placer = cluster_of(plain_policies[i / SIZES], sizes[i % SIZES]);
        const struct placement_request request = plain_ask("group", &tasks, 1, 10);
        const struct placement_result result = plain_place(placer, &request);
        plain_take(placer, &request, &result);
        plain_check(placer);
        placer->ops->release_slot(placer, "group", 1);
        plain_check(placer);
        placer->ops->release_group(placer, "group");
        plain_check(placer);
        const struct placement_result again = plain_place(placer, &request);
        plain_results_equal(&again, &result);
        placer->ops->free(placer);
    }
}

/* Until it gives up, or has them. */
static void what_it_waits_for_is_kept(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(plain_policies) * SIZES; i++)
        for (uint32_t gives_up = 0; gives_up < 2; gives_up++) {
            struct placer *placer = cluster_of(plain_policies[i / SIZES], sizes[i % SIZES]);
            plain_fill(placer, &plain_small, sizes[i % SIZES]);
            const struct placement_request request = plain_ask("group", &tasks, 1, 100);
            const struct placement_result result = plain_place(placer, &request);
            assert_int_equal(result.kind, PLACEMENT_PREEMPT);
            assert_int_equal(result.victim_count, TASKS / PLAIN_GPUS);
            plain_check(placer);
            for (size_t k = 0; k < result.victim_count; k++)
                placer->ops->release_group(placer, result.victims[k]);
            plain_check(placer);
            const struct placement_request other = plain_ask("other", &plain_small, 1, 10);
            assert_int_equal(plain_place(placer, &other).kind, PLACEMENT_WAIT);
            if (gives_up) {
                placer->ops->cancel(placer, "group");
                assert_int_equal(plain_place(placer, &other).kind, PLACEMENT_BIND);
            } else {
                const struct placement_result places = plain_place(placer, &request);
                plain_take(placer, &request, &places);
            }
            plain_check(placer);
            placer->ops->free(placer);
        }
}

static void two_tasks_on_one_gpu_are_refused(void **state)
{
    (void)state;
    static const uint16_t gpu = 0;
    static const struct placement_member pair = {2, 1, 64, 1, "", ""};
    const struct placement_slot slots[2] = {{.node = {1}, .gpu_count = 1, .gpus = &gpu},
                                            {.node = {1}, .gpu_count = 1, .gpus = &gpu}};
    for (size_t i = 0; i < SIZES; i++) {
        struct err err = {0};
        struct placer *placer = cluster_of("best-fit", sizes[i]);
        const struct placement_request request = plain_ask("pair", &pair, 1, 10);
        assert_int_equal(placer->ops->commit(placer, &request, slots, 2, false, &err),
                         ERR_CONFLICT);
        plain_check(placer);
        placer->ops->free(placer);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_takes_its_places_and_gives_them_back),
    cmocka_unit_test(what_it_waits_for_is_kept),
    cmocka_unit_test(two_tasks_on_one_gpu_are_refused),
};
UNIT_FILE(tests, plain_setup, plain_teardown);
