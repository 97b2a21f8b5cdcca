/* The plain placers, at their own seam; and the invariants that every policy keeps.
 *
 * Covers: src/placement/placement.c, src/placement/simple_search.c, src/placement/simple_result.c,
 * src/placement/simple_check.c, src/placement/simple_copy.c */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/random.h"
#include "placement/hived.h"
#include "placement/simple.h"

static struct arena arena;

static void node_add(struct placer *placer, uint32_t id, uint32_t cpu, uint32_t gpu,
                     const char *type, bool is_healthy)
{
    static const uint16_t numa[8] = {0, 0, 0, 0, 1, 1, 1, 1}, places[8] = {0, 0, 1, 1, 2, 2, 3, 3};
    char name[16];
    snprintf(name, sizeof name, "n%u", id);
    struct node_facts node = {
        .name = name,
        .cpu = cpu,
        .memory_mib = cpu * 1000u,
        .gpu_count = gpu,
        .gpu_type = type,
        .gpu_numa = gpu == 8 ? numa : NULL,
        .gpu_switch = gpu == 8 ? places : NULL,
        .is_healthy = is_healthy,
    };
    struct err err = {0};
    assert_int_equal(placer->ops->node_set(placer, (struct node_id){id}, &node, &err), 0);
}

static struct placement_request request_of(const char *group, const struct placement_member *member,
                                           int32_t priority)
{
    return (struct placement_request){
        .group = group,
        .virtual_cluster = "default",
        .priority = priority,
        .pinned_cell_id = "",
        .members = member,
        .member_count = 1,
        .may_preempt = true,
    };
}

static struct placement_member member_of(uint32_t count, uint32_t cpu, uint32_t gpu)
{
    return (struct placement_member){count, cpu, 100, gpu, "", ""};
}

static struct placement_result place(struct placer *placer, struct placement_request *request)
{
    struct placement_result result;
    assert_int_equal(placer->ops->place(placer, request, &arena, &result, NULL), 0);
    return result;
}

static struct placement_result start(struct placer *placer, const char *group,
                                     struct placement_member member, int32_t priority)
{
    struct placement_request request = request_of(group, &member, priority);
    struct placement_result result = place(placer, &request);
    if (result.kind == PLACEMENT_BIND)
        assert_int_equal(
            placer->ops->commit(placer, &request, result.slots, result.slot_count, false, NULL), 0);
    return result;
}

static int setup(void **state)
{
    (void)state;
    arena_init(&arena);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static void test_order_of_nodes(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        uint32_t want;
    } cases[] = {{"first-fit", 0}, {"best-fit", 1}, {"spread", 2}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct placer *placer = placer_simple_new(cases[i].policy);
        assert_string_equal(placer->ops->name, cases[i].policy);
        node_add(placer, 0, 16, 4, "V100", true);
        node_add(placer, 1, 16, 2, "V100", true);
        node_add(placer, 2, 16, 8, "V100", true);
        struct placement_result result = start(placer, "a", member_of(1, 1, 2), 10);
        assert_int_equal(result.kind, PLACEMENT_BIND);
        assert_int_equal(result.slots[0].node.v, cases[i].want);
        placer->ops->free(placer);
    }
    assert_null(placer_simple_new("hived"));
}

static void test_neighbours(void **state)
{
    (void)state;
    struct placer *placer = placer_simple_new("first-fit");
    node_add(placer, 0, 64, 8, "V100", true);
    struct placement_result result = start(placer, "one", member_of(1, 1, 1), 10);
    assert_int_equal(result.slots[0].gpus[0], 0);
    result = start(placer, "pair", member_of(1, 1, 2), 10); /* one switch, not 1 and 2 */
    assert_int_equal(result.slots[0].gpus[0], 2);
    assert_int_equal(result.slots[0].gpus[1], 3);
    result = start(placer, "four", member_of(1, 1, 4), 10); /* one NUMA node */
    assert_int_equal(result.slots[0].gpus[0], 4);
    assert_int_equal(result.slots[0].gpus[3], 7);
    result = start(placer, "last", member_of(1, 1, 1), 10);
    assert_int_equal(result.slots[0].gpus[0], 1);
    placer->ops->release_group(placer, "four");
    result = start(placer, "again", member_of(2, 1, 2), 10);
    assert_int_equal(result.slots[1].gpus[0], 6);
    placer->ops->free(placer);
}

