/* Users, groups and tokens as OpenPAI's clients ask for them.
 *
 * Covers: src/api/account.c, src/api/user.c, src/api/group.c */
#include "base/memory.h"
#include "unit.h"
#include "world.h"
#include <sodium.h>
#include <stdio.h>

#define USERS "/api/v2/users"

static void expect(struct world *world, enum http_method method, const char *target,
                   const char *token, const char *body, int status)
{
    if (world_send(world, method, target, token, body) != status)
        fail_msg("%s %s: %d instead of %d: %s", http_method_name(method), target, world->status,
                 status, buf_cstr(&world->body));
}

static void has(struct world *world, const char *part)
{
    if (!world_body_has(world, part))
        fail_msg("no %s in %s", part, buf_cstr(&world->body));
}

static void lacks(struct world *world, const char *part)
{
    if (world_body_has(world, part))
        fail_msg("%s in %s", part, buf_cstr(&world->body));
}

/* A token by login, or NULL when it is refused; lives as long as the test. */
static const char *login(struct world *world, const char *user, const char *password)
{
    static char tokens[4][2048];
    static unsigned next;
    char body[200], *token = tokens[next++ % COUNT_OF(tokens)];
    snprintf(body, sizeof body, "{\"username\":\"%s\",\"password\":\"%s\"}", user, password);
    if (world_send(world, HTTP_POST, "/api/v2/authn/basic/login", NULL, body) != 200)
        return NULL;
    const char *from = strstr(buf_cstr(&world->body), "\"token\":\"") + 9;
    snprintf(token, sizeof tokens[0], "%.*s", (int)strcspn(from, "\""), from);
    return token;
}

static const char *application(struct world *world, const char *token, const char *body)
{
    static char tokens[4][2048];
    static unsigned next;
    char *made = tokens[next++ % COUNT_OF(tokens)];
    expect(world, HTTP_POST, "/api/v2/tokens/application", token, body, 200);
    const char *from = strstr(buf_cstr(&world->body), "\"token\":\"") + 9;
    snprintf(made, sizeof tokens[0], "%.*s", (int)strcspn(from, "\""), from);
    return made;
}

static int setup(void **state)
{
    struct world *world = world_new();
    const char *admin = world_login(world, "admin");
    expect(world, HTTP_POST, "/api/v2/groups", admin, "{\"groupname\":\"default\"}", 201);
    expect(world, HTTP_POST, "/api/v2/groups", admin,
           "{\"groupname\":\"admingroup\",\"extension\":{\"acls\":{\"admin\":true}}}", 201);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    world_free(*state);
    return 0;
}

static void users_are_made_and_removed(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin");
    expect(world, HTTP_POST, USERS, admin, "{\"username\":\"eve\",\"password\":\"test_password\"}",
           201);
    has(world, "\"message\":\"User is created successfully\"");
    expect(world, HTTP_POST, USERS, admin, "{\"username\":\"eve\",\"password\":\"test_password\"}",
           409);
    has(world, "\"code\":\"ConflictUserError\"");
    expect(world, HTTP_GET, USERS "/eve", admin, "", 200);
    assert_string_equal(buf_cstr(&world->body),
                        "{\"username\":\"eve\",\"email\":\"\",\"grouplist\":[\"default\"],"
                        "\"admin\":false,\"virtualCluster\":[\"default\"],\"ownVirtualCluster\":[],"
                        "\"storageConfig\":[],"
                        "\"active\":true,\"extension\":{}}");
    const char *eve = login(world, "eve", "test_password");
    assert_non_null(eve);
    expect(world, HTTP_GET, USERS, eve, "", 200);
    has(world, "\"username\":\"alice\"");
    expect(world, HTTP_DELETE, USERS "/eve", admin, "", 200);
    expect(world, HTTP_GET, USERS "/eve", admin, "", 404);
    has(world, "\"code\":\"NoUserError\"");
    expect(world, HTTP_GET, USERS, eve, "", 401);
    expect(world, HTTP_DELETE, USERS "/eve", admin, "", 404);
    expect(world, HTTP_DELETE, USERS "/admin", admin, "", 403);
    has(world, "\"code\":\"RemoveAdminError\"");
}

