/* What tasks used over time: from the engine's counters to the disk and back, over a restart.
 * Covers: src/server/use_files.c */
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "server/state.h"
#include "server/use_watch.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t NOON_MS = 1795000000000;

/* ---- values ---- */

static void test_values(void **state)
{
    (void)state;
    struct engine_stats before = {.cpu_ns = 1000, .io_read_bytes = 500, .gpu_busy_ms = 100};
    struct engine_stats now = {.cpu_ns = 1000 + 15000000000,
                               .memory_bytes = 77,
                               .io_read_bytes = 10500,
                               .io_write_bytes = 0,
                               .gpu_count = 2,
                               .gpu_busy_ms = 5100,
                               .gpu_memory_bytes = 9,
                               .gpu_power_mw = 250000};
    uint64_t values[USE_FIELDS];
    use_values(&before, &now, 10000000, values);
    assert_int_equal(values[USE_CPU], 1500);
    assert_int_equal(values[USE_MEMORY], 77);
    assert_int_equal(values[USE_READ], 1000);
    assert_int_equal(values[USE_WRITTEN], 0);
    assert_int_equal(values[USE_GPU], 500);
    assert_int_equal(values[USE_GPU_MEMORY], 9);
    assert_int_equal(values[USE_GPU_POWER], 250000);
    assert_true(values[USE_SENT] == USE_UNKNOWN); /* on the host's network */
    before.network_tasks = now.network_tasks = 4;
    now.sent_bytes = 40000;
    before.cpu_ns = now.cpu_ns + 1; /* begun anew */
    use_values(&before, &now, 10000000, values);
    assert_int_equal(values[USE_SENT], 1000);
    assert_true(values[USE_CPU] == USE_UNKNOWN);
    use_values(NULL, &now, 0, values);
    assert_true(values[USE_CPU] == USE_UNKNOWN && values[USE_MEMORY] == 77);
    before = (struct engine_stats){.has_only_gpus = true, .gpu_busy_ms = 100};
    use_values(&before, &now, 10000000, values); /* the rest was not known before */
    assert_true(values[USE_CPU] == USE_UNKNOWN && values[USE_READ] == USE_UNKNOWN);
    assert_true(values[USE_MEMORY] == 77 && values[USE_GPU] == 500);
    for (int i = 0; i < 2; i++) { /* of disks nothing is known now, or was before */
        before = (struct engine_stats){.has_no_disk = i == 1};
        now.has_no_disk = i == 0;
        use_values(&before, &now, 10000000, values);
        assert_true(values[USE_CPU] != USE_UNKNOWN && values[USE_MEMORY] == 77);
        assert_true(values[USE_READ] == USE_UNKNOWN && values[USE_WRITTEN] == USE_UNKNOWN);
    }
    before = (struct engine_stats){.has_only_gpus = true, .gpu_busy_ms = 100};
    now.has_only_gpus = true;
    use_values(&before, &now, 10000000, values);
    assert_true(values[USE_CPU] == USE_UNKNOWN && values[USE_WRITTEN] == USE_UNKNOWN);
    assert_true(values[USE_MEMORY] == USE_UNKNOWN && values[USE_GPU] == 500);
}

/* ---- files ---- */

static char folder[64];