/* A GPU that is lost is given to nobody until it is back; what runs there is not disturbed. */
static void test_lost_gpu(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit", "hived"};
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct placer *placer =
            i == 0 ? placer_simple_new(policies[i]) : placer_hived_new(NULL, NULL);
        uint16_t switches[] = {0, 0, 0, 0};
        struct node_facts node = {.name = "n0",
                                  .cpu = 64,
                                  .memory_mib = 64000,
                                  .gpu_count = 4,
                                  .gpu_type = "V100",
                                  .gpu_switch = switches,
                                  .is_healthy = true};
        assert_int_equal(placer->ops->node_set(placer, (struct node_id){0}, &node, NULL), 0);
        struct placement_result result = start(placer, "runs", member_of(1, 1, 1), 10);
        const uint16_t lost = result.slots[0].gpus[0];
        switches[lost] = NODE_GPU_LOST;
        assert_int_equal(placer->ops->node_set(placer, (struct node_id){0}, &node, NULL), 0);
        result = start(placer, "others", member_of(3, 1, 1), 10);
        assert_int_equal(result.kind, PLACEMENT_BIND);
        for (size_t k = 0; k < 3; k++)
            assert_int_not_equal(result.slots[k].gpus[0], lost);
        placer->ops->release_group(placer, "runs");
        assert_int_equal(start(placer, "more", member_of(1, 1, 1), 10).kind, PLACEMENT_WAIT);
        placer->ops->release_group(placer, "others");
        assert_int_equal(start(placer, "whole", member_of(1, 1, 4), 10).kind, PLACEMENT_WAIT);
        switches[lost] = 0;
        assert_int_equal(placer->ops->node_set(placer, (struct node_id){0}, &node, NULL), 0);
        assert_int_equal(start(placer, "whole", member_of(1, 1, 4), 10).kind, PLACEMENT_BIND);
        placer->ops->free(placer);
    }
}

static void test_demands(void **state)
{
    (void)state;
    struct placer *placer = placer_simple_new("first-fit");
    node_add(placer, 0, 8, 4, "K80", true);
    node_add(placer, 1, 8, 4, "V100", true);
    node_add(placer, 2, 8, 4, "V100", false);
    struct placement_member member = member_of(1, 1, 1);
    member.sku_type = "P100, V100";
    assert_int_equal(start(placer, "sku", member, 10).slots[0].node.v, 1);
    member.sku_type = "H100";
    assert_true(start(placer, "none", member, 10).is_never);
    member = member_of(2, 1, 2);
    member.within_one_cell = "NODE"; /* together or not at all */
    struct placement_result result = start(placer, "together", member, 10);
    assert_int_equal(result.slots[0].node.v, 0);
    assert_int_equal(result.slots[1].node.v, 0);
    assert_int_equal(start(placer, "again", member, 10).kind, PLACEMENT_WAIT);
    assert_false(start(placer, "again", member, 10).is_never); /* a sick node may get well */
    assert_int_equal(start(placer, "apart", member_of(3, 1, 1), 10).kind, PLACEMENT_BIND);
    struct placement_member many = member_of(1, 1, PLACEMENT_GPUS_MAX + 1);
    struct placement_request request = request_of("many", &many, 10);
    assert_int_equal(placer->ops->place(placer, &request, &arena, &result, NULL), ERR_INVALID);
    request = request_of("pin", &member, 10);
    request.pinned_cell_id = "PIN";
    assert_int_equal(placer->ops->place(placer, &request, &arena, &result, NULL), ERR_NOT_FOUND);
    placer->ops->free(placer);
}