static void bad_users_are_refused(void **state)
{
    static const struct {
        const char *body, *part;
        int status;
    } cases[] = {
        {"{}", "username is missing", 400},
        {"{\"username\":\"a~b\",\"password\":\"123456\"}", "username must have", 400},
        {"{\"username\":\"eve\"}", "password is missing", 400},
        {"{\"username\":\"eve\",\"password\":\"12345\"}", "password must have 6..", 400},
        {"{\"username\":\"eve\",\"password\":\"123456\",\"email\":\"x\"}", "mail address", 400},
        {"{\"username\":\"eve\",\"password\":\"123456\",\"email\":\"Eve<e@x.org>\"}",
         "email must be a mail address: NAME@DOMAIN", 400},
        {"{\"username\":\"eve\",\"password\":\"123456\",\"email\":\"\u00f6@x.org\"}",
         "mail address", 400},
        {"{\"username\":\"eve\",\"password\":\"123456\",\"admin\":3}", "true or false", 400},
        {"{\"username\":\"eve\",\"password\":\"123456\",\"virtualCluster\":\"a\"}", "list", 400},
        {"{\"username\":\"eve\",\"password\":\"123456\",\"grouplist\":[7]}", "a list of names",
         400},
        {"{\"username\":\"eve\",\"password\":\"123456\",\"grouplist\":[\"default\\u0000x\"]}",
         "a list of names", 400},
        {"{\"username\":\"eve\",\"password\":\"123456\",\"virtualCluster\":[\"vc9\"]}",
         "NoVirtualClusterError", 400},
        {"{\"username\":\"eve\",\"password\":\"123456\",\"grouplist\":[\"g9\"]}", "NoGroupError",
         404},
        {"{\"username\":\"eve\",\"password\":\"123456\",\"extension\":[]}", "an object", 400},
        {"{\"username\":\"eve\",\"passwordHash\":\"00\"}", "128 hexadecimal", 400},
    };
    struct world *world = *state;
    const char *admin = world_login(world, "admin");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        expect(world, HTTP_POST, USERS, admin, cases[i].body, cases[i].status);
        has(world, cases[i].part);
    }
    expect(world, HTTP_GET, USERS "/eve", admin, "", 404);
}

/* An older version took what nothing can be sent to: that hinders no other change. */
static void an_address_that_is_there_stays(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin");
    struct store_change set = {.kind = CHANGE_USER_SET,
                               .user = {.name = "alice", .email = "Alice<a@b.c>"},
                               .fields = USER_EMAIL};
    const struct store_batch batch = {.changes = &set, .change_count = 1};
    struct err err;
    assert_int_equal(store_commit(world->store, &batch, &err), 0);
    expect(world, HTTP_PUT, USERS, admin,
           "{\"data\":{\"username\":\"alice\",\"email\":\"Alice<a@b.c>\",\"admin\":true},"
           "\"patch\":true}",
           201);
    expect(world, HTTP_PUT, USERS "/alice/email", admin, "{\"email\":\"Ali<a@b.c>\"}", 400);
    has(world, "email must be a mail address: NAME@DOMAIN");
    expect(world, HTTP_PUT, USERS "/alice/email", admin, "{\"email\":\"a@b.c\"}", 201);
    expect(world, HTTP_PUT, USERS "/alice/email", admin, "{\"email\":\"Alice<a@b.c>\"}", 400);
}

