/* Logs of tasks: whole, their last lines, and followed through retries. */
#include "unit.h"
#include "world.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"

static void test_logs(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "log", 1);
    struct buf out = BUF_INIT;
    assert_int_equal(world_get(world, "/api/v2/jobs/log/logs", alice), 404);
    assert_body(world, "NoTaskLogError");
    world_run(world, job);
    struct world_attempt_log *log = world_log(world, world_attempt(world, job, 0));
    for (int i = 0; i < 2000; i++)
        buf_format(&log->text, "line %d\n", i);
    assert_int_equal(world_get(world, "/api/v2/jobs/log/logs", alice), 200);
    assert_string_equal(world->content_type, "text/plain; charset=utf-8");
    world_read_all(world, &out);
    assert_int_equal(out.length, log->text.length);
    assert_int_equal(world_get(world, "/api/v2/jobs/log/logs?tail-lines=2", alice), 200);
    world_read_all(world, &out);
    assert_string_equal(buf_cstr(&out), "line 1998\nline 1999\n");
    assert_int_equal(world_get(world, "/api/v2/jobs/log/logs?tail=5", alice), 200);
    world_read_all(world, &out);
    assert_string_equal(buf_cstr(&out), "1999\n");
    assert_int_equal(world_get(world, "/api/v2/jobs/log/logs?offset=7&tail-lines=5000", alice),
                     200);
    world_read_all(world, &out);
    assert_int_equal(out.length, log->text.length);
    assert_int_equal(world_get(world,
                               "/api/v2/jobs/log/attempts/0/taskRoles/worker/taskIndex/0/attempts/"
                               "0/logs?tail-mode=true",
                               alice),
                     200);
    assert_body(world, "\"/api/internal/tail-logs/log:0:worker:0:0:stdout?link=");
    assert_int_equal(world_get(world, "/api/internal/tail-logs/log:0:worker:0:0:all", alice), 206);
    world_read_all(world, &out);
    assert_int_equal(out.length, 16384);
    assert_true(text_equal(buf_as_text(&out),
                           (struct text){log->text.at + log->text.length - 16384, 16384}));
    assert_int_equal(world_get(world,
                               "/api/v2/jobs/log/attempts/0/taskRoles/worker/taskIndex/0/attempts/"
                               "0/logs/all?tail-mode=1",
                               alice),
                     200);
    world_read_all(world, &out);
    assert_int_equal(out.length, 16384);
    static const char *const MISSING[] = {
        "/api/v2/jobs/log/logs?role=none",
        "/api/v2/jobs/log/logs?index=7",
        "/api/v2/jobs/log/logs?stream=none",
        "/api/v2/jobs/log/attempts/0/taskRoles/worker/taskIndex/0/attempts/9/logs",
        "/api/v2/jobs/log/attempts/9/taskRoles/worker/taskIndex/0/attempts/0/logs",
        "/api/internal/tail-logs/log",
        "/api/internal/tail-logs/log:0:worker:0:0:",
        "/api/internal/tail-logs/log:0:worker:0:0:none",
        "/api/internal/tail-logs/log:0:worker:0:0:all:x",
        "/api/internal/tail-logs/none:0:worker:0:0:all",
    };
    for (size_t i = 0; i < COUNT_OF(MISSING); i++)
        assert_int_equal(world_get(world, MISSING[i], alice), 404);
    assert_int_equal(world_get(world, "/api/v2/jobs/log/logs?tail=0", alice), 400);
    buf_release(&out);
}

