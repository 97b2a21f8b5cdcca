/* Quotas of users and groups: which counts, and with what they go. */
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include "store/read.h"
#include "store/store.h"

static void quota_set(struct world *world, const char *holder, bool is_group, enum quota_kind kind,
                      int64_t value, int expected)
{
    struct store_change set = {
        .kind = CHANGE_QUOTAS,
        .quotas = {.holder = holder, .is_group = is_group, .kinds = 1u << kind}};
    set.quotas.values.values[kind] = value;
    change(world, set, expected);
}

static int64_t counts(struct world *world, enum quota_kind kind, const char *group)
{
    struct store_user_quotas quotas;
    assert_int_equal(
        store_user_quotas(world->reader, TEXT("alice"), &world->arena, &quotas, &world->err), 0);
    if (group)
        assert_string_equal(quotas.groups[kind], group);
    else
        assert_null(quotas.groups[kind]);
    return quotas.values.values[kind];
}

static void accounts(struct world *world)
{
    struct store_member groups[] = {{.name = "g1"}, {.name = "g2"}};
    for (int i = 0; i < 2; i++)
        change(world,
               (struct store_change){.kind = CHANGE_GROUP_ADD,
                                     .group = {.name = groups[i].name, .description = ""}},
               0);
    change(world,
           (struct store_change){.kind = CHANGE_USER_ADD,
                                 .user = {.name = "alice",
                                          .password_hash = "",
                                          .email = "",
                                          .extension_json = "{}",
                                          .groups = {groups, 2}}},
           0);
}

static void the_own_one_counts_else_the_largest(void **state)
{
    struct world *world = *state;
    accounts(world);
    assert_int_equal(counts(world, QUOTA_GPUS, NULL), QUOTA_NONE);
    quota_set(world, "g1", true, QUOTA_GPUS, 8, 0);
    assert_int_equal(counts(world, QUOTA_GPUS, "g1"), 8);
    quota_set(world, "g2", true, QUOTA_GPUS, 16, 0);
    assert_int_equal(counts(world, QUOTA_GPUS, "g2"), 16);
    assert_int_equal(counts(world, QUOTA_LIVE_JOBS, NULL), QUOTA_NONE);
    quota_set(world, "alice", false, QUOTA_GPUS, 0, 0); /* none at all is a quota, too */
    assert_int_equal(counts(world, QUOTA_GPUS, NULL), 0);
    quota_set(world, "alice", false, QUOTA_GPUS, 2, 0);
    quota_set(world, "alice", false, QUOTA_STREAMS, 3, 0);
    assert_int_equal(counts(world, QUOTA_GPUS, NULL), 2);
    quota_set(world, "alice", false, QUOTA_GPUS, QUOTA_NONE, 0);
    assert_int_equal(counts(world, QUOTA_GPUS, "g2"), 16);
    assert_int_equal(counts(world, QUOTA_STREAMS, NULL), 3);
    world_close(world);
    world_open(world);
    assert_int_equal(counts(world, QUOTA_GPUS, "g2"), 16);
}

static void refused(void **state)
{
    struct world *world = *state;
    accounts(world);
    quota_set(world, "nobody", false, QUOTA_GPUS, 1, ERR_NOT_FOUND);
    quota_set(world, "alice", true, QUOTA_GPUS, 1, ERR_NOT_FOUND);
    quota_set(world, "alice", false, QUOTA_GPUS, -2, ERR_INVALID);
    quota_set(world, "alice", false, QUOTA_GPUS, QUOTA_MAX + 1LL, ERR_INVALID);
    assert_int_equal(counts(world, QUOTA_GPUS, NULL), QUOTA_NONE);
}

static void they_go_with_their_holder(void **state)
{
    struct world *world = *state;
    struct quotas quotas;
    const uint64_t version = store_account_version(world->store);
    accounts(world);
    quota_set(world, "g1", true, QUOTA_GPUS, 8, 0);
    quota_set(world, "alice", false, QUOTA_LIVE_JOBS, 8, 0);
    assert_true(store_account_version(world->store) > version);
    change(world, (struct store_change){.kind = CHANGE_GROUP_REMOVE, .group = {.name = "g1"}}, 0);
    assert_int_equal(counts(world, QUOTA_GPUS, NULL), QUOTA_NONE);
    change(world,
           (struct store_change){.kind = CHANGE_USER_ADD,
                                 .user = {.name = "root",
                                          .password_hash = "",
                                          .email = "",
                                          .extension_json = "{}",
                                          .is_admin = true}},
           0);
    change(world, (struct store_change){.kind = CHANGE_USER_REMOVE, .user = {.name = "alice"}}, 0);
    assert_int_equal(store_quotas(world->reader, false, TEXT("alice"), &quotas, &world->err), 0);
    assert_int_equal(quotas.values[QUOTA_LIVE_JOBS], QUOTA_NONE);
    assert_int_equal(store_quotas(world->reader, true, TEXT("g1"), &quotas, &world->err), 0);
    assert_int_equal(quotas.values[QUOTA_GPUS], QUOTA_NONE);
}