static void an_admin_changes_a_user(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin"), *alice = world_login(world, "alice");
    expect(world, HTTP_PUT, USERS, admin,
           "{\"data\":{\"username\":\"alice\",\"email\":\"a@b.c\"},\"patch\":true}", 201);
    expect(world, HTTP_PUT, USERS, admin, "{\"data\":{\"username\":\"alice\"},\"patch\":true}",
           201);
    expect(world, HTTP_PUT, USERS, admin, "{\"data\":{\"username\":\"alice\",\"email\":\"\"}}",
           400);
    has(world, "virtualCluster is missing");
    expect(world, HTTP_PUT, USERS, admin,
           "{\"data\":{\"username\":\"nobody\",\"email\":\"\"},\"patch\":true}", 404);
    expect(world, HTTP_GET, USERS "/alice", alice, "", 200);
    has(world, "\"email\":\"a@b.c\"");
    expect(world, HTTP_PUT, USERS, admin,
           "{\"patch\":false,\"data\":{\"username\":\"alice\",\"email\":\"d@e.f\",\"admin\":false,"
           "\"virtualCluster\":[\"default\"],\"password\":\"new_password\","
           "\"extension\":{\"k\":[1,2]}}}",
           201);
    expect(world, HTTP_GET, USERS, alice, "", 401); /* with the old password went her sessions */
    assert_null(login(world, "alice", "alice-password"));
    alice = login(world, "alice", "new_password");
    expect(world, HTTP_GET, USERS "/alice", alice, "", 200);
    has(world, "\"extension\":{\"k\":[1,2]}");
    has(world, "\"email\":\"d@e.f\"");
    expect(world, HTTP_GET, USERS "/alice", world_login(world, "bob"), "", 200);
    has(world, "\"extension\":{}"); /* what stands there may be secret */
    has(world, "\"email\":\"\"");
    expect(world, HTTP_PUT, USERS "/alice/virtualcluster", admin, "{\"virtualCluster\":[\"x\"]}",
           400);
    has(world, "NoVirtualClusterError");
    expect(world, HTTP_PUT, USERS "/admin/virtualcluster", admin, "{\"virtualCluster\":[]}", 403);
    has(world, "Admin's virtual clusters cannot be updated.");
}

static void users_change_themselves(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    const char *elsewhere = login(world, "alice", "alice-password");
    expect(world, HTTP_PUT, USERS "/me", alice,
           "{\"data\":{\"username\":\"alice\",\"email\":\"a@b.c\"},\"patch\":true}", 201);
    expect(world, HTTP_PUT, USERS "/me", alice,
           "{\"data\":{\"username\":\"bob\",\"email\":\"a@b.c\"},\"patch\":true}", 403);
    expect(world, HTTP_PUT, USERS "/alice/extension", alice, "{\"extension\":{\"a\":1,\"b\":2}}",
           201);
    expect(world, HTTP_PUT, USERS "/alice/extension", alice, "{\"extension\":{\"b\":{\"c\":3}}}",
           201);
    expect(world, HTTP_GET, USERS "/alice", alice, "", 200);
    has(world, "\"extension\":{\"a\":1,\"b\":{\"c\":3}}");
    expect(world, HTTP_PUT, USERS "/bob/email", alice, "{\"email\":\"\"}", 403);
    has(world, "\"right\":\"auth.edit-user\"");
    expect(world, HTTP_PUT, USERS "/alice/password", alice,
           "{\"oldPassword\":\"wrong-password\",\"newPassword\":\"new_password\"}", 403);
    expect(world, HTTP_PUT, USERS "/alice/password", alice, "{\"newPassword\":\"new_password\"}",
           403); /* the old one is not "defaultpai" */
    expect(world, HTTP_PUT, USERS "/alice/password", alice,
           "{\"oldPassword\":\"alice-password\",\"newPassword\":\"new_password\"}", 201);
    /* who gave the old one stays signed in, and nobody else */
    expect(world, HTTP_GET, USERS "/alice", alice, "", 200);
    expect(world, HTTP_GET, USERS "/alice", elsewhere, "", 401);
    alice = login(world, "alice", "new_password");
    assert_non_null(alice);
    expect(world, HTTP_PUT, USERS "/me", alice,
           "{\"patch\":false,\"data\":{\"username\":\"alice\",\"email\":\"x@y.z\","
           "\"oldPassword\":\"new_password\",\"newPassword\":\"third_password\"}}",
           201);
    assert_non_null(login(world, "alice", "third_password"));
}

static void old_passwords_cannot_be_guessed_with_a_token(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    int status = 403;
    for (int i = 0; i < 30 && status == 403; i++)
        status = world_send(world, HTTP_PUT, USERS "/alice/password", alice,
                            "{\"oldPassword\":\"a guess\",\"newPassword\":\"new_password\"}");
    assert_int_equal(status, 429);
    assert_string_not_equal(world->retry_after, "");
}

