/* The cells of a large group that has ended are given back in pieces, whatever comes between; who
 * needs all of them finds them free. What a gang had reserved, and has taken in vain, is reserved
 * for it again in pieces. */
#include "bench.h"
#include "unit.h"

#include <stdio.h>

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
            assert_false(is_tidy(&bench));
            assert_int_equal(bench_node(&bench, 0, 16, GPUS, true), 0);
        }
        assert_int_equal(bench_place(&bench, &request, true).kind, PLACEMENT_BIND);
        assert_true(is_tidy(&bench));
        bench_release(&bench);
    }
}

/* It fails, and is there again later, after any number of pieces. */
static void a_node_changes_between_two_pieces(void **state)
{
    (void)state;
    for (uint32_t node = 0; node < NODES; node += 3)
        for (uint32_t at = 0; at < NODES; at++) {
            struct bench bench;
            cluster_init(&bench);
            const char *before = bench_cells(&bench, bench.placer);
            large_run(&bench, at % 2);
            for (uint32_t i = 0; i < at; i++)
                bench.placer->ops->tidy(bench.placer, PIECE);
            const bool was_tidy = is_tidy(&bench);
            assert_int_equal(bench_node(&bench, node, 16, GPUS, false), 0);
            assert_int_equal(is_tidy(&bench), was_tidy);
            bench_check(&bench);
            bench.placer->ops->tidy(bench.placer, PIECE);
            const bool returns_early = at % 3 == 0;
            if (returns_early)
                assert_int_equal(bench_node(&bench, node, 16, GPUS, true), 0);
            tidy(&bench);
            const struct placement_request request = ask(&bench, "large", 10);
            if (!returns_early) {
                assert_int_equal(bench_place(&bench, &request, false).kind, PLACEMENT_WAIT);
                assert_int_equal(bench_node(&bench, node, 16, GPUS, true), 0);
            }
            assert_string_equal(bench_cells(&bench, bench.placer), before);
            assert_int_equal(bench_place(&bench, &request, true).kind, PLACEMENT_BIND);
            bench_release(&bench);
        }
}

static bool search_is_cut(struct bench *bench, const struct placement_request *request,
                          struct placement_result *result)
{
    struct err err = {0};
    assert_int_equal(bench->placer->ops->place(bench->placer, request, &bench->arena, result, &err),
                     0);
    bench_check(bench);
    return result->is_cut;
}

static enum placement_kind search(struct bench *bench, const struct placement_request *request)
{
    enum { PIECES_MAX = 1000 };
    struct placement_result result;
    uint32_t pieces = 0;
    while (search_is_cut(bench, request, &result))
        assert_true(++pieces < PIECES_MAX);
    return result.kind;
}

/* Nobody has told the placer to go on meanwhile. */
static void a_search_in_pieces_gives_them_back_first(void **state)
{
    (void)state;
    struct bench bench;
    cluster_init(&bench);
    large_run(&bench, false);
    struct placement_request request = ask(&bench, "other", 10);
    struct placement_result result;
    request.slice = PIECE;
    uint32_t pieces = 1;
    while (search_is_cut(&bench, &request, &result) && is_known(&bench, "large"))
        pieces++;
    assert_true(pieces > 3);
    assert_true(is_tidy(&bench));
    assert_int_equal(search(&bench, &request), PLACEMENT_BIND);
    bench_release(&bench);
}

/* Slots that are given are taken after it. */
static void a_commit_in_pieces_gives_them_back_first(void **state)
{
    (void)state;
    struct bench bench;
    cluster_init(&bench);
    struct placement_request request = ask(&bench, "large", 10);
    const struct placement_result result = bench_place(&bench, &request, true);
    bench.placer->ops->release_group(bench.placer, "large");
    request.group = "other";
    request.slice = PIECE;
    uint32_t pieces = 0;
    int code = PLACEMENT_CUT;
    for (; code == PLACEMENT_CUT; pieces++) {
        struct err err = {0};
        assert_int_equal(is_known(&bench, "large"), !is_tidy(&bench));
        code = bench.placer->ops->commit(bench.placer, &request, result.slots, result.slot_count,
                                         false, &err);
        assert_true(pieces > 0 || is_known(&bench, "large"));
        bench_check(&bench);
    }
    assert_int_equal(code, 0);
    assert_true(pieces > NODES);
    bench_release(&bench);
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

/* --- a gang that has preempted takes its cells, in vain --- */

/* It has preempted small jobs on all nodes, and they have ended. */
static struct placement_request preempted(struct bench *bench)
{
    char name[16];
    cluster_init(bench);
    for (uint32_t i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "small%u", i);
        const struct placement_request small = bench_ask(bench, name, 1, GPUS, 1);
        assert_int_equal(bench_place(bench, &small, true).kind, PLACEMENT_BIND);
    }
    struct placement_request request = ask(bench, "large", 100);
    request.slice = PIECE;
    request.may_preempt = true;
    assert_int_equal(search(bench, &request), PLACEMENT_PREEMPT);
    for (uint32_t i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "small%u", i);
        bench->placer->ops->release_group(bench->placer, name);
    }
    while (!is_tidy(bench))
        bench->placer->ops->tidy(bench->placer, PIECE);
    return request;
}

static bool is_waiting(struct placer *placer)
{
    struct hived_group_view view;
    return hived_group_find(placer_hived_state(placer), "large", &view) &&
           view.state == HIVED_GROUP_PREEMPTING;
}

