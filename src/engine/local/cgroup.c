#include "engine/local/cgroup.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CHARGED_AT_ONCE = 1 << 20 };

static bool tree_has(const struct cgroup_tree *tree, const char *controller)
{
    char wanted[40];
    snprintf(wanted, sizeof wanted, ",%s,", controller);
    return strstr(tree->controllers, wanted) != NULL;
}

static bool file_exists(const char *directory, const char *name)
{
    char path[CGROUP_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return access(path, F_OK) == 0;
}

/* What names a tree: its controllers, or name=…; other values (a release agent's path) are long. */
static bool controllers_set(struct cgroup_tree *tree, struct text options)
{
    size_t used = 0, room = sizeof tree->controllers;
    while (options.length > 0) {
        struct text option = text_cut(&options, ',');
        bool is_named = text_starts(option, TEXT("name="));
        if (!is_named && text_find(option, TEXT("=")) != SIZE_MAX)
            continue;
        if (used + option.length + 3 > room)
            return false;
        used += (size_t)snprintf(tree->controllers + used, room - used, ",%.*s", TEXT_ARG(option));
    }
    snprintf(tree->controllers + used, room - used, ",");
    return true;
}

/* "36 35 98:0 /root /mount options… - type source super-options" */
static void line_read(struct text line, struct cgroup_layout *layout)
{
    size_t dash = text_find(line, TEXT(" - cgroup"));
    if (dash == SIZE_MAX || layout->tree_count == CGROUP_TREES_MAX)
        return;
    struct text head = {line.at, dash}, tail = {line.at + dash + 3, line.length - dash - 3};
    for (int i = 0; i < 3; i++)
        text_cut(&head, ' ');
    struct text root = text_cut(&head, ' ');
    struct text mount = text_cut(&head, ' ');
    struct text type = text_cut(&tail, ' ');
    text_cut(&tail, ' ');
    struct cgroup_tree *tree = &layout->trees[layout->tree_count];
    *tree = (struct cgroup_tree){.is_v2 = text_is(type, "cgroup2")};
    if (text_is(root, "/"))
        root.length = 0;
    if (mount.length == 0 || mount.length >= sizeof tree->mount ||
        root.length >= sizeof tree->root ||
        !controllers_set(tree, tree->is_v2 ? (struct text){"", 0} : tail))
        return;
    for (size_t i = 0; i < layout->tree_count; i++) /* mounted twice: the first counts */
        if (tree->is_v2 && layout->trees[i].is_v2)
            return;
    snprintf(tree->mount, sizeof tree->mount, "%.*s", TEXT_ARG(mount));
    snprintf(tree->root, sizeof tree->root, "%.*s", TEXT_ARG(root));
    layout->tree_count++;
}

int cgroup_layout_read(struct text mountinfo, struct cgroup_layout *layout, struct err *err)
{
    memset(layout, 0, sizeof *layout);
    while (mountinfo.at)
        line_read(text_cut(&mountinfo, '\n'), layout);
    const struct cgroup_tree *v2 = NULL, *memory = NULL;
    for (size_t i = 0; i < layout->tree_count; i++) {
        if (layout->trees[i].is_v2)
            v2 = &layout->trees[i];
        else if (tree_has(&layout->trees[i], "memory"))
            memory = &layout->trees[i];
    }
    cleanup_free char *controllers = NULL;
    if (v2) {
        char path[CGROUP_PATH_MAX];
        snprintf(path, sizeof path, "%s/cgroup.controllers", v2->mount);
        struct buf text = BUF_INIT;
        file_read(path, 4096, &text, NULL);
        controllers = buf_steal(&text);
    }
    bool has_v2 = controllers && strspn(controllers, " \n") < strlen(controllers);
    if (memory) {
        layout->kind = v2 ? CGROUP_HYBRID : CGROUP_V1;
        layout->has_swap = file_exists(memory->mount, "memory.memsw.limit_in_bytes");
        if (v2)
            snprintf(layout->hybrid_mount, sizeof layout->hybrid_mount, "%s", v2->mount);
        layout->has_hybrid_controllers = has_v2;
        return 0;
    }
    if (!has_v2 || !strstr(controllers, "memory"))
        return err_fail(err, ERR_UNSUPPORTED, "",
                        "no control group tree with the memory controller is mounted");
    layout->kind = CGROUP_V2;
    layout->trees[0] = *v2;
    layout->tree_count = 1;
    layout->has_swap = true;
    return 0;
}

void cgroup_tree_path(const struct cgroup_tree *tree, const char *group, char path[CGROUP_PATH_MAX])
{
    assert(group[0] == '/');
    snprintf(path, CGROUP_PATH_MAX, "%s%s", tree->mount, group);
}

bool cgroup_path(const struct cgroup_layout *layout, const char *controller, const char *group,
                 char path[CGROUP_PATH_MAX])
{
    for (size_t i = 0; i < layout->tree_count; i++)
        if (layout->kind == CGROUP_V2 || tree_has(&layout->trees[i], controller)) {
            cgroup_tree_path(&layout->trees[i], group, path);
            return true;
        }
    return false;
}

/* The group itself, or one below it: names of others may begin or end alike. */
static bool path_is_in(struct text path, const char *root, const char *group)
{
    size_t length = strlen(root) + strlen(group);
    if (path.length == 0 || path.length < length) /* what was no line of a group has no address */
        return false;
    return text_starts(path, text_of(root)) &&
           text_starts((struct text){path.at + strlen(root), path.length - strlen(root)},
                       text_of(group)) &&
           (path.length == length || path.at[length] == '/');
}

bool cgroup_lines_name(const struct cgroup_layout *layout, const char *group, struct text lines)
{
    while (lines.length > 0) {
        struct text path = text_cut(&lines, '\n'); /* "4:cpu,cpuacct:/skep/1a2b/17" */
        text_cut(&path, ':');
        text_cut(&path, ':');
        for (size_t i = 0; i < layout->tree_count; i++)
            if (path_is_in(path, layout->trees[i].root, group))
                return true;
    }
    return false;
}

bool cgroup_has_process(const struct cgroup_layout *layout, const char *group, pid_t pid)
{
    char path[64];
    cleanup_buf struct buf lines = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    return file_read(path, 65536, &lines, NULL) == 0 &&
           cgroup_lines_name(layout, group, buf_as_text(&lines));
}

/* A small file of a group, "" when it is not there. */
static bool value_read(const struct cgroup_layout *layout, const char *controller,
                       const char *group, const char *name, char *out, size_t size)
{
    char path[CGROUP_PATH_MAX], file[CGROUP_PATH_MAX + 96];
    out[0] = 0;
    if (!cgroup_path(layout, controller, group, path))
        return false;
    snprintf(file, sizeof file, "%s/%s", path, name);
    cleanup_close int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, out, size - 1);
    out[got > 0 ? got : 0] = 0;
    return got >= 0;
}

