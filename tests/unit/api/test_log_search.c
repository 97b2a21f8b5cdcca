/* Search in all that a job's tasks wrote: texts, expressions, pages, lines around a match. */
#include "unit.h"
#include "world.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/call.h"
#include "api/log_search.h"
#include "api/throttle.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/worker.h"

enum { LINES = 30000 }; /* of some 20 bytes: several blocks */

static int search(struct world *world, const char *token, const char *query)
{
    char target[512];
    snprintf(target, sizeof target, "/api/v2/jobs/alice~wordy/logs/search?%s", query);
    return world_get(world, target, token);
}

/* How many times `words` are in the reply. */
static size_t count(const struct world *world, const char *words)
{
    size_t found = 0;
    for (const char *at = buf_cstr(&world->body); (at = strstr(at, words)); at += strlen(words))
        found++;
    return found;
}

static void wordy_job(struct world *world, const char *alice)
{
    struct job_id job = world_submit(world, alice, "wordy", 2);
    world_run(world, job);
    for (unsigned task = 0; task < 2; task++) {
        struct world_attempt_log *log = world_log(world, world_attempt(world, job, task));
        for (int i = 1; i <= LINES; i++)
            buf_format(&log->text, "task %u says line %d%s\n", task, i, i % 10000 ? "" : " Bingo");
        buf_string(&log->text, "no newline at the end");
    }
}

static void test_texts_and_expressions(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    wordy_job(world, alice);
    assert_int_equal(search(world, alice, "q=Bingo"), 200);
    assert_string_equal(world->content_type, "application/x-ndjson");
    assert_int_equal(count(world, "\"type\":\"match\""), 6);
    assert_body(world, "\"index\":1,\"taskAttempt\":0,\"line\":20000,");
    assert_body(world, "\"text\":\"task 1 says line 20000 Bingo\"");
    assert_body(world, "\"matches\":6,");
    assert_body(world, "\"cursor\":null");
    assert_int_equal(search(world, alice, "q=bingo"), 200);
    assert_int_equal(count(world, "\"match\""), 0);
    assert_int_equal(search(world, alice, "q=bINGO&ignoreCase=true&index=1"), 200);
    assert_int_equal(count(world, "\"match\""), 3);
    assert_int_equal(search(world, alice, "re=line%20(1|29999)%24&role=worker"), 200);
    assert_int_equal(count(world, "\"match\""), 4);
    assert_int_equal(search(world, alice, "re=NO%20newline&ignoreCase=1"), 200);
    assert_int_equal(count(world, "\"line\":30001,"), 2);
    assert_int_equal(search(world, alice, "q=Bingo&role=none"), 200);
    assert_int_equal(count(world, "\"match\""), 0);
    assert_int_equal(search(world, alice, "q=Bingo&attempt=7"), 200);
    assert_int_equal(count(world, "\"match\""), 0);
}

static void test_pages(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    char query[256] = "q=Bingo&limit=1";
    size_t pages = 0;
    wordy_job(world, alice);
    static const char *const lines[] = {"10000", "20000", "30000", "10000", "20000", "30000"};
    for (;; pages++) {
        char expected[64];
        assert_int_equal(search(world, alice, query), 200);
        if (pages < COUNT_OF(lines)) {
            snprintf(expected, sizeof expected, "\"index\":%d,\"taskAttempt\":0,\"line\":%s,",
                     pages >= 3, lines[pages]);
            assert_body(world, expected);
            assert_int_equal(count(world, "\"match\""), 1);
        }
        const char *at = strstr(buf_cstr(&world->body), "\"cursor\":\"");
        if (!at)
            break;
        at += strlen("\"cursor\":\"");
        snprintf(query, sizeof query, "q=Bingo&limit=1&cursor=%.*s", (int)strcspn(at, "\""), at);
    }
    assert_int_equal(pages, COUNT_OF(lines));
    assert_int_equal(count(world, "\"match\""), 0);
}