static void admins_are_made_and_unmade(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin"), *bob = world_login(world, "bob");
    expect(world, HTTP_PUT, USERS "/admin/admin", admin, "{\"admin\":false}", 403);
    has(world, "RemoveAdminError");
    expect(world, HTTP_PUT, USERS "/bob/admin", admin, "{\"admin\":true}", 201);
    expect(world, HTTP_PUT, USERS "/admin/admin", bob, "{\"admin\":false}", 201);
    expect(world, HTTP_PUT, USERS "/bob/admin", admin, "{\"admin\":false}", 403);
    expect(world, HTTP_PUT, USERS "/admin/grouplist", bob, "{\"grouplist\":[\"admingroup\"]}", 201);
    expect(world, HTTP_PUT, USERS "/bob/admin", admin, "{\"admin\":false}", 201);
    expect(world, HTTP_PUT, USERS "/bob/admin", admin, "{\"admin\":true}", 201);
    expect(world, HTTP_PUT, USERS "/admin/admin", bob, "{\"admin\":false}", 201);
    expect(world, HTTP_GET, USERS "/admin", bob, "", 200);
    has(world, "\"grouplist\":[]"); /* nor by a group */
    has(world, "\"admin\":false");
}

static void deactivated_users_are_out(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin"), *alice = world_login(world, "alice");
    application(world, alice, "");
    expect(world, HTTP_PUT, USERS, admin,
           "{\"patch\":true,\"data\":{\"username\":\"alice\",\"active\":false}}", 201);
    expect(world, HTTP_GET, USERS, alice, "", 401);
    assert_null(login(world, "alice", "alice-password"));
    has(world, "IncorrectPasswordError"); /* and nobody learns why */
    expect(world, HTTP_PUT, USERS, admin,
           "{\"patch\":true,\"data\":{\"username\":\"alice\",\"active\":true}}", 201);
    assert_non_null(login(world, "alice", "alice-password"));
    expect(world, HTTP_GET, USERS, alice, "", 401); /* the tokens are gone */
}

static void groups_are_made_changed_and_removed(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin"), *alice = world_login(world, "alice");
    expect(world, HTTP_POST, "/api/v2/groups", admin, "{\"groupname\":\"lab\"}", 201);
    expect(world, HTTP_POST, "/api/v2/groups", admin, "{\"groupname\":\"lab\"}", 409);
    expect(world, HTTP_POST, "/api/v2/groups", admin, "{\"groupname\":\"a b\"}", 400);
    expect(world, HTTP_GET, "/api/v2/groups/lab", alice, "", 200);
    assert_string_equal(buf_cstr(&world->body),
                        "{\"groupname\":\"lab\",\"description\":\"\",\"externalName\":\"\","
                        "\"extension\":{\"acls\":{\"admin\":false,\"virtualClusters\":[],"
                        "\"storageConfigs\":[]}}}");
    expect(world, HTTP_PUT, "/api/v2/groups", admin,
           "{\"patch\":true,\"data\":{\"groupname\":\"lab\",\"description\":\"who trains\"}}", 201);
    expect(world, HTTP_PUT, "/api/v2/groups/lab/externalname", admin, "{\"externalName\":\"cn\"}",
           201);
    expect(world, HTTP_PUT, "/api/v2/groups/lab/extension", admin,
           "{\"extension\":{\"acls\":{\"virtualClusters\":[\"vc1\"],\"storageConfigs\":[\"s1\"]},"
           "\"note\":1}}",
           201);
    expect(world, HTTP_PUT, "/api/v2/groups/lab/extension/acls/virtualClusters", admin,
           "{\"data\":[\"vc1\",\"vc2\"]}", 201);
    expect(world, HTTP_PUT, "/rest-server/api/v2/groups/lab/extension/a/b", admin, "{\"data\":5}",
           201);
    expect(world, HTTP_PUT, "/api/v2/groups/lab/description", admin, "{}", 400);
    expect(world, HTTP_PUT, "/api/v2/groups/none/description", admin, "{\"description\":\"\"}",
           404);
    expect(world, HTTP_GET, "/api/v2/groups", alice, "", 200);
    has(world, "{\"groupname\":\"lab\",\"description\":\"who trains\",\"externalName\":\"cn\","
               "\"extension\":{\"note\":1,\"a\":{\"b\":5},\"acls\":{\"admin\":false,"
               "\"virtualClusters\":[\"vc1\",\"vc2\"],\"storageConfigs\":[\"s1\"]}}}");
    expect(world, HTTP_PUT, USERS "/alice/group", admin, "{\"groupname\":\"lab\"}", 201);
    has(world, "User alice is added into group lab");
    expect(world, HTTP_GET, USERS "/alice", alice, "", 200);
    /* what a group grants is not the user's own */
    has(world, "\"virtualCluster\":[\"default\",\"vc1\",\"vc2\"],\"ownVirtualCluster\":[],"
               "\"storageConfig\":[\"s1\"]");
    expect(world, HTTP_GET, "/api/v2/groups/lab/userlist", admin, "", 200);
    has(world, "[{\"username\":\"alice\",\"clusterAdmin\":false,\"groupAdmin\":false}]");
    expect(world, HTTP_DELETE, "/api/v2/groups/lab", admin, "", 200);
    expect(world, HTTP_GET, "/api/v2/groups/lab", admin, "", 404);
    has(world, "NoGroupError");
    expect(world, HTTP_GET, "/api/v2/groups/lab/userlist", admin, "", 200);
    has(world, "[]");
    expect(world, HTTP_GET, USERS "/alice", alice, "", 200);
    has(world, "\"grouplist\":[]");
}

