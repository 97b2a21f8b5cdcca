/* skep-init — the first process of a container (docs/rfc/0009-skep-init.md).
 *
 * usage: skep-init [ROOT]     ROOT: what else is /skep (for tests)
 *        skep-init enter TERMINAL [COMMAND…]     a program beside the task's own (enter.c)
 *        skep-init beside TERM [COMMAND…]        becomes one (beside.c)
 *        skep-init fetch ROOT OUT ERR ALL RUNTIME    what is missing of the logs (fetch.c)
 *        skep-init reason ROOT WORD GRACE_MS     why the task is about to be ended (reason.c)
 *        skep-init addresses ROOT                where its peers are (addresses.c)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "init/init.h"
#include "init/layout.h"
#include "init/own_group.h"
#include "sys/clock.h"

enum { TERMINATED = 128 + 15 };

/* A whole file in the arena. */
static int file_read(struct init *init, const char *path, size_t bytes_max, struct text *bytes,
                     struct err *err)
{
    cleanup_buf struct buf whole = BUF_INIT;
    char part[16 * 1024];
    ssize_t length = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, errno, "cannot open %s", path);
    while (whole.length <= bytes_max && (length = read(fd, part, sizeof part)) > 0)
        buf_add(&whole, part, (size_t)length);
    int number = errno;
    close(fd);
    *bytes = (struct text){arena_copy(&init->arena, buf_as_text(&whole)), whole.length};
    return length < 0 ? err_errno(err, number, "cannot read %s", path) : 0;
}

static int logs_open(struct init *init, struct err *err)
{
    static const char *const NAMES[PIPES] = {"stdout", "stderr", "runtime"};
    const char *path = arena_format(&init->arena, "%s/log", init->root);
    init->log_directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (init->log_directory < 0)
        return err_errno(err, errno, "cannot open %s", path);
    int code = 0;
    for (size_t i = 0; i < PIPES && code == 0; i++)
        code =
            log_open(&init->logs[i], init->log_directory, NAMES[i], init->task.segment_bytes, err);
    if (code == 0)
        code = log_open(&init->all, init->log_directory, "all", init->task.segment_bytes, err);
    if (code == 0)
        log_times_open(&init->times, init->log_directory);
    return code;
}

/* What is written to /proc/1/fd/1 and 2 belongs into the task's logs, which are bounded, and not
 * into the engine's own file: from here on nobody can open that any more. */
static void output_redirect(struct init *init)
{
    dup2(init->write_ends[PIPE_STDOUT], STDOUT_FILENO);
    dup2(init->write_ends[PIPE_STDERR], STDERR_FILENO);
}

int task_read(struct init *init, struct err *err)
{
    struct text bytes = {0};
    const char *path = arena_format(&init->arena, "%s/%s", init->root, LAYOUT_TASK_NAME);
    int code = file_read(init, path, TASK_FILE_BYTES_MAX, &bytes, err);
    return code < 0 ? code : task_file_read(bytes, &init->arena, &init->task, err);
}

/* Everything without which not even a report can be written. */
static int begin(struct init *init, struct err *err)
{
    int code = task_read(init, err);
    if (code == 0)
        code = logs_open(init, err);
    if (code == 0)
        code = loop_init(init, err);
    if (code == 0) {
        relay_open(init);
        output_redirect(init);
    }
    return code;
}

int job_read(struct init *init, struct err *err)
{
    struct text bytes = {0};
    const char *path = arena_format(&init->arena, "%s/%s", init->root, LAYOUT_JOB_NAME);
    int code = file_read(init, path, JOB_FILE_BYTES_MAX, &bytes, err);
    if (code == 0)
        code = job_file_read(bytes, &init->arena, &init->job, err);
    if (code < 0)
        return code;
    if (!env_job_has_task(&init->job, init->task.role, init->task.index))
        return err_fail(err, ERR_CORRUPT, "",
                        "the task file names task %u of role %u, which the "
                        "job file does not have",
                        init->task.index, init->task.role);
    init->role = &init->job.roles[init->task.role];
    init->self =
        &init->job.tasks[job_file_first_task(&init->job, init->task.role) + init->task.index];
    return 0;
}

static int setup(struct init *init, struct err *err)
{
    static int (*const STEPS[])(struct init *, struct err *) = {
        job_read,  setup_network, setup_identity, setup_environment, setup_ports,
        code_copy, ssh_setup,     barrier_start,  barrier_ssh,
    };
    for (size_t i = 0; i < COUNT_OF(STEPS); i++) {
        int code = STEPS[i](init, err);
        if (code != 0 || init->is_stopping)
            return code;
    }
    return 0;
}

static void setup_fail(struct init *init, const struct err *err)
{
    note(init, "%s", err->text);
    init->end.stage = EXIT_STAGE_SETUP;
    if (init->end.code == 0)
        init->end.code = EXIT_FILE_SETUP;
    snprintf(init->end.message, sizeof init->end.message, "%s", err->text);
}

