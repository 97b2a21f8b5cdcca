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

enum { NODES = 6, GPUS = 4, TASKS = 16, PIECES_MAX = 100 };

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

static void a_copy_goes_on_at_the_same_piece(void **state)
{
    (void)state;
    for (uint32_t cut = 1; cut < 12; cut++) {
        struct bench bench;
        uint32_t left, left_of_copy;
        cluster_init(&bench);
        small_jobs_run(&bench, cut % 2 ? NODES : 2);
        const struct placement_request request = ask_large(&bench, 100);
        struct placement_result result = {.is_cut = true};
        for (uint32_t i = 0; i < cut && result.is_cut; i++)
            result = place(bench.placer, &bench, &request);
        if (result.is_cut) {
            struct placer *copy = bench.placer->ops->copy(bench.placer);
            const struct placement_result other = search(copy, &bench, &request, &left_of_copy);
            result = search(bench.placer, &bench, &request, &left);
            results_equal(&result, &other);
            assert_int_equal(left, left_of_copy);
            copy->ops->free(copy);
        }
        bench_release(&bench);
    }
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

static void what_is_given_up_leaves_nothing(void **state)
{
    (void)state;
    for (uint32_t cut = 1; cut < 12; cut++) {
        struct bench bench;
        uint32_t count = 0;
        struct err err = {0};
        cluster_init(&bench);
        small_jobs_run(&bench, NODES);
        const struct placement_request request = ask_large(&bench, 100);
        struct placement_result result = {.is_cut = true};
        for (uint32_t i = 0; i < cut && result.is_cut; i++)
            result = place(bench.placer, &bench, &request);
        if (result.is_cut) {
            const struct placement_visit visit = {seen, &count};
            bench.placer->ops->release_slot(bench.placer, "small0", 0);
            assert_int_equal(bench.placer->ops->check(bench.placer, &visit, &err), 0);
            assert_int_equal(count, NODES - 1);
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
    cmocka_unit_test(ends_count_when_the_search_is_over),
    cmocka_unit_test(what_is_given_up_leaves_nothing),
    cmocka_unit_test(another_question_ends_it),
    cmocka_unit_test(several_questions),
    cmocka_unit_test(a_preemption_stays_with_its_leaf_types),
    cmocka_unit_test(nodes_to_avoid_are_those_of_the_beginning),
};
UNIT_FILE(tests, NULL, NULL);
