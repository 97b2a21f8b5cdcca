/* Every path of the API over a real store and core, as two users and an admin see it. */
#include "api/token.h"
#include "base/memory.h"
#include "world.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define assert_body(world, part)                                                                   \
    do {                                                                                           \
        if (!world_body_has((world), (part)))                                                      \
            fail_msg("'%s' is not in: %s", (part), buf_cstr(&(world)->body));                      \
    } while (0)
#define assert_no_body(world, part) assert_false(world_body_has((world), (part)))

static int setup(void **state)
{
    *state = world_new();
    return 0;
}

static int teardown(void **state)
{
    world_free(*state);
    return 0;
}

/* ---- who are you ---- */

static void test_tokens(void **state)
{
    struct world *world = *state;
    assert_int_equal(world_get(world, "/api/v2/jobs", NULL), 401);
    assert_body(world, "\"code\":\"UnauthorizedUserError\"");
    assert_int_equal(world_get(world, "/api/v2/jobs", "rubbish"), 401);
    assert_int_equal(world_get(world, "/api/v2/jobs", "Digest x"), 401);
    assert_int_equal(world_get(world, "/api/v2/jobs", "Basic !!!"), 401);
    const char *token = world_login(world, "alice");
    assert_int_equal(world_get(world, "/api/v2/jobs", token), 200);
    assert_int_equal(world_get(world, "/rest-server/api/v2/jobs", token), 200);
    assert_int_equal(world_get(world, "/api/v2/tokens/check", token), 200);
    assert_body(world, "\"username\":\"alice\"");
    assert_body(world, "\"admin\":false");

    /* an application's token, also by Basic; not for what only people do */
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/tokens/application", token, ""), 200);
    char application[2048];
    sscanf(strstr(buf_cstr(&world->body), "\"token\":\"") + 9, "%2047[^\"]", application);
    assert_int_equal(world_get(world, "/api/v2/jobs", application), 200);
    assert_int_equal(world_get(world, "/api/v2/tokens", application), 403);
    assert_int_equal(world_get(world, "/api/v2/tokens", token), 200);
    assert_body(world, application);
    assert_body(world, token);

    /* revoked is revoked */
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/authn/basic/logout", token, ""), 200);
    assert_int_equal(world_get(world, "/api/v2/jobs", token), 401);
    assert_int_equal(world_get(world, "/api/v2/jobs", application), 200);
}

static void test_basic(void **state)
{
    struct world *world = *state;
    const char *token = world_login(world, "alice");
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/tokens/application", token, ""), 200);
    char application[2048], pair[2100], encoded[4096], header[4200];
    sscanf(strstr(buf_cstr(&world->body), "\"token\":\"") + 9, "%2047[^\"]", application);
    static const char LETTERS[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char *const USERS[] = {"alice", "bob"};
    for (size_t k = 0; k < COUNT_OF(USERS); k++) {
        size_t length = (size_t)snprintf(pair, sizeof pair, "%s:%s", USERS[k], application);
        size_t at = 0;
        for (size_t i = 0; i < length; i += 3) {
            uint32_t bits = (uint32_t)(unsigned char)pair[i] << 16;
            bits |= i + 1 < length ? (uint32_t)(unsigned char)pair[i + 1] << 8 : 0;
            bits |= i + 2 < length ? (uint32_t)(unsigned char)pair[i + 2] : 0;
            encoded[at++] = LETTERS[bits >> 18];
            encoded[at++] = LETTERS[bits >> 12 & 63];
            encoded[at++] = i + 1 < length ? LETTERS[bits >> 6 & 63] : '=';
            encoded[at++] = i + 2 < length ? LETTERS[bits & 63] : '=';
        }
        encoded[at] = '\0';
        snprintf(header, sizeof header, "Basic %s", encoded);
        assert_int_equal(world_get(world, "/api/v2/jobs", header), k == 0 ? 200 : 401);
    }
}

static void test_login(void **state)
{
    struct world *world = *state;
    const char *path = "/api/v2/authn/basic/login";
    static const struct {
        const char *body, *code;
    } BAD[] = {
        {"", "InvalidParametersError"},
        {"{", "InvalidParametersError"},
        {"[]", "InvalidParametersError"},
        {"{\"username\":1,\"password\":\"x\"}", "InvalidParametersError"},
        {"{\"username\":\"alice\"}", "InvalidParametersError"},
        {"{\"username\":\"alice\",\"password\":\"alice-password\",\"expiration\":59}",
         "InvalidParametersError"},
        {"{\"username\":\"nobody\",\"password\":\"secret\"}", "IncorrectPasswordError"},
        {"{\"username\":\"alice\",\"password\":\"wrong\"}", "IncorrectPasswordError"},
    };
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        assert_int_equal(world_send(world, HTTP_POST, path, NULL, BAD[i].body), 400);
        assert_body(world, BAD[i].code);
    }
    assert_int_equal(world_ask(world, HTTP_POST, "/api/v1/token", NULL,
                               "application/x-www-form-urlencoded",
                               TEXT("username=alice&password=alice%2Dpassword&expiration=60")),
                     200);
    assert_body(world, "\"user\":\"alice\"");
    assert_int_equal(world_send(world, HTTP_POST, "/api/v1/token", NULL,
                                "{\"username\":\"alice\",\"password\":\"wrong\"}"),
                     400);
    assert_body(world, "\"error\":\"AuthenticationFailed\"");
}