/* Numbers and holders are no part of what a reason is about; what is asked for is. */
static void test_topics(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit", "hived"};
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct placer *placer = placer_new(policies[i], TEXT(""), NULL);
        node_add(placer, 0, 8, 4, "K80", true);
        node_add(placer, 1, 8, 4, "V100", true);
        struct placement_member two = member_of(1, 1, 2), four = member_of(1, 1, 4);
        two.sku_type = four.sku_type = "V100";
        assert_int_equal(start(placer, "a", two, 10).kind, PLACEMENT_BIND);
        struct placement_result half_free = start(placer, "c", four, 10);
        assert_int_equal(start(placer, "b", member_of(1, 1, 1), 10).kind, PLACEMENT_BIND);
        assert_int_equal(start(placer, "d", two, 10).kind, PLACEMENT_BIND);
        struct placement_result full = start(placer, "c", four, 10);
        two.count = 8;
        two.sku_type = "K80";
        struct placement_result other = start(placer, "e", two, 10);
        assert_int_equal(full.kind, PLACEMENT_WAIT);
        assert_string_not_equal(half_free.reason, full.reason);
        if (i == 0) /* HiveD says what is free on one node only when there is any */
            assert_true(half_free.topic == full.topic);
        assert_true(full.topic != 0 && other.topic != full.topic);
        placer->ops->free(placer);
    }
    struct err err = {0};
    assert_null(placer_new("none", TEXT(""), &err));
    assert_string_equal(err.text, "there is no policy none");
}

static void test_avoid(void **state)
{
    (void)state;
    struct placer *placer = placer_simple_new("first-fit");
    node_add(placer, 0, 2, 0, "", true);
    node_add(placer, 1, 2, 0, "", true);
    struct placement_member member = member_of(1, 2, 0);
    struct node_id avoid = {0};
    struct placement_request request = request_of("a", &member, 10);
    request.avoid = &avoid;
    request.avoid_count = 1;
    struct placement_result result = place(placer, &request);
    assert_int_equal(result.slots[0].node.v, 1);
    assert_int_equal(placer->ops->commit(placer, &request, result.slots, 1, false, NULL), 0);
    request.group = "b"; /* when nothing else fits */
    result = place(placer, &request);
    assert_int_equal(result.slots[0].node.v, 0);
    /* taken in between */
    start(placer, "c", member, 10);
    assert_int_equal(placer->ops->commit(placer, &request, result.slots, 1, false, NULL),
                     ERR_CONFLICT);
    /* it runs, whatever the numbers say */
    assert_int_equal(placer->ops->commit(placer, &request, result.slots, 1, true, NULL), 0);
    node_add(placer, 1, 2, 0, "", false); /* sick: what is released there is nobody's */
    placer->ops->release_group(placer, "a");
    assert_int_equal(start(placer, "d", member, 10).kind, PLACEMENT_WAIT);
    placer->ops->free(placer);
}

static void test_victims(void **state)
{
    (void)state;
    struct placer *placer = placer_simple_new("first-fit");
    node_add(placer, 0, 64, 4, "V100", true);
    node_add(placer, 1, 64, 4, "V100", true);
    start(placer, "low2", member_of(1, 1, 2), 10);
    start(placer, "oppo2", member_of(1, 1, 2), -1);
    start(placer, "low4", member_of(1, 1, 4), 10);
    /* as few as possible, the lowest first */
    struct placement_result result = start(placer, "two", member_of(1, 1, 2), 100);
    assert_int_equal(result.kind, PLACEMENT_PREEMPT);
    assert_int_equal(result.victim_count, 1);
    assert_string_equal(result.victims[0], "oppo2");
    /* asked again: the same; others see what is kept for it as taken */
    result = start(placer, "two", member_of(1, 1, 2), 100);
    assert_int_equal(result.kind, PLACEMENT_PREEMPT);
    placer->ops->release_group(placer, "oppo2");
    assert_int_equal(start(placer, "sneak", member_of(1, 1, 1), 10).kind, PLACEMENT_WAIT);
    assert_int_equal(start(placer, "two", member_of(1, 1, 2), 100).kind, PLACEMENT_BIND);
    /* gives up: what was kept is free */
    result = start(placer, "four", member_of(1, 1, 4), 100);
    assert_int_equal(result.kind, PLACEMENT_PREEMPT);
    assert_string_equal(result.victims[0], "low4");
    placer->ops->release_group(placer, "low4");
    placer->ops->cancel(placer, "four");
    placer->ops->cancel(placer, "unknown");
    assert_int_equal(start(placer, "low", member_of(1, 1, 4), 10).kind, PLACEMENT_BIND);
    /* its node fails while it waits: it looks for another place */
    result = start(placer, "four", member_of(1, 1, 4), 100);
    assert_int_equal(result.kind, PLACEMENT_PREEMPT);
    node_add(placer, 1, 64, 4, "V100", false);
    assert_int_equal(start(placer, "four", member_of(1, 1, 4), 100).kind, PLACEMENT_WAIT);
    /* another virtual cluster's jobs are not ours to end, opportunistic ones are */
    struct placement_member member = member_of(1, 1, 4);
    struct placement_request request = request_of("other", &member, 1000);
    request.virtual_cluster = "vc1";
    assert_int_equal(place(placer, &request).kind, PLACEMENT_WAIT);
    placer->ops->free(placer);
}

