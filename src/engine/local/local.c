#include "engine/local/local.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/image.h"
#include "engine/local/inventory.h"
#include "engine/local/layers.h"
#include "engine/local/log_watch.h"
#include "engine/local/machine_stats.h"
#include "engine/local/network.h"
#include "engine/local/reference.h"
#include "engine/local/storage.h"
#include "engine/local/task.h"
#include "init/layout.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/mailbox.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

/* --- table of tasks --- */

struct task *task_find(struct local_engine *local, struct attempt_id attempt)
{
    uint32_t index = id_map_get(&local->task_index, attempt.v);
    return index == MAP_NONE ? NULL : local->tasks[index];
}

struct task *task_add(struct local_engine *local, struct attempt_id attempt)
{
    assert(attempt.v != 0 && !task_find(local, attempt));
    size_t slot = 0;
    while (slot < local->task_room && local->tasks[slot])
        slot++;
    if (slot == local->task_room) {
        size_t room = local->task_room ? local->task_room * 2 : 64;
        local->tasks = mem_realloc(local->tasks, mem_size(room, sizeof(struct task *)));
        memset(local->tasks + local->task_room, 0,
               mem_size(room - local->task_room, sizeof(struct task *)));
        local->task_room = room;
    }
    struct task *task = mem_zero(1, sizeof *task);
    task->attempt = attempt;
    task->init_fd = task->process.conmon_fd = task->disk_fd = -1;
    snprintf(task->id, sizeof task->id, "%" PRIu64, attempt.v);
    arena_init(&task->arena);
    local->tasks[slot] = task;
    id_map_set(&local->task_index, attempt.v, (uint32_t)slot);
    if (local->task_count++ == 0)
        pthread_cond_signal(&local->keeper_wake); /* there are logs to look at */
    return task;
}

void task_drop(struct local_engine *local, struct task *task)
{
    uint32_t slot = id_map_get(&local->task_index, task->attempt.v);
    assert(slot != MAP_NONE && local->tasks[slot] == task);
    id_map_remove(&local->task_index, task->attempt.v);
    local->tasks[slot] = NULL;
    local->task_count--;
    if (task->init_fd >= 0)
        close(task->init_fd);
    if (task->process.conmon_fd >= 0)
        close(task->process.conmon_fd);
    if (task->disk_fd >= 0)
        close(task->disk_fd);
    arena_release(&task->arena);
    task_gpus_free(task->gpus);
    mem_free(task->fail_message);
    mem_free(task->image_key);
    mem_free(task);
}

void task_enqueue(struct local_engine *local, struct task *task)
{
    task->next = NULL;
    *local->work.last = task;
    local->work.last = &task->next;
    local->work.count++;
    pthread_cond_signal(&local->has_work);
}

static struct task *task_dequeue(struct local_engine *local)
{
    struct task *task = local->work.first;
    local->work.first = task->next;
    if (!local->work.first)
        local->work.last = &local->work.first;
    local->work.count--;
    task->next = NULL;
    return task;
}

/* --- paths and events --- */

void task_path(const struct local_engine *local, const char *id, const char *name,
               char path[RUNTIME_PATH_MAX])
{
    snprintf(path, RUNTIME_PATH_MAX, "%s/containers/%s%s%s", local->directory, id,
             name[0] ? "/" : "", name);
}

void task_run_path(const struct local_engine *local, const char *id, const char *name,
                   char path[RUNTIME_PATH_MAX])
{
    snprintf(path, RUNTIME_PATH_MAX, "%s/tasks/%s%s%s", local->run_directory, id,
             name[0] ? "/" : "", name);
}

void task_log_path(const struct local_engine *local, const char *id, char path[RUNTIME_PATH_MAX])
{
    snprintf(path, RUNTIME_PATH_MAX, "%s/logs/%s", local->directory, id);
}