static void test_token_forms(void **state)
{
    (void)state;
    struct arena arena;
    struct err err;
    struct text token;
    uint8_t key[TOKEN_KEY_SIZE] = {1}, other[TOKEN_KEY_SIZE] = {2};
    struct token_claims read, claims = {.id = "i", .user = "alice", .issued_s = 5, .expires_s = 9};
    arena_init(&arena);
    assert_int_equal(token_sign(key, &claims, &arena, &token, &err), 0);
    assert_int_equal(token_verify(key, token, 8, &arena, &read, &err), 0);
    assert_string_equal(read.user, "alice");
    assert_string_equal(read.id, "i");
    assert_int_equal(read.expires_s, 9);
    assert_int_equal(token_verify(key, token, 9, &arena, &read, &err), ERR_UNAUTHORIZED);
    assert_int_equal(token_verify(other, token, 8, &arena, &read, &err), ERR_UNAUTHORIZED);
    /* {"alg":"none"}, the signature left out */
    assert_int_equal(
        token_verify(key, TEXT("eyJhbGciOiJub25lIn0.eyJ1c2VybmFtZSI6ImFsaWNlIiwianRpIjoiaSJ9."), 8,
                     &arena, &read, &err),
        ERR_UNAUTHORIZED);
    arena_release(&arena);
}

/* ---- jobs ---- */

static void test_job_life(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "train", 2);
    assert_body(world, "\"name\":\"alice~train\"");
    assert_int_equal(world_get(world, "/api/v2/jobs/alice~train", alice), 200);
    assert_body(world, "\"subState\":\"AttemptCreationRequested\"");
    assert_body(world, "\"containerNodeName\":\"n1\"");
    assert_body(world, "\"taskRoles\":{\"worker\":{\"taskRoleStatus\":{\"name\":\"worker\"}");
    world_run(world, job);
    assert_int_equal(world_get(world, "/api/v2/jobs/train", alice), 200);
    assert_body(world, "\"state\":\"RUNNING\"");
    /* a job that waits for room: its tasks have no attempt yet, and that is no error */
    world_submit(world, alice, "large", 60);
    assert_int_equal(
        world_get(world, "/api/v2/jobs/large/attempts/0/taskRoles/worker/taskIndex/7/attempts",
                  alice),
        200);
    assert_body(world, "\"taskState\":\"WAITING\"");
    assert_body(world, "\"attempts\":[]");
    world_exit(world, job, 0, 0);
    world_exit(world, job, 1, 0);
    assert_int_equal(world_get(world, "/api/v2/jobs/train", alice), 200);
    assert_body(world, "\"state\":\"SUCCEEDED\"");
    assert_body(world, "\"appExitCode\":0,\"appOriginalExitCode\":0");
    assert_int_equal(world_get(world, "/api/v2/jobs/train/attempts/0", alice), 200);
    assert_int_equal(world_get(world, "/api/v2/jobs/train/attempts/1", alice), 404);
    assert_int_equal(world_get(world, "/api/v2/jobs/train/attempts/x", alice), 400);
    assert_int_equal(world_get(world, "/api/v2/jobs/train/job-attempts", alice), 200);
    assert_body(world, "\"isLatest\":true");
    assert_int_equal(world_get(world, "/api/v2/jobs/train/job-attempts/0", alice), 200);
    assert_body(world, "\"totalGpuNumber\":");
    assert_body(world, "\"totalTaskNumber\":");
    assert_body(world, "\"totalTaskRoleNumber\":");
    assert_body(world, "\"uid\":\"1.0\"");
    assert_int_equal(world_get(world, "/api/v2/jobs/train/job-attempts/healthz", alice), 200);
    assert_int_equal(
        world_get(world, "/api/v2/jobs/train/attempts/0/taskRoles/worker/taskIndex/1/attempts",
                  alice),
        200);
    assert_body(world, "\"attempts\":[{\"attemptId\":0");
    assert_int_equal(
        world_get(world, "/api/v2/jobs/train/attempts/0/taskRoles/worker/taskIndex/2/attempts",
                  alice),
        404);
    assert_body(world, "NoTaskError");
    assert_int_equal(world_get(world, "/api/v2/jobs/train/ssh", alice), 404);
    assert_body(world, "NoJobSshInfoError");
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/jobs/train", alice, ""), 202);
    assert_int_equal(world_get(world, "/api/v2/jobs/train", alice), 404);
    assert_body(world, "\"code\":\"NoJobError\"");
}