/* since: whole lines, of which the first may be older; a byte of this log is a millisecond. */
static void test_log_since(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "log", 1);
    cleanup_buf struct buf out = BUF_INIT;
    world_run(world, job);
    struct world_attempt_log *log = world_log(world, world_attempt(world, job, 0));
    buf_string(&log->text, "one\ntwo\nthree\n");
    static const struct {
        const char *query, *expected;
    } CASES[] = {{"since=0", "one\ntwo\nthree\n"},
                 {"since=3", "one\ntwo\nthree\n"},
                 {"since=4", "two\nthree\n"},
                 {"since=7", "two\nthree\n"},
                 {"since=9", "three\n"},
                 {"since=14", ""},
                 {"since=99999999", ""}};
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        char target[120];
        snprintf(target, sizeof target, "/api/v2/jobs/log/logs?%s", CASES[i].query);
        assert_int_equal(world_get(world, target, alice), 200);
        assert_int_equal(world_read_all(world, &out), HTTP_STREAM_END);
        assert_string_equal(buf_cstr(&out), CASES[i].expected);
    }
    log->removed = 6;
    assert_int_equal(world_get(world, "/api/v2/jobs/log/logs?since=7", alice), 200);
    world_read_all(world, &out);
    assert_string_equal(buf_cstr(&out), "o\nthree\n");
    static const char *const BAD[] = {"since=x", "since=-1", "since=1&tail=5", "since=1&offset=5",
                                      "since=1&tail-lines=0"};
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        char target[120];
        snprintf(target, sizeof target, "/api/v2/jobs/log/logs?%s", BAD[i]);
        assert_int_equal(world_get(world, target, alice), 400);
    }
    log->is_ended = true;
    assert_int_equal(world_get(world, "/api/v2/jobs/log/logs?since=8&follow=true", alice), 200);
    world_read_all(world, &out);
    assert_string_equal(buf_cstr(&out), "three\n");
    world_stream_close(world);
}

static void expect_part(struct world *world, const char *token, const char *range, int status,
                        const char *content_range, const char *text)
{
    cleanup_buf struct buf out = BUF_INIT;
    world->range = range;
    assert_int_equal(world_get(world, "/api/v2/jobs/part/logs", token), status);
    assert_string_equal(world->content_range, content_range);
    if (status == 416) {
        assert_body(world, "\"code\":\"RangeError\"");
        return;
    }
    assert_int_equal(world_read_all(world, &out), HTTP_STREAM_END);
    assert_string_equal(buf_cstr(&out), text);
}

static void test_log_range(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "part", 1);
    world_run(world, job);
    struct world_attempt_log *log = world_log(world, world_attempt(world, job, 0));
    buf_string(&log->text, "one\ntwo\nthree\n");
    expect_part(world, alice, "bytes=4-7", 206, "bytes 4-7/*", "two\n");
    expect_part(world, alice, "bytes=8-", 206, "bytes 8-13/*", "three\n");
    expect_part(world, alice, "bytes=-3", 206, "bytes 11-13/*", "ee\n");
    expect_part(world, alice, "bytes=0-3,8-9", 200, "", "one\ntwo\nthree\n");
    expect_part(world, alice, "bytes=14-", 416, "bytes */*", NULL);
    log->is_ended = true;
    expect_part(world, alice, "bytes=0-0", 206, "bytes 0-0/14", "o");
    expect_part(world, alice, "bytes=99-", 416, "bytes */14", NULL);
    world->if_range = "\"of another time\"";
    expect_part(world, alice, "bytes=0-0", 200, "", "one\ntwo\nthree\n");
    world->if_range = NULL;
}

/* What is left of a log that is gone: its last lines, in the history and as the log. */
static void test_log_tail(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    struct job_id job = world_submit(world, alice, "gone", 1);
    world_run(world, job);
    struct attempt_id attempt = world_attempt(world, job, 0);
    struct store_change change = {.kind = CHANGE_ATTEMPT_END,
                                  .attempt_end = {.attempt = attempt,
                                                  .rule = {.code = 3,
                                                           .phrase = "ContainerOutOfLuck",
                                                           .number = 2,
                                                           .pattern = 1,
                                                           .line = 40,
                                                           .file = "/etc/skep/rules.yaml",
                                                           .log = "user",
                                                           .text = TEXT("no luck")},
                                                  .tail = TEXT("last words\n")}};
    struct store_batch batch = {.changes = &change, .change_count = 1};
    struct err err;
    world_exit(world, job, 0, 3);
    assert_int_equal(store_commit(world->store, &batch, &err), 0);
    assert_int_equal(change.code, 0);
    const char *path = "/api/v2/jobs/alice~gone/attempts/0/taskRoles/worker/taskIndex/0/attempts";
    assert_int_equal(world_get(world, path, alice), 200);
    assert_body(world, "\"containerLogTail\":\"last words\\n\"");
    assert_body(world, "\"matchedRule\":{\"code\":3,\"name\":\"ContainerOutOfLuck\",\"file\":"
                       "\"/etc/skep/rules.yaml\",\"number\":2,\"pattern\":1,\"line\":40,"
                       "\"log\":\"user\",\"text\":\"no luck\"}");
    assert_int_equal(world_get(world, path, bob), 200);
    assert_body(world, "\"containerLogTail\":null");
    assert_body(world, "\"log\":\"user\",\"text\":null}");
    assert_int_equal(world_get(world, "/api/v2/jobs/gone/logs", alice), 200);
    assert_string_equal(buf_cstr(&world->body), "last words\n");
    assert_int_equal(world_get(world, "/api/v2/jobs/alice~gone/logs", bob), 403);
    /* too long is refused; with the job the lines go, too */
    char long_text[STORE_TAIL_MAX + 1] = {0};
    change.attempt_end.tail = (struct text){long_text, sizeof long_text};
    assert_int_equal(store_commit(world->store, &batch, &err), 0);
    assert_int_equal(change.code, ERR_TOO_BIG);
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/jobs/gone", alice, ""), 202);
    struct store_reader *reader = NULL;
    struct arena arena;
    struct store_attempt_end end;
    arena_init(&arena);
    assert_int_equal(store_reader_open(world->store, &reader, &err), 0);
    assert_int_equal(store_attempt_end(reader, attempt, &arena, &end, &err), ERR_NOT_FOUND);
    store_reader_close(reader);
    arena_release(&arena);
}

