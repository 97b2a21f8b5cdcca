/* test_store.c — what is committed is read back: jobs, tasks, histories, lists, users. */
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/event.h"
#include "core/output.h"
#include "store/read.h"
#include "store/store.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "world.h"

static void a_job_is_read_back_whole(void **state)
{
    struct world *world = *state;
    struct store_job row;
    struct store_source source;
    struct job_record job = job_of(1, "alice", "train");

    submit(world, 1, "alice", "train");
    job.state = LIFE_RUNNING;
    job.attempt = 2;
    job.reason = "because";
    job.reason_topic = UINT64_MAX - 1;
    job.trigger = "why";
    job.retries_user = 1;
    job.retries_platform = 2;
    job.retries_resource = 3;
    job.gpu_count = 1ull << 40;
    job.completion = completion_of(-210, "stopped");
    add_job(world, job);
    assert_int_equal(commit(world, NULL, 0), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            store_job_read(world->reader, (struct job_id){1}, &world->arena, &row, &world->err), 0);
        assert_string_equal(row.record.name, "train");
        assert_string_equal(row.record.user, "alice");
        assert_int_equal(row.record.state, LIFE_RUNNING);
        assert_int_equal(row.record.attempt, 2);
        assert_string_equal(row.record.reason, "because");
        assert_true(row.record.reason_topic == UINT64_MAX - 1);
        assert_string_equal(row.record.trigger, "why");
        assert_int_equal(row.record.retries_resource, 3);
        assert_true(row.record.gpu_count == 1ull << 40);
        assert_int_equal(row.record.completion.code, -210);
        assert_string_equal(row.record.completion.diagnostics, "stopped");
        assert_true(text_equal(row.record.extra, TEXT("extra\0bytes")));
        assert_int_equal(row.shown, PUBLIC_RUNNING);
        assert_true(row.has_priority);
        assert_int_equal(store_job_source(world->reader, (struct job_id){1}, &world->arena, &source,
                                          &world->err),
                         0);
        assert_true(text_equal(source.spec_bytes, TEXT("spec\0bytes")));
        assert_true(text_equal(source.sealed, TEXT("sealed\0")));
        assert_true(text_is(source.source, "name: train"));
        assert_int_equal(source.format, 1);
        world_close(world); /* and once more after a restart */
        world_open(world);
    }
    assert_int_equal(
        store_job_read(world->reader, (struct job_id){2}, &world->arena, &row, &world->err),
        ERR_NOT_FOUND);
    assert_int_equal(
        store_job_source(world->reader, (struct job_id){2}, &world->arena, &source, &world->err),
        ERR_NOT_FOUND);
}

static void tasks_without_a_row_come_from_the_plan(void **state)
{
    struct world *world = *state;
    struct store_tasks tasks;
    struct task_record task = task_of(1, 1, 1, 77);

    submit(world, 1, "alice", "train");
    add_task(world, task);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(
        store_tasks(world->reader, (struct job_id){1}, -1, &world->arena, &tasks, &world->err), 0);
    assert_int_equal(tasks.count, 4);
    assert_string_equal(tasks.items[0].role_name, "ps");
    assert_int_equal(tasks.items[0].state, LIFE_CREATION_PENDING);
    assert_int_equal(tasks.items[1].task.index, 0);
    task = tasks.items[2];
    assert_int_equal(task.attempt.v, 77);
    assert_int_equal(task.gpus[2], 259);
    assert_int_equal(task.cell_level, 4);
    assert_int_equal(task.killed, KILL_PREEMPTED);
    assert_int_equal(task.kill_by_ms, 30007);
    assert_int_equal(task.port_count, 2);
    assert_string_equal(task.ports[1].label, "http");
    assert_int_equal(task.ports[1].first, 15001);
    assert_int_equal(task.ports[1].count, 2);
    assert_int_equal(
        store_attempt(world->reader, (struct attempt_id){77}, &world->arena, &task, &world->err),
        0);
    assert_int_equal(
        store_attempt(world->reader, (struct attempt_id){78}, &world->arena, &task, &world->err),
        ERR_NOT_FOUND);
    assert_int_equal(
        store_tasks(world->reader, (struct job_id){1}, 1, &world->arena, &tasks, &world->err),
        ERR_NOT_FOUND);
}

