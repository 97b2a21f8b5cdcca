/* Groups, who is in them, and what users and groups were granted. */
#include "unit.h"
#include "world.h"

#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "store/migrations.h"
#include "store/read.h"
#include "store/store.h"

static const char *const some[] = {"vc2", "vc1", "vc2"};
static const char *const other[] = {"vc1", "vc3"};

static struct store_user user_of(const char *name)
{
    return (struct store_user){
        .name = name, .password_hash = "", .email = "", .extension_json = "{}"};
}

static void user_put(struct world *world, enum store_change_kind kind, struct store_user user,
                     int expected)
{
    change(world, (struct store_change){.kind = kind, .user = user, .reuses_name = true}, expected);
}

static void group_put(struct world *world, enum store_change_kind kind, struct store_group group,
                      int expected)
{
    change(world, (struct store_change){.kind = kind, .group = group}, expected);
}

/* The names, with a blank between them. */
static const char *joined(struct world *world, const struct store_names *names)
{
    const char *all = "";

    for (size_t i = 0; i < names->count; i++)
        all = arena_format(&world->arena, "%s%s%s", all, i ? " " : "", names->items[i]);
    return all;
}

static const char *given(struct world *world, const char *user)
{
    struct store_names clusters;

    assert_int_equal(
        store_user_clusters(world->reader, user, &world->arena, &clusters, &world->err), 0);
    return joined(world, &clusters);
}

static void groups_are_read_back(void **state)
{
    struct world *world = *state;
    struct store_group group = {.name = "team",
                                .description = "who trains",
                                .virtual_clusters = {some, 3},
                                .created_ms = 7},
                       read;
    struct store_groups groups;
    struct store_members members;

    group_put(world, CHANGE_GROUP_ADD, group, 0);
    group_put(world, CHANGE_GROUP_ADD, group, ERR_CONFLICT);
    group_put(world, CHANGE_GROUP_ADD, (struct store_group){.name = "", .description = ""},
              ERR_INVALID);
    group_put(world, CHANGE_GROUP_SET, (struct store_group){.name = "none", .description = ""},
              ERR_NOT_FOUND);
    group_put(world, CHANGE_GROUP_REMOVE, (struct store_group){.name = "none"}, ERR_NOT_FOUND);
    group_put(world, CHANGE_GROUP_ADD, (struct store_group){.name = "a", .description = ""}, 0);
    group.description = "who trains today";
    group.virtual_clusters = (struct store_names){other, 2};
    group_put(world, CHANGE_GROUP_SET, group, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            store_group(world->reader, TEXT("team"), &world->arena, &read, &members, &world->err),
            0);
        assert_string_equal(read.description, "who trains today");
        assert_string_equal(joined(world, &read.virtual_clusters), "vc1 vc3");
        assert_int_equal(read.created_ms, 7);
        assert_int_equal(members.count, 0);
        assert_int_equal(store_groups(world->reader, &world->arena, &groups, &world->err), 0);
        assert_int_equal(groups.count, 2);
        assert_string_equal(groups.items[0].name, "a");
        assert_string_equal(joined(world, &groups.items[1].virtual_clusters), "vc1 vc3");
        world_close(world);
        world_open(world);
    }
    assert_int_equal(
        store_group(world->reader, TEXT("none"), &world->arena, &read, &members, &world->err),
        ERR_NOT_FOUND);
}

