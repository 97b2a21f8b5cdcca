/* Groups that may be ended under the plain policies are passed over where that would not help: it
 * is seen in how many pieces a search takes. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "placement/placement.h"
#include "placement/simple.h"

enum { GPUS = 4, MANY = 400, PROMISED = 380, PIECES_MAX = 300 };

static const char *const policies[] = {"first-fit", "best-fit", "spread"};

static struct arena arena;

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

static const struct placement_member small = {1, 1, 64, GPUS, "", ""};

static void node_set(struct placer *placer, uint32_t id, const char *type, const char *engine)
{
    const struct node_facts node = {.name = "n",
                                    .cpu = 16,
                                    .memory_mib = 16384,
                                    .gpu_count = GPUS,
                                    .gpu_type = type,
                                    .engine = engine,
                                    .is_healthy = true};
    assert_int_equal(placer->ops->node_set(placer, (struct node_id){id}, &node, NULL), 0);
}

static struct placement_request ask(const char *group, const struct placement_member *members,
                                    size_t count, int32_t priority)
{
    return (struct placement_request){.group = group,
                                      .virtual_cluster = "default",
                                      .priority = priority,
                                      .pinned_cell_id = "",
                                      .members = members,
                                      .member_count = count,
                                      .may_preempt = true};
}

static struct placement_result place(struct placer *placer, const struct placement_request *request)
{
    struct placement_result result;
    assert_int_equal(placer->ops->place(placer, request, &arena, &result, NULL), 0);
    return result;
}

static struct placement_result search(struct placer *placer,
                                      const struct placement_request *request, uint32_t *pieces)
{
    struct placement_result result = place(placer, request);
    for (*pieces = 1; result.is_cut; (*pieces)++) {
        assert_true(*pieces < PIECES_MAX);
        result = place(placer, request);
    }
    return result;
}

static struct placement_result place_at_once(struct placer *placer,
                                             struct placement_request request)
{
    struct placer *copy = placer->ops->copy(placer);
    request.slice = 0;
    const struct placement_result result = place(copy, &request);
    copy->ops->free(copy);
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

static void see(void *context, const char *group, size_t slot, struct node_id node)
{
    (void)context, (void)group, (void)slot, (void)node;
}

static void check(struct placer *placer)
{
    const struct placement_visit visit = {see, NULL};
    assert_int_equal(placer->ops->check(placer, &visit, NULL), 0);
}

/* As many nodes, each with a job on all of its GPUs. */
static struct placer *crowd_of(const char *policy)
{
    struct placer *placer = placer_simple_new(policy);
    for (uint32_t i = 0; i < MANY; i++)
        node_set(placer, i, "V100", "");
    for (uint32_t i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "small%u", i);
        const struct placement_request request = ask(name, &small, 1, 10);
        const struct placement_result result = place(placer, &request);
        assert_int_equal(result.kind, PLACEMENT_BIND);
        assert_int_equal(placer->ops->commit(placer, &request, result.slots, 1, false, NULL), 0);
    }
    return placer;
}

/* Who preempts does not pass over those for whose places others wait: it is searched for in as many
 * pieces as if there were none. When these give up, it does again. */
static void promised_places_cost_nothing(void **state)
{
    (void)state;
    static const struct placement_member waits = {PROMISED, 1, 64, GPUS, "", ""};
    static const struct placement_member pair = {2, 1, 64, GPUS, "", ""};
    for (size_t p = 0; p < COUNT_OF(policies); p++) {
        uint32_t pieces, fewest;
        struct placer *placer = crowd_of(policies[p]);
        struct placement_request request = ask("pair", &pair, 1, 100);
        request.slice = 1;
        request.may_preempt = false;
        assert_int_equal(search(placer, &request, &fewest).kind, PLACEMENT_PREEMPT);
        const struct placement_request many = ask("waits", &waits, 1, 100);
        struct placement_result result = place(placer, &many);
        assert_int_equal(result.victim_count, PROMISED);
        struct placement_result whole = place_at_once(placer, request);
        result = search(placer, &request, &pieces);
        results_equal(&result, &whole);
        assert_int_equal(pieces, fewest);
        assert_string_equal(result.victims[0], "small380");
        placer->ops->cancel(placer, "waits");
        whole = place_at_once(placer, request);
        result = search(placer, &request, &pieces);
        results_equal(&result, &whole);
        assert_string_equal(result.victims[0], "small0");
        check(placer);
        placer->ops->free(placer);
    }
}

/* Nor over those on nodes of another type, or of another engine. */
static void other_nodes_cost_nothing(void **state)
{
    (void)state;
    static const struct placement_member pair = {2, 1, 64, GPUS, "A100", ""};
    for (uint32_t is_of_engine = 0; is_of_engine < 2; is_of_engine++) {
        uint32_t pieces, fewest;
        struct placer *placer = crowd_of("first-fit");
        struct placement_member member = pair;
        member.sku_type = is_of_engine ? "" : "V100";
        struct placement_request request = ask("pair", &member, 1, 100);
        request.slice = 1;
        request.may_preempt = false;
        assert_int_equal(search(placer, &request, &fewest).kind, PLACEMENT_PREEMPT);
        for (uint32_t i = PROMISED; i < MANY; i++) { /* these are the others then */
            if (is_of_engine)
                node_set(placer, i, "V100", "second");
            else
                node_set(placer, i, "A100", "");
        }
        member.sku_type = is_of_engine ? "" : "A100";
        request.engine = is_of_engine ? "second" : NULL;
        const struct placement_result whole = place_at_once(placer, request);
        const struct placement_result result = search(placer, &request, &pieces);
        results_equal(&result, &whole);
        assert_string_equal(result.victims[0], "small380");
        assert_in_range(pieces, fewest - 1, fewest + 1);
        check(placer);
        placer->ops->free(placer);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(promised_places_cost_nothing),
    cmocka_unit_test(other_nodes_cost_nothing),
};
UNIT_FILE(tests, setup, teardown);
