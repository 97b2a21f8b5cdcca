#include "server/notices.h"
#include "base/err.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/utc.h"
#include "core/event.h"
#include "model/notice.h"
#include "server/config_notify.h"
#include "spec/spec.h"
#include "store/read.h"
#include "sys/log.h"
#include <assert.h>

struct known_job {
    struct job_id id;
    unsigned asked; /* by its file, with NOTICE_HOLDS */
    bool has_row;   /* else the job is new */
    struct notice_row row;
};

struct notice_book {
    struct store_reader *reader;
    struct {
        struct known_job *items; /* live ones */
        size_t count, room;
    } jobs;
    struct id_map places; /* job → its place among them */
    struct {
        struct store_change *items;
        size_t count, room;
    } changes;          /* of the next commit */
    struct arena texts; /* of these */
    struct {
        struct job_id *items;
        size_t count, room;
    } ended; /* forgotten with the commit: later records of the batch know them */
    struct {
        size_t count;
        struct err first;
    } given_up; /* messages of this batch, since something could not be read */
    bool is_mute;
};

unsigned notices_asked(const struct spec *spec)
{
    const struct spec_notifications *notify = &spec->notify;
    return (notify->running ? NOTICE_BIT(NOTICE_RUNNING) : 0) |
           (notify->succeeded ? NOTICE_BIT(NOTICE_SUCCEEDED) : 0) |
           (notify->stopped ? NOTICE_BIT(NOTICE_STOPPED) : 0) |
           (notify->failed ? NOTICE_BIT(NOTICE_FAILED) : 0) |
           (notify->retried ? NOTICE_BIT(NOTICE_RETRIED) : 0);
}

unsigned notices_of_file(const struct spec *spec)
{
    return notices_asked(spec) | (spec->is_debug ? NOTICE_HOLDS : 0);
}

struct notice_book *notice_book_new(struct store_reader *reader)
{
    struct notice_book *book = mem_zero(1, sizeof *book);
    book->reader = reader;
    arena_init(&book->texts);
    return book;
}

void notice_book_free(struct notice_book *book)
{
    if (!book)
        return;
    notices_clear(book);
    ARRAY_FREE(&book->changes);
    ARRAY_FREE(&book->ended);
    arena_release(&book->texts);
    mem_free(book);
}

static struct notice_row row_of(const struct job_record *record)
{
    return (struct notice_row){.attempt = record->attempt,
                               .state = record->state,
                               .code = record->completion.code,
                               .launched_ms = record->launched_ms};
}

/* The end of an attempt, or what was before, is not known: neither is what to say. */
static void message_give_up(struct notice_book *book, const struct err *err)
{
    if (book->given_up.count++ == 0)
        book->given_up.first = *err;
}

static void given_up_log(struct notice_book *book)
{
    if (book->given_up.count > 0)
        log_error("server",
                  "%zu messages about changes of jobs are not sent, what they would say cannot be "
                  "read: %s",
                  book->given_up.count, book->given_up.first.text);
    book->given_up.count = 0;
}

/* --- what is known of a job --- */

/* Of a job that was submitted to an older version, whose row does not say it. A file that cannot be
 * read any more asks for nothing: that is said, and hinders nobody else. */
static int asked_read(struct notice_book *book, struct job_id job, struct arena *arena,
                      unsigned *asked, struct err *err)
{
    struct store_source source;
    int code = store_job_source(book->reader, job, arena, &source, err);
    if (code < 0)
        return code;
    cleanup_spec struct spec *spec = spec_decode(source.spec_bytes, err);
    if (!spec)
        log_error("server", "what job %u asks to be told of cannot be read: %s", job.v, err->text);
    *asked = spec ? notices_of_file(spec) : 0;
    return 0;
}

static int job_read_known(struct notice_book *book, const struct job_record *record,
                          struct known_job *known, struct err *err)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct store_job row;
    *known = (struct known_job){.id = record->id};
    if (record->submission) {
        known->asked = record->submission->notices;
        return 0;
    }
    int code = store_job_read(book->reader, record->id, &arena, &row, err);
    if (code == 0 && row.notices != STORE_NOTICES_UNKNOWN)
        known->asked = (unsigned)row.notices;
    else if (code == 0)
        code = asked_read(book, record->id, &arena, &known->asked, err);
    if (code == ERR_NOT_FOUND) /* made and changed in this batch, without a submission: not ours */
        return 0;
    known->has_row = code == 0;
    if (code == 0)
        known->row = row_of(&row.record);
    return code;
}

