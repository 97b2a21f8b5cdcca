/* What is told during a search in pieces counts after it, in pieces as well: each sees it in its
 * order, and whoever asks for places finds that it counts. */
#include "bench.h"
#include "unit.h"

#include <stdio.h>

#include "base/err.h"
#include "hived/hived.h"
#include "placement/hived.h"

enum { NODES = 16, GPUS = 4, SMALL = 12, TASKS = 16, SLICE = 16 /* tasks: two ends in a piece */ };

static void cluster_init(struct bench *bench)
{
    bench_init(bench, NULL);
    for (uint32_t i = 0; i < NODES; i++)
        assert_int_equal(bench_node(bench, i, 16, GPUS, true), 0);
    while (!bench->placer->ops->tidy(bench->placer, SLICE)) /* the cells are made in pieces, too */
        ;
}

static const char *small_name(struct bench *bench, uint32_t i)
{
    return arena_format(&bench->arena, "small%u", i);
}

static void small_jobs_run(struct bench *bench)
{
    for (uint32_t i = 0; i < SMALL; i++) {
        const struct placement_request request = bench_ask(bench, small_name(bench, i), 1, GPUS, 1);
        assert_int_equal(bench_place(bench, &request, true).kind, PLACEMENT_BIND);
    }
}

static struct placement_request ask_large(struct bench *bench)
{
    struct placement_request request = bench_ask(bench, "large", TASKS, 1, 1);
    request.slice = 2;
    return request;
}

static struct placement_result place(struct bench *bench, const struct placement_request *request)
{
    struct placement_result result;
    struct err err = {0};
    assert_int_equal(
        bench->placer->ops->place(bench->placer, request, &bench->arena, &result, &err), 0);
    bench_check(bench);
    return result;
}

static bool is_tidy(struct placer *placer)
{
    return placer->ops->tidy(placer, 0);
}

static bool is_known(struct placer *placer, const char *group)
{
    struct hived_group_view view;
    return hived_group_find(placer_hived_state(placer), group, &view);
}

static uint32_t small_count(struct placer *placer, struct bench *bench)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < SMALL; i++)
        count += is_known(placer, small_name(bench, i));
    return count;
}

/* The small jobs end while the large one is searched for: by their task, or as a group. */
static struct placement_request small_jobs_end(struct bench *bench)
{
    cluster_init(bench);
    small_jobs_run(bench);
    const struct placement_request request = ask_large(bench);
    assert_true(place(bench, &request).is_cut);
    for (uint32_t i = 0; i < SMALL; i++) {
        if (i % 2)
            bench->placer->ops->release_slot(bench->placer, small_name(bench, i), 0);
        else
            bench->placer->ops->release_group(bench->placer, small_name(bench, i));
    }
    assert_int_equal(small_count(bench->placer, bench), SMALL);
    return request;
}

static void large_starts(struct bench *bench, const struct placement_request *request)
{
    struct err err = {0};
    struct placement_result result;
    do
        result = place(bench, request);
    while (result.is_cut);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    struct placement_request at_once = *request;
    at_once.slice = 0;
    assert_int_equal(bench->placer->ops->commit(bench->placer, &at_once, result.slots,
                                                result.slot_count, false, &err),
                     0);
    bench_check(bench);
}

/* *pieces: until all count. */
static void tidy(struct placer *placer, struct bench *bench, uint32_t *pieces)
{
    uint32_t left = small_count(placer, bench);
    for (*pieces = 0; !is_tidy(placer); ++*pieces) {
        placer->ops->tidy(placer, SLICE);
        assert_true(small_count(placer, bench) < left);
        left = small_count(placer, bench);
        bench_check(bench);
    }
    assert_int_equal(left, 0);
}

enum over { IS_COMMITTED, IS_FORGOTTEN, IS_CANCELLED, NODE_APPEARS, OVERS };

static void search_ends(struct bench *bench, const struct placement_request *request,
                        enum over over)
{
    if (over == IS_COMMITTED)
        large_starts(bench, request);
    else if (over == IS_FORGOTTEN)
        bench->placer->ops->forget(bench->placer);
    else if (over == IS_CANCELLED)
        bench->placer->ops->cancel(bench->placer, "large");
    else
        assert_int_equal(bench_node(bench, 0, 16, GPUS, true), 0);
    bench_check(bench);
}

static void ends_count_in_pieces(void **state)
{
    (void)state;
    for (int over = 0; over < OVERS; over++) {
        struct bench bench;
        uint32_t pieces;
        const struct placement_request request = small_jobs_end(&bench);
        search_ends(&bench, &request, (enum over)over);
        assert_false(is_tidy(bench.placer));
        assert_in_range(small_count(bench.placer, &bench), SMALL - 2, SMALL - 1);
        tidy(bench.placer, &bench, &pieces);
        assert_in_range(pieces, 4, SMALL);
        assert_int_equal(is_known(bench.placer, "large"), over == IS_COMMITTED);
        bench_release(&bench);
    }
}

