/* A search in pieces finds what the same search finds at once, whatever is told between two pieces.
 */
#include "bench.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "hived/hived.h"
#include "placement/hived.h"

enum { NODES = 6, GPUS = 4, TASKS = 16, PIECES_MAX = 200, CUTS = 40 };

static void cluster_init(struct bench *bench)
{
    bench_init(bench, NULL);
    for (uint32_t i = 0; i < NODES; i++)
        assert_int_equal(bench_node(bench, i, 16, GPUS, true), 0);
}

static void small_jobs_run(struct bench *bench, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "small%u", i);
        const struct placement_request request = bench_ask(bench, name, 1, GPUS, 1);
        assert_int_equal(bench_place(bench, &request, true).kind, PLACEMENT_BIND);
    }
}

static struct placement_request ask_large(struct bench *bench, int32_t priority)
{
    struct placement_request request = bench_ask(bench, "large", TASKS, 1, 1);
    request.priority = priority;
    request.slice = 1;
    return request;
}

static struct placement_result place(struct placer *placer, struct bench *bench,
                                     const struct placement_request *request)
{
    struct placement_result result;
    struct err err = {0};
    assert_int_equal(placer->ops->place(placer, request, &bench->arena, &result, &err), 0);
    return result;
}

/* To its end. *pieces: how many there were. */
static struct placement_result search(struct placer *placer, struct bench *bench,
                                      const struct placement_request *request, uint32_t *pieces)
{
    struct placement_result result = place(placer, bench, request);
    for (*pieces = 1; result.is_cut; (*pieces)++) {
        assert_int_equal(result.kind, PLACEMENT_WAIT);
        assert_true(*pieces < PIECES_MAX);
        result = place(placer, bench, request);
    }
    return result;
}

static void results_equal(const struct placement_result *a, const struct placement_result *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->slot_count, b->slot_count);
    for (size_t i = 0; i < a->slot_count; i++) {
        assert_int_equal(a->slots[i].node.v, b->slots[i].node.v);
        assert_int_equal(a->slots[i].gpu_count, b->slots[i].gpu_count);
        assert_memory_equal(a->slots[i].gpus, b->slots[i].gpus,
                            a->slots[i].gpu_count * sizeof *a->slots[i].gpus);
    }
    assert_int_equal(a->victim_count, b->victim_count);
    for (size_t i = 0; i < a->victim_count; i++)
        assert_string_equal(a->victims[i], b->victims[i]);
}

static struct placement_result place_at_once(struct bench *bench, struct placement_request request)
{
    struct placer *copy = bench->placer->ops->copy(bench->placer);
    request.slice = 0;
    const struct placement_result result = place(copy, bench, &request);
    assert_false(result.is_cut);
    copy->ops->free(copy);
    return result;
}

static void take(struct bench *bench, const struct placement_request *request,
                 const struct placement_result *result)
{
    struct err err = {0};
    assert_int_equal(bench->placer->ops->commit(bench->placer, request, result->slots,
                                                result->slot_count, false, &err),
                     0);
    bench_check(bench);
}

static bool is_held(struct bench *bench, const char *group)
{
    struct hived_group_view view;
    return hived_group_find(placer_hived_state(bench->placer), group, &view);
}

static void what_is_found_is_what_is_found_at_once(void **state)
{
    (void)state;
    const uint32_t busy[] = {0, 2, NODES, 4}; /* it is bound, preempts, or waits */
    const int32_t priorities[] = {100, 100, 100, 10};
    for (size_t i = 0; i < COUNT_OF(busy); i++) {
        struct bench bench;
        uint32_t pieces;
        cluster_init(&bench);
        small_jobs_run(&bench, busy[i]);
        const struct placement_request request = ask_large(&bench, priorities[i]);
        const struct placement_result whole = place_at_once(&bench, request);
        const struct placement_result result = search(bench.placer, &bench, &request, &pieces);
        results_equal(&result, &whole);
        assert_int_equal(pieces > 2, result.kind != PLACEMENT_WAIT);
        if (result.kind == PLACEMENT_BIND)
            take(&bench, &request, &result);
        bench_release(&bench);
    }
}