static void job_forget(struct notice_book *book, struct job_id job)
{
    const uint32_t place = id_map_get(&book->places, job.v);
    if (place == MAP_NONE)
        return;
    id_map_remove(&book->places, job.v);
    book->jobs.items[place] = book->jobs.items[--book->jobs.count];
    if (place < book->jobs.count)
        id_map_set(&book->places, book->jobs.items[place].id.v, place);
}

static int job_know(struct notice_book *book, const struct job_record *record,
                    struct known_job **known, struct err *err)
{
    uint32_t place = id_map_get(&book->places, record->id.v);
    if (place == MAP_NONE) {
        struct known_job read;
        int code = job_read_known(book, record, &read, err);
        if (code < 0)
            return code;
        place = (uint32_t)book->jobs.count;
        *ARRAY_ADD(&book->jobs) = read;
        id_map_set(&book->places, record->id.v, place);
    }
    *known = &book->jobs.items[place];
    assert((*known)->id.v == record->id.v);
    return 0;
}

/* --- messages --- */

static void message_add(struct notice_book *book, const char *target, const struct notice *notice)
{
    struct store_change *change = ARRAY_ADD(&book->changes);
    change->kind = CHANGE_NOTICE_ADD;
    change->notice.target = target;
    change->notice.row = *notice;
}

static void targets_add(struct notice_book *book, const struct notify_config *config,
                        unsigned asked, const struct notice *notice)
{
    const unsigned bit = NOTICE_BIT(notice->kind);
    if (config->has_smtp && (asked & bit))
        message_add(book, NOTICE_MAIL, notice);
    for (size_t i = 0; i < config->hook_count; i++) {
        const struct notify_hook_config *hook = &config->hooks[i];
        if ((hook->has_events ? hook->events : asked) & bit)
            message_add(book, arena_format(&book->texts, NOTICE_HOOK "%s", hook->name), notice);
    }
}

/* How the attempt before this one ended: a row of this batch says it, or the stored one, which is
 * of the time before the batch. */
static int end_find(struct notice_book *book, const struct job_record *record,
                    const struct record *records, size_t at, struct notice *notice, struct err *err)
{
    for (size_t i = at; i > 0; i--) {
        const struct record *past = &records[i - 1];
        if (past->kind != RECORD_JOB || past->job.id.v != record->id.v ||
            past->job.attempt == record->attempt)
            continue;
        notice->code = past->job.completion.code;
        notice->phrase = arena_copy(&book->texts, text_of(past->job.completion.phrase));
        notice->why = past->job.trigger ? past->job.trigger : "";
        return 0;
    }
    struct store_job row;
    int code = store_job_read(book->reader, record->id, &book->texts, &row, err);
    if (code < 0)
        return code;
    notice->code = row.record.completion.code;
    notice->phrase = arena_copy(&book->texts, text_of(row.record.completion.phrase));
    notice->why = row.record.trigger ? row.record.trigger : "";
    return 0;
}

/* Behind why the job has failed: its user may want to look into what is left, and that goes. */
static void hold_say(struct notice_book *book, uint32_t debug_hold_s, struct notice *notice)
{
    char until[UTC_SIZE];
    utc_text(notice->at_ms + (int64_t)debug_hold_s * 1000, until);
    notice->why = arena_format(&book->texts,
                               "%s%sthe containers of its failed tasks are kept for debugging "
                               "until %s",
                               notice->why, notice->why[0] ? "; " : "", until);
}

