/* What needs somebody's attention, or has needed it lately. */
#include "unit.h"
#include "world.h"

#include "base/memory.h"

/* That of the job is the newest, and the only one that is of alice's. */
static void alerts_are_told_by_whose_they_are(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *admin = world_login(world, "admin");
    static const char own[] =
        "{\"labels\":{\"alertname\":\"JobIdle\",\"severity\":\"warn\",\"job_name\":\"alice~train\","
        "\"username\":\"alice\"},\"annotations\":{\"summary\":\"no task of job alice~train works "
        "or "
        "writes\"},\"startsAt\":\"2025-11-24T16:01:00.000Z\",\"endsAt\":\"0001-01-01T00:00:00Z\","
        "\"generatorURL\":\"\",\"status\":{\"state\":\"active\",\"silencedBy\":[],\"inhibitedBy\":["
        "]},"
        "\"receivers\":[\"webportal-notification\"],\"fingerprint\":\"";
    assert_int_equal(world_get(world, "/api/v2/alerts?state=all", alice), 200);
    assert_body(world, own);
    assert_no_body(world, "bob");
    assert_no_body(world, "node");
    assert_int_equal(world_get(world, "/api/v2/alerts", admin), 200);
    assert_int_equal(strncmp(buf_cstr(&world->body) + 1, own, sizeof own - 1), 0);
    assert_body(world, "\"alertname\":\"NvidiaGpuLost\"");
    assert_body(world, "bob~train");
    assert_no_body(world, "resolved");
}

static void what_has_ended_is_told_when_it_is_asked_for(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *admin = world_login(world, "admin");
    assert_int_equal(world_get(world, "/api/v2/alerts?state=resolved", admin), 200);
    assert_body(world, "\"startsAt\":\"2025-11-24T16:00:10.000Z\","
                       "\"endsAt\":\"2025-11-24T16:00:20.000Z\"");
    assert_body(world, "\"state\":\"resolved\"");
    assert_no_body(world, "active");
    assert_int_equal(world_get(world, "/api/v2/alerts?state=resolved", alice), 200);
    assert_string_equal(buf_cstr(&world->body), "[]");
    assert_int_equal(world_get(world, "/api/v2/alerts?state=all", admin), 200);
    assert_body(world, "NvidiaGpuLost");
    assert_body(world, "NodeNotReady");
    assert_int_equal(world_get(world, "/api/v2/alerts?state=active", admin), 200);
    assert_no_body(world, "NodeNotReady");
    assert_int_equal(world_get(world, "/api/v2/alerts?state=past", admin), 400);
    assert_body(world, "must be active, resolved or all");
    world->refuse = ERR_UNAVAILABLE;
    assert_int_equal(world_get(world, "/api/v2/alerts", admin), 503);
}

/* What stands comes before what has ended, page by page. */
static void pages_have_the_newest_first(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin");
    assert_int_equal(world_get(world, "/api/v2/alerts?state=all&limit=3&cursor=", admin), 200);
    assert_body(world, "alice~train");
    assert_body(world, "NvidiaGpuLost");
    assert_no_body(world, "NodeNotReady");
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
static const struct CMUnitTest tests[] = {
    WORLD(alerts_are_told_by_whose_they_are),
    WORLD(what_has_ended_is_told_when_it_is_asked_for),
    WORLD(pages_have_the_newest_first),
};
UNIT_FILE(tests, NULL, NULL);
