#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/memory.h"
#include "init/init.h"
#include "init/layout.h"
#include "sys/clock.h"

enum {
    LEFTOVER_MS = 1000,    /* after the command: from SIGTERM to SIGKILL */
    DUMP_MS = 1000,        /* time to write stacks */
    KILL_RESERVE_MS = 500, /* before the end of the grace time, to finish logs and report */
    PROC_TEXT = 512,
};

struct proc_entry {
    pid_t pid, parent;
    char state;
    char name[32];
    bool is_ours;
};

struct processes {
    struct proc_entry *items;
    size_t count, room;
};

static size_t small_file(const char *path, char *bytes, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, bytes, room - 1);
    if (fd >= 0)
        close(fd);
    bytes[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

/* "PID (NAME) STATE PPID …": the name may hold anything, so the last parenthesis counts. */
static bool process_read(pid_t pid, struct proc_entry *process)
{
    char path[64], text[PROC_TEXT];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (!small_file(path, text, sizeof text))
        return false;
    char *open = strchr(text, '('), *close = strrchr(text, ')');
    int parent;
    if (!open || !close || sscanf(close + 1, " %c %d", &process->state, &parent) != 2)
        return false;
    *close = '\0';
    process->pid = pid;
    process->parent = (pid_t)parent;
    snprintf(process->name, sizeof process->name, "%s", open + 1);
    return true;
}

static bool is_of_tree(const struct processes *all, pid_t pid)
{
    for (size_t depth = 0; depth < all->count && pid > 1; depth++) {
        if (pid == getpid())
            return true;
        pid_t parent = 0;
        for (size_t i = 0; i < all->count; i++)
            if (all->items[i].pid == pid)
                parent = all->items[i].parent;
        pid = parent;
    }
    return false;
}

/* All processes of the container but us; outside a container our descendants. */
static void processes_list(struct processes *all)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc && (entry = readdir(proc))) {
        struct proc_entry process = {0};
        if (isdigit((unsigned char)entry->d_name[0]) &&
            process_read((pid_t)atoi(entry->d_name), &process))
            *ARRAY_ADD(all) = process;
    }
    if (proc)
        closedir(proc);
    for (size_t i = 0; i < all->count; i++) {
        struct proc_entry *process = &all->items[i];
        process->is_ours = process->pid != getpid() && process->state != 'Z' &&
                           (getpid() == 1 || is_of_tree(all, process->pid));
    }
}

void processes_signal(int signal)
{
    if (getpid() == 1) { /* one call, so that nothing can fork its way out */
        kill(-1, signal);
        kill(-1, SIGCONT);
        return;
    }
    struct processes all = {0};
    processes_list(&all);
    for (size_t i = 0; i < all.count; i++)
        if (all.items[i].is_ours)
            kill(all.items[i].pid, signal);
    ARRAY_FREE(&all);
}

/* Stacks and states into the logs. */
static void processes_dump(struct init *init)
{
    struct processes all = {0};
    char path[64], channel[PROC_TEXT];
    processes_list(&all);
    for (size_t i = 0; i < all.count; i++) {
        const struct proc_entry *process = &all.items[i];
        if (!process->is_ours || process->pid == init->sshd_pid)
            continue;
        snprintf(path, sizeof path, "/proc/%d/wchan", (int)process->pid);
        small_file(path, channel, sizeof channel);
        note(init, "stack dump: pid %d %s, state %c, waits in %s", (int)process->pid, process->name,
             process->state, channel[0] ? channel : "-");
    }
    for (size_t i = 0; i < all.count; i++) {
        const struct proc_entry *process = &all.items[i];
        if (process->is_ours && strncmp(process->name, "python", 6) == 0)
            kill(process->pid, SIGABRT);
        else if (process->is_ours && strcmp(process->name, "java") == 0)
            kill(process->pid, SIGQUIT);
    }
    ARRAY_FREE(&all);
}

bool processes_reap(struct init *init)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid <= 0)
            return pid == 0;
        if (pid == init->main_pid) {
            init->main_status = status;
            init->is_main_done = true;
        } else if (pid == init->sshd_pid) {
            init->sshd_pid = 0;
            if (!init->is_stopping && !init->is_main_done)
                note(init, "sshd ended with status 0x%x", (unsigned)status);
        }
    }
}

static void reason_read(struct init *init, struct reason_file *reason)
{
    char path[512], text[PROC_TEXT];
    snprintf(path, sizeof path, "%s/run/%s", init->root, LAYOUT_REASON_NAME);
    size_t length = small_file(path, text, sizeof text);
    reason_file_read((struct text){text, length}, reason);
}

void processes_stop(struct init *init)
{
    struct reason_file reason;
    if (init->is_stopping)
        return;
    reason_read(init, &reason);
    note(init, "asked to end: %s, grace %u ms",
         reason.reason[0] ? reason.reason : "no reason given", reason.grace_ms);
    init->is_stopping = true;
    int64_t now = clock_monotonic_ms();
    if (reason.grace_ms > 0)
        init->kill_at_ms =
            now + (reason.grace_ms > 2 * KILL_RESERVE_MS ? reason.grace_ms - KILL_RESERVE_MS
                                                         : reason.grace_ms / 2);
    if (strcmp(reason.reason, "hung") == 0) {
        processes_dump(init);
        init->term_at_ms = now + DUMP_MS;
    } else {
        processes_signal(SIGTERM);
    }
}

int64_t processes_deadline(const struct init *init)
{
    if (init->term_at_ms && (!init->kill_at_ms || init->term_at_ms < init->kill_at_ms))
        return init->term_at_ms;
    return init->kill_at_ms;
}

void processes_deadlines(struct init *init)
{
    int64_t now = clock_monotonic_ms();
    if (init->term_at_ms && now >= init->term_at_ms) {
        init->term_at_ms = 0;
        processes_signal(SIGTERM);
    }
    if (init->kill_at_ms && now >= init->kill_at_ms) {
        init->kill_at_ms = now + 50; /* again, for what was forked meanwhile */
        processes_signal(SIGKILL);
    }
}

void processes_end(struct init *init)
{
    bool has_children = processes_reap(init);
    if (has_children && !init->is_stopping) {
        processes_signal(SIGTERM);
        init->kill_at_ms = clock_monotonic_ms() + LEFTOVER_MS;
    } else if (has_children && init->sshd_pid > 0) {
        kill(init->sshd_pid, SIGTERM);
    }
    while (processes_reap(init))
        loop_turn(init, -1, 0, 0);
    init->kill_at_ms = init->term_at_ms = 0;
    loop_finish(init);
}