static void admins_of_a_group_say_who_is_in_it(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin"), *alice = world_login(world, "alice");
    expect(world, HTTP_POST, "/api/v2/groups", admin, "{\"groupname\":\"lab\"}", 201);
    expect(world, HTTP_PUT, USERS "/alice/group", admin, "{\"groupname\":\"lab\",\"admin\":true}",
           201);
    expect(world, HTTP_PUT, USERS "/bob/group", alice, "{\"groupname\":\"lab\"}", 201);
    expect(world, HTTP_PUT, USERS "/bob/group", alice, "{\"groupname\":\"default\"}", 403);
    expect(world, HTTP_PUT, USERS "/bob/group", alice, "{\"groupname\":\"lab\",\"admin\":true}",
           403); /* she cannot make others what she is */
    expect(world, HTTP_GET, USERS "/alice", alice, "", 200);
    has(world, "\"adminOfGroups\":[\"lab\"]");
    expect(world, HTTP_GET, USERS "/alice", admin, "", 200);
    lacks(world, "adminOfGroups"); /* it is told to herself */
    expect(world, HTTP_GET, "/api/v2/groups/lab/userlist", alice, "", 200);
    has(world, "{\"username\":\"bob\",\"clusterAdmin\":false,\"groupAdmin\":false}");
    expect(world, HTTP_DELETE, USERS "/bob/group", alice, "{\"groupname\":\"lab\"}", 201);
    expect(world, HTTP_GET, "/api/v2/groups/lab/userlist", alice, "", 200);
    lacks(world, "bob");
}

static void the_older_names_are_the_same_paths(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin");
    expect(world, HTTP_GET, "/api/v2/user/alice", admin, "", 200);
    expect(world, HTTP_GET, "/rest-server/api/v2/user", admin, "", 200);
    expect(world, HTTP_POST, "/api/v2/group", admin, "{\"groupname\":\"lab\"}", 201);
    expect(world, HTTP_GET, "/api/v2/group/lab", admin, "", 200);
    expect(world, HTTP_PUT, "/api/v2/user/alice/group", admin, "{\"groupname\":\"lab\"}", 201);
    expect(world, HTTP_PUT, "/api/v2/group/lab/extension/a/b", admin, "{\"data\":1}", 201);
    expect(world, HTTP_GET, "/api/v1/user/alice", admin, "", 200);
    expect(world, HTTP_GET, "/api/v2/users/alice/nothing", admin, "", 404);
}