void task_group(const struct local_engine *local, const char *id, char group[CGROUP_PATH_MAX])
{
    snprintf(group, CGROUP_PATH_MAX, "%s/%s", local->group, id);
}

void event_post(struct local_engine *local, enum engine_event_kind kind, struct attempt_id attempt,
                const char *reason, const char *message)
{
    struct engine_event event = {
        .kind = kind, .attempt = attempt, .reason = reason, .message = message};
    local->sink.post(local->sink.context, &event);
}

void event_note(struct local_engine *local, struct attempt_id attempt, const char *reason,
                const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    event_post(local, ENGINE_NOTE, attempt, reason, message);
}

void task_fail(struct task *task, const char *reason, const char *format, ...)
{
    if (task->fail_reason)
        return;
    char message[RUNTIME_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    task->fail_reason = reason;
    task->fail_message = mem_copy(message);
}

int file_put(const char *path, struct text content, mode_t mode, struct err *err)
{
    char beside[RUNTIME_PATH_MAX + 8];
    snprintf(beside, sizeof beside, "%s~", path);
    cleanup_close int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (fd < 0)
        return err_errno(err, errno, "create %s", beside);
    for (size_t at = 0; at < content.length;) {
        ssize_t wrote = write(fd, content.at + at, content.length - at);
        if (wrote < 0 && errno != EINTR) {
            int failure = errno;
            unlink(beside);
            return err_errno(err, failure, "write %s", beside);
        }
        at += wrote > 0 ? (size_t)wrote : 0;
    }
    if (rename(beside, path) < 0)
        return err_errno(err, errno, "rename %s", beside);
    return 0;
}

/* --- workers --- */

static void *worker_run(void *context)
{
    struct local_engine *local = context;
    pthread_mutex_lock(&local->lock);
    for (;;) {
        while ((!local->work.first || !local->is_announced) && !local->is_stopping)
            pthread_cond_wait(&local->has_work, &local->lock);
        if (local->is_stopping)
            break;
        struct task *task = task_dequeue(local);
        bool is_start = task->phase == TASK_QUEUED;
        if (is_start)
            task->phase = TASK_STARTING;
        pthread_mutex_unlock(&local->lock);
        if (is_start)
            task_start(local, task);
        else
            task_finish(local, task);
        pthread_mutex_lock(&local->lock);
    }
    pthread_mutex_unlock(&local->lock);
    return NULL;
}

void task_image_settled(struct local_engine *local, struct task *task)
{
    assert(task->phase == TASK_WAITING);
    task->phase = task->fail_reason ? TASK_ENDING : TASK_QUEUED;
    task_enqueue(local, task);
}

/* --- operations --- */

static struct local_engine *local_of(struct engine *engine)
{
    return (struct local_engine *)engine;
}

static int local_list(struct engine *engine, struct attempt_id **attempts, size_t *count,
                      struct err *err)
{
    (void)err;
    struct local_engine *local = local_of(engine);
    pthread_mutex_lock(&local->lock);
    *attempts = mem_zero(local->task_count ? local->task_count : 1, sizeof **attempts);
    *count = 0;
    for (size_t i = 0; i < local->task_room; i++)
        if (local->tasks[i])
            (*attempts)[(*count)++] = local->tasks[i]->attempt;
    pthread_mutex_unlock(&local->lock);
    return 0;
}

static int mounts_check(const struct container *container, struct err *err)
{
    for (size_t i = 0; i < container->mount_count; i++) {
        const struct engine_mount *mount = &container->mounts[i];
        if (mount->source[0] != '/' || mount->target[0] != '/')
            return err_fail(err, ERR_INVALID, "", "mount %s on %s: both must be absolute paths",
                            mount->source, mount->target);
        if (strcmp(mount->target, "/skep") == 0 || strncmp(mount->target, "/skep/", 6) == 0)
            return err_fail(err, ERR_INVALID, "", "mount %s: /skep is the platform's own",
                            mount->target);
    }
    for (size_t i = 0; i < container->file_count; i++) {
        const char *name = container->files[i].name;
        if (!name[0] || name[0] == '.' || strchr(name, '/') || strcmp(name, "log") == 0 ||
            strcmp(name, "run") == 0 || strcmp(name, "init") == 0 ||
            strcmp(name, LAYOUT_NETWORK_NAME) == 0 || strcmp(name, "door") == 0)
            return err_fail(err, ERR_INVALID, "", "\"%s\" cannot be the name of a task's file",
                            name);
    }
    return 0;
}

static const char *string_copy(struct arena *arena, const char *string)
{
    return arena_copy(arena, text_of(string ? string : ""));
}

/* The caller's container is borrowed for the call only. */
static const struct container *container_copy(struct arena *arena, const struct container *from)
{
    struct container *to = ARENA_NEW(arena, struct container);
    *to = *from;
    to->job = string_copy(arena, from->job);
    to->role = string_copy(arena, from->role);
    to->virtual_cluster = string_copy(arena, from->virtual_cluster);
    to->node = string_copy(arena, from->node);
    to->image = string_copy(arena, from->image);
    to->registry_user = string_copy(arena, from->registry_user);
    to->registry_password = string_copy(arena, from->registry_password);
    uint16_t *gpus = ARENA_ARRAY(arena, uint16_t, from->gpu_count);
    if (from->gpu_count)
        memcpy(gpus, from->gpus, from->gpu_count * sizeof *gpus);
    to->gpus = gpus;
    struct engine_port *ports = ARENA_ARRAY(arena, struct engine_port, from->port_count);
    for (size_t i = 0; i < from->port_count; i++)
        ports[i] = from->ports[i];
    to->ports = ports;
    struct engine_mount *mounts = ARENA_ARRAY(arena, struct engine_mount, from->mount_count);
    for (size_t i = 0; i < from->mount_count; i++)
        mounts[i] = (struct engine_mount){.source = string_copy(arena, from->mounts[i].source),
                                          .target = string_copy(arena, from->mounts[i].target),
                                          .is_read_only = from->mounts[i].is_read_only,
                                          .is_root_squashed = from->mounts[i].is_root_squashed};
    to->mounts = mounts;
    struct engine_file *files = ARENA_ARRAY(arena, struct engine_file, from->file_count);
    for (size_t i = 0; i < from->file_count; i++)
        files[i] = (struct engine_file){
            string_copy(arena, from->files[i].name),
            {arena_copy(arena, from->files[i].content), from->files[i].content.length},
            from->files[i].mode};
    to->files = files;
    return to;
}

static int local_create(struct engine *engine, const struct container *container, struct err *err)
{
    struct local_engine *local = local_of(engine);
    assert(container->attempt.v != 0 && container->image);
    int code = mounts_check(container, err);
    if (code < 0)
        return code;
    pthread_mutex_lock(&local->lock);
    if (task_find(local, container->attempt)) {
        pthread_mutex_unlock(&local->lock);
        return 0;
    }
    if (local->task_count >= ENGINE_LOCAL_CONTAINERS_MAX) {
        pthread_mutex_unlock(&local->lock);
        return err_fail(err, ERR_TOO_BIG, "", "this node holds %d containers already",
                        ENGINE_LOCAL_CONTAINERS_MAX);
    }
    struct task *task = task_add(local, container->attempt);
    task->wanted = container_copy(&task->arena, container);
    task->phase = TASK_WAITING;
    pthread_mutex_unlock(&local->lock);
    event_post(local, ENGINE_PREPARING, container->attempt, "", "");
    images_request(local->images, task);
    return 0;
}

static int local_kill(struct engine *engine, struct attempt_id attempt, uint32_t grace_ms,
                      const char *reason, bool is_held, struct err *err)
{
    (void)is_held; /* files stay until forget in any case */
    struct local_engine *local = local_of(engine);
    pthread_mutex_lock(&local->lock);
    struct task *task = task_find(local, attempt);
    if (!task) {
        pthread_mutex_unlock(&local->lock);
        return err_fail(err, ERR_NOT_FOUND, "", "there is no container of attempt %" PRIu64,
                        attempt.v);
    }
    if (!task->is_kill_wanted)
        snprintf(task->kill_reason, sizeof task->kill_reason, "%s", reason ? reason : "");
    task->is_kill_wanted = true;
    int64_t due = clock_monotonic_ms() + grace_ms;
    if (!task->kill_due_ms || due < task->kill_due_ms)
        task->kill_due_ms = due;
    if (task->phase == TASK_WAITING && (images_cancel(local->images, task) ||
                                        (local->layers && layers_cancel(local->layers, task)))) {
        task_fail(task, "Killed", "ended before its image had come: %s", task->kill_reason);
        task_image_settled(local, task);
    } else if (task->phase == TASK_RUNNING) {
        monitor_kill(local, task);
    }
    pthread_mutex_unlock(&local->lock);
    return 0;
}

static int local_forget(struct engine *engine, struct attempt_id attempt, struct err *err)
{
    struct local_engine *local = local_of(engine);
    pthread_mutex_lock(&local->lock);
    struct task *task = task_find(local, attempt);
    int code = 0;
    if (!task) {
        /* harmless: forgotten before */
    } else if (task->phase == TASK_ENDED) {
        if (!task->is_forget_wanted) {
            task->is_forget_wanted = true;
            task_enqueue(local, task);
        }
    } else if (task->phase == TASK_ENDING) {
        task->is_forget_wanted = true;
    } else {
        code = err_fail(err, ERR_CONFLICT, "", "the container of attempt %" PRIu64 " still runs",
                        attempt.v);
    }
    pthread_mutex_unlock(&local->lock);
    return code;
}

static int local_stats(struct engine *engine, struct attempt_id attempt, struct engine_stats *stats,
                       struct err *err)
{
    struct local_engine *local = local_of(engine);
    char group[CGROUP_PATH_MAX], id[24];
    snprintf(id, sizeof id, "%" PRIu64, attempt.v);
    task_group(local, id, group);
    int code = cgroup_stats(&local->cgroups, group, stats, err);
    pthread_mutex_lock(&local->lock);
    const struct task *task = task_find(local, attempt);
    if (code == 0 && task)
        task_gpus_stats(local, task, stats);
    pthread_mutex_unlock(&local->lock);
    if (code == 0 && local->networks)
        networks_traffic(local->networks, attempt, stats);
    return code;
}

static int local_node_stats(struct engine *engine, const char *node, struct engine_stats *stats,
                            struct err *err)
{
    struct local_engine *local = local_of(engine);
    if (strcmp(node, inventory_node(local->inventory)->name) != 0)
        return err_fail(err, ERR_NOT_FOUND, "", "this machine is not %s", node);
    machine_stats("", stats);
    machine_gpus_stats(local, stats);
    return 0;
}

static void local_free(struct engine *engine);

static const struct engine_ops local_ops = {
    .name = "local",
    .free = local_free,
    .list = local_list,
    .create = local_create,
    .kill = local_kill,
    .forget = local_forget,
    .log_read = local_log_read,
    .log_time = local_log_time,
    .log_watch = local_log_watch,
    .stats = local_stats,
    .node_stats = local_node_stats,
    .exec = local_exec,
    .connect = local_connect,
    .gpus = local_gpus,
};

/* --- birth and death --- */

#define DEFAULT(field, value) ((field) = (field) ? (field) : (value))

static const char *const *strings_copy(struct arena *arena, const char *const *from, size_t count)
{
    const char **to = ARENA_ARRAY(arena, const char *, count);
    for (size_t i = 0; i < count; i++)
        to[i] = string_copy(arena, from[i]);
    return to;
}

static void config_copy(struct local_engine *local, const struct engine_local_config *from)
{
    static const char *const argv[] = {"/skep/init"};
    static const char *const cdi[] = {"/etc/cdi", "/var/run/cdi"};
    struct engine_local_config *to = &local->config;
    struct arena *arena = &local->arena;
    *to = *from;
    if (!to->argv_count) {
        to->argv = argv;
        to->argv_count = 1;
    }
    if (!to->cdi_directories) {
        to->cdi_directories = cdi;
        to->cdi_directory_count = COUNT_OF(cdi);
    }
    DEFAULT(to->subnet, "10.213.0.0/16");
    to->argv = strings_copy(arena, to->argv, to->argv_count);
    to->cdi_directories = strings_copy(arena, to->cdi_directories, to->cdi_directory_count);
    to->image_roots = strings_copy(arena, from->image_roots, from->image_root_count);
    to->insecure_registries =
        strings_copy(arena, from->insecure_registries, from->insecure_registry_count);
    for (size_t i = 0; i < RIGHTS; i++)
        to->rights[i].items = strings_copy(arena, from->rights[i].items, from->rights[i].count);
    const char **const fields[] = {&to->directory,
                                   &to->run_directory,
                                   &to->init_path,
                                   &to->runtime,
                                   &to->node_name,
                                   &to->address,
                                   &to->simulated_gpu_type,
                                   &to->nvml_path,
                                   &to->topology_path,
                                   &to->registry_auth_file,
                                   &to->subnet,
                                   &to->id_registry,
                                   &to->door_directory};
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        *fields[i] = string_copy(arena, *fields[i]);
    DEFAULT(to->workers, 8);
    DEFAULT(to->pulls, 4);
    DEFAULT(to->log_max_mib, 2304);
    DEFAULT(to->disk_mib, 20 << 10);
    DEFAULT(to->first_id, ID_RANGES_FIRST);
    DEFAULT(to->id_jobs, ID_RANGES_COUNT);
    DEFAULT(to->image_fresh_s, 10);
    DEFAULT(to->pull_tries, 3);
    DEFAULT(to->pull_stall_s, 120);
    DEFAULT(to->image_max_mib, 128 << 10);
    DEFAULT(to->image_max_entries, 2000000);
    DEFAULT(to->image_max_ratio, 100);
    DEFAULT(to->disk_reserve_mib, 1024);
    DEFAULT(to->image_keep_s, 7 * 86400);
    DEFAULT(to->image_high_percent, 85);
    DEFAULT(to->container_keep_s, 86400);
    DEFAULT(to->log_keep_s, 30 * 86400);
    DEFAULT(to->log_keep_mib, 10240);
    DEFAULT(to->housekeeping_s, 60);
    if (to->workers > ENGINE_LOCAL_WORKERS_MAX)
        to->workers = ENGINE_LOCAL_WORKERS_MAX;
    if (to->pulls > ENGINE_LOCAL_PULLS_MAX)
        to->pulls = ENGINE_LOCAL_PULLS_MAX;
}

static int system_read(struct local_engine *local, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT;
    int code = file_read("/proc/self/mountinfo", 4 << 20, &text, err);
    if (code == 0)
        code = cgroup_layout_read(buf_as_text(&text), &local->cgroups, err);
    buf_clear(&text);
    if (code == 0)
        code = file_read("/proc/sys/kernel/random/boot_id", 256, &text, err);
    snprintf(local->boot_id, sizeof local->boot_id, "%.*s",
             TEXT_ARG(text_trim(buf_as_text(&text))));
    return code;
}

static int runtime_try(struct local_engine *local, const char *directory, struct err *err)
{
    char group[CGROUP_PATH_MAX], scratch[RUNTIME_PATH_MAX];
    snprintf(scratch, sizeof scratch, "%s/probe", directory);
    task_group(local, "probe", group);
    tree_remove(scratch, NULL);
    int code = dir_make(scratch, 0700, err);
    if (code == 0)
        code = runtime_find(&local->runtime, &local->cgroups, local->config.runtime, scratch, group,
                            err);
    tree_remove(scratch, NULL);
    return code;
}

/* On the disk of the tasks' overlays; when that is full, what runs must be adopted all the same. It
 * may become full at any instant, so it is looked at after a failure. */
static int runtime_prepare(struct local_engine *local, struct err *err)
{
    char group[CGROUP_PATH_MAX];
    task_group(local, "conmon", group);
    int code = cgroup_make(&local->cgroups, group, local->runtime.procs_fds, err);
    if (code < 0)
        return code;
    code = runtime_try(local, local->directory, err);
    if (code < 0 && storage_directory_is_tight(local->directory)) {
        log_info("engine", "the disk is full: containers are tried in %s", local->run_directory);
        code = runtime_try(local, local->run_directory, err);
    }
    if (code == 0)
        log_info("engine", "containers by %s%s%s", local->runtime.program,
                 local->runtime.hidden_mount[0] ? " without " : "", local->runtime.hidden_mount);
    return code;
}

/* Without it logs are followed all the same, only later by a moment. */
static void log_watch_start(struct local_engine *local)
{
    struct err err = {0};
    local->log_watch = log_watch_new(&err);
    if (!local->log_watch)
        log_warning("engine", "logs are looked at from time to time: %s", err.text);
}

static int threads_start(struct local_engine *local, struct err *err)
{
    local->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    local->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (local->epoll_fd < 0 || local->wake_fd < 0)
        return err_errno(err, errno, "make the monitor's descriptors");
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0};
    if (epoll_ctl(local->epoll_fd, EPOLL_CTL_ADD, local->wake_fd, &event) < 0)
        return err_errno(err, errno, "watch the monitor's descriptor");
    int code = adopt_all(local, err);
    if (code < 0)
        return code;
    task_networks_forget(local);
    log_watch_start(local);
    local->has_monitor = pthread_create(&local->monitor, NULL, monitor_run, local) == 0;
    local->has_keeper = pthread_create(&local->keeper, NULL, keeper_run, local) == 0;
    while (local->worker_count < local->config.workers &&
           pthread_create(&local->workers[local->worker_count], NULL, worker_run, local) == 0)
        local->worker_count++;
    if (!local->has_monitor || !local->has_keeper || local->worker_count == 0)
        return err_fail(err, ERR_IO, "", "cannot start the engine's threads");
    return 0;
}

