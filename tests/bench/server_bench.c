/* server_bench.c — figures of the server without HTTP, with the fake engine and a durable store.
 *
 * usage: server-bench [DIRECTORY] [JOBS]
 *
 * DIRECTORY must be on the disk that is to be measured (default: the working directory); JOBS is
 * the size of the large queue (default 100000). Prints one line a figure.
 */
#include "arguments.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "bench_server.h"
#include "core/trial.h"
#include "doc/problem.h"
#include "store/read.h"
#include "sys/clock.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WINDOW = 1000 };

static struct bench_server bench;

static void start(const char *engine)
{
    char config[200];

    snprintf(config, sizeof config, "engine: {kind: fake, fake: {%s}}\n", engine);
    bench_server_start(&bench, config);
}

static void fresh(const char *engine)
{
    bench_data_remove(&bench);
    start(engine);
}

static long memory_mib(void)
{
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file) {
        if (fscanf(file, "%ld %ld", &pages, &resident) != 2)
            resident = 0;
        fclose(file);
    }
    return resident * (sysconf(_SC_PAGESIZE) / 1024) / 1024;
}

static void submit(struct flood *flood, size_t number, const char *prefix, unsigned cpu)
{
    const struct bench_job job = {
        .prefix = prefix, .number = number, .instances = 1, .cpu = cpu, .extras = ""};
    char text[BENCH_JOB_MAX];

    bench_job_text(&job, text);
    flood_submit(flood, number, bench.service, text);
}

static void percentiles(const char *what, int64_t *us, size_t count)
{
    times_sort(us, count);
    printf("%-44s p50 %8.3f ms  p99 %8.3f ms  max %8.3f ms\n", what, (double)us[count / 2] / 1e3,
           (double)us[count * 99 / 100] / 1e3, (double)us[count - 1] / 1e3);
    fflush(stdout);
}

static void flood_percentiles(const char *what, const struct flood *flood, size_t count)
{
    int64_t *us = flood_times(flood, count);

    percentiles(what, us, count);
    mem_free(us);
}

static void wait_ended(uint64_t count)
{
    uint64_t counts[PUBLIC_STATE_COUNT];

    do {
        usleep(1000);
        store_job_counts(bench.service->store, counts);
    } while (counts[PUBLIC_SUCCEEDED] + counts[PUBLIC_FAILED] + counts[PUBLIC_STOPPED] < count);
}

/* 1,000 a second, each at its own time, whatever the ones before do. */
static void bench_latency(size_t count)
{
    struct flood flood;
    int64_t begin_us;

    fresh("nodes: 10, cpu: 100, runMilliseconds: 20");
    flood_init(&flood, count, WINDOW);
    begin_us = clock_monotonic_us();
    for (size_t i = 0; i < count; i++) {
        int64_t due = begin_us + (int64_t)i * 1000 - clock_monotonic_us();
        if (due > 0)
            usleep((useconds_t)due);
        submit(&flood, i, "l", 1);
    }
    flood_wait(&flood);
    flood_percentiles("submit, durable, 1,000 a second, jobs run", &flood, count);
    wait_ended(count);
    flood_release(&flood);
    bench_server_stop(&bench);
}

static void bench_throughput(size_t count)
{
    struct flood flood;
    int64_t begin_us;
    double submitted_s, ended_s;

    fresh("nodes: 100, cpu: 1000, runMilliseconds: 1");
    flood_init(&flood, count, WINDOW);
    begin_us = clock_monotonic_us();
    for (size_t i = 0; i < count; i++)
        submit(&flood, i, "t", 1);
    flood_wait(&flood);
    submitted_s = (double)(clock_monotonic_us() - begin_us) / 1e6;
    wait_ended(count);
    ended_s = (double)(clock_monotonic_us() - begin_us) / 1e6;
    printf("%-44s %8.0f /s submitted, %8.0f /s ended\n", "jobs sustained, durable, 1 task each",
           (double)count / submitted_s, (double)count / ended_s);
    flood_percentiles("  latency with 1,000 under way", &flood, count);
    flood_release(&flood);
    bench_server_stop(&bench);
}

static void fill_queue(struct flood *flood, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        submit(flood, i, "q", 2);
    flood_wait(flood);
}

static struct job_page page;

static void bench_list(const char *what, struct job_filter filter)
{
    enum { TIMES = 100 };
    int64_t us[TIMES];

    if (filter.limit == 0)
        filter.limit = 50;
    for (int i = 0; i < TIMES; i++) {
        struct arena arena;
        int64_t begin_us = clock_monotonic_us();
        arena_init(&arena);
        store_job_list(bench.service->store, &filter, &arena, &page);
        us[i] = clock_monotonic_us() - begin_us;
        arena_release(&arena);
    }
    percentiles(what, us, TIMES);
}