static void expect_use(struct world *world, uint64_t live, uint64_t gpus, uint64_t stored)
{
    struct store_use use;
    store_use_of(world->store, TEXT("alice"), &use);
    assert_int_equal(use.live_jobs, live);
    assert_int_equal(use.gpus, gpus);
    assert_int_equal(use.stored_jobs, stored);
}

/* Counted with each record, and the same when the index is made anew. */
static void what_is_used(void **state)
{
    struct world *world = *state;
    struct job_record job;
    expect_use(world, 0, 0, 0);
    submit(world, 1, "alice", "a");
    submit(world, 2, "alice", "b");
    submit(world, 3, "bob", "c");
    for (uint32_t i = 1; i <= 3; i++) {
        job = job_of(i, i == 3 ? "bob" : "alice", i == 1 ? "a" : i == 2 ? "b" : "c");
        job.gpu_count = 4 * i;
        add_job(world, job);
        assert_int_equal(commit(world, NULL, 0), 0);
    }
    expect_use(world, 2, 12, 2);
    job = job_of(1, "alice", "a");
    job.gpu_count = 4;
    job.state = LIFE_COMPLETED;
    add_job(world, job);
    assert_int_equal(commit(world, NULL, 0), 0);
    expect_use(world, 1, 8, 2);
    world_close(world);
    world_open(world);
    expect_use(world, 1, 8, 2);
    add_deleted(world, 1);
    assert_int_equal(commit(world, NULL, 0), 0);
    expect_use(world, 1, 8, 1);
}

static void expect_share(struct world *world, int64_t value)
{
    struct store_shares shares;
    assert_int_equal(
        store_quota_shares(world->reader, QUOTA_KEPT_JOBS, &world->arena, &shares, &world->err), 0);
    assert_int_equal(shares.count, value == QUOTA_NONE ? 0 : 1);
    if (shares.count == 0)
        return;
    assert_string_equal(shares.items[0].user, "alice");
    assert_int_equal(shares.items[0].value, value);
}

/* As for one user: the own one, else the largest. */
static void shares_of_all(void **state)
{
    struct world *world = *state;
    accounts(world);
    quota_set(world, "alice", false, QUOTA_GPUS, 3, 0);
    expect_share(world, QUOTA_NONE);
    quota_set(world, "g1", true, QUOTA_KEPT_JOBS, 8, 0);
    quota_set(world, "g2", true, QUOTA_KEPT_JOBS, 5, 0);
    expect_share(world, 8);
    quota_set(world, "alice", false, QUOTA_KEPT_JOBS, 0, 0);
    expect_share(world, 0);
}

static void ended(struct world *world, uint32_t id, const char *user, enum life_state state)
{
    const char *name = arena_format(&world->arena, "j%u", id);
    submit(world, id, user, name);
    struct job_record job = job_of(id, user, name);
    job.state = state;
    add_job(world, job);
    assert_int_equal(commit(world, NULL, 0), 0);
}

/* Jobs that live are no history; of the others the oldest of whoever has too much go. */
static void the_oldest_of_who_has_too_much(void **state)
{
    struct world *world = *state;
    struct store_shares shares = {0};
    struct job_id jobs[10];
    for (uint32_t id = 1; id <= 6; id++)
        ended(world, id, id == 1 ? "bob" : "alice", id == 2 ? LIFE_RUNNING : LIFE_COMPLETED);
    assert_int_equal(store_jobs_surplus(world->store, &shares, jobs, 2), 2);
    assert_int_equal(jobs[0].v, 3);
    assert_int_equal(jobs[1].v, 4);
    struct store_share items[] = {{"bob", 0}, {"nobody", 0}, {"alice", 9}};
    shares = (struct store_shares){items, 3};
    assert_int_equal(store_jobs_surplus(world->store, &shares, jobs, 2), 2);
    assert_int_equal(jobs[0].v, 1);
    assert_int_equal(jobs[1].v, 3);
    assert_int_equal(store_jobs_surplus(world->store, &shares, jobs, 10), 5);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(the_own_one_counts_else_the_largest),
    WORLD(refused),
    WORLD(they_go_with_their_holder),
    WORLD(what_is_used),
    WORLD(shares_of_all),
    WORLD(the_oldest_of_who_has_too_much),
};
UNIT_FILE(tests, NULL, NULL);
