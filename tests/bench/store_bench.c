/* store_bench.c — figures of the store over one database: commits, reads, submissions through the
 * server.
 *
 * usage: store-bench DIRECTORY [COUNT [ADDRESS]]
 *
 * Prints one line a figure: its name, a tab, the value, a tab, the unit. tests/bench/bench_store.py
 * prints those of SQLite and PostgreSQL side by side.
 */
#include "arguments.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "bench_server.h"
#include "core/event.h"
#include "core/plan.h"
#include "store/read.h"
#include "sys/clock.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    BATCH = 64,
    WINDOW = 1000,
    SUBMITS_PER_S = 200,
    LARGE_TASKS = 20000,
    LARGE_BATCH = 250, /* of which so many end in one commit */
    SMALL_JOBS = 500,
    SMALL_STORIES = 5,
    SMALL_TAIL = 1000 /* bytes of last lines */
};

static struct bench_server bench;
static const char *address = "";

static struct {
    struct store *store;
    struct store_reader *reader;
    struct output output;
    struct buf plan;
    uint32_t last;
} world;

static void figure(const char *name, double value, const char *unit)
{
    printf("%s\t%.3f\t%s\n", name, value, unit);
    fflush(stdout);
}

static void percentiles(const char *what, int64_t *us, size_t count)
{
    char name[100];

    times_sort(us, count);
    snprintf(name, sizeof name, "%s, p50", what);
    figure(name, (double)us[count / 2] / 1e3, "ms");
    snprintf(name, sizeof name, "%s, p99", what);
    figure(name, (double)us[count * 99 / 100] / 1e3, "ms");
}

/* --- the store alone --- */

static void world_open(void)
{
    struct store_opening opening = {.address = address};
    struct err err;

    if (store_open_with(bench.directory, &opening, &world.store, &err) < 0 ||
        store_reader_open(world.store, &world.reader, &err) < 0)
        bench_fail("open", &err);
}

static void world_close(void)
{
    store_reader_close(world.reader);
    store_close(world.store);
}

static void job_add(void)
{
    struct submission *submission = ARENA_NEW(&world.output.arena, struct submission);
    uint32_t id = ++world.last;
    struct job_record job = {
        .id = {id},
        .name = arena_format(&world.output.arena, "job%u", id),
        .user = "alice",
        .virtual_cluster = "default",
        .submitted_ms = 1000 + id,
        .trigger_role = -1,
        .trigger_index = -1,
        .trigger = "",
        .reason = "",
        .task_count = 1,
        .role_count = 1,
        .extra = TEXT("extra"),
    };

    *submission = (struct submission){.spec_bytes = TEXT("spec"),
                                      .plan_bytes = buf_as_text(&world.plan),
                                      .source = TEXT("name: train"),
                                      .sealed = TEXT("sealed"),
                                      .format = 1};
    job.submission = submission;
    *ARRAY_ADD(&world.output.records) = (struct record){.kind = RECORD_JOB, .job = job};
}

static void task_add(uint32_t job, enum life_state state)
{
    struct task_record task = {.job = {job},
                               .role_name = "worker",
                               .state = state,
                               .attempt = {job},
                               .node = "n1",
                               .address = "10.0.0.1"};

    *ARRAY_ADD(&world.output.records) = (struct record){.kind = RECORD_TASK, .task = task};
}

static int64_t commit(void)
{
    struct store_event event = {
        5, 1, TEXT("the body of an event, of some sixty bytes as they mostly are")};
    struct store_batch batch = {.events = &event, .event_count = 1, .output = &world.output};
    struct err err;
    int64_t begin_us = clock_monotonic_us();

    if (store_commit(world.store, &batch, &err) < 0)
        bench_fail("commit", &err);
    output_clear(&world.output);
    return clock_monotonic_us() - begin_us;
}

static void bench_commits(size_t count)
{
    int64_t *us = mem_zero(count, sizeof *us), begin_us = clock_monotonic_us();

    for (size_t i = 0; i < count; i++) {
        job_add();
        us[i] = commit();
    }
    figure("commits of one job each",
           (double)count / ((double)(clock_monotonic_us() - begin_us) / 1e6), "/s");
    percentiles("commit of one job", us, count);
    begin_us = clock_monotonic_us();
    for (size_t i = 0; i < count / BATCH; i++) {
        for (int j = 0; j < BATCH; j++)
            job_add();
        commit();
    }
    figure("jobs in commits of 64",
           (double)(count / BATCH * BATCH) / ((double)(clock_monotonic_us() - begin_us) / 1e6),
           "/s");
    begin_us = clock_monotonic_us();
    for (size_t i = 0; i < count; i++) {
        task_add((uint32_t)i + 1, i % 2 ? LIFE_RUNNING : LIFE_PREPARING);
        us[i] = commit();
    }
    figure("commits of one task each",
           (double)count / ((double)(clock_monotonic_us() - begin_us) / 1e6), "/s");
    mem_free(us);
}

static double thread_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* --- deletions --- */

struct cost {
    double cpu_ms, wall_ms;
};