static void test_context(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    wordy_job(world, alice);
    assert_int_equal(search(world, alice, "q=line%2010000&context=2&index=0"), 200);
    assert_body(world, "\"before\":[\"task 0 says line 9998\",\"task 0 says line 9999\"]");
    assert_body(world, "\"after\":[\"task 0 says line 10001\",\"task 0 says line 10002\"]");
    assert_int_equal(search(world, alice, "q=task%200%20says%20line%201&context=1&limit=1"), 200);
    assert_body(world, "\"before\":[]");
    assert_body(world, "\"after\":[\"task 0 says line 2\"]");
    assert_int_equal(search(world, alice, "q=no%20newline&context=1&limit=1"), 200);
    assert_body(world, "\"before\":[\"task 0 says line 30000 Bingo\"],\"after\":[]");
}

/* A line with nothing in it is a line, too. */
static void test_context_with_empty_lines(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "wordy", 1);
    world_run(world, job);
    buf_string(&world_log(world, world_attempt(world, job, 0))->text, "\na\n\nb\n\nc\n");
    assert_int_equal(search(world, alice, "q=b&context=2"), 200);
    assert_body(world, "\"before\":[\"a\",\"\"]");
    assert_body(world, "\"after\":[\"\",\"c\"]");
    assert_int_equal(search(world, alice, "q=b&context=1"), 200);
    assert_body(world, "\"before\":[\"\"]");
    assert_int_equal(search(world, alice, "q=a&context=2"), 200);
    assert_body(world, "\"before\":[\"\"]");
    assert_int_equal(search(world, alice, "q=b&context=5"), 200);
    assert_body(world, "\"before\":[\"\",\"a\",\"\"]");
    assert_int_equal(search(world, alice, "re=%5E%24&limit=1&context=1"), 200);
    assert_body(world, "\"line\":1,\"offset\":0,\"text\":\"\",\"before\":[],\"after\":[\"a\"]");
}

/* What could not be read is named: it is not taken for a log without the word. */
static void test_unread(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "wordy", 3);
    world_run(world, job);
    buf_string(&world_log(world, world_attempt(world, job, 0))->text, "Bingo\n");
    struct world_attempt_log *log = world_log(world, world_attempt(world, job, 1));
    buf_string(&log->text, "Bingo\n");
    log->is_unreadable = true; /* and the third has no log */
    assert_int_equal(search(world, alice, "q=Bingo"), 200);
    assert_int_equal(count(world, "\"type\":\"match\""), 1);
    assert_int_equal(count(world, "\"type\":\"unread\""), 1);
    assert_body(world, "{\"type\":\"unread\",\"attempt\":0,\"role\":\"worker\",\"index\":1,"
                       "\"taskAttempt\":0,\"offset\":0,\"message\":\"its machine does not "
                       "answer\"}\n");
    assert_body(world, "\"matches\":1,\"unread\":1,");
    assert_body(world, "\"cursor\":null");
}

static void test_lines(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    wordy_job(world, alice);
    assert_int_equal(search(world, alice, "line=29999&limit=2&index=1"), 200);
    assert_int_equal(count(world, "\"match\""), 2);
    assert_body(world, "\"line\":29999,");
    assert_body(world, "\"text\":\"task 1 says line 29999\"");
    assert_body(world, "\"text\":\"task 1 says line 30000 Bingo\"");
    assert_int_equal(search(world, alice, "line=1&limit=1"), 200);
    assert_body(world, "\"line\":1,\"offset\":0,\"text\":\"task 0 says line 1\"");
    assert_int_equal(search(world, alice, "line=30001"), 200);
    assert_int_equal(count(world, "\"text\":\"no newline at the end\""), 2);
    assert_int_equal(count(world, "\"match\""), 2);
    assert_int_equal(search(world, alice, "line=30002"), 200);
    assert_int_equal(count(world, "\"match\""), 0);
    assert_body(world, "\"cursor\":null");
}