static int commit(struct placer *placer, const struct placement_request *request,
                  const struct placement_result *result)
{
    return placer->ops->commit(placer, request, result->slots, result->slot_count, false, NULL);
}

static void take_in(struct placer *placer, const struct placement_request *request,
                    const struct placement_result *result)
{
    struct placement_request at_once = *request;
    at_once.slice = 0;
    assert_int_equal(commit(placer, &at_once, result), 0);
}

/* A copy has taken the cells that the original has taken, and no others. */
static void copies_have_as_much(struct bench *bench, struct placer *first, struct placer *second)
{
    const char *cells = bench_cells(bench, bench->placer);
    assert_string_equal(bench_cells(bench, first), cells);
    assert_string_equal(bench_cells(bench, second), cells);
}

/* When it is bound, it has begun to take its cells at the later ones of these. */
static void a_copy_goes_on_at_the_same_piece(void **state)
{
    (void)state;
    for (uint32_t cut = 1; cut < CUTS; cut++) {
        struct bench bench;
        uint32_t left, left_of_copy;
        cluster_init(&bench);
        small_jobs_run(&bench, cut % 2 ? NODES : 2);
        const struct placement_request request = ask_large(&bench, 100);
        struct placement_result result = {.is_cut = true};
        for (uint32_t i = 0; i < cut && result.is_cut; i++)
            result = place(bench.placer, &bench, &request);
        if (result.is_cut) {
            struct placer *first = bench.placer->ops->copy(bench.placer);
            struct placer *copy = first->ops->copy(first);
            copies_have_as_much(&bench, first, copy);
            const struct placement_result other = search(copy, &bench, &request, &left_of_copy);
            result = search(bench.placer, &bench, &request, &left);
            results_equal(&result, &other);
            assert_int_equal(left, left_of_copy);
            if (result.kind == PLACEMENT_BIND) {
                take(&bench, &request, &result);
                take_in(copy, &request, &other);
                take_in(first, &request, &result); /* before its answer */
                const char *cells = bench_cells(&bench, bench.placer);
                assert_string_equal(bench_cells(&bench, copy), cells);
                assert_string_equal(bench_cells(&bench, first), cells);
            }
            copy->ops->free(copy);
            first->ops->free(first);
        }
        bench_release(&bench);
    }
}

/* All nodes are free again: to put them in their order is a step before the first piece, unless
 * another search has done that. A copy takes as many. */
static void nodes_are_put_in_order_first(void **state)
{
    (void)state;
    uint32_t pieces[2];
    struct placement_result results[2];
    for (uint32_t is_probed = 0; is_probed < 2; is_probed++) {
        struct bench bench;
        uint32_t left;
        cluster_init(&bench);
        small_jobs_run(&bench, NODES);
        for (uint32_t i = 0; i < NODES; i++) {
            char name[16];
            snprintf(name, sizeof name, "small%u", i);
            bench.placer->ops->release_group(bench.placer, name);
        }
        const struct placement_request probe = bench_ask(&bench, "probe", 1, GPUS, 1);
        if (is_probed)
            assert_int_equal(place(bench.placer, &bench, &probe).kind, PLACEMENT_BIND);
        const struct placement_request request = ask_large(&bench, 100);
        const struct placement_result whole = place_at_once(&bench, request);
        struct placer *before = bench.placer->ops->copy(bench.placer);
        assert_true(place(bench.placer, &bench, &request).is_cut);
        struct placer *after = bench.placer->ops->copy(bench.placer);
        results[0] = search(before, &bench, &request, &pieces[is_probed]);
        results[1] = search(after, &bench, &request, &left);
        results_equal(&results[0], &whole);
        results_equal(&results[1], &whole);
        assert_int_equal(left, pieces[is_probed] - 1);
        results[1] = search(bench.placer, &bench, &request, &left);
        results_equal(&results[1], &whole);
        assert_int_equal(left, pieces[is_probed] - 1);
        take(&bench, &request, &results[1]);
        before->ops->free(before);
        after->ops->free(after);
        bench_release(&bench);
    }
    assert_int_equal(pieces[0], pieces[1] + 1);
}

