/* Requests of users for virtual clusters, over HTTP. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#define REQUESTS "/api/v2/requests"
#define CLUSTER  "vc1"

static void ask(struct world *world, enum http_method method, const char *token, const char *path,
                const char *body, int expected)
{
    char target[200];
    snprintf(target, sizeof target, REQUESTS "%s", path);
    const int status = world_send(world, method, target, token, body);
    if (status != expected)
        fail_msg("%s: %d: %s", path, status, buf_cstr(&world->body));
}

/* The id of the reply. */
static const char *id_of(struct world *world)
{
    static char ids[4][16];
    static unsigned next;
    char *id = ids[next++ % 4];
    const char *from = strstr(buf_cstr(&world->body), "\"id\":\"");
    assert_non_null(from);
    from += 6;
    snprintf(id, sizeof ids[0], "%.*s", (int)strcspn(from, "\""), from);
    return id;
}

static void decide(struct world *world, const char *token, const char *id, const char *body,
                   int expected)
{
    char path[60];
    snprintf(path, sizeof path, "/%s/status", id);
    ask(world, HTTP_PUT, token, path, body, expected);
}

static int world_with_clusters(void **state)
{
    *state = world_new_placing(
        "hived", TEXT("physicalCluster:\n"
                      "  cellTypes: {N: {childCellType: V100, childCellNumber: 4, isNodeLevel: "
                      "true}}\n"
                      "  physicalCells: [{cellType: N, cellAddress: n1}]\n"
                      "virtualClusters:\n"
                      "  default: {virtualCells: [{cellType: N.V100, cellNumber: 2}]}\n"
                      "  " CLUSTER ": {virtualCells: [{cellType: N.V100, cellNumber: 2}]}\n"));
    return 0;
}

static void grant(struct world *world, const char *token, const char *user, const char *clusters)
{
    char target[100], body[100];
    snprintf(target, sizeof target, "/api/v2/users/%s/virtualcluster", user);
    snprintf(body, sizeof body, "{\"virtualCluster\":%s}", clusters);
    const int status = world_send(world, HTTP_PUT, target, token, body);
    if (status != 201)
        fail_msg("%d: %s", status, buf_cstr(&world->body));
}

static void test_asked_accepted_and_granted(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob"),
               *admin = world_login(world, "admin");
    ask(world, HTTP_POST, alice, "", "{\"virtualCluster\":\"nowhere\"}", 404);
    assert_body(world, "NoVirtualClusterError");
    ask(world, HTTP_POST, alice, "", "{\"virtualCluster\":\"default\"}", 409);
    ask(world, HTTP_POST, alice, "", "{}", 400);
    ask(world, HTTP_POST, alice, "", "{\"virtualCluster\":\"" CLUSTER "\",\"reason\":\"a\\nb\"}",
        400);
    ask(world, HTTP_POST, alice, "", "{\"virtualCluster\":\"" CLUSTER "\",\"x\":1}", 400);
    ask(world, HTTP_POST, admin, "", "{\"virtualCluster\":\"" CLUSTER "\"}", 409);
    assert_body(world, "admin may use " CLUSTER " already");
    ask(world, HTTP_POST, NULL, "", "{\"virtualCluster\":\"" CLUSTER "\"}", 401);
    ask(world, HTTP_POST, alice, "",
        "{\"virtualCluster\":\"" CLUSTER "\",\"reason\":\" a course \"}", 201);
    assert_body(world, "\"kind\":\"virtualCluster\",\"status\":\"open\",\"username\":\"alice\"");
    assert_body(world, "\"reason\":\"a course\"");
    const char *id = id_of(world);
    ask(world, HTTP_POST, alice, "", "{\"virtualCluster\":\"" CLUSTER "\"}", 200);
    assert_string_equal(id_of(world), id); /* that one is open */
    /* who sees it */
    char path[40];
    snprintf(path, sizeof path, "/%s", id);
    ask(world, HTTP_GET, alice, path, "", 200);
    ask(world, HTTP_GET, admin, path, "", 200);
    ask(world, HTTP_GET, bob, path, "", 403);
    ask(world, HTTP_GET, alice, "/none", "", 404);
    assert_body(world, "NoRequestError");
    ask(world, HTTP_GET, bob, "", "", 200);
    assert_body(world, "{\"totalCount\":0,\"data\":[]}");
    ask(world, HTTP_GET, bob, "?username=alice", "", 403);
    ask(world, HTTP_GET, alice, "?username=alice", "", 200);
    assert_body(world, "\"totalCount\":1");
    ask(world, HTTP_GET, admin, "?status=open,refused&limit=1", "", 200);
    assert_body(world, "\"totalCount\":1");
    ask(world, HTTP_GET, admin, "?username=admin", "", 200);
    assert_body(world, "\"totalCount\":0");
    ask(world, HTTP_GET, admin, "?status=lost", "", 400);
    /* who decides, and how */
    decide(world, alice, id, "{\"status\":\"accepted\"}", 403);
    decide(world, bob, id, "{\"status\":\"withdrawn\"}", 403);
    decide(world, admin, id, "{\"status\":\"withdrawn\"}", 403);
    decide(world, admin, id, "{\"status\":\"open\"}", 400);
    decide(world, admin, id, "{\"status\":\"refused\"}", 400);
    assert_body(world, "reason is missing");
    decide(world, admin, id, "{\"status\":\"refused\",\"reason\":\"x\",\"group\":\"g\"}", 400);
    decide(world, alice, id, "{\"status\":\"withdrawn\",\"reason\":\"x\"}", 400);
    decide(world, admin, id, "{\"status\":\"accepted\",\"group\":\"nowhere\"}", 409);
    assert_body(world, "ConflictRequestError");
    decide(world, admin, id, "{\"status\":\"accepted\",\"reason\":\"for a month\"}", 200);
    assert_body(world, "\"status\":\"accepted\"");
    assert_body(world, "\"decidedBy\":\"admin\",\"answer\":\"for a month\",\"group\":null");
    decide(world, admin, id, "{\"status\":\"accepted\"}", 409);
    assert_body(world, "it was accepted by admin at ");
    decide(world, alice, id, "{\"status\":\"withdrawn\"}", 409);
    assert_int_equal(world_get(world, "/api/v2/users/alice", alice), 200);
    assert_body(world, "\"ownVirtualCluster\":[\"" CLUSTER "\"]");
    ask(world, HTTP_POST, alice, "", "{\"virtualCluster\":\"" CLUSTER "\"}", 409);
    /* it is written down, with what changed */
    assert_int_equal(world_get(world, "/api/v2/audit?limit=50", admin), 200);
    assert_body(world, "\"subjectKind\":\"request\"");
    assert_body(world, "\"status\":\"accepted\"");
    assert_body(world, "\"virtualClusters\":[\"" CLUSTER "\"]");
}