/* What was added, and, or, a piece of what deleted jobs have left. */
static struct cost commit_cost(struct store_change *changes, size_t count)
{
    const struct store_batch batch = {
        .output = &world.output, .changes = changes, .change_count = count};
    const double cpu_ms = thread_ms();
    const int64_t begin_us = clock_monotonic_us();
    struct err err;
    if (store_commit(world.store, &batch, &err) < 0)
        bench_fail("commit", &err);
    output_clear(&world.output);
    return (struct cost){thread_ms() - cpu_ms, (double)(clock_monotonic_us() - begin_us) / 1e3};
}

static void cost_add(struct cost *sum, struct cost *worst, struct cost one)
{
    sum->cpu_ms += one.cpu_ms;
    sum->wall_ms += one.wall_ms;
    worst->cpu_ms = one.cpu_ms > worst->cpu_ms ? one.cpu_ms : worst->cpu_ms;
    worst->wall_ms = one.wall_ms > worst->wall_ms ? one.wall_ms : worst->wall_ms;
}

static void cost_show(const char *what, const char *of, struct cost cost)
{
    char name[100];
    snprintf(name, sizeof name, "%s, %s, CPU", what, of);
    figure(name, cost.cpu_ms, "ms");
    snprintf(name, sizeof name, "%s, %s", what, of);
    figure(name, cost.wall_ms, "ms");
}

/* The commits that delete `count` jobs from `first` on, so many in each, and the pieces after them.
 */
static void deletion_go(const char *what, uint32_t first, uint32_t count, uint32_t at_once)
{
    struct cost event = {0, 0}, piece = {0, 0}, pieces_all = {0, 0}, all = {0, 0};
    unsigned pieces = 0;
    char name[100];
    for (uint32_t i = 0; i < count; i++) {
        *ARRAY_ADD(&world.output.records) =
            (struct record){.kind = RECORD_JOB_DELETED, .deleted = {first + i}};
        if ((i + 1) % at_once == 0)
            cost_add(&all, &event, commit_cost(NULL, 0));
    }
    for (; store_deletions(world.store) > 0; pieces++) {
        struct store_change change = {.kind = CHANGE_DELETIONS};
        cost_add(&pieces_all, &piece, commit_cost(&change, 1));
    }
    all.cpu_ms += pieces_all.cpu_ms;
    all.wall_ms += pieces_all.wall_ms;
    cost_show(what, count == at_once ? "its commit" : "the worst commit", event);
    snprintf(name, sizeof name, "%s, pieces after it", what);
    figure(name, pieces, "");
    cost_show(what, "the worst piece", piece);
    if (pieces > 0)
        cost_show(what, "pieces on average",
                  (struct cost){pieces_all.cpu_ms / pieces, pieces_all.wall_ms / pieces});
    cost_show(what, "all of it", all);
}

static void ended_task_add(uint32_t job, uint32_t index, uint64_t attempt)
{
    struct task_record task = {.job = {job},
                               .task = {0, (uint16_t)index},
                               .role_name = "worker",
                               .state = LIFE_COMPLETED,
                               .attempt = {attempt},
                               .node = "n1",
                               .address = "10.0.0.1"};
    *ARRAY_ADD(&world.output.records) = (struct record){.kind = RECORD_TASK, .task = task};
}

static void story_add(uint32_t job)
{
    struct story_record story = {.job = {job},
                                 .role = -1,
                                 .index = -1,
                                 .reason = "Waiting",
                                 .message = "waits for 16 GPUs of V100 in default"};
    *ARRAY_ADD(&world.output.records) = (struct record){.kind = RECORD_STORY, .story = story};
}

static struct store_change end_of(uint64_t attempt, size_t tail_bytes)
{
    static char tail[STORE_TAIL_MAX];
    memset(tail, 'x', sizeof tail);
    return (struct store_change){.kind = CHANGE_ATTEMPT_END,
                                 .attempt_end = {.attempt = {attempt},
                                                 .rule = {.phrase = "", .file = "", .log = ""},
                                                 .tail = {tail, tail_bytes}}};
}

/* A job of so many tasks that have ended, with the attempt of each, and its last lines. */
static void bench_deletion_large(const char *kind, size_t tail_bytes)
{
    struct store_change ends[LARGE_BATCH];
    char what[80];
    job_add();
    const uint32_t job = world.last;
    commit();
    for (uint32_t i = 0; i < LARGE_TASKS; i++) {
        const uint64_t attempt = (uint64_t)job * LARGE_TASKS + i;
        ended_task_add(job, i, attempt);
        ends[i % LARGE_BATCH] = end_of(attempt, tail_bytes);
        if ((i + 1) % LARGE_BATCH == 0)
            commit_cost(ends, tail_bytes > 0 ? LARGE_BATCH : 0);
    }
    snprintf(what, sizeof what, "deletion of %d tasks%s", LARGE_TASKS, kind);
    deletion_go(what, job, 1, 1);
}