/* Slots of a placer before: numbers of nodes that this one has not all seen, devices that it cannot
 * know, tasks that have ended. */
static void test_slots_given(void **state)
{
    (void)state;
    struct placer *placer = placer_simple_new("first-fit");
    node_add(placer, 2, 8, 4, "V100", true); /* 0 and 1 are not told yet */
    struct placer *copy = placer->ops->copy(placer);
    placer->ops->free(placer);
    placer = copy;
    struct placement_member member = member_of(3, 1, 2);
    struct placement_request request = request_of("a", &member, 10);
    struct placement_result result = place(placer, &request);
    assert_int_equal(result.kind, PLACEMENT_WAIT);
    assert_non_null(strstr(result.reason,
                           "free on 1 healthy node are 4 of 4 GPU (at most 4 on one), 8 of 8 CPU, "
                           "8000 of 8000 MiB"));
    const struct placement_slot ended = {.node = NODE_NONE},
                                odd = {
                                    .node = {2}, .gpu_count = 2, .gpus = (const uint16_t[]){1, 70}};
    const struct placement_slot slots[] = {ended, odd, ended}, none[] = {ended, ended, ended};
    assert_int_equal(placer->ops->commit(placer, &request, slots, 3, true, NULL), 0);
    placer->ops->release_slot(placer, "a", 0); /* ended before */
    placer->ops->release_slot(placer, "a", 9); /* no such slot */
    request.group = "b";
    assert_int_equal(placer->ops->commit(placer, &request, none, 3, true, NULL), 0);
    placer->ops->release_group(placer, "b");                 /* it is gone already */
    result = start(placer, "three", member_of(3, 1, 1), 10); /* device 70 is nobody's */
    assert_int_equal(result.kind, PLACEMENT_BIND);
    assert_int_equal(result.slots[1].gpus[0], 2);
    placer->ops->release_group(placer, "three");
    member = member_of(1, 1, 1);
    request = request_of("c", &member, 10);
    const struct placement_slot taken = {
        .node = {2}, .gpu_count = 1, .gpus = (const uint16_t[]){1}};
    assert_int_equal(placer->ops->commit(placer, &request, &taken, 1, false, NULL), ERR_CONFLICT);
    member.memory_mib = 8001;
    const struct placement_slot free_one = {
        .node = {2}, .gpu_count = 1, .gpus = (const uint16_t[]){2}};
    assert_int_equal(placer->ops->commit(placer, &request, &free_one, 1, false, NULL),
                     ERR_CONFLICT);
    member.memory_mib = 7900; /* with a's 100 that is all */
    assert_int_equal(placer->ops->commit(placer, &request, &free_one, 1, false, NULL), 0);
    member = member_of(1, 0, 0);
    member.memory_mib = 0; /* who needs nothing finds it everywhere */
    request = request_of("d", &member, 10);
    assert_int_equal(place(placer, &request).kind, PLACEMENT_BIND);
    placer->ops->free(placer);
}

enum { NODES = 4, GROUPS = 40, GPUS = 8 };

