/* barrier_bench.c — how long the tasks of a job wait for each other at a start barrier.
 *
 * Without HTTP, with the fake engine and a durable store: all tasks of a job say that they have
 * come, and each is answered when the last one has. Three figures a round: how long the first
 * report takes that only says so, for which the core thread looks at all tasks; from the first that
 * waits to the last answer, and from the last report to the last answer. Of more tasks than may
 * wait at the same time only the first figure is measured.
 */
#include "api/service.h"
#include "arguments.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "bench_server.h"
#include "server/barrier.h"
#include "store/read.h"
#include "sys/key_file.h"
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

static struct bench_server bench;
static uint8_t key[SECRET_KEY_SIZE];

static void start(size_t tasks)
{
    struct err err;
    char config[200], path[sizeof bench.directory + 8];

    snprintf(config, sizeof config,
             "scheduling: {policy: first-fit, killGraceSeconds: 0}\n"
             "engine: {kind: fake, fake: {nodes: %zu, cpu: 64, runMilliseconds: 3600000}}\n",
             tasks / 64 + 1);
    bench_server_start(&bench, config);
    snprintf(path, sizeof path, "%s/key", bench.directory);
    struct key_file keys;
    if (key_file_load(path, &keys, &err) < 0)
        bench_fail("the server's key", &err);
    memcpy(key, keys.master, sizeof key);
}

/* --- a job whose tasks all run --- */

static struct job_id submit(size_t round, size_t tasks)
{
    const struct bench_job job = {.prefix = "b",
                                  .number = round,
                                  .instances = (unsigned)tasks,
                                  .cpu = 1,
                                  .extras = "extras: {startBarrier: true}\n"};
    struct flood one;
    struct job_id id;
    char text[BENCH_JOB_MAX];

    bench_job_text(&job, text);
    flood_init(&one, 1, 1);
    flood_submit(&one, 0, bench.service, text);
    flood_wait(&one);
    id = one.requests[0].job;
    flood_release(&one);
    return id;
}

static void notified(void *context)
{
    sem_post(context);
}

/* The rows of the tasks once all run: read again with each commit. */
static struct store_tasks tasks_await(struct job_id job, size_t count, struct arena *arena)
{
    sem_t moved;
    struct service_watch watch = {.notify = notified, .context = &moved};
    struct store_tasks tasks;
    struct err err;
    struct service *service = bench.service;
    struct store_reader *reader = service->reader_get(service->context, &err);
    size_t running = 0;

    sem_init(&moved, 0, 1);
    service->watch(service->context, &watch);
    while (running < count) {
        sem_wait(&moved);
        arena_clear(arena);
        if (!reader || store_tasks(reader, job, -1, arena, &tasks, &err) < 0)
            bench_fail("read", &err);
        running = 0;
        for (size_t i = 0; i < tasks.count; i++)
            running += tasks.items[i].state == LIFE_RUNNING;
    }
    service->unwatch(service->context, &watch);
    service->reader_put(service->context, reader);
    sem_destroy(&moved);
    return tasks;
}

static void job_end(struct job_id job)
{
    struct flood one;
    struct err err;

    flood_init(&one, 1, 1);
    if (bench.service->act(bench.service->context, SERVICE_STOP, "admin", job, flood_reply(&one, 0),
                           &err) < 0)
        bench_fail("stop", &err);
    flood_wait(&one);
    flood_release(&one);
}

/* --- the figures --- */

static int64_t answered_us(const struct flood_request *request)
{
    return request->begin_us + request->took_us;
}

static void report(struct attempt_id attempt, bool is_waiting, struct flood *flood, size_t number)
{
    char token[BARRIER_TOKEN_SIZE];
    struct err err;
    struct service_barrier report = {
        .attempt = attempt, .kind = BARRIER_START, .is_up = true, .is_waiting = is_waiting};
    barrier_token(key, report.attempt, token);
    report.token = text_of(token);
    if (bench.service->barrier(bench.service->context, &report, flood_reply(flood, number), &err) <
        0)
        bench_fail("report", &err);
}

static int64_t first_us(struct attempt_id attempt)
{
    struct flood one;
    flood_init(&one, 1, 1);
    report(attempt, false, &one, 0);
    flood_wait(&one);
    const int64_t us = one.requests[0].took_us;
    if (atomic_load(&one.refused) > 0)
        bench_fail("the first report", &(struct err){.text = "it was refused"});
    flood_release(&one);
    return us;
}

static void bench_round(size_t round, size_t count, int64_t *alone_us, int64_t *all_us,
                        int64_t *last_us)
{
    struct job_id job = submit(round, count);
    struct flood crowd; /* none is answered before all have come */
    struct store_tasks tasks;
    cleanup_arena struct arena arena;
    int64_t end_us = 0;

    arena_init(&arena);
    flood_init(&crowd, count, count);
    tasks = tasks_await(job, count, &arena);
    *alone_us = first_us(tasks.items[0].attempt);
    if (count > BARRIER_HELD_MAX) {
        flood_release(&crowd);
        job_end(job);
        return;
    }
    for (size_t i = 0; i < count; i++)
        report(tasks.items[i].attempt, true, &crowd, i);
    flood_wait(&crowd);
    for (size_t i = 0; i < count; i++)
        end_us =
            answered_us(&crowd.requests[i]) > end_us ? answered_us(&crowd.requests[i]) : end_us;
    *all_us = end_us - crowd.requests[0].begin_us;
    *last_us = end_us - crowd.requests[count - 1].begin_us;
    if (atomic_load(&crowd.refused) > 0)
        bench_fail("the barrier", &(struct err){.text = "some were refused"});
    flood_release(&crowd);
    job_end(job);
}

static void figure(const char *what, int64_t *us, size_t count)
{
    times_sort(us, count);
    printf("%-44s p50 %8.3f ms  max %8.3f ms\n", what, (double)us[count / 2] / 1e3,
           (double)us[count - 1] / 1e3);
}

int main(int argc, char **argv)
{
    static const char usage[] =
        "usage: barrier-bench [DIRECTORY [TASKS [ROUNDS]]]     (., 1000, 10)\n"
        "DIRECTORY is on the disk that is to be measured; a round is a job of TASKS tasks.\n";
    arguments_check(argc, argv, 0, 3, 0, usage);
    const char *parent = argc > 1 ? argv[1] : ".";
    size_t tasks = argc > 2 ? argument_number(argv[2], 1, 10000, usage) : 1000;
    size_t rounds = argc > 3 ? argument_number(argv[3], 1, 1000, usage) : 10;
    int64_t *alone_us = mem_zero(rounds, sizeof *alone_us),
            *all_us = mem_zero(rounds, sizeof *all_us),
            *last_us = mem_zero(rounds, sizeof *last_us);

    bench_server_init(&bench, parent);
    start(tasks);
    for (size_t i = 0; i < rounds; i++)
        bench_round(i, tasks, &alone_us[i], &all_us[i], &last_us[i]);
    bench_server_stop(&bench);
    printf("barrier of %zu tasks, %zu rounds\n", tasks, rounds);
    figure("the first report, alone", alone_us, rounds);
    if (tasks <= BARRIER_HELD_MAX) {
        figure("first report that waits to last answer", all_us, rounds);
        figure("last report to last answer", last_us, rounds);
    }
    mem_free(alone_us);
    mem_free(all_us);
    mem_free(last_us);
    bench_data_remove(&bench);
    return 0;
}
