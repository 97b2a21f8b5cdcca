#include "engine/local/runtime.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/document.h"
#include "engine/local/id_ranges.h"
#include "engine/local/layer.h"
#include "engine/local/oci.h"
#include "engine/local/rights.h"
#include "engine/local/sealed.h"
#include "engine/local/spawn.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/process.h"
#include "sys/userns.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { NETWORK_RETRY_MS = 10 };

static const char *const search_path[] = {
    "/usr/bin",        "/usr/sbin",           "/usr/local/bin", "/usr/local/sbin",
    "/usr/lib/podman", "/usr/libexec/podman", "/bin",           "/sbin"};

static const char *const environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};

static bool program_find(const char *name, char path[RUNTIME_PATH_MAX])
{
    if (strchr(name, '/')) {
        snprintf(path, RUNTIME_PATH_MAX, "%s", name);
        return access(path, X_OK) == 0;
    }
    for (size_t i = 0; i < COUNT_OF(search_path); i++) {
        snprintf(path, RUNTIME_PATH_MAX, "%s/%s", search_path[i], name);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* What conmon writes: {"data": PID} or {"data": -1, "message": "…"}. */
static int sync_parse(struct text bytes, pid_t *pid, char *message)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    const struct doc *doc = document_read(bytes, false, &arena);
    int64_t data = document_int(doc, "data");
    struct text text = text_trim(text_of(document_string(doc, "message")));
    snprintf(message, RUNTIME_MESSAGE_MAX, "%.*s", TEXT_ARG(text));
    *pid = (pid_t)data;
    return data > 0 ? 0 : ERR_UNAVAILABLE;
}

/* One line comes when the container is created; the end of the pipe means that conmon died. */
static int sync_wait(int fd, pid_t *pid, char *message, struct err *err)
{
    cleanup_buf struct buf line = BUF_INIT;
    ssize_t got;
    char bytes[2048];
    while ((got = read(fd, bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR)) {
        buf_add(&line, bytes, got > 0 ? (size_t)got : 0);
        if (memchr(buf_cstr(&line), '\n', line.length) || line.length > (1 << 20))
            break;
    }
    int code = sync_parse(buf_as_text(&line), pid, message);
    if (code < 0 && !message[0])
        snprintf(message, RUNTIME_MESSAGE_MAX, "conmon ended before the container was created");
    if (code < 0)
        return err_fail(err, ERR_UNAVAILABLE, "", "%s", message);
    return 0;
}

static int file_open(const char *directory, const char *name, int flags, struct err *err)
{
    char path[RUNTIME_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, flags | O_CREAT | O_CLOEXEC, 0640);
    return fd < 0 ? err_errno(err, errno, "open %s", path) : fd;
}

int runtime_create(const struct runtime *runtime, const struct runtime_launch *launch,
                   struct runtime_container *container, char *message, struct err *err)
{
    message[0] = 0;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(err, errno, "make a pipe");
    cleanup_close int sync_read = ends[0], sync_write = ends[1];
    cleanup_close int pid_fd = file_open(launch->bundle, "conmon.pid", O_WRONLY | O_TRUNC, err);
    if (pid_fd < 0)
        return pid_fd;
    cleanup_close int output =
        open(launch->output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (output < 0)
        return err_errno(err, errno, "open %s", launch->output);
    cleanup_close int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char pid_file[RUNTIME_PATH_MAX + 16], options[5 * RUNTIME_PATH_MAX];
    snprintf(pid_file, sizeof pid_file, "%s/init.pid", launch->bundle);
    snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s%s%s", launch->lower,
             launch->upper, launch->work, runtime->has_volatile ? ",volatile" : "",
             launch->has_layer ? ",metacopy=on" : "");
    const char *argv[] = {runtime->conmon,
                          "--api-version",
                          "1",
                          "--sync",
                          "--full-attach",
                          "-c",
                          launch->id,
                          "-u",
                          launch->id,
                          "-n",
                          launch->id,
                          "-r",
                          runtime->sealed_fd >= 0 ? runtime->sealed : runtime->program,
                          "-b",
                          launch->bundle,
                          "-p",
                          pid_file,
                          "--exit-dir",
                          runtime->exit_directory,
                          "--no-sync-log",
                          "-l",
                          "passthrough",
                          "--runtime-arg",
                          "--root",
                          "--runtime-arg",
                          runtime->root,
                          NULL};
    const char *env[] = {environment[0], "_OCI_SYNCPIPE=3", NULL};
    struct spawn spawn = {.argv = argv,
                          .env = env,
                          .directory = launch->bundle,
                          .fds = {input, output, output, sync_write},
                          .pid_fd = pid_fd,
                          .group_fds = {runtime->procs_fds[0], runtime->procs_fds[1]},
                          .hidden_mount = runtime->hidden_mount[0] ? runtime->hidden_mount : NULL,
                          .mounts = launch->mounts,
                          .mount_count = launch->mount_count,
                          .sys_target = launch->sys,
                          .network_path = launch->network_path,
                          .is_in_network = launch->is_in_network,
                          .overlay_options = options,
                          .overlay_target = launch->merged};
    int code = spawn_start(&spawn, &container->conmon, &container->conmon_fd, err);
    if (code < 0) {
        snprintf(message, RUNTIME_MESSAGE_MAX, "%s", err ? err->text : "");
        return code;
    }
    close(fd_steal(&sync_write));
    code = sync_wait(sync_read, &container->init, message, err);
    if (code == 0)
        return 0;
    syscall_kill(container->conmon_fd, SIGKILL);
    int status;
    process_wait(container->conmon, &status, NULL);
    close(container->conmon_fd);
    container->conmon_fd = -1;
    return code;
}

static int runtime_run(const struct runtime *runtime, const char *verb, const char *flag,
                       const char *id, struct buf *out, int *code, struct buf *complaint,
                       struct err *err)
{
    const char *argv[] = {runtime->program, "--root", runtime->root, verb, id, NULL, NULL};
    if (flag) {
        argv[4] = flag;
        argv[5] = id;
    }
    /* nothing of ours: runc would take systemd's NOTIFY_SOCKET for the container's */
    struct process process = {.argv = argv, .env = environment, .in = -1, .out = -1, .err = -1};
    return process_run(&process, 30000, out, complaint, code, err);
}

int runtime_network_enter(int process, int *home, struct err *err)
{
    *home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (*home < 0)
        return err_errno(err, errno, "open the machine's network namespace");
    return setns(process, CLONE_NEWNET) < 0 ? err_errno(err, errno, "enter the task's network") : 0;
}

void runtime_network_leave(int home)
{
    while (setns(home, CLONE_NEWNET) < 0) { /* only memory can be missing */
        log_error("engine", "back to the machine's network: errno %d", errno);
        poll(NULL, 0, NETWORK_RETRY_MS);
    }
}

int runtime_exec(const struct runtime *runtime, const char *id,
                 const struct runtime_program *program, pid_t *pid, struct err *err)
{
    /* a copy in memory need not copy itself again */
    const char *own = runtime->sealed_fd >= 0 ? runtime->sealed : runtime->program;
    const char *argv[] = {
        own, "--root", runtime->root, "exec", "--process", program->process, "--preserve-fds",
        "1", id,       NULL};
    struct process process = {.argv = argv,
                              .env = environment,
                              .in = program->streams[0],
                              .out = program->streams[1],
                              .err = program->streams[2],
                              .more = program->more};
    cleanup_close int home = -1;
    if (program->network_of < 0)
        return process_spawn(&process, pid, err);
    int code = runtime_network_enter(program->network_of, &home, err);
    if (code < 0)
        return code;
    code = process_spawn(&process, pid, err);
    runtime_network_leave(home);
    return code;
}

enum { FIFO_PATH_MAX = RUNTIME_PATH_MAX + 64 };

/* Where the first process waits; the last thing that a start does is to remove it. */
static void fifo_path(const struct runtime *runtime, const char *id, char path[FIFO_PATH_MAX])
{
    snprintf(path, FIFO_PATH_MAX, "%s/%s/exec.fifo", runtime->root, id);
}

/* False: not this runtime's way, or nobody listens (errno is ENXIO); nothing was done. */
static bool start_by_fifo(const struct runtime *runtime, const char *id)
{
    char path[FIFO_PATH_MAX];
    errno = 0;
    if (!runtime->has_start_fifo)
        return false;
    fifo_path(runtime, id, path);
    cleanup_close int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    struct stat stat;
    if (fd < 0 || fstat(fd, &stat) < 0 || !S_ISFIFO(stat.st_mode))
        return false;
    if (write(fd, "", 1) != 1)
        return false;
    unlink(path); /* so the runtime's own `state` says "running" */
    return true;
}

int runtime_start(const struct runtime *runtime, const char *id, struct err *err)
{
    if (start_by_fifo(runtime, id))
        return 0;
    cleanup_buf struct buf complaint = BUF_INIT;
    int exit_code = 0;
    int code = runtime_run(runtime, "start", NULL, id, NULL, &exit_code, &complaint, err);
    if (code == 0 && exit_code != 0)
        code = err_fail(err, ERR_UNAVAILABLE, "", "start: %.*s",
                        TEXT_ARG(text_trim(buf_as_text(&complaint))));
    return code;
}

void runtime_start_again(const struct runtime *runtime, const char *id)
{
    char path[FIFO_PATH_MAX];
    int exit_code;
    fifo_path(runtime, id, path);
    if (access(path, F_OK) < 0 || start_by_fifo(runtime, id))
        return;
    /* crun listens before its `create` returns, and until it goes on; runc removes it by itself */
    if (errno == ENXIO)
        unlink(path);
    else if (runtime_run(runtime, "start", NULL, id, NULL, &exit_code, NULL, NULL) < 0)
        log_warning("engine", "attempt %s: the runtime did not say whether it was started", id);
}

int runtime_status(const struct runtime *runtime, const char *id, char *status, size_t size,
                   struct err *err)
{
    cleanup_buf struct buf out = BUF_INIT;
    int exit_code = 0;
    status[0] = 0;
    int code = runtime_run(runtime, "state", NULL, id, &out, &exit_code, NULL, err);
    if (code == 0 && exit_code == 0) {
        cleanup_arena struct arena arena;
        arena_init(&arena);
        const struct doc *doc = document_read(buf_as_text(&out), false, &arena);
        snprintf(status, size, "%s", document_string(doc, "status"));
    }
    return code;
}

void runtime_remove(const struct runtime *runtime, const char *id, bool has_poststop)
{
    int code;
    if (has_poststop)
        runtime_run(runtime, "delete", "--force", id, NULL, &code, NULL, NULL);
    char path[RUNTIME_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", runtime->root, id);
    tree_remove(path, NULL);
}

/* --- which one works here --- */

/* What a probe is made of; `place`: with ids of its own. */
struct probe {
    const struct cgroup_layout *layout;
    const char *scratch, *group;
    const char *view;             /* where its namespace has its mounts; anybody may pass there */
    const struct id_place *place; /* NULL: the machine's ids */
    bool by_layer;                /* by a metadata layer, not by a mount */
};

static int probe_folders(const struct probe *probe, struct err *err)
{
    static const char *const parts[] = {"lower", "lower/proc", "lower/sys", "lower/dev",
                                        "upper", "merged",     "work"};
    char path[RUNTIME_PATH_MAX + 64];
    const uint32_t root = probe->place ? probe->place->first : 0;
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        snprintf(path, sizeof path, "%s/%s", probe->scratch, parts[i]);
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            return err_errno(err, errno, "make %s", path);
        if (strcmp(parts[i], "upper") == 0 && chown(path, root, root) < 0)
            return err_errno(err, errno, "chown %s", path);
    }
    snprintf(path, sizeof path, "%s/lower/program", probe->scratch);
    return file_write(path, TEXT("#!/nothing\n"), 0755, err); /* found, never executed */
}

static int probe_prepare(const struct runtime *runtime, const struct probe *probe, struct err *err)
{
    int code = probe_folders(probe, err);
    if (code < 0)
        return code;
    const char *argv[] = {"/program"}, *env[] = {"PATH=/"};
    char merged[RUNTIME_PATH_MAX + 64], sys[RUNTIME_PATH_MAX + 64], path[RUNTIME_PATH_MAX + 64];
    char user_path[48];
    snprintf(merged, sizeof merged, "%s/merged", probe->view);
    snprintf(sys, sizeof sys, "%s/sys", probe->view);
    struct oci_config config = {.rootfs = merged,
                                /* where no privileges can be gained, crun loads the same profile
                                 * only at the start, which this container does not come to */
                                .rights = 1u << RIGHT_NEW_PRIVILEGES,
                                .argv = argv,
                                .argv_count = 1,
                                .env = env,
                                .env_count = 1,
                                .cwd = "/",
                                .cgroup_path = probe->group,
                                .cpu = 1,
                                .is_cgroup_v2 = probe->layout->kind == CGROUP_V2,
                                .has_swap = probe->layout->has_swap,
                                .memory_mib = 64,
                                .pids_max = 100,
                                .seccomp_bpf = runtime->seccomp_bpf};
    if (probe->place) {
        snprintf(user_path, sizeof user_path, "/proc/%d/fd/%d", (int)getpid(),
                 probe->place->userns_fd);
        config.user_path = user_path;
        config.first_id = probe->place->first;
        config.id_count = runtime->wants_mappings ? ID_RANGE_IDS : 0;
        config.sys_path = sys;
    }
    cleanup_buf struct buf text = BUF_INIT;
    oci_config_write(&config, &text);
    snprintf(path, sizeof path, "%s/config.json", probe->scratch);
    return file_write(path, buf_as_text(&text), 0600, err);
}

static bool process_is_filtered(pid_t pid)
{
    char path[64];
    cleanup_buf struct buf text = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    return file_read(path, 65536, &text, NULL) == 0 &&
           text_find(buf_as_text(&text), TEXT("\nSeccomp:\t2\n")) != SIZE_MAX;
}

/* The image's folder, shown with the ids of the probe: by a layer above it, or by a mount. */
static int probe_layer(const struct probe *probe, const char *lower, struct runtime_launch *launch,
                       char *joined, size_t size, struct err *err)
{
    char folder[RUNTIME_PATH_MAX];
    uint64_t entries;
    snprintf(folder, sizeof folder, "%.490s/layer", probe->scratch);
    const struct layer_order order = {.lower = {lower},
                                      .folder = folder,
                                      .first = probe->place->first,
                                      .nobody = probe->place->first};
    if (mkdir(folder, 0700) < 0)
        return err_errno(err, errno, "make %s", folder);
    snprintf(joined, size, "%s/" LAYER_UPPER ":%s", folder, lower);
    launch->lower = joined;
    launch->has_layer = true;
    return layer_make(&order, &entries, err);
}

static int probe_mount(const struct probe *probe, const char *lower, struct spawn_mount *mount,
                       struct runtime_launch *launch, struct err *err)
{
    if (!probe->place || probe->by_layer)
        return 0;
    mount->fd = userns_mount(lower, probe->place->userns_fd, false, err);
    if (mount->fd < 0)
        return mount->fd;
    launch->mounts = mount;
    launch->mount_count = 1;
    launch->lower = mount->target;
    return 0;
}

static int probe_run(const struct runtime *runtime, const struct probe *probe, bool *is_filtered,
                     char *message, struct err *err)
{
    char lower[RUNTIME_PATH_MAX], upper[RUNTIME_PATH_MAX], work[RUNTIME_PATH_MAX],
        merged[RUNTIME_PATH_MAX], output[RUNTIME_PATH_MAX], seen[RUNTIME_PATH_MAX],
        sys[RUNTIME_PATH_MAX], layered[2 * RUNTIME_PATH_MAX + 16];
    const char *scratch = probe->scratch;
    message[0] = '\0';
    snprintf(lower, sizeof lower, "%s/lower", scratch);
    snprintf(upper, sizeof upper, "%s/upper", scratch);
    snprintf(work, sizeof work, "%s/work", scratch);
    snprintf(merged, sizeof merged, "%s/merged", probe->view);
    snprintf(output, sizeof output, "%s/output", scratch);
    snprintf(seen, sizeof seen, "%s/lower", probe->view);
    snprintf(sys, sizeof sys, "%s/sys", probe->view);
    struct runtime_launch launch = {.id = "skep-probe",
                                    .bundle = scratch,
                                    .lower = lower,
                                    .upper = upper,
                                    .work = work,
                                    .merged = merged,
                                    .output = output,
                                    .sys = probe->place ? sys : NULL};
    struct runtime_container container = {.conmon_fd = -1};
    struct spawn_mount mount = {.fd = -1, .target = seen};
    int code = probe_prepare(runtime, probe, err);
    if (code == 0)
        code = probe_mount(probe, lower, &mount, &launch, err);
    if (code == 0 && probe->place && probe->by_layer)
        code = probe_layer(probe, lower, &launch, layered, sizeof layered, err);
    if (code == 0)
        code = runtime_create(runtime, &launch, &container, message, err);
    if (code < 0 && !message[0])
        snprintf(message, RUNTIME_MESSAGE_MAX, "%s", err->text);
    if (code == 0) {
        *is_filtered = process_is_filtered(container.init);
        kill(container.init, SIGKILL);
        struct pollfd watch = {.fd = container.conmon_fd, .events = POLLIN};
        if (poll(&watch, 1, 10000) == 0)
            syscall_kill(container.conmon_fd, SIGKILL);
        int status;
        process_wait(container.conmon, &status, NULL);
        close(container.conmon_fd);
    }
    if (mount.fd >= 0)
        close(mount.fd);
    char path[RUNTIME_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/skep-probe", runtime->exit_directory);
    unlink(path);
    cgroup_remove(probe->layout, probe->group, 10000, NULL);
    runtime_remove(runtime, launch.id, false);
    tree_remove(scratch, NULL);
    mkdir(scratch, 0711);
    return code;
}

int runtime_try_ids(const struct runtime *runtime, const struct cgroup_layout *layout,
                    const struct id_place *place, bool by_layer, const char *scratch,
                    const char *view, const char *group, struct err *err)
{
    const struct probe probe = {layout, scratch, group, view, place, by_layer};
    char message[RUNTIME_MESSAGE_MAX];
    struct err failure = {0};
    bool is_filtered = false;
    if (probe_run(runtime, &probe, &is_filtered, message, &failure) == 0)
        return 0;
    return err_fail(err, ERR_UNSUPPORTED, "", "%s: %.180s", runtime->program, message);
}

static void copy_drop(struct runtime *runtime)
{
    if (runtime->sealed_fd < 0)
        return;
    unlink(runtime->sealed);
    close(runtime->sealed_fd);
    runtime->sealed_fd = -1;
}

static void copy_make(struct runtime *runtime)
{
    struct err err = {0};
    copy_drop(runtime);
    int fd = sealed_make(runtime->program, runtime->sealed, &err);
    if (fd >= 0)
        runtime->sealed_fd = fd;
    else
        log_info("engine", "%s will copy itself at each start: %s", runtime->program, err.text);
}

static int probe_all(struct runtime *runtime, struct cgroup_layout *layout, const char *wanted,
                     const char *scratch, const char *group, struct err *err)
{
    static const char *const names[] = {"crun", "runc"};
    char why[sizeof err->text] = "", message[RUNTIME_MESSAGE_MAX];
    const char *const *candidates = wanted[0] ? &wanted : names;
    for (size_t i = 0; i < (wanted[0] ? 1 : COUNT_OF(names)); i++) {
        if (!program_find(candidates[i], runtime->program))
            continue;
        bool is_crun = strstr(runtime->program, "crun") != NULL;
        runtime->has_start_fifo = is_crun;
        runtime->wants_mappings = runtime->is_users_first = !is_crun;
        if (is_crun)
            copy_make(runtime);
        else
            copy_drop(runtime);
        for (int is_hidden = 0; is_hidden <= (layout->has_hybrid_controllers && is_crun);
             is_hidden++) {
            struct err failure = {0};
            snprintf(runtime->hidden_mount, sizeof runtime->hidden_mount, "%s",
                     is_hidden ? layout->hybrid_mount : "");
            bool is_filtered = false;
            const struct probe probe = {layout, scratch, group, scratch, NULL, false};
            int code = probe_run(runtime, &probe, &is_filtered, message, &failure);
            if (code < 0 && layout->has_swap && strstr(message, "swap")) {
                layout->has_swap = false; /* v2 with swapaccount=0 */
                code = probe_run(runtime, &probe, &is_filtered, message, &failure);
            }
            if (code == 0 && is_filtered)
                return 0;
            if (code == 0)
                snprintf(message, sizeof message, "it ignores the seccomp profile");
            size_t used = strlen(why);
            snprintf(why + used, sizeof why - used, "%s%s: %.100s", used ? "; " : "", candidates[i],
                     message);
        }
    }
    return err_fail(err, ERR_UNSUPPORTED, "", "no container runtime works here: %s",
                    why[0] ? why : "neither crun nor runc is installed");
}

int runtime_find(struct runtime *runtime, struct cgroup_layout *layout, const char *wanted,
                 const char *scratch, const char *group, struct err *err)
{
    if (!program_find("conmon", runtime->conmon))
        return err_fail(err, ERR_UNSUPPORTED, "", "conmon is not installed");
    struct buf compiled = BUF_INIT;
    int code = oci_seccomp_bpf(&compiled, err);
    if (code < 0)
        return code;
    char *bpf = buf_steal(&compiled);
    /* without `volatile` the kernel may be older than 5.10; without the compiled profile the
     * runtime may be runc */
    for (int way = 0; way < 3; way++) {
        struct err failure = {0};
        runtime->has_volatile = way < 2;
        runtime->seccomp_bpf = way < 1 ? bpf : NULL;
        code = probe_all(runtime, layout, wanted, scratch, group, &failure);
        if (code == 0)
            break;
        if (way == 0 && err)
            *err = failure;
    }
    if (code == 0 && err)
        *err = (struct err){0};
    if (!runtime->seccomp_bpf)
        mem_free(bpf);
    return code;
}

void runtime_release(struct runtime *runtime)
{
    copy_drop(runtime);
    mem_free(runtime->seccomp_bpf);
    runtime->seccomp_bpf = NULL;
    for (size_t i = 0; i < COUNT_OF(runtime->procs_fds); i++) {
        if (runtime->procs_fds[i] >= 0)
            close(runtime->procs_fds[i]);
        runtime->procs_fds[i] = -1;
    }
}
