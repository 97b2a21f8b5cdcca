/* The marketplace: templates saved, shared, approved, found and used. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#define ITEMS "/marketplace/api/items"
#define JOB(lines)                                                                                 \
    "protocolVersion: 2\\nname: x\\ntype: job\\nprerequisites:\\n  - {name: image, type: "         \
    "dockerimage, uri: debian}\\ntaskRoles:\\n  worker:\\n    instances: 1\\n    dockerImage: "    \
    "image\\n    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}\\n    commands: [echo "      \
    "hi]\\n" lines

static void save(struct world *world, const char *token, const char *fields, int expected)
{
    cleanup_buf struct buf body = BUF_INIT;
    buf_format(&body, "{\"protocol\":\"" JOB("") "\",%s}", fields);
    assert_int_equal(world_send(world, HTTP_POST, ITEMS, token, buf_cstr(&body)), expected);
}

static void put(struct world *world, const char *token, const char *path, const char *body,
                int expected)
{
    cleanup_buf struct buf target = BUF_INIT;
    buf_format(&target, ITEMS "/%s", path);
    const int status = world_send(world, HTTP_PUT, buf_cstr(&target), token, body);
    if (status != expected)
        fail_msg("%s: %d: %s", path, status, buf_cstr(&world->body));
}

static int get(struct world *world, const char *token, const char *path)
{
    cleanup_buf struct buf target = BUF_INIT;
    buf_format(&target, ITEMS "%s", path);
    return world_get(world, buf_cstr(&target), token);
}

static void test_saved_and_read(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    save(world, alice,
         "\"name\":\"mnist\",\"summary\":\"digits\",\"description\":\"# MNIST\","
         "\"tags\":[\"vision\",{\"name\":\"small\"},\"vision\"],\"categories\":[\"training\"]",
         201);
    assert_body(world, "\"status\":null");
    assert_int_equal(get(world, alice, "/alice~mnist"), 200);
    assert_body(world, "\"author\":\"alice\",\"type\":\"job\",\"source\":\"marketplace\"");
    assert_body(world, "\"tags\":[{\"id\":\"vision\",\"name\":\"vision\"},{\"id\":\"small\","
                       "\"name\":\"small\"}]");
    assert_body(world, "\"isPublic\":false,\"isPrivate\":true,\"groupList\":[],\"status\":null");
    assert_body(world, "name: x");
    assert_int_equal(get(world, alice, "/alice~mnist/tag"), 200);
    assert_body(world, "[{\"id\":\"vision\",\"name\":\"vision\"},{\"id\":\"small\"");
    assert_int_equal(get(world, alice, "/alice~mnist/category"), 200);
    assert_body(world, "[{\"id\":\"training\",\"name\":\"training\"}]");
    assert_int_equal(get(world, bob, "/alice~mnist"), 403);
    assert_body(world, "alice does not share the template mnist with bob");
    assert_int_equal(get(world, bob, ""), 200);
    assert_string_equal(buf_cstr(&world->body), "[]");
    assert_int_equal(get(world, alice, "/alice~other"), 404);
    assert_body(world, "NoTemplateError");
    save(world, alice, "\"name\":\"mnist\"", 409);
    assert_body(world, "ConflictTemplateError");
    save(world, bob, "\"name\":\"mnist\",\"author\":\"bob\"", 201);
    put(world, alice, "alice~mnist", "{\"name\":\"digits\",\"tags\":[]}", 200);
    assert_int_equal(get(world, alice, "/alice~digits"), 200);
    assert_body(world, "\"summary\":\"digits\"");
    assert_body(world, "\"tags\":[]");
    put(world, bob, "alice~digits", "{}", 403);
    assert_int_equal(world_send(world, HTTP_DELETE, ITEMS "/alice~digits", bob, ""), 403);
    assert_int_equal(world_send(world, HTTP_DELETE, ITEMS "/alice~digits", alice, ""), 200);
    assert_int_equal(get(world, alice, "/alice~digits"), 404);
}

static void test_refused(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    static const struct {
        const char *fields;
        int status;
    } bad[] = {
        {"\"name\":\"\"", 400},
        {"\"name\":7", 400},
        {"\"name\":\"a\\nb\"", 400},
        {"\"name\":\"a\",\"protocol\":\"name: x\"", 400},
        {"\"name\":\"a\",\"tags\":\"vision\"", 400},
        {"\"name\":\"a\",\"tags\":[7]", 400},
        {"\"name\":\"a\",\"tags\":[{\"id\":\"x\"}]", 400},
        {"\"name\":\"a\",\"tags\":[\"a,b\"]", 400},
        {"\"name\":\"a\",\"tags\":[\"\"]", 400},
        {"\"name\":\"a\",\"summary\":\"a\\u0000b\"", 400},
        {"\"name\":\"a\",\"type\":\"data\"", 400},
        {"\"name\":\"a\",\"author\":\"bob\"", 403},
        {"\"name\":\"a\",\"colour\":\"red\"", 400},
        {"\"name\":\"a\",\"isPublic\":7", 400},
        {"\"name\":\"a\",\"isPrivate\":7", 400},
        {"\"name\":\"a\",\"groupList\":7", 400},
        {"\"name\":\"a\",\"groupList\":[\"nobody\"]", 404},
        {"\"name\":\"a\",\"id\":\"7\"", 400},
        {"\"name\":\"a\",\"id\":\"0123456789ABCDEF0123456789abcdef\"", 400},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        cleanup_buf struct buf body = BUF_INIT;
        buf_format(&body, "{%s%s}", bad[i].fields,
                   strstr(bad[i].fields, "protocol") ? "" : ",\"protocol\":\"" JOB("") "\"");
        const int status = world_send(world, HTTP_POST, ITEMS, alice, buf_cstr(&body));
        if (status != bad[i].status)
            fail_msg("%s: %d: %s", bad[i].fields, status, buf_cstr(&world->body));
    }
    assert_int_equal(world_send(world, HTTP_POST, ITEMS, alice, "{\"name\":\"a\"}"), 400);
    assert_body(world, "protocol, the job file, is missing");
    assert_int_equal(
        world_send(world, HTTP_POST, ITEMS, alice, "{\"name\":\"a\",\"protocol\":\"name: [\"}"),
        400);
    assert_body(world, "InvalidProtocolError");
    assert_body(world, "\"problems\":[{\"line\":");
    assert_int_equal(get(world, alice, "?order=name"), 400);
    assert_int_equal(get(world, alice, "?limit=1000"), 400);
    assert_int_equal(get(world, alice, ""), 200);
    assert_string_equal(buf_cstr(&world->body), "[]");
}

static void test_secrets_are_masked(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    assert_int_equal(
        world_send(world, HTTP_POST, ITEMS, alice,
                   "{\"name\":\"s\",\"protocol\":\"" JOB(
                       "# a comment\\nsecrets:\\n  token: open-sesame # mine\\n") "\"}"),
        201);
    assert_int_equal(get(world, alice, "/alice~s"), 200);
    assert_no_body(world, "open-sesame");
    assert_body(world, "secrets:\\n  \\\"******\\\"");
    assert_body(world, "# a comment");
    /* what hides nothing stays as it is, with its names and comments */
    assert_int_equal(
        world_send(world, HTTP_POST, ITEMS, alice,
                   "{\"name\":\"t\",\"protocol\":\"" JOB("secrets:\\n  token: '' # mine\\n") "\"}"),
        201);
    assert_int_equal(get(world, alice, "/alice~t"), 200);
    assert_body(world, "token: '' # mine");
}

