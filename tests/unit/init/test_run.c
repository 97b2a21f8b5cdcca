/* The program itself, run as a child in a directory that stands for /skep: stages, exits, signals,
 * leftovers, logs. What needs a real container (process 1, ssh) is in tests/system. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/memory.h"
#include "init/exit_file.h"
#include "init/job_file.h"
#include "init/layout.h"
#include "init/task_file.h"
#include "waits.h"

static const char *program;

struct world {
    char root[64];
    struct job_file job;
    struct job_file_role role;
    struct job_file_task tasks[2];
    struct job_file_port ports[2];
    uint16_t port_numbers[2];
    struct task_file task;
    struct exit_file end;
    int status;
};

static char *path_in(const struct world *world, const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", world->root, name);
    return path;
}

static void write_whole(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static void read_whole(const char *path, struct buf *out)
{
    FILE *file = fopen(path, "r");
    buf_clear(out);
    for (int c; file && (c = fgetc(file)) != EOF;)
        buf_char(out, (char)c);
    if (file)
        fclose(file);
}

static void world_init(struct world *world, const char *command)
{
    memset(world, 0, sizeof *world);
    strcpy(world->root, "/tmp/skep-init-test-XXXXXX");
    assert_non_null(mkdtemp(world->root));
    mkdir(path_in(world, "log"), 0755);
    mkdir(path_in(world, "run"), 0755);
    world->ports[0] = (struct job_file_port){"http", 1, 0};
    world->ports[1] = (struct job_file_port){"ssh", 1, 0};
    world->role = (struct job_file_role){.name = "main",
                                         .instances = 1,
                                         .cpu = 1,
                                         .memory_mib = 100,
                                         .ports = world->ports,
                                         .port_count = 2};
    world->tasks[0] = (struct job_file_task){"127.0.0.1", "n", world->port_numbers};
    world->job = (struct job_file){.format = JOB_FILE_V2,
                                   .name = "j",
                                   .user = "u",
                                   .is_namespaced = true,
                                   .roles = &world->role,
                                   .role_count = 1,
                                   .tasks = world->tasks,
                                   .task_count = 1};
    world->task = (struct task_file){.attempt_id = 1, .container = "skep-1", .command = command};
}

static pid_t world_start(struct world *world)
{
    struct buf bytes = BUF_INIT;
    job_file_write(&world->job, &bytes);
    write_whole(path_in(world, "job"), bytes.at, bytes.length);
    buf_clear(&bytes);
    task_file_write(&world->task, &bytes);
    write_whole(path_in(world, "task"), bytes.at, bytes.length);
    buf_release(&bytes);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (chdir(world->root) == 0)
            execl(program, program, world->root, (char *)NULL);
        _exit(99);
    }
    return pid;
}

static void world_wait(struct world *world, pid_t pid)
{
    struct buf bytes = BUF_INIT;
    struct err *none = NULL;
    assert_int_equal(waitpid(pid, &world->status, 0), pid);
    read_whole(path_in(world, "run/exit"), &bytes);
    assert_int_equal(exit_file_read(buf_as_text(&bytes), &world->end, none), 0);
    buf_release(&bytes);
}

static void world_run(struct world *world)
{
    world_wait(world, world_start(world));
}

static void folder_remove(const char *path)
{
    char inner[512];
    DIR *folder = opendir(path);
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (entry->d_type == DT_DIR)
            folder_remove(inner);
        else
            unlink(inner);
    }
    if (folder)
        closedir(folder);
    rmdir(path);
}

static void log_is(const struct world *world, const char *stream, const char *wanted)
{
    struct buf bytes = BUF_INIT;
    char name[64];
    snprintf(name, sizeof name, "log/" LAYOUT_SEGMENT_FORMAT, stream, 0ULL);
    read_whole(path_in(world, name), &bytes);
    assert_string_equal(buf_cstr(&bytes), wanted);
    buf_release(&bytes);
}

static void log_has(const struct world *world, const char *stream, const char *wanted)
{
    struct buf bytes = BUF_INIT;
    char name[64];
    snprintf(name, sizeof name, "log/" LAYOUT_SEGMENT_FORMAT, stream, 0ULL);
    read_whole(path_in(world, name), &bytes);
    if (!strstr(buf_cstr(&bytes), wanted))
        fail_msg("\"%s\" is not in log %s: %s", wanted, stream, buf_cstr(&bytes));
    buf_release(&bytes);
}

static void end_is(const struct world *world, enum exit_stage stage, int code, int signal)
{
    assert_string_equal(exit_stage_name(world->end.stage), exit_stage_name(stage));
    assert_int_equal(world->end.code, code);
    assert_int_equal(world->end.signal, signal);
    assert_true(WIFEXITED(world->status));
    assert_int_equal(WEXITSTATUS(world->status), code);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Until the command says so by making a file. */
