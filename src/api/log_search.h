/* log_search.h — looks for lines in all that a job's tasks wrote, within a bounded time.
 *
 * Edge. Not for threads that serve requests: a search reads up to gigabytes. What is looked for is
 * a text or an expression of RE2, line by line; the order is that of the job's attempts, and in
 * each of role, index and attempt of the task. A search that is out of time or has enough says
 * where the next one goes on.
 */
#ifndef API_LOG_SEARCH_H
#define API_LOG_SEARCH_H
#include "api/service.h"
#include "base/buf.h"

struct api;
struct err;

enum {
    LOG_SEARCH_MS = 1000, /* of one search, and what it is in the middle of */
    LOG_SEARCH_PATTERN_MAX = 1024,
    LOG_SEARCH_LINES = 100,
    LOG_SEARCH_LINES_MAX = 1000,
    LOG_SEARCH_CONTEXT_MAX = 10,
    LOG_SEARCH_WAITING_MAX = 32,
    LOG_SEARCH_OF_USER_MAX = 8,     /* that wait or run: nobody keeps out all others */
    LOG_SEARCH_LINE_MAX = 4096,     /* bytes of a line that are told */
    LOG_SEARCH_REPLY_MAX = 4 << 20, /* bytes of a reply, and one match more */
};

/* Behind the line at which the next search begins. */
struct log_place {
    uint32_t job_attempt, task_attempt;
    struct task_ref task;
    uint64_t offset, line; /* of the log; how many lines stand before it */
};

struct log_search {
    struct service *service;
    struct job_id job;
    uint32_t job_attempt_count;
    struct text pattern;
    bool is_expression, ignores_case;
    uint64_t line; /* not 0: no pattern, but every line from this one on */
    enum log_stream stream;
    struct text role; /* at NULL: all */
    int64_t index;    /* -1: all */
    int64_t attempt;  /* of the job; -1: all */
    size_t limit, context;
    int64_t most_ms; /* what it is in the middle of comes on top; it gets on in any case */
    struct log_place from;
};

/* Is it an expression that RE2 takes? ERR_INVALID. */
int log_search_check(const struct log_search *search, struct err *err);

/* Lines of JSON into `out`: matches, and `end` as the last one, with the cursor when there is more.
 * ERR_UNAVAILABLE: the store cannot be read now. */
int log_search_run(const struct log_search *search, struct buf *out, struct err *err);

/* The thread that searches; its end is that of api->search_worker. */
int log_search_start(struct api *api, struct err *err);

/* "1.0.3.0.52311.1200"; false: it is no cursor. */
bool log_place_parse(struct text text, struct log_place *place);

#endif