static void test_approved_by_an_administrator(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob"),
               *admin = world_login(world, "admin");
    save(world, alice, "\"name\":\"m\",\"isPublic\":true", 201);
    assert_body(world, "\"status\":\"pending\"");
    assert_int_equal(get(world, bob, "/alice~m"), 403);
    put(world, alice, "alice~m/status", "{\"status\":\"approved\"}", 403);
    assert_int_equal(get(world, admin, "?status=pending&fields=name,status"), 200);
    assert_string_equal(buf_cstr(&world->body), "[{\"name\":\"m\",\"status\":\"pending\"}]");
    put(world, admin, "alice~m/status", "{\"status\":\"rejected\"}", 400);
    assert_body(world, "reason is missing");
    put(world, admin, "alice~m/status", "{\"status\":\"pending\"}", 400);
    put(world, admin, "alice~m/status", "{\"status\":\"approved\",\"isPublic\":true}", 400);
    put(world, admin, "alice~m/status", "{\"status\":\"approved\",\"updatedAt\":\"2001\"}", 409);
    put(world, admin, "alice~m/status", "{\"status\":\"rejected\",\"reason\":\"no image\"}", 200);
    assert_int_equal(get(world, alice, "/alice~m"), 200);
    assert_body(world, "\"status\":\"rejected\",\"reason\":\"no image\",\"reviewer\":\"admin\"");
    assert_int_equal(get(world, bob, "/alice~m"), 403);
    put(world, alice, "alice~m", "{\"summary\":\"with an image\"}", 200);
    assert_body(world, "\"status\":\"pending\"");
    /* by the version that was read */
    assert_int_equal(get(world, admin, "/alice~m"), 200);
    const char *at = strstr(buf_cstr(&world->body), "\"updatedAt\":\"");
    char body[200];
    snprintf(body, sizeof body, "{\"status\":\"approved\",%.*s}", 38, at);
    put(world, admin, "alice~m/status", body, 200);
    assert_int_equal(get(world, bob, "/alice~m"), 200);
    assert_int_equal(get(world, bob, "?keyword=IMAGE"), 200);
    assert_body(world, "\"name\":\"m\"");
    /* what everybody sees is what was approved */
    put(world, alice, "alice~m", "{\"summary\":\"another\"}", 200);
    assert_int_equal(get(world, bob, "/alice~m"), 403);
    put(world, admin, "alice~m", "{\"summary\":\"mended\"}", 200);
    assert_body(world, "\"status\":\"approved\"");
    assert_int_equal(get(world, bob, "/alice~m"), 200);
    put(world, alice, "alice~m", "{\"isPrivate\":true,\"isPublic\":true}", 200);
    assert_body(world, "\"status\":null");
    put(world, admin, "alice~m/status", "{\"status\":\"approved\"}", 409);
    save(world, admin, "\"name\":\"m\",\"isPublic\":true", 201);
    assert_body(world, "\"status\":\"approved\"");
    assert_int_equal(get(world, bob, "/admin~m"), 200);
    assert_int_equal(world_get(world, "/api/v2/audit?subject=alice~m", admin), 200);
    assert_body(world, "\"reason\":\"no image\"");
}