static int notice_make(struct notice_book *book, enum notice_kind kind,
                       const struct record *records, size_t at, struct notice *notice,
                       struct err *err)
{
    const struct job_record *record = &records[at].job;
    *notice = (struct notice){.job = record->id,
                              .attempt = record->attempt,
                              .kind = kind,
                              .user = record->user,
                              .job_name = record->name,
                              .virtual_cluster = record->virtual_cluster,
                              .phrase = "",
                              .why = ""};
    switch (kind) {
    case NOTICE_RUNNING:
        notice->at_ms = record->launched_ms;
        return 0;
    case NOTICE_RETRIED:
        notice->at_ms = record->attempt_created_ms;
        return end_find(book, record, records, at, notice, err);
    case NOTICE_SUCCEEDED:
    case NOTICE_STOPPED:
    case NOTICE_FAILED:
        notice->at_ms = record->completed_ms;
        notice->code = record->completion.code;
        notice->phrase = arena_copy(&book->texts, text_of(record->completion.phrase));
        notice->why = record->trigger ? record->trigger : "";
        return 0;
    case NOTICE_ACCEPTED: /* store/requests.c makes these */
    case NOTICE_REFUSED:
        break;
    }
    assert(false && "a kind of notice");
    return err_fail(err, ERR_INTERNAL, "", "no kind of message has the number %d", (int)kind);
}

/* In the order in which they happen. */
static const enum notice_kind order[NOTICE_KINDS] = {
    NOTICE_RETRIED, NOTICE_RUNNING, NOTICE_SUCCEEDED, NOTICE_STOPPED, NOTICE_FAILED};

/* A message that cannot be made hinders neither the others nor the commit. */
static void message_make(struct notice_book *book, const struct notify_config *config,
                         const struct known_job *known, enum notice_kind kind,
                         uint32_t debug_hold_s, const struct record *records, size_t at)
{
    struct notice notice;
    struct err err;
    if (notice_make(book, kind, records, at, &notice, &err) < 0) {
        message_give_up(book, &err);
        return;
    }
    if (kind == NOTICE_FAILED && (known->asked & NOTICE_HOLDS) && debug_hold_s > 0 &&
        known->row.launched_ms != 0)
        hold_say(book, debug_hold_s, &notice);
    targets_add(book, config, known->asked, &notice);
}

static void job_take(struct notice_book *book, const struct notify_config *config,
                     uint32_t debug_hold_s, const struct record *records, size_t at)
{
    const struct job_record *record = &records[at].job;
    struct known_job *known = NULL;
    struct err err;
    if (job_know(book, record, &known, &err) < 0) {
        message_give_up(book, &err); /* the job's next change is compared with this one's row */
        return;
    }
    const struct notice_row now = row_of(record);
    if (known->has_row && now.attempt < known->row.attempt)
        return; /* the end of an attempt that is told behind the next one's begin */
    const unsigned changes = notice_changes(known->has_row ? &known->row : NULL, &now);
    known->has_row = true;
    known->row = now;
    for (size_t i = 0; i < COUNT_OF(order); i++)
        if (changes & NOTICE_BIT(order[i]))
            message_make(book, config, known, order[i], debug_hold_s, records, at);
    if (now.state == LIFE_COMPLETED)
        *ARRAY_ADD(&book->ended) = record->id;
}

void notices_take(struct notice_book *book, const struct notify_config *config,
                  uint32_t debug_hold_s, const struct record *records, size_t count)
{
    if (!config->has_smtp && config->hook_count == 0) {
        notices_clear(book); /* once there is a target the store says what was before */
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (records[i].kind == RECORD_JOB)
            job_take(book, config, debug_hold_s, records, i);
        else if (records[i].kind == RECORD_JOB_DELETED)
            job_forget(book, records[i].deleted);
    }
    given_up_log(book);
    if (book->is_mute)
        book->changes.count = 0;
}

void notices_mute(struct notice_book *book, bool is_mute)
{
    book->is_mute = is_mute;
}

bool notices_are_mute(const struct notice_book *book)
{
    return book->is_mute;
}

size_t notices_change_count(const struct notice_book *book)
{
    return book->changes.count;
}

void notices_changes(const struct notice_book *book, struct store_change *changes)
{
    assert(book->changes.count == 0 || changes);
    for (size_t i = 0; i < book->changes.count; i++)
        changes[i] = book->changes.items[i];
}

bool notices_committed(struct notice_book *book)
{
    const bool has_any = book->changes.count > 0;
    book->changes.count = 0;
    for (size_t i = 0; i < book->ended.count; i++)
        job_forget(book, book->ended.items[i]);
    book->ended.count = 0;
    arena_clear(&book->texts);
    return has_any;
}

void notices_clear(struct notice_book *book)
{
    notices_committed(book);
    ARRAY_FREE(&book->jobs);
    id_map_release(&book->places);
}
