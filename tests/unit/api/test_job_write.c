/* Requests that change a job: submit, stop, delete, tags. */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "base/memory.h"

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

/* A virtual cluster that is not there. */
static const char keyed_file[] = "protocolVersion: 2\nname: keyed\ntype: job\nprerequisites:\n"
                                 "- {name: i, type: dockerimage, uri: d}\ntaskRoles:\n  w:\n"
                                 "    dockerImage: i\n    commands: [x]\n"
                                 "    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}\n";

static int send_keyed(struct world *world, const char *token, const char *key)
{
    world->idempotency_key = key;
    return world_ask(world, HTTP_POST, "/api/v2/jobs", token, "text/yaml", text_of(keyed_file));
}

static void test_submit_key(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    char first[400], key[STORE_SUBMIT_KEY_MAX + 2];
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = '\0';
    assert_int_equal(send_keyed(world, alice, key), 400);
    assert_body(world, "Idempotency-Key");
    assert_int_equal(send_keyed(world, alice, ""), 400);
    assert_int_equal(send_keyed(world, alice, "two words"), 400);
    assert_int_equal(send_keyed(world, alice, "caf\303\251"), 400);
    key[sizeof key - 2] = '\0';
    assert_int_equal(send_keyed(world, alice, key), 202);
    assert_string_equal(world->submit_key, key);
    snprintf(first, sizeof first, "%s", buf_cstr(&world->body));
    assert_string_equal(world->location, "/api/v2/jobs/alice~keyed");
    /* what the server answers of one that it has taken before: the same, though the job is gone */
    const struct service_answer before = {.job = {999}, .name = "keyed", .path = "", .text = ""};
    const struct service_answer other = {
        .code = ERR_CONFLICT, .path = "Idempotency-Key", .text = "another job file"};
    world->submitted_before = &before;
    assert_int_equal(send_keyed(world, alice, key), 202);
    assert_string_equal(buf_cstr(&world->body), first);
    assert_string_equal(world->location, "/api/v2/jobs/alice~keyed");
    world->submitted_before = &other;
    assert_int_equal(send_keyed(world, alice, key), 409);
    assert_body(world, "\"code\":\"IdempotencyKeyError\",\"message\":\"another job file\"");
    assert_int_equal(send_keyed(world, alice, NULL), 409);
    assert_string_equal(world->submit_key, "");
}

static void test_submit_elsewhere(void **state)
{
    struct world *plain = *state, *world = world_new_policy("hived");
    const char *admin = world_login(world, "admin");
    struct text file = TEXT("protocolVersion: 2\nname: away\ntype: job\nprerequisites:\n"
                            "- {name: i, type: dockerimage, uri: d}\ntaskRoles:\n  w:\n"
                            "    dockerImage: i\n    resourcePerInstance: {cpu: 1, memoryMB: 1, "
                            "gpu: 0}\n    commands: [x]\ndefaults: {virtualCluster: moon}\n");
    assert_int_equal(world_ask(world, HTTP_POST, "/api/v2/jobs", admin, "text/yaml", file), 403);
    assert_body(world, "\"code\":\"ForbiddenUserError\"");
    assert_body(world, "there is no virtual cluster moon");
    assert_int_equal(world_send(world, HTTP_POST, "/api/v1/jobs", admin,
                                "{\"jobName\":\"away\",\"image\":\"i\",\"virtualCluster\":"
                                "\"moon\",\"taskRoles\":[{\"name\":\"w\",\"taskNumber\":1,"
                                "\"cpuNumber\":1,\"memoryMB\":128,\"command\":\"x\"}]}"),
                     404);
    assert_body(world, "\"code\":\"NoVirtualClusterError\"");
    world_free(world);
    *state = plain;
}

/* As OpenPAI's client of API v1 submits. */
static void test_submit_form(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    struct text form = TEXT("jobName=formed&image=i&taskRoles%5B0%5D%5Bname%5D=w&"
                            "taskRoles%5B0%5D%5BtaskNumber%5D=2&taskRoles%5B0%5D%5BcpuNumber%5D=1&"
                            "taskRoles%5B0%5D%5BmemoryMB%5D=128&taskRoles%5B0%5D%5Bcommand%5D=x");
    const char *type = "application/x-www-form-urlencoded";
    assert_int_equal(world_ask(world, HTTP_POST, "/api/v1/user/alice/jobs", alice, type, form),
                     202);
    assert_int_equal(world_get(world, "/api/v2/jobs/alice~formed", alice), 200);
    assert_body(world, "\"totalTaskNumber\":2");
    assert_int_equal(world_get(world, "/api/v1/jobs/alice~formed/config", alice), 200);
    assert_body(world, "\"jobName\":\"formed\"");
    assert_int_equal(
        world_ask(world, HTTP_POST, "/api/v1/jobs", alice, type, TEXT("jobName=a&jobName[b]=c")),
        400);
    /* curl says so of everything */
    assert_int_equal(world_ask(world, HTTP_POST, "/api/v2/jobs", alice, type, TEXT("name: a=b\n")),
                     400);
    assert_body(world, "InvalidProtocolError");
}

