/* The storages that a user's groups name. */
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include "store/read.h"
#include "store/store.h"

static void group_add(struct world *world, const char *name, const char *extension)
{
    change(world,
           (struct store_change){
               .kind = CHANGE_GROUP_ADD,
               .group = {.name = name, .description = "", .extension_json = extension}},
           0);
}

static void names_are(const struct store_names *names, const char *a, const char *b)
{
    assert_int_equal(names->count, (a != NULL) + (b != NULL));
    if (a)
        assert_string_equal(names->items[0], a);
    if (b)
        assert_string_equal(names->items[1], b);
}

static void groups_name_storages(void **state)
{
    struct world *world = *state;
    struct store_storages storages;
    struct store_member both[] = {{.name = "audio"}, {.name = "vision"}};
    group_add(world, "audio", "{\"acls\":{\"storageConfigs\":[7,\"speech\",\"corpus\"]}}");
    group_add(world, "vision", "{\"acls\":{\"storageConfigs\":[\"corpus\"]}}");
    group_add(world, "plain", "{}");
    change(world,
           (struct store_change){.kind = CHANGE_USER_ADD,
                                 .user = {.name = "ann",
                                          .password_hash = "",
                                          .email = "",
                                          .extension_json = "{}",
                                          .groups = {both, 2}}},
           0);
    change(world,
           (struct store_change){.kind = CHANGE_USER_ADD,
                                 .user = {.name = "root",
                                          .password_hash = "",
                                          .email = "",
                                          .extension_json = "{}",
                                          .is_admin = true}},
           0);
    assert_int_equal(
        store_user_storages(world->reader, "ann", &world->arena, &storages, &world->err), 0);
    assert_false(storages.is_admin);
    names_are(&storages.names, "corpus", "speech");    /* in order */
    names_are(&storages.defaults, "speech", "corpus"); /* the first of each group */
    assert_int_equal(
        store_user_storages(world->reader, "root", &world->arena, &storages, &world->err), 0);
    assert_true(storages.is_admin);
    names_are(&storages.names, NULL, NULL);
    assert_int_equal(
        store_user_storages(world->reader, "nobody", &world->arena, &storages, &world->err),
        ERR_NOT_FOUND);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(groups_name_storages, setup, teardown),
};
UNIT_FILE(tests, NULL, NULL);
