/* barrier.c — see barrier.h. */
#include "server/barrier.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/barriers.h"
#include "core/core.h"
#include "spec/spec.h"
#include "store/read.h"
#include "sys/secret.h"
#include <assert.h>
#include <stdatomic.h>
#include <string.h>

struct barrier_table {
    struct store_reader *reader;
    struct arena scratch;
    struct barriers *barriers;
    struct barrier_output output; /* since the last answers */
    struct {
        struct service_reply *items; /* the reply of request n is item n - 1; .done NULL: free */
        size_t count, room;
    } replies;
    struct {
        uint64_t *items; /* requests whose items are free */
        size_t count, room;
    } free_requests;
    _Atomic uint64_t held;
};

/* ---- requests by number ---- */

static uint64_t request_of(struct barrier_table *table, struct service_reply reply)
{
    assert(reply.done);
    uint64_t request;
    if (table->free_requests.count > 0) {
        request = table->free_requests.items[--table->free_requests.count];
    } else {
        ARRAY_ADD(&table->replies);
        request = table->replies.count;
    }
    table->replies.items[request - 1] = reply;
    return request;
}

static void answer(struct service_reply reply, int code, const char *text)
{
    reply.done(reply.context,
               &(struct service_answer){.code = code, .path = "", .text = code ? text : ""});
}

static void answer_give(struct barrier_table *table, const struct barrier_answer *given)
{
    assert(given->request > 0 && given->request <= table->replies.count);
    struct service_reply reply = table->replies.items[given->request - 1];
    table->replies.items[given->request - 1] = (struct service_reply){0};
    *ARRAY_ADD(&table->free_requests) = given->request;
    answer(reply, given->code, given->text);
}

/* ---- the rows of a barrier that is not known yet ---- */

/* Who takes part: all in the start barrier, those with ssh in the other, which the spec says. */
static int roles_read(struct barrier_table *table, struct barrier_rows *rows, struct err *err)
{
    bool *takes_part = ARENA_ARRAY(&table->scratch, bool, rows->role_count);
    rows->takes_part = takes_part;
    for (size_t i = 0; i < rows->role_count; i++)
        takes_part[i] = true;
    if (rows->kind == BARRIER_START)
        return 0;
    struct store_source source;
    int code = store_job_source(table->reader, rows->job, &table->scratch, &source, err);
    if (code < 0)
        return code;
    cleanup_spec struct spec *spec = spec_decode(source.spec_bytes, err);
    if (!spec || spec->role_count != rows->role_count)
        return spec ? err_fail(err, ERR_CORRUPT, "", "its spec has other roles") : ERR_CORRUPT;
    for (size_t i = 0; i < spec->role_count; i++)
        takes_part[i] = spec->roles[i].is_ssh_enabled;
    return 0;
}

struct barrier_shown {
    struct core *core;
    struct job_id job;
};

static void tasks_show(const void *context, barrier_row_see *see, void *seer)
{
    const struct barrier_shown *shown = context;
    core_tasks_show(shown->core, shown->job, see, seer);
}

/* The tasks themselves are the core's: thousands of rows would take the store's reader longer than
 * an event may. */
static int rows_read(struct barrier_table *table, struct core *core, struct barrier_rows *rows,
                     struct err *err)
{
    int64_t passed = -1;
    rows->role_count = core_attempt_roles(core, rows->job, rows->attempt);
    if (rows->role_count == 0)
        return err_fail(err, ERR_CONFLICT, "", "the job's attempt ends");
    int code = store_barrier_passed(table->reader, rows->job, rows->kind, &passed, err);
    if (code)
        return code;
    rows->is_passed = passed == (int64_t)rows->attempt;
    if (!rows->is_passed)
        return roles_read(table, rows, err);
    rows->role_count = 0; /* nobody is waited for */
    return 0;
}

/* The row of the try: as this round leaves it, or as it is stored. */
static int row_find(struct barrier_table *table, struct attempt_id attempt,
                    const struct output *output, struct task_record *row, struct err *err)
{
    for (size_t i = output->records.count; i > 0; i--) {
        const struct record *record = &output->records.items[i - 1];
        if (record->kind == RECORD_TASK && record->task.attempt.v == attempt.v) {
            *row = record->task;
            return 0;
        }
    }
    return store_attempt(table->reader, attempt, &table->scratch, row, err);
}

static int barrier_known(struct barrier_table *table, struct core *core,
                         const struct task_record *row, enum barrier_kind kind,
                         const struct output *output, struct err *err)
{
    const struct barrier_shown shown = {core, row->job};
    struct barrier_rows rows = {.job = row->job,
                                .attempt = row->job_attempt,
                                .kind = kind,
                                .show_tasks = tasks_show,
                                .context = &shown,
                                .records = output->records.items,
                                .record_count = output->records.count};
    if (barriers_has(table->barriers, row->job, kind))
        return 0;
    int code = rows_read(table, core, &rows, err);
    if (code < 0)
        return code;
    barriers_add(table->barriers, &rows);
    return 0;
}