/* The number after "KEY " at the start of a line. */
static uint64_t field_of(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        if (strncmp(at, key, length) == 0 && at[length] == ' ')
            return strtoull(at + length + 1, NULL, 10);
    return 0;
}

static uint64_t number_read(const struct cgroup_layout *layout, const char *group,
                            const char *prefix, const char *name)
{
    char text[64], file[80];
    snprintf(file, sizeof file, "%s.%s", prefix, name);
    value_read(layout, "memory", group, file, text, sizeof text);
    return strtoull(text, NULL, 10);
}

/* v1. Kernels of late count no failures any more; the most that was ever used is then just below
 * the limit, by less than what is charged at once. */
static bool limit_was_reached(const struct cgroup_layout *layout, const char *group,
                              const char *prefix)
{
    uint64_t limit = number_read(layout, group, prefix, "limit_in_bytes"),
             most = number_read(layout, group, prefix, "max_usage_in_bytes");
    return number_read(layout, group, prefix, "failcnt") > 0 ||
           (limit > 0 && most + CHARGED_AT_ONCE >= limit);
}

bool cgroup_oom_read(const struct cgroup_layout *layout, const char *group, struct cgroup_oom *oom)
{
    char text[1024];
    bool is_v2 = layout->kind == CGROUP_V2;
    const char *name = is_v2 ? "memory.events" : "memory.oom_control";
    *oom = (struct cgroup_oom){0};
    if (!value_read(layout, "memory", group, name, text, sizeof text))
        return false;
    oom->kills = field_of(text, "oom_kill");
    if (is_v2) {
        oom->is_limit = field_of(text, "oom") > 0;
        return true;
    }
    oom->is_limit = limit_was_reached(layout, group, "memory") ||
                    limit_was_reached(layout, group, "memory.memsw");
    return true;
}

static void io_v2_add(const char *text, struct engine_stats *stats)
{
    for (const char *at = text; (at = strstr(at, "bytes=")); at += 6) {
        uint64_t value = strtoull(at + 6, NULL, 10);
        if (at > text && at[-1] == 'r')
            stats->io_read_bytes += value;
        else if (at > text && at[-1] == 'w')
            stats->io_write_bytes += value;
    }
}