/* `"updatedAt":"…"` of the template, as it was answered last. */
static const char *updated_of(struct world *world, char text[64])
{
    const char *at = strstr(buf_cstr(&world->body), "\"updatedAt\":\"");
    assert_non_null(at);
    snprintf(text, 64, "%.*s", 38, at);
    return text;
}

static void test_a_change_of_what_was_read(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    char seen[64], now[64];
    cleanup_buf struct buf body = BUF_INIT;
    save(world, alice, "\"name\":\"m\"", 201);
    assert_int_equal(get(world, alice, "/alice~m"), 200);
    updated_of(world, seen);
    put(world, alice, "alice~m", "{\"summary\":\"first\"}", 200); /* within this millisecond, too */
    assert_int_equal(get(world, alice, "/alice~m"), 200);
    assert_string_not_equal(updated_of(world, now), seen);
    buf_format(&body, "{\"summary\":\"second\",%s}", seen);
    put(world, alice, "alice~m", buf_cstr(&body), 409);
    assert_body(world, "ConflictTemplateError");
    buf_clear(&body);
    buf_format(&body, "{\"summary\":\"second\",%s}", now);
    put(world, alice, "alice~m", buf_cstr(&body), 200);
    put(world, alice, "alice~m", "{\"id\":\"0123456789abcdef0123456789abcdef\"}", 400);
    put(world, alice, "alice~m", "{\"updatedAt\":7}", 400);
    assert_int_equal(get(world, alice, "/alice~m"), 200);
    assert_body(world, "\"summary\":\"second\"");
}