/* Jobs of one task each. */
static void bench_deletion_small(uint32_t at_once)
{
    struct store_change ends[SMALL_JOBS];
    const uint32_t first = world.last + 1;
    char what[80];
    for (uint32_t i = 0; i < SMALL_JOBS; i++) {
        job_add();
        const uint64_t attempt = (uint64_t)world.last * LARGE_TASKS;
        ended_task_add(world.last, 0, attempt);
        for (int s = 0; s < SMALL_STORIES; s++)
            story_add(world.last);
        ends[i] = end_of(attempt, SMALL_TAIL);
    }
    commit_cost(ends, SMALL_JOBS);
    snprintf(what, sizeof what, "deletion of %d small jobs, %u in a commit", SMALL_JOBS, at_once);
    deletion_go(what, first, SMALL_JOBS, at_once);
}

static void bench_reads(size_t count)
{
    int64_t *us = mem_zero(count, sizeof *us);
    struct arena arena;
    struct store_job row;
    struct err err;

    arena_init(&arena);
    for (size_t i = 0; i < count; i++) {
        struct job_id job = {(uint32_t)(i * 7919 % world.last) + 1};
        int64_t begin_us = clock_monotonic_us();
        if (store_job_read(world.reader, job, &arena, &row, &err) < 0)
            bench_fail("read", &err);
        us[i] = clock_monotonic_us() - begin_us;
        arena_clear(&arena);
    }
    percentiles("read of one job", us, count);
    arena_release(&arena);
    mem_free(us);
}

static void bench_open(void)
{
    int64_t begin_us;

    world_close();
    begin_us = clock_monotonic_us();
    world_open();
    figure("open, all jobs into the index", (double)(clock_monotonic_us() - begin_us) / 1e3, "ms");
}

/* --- through the server --- */

static void server_begin(void)
{
    char config[1000];
    int length =
        snprintf(config, sizeof config,
                 "engine: {kind: fake, fake: {nodes: 100, cpu: 1000, runMilliseconds: 1}}\n%s%s%s",
                 *address ? "database: \"" : "", address, *address ? "\"\n" : "");

    if (length >= (int)sizeof config)
        bench_fail(address, &(struct err){.text = "the address is too long"});
    bench_server_start(&bench, config);
}

/* `pause_us` between two; 0: as many as are answered, 1,000 under way. */
static void bench_submits(const char *what, const char *prefix, size_t count, int64_t pause_us)
{
    struct flood flood;
    const int64_t begin_us = clock_monotonic_us();
    int64_t *us;

    flood_init(&flood, count, WINDOW);
    for (size_t i = 0; i < count; i++) {
        const struct bench_job job = {
            .prefix = prefix, .number = i, .instances = 1, .cpu = 1, .extras = ""};
        int64_t due = begin_us + (int64_t)i * pause_us - clock_monotonic_us();
        char text[BENCH_JOB_MAX];
        bench_job_text(&job, text);
        if (pause_us > 0 && due > 0)
            usleep((useconds_t)due);
        flood_submit(&flood, i, bench.service, text);
    }
    flood_wait(&flood);
    us = flood_times(&flood, count);
    if (pause_us == 0)
        figure(what, (double)count / ((double)(clock_monotonic_us() - begin_us) / 1e6), "/s");
    else
        percentiles(what, us, count);
    mem_free(us);
    flood_release(&flood);
}

int main(int argc, char **argv)
{
    static const char usage[] =
        "usage: store-bench DIRECTORY [COUNT [ADDRESS]]     (2000)\n"
        "DIRECTORY is on the disk that is to be measured; ADDRESS is an empty database\n"
        "of PostgreSQL (postgres://...), without it SQLite is measured.\n";
    struct plan_role role = plan_role_of("worker");
    struct plan plan = {.name = "job",
                        .user = "alice",
                        .virtual_cluster = "default",
                        .roles = &role,
                        .role_count = 1};

    arguments_check(argc, argv, 1, 3, 0, usage);
    size_t count = argc > 2 ? argument_number(argv[2], 128, 1000000, usage) : 2000;
    address = argc > 3 ? argv[3] : "";
    bench_server_init(&bench, argv[1]);
    if (mkdir(bench.directory, 0700) < 0) {
        perror(bench.directory);
        return 2;
    }
    output_init(&world.output);
    plan_encode(&plan, &world.plan);
    world_open();
    bench_commits(count);
    bench_reads(count);
    bench_deletion_large("", 0);
    bench_deletion_large(" with last lines", STORE_TAIL_MAX);
    bench_deletion_small(SMALL_JOBS);
    bench_deletion_small(1);
    bench_open();
    /* the server is to find none of these jobs waiting */
    for (uint32_t id = 1; id <= world.last; id++)
        *ARRAY_ADD(&world.output.records) =
            (struct record){.kind = RECORD_JOB_DELETED, .deleted = {id}};
    commit();
    world_close();
    output_release(&world.output);
    buf_release(&world.plan);
    server_begin();
    bench_submits("submit, 200 a second", "l", count, 1000000 / SUBMITS_PER_S);
    bench_submits("submits, 1,000 under way", "t", count * 4, 0);
    bench_server_stop(&bench);
    bench_data_remove(&bench);
    return 0;
}
