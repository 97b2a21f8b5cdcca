/* After a restart: what runs is ours again, what is left over goes. */
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/document.h"
#include "engine/local/image.h"
#include "engine/local/inventory.h"
#include "engine/local/spawn.h"
#include "engine/local/task.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/process.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool attempt_of(const char *name, struct attempt_id *attempt)
{
    int64_t value;
    if (!text_to_int64(text_of(name), &value) || value <= 0)
        return false;
    attempt->v = (uint64_t)value;
    return true;
}

/* The number in a small file, 0 when there is none. */
static pid_t pid_read(const struct local_engine *local, const char *id, const char *name)
{
    char path[RUNTIME_PATH_MAX];
    cleanup_buf struct buf text = BUF_INIT;
    int64_t value = 0;
    task_run_path(local, id, name, path);
    if (file_read(path, 64, &text, NULL) == 0)
        text_to_int64(text_trim(buf_as_text(&text)), &value);
    return value > 0 && value < INT32_MAX ? (pid_t)value : 0;
}

/* A pid may have been given to somebody else: conmon has our bundle among its arguments. A pidfd,
 * or -1. */
static int conmon_adopt(pid_t pid, const char *bundle)
{
    cleanup_close int watch = pid ? process_watch(pid, NULL) : -1;
    return watch >= 0 && process_has_argument(pid, bundle) ? fd_steal(&watch) : -1;
}

/* Likewise the first process of a container, which is in the container's control group. */
static int init_adopt(const struct local_engine *local, pid_t pid, const char *group)
{
    cleanup_close int watch = pid ? process_watch(pid, NULL) : -1;
    return watch >= 0 && cgroup_has_process(&local->cgroups, group, pid) ? fd_steal(&watch) : -1;
}

static bool ended_is_there(const struct local_engine *local, const char *id)
{
    char path[RUNTIME_PATH_MAX];
    task_path(local, id, "ended", path);
    return access(path, F_OK) == 0;
}

static bool marker_is_there(const struct local_engine *local, const char *id, const char *name)
{
    char path[RUNTIME_PATH_MAX];
    task_run_path(local, id, name, path);
    return access(path, F_OK) == 0;
}