static void io_v1_add(const char *text, struct engine_stats *stats)
{
    for (const char *at = text; (at = strstr(at, "Read ")); at += 5)
        stats->io_read_bytes += strtoull(at + 5, NULL, 10);
    for (const char *at = text; (at = strstr(at, "Write ")); at += 6)
        stats->io_write_bytes += strtoull(at + 6, NULL, 10);
}

int cgroup_stats(const struct cgroup_layout *layout, const char *group, struct engine_stats *stats,
                 struct err *err)
{
    char text[8192];
    memset(stats, 0, sizeof *stats);
    if (layout->kind == CGROUP_V2) {
        if (!value_read(layout, "", group, "cpu.stat", text, sizeof text))
            return err_fail(err, ERR_NOT_FOUND, "", "there is no control group %s", group);
        stats->cpu_ns = field_of(text, "usage_usec") * 1000;
        value_read(layout, "", group, "memory.current", text, sizeof text);
        stats->memory_bytes = strtoull(text, NULL, 10);
        value_read(layout, "", group, "io.stat", text, sizeof text);
        io_v2_add(text, stats);
    } else {
        if (!value_read(layout, "memory", group, "memory.usage_in_bytes", text, sizeof text))
            return err_fail(err, ERR_NOT_FOUND, "", "there is no control group %s", group);
        stats->memory_bytes = strtoull(text, NULL, 10);
        value_read(layout, "cpuacct", group, "cpuacct.usage", text, sizeof text);
        stats->cpu_ns = strtoull(text, NULL, 10);
        value_read(layout, "blkio", group, "blkio.throttle.io_service_bytes_recursive", text,
                   sizeof text);
        io_v1_add(text, stats);
    }
    value_read(layout, "pids", group, "pids.current", text, sizeof text);
    stats->pids = strtoull(text, NULL, 10);
    return 0;
}

void cgroup_drop(const struct cgroup_layout *layout, const char *group)
{
    char path[CGROUP_PATH_MAX];
    for (size_t i = 0; i < layout->tree_count; i++) {
        cgroup_tree_path(&layout->trees[i], group, path);
        rmdir(path); /* in use, or not there: both are fine */
    }
}

/* Passable for all, whatever our umask: a runtime binds a task's group as who may be nobody here.
 */
static int directory_make(const char *mount, const char *group, struct err *err)
{
    char path[CGROUP_PATH_MAX];
    int start = snprintf(path, sizeof path, "%s%s", mount, group) - (int)strlen(group);
    for (char *slash = path + start + 1;; slash++) {
        slash = strchr(slash, '/');
        if (slash)
            *slash = 0;
        if ((mkdir(path, 0755) < 0 && errno != EEXIST) || chmod(path, 0755) < 0)
            return err_errno(err, errno, "make the control group %s", path);
        if (!slash)
            return 0;
        *slash = '/';
    }
}

int cgroup_make(const struct cgroup_layout *layout, const char *group, int procs_fds[2],
                struct err *err)
{
    procs_fds[0] = procs_fds[1] = -1;
    for (size_t i = 0; i < layout->tree_count; i++) {
        const struct cgroup_tree *tree = &layout->trees[i];
        if (!tree->is_v2 && !tree_has(tree, "name=systemd"))
            continue;
        int code = directory_make(tree->mount, group, err);
        if (code < 0)
            return code;
        int *fd = &procs_fds[tree->is_v2 ? 0 : 1];
        if (*fd >= 0) /* mounted twice */
            continue;
        char path[CGROUP_PATH_MAX + 32];
        snprintf(path, sizeof path, "%s%s/cgroup.procs", tree->mount, group);
        *fd = open(path, O_WRONLY | O_CLOEXEC);
        if (*fd < 0)
            return err_errno(err, errno, "open %s", path);
    }
    return 0;
}

void cgroup_children(const struct cgroup_layout *layout, const char *group,
                     void (*visit)(void *context, const char *name), void *context)
{
    for (size_t i = 0; i < layout->tree_count; i++) {
        char path[CGROUP_PATH_MAX];
        cgroup_tree_path(&layout->trees[i], group, path);
        cleanup_dir DIR *dir = opendir(path);
        if (!dir)
            continue;
        for (struct dirent *entry; (entry = readdir(dir));)
            if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
                visit(context, entry->d_name);
    }
}
