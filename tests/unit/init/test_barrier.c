/* Barriers before the start and for ssh: held requests, servers that go away, peers that come late.
 */
#include "run.h"
#include "unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "init/exit_file.h"
#include "init/job_file.h"

/* A held request: the server answers when the last task has come. */
static void start_barrier(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        int code;
        const char *message;
    } CASES[] = {
        {"HTTP/1.1 200 OK\r\n\r\n", 0, ""},
        {"HTTP/1.1 404 Not Found\r\n\r\n", 250, "start barrier: the server answered 404"},
        {"HTTP/1.1 409 Conflict\r\n\r\n{\"code\":\"BarrierBrokenError\",\"message\":"
         "\"worker-1 has ended with code 1\"}",
         252, "start barrier: worker-1 has ended with code 1"},
        {"HTTP/1.1 409 Conflict\r\n\r\n{\"message\":\"two\\\\lines\x1b[2J\nof text\"}", 252,
         "start barrier: twolines[2Jof text"}, /* nothing that a terminal or a log takes amiss */
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct world w;
        struct sockaddr_in address = {.sin_family = AF_INET};
        socklen_t length = sizeof address;
        char request[512] = "", url[64];
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
        assert_int_equal(listen(fd, 1), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
        world_init(&w, "echo through");
        snprintf(url, sizeof url, "http://127.0.0.1:%u/barrier/1/", ntohs(address.sin_port));
        w.task.barrier_url = url;
        w.task.barrier_token = "secret";
        w.task.has_start_barrier = true;
        w.task.barrier_timeout_s = RUN_LIMIT_MS / 1000;
        pid_t pid = world_start(&w);
        int peer = accept(fd, NULL, NULL);
        assert_true(peer >= 0);
        assert_true(recv(peer, request, sizeof request - 1, 0) > 0);
        assert_non_null(strstr(request, "POST /barrier/1/start HTTP/1.1\r\n"));
        assert_non_null(strstr(request, "Authorization: Bearer secret\r\n"));
        assert_int_equal(access(path_in(&w, "run/started"), F_OK), -1); /* held */
        assert_true(send(peer, CASES[i].answer, strlen(CASES[i].answer), 0) > 0);
        close(peer);
        world_wait(&w, pid);
        assert_int_equal(w.end.code, CASES[i].code);
        assert_string_equal(w.end.message, CASES[i].message);
        close(fd);
        folder_remove(w.root);
    }
}

/* A server that goes away in the middle is asked again; who is not up says so. */
static void asked_again(void **state)
{
    (void)state;
    static const char *const ANSWERS[] = {"", "HTTP/1.1 429 Too Many Requests\r\n\r\n",
                                          "HTTP/1.1 503 Service Unavailable\r\n\r\n",
                                          "HTTP/1.1 200 OK\r\n\r\n"};
    struct world w;
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    char url[64];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    world_init(&w, "echo through");
    w.role.is_ssh_enabled = true; /* without keys: no sshd is started */
    w.task.has_ssh_barrier = w.task.reports_ssh = true;
    w.task.ssh_barrier_timeout_s = RUN_LIMIT_MS / 1000;
    snprintf(url, sizeof url, "http://127.0.0.1:%u/b/", ntohs(address.sin_port));
    w.task.barrier_url = url;
    pid_t pid = world_start(&w);
    for (size_t i = 0; i < COUNT_OF(ANSWERS); i++) {
        char request[512] = "";
        int peer = accept(fd, NULL, NULL);
        assert_true(peer >= 0);
        assert_true(recv(peer, request, sizeof request - 1, 0) > 0);
        assert_non_null(strstr(request, "POST /b/ssh?missing=1 HTTP/1.1\r\n"));
        assert_true(send(peer, ANSWERS[i], strlen(ANSWERS[i]), 0) >= 0);
        close(peer);
    }
    world_wait(&w, pid);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    close(fd);
    folder_remove(w.root);
}

