/* The life of containers under the local engine: start, end, kill, logs, limits, restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "world.h"
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct world world;

static const struct seen *run_to_end(uint64_t attempt, const char *command)
{
    world_create(&world, attempt, command);
    const struct seen *end = world_wait(&world, ENGINE_EXITED, attempt, 0, 20000);
    assert_non_null(end);
    return end;
}

static void test_hello(void **state)
{
    (void)state;
    const struct seen *end = run_to_end(1, "echo hello from $PAI_TASK_INDEX; exit 3");
    if (end->exit.exit_code != 3)
        fprintf(stderr, "%s: %s\n%s\n", end->reason, end->message, end->platform);
    assert_int_equal(end->exit.exit_code, 3);
    assert_true(end->exit.is_user_command);
    assert_false(end->exit.is_oom_killed);
    assert_string_equal(end->log, "hello from 0\n");
    assert_non_null(world_wait(&world, ENGINE_STARTED, 1, 0, 0));
}

static int setup(void **state)
{
    (void)state;
    if (!world_open(&world))
        exit(77);
    world_start(&world);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_close(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hello),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