struct shadow {
    bool is_live;
    size_t count;
    struct placement_slot *slots;
};

static void shadow_check(const struct shadow *groups)
{
    uint32_t used[NODES][GPUS] = {0};
    for (size_t i = 0; i < GROUPS; i++)
        for (size_t j = 0; groups[i].is_live && j < groups[i].count; j++) {
            const struct placement_slot *slot = &groups[i].slots[j];
            for (size_t k = 0; slot->node.v != NODE_NONE.v && k < slot->gpu_count; k++)
                assert_int_equal(used[slot->node.v][slot->gpus[k]]++, 0); /* no GPU twice */
        }
}

static void group_run(struct placer *placer, struct shadow *groups, size_t i, struct random *random)
{
    char name[16];
    snprintf(name, sizeof name, "g%zu", i);
    struct placement_member member =
        member_of(1 + (uint32_t)random_below(random, 4), 1, 1 + (uint32_t)random_below(random, 5));
    struct placement_request request = request_of(name, &member, 10);
    request.may_preempt = false;
    struct placement_result result = place(placer, &request);
    if (result.kind == PLACEMENT_WAIT)
        assert_true(result.reason && *result.reason && !strchr(result.reason, '\n'));
    if (result.kind != PLACEMENT_BIND)
        return;
    assert_int_equal(result.slot_count, member.count); /* whole or not at all */
    assert_int_equal(
        placer->ops->commit(placer, &request, result.slots, result.slot_count, false, NULL), 0);
    free(groups[i].slots);
    groups[i] = (struct shadow){.is_live = true,
                                .count = result.slot_count,
                                .slots = placement_slots_copy(result.slots, result.slot_count)};
    for (size_t j = 0; j < result.slot_count; j++)
        assert_int_equal(result.slots[j].gpu_count, member.gpu);
}

static void group_end(struct placer *placer, struct shadow *group, size_t i, struct random *random)
{
    char name[16];
    snprintf(name, sizeof name, "g%zu", i);
    if (random_below(random, 2)) {
        placer->ops->release_group(placer, name);
        placer->ops->release_group(placer, name);
        group->is_live = false;
        return;
    }
    size_t slot = (size_t)random_below(random, group->count);
    placer->ops->release_slot(placer, name, slot);
    placer->ops->release_slot(placer, name, slot); /* idempotent */
    group->slots[slot].node = NODE_NONE;
    group->is_live = false;
    for (size_t j = 0; j < group->count; j++)
        group->is_live |= group->slots[j].node.v != NODE_NONE.v;
}

/* A cell is a node here: the whole gang goes to the one that suits the policy best. */
static void test_gang_in_one_cell(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        uint32_t node;
    } cases[] = {{"first-fit", 1}, {"best-fit", 2}, {"spread", 1}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct placer *placer = placer_simple_new(cases[i].policy);
        node_add(placer, 0, 16, 2, "V100", true);
        node_add(placer, 1, 16, 8, "V100", true);
        node_add(placer, 2, 16, 4, "V100", true);
        struct placement_member members[] = {member_of(2, 1, 1), member_of(1, 1, 2)};
        struct placement_request request = request_of("gang", members, 10);
        request.member_count = 2;
        request.within_one_cell = "rack";
        struct placement_result result = place(placer, &request);
        assert_int_equal(result.kind, PLACEMENT_BIND);
        for (size_t k = 0; k < 3; k++)
            assert_int_equal(result.slots[k].node.v, cases[i].node);
        members[0].count = 7; /* more than a node has */
        result = place(placer, &request);
        assert_true(result.is_never);
        assert_non_null(strstr(result.reason, "+ 1 x (2 GPU, 1 CPU, 100 MiB), all on one node:"));
        members[0].sku_type = members[1].sku_type = "K80";
        result = place(placer, &request);
        assert_non_null(strstr(result.reason, "no node has that type; it can never start"));
        placer->ops->free(placer);
    }
}