/* Room that becomes free meanwhile is not for the search that has begun. */
static void ends_count_when_the_search_is_over(void **state)
{
    (void)state;
    struct bench bench;
    uint32_t pieces;
    cluster_init(&bench);
    small_jobs_run(&bench, NODES);
    const struct placement_request request = ask_large(&bench, 100);
    const struct placement_result whole = place_at_once(&bench, request);
    assert_true(place(bench.placer, &bench, &request).is_cut);
    bench.placer->ops->release_slot(bench.placer, "small0", 0);
    bench.placer->ops->release_group(bench.placer, "small1");
    bench.placer->ops->cancel(bench.placer, "nobody");
    assert_true(is_held(&bench, "small0"));
    struct placement_request check = bench_ask(&bench, "other", 1, 1, 1);
    check.is_check = true;
    assert_int_equal(place(bench.placer, &bench, &check).kind, PLACEMENT_BIND);
    const struct placement_result result = search(bench.placer, &bench, &request, &pieces);
    results_equal(&result, &whole);
    assert_int_equal(result.kind, PLACEMENT_PREEMPT);
    bench_release(&bench);
}

static void seen(void *context, const char *group, size_t slot, struct node_id node)
{
    (void)slot, (void)node;
    assert_string_not_equal(group, "large");
    *(uint32_t *)context += 1;
}

/* After so many pieces of a search for a gang while `busy` nodes are in use. */
static void give_up_after(uint32_t cut, uint32_t busy)
{
    struct bench bench;
    uint32_t count = 0;
    struct err err = {0};
    cluster_init(&bench);
    small_jobs_run(&bench, busy);
    const struct placement_request request = ask_large(&bench, 100);
    const char *before = bench_cells(&bench, bench.placer);
    struct placement_result result = {.is_cut = true};
    for (uint32_t i = 0; i < cut && result.is_cut; i++)
        result = place(bench.placer, &bench, &request);
    if (result.is_cut) {
        const struct placement_visit visit = {seen, &count};
        struct placer *copy = bench.placer->ops->copy(bench.placer);
        copy->ops->forget(copy);
        assert_string_equal(bench_cells(&bench, copy), before);
        copy->ops->free(copy);
        bench.placer->ops->release_slot(bench.placer, "small0", 0);
        assert_int_equal(bench.placer->ops->check(bench.placer, &visit, &err), 0);
        assert_int_equal(count, busy - 1);
        if (cut % 3 == 0)
            bench.placer->ops->forget(bench.placer);
        else if (cut % 3 == 1)
            bench.placer->ops->cancel(bench.placer, "large");
        else
            assert_int_equal(bench_node(&bench, 0, 16, GPUS, false), 0);
        assert_false(is_held(&bench, "large"));
        assert_false(is_held(&bench, "small0"));
    }
    bench_release(&bench);
}

static void what_is_given_up_leaves_nothing(void **state)
{
    (void)state;
    for (uint32_t cut = 1; cut < CUTS; cut++) {
        give_up_after(cut, NODES);
        give_up_after(cut, 2);
    }
}

static uint32_t leaves_held(struct bench *bench, const char *group)
{
    uint32_t count = 0;
    const char *node;
    for (uint32_t i = 0; i < TASKS && is_held(bench, group); i++)
        count += hived_group_slot(placer_hived_state(bench->placer), group, i, &node, NULL, 0);
    return count;
}

