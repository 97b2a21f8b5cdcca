/* world.c — see world.h. */
#include "base/buf.h"
#include "base/memory.h"
#include "engine/local/task.h"
#include "init/job_file.h"
#include "init/task_file.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/mailbox.h"
#include <assert.h>
#include <errno.h>
#include <fnmatch.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "world.h"

enum {
    END_MS = 30000,     /* of a task that is killed, on a virtual machine */
    GOING_US = 9999000, /* a start waits for ten seconds, of whole milliseconds (adopt.c) */
};

int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int shell(const char *format, ...)
{
    char command[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    int status = system(command);
    return status < 0 ? -1 : (status >> 8) & 255;
}

const char *shell_output(const char *format, ...)
{
    static char out[8192];
    char command[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    FILE *pipe = popen(command, "re");
    size_t got = pipe ? fread(out, 1, sizeof out - 1, pipe) : 0;
    out[got] = 0;
    if (pipe)
        pclose(pipe);
    while (got && out[got - 1] <= ' ')
        out[--got] = 0;
    return out;
}

static char *text_keep(struct text text)
{
    char *copy = mem_alloc(text.length + 1);
    if (text.length)
        memcpy(copy, text.at, text.length);
    copy[text.length] = 0;
    return copy;
}

static void world_post(void *context, const struct engine_event *event)
{
    struct world *world = context;
    pthread_mutex_lock(&world->lock);
    struct seen *seen = ARRAY_ADD(&world->seen);
    seen->kind = event->kind;
    seen->attempt = event->attempt.v;
    seen->at_us = now_us();
    snprintf(seen->reason, sizeof seen->reason, "%s", event->reason ? event->reason : "");
    snprintf(seen->message, sizeof seen->message, "%s", event->message ? event->message : "");
    if (event->node) {
        world->node = *event->node;
        snprintf(world->node_reason, sizeof world->node_reason, "%s", event->node->reason);
    }
    if (event->exit) {
        seen->exit = *event->exit;
        seen->log = text_keep(event->exit->log_tail);
        seen->platform = text_keep(event->exit->platform_tail);
        seen->exit.reason = NULL; /* borrowed: the copies stand beside */
        seen->exit.message = NULL;
    }
    pthread_cond_broadcast(&world->has_event);
    pthread_mutex_unlock(&world->lock);
}

static struct seen *seen_find(struct world *world, enum engine_event_kind kind, uint64_t attempt,
                              size_t from)
{
    for (size_t i = from; i < world->seen.count; i++)
        if (world->seen.items[i].kind == kind &&
            (attempt == 0 || world->seen.items[i].attempt == attempt))
            return &world->seen.items[i];
    return NULL;
}

const struct seen *world_wait(struct world *world, enum engine_event_kind kind, uint64_t attempt,
                              size_t from, uint32_t timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&world->lock);
    struct seen *found;
    while (!(found = seen_find(world, kind, attempt, from)))
        if (pthread_cond_timedwait(&world->has_event, &world->lock, &until) == ETIMEDOUT)
            break;
    pthread_mutex_unlock(&world->lock);
    return found;
}

size_t world_seen_count(struct world *world)
{
    pthread_mutex_lock(&world->lock);
    size_t count = world->seen.count;
    pthread_mutex_unlock(&world->lock);
    return count;
}

void world_monitor_await(const struct world *world, uint64_t attempt, uint32_t timeout_ms)
{
    const int pid = atoi(shell_output("cat %s/run/tasks/%llu/conmon.pid", world->folder,
                                      (unsigned long long)attempt));
    assert_true(pid > 0);
    struct pollfd end = {.fd = pidfd_open(pid, 0), .events = POLLIN};
    if (end.fd < 0) {
        assert_int_equal(errno, ESRCH); /* it has ended, and is reaped */
        return;
    }
    assert_int_equal(poll(&end, 1, (int)timeout_ms), 1);
    close(end.fd);
}

void world_log_await(struct world *world, uint64_t attempt, const char *words, uint32_t timeout_ms)
{
    const struct engine_ops *ops = world->engine->ops;
    const struct attempt_id id = {attempt};
    const int64_t due_us = now_us() + timeout_ms * 1000ll;
    struct err err = {0};

    assert_non_null(world_wait(world, ENGINE_STARTED, attempt, 0, timeout_ms));
    struct pollfd watch = {.fd = ops->log_watch(world->engine, id, LOG_ALL, &err),
                           .events = POLLIN};
    assert_true(watch.fd >= 0);
    for (;;) {
        char text[4096] = "", drained[4096];
        uint64_t offset = 0;
        struct log_part part;
        ssize_t got =
            ops->log_read(world->engine, id, LOG_ALL, &offset, text, sizeof text - 1, &part, &err);
        assert_true(got >= 0);
        if (strstr(text, words))
            break;
        if (part.is_ended)
            fail_msg("it ended without %s: %s", words, text);
        const int64_t left_us = due_us - now_us();
        assert_true(left_us > 0 && poll(&watch, 1, (int)(left_us / 1000) + 1) == 1);
        if (read(watch.fd, drained, sizeof drained) < 0)
            assert_int_equal(errno, EAGAIN);
    }
    close(watch.fd);
}

bool world_is_listed(struct world *world, uint64_t attempt)
{
    struct attempt_id *attempts;
    size_t count;
    bool is_there = false;

    assert_int_equal(world->engine->ops->list(world->engine, &attempts, &count, NULL), 0);
    for (size_t i = 0; i < count; i++)
        is_there |= attempts[i].v == attempt;
    mem_free(attempts);
    return is_there;
}

bool world_open(struct world *world)
{
    memset(world, 0, sizeof *world);
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: containers need root\n");
        return false;
    }
    pthread_mutex_init(&world->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&world->has_event, &monotonic);
    pthread_condattr_destroy(&monotonic);
    ARRAY_RESERVE(&world->seen, 65536); /* pointers to events stay valid */
    const char *base = getenv("TMPDIR");
    snprintf(world->folder, sizeof world->folder, "%.100s/skep-engine-XXXXXX",
             base ? base : "/var/tmp");
    if (!mkdtemp(world->folder)) {
        fprintf(stderr, "skipped: cannot make %s\n", world->folder);
        return false;
    }
    if (shell("set -e; cd %s; mkdir -p images/busybox/bin images/busybox/etc images/busybox/tmp; "
              "cp /bin/busybox images/busybox/bin/busybox; chroot images/busybox "
              "/bin/busybox --install -s /bin; echo 'root:x:0:0::/root:/bin/sh\n"
              "worker:x:1000:1000::/home/worker:/bin/sh' > images/busybox/etc/passwd; "
              "chmod 755 . images images/busybox",
              world->folder) != 0) {
        fprintf(stderr, "skipped: busybox-static is not installed\n");
        return false;
    }
    snprintf(world->image_root, sizeof world->image_root, "%s/images", world->folder);
    snprintf(world->image, sizeof world->image, "dir:%s/images/busybox", world->folder);
    const char *network = getenv("SKEP_TEST_NETWORK");
    static const char *roots[1];
    static char data[256], run[256];
    roots[0] = world->image_root;
    snprintf(data, sizeof data, "%s/data", world->folder);
    snprintf(run, sizeof run, "%s/run", world->folder);
    world->config = (struct engine_local_config){
        .directory = data,
        .run_directory = run,
        .runtime = getenv("SKEP_TEST_RUNTIME"),
        .has_private_network = strcmp(network ? network : "", "private") == 0,
        .init_path = getenv("SKEP_TEST_INIT") ? getenv("SKEP_TEST_INIT") : SKEP_INIT,
        .image_roots = roots,
        .image_root_count = 1,
        .disk_reserve_mib = 1,
        .housekeeping_s = 3600};
    return true;
}