/* The ssh barrier waits for a peer that comes later, and gives up in time when none comes. */
static void ssh_barrier(void **state)
{
    (void)state;
    for (int comes = 0; comes < 2; comes++) {
        struct world w;
        struct sockaddr_in address = {.sin_family = AF_INET};
        socklen_t length = sizeof address;
        uint16_t peer_ports[2] = {0, 0};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
        peer_ports[1] = ntohs(address.sin_port);
        world_init(&w, "echo through");
        w.role.is_ssh_enabled = true;
        w.role.instances = 1;
        w.tasks[0].ports = peer_ports;
        w.task.has_ssh_barrier = true;
        w.task.ssh_barrier_timeout_s = comes ? RUN_LIMIT_MS / 1000 : 1;
        if (comes) /* else it is refused, and nobody else has the port */
            assert_int_equal(listen(fd, 4), 0);
        w.role.port_count = 2;
        /* the port is checked for conflicts as its own; a listening one would be one */
        struct job_file_role roles[2] = {w.role, w.role};
        struct job_file_task tasks[2] = {w.tasks[0], w.tasks[0]};
        uint16_t own[2] = {0, 0};
        roles[0].is_ssh_enabled = true;
        roles[1].name = "peer";
        tasks[0].ports = own;
        w.job.roles = roles;
        w.job.role_count = 2;
        w.job.tasks = tasks;
        w.job.task_count = 2;
        tasks[0].address = "unknown-host"; /* own place: not waited for */
        world_run(&w);
        if (comes)
            end_is(&w, EXIT_STAGE_USER, 0, 0);
        else
            end_is(&w, EXIT_STAGE_SETUP, EXIT_FILE_SSH_BARRIER, 0);
        close(fd);
        folder_remove(w.root);
    }
}

/* A job that can do without ssh does not wait where the image has no sshd. */
static void ssh_barrier_without_sshd(void **state)
{
    (void)state;
    struct world w;
    uint16_t ports[2] = {0, 1};
    if (access("/usr/sbin/sshd", X_OK) == 0)
        skip(); /* this machine would rightly wait */
    world_init(&w, "echo through");
    w.role.is_ssh_enabled = true;
    w.role.instances = 1;
    w.role.port_count = 2;
    w.tasks[0].ports = ports;
    w.tasks[0].address = "127.0.0.1";
    w.task.has_ssh_barrier = true;
    w.role.is_ssh_optional = true;
    world_run(&w);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    folder_remove(w.root);
}

/* Ended while it waits for peers: no command has run, and the report says so. */
static void ended_at_barrier(void **state)
{
    (void)state;
    struct world w;
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    char url[64];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    world_init(&w, "echo never");
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", ntohs(address.sin_port));
    w.task.barrier_url = url;
    w.task.has_start_barrier = true;
    pid_t pid = world_start(&w);
    int peer = accept(fd, NULL, NULL);
    assert_true(peer >= 0);
    kill(pid, SIGTERM);
    world_wait(&w, pid);
    end_is(&w, EXIT_STAGE_SETUP, 143, 0);
    log_is(&w, "stdout", "");
    close(peer);
    close(fd);
    folder_remove(w.root);
}

/* The same by a socket in a folder, which needs no network. */
static void start_barrier_by_door(void **state)
{
    (void)state;
    struct world w;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char request[512] = "", url[200];
    static const char answer[] = "HTTP/1.1 200 OK\r\n\r\n";
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    world_init(&w, "echo through");
    snprintf(address.sun_path, sizeof address.sun_path, "%s/door", w.root);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    snprintf(url, sizeof url, "unix:%s:/api/internal/1/", address.sun_path);
    w.task.barrier_url = url;
    w.task.barrier_token = "secret";
    w.task.has_start_barrier = true;
    pid_t pid = world_start(&w);
    int peer = accept(fd, NULL, NULL);
    assert_true(peer >= 0);
    assert_true(recv(peer, request, sizeof request - 1, 0) > 0);
    assert_non_null(strstr(request, "POST /api/internal/1/start HTTP/1.1\r\nHost: localhost"));
    assert_non_null(strstr(request, "Authorization: Bearer secret\r\n"));
    assert_true(send(peer, answer, strlen(answer), 0) > 0);
    close(peer);
    world_wait(&w, pid);
    assert_int_equal(w.end.code, 0);
    close(fd);
    folder_remove(w.root);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(start_barrier),
    cmocka_unit_test(start_barrier_by_door),
    cmocka_unit_test(asked_again),
    cmocka_unit_test(ssh_barrier),
    cmocka_unit_test(ssh_barrier_without_sshd),
    cmocka_unit_test(ended_at_barrier),
};
UNIT_FILE(tests, run_setup, NULL);
