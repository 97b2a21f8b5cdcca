/* noun.h — what the nouns of the store share, and what each of them offers to the others.
 *
 * Private to store. A noun (jobs, tasks, users, …) is one file: its statements, its rows, what
 * changes it, what reads it. Functions that get the store belong to the committing thread and run
 * within its transaction, unless said otherwise.
 */
#ifndef STORE_NOUN_H
#define STORE_NOUN_H
#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "store/gpu_use.h"
#include "store/job_index.h"
#include "store/read.h"
#include "store/sql.h"
#include "store/store.h"
#include <pthread.h>
#include <stdatomic.h>

struct store {
    struct database *database;
    struct session session; /* the writer's */
    struct job_index *job_index;
    struct news *news;
    struct gpu_use gpu_use;
    struct task_counts_cache *task_counts;
    struct buf scratch;
    uint32_t last_job;
    uint64_t last_attempt;
    uint64_t deletions_written;         /* jobs in `deleted_jobs`, as the transaction has it … */
    _Atomic uint64_t deletions;         /* … and as it was committed last */
    _Atomic uint64_t deletions_refused; /* pieces.refused.count */
    struct pieces {
        struct {
            struct job_id *items; /* of which a piece was refused; longest ago first */
            size_t count, room;
        } refused;
        struct id_map refused_at; /* their numbers */
        bool is_alone;            /* the next piece is of one job: a refusal is its */
        /* of the transaction */
        size_t job_count; /* jobs of its piece; 0: it has none */
        struct job_id first;
        bool is_beside;  /* it is at what jobs leave that it deletes itself */
        bool is_put_off; /* it is to leave all of that */
    } pieces;

    struct {
        struct store_epoch *items; /* in order, at least one once the store is open */
        size_t count, room;
        pthread_mutex_t lock; /* the core thread adds to them, and others look */
    } epochs;
    uint64_t stored_commits, stored_events; /* in all, as the counters say */
    bool is_in_doubt; /* the answer to the last commit was lost: it may be stored */
    _Atomic uint64_t account_version, token_version;
    _Atomic uint64_t commits, commit_failures, records, events, commit_us;
};

struct store_reader {
    struct store *store;
    struct session session;
};

/* Several statements that must see one state of the database. */
int reader_begin(struct store_reader *reader, struct err *err);
void reader_end(struct store_reader *reader);

/* Remove some of the oldest rows: by `delete_old`, whose one mark is change->before_ms, and, unless
 * change->most is 0, by `delete_many`, whose mark is how many stay. */
int rows_trim(struct store *store, const char *delete_old, const char *delete_many,
              const struct store_change *change, struct err *err);

/* --- lists of columns --- */

/* A table's columns stand once, as COLUMNS(C) with C one of these, so that names, marks and values
 * cannot differ in number or order. */
#define COLUMN_NAME(column)     #column
#define COLUMN_MARK(column)     "?"
#define COLUMN_EXCLUDED(column) "excluded." #column

#define INSERT_INTO(table, COLUMNS)                                                                \
    "INSERT INTO " table " (" COLUMNS(COLUMN_NAME) ") VALUES (" COLUMNS(COLUMN_MARK) ")"
/* The row of this key is replaced. */
#define REPLACE_INTO(table, COLUMNS, key)                                                          \
    INSERT_INTO(table, COLUMNS)                                                                    \
    " ON CONFLICT (" key                                                                           \
    ") DO UPDATE SET (" COLUMNS(COLUMN_NAME) ") = (" COLUMNS(COLUMN_EXCLUDED) ")"
/* One column of an UPDATE: it gets `value` when its bit is in the parameter `fields`. */
#define COLUMN_IF(fields, column, bit, value)                                                      \
    " " #column " = CASE WHEN (" fields " & " #bit ") <> 0 THEN " value " ELSE " #column " END"
/* A row of this key stays. */
#define INSERT_NEW_INTO(table, COLUMNS) INSERT_INTO(table, COLUMNS) " ON CONFLICT DO NOTHING"

/* How a job, an attempt or a task ended. */
#define COMPLETION_COLUMNS(C)                                                                      \
    C(code) "," C(exit_code) "," C(is_success) "," C(attributes) "," C(phrase) "," C(diagnostics)
void completion_put(struct sql *sql, const struct completion *completion);
void completion_get(struct sql *sql, struct completion *completion);

/* 16-bit numbers as bytes, little-endian; appended to `scratch`, which must live until the
 * statement has run. */