static void application_tokens_have_a_scope_and_an_end(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    const char *reads = application(world, alice, "{\"scope\":\"read\",\"expiration\":3600}");
    expect(world, HTTP_GET, "/api/v1/token/check", reads, "", 200);
    has(world, "\"scope\":\"read\",\"exp\":");
    expect(world, HTTP_POST, "/api/v2/jobs", reads, "", 403);
    has(world, "the scope of this token, read, does not allow this");
    has(world, "\"right\":\"auth.submit\"");
    char basic[4096] = "Basic ", pair[2048];
    snprintf(pair, sizeof pair, "alice:%s", reads);
    sodium_bin2base64(basic + 6, sizeof basic - 6, (const unsigned char *)pair, strlen(pair),
                      sodium_base64_VARIANT_ORIGINAL);
    expect(world, HTTP_GET, "/api/v2/tokens/check", basic, "", 200);
    expect(world, HTTP_GET, "/api/v2/tokens", alice, "", 200);
    has(world, "\"application\":true,\"scope\":\"read\",\"createdTime\":");
    expect(world, HTTP_POST, "/api/v1/token/application", alice, "{\"scope\":\"all\"}", 400);
    expect(world, HTTP_POST, "/api/v1/token/application", alice, "{\"expiration\":5}", 400);
    expect(world, HTTP_POST, "/api/v1/token/application", alice, "", 200);
    has(world, "\"application\":true,\"scope\":\"usual\"");
}

#define OPENPAI_HASH                                                                               \
    "84470075e7f713d4362abae58924c0b2fb306be701dcbf8211492792741f4685"                             \
    "903259f53b9615c19b372a4208bcc662339baff9a6e2e4da9863e58c416a3041"
/* PBKDF2-SHA512 of "test_password" with 10,000 rounds and the salt md5("eve") in hexadecimal, made
 * with Python's hashlib. */
static void hashes_of_openpai_are_taken_over(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin");
    char body[300];
    snprintf(body, sizeof body, "{\"username\":\"eve\",\"passwordHash\":\"%s\"}", OPENPAI_HASH);
    expect(world, HTTP_POST, USERS, admin, body, 201);
    assert_null(login(world, "eve", "test_passwore"));
    assert_non_null(login(world, "eve", "test_password"));
    snprintf(body, sizeof body, "{\"username\":\"eva\",\"passwordHash\":\"%s\"}", OPENPAI_HASH);
    expect(world, HTTP_POST, USERS, admin, body, 201);
    assert_null(login(world, "eva", "test_password")); /* the salt is another one */
}