static void stages_run(struct init *init)
{
    const char *path = arena_format(&init->arena, "%s/run/%s", init->root, LAYOUT_STARTED_NAME);
    if (init->task.pre_command[0] &&
        !command_run(init, EXIT_STAGE_PRE, "pre-command", init->task.pre_command)) {
        note(init, "a pre-command failed: code %d", init->end.code);
        return;
    }
    if (init->is_stopping)
        return;
    init->end.started_ms = clock_unix_ms();
    struct err err = {0};
    if (file_write(path, TEXT(""), 0644, &err) < 0) { /* without it the platform is to blame */
        setup_fail(init, &err);
        return;
    }
    if (!command_run(init, EXIT_STAGE_USER, "command", init->task.command))
        return;
    if (init->task.post_command[0] && !init->is_stopping &&
        !command_run(init, EXIT_STAGE_POST, "post-command", init->task.post_command))
        note(init, "a post-command failed: code %d", init->end.code);
}

static void losses_tell(struct init *init)
{
    const struct log_writer *const ALL[] = {&init->logs[0], &init->logs[1], &init->logs[2],
                                            &init->all};
    for (size_t i = 0; i < COUNT_OF(ALL); i++)
        if (ALL[i]->lost > 0 && !init->end.message[0])
            snprintf(init->end.message, sizeof init->end.message,
                     "%llu bytes of log %s could not be written: %s",
                     (unsigned long long)ALL[i]->lost, ALL[i]->name, strerror(ALL[i]->lost_errno));
}

/* Kubelet reads its file when the container has ended. It is mounted, so that nothing can be
 * renamed over it; where there is no kubelet there is no such file. What a task has put there
 * instead, a pipe that nobody reads, must hold up nothing. */
static int termination_write(struct init *init, struct text text, struct err *err)
{
    const char *path = arena_format(&init->arena, "%s/../dev/termination-log", init->root);
    int fd = open(path, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0
                                                   : err_errno(err, errno, "cannot open %s", path);
    ssize_t written = write(fd, text.at, text.length); /* far less than a page */
    int code = written == (ssize_t)text.length ? 0 : err_errno(err, errno, "cannot write %s", path);
    close(fd);
    return code;
}

/* Whole or not at all: the engine may look at any moment. */
static int report(struct init *init, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT;
    const char *path = arena_format(&init->arena, "%s/run/%s", init->root, LAYOUT_EXIT_NAME);
    const char *aside = arena_format(&init->arena, "%s.new", path);
    init->end.ended_ms = clock_unix_ms();
    if (access(arena_format(&init->arena, "%s/%s", init->root, LAYOUT_RELAY_NAME), F_OK) == 0)
        init->end.memory = own_group_memory(init->root); /* nobody outside can look */
    exit_file_write(&init->end, &text);
    int code = file_write(aside, buf_as_text(&text), 0644, err);
    if (code == 0 && rename(aside, path) < 0)
        code = err_errno(err, errno, "cannot rename %s", aside);
    return code < 0 ? code : termination_write(init, buf_as_text(&text), err);
}

static void run(struct init *init)
{
    struct err err = {0};
    int code = setup(init, &err);
    if (init->is_stopping) {
        init->end.code = TERMINATED;
        snprintf(init->end.message, sizeof init->end.message, "ended before the command began");
    } else if (code < 0) {
        setup_fail(init, &err);
    } else {
        stages_run(init);
    }
    processes_end(init);
    losses_tell(init);
}

int main(int argc, char **argv)
{
    static struct init init;
    struct err err = {0};
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("skep-init " SKEP_VERSION);
        return 0;
    }
    arena_init(&init.arena);
    if (argc > 1 && strcmp(argv[1], LAYOUT_ENTER) == 0) {
        init.root = "/skep";
        return enter(&init, argc - 2, argv + 2);
    }
    if (argc > 1 && strcmp(argv[1], LAYOUT_BESIDE) == 0) {
        init.root = "/skep";
        return beside(&init, argc - 2, argv + 2);
    }
    if (argc > 1 && strcmp(argv[1], LAYOUT_FETCH) == 0)
        return fetch(&init, argc - 2, argv + 2);
    if (argc > 1 && strcmp(argv[1], LAYOUT_REASON) == 0)
        return reason(&init, argc - 2, argv + 2);
    if (argc > 1 && strcmp(argv[1], LAYOUT_ADDRESSES) == 0)
        return addresses(&init, argc - 2, argv + 2);
    init.root = argc > 1 ? argv[1] : "/skep";
    init.relay_fd = init.taken_fd = -1;
    if (begin(&init, &err) < 0) {
        fprintf(stderr, "skep-init: %s\n", err.text);
        return EXIT_FILE_SETUP;
    }
    run(&init);
    if (report(&init, &err) < 0)
        note(&init, "%s", err.text);
    relay_close(&init);
    return init.end.code;
}
