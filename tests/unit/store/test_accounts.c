/* Changes of some fields of users and groups, members, and the last admin.
 *
 * Covers: src/store/users.c, src/store/groups.c */
#include "unit.h"

#include "auth/auth.h"
#include "base/err.h"
#include "base/memory.h"
#include "store/read.h"
#include "store/store.h"
#include <stdio.h>
#include <string.h>

#include "world.h"

static void user_add(struct world *world, const char *name, bool is_admin)
{
    change(world,
           (struct store_change){.kind = CHANGE_USER_ADD,
                                 .user = {.name = name,
                                          .password_hash = "hash",
                                          .email = "a@b",
                                          .is_admin = is_admin,
                                          .extension_json = "{}"}},
           0);
}

static void group_add(struct world *world, const char *name, bool is_admin)
{
    change(world,
           (struct store_change){.kind = CHANGE_GROUP_ADD,
                                 .group = {.name = name, .description = "", .is_admin = is_admin}},
           0);
}

static void user_set(struct world *world, struct store_user user, unsigned fields, int expected)
{
    change(world, (struct store_change){.kind = CHANGE_USER_SET, .user = user, .fields = fields},
           expected);
}

static struct store_user user_of(struct world *world, const char *name)
{
    struct store_user user;
    assert_int_equal(store_user(world->reader, text_of(name), &world->arena, &user, &world->err),
                     0);
    return user;
}

static void member(struct world *world, enum store_change_kind kind, const char *user,
                   const char *group, int is_admin, int expected)
{
    change(world, (struct store_change){.kind = kind, .member = {user, group, is_admin}}, expected);
}

static void one_field_leaves_the_others(void **state)
{
    struct world *world = *state;
    static const char *const cluster = "vc1";
    struct store_member team = {.name = "team"};
    struct store_user read;

    user_add(world, "root", true);
    user_add(world, "alice", false);
    group_add(world, "team", false);
    user_set(world, (struct store_user){.name = "alice", .email = "new@b"}, USER_EMAIL, 0);
    user_set(world, (struct store_user){.name = "alice", .groups = {&team, 1}}, USER_GROUPS, 0);
    user_set(world, (struct store_user){.name = "alice", .virtual_clusters = {&cluster, 1}},
             USER_CLUSTERS, 0);
    user_set(world, (struct store_user){.name = "alice", .is_admin = true}, USER_ADMIN, 0);
    user_set(world, (struct store_user){.name = "alice", .extension_json = "{\"a\":1}"},
             USER_EXTENSION, 0);
    user_set(world, (struct store_user){.name = "alice", .password_hash = "other"}, USER_PASSWORD,
             0);
    user_set(world, (struct store_user){.name = "nobody", .email = ""}, USER_EMAIL, ERR_NOT_FOUND);
    read = user_of(world, "alice");
    assert_string_equal(read.email, "new@b");
    assert_string_equal(read.groups.items[0].name, "team");
    assert_int_equal(read.virtual_clusters.count, 1);
    assert_true(read.is_admin && !read.is_inactive && !read.is_admin_by_group);
    assert_string_equal(read.extension_json, "{\"a\":1}");
    assert_string_equal(read.password_hash, "other");
}

static void an_extension_is_replaced_only_as_it_was_read(void **state)
{
    struct world *world = *state;
    struct store_change set = {.kind = CHANGE_USER_SET,
                               .user = {.name = "alice", .extension_json = "{\"a\":1}"},
                               .fields = USER_EXTENSION,
                               .extension_was = "{}"};
    struct store_change of_group = {.kind = CHANGE_GROUP_SET,
                                    .group = {.name = "team", .extension_json = "{\"b\":1}"},
                                    .fields = GROUP_EXTENSION,
                                    .extension_was = "{}"};

    user_add(world, "alice", false);
    group_add(world, "team", false);
    change(world, set, 0);
    change(world, set, ERR_CONFLICT);
    change(world, of_group, 0);
    change(world, of_group, ERR_CONFLICT);
    assert_string_equal(user_of(world, "alice").extension_json, "{\"a\":1}");
}

