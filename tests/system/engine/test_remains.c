/* A program that tries everything to outlive its container (escape.c): when EXITED is posted
 * nothing of it is there, however it ended. */
#include "base/memory.h"
#include "engine/local/task.h"
#include "world.h"
#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static struct world world;
static bool can_run;
static char name[64];
static uint16_t port;

enum { END_MS = 120000 }; /* a virtual machine beside others */

/* --- the machine --- */

static bool port_is_free(uint16_t wanted)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(wanted)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_free = bind(fd, (struct sockaddr *)&any, sizeof any) == 0 &&
                   bind(udp, (struct sockaddr *)&any, sizeof any) == 0;
    close(fd);
    close(udp);
    return is_free;
}

static uint16_t port_find(void)
{
    enum { LOWEST = 22000, COUNT = 8000 };
    for (int i = 0; i < COUNT; i++) { /* others may look on this machine too: each from elsewhere */
        uint16_t at = (uint16_t)(LOWEST + (getpid() * 37 + i) % COUNT);
        if (port_is_free(at))
            return at;
    }
    return 0;
}

/* What a task could leave on the machine, in words; the same before and after it. Other programs
 * work on the machine, so only what can be this test's counts: keys of System V objects as ftok()
 * makes them of the numbers in escape.c, names that the task was told, mounts below the engine's
 * folder. */
static void machine_read(char *text, size_t size)
{
    snprintf(text, size, "%s",
             shell_output(
                 "ipcs -m -s -q | grep -E '^0x0[789]'; ls -A /dev/shm /dev/mqueue 2>/dev/null | "
                 "grep -F '%s'; grep -cF '%s' /proc/self/mountinfo; "
                 "grep -F '%s' /proc/keys; find /sys/fs/cgroup -name escaped",
                 name, world.folder, name));
}

static void nothing_is_left(uint64_t attempt, const char *before)
{
    const struct local_engine *local = (struct local_engine *)world.engine;
    char now[8192];
    unsigned long long id = attempt;
    machine_read(now, sizeof now);
    assert_string_equal(now, before);
    assert_string_equal(shell_output("pgrep -f '[e]scape .*%s'", name), "");
    assert_string_equal(shell_output("grep -F '@%s' /proc/net/unix", name), "");
    assert_string_equal(
        shell_output("find /sys/fs/cgroup -type d -path '*%s/%llu*'", local->group, id), "");
    assert_string_equal(
        shell_output("grep -lF '%s/data/containers/%llu/' /proc/*/mountinfo 2>/dev/null",
                     world.folder, id),
        "");
    assert_string_equal(shell_output("ls -d %s/%llu 2>/dev/null", local->runtime.root, id), "");
    assert_true(port_is_free(port));
}

/* --- tasks --- */

static void run(uint64_t attempt, const char *how, uint64_t memory_mib)
{
    char command[256];
    struct task_options options = {.memory_mib = memory_mib, .port = port};
    struct err err = {0};
    snprintf(command, sizeof command, "/escape %s %u %s", how, port, name);
    assert_int_equal(world_create_with(&world, attempt, command, &options, &err), 0);
}

static void wait_ready(uint64_t attempt)
{
    world_log_await(&world, attempt, "ready", END_MS);
}

static const struct seen *end_of(uint64_t attempt)
{
    const struct seen *end = world_wait(&world, ENGINE_EXITED, attempt, 0, END_MS);
    assert_non_null(end);
    return end;
}

/* --- the ways to end --- */

static void by_itself(void **state)
{
    (void)state;
    char before[8192];
    if (!can_run)
        skip();
    machine_read(before, sizeof before);
    run(60, "leave", 128);
    const struct seen *end = end_of(60);
    nothing_is_left(60, before);
    assert_string_equal(end->log, "ready\n"); /* and it GOT nothing */
    assert_int_equal(end->exit.exit_code, 0);
}

static void killed(void **state)
{
    (void)state;
    char before[8192];
    if (!can_run)
        skip();
    machine_read(before, sizeof before);
    run(61, "stay", 128);
    wait_ready(61);
    assert_int_equal(
        world.engine->ops->kill(world.engine, (struct attempt_id){61}, 0, "test", false, NULL), 0);
    end_of(61);
    nothing_is_left(61, before);
}

static void monitor_and_first_process_killed(void **state)
{
    (void)state;
    char before[8192];
    if (!can_run)
        skip();
    machine_read(before, sizeof before);
    run(62, "stay", 128);
    wait_ready(62);
    shell("kill -9 $(cat %s/run/tasks/62/conmon.pid) $(cat %s/run/tasks/62/init.pid)", world.folder,
          world.folder);
    end_of(62);
    nothing_is_left(62, before);
}