/* A follow goes on through a retry of the job and ends with it. */
static void test_log_follow(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "follow", 1);
    assert_int_equal(world_get(world, "/api/v2/jobs/follow/logs?follow=true", alice), 200);
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    world_run(world, job);
    struct attempt_id first = world_attempt(world, job, 0);
    buf_string(&world_log(world, first)->text, "one\n");
    assert_int_equal(world_stream(world), 4);
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    buf_string(&world_log(world, first)->text, "two\n");
    assert_int_equal(world_stream(world), 4);
    assert_body(world, "two");
    world_log(world, first)->is_ended = true;
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT); /* the job is not final */
    world_exit(world, job, 0, 0);
    assert_int_equal(world_stream(world), HTTP_STREAM_END);
}

/* There is room for the task whose log test_log_follow_of_a_start asks for. */
static void first_ends(struct world *world)
{
    world_exit(world, (struct job_id){1}, 0, 0);
}

/* A task that begins while the request for its log is carried out, after it was found without an
 * attempt, has not ended before: its log is followed from the start. */
static void test_log_follow_of_a_start(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id first = world_submit(world, alice, "first", 8); /* the whole node */
    struct job_id next = world_submit(world, alice, "next", 1);
    assert_int_equal(first.v, 1);
    assert_int_equal(world_attempt(world, next, 0).v, 0);
    world->between = first_ends;
    assert_int_equal(world_get(world, "/api/v2/jobs/next/logs?follow=true", alice), 200);
    assert_null(world->between);
    const struct attempt_id attempt = world_attempt(world, next, 0);
    assert_int_not_equal(attempt.v, 0);
    world_run(world, next);
    buf_string(&world_log(world, attempt)->text, "one\n");
    assert_int_equal(world_stream(world), 4);
    assert_body(world, "one");
    world_stream_close(world);
}

/* What cannot be read now is read again, even if nothing else happens in the cluster. */
static void test_log_follow_without_readers(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id first = world_submit(world, alice, "first", 8); /* the whole node */
    struct job_id next = world_submit(world, alice, "next", 1);
    assert_int_equal(world_get(world, "/api/v2/jobs/next/logs?follow=true", alice), 200);
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    world_exit(world, first, 0, 0);
    world_run(world, next);
    buf_string(&world_log(world, world_attempt(world, next, 0))->text, "one\n");
    world->has_no_reader = true;
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    world->has_no_reader = false;
    assert_int_equal(world_stream(world), 4);
    world_stream_close(world);
}

#define ONE_ATTEMPT                                                                                \
    "/api/v2/jobs/early/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs/all?follow=true"

static void first_is_quick(struct world *world)
{
    const struct job_id job = {1};
    const struct attempt_id attempt = world_attempt(world, job, 0);
    buf_string(&world_log(world, attempt)->text, "all of it\n");
    world_log(world, attempt)->is_ended = true;
    world_run(world, job);
    world_exit(world, job, 0, 0);
}

