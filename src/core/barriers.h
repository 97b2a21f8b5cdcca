/* barriers.h — barriers, at which the tasks of a job attempt wait for each other: a pure step,
 * whose table is in docs/rfc/0009-skep-init.md, "Barriers".
 *
 * Pure. Reports, records of the core and rows of the store go in; answers to requests and marks
 * "passed" come out. The caller makes the marks durable in the commit that stores those records,
 * and gives the answers after it; when that commit fails it clears the table, and the tasks ask
 * again. What is kept in memory can be lost: a mark says that a barrier was passed, all else is
 * reported again. Requests are the caller's numbers.
 */
#ifndef CORE_BARRIERS_H
#define CORE_BARRIERS_H
#include "base/arena.h"
#include "core/output.h"

/* What the tasks of a job attempt wait for together. Stored: never change one. */
enum barrier_kind { BARRIER_START = 0, BARRIER_SSH = 1, BARRIER_KINDS = 2 };

struct barriers;

struct barrier_answer {
    uint64_t request;
    int code;         /* 0 or ERR_* */
    const char *text; /* "" when 0; in the output's arena */
};

struct barrier_pass { /* a mark: this attempt of the job has passed */
    struct job_id job;
    uint32_t attempt;
    enum barrier_kind kind;
};

struct barrier_output {
    struct arena arena;
    struct {
        struct barrier_answer *items;
        size_t count, room;
    } answers;
    struct {
        struct barrier_pass *items;
        size_t count, room;
    } passes;
};
void barrier_output_init(struct barrier_output *output);
void barrier_output_clear(struct barrier_output *output); /* keeps the memory */
void barrier_output_release(struct barrier_output *output);

/* An empty table; more than `held_max` requests are not held. */
struct barriers *barriers_new(size_t held_max);
void barriers_free(struct barriers *barriers); /* requests that are held get no answer */

/* Is there an entry for this barrier of the job? */
bool barriers_has(const struct barriers *barriers, struct job_id job, enum barrier_kind kind);

/* A row lives for the call. */
typedef void barrier_row_see(void *context, const struct task_record *row);

/* What is known of a barrier that has no entry yet, and the records that are not stored yet: they
 * are applied to the rows. An attempt that ends by them gets no entry. */
struct barrier_rows {
    struct job_id job;
    uint32_t attempt; /* of the job */
    enum barrier_kind kind;
    bool is_passed;         /* then the rest is not looked at */
    const bool *takes_part; /* by role */
    size_t role_count;
    /* Shows each task of the attempt that has a row: `see` is called with `seer`. */
    void (*show_tasks)(const void *context, barrier_row_see *see, void *seer);
    const void *context;
    const struct record *records;
    size_t record_count;
};
void barriers_add(struct barriers *barriers, const struct barrier_rows *rows);

/* Records of the core, in their order. */
void barriers_take(struct barriers *barriers, const struct record *records, size_t count,
                   struct barrier_output *output);

/* A task says that it has come; its barrier has an entry, unless it has just ended. */
struct barrier_report {
    uint64_t request;              /* not 0 */
    const struct task_record *row; /* of the try that reports */
    enum barrier_kind kind;
    bool is_up;      /* false: it came, but what the others wait for will not be there (ssh) */
    bool is_waiting; /* answered when all have come, else at once */
};
void barriers_report(struct barriers *barriers, const struct barrier_report *report,
                     struct barrier_output *output);

/* A report that cannot be taken: its rows cannot be read. */
void barrier_refuse(struct barrier_output *output, uint64_t request, int code, const char *text);

/* Answer everybody who is held, and know nothing any more. */
void barriers_clear(struct barriers *barriers, int code, const char *text,
                    struct barrier_output *output);

/* Requests that are held. */
size_t barriers_held(const struct barriers *barriers);

#endif
