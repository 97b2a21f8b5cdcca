/* Every request that changes something leaves a record.
 *
 * One table: a row for each route that writes, with what the record must say. A writing route
 * without a row fails the test. */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "api/route.h"
#include "base/memory.h"

#define SUBMIT                                                                                     \
    "protocolVersion: 2\nname: new\ntype: job\nprerequisites:\n"                                   \
    "- {protocolVersion: 2, name: image, type: dockerimage, uri: 'debian:12'}\n"                   \
    "taskRoles:\n  worker:\n    instances: 1\n    dockerImage: image\n"                            \
    "    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}\n    commands: ['true']\n"
#define LOGIN  "{\"username\":\"alice\",\"password\":\"alice-password\"}"
#define STOP   "{\"value\":\"STOP\"}"
#define BULK   "{\"action\":\"stop\",\"jobs\":[\"alice~job\"]}"
#define TAG    "{\"value\":\"a-tag\"}"
#define MEMBER "{\"groupname\":\"lab\"}"
#define GROUP  "{\"data\":{\"groupname\":\"lab\",\"description\":\"d\"},\"patch\":true}"
#define V1_JOB "{\"jobName\":\"new\",\"taskRoles\":[]}"

/* What stands in the target for a token's number. */
#define TOKEN_ID "TOKEN"

struct row {
    enum http_method method;
    const char *path;
    const char *target; /* of the request; NULL: it cannot be made here, and why is said below */
    const char *body;
    const char *subject; /* NULL: any but "" */
    const char *outcome; /* "done" or err_name */
};

#define ITEMS "/marketplace/api/items"
#define TEMPLATE_JOB                                                                               \
    "protocolVersion: 2\\nname: x\\ntype: job\\nprerequisites:\\n  - {name: image, type: "         \
    "dockerimage, uri: debian}\\ntaskRoles:\\n  worker:\\n    dockerImage: image\\n    "           \
    "resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}\\n    commands: [echo hi]\\n"

