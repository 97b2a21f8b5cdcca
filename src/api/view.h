/* view.h — rows of the store as OpenPAI's JSON objects.
 *
 * Source: OpenPAI REST API, response objects (docs/openapi.yaml). Times are Unix ms or null.
 */
#ifndef API_VIEW_H
#define API_VIEW_H
#include "base/json_writer.h"
#include "exits/rules.h"
#include "model/reason.h"
#include "store/read.h"

enum { DEBUG_ID_SIZE = 33 };

/* Thirty-two hexadecimal digits for "user~name", as OpenPAI showed. */
void view_debug_id(const char *user, const char *name, char id[DEBUG_ID_SIZE]);

/* Unix ms; null for 0. */
void view_time(struct json_writer *json, const char *key, int64_t at_ms);
/* "2026-11-21T10:00:00.000Z"; null for 0. */
void view_instant(struct json_writer *json, const char *key, int64_t at_ms);

/* JobSummary; in v1's style without `debugId`, `tags` and `jobPriority`, and `name` without user
 * when `is_v1`. */
void view_job_summary(struct json_writer *json, const struct store_job *job, bool is_v1);

struct engine_gpu;

/* JobDetail: of the job and one of its attempts. */
struct view_detail {
    const struct store_job *job;
    const struct job_record *attempt; /* its own row */
    const struct store_tasks *tasks;  /* of that attempt */
    const char *const *role_names;    /* in the file's order */
    size_t role_count;
    const struct exit_rules *rules;
    const struct store_task_counts *counts; /* instead of the tasks; or NULL */
    bool has_states;                        /* of each task, beside its role's counts */
    bool is_v1;                             /* containerGpus is a mask, as in early PAI */
};
void view_job_detail(struct json_writer *json, const struct view_detail *detail);

/* Newest first. `attempt_ends`: what is kept of the end of each attempt, NULL where nothing is.
 * `may_read`: the caller may see what stood in the logs. */
struct view_attempts {
    struct store_tasks attempts;
    const struct store_attempt_end **attempt_ends;
    bool may_read;
};

/* TaskStatus; `attempts` only when not NULL. */
struct view_task {
    const struct job_record *job;
    const struct task_record *task;
    const struct exit_rules *rules;
    bool is_v1; /* as of struct view_detail */
};
void view_task(struct json_writer *json, const struct view_task *view,
               const struct view_attempts *attempts);
/* One of the attempts alone. */
void view_task_attempt(struct json_writer *json, const struct view_task *view,
                       const struct view_attempts *attempts, size_t i);

/* One attempt of a job, for lists of attempts. */
void view_job_attempt(struct json_writer *json, const struct store_job *job,
                      const struct job_record *attempt, bool is_latest,
                      const struct exit_rules *rules);

/* One event of the job `name` of `user`. */
void view_story(struct json_writer *json, const char *user, const char *name,
                const struct store_story *story);
/* `gpus`: of all nodes, by node; its own are picked out. `use`: its latest sample, of USE_FIELDS
 * values; NULL: none is told. now_ms: Unix time. */
void view_node(struct json_writer *json, const struct node_record *node, int64_t now_ms,
               const struct engine_gpu *gpus, size_t gpu_count, const uint64_t *use);
/* Of a field of use_series.h; null when it is USE_UNKNOWN. */
void view_use_value(struct json_writer *json, size_t field, uint64_t value);

/* ReasonPart[]: the reason of a job that waits, taken apart; null when that cannot be. `reason` may
 * be NULL. */
void view_reason_parts(struct json_writer *json, const char *key, const char *reason);

/* The exit code as the program gave it, before the rules; null when it never ran or runs. */
void view_own_code(struct json_writer *json, const char *key, enum life_state state,
                   const struct completion *completion);

/* The row of the exit table for the completion's code, with the code itself; null while there is
 * none (`is_known` false). */
void view_exit_spec(struct json_writer *json, const char *key, const struct completion *completion,
                    bool is_known, const struct exit_rules *rules);
/* What a row of the table says, but for its code: keys of an object that has been begun. */
void view_exit_fields(struct json_writer *json, const struct exit_spec *spec);

#endif