static void users_have_their_own_grants_and_those_of_their_groups(void **state)
{
    struct world *world = *state;
    struct store_member in[] = {{.name = "team", .is_admin = true}, {.name = "all"}};
    struct store_user alice = user_of("alice"), read;
    struct store_users users;
    struct store_group group;
    struct store_members members;

    alice.groups = (struct store_members){in, 2};
    user_put(world, CHANGE_USER_ADD, alice, ERR_NOT_FOUND); /* and nothing of her is stored */
    group_put(
        world, CHANGE_GROUP_ADD,
        (struct store_group){
            .name = "team", .description = "", .virtual_clusters = {other, 2}, .created_ms = 1},
        0);
    group_put(world, CHANGE_GROUP_ADD,
              (struct store_group){
                  .name = "all", .description = "", .virtual_clusters = {NULL, 0}, .created_ms = 1},
              0);
    alice.virtual_clusters = (struct store_names){some, 3};
    user_put(world, CHANGE_USER_ADD, alice, 0);
    user_put(world, CHANGE_USER_ADD, user_of("al"), 0);
    user_put(world, CHANGE_USER_ADD, user_of("bob"), 0);
    assert_string_equal(given(world, "alice"), "vc1 vc2 vc3");
    assert_string_equal(given(world, "al"), "");
    assert_int_equal(store_users(world->reader, &world->arena, &users, &world->err), 0);
    assert_int_equal(users.count, 3);
    assert_int_equal(users.items[0].groups.count, 0);
    assert_int_equal(users.items[2].virtual_clusters.count, 0);
    read = users.items[1];
    for (int i = 0; i < 2; i++) {
        assert_string_equal(read.name, "alice");
        assert_string_equal(joined(world, &read.virtual_clusters), "vc1 vc2");
        assert_int_equal(read.groups.count, 2);
        assert_string_equal(read.groups.items[0].name, "all");
        assert_false(read.groups.items[0].is_admin);
        assert_true(read.groups.items[1].is_admin);
        assert_int_equal(
            store_user(world->reader, TEXT("alice"), &world->arena, &read, &world->err), 0);
    }
    assert_int_equal(
        store_group(world->reader, TEXT("team"), &world->arena, &group, &members, &world->err), 0);
    assert_int_equal(members.count, 1);
    assert_string_equal(members.items[0].name, "alice");
    assert_true(members.items[0].is_admin);

    alice.groups.count = 1;
    alice.virtual_clusters.count = 0;
    user_put(world, CHANGE_USER_SET, alice, 0);
    assert_string_equal(given(world, "alice"), "vc1 vc3");
    group_put(world, CHANGE_GROUP_REMOVE, (struct store_group){.name = "team"}, 0);
    assert_string_equal(given(world, "alice"), "");
    /* whoever gets the name of somebody who is gone gets no right with it */
    alice.groups.count = 0;
    alice.virtual_clusters.count = 1;
    user_put(world, CHANGE_USER_SET, alice, 0);
    user_put(world, CHANGE_USER_REMOVE, alice, 0);
    user_put(world, CHANGE_USER_ADD, user_of("alice"), 0);
    assert_string_equal(given(world, "alice"), "");
    group_put(
        world, CHANGE_GROUP_ADD,
        (struct store_group){
            .name = "team", .description = "", .virtual_clusters = {NULL, 0}, .created_ms = 1},
        0);
    assert_int_equal(
        store_group(world->reader, TEXT("team"), &world->arena, &group, &members, &world->err), 0);
    assert_int_equal(members.count, 0);
    assert_int_equal(group.virtual_clusters.count, 0);
}