/* By admin; alice's job `job` runs, `lab` is a group, bob a user. */
static const struct row ROWS[] = {
    {HTTP_POST, "/api/v2/authn/basic/login", "/api/v2/authn/basic/login", LOGIN, NULL, "done"},
    {HTTP_DELETE, "/api/v2/authn/basic/logout", "/api/v2/authn/basic/logout", "", NULL, "done"},
    /* there is no provider here: tests/system/signon */
    {HTTP_GET, "/api/v2/authn/oidc/return", NULL, NULL, NULL, NULL},
    {HTTP_POST, "/api/v2/authn/oidc/return", NULL, NULL, NULL, NULL}, /* leads to the one above */
    {HTTP_POST, "/api/v2/authn/oidc/token", NULL, NULL, NULL, NULL},
    {HTTP_POST, "/api/v2/authn/oidc/device", NULL, NULL, NULL, NULL}, /* begins a login */
    {HTTP_POST, "/api/v2/tokens", "/api/v2/tokens", LOGIN, NULL, "done"},
    {HTTP_POST, "/api/v2/tokens/application", "/api/v2/tokens/application", "", NULL, "done"},
    {HTTP_DELETE, "/api/v2/tokens/:token", "/api/v2/tokens/" TOKEN_ID, "", NULL, "not-found"},

    {HTTP_POST, "/api/v2/jobs", "/api/v2/jobs", SUBMIT, "admin~new", "done"},
    {HTTP_PUT, "/api/v2/jobs/:job", "/api/v2/jobs/new", SUBMIT, "admin~new", "done"},
    {HTTP_DELETE, "/api/v2/jobs/:job", "/api/v2/jobs/alice~job", "", "alice~job", "conflict"},
    {HTTP_POST, "/api/v2/bulk/jobs", "/api/v2/bulk/jobs", BULK, "alice~job", "done"},
    {HTTP_PUT, "/api/v2/jobs/:job/executionType", "/api/v2/jobs/alice~job/executionType", STOP,
     "alice~job", "done"},
    {HTTP_PUT, "/api/v2/jobs/:job/tag", "/api/v2/jobs/alice~job/tag", TAG, "alice~job", "done"},
    {HTTP_DELETE, "/api/v2/jobs/:job/tag", "/api/v2/jobs/alice~job/tag", TAG, "alice~job",
     "not-found"},
    {HTTP_POST, "/api/v2/jobs/:job/exec", "/api/v2/jobs/alice~job/exec", "", "alice~job",
     "conflict"},
    /* not set up here */
    {HTTP_POST, "/api/v2/jobs/:job/webPorts", "/api/v2/jobs/alice~job/webPorts",
     "{\"label\":\"http\"}", "alice~job", "unsupported"},
    {HTTP_DELETE, "/api/v2/exec/:session", "/api/v2/exec/0123", "", NULL, "not-found"},
    {HTTP_POST, "/api/v2/exec/:session/link", "/api/v2/exec/0123/link", "", NULL, "not-found"},
    {HTTP_PUT, "/api/v2/jobs/:job/release", "/api/v2/jobs/alice~job/release", "", "alice~job",
     "done"},
    {HTTP_PUT, "/api/v2/jobs/:job/taskRoles/:role/instances",
     "/api/v2/jobs/alice~job/taskRoles/worker/instances", "{\"instances\":1}", "alice~job",
     "conflict"},

    {HTTP_POST, "/api/v2/users", "/api/v2/users",
     "{\"username\":\"new\",\"password\":\"new-password\"}", "new", "done"},
    {HTTP_PUT, "/api/v2/users", "/api/v2/users",
     "{\"data\":{\"username\":\"bob\",\"email\":\"b@c\"},\"patch\":true}", "bob", "done"},
    {HTTP_PUT, "/api/v2/users/me", "/api/v2/users/me",
     "{\"data\":{\"username\":\"admin\",\"email\":\"a@c\"},\"patch\":true}", "admin", "done"},
    {HTTP_DELETE, "/api/v2/users/:user", "/api/v2/users/bob", "", "bob", "done"},
    {HTTP_PUT, "/api/v2/users/:user/extension", "/api/v2/users/bob/extension",
     "{\"extension\":{\"key\":\"hush\"}}", "bob", "done"},
    {HTTP_PUT, "/api/v2/users/:user/email", "/api/v2/users/bob/email", "{\"email\":\"b@c\"}", "bob",
     "done"},
    {HTTP_PUT, "/api/v2/users/:user/password", "/api/v2/users/bob/password",
     "{\"newPassword\":\"hush-hush\"}", "bob", "done"},
    {HTTP_PUT, "/api/v2/users/:user/virtualcluster", "/api/v2/users/bob/virtualcluster",
     "{\"virtualCluster\":[\"default\"]}", "bob", "done"},
    {HTTP_PUT, "/api/v2/users/:user/admin", "/api/v2/users/bob/admin", "{\"admin\":true}", "bob",
     "done"},
    {HTTP_PUT, "/api/v2/users/:user/grouplist", "/api/v2/users/bob/grouplist",
     "{\"grouplist\":[\"lab\"]}", "bob", "done"},
    {HTTP_PUT, "/api/v2/users/:user/group", "/api/v2/users/bob/group", MEMBER, "bob", "done"},
    {HTTP_DELETE, "/api/v2/users/:user/group", "/api/v2/users/bob/group", MEMBER, "bob", "done"},
    {HTTP_PUT, "/api/v2/users/:user/quota", "/api/v2/users/bob/quota", "{\"gpus\":4}", "bob",
     "done"},
    {HTTP_PUT, "/api/v2/groups/:group/quota", "/api/v2/groups/lab/quota", "{\"gpus\":4}", "lab",
     "done"},
    {HTTP_POST, "/api/v2/groups", "/api/v2/groups", "{\"groupname\":\"new\"}", "new", "done"},
    {HTTP_PUT, "/api/v2/groups", "/api/v2/groups", GROUP, "lab", "done"},
    {HTTP_DELETE, "/api/v2/groups/:group", "/api/v2/groups/lab", "", "lab", "done"},
    {HTTP_PUT, "/api/v2/groups/:group/description", "/api/v2/groups/lab/description",
     "{\"description\":\"d\"}", "lab", "done"},
    {HTTP_PUT, "/api/v2/groups/:group/externalname", "/api/v2/groups/lab/externalname",
     "{\"externalName\":\"d\"}", "lab", "done"},
    {HTTP_PUT, "/api/v2/groups/:group/extension", "/api/v2/groups/lab/extension",
     "{\"extension\":{\"key\":\"hush\"}}", "lab", "done"},
    {HTTP_PUT, "/api/v2/groups/:group/extension/*key", "/api/v2/groups/lab/extension/acls/admin",
     "{\"data\":true}", "lab", "done"},

    {HTTP_PUT, "/api/v2/nodes/:node/pardon", "/api/v2/nodes/n1/pardon", "", "n1", "done"},
    {HTTP_PUT, "/api/v2/nodes/:node/cordon", "/api/v2/nodes/n1/cordon", "{\"reason\":\"a disk\"}",
     "n1", "done"},
    {HTTP_PUT, "/api/v2/nodes/:node/drain", "/api/v2/nodes/n1/drain", "", "n1", "done"},
    {HTTP_PUT, "/api/v2/nodes/:node/uncordon", "/api/v2/nodes/n1/uncordon", "", "n1", "done"},
    {HTTP_PUT, "/api/v2/virtual-clusters/:vc", "/api/v2/virtual-clusters/new", "{}", "new",
     "unsupported"},
    {HTTP_DELETE, "/api/v2/virtual-clusters/:vc", "/api/v2/virtual-clusters/new", "", "new",
     "unsupported"},
    {HTTP_PUT, "/api/v2/virtual-clusters/:vc/status", "/api/v2/virtual-clusters/default/status",
     "{\"vcStatus\":\"stopped\",\"reason\":\"a course\"}", "default", "done"},

    /* alice has a public template `mine` */
    {HTTP_POST, ITEMS, ITEMS, "{\"name\":\"new\",\"protocol\":\"" TEMPLATE_JOB "\"}", "admin~new",
     "done"},
    {HTTP_PUT, ITEMS "/:item", ITEMS "/alice~mine", "{\"summary\":\"s\"}", "alice~mine", "done"},
    {HTTP_DELETE, ITEMS "/:item", ITEMS "/alice~mine", "", "alice~mine", "done"},
    {HTTP_PUT, ITEMS "/:item/status", ITEMS "/alice~mine/status", "{\"status\":\"approved\"}",
     "alice~mine", "done"},
    {HTTP_PUT, ITEMS "/:item/official", ITEMS "/alice~mine/official", "{\"official\":false}",
     "alice~mine", "done"},
    {HTTP_POST, ITEMS "/:item/versions/:version/restore", ITEMS "/alice~mine/versions/1/restore",
     "", "alice~mine", "conflict"},
    {HTTP_POST, ITEMS "/:item/use", ITEMS "/alice~mine/use", "", "alice~mine", "done"},
    {HTTP_PUT, ITEMS "/:item/star", ITEMS "/alice~mine/star", "", "alice~mine", "done"},
    {HTTP_DELETE, ITEMS "/:item/star", ITEMS "/alice~mine/star", "", "alice~mine", "done"},

    {HTTP_POST, "/api/v2/requests", "/api/v2/requests", "{\"virtualCluster\":\"default\"}", NULL,
     "conflict"},
    {HTTP_PUT, "/api/v2/requests/:request/status", "/api/v2/requests/1/status",
     "{\"status\":\"refused\",\"reason\":\"why\"}", "1", "done"},
    {HTTP_POST, "/api/v2/requests/account", NULL, NULL, NULL, NULL}, /* a stranger's */

    /* files are turned off in this world; a link changes nothing, and parts of an upload are many
     */
    {HTTP_DELETE, "/api/v2/storages/:storage/files", "/api/v2/storages/corpus/files?path=a", "",
     "corpus", "unsupported"},
    {HTTP_PUT, "/api/v2/storages/:storage/files", "/api/v2/storages/corpus/files", "", "corpus",
     "unsupported"},
    {HTTP_POST, "/api/v2/storages/:storage/folders", "/api/v2/storages/corpus/folders", "",
     "corpus", "unsupported"},
    {HTTP_POST, "/api/v2/storages/:storage/uploads", "/api/v2/storages/corpus/uploads", "",
     "corpus", "unsupported"},
    {HTTP_POST, "/api/v2/storages/:storage/uploads/:upload", "/api/v2/storages/corpus/uploads/x",
     "", "corpus", "unsupported"},
    {HTTP_DELETE, "/api/v2/storages/:storage/uploads/:upload", "/api/v2/storages/corpus/uploads/x",
     "", "corpus", "unsupported"},
    {HTTP_POST, "/api/v2/storages/:storage/links", NULL, NULL, NULL, NULL},
    {HTTP_PUT, "/api/v2/storages/:storage/uploads/:upload", NULL, NULL, NULL, NULL},

    /* a task's report at its barrier is no change that somebody asks for */
    {HTTP_POST, "/api/internal/attempts/:attempt/barriers/:barrier", NULL, NULL, NULL, NULL},

    {HTTP_POST, "/api/v1/authn/basic/login", "/api/v1/authn/basic/login", LOGIN, NULL, "done"},
    {HTTP_DELETE, "/api/v1/authn/basic/logout", "/api/v1/authn/basic/logout", "", NULL, "done"},
    {HTTP_GET, "/api/v1/authn/oidc/return", NULL, NULL, NULL, NULL},
    {HTTP_POST, "/api/v1/authn/oidc/return", NULL, NULL, NULL, NULL},
    {HTTP_POST, "/api/v1/token", "/api/v1/token", LOGIN, NULL, "done"},
    {HTTP_POST, "/api/v1/token/application", "/api/v1/token/application", "", NULL, "done"},
    {HTTP_DELETE, "/api/v1/token/:token", "/api/v1/token/" TOKEN_ID, "", NULL, "not-found"},
    {HTTP_PUT, "/api/v1/user", "/api/v1/user",
     "{\"username\":\"new\",\"password\":\"new-password\"}", "new", "done"},
    {HTTP_DELETE, "/api/v1/user", "/api/v1/user", "{\"username\":\"bob\"}", "bob", "done"},
    {HTTP_PUT, "/api/v1/user/:user/virtualClusters", "/api/v1/user/bob/virtualClusters",
     "{\"virtualClusters\":\"default\"}", "bob", "done"},
    {HTTP_PUT, "/api/v1/user/:user/githubPAT", "/api/v1/user/bob/githubPAT",
     "{\"githubPAT\":\"hush\"}", "bob", "done"},
    {HTTP_PUT, "/api/v1/virtual-clusters/:vc", "/api/v1/virtual-clusters/new", "{}", "new",
     "unsupported"},
    {HTTP_DELETE, "/api/v1/virtual-clusters/:vc", "/api/v1/virtual-clusters/new", "", "new",
     "unsupported"},
    {HTTP_PUT, "/api/v1/virtual-clusters/:vc/status", "/api/v1/virtual-clusters/default/status",
     "{\"vcStatus\":\"stopped\",\"reason\":\"a course\"}", "default", "done"},
    {HTTP_POST, "/api/v1/jobs", "/api/v1/jobs", V1_JOB, "", "invalid"},
    {HTTP_PUT, "/api/v1/jobs/:job", "/api/v1/jobs/new", V1_JOB, "admin~new", "invalid"},
    {HTTP_DELETE, "/api/v1/jobs/:job", "/api/v1/jobs/no", "", "admin~no", "not-found"},
    {HTTP_PUT, "/api/v1/jobs/:job/executionType", "/api/v1/jobs/alice~job/executionType", STOP,
     "alice~job", "done"},
    {HTTP_POST, "/api/v1/user/:user/jobs", "/api/v1/user/alice/jobs", V1_JOB, "alice", "forbidden"},
    {HTTP_PUT, "/api/v1/user/:user/jobs/:job", "/api/v1/user/alice/jobs/job", V1_JOB, "alice~job",
     "forbidden"},
    {HTTP_DELETE, "/api/v1/user/:user/jobs/:job", "/api/v1/user/alice/jobs/job", "", "alice~job",
     "conflict"},
    {HTTP_PUT, "/api/v1/user/:user/jobs/:job/executionType",
     "/api/v1/user/alice/jobs/job/executionType", STOP, "alice~job", "done"},
};