static void a_group_keeps_what_is_not_replaced(void **state)
{
    struct world *world = *state;
    static const char *const cluster = "vc1";
    struct store_group group = {.name = "team",
                                .description = "d",
                                .external_name = "x",
                                .extension_json = "{\"k\":2}",
                                .virtual_clusters = {&cluster, 1}};
    struct store_group read;
    struct store_members members;
    char longer[STORE_DESCRIPTION_MAX + 2];

    change(world, (struct store_change){.kind = CHANGE_GROUP_ADD, .group = group}, 0);
    change(world,
           (struct store_change){.kind = CHANGE_GROUP_SET,
                                 .group = {.name = "team", .description = "new"},
                                 .fields = GROUP_DESCRIPTION},
           0);
    assert_int_equal(
        store_group(world->reader, TEXT("team"), &world->arena, &read, &members, &world->err), 0);
    assert_string_equal(read.description, "new");
    assert_string_equal(read.external_name, "x");
    assert_string_equal(read.extension_json, "{\"k\":2}");
    assert_int_equal(read.virtual_clusters.count, 1);
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    change(world,
           (struct store_change){.kind = CHANGE_GROUP_SET,
                                 .group = {.name = "team", .external_name = longer},
                                 .fields = GROUP_EXTERNAL_NAME},
           ERR_TOO_BIG);
}

static void members_come_and_go(void **state)
{
    struct world *world = *state;
    struct store_user read;

    user_add(world, "alice", false);
    group_add(world, "team", false);
    member(world, CHANGE_MEMBER_ADD, "alice", "none", -1, ERR_NOT_FOUND);
    member(world, CHANGE_MEMBER_ADD, "nobody", "team", -1, ERR_NOT_FOUND);
    member(world, CHANGE_MEMBER_ADD, "alice", "team", -1, 0);
    assert_false(user_of(world, "alice").groups.items[0].is_admin);
    member(world, CHANGE_MEMBER_ADD, "alice", "team", 1, 0);
    member(world, CHANGE_MEMBER_ADD, "alice", "team", -1, 0); /* stays what she is */
    read = user_of(world, "alice");
    assert_int_equal(read.groups.count, 1);
    assert_true(read.groups.items[0].is_admin && !read.groups.items[0].makes_admins);
    member(world, CHANGE_MEMBER_REMOVE, "alice", "none", -1, ERR_NOT_FOUND);
    member(world, CHANGE_MEMBER_REMOVE, "alice", "team", -1, 0);
    member(world, CHANGE_MEMBER_REMOVE, "alice", "team", -1, 0);
    assert_int_equal(user_of(world, "alice").groups.count, 0);
}

static void the_last_admin_stays(void **state)
{
    struct world *world = *state;
    static const struct store_member by_group = {.name = "admins"};

    user_add(world, "root", true);
    user_add(world, "alice", false);
    group_add(world, "admins", true);
    user_set(world, (struct store_user){.name = "root"}, USER_ADMIN, ERR_FORBIDDEN);
    user_set(world, (struct store_user){.name = "root", .is_inactive = true}, USER_INACTIVE,
             ERR_FORBIDDEN);
    assert_true(user_of(world, "root").is_admin && !user_of(world, "root").is_inactive);
    member(world, CHANGE_MEMBER_ADD, "alice", by_group.name, -1, 0);
    assert_true(user_of(world, "alice").is_admin_by_group);
    user_set(world, (struct store_user){.name = "root"}, USER_ADMIN, 0);
    member(world, CHANGE_MEMBER_REMOVE, "alice", "admins", -1, ERR_FORBIDDEN);
    change(world, (struct store_change){.kind = CHANGE_GROUP_REMOVE, .group = {.name = "admins"}},
           ERR_FORBIDDEN);
    change(world,
           (struct store_change){
               .kind = CHANGE_GROUP_SET, .group = {.name = "admins"}, .fields = GROUP_ADMIN},
           ERR_FORBIDDEN);
    user_set(world, (struct store_user){.name = "alice"}, USER_GROUPS, ERR_FORBIDDEN);
    assert_true(user_of(world, "alice").is_admin_by_group);
    user_set(world, (struct store_user){.name = "root", .is_admin = true}, USER_ADMIN, 0);
    change(world, (struct store_change){.kind = CHANGE_GROUP_REMOVE, .group = {.name = "admins"}},
           0);
    assert_false(user_of(world, "alice").is_admin_by_group);
}