static void test_job_stop(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "stop", 1);
    const char *path = "/api/v2/jobs/alice~stop/executionType";
    world_run(world, job);
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/jobs/stop", alice, ""), 409);
    assert_int_equal(world_send(world, HTTP_PUT, path, alice, "{}"), 400);
    assert_int_equal(world_send(world, HTTP_PUT, path, alice, "{\"value\":\"PAUSE\"}"), 400);
    assert_int_equal(world_send(world, HTTP_PUT, path, alice, "{\"value\":\"STOP\"}"), 202);
    assert_body(world, "execute job stop successfully");
    world_exit(world, job, 0, 143);
    assert_int_equal(world_get(world, "/api/v2/jobs/stop", alice), 200);
    assert_body(world, "\"state\":\"STOPPED\"");
    assert_body(world, "\"executionType\":\"STOP\"");
    /* the row of the exit table, whole */
    assert_body(world, "\"appExitSpec\":{\"code\":-210,\"phrase\":\"StopFrameworkRequested\"");
    assert_body(world, "\"solution\":[");
}

static void test_submit_refused(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/jobs", alice, ""), 400);
    assert_body(world, "InvalidProtocolError");
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/jobs", alice,
                                "protocolVersion: 2\nname: x\ntype: job\ntaskRols: {}\n"),
                     400);
    assert_body(world, "\"line\":4");
    assert_body(world, "taskRoles");
    world_submit(world, alice, "twice", 1);
    struct text file = TEXT("protocolVersion: 2\nname: twice\ntype: job\nprerequisites:\n"
                            "- {name: i, type: dockerimage, uri: d}\ntaskRoles:\n  w:\n"
                            "    dockerImage: i\n    resourcePerInstance: {cpu: 1, memoryMB: 1, "
                            "gpu: 0}\n    commands: [x]\n");
    assert_int_equal(world_ask(world, HTTP_POST, "/api/v2/jobs", alice, "text/yaml", file), 409);
    assert_body(world, "ConflictJobError");
    world->refuse = ERR_BUSY;
    assert_int_equal(world_ask(world, HTTP_POST, "/api/v2/jobs", alice, "text/yaml", file), 429);
    world->refuse = ERR_UNAVAILABLE;
    assert_int_equal(world_ask(world, HTTP_POST, "/api/v2/jobs", alice, "text/yaml", file), 503);
    world->refuse = 0;
    struct buf big = BUF_INIT;
    for (int i = 0; i < HTTP_BODY_MAX + 1; i++)
        buf_char(&big, 'a');
    assert_int_equal(
        world_ask(world, HTTP_POST, "/api/v2/jobs", alice, "text/yaml", buf_as_text(&big)), 413);
    buf_release(&big);
}

static void test_list(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    world_submit(world, alice, "one", 1);
    world_submit(world, bob, "two", 1);
    /* every user sees all jobs in lists, and details */
    assert_int_equal(world_get(world, "/api/v2/jobs", bob), 200);
    assert_body(world, "\"name\":\"one\"");
    assert_int_equal(world_get(world, "/api/v2/jobs/alice~one", bob), 200);
    assert_int_equal(world_get(world, "/api/v2/jobs?username=bob&withTotalCount=true", alice), 200);
    assert_body(world, "\"totalCount\":1");
    assert_no_body(world, "\"name\":\"one\"");
    assert_int_equal(world_get(world, "/api/v2/jobs?order=jobName,DESC&limit=1", alice), 200);
    assert_body(world, "\"name\":\"two\"");
    assert_int_equal(world_get(world, "/api/v2/jobs?order=nothing&keyword=one", alice), 200);
    assert_body(world, "\"name\":\"one\"");
    assert_int_equal(world_get(world, "/api/v2/jobs?state=FAILED,SUCCEEDED", alice), 200);
    assert_body(world, "[]");
    assert_int_equal(world_get(world, "/api/v2/jobs?jobPriority=default,prod", alice), 200);
    assert_body(world, "\"name\":\"two\"");
    static const char *const BAD[] = {"limit=50001", "limit=-1",  "limit=x",
                                      "offset=-1",   "state=BAD", "jobPriority=none"};
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        char target[100];
        snprintf(target, sizeof target, "/api/v2/jobs?%s", BAD[i]);
        assert_int_equal(world_get(world, target, alice), 400);
        assert_body(world, "InvalidParametersError");
    }
}