static void add(struct world *world, struct store_change change)
{
    struct store_batch batch = {.changes = &change, .change_count = 1};
    struct err err;
    assert_int_equal(store_commit(world->store, &batch, &err), 0);
    assert_int_equal(change.code, 0);
}

static struct store_audits audits_read(struct world *world, struct audit_filter filter,
                                       struct arena *arena)
{
    struct store_reader *reader;
    struct store_audits audits;
    struct err err;
    filter.limit = 1000;
    assert_int_equal(store_reader_open(world->store, &reader, &err), 0);
    assert_int_equal(store_audits(reader, &filter, arena, &audits, &err), 0);
    store_reader_close(reader);
    return audits;
}

static bool record_is(const struct row *row, const struct store_audit *audit)
{
    char route[200];
    const char *outcome = audit->code ? err_name(audit->code) : "done";
    snprintf(route, sizeof route, "%s %s", http_method_name(row->method), row->path);
    const bool is_login = strcmp(audit->user, "alice") == 0 && strstr(row->body, "alice-password");
    bool is_right = strcmp(audit->route, route) == 0 && strcmp(outcome, row->outcome) == 0 &&
                    (is_login || strcmp(audit->user, "admin") == 0) &&
                    strcmp(audit->address, "10.1.1.1") == 0 &&
                    (row->subject ? strcmp(audit->subject, row->subject) == 0 : audit->subject[0]);
    if (!is_right)
        fprintf(stderr, "%s: the record says %s %s, subject '%s', %s: %s, from %s\n", route,
                audit->user, audit->route, audit->subject, outcome, audit->reason, audit->address);
    return is_right;
}