static void test_by_a_group_refused_and_withdrawn(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob"),
               *admin = world_login(world, "admin");
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/groups", admin,
                                "{\"groupname\":\"lab\",\"extension\":{\"acls\":{"
                                "\"virtualClusters\":[\"" CLUSTER "\"]}}}"),
                     201);
    ask(world, HTTP_POST, alice, "", "{\"virtualCluster\":\"" CLUSTER "\"}", 201);
    const char *first = id_of(world);
    ask(world, HTTP_POST, bob, "", "{\"virtualCluster\":\"" CLUSTER "\"}", 201);
    const char *second = id_of(world);
    decide(world, admin, first, "{\"status\":\"accepted\",\"group\":\"lab\"}", 200);
    assert_body(world, "\"group\":\"lab\"");
    assert_int_equal(world_get(world, "/api/v2/users/alice", alice), 200);
    assert_body(world, "\"grouplist\":[\"lab\"]");
    decide(world, admin, second, "{\"status\":\"refused\",\"reason\":\"it is full\"}", 200);
    ask(world, HTTP_GET, bob, "?status=refused", "", 200);
    assert_body(world, "\"answer\":\"it is full\"");
    ask(world, HTTP_POST, bob, "", "{\"virtualCluster\":\"" CLUSTER "\"}", 201);
    const char *third = id_of(world);
    decide(world, bob, third, "{\"status\":\"withdrawn\"}", 200);
    decide(world, bob, third, "{\"status\":\"withdrawn\"}", 200);
    decide(world, admin, third, "{\"status\":\"accepted\"}", 409);
    ask(world, HTTP_GET, admin, "?fields=status&limit=2&cursor=", "", 200);
    assert_body(world, "\"totalCount\":3");
    assert_body(world, "\"cursor\":\"");
    grant(world, admin, "bob", "[\"" CLUSTER "\"]");
    ask(world, HTTP_POST, bob, "", "{\"virtualCluster\":\"" CLUSTER "\"}", 409);
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/users/bob", admin, ""), 200);
    ask(world, HTTP_GET, admin, "", "", 200);
    assert_body(world, "\"totalCount\":1"); /* they go with the user */
    world->refuse = ERR_UNAVAILABLE;
    decide(world, admin, first, "{\"status\":\"refused\",\"reason\":\"x\"}", 503);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, world_with_clusters, world_teardown)
static const struct CMUnitTest tests[] = {
    WORLD(test_asked_accepted_and_granted),
    WORLD(test_by_a_group_refused_and_withdrawn),
};
UNIT_FILE(tests, NULL, NULL);
