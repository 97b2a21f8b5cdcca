/* A task whose peers' addresses come later: it waits for them, and a second skep-init brings them.
 */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"
#include "waits.h"

#define WAITS "waits until all tasks of the job have an address"

static struct job_file_task tasks[3];

/* Of a job of so many tasks, each with an address of its own; the table knows none of them. */
static void world_with_peers(struct world *w, uint16_t instances, const char *command,
                             char outer[64])
{
    world_init(w, command);
    memcpy(outer, w->root, sizeof w->root);
    mkdir(path_in(w, "etc"), 0755);
    write_whole(path_in(w, "etc/hosts"), "", 0);
    mkdir(path_in(w, "skep"), 0755);
    strcat(w->root, "/skep");
    mkdir(path_in(w, "log"), 0755);
    mkdir(path_in(w, "run"), 0755);
    write_whole(path_in(w, "network"), "10.1.0.2", 8);
    write_whole(path_in(w, "peers"), "", 0);
    for (size_t i = 0; i < 3; i++)
        tasks[i] = (struct job_file_task){"192.0.2.1", "n", w->port_numbers};
    w->role.instances = instances;
    w->job.tasks = tasks;
    w->job.task_count = instances;
    w->task.index = (uint16_t)(instances - 1);
}

/* What the engine starts: its exit code. */
static int told(const struct world *w, const char *list)
{
    char command[600];
    write_whole(path_in(w, "list"), list, strlen(list));
    snprintf(command, sizeof command, "%s addresses '%s' <'%s/list' 2>'%s/said'", SKEP_INIT,
             w->root, w->root, w->root);
    const int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void said(const struct world *w, const char *words)
{
    struct buf text = BUF_INIT;
    read_whole(path_in(w, "said"), &text);
    if (!strstr(buf_cstr(&text), words))
        fail_msg("\"%s\" does not say \"%s\"", buf_cstr(&text), words);
    buf_release(&text);
}

static void waiting_await(const struct world *w)
{
    char *log = path_in(w, "log/runtime.000000000000000");
    assert_true(file_await(log, RUN_LIMIT_MS));
    assert_true(file_says_await(log, WAITS, RUN_LIMIT_MS));
}

static void a_task_alone_waits_for_nobody(void **state)
{
    struct world w;
    struct buf hosts = BUF_INIT;
    char outer[64];
    (void)state;
    world_with_peers(&w, 1, "echo $PAI_HOST_IP_main_0 $PAI_CURRENT_CONTAINER_IP", outer);
    world_run(&w);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    log_is(&w, "stdout", "10.1.0.2 10.1.0.2\n");
    read_whole(path_in(&w, "../etc/hosts"), &hosts);
    assert_string_equal(buf_cstr(&hosts), "10.1.0.2 main-0\n");
    buf_release(&hosts);
    folder_remove(outer);
}

static void the_command_begins_when_the_addresses_have_come(void **state)
{
    struct world w;
    struct buf hosts = BUF_INIT;
    char outer[64];
    (void)state;
    world_with_peers(&w, 2, "echo $PAI_HOST_IP_main_0 $PAI_HOST_IP_main_1", outer);
    const pid_t pid = world_start(&w);
    waiting_await(&w);
    assert_int_not_equal(access(path_in(&w, "run/started"), F_OK), 0);
    assert_int_equal(told(&w, "0 0 10.1.0.1\n0 1 10.1.0.2\n.\n"), 0);
    world_wait(&w, pid);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    log_is(&w, "stdout", "10.1.0.1 10.1.0.2\n");
    read_whole(path_in(&w, "../etc/hosts"), &hosts);
    assert_string_equal(buf_cstr(&hosts), "10.1.0.1 main-0\n10.1.0.2 main-1\n");
    buf_release(&hosts);
    folder_remove(outer);
}

/* They may come first, and again; who is not named has no address, and the job's table has tasks
 * alone that it has. */
static void addresses_that_are_there_already(void **state)
{
    struct world w;
    char outer[64];
    (void)state;
    world_with_peers(&w, 3, "echo $PAI_HOST_IP_main_0 ${PAI_HOST_IP_main_1-none}", outer);
    assert_int_equal(told(&w, "0 0 10.1.0.1\n0 7 10.1.0.9\n4 0 10.1.0.9\n.\n"), 0);
    assert_int_equal(told(&w, "0 0 10.1.0.5\n.\n"), 0);
    world_run(&w);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    log_is(&w, "stdout", "10.1.0.1 none\n");
    folder_remove(outer);
}

static void a_task_that_waits_is_ended(void **state)
{
    struct world w;
    char outer[64];
    (void)state;
    world_with_peers(&w, 2, "echo never", outer);
    const pid_t pid = world_start(&w);
    waiting_await(&w);
    assert_int_equal(kill(pid, SIGTERM), 0);
    world_wait(&w, pid);
    end_is(&w, EXIT_STAGE_SETUP, 143, 0);
    assert_non_null(strstr(w.end.message, "ended before the command began"));
    log_is(&w, "stdout", "");
    folder_remove(outer);
}

static void nobody_waits_for_ever(void **state)
{
    struct world w;
    char outer[64];
    (void)state;
    world_with_peers(&w, 2, "echo never", outer);
    w.task.barrier_timeout_s = 1;
    world_run(&w);
    end_is(&w, EXIT_STAGE_SETUP, EXIT_FILE_BARRIER_TIMEOUT, 0);
    assert_non_null(strstr(w.end.message, "had an address within 1 s"));
    folder_remove(outer);
}

static void what_is_no_list_is_not_written(void **state)
{
    struct world w;
    char outer[64];
    (void)state;
    world_with_peers(&w, 2, "true", outer);
    assert_int_equal(told(&w, ""), 1);
    said(&w, "are not whole");
    assert_int_equal(told(&w, "0 0 10.1.0.1\n"), 1);
    said(&w, "are not whole");
    assert_int_equal(told(&w, "0 x 10.1.0.1\n.\n"), 1);
    said(&w, "line 1");
    assert_int_not_equal(access(path_in(&w, "run/addresses"), F_OK), 0);
    rmdir(path_in(&w, "run"));
    assert_int_equal(told(&w, "0 0 10.1.0.1\n.\n"), 1);
    said(&w, "run/addresses");
    assert_int_equal(WEXITSTATUS(system(SKEP_INIT " addresses 2>/dev/null")), 1);
    folder_remove(outer);
}

/* What a task has written there itself ends it, as nothing else can be in the place. */
static void a_file_that_is_no_list(void **state)
{
    struct world w;
    char outer[64];
    (void)state;
    world_with_peers(&w, 2, "echo never", outer);
    write_whole(path_in(&w, "run/addresses"), "nonsense", 8);
    world_run(&w);
    end_is(&w, EXIT_STAGE_SETUP, EXIT_FILE_SETUP, 0);
    folder_remove(outer);
    world_with_peers(&w, 2, "echo never", outer);
    write_whole(path_in(&w, "network"), "somewhere", 9);
    world_run(&w);
    end_is(&w, EXIT_STAGE_SETUP, EXIT_FILE_SETUP, 0);
    assert_non_null(strstr(w.end.message, "is no address"));
    folder_remove(outer);
}

static const struct CMUnitTest all[] = {
    cmocka_unit_test(a_task_alone_waits_for_nobody),
    cmocka_unit_test(the_command_begins_when_the_addresses_have_come),
    cmocka_unit_test(addresses_that_are_there_already),
    cmocka_unit_test(a_task_that_waits_is_ended),
    cmocka_unit_test(nobody_waits_for_ever),
    cmocka_unit_test(what_is_no_list_is_not_written),
    cmocka_unit_test(a_file_that_is_no_list),
};
UNIT_FILE(all, run_setup, NULL);
