#include "server/audit.h"
#include "base/arena.h"
#include "base/err.h"
#include "core/replay.h"
#include "server/rows_core.h"
#include "store/read.h"

enum { EVENTS_AT_ONCE = 1000 };

static int log_replay(struct store_reader *reader, struct replay *replay, struct output *output,
                      int64_t *last_ms, struct err *err)
{
    struct store_events events = {0};
    int code = 0;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    do {
        arena_clear(&arena);
        code = store_events(reader, events.last, EVENTS_AT_ONCE, &arena, &events, err);
        for (size_t i = 0; code == 0 && i < events.count; i++) {
            struct event event;
            code = event_decode(events.items[i].body, &arena, &event, err);
            if (code == 0)
                code = replay_step(replay, &event, output, err);
            *last_ms = events.items[i].at_ms;
        }
    } while (code == 0 && events.count > 0);
    return code;
}

/* --- the rows of the store --- */

static int rows_hash(struct store_reader *reader, const struct core_config *config, int64_t now_ms,
                     uint64_t *hash, struct err *err)
{
    const struct rows_core_ask ask = {.config = config, .now_ms = now_ms};
    cleanup_core struct core *core = NULL;
    int code = rows_core(reader, &ask, &core, err);
    if (code == 0)
        *hash = core_hash(core);
    return code;
}

static int differs(uint32_t job, const char *what, struct err *err)
{
    return err_fail(err, ERR_CORRUPT, "", "job %u: by the event log it %s; its row says otherwise",
                    job, what);
}

/* How each job ended, or where it is: also of those that no core holds any more. */
static int jobs_compare(struct store_reader *reader, const struct rows *rows, uint64_t *jobs,
                        struct err *err)
{
    int code = 0;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; code == 0 && i < rows_job_count(rows); i++) {
        const struct rows_job *job = rows_job(rows, i);
        struct store_job row;
        int found;
        if (!job->id || !job->extra)
            continue; /* its submission was refused */
        arena_clear(&arena);
        found = store_job_read(reader, (struct job_id){job->id}, &arena, &row, err);
        if (found < 0 && found != ERR_NOT_FOUND)
            code = found;
        else if ((found == ERR_NOT_FOUND) != job->is_deleted)
            code = differs(job->id, job->is_deleted ? "was deleted" : "exists", err);
        else if (found == 0 &&
                 (row.record.state != job->state ||
                  row.record.is_stop_requested != job->is_stop_requested ||
                  row.record.attempt != job->attempt || row.record.completion.code != job->code))
            code = err_fail(err, ERR_CORRUPT, "",
                            "job %u: by the event log it is in state %d of attempt %u with code "
                            "%d, by its row in state %d of attempt %u with code %d",
                            job->id, job->state, job->attempt, job->code, row.record.state,
                            row.record.attempt, row.record.completion.code);
        *jobs += found == 0;
    }
    return code;
}

/* Both cores are made at the same time of the same configuration. */
static int hashes_compare(struct store_reader *reader, struct replay *replay,
                          const struct core_config *config, int64_t now_ms, struct output *output,
                          struct err *err)
{
    const struct event restore = {
        .kind = EVENT_RESTORE, .now_ms = now_ms, .user = "", .config = config};
    uint64_t hash = 0;
    int code = rows_hash(reader, config, now_ms, &hash, err);
    if (code == 0)
        code = replay_step(replay, &restore, output, err);
    if (code == 0 && core_hash(replay->core) != hash)
        code = err_fail(err, ERR_CORRUPT, "",
                        "the event log gives another state of nodes, live jobs or their tasks than "
                        "the rows");
    return code;
}

int server_audit(struct store *store, const struct core_config *config, struct audit *audit,
                 struct err *err)
{
    cleanup_store_reader struct store_reader *reader = NULL;
    int64_t last_ms = 0;
    int code = store_reader_open(store, &reader, err);
    *audit = (struct audit){0};
    if (code < 0)
        return code;
    struct replay replay;
    replay_init(&replay);
    cleanup_output struct output output;
    output_init(&output);
    code = log_replay(reader, &replay, &output, &last_ms, err);
    audit->events = replay.events;
    audit->restores = replay.restores;
    if (code == 0)
        code = jobs_compare(reader, replay.rows, &audit->jobs, err);
    if (code == 0)
        code = hashes_compare(reader, &replay, config, last_ms, &output, err);
    replay_release(&replay);
    return code;
}
