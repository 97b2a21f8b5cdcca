/* Whom a task reaches by ssh; a peer without a place is left out. */
#include "env_world.h"
#include "unit.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "init/env.h"
#include "init/job_file.h"
#include "init/ssh_config.h"

/* A task of a job without gang may start before its peers have places. */
static void unplaced(void **state)
{
    (void)state;
    struct job_file job = job_of(JOB_FILE_V2);
    struct job_file_task tasks[4];
    struct fixture f;
    struct buf config = BUF_INIT;
    memcpy(tasks, FOUR_TASKS, sizeof tasks);
    tasks[0].address = "";
    job.tasks = tasks;
    begin(&f, &job, &TASK);
    assert_string_equal(env_get(&f.env, "PAI_TASK_ROLE_ps_server_HOST_LIST"), "10.0.0.2:5101");
    assert_null(env_get(&f.env, "PAI_HOST_IP_ps_server_0"));
    assert_null(env_get(&f.env, "TF_CONFIG"));
    ssh_config_write(&job, "", "/k", &f.arena, &config);
    assert_null(strstr(buf_cstr(&config), "ps_server-0"));
    assert_non_null(strstr(buf_cstr(&config), "Host ps_server-1 psserver-1\n  HostName 10.0.0.2\n"
                                              "  Port 5102\n  Strict"));
    buf_release(&config);
    finish(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(unplaced),
};
UNIT_FILE(tests, NULL, NULL);
