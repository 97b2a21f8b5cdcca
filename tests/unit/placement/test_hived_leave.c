/* The cells of a large group that has ended are given back in pieces; whoever needs to know of them
 * finds all of them free. */
#include "bench.h"
#include "unit.h"

#include "base/err.h"
#include "hived/hived.h"
#include "placement/hived.h"

enum { NODES = 8, GPUS = 4, TASKS = NODES * GPUS, PIECE = 2 /* tasks */ };

static void cluster_init(struct bench *bench)
{
    bench_init(bench, NULL);
    for (uint32_t i = 0; i < NODES; i++)
        assert_int_equal(bench_node(bench, i, 16, GPUS, true), 0);
    while (!bench->placer->ops->tidy(bench->placer, PIECE)) /* the cells are made in pieces, too */
        ;
}

static struct placement_request ask(struct bench *bench, const char *group, int32_t priority)
{
    struct placement_request request = bench_ask(bench, group, TASKS, 1, 1);
    request.priority = priority;
    return request;
}

static bool is_tidy(const struct bench *bench)
{
    return bench->placer->ops->tidy(bench->placer, 0);
}

/* How many pieces are left. */
static uint32_t tidy(struct bench *bench)
{
    uint32_t pieces = 0;
    for (; !is_tidy(bench); pieces++) {
        bench->placer->ops->tidy(bench->placer, PIECE);
        bench_check(bench);
    }
    return pieces;
}

static bool is_known(struct bench *bench, const char *group)
{
    struct hived_group_view view;
    return hived_group_find(placer_hived_state(bench->placer), group, &view);
}

static void large_run(struct bench *bench, bool is_by_slot)
{
    const struct placement_request request = ask(bench, "large", 10);
    assert_int_equal(bench_place(bench, &request, true).kind, PLACEMENT_BIND);
    if (!is_by_slot)
        bench->placer->ops->release_group(bench->placer, "large");
    for (uint32_t i = 0; is_by_slot && i < TASKS; i++) {
        assert_true(is_tidy(bench));
        bench->placer->ops->release_slot(bench->placer, "large", i);
    }
    bench_check(bench);
    assert_false(is_tidy(bench));
    assert_true(is_known(bench, "large"));
}

static void a_large_group_ends_in_pieces(void **state)
{
    (void)state;
    for (int is_by_slot = 0; is_by_slot < 2; is_by_slot++) {
        struct bench bench;
        cluster_init(&bench);
        large_run(&bench, is_by_slot);
        assert_in_range(tidy(&bench), 3, TASKS);
        assert_false(is_known(&bench, "large"));
        bench_release(&bench);
    }
}

static void a_small_one_ends_at_once(void **state)
{
    (void)state;
    struct bench bench;
    cluster_init(&bench);
    const struct placement_request request = bench_ask(&bench, "small", 1, GPUS, 1);
    assert_int_equal(bench_place(&bench, &request, true).kind, PLACEMENT_BIND);
    bench.placer->ops->release_group(bench.placer, "small");
    assert_true(is_tidy(&bench));
    bench_release(&bench);
}

/* A search, a node, a copy. */
static void whoever_asks_finds_all_cells_free(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct bench bench;
        cluster_init(&bench);
        large_run(&bench, i % 2);
        const struct placement_request request = ask(&bench, "large", 10);
        if (i == 1) {
            struct placer *copy = bench.placer->ops->copy(bench.placer);
            assert_false(copy->ops->tidy(copy, 0));
            copy->ops->free(copy);
        } else if (i == 2) {
            assert_int_equal(bench_node(&bench, 0, 16, GPUS, false), 0);
            assert_true(is_tidy(&bench));
            assert_int_equal(bench_node(&bench, 0, 16, GPUS, true), 0);
        }
        assert_int_equal(bench_place(&bench, &request, true).kind, PLACEMENT_BIND);
        assert_true(is_tidy(&bench));
        bench_release(&bench);
    }
}

/* Cells that were taken from a large group go back to it. */
static void a_preemption_is_given_up_in_pieces(void **state)
{
    (void)state;
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        struct bench bench;
        cluster_init(&bench);
        const struct placement_request low = ask(&bench, "low", 10), high = ask(&bench, "high", 99);
        assert_int_equal(bench_place(&bench, &low, true).kind, PLACEMENT_BIND);
        assert_int_equal(bench_place(&bench, &high, false).kind, PLACEMENT_PREEMPT);
        bench.placer->ops->cancel(bench.placer, "high");
        bench_check(&bench);
        assert_false(is_tidy(&bench));
        bench.placer->ops->cancel(bench.placer, "high"); /* again: nothing more to do */
        if (is_cut)                                      /* its victim ends meanwhile */
            bench.placer->ops->release_group(bench.placer, "low");
        assert_in_range(tidy(&bench), 3, 2 * TASKS);
        assert_false(is_known(&bench, "high"));
        if (!is_cut) {
            struct hived_group_view view;
            assert_true(hived_group_find(placer_hived_state(bench.placer), "low", &view));
            assert_int_equal(view.state, HIVED_GROUP_ALLOCATED);
            assert_int_equal(bench_place(&bench, &high, false).kind, PLACEMENT_PREEMPT);
        } else {
            assert_int_equal(bench_place(&bench, &high, true).kind, PLACEMENT_BIND);
        }
        bench_release(&bench);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_large_group_ends_in_pieces),
    cmocka_unit_test(a_small_one_ends_at_once),
    cmocka_unit_test(whoever_asks_finds_all_cells_free),
    cmocka_unit_test(a_preemption_is_given_up_in_pieces),
};
UNIT_FILE(tests, NULL, NULL);