/* One attempt alone, asked for before its container is made: it is waited for. */
static void test_log_follow_before_the_container(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "early", 1);
    const struct attempt_id attempt = world_attempt(world, job, 0);
    assert_int_not_equal(attempt.v, 0);
    assert_int_equal(world_get(world, ONE_ATTEMPT, alice), 200);
    world->has_no_reader = true; /* nobody knows whether it has ended */
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    world->has_no_reader = false;
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    world->reading = first_is_quick; /* not asked again before something happens */
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    assert_non_null(world->reading);
    world->reading = NULL;
    world_run(world, job);
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    buf_string(&world_log(world, attempt)->text, "one\n");
    assert_int_equal(world_stream(world), 4);
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    world_log(world, attempt)->is_ended = true;
    assert_int_equal(world_stream(world), HTTP_STREAM_END);
    world_stream_close(world);
}

/* It fails before it has a log, and perhaps its job is deleted: there is nothing to wait for. */
static void test_log_follow_of_none(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "early", 1);
    assert_int_equal(world_get(world, ONE_ATTEMPT, alice), 200);
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    world_exit(world, job, 0, 3);
    assert_int_equal(world_stream(world), HTTP_STREAM_END);
    world_stream_close(world);
    assert_int_equal(world_get(world, ONE_ATTEMPT, alice), 200);
    struct exchange *follower = world->streaming;
    world->streaming = NULL;
    assert_int_equal(world_ask(world, HTTP_DELETE, "/api/v2/jobs/early", alice, "", TEXT("")), 202);
    assert_int_equal(world_get(world, "/api/v2/jobs/early", alice), 404);
    world->streaming = follower;
    assert_int_equal(world_stream(world), HTTP_STREAM_END);
    world_stream_close(world);
}

/* All of it comes between the look for its log and the look whether it has ended. */
static void test_log_follow_of_a_quick_one(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    assert_int_equal(world_submit(world, alice, "early", 1).v, 1);
    assert_int_equal(world_get(world, ONE_ATTEMPT, alice), 200);
    world->reading = first_is_quick;
    assert_int_equal(world_stream(world), 10);
    assert_null(world->reading);
    assert_body(world, "all of it");
    assert_int_equal(world_stream(world), HTTP_STREAM_END);
    world_stream_close(world);
}

static bool stream_is_woken(const struct http_stream *stream)
{
    struct pollfd watch = {.fd = stream->fd, .events = POLLIN};
    return poll(&watch, 1, 0) == 1;
}

/* A follower sleeps until its log wakes it: no time is set while one is watched. */
static void test_log_follow_sleeps(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "sleeper", 1);
    world_run(world, job);
    struct world_attempt_log *log = world_log(world, world_attempt(world, job, 0));
    world->can_watch = true;
    buf_string(&log->text, "one\n");
    assert_int_equal(world_get(world, "/api/v2/jobs/sleeper/logs?follow=true", alice), 200);
    const struct http_stream *stream = &world->streaming->reply.stream;
    assert_int_equal(world_stream(world), 4);
    log->late = "two\n"; /* between the last look and the watch: nobody is woken for it */
    assert_int_equal(world_stream(world), 4);
    assert_body(world, "two");
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    assert_true(stream->fd >= 0 && !stream_is_woken(stream));
    assert_int_equal(stream->poll_ms, 0);
    buf_string(&log->text, "three\n");
    world_log_wake(log);
    world_log_wake(log);
    assert_true(stream_is_woken(stream));
    assert_int_equal(world_stream(world), 6);
    assert_false(stream_is_woken(stream));
    /* the attempt has ended, the job has not: what it waits for is not in the log that is watched
     */
    log->is_ended = true;
    world_log_wake(log);
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    assert_int_equal(stream->fd, -1);
    assert_true(stream->poll_ms > 0);
    world_exit(world, job, 0, 0);
    assert_int_equal(world_stream(world), HTTP_STREAM_END);
}

/* A descriptor at its end is always readable: its follower must not turn in circles. */
static void test_log_follow_let_go(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "let-go", 1);
    world_run(world, job);
    struct world_attempt_log *log = world_log(world, world_attempt(world, job, 0));
    buf_string(&log->text, "one\n");
    world->can_watch = true;
    assert_int_equal(world_get(world, "/api/v2/jobs/let-go/logs?follow=true", alice), 200);
    const struct http_stream *stream = &world->streaming->reply.stream;
    assert_int_equal(world_stream(world), 4);
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    world->can_watch = false;
    close(log->follower);
    log->follower = -1;
    assert_true(stream_is_woken(stream));
    assert_int_equal(world_stream(world), HTTP_STREAM_WAIT);
    assert_int_equal(stream->fd, -1);
    assert_true(stream->poll_ms > 0);
    world_stream_close(world);
}

