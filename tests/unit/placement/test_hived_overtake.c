/* A large gang takes places for which others preempt: in pieces it comes to what it comes to at
 * once, and whoever was overtaken asks anew, even if the search for it is given up.
 * Covers: src/placement/hived_hold.c, src/placement/hived_search.c */
#include "bench.h"
#include "unit.h"

#include "base/err.h"
#include "hived/hived.h"
#include "placement/hived.h"

enum { NODES = 6, GPUS = 4, TASKS = NODES * GPUS, SLICE = 2, CUTS = 60, PIECES_MAX = 400 };

static struct placement_result place(struct placer *placer, struct bench *bench,
                                     const struct placement_request *request)
{
    struct placement_result result;
    struct err err = {0};
    assert_int_equal(placer->ops->place(placer, request, &bench->arena, &result, &err), 0);
    bench_check(bench);
    return result;
}

static struct placement_result search(struct placer *placer, struct bench *bench,
                                      const struct placement_request *request)
{
    struct placement_result result = place(placer, bench, request);
    for (uint32_t pieces = 1; result.is_cut; pieces++) {
        assert_true(pieces < PIECES_MAX);
        result = place(placer, bench, request);
    }
    return result;
}

static void take(struct placer *placer, const struct placement_request *request,
                 const struct placement_result *result)
{
    struct err err = {0};
    struct placement_request at_once = *request;
    at_once.slice = 0;
    assert_int_equal(
        placer->ops->commit(placer, &at_once, result->slots, result->slot_count, false, &err), 0);
}

static bool is_waiting(struct placer *placer, const char *group)
{
    struct hived_group_view view;
    return hived_group_find(placer_hived_state(placer), group, &view) &&
           view.state == HIVED_GROUP_PREEMPTING;
}

enum who { ONE_GANG, SMALL_JOBS, WHOS };

static const char *small_name(struct bench *bench, const char *what, uint32_t i)
{
    return arena_format(&bench->arena, "%s%u", what, i);
}

/* All nodes are in use, and some preempt; the jobs on so many nodes have ended. */
static void cluster_init(struct bench *bench, enum who who, uint32_t ended)
{
    bench_init(bench, NULL);
    for (uint32_t i = 0; i < NODES; i++)
        assert_int_equal(bench_node(bench, i, 16, GPUS, true), 0);
    for (uint32_t i = 0; i < NODES; i++) {
        const struct placement_request small =
            bench_ask(bench, small_name(bench, "small", i), 1, GPUS, 1);
        assert_int_equal(bench_place(bench, &small, true).kind, PLACEMENT_BIND);
    }
    for (uint32_t i = 0; i < (who == ONE_GANG ? 1 : NODES); i++) {
        struct placement_request weak =
            bench_ask(bench, small_name(bench, "weak", i), who == ONE_GANG ? TASKS : GPUS, 1, 1);
        weak.priority = 20;
        assert_int_equal(bench_place(bench, &weak, false).kind, PLACEMENT_PREEMPT);
    }
    for (uint32_t i = 0; i < ended; i++)
        bench->placer->ops->release_group(bench->placer, small_name(bench, "small", i));
}

static struct placement_request ask_strong(struct bench *bench, uint32_t tasks)
{
    struct placement_request request = bench_ask(bench, "strong", tasks, 1, 1);
    request.priority = 100;
    request.slice = SLICE;
    return request;
}

/* *cells: of a copy that does all of it at once. */
static struct placement_result place_at_once(struct bench *bench, struct placement_request request,
                                             const char **cells)
{
    struct placer *copy = bench->placer->ops->copy(bench->placer);
    request.slice = 0;
    const struct placement_result result = place(copy, bench, &request);
    assert_false(result.is_cut);
    if (result.kind == PLACEMENT_BIND)
        take(copy, &request, &result);
    *cells = bench_cells(bench, copy);
    copy->ops->free(copy);
    return result;
}

static void places_are_taken(enum who who, uint32_t ended, uint32_t tasks)
{
    for (uint32_t cut = 0; cut < CUTS; cut++) {
        struct bench bench;
        const char *cells;
        cluster_init(&bench, who, ended);
        const struct placement_request request = ask_strong(&bench, tasks);
        const struct placement_result whole = place_at_once(&bench, request, &cells);
        struct placement_result result = {.is_cut = true};
        for (uint32_t i = 0; i < cut && result.is_cut; i++)
            result = place(bench.placer, &bench, &request);
        struct placer *copy = bench.placer->ops->copy(bench.placer);
        struct placement_result other = result;
        if (result.is_cut) {
            result = search(bench.placer, &bench, &request);
            other = search(copy, &bench, &request);
        }
        assert_int_equal(result.kind, whole.kind);
        assert_int_equal(other.kind, whole.kind);
        assert_int_equal(result.victim_count, whole.victim_count);
        if (result.kind == PLACEMENT_BIND) {
            take(bench.placer, &request, &result);
            take(copy, &request, &other);
        }
        bench_check(&bench);
        assert_string_equal(bench_cells(&bench, bench.placer), cells);
        assert_string_equal(bench_cells(&bench, copy), cells);
        copy->ops->free(copy);
        bench_release(&bench);
    }
}