/* The answer comes when it has all of them, and nothing is free meanwhile that was not before. */
static void what_is_bound_takes_its_cells_in_pieces(void **state)
{
    (void)state;
    struct bench bench, whole;
    uint32_t has = 0, takings = 0, pieces = 0;
    cluster_init(&bench);
    cluster_init(&whole);
    small_jobs_run(&bench, 2);
    small_jobs_run(&whole, 2);
    struct placement_request request = ask_large(&bench, 100);
    struct placement_result result = {.is_cut = true};
    for (; result.is_cut; pieces++) {
        result = place(bench.placer, &bench, &request);
        const uint32_t now = leaves_held(&bench, "large");
        assert_true(now >= has && now <= has + 4);
        takings += now > has;
        has = now;
        bench_check(&bench);
        if (pieces == 5)
            bench.placer->ops->release_slot(bench.placer, "small1", 0);
        assert_true(is_held(&bench, "small1"));
    }
    assert_int_equal(has, TASKS);
    assert_true(takings > 4);
    take(&bench, &request, &result);
    assert_false(is_held(&bench, "small1"));
    request.slice = 0;
    const struct placement_result other = place(whole.placer, &whole, &request);
    take_in(whole.placer, &request, &other);
    whole.placer->ops->release_slot(whole.placer, "small1", 0);
    assert_string_equal(bench_cells(&whole, whole.placer), bench_cells(&bench, bench.placer));
    bench.placer->ops->release_group(bench.placer, "large");
    assert_false(is_held(&bench, "large"));
    bench_release(&whole);
    bench_release(&bench);
}

/* --- slots that were found elsewhere --- */

/* Two clusters that are alike; what was found in the first one is to be taken in the second. */
static struct placement_result given_init(struct bench *whole, struct bench *bench)
{
    cluster_init(whole);
    cluster_init(bench);
    small_jobs_run(whole, 2);
    small_jobs_run(bench, 2);
    struct placement_request request = ask_large(whole, 100);
    request.slice = 0;
    const struct placement_result result = place(whole->placer, whole, &request);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    take_in(whole->placer, &request, &result);
    return result;
}

/* To its end. Returns how many pieces there were. */
static uint32_t take_some(struct placer *placer, const struct placement_request *request,
                          const struct placement_result *result)
{
    uint32_t pieces = 1;
    int code = commit(placer, request, result);
    for (; code == PLACEMENT_CUT; pieces++) {
        assert_true(pieces < PIECES_MAX);
        code = commit(placer, request, result);
    }
    assert_int_equal(code, 0);
    return pieces;
}

/* What ends meanwhile counts when all are taken, and a copy goes on at the same piece. */
static void given_slots_are_taken_in_pieces(void **state)
{
    (void)state;
    uint32_t pieces = 2;
    for (uint32_t cut = 1; cut < pieces; cut++) {
        struct bench whole, bench;
        const struct placement_result result = given_init(&whole, &bench);
        const struct placement_request request = ask_large(&bench, 100);
        for (uint32_t i = 0; i < cut; i++) {
            assert_int_equal(commit(bench.placer, &request, &result), PLACEMENT_CUT);
            bench_check(&bench);
        }
        bench.placer->ops->release_slot(bench.placer, "small1", 0);
        whole.placer->ops->release_slot(whole.placer, "small1", 0);
        assert_true(is_held(&bench, "small1"));
        struct placer *copy = bench.placer->ops->copy(bench.placer);
        copies_have_as_much(&bench, bench.placer, copy);
        const uint32_t left = take_some(bench.placer, &request, &result);
        pieces = cut + left;
        assert_int_equal(take_some(copy, &request, &result), left);
        assert_false(is_held(&bench, "small1"));
        bench_check(&bench);
        const char *cells = bench_cells(&whole, whole.placer);
        assert_string_equal(bench_cells(&bench, bench.placer), cells);
        assert_string_equal(bench_cells(&bench, copy), cells);
        copy->ops->free(copy);
        bench_release(&whole);
        bench_release(&bench);
    }
    assert_true(pieces > 10);
}