static void limits_hinder_no_other(void **state)
{
    struct world *world = *state;
    const char *names[STORE_GRANTS_MAX + 1];
    char longer[STORE_CLUSTER_NAME_MAX + 2];
    struct store_user alice = user_of("alice");
    struct store_member in[STORE_USER_GROUPS_MAX + 1];
    const char *cluster = longer;

    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    for (size_t i = 0; i <= STORE_GRANTS_MAX; i++)
        names[i] = "vc";
    for (size_t i = 0; i <= STORE_USER_GROUPS_MAX; i++)
        in[i] = (struct store_member){.name = "team"};
    group_put(world, CHANGE_GROUP_ADD,
              (struct store_group){.name = "team",
                                   .description = "",
                                   .virtual_clusters = {names, STORE_GRANTS_MAX + 1},
                                   .created_ms = 1},
              ERR_TOO_BIG);
    group_put(
        world, CHANGE_GROUP_ADD,
        (struct store_group){
            .name = "team", .description = "", .virtual_clusters = {&cluster, 1}, .created_ms = 1},
        ERR_INVALID);
    group_put(
        world, CHANGE_GROUP_ADD,
        (struct store_group){
            .name = longer, .description = "", .virtual_clusters = {NULL, 0}, .created_ms = 1},
        ERR_INVALID);
    group_put(
        world, CHANGE_GROUP_ADD,
        (struct store_group){
            .name = "team", .description = "", .virtual_clusters = {NULL, 0}, .created_ms = 1},
        0);
    group_put(world, CHANGE_GROUP_SET,
              (struct store_group){.name = "team",
                                   .description = "",
                                   .virtual_clusters = {names, STORE_GRANTS_MAX + 1},
                                   .created_ms = 1},
              ERR_TOO_BIG);
    alice.virtual_clusters = (struct store_names){names, STORE_GRANTS_MAX + 1};
    user_put(world, CHANGE_USER_ADD, alice, ERR_TOO_BIG);
    alice.virtual_clusters = (struct store_names){&cluster, 1};
    user_put(world, CHANGE_USER_ADD, alice, ERR_INVALID);
    alice.virtual_clusters = (struct store_names){names, STORE_GRANTS_MAX};
    alice.groups = (struct store_members){in, STORE_USER_GROUPS_MAX + 1};
    user_put(world, CHANGE_USER_ADD, alice, ERR_TOO_BIG);
    alice.groups.count = STORE_USER_GROUPS_MAX;
    user_put(world, CHANGE_USER_ADD, alice, 0);
    alice.groups.count++;
    user_put(world, CHANGE_USER_SET, alice, ERR_TOO_BIG);
    assert_string_equal(given(world, "alice"), "vc");
}

/* Texts as version 9 held them: lists, and what was never one. */
static const char old_rows[] =
    "INSERT INTO users (name, password_hash, email, is_admin, groups_json, virtual_clusters_json, "
    "extension_json, created_ms) VALUES "
    "('alice', 'h', 'a@b', 1, '[\"team\",\"all\",\"team\"]', '[\"vc2\", \"vc1\", 5, \"\"]', "
    "'{\"a\":1}', 3), "
    "('bob', '', '', 0, '[\"all\"]', '[', '{}', 4), "
    "('carol', '', '', 0, '{\"a\":\"b\"}', '\"vc1\"', '{}', 5);";

static void a_database_of_version_9_is_taken_over(void **state)
{
    struct world *world = *state;
    struct store_users users;
    struct store_groups groups;

    SQLITE_ONLY(world);
    world_close(world);
    unlink(arena_format(&world->arena, "%s/skep.db", world->directory));
    unlink(arena_format(&world->arena, "%s/mark", world->directory));
    for (int i = 0; i < 9; i++)
        assert_int_equal(world_sql(world, sqlite_migrations[i].sql), 0);
    assert_int_equal(world_sql(world, old_rows), 0);
    assert_int_equal(
        world_sql(world, "PRAGMA user_version = 9; PRAGMA application_id = 1399547248"), 0);
    world_open(world);
    assert_int_equal(store_users(world->reader, &world->arena, &users, &world->err), 0);
    assert_int_equal(users.count, 3);
    assert_string_equal(users.items[0].email, "a@b");
    assert_string_equal(users.items[0].extension_json, "{\"a\":1}");
    assert_true(users.items[0].is_admin);
    assert_int_equal(users.items[0].groups.count, 2);
    assert_string_equal(users.items[0].groups.items[1].name, "team");
    assert_string_equal(joined(world, &users.items[0].virtual_clusters), "vc1 vc2");
    assert_int_equal(users.items[1].groups.count, 1);
    assert_int_equal(users.items[1].virtual_clusters.count, 0);
    assert_int_equal(users.items[2].groups.count, 0);
    assert_int_equal(users.items[2].virtual_clusters.count, 0);
    assert_int_equal(store_groups(world->reader, &world->arena, &groups, &world->err), 0);
    assert_int_equal(groups.count, 2);
    assert_string_equal(groups.items[0].name, "all");
}

