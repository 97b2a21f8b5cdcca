/* A job is read back as it was committed, also after a restart. */
#include "unit.h"
#include "world.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/output.h"
#include "store/read.h"

/* Between two attempts a job waits or goes on, as the pause before the next one says. */
static void a_pause_is_shown_as_waiting(void **state)
{
    struct world *world = *state;
    struct store_job row;
    submit(world, 1, "alice", "train");
    for (int64_t at_ms = 0; at_ms < 2; at_ms++) {
        struct job_record job = job_of(1, "alice", "train");
        job.state = LIFE_ATTEMPT_COMPLETED;
        job.completion = completion_of(1, "failed");
        job.retry_at_ms = at_ms;
        add_job(world, job);
        assert_int_equal(commit(world, NULL, 0), 0);
        assert_int_equal(
            store_job_read(world->reader, (struct job_id){1}, &world->arena, &row, &world->err), 0);
        assert_int_equal(row.record.retry_at_ms, at_ms);
        assert_int_equal(row.shown, at_ms ? PUBLIC_WAITING : PUBLIC_RUNNING);
    }
}

static void a_job_is_read_back_whole(void **state)
{
    struct world *world = *state;
    struct store_job row;
    struct store_source source;
    struct job_record job = job_of(1, "alice", "train");

    submit(world, 1, "alice", "train");
    job.state = LIFE_RUNNING;
    job.attempt = 2;
    job.reason = "because";
    job.reason_topic = UINT64_MAX - 1;
    job.trigger = "why";
    job.retries_user = 1;
    job.retries_platform = 2;
    job.retries_resource = 3;
    job.gpu_count = 1ull << 40;
    job.completion = completion_of(-210, "stopped");
    add_job(world, job);
    assert_int_equal(commit(world, NULL, 0), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            store_job_read(world->reader, (struct job_id){1}, &world->arena, &row, &world->err), 0);
        assert_string_equal(row.record.name, "train");
        assert_string_equal(row.record.user, "alice");
        assert_int_equal(row.record.state, LIFE_RUNNING);
        assert_int_equal(row.record.attempt, 2);
        assert_string_equal(row.record.reason, "because");
        assert_true(row.record.reason_topic == UINT64_MAX - 1);
        assert_string_equal(row.record.trigger, "why");
        assert_int_equal(row.record.retries_resource, 3);
        assert_true(row.record.gpu_count == 1ull << 40);
        assert_int_equal(row.record.completion.code, -210);
        assert_string_equal(row.record.completion.diagnostics, "stopped");
        assert_true(text_equal(row.record.extra, TEXT("extra\0bytes")));
        assert_int_equal(row.shown, PUBLIC_RUNNING);
        assert_true(row.has_priority);
        assert_int_equal(row.notices, 0x85);
        assert_int_equal(store_job_source(world->reader, (struct job_id){1}, &world->arena, &source,
                                          &world->err),
                         0);
        assert_true(text_equal(source.spec_bytes, TEXT("spec\0bytes")));
        assert_true(text_equal(source.sealed, TEXT("sealed\0")));
        assert_true(text_is(source.source, "name: train"));
        assert_int_equal(source.format, 1);
        world_close(world); /* and once more after a restart */
        world_open(world);
    }
    assert_int_equal(
        store_job_read(world->reader, (struct job_id){2}, &world->arena, &row, &world->err),
        ERR_NOT_FOUND);
    assert_int_equal(
        store_job_source(world->reader, (struct job_id){2}, &world->arena, &source, &world->err),
        ERR_NOT_FOUND);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(a_job_is_read_back_whole),
    WORLD(a_pause_is_shown_as_waiting),
};
UNIT_FILE(tests, NULL, NULL);