static void bench_lists(size_t count)
{
    struct text admin = TEXT("admin"), none = TEXT("nobody"), vc = TEXT("default");
    struct text tag = TEXT("tag");
    int32_t prod = 100;

    bench_list("list, newest 50", (struct job_filter){.is_descending = true});
    bench_list("list, newest 5,000", (struct job_filter){.is_descending = true, .limit = 5000});
    bench_list("list, the middle 50", (struct job_filter){.offset = count / 2});
    bench_list("list, user", (struct job_filter){.users = &admin, .user_count = 1});
    bench_list("list, user without jobs", (struct job_filter){.users = &none, .user_count = 1});
    bench_list("list, virtual cluster",
               (struct job_filter){.virtual_clusters = &vc, .virtual_cluster_count = 1});
    bench_list("list, state", (struct job_filter){.states = 1 << PUBLIC_WAITING});
    bench_list("list, keyword in many", (struct job_filter){.keyword = TEXT("q9")});
    bench_list("list, keyword in none", (struct job_filter){.keyword = TEXT("zzz")});
    bench_list("list, tag", (struct job_filter){.tags = &tag, .tag_count = 1});
    bench_list("list, without tag", (struct job_filter){.tags_not = &tag, .tag_not_count = 1});
    bench_list("list, priority", (struct job_filter){.priorities = &prod, .priority_count = 1});
    bench_list("list, by name", (struct job_filter){.order = ORDER_NAME});
    bench_list(
        "list, by name, the middle",
        (struct job_filter){.order = ORDER_NAME, .is_descending = true, .offset = count / 2});
    bench_list("list, by user", (struct job_filter){.order = ORDER_USER});
    bench_list("list, by state", (struct job_filter){.order = ORDER_STATE});
    bench_list("list, by completion", (struct job_filter){.order = ORDER_COMPLETED});
    bench_list("list, by GPUs, keyword",
               (struct job_filter){.order = ORDER_GPUS, .keyword = TEXT("q")});
}

/* Of all threads: what others on this machine do changes it little. */
static int64_t processor_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* What would become of one more job, asked again and again while jobs are submitted. */
static void bench_trials(size_t queued)
{
    enum { TIMES = 5, BESIDE = 1000 };
    struct flood asked, submitted;
    struct core_trial trials[TIMES];
    cleanup_problems struct problems problems;
    struct arena arena;
    struct err err;
    char text[BENCH_JOB_MAX];
    const struct bench_job job = {
        .prefix = "trial", .number = 0, .instances = 1, .cpu = 1, .extras = ""};
    bench_job_text(&job, text);
    const struct service_submission submission = {.source = text_of(text), .user = "admin"};
    arena_init(&arena);
    problems_init(&problems, &arena);
    flood_init(&asked, TIMES, TIMES);
    flood_init(&submitted, BESIDE, 1);
    const int64_t begin_us = clock_monotonic_us(), cpu_us = processor_us();
    for (size_t i = 0; i < TIMES; i++)
        if (bench.service->trial(bench.service->context, &submission, &problems, &arena, &trials[i],
                                 flood_reply(&asked, i), &err) < 0)
            bench_fail("try a job", &err);
    for (size_t i = 0; i < BESIDE; i++)
        submit(&submitted, i, "beside", 2);
    flood_wait(&submitted);
    flood_percentiles("submitted one by one beside dry runs", &submitted, BESIDE);
    flood_wait(&asked);
    printf("%-44s %8.0f ms, %.0f ms of processor time, with what is submitted\n",
           "a dry run beside a long queue", (double)(clock_monotonic_us() - begin_us) / 1e3 / TIMES,
           (double)(processor_us() - cpu_us) / 1e3 / TIMES);
    printf("memory after dry runs with %zu queued jobs %16ld MiB\n", queued, memory_mib());
    flood_release(&submitted);
    flood_release(&asked);
    arena_release(&arena);
}

/* Nothing can run: one node of one processor, jobs of two. */
static void bench_queue(size_t count)
{
    struct flood flood;
    long before;
    int64_t begin_us;

    fresh("nodes: 10, cpu: 1, runMilliseconds: 1");
    flood_init(&flood, count, WINDOW);
    before = memory_mib();
    fill_queue(&flood, 0, 1000);
    printf("%-44s %8ld MiB, %ld before\n", "memory with 1,000 queued jobs", memory_mib(), before);
    begin_us = clock_monotonic_us();
    fill_queue(&flood, 1000, count);
    printf("%-44s %8.0f /s\n", "submitted into a long queue",
           (double)(count - 1000) / ((double)(clock_monotonic_us() - begin_us) / 1e6));
    flood_percentiles("  latency with 1,000 under way", &flood, count);
    printf("memory with %zu queued jobs %27ld MiB\n", count, memory_mib());
    flood_release(&flood);
    bench_lists(count);
    bench_trials(count);
    bench_server_stop(&bench);
    begin_us = clock_monotonic_us();
    start("nodes: 10, cpu: 1, runMilliseconds: 1");
    printf("restart with %zu live jobs %28.0f ms\n", count,
           (double)(clock_monotonic_us() - begin_us) / 1e3);
    bench_server_stop(&bench);
}

