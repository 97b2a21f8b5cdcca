/* leftover.c — containers of which the core knows nothing: an exit told again, an orphan.
 *
 * What is left of one goes, unless its row says that somebody holds it for debugging. A row that
 * cannot be read says nothing: the container stays, and the row is read again later. One of an
 * attempt before the job's holds nothing any more, whatever it says: the job has been started
 * again.
 */
#include "base/err.h"
#include "base/memory.h"
#include "server/state.h"

struct orphan_container {
    struct attempt_id attempt;
    uint8_t engine;
    bool is_running;
};

static void leftover_remove(struct server *server, const struct orphan_container *left)
{
    if (!left->is_running) {
        launcher_forget(server->launcher, left->engine, left->attempt);
        return;
    }
    log_info("server", "container of attempt %llu belongs to no live task: removed",
             (unsigned long long)left->attempt.v);
    atomic_fetch_add(&server->metrics.orphans, 1);
    launcher_kill(server->launcher, left->engine, left->attempt);
}

static int held_read(struct server *server, struct attempt_id attempt, bool *is_held,
                     struct err *err)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct task_record row;
    struct store_job job;
    *is_held = false;
    int code = store_attempt(server->core.reader, attempt, &arena, &row, err);
    if (code == 0 && row.is_held) {
        code = store_job_read(server->core.reader, row.job, &arena, &job, err);
        *is_held = code == 0 && job.record.attempt == row.job_attempt;
    }
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* False: not known yet. */
static bool leftover_settle(struct server *server, const struct orphan_container *left)
{
    struct err err;
    bool is_held;
    const int code = held_read(server, left->attempt, &is_held, &err);
    if (code < 0)
        log_error("store",
                  "attempt %llu: whether its container is held cannot be read, it stays: %s",
                  (unsigned long long)left->attempt.v, err.text);
    else if (!is_held)
        leftover_remove(server, left);
    return code == 0;
}

/* Told again, as after each time that an engine was out of reach: one that has ended stays ended.
 */
static void leftover_keep(struct leftover_list *list, const struct orphan_container *left)
{
    for (size_t i = 0; i < list->count; i++) {
        struct orphan_container *kept = &list->items[i];
        if (kept->attempt.v == left->attempt.v && kept->engine == left->engine) {
            kept->is_running &= left->is_running;
            return;
        }
    }
    *ARRAY_ADD(list) = *left;
}

void leftover_take(struct server *server, uint8_t engine, struct attempt_id attempt,
                   bool is_running)
{
    const struct orphan_container left = {attempt, engine, is_running};
    if (!leftover_settle(server, &left))
        leftover_keep(&server->core.leftovers, &left);
}

void leftover_retry(struct server *server)
{
    struct leftover_list *list = &server->core.leftovers;
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (!leftover_settle(server, &list->items[i]))
            list->items[kept++] = list->items[i];
    list->count = kept;
}