static int folder_make(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/skep-use-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int folder_drop(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static struct use_key key_of(uint32_t job, uint64_t attempt)
{
    return (struct use_key){.job = {job}, .attempt = {attempt}};
}

static void save(struct use_key key, uint64_t value)
{
    struct use_series *series = mem_zero(1, sizeof *series);
    uint64_t values[USE_FIELDS] = {value};
    struct err err;
    use_series_add(series, NOON_MS, values);
    assert_int_equal(use_file_save(folder, &key, series, &err), 0);
    mem_free(series);
}

/* ERR_NOT_FOUND, or 0 and the first value. */
static int load(struct use_key key, uint64_t *value)
{
    struct use_series *series = mem_zero(1, sizeof *series);
    struct use_points *points = mem_zero(1, sizeof *points);
    struct err err;
    int code = use_file_load(folder, &key, series, &err);
    if (code == 0)
        use_series_points(series, USE_RECENT, points);
    *value = points->values[0][0];
    mem_free(series);
    mem_free(points);
    return code;
}

static bool is_below_three(void *context, struct job_id job)
{
    (void)context;
    return job.v < 3;
}

static void age(const char *path, time_t seconds)
{
    char full[128];
    snprintf(full, sizeof full, "%s/%s", folder, path);
    struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    assert_int_equal(utimensat(AT_FDCWD, full, times, 0), 0);
}

static void test_files(void **state)
{
    (void)state;
    uint64_t value;
    struct use_key node = {.node = "n1"};
    assert_int_equal(load(key_of(1, 10), &value), ERR_NOT_FOUND);
    save(key_of(1, 10), 7);
    save(key_of(1, 11), 8);
    save(key_of(2, 20), 9);
    save(key_of(3, 30), 6);
    save(node, 5);
    save(key_of(1, 10), 4); /* takes the place of the first */
    assert_int_equal(load(key_of(1, 10), &value), 0);
    assert_int_equal(value, 4);
    assert_int_equal(load(node, &value), 0);
    assert_int_equal(value, 5);
    /* the job that is no more goes; then the oldest, until there is room */
    age("jobs/1/10", 1000);
    age("jobs/2/20", 500);
    assert_int_equal(use_files_sweep(folder, 3 * USE_FILE_SIZE, is_below_three, NULL),
                     3 * USE_FILE_SIZE);
    assert_int_equal(load(key_of(3, 30), &value), ERR_NOT_FOUND);
    assert_int_equal(load(key_of(2, 20), &value), ERR_NOT_FOUND);
    assert_int_equal(load(key_of(1, 10), &value), 0);
    assert_int_equal(load(key_of(1, 11), &value), 0);
    use_files_drop(folder, (struct job_id){1});
    assert_int_equal(load(key_of(1, 10), &value), ERR_NOT_FOUND);
    assert_int_equal(load(node, &value), 0);
    assert_int_equal(use_files_sweep(folder, 0, is_below_three, NULL), 0);
    /* as many as it takes, and no more */
    for (uint32_t i = 0; i < 5; i++) {
        char path[32];
        save(key_of(1, 10 + i), i);
        snprintf(path, sizeof path, "jobs/1/%u", 10 + i);
        age(path, 500 - 100 * (time_t)i);
    }
    assert_int_equal(use_files_sweep(folder, 2 * USE_FILE_SIZE, is_below_three, NULL),
                     2 * USE_FILE_SIZE);
    assert_int_equal(load(key_of(1, 11), &value), 0);
    assert_int_equal(load(key_of(1, 10), &value), 0);
    for (uint32_t i = 2; i < 5; i++)
        assert_int_equal(load(key_of(1, 10 + i), &value), ERR_NOT_FOUND);
    assert_int_equal(use_files_sweep("/nowhere/at/all", 0, is_below_three, NULL), 0);
}

static void test_bad_files(void **state)
{
    (void)state;
    uint64_t value;
    char path[128];
    struct err err;
    struct use_series *series = mem_zero(1, sizeof *series);
    struct use_key outside = {.node = "../n1"};
    save(key_of(1, 10), 7);
    snprintf(path, sizeof path, "%s/jobs/1/10", folder);
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(load(key_of(1, 10), &value), ERR_NOT_FOUND);
    assert_int_equal(truncate(path, 2 * USE_FILE_SIZE), 0);
    assert_int_equal(load(key_of(1, 10), &value), ERR_NOT_FOUND);
    assert_int_equal(use_file_save(folder, &outside, series, &err), ERR_INVALID);
    assert_int_equal(load(outside, &value), ERR_NOT_FOUND);
    /* half of it was written when the power went */
    save(key_of(1, 10), 7);
    assert_int_equal(load(key_of(1, 10), &value), 0); /* also over a longer file */
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "?", 1, USE_SERIES_SIZE / 2), 1);
    close(fd);
    assert_int_equal(load(key_of(1, 10), &value), ERR_NOT_FOUND);
    /* a file of before there were sums */
    save(key_of(1, 10), 7);
    assert_int_equal(truncate(path, USE_SERIES_SIZE), 0);
    assert_int_equal(load(key_of(1, 10), &value), 0);
    assert_int_equal(value, 7);
    /* nothing would tell that half of it is new: it is not written over */
    char old[128];
    snprintf(old, sizeof old, "%s/jobs/1/12", folder);
    assert_int_equal(link(path, old), 0);
    save(key_of(1, 10), 8);
    assert_int_equal(load(key_of(1, 12), &value), 0);
    assert_int_equal(value, 7);
    assert_int_equal(load(key_of(1, 10), &value), 0);
    assert_int_equal(value, 8);
    snprintf(path, sizeof path, "%s/jobs/1/11", folder); /* in the way */
    assert_int_equal(mkdir(path, 0700), 0);
    struct use_key blocked = key_of(1, 11);
    assert_int_equal(use_file_save(folder, &blocked, series, &err), ERR_IO);
    mem_free(series);
}

