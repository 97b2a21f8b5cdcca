/* The program itself, run as a child in a directory that stands for /skep: stages, exits, signals.
 * What needs a real container (process 1) is in tests/system.
 *
 * Covers: src/init/main.c, src/init/command.c, src/init/setup.c, src/init/loop.c */
#include "run.h"
#include "unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/memory.h"
#include "init/exit_file.h"
#include "init/job_file.h"

static void success(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, "echo out; echo err >&2; echo $PAI_TASK_INDEX $PAI_WORK_DIR");
    w.task.pre_command = "echo prepared";
    w.task.post_command = "echo after";
    world_run(&w);
    end_is(&w, EXIT_STAGE_POST, 0, 0);
    assert_true(w.end.started_ms > 0 && w.end.ended_ms >= w.end.started_ms);
    char wanted[256];
    snprintf(wanted, sizeof wanted, "out\n0 %s\nafter\n", w.root);
    log_is(&w, "stdout", wanted);
    log_is(&w, "stderr", "err\n");
    log_is(&w, "runtime", "prepared\n");
    log_has(&w, "all", "err\n");
    assert_int_equal(access(path_in(&w, "run/started"), F_OK), 0);
    folder_remove(w.root);
}

static void failures(void **state)
{
    (void)state;
    static const struct {
        const char *command;
        enum job_file_format format;
        int code, signal;
    } CASES[] = {
        {"exit 3", JOB_FILE_V2, 3, 0},
        {"false; true", JOB_FILE_V2, 1, 0}, /* errexit */
        {"false; true", JOB_FILE_V1, 0, 0},
        {"echo $NOT_SET_ANYWHERE", JOB_FILE_V2, 1, 0}, /* nounset */
        {"echo $NOT_SET_ANYWHERE", JOB_FILE_V1, 0, 0},
        {"false | true", JOB_FILE_V2, 1, 0}, /* pipefail */
        {"kill -9 $$", JOB_FILE_V2, 137, 9},
        {"kill -SEGV $$", JOB_FILE_V2, 139, 11},
        {"surely-no-such-command", JOB_FILE_V2, 127, 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct world w;
        world_init(&w, CASES[i].command);
        w.job.format = (uint8_t)CASES[i].format;
        w.task.post_command = CASES[i].code ? "echo never" : "";
        world_run(&w);
        end_is(&w, EXIT_STAGE_USER, CASES[i].code, CASES[i].signal);
        folder_remove(w.root);
    }
}

static void pre_fails(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, "echo never");
    w.task.pre_command = "exit 4";
    world_run(&w);
    end_is(&w, EXIT_STAGE_PRE, 4, 0);
    assert_int_equal(w.end.started_ms, 0);
    log_is(&w, "stdout", "");
    folder_remove(w.root);
}

static void port_conflict(void **state)
{
    (void)state;
    struct world w;
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    world_init(&w, "echo never");
    w.port_numbers[1] = ntohs(address.sin_port);
    world_run(&w);
    end_is(&w, EXIT_STAGE_SETUP, EXIT_FILE_PORT_CONFLICT, 0);
    assert_non_null(strstr(w.end.message, "port conflict"));
    folder_remove(w.root);
    /* the same by UDP; one that the job fixed is its own affair */
    for (int is_fixed = 0; is_fixed < 2; is_fixed++) {
        int datagrams = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        address.sin_port = 0;
        assert_int_equal(bind(datagrams, (struct sockaddr *)&address, sizeof address), 0);
        assert_int_equal(getsockname(datagrams, (struct sockaddr *)&address, &length), 0);
        world_init(&w, "echo ran");
        w.port_numbers[1] = ntohs(address.sin_port);
        w.ports[1].begin_at = is_fixed ? w.port_numbers[1] : 0;
        world_run(&w);
        if (is_fixed)
            end_is(&w, EXIT_STAGE_USER, 0, 0);
        else
            end_is(&w, EXIT_STAGE_SETUP, EXIT_FILE_PORT_CONFLICT, 0);
        close(datagrams);
        folder_remove(w.root);
    }
    close(fd);
}

static void signals_forwarded(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, "trap 'echo got; exit 7' USR1; echo > run/ready; while :; do sleep 0.02; done");
    pid_t pid = world_start(&w);
    ready_await(&w);
    kill(pid, SIGUSR1);
    world_wait(&w, pid);
    end_is(&w, EXIT_STAGE_USER, 7, 0);
    log_is(&w, "stdout", "got\n");
    folder_remove(w.root);
}

