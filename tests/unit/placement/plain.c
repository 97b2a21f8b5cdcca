#include "unit.h"

#include "plain.h"

#include <stdio.h>

const char *const plain_policies[3] = {"first-fit", "best-fit", "spread"};
const struct placement_member plain_small = {1, 1, 64, PLAIN_GPUS, "", ""};
struct arena plain_arena;

int plain_setup(void **state)
{
    (void)state;
    arena_init(&plain_arena);
    return 0;
}

int plain_teardown(void **state)
{
    (void)state;
    arena_release(&plain_arena);
    return 0;
}

struct node_facts plain_node(void)
{
    return (struct node_facts){.name = "n",
                               .cpu = 16,
                               .memory_mib = 16384,
                               .gpu_count = PLAIN_GPUS,
                               .gpu_type = "V100",
                               .engine = "",
                               .is_healthy = true};
}

void plain_node_set(struct placer *placer, uint32_t id, const struct node_facts *node)
{
    assert_int_equal(placer->ops->node_set(placer, (struct node_id){id}, node, NULL), 0);
}

void plain_node_is(struct placer *placer, uint32_t id, bool is_healthy)
{
    struct node_facts node = plain_node();
    node.is_healthy = is_healthy;
    plain_node_set(placer, id, &node);
}

void plain_node_cpu(struct placer *placer, uint32_t id, uint32_t cpu)
{
    struct node_facts node = plain_node();
    node.cpu = cpu;
    plain_node_set(placer, id, &node);
}

struct placement_request plain_ask(const char *group, const struct placement_member *members,
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

struct placement_result plain_place(struct placer *placer, const struct placement_request *request)
{
    struct placement_result result;
    assert_int_equal(placer->ops->place(placer, request, &plain_arena, &result, NULL), 0);
    return result;
}

void plain_take(struct placer *placer, const struct placement_request *request,
                const struct placement_result *result)
{
    assert_int_equal(result->kind, PLACEMENT_BIND);
    assert_int_equal(
        placer->ops->commit(placer, request, result->slots, result->slot_count, false, NULL), 0);
}

void plain_fill(struct placer *placer, const struct placement_member *member, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "small%u", i);
        const struct placement_request request = plain_ask(name, member, 1, 10);
        const struct placement_result result = plain_place(placer, &request);
        plain_take(placer, &request, &result);
    }
}

struct placement_result plain_search(struct placer *placer, const struct placement_request *request,
                                     uint32_t *pieces)
{
    struct placement_result result = plain_place(placer, request);
    for (*pieces = 1; result.is_cut; (*pieces)++) {
        assert_true(*pieces < PLAIN_PIECES_MAX);
        result = plain_place(placer, request);
    }
    return result;
}

struct placement_result plain_place_at_once(struct placer *placer, struct placement_request request)
{
    struct placer *copy = placer->ops->copy(placer);
    request.slice = 0;
    const struct placement_result result = plain_place(copy, &request);
    copy->ops->free(copy);
    return result;
}

void plain_results_equal(const struct placement_result *a, const struct placement_result *b)
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

void plain_check(struct placer *placer)
{
    const struct placement_visit visit = {see, NULL};
    assert_int_equal(placer->ops->check(placer, &visit, NULL), 0);
}
