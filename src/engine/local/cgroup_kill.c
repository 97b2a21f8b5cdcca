/* Ending all processes of a control group, a fork bomb among them. */
#include "base/buf.h"
#include "base/err.h"
#include "engine/local/cgroup.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/mailbox.h"
#include "sys/process.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    KILL_BATCH = 64, /* processes whose end is waited for at once */
    FREEZE_MS = 200, /* a process in the kernel's depths cannot be frozen: it is not waited for */
    FREEZE_STEP_MS = 2, /* the kernel does not tell when a v1 group is frozen */
    LEVELS_MAX = 16, /* of groups below a task's, which only the machine's administrator can make */
};

/* False: there is no such file, or the kernel refuses the value. */
static bool value_put(const char *directory, const char *name, const char *value)
{
    char path[CGROUP_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);
    size_t length = strlen(value);
    return fd >= 0 && write(fd, value, length) == (ssize_t)length;
}

/* Call `visit` for the directory and all below it. */
static void groups_visit(const char *directory, unsigned levels,
                         void (*visit)(void *context, const char *directory), void *context)
{
    visit(context, directory);
    cleanup_dir DIR *dir = levels ? opendir(directory) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char below[CGROUP_PATH_MAX];
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
            snprintf(below, sizeof below, "%s/%s", directory, entry->d_name) < CGROUP_PATH_MAX)
            groups_visit(below, levels - 1, visit, context);
    }
}

static void quota_lift(void *is_v2, const char *directory)
{
    if (is_v2)
        value_put(directory, "cpu.max", "max");
    else
        value_put(directory, "cpu.cfs_quota_us", "-1");
}

void cgroup_unlimit(const struct cgroup_layout *layout, const char *group)
{
    char path[CGROUP_PATH_MAX];
    bool is_v2 = layout->kind == CGROUP_V2;
    if (cgroup_path(layout, "cpu", group, path))
        groups_visit(path, LEVELS_MAX, quota_lift, is_v2 ? &is_v2 : NULL);
}

/* --- the list of processes --- */

struct sweep {
    const struct cgroup_layout *layout;
    const char *group;
    bool is_frozen;
};

/* A pid that was listed may have been given to another process since, unless the group is frozen.
 */
static void process_kill(const struct sweep *sweep, pid_t pid)
{
    if (sweep->is_frozen) {
        kill(pid, SIGKILL);
        return;
    }
    cleanup_close int watch = process_watch(pid, NULL);
    if (watch >= 0 && cgroup_has_process(sweep->layout, sweep->group, pid))
        syscall(SYS_pidfd_send_signal, watch, SIGKILL, NULL, 0u);
}

static void members_kill(void *context, const char *directory)
{
    const struct sweep *sweep = context;
    char path[CGROUP_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/cgroup.procs", directory);
    cleanup_file FILE *file = fopen(path, "re");
    int pid;
    while (file && fscanf(file, "%d", &pid) == 1)
        if (pid > 0) /* 0: of a pid namespace that we do not see, not ours */
            process_kill(sweep, pid);
}

static bool state_is_frozen(const char *directory, const char *name, const char *wanted)
{
    char path[CGROUP_PATH_MAX + 32], text[128] = "";
    snprintf(path, sizeof path, "%s/%s", directory, name);
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, text, sizeof text - 1) > 0 && strstr(text, wanted);
}

/* How the two kinds of trees freeze a group. */
struct freezer {
    const char *file, *freeze, *thaw, *state_file, *frozen;
};

static const struct freezer freezer_v1 = {"freezer.state", "FROZEN", "THAWED", "freezer.state",
                                          "FROZEN"};
static const struct freezer freezer_v2 = {"cgroup.freeze", "1", "0", "cgroup.events", "frozen 1"};

static bool group_freeze(const struct freezer *freezer, const char *directory)
{
    if (!value_put(directory, freezer->file, freezer->freeze))
        return false;
    for (int64_t due_ms = clock_monotonic_ms() + FREEZE_MS;;) {
        if (state_is_frozen(directory, freezer->state_file, freezer->frozen))
            return true;
        if (clock_monotonic_ms() >= due_ms)
            return false;
        poll(NULL, 0, FREEZE_STEP_MS);
    }
}

static void tree_sweep(const struct cgroup_layout *layout, const struct cgroup_tree *tree,
                       const char *group)
{
    char directory[CGROUP_PATH_MAX], frozen_at[CGROUP_PATH_MAX] = "";
    const struct freezer *freezer = tree->is_v2 ? &freezer_v2 : &freezer_v1;
    cgroup_tree_path(tree, group, directory);
    if (access(directory, F_OK) < 0 || (tree->is_v2 && value_put(directory, "cgroup.kill", "1")))
        return;
    if (tree->is_v2)
        snprintf(frozen_at, sizeof frozen_at, "%s", directory);
    else
        cgroup_path(layout, "freezer", group, frozen_at);
    struct sweep sweep = {.layout = layout, .group = group};
    sweep.is_frozen = frozen_at[0] && group_freeze(freezer, frozen_at);
    groups_visit(directory, LEVELS_MAX, members_kill, &sweep);
    if (frozen_at[0]) /* also when it did not freeze in time: a frozen process cannot end */
        value_put(frozen_at, freezer->file, freezer->thaw);
}