/* A refused change must not take what stands beside it in the same batch along. */
static void a_refusal_undoes_nothing_else(void **state)
{
    struct world *world = *state;
    struct store_change both[] = {
        {.kind = CHANGE_USER_SET, .user = {.name = "alice", .email = "c@d"}, .fields = USER_EMAIL},
        {.kind = CHANGE_USER_REMOVE, .user = {.name = "root"}},
        {.kind = CHANGE_USER_SET, .user = {.name = "root", .email = "e@f"}, .fields = USER_EMAIL},
    };

    user_add(world, "root", true);
    user_add(world, "alice", false);
    assert_int_equal(commit(world, both, COUNT_OF(both)), 0);
    assert_int_equal(both[1].code, ERR_FORBIDDEN);
    assert_string_equal(user_of(world, "alice").email, "c@d");
    assert_string_equal(user_of(world, "root").email, "e@f");
}

static size_t tokens_of(struct world *world, const char *user)
{
    struct store_tokens tokens;
    assert_int_equal(
        store_tokens(world->reader, text_of(user), &world->arena, &tokens, &world->err), 0);
    return tokens.count;
}

static void tokens_go_with_the_password_and_with_the_user(void **state)
{
    struct world *world = *state;
    struct store_token browser = {.id = "t1", .user = "alice", .created_ms = 1};
    struct store_token application = {.id = "t2",
                                      .user = "alice",
                                      .is_application = true,
                                      .created_ms = 1,
                                      .scope = AUTH_SCOPE_READ};
    struct store_token read;

    user_add(world, "alice", false);
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = browser}, 0);
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = application}, 0);
    assert_int_equal(store_token(world->reader, TEXT("t2"), &world->arena, &read, &world->err), 0);
    assert_int_equal(read.scope, AUTH_SCOPE_READ);
    user_set(world, (struct store_user){.name = "alice", .email = ""}, USER_EMAIL, 0);
    assert_int_equal(tokens_of(world, "alice"), 2);
    user_set(world, (struct store_user){.name = "alice", .password_hash = "h"}, USER_PASSWORD, 0);
    assert_int_equal(tokens_of(world, "alice"), 1);
    user_set(world, (struct store_user){.name = "alice"}, USER_INACTIVE, 0);
    assert_int_equal(tokens_of(world, "alice"), 1);
    user_set(world, (struct store_user){.name = "alice", .is_inactive = true}, USER_INACTIVE, 0);
    assert_int_equal(tokens_of(world, "alice"), 0);
    assert_true(user_of(world, "alice").is_inactive);
}

static void identity_find(struct world *world, const char *identity, const char *expected)
{
    struct store_user user = {.name = NULL};
    int code =
        store_user_identified(world->reader, text_of(identity), &world->arena, &user, &world->err);
    assert_int_equal(code, expected ? 0 : ERR_NOT_FOUND);
    if (expected)
        assert_string_equal(user.name, expected);
}

