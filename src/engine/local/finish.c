/* From the end of a container to EXITED: nothing of it is left when that is posted. */
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "engine/local/document.h"
#include "engine/local/image.h"
#include "engine/local/inventory.h"
#include "engine/local/limits.h"
#include "engine/local/logs.h"
#include "engine/local/spawn.h"
#include "engine/local/storage.h"
#include "engine/local/task.h"
#include "init/exit_file.h"
#include "init/layout.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/mailbox.h"
#include "sys/process.h"
#include "sys/untrusted.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KILL_TIMEOUT_MS = 30000, OUTPUT_TAIL = 64 << 10 };

/* What ends together: the strings of the report live in `arena`. */
struct finish {
    struct local_engine *local;
    struct task *task;
    struct arena *arena;
    struct exit_report report;
    char group[CGROUP_PATH_MAX];
};

/* conmon's word: the exit status of the first process. False: it never came to write it. */
static bool exit_code_read(struct finish *finish, int32_t *code)
{
    char path[RUNTIME_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", finish->local->runtime.exit_directory, finish->task->id);
    cleanup_buf struct buf text = BUF_INIT;
    int64_t value = 0;
    bool is_there = file_read(path, 64, &text, NULL) == 0 &&
                    text_to_int64(text_trim(buf_as_text(&text)), &value);
    *code = (int32_t)value;
    return is_there;
}

static void report_code(struct exit_report *report, int32_t code, int32_t signal)
{
    report->exit_code = code;
    report->signal = signal ? signal : code > 128 && code <= 128 + 64 ? code - 128 : 0;
}

/* skep-init's word: where it ended. True: it was there and whole. */
static bool exit_file_use(struct finish *finish, bool has_code, int32_t code)
{
    char run[RUNTIME_PATH_MAX];
    task_disk_path(finish->local, finish->task, "run", run);
    cleanup_buf struct buf text = BUF_INIT;
    struct exit_file file;
    struct stat stat;
    struct exit_report *report = &finish->report;
    bool is_read =
        untrusted_read(run, LAYOUT_EXIT_NAME, UNTRUSTED_NO_LINKS, 65536, &text, NULL) == 0 &&
        exit_file_read(buf_as_text(&text), &file, NULL) == 0;
    char marker[RUNTIME_PATH_MAX + 16];
    snprintf(marker, sizeof marker, "%s/%s", run, LAYOUT_STARTED_NAME);
    report->is_user_command = lstat(marker, &stat) == 0;
    if (!is_read)
        return false;
    report->is_user_command = file.stage != EXIT_STAGE_SETUP;
    if (!has_code || file.code == code) {
        report_code(report, file.code, file.signal);
        report->message = arena_copy(finish->arena, text_of(file.message));
    }
    return true;
}

static void report_memory(struct finish *finish)
{
    struct exit_report *report = &finish->report;
    struct cgroup_oom oom;
    char sign[RUNTIME_PATH_MAX];
    task_run_path(finish->local, finish->task->id, "oom", sign); /* conmon's own */
    if (!cgroup_oom_read(&finish->local->cgroups, finish->group, &oom) && access(sign, F_OK) == 0)
        oom = (struct cgroup_oom){.kills = 1, .is_limit = true};
    if (oom.kills == 0 || report->exit_code == 0)
        return;
    report->is_oom_killed = oom.is_limit;
    if (report->reason[0])
        return;
    report->reason = oom.is_limit ? "OOMKilled" : "NodeOutOfMemory";
    if (!oom.is_limit)
        report->message = "the machine ran out of memory while the task was within its own limit";
}

/* The group's last word about it: the group goes with the task. */
static void report_processes(struct finish *finish)
{
    struct exit_report *report = &finish->report;
    if (report->exit_code == 0 || report->reason[0] || !report->is_user_command)
        return;
    const uint64_t refused = limit_pids_refused(&finish->local->cgroups, finish->group);
    if (refused == 0)
        return;
    report->reason = "ProcessLimit";
    report->message =
        arena_format(finish->arena, "%llu times it was refused one more process or thread",
                     (unsigned long long)refused);
}

/* What failed before the user's command ran, where nothing can be written any more, failed for
 * that. The node is unhealthy before the task's end is told: its next try begins elsewhere. */
static void report_storage(struct finish *finish)
{
    struct exit_report *report = &finish->report;
    static const char *const suspects[] = {"", "CreationError", "ContainerCannotRun"};
    const struct local_engine *local = finish->local;
    bool is_full = strcmp(report->reason, "DiskFull") == 0;
    if (report->is_user_command || report->exit_code == 0 || finish->task->is_kill_wanted)
        return;
    for (size_t i = 0; i < COUNT_OF(suspects) && !is_full; i++)
        is_full = strcmp(report->reason, suspects[i]) == 0 &&
                  (storage_directory_is_exhausted(local->directory) ||
                   storage_directory_is_exhausted(local->run_directory));
    if (!is_full)
        return;
    report->reason = "DiskFull";
    if (!report->message[0])
        report->message = "no space left on the node for the files of a task";
    storage_check(finish->local);
}

/* Whose own disk is full failed for that, whatever the machine's looks like. */
static void report_disk(struct finish *finish)
{
    struct exit_report *report = &finish->report;
    char reason[TASK_DISK_REASON_MAX];
    if (report->exit_code == 0 || report->reason[0] ||
        !task_disk_is_full(finish->local, finish->task, reason))
        return;
    report->reason = "TaskDiskFull";
    report->message = arena_copy(finish->arena, text_of(reason));
}

static void report_fill(struct finish *finish)
{
    struct task *task = finish->task;
    struct exit_report *report = &finish->report;
    int32_t code = 0;
    bool has_code = exit_code_read(finish, &code);
    if (has_code)
        report_code(report, code, 0);
    bool has_file = exit_file_use(finish, has_code, code);
    if (task->fail_reason) {
        report->reason = task->fail_reason;
        report->message = arena_copy(finish->arena, text_of(task->fail_message));
        if (!has_code)
            report_code(report, task->is_kill_wanted ? 128 + SIGKILL : 128, 0);
    } else if (!has_code && !has_file) {
        report_code(report, 128 + SIGKILL, SIGKILL);
        report->is_missing = true;
        report->reason = "ContainerMissing";
        report->message = "the container and its monitor were removed from outside";
    }
    report_memory(finish);
    report_disk(finish);
    report_processes(finish);
    report_storage(finish);
}

/* --- nothing remains --- */

bool task_mounts_remain(const struct local_engine *local, const char *id)
{
    char path[RUNTIME_PATH_MAX];
    task_path(local, id, "", path); /* an overlay's options name it, and so does its disk */
    cleanup_buf struct buf text = BUF_INIT;
    file_read("/proc/self/mountinfo", 16 << 20, &text, NULL);
    char wanted[RUNTIME_PATH_MAX + 16];
    snprintf(wanted, sizeof wanted, "%s/", path);
    return text_find(buf_as_text(&text), text_of(wanted)) != SIZE_MAX;
}

/* Processes by the control group; with the last of them go its IPC and mount namespaces, and so
 * its shared memory, queues and mounts. Returns false when something stays. */
static bool remains_clear(struct finish *finish)
{
    struct local_engine *local = finish->local;
    struct task *task = finish->task;
    struct err err = {0};
    if (task->init_fd >= 0)
        syscall_kill(task->init_fd, SIGKILL);
    bool is_clean = true;
    if (cgroup_remove(&local->cgroups, finish->group, KILL_TIMEOUT_MS, &err) < 0) {
        log_error("engine", "attempt %s: %s", task->id, err.text);
        is_clean = false;
    }
    if (task->process.conmon_fd >= 0) {
        int status;
        syscall_kill(task->process.conmon_fd, SIGKILL); /* it has ended, or it hangs */
        if (task->is_ours)
            process_wait(task->process.conmon, &status, NULL);
    }
    runtime_remove(&local->runtime, task->id, task->has_poststop);
    task_network_leave(local, task);
    if (task_mounts_remain(local, task->id)) {
        log_error("engine", "attempt %s: a mount is left", task->id);
        is_clean = false;
    }
    if (is_clean)
        task_ids_leave(local, task);
    return is_clean;
}

/* --- the report on disk: EXITED is posted again after a restart until it is forgotten --- */

static int report_put(const struct finish *finish, struct err *err)
{
    const struct exit_report *report = &finish->report;
    cleanup_buf struct buf text = BUF_INIT;
    struct json_writer json;
    json_init(&json, &text);
    json_object(&json);
    json_key_int(&json, "code", report->exit_code);
    json_key_int(&json, "signal", report->signal);
    json_key_bool(&json, "oom", report->is_oom_killed);
    json_key_bool(&json, "user", report->is_user_command);
    json_key_bool(&json, "missing", report->is_missing);
    json_key_bool(&json, "lost", report->is_lost);
    json_key_bool(&json, "gpuErrors", report->has_gpu_ecc_error);
    json_key_bool(&json, "gpuLost", report->has_gpu_lost);
    json_key_string(&json, "reason", report->reason);
    json_key_string(&json, "message", report->message);
    json_object_end(&json);
    char path[RUNTIME_PATH_MAX];
    task_path(finish->local, finish->task->id, "ended", path);
    return file_put(path, buf_as_text(&text), 0600, err);
}

int ended_read(const struct local_engine *local, const char *id, struct arena *arena,
               struct exit_report *report, struct err *err)
{
    char path[RUNTIME_PATH_MAX];
    task_path(local, id, "ended", path);
    cleanup_buf struct buf text = BUF_INIT;
    int code = file_read(path, 65536, &text, err);
    const struct doc *doc = code == 0 ? document_read(buf_as_text(&text), false, arena) : NULL;
    if (code == 0 && !doc)
        return err_fail(err, ERR_CORRUPT, "", "%s is not a report", path);
    if (code == 0)
        *report = (struct exit_report){
            .exit_code = (int32_t)document_int(doc, "code"),
            .signal = (int32_t)document_int(doc, "signal"),
            .is_oom_killed = document_bool(doc, "oom"),
            .is_user_command = document_bool(doc, "user"),
            .is_missing = document_bool(doc, "missing"),
            .is_lost = document_bool(doc, "lost"),
            .has_gpu_ecc_error = document_bool(doc, "gpuErrors"),
            .has_gpu_lost = document_bool(doc, "gpuLost"),
            .reason = document_string(doc, "reason"),
            .message = document_string(doc, "message"),
        };
    return code;
}

void ended_post(struct local_engine *local, struct attempt_id attempt, const char *id,
                struct exit_report *report)
{
    char log[RUNTIME_PATH_MAX], folder[RUNTIME_PATH_MAX];
    task_log_path(local, id, log);
    task_path(local, id, "", folder);
    cleanup_buf struct buf user = BUF_INIT, platform = BUF_INIT;
    logs_tail(log, LOG_ALL, ENGINE_LOCAL_LOG_TAIL_MAX, &user);
    logs_tail(log, LOG_RUNTIME, OUTPUT_TAIL, &platform);
    /* what came past skep-init's logs: its own last words */
    cleanup_buf struct buf direct = BUF_INIT;
    if (untrusted_read(folder, "output", UNTRUSTED_NO_LINKS, OUTPUT_TAIL, &direct, NULL) == 0)
        buf_text(&platform, buf_as_text(&direct));
    report->log_tail = buf_as_text(&user);
    report->platform_tail = buf_as_text(&platform);
    struct engine_event event = {.kind = ENGINE_EXITED,
                                 .attempt = attempt,
                                 .exit = report,
                                 .reason = report->reason,
                                 .message = report->message};
    local->sink.post(local->sink.context, &event);
    report->log_tail = report->platform_tail = (struct text){"", 0};
}

void task_erase(struct local_engine *local, const char *id)
{
    char path[RUNTIME_PATH_MAX + 32];
    struct err err = {0};
    task_path(local, id, "", path);
    if (tree_remove(path, &err) < 0)
        log_warning("engine", "attempt %s: %s", id, err.text); /* housekeeping tries again */
    task_run_path(local, id, "", path);
    if (tree_remove(path, &err) < 0)
        log_warning("engine", "attempt %s: %s", id, err.text);
    snprintf(path, sizeof path, "%s/%s", local->runtime.exit_directory, id);
    unlink(path);
}

/* conmon was killed, the container was not: it goes on, watched by its first process alone. */
static bool supervision_lost(struct local_engine *local, struct task *task)
{
    int32_t code;
    struct finish finish = {.local = local, .task = task};
    if (task->fail_reason || task->is_unsupervised || task->init_fd < 0 || !task->is_started ||
        exit_code_read(&finish, &code) || syscall_kill(task->init_fd, 0) < 0)
        return false;
    log_warning("engine", "attempt %s: conmon was killed; the container goes on", task->id);
    event_note(local, task->attempt, "MonitorLost",
               "conmon was killed from outside; the container goes on");
    int status;
    if (task->is_ours)
        process_wait(task->process.conmon, &status, NULL);
    close(task->process.conmon_fd);
    pthread_mutex_lock(&local->lock);
    task->process.conmon_fd = -1;
    task->is_ours = false;
    task->is_unsupervised = true;
    task->phase = TASK_RUNNING;
    struct err err = {0};
    bool is_watched = monitor_watch(local, task, &err) == 0;
    if (!is_watched)
        task->phase = TASK_ENDING;
    else if (task->is_kill_wanted)
        monitor_kill(local, task);
    pthread_mutex_unlock(&local->lock);
    return is_watched;
}

static void task_forget(struct local_engine *local, struct task *task)
{
    task_disk_drop(local, task);
    task_erase(local, task->id);
    pthread_mutex_lock(&local->lock);
    task_drop(local, task);
    pthread_mutex_unlock(&local->lock);
}

/* Before EXITED is posted: what its places are given to next must not start here. */
static void remains_note(struct local_engine *local, const char *id)
{
    pthread_mutex_lock(&local->lock);
    struct remains *one = ARRAY_ADD(&local->remains);
    snprintf(one->id, sizeof one->id, "%s", id);
    pthread_mutex_unlock(&local->lock);
    inventory_health(local->inventory, local, HEALTH_REMAINS,
                     "processes or mounts of an ended task remain");
}

static void finish_run(struct local_engine *local, struct task *task)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct finish finish = {
        .local = local, .task = task, .arena = &arena, .report = {.reason = "", .message = ""}};
    struct err err = {0};
    task_group(local, task->id, finish.group);
    report_fill(&finish);
    if (!remains_clear(&finish))
        remains_note(local, task->id);
    task_gpus_judge(local, task, &finish.report);
    task_disk_end(local, task);
    task_log_close(local, task);
    bool is_kept = true;
    char path[RUNTIME_PATH_MAX];
    task_run_path(local, task->id, "skep", path);
    tree_remove(path, NULL); /* the task's secrets: where `ended` stands they are gone */
    task_path(local, task->id, "", path);
    if (access(path, F_OK) == 0 && report_put(&finish, &err) < 0) {
        /* the disk is full: conmon's exit file, on a tmpfs, says the most after a restart */
        log_error("engine", "attempt %s: %s", task->id, err.text);
        is_kept = false;
    }
    if (is_kept) {
        char exit_path[RUNTIME_PATH_MAX + 32];
        snprintf(exit_path, sizeof exit_path, "%s/%s", local->runtime.exit_directory, task->id);
        unlink(exit_path);
    }
    if (task->image)
        images_return(local->images, task->image);
    ended_post(local, task->attempt, task->id, &finish.report);
}

void task_finish(struct local_engine *local, struct task *task)
{
    if (task->phase == TASK_ENDED) { /* forget */
        task_forget(local, task);
        return;
    }
    assert(task->phase == TASK_ENDING);
    if (supervision_lost(local, task))
        return;
    finish_run(local, task);
    pthread_mutex_lock(&local->lock);
    task->image = NULL;
    task->phase = TASK_ENDED;
    for (int *fd = &task->init_fd; fd; fd = fd == &task->init_fd ? &task->process.conmon_fd : NULL)
        if (*fd >= 0) {
            close(*fd);
            *fd = -1;
        }
    arena_clear(&task->arena);
    if (task->is_forget_wanted)
        task_enqueue(local, task);
    pthread_mutex_unlock(&local->lock);
}
