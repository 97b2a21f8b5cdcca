/* Damage is found, never believed: every truncation and every flipped bit of both files. */
#include "files.h"
#include "unit.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "init/job_file.h"
#include "init/task_file.h"

/* Each truncation is refused, and a flipped byte never crashes the reader. */
static void damage(void **state)
{
    (void)state;
    struct buf bytes[2] = {BUF_INIT, BUF_INIT};
    struct arena arena;
    struct job_file job;
    struct task_file task;
    arena_init(&arena);
    job_file_write(&JOB, &bytes[0]);
    task_file_write(&TASK, &bytes[1]);
    for (size_t file = 0; file < 2; file++) {
        for (size_t length = 0; length < bytes[file].length; length++) {
            struct text part = {bytes[file].at, length};
            assert_int_equal(job_file_read(part, &arena, &job, NULL), ERR_CORRUPT);
            assert_int_equal(task_file_read(part, &arena, &task, NULL), ERR_CORRUPT);
        }
        for (size_t at = 0; at < bytes[file].length; at++) {
            for (unsigned bit = 0; bit < 8; bit++) {
                bytes[file].at[at] ^= (char)(1 << bit);
                job_file_read(buf_as_text(&bytes[file]), &arena, &job, NULL);
                task_file_read(buf_as_text(&bytes[file]), &arena, &task, NULL);
                bytes[file].at[at] ^= (char)(1 << bit);
                arena_clear(&arena);
            }
        }
        buf_release(&bytes[file]);
    }
    arena_release(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(damage),
};
UNIT_FILE(tests, NULL, NULL);