static void ready_await(const struct world *world)
{
    assert_true(file_await(path_in(world, "run/ready"), 10000));
}

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

/* The shell dies of SIGTERM at once; what it started needs time to save its work, and has it. */
static void checkpoint(void **state)
{
    (void)state;
    struct world w;
    world_init(&w,
               "(trap 'read -r r < $SKEP_STOP_REASON_FILE; echo $r; sleep 0.3; echo saved; exit' "
               "TERM; echo > run/ready; while :; do sleep 0.02; done) & wait");
    pid_t pid = world_start(&w);
    ready_await(&w);
    struct reason_file reason = {"preempted", 20000};
    struct buf bytes = BUF_INIT;
    reason_file_write(&reason, &bytes);
    write_whole(path_in(&w, "run/reason"), bytes.at, bytes.length);
    buf_release(&bytes);
    kill(pid, SIGTERM);
    world_wait(&w, pid);
    end_is(&w, EXIT_STAGE_USER, 143, 15);
    log_is(&w, "stdout", "reason preempted\nsaved\n");
    folder_remove(w.root);
}

/* Who ignores SIGTERM is killed before the grace time ends, and the report is still written. */
static void stubborn(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, "trap '' TERM; echo > run/ready; while :; do sleep 0.02; done");
    pid_t pid = world_start(&w);
    ready_await(&w);
    write_whole(path_in(&w, "run/reason"), "reason stopped\ngrace_ms 400\n", 29);
    int64_t begun = now_ms();
    kill(pid, SIGTERM);
    world_wait(&w, pid);
    end_is(&w, EXIT_STAGE_USER, 137, 9);
    assert_true(now_ms() - begun < 5000);
    folder_remove(w.root);
}