static void history_keeps_attempts_that_end_and_begin_in_one_batch(void **state)
{
    struct world *world = *state;
    struct job_record job = job_of(1, "alice", "train");
    struct task_record task = task_of(1, 0, 0, 5);
    struct job_attempts attempts;
    struct store_tasks tasks;

    submit(world, 1, "alice", "train");
    task.state = LIFE_ATTEMPT_COMPLETED;
    task.completion = completion_of(1, "first");
    add_task(world, task);
    job.state = LIFE_ATTEMPT_COMPLETED;
    job.completion = completion_of(1, "failed");
    add_job(world, job);
    task = task_of(1, 0, 0, 6);
    task.job_attempt = 1;
    add_task(world, task);
    job = job_of(1, "alice", "train");
    job.attempt = 1;
    job.state = LIFE_RUNNING;
    add_job(world, job);
    assert_int_equal(commit(world, NULL, 0), 0);

    assert_int_equal(store_job_attempts(world->reader, (struct job_id){1}, &world->arena, &attempts,
                                        &world->err),
                     0);
    assert_int_equal(attempts.count, 2);
    assert_string_equal(attempts.items[0].completion.diagnostics, "failed");
    assert_int_equal(attempts.items[1].state, LIFE_RUNNING);
    assert_int_equal(
        store_tasks(world->reader, (struct job_id){1}, 0, &world->arena, &tasks, &world->err), 0);
    assert_int_equal(tasks.count, 1);
    assert_int_equal(tasks.items[0].attempt.v, 5);
    assert_int_equal(
        store_tasks(world->reader, (struct job_id){1}, 1, &world->arena, &tasks, &world->err), 0);
    assert_int_equal(tasks.count, 4);
    assert_int_equal(tasks.items[0].attempt.v, 6);
    /* a task's own attempts: one past, one current */
    task.task_attempt = 0;
    task.state = LIFE_ATTEMPT_COMPLETED;
    add_task(world, task);
    task.attempt.v = 7;
    task.task_attempt = 1;
    task.state = LIFE_RUNNING;
    add_task(world, task);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(store_task_attempts(world->reader, (struct job_id){1}, 1,
                                         (struct task_ref){0, 0}, &world->arena, &tasks,
                                         &world->err),
                     0);
    assert_int_equal(tasks.count, 2);
    assert_int_equal(tasks.items[0].attempt.v, 6);
    assert_int_equal(tasks.items[1].attempt.v, 7);
    /* ended: it stands in both tables and is shown once */
    task.state = LIFE_COMPLETED;
    add_task(world, task);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(store_task_attempts(world->reader, (struct job_id){1}, 1,
                                         (struct task_ref){0, 0}, &world->arena, &tasks,
                                         &world->err),
                     0);
    assert_int_equal(tasks.count, 2);
    assert_int_equal(tasks.items[1].state, LIFE_COMPLETED);
    /* scaled down */
    task.is_removed = true;
    add_task(world, task);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(
        store_tasks(world->reader, (struct job_id){1}, -1, &world->arena, &tasks, &world->err), 0);
    assert_int_equal(tasks.items[0].attempt.v, 0);
}

static void stories_are_paged_and_followed(void **state)
{
    struct world *world = *state;
    struct stories stories;
    struct story_filter filter = {.job = {1}, .is_warning = -1};
    uint64_t last;

    submit(world, 1, "alice", "train");
    add_task(world, task_of(1, 1, 2, 9));
    for (int i = 0; i < 5; i++)
        *ARRAY_ADD(&world->output.records) = (struct record){.kind = RECORD_STORY,
                                                             .story = {.job = {i == 4 ? 2 : 1},
                                                                       .role = i == 1 ? 1 : -1,
                                                                       .index = i == 1 ? 2 : -1,
                                                                       .is_warning = i == 2,
                                                                       .at_ms = i,
                                                                       .reason = "Waiting",
                                                                       .message = "message"}};
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(
        store_stories(world->reader, &filter, true, &world->arena, &stories, &world->err), 0);
    assert_int_equal(stories.count, 4);
    assert_int_equal(stories.total, 4);
    assert_string_equal(stories.items[0].role_name, "");
    assert_string_equal(stories.items[1].role_name, "worker");
    last = stories.items[2].sequence;
    filter.after = last;
    assert_int_equal(
        store_stories(world->reader, &filter, false, &world->arena, &stories, &world->err), 0);
    assert_int_equal(stories.count, 1);
    filter = (struct story_filter){
        .job = {1}, .is_warning = 0, .is_newest_first = true, .offset = 1, .limit = 1};
    assert_int_equal(
        store_stories(world->reader, &filter, true, &world->arena, &stories, &world->err), 0);
    assert_int_equal(stories.count, 1);
    assert_int_equal(stories.total, 3);
    assert_int_equal(stories.items[0].story.at_ms, 1);
    filter = (struct story_filter){.is_warning = -1};
    assert_int_equal(
        store_stories(world->reader, &filter, true, &world->arena, &stories, &world->err), 0);
    assert_int_equal(stories.count, 5);
}