/* What the task's engine cannot do is said, and what it can is done all the same. */
static void test_log_of_an_engine_that_cannot_follow(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "mute", 1);
    world_run(world, job);
    buf_string(&world_log(world, world_attempt(world, job, 0))->text, "one\n");
    world->cannot_follow = true;
    assert_int_equal(world_get(world, "/api/v2/jobs/mute/logs?follow=true", alice), 400);
    assert_body(world, "NotImplementedError");
    assert_body(world, "the engine \\\"mute\\\" cannot follow logs");
    assert_int_equal(atomic_load(&world->api.followers), 0);
    assert_int_equal(world_get(world, "/api/v2/jobs/mute/logs", alice), 200);
    world->cannot_follow = false;
}

/* One reader too many is told so, and there is room again when another has gone. */
static void test_log_followers(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "crowd", 1);
    world_run(world, job);
    buf_string(&world_log(world, world_attempt(world, job, 0))->text, "one\n");
    world->api.config.followers_max = 1;
    assert_int_equal(world_get(world, "/api/v2/jobs/crowd/logs?follow=true", alice), 200);
    atomic_fetch_add(&world->api.followers, 1); /* another one */
    world_stream_close(world);
    assert_int_equal(world_get(world, "/api/v2/jobs/crowd/logs?follow=true", alice), 429);
    assert_body(world, "BusyError");
    assert_int_equal(world_get(world, "/api/v2/jobs/crowd/logs", alice), 200);
    atomic_fetch_sub(&world->api.followers, 1);
    assert_int_equal(world_get(world, "/api/v2/jobs/crowd/logs?follow=true", alice), 200);
    world_stream_close(world);
    assert_int_equal(atomic_load(&world->api.followers), 0);
    world->api.config.followers_max = 0;
}

/* Attempts that began and ended between two reads are all told, in order, none twice. */
static void test_log_follow_fast_retries(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct text file = TEXT("protocolVersion: 2\nname: fast\ntype: job\njobRetryCount: 3\n"
                            "prerequisites:\n- {name: i, type: dockerimage, uri: d}\ntaskRoles:\n"
                            "  w:\n    dockerImage: i\n    resourcePerInstance: {cpu: 1, memoryMB: "
                            "1, gpu: 0}\n    commands: [x]\n");
    assert_int_equal(world_ask(world, HTTP_POST, "/api/v2/jobs", alice, "text/yaml", file), 202);
    struct job_id job = {1};
    struct buf out = BUF_INIT;
    for (int i = 0; i < 4; i++) {
        world_run(world, job);
        struct attempt_id attempt = world_attempt(world, job, 0);
        assert_true(attempt.v != 0);
        buf_format(&world_log(world, attempt)->text, "try %d\n", i);
        if (i == 1) { /* a follow that begins here shows this try and what comes */
            assert_int_equal(world_get(world, "/api/v2/jobs/fast/logs?follow=true", alice), 200);
            assert_int_equal(world_stream(world), 6);
            assert_body(world, "try 1");
        }
        world_log(world, attempt)->is_ended = true;
        world_exit(world, job, 0, 3);
    }
    assert_int_equal(world_read_all(world, &out), HTTP_STREAM_END);
    assert_string_equal(buf_cstr(&out), "try 2\ntry 3\n");
    /* from the start; and on from the middle of the second try, after a cut connection */
    assert_int_equal(world_get(world, "/api/v2/jobs/fast/logs?follow=true&after=0", alice), 200);
    assert_int_equal(world_read_all(world, &out), HTTP_STREAM_END);
    assert_string_equal(buf_cstr(&out), "try 0\ntry 1\ntry 2\ntry 3\n");
    assert_int_equal(world_get(world, "/api/v2/jobs/fast/logs?follow=true&after=0&offset=9", alice),
                     200);
    assert_int_equal(world_read_all(world, &out), HTTP_STREAM_END);
    assert_string_equal(buf_cstr(&out), " 1\ntry 2\ntry 3\n");
    assert_int_equal(world_get(world, "/api/v2/jobs/fast/logs", alice), 200);
    assert_true(world_read_all(world, &out) < 0);
    assert_string_equal(buf_cstr(&out), "try 3\n");
    buf_release(&out);
}