static void not_usable(void **state)
{
    (void)state;
    struct world w;
    int status;
    world_init(&w, "true");
    write_whole(path_in(&w, "task"), "nonsense", 8);
    pid_t pid = fork();
    if (pid == 0) {
        freopen("/dev/null", "w", stderr);
        execl(SKEP_INIT, SKEP_INIT, w.root, (char *)NULL);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), EXIT_FILE_SETUP);
    folder_remove(w.root);
}

/* What holds secrets stands in the folder that is in memory, where the engine makes one. */
static void test_private(void **state)
{
    (void)state;
    struct world w;
    char wanted[600];
    struct stat what;
    world_init(&w, "echo $0");
    assert_int_equal(mkdir(path_in(&w, "private"), 0700), 0);
    world_run(&w);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    snprintf(wanted, sizeof wanted, "%s/private/command\n", w.root);
    log_is(&w, "stdout", wanted);
    assert_int_equal(stat(path_in(&w, "private/command"), &what), 0);
    assert_int_equal(what.st_mode & 0777, 0600);
    assert_int_equal(stat(path_in(&w, "run/command"), &what), -1);
    folder_remove(w.root);
}

/* As in Docker, what a program writes to the first process's output is in the log. */
static void test_output_of_init(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, "echo out > /proc/$PPID/fd/1; echo err > /proc/$PPID/fd/2");
    world_run(&w);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    log_is(&w, "stdout", "out\n");
    log_is(&w, "stderr", "err\n");
    folder_remove(w.root);
}

/* Nobody could tell then whether the command had begun. */
static void test_no_place_for_the_mark(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, "echo never");
    assert_int_equal(mkdir(path_in(&w, "run/started"), 0755), 0);
    world_run(&w);
    end_is(&w, EXIT_STAGE_SETUP, EXIT_FILE_SETUP, 0);
    assert_non_null(strstr(w.end.message, "run/started"));
    log_is(&w, "stdout", "");
    folder_remove(w.root);
}

/* A world whose /etc/hosts is there, as in a network of the job's own; `outer` is to be removed. */
static void world_with_hosts(struct world *w, const char *command, char outer[64])
{
    world_init(w, command);
    memcpy(outer, w->root, sizeof w->root);
    mkdir(path_in(w, "etc"), 0755);
    write_whole(path_in(w, "etc/hosts"), "", 0);
    mkdir(path_in(w, "skep"), 0755);
    strcat(w->root, "/skep");
    mkdir(path_in(w, "log"), 0755);
    mkdir(path_in(w, "run"), 0755);
}

