/* What the client has already is not sent again. */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "base/memory.h"

static void test_etag(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    char tag[48], list[128];
    struct job_id job = world_submit(world, alice, "seen", 1);
    assert_int_equal(world_get(world, "/api/v2/jobs/seen", alice), 200);
    snprintf(tag, sizeof tag, "%s", world->etag);
    assert_int_equal(strlen(tag), 34);
    snprintf(list, sizeof list, "\"other\", W/%s", tag);
    const char *const SAME[] = {tag, list, "*"};
    for (size_t i = 0; i < COUNT_OF(SAME); i++) {
        world->if_none_match = SAME[i];
        assert_int_equal(world_get(world, "/api/v2/jobs/seen", alice), 304);
        assert_int_equal(world->body.length, 0);
        assert_string_equal(world->etag, tag);
    }
    world->if_none_match = tag;
    world_run(world, job); /* now it is another one */
    assert_int_equal(world_get(world, "/api/v2/jobs/seen", alice), 200);
    assert_string_not_equal(world->etag, tag);
    assert_int_equal(world_get(world, "/api/v2/jobs/none", alice), 404);
    assert_string_equal(world->etag, "");
    world->if_none_match = "*";
    assert_int_equal(
        world_send(world, HTTP_PUT, "/api/v2/jobs/seen/tag", alice, "{\"value\":\"a\"}"), 200);
    assert_int_equal(world_get(world, "/api/v2/changes", alice), 200); /* a stream has none */
    world_stream_close(world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_etag, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
