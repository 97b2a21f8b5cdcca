/* The story of a job, read and followed. */
#include "unit.h"
#include "world.h"

#include <string.h>

#include "base/memory.h"

static void test_events(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "story", 1);
    world_run(world, job);
    assert_int_equal(world_get(world, "/api/v2/jobs/story/events", alice), 200);
    assert_body(world, "\"totalCount\":");
    assert_body(world, "\"type\":\"Normal\"");
    assert_body(world, "\"firstTimestamp\":\"20");
    assert_body(world, "Z\",\"count\":1");
    assert_int_equal(world_get(world, "/api/v2/jobs/story/events?type=Warning", alice), 200);
    assert_no_body(world, "\"type\":\"Normal\"");
    assert_int_equal(world_get(world, "/api/v2/jobs/story/events?type=Bad", alice), 400);
    assert_int_equal(world_get(world, "/api/v2/jobs/story/events?limit=0", alice), 400);

    assert_int_equal(world_get(world, "/api/v2/jobs/story/events?follow=true", alice), 200);
    assert_string_equal(world->content_type, "application/x-ndjson");
    struct buf out = BUF_INIT;
    assert_int_equal(world_read_all(world, &out), HTTP_STREAM_WAIT);
    size_t lines = 0;
    for (size_t i = 0; i < out.length; i++)
        lines += out.at[i] == '\n';
    assert_true(lines > 0); /* each is an event, whole */
    assert_int_equal(strncmp(buf_cstr(&out), "{", 1), 0);
    assert_non_null(strstr(buf_cstr(&out), "\"type\":\"Normal\""));
    assert_int_equal(out.at[out.length - 2], '}');
    world_exit(world, job, 0, 0);
    assert_int_equal(world_read_all(world, &out), HTTP_STREAM_END);
    assert_true(out.length > 0);
    buf_release(&out);
}

static struct store_reader *reader_get_busy(void *context, struct err *err)
{
    (void)context;
    err_fail(err, ERR_BUSY, "", "all readers are taken");
    return NULL;
}

/* A follower waits while the store has no reader for it; it is not cut off. */
static void test_events_wait_for_a_reader(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    world_run(world, world_submit(world, alice, "story", 1));
    struct store_reader *(*get)(void *, struct err *) = world->service.reader_get;
    struct buf out = BUF_INIT;
    assert_int_equal(world_get(world, "/api/v2/jobs/story/events?follow=true", alice), 200);
    world->service.reader_get = reader_get_busy;
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    world->service.reader_get = get;
    assert_int_equal(world_read_all(world, &out), HTTP_STREAM_WAIT);
    assert_true(out.length > 0);
    world_stream_close(world);
    buf_release(&out);
}

/* One reader too many is told so, and there is room again when another has gone. */
static void test_events_followers(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    world_run(world, world_submit(world, alice, "story", 1));
    world->api.config.stories_max = 1;
    assert_int_equal(world_get(world, "/api/v2/jobs/story/events?follow=true", alice), 200);
    atomic_fetch_add(&world->api.stories, 1); /* another one */
    world_stream_close(world);
    assert_int_equal(world_get(world, "/api/v2/jobs/story/events?follow=true", alice), 429);
    assert_body(world, "BusyError");
    assert_body(world, "1 readers follow events already");
    assert_int_equal(world_get(world, "/api/v2/jobs/story/events", alice), 200);
    assert_int_equal(world_get(world, "/api/v2/changes", alice), 200); /* another kind */
    world_stream_close(world);
    atomic_fetch_sub(&world->api.stories, 1);
    assert_int_equal(world_get(world, "/api/v2/jobs/story/events?follow=true", alice), 200);
    world_stream_close(world);
    assert_int_equal(atomic_load(&world->api.stories), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_events_followers, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_events, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_events_wait_for_a_reader, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
