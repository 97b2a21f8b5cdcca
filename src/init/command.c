#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "init/init.h"
#include "init/layout.h"

int file_write(const char *path, struct text bytes, mode_t mode, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (fd < 0)
        return err_errno(err, errno, "cannot create %s", path);
    while (bytes.length > 0) {
        ssize_t written = write(fd, bytes.at, bytes.length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            int number = errno;
            close(fd);
            return err_errno(err, number, "cannot write %s", path);
        }
        bytes.at += written;
        bytes.length -= (size_t)written;
    }
    if (close(fd) < 0)
        return err_errno(err, errno, "cannot close %s", path);
    return 0;
}

const char *private_path(struct init *init, const char *name)
{
    const char *folder = arena_format(&init->arena, "%s/private", init->root);
    if (access(folder, W_OK) < 0)
        folder = arena_format(&init->arena, "%s/run", init->root);
    return arena_format(&init->arena, "%s/%s", folder, name);
}

/* In the child: nothing of ours remains but the pipes and the environment. */
static void child_become(struct init *init, const char *const *argv, enum pipe_kind out,
                         enum pipe_kind err_to)
{
    sigset_t none;
    setsid();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    int null = open("/dev/null", O_RDONLY);
    if (null > 0)
        dup2(null, STDIN_FILENO);
    dup2(init->write_ends[out], STDOUT_FILENO);
    dup2(init->write_ends[err_to], STDERR_FILENO);
    if (null > STDERR_FILENO)
        close(null);
    execve(argv[0], (char *const *)argv, init->environment);
    dprintf(STDERR_FILENO, "skep-init: cannot run %s: errno %d\n", argv[0], errno);
    _exit(errno == ENOENT ? 127 : 126);
}

pid_t command_start(struct init *init, const char *const *argv, enum pipe_kind out,
                    enum pipe_kind err_to, struct err *err)
{
    assert(argv[0]);
    pid_t pid = fork();
    if (pid < 0)
        return err_errno(err, errno, "fork");
    if (pid == 0)
        child_become(init, argv, out, err_to);
    return pid;
}

static const char *first_program(const char *const *paths)
{
    for (; *paths; paths++)
        if (access(*paths, X_OK) == 0)
            return *paths;
    return NULL;
}

const char *shell_find(bool *is_bash)
{
    static const char *const BASH[] = {"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", NULL};
    static const char *const SH[] = {"/bin/sh", "/usr/bin/sh", "/busybox/sh", NULL};
    const char *shell = first_program(BASH);
    *is_bash = shell != NULL;
    return shell ? shell : first_program(SH);
}

/* The options as OpenPAI sets them for v2. */
static int shell_argv(struct init *init, const char *path, const char *argv[8], struct err *err)
{
    bool is_strict = init->job.format == JOB_FILE_V2, is_bash = false;
    const char *shell = shell_find(&is_bash);
    size_t count = 0;
    if (is_bash) {
        argv[count++] = shell;
        if (is_strict) {
            argv[count++] = "-eu";
            argv[count++] = "-o";
            argv[count++] = "pipefail";
        }
    } else {
        if (!shell)
            return err_fail(err, ERR_NOT_FOUND, "",
                            "the image has neither /bin/bash nor /bin/sh to run the command");
        argv[count++] = shell;
        if (is_strict) { /* a plain sh may not know pipefail */
            argv[count++] = "-eu";
            argv[count++] = "-c";
            argv[count++] = "command set -o pipefail 2>/dev/null || :; . \"$0\"";
        }
    }
    argv[count++] = path;
    argv[count] = NULL;
    return 0;
}

static void end_set(struct init *init, enum exit_stage stage, int status)
{
    init->end.stage = stage;
    if (WIFSIGNALED(status)) {
        init->end.signal = WTERMSIG(status);
        init->end.code = 128 + init->end.signal;
    } else {
        init->end.code = WEXITSTATUS(status);
        init->end.signal = 0;
    }
}

static int stage_start(struct init *init, enum exit_stage stage, const char *name, const char *text,
                       struct err *err)
{
    const char *argv[8] = {NULL};
    const char *path = private_path(init, name);
    int code = file_write(path, text_of(text), 0600, err);
    if (code < 0)
        return code;
    code = shell_argv(init, path, argv, err);
    if (code < 0)
        return code;
    enum pipe_kind out = stage == EXIT_STAGE_PRE ? PIPE_RUNTIME : PIPE_STDOUT;
    enum pipe_kind err_to = stage == EXIT_STAGE_PRE ? PIPE_RUNTIME : PIPE_STDERR;
    pid_t pid = command_start(init, argv, out, err_to, err);
    if (pid < 0)
        return (int)pid;
    init->is_main_done = false;
    init->main_pid = pid;
    return 0;
}

bool command_run(struct init *init, enum exit_stage stage, const char *name, const char *text)
{
    struct err err = {0};
    if (stage_start(init, stage, name, text, &err) < 0) {
        note(init, "%s", err.text);
        init->end.stage = EXIT_STAGE_SETUP;
        init->end.code = EXIT_FILE_SETUP;
        snprintf(init->end.message, sizeof init->end.message, "%s", err.text);
        return false;
    }
    while (!init->is_main_done)
        loop_turn(init, -1, 0, 0);
    init->main_pid = 0;
    loop_drain(init);
    end_set(init, stage, init->main_status);
    return init->end.code == 0;
}