struct text numbers_put(struct buf *scratch, const uint16_t *numbers, size_t count);
const uint16_t *numbers_get(struct text bytes, size_t count, struct arena *arena);

/* --- changes --- */

/* What the user did wrong goes into the change; a result < 0 stops the transaction. */
#define REFUSE(change, code_, ...)                                                                 \
    ((change)->code = err_fail((change)->err, (code_), "", __VA_ARGS__), 0)

int tag_add(struct store *store, struct store_change *change, struct err *err);
int tag_remove(struct store *store, struct store_change *change, struct err *err);
int user_add(struct store *store, struct store_change *change, struct err *err);
int user_set(struct store *store, struct store_change *change, struct err *err);
int user_remove(struct store *store, struct store_change *change, struct err *err);
int user_exists(struct store *store, const char *name, bool *exists, struct err *err);
int member_add(struct store *store, struct store_change *change, struct err *err);
int member_remove(struct store *store, struct store_change *change, struct err *err);
/* Carry out `write`, but refuse the change when no admin would be left after it. */
int admins_guard(struct store *store, struct store_change *change,
                 int (*write)(struct store *store, struct store_change *change, struct err *err),
                 struct err *err);
int user_group_add(struct store *store, struct store_change *change, struct err *err);
int user_group_set(struct store *store, struct store_change *change, struct err *err);
int user_group_remove(struct store *store, struct store_change *change, struct err *err);
/* Memberships and grants of a user who is added or set: refused before anything is written. */
int user_rights_check(struct store *store, struct store_change *change, struct err *err);
int user_rights_put(struct store *store, const struct store_user *user, unsigned fields,
                    struct err *err);
int user_rights_remove(struct store *store, const char *user, struct err *err);
/* Of a user, or of all, in order, whose names have been read. */
int user_rights_read(struct store_reader *reader, struct arena *arena, struct store_user *user,
                     struct err *err);
int users_rights_read(struct store_reader *reader, struct arena *arena, struct store_users *users,
                      struct err *err);
int user_group_exists(struct store *store, const char *name, bool *exists, struct err *err);
int quotas_set(struct store *store, struct store_change *change, struct err *err);
int quotas_remove(struct store *store, bool is_group, const char *holder, struct err *err);
int quotas_read(struct session *session, bool is_group, struct text holder, struct quotas *quotas,
                struct err *err);
int token_add(struct store *store, struct store_change *change, struct err *err);
int token_remove(struct store *store, struct store_change *change, struct err *err);
/* All browser tokens of a user, those of applications too when the change says so. */
int tokens_remove(struct store *store, const struct store_change *change, struct err *err);
int tokens_remove_all(struct store *store, const char *user, struct err *err);
/* All of browsers but `kept`, which may be NULL. */
int tokens_remove_browser(struct store *store, const char *user, const char *kept, struct err *err);
int tokens_expire(struct store *store, int64_t before_ms, struct err *err);
/* From here on there have been several accounts, for good; marked before, nothing changes. The jobs
 * so far are the first account's when it was the only one; in a store of before the mark there may
 * have been others, and then no job is. */
int accounts_mark_several(struct store *store, bool was_sole, struct err *err);
int accounts_say_several(struct store *store, struct err *err); /* by the accounts there are */
int job_reseal(struct store *store, struct store_change *change, struct err *err);
int setting_change(struct store *store, struct store_change *change, struct err *err);
int attempt_end_add(struct store *store, struct store_change *change, struct err *err);
int barrier_pass(struct store *store, const struct store_change *change, struct err *err);

/* Carry out `write`, and write down change->audit with what came of it. */
int audit_around(struct store *store, struct store_change *change,
                 int (*write)(struct store *store, struct store_change *change, struct err *err),
                 struct err *err);
int audit_trim(struct store *store, const struct store_change *change, struct err *err);

int submit_key_add(struct store *store, const struct store_change *change, struct err *err);
int submit_keys_trim(struct store *store, const struct store_change *change, struct err *err);
int gpu_use_trim(struct store *store, int64_t before_ms, struct err *err);
int notice_add(struct store *store, const struct store_change *change, struct err *err);
int notices_remove(struct store *store, const struct store_change *change, struct err *err);
int submit_keys_remove(struct store *store, const char *user, struct err *err);