static void test_refused(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    wordy_job(world, alice);
    static const char *const BAD[] = {"",
                                      "q=",
                                      "re=",
                                      "q=a&re=b",
                                      "q=a&line=1",
                                      "line=0",
                                      "re=(",
                                      "q=a%0Ab",
                                      "q=a&limit=0",
                                      "q=a&limit=1001",
                                      "q=a&context=11",
                                      "q=a&cursor=1.2",
                                      "q=a&cursor=1.2.3.4.5.x",
                                      "q=a&cursor=0.0.0.0.0.0.0",
                                      "q=a&index=-1"};
    for (size_t i = 0; i < COUNT_OF(BAD); i++)
        if (search(world, alice, BAD[i]) != 400)
            fail_msg("%s: %d", BAD[i], world->status);
    assert_int_equal(search(world, bob, "q=Bingo"), 403);
    assert_int_equal(search(world, alice, "q=Bingo&stream=none"), 404);
}

/* A line that is longer than a block, and one that cannot be shown. */
static void test_odd_lines(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "wordy", 1);
    world_run(world, job);
    struct world_attempt_log *log = world_log(world, world_attempt(world, job, 0));
    for (int i = 0; i < 300000; i++)
        buf_char(&log->text, 'x');
    buf_string(&log->text, " end of the long one\n\033[31mred\033[0m \xff\xfe needle\n");
    assert_int_equal(search(world, alice, "q=needle"), 200);
    assert_body(world, "\"line\":2,");
    assert_body(world, "\"text\":\"red ");
    assert_int_equal(search(world, alice, "q=end%20of%20the%20long"), 200);
    assert_int_equal(count(world, "\"match\""), 1);
    assert_true(world->body.length < (size_t)2 * LOG_SEARCH_LINE_MAX);
}

/* Expressions that say something of ends of lines find lines nevertheless, one after the other. */
static void test_lines_of_expressions(void **state)
{
    static const struct {
        const char *query;
        size_t matches;
        const char *words;
    } CASES[] = {
        {"re=error%5Cs*%24", 2, "\"line\":1,\"offset\":0,\"text\":\"an error \""},
        {"re=error:%20%5B%5E.%5D*", 1, "\"line\":5,\"offset\":22,\"text\":\"error: one\""},
        {"re=%5E%24", 3, "\"line\":3,\"offset\":11,\"text\":\"\""},
        {"re=x*", 8, "\"line\":8,"},
        {"re=(?s)o.*", 5, "\"text\":\"error: one\""},
        {"line=8", 1, "\"text\":\"\""},
        {"line=9", 0, "\"cursor\":null"},
    };
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "wordy", 1);
    world_run(world, job);
    struct world_attempt_log *log = world_log(world, world_attempt(world, job, 0));
    buf_string(&log->text, "an error \n\n\nthe error\nerror: one\nmore\nof this\n\n");
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        assert_int_equal(search(world, alice, CASES[i].query), 200);
        if (count(world, "\"match\"") != CASES[i].matches ||
            !strstr(buf_cstr(&world->body), CASES[i].words))
            fail_msg("%s: %s", CASES[i].query, buf_cstr(&world->body));
    }
}

/* The engine keeps a log in pieces that end in the middle of lines. */
static void test_pieces(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "wordy", 1);
    world_run(world, job);
    struct world_attempt_log *log = world_log(world, world_attempt(world, job, 0));
    buf_string(&log->text, "one line\nanother line\nthe third line\nend");
    log->piece = 7;
    assert_int_equal(search(world, alice, "re=%5Eanother%20line%24"), 200);
    assert_body(world, "\"line\":2,\"offset\":9,\"text\":\"another line\"");
    assert_int_equal(search(world, alice, "q=line"), 200);
    assert_int_equal(count(world, "\"match\""), 3);
    assert_int_equal(search(world, alice, "line=3&context=2"), 200);
    assert_int_equal(count(world, "\"match\""), 2);
    assert_body(world, "\"text\":\"the third line\",\"before\":[\"one line\",\"another line\"]");
    assert_body(world, "\"after\":[\"end\"]");
}