static void test_tags(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    world_submit(world, alice, "one", 1);
    const char *path = "/api/v2/jobs/alice~one/tag";
    assert_int_equal(world_send(world, HTTP_PUT, path, alice, "{\"value\":\"blue\"}"), 200);
    assert_int_equal(world_send(world, HTTP_PUT, path, alice, "{\"value\":\"blue\"}"), 200);
    assert_int_equal(world_send(world, HTTP_PUT, path, alice, "{\"value\":\"a,b\"}"), 400);
    assert_int_equal(world_send(world, HTTP_PUT, path, alice, "{}"), 400);
    assert_body(world, "value is missing");
    /* nothing that a terminal would obey: ESC, CSI in one character, newline, NUL */
    static const char *const OBEYED[] = {"\\u001b[2J", "\\u009b2J", "a\\nb", "blue\\u0000",
                                         "\\u007f"};
    for (size_t i = 0; i < COUNT_OF(OBEYED); i++) {
        char body[64];
        snprintf(body, sizeof body, "{\"value\":\"%s\"}", OBEYED[i]);
        assert_int_equal(world_send(world, HTTP_PUT, path, alice, body), 400);
        assert_int_equal(world_send(world, HTTP_DELETE, path, alice, body), 404);
    }
    assert_int_equal(world_send(world, HTTP_PUT, path, bob, "{\"value\":\"red\"}"), 403);
    assert_int_equal(world_get(world, "/api/v2/jobs?tagsContain=blue", alice), 200);
    assert_body(world, "\"tags\":[\"blue\"]");
    assert_int_equal(world_get(world, "/api/v2/jobs?tagsNotContain=blue", alice), 200);
    assert_body(world, "[]");
    assert_int_equal(world_send(world, HTTP_DELETE, path, alice, "{\"value\":\"blue\"}"), 200);
    assert_int_equal(world_send(world, HTTP_DELETE, path, alice, "{\"value\":\"blue\"}"), 404);
    assert_body(world, "NoTagError");
}

/* A user without the right never sees another's secret, configuration or log. */
static void test_privacy(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob"),
               *admin = world_login(world, "admin");
    struct job_id job = world_submit(world, alice, "private", 1);
    world_run(world, job);
    buf_string(&world_log(world, world_attempt(world, job, 0))->text, "alice's log\n");
    static const char *const OWN[] = {
        "/api/v2/jobs/alice~private/config",
        "/api/v1/user/alice/jobs/private/config",
        "/api/v1/jobs/alice~private/config",
        "/api/v2/jobs/alice~private/logs",
        "/api/v2/jobs/alice~private/logs?follow=true",
        "/api/v2/jobs/alice~private/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs",
        "/api/v2/jobs/alice~private/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs/all",
    };
    for (size_t i = 0; i < COUNT_OF(OWN); i++) {
        assert_int_equal(world_get(world, OWN[i], bob), 403);
        assert_body(world, "ForbiddenUserError");
        assert_no_body(world, "alice's log");
        assert_int_equal(world_get(world, OWN[i], NULL), 401);
        assert_int_equal(world_get(world, OWN[i], alice), 200);
        assert_no_body(world, "hush-hush"); /* not even to the owner */
        assert_int_equal(world_get(world, OWN[i], admin), 200);
        assert_no_body(world, "hush-hush");
    }
    static const char *const ALL[] = {"/api/v2/jobs", "/api/v2/jobs/alice~private",
                                      "/api/v2/jobs/alice~private/events",
                                      "/api/v2/jobs/alice~private/job-attempts"};
    for (size_t i = 0; i < COUNT_OF(ALL); i++) {
        assert_int_equal(world_get(world, ALL[i], bob), 200);
        assert_no_body(world, "hush-hush");
    }
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/jobs/alice~private/executionType", bob,
                                "{\"value\":\"STOP\"}"),
                     403);
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/jobs/alice~private", bob, ""), 403);
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/jobs/alice~private/release", bob, "{}"),
                     403);
    assert_int_equal(world_send(world, HTTP_PUT,
                                "/api/v2/jobs/alice~private/taskRoles/worker/instances", bob,
                                "{\"instances\":2}"),
                     403);
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/nodes/n1/pardon", bob, "{}"), 403);
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/nodes/n1/pardon", admin, "{}"), 202);
    world->api.config.is_config_shared = world->api.config.is_log_shared = true;
    for (size_t i = 0; i < COUNT_OF(OWN); i++)
        assert_int_equal(world_get(world, OWN[i], bob), 200);
}