/* Of one's own jobs alone, whoever asks. */
static void test_secrets_of(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    const char *admin = world_login(world, "admin");
    const struct text file = text_of(keyed_file);
    const char *path = "/api/v2/jobs?secretsOf=alice~one";
    const struct job_id one = world_submit(world, alice, "one", 1);
    const char *const strangers[] = {bob, admin};
    for (size_t i = 0; i < COUNT_OF(strangers); i++) {
        assert_int_equal(world_ask(world, HTTP_POST, path, strangers[i], "text/yaml", file), 403);
        assert_body(world, "the secrets of job alice~one are for jobs of alice alone");
        assert_body(world, "auth.reuse-secrets");
        /* nor is it said which jobs there are */
        assert_int_equal(world_ask(world, HTTP_POST, "/api/v2/jobs?secretsOf=alice~none",
                                   strangers[i], "text/yaml", file),
                         403);
        assert_int_equal(world_ask(world, HTTP_POST, "/api/v2/jobs?dryRun=true&secretsOf=alice~one",
                                   strangers[i], "text/yaml", file),
                         403);
    }
    assert_int_equal(
        world_ask(world, HTTP_POST, "/api/v2/jobs?secretsOf=alice~none", alice, "text/yaml", file),
        404);
    assert_body(world, "NoJobError");
    const char *const wrong[] = {"", "~one", "alice~"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char target[80];
        snprintf(target, sizeof target, "/api/v2/jobs?secretsOf=%s", wrong[i]);
        assert_int_equal(world_ask(world, HTTP_POST, target, alice, "text/yaml", file), 400);
        assert_body(world, "secretsOf must name a job");
    }
    assert_int_equal(world->secrets_job.v, 0);
    assert_int_equal(world_ask(world, HTTP_POST, "/api/v2/jobs?dryRun=true&secretsOf=one", alice,
                               "text/yaml", file),
                     200);
    assert_int_equal(world->secrets_job.v, one.v);
    world->secrets_job.v = 0;
    assert_int_equal(world_ask(world, HTTP_POST, path, alice, "text/yaml", file), 202);
    assert_int_equal(world->secrets_job.v, one.v);
    /* a job that goes between the request and the server's reading of it */
    const struct service_answer gone = {
        .code = ERR_NOT_FOUND, .path = "secretsOf", .text = "there is no job alice~one any more"};
    world->submitted_before = &gone;
    assert_int_equal(world_ask(world, HTTP_POST, path, alice, "text/yaml", file), 404);
    assert_body(world, "NoJobError");
    world->submitted_before = NULL;
    assert_int_equal(world_get(world, "/api/v2/audit?route=jobs&limit=20", admin), 200);
    assert_body(world, "\"after\":{\"secretsOf\":\"alice~one\"}");
    assert_body(world, "\"right\":\"auth.reuse-secrets\"");
}

#define TRIAL(gpus)                                                                                \
    "protocolVersion: 2\nname: dry\ntype: job\nprerequisites:\n"                                   \
    "- {name: i, type: dockerimage, uri: d}\ntaskRoles:\n  w:\n    dockerImage: i\n"               \
    "    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: " gpus "}\n    commands: [x]\n"

/* What would be placed where, and why not; nothing comes of it. */
static void test_dry_run(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *path = "/api/v2/jobs?dryRun=true";
    assert_int_equal(world_send(world, HTTP_POST, path, alice, TRIAL("2")), 200);
    assert_string_equal(
        buf_cstr(&world->body),
        "{\"placed\":true,\"reason\":null,\"reasonParts\":null,\"tasks\":[{\"taskRoleName\":\"w\","
        "\"taskIndex\":0,\"containerNodeName\":\"n1\",\"gpus\":[0,1]}],"
        "\"preempts\":[]}");
    assert_int_equal(world_get(world, "/api/v2/jobs/alice~dry", alice), 404);
    assert_int_equal(world_send(world, HTTP_POST, path, alice, TRIAL("5")), 200);
    assert_body(world, "\"placed\":false,\"reason\":\"");
    assert_body(world, "\"reasonParts\":[{\"code\":\"needs\",\"values\":{}},{\"code\":\"tasks\",");
    assert_body(world, "\"tasks\":[]");
    assert_int_equal(world_send(world, HTTP_POST, path, alice, "name: x\n"), 400);
    assert_body(world, "InvalidProtocolError");
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/jobs", alice, TRIAL("1")), 202);
    assert_int_equal(world_send(world, HTTP_POST, path, alice, TRIAL("1")), 409);
    assert_body(world, "ConflictJobError");
}