/* Escaped by double fork and setsid, ignoring SIGTERM, holding the pipes: gone all the same. */
static void leftovers(void **state)
{
    (void)state;
    struct world w;
    struct buf bytes = BUF_INIT;
    world_init(
        &w, "(setsid sh -c 'trap \"\" TERM; echo $$ > run/pid; while :; do sleep 0.05; done' &)\n"
            "until [ -s run/pid ]; do sleep 0.01; done; echo done");
    world_run(&w);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    log_is(&w, "stdout", "done\n");
    read_whole(path_in(&w, "run/pid"), &bytes);
    assert_int_equal(kill((pid_t)atoi(buf_cstr(&bytes)), 0), -1);
    assert_int_equal(errno, ESRCH);
    buf_release(&bytes);
    folder_remove(w.root);
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

/* hung: a Python program shows its stacks before it ends. */
static void stack_dump(void **state)
{
    (void)state;
    struct world w;
    if (access("/usr/bin/python3", X_OK) != 0)
        skip();
    world_init(&w, "python3 -c 'import time\ndef stuck():\n    open(\"run/ready\",\"w\").close()\n"
                   "    time.sleep(60)\nstuck()'");
    pid_t pid = world_start(&w);
    ready_await(&w);
    write_whole(path_in(&w, "run/reason"), "reason hung\ngrace_ms 8000\n", 27);
    kill(pid, SIGTERM);
    world_wait(&w, pid);
    assert_int_equal(w.end.code, 134);
    log_has(&w, "stderr", "in stuck");
    log_has(&w, "runtime", "stack dump: pid");
    folder_remove(w.root);
}

/* 3 segments' worth: the newest two stay, named by their offsets; no byte of them is lost. */
static void rotation(void **state)
{
    (void)state;
    struct world w;
    struct buf bytes = BUF_INIT;
    world_init(&w, "i=0; while [ $i -lt 1000 ]; do echo line $((10000 + i)); i=$((i+1)); done");
    w.task.segment_bytes = 4096;
    world_run(&w);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    assert_int_equal(access(path_in(&w, "log/stdout.000000000000000"), F_OK), -1);
    assert_int_equal(access(path_in(&w, "log/stdout.000000000004096"), F_OK), 0);
    read_whole(path_in(&w, "log/stdout.000000000008192"), &bytes);
    assert_int_equal(bytes.length, 11000 - 8192);
    assert_string_equal(bytes.at + bytes.length - 11, "line 10999\n");
    read_whole(path_in(&w, "log/all.000000000004096"), &bytes);
    assert_int_equal(bytes.length, 4096);
    buf_release(&bytes);
    folder_remove(w.root);
}

/* What a process that is not awaited wrote just before the end is in the log. */
static void nothing_lost(void **state)
{
    (void)state;
    struct world w;
    struct stat what;
    world_init(&w, "head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2");
    world_run(&w);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    assert_int_equal(stat(path_in(&w, "log/all.000000000000000"), &what), 0);
    assert_int_equal(what.st_size, 5000000);
    assert_int_equal(stat(path_in(&w, "log/stderr.000000000000000"), &what), 0);
    assert_int_equal(what.st_size, 2000000);
    folder_remove(w.root);
}

/* Alternating streams, each line waited for by the writer: the merged log has them in order. */
static void merged_order(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, "for i in 1 2 3 4 5; do echo o$i; sleep 0.02; echo e$i >&2; sleep 0.02; done");
    world_run(&w);
    log_is(&w, "all", "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n");
    folder_remove(w.root);
}

static void code_directory(void **state)
{
    (void)state;
    struct world w;
    char code[256];
    world_init(&w, "cat train/a/b.txt; readlink train/l; test -x train/run.sh");
    mkdir(path_in(&w, "code"), 0755);
    mkdir(path_in(&w, "code/a"), 0755);
    write_whole(path_in(&w, "code/a/b.txt"), "hello\n", 6);
    write_whole(path_in(&w, "code/run.sh"), "", 0);
    chmod(path_in(&w, "code/run.sh"), 0755);
    assert_int_equal(symlink("a/b.txt", path_in(&w, "code/l")), 0);
    w.job.code_dir = "hdfs://nn:9000/alice/train/";
    snprintf(code, sizeof code, "%s/code", w.root);
    w.task.code_path = code;
    world_run(&w);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    log_is(&w, "stdout", "hello\na/b.txt\n");
    folder_remove(w.root);
}

static void code_directory_too_large(void **state)
{
    (void)state;
    struct world w;
    char code[256], path[300];
    world_init(&w, "echo never");
    mkdir(path_in(&w, "code"), 0755);
    snprintf(code, sizeof code, "%s/code", w.root);
    snprintf(path, sizeof path, "%s/data", code);
    write_whole(path, "", 0);
    assert_int_equal(truncate(path, 200000001), 0);
    w.job.code_dir = "/alice/code";
    w.task.code_path = code;
    world_run(&w);
    end_is(&w, EXIT_STAGE_SETUP, EXIT_FILE_CODE_TOO_BIG, 0);
    assert_non_null(strstr(w.end.message, "more than 200000000 bytes"));
    log_is(&w, "stdout", "");
    folder_remove(w.root);
}

/* Every v1 job has ssh, also where the image's user has no home to keep the keys in. */
static void ssh_without_home(void **state)
{
    (void)state;
    for (int format = JOB_FILE_V1; format <= JOB_FILE_V2; format++) {
        struct world w;
        char *home = strdup(getenv("HOME") ? getenv("HOME") : "/");
        world_init(&w, "echo ran");
        w.job.format = (uint8_t)format;
        w.role.is_ssh_enabled = true;
        w.task.has_ssh_barrier = true;
        w.task.ssh_private_key = w.task.ssh_public_key = "KEY";
        setenv("HOME", "/proc", 1); /* nothing can be made there */
        world_run(&w);
        setenv("HOME", home, 1);
        free(home);
        if (format == JOB_FILE_V1)
            end_is(&w, EXIT_STAGE_USER, 0, 0);
        else
            end_is(&w, EXIT_STAGE_SETUP, EXIT_FILE_SETUP, 0);
        folder_remove(w.root);
    }
}