static const char *const secrets[] = {"hush", "-password", "argon2"};

static bool row_holds(const struct row *row)
{
    struct world *world = world_new();
    struct arena arena;
    bool is_right = true;
    arena_init(&arena);
    world->address = "10.1.1.1";
    add(world, (struct store_change){.kind = CHANGE_GROUP_ADD,
                                     .group = {.name = "lab", .description = ""}});
    add(world, (struct store_change){.kind = CHANGE_TEMPLATE_ADD,
                                     .template.row = {.id = "1",
                                                      .author = "alice",
                                                      .name = "mine",
                                                      .summary = "",
                                                      .description = "",
                                                      .protocol = "",
                                                      .is_public = true,
                                                      .created_ms = 1,
                                                      .updated_ms = 1}});
    add(world,
        (struct store_change){
            .kind = CHANGE_REQUEST_ADD,
            .request.row = {
                .id = "1", .user = "alice", .virtual_cluster = "vc1", .why = "", .asked_ms = 1}});
    const char *admin = world_login(world, "admin");
    world_submit(world, world_login(world, "alice"), "job", 1);
    const size_t before = audits_read(world, (struct audit_filter){0}, &arena).count;
    world_send(world, row->method, row->target, admin, row->body);
    struct store_audits audits = audits_read(world, (struct audit_filter){0}, &arena);
    if (audits.count != before + 1) {
        fprintf(stderr, "%s %s: %zu records: %d %s\n", http_method_name(row->method), row->path,
                audits.count - before, world->status, buf_cstr(&world->body));
        is_right = false;
    }
    is_right = is_right && record_is(row, &audits.items[0]);
    for (size_t i = 0; is_right && i < COUNT_OF(secrets); i++)
        is_right = !strstr(audits.items[0].before, secrets[i]) &&
                   !strstr(audits.items[0].after, secrets[i]);
    arena_release(&arena);
    world_free(world);
    return is_right;
}