/* ---- the steps of a round ---- */

static void held_count(struct barrier_table *table)
{
    atomic_store(&table->held, barriers_held(table->barriers));
}

void barrier_take(struct barrier_table *table, const struct record *records, size_t count)
{
    barriers_take(table->barriers, records, count, &table->output);
    held_count(table);
}

void barrier_report(struct barrier_table *table, struct core *core,
                    const struct service_barrier *report, struct service_reply reply,
                    const struct output *output)
{
    struct task_record row;
    struct err err = {0};
    uint64_t request = request_of(table, reply);
    int code = row_find(table, report->attempt, output, &row, &err);
    if (code == 0 && row.state >= LIFE_ATTEMPT_COMPLETED)
        code = err_fail(&err, ERR_CONFLICT, "", "this try has ended");
    if (code == 0)
        code = barrier_known(table, core, &row, report->kind, output, &err);
    if (code == 0)
        barriers_report(table->barriers,
                        &(struct barrier_report){.request = request,
                                                 .row = &row,
                                                 .kind = report->kind,
                                                 .is_up = report->is_up,
                                                 .is_waiting = report->is_waiting},
                        &table->output);
    else
        barrier_refuse(&table->output, request, code, err.text);
    held_count(table);
    arena_clear(&table->scratch);
}

size_t barrier_change_count(const struct barrier_table *table)
{
    return table->output.passes.count;
}

void barrier_changes(const struct barrier_table *table, struct store_change *changes)
{
    for (size_t i = 0; i < table->output.passes.count; i++) {
        const struct barrier_pass *pass = &table->output.passes.items[i];
        changes[i] = (struct store_change){.kind = CHANGE_BARRIER,
                                           .barrier = {pass->job, pass->attempt, pass->kind}};
    }
}

void barrier_answer(struct barrier_table *table)
{
    for (size_t i = 0; i < table->output.answers.count; i++)
        answer_give(table, &table->output.answers.items[i]);
    barrier_output_clear(&table->output);
}

/* What the failed commit would have answered is not true. */
void barrier_clear(struct barrier_table *table, const char *why)
{
    barriers_clear(table->barriers, ERR_UNAVAILABLE, why, &table->output);
    for (size_t i = 0; i < table->output.answers.count; i++) {
        table->output.answers.items[i].code = ERR_UNAVAILABLE;
        table->output.answers.items[i].text = why;
    }
    table->output.passes.count = 0;
    held_count(table);
    barrier_answer(table);
}

/* ---- the table ---- */

struct barrier_table *barrier_table_new(struct store_reader *reader)
{
    struct barrier_table *table = mem_zero(1, sizeof *table);
    table->reader = reader;
    table->barriers = barriers_new(BARRIER_HELD_MAX);
    barrier_output_init(&table->output);
    arena_init(&table->scratch);
    return table;
}

void barrier_table_free(struct barrier_table *table)
{
    if (!table)
        return;
    barrier_clear(table, "the server is ending");
    barriers_free(table->barriers);
    barrier_output_release(&table->output);
    ARRAY_FREE(&table->replies);
    ARRAY_FREE(&table->free_requests);
    arena_release(&table->scratch);
    mem_free(table);
}

uint64_t barrier_held_count(const struct barrier_table *table)
{
    return atomic_load(&table->held);
}

/* ---- tokens ---- */

void barrier_token(const uint8_t *master_key, struct attempt_id attempt,
                   char token[BARRIER_TOKEN_SIZE])
{
    static const char DIGITS[] = "0123456789abcdef";
    uint8_t key[SECRET_KEY_SIZE];

    secret_key_derive(master_key, attempt.v, "skepbarr", key);
    for (size_t i = 0; i < sizeof key; i++) {
        token[2 * i] = DIGITS[key[i] >> 4];
        token[2 * i + 1] = DIGITS[key[i] & 15];
    }
    token[2 * sizeof key] = '\0';
    secret_wipe(key, sizeof key);
}

bool barrier_token_is(const uint8_t *master_key, struct attempt_id attempt, struct text token)
{
    unsigned different = 0;
    char wanted[BARRIER_TOKEN_SIZE];
    if (token.length != sizeof wanted - 1)
        return false;
    barrier_token(master_key, attempt, wanted);
    for (size_t i = 0; i < token.length; i++)
        different |= (unsigned)(wanted[i] ^ token.at[i]);
    secret_wipe(wanted, sizeof wanted);
    return different == 0;
}
