/* Lists of jobs: filters, orders, and pages; every way to find a page gives the same as sorting
 * all. */
#include "lists.h"
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/random.h"
#include "core/event.h"
#include "core/output.h"
#include "store/job_index.h"
#include "store/read.h"
#include "store/store.h"

enum { JOBS = 9000 }; /* more than two chunks of rows, more than what one walk picks out */

static struct job_index *index_of(uint64_t seed, bool is_shuffled)
{
    struct job_index *jobs = job_index_new(seed);
    struct random random = {seed};

    job_index_write_begin(jobs);
    for (uint32_t i = 1; i <= JOBS; i++) {
        char name[40], user[16], cluster[16];
        snprintf(name, sizeof name, "a-longer-name-%u", (unsigned)random_below(&random, 4000));
        snprintf(user, sizeof user, "user%u", (unsigned)random_below(&random, 7));
        snprintf(cluster, sizeof cluster, "vc%u", (unsigned)random_below(&random, 3));
        job_index_put(
            jobs,
            &(struct job_record){
                .id = {i},
                .name = name,
                .user = user,
                .virtual_cluster = cluster,
                .priority = (int32_t)random_below(&random, 3),
                .state = (enum life_state)random_below(&random, 9),
                .submitted_ms = 1000 + (is_shuffled ? (int64_t)random_below(&random, 500) : i / 3),
                .completed_ms = (int64_t)random_below(&random, 50),
                .task_count = (uint32_t)random_below(&random, 100),
                .gpu_count = random_below(&random, 9),
                .retries_user = (uint32_t)random_below(&random, 4),
            },
            random_below(&random, 2));
    }
    job_index_write_end(jobs);
    return jobs;
}

static void page_is_part(struct job_index *jobs, struct job_filter filter,
                         const struct job_page *all, struct arena *arena)
{
    struct job_page page;
    size_t left = filter.offset < all->count ? all->count - (size_t)filter.offset : 0;

    job_index_list(jobs, &filter, arena, &page);
    assert_int_equal(page.count, left < filter.limit ? left : filter.limit);
    if (!filter.skips_total)
        assert_int_equal(page.total, all->total);
    for (size_t i = 0; i < page.count; i++)
        assert_int_equal(page.items[i].record.id.v, all->items[filter.offset + i].record.id.v);
}

static void pages_agree(void **state)
{
    (void)state;
    static const uint64_t offsets[] = {0, 1, 19, 500, 980, 981, 1500, 2900, 8990, 9000, 20000};
    struct text user = TEXT("user3");
    struct arena arena;

    arena_init(&arena);
    for (int variant = 0; variant < 2 * 2 * (ORDER_PRIORITY + 1) * 3; variant++) {
        bool is_shuffled = variant & 1;
        struct job_filter filter = {.is_descending = variant & 2,
                                    .order = (enum job_order)(variant / 4 % (ORDER_PRIORITY + 1)),
                                    .limit = JOBS};
        struct job_page all;
        struct job_index *jobs = index_of(7, is_shuffled);
        if (variant / 4 / (ORDER_PRIORITY + 1) == 1)
            filter.keyword = TEXT("name-12");
        if (variant / 4 / (ORDER_PRIORITY + 1) == 2) {
            filter.users = &user;
            filter.user_count = 1;
            filter.states = 1 << PUBLIC_RUNNING | 1 << PUBLIC_WAITING;
        }
        job_index_list(jobs, &filter, &arena, &all);
        assert_int_equal(all.count, all.total);
        assert_true(all.count > 100);
        for (size_t i = 0; i < COUNT_OF(offsets); i++) {
            filter.offset = offsets[i];
            for (filter.limit = 1; filter.limit <= 21; filter.limit += 20) {
                filter.skips_total = false;
                page_is_part(jobs, filter, &all, &arena);
                filter.skips_total = true;
                page_is_part(jobs, filter, &all, &arena);
            }
        }
        job_index_free(jobs);
        arena_clear(&arena);
    }
    arena_release(&arena);
}

/* The full list itself against the rule, where each job is compared with the next. */
static void lists_are_in_order(void **state)
{
    (void)state;
    struct arena arena;

    arena_init(&arena);
    for (int is_descending = 0; is_descending < 2; is_descending++)
        for (int is_shuffled = 0; is_shuffled < 2; is_shuffled++) {
            struct job_index *jobs = index_of(11, is_shuffled);
            struct job_filter filter = {
                .order = ORDER_SUBMITTED, .is_descending = is_descending, .limit = JOBS};
            struct job_page all;
            job_index_list(jobs, &filter, &arena, &all);
            assert_int_equal(all.count, JOBS);
            for (size_t i = 1; i < all.count; i++) {
                const struct job_record *a = &all.items[i - 1].record, *b = &all.items[i].record;
                if (a->submitted_ms == b->submitted_ms)
                    assert_true(a->id.v > b->id.v); /* ties: the newest first */
                else
                    assert_true(is_descending == (a->submitted_ms > b->submitted_ms));
            }
            job_index_free(jobs);
            arena_clear(&arena);
        }
    arena_release(&arena);
}