int request_add(struct store *store, struct store_change *change, struct err *err);
int request_act(struct store *store, struct store_change *change, struct err *err);
int requests_trim(struct store *store, const struct store_change *change, struct err *err);
/* A user's own ones for virtual clusters. */
int requests_remove(struct store *store, const char *user, struct err *err);
/* 1: there is one of this id, 0: there is none. */
int request_read(struct session *session, struct text id, struct arena *arena,
                 struct store_request *row, struct err *err);
/* A user who exists may use one more virtual cluster; idempotent. change->code: ERR_TOO_BIG. */
int user_cluster_add(struct store *store, struct store_change *change, const char *user,
                     const char *cluster, struct err *err);
/* Does the group grant the virtual cluster ("": any), and does it make no administrators? */
int user_group_gives(struct store *store, const char *group, const char *cluster, bool *gives,
                     struct err *err);

int template_add(struct store *store, struct store_change *change, struct err *err);
int template_set(struct store *store, struct store_change *change, struct err *err);
int template_remove(struct store *store, struct store_change *change, struct err *err);
int template_review(struct store *store, struct store_change *change, struct err *err);
int template_official(struct store *store, struct store_change *change, struct err *err);
int template_use(struct store *store, struct store_change *change, struct err *err);
int template_star(struct store *store, struct store_change *change, struct err *err);
/* A user's own, and their stars. */
int templates_remove(struct store *store, const char *user, struct err *err);
/* With a group that is removed: another one of its name is not that one. */
int templates_unshare(struct store *store, const char *group, struct err *err);
/* 1: there is one of this id, 0: there is none. */
int template_read(struct session *session, const char *id, struct arena *arena,
                  struct store_template *row, struct err *err);
/* Names as a column keeps them: a line each, and each once. */
void template_words_put(struct sql *sql, const struct store_names *names, struct buf *lines);
struct store_names template_words_get(struct sql *sql, struct arena *arena);
/* Keep what the row says as its newest version, and forget the oldest beyond the limit. */
int template_version_add(struct store *store, const struct store_template *row, const char *editor,
                         struct err *err);
int template_versions_remove(struct store *store, const char *id, struct err *err);
/* Those of all templates of an author. */
int template_versions_remove_author(struct store *store, const char *author, struct err *err);

/* What a change is about, field by field, as it is now; secrets are compared, never written. */
struct audit_state {
    struct audit_field {
        const char *key;
        const char *value; /* JSON */
        bool is_secret;
    } * items;
    size_t count, room;
};
void audit_state_release(struct audit_state *state);
#define cleanup_audit_state __attribute__((cleanup(audit_state_release)))
/* Empty for changes that are not of accounts, and for what is not there. */
int audit_state_read(struct store *store, const struct store_change *change, struct arena *arena,
                     struct audit_state *state, struct err *err);
/* What `state` has, or has otherwise than `other`, as a JSON object; nothing when that is nothing.
 */
void audit_state_write(const struct audit_state *state, const struct audit_state *other,
                       struct buf *out);
/* "user" and its name, …: what a change of accounts is about; "" of another one. */
void audit_subject_of(const struct store_change *change, const char **kind, const char **name);

/* --- the core's records and events --- */

/* Writes a job's record. `last` is the last record of the same job in the batch: the job's row is
 * written only by the first record of a new job and by the last one. */
int job_write(struct store *store, const struct job_record *job, const struct job_record *last,
              struct err *err);
int task_write(struct store *store, const struct task_record *task, bool is_last, struct err *err);
int story_write(struct store *store, const struct story_record *story, struct err *err);
int node_write(struct store *store, const struct node_record *node, struct err *err);
int cluster_write(struct store *store, const struct cluster_record *cluster, struct err *err);
int events_write(struct store *store, const struct store_event *events, size_t count,
                 struct err *err);
int events_trim(struct store *store, int64_t before_ms, struct err *err);
int events_oldest(struct store *store, int64_t *at_ms, struct err *err);

/* Each deletes the job's rows from the tables of its noun. attempt_ends_purge comes before
 * tasks_purge, because it finds the attempts by the rows of the tasks. */
int job_purge(struct store *store, struct job_id job, struct err *err); /* `jobs` alone */
int job_submission_purge(struct store *store, struct job_id job, struct err *err);
int job_attempts_purge(struct store *store, struct job_id job, struct err *err);
int attempt_ends_purge(struct store *store, struct job_id job, struct err *err);
int tasks_purge(struct store *store, struct job_id job, struct err *err);
int stories_purge(struct store *store, struct job_id job, struct err *err);
int barriers_purge(struct store *store, struct job_id job, struct err *err);
int tags_purge(struct store *store, struct job_id job, struct err *err);
/* Runs a statement whose only parameter is the job's number. */
int purge(struct store *store, const char *text, struct job_id job, struct err *err);