int64_t world_trusted(void *context)
{
    struct world *world = context;
    const int64_t trusted_ms = atomic_load(&world->trusted_ms);
    return trusted_ms ? trusted_ms : clock_unix_ms();
}

void world_start(struct world *world)
{
    struct err err = {0};
    const int64_t begin_us = now_us();
    world->engine = engine_local_new(
        &world->config,
        (struct engine_sink){.context = world, .post = world_post, .trusted_ms = world_trusted},
        &err);
    if (!world->engine) {
        fprintf(stderr, "engine: %s\n", err.text);
        abort();
    }
    world->start_us = now_us() - begin_us;
}

void world_remains_await(struct world *world, uint64_t attempt, uint32_t timeout_ms)
{
    const struct local_engine *local = (const struct local_engine *)world->engine;
    const int64_t due_us = now_us() + timeout_ms * 1000ll;
    while (*shell_output("find /sys/fs/cgroup -type d -path '*%s/%llu'", local->group,
                         (unsigned long long)attempt)) {
        assert_true(world->start_us >= GOING_US);
        assert_true(now_us() < due_us);
        engine_local_housekeep(world->engine); /* waits for a while for what it has killed */
    }
}

bool world_ended_undone(const struct world *world, const struct seen *end)
{
    if (strcmp(end->reason, "ContainerCannotRun") != 0 ||
        !strstr(end->message, "what a start before had left of it does not go"))
        return false;
    assert_true(world->start_us >= GOING_US);
    return true;
}

