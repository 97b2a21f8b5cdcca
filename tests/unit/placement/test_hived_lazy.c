/* A large gang displaces lazy groups in pieces, and takes their virtual cells; whatever comes
 * between.
 * Covers: src/placement/hived_search.c */
#include "bench.h"
#include "unit.h"

#include "base/err.h"
#include "hived/hived.h"
#include "placement/hived.h"

enum { GPUS = 4, PIECES_MAX = 200 };

static uint32_t tasks_asked = 2 * GPUS; /* by the large gang */

/* Of four nodes a lazy group has the two that its virtual cluster owns. `is_full`: another one has
 * the others, and must end for whoever takes these. */
static void lazy_init(struct bench *bench, bool is_full)
{
    bench_init(bench, bench_four_nodes);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(bench_node(bench, i, 16, GPUS, true), 0);
    while (!bench->placer->ops->tidy(bench->placer, 1))
        ;
    struct placement_request lazy = bench_ask(bench, "lazy", 2, GPUS, 1);
    lazy.priority = 1;
    lazy.is_lazy_preemptible = true;
    assert_int_equal(bench_place(bench, &lazy, true).kind, PLACEMENT_BIND);
    struct placement_request oppo = bench_ask(bench, "oppo", 2, GPUS, 1);
    oppo.priority = PLACEMENT_PRIORITY_OPPO;
    if (is_full)
        assert_int_equal(bench_place(bench, &oppo, true).kind, PLACEMENT_BIND);
}

/* Tasks of one GPU each. */
static struct placement_request ask_lazy_cells(struct bench *bench)
{
    struct placement_request request = bench_ask(bench, "large", tasks_asked, 1, 1);
    request.slice = 1;
    request.priority = 100;
    return request;
}

static const char *lazy_cells_at_once(struct arena *arena, bool is_full, enum placement_kind *kind)
{
    struct bench bench;
    lazy_init(&bench, is_full);
    struct placement_request request = ask_lazy_cells(&bench);
    request.slice = 0;
    *kind = bench_place(&bench, &request, true).kind;
    const char *cells = arena_copy(arena, text_of(bench_cells(&bench, bench.placer)));
    bench_release(&bench);
    return cells;
}

/* Is it cut? Nobody's cells are looked at, which would end it. */
static bool lazy_piece(struct bench *bench, struct placer *placer, struct placement_result *result)
{
    struct err err = {0};
    const struct placement_request request = ask_lazy_cells(bench);
    assert_int_equal(placer->ops->place(placer, &request, &bench->arena, result, &err), 0);
    assert_int_equal(hived_check(placer_hived_state(placer), &err), 0);
    if (!result->is_cut && result->kind == PLACEMENT_BIND)
        assert_int_equal(
            placer->ops->commit(placer, &request, result->slots, result->slot_count, false, &err),
            0);
    return result->is_cut;
}

/* Returns how many pieces there were. */
static uint32_t lazy_go_on(struct bench *bench, struct placer *placer, enum placement_kind kind)
{
    struct placement_result result;
    uint32_t pieces = 1;
    for (; lazy_piece(bench, placer, &result); pieces++)
        assert_true(pieces < PIECES_MAX);
    assert_int_equal(result.kind, kind);
    return pieces;
}

/* They lose their guarantee in pieces, and so the cells are taken. */
static void lazy_groups_are_displaced(uint32_t tasks)
{
    enum { PIECES_LEAST = 3 };
    tasks_asked = tasks;
    for (int is_full = 0; is_full < 2; is_full++) {
        uint32_t pieces = 2;
        for (uint32_t cut = 1; cut < pieces; cut++) {
            struct bench bench;
            struct placement_result result;
            struct hived_group_view view;
            enum placement_kind kind;
            lazy_init(&bench, is_full);
            const char *cells = lazy_cells_at_once(&bench.arena, is_full, &kind);
            assert_int_equal(kind, is_full ? PLACEMENT_PREEMPT : PLACEMENT_BIND);
            for (uint32_t i = 0; i < cut; i++)
                assert_true(lazy_piece(&bench, bench.placer, &result));
            struct placement_request small = bench_ask(&bench, "small", 1, 1, 1);
            small.is_check = true;
            bench_place(&bench, &small, false);
            struct placer *copy = bench.placer->ops->copy(bench.placer);
            const uint32_t left = lazy_go_on(&bench, bench.placer, kind);
            assert_int_equal(lazy_go_on(&bench, copy, kind), left);
            pieces = cut + left;
            assert_string_equal(bench_cells(&bench, bench.placer), cells);
            assert_string_equal(bench_cells(&bench, copy), cells);
            assert_true(hived_group_find(placer_hived_state(bench.placer), "lazy", &view));
            assert_true(view.is_lazy_preempted);
            copy->ops->free(copy);
            bench_release(&bench);
        }
        assert_true(pieces > PIECES_LEAST);
    }
}

