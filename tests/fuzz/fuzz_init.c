/* The files in /skep: what a container wrote is read by the engine, what lies on disk by skep-init.
 * The first byte chooses the reader. What can be read must be written again to the same bytes. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "init/address_file.h"
#include "init/env.h"
#include "init/exit_file.h"
#include "init/job_file.h"
#include "init/log_line.h"
#include "init/task_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void job(struct text bytes, struct arena *arena)
{
    struct job_file file;
    if (job_file_read(bytes, arena, &file, NULL) < 0 || file.task_count == 0)
        return;
    const struct task_file task = {.container = "c", .command = "x"};
    const struct env_host host = {"/", "", ""};
    if (!env_job_has_task(&file, 0, 0))
        return;
    struct env env;
    env_init(&env, arena);
    env_build(&env, &file, &task, &host);
    char *nothing[] = {NULL}, **merged;
    env_merge(&env, nothing, &merged);
    env_release(&env);
}

static void task(struct text bytes, struct arena *arena)
{
    struct task_file file;
    struct buf again = BUF_INIT;
    if (task_file_read(bytes, arena, &file, NULL) < 0)
        return;
    task_file_write(&file, &again);
    assert(again.length == bytes.length);
    buf_release(&again);
}

static void ends(struct text bytes)
{
    struct exit_file end;
    struct reason_file reason;
    struct log_line line;
    struct buf text = BUF_INIT;
    if (log_line_read(bytes, &line))
        assert(line.text.length <= LOG_LINE_TEXT_MAX && line.text.length <= bytes.length);
    struct log_piece piece;
    if (log_piece_read(bytes, &piece))
        assert(piece.length <= LOG_PIECE_MAX && piece.stream < LOG_PIECE_STREAMS);
    reason_file_read(bytes, &reason);
    if (exit_file_read(bytes, &end, NULL) == 0) {
        exit_file_write(&end, &text);
        assert(exit_file_read(buf_as_text(&text), &end, NULL) == 0);
    }
    buf_release(&text);
}

static void addresses(struct text bytes, struct arena *arena)
{
    struct address_file file;
    struct buf again = BUF_INIT;
    if (address_file_read(bytes, arena, &file, NULL) < 0)
        return;
    assert(address_file_is_whole(bytes));
    address_file_write(&file, &again);
    assert(address_file_is_whole(buf_as_text(&again)));
    buf_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    if (size == 0)
        return 0;
    struct text bytes = {(const char *)data + 1, size - 1};
    arena_init(&arena);
    if (data[0] % 4 == 0)
        job(bytes, &arena);
    else if (data[0] % 4 == 1)
        task(bytes, &arena);
    else if (data[0] % 4 == 3)
        addresses(bytes, &arena);
    else
        ends(bytes);
    arena_release(&arena);
    return 0;
}