static void test_a_group_that_is_removed(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *admin = world_login(world, "admin");
    static const char lab[] = "{\"groupname\":\"lab\"}";
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/groups", admin, lab), 201);
    save(world, alice, "\"name\":\"m\",\"groupList\":[\"lab\"]", 201);
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/groups/lab", admin, ""), 200);
    put(world, alice, "alice~m", "{\"summary\":\"still mine to change\"}", 200);
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/groups", admin, lab), 201);
    assert_int_equal(get(world, alice, "/alice~m"), 200);
    assert_body(world, "\"isPrivate\":true,\"groupList\":[]");
}

static void test_shared_with_a_group(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob"),
               *admin = world_login(world, "admin");
    assert_int_equal(
        world_send(world, HTTP_POST, "/api/v2/groups", admin, "{\"groupname\":\"lab\"}"), 201);
    save(world, alice, "\"name\":\"m\",\"groupList\":[\"lab\"]", 201);
    assert_int_equal(get(world, bob, "/alice~m"), 403);
    assert_int_equal(
        world_send(world, HTTP_PUT, "/api/v2/users/bob/group", admin, "{\"groupname\":\"lab\"}"),
        201);
    assert_int_equal(get(world, bob, "/alice~m"), 200);
    assert_body(world, "\"isPublic\":false,\"isPrivate\":false,\"groupList\":[\"lab\"]");
    assert_int_equal(get(world, bob, "?fields=name"), 200);
    assert_string_equal(buf_cstr(&world->body), "[{\"name\":\"m\"}]");
    put(world, bob, "alice~m", "{}", 403);
    put(world, alice, "alice~m", "{\"isPublic\":true}", 200);
    assert_int_equal(get(world, bob, "/alice~m"), 403); /* until it is approved */
    assert_int_equal(get(world, alice, "/alice~m"), 200);
    assert_body(world, "\"groupList\":[]");
}

static void test_found(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    save(world, alice, "\"name\":\"a\",\"tags\":[\"x\",\"y\"],\"categories\":[\"training\"]", 201);
    save(world, alice, "\"name\":\"b\",\"tags\":[\"x\"],\"summary\":\"Seven\"", 201);
    save(world, bob, "\"name\":\"c\",\"tags\":[\"x\"]", 201);
    static const struct {
        const char *query, *names;
    } FOUND[] = {
        {"?fields=name&name=a", "[{\"name\":\"a\"}]"},
        {"?fields=name&tag=x,y", "[{\"name\":\"a\"}]"},
        {"?fields=name&tag=z", "[]"},
        {"?fields=name&category=training", "[{\"name\":\"a\"}]"},
        {"?fields=name&keyword=sev", "[{\"name\":\"b\"}]"},
        {"?fields=name&author=bob", "[]"},
        {"?fields=name&type=data", "[]"},
        {"?fields=name&type=job&name=b", "[{\"name\":\"b\"}]"},
        {"?fields=name&source=pai", "[]"},
        {"?fields=name&source=marketplace&name=b", "[{\"name\":\"b\"}]"},
        {"?fields=name&status=approved", "[]"},
        {"?fields=name&status=private&name=b", "[{\"name\":\"b\"}]"},
        {"?fields=name&starred=true", "[]"},
    };
    for (size_t i = 0; i < COUNT_OF(FOUND); i++) {
        assert_int_equal(get(world, alice, FOUND[i].query), 200);
        assert_string_equal(buf_cstr(&world->body), FOUND[i].names);
    }
    assert_int_equal(world_get(world, "/marketplace/api/tags", alice), 200);
    assert_string_equal(buf_cstr(&world->body),
                        "[{\"id\":\"x\",\"name\":\"x\",\"count\":2},{\"id\":\"y\",\"name\":\"y\","
                        "\"count\":1}]");
    assert_int_equal(world_get(world, "/marketplace/api/categories", alice), 200);
    assert_string_equal(buf_cstr(&world->body),
                        "[{\"id\":\"training\",\"name\":\"training\",\"count\":1}]");
}