/* ---- logs and stories ---- */

static ssize_t read_all(struct world *world, struct buf *out)
{
    ssize_t length;
    buf_clear(out);
    while ((length = world_stream(world)) > 0)
        buf_text(out, buf_as_text(&world->body));
    return length;
}

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
    read_all(world, &out);
    assert_int_equal(out.length, log->text.length);
    assert_int_equal(world_get(world, "/api/v2/jobs/log/logs?tail-lines=2", alice), 200);
    read_all(world, &out);
    assert_string_equal(buf_cstr(&out), "line 1998\nline 1999\n");
    assert_int_equal(world_get(world, "/api/v2/jobs/log/logs?tail=5", alice), 200);
    read_all(world, &out);
    assert_string_equal(buf_cstr(&out), "1999\n");
    assert_int_equal(world_get(world, "/api/v2/jobs/log/logs?offset=7&tail-lines=5000", alice),
                     200);
    read_all(world, &out);
    assert_int_equal(out.length, log->text.length);
    assert_int_equal(world_get(world,
                               "/api/v2/jobs/log/attempts/0/taskRoles/worker/taskIndex/0/attempts/"
                               "0/logs?tail-mode=true",
                               alice),
                     200);
    assert_body(world, "/attempts/0/logs/stdout?tail-mode=true");
    assert_int_equal(world_get(world,
                               "/api/v2/jobs/log/attempts/0/taskRoles/worker/taskIndex/0/attempts/"
                               "0/logs/all?tail-mode=1",
                               alice),
                     200);
    read_all(world, &out);
    assert_int_equal(out.length, 16384);
    static const char *const MISSING[] = {
        "/api/v2/jobs/log/logs?role=none",
        "/api/v2/jobs/log/logs?index=7",
        "/api/v2/jobs/log/logs?stream=none",
        "/api/v2/jobs/log/attempts/0/taskRoles/worker/taskIndex/0/attempts/9/logs",
        "/api/v2/jobs/log/attempts/9/taskRoles/worker/taskIndex/0/attempts/0/logs",
    };
    for (size_t i = 0; i < COUNT_OF(MISSING); i++)
        assert_int_equal(world_get(world, MISSING[i], alice), 404);
    assert_int_equal(world_get(world, "/api/v2/jobs/log/logs?tail=0", alice), 400);
    buf_release(&out);
}