static void given_slots_that_are_given_up_leave_nothing(void **state)
{
    (void)state;
    for (uint32_t cut = 1; cut < 12; cut++) {
        struct bench whole, bench;
        const struct placement_result result = given_init(&whole, &bench);
        const struct placement_request request = ask_large(&bench, 100);
        const char *before = bench_cells(&bench, bench.placer);
        for (uint32_t i = 0; i < cut; i++)
            assert_int_equal(commit(bench.placer, &request, &result), PLACEMENT_CUT);
        if (cut % 4 == 0)
            bench.placer->ops->forget(bench.placer);
        else if (cut % 4 == 1)
            bench.placer->ops->release_group(bench.placer, "large");
        else if (cut % 4 == 2)
            assert_int_equal(bench_node(&bench, 0, 16, GPUS, true), 0);
        else /* somebody else asks */
            assert_int_equal(place_at_once(&bench, bench_ask(&bench, "other", 1, 1, 1)).kind,
                             PLACEMENT_BIND);
        if (cut % 4 == 3)
            bench.placer->ops->forget(bench.placer);
        assert_false(is_held(&bench, "large"));
        assert_string_equal(bench_cells(&bench, bench.placer), before);
        take_some(bench.placer, &request, &result); /* it begins anew */
        assert_string_equal(bench_cells(&bench, bench.placer), bench_cells(&whole, whole.placer));
        bench_release(&whole);
        bench_release(&bench);
    }
}

/* Of a cluster where they are not free nothing is taken. */
static void given_slots_that_are_not_free_are_refused(void **state)
{
    (void)state;
    struct bench whole, bench;
    const struct placement_result result = given_init(&whole, &bench);
    const struct placement_request other = bench_ask(&bench, "other", NODES - 2, GPUS, 1);
    assert_int_equal(bench_place(&bench, &other, true).kind, PLACEMENT_BIND);
    const struct placement_request request = ask_large(&bench, 100);
    const char *before = bench_cells(&bench, bench.placer);
    int code = PLACEMENT_CUT;
    for (uint32_t i = 0; code == PLACEMENT_CUT && i < PIECES_MAX; i++)
        code = commit(bench.placer, &request, &result);
    assert_int_equal(code, ERR_CONFLICT);
    assert_string_equal(bench_cells(&bench, bench.placer), before);
    bench_check(&bench);
    bench_release(&whole);
    bench_release(&bench);
}

/* At once, and in pieces. */
static void a_placer_can_be_freed_after_any_piece(void **state)
{
    (void)state;
    for (uint32_t cut = 1; cut < CUTS; cut++) {
        struct bench bench;
        cluster_init(&bench);
        small_jobs_run(&bench, 2);
        const struct placement_request request = ask_large(&bench, 100);
        for (uint32_t i = 0; i < cut; i++)
            place(bench.placer, &bench, &request);
        bench.placer->ops->release_slot(bench.placer, "small0", 0);
        if (cut % 2) {
            bench.placer->ops->free(bench.placer);
        } else {
            while (!placer_free_some(bench.placer, 1))
                continue;
        }
        arena_release(&bench.arena);
    }
}

/* More cells than so many pieces hold: the pieces are larger. */
static void there_is_an_end_to_the_pieces(void **state)
{
    (void)state;
    enum { MANY = 100, LEAST = 20, MOST = 150 };
    struct bench bench;
    uint32_t pieces;
    bench_init(&bench, NULL);
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(bench_node(&bench, i, 16, GPUS, true), 0);
    struct placement_request request = bench_ask(&bench, "large", MANY, GPUS, 1);
    request.slice = 1;
    const struct placement_result result = search(bench.placer, &bench, &request, &pieces);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    assert_true(pieces > LEAST && pieces < MOST);
    take(&bench, &request, &result);
    bench_release(&bench);
}

