/* A request for the nodes of one engine, at each policy.
 *
 * Covers: src/placement/hived_place.c, src/placement/hived_hold.c, src/placement/simple_search.c,
 * src/placement/simple.c */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "placement/placement.h"

static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};

static struct arena arena;

static int begin(void **state)
{
    (void)state;
    arena_init(&arena);
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

/* Of four GPUs. Even ones are of the engine "a", odd ones of "b". */
static void node_add(struct placer *placer, uint32_t id, uint32_t gpus)
{
    char name[16];
    snprintf(name, sizeof name, "n%u", id);
    struct node_facts node = {.name = name,
                              .engine = id % 2 ? "b" : "a",
                              .cpu = 8,
                              .memory_mib = 8192,
                              .gpu_count = gpus,
                              .gpu_type = gpus ? "V100" : "",
                              .is_healthy = true};
    assert_int_equal(placer->ops->node_set(placer, (struct node_id){id}, &node, NULL), 0);
}

static struct placer *placer_of(const char *policy, uint32_t nodes)
{
    struct err err = {0};
    struct placer *placer = placer_new(policy, TEXT(""), &err);
    assert_non_null(placer);
    for (uint32_t i = 0; i < nodes; i++)
        node_add(placer, i, 4);
    return placer;
}

static struct placement_request request_of(const char *group, const char *engine, uint32_t tasks)
{
    struct placement_member *member = ARENA_NEW(&arena, struct placement_member);
    *member = (struct placement_member){
        .count = tasks, .cpu = 1, .gpu = 4, .memory_mib = 1, .sku_type = "", .within_one_cell = ""};
    return (struct placement_request){.group = group,
                                      .engine = engine,
                                      .virtual_cluster = "default",
                                      .priority = 10,
                                      .pinned_cell_id = "",
                                      .members = member,
                                      .member_count = 1,
                                      .may_preempt = true};
}

/* Until it is answered. */
static struct placement_result place(struct placer *placer, const struct placement_request *request)
{
    struct placement_result result;
    do
        assert_int_equal(placer->ops->place(placer, request, &arena, &result, NULL), 0);
    while (result.is_cut);
    return result;
}

static struct placement_result start(struct placer *placer, const struct placement_request *request)
{
    struct placement_result result = place(placer, request);
    if (result.kind == PLACEMENT_BIND)
        assert_int_equal(
            placer->ops->commit(placer, request, result.slots, result.slot_count, false, NULL), 0);
    return result;
}

static void only_its_nodes_are_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++)
        for (uint32_t slice = 0; slice < 2; slice++) {
            struct placer *placer = placer_of(policies[i], 6);
            struct placement_request request = request_of("two", "b", 2);
            request.slice = slice;
            struct placement_result result = start(placer, &request);
            assert_int_equal(result.kind, PLACEMENT_BIND);
            assert_true(result.slots[0].node.v % 2 && result.slots[1].node.v % 2);
            request = request_of("more", "b", 2); /* one is left there, and three elsewhere */
            request.slice = slice;
            assert_int_equal(start(placer, &request).kind, PLACEMENT_WAIT);
            request.engine = NULL;
            assert_int_equal(start(placer, &request).kind, PLACEMENT_BIND);
            request = request_of("none", "c", 1);
            assert_int_equal(start(placer, &request).kind, PLACEMENT_WAIT);
            placer->ops->free(placer);
        }
}

static void what_should_be_avoided_is_taken_last(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++)
        for (uint32_t slice = 0; slice < 2; slice++) {
            struct placer *placer = placer_of(policies[i], 4);
            const struct node_id avoid = {1};
            struct placement_request request = request_of("first", "b", 1);
            request.avoid = &avoid;
            request.avoid_count = 1;
            request.slice = slice;
            assert_int_equal(start(placer, &request).slots[0].node.v, 3);
            request.group = "second";
            assert_int_equal(start(placer, &request).slots[0].node.v, 1);
            request.group = "third";
            assert_int_equal(start(placer, &request).kind, PLACEMENT_WAIT);
            placer->ops->free(placer);
        }
}

/* Whoever is in the way on another engine is left alone. */
static void victims_are_on_its_nodes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct placer *placer = placer_of(policies[i], 4);
        struct placement_request request = request_of("low-a", "a", 2);
        request.priority = 1; /* lower than the other, which would go first */
        start(placer, &request);
        request = request_of("low-b", "b", 2);
        request.priority = 2;
        start(placer, &request);
        request = request_of("high", "b", 2);
        request.priority = 100;
        for (int round = 0; round < 2; round++) { /* found, and asked again */
            const struct placement_result result = place(placer, &request);
            assert_int_equal(result.kind, PLACEMENT_PREEMPT);
            assert_int_equal(result.victim_count, 1);
            assert_string_equal(result.victims[0], "low-b");
        }
        placer->ops->release_group(placer, "low-b");
        const struct placement_result result = start(placer, &request);
        assert_int_equal(result.kind, PLACEMENT_BIND);
        assert_true(result.slots[0].node.v % 2 && result.slots[1].node.v % 2);
        placer->ops->free(placer);
    }
}

/* Workers on GPUs and a server on a node without: two parts for HiveD, both on one engine. */
static void all_kinds_of_nodes_are_its_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct placer *placer = placer_of(policies[i], 2);
        node_add(placer, 2, 0);
        node_add(placer, 3, 0);
        const struct placement_member members[] = {
            {.count = 1, .cpu = 8, .memory_mib = 1, .sku_type = "", .within_one_cell = ""},
            {.count = 1,
             .cpu = 1,
             .gpu = 4,
             .memory_mib = 1,
             .sku_type = "",
             .within_one_cell = ""},
        };
        struct placement_request request = request_of("mix", "b", 1);
        request.members = members;
        request.member_count = 2;
        const struct placement_result result = start(placer, &request);
        assert_int_equal(result.kind, PLACEMENT_BIND);
        assert_int_equal(result.slots[0].node.v, 3);
        assert_int_equal(result.slots[1].node.v, 1);
        placer->ops->free(placer);
    }
}

/* What it says of the room is of these nodes; a check asks whether anything can ever serve it. */
static void reasons_are_of_its_nodes(void **state)
{
    (void)state;
    struct placer *placer = placer_of("best-fit", 5);
    struct placement_request request = request_of("many", "b", 3);
    const struct placement_result result = place(placer, &request);
    assert_int_equal(result.kind, PLACEMENT_WAIT);
    assert_true(result.is_never);
    assert_non_null(strstr(result.reason, "free on 2 healthy nodes are 8 of 8 GPU"));
    placer->ops->free(placer);
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        placer = placer_of(policies[i], 1);
        request = request_of("check", "b", 1);
        request.is_check = true;
        assert_int_equal(place(placer, &request).kind, PLACEMENT_BIND);
        placer->ops->free(placer);
    }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)
static const struct CMUnitTest tests[] = {
    TEST(only_its_nodes_are_taken), TEST(what_should_be_avoided_is_taken_last),
    TEST(victims_are_on_its_nodes), TEST(all_kinds_of_nodes_are_its_own),
    TEST(reasons_are_of_its_nodes),
};
UNIT_FILE(tests, NULL, NULL);
