/* What tasks may beyond the walls: the same programs in a virtual cluster that has a right, and in
 * one that has none, where the kernel refuses them.
 *
 * Covers: src/engine/local/rights.c, src/engine/local/oci_seccomp.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "base/memory.h"
#include "engine/local/limits.h"
#include "engine/local/task.h"
#include "world.h"
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000 };

static struct world world;
static uint64_t attempts;

/* The log of a task of that virtual cluster. */
static const char *said(const char *virtual_cluster, const char *command)
{
    struct err err = {0};
    const uint64_t attempt = ++attempts;
    const struct task_options options = {.virtual_cluster = virtual_cluster};
    assert_int_equal(world_create_with(&world, attempt, command, &options, &err), 0);
    const struct seen *end = world_wait(&world, ENGINE_EXITED, attempt, 0, PATIENCE_MS);
    assert_non_null(end);
    if (end->exit.exit_code != 0)
        fail_msg("%d %s %s\n%s", end->exit.exit_code, end->reason, end->message, end->log);
    return end->log;
}

static void test_sys_admin(void **state)
{
    (void)state;
    static const char command[] = "mkdir /tmp/m; mount -t tmpfs none /tmp/m 2>&1 && echo mounted; "
                                  "unshare -m true 2>&1 && echo apart; true";
    assert_string_equal(said("admins", command), "mounted\napart\n");
    const char *refused = said("plain", command);
    assert_non_null(strstr(refused, "mount: "));
    assert_null(strstr(refused, "mounted"));
    assert_null(strstr(refused, "apart"));
    assert_non_null(strcasestr(refused, "permi"));
}

static void test_fuse(void **state)
{
    (void)state;
    static const char command[] = "exec 2>&1; (exec 3< /dev/fuse) && echo open; true";
    if (access("/dev/fuse", F_OK) == 0)
        assert_string_equal(said("fuse", command), "open\n");
    assert_non_null(strstr(said("plain", command), "/dev/fuse"));
}

#define CAPABILITY(number) "$((0x$(sed -n 's/CapBnd:.//p' /proc/self/status) >> " #number " & 1))"

/* Of locked memory a task without the right has what the machine gives to all. */
static void test_lock_memory(void **state)
{
    (void)state;
    static const char command[] = "echo " CAPABILITY(14) "; ulimit -l";
    char limit[40] = "", wanted[80];
    assert_int_equal(sscanf(said("plain", command), "0\n%39s", limit), 1);
    const char *lifted = shell_output("ulimit -H -l");
    snprintf(wanted, sizeof wanted, "1\n%s\n", limit_can_raise() ? "unlimited" : lifted);
    assert_string_equal(said("locked", command), wanted);
}

static void test_new_privileges(void **state)
{
    (void)state;
    static const char command[] = "sed -n 's/NoNewPrivs:.//p' /proc/self/status";
    assert_string_equal(said("sudoers", command), "0\n");
    assert_string_equal(said("plain", command), "1\n");
}

static void test_host_network(void **state)
{
    (void)state;
    static const char command[] = "readlink /proc/self/ns/net";
    char machine[80];
    snprintf(machine, sizeof machine, "%s\n", shell_output("readlink /proc/self/ns/net"));
    assert_string_equal(said("network", command), machine);
    assert_string_not_equal(said("plain", command), machine);
}

static void test_host_users(void **state)
{
    (void)state;
    static const char command[] = "readlink /proc/self/ns/user";
    char machine[80];
    if (!((const struct local_engine *)world.engine)->gives_ids)
        skip();
    snprintf(machine, sizeof machine, "%s\n", shell_output("readlink /proc/self/ns/user"));
    assert_string_equal(said("users", command), machine);
    assert_string_not_equal(said("plain", command), machine);
}

static int setup(void **state)
{
    (void)state;
    static const char *const clusters[RIGHTS] = {[RIGHT_HOST_NETWORK] = "network",
                                                 [RIGHT_SYS_ADMIN] = "admins",
                                                 [RIGHT_FUSE] = "fuse",
                                                 [RIGHT_LOCK_MEMORY] = "locked",
                                                 [RIGHT_NEW_PRIVILEGES] = "sudoers",
                                                 [RIGHT_HOST_USERS] = "users"};
    if (!world_open(&world))
        exit(77);
    for (size_t i = 0; i < RIGHTS; i++)
        world.config.rights[i] = (struct right_list){&clusters[i], 1};
    world.config.has_private_network = true;
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
        cmocka_unit_test(test_sys_admin),    cmocka_unit_test(test_fuse),
        cmocka_unit_test(test_lock_memory),  cmocka_unit_test(test_new_privileges),
        cmocka_unit_test(test_host_network), cmocka_unit_test(test_host_users),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