static size_t list(struct world *world, struct job_filter filter, uint32_t *first)
{
    struct job_page page;

    if (filter.limit == 0)
        filter.limit = 1000;
    store_job_list(world->store, &filter, &world->arena, &page);
    if (first)
        *first = page.count ? page.items[0].record.id.v : 0;
    return page.total;
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

/* Every job is found by its names, of whatever length they may have; longer ones find nothing. */
static void find_by_the_longest_names(struct world *world)
{
    enum { NAME_MAX_BYTES = 255 };
    char user[STORE_USER_NAME_MAX + 2], name[NAME_MAX_BYTES + 2];
    struct job_id job;

    memset(user, 'u', sizeof user);
    memset(name, 'n', sizeof name);
    user[STORE_USER_NAME_MAX] = name[NAME_MAX_BYTES] = '\0';
    submit(world, 70, user, "short");
    submit(world, 71, "alice", name);
    submit(world, 72, user, name);
    assert_int_equal(store_job_find(world->store, text_of(user), TEXT("short"), &job, NULL), 0);
    assert_int_equal(job.v, 70);
    assert_int_equal(store_job_find(world->store, TEXT("alice"), text_of(name), &job, NULL), 0);
    assert_int_equal(job.v, 71);
    assert_int_equal(store_job_find(world->store, text_of(user), text_of(name), &job, NULL), 0);
    assert_int_equal(job.v, 72);
    const struct text user_more = {user, STORE_USER_NAME_MAX + 1},
                      name_more = {name, NAME_MAX_BYTES + 1};
    assert_int_equal(store_job_find(world->store, user_more, TEXT("short"), &job, NULL),
                     ERR_NOT_FOUND);
    assert_int_equal(store_job_find(world->store, TEXT("alice"), name_more, &job, NULL),
                     ERR_NOT_FOUND);
}

static void names_tags_and_purges(void **state)
{
    struct world *world = *state;
    struct job_id job;
    struct store_job row;
    char longer[STORE_TAG_MAX + 2];
    struct job_record final = job_of(1, "alice", "train");
    struct job_id ended[4];

    submit(world, 1, "alice", "train");
    submit(world, 2, "bob", "train");
    assert_int_equal(store_job_find(world->store, TEXT("bob"), TEXT("train"), &job, &world->err),
                     0);
    assert_int_equal(job.v, 2);
    assert_int_equal(store_job_find(world->store, TEXT("bob~tr"), TEXT("ain"), &job, &world->err),
                     ERR_NOT_FOUND);
    find_by_the_longest_names(world);
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{1}, "b"}}, 0);
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{1}, "a"}}, 0);
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{1}, "a"}}, 0);
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{9}, "a"}}, ERR_NOT_FOUND);
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{1}, "a,b"}}, ERR_INVALID);
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{1}, longer}}, ERR_INVALID);
    for (int i = 0; i < STORE_TAGS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "tag%d", i);
        change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{2}, name}}, 0);
    }
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{2}, "more"}}, ERR_TOO_BIG);
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{2}, "tag3"}}, 0);
    world_close(world);
    world_open(world);
    assert_int_equal(
        store_job_summary(world->store, (struct job_id){1}, &world->arena, &row, &world->err), 0);
    assert_int_equal(row.tag_count, 2);
    assert_string_equal(row.tags[0], "a");
    assert_int_equal(
        store_job_read(world->reader, (struct job_id){1}, &world->arena, &row, &world->err), 0);
    assert_int_equal(row.tag_count, 2);
    assert_string_equal(row.tags[1], "b");
    change(world, (struct store_change){.kind = CHANGE_TAG_REMOVE, .tag = {{1}, "b"}}, 0);
    change(world, (struct store_change){.kind = CHANGE_TAG_REMOVE, .tag = {{1}, "b"}},
           ERR_NOT_FOUND);
    final.state = LIFE_COMPLETED;
    final.completed_ms = 50;
    add_job(world, final);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(store_jobs_final(world->store, 50, ended, 4), 0);
    assert_int_equal(store_jobs_final(world->store, 51, ended, 4), 1);
    add_deleted(world, 1);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(store_job_find(world->store, TEXT("alice"), TEXT("train"), &job, &world->err),
                     ERR_NOT_FOUND);
    assert_int_equal(
        store_job_read(world->reader, (struct job_id){1}, &world->arena, &row, &world->err),
        ERR_NOT_FOUND);
}

