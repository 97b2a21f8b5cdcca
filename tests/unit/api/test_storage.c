/* Storages: whose they are, in the shapes of OpenPAI 1.x and before; and how they are.
 *
 * Covers: src/api/storage_admin.c
 */
#include "unit.h"
#include "world.h"

#include "base/memory.h"

static void change(struct world *world, struct store_change change)
{
    struct store_batch batch = {.changes = &change, .change_count = 1};
    struct err err;
    assert_int_equal(store_commit(world->store, &batch, &err), 0);
    assert_int_equal(change.code, 0);
}

/* Alice is in `lab`, which has two storages and names one that there is not. */
static int setup(void **state)
{
    static const char LAB[] = "{\"acls\":{\"storageConfigs\":[\"home\",\"corpus\",\"gone\"]}}";
    int failed = world_setup(state);
    if (failed)
        return failed;
    change(*state, (struct store_change){
                       .kind = CHANGE_GROUP_ADD,
                       .group = {.name = "lab", .description = "", .extension_json = LAB}});
    change(*state, (struct store_change){.kind = CHANGE_MEMBER_ADD,
                                         .member = {.user = "alice", .group = "lab"}});
    return 0;
}

static void test_list(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    const char *admin = world_login(world, "admin");
    assert_int_equal(world_get(world, "/api/v2/storages", alice), 200);
    assert_string_equal(
        buf_cstr(&world->body),
        "{\"storages\":["
        "{\"name\":\"corpus\",\"share\":true,\"volumeName\":\"corpus\",\"default\":false},"
        "{\"name\":\"home\",\"share\":false,\"volumeName\":\"home\",\"default\":true}]}");
    assert_int_equal(world_get(world, "/api/v2/storages?default=true", alice), 200);
    assert_no_body(world, "corpus");
    assert_body(world, "home");
    assert_int_equal(world_get(world, "/api/v2/storages", bob), 200);
    assert_string_equal(buf_cstr(&world->body), "{\"storages\":[]}");
    assert_int_equal(world_get(world, "/api/v2/storages", admin), 200);
    assert_body(world, "\"name\":\"share\"");
}

static void test_one(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    const char *admin = world_login(world, "admin");
    assert_int_equal(world_get(world, "/api/v2/storages/corpus", alice), 200);
    assert_body(world, "\"type\":\"nfs\",\"data\":{\"server\":\"nfs.lab\",\"path\":"
                       "\"/export/corpus\"},\"readOnly\":true");
    assert_int_equal(world_get(world, "/api/v2/storages/home", alice), 200);
    assert_body(world, "\"type\":\"other\",\"data\":{},\"readOnly\":false");
    assert_no_body(world, "/srv"); /* where it is on the machines is nobody's business */
    assert_int_equal(world_get(world, "/api/v2/storages/share", admin), 200);
    assert_body(world, "\"address\":\"//files.lab/share\"");
    assert_int_equal(world_get(world, "/api/v2/storages/none", alice), 404);
    assert_body(world, "\"code\":\"NoStorageError\"");
    assert_body(world, "Storage none is not found.");
    assert_int_equal(world_get(world, "/api/v2/storages/corpus", bob), 403);
    assert_body(world, "\"right\":\"auth.use-storage\"");
}

static void test_older_shapes(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    assert_int_equal(world_get(world, "/api/v2/storage/config", alice), 200);
    assert_body(world, "{\"name\":\"home\",\"default\":true,\"servers\":[\"home\"],\"mountInfos\":["
                       "{\"mountPoint\":\"/mnt/home\",\"server\":\"home\","
                       "\"path\":\"${PAI_USER_NAME}\",\"permission\":\"rw\"}]}");
    assert_no_body(world, "share\"");
    assert_int_equal(world_get(world, "/api/v2/storage/config?names=corpus&names=share", alice),
                     200);
    assert_no_body(world, "home");
    assert_body(world, "\"permission\":\"ro\"");
    assert_int_equal(world_get(world, "/api/v2/storage/config/home", alice), 200);
    assert_body(world, "{\"name\":\"home\"");
    assert_int_equal(world_get(world, "/api/v2/storage/server?names=corpus,home", alice), 200);
    assert_body(world, "[{\"spn\":\"corpus\",\"type\":\"nfs\",\"data\":{\"server\":\"nfs.lab\"");
    assert_body(world, "{\"spn\":\"home\"");
    assert_int_equal(world_get(world, "/api/v2/storage/server/corpus", alice), 200);
    assert_int_equal(world_get(world, "/api/v2/storage/server/share", alice), 403);
    assert_int_equal(world_get(world, "/api/v2/storage/server/none", alice), 404);
}

static void test_health(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *admin = world_login(world, "admin");
    assert_int_equal(world_get(world, "/api/v2/storage/health", alice), 403);
    assert_int_equal(world_get(world, "/api/v2/storage/health", admin), 200);
    assert_body(world, "{\"name\":\"home\",\"type\":\"directory\",\"directory\":\"/srv/home\","
                       "\"claim\":\"\",\"server\":\"\",\"path\":\"\",\"share\":false,"
                       "\"readOnly\":false,\"rootSquash\":false,\"jobs\":");
    assert_body(world, "\"jobsNotRead\":0");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_health, setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_list, setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_one, setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_older_shapes, setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