static void test_every_write_leaves_a_record(void **state)
{
    unsigned wrong = 0;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ROWS); i++)
        wrong += ROWS[i].target && !row_holds(&ROWS[i]);
    assert_int_equal(wrong, 0);
}

static bool is_writing(const struct route *route)
{
    return route->method != HTTP_GET || strstr(route->path, "/oidc/return");
}

static void test_every_writing_route_has_a_row(void **state)
{
    unsigned missing = 0, writing = 0;
    (void)state;
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        size_t row = 0;
        if (!is_writing(&ROUTES[i]))
            continue;
        writing++;
        while (row < COUNT_OF(ROWS) && (ROWS[row].method != ROUTES[i].method ||
                                        strcmp(ROWS[row].path, ROUTES[i].path) != 0))
            row++;
        if (row < COUNT_OF(ROWS))
            continue;
        fprintf(stderr, "no row for %s %s\n", http_method_name(ROUTES[i].method), ROUTES[i].path);
        missing++;
    }
    assert_int_equal(missing, 0);
    assert_int_equal(writing, COUNT_OF(ROWS));
}

/* Wrong passwords, of users and of others; requests that are refused before their handler. */
static void test_refusals(void **state)
{
    struct world *world = *state;
    struct arena arena;
    arena_init(&arena);
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/authn/basic/login", NULL,
                                "{\"username\":\"alice\",\"password\":\"wrong-one\"}"),
                     400);
    struct store_audits audits = audits_read(world, (struct audit_filter){0}, &arena);
    assert_int_equal(audits.count, 1);
    assert_string_equal(audits.items[0].user, "");
    assert_string_equal(audits.items[0].subject, "alice");
    assert_int_equal(audits.items[0].code, ERR_UNAUTHORIZED);
    /* a password in the wrong field */
    world_send(world, HTTP_POST, "/api/v2/authn/basic/login", NULL,
               "{\"username\":\"my-secret-word\",\"password\":\"x\"}");
    audits = audits_read(world, (struct audit_filter){0}, &arena);
    assert_int_equal(audits.count, 2);
    assert_string_equal(audits.items[0].subject, "");
    /* a stranger's request is no login: nothing */
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/users", NULL, "{}"), 401);
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/tokens", NULL, "{}"), 400);
    assert_int_equal(audits_read(world, (struct audit_filter){0}, &arena).count, 2);
    /* a user without the right */
    const char *bob = world_login(world, "bob");
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/users", bob, "{}"), 403);
    audits = audits_read(world, (struct audit_filter){.user = TEXT("bob")}, &arena);
    assert_int_equal(audits.count, 2);
    assert_string_equal(audits.items[0].right, "auth.manage");
    assert_int_equal(audits.items[0].code, ERR_FORBIDDEN);
    assert_true(audits.items[0].token[0]);
    /* what was not taken is not written down, nor what nothing comes of */
    world->refuse = ERR_BUSY;
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/jobs", bob, SUBMIT), 429);
    world->refuse = 0;
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/jobs?dryRun=true", bob, SUBMIT), 200);
    assert_int_equal(world_get(world, "/api/v2/jobs", bob), 200);
    assert_int_equal(audits_read(world, (struct audit_filter){.user = TEXT("bob")}, &arena).count,
                     2);
    arena_release(&arena);
}