/* It tells a copy in its turn: both come to the same. */
static void a_copy_goes_on_at_the_same_place(void **state)
{
    (void)state;
    for (uint32_t done = 0; done < 4; done++) {
        struct bench bench;
        uint32_t pieces, pieces_of_copy;
        const struct placement_request request = small_jobs_end(&bench);
        search_ends(&bench, &request, IS_COMMITTED);
        for (uint32_t i = 0; i < done; i++)
            bench.placer->ops->tidy(bench.placer, SLICE);
        struct placer *copy = bench.placer->ops->copy(bench.placer);
        assert_false(is_tidy(copy));
        tidy(copy, &bench, &pieces_of_copy);
        tidy(bench.placer, &bench, &pieces);
        assert_int_equal(pieces, pieces_of_copy);
        assert_string_equal(bench_cells(&bench, copy), bench_cells(&bench, bench.placer));
        copy->ops->free(copy);
        bench_release(&bench);
    }
}

/* What ends before all count waits for its turn; the same is told twice. */
static void what_ends_meanwhile_waits_for_its_turn(void **state)
{
    (void)state;
    struct bench bench;
    uint32_t pieces;
    const struct placement_request request = small_jobs_end(&bench);
    search_ends(&bench, &request, IS_COMMITTED);
    bench.placer->ops->release_group(bench.placer, "large");
    bench.placer->ops->release_group(bench.placer, "small11");
    bench.placer->ops->cancel(bench.placer, "nobody");
    bench_check(&bench);
    assert_true(is_known(bench.placer, "large"));
    for (pieces = 0; !is_tidy(bench.placer); pieces++) {
        bench.placer->ops->tidy(bench.placer, SLICE);
        bench_check(&bench);
        assert_true(!is_known(bench.placer, "large") || is_known(bench.placer, "small11") ||
                    !small_count(bench.placer, &bench));
    }
    assert_int_equal(small_count(bench.placer, &bench), 0);
    assert_false(is_known(bench.placer, "large"));
    bench_release(&bench);
}

/* A search at once finds all of it free; one in pieces goes on with it first. A node that fails
 * counts at once. */
static void whoever_asks_finds_all_free(void **state)
{
    (void)state;
    for (uint32_t slice = 0; slice <= SLICE; slice += SLICE) {
        struct bench bench;
        uint32_t pieces = 1;
        const struct placement_request request = small_jobs_end(&bench);
        search_ends(&bench, &request, IS_FORGOTTEN);
        assert_int_equal(bench_node(&bench, 1, 16, GPUS, false), 0);
        assert_false(is_tidy(bench.placer));
        struct placement_request all = bench_ask(&bench, "all", (NODES - 1) * GPUS, 1, 1);
        all.slice = slice;
        struct placement_result result;
        for (; (result = place(&bench, &all)).is_cut && !is_tidy(bench.placer); pieces++)
            ;
        assert_int_equal(pieces > 3, slice > 0);
        while (result.is_cut)
            result = place(&bench, &all);
        assert_int_equal(result.kind, PLACEMENT_BIND);
        bench_release(&bench);
    }
}

/* Slots that are given find them free as well. */
static void a_commit_finds_all_free(void **state)
{
    (void)state;
    for (uint32_t slice = 0; slice <= SLICE; slice += SLICE) {
        struct bench bench;
        struct err err = {0};
        cluster_init(&bench);
        struct placement_request other = bench_ask(&bench, "other", NODES * GPUS, 1, 1);
        const struct placement_result result = bench_place(&bench, &other, false);
        small_jobs_run(&bench);
        const struct placement_request request = ask_large(&bench);
        assert_true(place(&bench, &request).is_cut);
        for (uint32_t i = 0; i < SMALL; i++)
            bench.placer->ops->release_group(bench.placer, small_name(&bench, i));
        bench.placer->ops->forget(bench.placer);
        assert_false(is_tidy(bench.placer));
        other.slice = slice;
        int code = PLACEMENT_CUT;
        for (uint32_t i = 0; code == PLACEMENT_CUT; i++) {
            assert_true(slice || !i);
            code = bench.placer->ops->commit(bench.placer, &other, result.slots, result.slot_count,
                                             false, &err);
        }
        assert_int_equal(code, 0);
        bench_check(&bench);
        bench_release(&bench);
    }
}

static void a_placer_can_be_freed_before_all_count(void **state)
{
    (void)state;
    for (uint32_t done = 0; done < 4; done++) {
        struct bench bench;
        const struct placement_request request = small_jobs_end(&bench);
        search_ends(&bench, &request, IS_COMMITTED);
        for (uint32_t i = 0; i < done; i++)
            bench.placer->ops->tidy(bench.placer, SLICE);
        assert_false(is_tidy(bench.placer));
        bench_release(&bench);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ends_count_in_pieces),
    cmocka_unit_test(a_copy_goes_on_at_the_same_place),
    cmocka_unit_test(what_ends_meanwhile_waits_for_its_turn),
    cmocka_unit_test(whoever_asks_finds_all_free),
    cmocka_unit_test(a_commit_finds_all_free),
    cmocka_unit_test(a_placer_can_be_freed_before_all_count),
};
UNIT_FILE(tests, NULL, NULL);