/* The job's row is deleted with it; of all others some may be left. */
int deletion_add(struct store *store, struct job_id job, struct err *err);
/* A piece of what is left; some hundred rows. Of jobs that this transaction has deleted, or of
 * those that wait for it. */
int deletions_of(struct store *store, const struct job_id *jobs, size_t count, struct err *err);
int deletions_go_on(struct store *store, struct err *err);
int deletions_load(struct store *store, struct err *err);
/* How many jobs are in `deleted_jobs` now. */
int deletions_count(struct store *store, struct err *err);
/* The transaction has been committed, or has failed. */
void deletions_publish(struct store *store);
void deletions_failed(struct store *store, int code, const struct err *err);
/* It has failed. True: because of what is left of jobs that it deletes; the next one leaves all of
 * it, until pieces.is_put_off is reset. */
bool deletions_leave(struct store *store, int code);
void pieces_release(struct pieces *pieces);
/* For reads of rows that do not ask for their job. */
#define IS_NOT_DELETED(column) " " column " NOT IN (SELECT deleted_jobs.job FROM deleted_jobs) "

/* --- numbers --- */

int counters_write_numbers(struct store *store, uint32_t last_job, uint64_t last_attempt,
                           struct err *err);
/* Counts one more commit, and so many more events. */
int counters_write_progress(struct store *store, size_t event_count, struct err *err);

/* --- opening and restoring --- */

/* Makes the job index anew, by the next three functions. */
int store_load_jobs(struct store *store, struct err *err);
/* Puts all jobs into the index; store->last_job is the highest number afterwards. */
int jobs_load(struct store *store, struct job_index *index, struct err *err);
/* Puts the tags of all jobs into the index. */
int tags_load(struct store *store, struct job_index *index, struct err *err);
/* Reads the last numbers of jobs and attempts. ERR_CORRUPT: there is a job of a higher number. */
int counters_load(struct store *store, struct err *err);
/* How many commits the database has counted. */
int counters_read_commits(struct store *store, uint64_t *commits, struct err *err);
/* Reads the epochs; begins the first one, or a new one where the database wants it (db_opening). */
int epochs_load(struct store *store, struct err *err);
struct db_progress store_progress(const struct store *store);

/* A job's row without its tags. ERR_NOT_FOUND: no such job. */
int job_read(struct store_reader *reader, struct job_id job, struct arena *arena,
             struct store_job *row, struct err *err);
/* A task of the job's plan that has no row. */
struct task_record task_unplaced(const struct job_record *job, struct task_ref task,
                                 const char *role_name);
/* How many tasks each role of the plan has, with what was scaled since. */
uint32_t *task_role_counts(const struct job_record *job, const struct plan *plan,
                           struct arena *arena);
/* What was counted of the tasks of some jobs. Any thread. */
enum { COUNTED_JOBS = 256 };
struct task_counts_cache *task_counts_cache_new(void);
void task_counts_cache_free(struct task_counts_cache *cache);
int jobs_restore(struct store_reader *reader, const struct store_restore *restore,
                 struct arena *arena, struct err *err);
int tasks_restore(struct store_reader *reader, const struct store_restore *restore,
                  struct arena *arena, struct err *err);
/* Numbers of the jobs that have not ended, or of which a container is held for debugging: a row of
 * an attempt before the job's holds nothing. */
#define LIVE_IDS                                                                                   \
    "SELECT id FROM jobs WHERE state <> 8 UNION SELECT job FROM tasks WHERE is_held <> 0 AND "     \
    "job_attempt = (SELECT jobs.attempt FROM jobs WHERE id = job)"

/* Rows are gathered in a growing array on the heap and handed over at the end, so that growth
 * leaves no holes in the arena: a copy of the array, which is freed. */
static inline void *list_take(struct arena *arena, void *items, size_t count, size_t size)
{
    void *copy = arena_array(arena, count, size);
    if (count > 0)
        memcpy(copy, items, count * size);
    mem_free(items);
    return copy;
}
#define LIST_HAND_OVER(list, arena, out)                                                           \
    ((out)->count = (list)->count,                                                                 \
     (out)->items = list_take((arena), (list)->items, (list)->count, sizeof *(list)->items),       \
     (list)->items = NULL, (list)->count = (list)->room = 0)

#endif