static int local_open(struct local_engine *local, struct err *err)
{
    if (geteuid() != 0)
        return err_fail(err, ERR_UNSUPPORTED, "", "the local engine must be started as root");
    if (local->config.init_path[0] && access(local->config.init_path, X_OK) < 0)
        return err_errno(err, errno, "skep-init %s", local->config.init_path);
    int code = local_directories_make(local, err);
    if (code == 0)
        code = local_directory_lock(local, err);
    if (code == 0)
        code = local_run_directory_make(local, err);
    if (code == 0)
        code = system_read(local, err);
    if (code == 0)
        code = runtime_prepare(local, err);
    if (code == 0)
        code = task_ids_open(local, err);
    if (code == 0)
        code = task_disks_open(local, err);
    if (code == 0 && local->config.has_private_network)
        code = local->config.is_network_by_job ? task_networks_try(local, err)
                                               : task_networks_open(local, err);
    if (code == 0)
        local->images = images_new(local, err);
    if (code == 0 && !local->images)
        code = err ? err->code : ERR_IO;
    if (code == 0)
        local->inventory = inventory_new(&local->config);
    if (code == 0)
        inventory_watch(local->inventory, local);
    return code == 0 ? threads_start(local, err) : code;
}

struct engine *engine_local_new(const struct engine_local_config *config, struct engine_sink sink,
                                struct err *err)
{
    assert(config->directory && sink.post);
    struct local_engine *local = mem_zero(1, sizeof *local);
    local->engine.ops = &local_ops;
    local->engine.capabilities = ENGINE_CAN(ENGINE_CAN_LOG) | ENGINE_CAN(ENGINE_CAN_FOLLOW) |
                                 ENGINE_CAN(ENGINE_CAN_STATS) | ENGINE_CAN(ENGINE_CAN_NODE_STATS) |
                                 ENGINE_CAN(ENGINE_CAN_SAMPLE_GPUS) |
                                 ENGINE_CAN(ENGINE_CAN_EXACT_DEVICES) |
                                 ENGINE_CAN(ENGINE_CAN_EXEC) | ENGINE_CAN(ENGINE_CAN_CONNECT);
    local->sink = sink;
    arena_init(&local->arena);
    pthread_mutex_init(&local->lock, NULL);
    pthread_mutex_init(&local->networks_lock, NULL);
    pthread_mutex_init(&local->keeper_lock, NULL);
    pthread_cond_init(&local->has_work, NULL);
    clock_condition_init(&local->keeper_wake);
    local->work.last = &local->work.first;
    local->lock_fd = local->epoll_fd = local->wake_fd = -1;
    local->runtime.procs_fds[0] = local->runtime.procs_fds[1] = local->runtime.sealed_fd = -1;
    config_copy(local, config);
    struct err failure = {0};
    if (local_open(local, &failure) < 0) {
        local_free(&local->engine);
        if (err)
            *err = failure;
        return NULL;
    }
    return &local->engine;
}