static void test_socket_of_the_machine(void **state)
{
    struct world *world = *state;
    struct arena arena;
    arena_init(&arena);
    world->peer_uid = 0;
    world->address = "";
    world->api.config.socket_user = "admin";
    assert_int_equal(
        world_send(world, HTTP_POST, "/api/v2/groups", NULL, "{\"groupname\":\"new\"}"), 201);
    struct store_audits audits = audits_read(world, (struct audit_filter){0}, &arena);
    assert_int_equal(audits.count, 1);
    assert_string_equal(audits.items[0].user, "admin");
    assert_string_equal(audits.items[0].address, "uid 0");
    arena_release(&arena);
}

static void test_reading(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin");
    const char *const bad[] = {"limit=0", "limit=1001", "cursor=x", "since=-1"};
    char target[100];
    world_send(world, HTTP_PUT, "/api/v2/users/bob/email", admin, "{\"email\":\"b@c\"}");
    assert_int_equal(world_get(world, "/api/v2/audit?limit=1", admin), 200);
    assert_body(world, "\"username\":\"admin\"");
    assert_body(world, "\"right\":\"auth.edit-user\"");
    assert_body(world, "\"route\":\"PUT /api/v2/users/:user/email\"");
    assert_body(world, "\"subjectKind\":\"user\",\"subject\":\"bob\",\"outcome\":\"done\"");
    assert_body(world, "\"before\":{\"email\":\"\"},\"after\":{\"email\":\"b@c\"}");
    const char *cursor = strstr(buf_cstr(&world->body), "\"cursor\":\"");
    assert_non_null(cursor);
    snprintf(target, sizeof target, "/api/v2/audit?cursor=%.*s", (int)strcspn(cursor + 10, "\""),
             cursor + 10);
    assert_int_equal(world_get(world, target, admin), 200);
    assert_body(world, "\"route\":\"POST /api/v2/authn/basic/login\"");
    assert_body(world, "\"cursor\":null");
    assert_no_body(world, "b@c");
    assert_int_equal(world_get(world, "/api/v2/audit?subject=nobody", admin), 200);
    assert_body(world, "{\"data\":[],\"cursor\":null}");
    assert_int_equal(world_get(world, "/api/v2/audit?refused=true", admin), 200);
    assert_body(world, "{\"data\":[],\"cursor\":null}");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        snprintf(target, sizeof target, "/api/v2/audit?%s", bad[i]);
        assert_int_equal(world_get(world, target, admin), 400);
    }
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_writing_route_has_a_row),
    cmocka_unit_test(test_every_write_leaves_a_record),
    WORLD(test_refusals),
    WORLD(test_socket_of_the_machine),
    WORLD(test_reading),
};
UNIT_FILE(tests, NULL, NULL);