/* ---- a server ---- */

static uint64_t points_of(struct world *world, struct use_watch *watch, struct attempt_id attempt,
                          struct job_id job, struct use_points *points)
{
    struct use_key key = {.job = job, .attempt = attempt};
    points->count = 0;
    int code = use_watch_points(watch, &key, USE_RECENT, points, &world->err);
    assert_true(code == 0 || code == ERR_NOT_FOUND);
    return points->count;
}

/* A job runs, is sampled by rounds of a watch without thread, ends and is deleted. */
static void a_task_is_sampled_while_it_runs(void **state)
{
    struct world *world = *state;
    struct job_id job;
    struct use_points *points = mem_zero(1, sizeof *points);
    assert_int_equal(submit(world, job_text(world, "long", ""), &job), 0);
    wait_until_tasks_run(world, job);
    struct task_record task = tasks_of(world, job).items[0];
    struct use_watch *watch = use_watch_new(world->server);
    struct record record = {.kind = RECORD_TASK, .task = task};
    struct use_key key = {.job = job, .attempt = task.attempt};
    uint64_t last[USE_FIELDS];
    /* one commit tells of another job as well */
    const struct record both[] = {
        {.kind = RECORD_JOB_DELETED, .deleted = {job.v + 1}},
        record,
    };
    use_watch_take(watch, both, COUNT_OF(both));
    assert_int_equal(points_of(world, watch, task.attempt, job, points), 0);
    assert_false(use_watch_last(watch, &key, last));
    for (int64_t i = 0; i < 4; i++)
        use_watch_round(watch, NOON_MS + i * USE_STEP_MS);
    assert_int_equal(points_of(world, watch, task.attempt, job, points), 4);
    assert_true(points->values[0][USE_CPU] == USE_UNKNOWN);
    assert_int_equal(points->values[3][USE_MEMORY], 1 << 20);
    assert_true(points->values[3][USE_GPU] == USE_UNKNOWN);
    assert_true(use_watch_last(watch, &key, last));
    assert_memory_equal(last, points->values[3], sizeof last);
    /* another server goes on with what is on disk */
    use_watch_stop(watch);
    use_watch_round(watch, NOON_MS + 60 * 1000 + 4 * USE_STEP_MS); /* saves */
    assert_true(use_watch_last(watch, &key, last));                /* what is on disk stays known */
    assert_int_equal(last[USE_MEMORY], 1 << 20);
    use_watch_free(watch);
    watch = use_watch_new(world->server);
    assert_int_equal(points_of(world, watch, task.attempt, job, points), 11);
    use_watch_take(watch, &record, 1);
    use_watch_round(watch, NOON_MS + 20 * USE_STEP_MS);
    assert_int_equal(points_of(world, watch, task.attempt, job, points), 21);
    /* it ends: what is known stays until the job is deleted */
    record.task.state = LIFE_COMPLETED;
    use_watch_take(watch, &record, 1);
    use_watch_round(watch, NOON_MS + 21 * USE_STEP_MS);
    use_watch_round(watch, NOON_MS + 22 * USE_STEP_MS);
    assert_int_equal(points_of(world, watch, task.attempt, job, points), 21);
    assert_false(use_watch_last(watch, &key, last));
    record = (struct record){.kind = RECORD_JOB_DELETED, .deleted = job};
    use_watch_take(watch, &record, 1);
    use_watch_round(watch, NOON_MS + 23 * USE_STEP_MS);
    assert_int_equal(points_of(world, watch, task.attempt, job, points), 0);
    use_watch_free(watch);
    use_watch_free(NULL);
    mem_free(points);
}