/* No stage goes through all cells at once: with twice as many, a search has more pieces. */
static uint32_t pieces_before_cells(uint32_t nodes, uint32_t busy)
{
    struct bench bench;
    uint32_t pieces = 0;
    bench_init(&bench, NULL);
    for (uint32_t i = 0; i < nodes; i++)
        assert_int_equal(bench_node(&bench, i, 16, GPUS, true), 0);
    small_jobs_run(&bench, busy);
    struct placement_request request = bench_ask(&bench, "large", nodes, GPUS, 1);
    request.slice = 1;
    request.priority = 100;
    struct placement_result result = {.is_cut = true};
    for (; result.is_cut && !is_held(&bench, "large"); pieces++) {
        result = place(bench.placer, &bench, &request);
        bench_check(&bench);
    }
    assert_true(result.is_cut);
    bench_release(&bench);
    return pieces;
}

static void every_stage_is_cut(void **state)
{
    (void)state;
    enum { FEW = 8, MANY = 30, STAGES = 8 };
    assert_true(pieces_before_cells(MANY, 0) > pieces_before_cells(FEW, 0) + STAGES);
    assert_true(pieces_before_cells(MANY, MANY) > pieces_before_cells(FEW, FEW) + STAGES / 2);
}

/* A slice of them in each piece; the answer has all of them. */
static void victims_are_named_in_pieces(void **state)
{
    (void)state;
    struct bench bench;
    cluster_init(&bench);
    small_jobs_run(&bench, NODES);
    struct placement_request request = bench_ask(&bench, "large", NODES, GPUS, 1);
    request.slice = 2;
    request.priority = 100;
    const struct placement_result whole = place_at_once(&bench, request);
    assert_int_equal(whole.victim_count, NODES);
    struct placement_result result = {.is_cut = true};
    size_t named = 0;
    for (uint32_t pieces = 0; result.is_cut; pieces++) {
        assert_true(pieces < PIECES_MAX);
        result = place(bench.placer, &bench, &request);
        assert_true(result.victim_count <= result.victim_first + request.slice);
        if (result.victim_count)
            assert_int_equal(result.victim_first, named);
        named = result.victim_count;
    }
    assert_true(result.victim_first >= NODES - request.slice);
    results_equal(&result, &whole);
    bench_release(&bench);
}

/* It has preempted all small jobs, and they have ended: what it found then is taken in pieces. */
static void preempted(struct bench *bench, struct placement_request *request)
{
    uint32_t pieces;
    cluster_init(bench);
    small_jobs_run(bench, NODES);
    *request = bench_ask(bench, "large", NODES, GPUS, 1);
    request->slice = 1;
    request->priority = 100;
    assert_int_equal(search(bench->placer, bench, request, &pieces).kind, PLACEMENT_PREEMPT);
    for (uint32_t i = 0; i < NODES; i++) {
        char name[16];
        snprintf(name, sizeof name, "small%u", i);
        bench->placer->ops->release_group(bench->placer, name);
    }
}

static bool is_waiting(struct placer *placer)
{
    struct hived_group_view view;
    return hived_group_find(placer_hived_state(placer), "large", &view) &&
           view.state == HIVED_GROUP_PREEMPTING;
}

static void what_was_reserved_is_taken_in_pieces(void **state)
{
    (void)state;
    struct bench bench, whole;
    struct placement_request request;
    preempted(&whole, &request);
    preempted(&bench, &request);
    uint32_t takings = 0;
    struct placement_result result = {.is_cut = true};
    while (result.is_cut) {
        const char *before = bench_cells(&bench, bench.placer);
        result = place(bench.placer, &bench, &request);
        takings += strcmp(before, bench_cells(&bench, bench.placer)) != 0;
        bench_check(&bench);
    }
    assert_true(takings > NODES / 2);
    take(&bench, &request, &result);
    request.slice = 0;
    const struct placement_result other = place(whole.placer, &whole, &request);
    take_in(whole.placer, &request, &other);
    results_equal(&result, &other);
    assert_string_equal(bench_cells(&whole, whole.placer), bench_cells(&bench, bench.placer));
    bench_release(&whole);
    bench_release(&bench);
}