/* Every part of a name is found, and nothing else. */
/* Between two times, in every order; a row of which is at each end. */
static void dates(void **state)
{
    static const int64_t times[] = {0, 1, 999, 1000, 1001, 1250, 1499, 1500, 4000, 4001, 9000};
    (void)state;
    for (int is_shuffled = 0; is_shuffled < 2; is_shuffled++) {
        struct job_index *jobs = index_of(5, is_shuffled);
        struct job_page all, page;
        struct arena arena;
        arena_init(&arena);
        job_index_list(jobs, &(struct job_filter){.limit = JOBS}, &arena, &all);
        for (size_t a = 0; a < COUNT_OF(times); a++)
            for (size_t b = 0; b < COUNT_OF(times); b++) {
                uint64_t wanted = 0;
                for (size_t i = 0; i < all.count; i++) {
                    const int64_t at_ms = all.items[i].record.submitted_ms;
                    wanted += at_ms >= times[a] && (!times[b] || at_ms < times[b]);
                }
                for (int order = 0; order < 3; order++) {
                    const struct job_filter filter = {.since_ms = times[a],
                                                      .until_ms = times[b],
                                                      .order =
                                                          order == 2 ? ORDER_NAME : ORDER_SUBMITTED,
                                                      .is_descending = order == 0,
                                                      .limit = a % 2 ? 10 : JOBS};
                    job_index_list(jobs, &filter, &arena, &page);
                    assert_int_equal(page.total, wanted);
                    assert_int_equal(page.count, wanted < filter.limit ? wanted : filter.limit);
                }
            }
        arena_release(&arena);
        job_index_free(jobs);
    }
}

static void keywords(void **state)
{
    (void)state;
    static const char *const PARTS[] = {"a",      "r-n", "a-longer-name-", "9",   "99",
                                        "name-1", "-39", "user",           "vc1", "zz9",
                                        "9a",     "e-0"};
    struct job_index *jobs = index_of(13, false);
    struct arena arena;
    struct job_page all, found;

    arena_init(&arena);
    job_index_list(jobs, &(struct job_filter){.limit = JOBS}, &arena, &all);
    for (size_t k = 0; k < COUNT_OF(PARTS); k++) {
        size_t wanted = 0;
        for (size_t i = 0; i < all.count; i++)
            wanted += strstr(all.items[i].record.name, PARTS[k]) ||
                      strstr(all.items[i].record.user, PARTS[k]) ||
                      strstr(all.items[i].record.virtual_cluster, PARTS[k]);
        job_index_list(jobs, &(struct job_filter){.limit = 1, .keyword = text_of(PARTS[k])}, &arena,
                       &found);
        assert_int_equal(found.total, wanted);
    }
    job_index_free(jobs);
    arena_release(&arena);
}

static void make_jobs(struct world *world)
{
    static const enum life_state states[] = {LIFE_CREATION_PENDING, LIFE_RUNNING, LIFE_COMPLETED};

    for (uint32_t i = 1; i <= 30; i++) {
        struct submission *submission = submission_of(world);
        struct job_record job;
        char *name = arena_format(&world->arena, "job-%02u", 31 - i);
        job = job_of(i, i % 2 ? "alice" : "bob", name);
        submission->has_priority = i % 3 != 0;
        job.submission = submission;
        job.state = states[i % 3];
        job.completed_ms = i % 3 == 2 ? 5000 + i : 0;
        job.priority = i % 5 == 0 ? 100 : 10;
        job.virtual_cluster = i > 20 ? "vc1" : "default";
        job.task_count = i;
        job.gpu_count = 100 - i;
        job.retries_user = i % 7;
        add_job(world, job);
        struct store_batch batch = {.output = &world->output};
        assert_int_equal(store_commit(world->store, &batch, &world->err), 0);
        output_clear(&world->output);
    }
    arena_clear(&world->arena);
}