static bool exit_is_there(const struct local_engine *local, const char *id)
{
    char path[RUNTIME_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", local->runtime.exit_directory, id);
    return access(path, F_OK) == 0;
}

/* state: {"version":1,"boot":…,"image":…,"poststop":…}, in `arena`; false: it is not whole */
static bool state_read(struct local_engine *local, struct task *task, struct arena *arena,
                       const struct doc **state, bool *is_this_boot)
{
    char path[RUNTIME_PATH_MAX];
    cleanup_buf struct buf text = BUF_INIT;
    task_path(local, task->id, "state", path);
    file_read(path, 65536, &text, NULL);
    const struct doc *doc = document_read(buf_as_text(&text), false, arena);
    const char *boot = document_string(doc, "boot");
    const char *image = document_string(doc, "image");
    bool is_whole = boot[0] && image[0];
    *state = doc;
    if (is_whole) {
        *is_this_boot = strcmp(boot, local->boot_id) == 0;
        task->has_poststop = document_bool(doc, "poststop");
        task_gpus_adopt(local, task, doc);
        task->image = images_adopt(local->images, image);
        if (*is_this_boot)
            task_ids_adopt(local, task, doc);
    }
    return is_whole;
}

/* Did its first process get to run? A marker says so, else the runtime, else it never did. Where it
 * was about to, it does now: whatever of it has run already runs only once. */
static bool task_was_started(struct local_engine *local, struct task *task)
{
    char status[32];
    if (marker_is_there(local, task->id, "started"))
        return true;
    if (marker_is_there(local, task->id, "starting")) {
        runtime_start_again(&local->runtime, task->id);
        return true;
    }
    runtime_status(&local->runtime, task->id, status, sizeof status, NULL);
    return strcmp(status, "running") == 0 || strcmp(status, "stopped") == 0 ||
           exit_is_there(local, task->id);
}

/* What must go at the start is killed there, which waits so long for all of it: what can be killed
 * has ended by then, on a busy machine, too. What cannot is gone on with later, and the node is not
 * healthy until it is gone. */
enum { GOING_MS = 10000 };

struct adoption {
    struct local_engine *local;
    int64_t due_ms;
    struct {
        struct task **items; /* created but never let go: nothing of the user's has run */
        size_t count, room;
    } undone;
};

static uint32_t left_ms(const struct adoption *adoption)
{
    const int64_t left = adoption->due_ms - clock_monotonic_ms();
    return left > 0 ? (uint32_t)left : 0;
}

/* It goes, and will be created again. */
static void task_undo_begin(struct adoption *adoption, struct task *task)
{
    char group[CGROUP_PATH_MAX];
    if (task->process.conmon_fd >= 0) /* first: it would write an exit file */
        syscall_kill(task->process.conmon_fd, SIGKILL);
    if (task->init_fd >= 0)
        syscall_kill(task->init_fd, SIGKILL);
    task_group(adoption->local, task->id, group);
    cgroup_kill(&adoption->local->cgroups, group);
    *ARRAY_ADD(&adoption->undone) = task;
}

static int task_undo_await(const struct adoption *adoption, const struct task *task,
                           struct err *err)
{
    char group[CGROUP_PATH_MAX];
    for (int i = 0; i < 2; i++) {
        struct pollfd watch = {.fd = i ? task->init_fd : task->process.conmon_fd, .events = POLLIN};
        if (watch.fd >= 0 && poll(&watch, 1, (int)left_ms(adoption)) == 0)
            return err_fail(err, ERR_BUSY, "", "its %s does not end",
                            i ? "first process" : "monitor");
    }
    task_group(adoption->local, task->id, group);
    return cgroup_remove(&adoption->local->cgroups, group, left_ms(adoption), err);
}

/* Its number is not to be given to a container beside what is left of it: so it ends as one that
 * could not be started, by a worker, which may wait. */
static void task_undo_later(struct local_engine *local, struct task *task, const struct err *why)
{
    log_error("engine", "attempt %s: it is removed later: %s", task->id, why->text);
    task_fail(task, "ContainerCannotRun", "what a start before had left of it does not go: %s",
              why->text);
    task->phase = TASK_ENDING;
    task_enqueue(local, task);
}

static void task_undo(const struct adoption *adoption, struct task *task)
{
    struct local_engine *local = adoption->local;
    struct err err = {0};
    if (task_undo_await(adoption, task, &err) < 0) {
        task_undo_later(local, task, &err);
        return;
    }
    task_ids_leave(local, task);
    runtime_remove(&local->runtime, task->id, task->has_poststop);
    if (task->image)
        images_return(local->images, task->image);
    task->image = NULL;
    task_erase(local, task->id);
    task_drop(local, task);
}

static void task_adopt(struct adoption *adoption, struct task *task, struct err *err)
{
    struct local_engine *local = adoption->local;
    char bundle[RUNTIME_PATH_MAX], group[CGROUP_PATH_MAX];
    const struct doc *state;
    bool is_this_boot = false;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    if (ended_is_there(local, task->id)) {
        task->phase = TASK_ENDED;
        return;
    }
    bool is_whole = state_read(local, task, &arena, &state, &is_this_boot);
    task_run_path(local, task->id, "", bundle);
    task_group(local, task->id, group);
    if (is_this_boot) {
        task->process.conmon = pid_read(local, task->id, "conmon.pid");
        task->process.init = pid_read(local, task->id, "init.pid");
        task->process.conmon_fd = conmon_adopt(task->process.conmon, bundle);
        task->init_fd = init_adopt(local, task->process.init, group);
    }
    bool is_lost = is_whole && !is_this_boot; /* whether it ran is not known any more */
    if (!is_lost && (!is_whole || !task_was_started(local, task))) {
        task_undo_begin(adoption, task);
        return;
    }
    task->is_started = true;
    task_disk_adopt(local, task);
    if (!is_this_boot)
        task_fail(task, "NodeRestarted", "the machine was restarted while the task ran");
    task->is_unsupervised = task->process.conmon_fd < 0 && task->init_fd >= 0;
    if (task->process.conmon_fd >= 0 || task->init_fd >= 0) {
        task->phase = TASK_RUNNING;
        task_network_adopt(local, task, state); /* its first process is known now */
        if (monitor_watch(local, task, err) == 0)
            return;
    }
    task->phase = TASK_ENDING;
    task_enqueue(local, task);
}

/* The monitor of a container that nobody knows: it would write an exit file. */
static void conmon_kill(const struct adoption *adoption, const char *id)
{
    const struct local_engine *local = adoption->local;
    char group[CGROUP_PATH_MAX], bundle[RUNTIME_PATH_MAX], path[CGROUP_PATH_MAX + 160];
    task_group(local, "conmon", group);
    task_run_path(local, id, "", bundle);
    for (size_t i = 0; i < local->cgroups.tree_count; i++) {
        snprintf(path, sizeof path, "%s%s/cgroup.procs", local->cgroups.trees[i].mount, group);
        cleanup_file FILE *file = fopen(path, "re");
        int pid;
        while (file && fscanf(file, "%d", &pid) == 1) {
            cleanup_close int watch = conmon_adopt(pid, bundle);
            struct pollfd ended = {.fd = watch, .events = POLLIN};
            if (watch >= 0 && syscall_kill(watch, SIGKILL) == 0)
                poll(&ended, 1, (int)left_ms(adoption));
        }
    }
}

static bool is_orphan(struct local_engine *local, const char *name)
{
    struct attempt_id attempt;
    return strcmp(name, "conmon") != 0 &&
           !(attempt_of(name, &attempt) && task_find(local, attempt));
}

/* Groups that no task of ours explains: of an engine whose directory was removed by hand. */
static void orphan_kill(void *context, const char *name)
{
    const struct adoption *adoption = context;
    char group[CGROUP_PATH_MAX];
    if (!is_orphan(adoption->local, name))
        return;
    task_group(adoption->local, name, group);
    log_warning("engine", "removing the container %s, which nobody knows", name);
    conmon_kill(adoption, name);
    cgroup_kill(&adoption->local->cgroups, group);
}

static void orphan_remove(void *context, const char *name)
{
    const struct adoption *adoption = context;
    struct local_engine *local = adoption->local;
    char group[CGROUP_PATH_MAX];
    struct err err = {0};
    if (!is_orphan(local, name))
        return;
    task_group(local, name, group);
    if (cgroup_remove(&local->cgroups, group, left_ms(adoption), &err) < 0)
        log_error("engine", "it is removed later: %s", err.text);
    runtime_remove(&local->runtime, name, false);
}

/* All that must go was killed before the first of it is waited for. */
static void going_end(struct adoption *adoption)
{
    struct local_engine *local = adoption->local;
    adoption->due_ms = clock_monotonic_ms() + GOING_MS;
    cgroup_children(&local->cgroups, local->group, orphan_kill, adoption);
    for (size_t i = 0; i < adoption->undone.count; i++)
        task_undo(adoption, adoption->undone.items[i]);
    cgroup_children(&local->cgroups, local->group, orphan_remove, adoption);
    ARRAY_FREE(&adoption->undone);
}

/* What no task explains in a folder of the run directory. */
static void run_sweep(struct local_engine *local, const char *folder)
{
    char path[RUNTIME_PATH_MAX + 300];
    cleanup_dir DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct attempt_id attempt;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (attempt_of(entry->d_name, &attempt) && !task_find(local, attempt))
            tree_remove(path, NULL);
    }
}

