/* Versions of templates and their mark "official", over HTTP. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#define ITEMS "/marketplace/api/items"
#define JOB                                                                                        \
    "protocolVersion: 2\\nname: x\\ntype: job\\nprerequisites:\\n  - {name: image, type: "         \
    "dockerimage, uri: debian}\\ntaskRoles:\\n  worker:\\n    instances: 1\\n    dockerImage: "    \
    "image\\n    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}\\n    commands: [echo "      \
    "hi]\\n"

static void ask(struct world *world, enum http_method method, const char *token, const char *path,
                const char *body, int expected)
{
    char target[200];
    snprintf(target, sizeof target, ITEMS "%s", path);
    const int status = world_send(world, method, target, token, body);
    if (status != expected)
        fail_msg("%s: %d: %s", path, status, buf_cstr(&world->body));
}

static void save(struct world *world, const char *token, const char *fields)
{
    char body[600];
    snprintf(body, sizeof body, "{\"name\":\"m\",\"protocol\":\"" JOB "\"%s}", fields);
    ask(world, HTTP_POST, token, "", body, 201);
}

static void test_listed_shown_and_restored(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob"),
               *admin = world_login(world, "admin");
    save(world, alice, ",\"summary\":\"one\",\"tags\":[\"t\"],\"description\":\"how\"");
    ask(world, HTTP_PUT, alice, "/alice~m",
        "{\"summary\":\"two\",\"tags\":[],\"protocol\":\"" JOB "# 2\\n\"}", 200);
    ask(world, HTTP_PUT, alice, "/alice~m", "{\"isPublic\":true}", 200); /* says the same */
    ask(world, HTTP_PUT, admin, "/alice~m", "{\"summary\":\"three\"}", 200);
    ask(world, HTTP_GET, alice, "/alice~m/versions", "", 200);
    assert_body(world, "[{\"version\":3,\"current\":true,\"editor\":\"admin\",\"savedAt\":\"");
    assert_body(world, "{\"version\":2,\"current\":false,\"editor\":\"alice\"");
    assert_body(world, "\"summary\":\"one\",\"categories\":[],\"tags\":[{\"id\":\"t\"");
    assert_null(strstr(buf_cstr(&world->body), "protocol"));
    ask(world, HTTP_GET, alice, "/alice~m/versions/2", "", 200);
    assert_body(world, "\"description\":\"how\",\"protocol\":\"protocolVersion: 2");
    assert_body(world, "# 2");
    /* everyone sees what is approved, but not what it said before */
    ask(world, HTTP_GET, bob, "/alice~m", "", 200);
    ask(world, HTTP_GET, bob, "/alice~m/versions", "", 403);
    ask(world, HTTP_GET, bob, "/alice~m/versions/1", "", 403);
    ask(world, HTTP_POST, bob, "/alice~m/versions/1/restore", "", 403);
    ask(world, HTTP_POST, alice, "/alice~m/versions/3/restore", "", 409);
    assert_body(world, "version 3 is what the template says now");
    ask(world, HTTP_POST, alice, "/alice~m/versions/4/restore", "", 404);
    assert_body(world, "NoTemplateVersionError");
    ask(world, HTTP_POST, alice, "/alice~m/versions/x/restore", "", 400);
    ask(world, HTTP_POST, alice, "/alice~m/versions/1/restore", "{\"updatedAt\":\"2001\"}", 409);
    ask(world, HTTP_POST, alice, "/alice~m/versions/1/restore", "{\"name\":\"x\"}", 400);
    ask(world, HTTP_POST, alice, "/alice~m/versions/1/restore", "", 200);
    assert_body(world, "\"message\":\"restored\",\"status\":\"pending\"");
    ask(world, HTTP_GET, alice, "/alice~m", "", 200);
    assert_body(world, "\"summary\":\"one\"");
    assert_body(world, "\"tags\":[{\"id\":\"t\"");
    assert_body(world, "\"isPublic\":true");
    assert_null(strstr(buf_cstr(&world->body), "# 2"));
    ask(world, HTTP_GET, bob, "/alice~m", "", 403); /* until it is approved again */
    ask(world, HTTP_GET, alice, "/alice~m/versions", "", 200);
    assert_body(world, "[{\"version\":4,\"current\":true");
    assert_body(world, "{\"version\":3,\"current\":false");
    ask(world, HTTP_GET, alice, "/alice~none/versions", "", 404);
}

