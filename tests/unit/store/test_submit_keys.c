/* Submissions that were taken with an idempotency key. */
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include "base/memory.h"
#include "store/read.h"
#include "store/store.h"

static struct store_change key_of(const char *user, const char *key, uint32_t job, int64_t at_ms)
{
    return (struct store_change){.kind = CHANGE_SUBMIT_KEY,
                                 .submit_key = {.user = user,
                                                .key = key,
                                                .digest = {1, 2, 255},
                                                .job = {job},
                                                .job_name = "train",
                                                .at_ms = at_ms}};
}

static int look_up(struct world *world, const char *user, const char *key,
                   struct store_submit_key *row)
{
    return store_submit_key(world->reader, user, key, &world->arena, row, &world->err);
}

static void a_key_is_the_user_s_own_and_outlives_the_job(void **state)
{
    struct world *world = *state;
    struct store_submit_key row;
    submit(world, 1, "alice", "train");
    change(world, key_of("alice", "k1", 1, 1000), 0);
    change(world, key_of("bob", "k1", 7, 1000), 0);
    add_deleted(world, 1);
    assert_int_equal(commit(world, NULL, 0), 0);
    world_close(world);
    world_open(world);
    assert_int_equal(look_up(world, "alice", "k1", &row), 0);
    assert_int_equal(row.job.v, 1);
    assert_string_equal(row.job_name, "train");
    assert_int_equal(row.digest[2], 255);
    assert_int_equal(row.digest[31], 0);
    assert_int_equal(look_up(world, "bob", "k1", &row), 0);
    assert_int_equal(row.job.v, 7);
    assert_int_equal(look_up(world, "alice", "k2", &row), ERR_NOT_FOUND);
    assert_int_equal(look_up(world, "carol", "k1", &row), ERR_NOT_FOUND);
    /* the same once more is a defect of the caller's: nothing of the transaction is stored */
    struct store_change again = key_of("alice", "k1", 2, 2000);
    assert_int_equal(commit(world, &again, 1), ERR_INTERNAL);
    assert_int_equal(look_up(world, "alice", "k1", &row), 0);
    assert_int_equal(row.job.v, 1);
}

static void keys_go_by_age_and_with_their_user(void **state)
{
    struct world *world = *state;
    struct store_submit_key row;
    change(world, key_of("alice", "old", 1, 1000), 0);
    change(world, key_of("alice", "new", 2, 2000), 0);
    change(world, (struct store_change){.kind = CHANGE_SUBMIT_KEYS_TRIM, .before_ms = 2000}, 0);
    assert_int_equal(look_up(world, "alice", "old", &row), ERR_NOT_FOUND);
    assert_int_equal(look_up(world, "alice", "new", &row), 0);
    change(world,
           (struct store_change){
               .kind = CHANGE_USER_ADD,
               .user = {.name = "alice", .password_hash = "", .email = "", .extension_json = "{}"}},
           0);
    change(world, (struct store_change){.kind = CHANGE_USER_REMOVE, .user = {.name = "alice"}}, 0);
    assert_int_equal(look_up(world, "alice", "new", &row), ERR_NOT_FOUND);
}

/* Beyond the limit the oldest go, those of one time together. */
static void there_are_not_more_than_so_many(void **state)
{
    struct world *world = *state;
    const struct store_change trim = {.kind = CHANGE_SUBMIT_KEYS_TRIM, .most = 3};
    struct store_submit_key row;
    static const char *const keys[] = {"a", "b", "c", "d", "e"};
    static const int64_t times[] = {1000, 1000, 1002, 1003, 1004};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        change(world, key_of("alice", keys[i], 1, times[i]), 0);
    change(world, trim, 0);
    assert_int_equal(look_up(world, "alice", "a", &row), ERR_NOT_FOUND);
    assert_int_equal(look_up(world, "alice", "b", &row), ERR_NOT_FOUND);
    assert_int_equal(look_up(world, "alice", "c", &row), 0);
    change(world, trim, 0);
    assert_int_equal(look_up(world, "alice", "c", &row), 0);
    assert_int_equal(look_up(world, "alice", "e", &row), 0);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(a_key_is_the_user_s_own_and_outlives_the_job),
    WORLD(keys_go_by_age_and_with_their_user),
    WORLD(there_are_not_more_than_so_many),
};
UNIT_FILE(tests, NULL, NULL);