static void test_stars_and_uses(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    save(world, alice, "\"name\":\"a\"", 201);
    save(world, alice, "\"name\":\"b\"", 201);
    put(world, alice, "alice~a/star", "", 200);
    put(world, bob, "alice~a/star", "", 403);
    assert_int_equal(get(world, alice, "?starred=true&fields=name,starNumber,starred"), 200);
    assert_string_equal(buf_cstr(&world->body),
                        "[{\"name\":\"a\",\"starNumber\":1,\"starred\":true}]");
    assert_int_equal(get(world, alice, "?order=stars&fields=name"), 200);
    assert_string_equal(buf_cstr(&world->body), "[{\"name\":\"a\"},{\"name\":\"b\"}]");
    assert_int_equal(world_send(world, HTTP_DELETE, ITEMS "/alice~a/star", alice, ""), 200);
    assert_int_equal(get(world, alice, "?starred=true"), 200);
    assert_string_equal(buf_cstr(&world->body), "[]");
    assert_int_equal(world_send(world, HTTP_POST, ITEMS "/alice~b/use", alice, ""), 200);
    assert_int_equal(get(world, alice, "?order=uses&fields=name,useNumber&limit=1"), 200);
    assert_string_equal(buf_cstr(&world->body), "[{\"name\":\"b\",\"useNumber\":1}]");
    assert_non_null(strstr(world->link, "rel=\"next\""));
    assert_int_equal(world_send(world, HTTP_POST, ITEMS "/none/use", alice, ""), 404);
}

static void test_a_removal_is_taken_back(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    char id[64];
    save(world, alice, "\"name\":\"a\"", 201);
    const char *at = strstr(buf_cstr(&world->body), "\"id\":\"");
    assert_non_null(at);
    snprintf(id, sizeof id, "%.*s", 39, at);
    assert_int_equal(world_send(world, HTTP_DELETE, ITEMS "/alice~a", alice, ""), 200);
    cleanup_buf struct buf fields = BUF_INIT;
    buf_format(&fields, "\"name\":\"a\",%s", id);
    save(world, alice, buf_cstr(&fields), 201);
    assert_body(world, id);
    save(world, alice, buf_cstr(&fields), 409);
}

static void test_a_busy_server(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    world->refuse = ERR_BUSY;
    save(world, alice, "\"name\":\"a\"", 429);
    world->refuse = 0;
    save(world, alice, "\"name\":\"a\"", 201);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
static const struct CMUnitTest tests[] = {
    WORLD(test_saved_and_read),
    WORLD(test_refused),
    WORLD(test_secrets_are_masked),
    WORLD(test_approved_by_an_administrator),
    WORLD(test_a_change_of_what_was_read),
    WORLD(test_a_group_that_is_removed),
    WORLD(test_shared_with_a_group),
    WORLD(test_found),
    WORLD(test_stars_and_uses),
    WORLD(test_a_removal_is_taken_back),
    WORLD(test_a_busy_server),
};
UNIT_FILE(tests, NULL, NULL);