void world_stop(struct world *world)
{
    if (world->engine)
        world->engine->ops->free(world->engine);
    world->engine = NULL;
}

static void task_files(uint64_t attempt, const char *command, const struct task_options *options,
                       struct buf *job_text, struct buf *task_text)
{
    const struct job_file_port port = {.label = "web", .count = 1};
    const struct job_file_role role = {.name = "main",
                                       .instances = 1,
                                       .cpu = options->cpu,
                                       .gpu = (uint32_t)options->gpu_count,
                                       .memory_mib = options->memory_mib,
                                       .ports = &port,
                                       .port_count = options->port > 0,
                                       .min_failed = 1,
                                       .min_succeeded = -1};
    const struct job_file_task task = {
        .address = "127.0.0.1", .node = "here", .ports = &options->port};
    const struct job_file job = {.format = JOB_FILE_V2,
                                 .name = "job",
                                 .user = "alice",
                                 .virtual_cluster = "default",
                                 .id = attempt,
                                 .is_gang = true,
                                 .is_namespaced = true,
                                 .fs_uri = "",
                                 .data_dir = "",
                                 .output_dir = "",
                                 .code_dir = "",
                                 .roles = &role,
                                 .role_count = 1,
                                 .tasks = &task,
                                 .task_count = 1};
    const struct task_file file = {.attempt_id = attempt,
                                   .container = "test",
                                   .gpus = options->gpus,
                                   .gpu_count = options->gpu_count,
                                   .is_gpu_simulated = options->is_gpu_simulated,
                                   .pre_command = "",
                                   .command = command,
                                   .post_command = "",
                                   .ssh_private_key = "",
                                   .ssh_public_key = "",
                                   .ssh_authorized_keys = "",
                                   .barrier_url = "",
                                   .barrier_token = ""};
    job_file_write(&job, job_text);
    task_file_write(&file, task_text);
}

