/* Early PAI's one path for all accounts. */
#include "unit.h"
#include "world.h"

#include "base/memory.h"

#define USER "/api/v1/user"

static void expect(struct world *world, enum http_method method, const char *path,
                   const char *token, const char *body, int status)
{
    int got = world_send(world, method, path, token, body);
    if (got != status)
        fail_msg("%s: %d, not %d: %s", path, got, status, buf_cstr(&world->body));
}

static void test_accounts(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin"), *bob = world_login(world, "bob");
    const char *eve = "{\"username\":\"eve\",\"password\":\"a-password\",\"modify\":false}";
    expect(world, HTTP_PUT, USER, bob, eve, 403);
    expect(world, HTTP_PUT, USER, admin, eve, 201);
    assert_string_equal(buf_cstr(&world->body), "{\"message\":\"update successfully\"}");
    expect(world, HTTP_PUT, USER, admin, eve, 409);
    assert_body(world, "\"code\":\"ConflictUserError\",\"error\":\"UpdateFailed\"");
    expect(world, HTTP_GET, USER, admin, "", 200);
    assert_body(world, "{\"username\":\"eve\",\"admin\":\"false\",\"virtualCluster\":\"default\","
                       "\"hasGithubPAT\":false}");
    expect(world, HTTP_PUT, USER, admin,
           "{\"username\":\"eve\",\"password\":\"b-password\",\"admin\":true,\"modify\":true}",
           201);
    expect(world, HTTP_GET, USER, admin, "", 200);
    assert_body(world, "{\"username\":\"eve\",\"admin\":\"true\"");
    expect(world, HTTP_DELETE, USER, admin, "{\"username\":\"eve\"}", 403);
    assert_body(world, "RemoveAdminError");
    expect(world, HTTP_PUT, USER, admin,
           "{\"username\":\"eve\",\"password\":\"b-password\",\"admin\":false,\"modify\":true}",
           201);
    expect(world, HTTP_DELETE, USER, admin, "{\"username\":\"eve\"}", 200);
    assert_string_equal(buf_cstr(&world->body), "{\"message\":\"remove successfully\"}");
    expect(world, HTTP_DELETE, USER, admin, "{\"username\":\"eve\"}", 404);
}

/* One's own, with the old one; nothing more. */
static void test_own(void **state)
{
    struct world *world = *state;
    const char *bob = world_login(world, "bob");
    expect(world, HTTP_PUT, USER, bob,
           "{\"username\":\"bob\",\"password\":\"c-password\",\"modify\":true}", 400);
    assert_body(world, "oldPassword is missing");
    expect(world, HTTP_PUT, USER, bob,
           "{\"username\":\"bob\",\"password\":\"c-password\",\"oldPassword\":\"bob-password\","
           "\"admin\":true,\"modify\":true}",
           403);
    expect(world, HTTP_PUT, USER, bob,
           "{\"username\":\"alice\",\"password\":\"c-password\",\"modify\":true}", 403);
    expect(world, HTTP_PUT, USER, bob,
           "{\"username\":\"bob\",\"password\":\"c-password\",\"oldPassword\":\"bob-password\","
           "\"modify\":true}",
           201);
    expect(world, HTTP_PUT, USER "/bob/githubPAT", world_login(world, "admin"),
           "{\"githubPAT\":\"secret\"}", 201);
    expect(world, HTTP_GET, USER, world_login(world, "admin"), "", 200);
    assert_body(world, "\"username\":\"bob\",\"admin\":\"false\",\"virtualCluster\":\"default\","
                       "\"hasGithubPAT\":true");
    assert_no_body(world, "secret");
}

static void test_clusters(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin");
    const char *path = USER "/bob/virtualClusters";
    expect(world, HTTP_PUT, path, admin, "{\"virtualClusters\":\"moon\"}", 400);
    assert_body(world, "NoVirtualClusterError");
    expect(world, HTTP_PUT, path, admin, "{\"virtualClusters\":\"default, \"}", 201);
    expect(world, HTTP_PUT, USER "/nobody/virtualClusters", admin, "{\"virtualClusters\":\"\"}",
           404);
    assert_body(world, "NoUserError");
}

static void test_unknown_words(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin");
    static const struct {
        enum http_method method;
        const char *target, *body;
    } BAD[] = {
        {HTTP_PUT, USER, "{\"username\":\"eve\",\"password\":\"a-password\",\"wrong\":1}"},
        {HTTP_PUT, USER,
         "{\"username\":\"bob\",\"password\":\"a-password\",\"modify\":true,\"wrong\":1}"},
        {HTTP_DELETE, USER, "{\"username\":\"bob\",\"wrong\":1}"},
        {HTTP_PUT, USER "/bob/virtualClusters", "{\"virtualClusters\":\"\",\"wrong\":1}"},
        {HTTP_PUT, USER "/bob/githubPAT", "{\"githubPAT\":\"secret\",\"wrong\":1}"},
    };
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        expect(world, BAD[i].method, BAD[i].target, admin, BAD[i].body, 400);
        assert_body(world, "there is no 'wrong' here");
    }
    expect(world, HTTP_GET, "/api/v2/users", admin, "", 200);
    assert_no_body(world, "eve");
    assert_no_body(world, "secret");
    assert_body(world, "\"username\":\"bob\"");
}

/* The first release's paths, and reads without a token where the operator opens them. */
static void test_first_release(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    expect(world, HTTP_POST, "/api/auth", NULL,
           "{\"username\":\"alice\",\"password\":\"alice-password\"}", 200);
    expect(world, HTTP_POST, "/api/v1/auth", NULL,
           "{\"username\":\"alice\",\"password\":\"alice-password\"}", 200);
    world_submit(world, alice, "seen", 1);
    static const char *const READS[] = {"/api/v1/jobs", "/api/job", "/api/v1/jobs/alice~seen",
                                        "/api/v1/user/alice/jobs", "/api/v1/virtual-clusters"};
    for (size_t i = 0; i < COUNT_OF(READS); i++)
        expect(world, HTTP_GET, READS[i], NULL, "", 401);
    world->api.config.is_v1_read_open = true;
    for (size_t i = 0; i < COUNT_OF(READS); i++)
        expect(world, HTTP_GET, READS[i], NULL, "", 200);
    expect(world, HTTP_GET, "/api/v1/jobs", "not.a.token", "", 401);
    expect(world, HTTP_GET, "/api/v1/jobs/alice~seen/config", NULL, "", 401);
    expect(world, HTTP_GET, "/api/v2/jobs", NULL, "", 401);
    expect(world, HTTP_POST, "/api/v1/jobs", NULL, "{}", 401);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_accounts, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_own, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_clusters, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_unknown_words, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_first_release, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