enum { SAVES = 3000 };

struct reader {
    struct use_watch *watch;
    struct use_key key;
    size_t fewest;
    atomic_bool is_ending;
};

static void *points_read(void *argument)
{
    struct reader *reader = argument;
    struct use_points *points = mem_zero(1, sizeof *points);
    while (!atomic_load(&reader->is_ending)) {
        struct err err;
        points->count = 0;
        (void)use_watch_points(reader->watch, &reader->key, USE_RECENT, points, &err);
        if (points->count < reader->fewest)
            reader->fewest = points->count;
    }
    mem_free(points);
    return NULL;
}

/* Whoever reads a series while it is written again sees all of it. */
static void a_series_is_read_as_a_whole(void **state)
{
    struct world *world = *state;
    struct job_id job;
    pthread_t thread;
    use_watch_stop(world->server->use_watch); /* it has the same file */
    assert_int_equal(submit(world, job_text(world, "long", ""), &job), 0);
    wait_until_tasks_run(world, job);
    struct task_record task = tasks_of(world, job).items[0];
    struct use_watch *watch = use_watch_new(world->server);
    struct record record = {.kind = RECORD_TASK, .task = task};
    struct reader reader = {
        .watch = watch, .key = {.job = job, .attempt = task.attempt}, .fewest = USE_RECENT_POINTS};
    int64_t now_ms = NOON_MS;
    use_watch_take(watch, &record, 1);
    for (size_t i = 0; i < USE_RECENT_POINTS; i++, now_ms += USE_STEP_MS)
        use_watch_round(watch, now_ms);
    assert_int_equal(pthread_create(&thread, NULL, points_read, &reader), 0);
    for (size_t i = 0; i < SAVES; i++, now_ms += USE_SAVE_MS)
        use_watch_round(watch, now_ms);
    atomic_store(&reader.is_ending, true);
    pthread_join(thread, NULL);
    assert_int_equal(reader.fewest, USE_RECENT_POINTS);
    use_watch_free(watch);
}

/* Without room nothing is sampled, and what was is given up. */
static void no_room_means_no_samples(void **state)
{
    struct world *world = *state;
    struct job_id job;
    struct use_points *points = mem_zero(1, sizeof *points);
    assert_int_equal(submit(world, job_text(world, "long", ""), &job), 0);
    wait_until_tasks_run(world, job);
    struct task_record task = tasks_of(world, job).items[0];
    struct use_watch *watch = use_watch_new(world->server);
    struct record record = {.kind = RECORD_TASK, .task = task};
    use_watch_take(watch, &record, 1);
    use_watch_round(watch, NOON_MS);
    use_watch_round(watch, NOON_MS + USE_STEP_MS);
    assert_int_equal(points_of(world, watch, task.attempt, job, points), 2);
    use_watch_configure(watch, 0);
    use_watch_round(watch, NOON_MS + USE_SWEEP_MS + USE_STEP_MS);
    assert_int_equal(points_of(world, watch, task.attempt, job, points), 0);
    use_watch_take(watch, &record, 1);
    use_watch_round(watch, NOON_MS + USE_SWEEP_MS + 2 * USE_STEP_MS);
    assert_int_equal(points_of(world, watch, task.attempt, job, points), 0);
    use_watch_free(watch);
    mem_free(points);
}