/* What is left of a log that is gone: its last lines, in the history and as the log. */
static void test_log_tail(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    struct job_id job = world_submit(world, alice, "gone", 1);
    world_run(world, job);
    struct attempt_id attempt = world_attempt(world, job, 0);
    struct store_change change = {.kind = CHANGE_END,
                                  .end = {.attempt = attempt,
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
    change.end.tail = (struct text){long_text, sizeof long_text};
    assert_int_equal(store_commit(world->store, &batch, &err), 0);
    assert_int_equal(change.code, ERR_TOO_BIG);
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/jobs/gone", alice, ""), 202);
    struct store_reader *reader = NULL;
    struct arena arena;
    struct store_end end;
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

/* Attempts that began and ended between two looks are all told, in order, none twice. */
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
    assert_int_equal(read_all(world, &out), HTTP_STREAM_END);
    assert_string_equal(buf_cstr(&out), "try 2\ntry 3\n");
    /* from the start; and on from the middle of the second try, after a cut connection */
    assert_int_equal(world_get(world, "/api/v2/jobs/fast/logs?follow=true&after=0", alice), 200);
    assert_int_equal(read_all(world, &out), HTTP_STREAM_END);
    assert_string_equal(buf_cstr(&out), "try 0\ntry 1\ntry 2\ntry 3\n");
    assert_int_equal(world_get(world, "/api/v2/jobs/fast/logs?follow=true&after=0&offset=9", alice),
                     200);
    assert_int_equal(read_all(world, &out), HTTP_STREAM_END);
    assert_string_equal(buf_cstr(&out), " 1\ntry 2\ntry 3\n");
    assert_int_equal(world_get(world, "/api/v2/jobs/fast/logs", alice), 200);
    assert_true(read_all(world, &out) < 0);
    assert_string_equal(buf_cstr(&out), "try 3\n");
    buf_release(&out);
}

static void test_events(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct job_id job = world_submit(world, alice, "story", 1);
    world_run(world, job);
    assert_int_equal(world_get(world, "/api/v2/jobs/story/events", alice), 200);
    assert_body(world, "\"totalCount\":");
    assert_body(world, "\"type\":\"Normal\"");
    assert_int_equal(world_get(world, "/api/v2/jobs/story/events?type=Warning", alice), 200);
    assert_no_body(world, "\"type\":\"Normal\"");
    assert_int_equal(world_get(world, "/api/v2/jobs/story/events?type=Bad", alice), 400);
    assert_int_equal(world_get(world, "/api/v2/jobs/story/events?limit=0", alice), 400);

    assert_int_equal(world_get(world, "/api/v2/jobs/story/events?follow=true", alice), 200);
    assert_string_equal(world->content_type, "application/x-ndjson");
    struct buf out = BUF_INIT;
    assert_int_equal(read_all(world, &out), HTTP_STREAM_WAIT);
    size_t before = out.length;
    assert_true(before > 0);
    world_exit(world, job, 0, 0);
    assert_int_equal(read_all(world, &out), HTTP_STREAM_END);
    assert_true(out.length > 0);
    buf_release(&out);
}

/* ---- the rest ---- */

static void test_v1(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    const char *job =
        "{ // a comment\n\"jobName\": \"old\", \"image\": \"debian\",\n\"taskRoles\": "
        "[{\"name\": \"w\", \"taskNumber\": 1, \"cpuNumber\": 1, \"memoryMB\": 100, "
        "\"gpuNumber\": 0, \"command\": \"true\"}]}";
    assert_int_equal(world_send(world, HTTP_POST, "/api/v1/jobs", alice, job), 202);
    assert_body(world, "update job old successfully");
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v1/jobs/other", alice, job), 400);
    assert_body(world, "body:2:");
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v1/user/alice/jobs/old", bob, job), 403);
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v1/user/alice/jobs/old", alice, job), 409);
    assert_body(world, "\"error\":\"DuplicateJobSubmission\"");
    assert_int_equal(world_get(world, "/api/v1/jobs", bob), 200);
    assert_body(world, "\"name\":\"old\"");
    assert_no_body(world, "debugId");
    assert_int_equal(world_get(world, "/api/v1/user/bob/jobs", alice), 200);
    assert_body(world, "[]");
    assert_int_equal(world_get(world, "/api/v1/user/alice/jobs/old", bob), 200);
    assert_int_equal(world_get(world, "/api/v1/jobs/old/config", alice), 200);
    assert_body(world, "// a comment");
    assert_string_equal(world->content_type, "application/json; charset=utf-8");
    assert_int_equal(world_get(world, "/api/v1/jobs/none", alice), 404);
    assert_body(world, "\"error\":\"JobNotFound\"");
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v1/jobs/old/executionType", alice,
                                "{\"value\":\"STOP\"}"),
                     202);
    assert_body(world, "execute job old successfully");
}

static void test_near_names(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    world_submit(world, alice, "train-digits", 1);
    world_submit(world, alice, "evaluate", 1);
    assert_int_equal(world_get(world, "/api/v2/jobs/train-digist", alice), 404);
    assert_body(world, "there is no job alice~train-digist, did you mean alice~train-digits?");
    assert_int_equal(world_get(world, "/api/v2/jobs/alice~trian-digits/config", alice), 404);
    assert_body(world, "did you mean alice~train-digits?");
    assert_int_equal(world_get(world, "/api/v2/jobs/something", alice), 404);
    assert_no_body(world, "did you mean");
    assert_int_equal(world_get(world, "/api/v2/jobs/bob~train-digist", alice), 404);
    assert_no_body(world, "did you mean");
}

