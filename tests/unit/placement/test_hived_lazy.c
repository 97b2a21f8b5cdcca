/* A large gang displaces lazy groups in pieces, and takes their virtual cells; whatever comes
 * between.
 * Covers: src/placement/hived_search.c */
#include "bench.h"
#include "unit.h"

#include "base/err.h"
#include "hived/hived.h"
#include "hived_view.h"
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
    for (uint32_t tasks = 2 * GPUS; tasks > 0; tasks--) /* a single one, too */
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

/* --- what they lost comes back in pieces --- */

enum { LEAVES_PER_PIECE = 3 }; /* of a slice of one task */

static uint32_t displaced(const struct bench *bench)
{
    return hived_displaced_leaves(placer_hived_state(bench->placer));
}

/* A piece is over: whoever had lost so many leaves before has neither lost nor got back many. */
static void piece_is_small(const struct bench *bench, uint32_t *before)
{
    const uint32_t now = displaced(bench);
    assert_in_range(now + LEAVES_PER_PIECE, *before, *before + 2 * LEAVES_PER_PIECE);
    *before = now;
}

enum meanwhile { NOTHING, A_LOOK, A_NODE, AN_ASK, AN_END, AN_END_OF_A_TASK, A_COPY, MEANWHILE };

/* It comes when not all is back. */
static void meanwhile_comes(struct bench *bench, enum meanwhile what)
{
    struct placement_request small = bench_ask(bench, "small", 1, 1, 1);
    small.priority = 1; /* it displaces nobody itself */
    small.is_check = what == A_LOOK;
    struct placer *placer = bench->placer;
    if (what == A_NODE)
        assert_int_equal(bench_node(bench, 0, 16, GPUS, false), 0);
    else if (what == A_LOOK || what == AN_ASK)
        bench_place(bench, &small, false);
    else if (what == AN_END)
        placer->ops->release_group(placer, "lazy");
    else if (what == AN_END_OF_A_TASK)
        placer->ops->release_slot(placer, "lazy", 1);
    else if (what == A_COPY)
        bench->placer = placer->ops->copy(placer);
    if (what == A_COPY)
        placer->ops->free(placer);
}

/* What the placer shows when this has happened and nobody was displaced. */
static const char *cells_without(struct arena *arena, enum meanwhile what, bool is_full)
{
    struct bench bench;
    lazy_init(&bench, is_full);
    meanwhile_comes(&bench, what);
    while (!bench.placer->ops->tidy(bench.placer, 1))
        ;
    const char *cells = arena_copy(arena, text_of(bench_cells(&bench, bench.placer)));
    bench_release(&bench);
    return cells;
}

/* The search is given up before it takes cells, or before the gang preempts. Returns false: it has
 * less to give back. */
static bool given_up(enum meanwhile what, bool is_again, uint32_t returned)
{
    struct bench bench;
    struct placement_result result;
    lazy_init(&bench, is_again);
    const char *cells = cells_without(&bench.arena, what, is_again);
    for (int i = is_again ? 2 : 1; i > 0; i--) {
        while (displaced(&bench) > 0)
            assert_true(lazy_piece(&bench, bench.placer, &result));
        while (displaced(&bench) < 2 * GPUS)
            assert_true(lazy_piece(&bench, bench.placer, &result));
    }
    bench.placer->ops->forget(bench.placer);
    uint32_t left = 2 * GPUS;
    bool is_tidy = false;
    for (uint32_t i = 0; i < returned && !is_tidy; i++) {
        is_tidy = bench.placer->ops->tidy(bench.placer, 1);
        piece_is_small(&bench, &left);
        bench_check(&bench);
    }
    if (!is_tidy) {
        assert_true(left > 0);
        meanwhile_comes(&bench, what);
        const bool is_settled = what == A_NODE || what == AN_ASK;
        assert_int_equal(displaced(&bench), is_settled ? 0 : left);
        bench_check(&bench);
    }
    while (!bench.placer->ops->tidy(bench.placer, 1))
        bench_check(&bench);
    assert_int_equal(displaced(&bench), 0);
    if (!is_tidy)
        assert_string_equal(bench_cells(&bench, bench.placer), cells);
    bench_release(&bench);
    return !is_tidy;
}

