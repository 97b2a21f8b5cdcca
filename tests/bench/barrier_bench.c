/* barrier_bench.c — how long the tasks of a job wait for each other at a start barrier.
 *
 * Without HTTP, with the fake engine and a durable store: all tasks of a job say that they have
 * come, and each is answered when the last one has. Two figures a round: from the first report to
 * the last answer, and from the last report to the last answer.
 */
#include "api/service.h"
#include "arguments.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "doc/problem.h"
#include "server/barrier.h"
#include "server/clock.h"
#include "server/server.h"
#include "store/read.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/secret.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[4096];
static struct server *server;
static struct service *service;
static uint8_t key[SECRET_KEY_SIZE];

static void fail(const char *what, const struct err *err)
{
    fprintf(stderr, "barrier-bench: %s: %s\n", what, err->text);
    exit(1);
}

static int told(void *context, const char *user, const char *password, struct err *err)
{
    (void)context;
    (void)user;
    (void)password;
    (void)err;
    return 0;
}

static void start(size_t tasks)
{
    struct server_config *config = NULL;
    cleanup_buf struct buf text = BUF_INIT, report = BUF_INIT;
    struct err err;
    char path[4200];

    snprintf(path, sizeof path, "%s.yaml", directory);
    buf_format(&text,
               "dataDirectory: %s\napi: {requestsMax: 100000}\n"
               "scheduling: {policy: first-fit, killGraceSeconds: 0}\n"
               "engine: {kind: fake, fake: {nodes: %zu, cpu: 64, runMilliseconds: 3600000}}\n",
               directory, tasks / 64 + 1);
    if (file_write(path, buf_as_text(&text), 0600, &err) < 0 ||
        server_config_read(path, &config, &report, &err) < 0)
        fail(buf_cstr(&report), &err);
    unlink(path);
    if (server_new(config, &(struct server_teller){NULL, told}, &server, &err) < 0)
        fail("start", &err);
    server_start(server);
    service = server_service(server);
    snprintf(path, sizeof path, "%s/key", directory);
    if (secret_key_load(path, key, &err) < 0)
        fail("the server's key", &err);
}

/* --- one answer, and many --- */

struct one {
    sem_t done;
    struct job_id job;
    int code;
};

static void one_answered(void *context, const struct service_answer *answer)
{
    struct one *one = context;

    one->job = answer->job;
    one->code = answer->code;
    sem_post(&one->done);
}

struct crowd {
    _Atomic size_t waiting, refused;
    int64_t last_us;
    sem_t done;
};

static void crowd_answered(void *context, const struct service_answer *answer)
{
    struct crowd *crowd = context;

    if (answer->code < 0)
        atomic_fetch_add(&crowd->refused, 1);
    if (atomic_fetch_sub(&crowd->waiting, 1) == 1) {
        crowd->last_us = clock_us();
        sem_post(&crowd->done);
    }
}

/* --- a job whose tasks all run --- */

static struct job_id submit(size_t round, size_t tasks)
{
    struct arena arena;
    struct problems problems;
    struct err err;
    struct one one;
    char text[600];

    arena_init(&arena);
    problems_init(&problems, &arena);
    sem_init(&one.done, 0, 0);
    snprintf(text, sizeof text,
             "protocolVersion: 2\nname: b%zu\ntype: job\n"
             "prerequisites:\n- {name: i, type: dockerimage, uri: x}\n"
             "taskRoles:\n  w:\n    instances: %zu\n    dockerImage: i\n"
             "    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}\n    commands: [run]\n"
             "extras: {startBarrier: true}\n",
             round, tasks);
    if (service->submit(service->context, "admin", text_of(text), &problems,
                        (struct service_reply){one_answered, &one}, &err) < 0)
        fail("submit", &err);
    sem_wait(&one.done);
    if (one.code < 0)
        fail("submit", &(struct err){.text = "refused"});
    problems_release(&problems);
    arena_release(&arena);
    sem_destroy(&one.done);
    return one.job;
}

static void notified(void *context)
{
    sem_post(context);
}

/* The rows of the tasks once all run: read again with each commit. */
static struct store_tasks tasks_await(struct job_id job, size_t count, struct arena *arena)
{
    sem_t moved;
    struct service_watch watch = {notified, &moved, NULL};
    struct store_tasks tasks;
    struct err err;
    struct store_reader *reader = service->reader_get(service->context, &err);
    size_t running = 0;

    sem_init(&moved, 0, 1);
    service->watch(service->context, &watch);
    while (running < count) {
        sem_wait(&moved);
        arena_clear(arena);
        if (!reader || store_tasks(reader, job, -1, arena, &tasks, &err) < 0)
            fail("read", &err);
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
    struct one one;
    struct err err;

    sem_init(&one.done, 0, 0);
    if (service->act(service->context, SERVICE_STOP, "admin", job,
                     (struct service_reply){one_answered, &one}, &err) < 0)
        fail("stop", &err);
    sem_wait(&one.done);
    sem_destroy(&one.done);
}

/* --- the figures --- */

static void bench_round(size_t round, size_t count, int64_t *all_us, int64_t *last_us)
{
    struct job_id job = submit(round, count);
    struct crowd crowd = {.waiting = count};
    struct store_tasks tasks;
    struct arena arena;
    struct err err;
    int64_t begin_us, reported_us = 0;

    arena_init(&arena);
    sem_init(&crowd.done, 0, 0);
    tasks = tasks_await(job, count, &arena);
    begin_us = clock_us();
    for (size_t i = 0; i < count; i++) {
        char token[BARRIER_TOKEN_SIZE];
        struct service_barrier report = {.attempt = tasks.items[i].attempt,
                                         .kind = BARRIER_START,
                                         .is_up = true,
                                         .is_waiting = true};
        barrier_token(key, report.attempt, token);
        report.token = text_of(token);
        reported_us = clock_us();
        if (service->barrier(service->context, &report,
                             (struct service_reply){crowd_answered, &crowd}, &err) < 0)
            fail("report", &err);
    }
    sem_wait(&crowd.done);
    *all_us = crowd.last_us - begin_us;
    *last_us = crowd.last_us - reported_us;
    if (atomic_load(&crowd.refused) > 0)
        fail("the barrier", &(struct err){.text = "some were refused"});
    arena_release(&arena);
    sem_destroy(&crowd.done);
    job_end(job);
}

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

static void figure(const char *what, int64_t *us, size_t count)
{
    qsort(us, count, sizeof *us, compare);
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
    size_t tasks = argc > 2 ? argument_number(argv[2], 1, 2000, usage) : 1000;
    size_t rounds = argc > 3 ? argument_number(argv[3], 1, 1000, usage) : 10;
    int64_t *all_us = mem_zero(rounds, sizeof *all_us),
            *last_us = mem_zero(rounds, sizeof *last_us);
    char command[4200];

    if (access(parent, W_OK) != 0) {
        perror(parent);
        return 2;
    }
    log_setup(LOG_ERROR, LOG_TEXT);
    if (secret_init(NULL) < 0)
        return 1;
    snprintf(directory, sizeof directory, "%s/barrier-bench.%ld", parent, (long)getpid());
    start(tasks);
    for (size_t i = 0; i < rounds; i++)
        bench_round(i, tasks, &all_us[i], &last_us[i]);
    server_stop(server);
    server_free(server);
    printf("barrier of %zu tasks, %zu rounds\n", tasks, rounds);
    figure("first report to last answer", all_us, rounds);
    figure("last report to last answer", last_us, rounds);
    mem_free(all_us);
    mem_free(last_us);
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command) != 0;
}