static bool token_is_there(struct world *world, const char *id)
{
    struct store_token got;
    return store_token(world->reader, text_of(id), &world->arena, &got, &world->err) == 0;
}

/* Whoever has a password can log in: however many tokens there are, the new one counts, and so do
 * all newer logins; each kind has at most its number; another user's are left alone. */
static void tokens_at_the_limit(void **state)
{
    struct world *world = *state;
    struct store_user alice = {"alice", "hash", "a@b", true, {0}, {0}, "{}", 5},
                      bob = {"bob", "hash", "b@b", true, {0}, {0}, "{}", 5};
    struct store_token token = {"bob-1", "bob", false, 1, 2};
    struct store_tokens tokens;
    char id[32];

    change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = alice}, 0);
    change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = bob}, 0);
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, 0);
    for (int i = 0; i < 2 * STORE_TOKENS_MAX; i++) {
        bool is_application = i % 2 == 1;
        snprintf(id, sizeof id, "%s-%d", is_application ? "app" : "login", i / 2);
        /* the logins 500 and 600 have expired when the first too many comes */
        int64_t expires_ms = is_application ? 0 : i == 1000 || i == 1200 ? 5000 : 1000000;
        token = (struct store_token){id, "alice", is_application, 1000 + i, expires_ms};
        change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, 0);
    }
    token = (struct store_token){"app-more", "alice", true, 5000, 0};
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, ERR_TOO_BIG);
    token = (struct store_token){"login-3", "alice", false, 5000, 1000000};
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, ERR_CONFLICT);
    const char *const ended[] = {"login-500", "login-600", "login-0", "login-1"};
    for (int i = 0; i < 4; i++) {
        assert_true(token_is_there(world, ended[i]));
        snprintf(id, sizeof id, "more-%d", i);
        /* a clock that went back: the new one is not the one to end */
        token = (struct store_token){id, "alice", false, i < 3 ? 5000 : 10, 1000000};
        change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, 0);
        assert_true(token_is_there(world, id));
        assert_false(token_is_there(world, ended[i]));
    }
    assert_int_equal(
        store_tokens(world->reader, TEXT("alice"), &world->arena, &tokens, &world->err), 0);
    assert_int_equal(tokens.count, 2 * STORE_TOKENS_MAX);
    assert_true(token_is_there(world, "app-0") && token_is_there(world, "login-2") &&
                token_is_there(world, "bob-1") && !token_is_there(world, "app-more"));
}