static void what_a_search_is_given_up_for_comes_back_in_pieces(void **state)
{
    (void)state;
    for (int what = 0; what < 2 * MEANWHILE; what++) {
        uint32_t pieces = 0;
        while (given_up((enum meanwhile)(what / 2), what % 2, pieces))
            pieces++;
        assert_int_equal(pieces, (2 * GPUS + LEAVES_PER_PIECE - 1) / LEAVES_PER_PIECE);
    }
}

/* A piece of a search is over; the most that they have lost is noted. Returns whether it goes on.
 */
static bool small_piece(struct bench *bench, const struct placement_request *request,
                        struct placement_result *result, uint32_t *lost, uint32_t *most)
{
    assert_int_equal(bench->placer->ops->place(bench->placer, request, &bench->arena, result, NULL),
                     0);
    piece_is_small(bench, lost);
    *most = *lost > *most ? *lost : *most;
    return result->is_cut;
}

static void who_only_looks_gives_back_in_pieces(void **state)
{
    (void)state;
    struct bench bench;
    lazy_init(&bench, true);
    const char *cells = bench_cells(&bench, bench.placer);
    struct placement_request request = ask_lazy_cells(&bench);
    struct placement_result result;
    uint32_t lost = 0, most = 0;
    request.may_preempt = false;
    while (small_piece(&bench, &request, &result, &lost, &most))
        ;
    assert_int_equal(result.kind, PLACEMENT_PREEMPT);
    assert_int_equal(most, 2 * GPUS);
    assert_int_equal(lost, 0);
    assert_string_equal(bench_cells(&bench, bench.placer), cells);
    bench_release(&bench);
}

/* When nobody can be spared they are displaced once more, likewise, until it has a group: then what
 * they have lost is lost for good. */
static void who_preempts_displaces_in_pieces(void **state)
{
    (void)state;
    struct bench bench;
    struct hived_group_view view;
    lazy_init(&bench, true);
    struct placement_request request = ask_lazy_cells(&bench);
    struct placement_result result;
    uint32_t lost = 0, most = 0;
    bool is_again = false;
    for (;;) {
        assert_int_equal(
            bench.placer->ops->place(bench.placer, &request, &bench.arena, &result, NULL), 0);
        if (hived_group_find(placer_hived_state(bench.placer), "large", &view))
            break;
        assert_true(result.is_cut);
        piece_is_small(&bench, &lost);
        is_again |= most == 2 * GPUS && !lost;
        most = lost > most ? lost : most;
    }
    assert_true(is_again);
    assert_int_equal(lost, 2 * GPUS); /* in the piece before */
    assert_int_equal(displaced(&bench), 0);
    assert_true(hived_group_find(placer_hived_state(bench.placer), "lazy", &view));
    assert_true(view.is_lazy_preempted);
    bench_release(&bench);
}

/* The virtual cluster has cells enough once they are displaced, but no nodes: but for those that
 * are to be avoided, which are looked at then. */
static void what_does_not_help_is_given_back_in_pieces(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, bench_four_nodes);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(bench_node(&bench, i, 16, GPUS, true), 0);
    while (!bench.placer->ops->tidy(bench.placer, 1))
        ;
    struct placement_request lazy = bench_ask(&bench, "lazy", 1, GPUS, 1);
    lazy.priority = 1;
    lazy.is_lazy_preemptible = true;
    assert_int_equal(bench_place(&bench, &lazy, true).kind, PLACEMENT_BIND);
    const char *cells = bench_cells(&bench, bench.placer);
    struct placement_request request = ask_lazy_cells(&bench);
    const struct node_id avoid[] = {{1}, {2}, {3}};
    request.avoid = avoid;
    request.avoid_count = COUNT_OF(avoid);
    struct placement_result result;
    uint32_t lost = 0, most = 0;
    while (most < GPUS || lost)
        assert_true(small_piece(&bench, &request, &result, &lost, &most));
    bench.placer->ops->forget(bench.placer);
    assert_string_equal(bench_cells(&bench, bench.placer), cells);
    bench_release(&bench);
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
    cmocka_unit_test(what_a_search_is_given_up_for_comes_back_in_pieces),
    cmocka_unit_test(who_only_looks_gives_back_in_pieces),
    cmocka_unit_test(who_preempts_displaces_in_pieces),
    cmocka_unit_test(what_does_not_help_is_given_back_in_pieces),
};
UNIT_FILE(tests, NULL, NULL);
