/* What templates said before they were changed. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "store/read.h"

static struct store_template row_of(const char *summary, int64_t at_ms)
{
    return (struct store_template){.id = "1",
                                   .author = "alice",
                                   .name = "x",
                                   .summary = summary,
                                   .description = "",
                                   .protocol = "name: x\n",
                                   .created_ms = 10,
                                   .updated_ms = at_ms};
}

static void add(struct world *world)
{
    change(
        world,
        (struct store_change){
            .kind = CHANGE_USER_ADD,
            .user = {.name = "alice", .password_hash = "x", .email = "", .extension_json = "{}"}},
        0);
    change(world,
           (struct store_change){.kind = CHANGE_TEMPLATE_ADD, .template.row = row_of("one", 10)},
           0);
}

static void set(struct world *world, struct store_template row, const char *user)
{
    change(world,
           (struct store_change){.kind = CHANGE_TEMPLATE_SET,
                                 .template = {.row = row, .user = user, .by_admin = true}},
           0);
}

static struct store_template_versions all(struct world *world)
{
    struct store_template_versions versions;
    assert_int_equal(
        store_template_versions(world->reader, "1", &world->arena, &versions, &world->err), 0);
    return versions;
}

static void each_change_keeps_the_one_before(void **state)
{
    struct world *world = *state;
    static const char *const words[] = {"a", "b"}, *const others[] = {"a", "c"};
    struct store_template_version version;
    add(world);
    struct store_template row = row_of("two", 20);
    row.protocol = "name: y\n";
    row.tags = (struct store_names){words, 2};
    set(world, row, "root");
    row.name = "renamed"; /* neither a name nor whom it is shared with is part of a version */
    row.is_public = true;
    row.updated_ms = 30;
    set(world, row, "root");
    world_close(world);
    world_open(world);
    struct store_template_versions versions = all(world);
    assert_int_equal(versions.count, 2);
    assert_int_equal(versions.items[0].number, 2);
    assert_int_equal(versions.items[0].saved_ms, 20);
    assert_string_equal(versions.items[0].editor, "root");
    assert_int_equal(versions.items[0].tags.count, 2);
    assert_string_equal(versions.items[0].protocol, ""); /* of a list */
    assert_string_equal(versions.items[1].summary, "one");
    assert_string_equal(versions.items[1].editor, "alice");
    assert_int_equal(
        store_template_version(world->reader, "1", 1, &world->arena, &version, &world->err), 0);
    assert_string_equal(version.protocol, "name: x\n");
    assert_int_equal(
        store_template_version(world->reader, "1", 3, &world->arena, &version, &world->err),
        ERR_NOT_FOUND);
    assert_int_equal(
        store_template_version(world->reader, "2", 1, &world->arena, &version, &world->err),
        ERR_NOT_FOUND);
    row.tags.items = others; /* each of the parts makes one */
    set(world, row, NULL);
    row.categories = (struct store_names){words, 1};
    set(world, row, NULL);
    row.description = "how";
    set(world, row, NULL);
    row.protocol = "name: z\n";
    set(world, row, NULL);
    row.summary = "three";
    set(world, row, NULL);
    assert_int_equal(all(world).count, 7);
}

static void the_newest_ones_are_kept(void **state)
{
    struct world *world = *state;
    char summary[16];
    add(world);
    for (int i = 2; i <= STORE_TEMPLATE_VERSIONS_MAX + 5; i++) {
        snprintf(summary, sizeof summary, "%d", i);
        set(world, row_of(summary, i), NULL);
    }
    struct store_template_versions versions = all(world);
    assert_int_equal(versions.count, STORE_TEMPLATE_VERSIONS_MAX);
    assert_int_equal(versions.items[0].number, STORE_TEMPLATE_VERSIONS_MAX + 5);
    assert_int_equal(versions.items[STORE_TEMPLATE_VERSIONS_MAX - 1].number, 6);
}

static void they_go_with_the_template(void **state)
{
    struct world *world = *state;
    add(world);
    set(world, row_of("two", 20), NULL);
    change(world, (struct store_change){.kind = CHANGE_TEMPLATE_REMOVE, .template.row.id = "1"}, 0);
    assert_int_equal(all(world).count, 0);
    change(world,
           (struct store_change){.kind = CHANGE_TEMPLATE_ADD, .template.row = row_of("one", 30)},
           0);
    assert_int_equal(all(world).count, 1);
    assert_int_equal(all(world).items[0].number, 1);
    change(world,
           (struct store_change){.kind = CHANGE_USER_ADD,
                                 .user = {.name = "root",
                                          .password_hash = "x",
                                          .email = "",
                                          .extension_json = "{}",
                                          .is_admin = true}},
           0);
    change(world, (struct store_change){.kind = CHANGE_USER_REMOVE, .user.name = "alice"}, 0);
    assert_int_equal(all(world).count, 0);
}

static void official(struct world *world, const char *id, bool is_official, int64_t seen_ms,
                     int expected)
{
    change(world,
           (struct store_change){
               .kind = CHANGE_TEMPLATE_OFFICIAL,
               .template.row = {.id = id, .is_official = is_official, .updated_ms = seen_ms}},
           expected);
}

static bool is_official(struct world *world)
{
    struct store_template row;
    assert_int_equal(store_template(world->reader, TEXT("1"), "", &world->arena, &row, &world->err),
                     0);
    return row.is_official;
}

static void official_while_it_is_approved(void **state)
{
    struct world *world = *state;
    add(world);
    official(world, "2", true, 0, ERR_NOT_FOUND);
    official(world, "1", true, 0, ERR_CONFLICT);
    official(world, "1", false, 0, 0);
    struct store_template row = row_of("one", 20);
    row.is_public = true;
    set(world, row, "root"); /* by an administrator */
    official(world, "1", true, 10, ERR_CONFLICT);
    official(world, "1", true, 20, 0);
    assert_true(is_official(world));
    set(world, row, "root");
    assert_true(is_official(world));
    change(world,
           (struct store_change){.kind = CHANGE_TEMPLATE_REVIEW,
                                 .template.row = {.id = "1",
                                                  .status = TEMPLATE_REJECTED,
                                                  .reason = "why",
                                                  .reviewer = "root"}},
           0);
    assert_false(is_official(world));
    set(world, row, "root");
    official(world, "1", true, 0, 0);
    change(world, (struct store_change){.kind = CHANGE_TEMPLATE_SET, .template.row = row}, 0);
    assert_false(is_official(world));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
static const struct CMUnitTest tests[] = {
    TEST(each_change_keeps_the_one_before),
    TEST(the_newest_ones_are_kept),
    TEST(they_go_with_the_template),
    TEST(official_while_it_is_approved),
};
UNIT_FILE(tests, NULL, NULL);