static void local_free(struct engine *engine)
{
    if (!engine)
        return;
    struct local_engine *local = local_of(engine);
    pthread_mutex_lock(&local->lock);
    local->is_stopping = true;
    pthread_cond_broadcast(&local->has_work);
    pthread_cond_broadcast(&local->keeper_wake);
    pthread_mutex_unlock(&local->lock);
    if (local->images)
        images_stop(local->images);
    for (size_t i = 0; i < local->worker_count; i++)
        pthread_join(local->workers[i], NULL);
    if (local->layers)
        layers_stop(local->layers);
    if (local->has_monitor) {
        monitor_wake(local);
        pthread_join(local->monitor, NULL);
    }
    if (local->has_keeper)
        pthread_join(local->keeper, NULL);
    inventory_unwatch(local->inventory);
    log_watch_free(local->log_watch);
    for (size_t i = 0; i < local->task_room; i++)
        if (local->tasks[i])
            task_drop(local, local->tasks[i]);
    networks_free(local->networks);
    layers_free(local->layers);
    id_ranges_free(local->id_ranges);
    mem_free(local->tasks);
    ARRAY_FREE(&local->remains);
    id_map_release(&local->task_index);
    images_free(local->images);
    inventory_free(local->inventory);
    runtime_release(&local->runtime);
    if (local->lock_fd >= 0)
        local_run_directory_drop(local);
    if (local->lock_fd >= 0 && local->cgroups.tree_count) {
        char group[CGROUP_PATH_MAX];
        task_group(local, "conmon", group);
        cgroup_drop(&local->cgroups, group);
        cgroup_drop(&local->cgroups, local->group);
    }
    int fds[] = {local->epoll_fd, local->wake_fd, local->lock_fd};
    for (size_t i = 0; i < COUNT_OF(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    pthread_cond_destroy(&local->has_work);
    pthread_cond_destroy(&local->keeper_wake);
    pthread_mutex_destroy(&local->lock);
    pthread_mutex_destroy(&local->networks_lock);
    pthread_mutex_destroy(&local->keeper_lock);
    arena_release(&local->arena);
    mem_free(local);
}

void engine_local_housekeep(struct engine *engine)
{
    keeper_round(local_of(engine));
}
