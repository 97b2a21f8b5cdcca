/* bench_server.h — a server that a benchmark measures, and the time that each request to it takes.
 *
 * The server has a fake engine and a durable store in a folder of its own, and no HTTP. What fails
 * ends the program with a message.
 */
#ifndef BENCH_SERVER_H
#define BENCH_SERVER_H
#include "api/service.h"
#include "model/ids.h"
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct err;

_Noreturn void bench_fail(const char *what, const struct err *err);

struct bench_server {
    char directory[4096];  /* of its data */
    struct server *server; /* NULL: not started */
    struct service *service;
};
/* Before anything else: its data will lie in `parent`, in a folder named after the program and its
 * process. Ends the program with 2 where nothing can be written. */
void bench_server_init(struct bench_server *bench, const char *parent);
/* `config`: lines of YAML, what the configuration says beside the folder; an engine at least. */
void bench_server_start(struct bench_server *bench, const char *config);
void bench_server_stop(struct bench_server *bench);
void bench_data_remove(const struct bench_server *bench);

/* Requests under way: at most `window` at a time, numbered from 0. */
struct flood_request {
    struct flood *flood; /* whose it is */
    int64_t begin_us, took_us;
    struct job_id job; /* as answered */
};
struct flood {
    struct flood_request *requests;
    size_t count, window;
    _Atomic size_t refused;
    sem_t room;
};
void flood_init(struct flood *flood, size_t count, size_t window);
void flood_release(struct flood *flood);
/* Waits for room; the request counts from here on, and the server is to be given this reply. */
struct service_reply flood_reply(struct flood *flood, size_t number);
/* Until all that were begun are answered; says how many were refused. */
void flood_wait(struct flood *flood);
/* What each of the first `count` took; the caller's, of mem_free. */
int64_t *flood_times(const struct flood *flood, size_t count);

/* Submit a job file as the admin. */
void flood_submit(struct flood *flood, size_t number, struct service *service, const char *text);
/* The file of a job `prefix``number` with one role of `instances` tasks; `extras` is "" or lines of
 * the file. */
enum { BENCH_JOB_MAX = 600 };
struct bench_job {
    const char *prefix, *extras;
    size_t number;
    unsigned instances, cpu;
};
void bench_job_text(const struct bench_job *job, char text[BENCH_JOB_MAX]);

/* In ascending order, for percentiles. */
void times_sort(int64_t *us, size_t count);

#endif
