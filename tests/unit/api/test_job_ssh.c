/* Where the tasks of a job are reached by ssh, and its key. */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "base/memory.h"

#define V1_JOB                                                                                     \
    "{\"jobName\":\"shell\",\"image\":\"i\",\"taskRoles\":[{\"name\":\"w\",\"taskNumber\":2,"      \
    "\"cpuNumber\":1,\"memoryMB\":128,\"command\":\"x\"}]}"

static void test_ssh(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice"), *bob = world_login(world, "bob");
    const char *path = "/api/v1/user/alice/jobs/shell/ssh";
    assert_int_equal(world_send(world, HTTP_POST, "/api/v1/jobs", alice, V1_JOB), 202);
    assert_int_equal(world_get(world, path, bob), 403);
    assert_body(world, "\"right\":\"auth.change-job\"");
    assert_int_equal(world_get(world, path, alice), 200);
    assert_body(world, "{\"containers\":[{\"id\":\"skep-1\",\"sshIp\":\"");
    assert_body(world, "\"sshPort\":\"");
    assert_body(world, "\"keyPair\":{\"folderPath\":\"/Container/alice/alice~shell/ssh/keyFiles\","
                       "\"publicKeyFileName\":\"alice~shell.pub\","
                       "\"privateKeyFileName\":\"alice~shell\"");
    const char *link = strstr(world->body.at, "/api/v1/jobs/alice~shell/ssh/key?link=");
    assert_non_null(link);
    char uri[512];
    snprintf(uri, sizeof uri, "%.*s", (int)(strchr(link, '"') - link), link);
    assert_int_equal(world_get(world, uri, NULL), 200);
    assert_body(world, "private key of job 1");
    assert_int_equal(world_get(world, "/api/v1/jobs/alice~shell/ssh", alice), 200);
    assert_int_equal(world_get(world, "/api/v2/jobs/alice~shell/ssh", alice), 404);
}

/* A job of protocol 2 without the plugin. */
static void test_no_ssh(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    world_submit(world, alice, "plain", 1);
    assert_int_equal(world_get(world, "/api/v1/jobs/alice~plain/ssh", alice), 404);
    assert_body(world, "\"code\":\"NoJobSshInfoError\",\"error\":\"SshInfoNotFound\"");
    assert_int_equal(world_get(world, "/api/v1/jobs/alice~plain/ssh/key", alice), 404);
    assert_int_equal(world_get(world, "/api/v1/jobs/alice~none/ssh", alice), 404);
    assert_body(world, "NoJobError");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_ssh, world_setup, world_teardown),
    cmocka_unit_test_setup_teardown(test_no_ssh, world_setup, world_teardown),
};
UNIT_FILE(tests, NULL, NULL);