static void lists_filter(void **state)
{
    struct world *world = *state;
    struct text bob = TEXT("bob"), both[] = {TEXT("bob"), TEXT("alice")}, none = TEXT("carol");
    struct text red = TEXT("red"), vc = TEXT("vc1");
    int32_t prod = 100;
    uint64_t counts[PUBLIC_STATE_COUNT];

    make_jobs(world);
    assert_int_equal(list(world, (struct job_filter){0}, NULL), 30);
    assert_int_equal(list(world, (struct job_filter){.users = &bob, .user_count = 1}, NULL), 15);
    assert_int_equal(list(world, (struct job_filter){.users = both, .user_count = 2}, NULL), 30);
    assert_int_equal(list(world, (struct job_filter){.users = &none, .user_count = 1}, NULL), 0);
    assert_int_equal(
        list(world, (struct job_filter){.virtual_clusters = &vc, .virtual_cluster_count = 1}, NULL),
        10);
    assert_int_equal(list(world, (struct job_filter){.states = 1 << PUBLIC_RUNNING}, NULL), 10);
    assert_int_equal(
        list(world, (struct job_filter){.states = 1 << PUBLIC_RUNNING | 1 << PUBLIC_WAITING}, NULL),
        20);
    assert_int_equal(list(world, (struct job_filter){.keyword = TEXT("b-0")}, NULL), 9);
    assert_int_equal(list(world, (struct job_filter){.keyword = TEXT("ob")}, NULL), 30);
    assert_int_equal(list(world, (struct job_filter){.keyword = TEXT("lic")}, NULL), 15);
    assert_int_equal(list(world, (struct job_filter){.keyword = TEXT("e~j")}, NULL), 0);
    assert_int_equal(list(world, (struct job_filter){.keyword = TEXT("vc")}, NULL), 10);
    assert_int_equal(
        list(world, (struct job_filter){.priorities = &prod, .priority_count = 1}, NULL), 4);
    assert_int_equal(list(world, (struct job_filter){.wants_default_priority = true}, NULL), 10);
    assert_int_equal(list(world,
                          (struct job_filter){.priorities = &prod,
                                              .priority_count = 1,
                                              .wants_default_priority = true},
                          NULL),
                     14);
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{3}, "red"}}, 0);
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{4}, "red"}}, 0);
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{4}, "blue"}}, 0);
    assert_int_equal(list(world, (struct job_filter){.tags = &red, .tag_count = 1}, NULL), 2);
    assert_int_equal(list(world, (struct job_filter){.tags_not = &red, .tag_not_count = 1}, NULL),
                     28);
    store_job_counts(world->store, counts);
    assert_int_equal(counts[PUBLIC_SUCCEEDED], 10);
    assert_int_equal(counts[PUBLIC_WAITING], 10);
}

static void lists_order_and_page(void **state)
{
    struct world *world = *state;
    static const struct {
        enum job_order order;
        bool is_descending;
        uint32_t first;
    } cases[] = {
        {ORDER_SUBMITTED, false, 1},
        {ORDER_SUBMITTED, true, 30},
        {ORDER_NAME, false, 30},
        {ORDER_NAME, true, 1},
        {ORDER_USER, false, 29},
        {ORDER_USER, true, 30},
        {ORDER_RETRIES, false, 28},
        {ORDER_RETRIES, true, 27},
        {ORDER_TASKS, true, 30},
        {ORDER_GPUS, false, 30},
        {ORDER_GPUS, true, 1},
        {ORDER_STATE, false, 28},
        {ORDER_STATE, true, 30},
        {ORDER_COMPLETED, false, 2},
        {ORDER_COMPLETED, true, 30},
        {ORDER_PRIORITY, false, 29},
        {ORDER_PRIORITY, true, 30},
        {ORDER_VIRTUAL_CLUSTER, true, 30},
        {ORDER_VIRTUAL_CLUSTER, false, 20},
    };
    struct job_filter filter = {.offset = 28, .limit = 100};
    struct job_page page;
    uint32_t first;

    make_jobs(world);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        list(world,
             (struct job_filter){
                 .order = cases[i].order, .is_descending = cases[i].is_descending, .limit = 3},
             &first);
        if (first != cases[i].first)
            print_error("case %zu\n", i);
        assert_int_equal(first, cases[i].first);
    }
    store_job_list(world->store, &filter, &world->arena, &page);
    assert_int_equal(page.total, 30);
    assert_int_equal(page.count, 2);
    assert_int_equal(page.items[1].record.id.v, 30);
    filter.offset = 30;
    store_job_list(world->store, &filter, &world->arena, &page);
    assert_int_equal(page.count, 0);
    assert_int_equal(page.total, 30);
}

static void every_page_is_part_of_the_full_order(void **state)
{
    struct world *world = *state;
    struct job_page all, page;

    make_jobs(world);
    for (int order = ORDER_SUBMITTED; order <= ORDER_PRIORITY; order++) {
        struct job_filter filter = {
            .order = (enum job_order)order, .is_descending = order % 2, .limit = 100};
        store_job_list(world->store, &filter, &world->arena, &all);
        for (filter.offset = 0; filter.offset < 30; filter.offset++) {
            for (filter.limit = 1; filter.limit < 8; filter.limit++) {
                store_job_list(world->store, &filter, &world->arena, &page);
                for (size_t i = 0; i < page.count; i++)
                    assert_int_equal(page.items[i].record.id.v,
                                     all.items[filter.offset + i].record.id.v);
            }
        }
        arena_clear(&world->arena);
    }
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pages_agree),
    cmocka_unit_test(lists_are_in_order),
    cmocka_unit_test(dates),
    cmocka_unit_test(keywords),
    WORLD(lists_filter),
    WORLD(lists_order_and_page),
    WORLD(every_page_is_part_of_the_full_order),
};
UNIT_FILE(tests, NULL, NULL);
