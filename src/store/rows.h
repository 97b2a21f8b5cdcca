/* rows.h — the core's records to and from columns.
 *
 * Private to store. The order of the columns stands here once; statements are made from it.
 */
#ifndef STORE_ROWS_H
#define STORE_ROWS_H
#include "core/output.h"
#include "store/read.h"
#include "store/sql.h"

#define COMPLETION_COLUMNS "code, exit_code, is_success, attributes, phrase, diagnostics"

/* fixed at submission */
#define JOB_FIXED_COLUMNS "id, name, user, virtual_cluster, submitted_ms, has_priority"
/* that change */
#define JOB_STATE_COLUMNS                                                                          \
    "priority, state, is_stop_requested, attempt, retries_user, retries_platform, "                \
    "retries_resource, retry_at_ms, attempt_created_ms, attempt_launched_ms, "                     \
    "attempt_completed_ms, launched_ms, completed_ms, " COMPLETION_COLUMNS ", trigger_role, "      \
    "trigger_index, trigger_text, reason, task_count, role_count, gpu_count, extra, "              \
    "reason_topic"
#define JOB_COLUMNS JOB_FIXED_COLUMNS ", " JOB_STATE_COLUMNS

#define JOB_ATTEMPT_COLUMNS                                                                        \
    "job, attempt, state, retries_user, retries_platform, retries_resource, attempt_created_ms, "  \
    "attempt_launched_ms, attempt_completed_ms, " COMPLETION_COLUMNS ", trigger_role, "            \
    "trigger_index, trigger_text"

#define TASK_COLUMNS                                                                               \
    "job, role, task_index, role_name, state, is_deletion_pending, is_held, attempt, "             \
    "job_attempt, task_attempt, retries, accountable_retries, node, address, gpus, ports, "        \
    "created_ms, "                                                                                 \
    "launched_ms, completed_ms, attempt_created_ms, attempt_launched_ms, "                         \
    "attempt_completed_ms, " COMPLETION_COLUMNS ", cell_level, killed, kill_by_ms"

#define STORY_COLUMNS "job, role, task_index, attempt, is_warning, at_ms, reason, message"

#define NODE_COLUMNS                                                                               \
    "id, name, address, gpu_type, cpu, gpu_count, memory_mib, is_healthy, is_cordoned, is_lost, "  \
    "blame, blame_ms, reason, is_reason_blame, gpu_numa, gpu_switch"

#define END_COLUMNS                                                                                \
    "attempt, tail, rule_code, rule_phrase, rule_number, rule_pattern, rule_line, rule_file, "     \
    "matched_log, matched_text"

#define USER_COLUMNS                                                                               \
    "name, password_hash, email, is_admin, groups_json, virtual_clusters_json, extension_json, "   \
    "created_ms"

#define TOKEN_COLUMNS "id, user, is_application, created_ms, expires_ms"

struct buf;

/* Bind, and read, the columns of the lists above, in their order. What is read lives in the arena.
 */
void row_put_job_fixed(struct sql *sql, const struct job_record *job, bool has_priority);
void row_put_job_state(struct sql *sql, const struct job_record *job);
void row_put_job_attempt(struct sql *sql, const struct job_record *job);
/* `scratch` holds bytes that must live until the statement has run. */
void row_put_task(struct sql *sql, const struct task_record *task, struct buf *scratch);
void row_put_story(struct sql *sql, const struct story_record *story);
void row_put_node(struct sql *sql, const struct node_record *node, struct buf *scratch);
void row_put_end(struct sql *sql, const struct store_end *end);
void row_put_user(struct sql *sql, const struct store_user *user);
void row_put_token(struct sql *sql, const struct store_token *token);

void row_get_job(struct sql *sql, struct job_record *job, bool *has_priority, struct arena *arena);
/* Overwrites what belongs to the attempt. */
void row_get_job_attempt(struct sql *sql, struct job_record *job, struct arena *arena);
/* ERR_CORRUPT: the bytes of GPUs or ports make no sense. */
int row_get_task(struct sql *sql, struct task_record *task, struct arena *arena, struct err *err);
void row_get_story(struct sql *sql, struct story_record *story, struct arena *arena);
int row_get_node(struct sql *sql, struct node_record *node, struct arena *arena, struct err *err);
void row_get_end(struct sql *sql, struct store_end *end, struct arena *arena);
void row_get_user(struct sql *sql, struct store_user *user, struct arena *arena);
void row_get_token(struct sql *sql, struct store_token *token, struct arena *arena);

#endif