/* Others have ended for it: what it gave up is reserved for it as before, in a copy as well. */
static void what_was_reserved_is_reserved_again(void **state)
{
    (void)state;
    for (uint32_t cut = 1; cut < CUTS; cut++) {
        struct bench bench;
        struct placement_request request;
        uint32_t left, left_of_copy;
        preempted(&bench, &request);
        const char *before = bench_cells(&bench, bench.placer);
        struct placement_result result = {.is_cut = true};
        for (uint32_t i = 0; i < cut && result.is_cut; i++)
            result = place(bench.placer, &bench, &request);
        if (result.is_cut) {
            struct placer *copy = bench.placer->ops->copy(bench.placer);
            struct placer *other = copy->ops->copy(copy);
            copies_have_as_much(&bench, copy, other);
            copy->ops->forget(copy);
            assert_true(is_waiting(copy));
            assert_string_equal(bench_cells(&bench, copy), before);
            result = search(other, &bench, &request, &left_of_copy);
            struct placer *goes_on = bench.placer->ops->copy(bench.placer);
            const struct placement_result same = search(goes_on, &bench, &request, &left);
            results_equal(&result, &same);
            assert_int_equal(left, left_of_copy);
            if (cut % 2)
                bench.placer->ops->forget(bench.placer);
            else
                assert_int_equal(bench_node(&bench, 0, 16, GPUS, true), 0);
            bench_check(&bench);
            assert_true(is_waiting(bench.placer));
            assert_string_equal(bench_cells(&bench, bench.placer), before);
            bench.placer->ops->cancel(bench.placer, "large");
            while (!bench.placer->ops->tidy(bench.placer, 1))
                continue;
            assert_false(is_held(&bench, "large"));
            copy->ops->free(copy);
            other->ops->free(other);
            goes_on->ops->free(goes_on);
        }
        bench_release(&bench);
    }
}

static void another_question_ends_it(void **state)
{
    (void)state;
    struct bench bench;
    uint32_t pieces;
    cluster_init(&bench);
    small_jobs_run(&bench, 1);
    const struct placement_request request = ask_large(&bench, 100);
    assert_true(place(bench.placer, &bench, &request).is_cut);
    bench.placer->ops->release_slot(bench.placer, "small0", 0);
    small_jobs_run(&bench, 1);
    const struct placement_result result = search(bench.placer, &bench, &request, &pieces);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    small_jobs_run(&bench, 0);
    take(&bench, &request, &result);
    bench.placer->ops->release_group(bench.placer, "large");
    bench_release(&bench);
}

/* Nodes to avoid, and two leaf types: several questions to HiveD. */
static void several_questions(void **state)
{
    (void)state;
    const struct node_id avoid[] = {{0}, {1}, {2}, {3}};
    for (uint32_t count = 0; count <= COUNT_OF(avoid); count++) {
        struct bench bench;
        uint32_t pieces;
        cluster_init(&bench);
        small_jobs_run(&bench, count);
        struct placement_request request = ask_large(&bench, 100);
        struct placement_member *members = ARENA_ARRAY(&bench.arena, struct placement_member, 2);
        members[0] = members[1] = request.members[0];
        members[1].count = 2;
        members[1].gpu = 0;
        request.members = members;
        request.member_count = 2;
        request.avoid = avoid;
        request.avoid_count = count;
        const struct placement_result whole = place_at_once(&bench, request);
        const struct placement_result result = search(bench.placer, &bench, &request, &pieces);
        results_equal(&result, &whole);
        if (result.kind == PLACEMENT_BIND)
            take(&bench, &request, &result);
        bench_release(&bench);
    }
}

static void node_of_type(struct bench *bench, uint32_t id, const char *type)
{
    char name[16];
    snprintf(name, sizeof name, "n%u", id);
    const struct node_facts node = {.name = name,
                                    .cpu = 16,
                                    .memory_mib = 16384,
                                    .gpu_count = GPUS,
                                    .gpu_type = type,
                                    .is_healthy = true};
    struct err err = {0};
    assert_int_equal(bench->placer->ops->node_set(bench->placer, (struct node_id){id}, &node, &err),
                     0);
}