static void wait_running(struct store_reader *reader, size_t count)
{
    struct store_tasks tasks;
    struct arena arena;
    struct err err;
    size_t running;

    arena_init(&arena);
    do {
        usleep(10000);
        arena_clear(&arena);
        if (store_tasks(reader, (struct job_id){1}, -1, &arena, &tasks, &err) < 0)
            bench_fail("read", &err);
        running = 0;
        for (size_t i = 0; i < tasks.count; i++)
            running += tasks.items[i].state == LIFE_RUNNING;
    } while (running < count);
    arena_release(&arena);
}

static void bench_detail(void)
{
    enum { TASKS = 2000, TIMES = 50 };
    const struct bench_job big = {.prefix = "big", .instances = TASKS, .cpu = 1, .extras = ""};
    struct service *service;
    struct flood flood;
    struct arena arena;
    struct err err;
    struct store_reader *reader;
    struct store_job row;
    struct store_tasks tasks;
    int64_t us[TIMES];
    char text[BENCH_JOB_MAX];

    fresh("nodes: 40, cpu: 64, runMilliseconds: 60000"); /* a leaf a task */
    flood_init(&flood, 1, 1);
    arena_init(&arena);
    bench_job_text(&big, text);
    flood_submit(&flood, 0, bench.service, text);
    flood_wait(&flood);
    service = bench.service;
    reader = service->reader_get(service->context, &err);
    assert(reader);
    wait_running(reader, TASKS);
    for (int i = 0; i < TIMES; i++) {
        int64_t begin_us = clock_monotonic_us();
        arena_clear(&arena);
        if (store_job_read(reader, (struct job_id){1}, &arena, &row, &err) < 0 ||
            store_tasks(reader, (struct job_id){1}, -1, &arena, &tasks, &err) < 0)
            bench_fail("read", &err);
        us[i] = clock_monotonic_us() - begin_us;
        assert(tasks.count == TASKS);
    }
    percentiles("rows of a job with 2,000 tasks", us, TIMES);
    service->reader_put(service->context, reader);
    arena_release(&arena);
    flood_release(&flood);
    bench_server_stop(&bench);
}

/* What is told of a job is not known after a restart: its first change must find that out. Each
 * file has some kilobytes. */
static void bench_first_change(size_t count)
{
    enum { PARAMETERS = 40, FILE_MAX = 8192 };
    static const char targets[] = "engine: {kind: fake, fake: {nodes: 1, cpu: 1}}\n"
                                  "notifications: {webhooks: [{name: none, url: "
                                  "'http://127.0.0.1:9/', events: [retried]}]}\n";
    struct flood submitted, stopped;
    struct err err;
    bench_data_remove(&bench);
    bench_server_start(&bench, targets);
    flood_init(&submitted, count, WINDOW);
    for (size_t i = 0; i < count; i++) {
        char text[FILE_MAX];
        const struct bench_job job = {
            .prefix = "f", .number = i, .instances = 1, .cpu = 2, .extras = "parameters:\n"};
        bench_job_text(&job, text);
        size_t length = strlen(text);
        for (int k = 0; k < PARAMETERS; k++)
            length += (size_t)snprintf(text + length, FILE_MAX - length, "  p%d: '%0100d'\n", k, k);
        flood_submit(&submitted, i, bench.service, text);
    }
    flood_wait(&submitted);
    bench_server_stop(&bench);
    const int64_t begin_us = clock_monotonic_us(), cpu_us = processor_us();
    bench_server_start(&bench, targets);
    flood_init(&stopped, count, WINDOW);
    for (size_t i = 0; i < count; i++)
        if (bench.service->act(bench.service->context, SERVICE_STOP, "admin",
                               submitted.requests[i].job, flood_reply(&stopped, i), &err) < 0)
            bench_fail("stop", &err);
    flood_wait(&stopped);
    printf("%-44s %8.0f /s, %.0f us of processor time each\n",
           "restart, all jobs stopped, messages go out",
           (double)count / ((double)(clock_monotonic_us() - begin_us) / 1e6),
           (double)(processor_us() - cpu_us) / (double)count);
    flood_release(&stopped);
    flood_release(&submitted);
    bench_server_stop(&bench);
}

int main(int argc, char **argv)
{
    static const char usage[] =
        "usage: server-bench [DIRECTORY [JOBS]]     (., 100000)\n"
        "DIRECTORY is on the disk that is to be measured; at least 2000 jobs.\n";
    arguments_check(argc, argv, 0, 2, 0, usage);
    const char *parent = argc > 1 ? argv[1] : ".";
    size_t jobs = argc > 2 ? argument_number(argv[2], 2000, 10000000, usage) : 100000;

    bench_server_init(&bench, parent);
    bench_latency(jobs / 20);
    bench_throughput(jobs / 4);
    bench_detail();
    bench_queue(jobs);
    bench_first_change(jobs / 10);
    bench_data_remove(&bench);
    return 0;
}
