/* Stories are paged and followed. */
#include "unit.h"
#include "world.h"

#include "base/memory.h"
#include "core/output.h"
#include "store/read.h"

static void stories_are_paged_and_followed(void **state)
{
    struct world *world = *state;
    struct stories stories;
    struct story_filter filter = {.job = {1}, .is_warning = -1};
    uint64_t last;

    submit(world, 1, "alice", "train");
    add_task(world, task_of(1, 1, 2, 9));
    for (int i = 0; i < 5; i++)
        *ARRAY_ADD(&world->output.records) = (struct record){.kind = RECORD_STORY,
                                                             .story = {.job = {i == 4 ? 2 : 1},
                                                                       .role = i == 1 ? 1 : -1,
                                                                       .index = i == 1 ? 2 : -1,
                                                                       .is_warning = i == 2,
                                                                       .at_ms = i,
                                                                       .reason = "Waiting",
                                                                       .message = "message"}};
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(
        store_stories(world->reader, &filter, true, &world->arena, &stories, &world->err), 0);
    assert_int_equal(stories.count, 4);
    assert_int_equal(stories.total, 4);
    assert_string_equal(stories.items[0].role_name, "");
    assert_string_equal(stories.items[1].role_name, "worker");
    last = stories.items[2].sequence;
    filter.after = last;
    assert_int_equal(
        store_stories(world->reader, &filter, false, &world->arena, &stories, &world->err), 0);
    assert_int_equal(stories.count, 1);
    filter = (struct story_filter){
        .job = {1}, .is_warning = 0, .is_newest_first = true, .offset = 1, .limit = 1};
    assert_int_equal(
        store_stories(world->reader, &filter, true, &world->arena, &stories, &world->err), 0);
    assert_int_equal(stories.count, 1);
    assert_int_equal(stories.total, 3);
    assert_int_equal(stories.items[0].record.at_ms, 1);
    filter = (struct story_filter){
        .job = {1}, .is_warning = -1, .is_newest_first = true, .before = last, .limit = 10};
    assert_int_equal(
        store_stories(world->reader, &filter, true, &world->arena, &stories, &world->err), 0);
    assert_int_equal(stories.count, 2); /* and the total is of all */
    assert_int_equal(stories.total, 4);
    assert_true(stories.items[0].sequence < last);
    filter = (struct story_filter){.is_warning = -1};
    assert_int_equal(
        store_stories(world->reader, &filter, true, &world->arena, &stories, &world->err), 0);
    assert_int_equal(stories.count, 5);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(stories_are_paged_and_followed),
};
UNIT_FILE(tests, NULL, NULL);
