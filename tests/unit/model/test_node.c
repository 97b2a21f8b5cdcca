/* A node and its facts: copies are their own, likeness is by what a node offers. */
#include "unit.h"

#include "base/arena.h"
#include "base/memory.h"
#include "model/node.h"

static const uint16_t numa[] = {0, 0, 1}, other_numa[] = {0, 1, 1};
static const uint16_t switches[] = {3, NODE_GPU_LOST, 5};

static const struct node_facts full = {.name = "n1",
                                       .address = "10.0.0.1",
                                       .gpu_type = "V100",
                                       .cpu = 8,
                                       .gpu_count = 3,
                                       .memory_mib = 4096,
                                       .gpu_numa = numa,
                                       .gpu_switch = switches,
                                       .is_healthy = true,
                                       .is_gpu_simulated = true,
                                       .reason = "so"};

static void assert_same(const struct node_facts *a, const struct node_facts *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->address, b->address);
    assert_string_equal(a->reason, b->reason);
    assert_int_equal(a->is_healthy, b->is_healthy);
    assert_int_equal(a->is_gpu_simulated, b->is_gpu_simulated);
    assert_true(node_facts_are_alike(a, b));
}

static void a_copy_is_its_own(void **state)
{
    (void)state;
    struct node_facts copy = {0};
    node_facts_copy(&copy, &full);
    assert_same(&copy, &full);
    assert_ptr_not_equal(copy.name, full.name);
    assert_ptr_not_equal(copy.gpu_numa, full.gpu_numa);

    /* a string that stays the same stays where it is, also when the source is the copy itself */
    const char *name = copy.name, *reason = copy.reason;
    struct node_facts changed = copy;
    changed.reason = "otherwise";
    changed.gpu_switch = NULL;
    node_facts_copy(&copy, &changed);
    assert_ptr_equal(copy.name, name);
    assert_ptr_not_equal(copy.reason, reason);
    assert_string_equal(copy.reason, "otherwise");
    assert_null(copy.gpu_switch);
    assert_int_equal(copy.gpu_numa[2], 1);
    node_facts_release(&copy);
    assert_null(copy.name);
    assert_int_equal(copy.gpu_count, 0);
}

static void an_arena_keeps_a_copy(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    struct node_facts kept = node_facts_keep(&arena, &full);
    assert_same(&kept, &full);
    assert_ptr_not_equal(kept.gpu_switch, full.gpu_switch);
    kept = node_facts_keep(&arena, &(struct node_facts){.name = "n2", .gpu_numa = numa});
    assert_string_equal(kept.address, "");
    assert_string_equal(kept.gpu_type, "");
    assert_string_equal(kept.reason, "");
    assert_null(kept.gpu_numa); /* of no GPU */
    arena_release(&arena);
}

static void nodes_are_alike_by_what_they_offer(void **state)
{
    (void)state;
    struct node_facts others[7];
    for (size_t i = 0; i < COUNT_OF(others); i++)
        others[i] = full;
    others[0].cpu = 4;
    others[1].memory_mib = 2048;
    others[2].gpu_count = 2;
    others[3].gpu_type = "A100";
    others[4].gpu_numa = NULL;
    others[5].gpu_numa = other_numa;
    others[6].gpu_switch = numa;
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        assert_false(node_facts_are_alike(&full, &others[i]));
        assert_false(node_facts_are_alike(&others[i], &full));
    }
    struct node_facts same = full;
    same.name = "n2";
    same.is_healthy = false;
    assert_true(node_facts_are_alike(&full, &same));
    same.gpu_numa = NULL;
    assert_true(node_facts_are_alike(&same, &same));
}

static void a_switch_marks_a_lost_gpu(void **state)
{
    (void)state;
    assert_false(node_gpu_is_lost(&full, 0));
    assert_true(node_gpu_is_lost(&full, 1));
    assert_false(node_gpu_is_lost(&(struct node_facts){.gpu_count = 1}, 0));
}

static void a_closing_owns_its_texts(void **state)
{
    (void)state;
    char why[] = "a disk";
    struct node_closing own = {0};
    node_closing_copy(&own, &(struct node_closing){true, "alice", why, 7});
    why[0] = 'X';
    assert_string_equal(own.why, "a disk");
    assert_int_equal(own.at_ms, 7);
    node_closing_copy(&own, &own); /* of itself */
    assert_string_equal(own.by, "alice");
    node_closing_copy(&own, &(struct node_closing){0});
    assert_false(own.is_closed);
    assert_string_equal(own.by, "");
    node_closing_release(&own);
    assert_null(own.why);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_closing_owns_its_texts),
    cmocka_unit_test(a_copy_is_its_own),
    cmocka_unit_test(an_arena_keeps_a_copy),
    cmocka_unit_test(nodes_are_alike_by_what_they_offer),
    cmocka_unit_test(a_switch_marks_a_lost_gpu),
};
UNIT_FILE(tests, NULL, NULL);
