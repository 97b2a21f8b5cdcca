/* Since which job there are several accounts. */
#include "unit.h"

#include "base/err.h"
#include "store/read.h"
#include "store/store.h"

#include "world.h"

static struct store_change added(const char *name)
{
    return (struct store_change){.kind = CHANGE_USER_ADD,
                                 .user = {.name = name,
                                          .password_hash = "",
                                          .email = "",
                                          .is_admin = true,
                                          .extension_json = "{}"}};
}

static struct store_accounts accounts_of(struct world *world)
{
    struct store_accounts accounts = {0};
    assert_int_equal(store_accounts(world->reader, &world->arena, &accounts, &world->err), 0);
    return accounts;
}

static bool is_sole(struct world *world, uint32_t job)
{
    const struct store_accounts accounts = accounts_of(world);
    return store_account_is_sole(&accounts, (struct job_id){job});
}

static void the_second_account_parts_the_jobs(void **state)
{
    struct world *world = *state;
    assert_false(accounts_of(world).are_several);
    change(world, added("ann"), 0);
    submit(world, 7, "ann", "before");
    assert_false(accounts_of(world).are_several);
    assert_true(is_sole(world, 7) && is_sole(world, 8));
    change(world, added("ann"), ERR_CONFLICT); /* makes none */
    assert_false(accounts_of(world).are_several);
    change(world, added("bob"), 0);
    assert_true(accounts_of(world).are_several);
    assert_true(is_sole(world, 7));
    assert_false(is_sole(world, 8));
    submit(world, 8, "ann", "behind");
    change(world, added("cem"), 0); /* the mark stays */
    assert_false(is_sole(world, 8));
}

/* An account that is removed and made again must not move jobs between networks. */
static void they_stay_several(void **state)
{
    struct world *world = *state;
    change(world, added("ann"), 0);
    change(world, added("bob"), 0);
    submit(world, 1, "bob", "a");
    change(world, (struct store_change){.kind = CHANGE_USER_REMOVE, .user = {.name = "ann"}}, 0);
    assert_true(accounts_of(world).are_several);
    assert_false(is_sole(world, 1));
    world_close(world);
    world_open(world);
    assert_true(accounts_of(world).are_several);
}

/* A store of before the mark: of which account its jobs are is not known. */
static void a_store_of_before_counts_its_accounts(void **state)
{
    static const char key[] = "accounts.several";
    struct world *world = *state;
    change(world, added("ann"), 0);
    change(world, added("bob"), 0);
    submit(world, 1, "ann", "a");
    change(world, (struct store_change){.kind = CHANGE_SETTING, .setting = {key, TEXT("")}}, 0);
    assert_true(accounts_of(world).are_several);
    assert_false(is_sole(world, 1));
    change(world, (struct store_change){.kind = CHANGE_USER_REMOVE, .user = {.name = "bob"}}, 0);
    assert_true(accounts_of(world).are_several);
    assert_false(is_sole(world, 1));
}

/* The mark that such a store gets later gives nobody's job to the first account. */
static void a_late_mark_gives_no_job_away(void **state)
{
    static const char key[] = "accounts.several";
    struct world *world = *state;
    change(world, added("ann"), 0);
    change(world, added("bob"), 0);
    submit(world, 1, "bob", "a");
    change(world, (struct store_change){.kind = CHANGE_SETTING, .setting = {key, TEXT("")}}, 0);
    change(world, added("cem"), 0);
    assert_false(is_sole(world, 1));
    change(world, (struct store_change){.kind = CHANGE_SETTING, .setting = {key, TEXT("")}}, 0);
    change(world, (struct store_change){.kind = CHANGE_ACCOUNTS}, 0);
    assert_false(is_sole(world, 1));
}

static void a_mark_that_is_no_number_is_told(void **state)
{
    static const char *const wrong[] = {"x", "-1", "4294967296"};
    struct world *world = *state;
    struct store_accounts accounts;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        change(world,
               (struct store_change){.kind = CHANGE_SETTING,
                                     .setting = {"accounts.several", text_of(wrong[i])}},
               0);
        assert_int_equal(store_accounts(world->reader, &world->arena, &accounts, &world->err),
                         ERR_CORRUPT);
    }
}

/* Where people have accounts elsewhere. */
static void several_can_be_said(void **state)
{
    struct world *world = *state;
    change(world, added("ann"), 0);
    submit(world, 3, "ann", "a");
    change(world, (struct store_change){.kind = CHANGE_ACCOUNTS}, 0);
    submit(world, 4, "ann", "b");
    change(world, (struct store_change){.kind = CHANGE_ACCOUNTS}, 0);
    assert_true(is_sole(world, 3));
    assert_false(is_sole(world, 4));
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(the_second_account_parts_the_jobs),     WORLD(they_stay_several),
    WORLD(a_store_of_before_counts_its_accounts), WORLD(a_late_mark_gives_no_job_away),
    WORLD(a_mark_that_is_no_number_is_told),      WORLD(several_can_be_said),
};
UNIT_FILE(tests, NULL, NULL);