static void while_no_engine_was_there(void **state)
{
    (void)state;
    char before[8192];
    if (!can_run)
        skip();
    machine_read(before, sizeof before);
    run(63, "stay", 128);
    wait_ready(63);
    world_stop(&world);
    shell("kill -9 $(cat %s/run/tasks/63/conmon.pid) $(cat %s/run/tasks/63/init.pid)", world.folder,
          world.folder);
    world_start(&world);
    end_of(63);
    nothing_is_left(63, before);
}

static void of_no_folder(void **state)
{
    (void)state;
    char before[8192];
    if (!can_run)
        skip();
    machine_read(before, sizeof before);
    run(64, "stay", 128);
    wait_ready(64);
    world_stop(&world);
    shell("rm -rf %s/data/containers/64", world.folder);
    world_start(&world);
    world_remains_await(&world, 64, END_MS);
    nothing_is_left(64, before);
}

/* --- what others keep for it --- */

/* An accomplice in the network of the machine: the abstract address, a connection, the socket. */
static int socket_receive(int server)
{
    struct pollfd knock = {.fd = server, .events = POLLIN};
    if (poll(&knock, 1, END_MS) <= 0)
        fail_msg("the task did not come");
    int from = accept(server, NULL, NULL), got = -1;
    char byte;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    assert_int_equal(recvmsg(from, &message, 0), 1);
    assert_true(message.msg_controllen >= CMSG_LEN(sizeof(int)));
    memcpy(&got, CMSG_DATA(&control.header), sizeof got);
    close(from);
    return got;
}

static void a_port_that_somebody_keeps_is_not_given(void **state)
{
    (void)state;
    if (!can_run)
        skip();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", name);
    assert_int_equal(bind(server, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))),
                     0);
    assert_int_equal(listen(server, 1), 0);
    run(65, "pass", 128);
    int kept = socket_receive(server);
    assert_int_equal(end_of(65)->exit.exit_code, 0);
    assert_false(port_is_free(port)); /* nobody can take it from the other process … */
    run(66, "leave", 128);
    const struct seen *refused = end_of(66); /* … so nobody gets it */
    assert_int_equal(refused->exit.exit_code, 253);
    assert_non_null(strstr(refused->message, "is in use"));
    assert_false(refused->exit.is_user_command);
    close(kept);
    close(server);
    run(67, "leave", 128);
    assert_int_equal(end_of(67)->exit.exit_code, 0);
}

/* A mount that stays keeps the machine from being used, for as long as it is there. */
static void a_mount_that_stays_is_told(void **state)
{
    (void)state;
    if (!can_run)
        skip();
    struct task_options options = {0};
    struct err err = {0};
    size_t from = world_seen_count(&world);
    assert_int_equal(world_create_with(&world, 68, "echo ready; sleep 600", &options, &err), 0);
    wait_ready(68);
    assert_int_equal(
        shell("mkdir -p %s/work68 %s/on68 && mount -t overlay x -o "
              "lowerdir=%s/images/busybox,upperdir=%s/data/containers/68/upper,workdir=%s/data/"
              "containers/68/work68 %s/on68 2>/dev/null || (mkdir -p %s/data/containers/68/work68; "
              "mount -t overlay x -o lowerdir=%s/images/busybox,upperdir=%s/data/containers/68/"
              "upper,workdir=%s/data/containers/68/work68 %s/on68)",
              world.folder, world.folder, world.folder, world.folder, world.folder, world.folder,
              world.folder, world.folder, world.folder, world.folder, world.folder),
        0);
    world.engine->ops->kill(world.engine, (struct attempt_id){68}, 0, "test", false, NULL);
    end_of(68);
    assert_non_null(world_wait(&world, ENGINE_NODE, 0, from, END_MS));
    assert_false(world.node.is_healthy);
    assert_string_equal(world.node_reason, "processes or mounts of an ended task remain");
    engine_local_housekeep(world.engine);
    assert_false(world.node.is_healthy);
    from = world_seen_count(&world);
    assert_int_equal(shell("umount %s/on68", world.folder), 0);
    engine_local_housekeep(world.engine);
    assert_non_null(world_wait(&world, ENGINE_NODE, 0, from, END_MS));
    assert_true(world.node.is_healthy);
}

static int setup(void **state)
{
    (void)state;
    can_run = world_open(&world);
    if (!can_run)
        return 0;
    snprintf(name, sizeof name, "skep-escape-%d", (int)getpid());
    port = port_find();
    if (shell("cp %s %s/images/busybox/escape", ESCAPE, world.folder) != 0)
        return -1;
    world_start(&world);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (can_run)
        world_close(&world);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_itself),
        cmocka_unit_test(killed),
        cmocka_unit_test(monitor_and_first_process_killed),
        cmocka_unit_test(while_no_engine_was_there),
        cmocka_unit_test(of_no_folder),
        cmocka_unit_test(a_port_that_somebody_keeps_is_not_given),
        cmocka_unit_test(a_mount_that_stays_is_told),
    };
    return world_tests_run(&world, argc, argv, tests, sizeof tests / sizeof *tests, setup,
                           teardown);
}
