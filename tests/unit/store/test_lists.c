/* test_lists.c — pages of a long list: every way to find one gives the same as sorting all. */
#include "base/arena.h"
#include "base/memory.h"
#include "base/random.h"
#include "core/output.h"
#include "store/job_index.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_agree),
        cmocka_unit_test(lists_are_in_order),
        cmocka_unit_test(keywords),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