/* Every writer of a user names the word that it does not know, and changes nothing. */
static void unknown_words_are_refused(void **state)
{
    struct world *world = *state;
    const char *admin = world_login(world, "admin"), *alice = world_login(world, "alice");
    const struct {
        enum http_method method;
        const char *target, *token, *body;
    } BAD[] = {
        {HTTP_POST, USERS, admin,
         "{\"username\":\"eve\",\"password\":\"test_password\",\"wrong\":1}"},
        {HTTP_PUT, USERS, admin,
         "{\"patch\":true,\"wrong\":1,\"data\":{\"username\":\"alice\",\"email\":\"n@x.org\"}}"},
        {HTTP_PUT, USERS, admin,
         "{\"patch\":true,\"data\":{\"username\":\"alice\",\"email\":\"n@x.org\",\"wrong\":1}}"},
        {HTTP_PUT, USERS "/me", alice,
         "{\"patch\":true,\"data\":{\"username\":\"alice\",\"email\":\"n@x.org\",\"wrong\":1}}"},
        {HTTP_PUT, USERS "/me", alice,
         "{\"patch\":true,\"wrong\":{},\"data\":{\"username\":\"alice\",\"email\":\"n@x.org\"}}"},
        {HTTP_PUT, USERS "/alice/extension", alice, "{\"extension\":{},\"wrong\":1}"},
        {HTTP_PUT, USERS "/alice/email", alice, "{\"email\":\"n@x.org\",\"wrong\":1}"},
        {HTTP_PUT, USERS "/alice/password", alice,
         "{\"oldPassword\":\"alice-password\",\"newPassword\":\"other-password\",\"wrong\":1}"},
        {HTTP_PUT, USERS "/alice/virtualcluster", admin, "{\"virtualCluster\":[],\"wrong\":1}"},
        {HTTP_PUT, USERS "/alice/admin", admin, "{\"admin\":true,\"wrong\":1}"},
        {HTTP_PUT, USERS "/alice/grouplist", admin, "{\"grouplist\":[],\"wrong\":1}"},
        {HTTP_PUT, USERS "/alice/group", admin, "{\"groupname\":\"default\",\"wrong\":1}"},
        {HTTP_DELETE, USERS "/alice/group", admin, "{\"groupname\":\"default\",\"wrong\":1}"},
        {HTTP_POST, "/api/v2/groups", admin, "{\"groupname\":\"lab\",\"wrong\":1}"},
        {HTTP_POST, "/api/v2/group", admin, "{\"groupname\":\"lab\",\"wrong\":1}"},
        {HTTP_PUT, "/api/v2/groups", admin,
         "{\"patch\":true,\"wrong\":1,\"data\":{\"groupname\":\"default\",\"description\":\"d\"}}"},
        {HTTP_PUT, "/api/v2/groups", admin,
         "{\"patch\":true,\"data\":{\"groupname\":\"default\",\"description\":\"d\",\"wrong\":1}}"},
        {HTTP_PUT, "/api/v2/groups/default/description", admin,
         "{\"description\":\"d\",\"wrong\":1}"},
        {HTTP_PUT, "/api/v2/groups/default/externalname", admin,
         "{\"externalName\":\"d\",\"wrong\":1}"},
        {HTTP_PUT, "/api/v2/groups/default/extension", admin, "{\"extension\":{},\"wrong\":1}"},
        {HTTP_PUT, "/api/v2/groups/default/extension/a", admin, "{\"data\":{},\"wrong\":1}"},
        {HTTP_POST, "/api/v2/tokens/application", alice, "{\"scope\":\"read\",\"wrong\":1}"},
    };
    expect(world, HTTP_GET, "/api/v2/groups", admin, "", 200);
    cleanup_buf struct buf groups = BUF_INIT;
    buf_string(&groups, buf_cstr(&world->body));
    expect(world, HTTP_GET, USERS "/alice", admin, "", 200);
    cleanup_buf struct buf before = BUF_INIT;
    buf_string(&before, buf_cstr(&world->body));
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        expect(world, BAD[i].method, BAD[i].target, BAD[i].token, BAD[i].body, 400);
        has(world, "there is no 'wrong' here: the body has ");
    }
    expect(world, HTTP_GET, "/api/v2/groups", admin, "", 200);
    assert_string_equal(buf_cstr(&world->body), buf_cstr(&groups));
    /* what an extension has is the client's own */
    expect(world, HTTP_PUT, "/api/v2/groups/default/extension", admin,
           "{\"extension\":{\"wrong\":1}}", 201);
    /* clients of the older API say what they like */
    expect(world, HTTP_POST, "/api/v1/token/application", alice, "{\"scope\":\"read\",\"wrong\":1}",
           200);
    /* a word of another route is unknown as well */
    expect(world, HTTP_PUT, USERS "/me", alice,
           "{\"patch\":true,\"data\":{\"username\":\"alice\",\"password\":\"other-password\"}}",
           400);
    has(world, "'password'");
    expect(world, HTTP_PUT, USERS "/alice/email", alice,
           "{\"email\":\"n@x.org\",\"oldPassword\":\"alice-password\"}", 400);
    has(world, "the body has email alone");
    expect(world, HTTP_GET, USERS "/alice", admin, "", 200);
    assert_string_equal(buf_cstr(&world->body), buf_cstr(&before));
    assert_non_null(login(world, "alice", "alice-password"));
    expect(world, HTTP_GET, USERS "/eve", admin, "", 404);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
static const struct CMUnitTest tests[] = {
    TEST(users_are_made_and_removed),
    TEST(bad_users_are_refused),
    TEST(an_address_that_is_there_stays),
    TEST(an_admin_changes_a_user),
    TEST(users_change_themselves),
    TEST(old_passwords_cannot_be_guessed_with_a_token),
    TEST(admins_are_made_and_unmade),
    TEST(deactivated_users_are_out),
    TEST(groups_are_made_changed_and_removed),
    TEST(admins_of_a_group_say_who_is_in_it),
    TEST(the_older_names_are_the_same_paths),
    TEST(application_tokens_have_a_scope_and_an_end),
    TEST(hashes_of_openpai_are_taken_over),
    TEST(unknown_words_are_refused),
};
UNIT_FILE(tests, NULL, NULL);