static void test_official_by_an_administrator(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *admin = world_login(world, "admin");
    save(world, alice, "");
    ask(world, HTTP_PUT, admin, "/alice~m/official", "{\"official\":true}", 409);
    assert_body(world, "only what everyone sees can be official");
    ask(world, HTTP_PUT, alice, "/alice~m", "{\"isPublic\":true}", 200);
    ask(world, HTTP_PUT, admin, "/alice~m/official", "{\"official\":true}", 409);
    ask(world, HTTP_PUT, admin, "/alice~m/status", "{\"status\":\"approved\"}", 200);
    ask(world, HTTP_PUT, alice, "/alice~m/official", "{\"official\":true}", 403);
    ask(world, HTTP_PUT, admin, "/alice~m/official", "{}", 400);
    ask(world, HTTP_PUT, admin, "/alice~m/official", "{\"official\":7}", 400);
    ask(world, HTTP_PUT, admin, "/alice~m/official", "{\"official\":true,\"updatedAt\":\"2001\"}",
        409);
    ask(world, HTTP_GET, alice, "?official=true", "", 200);
    assert_string_equal(buf_cstr(&world->body), "[]");
    ask(world, HTTP_PUT, admin, "/alice~m/official", "{\"official\":true}", 200);
    ask(world, HTTP_GET, alice, "?official=true&shared=true&fields=name,official", "", 200);
    assert_string_equal(buf_cstr(&world->body), "[{\"name\":\"m\",\"official\":true}]");
    ask(world, HTTP_PUT, admin, "/alice~m", "{\"summary\":\"mended\"}", 200); /* stays */
    ask(world, HTTP_GET, alice, "/alice~m", "", 200);
    assert_body(world, "\"official\":true");
    ask(world, HTTP_PUT, alice, "/alice~m", "{\"summary\":\"other\"}",
        200); /* nobody has read it */
    ask(world, HTTP_PUT, admin, "/alice~m/status", "{\"status\":\"approved\"}", 200);
    ask(world, HTTP_GET, alice, "/alice~m", "", 200);
    assert_body(world, "\"official\":false");
    ask(world, HTTP_PUT, admin, "/alice~m/official", "{\"official\":true}", 200);
    ask(world, HTTP_PUT, admin, "/alice~m/official", "{\"official\":false}", 200);
    ask(world, HTTP_GET, alice, "/alice~m", "", 200);
    assert_body(world, "\"official\":false");
    ask(world, HTTP_PUT, admin, "/alice~none/official", "{\"official\":true}", 404);
}

static void test_shared_ones(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *admin = world_login(world, "admin");
    save(world, alice, "");
    ask(world, HTTP_GET, alice, "?shared=true", "", 200);
    assert_string_equal(buf_cstr(&world->body), "[]");
    save(world, admin, ",\"isPublic\":true");
    ask(world, HTTP_GET, alice, "?shared=true&fields=author", "", 200);
    assert_string_equal(buf_cstr(&world->body), "[{\"author\":\"admin\"}]");
    assert_int_equal(
        world_send(world, HTTP_POST, "/api/v2/groups", admin, "{\"groupname\":\"lab\"}"), 201);
    ask(world, HTTP_PUT, alice, "/alice~m", "{\"groupList\":[\"lab\"]}", 200);
    ask(world, HTTP_GET, alice, "?shared=true&fields=author&order=updated&author=alice", "", 200);
    assert_string_equal(buf_cstr(&world->body), "[{\"author\":\"alice\"}]");
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
static const struct CMUnitTest tests[] = {
    WORLD(test_listed_shown_and_restored),
    WORLD(test_official_by_an_administrator),
    WORLD(test_shared_ones),
};
UNIT_FILE(tests, NULL, NULL);