/* One that has no time at all gets on nevertheless, page by page, and finds each line once. */
static void test_no_time(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job;
    wordy_job(world, alice);
    assert_int_equal(store_job_find(world->store, TEXT("alice"), TEXT("wordy"), &job, NULL), 0);
    struct log_search search = {.service = &world->service,
                                .job = job,
                                .job_attempt_count = 3, /* two of them have no task */
                                .pattern = TEXT("Bingo"),
                                .index = -1,
                                .attempt = -1,
                                .limit = LOG_SEARCH_LINES_MAX};
    size_t found = 0, pages = 0;
    for (const char *at = ""; at; pages++) {
        struct err err;
        assert_true(pages < 50);
        buf_clear(&world->body);
        assert_int_equal(log_search_run(&search, &world->body, &err), 0);
        found += count(world, "\"match\"");
        at = strstr(buf_cstr(&world->body), "\"cursor\":\"");
        struct text cursor = text_of(at ? at + strlen("\"cursor\":\"") : "");
        assert_true(!at || log_place_parse(text_cut(&cursor, '"'), &search.from));
    }
    assert_int_equal(found, 6);
    assert_true(pages > 6);
}

/* One user's searches wait beside those of others, and the rest of them is refused. */
static void test_searches_of_one_user(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    struct call call = {.api = &world->api, .caller.auth.user = "alice"};
    wordy_job(world, alice);
    world_submit(world, bob, "own", 1);
    for (int i = 0; i < LOG_SEARCH_OF_USER_MAX; i++)
        assert_int_equal(throttle_search_add(&call), 0);
    assert_int_equal(search(world, alice, "q=Bingo"), 429);
    assert_body(world, "8 searches of yours");
    assert_int_equal(world_get(world, "/api/v2/jobs/own/logs/search?q=x", bob), 200);
    for (int i = 0; i < LOG_SEARCH_OF_USER_MAX; i++)
        throttle_search_remove(&world->api, "alice");
    for (int i = 0; i < LOG_SEARCH_OF_USER_MAX + 1; i++)
        assert_int_equal(search(world, alice, "q=Bingo&limit=1"), 200);
}

/* A task of the thread that searches. */
struct held {
    struct worker_task task; /* first */
    sem_t *begun, *ended;
};

/* So long that the others are given meanwhile. */
static void held_run(struct worker_task *task, void *context)
{
    const struct held *held = (struct held *)task;
    const struct timespec while_held = {.tv_nsec = 200 * 1000 * 1000};
    (void)context;
    sem_post(held->begun);
    nanosleep(&while_held, NULL);
}

static void quick_run(struct worker_task *task, void *context)
{
    (void)task, (void)context;
}

static void held_done(struct worker_task *task, bool is_run)
{
    (void)is_run;
    sem_post(((struct held *)task)->ended);
}

/* However many somebody has asked for, another one's is taken, and waits for one of theirs. */
static void test_searches_take_turns(void **state)
{
    struct world *world = *state;
    const char *bob = world_login(world, "bob");
    static struct held held[LOG_SEARCH_WAITING_MAX + 1]; /* the thread has them, too */
    static sem_t begun, ended;
    struct err err;
    world_submit(world, bob, "own", 1);
    assert_int_equal(sem_init(&begun, 0, 0) | sem_init(&ended, 0, 0), 0);
    for (size_t i = 0; i < COUNT_OF(held); i++) {
        held[i] = (struct held){
            {.run = i ? quick_run : held_run, .done = held_done, .owner = "alice"}, &begun, &ended};
        assert_int_equal(worker_give(world->api.search_worker, &held[i].task, &err), 0);
        if (i == 0)
            sem_wait(&begun);
    }
    assert_int_equal(world_get(world, "/api/v2/jobs/own/logs/search?q=x", bob), 200);
    for (size_t i = 0; i < COUNT_OF(held); i++)
        sem_wait(&ended);
    sem_destroy(&begun);
    sem_destroy(&ended);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_searches_take_turns, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_texts_and_expressions, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_pages, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_context, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_context_with_empty_lines, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_unread, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_lines, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_refused, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_odd_lines, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_lines_of_expressions, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_pieces, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_no_time, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_searches_of_one_user, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