static void page_is(struct world *world, struct text after, uint64_t most, const char *expected)
{
    struct store_users users;
    struct store_groups groups;
    const char *all = "";
    assert_int_equal(
        store_users_page(world->reader, after, most, &world->arena, &users, &world->err), 0);
    for (size_t i = 0; i < users.count; i++) {
        const struct store_user *user = &users.items[i];
        all = arena_format(&world->arena, "%s%s:%s%s ", all, user->name,
                           joined(world, &user->virtual_clusters),
                           user->is_admin_by_group ? "!" : "");
        for (size_t j = 0; j < user->groups.count; j++)
            all = arena_format(&world->arena, "%s+%s ", all, user->groups.items[j].name);
    }
    assert_int_equal(store_groups_of(world->reader, &users, &world->arena, &groups, &world->err),
                     0);
    for (size_t i = 0; i < groups.count; i++)
        all = arena_format(&world->arena, "%s%s=%s ", all, groups.items[i].name,
                           joined(world, &groups.items[i].virtual_clusters));
    assert_string_equal(all, expected);
}

static void pages_of_users_bring_the_rights_of_these_alone(void **state)
{
    struct world *world = *state;
    struct store_member ops = {.name = "ops"}, team = {.name = "team", .is_admin = true};
    struct store_user alice = user_of("alice"), bob = user_of("bob"), eve = user_of("eve");
    struct store_members members;

    group_put(world, CHANGE_GROUP_ADD,
              (struct store_group){.name = "ops", .description = "", .is_admin = true}, 0);
    group_put(
        world, CHANGE_GROUP_ADD,
        (struct store_group){.name = "team", .description = "", .virtual_clusters = {other, 2}}, 0);
    group_put(world, CHANGE_GROUP_ADD, (struct store_group){.name = "x", .description = ""}, 0);
    alice.groups = (struct store_members){&team, 1};
    bob.groups = (struct store_members){&ops, 1};
    eve.groups = (struct store_members){(struct store_member[]){ops, team}, 2};
    eve.virtual_clusters = (struct store_names){some, 3};
    user_put(world, CHANGE_USER_ADD, eve, 0);
    user_put(world, CHANGE_USER_ADD, bob, 0);
    user_put(world, CHANGE_USER_ADD, alice, 0);
    page_is(world, (struct text){0}, 1, "alice: +team team=vc1 vc3 ");
    page_is(world, TEXT("alice"), 1, "bob:! +ops ops= ");
    page_is(world, TEXT("alicf"), 9, "bob:! +ops eve:vc1 vc2! +ops +team ops= team=vc1 vc3 ");
    page_is(world, TEXT("eve"), UINT64_MAX, "");
    assert_int_equal(store_members_page(world->reader, "team", (struct text){0}, 1, &world->arena,
                                        &members, &world->err),
                     0);
    assert_int_equal(members.count, 1);
    assert_string_equal(members.items[0].name, "alice");
    assert_true(members.items[0].is_admin && !members.items[0].is_cluster_admin);
    assert_int_equal(store_members_page(world->reader, "team", TEXT("alice"), UINT64_MAX,
                                        &world->arena, &members, &world->err),
                     0);
    assert_int_equal(members.count, 1);
    assert_string_equal(members.items[0].name, "eve");
    assert_true(members.items[0].is_cluster_admin);
    assert_int_equal(store_members_page(world->reader, "none", (struct text){0}, 1, &world->arena,
                                        &members, &world->err),
                     0);
    assert_int_equal(members.count, 0);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(groups_are_read_back),
    WORLD(users_have_their_own_grants_and_those_of_their_groups),
    WORLD(pages_of_users_bring_the_rights_of_these_alone),
    WORLD(limits_hinder_no_other),
    WORLD(a_database_of_version_9_is_taken_over),
};
UNIT_FILE(tests, NULL, NULL);
