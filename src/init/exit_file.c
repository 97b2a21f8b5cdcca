#include "init/exit_file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"

static const char *const STAGE_NAMES[] = {
    [EXIT_STAGE_SETUP] = "setup",
    [EXIT_STAGE_PRE] = "pre",
    [EXIT_STAGE_USER] = "user",
    [EXIT_STAGE_POST] = "post",
};
enum { STAGES = 4 };

const char *exit_stage_name(enum exit_stage stage)
{
    assert((unsigned)stage < STAGES);
    return STAGE_NAMES[stage];
}

void exit_file_write(const struct exit_file *file, struct buf *out)
{
    buf_format(out, "skep-exit 1\nstage %s\ncode %d\nsignal %d\n", exit_stage_name(file->stage),
               file->code, file->signal);
    buf_format(out, "started_ms %" PRId64 "\nended_ms %" PRId64 "\n", file->started_ms,
               file->ended_ms);
    if (file->memory != EXIT_MEMORY_LASTED)
        buf_format(out, "memory %s\n", file->memory == EXIT_MEMORY_LIMIT ? "limit" : "machine");
    if (file->message[0])
        buf_format(out, "message %s\n", file->message);
}

/* Cut one `key value` line. */
static bool line_next(struct text *rest, struct text *key, struct text *value)
{
    if (rest->length == 0)
        return false;
    *value = text_cut(rest, '\n');
    *key = text_cut(value, ' ');
    return true;
}

static bool stage_read(struct text value, enum exit_stage *stage)
{
    for (unsigned i = 0; i < STAGES; i++) {
        if (text_is(value, STAGE_NAMES[i])) {
            *stage = (enum exit_stage)i;
            return true;
        }
    }
    return false;
}

static bool number_read(struct text value, int64_t least, int64_t most, int64_t *number)
{
    return text_to_int64(value, number) && *number >= least && *number <= most;
}

static void string_read(struct text value, char *out, size_t room)
{
    size_t length = value.length < room - 1 ? value.length : room - 1;
    if (length > 0)
        memcpy(out, value.at, length);
    out[length] = '\0';
}

int exit_file_read(struct text bytes, struct exit_file *file, struct err *err)
{
    struct text rest = bytes, key, value;
    *file = (struct exit_file){0};
    if (!text_is(text_cut(&rest, '\n'), "skep-exit 1"))
        return err_fail(err, ERR_CORRUPT, "", "the exit file does not begin with \"skep-exit 1\"");
    bool is_good = true, has_code = false;
    int64_t number = 0;
    while (line_next(&rest, &key, &value)) {
        if (text_is(key, "stage")) {
            is_good = is_good && stage_read(value, &file->stage);
        } else if (text_is(key, "code")) {
            is_good = is_good && number_read(value, 0, 255, &number);
            has_code = true;
            file->code = (int32_t)number;
        } else if (text_is(key, "signal")) {
            is_good = is_good && number_read(value, 0, 127, &number);
            file->signal = (int32_t)number;
        } else if (text_is(key, "started_ms")) {
            is_good = is_good && number_read(value, 0, INT64_MAX, &file->started_ms);
        } else if (text_is(key, "ended_ms")) {
            is_good = is_good && number_read(value, 0, INT64_MAX, &file->ended_ms);
        } else if (text_is(key, "memory")) {
            file->memory = text_is(value, "limit")     ? EXIT_MEMORY_LIMIT
                           : text_is(value, "machine") ? EXIT_MEMORY_MACHINE
                                                       : EXIT_MEMORY_LASTED;
        } else if (text_is(key, "message")) {
            string_read(value, file->message, sizeof file->message);
        }
    }
    if (!is_good || !has_code)
        return err_fail(err, ERR_CORRUPT, "", "the exit file is damaged");
    return 0;
}

void reason_file_write(const struct reason_file *file, struct buf *out)
{
    buf_format(out, "reason %s\ngrace_ms %" PRIu32 "\n", file->reason, file->grace_ms);
}

void reason_file_read(struct text bytes, struct reason_file *file)
{
    struct text rest = bytes, key, value;
    int64_t number;
    *file = (struct reason_file){0};
    while (line_next(&rest, &key, &value)) {
        if (text_is(key, "reason"))
            string_read(value, file->reason, sizeof file->reason);
        else if (text_is(key, "grace_ms") && number_read(value, 0, UINT32_MAX, &number))
            file->grace_ms = (uint32_t)number;
    }
}