static void an_identity_is_of_one_user(void **state)
{
    struct world *world = *state;
    struct store_user carol = {
        .name = "carol", .password_hash = "", .extension_json = "{}", .identity = "idp 1"};
    char long_one[STORE_IDENTITY_MAX + 2] = "";

    user_add(world, "alice", true);
    user_add(world, "bob", false);
    identity_find(world, "", NULL);
    identity_find(world, "idp 1", NULL);
    user_set(world, (struct store_user){.name = "alice", .identity = "idp 1"}, USER_IDENTITY, 0);
    user_set(world, (struct store_user){.name = "alice", .identity = "idp 1"}, USER_IDENTITY, 0);
    identity_find(world, "idp 1", "alice");
    assert_string_equal(user_of(world, "alice").password_hash, "hash");
    user_set(world, (struct store_user){.name = "bob", .identity = "idp 1"}, USER_IDENTITY,
             ERR_CONFLICT);
    change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = carol}, ERR_CONFLICT);
    carol.identity = "idp 2";
    change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = carol}, 0);
    identity_find(world, "idp 2", "carol");
    memset(long_one, 'a', STORE_IDENTITY_MAX + 1);
    user_set(world, (struct store_user){.name = "bob", .identity = long_one}, USER_IDENTITY,
             ERR_TOO_BIG);
    user_set(world, (struct store_user){.name = "alice", .identity = ""}, USER_IDENTITY, 0);
    identity_find(world, "idp 1", NULL);
    user_set(world, (struct store_user){.name = "bob", .identity = "idp 1"}, USER_IDENTITY, 0);
}

/* What a removed user has left behind must not become somebody else's. */
static void a_name_is_free_when_no_jobs_are_left(void **state)
{
    struct world *world = *state;
    const struct store_user alice = {
        .name = "alice", .password_hash = "", .extension_json = "{}", .identity = ""};
    struct job_record final = job_of(1, "alice", "train");

    user_add(world, "root", true);
    user_add(world, "alice", false);
    submit(world, 1, "alice", "train");
    change(world, (struct store_change){.kind = CHANGE_USER_REMOVE, .user = alice}, 0);
    change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = alice}, ERR_CONFLICT);
    user_add(world, "alic", false);
    user_add(world, "alice2", false);
    world_close(world); /* nor after a restart */
    world_open(world);
    change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = alice}, ERR_CONFLICT);
    final.state = LIFE_COMPLETED;
    add_job(world, final);
    assert_int_equal(commit(world, NULL, 0), 0);
    change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = alice}, ERR_CONFLICT);
    add_deleted(world, 1);
    assert_int_equal(commit(world, NULL, 0), 0);
    change(world,
           (struct store_change){.kind = CHANGE_USER_ADD, .user = alice, .reuses_name = true}, 0);
}

/* Nor the folders of storages, of which the store knows nothing: somebody has to say so. */
static void a_used_name_is_taken_only_on_purpose(void **state)
{
    struct world *world = *state;
    struct store_user alice = {
        .name = "alice", .password_hash = "", .email = "", .extension_json = "{}", .identity = ""};
    struct store_change add = {.kind = CHANGE_USER_ADD, .user = alice, .err = &world->err};

    user_add(world, "root", true);
    user_add(world, "alice", false);
    user_add(world, "bob", false);
    user_set(world, (struct store_user){.name = "bob", .identity = "idp 2"}, USER_IDENTITY, 0);
    change(world, (struct store_change){.kind = CHANGE_USER_REMOVE, .user = alice}, 0);
    change(world, (struct store_change){.kind = CHANGE_USER_REMOVE, .user.name = "bob"}, 0);
    world_close(world); /* nor after a restart */
    world_open(world);
    change(world, add, ERR_CONFLICT);
    assert_string_equal(world->err.path, STORE_REUSES_NAME);
    add.user.identity = "idp 1";
    change(world, add, ERR_CONFLICT);
    add.user.name = "Alice"; /* another name */
    change(world, add, 0);
    add.user = alice;
    add.reuses_name = true;
    change(world, add, 0);
    assert_int_equal(user_of(world, "alice").groups.count, 0);
    /* whom the provider calls the same is the same */
    add = (struct store_change){.kind = CHANGE_USER_ADD, .user = alice, .err = &world->err};
    add.user.name = "bob";
    change(world, add, ERR_CONFLICT);
    add.user.identity = "idp 3";
    change(world, add, ERR_CONFLICT);
    add.user.identity = "idp 2";
    change(world, add, 0);
    /* removed once more */
    change(world, (struct store_change){.kind = CHANGE_USER_REMOVE, .user = alice}, 0);
    add.user = alice;
    change(world, add, ERR_CONFLICT);
    change(world, (struct store_change){.kind = CHANGE_USER_REMOVE, .user = alice}, ERR_NOT_FOUND);
}