int world_create_with(struct world *world, uint64_t attempt, const char *command,
                      const struct task_options *options, struct err *err)
{
    struct buf job_text = BUF_INIT, task_text = BUF_INIT;
    task_files(attempt, command, options, &job_text, &task_text);
    const struct engine_file files[] = {
        {"job", buf_as_text(&job_text), 0444},
        {"task", buf_as_text(&task_text), 0400},
    };
    const struct engine_port port = {options->port, 1};
    struct container container = {
        .attempt = {attempt},
        .job = options->job ? options->job : "alice~job",
        .virtual_cluster = options->virtual_cluster,
        .role = "main",
        .node = "here",
        .image = options->image ? options->image : world->image,
        .registry_user = options->user ? options->user : "",
        .registry_password = options->password ? options->password : "",
        .cpu = options->cpu ? options->cpu : 1,
        .memory_mib = options->memory_mib ? options->memory_mib : 128,
        .shm_mib = options->shm_mib ? options->shm_mib : 16,
        .gpus = options->gpus,
        .gpu_count = options->gpu_count,
        .is_gpu_simulated = options->is_gpu_simulated,
        .ports = &port,
        .port_count = options->port > 0,
        .mounts = options->mounts,
        .mount_count = options->mount_count,
        .files = files,
        .file_count = COUNT_OF(files),
    };
    int result = world->engine->ops->create(world->engine, &container, err);
    buf_release(&job_text);
    buf_release(&task_text);
    return result;
}

void world_create(struct world *world, uint64_t attempt, const char *command)
{
    struct err err = {0};
    if (world_create_with(world, attempt, command, &(struct task_options){0}, &err) < 0) {
        fprintf(stderr, "create: %s\n", err.text);
        abort();
    }
}

/* All that there are. */
static void tasks_end(struct world *world)
{
    struct attempt_id *attempts = NULL;
    size_t count = 0;
    if (!world->engine && world->config.directory && access(world->config.directory, F_OK) == 0)
        world_start(world);
    if (world->engine && world->engine->ops->list(world->engine, &attempts, &count, NULL) == 0)
        for (size_t i = 0; i < count; i++) {
            world->engine->ops->kill(world->engine, attempts[i], 0, "test ends", false, NULL);
            world_wait(world, ENGINE_EXITED, attempts[i].v, 0, END_MS);
        }
    mem_free(attempts);
}

void world_close(struct world *world)
{
    tasks_end(world);
    world_stop(world);
    /* ends that nobody forgot stay in the run directory, a tmpfs, for the next server */
    shell("umount %s/run 2>/dev/null; rm -rf %s", world->folder, world->folder);
    for (size_t i = 0; i < world->seen.count; i++) {
        mem_free(world->seen.items[i].log);
        mem_free(world->seen.items[i].platform);
    }
    ARRAY_FREE(&world->seen);
}

static bool name_is_wanted(const char *name, char **patterns, bool *is_used, size_t count)
{
    bool is_wanted = count == 0;
    for (size_t i = 0; i < count; i++)
        if (fnmatch(patterns[i], name, 0) == 0)
            is_wanted = is_used[i] = true;
    return is_wanted;
}

static struct world *world_of_tests;

static int test_teardown(void **state)
{
    (void)state;
    tasks_end(world_of_tests);
    return 0;
}

int world_tests_run(struct world *world, int argc, char **argv, const struct CMUnitTest *tests,
                    size_t count, int (*setup)(void **state), int (*teardown)(void **state))
{
    const size_t pattern_count = argc > 1 ? (size_t)argc - 1 : 0;
    cleanup_free struct CMUnitTest *wanted = mem_zero(count, sizeof *wanted);
    cleanup_free bool *is_used = mem_zero(pattern_count + 1, sizeof *is_used);
    size_t wanted_count = 0;
    for (size_t i = 0; i < count; i++)
        if (name_is_wanted(tests[i].name, argv + 1, is_used, pattern_count))
            wanted[wanted_count++] = tests[i];
    for (size_t i = 0; i < wanted_count; i++)
        wanted[i].teardown_func = test_teardown;
    world_of_tests = world;
    for (size_t i = 0; i < pattern_count; i++)
        if (!is_used[i]) {
            fprintf(stderr, "no test has a name like %s\n", argv[i + 1]);
            return 2;
        }
    return _cmocka_run_group_tests(argv[0], wanted, wanted_count, setup, teardown);
}