int adopt_all(struct local_engine *local, struct err *err)
{
    char path[RUNTIME_PATH_MAX];
    snprintf(path, sizeof path, "%s/containers", local->directory);
    cleanup_dir DIR *dir = opendir(path);
    if (!dir)
        return err_errno(err, errno, "open %s", path);
    struct adoption adoption = {.local = local};
    pthread_mutex_lock(&local->lock);
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct attempt_id attempt;
        if (!attempt_of(entry->d_name, &attempt))
            continue;
        task_adopt(&adoption, task_add(local, attempt), err);
    }
    going_end(&adoption);
    task_ids_settle(local);
    run_sweep(local, local->runtime.exit_directory);
    snprintf(path, sizeof path, "%s/tasks", local->run_directory);
    run_sweep(local, path);
    pthread_mutex_unlock(&local->lock);
    return 0;
}

static void ended_announce(struct local_engine *local, struct attempt_id attempt, const char *id)
{
    cleanup_arena struct arena arena;
    struct exit_report report;
    struct err err = {0};
    arena_init(&arena);
    if (ended_read(local, id, &arena, &report, &err) < 0) {
        log_warning("engine", "attempt %s: %s", id, err.text);
        report = (struct exit_report){.exit_code = 128 + SIGKILL,
                                      .is_missing = true,
                                      .reason = "ContainerMissing",
                                      .message = "the report of its end is damaged"};
    }
    ended_post(local, attempt, id, &report);
}

void adopt_announce(struct local_engine *local)
{
    struct known_attempt {
        struct attempt_id attempt;
        char id[24];
        bool is_ended;
    };
    struct {
        struct known_attempt *items;
        size_t count, room;
    } known = {0};
    pthread_mutex_lock(&local->lock);
    for (size_t i = 0; i < local->task_room; i++) {
        const struct task *task = local->tasks[i];
        /* one that was ended while we were away did start; those created just now are not ours */
        if (!task || !(task->is_started || task->phase == TASK_ENDED))
            continue;
        struct known_attempt *one = ARRAY_ADD(&known);
        one->attempt = task->attempt;
        memcpy(one->id, task->id, sizeof one->id);
        one->is_ended = task->phase == TASK_ENDED;
    }
    pthread_mutex_unlock(&local->lock);
    inventory_post(local->inventory, local);
    for (size_t i = 0; i < known.count; i++)
        if (known.items[i].is_ended)
            ended_announce(local, known.items[i].attempt, known.items[i].id);
        else
            event_post(local, ENGINE_STARTED, known.items[i].attempt, "", "");
    ARRAY_FREE(&known);
    pthread_mutex_lock(&local->lock);
    local->is_announced = true;
    pthread_cond_broadcast(&local->has_work);
    pthread_mutex_unlock(&local->lock);
}
