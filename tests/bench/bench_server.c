#include "bench_server.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "doc/problem.h"
#include "server/server.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/secret.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void bench_fail(const char *what, const struct err *err)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, err->text);
    exit(1);
}

void bench_server_init(struct bench_server *bench, const char *parent)
{
    *bench = (struct bench_server){0};
    if (access(parent, W_OK) != 0) {
        perror(parent);
        exit(2);
    }
    log_setup(LOG_ERROR, LOG_TEXT);
    if (secret_init(NULL) < 0)
        exit(1);
    snprintf(bench->directory, sizeof bench->directory, "%s/%s.%ld", parent,
             program_invocation_short_name, (long)getpid());
}

/* The first administrator's password is of no interest here. */
static int told(void *context, const char *user, const char *password, struct err *err)
{
    (void)context;
    (void)user;
    (void)password;
    (void)err;
    return 0;
}

void bench_server_start(struct bench_server *bench, const char *config)
{
    struct server_config *read = NULL;
    cleanup_buf struct buf text = BUF_INIT, report = BUF_INIT;
    struct err err = {0};
    char path[sizeof bench->directory + 8];

    snprintf(path, sizeof path, "%s.yaml", bench->directory);
    buf_format(&text, "dataDirectory: %s\napi: {requestsMax: 100000}\n%s", bench->directory,
               config);
    if (file_write(path, buf_as_text(&text), 0600, &err) < 0 ||
        server_config_read(path, &read, &report, &err) < 0)
        bench_fail(buf_cstr(&report), &err);
    unlink(path);
    if (server_new(read, &(struct server_teller){NULL, told}, &bench->server, &err) < 0)
        bench_fail("start", &err);
    server_start(bench->server);
    bench->service = server_service(bench->server);
}

void bench_server_stop(struct bench_server *bench)
{
    server_stop(bench->server);
    server_free(bench->server);
    bench->server = NULL;
    bench->service = NULL;
}

void bench_data_remove(const struct bench_server *bench)
{
    char command[sizeof bench->directory + 16];

    snprintf(command, sizeof command, "rm -rf '%s'", bench->directory);
    if (system(command) != 0)
        exit(1);
}

/* --- requests --- */

void flood_init(struct flood *flood, size_t count, size_t window)
{
    *flood = (struct flood){
        .requests = mem_zero(count, sizeof *flood->requests), .count = count, .window = window};
    for (size_t i = 0; i < count; i++)
        flood->requests[i].flood = flood;
    sem_init(&flood->room, 0, (unsigned)window);
}

void flood_release(struct flood *flood)
{
    mem_free(flood->requests);
    sem_destroy(&flood->room);
}

static void answered(void *context, const struct service_answer *answer)
{
    struct flood_request *request = context;
    struct flood *flood = request->flood;

    request->took_us = clock_monotonic_us() - request->begin_us;
    request->job = answer->job;
    if (answer->code < 0)
        atomic_fetch_add(&flood->refused, 1);
    sem_post(&flood->room);
}

struct service_reply flood_reply(struct flood *flood, size_t number)
{
    assert(number < flood->count);
    sem_wait(&flood->room);
    flood->requests[number].begin_us = clock_monotonic_us();
    return (struct service_reply){.done = answered, .context = &flood->requests[number]};
}

void flood_wait(struct flood *flood)
{
    for (size_t i = 0; i < flood->window; i++)
        sem_wait(&flood->room);
    for (size_t i = 0; i < flood->window; i++)
        sem_post(&flood->room);
    if (atomic_load(&flood->refused) > 0)
        fprintf(stderr, "%s: %zu were refused\n", program_invocation_short_name,
                atomic_load(&flood->refused));
}

int64_t *flood_times(const struct flood *flood, size_t count)
{
    int64_t *us = mem_zero(count, sizeof *us);

    assert(count <= flood->count);
    for (size_t i = 0; i < count; i++)
        us[i] = flood->requests[i].took_us;
    return us;
}

void flood_submit(struct flood *flood, size_t number, struct service *service, const char *text)
{
    cleanup_arena struct arena arena;
    struct problems problems;
    struct err err;

    arena_init(&arena);
    problems_init(&problems, &arena);
    const struct service_submission submission = {.user = "admin", .source = text_of(text)};
    if (service->submit(service->context, &submission, &problems, flood_reply(flood, number),
                        &err) < 0)
        bench_fail("submit", &err);
    problems_release(&problems);
}

void bench_job_text(const struct bench_job *job, char text[BENCH_JOB_MAX])
{
    int length = snprintf(text, BENCH_JOB_MAX,
                          "protocolVersion: 2\nname: %s%zu\ntype: job\n"
                          "prerequisites:\n"
                          "- {protocolVersion: 2, name: i, type: dockerimage, uri: x}\n"
                          "taskRoles:\n  worker:\n    instances: %u\n    dockerImage: i\n"
                          "    resourcePerInstance: {cpu: %u, memoryMB: 1, gpu: 0}\n"
                          "    commands: [echo hello]\n%s",
                          job->prefix, job->number, job->instances, job->cpu, job->extras);
    assert(length > 0 && length < BENCH_JOB_MAX);
    (void)length;
}

/* --- figures --- */

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

void times_sort(int64_t *us, size_t count)
{
    qsort(us, count, sizeof *us, compare);
}