/* What ssh needs lies in the user's home: whom to reach, who may come, and what a command that
 * comes that way finds in its environment. Without a port for it no server is started. */
static void ssh_files(void **state)
{
    (void)state;
    static const struct {
        const char *name, *says;
    } FILES[] = {
        {"home/.ssh/config", "Host "},
        {"home/.ssh/authorized_keys", "ssh-ed25519 OWN\nssh-rsa ANOTHER\n"},
        {"home/.ssh/environment", "SKEP_INIT_TEST=here\n"},
    };
    struct world w;
    struct buf text = BUF_INIT;
    char *home = strdup(getenv("HOME") ? getenv("HOME") : "/");
    world_init(&w, "echo ran");
    mkdir(path_in(&w, "home"), 0755);
    w.role.is_ssh_enabled = true;
    w.role.port_count = 1;
    w.task.ssh_private_key = "KEY";
    w.task.ssh_public_key = "ssh-ed25519 OWN";
    w.task.ssh_authorized_keys = "ssh-rsa ANOTHER";
    setenv("HOME", path_in(&w, "home"), 1);
    setenv("SKEP_INIT_TEST", "here", 1);
    world_run(&w);
    setenv("HOME", home, 1);
    unsetenv("SKEP_INIT_TEST");
    free(home);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    for (size_t i = 0; i < COUNT_OF(FILES); i++) {
        read_whole(path_in(&w, FILES[i].name), &text);
        if (!strstr(buf_cstr(&text), FILES[i].says))
            fail_msg("%s says not %s but %s", FILES[i].name, FILES[i].says, buf_cstr(&text));
    }
    buf_release(&text);
    folder_remove(w.root);
}

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
        w.task.barrier_timeout_s = 10;
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
    w.task.ssh_barrier_timeout_s = 20;
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
        w.task.ssh_barrier_timeout_s = comes ? 20 : 1;
        if (comes)
            assert_int_equal(listen(fd, 4), 0);
        else
            close(fd); /* refused */
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
        if (comes)
            close(fd);
        folder_remove(w.root);
    }
}

/* A job that asks for no certain time does not wait where the image has no sshd. */
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
    w.task.ssh_barrier_timeout_s = 0;
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
        execl(program, program, w.root, (char *)NULL);
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

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(test_private),
        cmocka_unit_test(test_output_of_init),
        cmocka_unit_test(test_no_place_for_the_mark),
        cmocka_unit_test(success),
        cmocka_unit_test(failures),
        cmocka_unit_test(pre_fails),
        cmocka_unit_test(port_conflict),
        cmocka_unit_test(checkpoint),
        cmocka_unit_test(stubborn),
        cmocka_unit_test(leftovers),
        cmocka_unit_test(signals_forwarded),
        cmocka_unit_test(stack_dump),
        cmocka_unit_test(rotation),
        cmocka_unit_test(nothing_lost),
        cmocka_unit_test(merged_order),
        cmocka_unit_test(code_directory),
        cmocka_unit_test(code_directory_too_large),
        cmocka_unit_test(start_barrier),
        cmocka_unit_test(ssh_without_home),
        cmocka_unit_test(ssh_files),
        cmocka_unit_test(asked_again),
        cmocka_unit_test(ssh_barrier),
        cmocka_unit_test(ssh_barrier_without_sshd),
        cmocka_unit_test(not_usable),
        cmocka_unit_test(ended_at_barrier),
    };
    if (argc < 2)
        return 2;
    program = realpath(argv[1], NULL);
    if (!program)
        return 2;
    alarm(60); /* a defect must not hang the suite */
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(TESTS, NULL, NULL);
}
