/* Messages about changes of jobs that wait to be sent. */
#include "unit.h"
#include "world.h"

#include "base/memory.h"
#include "store/read.h"
#include "store/store.h"

static struct store_change notice_of(const char *target, uint32_t job, enum notice_kind kind)
{
    return (struct store_change){.kind = CHANGE_NOTICE_ADD,
                                 .notice = {.target = target,
                                            .row = {.job = {job},
                                                    .attempt = 2,
                                                    .kind = kind,
                                                    .at_ms = 1000 + job,
                                                    .user = "alice",
                                                    .job_name = "train",
                                                    .virtual_cluster = "default",
                                                    .code = -210,
                                                    .phrase = "JobStopRequested",
                                                    .why = "stopped by alice"}}};
}

static void a_message_waits_until_it_is_removed(void **state)
{
    struct world *world = *state;
    struct store_notices rows;
    change(world, notice_of("mail", 1, NOTICE_STOPPED), 0);
    change(world, notice_of("https://hooks.example/x", 1, NOTICE_STOPPED), 0);
    change(world, notice_of("mail", 2, NOTICE_RUNNING), 0);
    world_close(world);
    world_open(world);
    assert_int_equal(store_notices(world->reader, 10, &world->arena, &rows, &world->err), 0);
    assert_int_equal(rows.count, 3);
    const struct store_notice *first = &rows.items[0];
    assert_string_equal(first->target, "mail");
    assert_int_equal(first->notice.job.v, 1);
    assert_int_equal(first->notice.attempt, 2);
    assert_int_equal(first->notice.kind, NOTICE_STOPPED);
    assert_int_equal(first->notice.at_ms, 1001);
    assert_string_equal(first->notice.user, "alice");
    assert_string_equal(first->notice.job_name, "train");
    assert_string_equal(first->notice.virtual_cluster, "default");
    assert_int_equal(first->notice.code, -210);
    assert_string_equal(first->notice.phrase, "JobStopRequested");
    assert_string_equal(first->notice.why, "stopped by alice");
    assert_string_equal(rows.items[1].target, "https://hooks.example/x");

    const uint64_t last = rows.items[2].number;
    const uint64_t sent[] = {first->number, last};
    const struct store_change remove = {.kind = CHANGE_NOTICES_REMOVE, .sent = {sent, 2}};
    change(world, remove, 0);
    change(world, remove, 0); /* idempotent */
    assert_int_equal(store_notices(world->reader, 10, &world->arena, &rows, &world->err), 0);
    assert_int_equal(rows.count, 1);
    /* a number is not used again */
    change(world, notice_of("mail", 3, NOTICE_FAILED), 0);
    assert_int_equal(store_notices(world->reader, 10, &world->arena, &rows, &world->err), 0);
    assert_int_equal(rows.count, 2);
    assert_true(rows.items[1].number > last);
    assert_int_equal(store_notices(world->reader, 1, &world->arena, &rows, &world->err), 0);
    assert_int_equal(rows.count, 1);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(a_message_waits_until_it_is_removed),
};
UNIT_FILE(tests, NULL, NULL);