/* Whether the names of removed users are at most so many rows. */
static bool removed_are_at_most(const struct world *world, unsigned count)
{
    char text[160]; /* a row that is there already is refused */
    snprintf(text, sizeof text,
             "INSERT INTO removed_users (name, identity) SELECT 'old1', '' WHERE "
             "(SELECT count(*) FROM removed_users) > %u",
             count);
    return world_sql(world, text) == 0;
}

/* Their number has a bound: beyond it every name counts as used, so that no folder changes hands
 * unseen. */
static void names_beyond_the_bound_count_as_used(void **state)
{
    struct world *world = *state;
    struct store_user bob = {
        .name = "bob", .password_hash = "", .email = "", .extension_json = "{}", .identity = ""};
    struct store_change add = {.kind = CHANGE_USER_ADD, .user = bob, .err = &world->err};
    struct store_change gone = {.kind = CHANGE_USER_REMOVE};
    static const char *const names[] = {"root", "alice", "bob", "carol"};

    for (size_t i = 0; i < COUNT_OF(names); i++)
        user_add(world, names[i], i == 0);
    user_set(world, (struct store_user){.name = "bob", .identity = "idp 2"}, USER_IDENTITY, 0);
    char fill[240];
    snprintf(fill, sizeof fill,
             "WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers "
             "WHERE i < %d) INSERT INTO removed_users (name, identity) "
             "SELECT 'old' || i, '' FROM numbers",
             STORE_REMOVED_MAX - 1);
    assert_int_equal(world_sql(world, fill), 0);
    gone.user.name = "alice"; /* the last one that is kept */
    change(world, gone, 0);
    user_add(world, "new", false);
    for (size_t i = 2; i < COUNT_OF(names); i++) {
        gone.user.name = names[i];
        change(world, gone, 0);
    }
    assert_true(removed_are_at_most(world, STORE_REMOVED_MAX + 1));
    assert_false(removed_are_at_most(world, STORE_REMOVED_MAX)); /* the question is a good one */
    world_close(world);
    world_open(world);
    change(world, add, ERR_CONFLICT);
    assert_string_equal(world->err.path, STORE_REUSES_NAME);
    assert_non_null(strstr(world->err.text, "there may have been a user bob"));
    add.user.identity = "idp 2"; /* nobody knows any more whether it is the same */
    change(world, add, ERR_CONFLICT);
    add.user.name = "alice";
    change(world, add, ERR_CONFLICT);
    assert_non_null(strstr(world->err.text, "there was a user alice"));
    add.user = (struct store_user){
        .name = "never", .password_hash = "", .email = "", .extension_json = "{}", .identity = ""};
    change(world, add, ERR_CONFLICT);
    add.reuses_name = true;
    change(world, add, 0);
    add.user.name = "bob";
    change(world, add, 0);
    /* where names are used again there is room, which takes no doubt away */
    add.user.name = "alice";
    change(world, add, 0);
    add.user.name = "old1";
    change(world, add, 0);
    gone.user.name = "never";
    change(world, gone, 0);
    add.user.name = "never";
    add.reuses_name = false;
    change(world, add, ERR_CONFLICT);
    assert_non_null(strstr(world->err.text, "there was a user never"));
    add.user.name = "carol";
    change(world, add, ERR_CONFLICT);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(one_field_leaves_the_others),
    WORLD(an_extension_is_replaced_only_as_it_was_read),
    WORLD(a_group_keeps_what_is_not_replaced),
    WORLD(members_come_and_go),
    WORLD(the_last_admin_stays),
    WORLD(a_name_is_free_when_no_jobs_are_left),
    WORLD(a_used_name_is_taken_only_on_purpose),
    WORLD(names_beyond_the_bound_count_as_used),
    WORLD(a_refusal_undoes_nothing_else),
    WORLD(an_identity_is_of_one_user),
    WORLD(tokens_go_with_the_password_and_with_the_user),
};
UNIT_FILE(tests, NULL, NULL);