static void test_barrier(void **state)
{
    struct world *world = *state;
    static const char PATH[] = "/api/internal/attempts/7/barriers/start";
    assert_int_equal(world_send(world, HTTP_POST, PATH, "of-the-try", ""), 200);
    assert_body(world, "\"state\":\"passed\"");
    assert_int_equal(world->barrier.attempt.v, 7);
    assert_int_equal(world->barrier.kind, BARRIER_START);
    assert_true(world->barrier.is_up && world->barrier.is_waiting);
    assert_int_equal(world_send(world, HTTP_POST,
                                "/api/internal/attempts/8/barriers/ssh?missing=1&report=1",
                                "of-the-try", ""),
                     200);
    assert_body(world, "\"state\":\"noted\"");
    assert_int_equal(world->barrier.kind, BARRIER_SSH);
    assert_false(world->barrier.is_up || world->barrier.is_waiting);
    world->barrier_code = ERR_CONFLICT;
    assert_int_equal(world_send(world, HTTP_POST, PATH, "of-the-try", ""), 409);
    assert_body(world, "\"code\":\"BarrierBrokenError\",\"message\":\"w-1 has ended\"");
    world->barrier_code = ERR_NOT_FOUND;
    assert_int_equal(world_send(world, HTTP_POST, PATH, "of-the-try", ""), 404);
    world->barrier_code = 0;
    /* a user's token is of no use here, nor the try's anywhere else */
    assert_int_equal(world_send(world, HTTP_POST, PATH, world_login(world, "admin"), ""), 401);
    assert_int_equal(world_send(world, HTTP_POST, PATH, NULL, ""), 401);
    assert_int_equal(world_get(world, "/api/v2/jobs", "of-the-try"), 401);
    assert_int_equal(
        world_send(world, HTTP_POST, "/api/internal/attempts/7/barriers/other", "of-the-try", ""),
        404);
    assert_int_equal(
        world_send(world, HTTP_POST, "/api/internal/attempts/x/barriers/start", "of-the-try", ""),
        400);
}

static void test_health(void **state)
{
    struct world *world = *state;
    assert_int_equal(world_get(world, "/healthz", NULL), 200);
    assert_int_equal(world_get(world, "/livez", NULL), 200);
    assert_int_equal(world_get(world, "/readyz?verbose", NULL), 200);
    assert_body(world, "[+] store ok");
    world->refuse = ERR_UNAVAILABLE;
    assert_int_equal(world_get(world, "/readyz", NULL), 503);
    world->refuse = 0;
    assert_int_equal(world_get(world, "/metrics", NULL), 200);
    assert_body(world, "skep_jobs{state=\"WAITING\"} 0");
    assert_body(world, "skep_test 1");
    assert_int_equal(world_get(world, "/api/v1", NULL), 200);
    assert_int_equal(world_get(world, "/api/v2/", NULL), 200);
    assert_int_equal(world_get(world, "/api/v2/info", NULL), 200);
    assert_body(world, "\"authnMethod\":\"basic\"");
    assert_int_equal(world_get(world, "/api/v2/authn/info", NULL), 200);
    assert_int_equal(world_get(world, "/api/v3/jobs", NULL), 404);
    assert_body(world, "NoApiError");
    assert_int_equal(world_ask(world, HTTP_OPTIONS, "/api/v2/jobs", NULL, NULL, TEXT("")), 204);
    assert_int_equal(world_get(world, "/api/v2/nodes", world_login(world, "bob")), 200);
    assert_body(world, "\"name\":\"n1\"");
}

/* ---- virtual clusters ---- */

