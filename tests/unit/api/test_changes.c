/* The stream of everything that changes. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/http_watch.h"
#include "base/memory.h"
#include "sys/clock.h"

static struct buf out;

static const char *read_on(struct world *world)
{
    buf_clear(&out);
    assert_int_equal(world_read_all(world, &out), HTTP_STREAM_WAIT);
    return buf_cstr(&out);
}

static void has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in: %s", part, text);
}

static uint64_t number_of(const char *text)
{
    const char *at = strstr(text, "\"number\":");
    assert_non_null(at);
    return strtoull(at + 9, NULL, 10);
}

static void test_jobs(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    char target[80];
    assert_int_equal(world_get(world, "/api/v2/changes", alice), 200);
    assert_string_equal(world->content_type, "application/x-ndjson");
    const char *text = read_on(world);
    assert_int_equal(strncmp(text, "{\"type\":\"start\",\"number\":", 24), 0);
    uint64_t start = number_of(text);
    assert_string_equal(read_on(world), "");
    world_stream_close(world);

    struct job_id job = world_submit(world, alice, "one", 1);
    world_submit(world, alice, "two", 1);
    world_run(world, job);
    snprintf(target, sizeof target, "/api/v2/changes?since=%llu", (unsigned long long)start);
    assert_int_equal(world_get(world, target, alice), 200);
    text = read_on(world);
    /* each once, in its latest state, in the order of the last changes */
    has(text, "\"id\":\"alice~two\"");
    has(text, "\"id\":\"alice~one\",\"job\":{");
    assert_true(strstr(text, "alice~two") < strstr(text, "alice~one"));
    has(text, "\"name\":\"one\",\"username\":\"alice\",\"state\":\"RUNNING\"");
    assert_null(strstr(strstr(text, "\"id\":\"alice~one\"") + 1, "\"id\":\"alice~one\""));
    struct store_change tag = {.kind = CHANGE_TAG_ADD, .tag = {.job = job, .name = "blue"}};
    struct store_batch batch = {.changes = &tag, .change_count = 1};
    struct err err;
    assert_int_equal(store_commit(world->store, &batch, &err), 0);
    world->watch->notify(world->watch->context);
    has(read_on(world), "\"tags\":[\"blue\"]");
    world_stream_close(world);
}

static void test_removed(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    char target[80];
    struct job_id job = world_submit(world, alice, "gone", 1);
    uint64_t start = store_news_number(world->store);
    world_run(world, job);
    world_exit(world, job, 0, 0);
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/jobs/gone", alice, ""), 202);
    snprintf(target, sizeof target, "/api/v2/changes?since=%llu&username=alice",
             (unsigned long long)start);
    assert_int_equal(world_get(world, target, alice), 200);
    const char *text = read_on(world);
    has(text, "{\"type\":\"jobRemoved\",\"number\":");
    has(text, "\"id\":\"alice~gone\"");
    assert_null(strstr(text, "\"type\":\"job\""));
    world_stream_close(world);
    snprintf(target, sizeof target, "/api/v2/changes?since=%llu&username=bob",
             (unsigned long long)start);
    assert_int_equal(world_get(world, target, alice), 200);
    assert_null(strstr(read_on(world), "gone"));
    world_stream_close(world);
}

/* A change of a node is told with the node, and only to who asks for all. */
static void test_nodes(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "refused", 1);
    uint64_t start = store_news_number(world->store);
    char target[80];
    world_refuse(world, job, 0);
    snprintf(target, sizeof target, "/api/v2/changes?since=%llu", (unsigned long long)start);
    assert_int_equal(world_get(world, target, alice), 200);
    const char *text = read_on(world);
    has(text, "{\"type\":\"node\",\"number\":");
    has(text, "\"node\":{\"name\":\"n1\"");
    world_stream_close(world);
    snprintf(target, sizeof target, "/api/v2/changes?username=alice&since=%llu",
             (unsigned long long)start);
    assert_int_equal(world_get(world, target, alice), 200);
    assert_null(strstr(read_on(world), "\"type\":\"node\""));
    world_stream_close(world);
}

/* How long it took, at least, from one "alive" of a silent stream to the next. */
static int64_t silence_ms(struct world *world)
{
    int64_t before_ms;
    do {
        before_ms = clock_monotonic_ms();
    } while (!read_on(world)[0]);
    has(buf_cstr(&out), "{\"type\":\"alive\",");
    while (!read_on(world)[0])
        continue;
    has(buf_cstr(&out), "{\"type\":\"alive\",");
    return clock_monotonic_ms() - before_ms;
}

/* A stream without changes says so, for the client and all between to know that it lives: at this
 * interval, not whenever it is looked at. */
static void test_alive(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    world->api.config.changes_alive_ms = 50;
    assert_int_equal(world_get(world, "/api/v2/changes", alice), 200);
    has(read_on(world), "\"type\":\"start\"");
    assert_true(silence_ms(world) >= 50);
    assert_true(silence_ms(world) >= 50);
    world_stream_close(world);
}

/* For a browser's EventSource. */
static void test_events(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    assert_int_equal(world_get(world, "/api/v2/changes?since=1", alice), 200);
    /* of before the start: what changed is not known */
    const char *text = read_on(world);
    has(text, "\"type\":\"start\",\"number\":1}\n");
    has(text, "{\"type\":\"reset\",\"number\":");
    world_stream_close(world);
    assert_int_equal(world_get(world, "/api/v2/changes?since=x", alice), 400);
    assert_int_equal(world_get(world, "/api/v2/changes", NULL), 401);
}

static void test_limit(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    world->api.config.changes_max = 1;
    world->api.config.followers_max = 1;
    atomic_fetch_add(&world->api.followers, 1); /* who follows logs takes no place from them */
    assert_int_equal(world_get(world, "/api/v2/changes", alice), 200);
    struct exchange *streaming = world->streaming;
    world->streaming = NULL;
    assert_int_equal(world_get(world, "/api/v2/changes", alice), 429);
    assert_body(world, "1 streams of changes are open already");
    world->streaming = streaming;
    world_stream_close(world);
    assert_int_equal(world_get(world, "/api/v2/changes", alice), 200);
    world_stream_close(world);
}

static int teardown(void **state)
{
    buf_release(&out);
    return world_teardown(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_jobs, world_setup, teardown),
    cmocka_unit_test_setup_teardown(test_removed, world_setup, teardown),
    cmocka_unit_test_setup_teardown(test_nodes, world_setup, teardown),
    cmocka_unit_test_setup_teardown(test_alive, world_setup, teardown),
    cmocka_unit_test_setup_teardown(test_events, world_setup, teardown),
    cmocka_unit_test_setup_teardown(test_limit, world_setup, teardown),
};
UNIT_FILE(tests, NULL, NULL);
