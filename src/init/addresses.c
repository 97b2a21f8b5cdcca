/* addresses.c — a task in a network where each has an address of its own: it knows its own, and
 * waits for those of its peers (docs/rfc/0009-skep-init.md, "Addresses that come later").
 *
 * The engine starts `skep-init addresses ROOT` in the container when it knows them, with the list
 * on its standard input: that one puts the file into its place, and the task's own goes on.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "init/address_file.h"
#include "init/init.h"
#include "init/layout.h"
#include "sys/clock.h"

enum { FAILED = 1, WAIT_S = 30 * 60, MS_PER_S = 1000 };

static const char *list_path(struct init *init)
{
    return arena_format(&init->arena, "%s/run/%s", init->root, LAYOUT_ADDRESSES_NAME);
}

/* --- the list --- */

static bool is_address(const char *text)
{
    struct in6_addr parsed;
    return inet_pton(AF_INET, text, &parsed) == 1 || inet_pton(AF_INET6, text, &parsed) == 1;
}

/* As much as `is_whole` says, or all there is. */
static int list_read(int fd, struct buf *bytes, struct err *err)
{
    char part[16 * 1024];
    while (!address_file_is_whole(buf_as_text(bytes))) {
        const ssize_t length = read(fd, part, sizeof part);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return err_errno(err, errno, "cannot read the addresses of the job's tasks");
        if (length == 0)
            return 0;
        if (bytes->length + (size_t)length > ADDRESS_FILE_BYTES_MAX)
            return err_fail(err, ERR_TOO_BIG, "", "the addresses of the job's tasks are too many");
        buf_add(bytes, part, (size_t)length);
    }
    return 0;
}

/* --- the task's own skep-init --- */

/* The place of a task in the table; SIZE_MAX: the job has no such task. */
static size_t place_of(const struct job_file *job, const struct address_file_task *task)
{
    if (task->role >= job->role_count || task->index >= job->roles[task->role].instances)
        return SIZE_MAX;
    return job_file_first_task(job, task->role) + task->index;
}

/* What the table says was known before anything ran: nothing of it holds here. */
static void table_fill(struct init *init, const char *own, const struct address_file *file)
{
    struct job_file *job = &init->job;
    struct job_file_task *tasks = ARENA_ARRAY(&init->arena, struct job_file_task, job->task_count);
    const size_t self = (size_t)(init->self - job->tasks);
    memcpy(tasks, job->tasks, job->task_count * sizeof *tasks);
    for (size_t i = 0; i < job->task_count; i++)
        tasks[i].address = "";
    for (size_t i = 0; i < file->count; i++) {
        const size_t at = place_of(job, &file->tasks[i]);
        if (at != SIZE_MAX)
            tasks[at].address = file->tasks[i].address;
    }
    tasks[self].address = own;
    init->self = tasks + self;
    job->tasks = tasks;
}

/* Until the file is there. False: the time is over, or the task is told to end. */
static bool list_await(struct init *init, const char *path, struct err *err)
{
    const uint32_t wait_s = init->task.barrier_timeout_s ? init->task.barrier_timeout_s : WAIT_S;
    const int64_t until_ms = clock_monotonic_ms() + (int64_t)wait_s * MS_PER_S;
    const char *run = arena_format(&init->arena, "%s/run", init->root);
    char events[4096];
    const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch < 0 || inotify_add_watch(watch, run, IN_MOVED_TO) < 0) {
        err_errno(err, errno, "cannot watch %s", run);
        if (watch >= 0)
            close(watch);
        return false;
    }
    bool is_there = access(path, F_OK) == 0;
    if (!is_there)
        note(init, "waits until all tasks of the job have an address");
    while (!is_there && !init->is_stopping && clock_monotonic_ms() < until_ms) {
        loop_turn(init, watch, POLLIN, until_ms);
        while (read(watch, events, sizeof events) > 0)
            continue; /* whatever has come, it is looked at below */
        is_there = access(path, F_OK) == 0;
    }
    close(watch);
    if (!is_there && !init->is_stopping) {
        init->end.code = EXIT_FILE_BARRIER_TIMEOUT;
        err_fail(err, ERR_UNAVAILABLE, "",
                 "not all tasks of the job had an address within %u s, or this one was not told",
                 wait_s);
    }
    return is_there;
}

int addresses_setup(struct init *init, const char *own, struct err *err)
{
    cleanup_buf struct buf bytes = BUF_INIT;
    struct address_file file = {0};
    const char *path = list_path(init);
    if (!is_address(own))
        return err_fail(err, ERR_CORRUPT, "", "\"%.60s\" is no address", own);
    if (init->job.task_count > 1 && !init->is_guest && !list_await(init, path, err))
        return init->is_stopping ? 0 : ERR_UNAVAILABLE;
    const int fd = init->job.task_count > 1 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) { /* a program beside a task that still waits knows its own address alone */
        int code = list_read(fd, &bytes, err);
        close(fd);
        if (code == 0)
            code = address_file_read(buf_as_text(&bytes), &init->arena, &file, err);
        if (code < 0)
            return code;
    }
    table_fill(init, arena_copy(&init->arena, text_of(own)), &file);
    return 0;
}

/* --- `skep-init addresses ROOT` --- */

static int fail(const char *why)
{
    dprintf(STDERR_FILENO, "skep-init: addresses: %s\n", why);
    return FAILED;
}

/* Whoever reads it reads all of it, or nothing. What was told once stays: a task has read it. */
int addresses(struct init *init, int count, char **arguments)
{
    cleanup_buf struct buf bytes = BUF_INIT;
    struct address_file file;
    struct err err = {0};
    if (count != 1)
        return fail("it needs a folder");
    init->root = arguments[0];
    const char *path = list_path(init);
    int code = list_read(STDIN_FILENO, &bytes, &err);
    if (code == 0)
        code = address_file_read(buf_as_text(&bytes), &init->arena, &file, &err);
    if (code == 0 && access(path, F_OK) == 0)
        return 0;
    /* another that runs at the same time must not write into the same file */
    const char *aside = arena_format(&init->arena, "%s.%d", path, (int)getpid());
    if (code == 0)
        code = file_write(aside, buf_as_text(&bytes), 0644, &err);
    if (code == 0 && rename(aside, path) < 0)
        code = err_errno(&err, errno, "cannot rename %s", aside);
    return code == 0 ? 0 : fail(err.text);
}