/* What cannot be written waits for the disk, the latest USE_SAMPLES_MAX samples of it; a series
 * that is damaged on disk begins anew. */
static void samples_wait_for_the_disk(void **state)
{
    struct world *world = *state;
    struct job_id job;
    char in_the_way[256], path[320];
    struct use_points *points = mem_zero(1, sizeof *points);
    assert_int_equal(submit(world, job_text(world, "long", ""), &job), 0);
    wait_until_tasks_run(world, job);
    struct task_record task = tasks_of(world, job).items[0];
    struct use_watch *watch = use_watch_new(world->server);
    struct record record = {.kind = RECORD_TASK, .task = task};
    snprintf(in_the_way, sizeof in_the_way, "%s/use/jobs/%u", world->server->config->data_directory,
             job.v);
    snprintf(path, sizeof path, "%s/use", world->server->config->data_directory);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/use/jobs", world->server->config->data_directory);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%llu", in_the_way, (unsigned long long)task.attempt.v);
    use_watch_take(watch, &record, 1);
    int fd = open(in_the_way, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    close(fd);
    for (int64_t i = 0; i < USE_SAMPLES_MAX + 20; i++)
        use_watch_round(watch, NOON_MS + i * USE_STEP_MS);
    struct use_key key = {.job = job, .attempt = task.attempt};
    assert_int_equal(use_watch_points(watch, &key, USE_WHOLE, points, &world->err), 0);
    assert_true(points->begin_ms == NOON_MS + 20 * USE_STEP_MS);
    assert_int_equal(unlink(in_the_way), 0);
    use_watch_round(watch, NOON_MS + 400 * USE_STEP_MS);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(points_of(world, watch, task.attempt, job, points), USE_RECENT_POINTS);
    assert_true(points->values[USE_RECENT_POINTS - 1][USE_MEMORY] == 1 << 20);
    /* of before it was saved and after */
    use_watch_round(watch, NOON_MS + 401 * USE_STEP_MS);
    assert_int_equal(use_watch_points(watch, &key, USE_WHOLE, points, &world->err), 0);
    assert_true(points->begin_ms == NOON_MS + 21 * USE_STEP_MS);
    assert_true(points->values[points->count - 1][USE_MEMORY] == 1 << 20);
    assert_int_equal(truncate(path, 100), 0);
    use_watch_round(watch, NOON_MS + 407 * USE_STEP_MS);
    assert_int_equal(points_of(world, watch, task.attempt, job, points), 7);
    use_watch_free(watch);
    mem_free(points);
}

/* The server's own thread, by the port of the API. */
static void the_server_answers(void **state)
{
    struct world *world = *state;
    struct use_points *points = mem_zero(1, sizeof *points);
    assert_int_equal(world->service->use(world->service->context, (struct job_id){77},
                                         (struct attempt_id){78}, NULL, USE_WHOLE, points,
                                         &world->err),
                     ERR_NOT_FOUND);
    assert_int_equal(world->service->use(world->service->context, (struct job_id){0},
                                         (struct attempt_id){0}, "no-such-node", USE_WHOLE, points,
                                         &world->err),
                     ERR_NOT_FOUND);
    mem_free(points);
}

static int long_setup(void **state)
{
    return setup_with(state, "runMilliseconds: 3600000", "");
}

#define FILES(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_drop)
#define WORLD(test) cmocka_unit_test_setup_teardown(test, long_setup, teardown)
static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_values),   FILES(test_files),
    FILES(test_bad_files),           WORLD(a_task_is_sampled_while_it_runs),
    WORLD(no_room_means_no_samples), WORLD(samples_wait_for_the_disk),
    WORLD(the_server_answers),       WORLD(a_series_is_read_as_a_whole),
};
UNIT_FILE(tests, world_begin, NULL);