static void test_virtual_clusters(void **state)
{
    struct world *plain = *state, *world = world_new_policy("hived");
    const char *alice = world_login(world, "alice"), *admin = world_login(world, "admin");
    struct job_id job = world_submit(world, alice, "gang", 2);
    world_run(world, job);
    assert_int_equal(world_get(world, "/api/v2/virtual-clusters", alice), 200);
    assert_body(world, "\"default\":{\"dedicated\":false");
    assert_body(world, "\"resourcesTotal\":{\"cpu\":8,");
    assert_body(world, "\"skus\":{");
    assert_int_equal(world_get(world, "/api/v2/virtual-clusters/default", alice), 200);
    assert_int_equal(world_get(world, "/api/v1/virtual-clusters/none", alice), 404);
    assert_body(world, "\"code\":\"NoVirtualClusterError\",\"error\":\"VirtualClusterNotFound\"");
    assert_int_equal(world_get(world, "/api/v2/virtual-clusters/a%2Fb", alice), 400);
    assert_int_equal(world_get(world, "/api/v2/virtual-clusters?nodes", alice), 200);
    assert_body(world, "{\"n1\":{\"gpuUsed\":0,\"gpuAvailable\":4,\"gpuTotal\":4}}");
    assert_int_equal(world_get(world, "/api/v2/cluster/sku-types", alice), 200);
    assert_body(world, "\"gpu\":1");
    assert_int_equal(world_get(world, "/api/v2/cluster/sku-types?vc=default", alice), 200);
    assert_int_equal(world_get(world, "/api/v2/cluster/sku-types?vc=", alice), 200);
    assert_int_equal(world_get(world, "/api/v2/cluster/sku-types?vc=none", alice), 404);
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/virtual-clusters/default", admin,
                                "{\"vcCapacity\":1}"),
                     400);
    assert_body(world, "NotImplementedError");
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/virtual-clusters/default", alice, ""),
                     403);

    assert_int_equal(world_get(world, "/v1/inspect/affinitygroups/", alice), 200);
    assert_body(world, "{\"items\":[");
    assert_int_equal(world_get(world, "/v1/inspect/affinitygroups/none", alice), 400);
    assert_body(world, "\"hivedscheduler: User Error: there is no affinity group none\"");
    /* gangs' names have a slash */
    assert_int_equal(world_get(world, "/v1/inspect/affinitygroups/alice~gang%2F0/", alice), 200);
    assert_body(world, "{\"metadata\":{\"name\":\"alice~gang/0\"}");
    assert_int_equal(world_get(world, "/v1/inspect/affinitygroups/alice~gang/0", alice), 200);
    assert_body(world, "{\"metadata\":{\"name\":\"alice~gang/0\"}");
    assert_int_equal(world_get(world, "/v1/inspect/affinitygroups/alice~gang/9", alice), 400);
    assert_int_equal(world_get(world, "/v1/inspect/clusterstatus", alice), 200);
    assert_body(world, "\"physicalCluster\"");
    assert_int_equal(world_get(world, "/v1/inspect/clusterstatus/physicalcluster", alice), 200);
    assert_body(world, "\"cellState\":\"Used\"");
    assert_int_equal(world_get(world, "/v1/inspect/clusterstatus/virtualclusters/", alice), 200);
    assert_int_equal(world_get(world, "/v1/inspect/clusterstatus/virtualclusters/default", alice),
                     200);
    assert_int_equal(world_get(world, "/v1/inspect/clusterstatus/virtualclusters/none", alice),
                     400);
    assert_int_equal(world_get(world, "/v1/inspect", alice), 200);
    /* errors of all kinds as its clients know them */
    assert_int_equal(world_get(world, "/v1/inspect/clusterstatus", NULL), 401);
    assert_body(world, "\"hivedscheduler: User Error: log in first");
    assert_int_equal(world_get(world, "/v1/inspect/nothing", alice), 404);
    assert_body(world, "\"hivedscheduler: User Error: no such path: /v1/inspect/nothing\"");
    assert_int_equal(world_send(world, HTTP_POST, "/v1/inspect/clusterstatus", alice, ""), 400);
    assert_body(world, "\"hivedscheduler: User Error: NotImplemented\"");
    world_free(world);

    /* another policy: all nodes are one virtual cluster */
    alice = world_login(plain, "alice");
    assert_int_equal(world_get(plain, "/api/v2/virtual-clusters/default", alice), 200);
    assert_body(plain, "\"resourcesTotal\":{\"cpu\":8,\"memory\":16384,\"gpu\":4");
    assert_int_equal(world_get(plain, "/api/v2/virtual-clusters/none", alice), 404);
    assert_int_equal(world_get(plain, "/api/v2/cluster/sku-types", alice), 200);
    assert_string_equal(buf_cstr(&plain->body), "{}");
    assert_int_equal(world_get(plain, "/v1/inspect/clusterstatus", alice), 400);
    world_run(plain, world_submit(plain, alice, "pair", 2));
    assert_int_equal(world_get(plain, "/api/v2/virtual-clusters", alice), 200);
    assert_body(plain, "\"resourcesUsed\":{\"cpu\":2,\"memory\":200,\"gpu\":0");
    assert_int_equal(world_get(plain, "/api/v2/virtual-clusters?nodes", alice), 200);
    assert_body(plain, "{\"n1\":{\"gpuUsed\":0,\"gpuAvailable\":4,\"gpuTotal\":4}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tokens, setup, teardown),
        cmocka_unit_test_setup_teardown(test_basic, setup, teardown),
        cmocka_unit_test_setup_teardown(test_login, setup, teardown),
        cmocka_unit_test_setup_teardown(test_job_life, setup, teardown),
        cmocka_unit_test_setup_teardown(test_job_stop, setup, teardown),
        cmocka_unit_test_setup_teardown(test_submit_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_list, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tags, setup, teardown),
        cmocka_unit_test_setup_teardown(test_privacy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_logs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log_tail, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log_follow, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log_followers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log_follow_fast_retries, setup, teardown),
        cmocka_unit_test_setup_teardown(test_events, setup, teardown),
        cmocka_unit_test_setup_teardown(test_v1, setup, teardown),
        cmocka_unit_test_setup_teardown(test_near_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_barrier, setup, teardown),
        cmocka_unit_test_setup_teardown(test_health, setup, teardown),
        cmocka_unit_test_setup_teardown(test_virtual_clusters, setup, teardown),
        cmocka_unit_test(test_token_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