/* The file alone: it may be asked for whatever the cluster has, and whatever jobs there are. */
static void test_check(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    const char *path = "/api/v2/jobs?dryRun=true&placement=false";
    assert_int_equal(world_send(world, HTTP_POST, path, alice, TRIAL("2")), 200);
    assert_string_equal(buf_cstr(&world->body), "{}");
    assert_int_equal(world_get(world, "/api/v2/jobs/alice~dry", alice), 404);
    assert_int_equal(world_send(world, HTTP_POST, path, alice, "name: x\n"), 400);
    assert_body(world, "InvalidProtocolError");
    assert_body(world, "\"problems\":[{");
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/jobs", alice, TRIAL("1")), 202);
    assert_int_equal(world_send(world, HTTP_POST, path, alice, TRIAL("1")), 200);
    /* a submission is never taken for a check, nor a check for a submission */
    path = "/api/v2/jobs?placement=false";
    assert_int_equal(world_send(world, HTTP_POST, path, alice, TRIAL("1")), 400);
    assert_body(world, "placement goes with dryRun=true");
    path = "/api/v2/jobs?dryRun=true&placement=no";
    assert_int_equal(world_send(world, HTTP_POST, path, alice, TRIAL("1")), 400);
    assert_body(world, "placement must be true or false");
}

/* As the first YAML format was submitted. */
static void test_put(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/jobs/wet", alice, TRIAL("1")), 400);
    assert_body(world, "body:2:7: name is dry, but the path says wet");
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/jobs/bob~dry", alice, TRIAL("1")), 403);
    /* a name that is no name is for who reads the file to refuse */
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/jobs/dry", alice, "type: job\n"), 400);
    assert_body(world, "InvalidProtocolError");
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/jobs/dry", alice, "name: [dry]\n"), 400);
    assert_body(world, "InvalidProtocolError");
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v2/jobs/alice~dry", alice, TRIAL("1")), 202);
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

#define JOB "/api/v2/jobs/alice~one"
static void test_unknown_words(void **state)
{
    static const struct {
        enum http_method method;
        const char *path, *body, *says;
    } BAD[] = {
        {HTTP_PUT, JOB "/executionType", "{\"value\":\"STOP\",\"wrong\":1}", "value alone"},
        {HTTP_PUT, JOB "/tag", "{\"value\":\"blue\",\"wrong\":1}", "value alone"},
        {HTTP_DELETE, JOB "/tag", "{\"value\":\"red\",\"wrong\":1}", "value alone"},
        {HTTP_PUT, JOB "/taskRoles/worker/instances", "{\"instances\":2,\"wrong\":1}",
         "instances alone"},
        {HTTP_POST, JOB "/exec", "{\"command\":[\"true\"],\"wrong\":1}",
         "role, index, command, terminal, term, rows and columns"},
    };
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    world_submit(world, alice, "one", 1);
    assert_int_equal(world_send(world, HTTP_PUT, JOB "/tag", alice, "{\"value\":\"red\"}"), 200);
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        assert_int_equal(world_send(world, BAD[i].method, BAD[i].path, alice, BAD[i].body), 400);
        assert_body(world, "there is no 'wrong' here: the body has ");
        assert_body(world, BAD[i].says);
    }
    assert_int_equal(world_get(world, JOB, alice), 200);
    assert_body(world, "\"tags\":[\"red\"]");
    assert_body(world, "\"executionType\":\"START\"");
    /* clients of the older API say what they like */
    assert_int_equal(world_send(world, HTTP_PUT, "/api/v1/user/alice/jobs/one/executionType", alice,
                                "{\"value\":\"STOP\",\"wrong\":1}"),
                     202);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_unknown_words, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_job_stop, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_submit_refused, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_secrets_of, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_submit_key, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_submit_elsewhere, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_submit_form, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_dry_run, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_check, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_put, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_tags, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
