/* vector_job.h — what the parts of vector-job share. */
#ifndef VECTOR_JOB_H
#define VECTOR_JOB_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "job/job.h"

extern struct arena vector_arena; /* cleared after each file */

/* One line of output. `wanted` and `got` are compared as JSON; both are released. Integers and
 * objects compare by value, and only keys of `wanted` are looked at in objects when `is_partial`.
 */
void report(const char *id, json_t *wanted, json_t *got);
void report_partial(const char *id, json_t *wanted, json_t *got);
void report_bool(const char *id, bool wanted, bool got);
void report_skip(const char *id, const char *why);
void report_fail(const char *id, const char *wanted, const char *got);
/* "FILE/LIST/INDEX" or the object's own "id" */
const char *id_of(const json_t *vector, const char *list, size_t index);

/* Does the object have what the driver reads? Otherwise it is a kind of case that this driver does
 * not know: a skip is printed. `shape`: "key:type …"; types s string, i integer, n number,
 * b boolean, o object, a list, x anything; with ? it may be missing or null.
 */
bool case_fits(const char *id, const json_t *object, const char *shape);
/* The same for each item of a list. */
bool cases_fit(const char *id, const json_t *list, const char *shape);
/* What is wanted of a case: the expectation, or what job-deviations.json has for this input. */
json_t *wanted_of(const char *id, const json_t *vector, json_t *expectation);

/* The state that is called so, or -1. */
int state_named(const char *name);

const char *string_at(const json_t *object, const char *key); /* "" when absent */
int64_t int_at(const json_t *object, const char *key, int64_t otherwise);
struct text text_at(const json_t *object, const char *key);

/* ---- completions as the vectors write them ---- */
uint8_t attributes_read(const json_t *names);
json_t *attributes_json(uint8_t attributes);
struct completion completion_read(const json_t *object);

/* ---- one job under test ---- */
enum { BENCH_ROLES = 64 };
struct job_bench {
    struct job_role_policy roles[BENCH_ROLES];
    struct job_policy policy;
    struct job job;
    struct job_output out;
    uint64_t attempt_last;
    int64_t now_ms;
};
void bench_init(struct job_bench *bench); /* policy: no retry, not a gang, no roles */
void bench_role(struct job_bench *bench, const char *name, uint32_t instances, int32_t min_failed,
                int32_t min_succeeded);
/* A list of {name, taskNumber, min…TaskCount}; false: unusable, a skip is printed. */
bool bench_roles(struct job_bench *bench, const char *id, const json_t *roles);
void bench_begin(struct job_bench *bench);
void bench_release(struct job_bench *bench);
void bench_step(struct job_bench *bench, struct job_event event);
void bench_simple(struct job_bench *bench, enum job_event_kind kind);
void bench_run_waiting(struct job_bench *bench); /* place all that waits, then run it */
void bench_exit(struct job_bench *bench, struct task_ref task, struct completion completion);
void bench_end_kills(struct job_bench *bench); /* all tasks being ended, end */
int bench_role_of(const struct job_bench *bench, const char *name);

/* ---- files ---- */
typedef void vector_function(const json_t *file);
vector_function retry_decision, attempt_sequence, completion_policy, state_machine, rescale;
vector_function pod_classification, pod_creation_error, controller_config, framework_object, naming,
    barrier;
vector_function environment, job_config;
vector_function kill_all, launcher_exit, launcher_retry, gpu_placement, ports, job_state, vc_quota;

/* The file of rules for v0-job-config.json; --deviations names another. */
extern const char *spec_deviations;
void environment_barrier(const json_t *injected);
void environment_naming(const json_t *file);

#endif
