#include "run.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "waits.h"

int run_setup(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

char *path_in(const struct world *world, const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", world->root, name);
    return path;
}

void write_whole(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

void read_whole(const char *path, struct buf *out)
{
    FILE *file = fopen(path, "r");
    buf_clear(out);
    for (int c; file && (c = fgetc(file)) != EOF;)
        buf_char(out, (char)c);
    if (file)
        fclose(file);
}

void world_init(struct world *world, const char *command)
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

pid_t world_start(struct world *world)
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
        int output = world->output[0] ? open(world->output, O_WRONLY | O_CREAT, 0644) : -1;
        if (output >= 0)
            dup2(output, STDOUT_FILENO);
        if (chdir(world->root) == 0)
            execl(SKEP_INIT, SKEP_INIT, world->root, (char *)NULL);
        _exit(99);
    }
    return pid;
}

void world_wait(struct world *world, pid_t pid)
{
    struct buf bytes = BUF_INIT;
    struct err *none = NULL;
    assert_int_equal(waitpid(pid, &world->status, 0), pid);
    read_whole(path_in(world, "run/exit"), &bytes);
    assert_int_equal(exit_file_read(buf_as_text(&bytes), &world->end, none), 0);
    buf_release(&bytes);
}

void world_run(struct world *world)
{
    world_wait(world, world_start(world));
}

void folder_remove(const char *path)
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

void log_is(const struct world *world, const char *stream, const char *wanted)
{
    struct buf bytes = BUF_INIT;
    char name[64];
    snprintf(name, sizeof name, "log/" LAYOUT_SEGMENT_FORMAT, stream, 0ULL);
    read_whole(path_in(world, name), &bytes);
    assert_string_equal(buf_cstr(&bytes), wanted);
    buf_release(&bytes);
}

void log_has(const struct world *world, const char *stream, const char *wanted)
{
    struct buf bytes = BUF_INIT;
    char name[64];
    snprintf(name, sizeof name, "log/" LAYOUT_SEGMENT_FORMAT, stream, 0ULL);
    read_whole(path_in(world, name), &bytes);
    if (!strstr(buf_cstr(&bytes), wanted))
        fail_msg("\"%s\" is not in log %s: %s", wanted, stream, buf_cstr(&bytes));
    buf_release(&bytes);
}

void end_is(const struct world *world, enum exit_stage stage, int code, int signal)
{
    assert_string_equal(exit_stage_name(world->end.stage), exit_stage_name(stage));
    assert_int_equal(world->end.code, code);
    assert_int_equal(world->end.signal, signal);
    assert_true(WIFEXITED(world->status));
    assert_int_equal(WEXITSTATUS(world->status), code);
}

void ready_await(const struct world *world)
{
    assert_true(file_await(path_in(world, "run/ready"), RUN_LIMIT_MS));
}