void cgroup_kill(const struct cgroup_layout *layout, const char *group)
{
    cgroup_unlimit(layout, group);
    bool has_v1 = false; /* one of these trees is enough: a process is in the same group of each */
    for (size_t i = 0; i < layout->tree_count; i++) {
        const struct cgroup_tree *tree = &layout->trees[i];
        char directory[CGROUP_PATH_MAX];
        cgroup_tree_path(tree, group, directory);
        if (access(directory, F_OK) < 0 || (!tree->is_v2 && has_v1))
            continue;
        has_v1 |= !tree->is_v2;
        tree_sweep(layout, tree, group);
    }
}

/* --- until nothing is left --- */

/* Descriptors of at most `room` processes of one directory. */
static size_t members_watch(const char *directory, struct pollfd *watches, size_t room)
{
    char path[CGROUP_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/cgroup.procs", directory);
    cleanup_file FILE *file = fopen(path, "re");
    size_t count = 0;
    int pid;
    while (file && count < room && fscanf(file, "%d", &pid) == 1) {
        int watch = pid > 0 ? process_watch(pid, NULL) : -1;
        if (watch >= 0)
            watches[count++] = (struct pollfd){.fd = watch, .events = POLLIN};
    }
    return count;
}

struct cgroup_removal {
    const struct cgroup_layout *layout;
    const struct cgroup_tree *tree;
    const char *group;
    int64_t due_ms;
};

/* Until no process is left in this one directory, or it is gone. */
static int group_empty(const struct cgroup_removal *removal, const char *directory, struct err *err)
{
    for (;;) {
        struct pollfd watches[KILL_BATCH];
        size_t count = members_watch(directory, watches, KILL_BATCH);
        if (count == 0)
            return 0;
        tree_sweep(removal->layout, removal->tree, removal->group);
        bool is_late = false;
        for (size_t i = 0; i < count; i++) {
            int64_t left = removal->due_ms - clock_monotonic_ms();
            if (left <= 0 || poll(&watches[i], 1, (int)left) == 0)
                is_late = true;
            close(watches[i].fd);
        }
        if (is_late)
            return err_fail(err, ERR_BUSY, "", "processes in %s cannot be killed", directory);
    }
}

/* Depth first: a container may have made groups of its own. */
static int directory_remove(const struct cgroup_removal *removal, const char *directory,
                            struct err *err)
{
    if (rmdir(directory) == 0) /* nothing runs in it: the usual end */
        return 0;
    cleanup_dir DIR *dir = opendir(directory);
    if (!dir)
        return errno == ENOENT ? 0 : err_errno(err, errno, "open %s", directory);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        char below[CGROUP_PATH_MAX];
        if (snprintf(below, sizeof below, "%s/%s", directory, entry->d_name) >= CGROUP_PATH_MAX)
            return err_fail(err, ERR_TOO_BIG, "", "a path below %s is too long", directory);
        int code = directory_remove(removal, below, err);
        if (code < 0)
            return code;
    }
    int code = group_empty(removal, directory, err);
    if (code < 0)
        return code;
    /* a killed process leaves its group a moment after its descriptor says so */
    while (rmdir(directory) < 0) {
        if (errno == ENOENT)
            return 0;
        if (errno != EBUSY || clock_monotonic_ms() > removal->due_ms)
            return err_errno(err, errno, "remove %s", directory);
        code = group_empty(removal, directory, err);
        if (code < 0)
            return code;
        sched_yield();
    }
    return 0;
}

int cgroup_remove(const struct cgroup_layout *layout, const char *group, uint32_t timeout_ms,
                  struct err *err)
{
    struct cgroup_removal removal = {
        .layout = layout, .group = group, .due_ms = clock_monotonic_ms() + timeout_ms};
    int code = 0;
    bool is_unlimited = false;
    for (size_t i = 0; i < layout->tree_count; i++) {
        char path[CGROUP_PATH_MAX];
        cgroup_tree_path(&layout->trees[i], group, path);
        if (rmdir(path) == 0 || errno == ENOENT)
            continue;
        if (!is_unlimited)
            cgroup_unlimit(layout, group);
        is_unlimited = true;
        removal.tree = &layout->trees[i];
        int removed = directory_remove(&removal, path, code == 0 ? err : NULL);
        if (removed < 0 && code == 0)
            code = removed;
    }
    return code;
}
