/* One action for many jobs: which ones, what becomes of each, and what is written down. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { JOBS = 70 }; /* more than are under way at once */

static int ask(struct world *world, const char *token, const char *query, const char *body)
{
    char target[256];
    snprintf(target, sizeof target, "/api/v2/bulk/jobs%s", query);
    return world_send(world, HTTP_POST, target, token, body);
}

static size_t count(const struct world *world, const char *words)
{
    size_t found = 0;
    for (const char *at = buf_cstr(&world->body); (at = strstr(at, words)); at += strlen(words))
        found++;
    return found;
}

static void jobs_of(struct world *world, const char *token, const char *prefix, int jobs)
{
    for (int i = 0; i < jobs; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%d", prefix, i);
        world_submit(world, token, name, 1);
    }
}

static void test_names(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    jobs_of(world, alice, "a", 2);
    jobs_of(world, bob, "b", 1);
    assert_int_equal(
        ask(world, alice, "",
            "{\"action\":\"stop\",\"jobs\":[\"alice~a0\",\"bob~b0\",\"alice~none\",\"a1\"]}"),
        200);
    assert_body(world, "\"matched\":4,\"done\":2,\"failed\":2,");
    assert_body(world, "{\"name\":\"alice~a0\",\"outcome\":\"done\"}");
    assert_body(world, "{\"name\":\"alice~a1\",\"outcome\":\"done\"}");
    assert_body(world, "{\"name\":\"bob~b0\",\"outcome\":\"forbidden\",\"message\":");
    /* nobody looks for names alike a thousand times */
    assert_body(world, "{\"name\":\"alice~none\",\"outcome\":\"not-found\",\"message\":\"there "
                       "is no job alice~none\"}");
    assert_int_equal(world_get(world, "/api/v2/jobs/alice~a0", alice), 200);
    assert_body(world, "\"executionType\":\"STOP\"");
    assert_int_equal(world_get(world, "/api/v2/jobs/bob~b0", alice), 200);
    assert_body(world, "\"executionType\":\"START\"");
    /* what the core refuses: it lives */
    assert_int_equal(ask(world, bob, "", "{\"action\":\"delete\",\"jobs\":[\"b0\"]}"), 200);
    assert_body(world, "\"outcome\":\"conflict\"");
    /* each has its own record, and the request none */
    const char *admin = world_login(world, "admin");
    assert_int_equal(world_get(world, "/api/v2/audit?user=alice&limit=4", admin), 200);
    assert_int_equal(count(world, "\"route\":\"POST /api/v2/bulk/jobs\""), 4);
    assert_int_equal(count(world, "\"after\":{\"action\":\"stop\"}"), 2);
    assert_int_equal(count(world, "\"outcome\":\"forbidden\""), 1);
    assert_body(world, "\"subject\":\"alice~none\",\"outcome\":\"not-found\"");
}

static void test_filter(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    jobs_of(world, alice, "a", JOBS);
    jobs_of(world, bob, "b", 1);
    /* a dry run does nothing, and says what it would be done to */
    assert_int_equal(ask(world, alice, "?all=true&dryRun=true", "{\"action\":\"stop\"}"), 200);
    assert_body(world, "\"dryRun\":true,\"matched\":70,\"done\":0,\"failed\":0,");
    assert_int_equal(count(world, "\"outcome\":\"selected\""), JOBS);
    assert_int_equal(ask(world, alice, "?keyword=a1&limit=3", "{\"action\":\"stop\"}"), 200);
    assert_body(world, "\"matched\":11,\"done\":3,\"failed\":0,");
    assert_int_equal(ask(world, alice, "?all=true", "{\"action\":\"stop\"}"), 200);
    assert_body(world, "\"matched\":67,\"done\":67,\"failed\":0,");
    assert_int_equal(ask(world, alice, "?all=true", "{\"action\":\"stop\"}"), 200);
    assert_body(world, "\"matched\":0,\"done\":0,\"failed\":0,\"results\":[]");
    /* without a user's name: the caller's own; others' by right */
    assert_int_equal(ask(world, alice, "?username=bob", "{\"action\":\"stop\"}"), 200);
    assert_body(world, "\"matched\":1,\"done\":0,\"failed\":1,");
    const char *admin = world_login(world, "admin");
    assert_int_equal(ask(world, admin, "?all=true", "{\"action\":\"stop\"}"), 200);
    assert_body(world, "\"matched\":0,");
    assert_int_equal(ask(world, admin, "?username=bob,alice", "{\"action\":\"stop\"}"), 200);
    assert_body(world, "\"matched\":1,\"done\":1,");
    assert_int_equal(ask(world, alice, "?keyword=a2", "{\"action\":\"delete\"}"), 200);
    assert_body(world, "\"matched\":10,\"done\":10,"); /* a2 has run, and stops still */
    assert_int_equal(world_get(world, "/api/v2/jobs/alice~a20", alice), 404);
}