static void places_of_others_are_taken_in_pieces(void **state)
{
    (void)state;
    for (int who = 0; who < WHOS; who++) {
        places_are_taken((enum who)who, 0, TASKS);
        places_are_taken((enum who)who, NODES / 2, TASKS);
        places_are_taken((enum who)who, NODES - 1, TASKS);
    }
}

/* Nobody need be ended: what is reserved is free, but for the weaker ones. */
static void reserved_cells_are_taken_in_pieces(void **state)
{
    (void)state;
    for (int who = 0; who < WHOS; who++) {
        places_are_taken((enum who)who, NODES, TASKS);
        places_are_taken((enum who)who, NODES, TASKS / 2);
        places_are_taken((enum who)who, NODES / 2, TASKS / 3);
    }
}

static void given_up_after(uint32_t cut, enum who who, uint32_t ended, uint32_t tasks)
{
    struct bench bench;
    cluster_init(&bench, who, ended);
    const struct placement_request request = ask_strong(&bench, tasks);
    struct placement_result result = {.is_cut = true};
    for (uint32_t i = 0; i < cut && result.is_cut; i++)
        result = place(bench.placer, &bench, &request);
    if (cut % 3 == 0)
        assert_int_equal(bench_node(&bench, 0, 16, GPUS, true), 0);
    else if (cut % 3 == 1)
        bench.placer->ops->forget(bench.placer);
    bench.placer->ops->cancel(bench.placer, "strong");
    bench_check(&bench);
    assert_false(is_waiting(bench.placer, "strong"));
    const struct placement_request weak = {.group = "weak0",
                                           .virtual_cluster = "default",
                                           .priority = 20,
                                           .pinned_cell_id = "",
                                           .members = bench_ask(&bench, "", TASKS, 1, 1).members,
                                           .member_count = 1,
                                           .may_preempt = true};
    if (who == ONE_GANG) { /* it may have been overtaken, wholly or in part */
        const enum placement_kind kind = ended == NODES ? PLACEMENT_BIND : PLACEMENT_PREEMPT;
        assert_int_equal(bench_place(&bench, &weak, true).kind, kind);
        bench.placer->ops->cancel(bench.placer, "weak0");
        bench.placer->ops->release_group(bench.placer, "weak0");
    }
    for (uint32_t i = 0; i < NODES; i++) {
        bench.placer->ops->cancel(bench.placer, small_name(&bench, "weak", i));
        bench.placer->ops->release_group(bench.placer, small_name(&bench, "small", i));
    }
    struct placement_request all = ask_strong(&bench, TASKS);
    all.slice = 0;
    assert_int_equal(bench_place(&bench, &all, true).kind, PLACEMENT_BIND);
    bench_release(&bench);
}

static void who_was_overtaken_in_vain_asks_anew(void **state)
{
    (void)state;
    for (uint32_t cut = 1; cut < CUTS; cut++)
        for (int who = 0; who < WHOS; who++)
            for (uint32_t ended = 0; ended <= NODES; ended += NODES / 2)
                for (uint32_t tasks = 1; tasks <= TASKS; tasks += TASKS - 1)
                    given_up_after(cut, (enum who)who, ended, tasks);
}

/* One node's job is searched for at once; but what it makes a large gang give back is not a piece.
 */
static void small_job_takes_places_in_pieces(void **state)
{
    (void)state;
    for (int who = 0; who < WHOS; who++)
        for (uint32_t ended = 0; ended <= NODES; ended++)
            for (uint32_t tasks = 1; tasks <= SLICE; tasks++)
                places_are_taken((enum who)who, ended, tasks);
}

/* The pieces of a search for so few tasks that it is made at once where nobody gives much back. */
static uint32_t small_search_pieces(enum who who, uint32_t ended, uint32_t slice, bool may_preempt)
{
    struct bench bench;
    cluster_init(&bench, who, ended);
    struct placement_request request = ask_strong(&bench, 1);
    request.slice = slice;
    request.may_preempt = may_preempt;
    uint32_t pieces = 1;
    while (place(bench.placer, &bench, &request).is_cut)
        pieces++;
    bench_release(&bench);
    return pieces;
}

static void small_search_is_cut_only_where_others_give_much_back(void **state)
{
    (void)state;
    enum { PIECE = 3 * SLICE }; /* leaves */
    for (uint32_t ended = 0; ended <= NODES; ended += NODES) {
        assert_true(small_search_pieces(ONE_GANG, ended, SLICE, true) > TASKS / PIECE);
        assert_int_equal(small_search_pieces(ONE_GANG, ended, TASKS, true), 1);
        assert_int_equal(small_search_pieces(SMALL_JOBS, ended, TASKS, true), 1);
    }
    assert_int_equal(small_search_pieces(ONE_GANG, 0, SLICE, false), 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(places_of_others_are_taken_in_pieces),
    cmocka_unit_test(reserved_cells_are_taken_in_pieces),
    cmocka_unit_test(who_was_overtaken_in_vain_asks_anew),
    cmocka_unit_test(small_job_takes_places_in_pieces),
    cmocka_unit_test(small_search_is_cut_only_where_others_give_much_back),
};
UNIT_FILE(tests, NULL, NULL);