/* Kubelet's file is mounted: it is written where it lies, with what the engine's own has. */
static void a_kubelet_is_told_how_it_ended(void **state)
{
    (void)state;
    struct world w;
    struct buf own = BUF_INIT, kubelets = BUF_INIT;
    struct stat before, after;
    char outer[64];
    world_with_hosts(&w, "exit 3", outer);
    mkdir(path_in(&w, "../dev"), 0755);
    write_whole(path_in(&w, "../dev/termination-log"), "what the task wrote there itself", 32);
    assert_int_equal(stat(path_in(&w, "../dev/termination-log"), &before), 0);
    world_run(&w);
    assert_int_equal(w.end.code, 3);
    read_whole(path_in(&w, "run/exit"), &own);
    read_whole(path_in(&w, "../dev/termination-log"), &kubelets);
    assert_string_equal(buf_cstr(&kubelets), buf_cstr(&own));
    assert_int_equal(stat(path_in(&w, "../dev/termination-log"), &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    buf_release(&own);
    buf_release(&kubelets);
    folder_remove(outer);
}

/* Tasks on the own node are known by the network's address, others by their node's. In /etc/hosts
 * those on the own node have an address of the loopback each, so that they are told apart. */
static void network_of_its_own(void **state)
{
    (void)state;
    struct world w;
    struct buf text = BUF_INIT;
    char outer[64];
    world_with_hosts(&w, "echo $PAI_HOST_IP_main_0 $PAI_HOST_IP_main_2 $PAI_CURRENT_CONTAINER_IP",
                     outer);
    const struct job_file_task tasks[] = {{"192.0.2.1", "n", w.port_numbers},
                                          {"192.0.2.1", "n", w.port_numbers},
                                          {"192.0.2.2", "other", w.port_numbers}};
    w.role.instances = 3;
    w.job.tasks = tasks;
    w.job.task_count = 3;
    w.task.index = 1;
    write_whole(path_in(&w, "network"), "10.213.0.9", 10);
    world_run(&w);
    assert_int_equal(w.end.code, 0);
    read_whole(path_in(&w, "log/stdout.000000000000000"), &text);
    assert_string_equal(buf_cstr(&text), "10.213.0.9 192.0.2.2 10.213.0.9\n");
    read_whole(path_in(&w, "../etc/hosts"), &text);
    assert_string_equal(buf_cstr(&text), "127.1.0.1 main-0\n127.1.0.2 main-1\n"
                                         "10.213.0.9 main-1\n192.0.2.2 main-2\n");
    buf_release(&text);
    folder_remove(outer);
    world_init(&w, "true");
    write_whole(path_in(&w, "network"), "somewhere", 9);
    world_run(&w);
    assert_int_equal(w.end.stage, EXIT_STAGE_SETUP);
    assert_non_null(strstr(w.end.message, "is no address: \"somewhere\""));
    folder_remove(w.root);
}

/* Without HOME the home is that of the user in /etc/passwd. */
static void home_of_the_user(void **state)
{
    (void)state;
    const struct passwd *user = getpwuid(getuid());
    char *before = getenv("HOME") ? mem_copy(getenv("HOME")) : NULL, wanted[300];
    struct world w;
    if (!user || !user->pw_dir[0])
        skip();
    snprintf(wanted, sizeof wanted, "%s\n", user->pw_dir);
    unsetenv("HOME");
    world_init(&w, "echo $HOME");
    world_run(&w);
    if (before)
        setenv("HOME", before, 1);
    mem_free(before);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    log_is(&w, "stdout", wanted);
    folder_remove(w.root);
}

/* A line with the interface that has this address of the machine, or "none". */
static void interface_line(int family, const void *address, size_t offset, size_t size,
                           char line[IF_NAMESIZE + 1])
{
    struct ifaddrs *all = NULL;
    strcpy(line, "none\n");
    assert_int_equal(getifaddrs(&all), 0);
    for (const struct ifaddrs *one = all; one; one = one->ifa_next)
        if (one->ifa_addr && one->ifa_addr->sa_family == family &&
            memcmp((const char *)one->ifa_addr + offset, address, size) == 0)
            snprintf(line, IF_NAMESIZE + 1, "%s\n", one->ifa_name);
    freeifaddrs(all);
}

/* With peers, the libraries of training are told the interface that has the task's address. */
static void interface_of_the_address(void **state)
{
    (void)state;
    const struct in_addr four = {htonl(INADDR_LOOPBACK)};
    const struct in6_addr six = IN6ADDR_LOOPBACK_INIT;
    const char *const addresses[] = {"127.0.0.1", "::1", "192.0.2.1"};
    char lines[3][IF_NAMESIZE + 1] = {"", "", "none\n"};
    interface_line(AF_INET, &four, offsetof(struct sockaddr_in, sin_addr), sizeof four, lines[0]);
    interface_line(AF_INET6, &six, offsetof(struct sockaddr_in6, sin6_addr), sizeof six, lines[1]);
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        struct world w;
        world_init(&w, "echo ${GLOO_SOCKET_IFNAME-none}");
        w.role.instances = 2;
        w.job.task_count = 2;
        w.tasks[0] = (struct job_file_task){addresses[i], "n", w.port_numbers};
        w.tasks[1] = (struct job_file_task){"192.0.2.2", "other", w.port_numbers};
        world_run(&w);
        end_is(&w, EXIT_STAGE_USER, 0, 0);
        log_is(&w, "stdout", lines[i]);
        folder_remove(w.root);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_private),
    cmocka_unit_test(test_output_of_init),
    cmocka_unit_test(test_no_place_for_the_mark),
    cmocka_unit_test(success),
    cmocka_unit_test(failures),
    cmocka_unit_test(pre_fails),
    cmocka_unit_test(port_conflict),
    cmocka_unit_test(signals_forwarded),
    cmocka_unit_test(a_kubelet_is_told_how_it_ended),
    cmocka_unit_test(network_of_its_own),
    cmocka_unit_test(not_usable),
    cmocka_unit_test(home_of_the_user),
    cmocka_unit_test(interface_of_the_address),
};
UNIT_FILE(tests, run_setup, NULL);
