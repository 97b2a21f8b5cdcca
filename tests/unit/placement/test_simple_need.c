/* What the tasks of a gang need, for counting where they have room. */
#include "unit.h"

#include "placement/simple_need.h"

#include "base/memory.h"

static struct simple_needs needs_of(const struct placement_request *request)
{
    struct simple_needs needs = {0};
    assert_true(simple_needs_list(request, &needs));
    return needs;
}

static void equal_tasks_are_one_need(void **state)
{
    (void)state;
    const struct placement_member members[] = {{3, 4, 100, 1, "", ""},
                                               {2, 4, 100, 1, "", ""},
                                               {5, 4, 100, 1, "V100", ""},
                                               {4, 4, 100, 1, "", "node"}};
    struct placement_request request = {.members = members, .member_count = COUNT_OF(members)};
    struct simple_needs needs = needs_of(&request);
    assert_int_equal(needs.count, 3);
    assert_int_equal(needs.items[0].count, 5);
    assert_int_equal(needs.items[0].tasks, 5);
    assert_int_equal(needs.items[1].count, 5);
    assert_true(needs.items[2].is_together);
    assert_int_equal(needs.items[2].count, 1);
    assert_int_equal(needs.items[2].tasks, 4);
    mem_free(needs.items);
}

static void the_least_is_what_each_needs(void **state)
{
    (void)state;
    const struct placement_member members[] = {{1, 4, 100, 2, "", ""}, {1, 6, 50, 1, "", ""}};
    struct placement_request request = {.members = members, .member_count = COUNT_OF(members)};
    struct simple_needs needs = needs_of(&request);
    assert_int_equal(needs.least.cpu, 4);
    assert_int_equal(needs.least.memory_mib, 50);
    assert_int_equal(needs.least.gpu, 1);
    mem_free(needs.items);
}

static void a_gang_on_one_node_is_one_need(void **state)
{
    (void)state;
    const struct placement_member members[] = {{2, 4, 100, 2, "", ""}, {1, 6, 50, 1, "", ""}};
    const struct placement_member many[] = {{PLACEMENT_GPUS_MAX + 1, 1, 1, 1, "", ""}};
    struct placement_request request = {
        .members = members, .member_count = COUNT_OF(members), .within_one_cell = "node"};
    struct simple_needs needs = needs_of(&request), none = {0};
    assert_int_equal(needs.count, 1);
    assert_null(needs.items[0].member);
    assert_int_equal(needs.items[0].demand.cpu, 14);
    assert_int_equal(needs.items[0].demand.gpu, 5);
    assert_int_equal(needs.items[0].demand.memory_mib, 250);
    mem_free(needs.items);
    request.members = many;
    request.member_count = COUNT_OF(many);
    assert_false(simple_needs_list(&request, &none)); /* more than any node has */
    mem_free(none.items);
}

/* In the next piece the request is another copy of the same. */
static void the_members_are_those_of_the_request(void **state)
{
    (void)state;
    struct placement_member members[] = {{1, 4, 100, 2, "", ""}, {1, 6, 50, 1, "", ""}};
    const struct placement_member copies[] = {members[0], members[1]};
    struct placement_request request = {.members = members, .member_count = COUNT_OF(members)};
    struct simple_needs needs = needs_of(&request);
    request.members = copies;
    simple_needs_settle(&needs, &request);
    for (size_t i = 0; i < needs.count; i++)
        assert_ptr_equal(needs.items[i].member, &copies[i]);
    mem_free(needs.items);
}

/* Two nodes of four GPUs have eight, but places for two of at least three. */
static void sums_know_what_never_fits(void **state)
{
    (void)state;
    const struct placement_member members[] = {{2, 1, 1, 3, "", ""}, {1, 1, 1, 1, "", ""}};
    const struct simple_view node = {
        .cpu = 8, .gpu_count = 4, .memory_mib = 8, .gpus = gpu_mask(4)};
    struct placement_request request = {.members = members, .member_count = COUNT_OF(members)};
    struct simple_needs needs = needs_of(&request);
    assert_int_equal(needs.sums.size_count, 2);
    assert_false(simple_sums_suffice(&needs.sums));
    simple_sums_count(&needs.sums, &node, true);
    assert_false(simple_sums_suffice(&needs.sums));
    simple_sums_count(&needs.sums, &node, true);
    assert_true(simple_sums_suffice(&needs.sums));
    simple_sums_count(&needs.sums, &node, false);
    assert_false(simple_sums_suffice(&needs.sums)); /* one place for a task of three is missing */
    simple_sums_clear(&needs.sums);
    assert_int_equal(needs.sums.have.gpus, 0);
    mem_free(needs.items);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(equal_tasks_are_one_need),
    cmocka_unit_test(the_least_is_what_each_needs),
    cmocka_unit_test(a_gang_on_one_node_is_one_need),
    cmocka_unit_test(the_members_are_those_of_the_request),
    cmocka_unit_test(sums_know_what_never_fits),
};
UNIT_FILE(tests, NULL, NULL);