/* One of which some cells are in the way loses all of them. */
static void lazy_groups_are_displaced_in_pieces(void **state)
{
    (void)state;
    for (uint32_t tasks = 2 * GPUS; tasks > 1; tasks--)
        lazy_groups_are_displaced(tasks);
    tasks_asked = 2 * GPUS;
}

/* They have back what they lost, unless its cells are being taken; then they keep what they have.
 */
static void lazy_groups_get_back_what_they_lost(void **state)
{
    (void)state;
    enum { FORGOTTEN, STOPPED, A_NODE_CHANGES, ANOTHER_ASKS, THEY_END, WAYS };
    for (int way = 0; way < WAYS; way++) {
        bool is_over = false;
        uint32_t returned = 0;
        for (uint32_t cut = 1; !is_over; cut++) {
            struct bench bench;
            struct placement_result result;
            struct hived_group_view view;
            lazy_init(&bench, false);
            const char *before = bench_cells(&bench, bench.placer);
            for (uint32_t i = 0; i < cut && !is_over; i++)
                is_over = !lazy_piece(&bench, bench.placer, &result);
            const bool is_taking =
                hived_group_find(placer_hived_state(bench.placer), "large", &view);
            struct placement_request small = bench_ask(&bench, "small", 1, 1, 1);
            small.may_preempt = false;
            if (way == THEY_END)
                bench.placer->ops->release_group(bench.placer, "lazy");
            if (way == STOPPED)
                bench.placer->ops->cancel(bench.placer, "large");
            else if (way == A_NODE_CHANGES)
                bench_node(&bench, 0, 16, GPUS, true);
            else if (way == ANOTHER_ASKS)
                bench_place(&bench, &small, false);
            bench.placer->ops->forget(bench.placer);
            while (!bench.placer->ops->tidy(bench.placer, 1))
                bench_check(&bench);
            bench_check(&bench);
            if (!is_over && !is_taking && way != THEY_END) {
                assert_string_equal(bench_cells(&bench, bench.placer), before);
                returned++;
            }
            if (!is_over && way == THEY_END)
                assert_false(hived_group_find(placer_hived_state(bench.placer), "lazy", &view));
            bench_release(&bench);
        }
        assert_true(way == THEY_END || returned > 3);
    }
}

/* Somebody starves: whether the gang may start is asked when it has its answer. Until then nothing
 * is final; with the commit it is. */
static void nothing_is_final_when_it_may_be_refused(void **state)
{
    (void)state;
    for (int is_refused = 0; is_refused < 2; is_refused++) {
        struct bench bench;
        struct placement_result result;
        struct hived_group_view view;
        enum placement_kind kind;
        lazy_init(&bench, false);
        const char *before = bench_cells(&bench, bench.placer);
        const char *cells = lazy_cells_at_once(&bench.arena, false, &kind);
        struct placement_request request = ask_lazy_cells(&bench);
        struct placer *placer = bench.placer;
        request.may_be_refused = true;
        for (uint32_t again = 0; again < 2; again++)
            do
                assert_int_equal(placer->ops->place(placer, &request, &bench.arena, &result, NULL),
                                 0);
            while (result.is_cut);
        assert_int_equal(result.kind, PLACEMENT_BIND);
        assert_false(hived_group_find(placer_hived_state(placer), "large", &view));
        if (is_refused)
            placer->ops->forget(placer);
        else
            assert_int_equal(
                placer->ops->commit(placer, &request, result.slots, result.slot_count, false, NULL),
                0);
        assert_string_equal(bench_cells(&bench, placer), is_refused ? before : cells);
        bench_release(&bench);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(lazy_groups_are_displaced_in_pieces),
    cmocka_unit_test(nothing_is_final_when_it_may_be_refused),
    cmocka_unit_test(lazy_groups_get_back_what_they_lost),
};
UNIT_FILE(tests, NULL, NULL);
