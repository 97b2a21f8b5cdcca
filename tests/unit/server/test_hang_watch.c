/* The watch for tasks that stand still: what it is told before its thread begins. */
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include "base/memory.h"
#include "server/hang_watch.h"
#include "server/state.h"

/* A default that changes is that of all jobs that are watched; there are none. */
static void a_new_default_needs_no_job(void **state)
{
    struct world *world = *state;
    struct hang_watch *watch = hang_watch_new(world->server);

    hang_watch_configure(watch, 5);
    assert_int_equal(hang_watch_start(watch, &world->err), 0);
    hang_watch_stop(watch); /* it has looked at least once */
    hang_watch_stop(watch); /* again: nothing */
    assert_int_equal(hang_watch_idle_count(watch), 0);
    hang_watch_free(watch);
    hang_watch_free(NULL);
}

/* Jobs that began and ended before the first look are not watched; one that is not in the store
 * any more is no error. */
static void what_has_ended_is_not_watched(void **state)
{
    struct world *world = *state;
    struct hang_watch *watch = hang_watch_new(world->server);
    struct record records[4] = {0};

    for (uint32_t i = 0; i < COUNT_OF(records); i++) {
        records[i].kind = RECORD_TASK;
        records[i].task = (struct task_record){.job = {100 + i % 2},
                                               .attempt = {200 + i % 2},
                                               .node = "",
                                               .state = i < 2 ? LIFE_RUNNING : LIFE_COMPLETED};
    }
    hang_watch_take(watch, records, COUNT_OF(records));
    hang_watch_configure(watch, 1);
    assert_int_equal(hang_watch_start(watch, &world->err), 0);
    hang_watch_stop(watch);
    assert_int_equal(hang_watch_idle_count(watch), 0);
    hang_watch_free(watch);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(a_new_default_needs_no_job),
    WORLD(what_has_ended_is_not_watched),
};
UNIT_FILE(tests, world_begin, NULL);