static void test_tags(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    jobs_of(world, alice, "a", 3);
    assert_int_equal(ask(world, alice, "?all=true", "{\"action\":\"addTag\",\"tag\":\"x\"}"), 200);
    assert_body(world, "\"done\":3,");
    assert_int_equal(
        ask(world, alice, "", "{\"action\":\"removeTag\",\"tag\":\"x\",\"jobs\":[\"a1\"]}"), 200);
    assert_int_equal(
        ask(world, alice, "?tagsContain=x&dryRun=1", "{\"action\":\"removeTag\",\"tag\":\"x\"}"),
        200);
    assert_body(world, "\"matched\":2,");
    assert_int_equal(ask(world, alice, "?all=true", "{\"action\":\"removeTag\",\"tag\":\"x\"}"),
                     200);
    assert_body(world, "\"done\":2,\"failed\":1,");
    assert_body(world, "{\"name\":\"alice~a1\",\"outcome\":\"not-found\",\"message\":\"the job has "
                       "no such tag\"}");
}

static void test_refused(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    static const struct {
        const char *query, *body;
    } BAD[] = {
        {"", "{}"},
        {"", "{\"action\":\"stop\"}"}, /* not all jobs by mistake */
        {"", "{\"action\":\"pause\",\"jobs\":[\"a\"]}"},
        {"", "{\"action\":\"stop\",\"jobs\":[]}"},
        {"", "{\"action\":\"stop\",\"jobs\":\"a\"}"},
        {"", "{\"action\":\"stop\",\"jobs\":[1]}"},
        {"?state=RUNNING", "{\"action\":\"stop\",\"jobs\":[\"a\"]}"},
        {"?state=BUSY", "{\"action\":\"stop\"}"},
        {"?all=true&limit=0", "{\"action\":\"stop\"}"},
        {"?all=true&limit=1001", "{\"action\":\"stop\"}"},
        {"?all=true", "{\"action\":\"stop\",\"tag\":\"x\"}"},
        {"?all=true", "{\"action\":\"addTag\"}"},
        {"?all=true", "{\"action\":\"addTag\",\"tag\":\"a,b\"}"},
        /* words that say nothing would find all */
        {"?vc=,", "{\"action\":\"stop\"}"},
        {"?keyword=&state=WAITING", "{\"action\":\"stop\"}"},
        {"?tagsContain=,,&all=true", "{\"action\":\"stop\"}"},
        {"?username=", "{\"action\":\"stop\"}"},
        /* nor is anything left aside */
        {"?all=true", "{\"action\":\"stop\",\"username\":\"alice\"}"},
        {"", "{\"action\":\"stop\",\"jobs\":[\"a\"],\"state\":\"RUNNING\"}"},
        {"?all=true", "{\"action\":\"stop\",\"jobs\":[\"a\"]}"},
        {"?limit=1", "{\"action\":\"stop\",\"jobs\":[\"a\"]}"},
        {"?offset=0", "{\"action\":\"stop\",\"jobs\":[\"a\"]}"},
        {"?order=jobName,ASC", "{\"action\":\"stop\",\"jobs\":[\"a\"]}"},
    };
    for (size_t i = 0; i < COUNT_OF(BAD); i++)
        if (ask(world, alice, BAD[i].query, BAD[i].body) != 400)
            fail_msg("%s %s: %d", BAD[i].query, BAD[i].body, world->status);
    /* the server cannot take it now: told of each */
    jobs_of(world, alice, "a", 1);
    world->refuse = ERR_BUSY;
    assert_int_equal(ask(world, alice, "", "{\"action\":\"stop\",\"jobs\":[\"a0\"]}"), 200);
    assert_body(world, "\"failed\":1,");
    assert_body(world, "\"outcome\":\"busy\"");
    world->refuse = 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_names, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_filter, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_tags, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_refused, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