/* Each attempt of a task has a log of its own, under its number. */
static void test_log_of_each_attempt(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct text file = TEXT("protocolVersion: 2\nname: again\ntype: job\nextras: {gangAllocation: "
                            "false}\nprerequisites:\n"
                            "- {name: i, type: dockerimage, uri: d}\ntaskRoles:\n"
                            "  w:\n    dockerImage: i\n    taskRetryCount: 2\n"
                            "    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}\n"
                            "    commands: [x]\n");
    assert_int_equal(world_ask(world, HTTP_POST, "/api/v2/jobs", alice, "text/yaml", file), 202);
    struct job_id job = {1};
    struct buf out = BUF_INIT, wanted = BUF_INIT;
    char path[128];
    for (int i = 0; i < 3; i++) {
        world_run(world, job);
        struct world_attempt_log *log = world_log(world, world_attempt(world, job, 0));
        buf_format(&log->text, "try %d\n", i);
        log->is_ended = true;
        world_exit(world, job, 0, 3);
    }
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path,
                 "/api/v2/jobs/again/attempts/0/taskRoles/w/taskIndex/0/attempts/%d/logs/all", i);
        assert_int_equal(world_get(world, path, alice), i < 3 ? 200 : 404);
        if (i == 3)
            break;
        world_read_all(world, &out);
        buf_clear(&wanted);
        buf_format(&wanted, "try %d\n", i);
        assert_string_equal(buf_cstr(&out), buf_cstr(&wanted));
    }
    buf_release(&wanted);
    buf_release(&out);
}

/* Who reads from an offset is told how much of what he asked for is gone; who asks for the last
 * lines misses nothing, and is told where they begin. */
static void test_log_removed(void **state)
{
    static const struct {
        const char *query, *removed, *offset;
    } cases[] = {
        {"", "8", ""},
        {"?offset=3", "5", ""},
        {"?offset=8", "", ""},
        {"?tail=4", "", "10"},
        {"?tail=99", "", "8"},
        {"?tail-lines=1", "", "8"},
        {"?offset=3&tail=4", "", "10"},
        {"?offset=9", "", ""},
        {"?tail-lines=0", "", "14"},
        {"?offset=3&tail-lines=1", "", "8"},
        {"?since=0", "8", "8"},
    };
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "removed", 1);
    world_run(world, job);
    struct world_attempt_log *log = world_log(world, world_attempt(world, job, 0));
    buf_string(&log->text, "gone\nalsokept\n");
    log->removed = 8;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char target[80];
        snprintf(target, sizeof target, "/api/v2/jobs/removed/logs%s", cases[i].query);
        assert_int_equal(world_get(world, target, alice), 200);
        assert_string_equal(world->removed, cases[i].removed);
        assert_string_equal(world->offset, cases[i].offset);
    }
}

/* With several engines, a log is read where the attempt ran, whichever path names it. */
static void test_engine_of_attempt(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "far", 1);
    struct buf out = BUF_INIT;
    world_run(world, job);
    world->engine = 1;
    buf_string(&world_log(world, world_attempt(world, job, 0))->text, "a line\n");
    static const char *const PATHS[] = {
        "/api/v2/jobs/far/logs",
        "/api/v2/jobs/far/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs/all",
        "/api/v2/jobs/far/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs/all?tail=100",
        "/api/internal/tail-logs/far:0:worker:0:0:all",
    };
    for (size_t i = 0; i < COUNT_OF(PATHS); i++) {
        assert_int_equal(world_get(world, PATHS[i], alice), i == 3 ? 206 : 200);
        world_read_all(world, &out);
        assert_string_equal(buf_cstr(&out), "a line\n");
    }
    buf_release(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_logs, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_log_range, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_log_since, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_log_tail, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_log_follow, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_log_follow_of_a_start, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_log_follow_without_readers, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_log_follow_before_the_container, world_setup,
                                    world_teardown),
    cmocka_unit_test_setup_teardown(test_log_follow_of_none, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_log_follow_of_a_quick_one, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_log_of_an_engine_that_cannot_follow, world_setup,
                                    world_teardown),
    cmocka_unit_test_setup_teardown(test_log_follow_sleeps, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_log_follow_let_go, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_log_followers, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_log_follow_fast_retries, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_log_of_each_attempt, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_log_removed, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_engine_of_attempt, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