/* It preempts on two leaf types, as there is no room on one; asked again, it stays with them. */
static void a_preemption_stays_with_its_leaf_types(void **state)
{
    (void)state;
    struct bench bench;
    uint32_t pieces;
    bench_init(&bench, NULL);
    for (uint32_t i = 0; i < 4; i++)
        node_of_type(&bench, i, i < 3 ? "A" : "B");
    struct placement_request other = bench_ask(&bench, "other", 1, GPUS, 1);
    struct placement_member on_a = other.members[0];
    on_a.sku_type = "A";
    other.members = &on_a;
    other.priority = 200;
    assert_int_equal(bench_place(&bench, &other, true).kind, PLACEMENT_BIND);
    small_jobs_run(&bench, 3);
    struct placement_request request = ask_large(&bench, 100);
    struct placement_member members[2] = {request.members[0], request.members[0]};
    members[0].count = 2 * GPUS;
    members[0].sku_type = "A";
    members[1].count = GPUS;
    members[1].sku_type = "A,B";
    request.members = members;
    request.member_count = 2;
    for (int i = 0; i < 3; i++) {
        const struct placement_result whole = place_at_once(&bench, request);
        const struct placement_result result = search(bench.placer, &bench, &request, &pieces);
        assert_int_equal(result.kind, PLACEMENT_PREEMPT);
        assert_int_equal(result.victim_count, 3);
        results_equal(&result, &whole);
        bench_check(&bench);
    }
    bench_release(&bench);
}

/* Which nodes are to be avoided changes with time: the search, and a copy of it, keep to those of
 * its beginning. */
static void nodes_to_avoid_are_those_of_the_beginning(void **state)
{
    (void)state;
    const struct node_id first[] = {{0}, {1}}, later[] = {{4}, {5}};
    for (uint32_t cut = 1; cut < 4; cut++) {
        for (uint32_t count = 0; count <= 2; count++) {
            struct bench bench;
            uint32_t pieces;
            cluster_init(&bench);
            struct placement_request request = ask_large(&bench, 100);
            request.avoid = first;
            request.avoid_count = 2 - count;
            const struct placement_result whole = place_at_once(&bench, request);
            for (uint32_t i = 0; i < cut; i++)
                assert_true(place(bench.placer, &bench, &request).is_cut);
            request.avoid = later;
            request.avoid_count = count;
            struct placer *copy = bench.placer->ops->copy(bench.placer);
            const struct placement_result other = search(copy, &bench, &request, &pieces);
            const struct placement_result result = search(bench.placer, &bench, &request, &pieces);
            results_equal(&result, &whole);
            results_equal(&other, &whole);
            copy->ops->free(copy);
            take(&bench, &request, &result);
            bench_release(&bench);
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_found_is_what_is_found_at_once),
    cmocka_unit_test(a_copy_goes_on_at_the_same_piece),
    cmocka_unit_test(nodes_are_put_in_order_first),
    cmocka_unit_test(ends_count_when_the_search_is_over),
    cmocka_unit_test(what_is_given_up_leaves_nothing),
    cmocka_unit_test(what_is_bound_takes_its_cells_in_pieces),
    cmocka_unit_test(given_slots_are_taken_in_pieces),
    cmocka_unit_test(given_slots_that_are_given_up_leave_nothing),
    cmocka_unit_test(given_slots_that_are_not_free_are_refused),
    cmocka_unit_test(a_placer_can_be_freed_after_any_piece),
    cmocka_unit_test(there_is_an_end_to_the_pieces),
    cmocka_unit_test(another_question_ends_it),
    cmocka_unit_test(several_questions),
    cmocka_unit_test(a_preemption_stays_with_its_leaf_types),
    cmocka_unit_test(nodes_to_avoid_are_those_of_the_beginning),
    cmocka_unit_test(every_stage_is_cut),
    cmocka_unit_test(victims_are_named_in_pieces),
    cmocka_unit_test(what_was_reserved_is_taken_in_pieces),
    cmocka_unit_test(what_was_reserved_is_reserved_again),
};
UNIT_FILE(tests, NULL, NULL);