static void test_every_policy(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};
    for (size_t p = 0; p < COUNT_OF(policies); p++) {
        struct random random = {p + 1};
        struct placer *placer = strcmp(policies[p], "hived") == 0 ? placer_hived_new(NULL, NULL)
                                                                  : placer_simple_new(policies[p]);
        struct shadow groups[GROUPS] = {0};
        for (uint32_t i = 0; i < NODES; i++)
            node_add(placer, i, 16, GPUS, "V100", true);
        for (int i = 0; i < 3000; i++) {
            size_t at = (size_t)random_below(&random, GROUPS);
            if (groups[at].is_live)
                group_end(placer, &groups[at], at, &random);
            else
                group_run(placer, groups, at, &random);
            shadow_check(groups);
            if (i % 500 == 0) { /* a copy goes on as the original would, also one in pieces */
                struct placer *copy = i % 1000 ? placer->ops->copy(placer) : NULL;
                while (i % 1000 == 0 && !placer->ops->copy_some(
                                            placer, &copy, 1 + (uint32_t)random_below(&random, 9)))
                    ;
                placer->ops->free(placer);
                placer = copy;
            }
            arena_clear(&arena);
        }
        for (size_t i = 0; i < GROUPS; i++)
            free(groups[i].slots);
        placer->ops->free(placer);
    }
}

/* After a restart: tasks without devices are told by their node alone, and keep their guarantee. */
static void test_recovery_keeps_guarantees(void **state)
{
    (void)state;
    struct placer *placer = placer_hived_new(NULL, NULL);
    for (uint32_t i = 0; i < NODES; i++)
        node_add(placer, i, 9, 0, "", true);
    struct placement_member member = member_of(4, 1, 0);
    struct placement_request request = request_of("runs", &member, 10);
    struct placement_slot slots[4] = {0};
    assert_int_equal(placer->ops->commit(placer, &request, slots, 4, true, NULL), 0);
    member = member_of(NODES * 9 - 3, 1, 0);
    request = request_of("large", &member, 10);
    assert_int_equal(place(placer, &request).kind, PLACEMENT_WAIT); /* nobody to end */
    member = member_of(NODES * 9 - 4, 1, 0);
    assert_int_equal(place(placer, &request).kind, PLACEMENT_BIND);
    placer->ops->free(placer);
}

/* A check says whether a request can ever be served. It does not look for room, nor for the group:
 * it may have run before under that name, or run still. */
static void test_check(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct placer *placer = placer_new(policies[i], TEXT(""), NULL);
        node_add(placer, 0, 8, 4, "V100", true);
        const struct placement_member member = member_of(1, 1, 4);
        assert_int_equal(start(placer, "runs", member, 10).kind, PLACEMENT_BIND);
        struct placement_request request = request_of("runs", &member, 100);
        request.is_check = true;
        struct placement_result result = place(placer, &request);
        assert_int_equal(result.kind, PLACEMENT_BIND);
        assert_int_equal(result.slot_count, 0);
        request.pinned_cell_id = "PIN";
        assert_true(placer->ops->place(placer, &request, &arena, &result, NULL) < 0);
        request = request_of("waits", &member, 10);
        assert_int_equal(place(placer, &request).kind, PLACEMENT_WAIT);
        placer->ops->free(placer);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_order_of_nodes, setup, teardown),
    cmocka_unit_test_setup_teardown(test_lost_gpu, setup, teardown),
    cmocka_unit_test_setup_teardown(test_neighbours, setup, teardown),
    cmocka_unit_test_setup_teardown(test_demands, setup, teardown),
    cmocka_unit_test_setup_teardown(test_topics, setup, teardown),
    cmocka_unit_test_setup_teardown(test_avoid, setup, teardown),
    cmocka_unit_test_setup_teardown(test_victims, setup, teardown),
    cmocka_unit_test_setup_teardown(test_slots_given, setup, teardown),
    cmocka_unit_test_setup_teardown(test_every_policy, setup, teardown),
    cmocka_unit_test_setup_teardown(test_gang_in_one_cell, setup, teardown),
    cmocka_unit_test_setup_teardown(test_recovery_keeps_guarantees, setup, teardown),
    cmocka_unit_test_setup_teardown(test_check, setup, teardown),
};
UNIT_FILE(tests, NULL, NULL);