static void users_and_tokens(void **state)
{
    struct world *world = *state;
    struct store_user alice = {"alice", "hash", "a@b", true, {0}, {0}, "{}", 5};
    struct store_user read;
    struct store_users users;
    struct store_token token = {"t1", "alice", false, 10, 20}, got;
    struct store_tokens tokens;
    struct text value;

    change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = alice}, 0);
    change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = alice}, ERR_CONFLICT);
    alice.email = "new";
    change(world, (struct store_change){.kind = CHANGE_USER_SET, .user = alice}, 0);
    assert_int_equal(store_user(world->reader, TEXT("alice"), &world->arena, &read, &world->err),
                     0);
    assert_string_equal(read.email, "new");
    assert_true(read.is_admin);
    assert_int_equal(store_user(world->reader, TEXT("carol"), &world->arena, &read, &world->err),
                     ERR_NOT_FOUND);
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, 0);
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, ERR_CONFLICT);
    token = (struct store_token){"t2", "alice", true, 11, 0};
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, 0);
    token = (struct store_token){"t3", "alice", false, 12, 0};
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, 0);
    token.user = "carol";
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, ERR_NOT_FOUND);
    change(world, (struct store_change){.kind = CHANGE_TOKEN_REMOVE, .token = token},
           ERR_NOT_FOUND);
    change(world, (struct store_change){.kind = CHANGE_TOKENS_EXPIRE, .before_ms = 21}, 0);
    assert_int_equal(
        store_tokens(world->reader, TEXT("alice"), &world->arena, &tokens, &world->err), 0);
    assert_int_equal(tokens.count, 2);
    assert_string_equal(tokens.items[0].id, "t3");
    token = (struct store_token){"", "alice", false, 0, 0};
    change(world, (struct store_change){.kind = CHANGE_TOKENS_REMOVE, .token = token}, 0);
    assert_int_equal(store_token(world->reader, TEXT("t3"), &world->arena, &got, &world->err),
                     ERR_NOT_FOUND);
    assert_int_equal(store_token(world->reader, TEXT("t2"), &world->arena, &got, &world->err), 0);
    assert_true(got.is_application);
    token.is_application = true;
    token.id = "t2";
    change(world, (struct store_change){.kind = CHANGE_TOKENS_REMOVE, .token = token}, 0);
    assert_int_equal(store_token(world->reader, TEXT("t2"), &world->arena, &got, &world->err), 0);
    token.id = "";
    change(world, (struct store_change){.kind = CHANGE_TOKENS_REMOVE, .token = token}, 0);
    assert_int_equal(store_token(world->reader, TEXT("t2"), &world->arena, &got, &world->err),
                     ERR_NOT_FOUND);
    token = (struct store_token){"t2", "alice", true, 11, 0};
    change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}, 0);
    change(world, (struct store_change){.kind = CHANGE_USER_REMOVE, .user = {.name = "alice"}}, 0);
    assert_int_equal(store_token(world->reader, TEXT("t2"), &world->arena, &got, &world->err),
                     ERR_NOT_FOUND);
    assert_int_equal(store_users(world->reader, &world->arena, &users, &world->err), 0);
    assert_int_equal(users.count, 0);
    change(world, (struct store_change){.kind = CHANGE_SETTING, .setting = {"k", TEXT("a\0b")}}, 0);
    assert_int_equal(store_setting(world->reader, "k", &world->arena, &value, &world->err), 0);
    assert_true(text_equal(value, TEXT("a\0b")));
    change(world, (struct store_change){.kind = CHANGE_SETTING, .setting = {"k", TEXT("")}}, 0);
    assert_int_equal(store_setting(world->reader, "k", &world->arena, &value, &world->err),
                     ERR_NOT_FOUND);
}

static void many_jobs_come_and_go(void **state)
{
    struct world *world = *state;
    struct job_record job;
    struct job_id found;

    /* enough to make the index forget its dead */
    for (uint32_t i = 1; i <= 9000; i++) {
        char *name = arena_format(&world->output.arena, "j%u", i);
        job = job_of(i, i % 2 ? "alice" : "bob", name);
        job.submission = submission_of(world);
        job.state = LIFE_COMPLETED;
        add_job(world, job);
    }
    assert_int_equal(commit(world, NULL, 0), 0);
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{8999}, "kept"}}, 0);
    for (uint32_t i = 1; i <= 8000; i++)
        add_deleted(world, i);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(list(world, (struct job_filter){0}, NULL), 1000);
    assert_int_equal(
        store_job_find(world->store, TEXT("alice"), TEXT("j8999"), &found, &world->err), 0);
    assert_int_equal(found.v, 8999);
    assert_int_equal(store_job_find(world->store, TEXT("alice"), TEXT("j999"), &found, &world->err),
                     ERR_NOT_FOUND);
    struct text kept = TEXT("kept"), bob = TEXT("bob");
    assert_int_equal(list(world, (struct job_filter){.tags = &kept, .tag_count = 1}, NULL), 1);
    assert_int_equal(list(world, (struct job_filter){.users = &bob, .user_count = 1}, NULL), 500);
    /* a deleted job's tags do not stay: no job has that number again, and nothing would end them */
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{8001}, "gone"}}, 0);
    add_deleted(world, 8001);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(world_sql(world, "INSERT INTO tags (job, name) VALUES (8001, 'gone')"), 0);
    world_sql(world, "DELETE FROM tags WHERE job = 8001");
    submit(world, 9001, "bob", "new");
    assert_int_equal(list(world, (struct job_filter){.users = &bob, .user_count = 1}, NULL), 501);
}

int main(void)
{
#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WORLD(a_job_is_read_back_whole),
        WORLD(tasks_without_a_row_come_from_the_plan),
        WORLD(history_keeps_attempts_that_end_and_begin_in_one_batch),
        WORLD(stories_are_paged_and_followed),
        WORLD(lists_filter),
        WORLD(lists_order_and_page),
        WORLD(every_page_is_part_of_the_full_order),
        WORLD(names_tags_and_purges),
        WORLD(tokens_at_the_limit),
        WORLD(users_and_tokens),
        WORLD(many_jobs_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