/* After so many pieces. False: it has all of them before. */
static bool taken_some(struct bench *bench, const struct placement_request *request, uint32_t cut)
{
    struct placement_result result = {.is_cut = true};
    for (uint32_t i = 0; i < cut && result.is_cut; i++)
        search_is_cut(bench, request, &result);
    return result.is_cut;
}

/* *pieces: until it is as before. */
static bool given_up_after(uint32_t cut, bool is_by_node, uint32_t *pieces)
{
    struct bench bench;
    const struct placement_request request = preempted(&bench);
    const char *before = bench_cells(&bench, bench.placer);
    const bool is_cut = taken_some(&bench, &request, cut);
    if (is_cut && is_by_node)
        assert_int_equal(bench_node(&bench, 0, 16, GPUS, true), 0);
    else if (is_cut)
        bench.placer->ops->forget(bench.placer);
    for (*pieces = 0; is_cut && !is_tidy(&bench); ++*pieces) {
        struct placer *copy = bench.placer->ops->copy(bench.placer);
        while (!copy->ops->tidy(copy, PIECE))
            assert_true(is_waiting(copy));
        assert_string_equal(bench_cells(&bench, copy), before);
        copy->ops->free(copy);
        assert_true(is_waiting(bench.placer));
        bench.placer->ops->tidy(bench.placer, PIECE);
        bench_check(&bench);
    }
    if (is_cut) {
        assert_true(is_waiting(bench.placer));
        assert_string_equal(bench_cells(&bench, bench.placer), before);
        assert_int_equal(search(&bench, &request), PLACEMENT_BIND);
    }
    bench_release(&bench);
    return is_cut;
}

static void what_was_reserved_is_reserved_again_in_pieces(void **state)
{
    (void)state;
    uint32_t most = 0, cut = 1, pieces;
    for (; given_up_after(cut, cut % 2, &pieces); cut++)
        most = pieces > most ? pieces : most;
    assert_true(cut > 8);
    assert_true(most > 3);
}

enum meanwhile { IS_STOPPED, IS_ASKED_FOR, NODE_FAILS, MEANWHILES };

/* Some of it is reserved again, some not. */
static void what_happens_before_all_is_reserved_again(void **state)
{
    (void)state;
    for (uint32_t cut = 1; cut < 40; cut++)
        for (int what = 0; what < MEANWHILES; what++) {
            struct bench bench;
            const struct placement_request request = preempted(&bench);
            if (taken_some(&bench, &request, cut)) {
                bench.placer->ops->forget(bench.placer);
                bench.placer->ops->tidy(bench.placer, 1);
                if (what == NODE_FAILS)
                    assert_int_equal(bench_node(&bench, NODES - 1, 16, GPUS, false), 0);
                if (what == IS_STOPPED)
                    bench.placer->ops->cancel(bench.placer, "large");
                bench_check(&bench);
                if (what == IS_STOPPED) {
                    assert_false(is_waiting(bench.placer) && is_tidy(&bench));
                    tidy(&bench);
                    assert_false(is_known(&bench, "large"));
                }
                assert_int_equal(search(&bench, &request),
                                 what == NODE_FAILS ? PLACEMENT_WAIT : PLACEMENT_BIND);
                assert_int_equal(is_known(&bench, "large"), what != NODE_FAILS);
            }
            bench_release(&bench);
        }
}

/* What it had reserved goes back in pieces, and it is searched for anew; or it is given up. */
static void a_node_of_what_was_reserved_fails(void **state)
{
    (void)state;
    for (int is_given_up = 0; is_given_up < 2; is_given_up++) {
        struct bench bench;
        const struct placement_request request = preempted(&bench);
        struct placement_result result = {.is_cut = true};
        uint32_t pieces = 0;
        assert_int_equal(bench_node(&bench, NODES / 2, 16, GPUS, false), 0);
        for (; result.is_cut && is_known(&bench, "large"); pieces++) {
            struct placer *copy = bench.placer->ops->copy(bench.placer);
            search_is_cut(&bench, &request, &result);
            copy->ops->free(copy);
            if (is_given_up && pieces > 2)
                break;
        }
        if (is_given_up) {
            assert_true(is_known(&bench, "large"));
            bench.placer->ops->forget(bench.placer);
            assert_false(is_tidy(&bench));
            tidy(&bench);
            assert_false(is_known(&bench, "large"));
        }
        assert_true(pieces > 2);
        assert_int_equal(search(&bench, &request), PLACEMENT_WAIT);
        bench_release(&bench);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_large_group_ends_in_pieces),
    cmocka_unit_test(a_small_one_ends_at_once),
    cmocka_unit_test(whoever_asks_finds_all_cells_free),
    cmocka_unit_test(a_node_changes_between_two_pieces),
    cmocka_unit_test(a_search_in_pieces_gives_them_back_first),
    cmocka_unit_test(a_commit_in_pieces_gives_them_back_first),
    cmocka_unit_test(a_preemption_is_given_up_in_pieces),
    cmocka_unit_test(what_was_reserved_is_reserved_again_in_pieces),
    cmocka_unit_test(what_happens_before_all_is_reserved_again),
    cmocka_unit_test(a_node_of_what_was_reserved_fails),
};
UNIT_FILE(tests, NULL, NULL);
