/* Virtual clusters that are closed. */
#include "unit.h"
#include "world.h"

#include "base/memory.h"
#include "store/read.h"
#include "store/store.h"

static void add_cluster(struct world *world, const char *name, bool is_closed, const char *why)
{
    *ARRAY_ADD(&world->output.records) = (struct record){
        .kind = RECORD_CLUSTER,
        .cluster = {name, {is_closed, "alice", why, is_closed ? 1234567890123 : 0}}};
}

static void they_stay_until_they_are_opened(void **state)
{
    struct world *world = *state;
    struct store_clusters clusters;
    add_cluster(world, "b", true, "a course");
    add_cluster(world, "B", true, "");
    add_cluster(world, "a", true, "first");
    assert_int_equal(commit(world, NULL, 0), 0);
    add_cluster(world, "a", true, "second");
    add_cluster(world, "B", false, "");
    add_cluster(world, "never", false, "");
    assert_int_equal(commit(world, NULL, 0), 0);
    world_close(world);
    world_open(world);
    assert_int_equal(store_closed_clusters(world->reader, &world->arena, &clusters, &world->err),
                     0);
    assert_int_equal(clusters.count, 2);
    assert_string_equal(clusters.items[0].name, "a");
    assert_string_equal(clusters.items[0].closing.why, "second");
    assert_string_equal(clusters.items[1].name, "b");
    assert_true(clusters.items[1].closing.is_closed);
    assert_string_equal(clusters.items[1].closing.by, "alice");
    assert_int_equal(clusters.items[1].closing.at_ms, 1234567890123);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(they_stay_until_they_are_opened),
};
UNIT_FILE(tests, NULL, NULL);
