/* The task file: what is written is read back. */
#include "files.h"
#include "unit.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "init/task_file.h"

static void task_round_trip(void **state)
{
    (void)state;
    struct buf bytes = BUF_INIT, again = BUF_INIT;
    struct arena arena;
    struct task_file task;
    struct err err = {0};
    arena_init(&arena);
    task_file_write(&TASK, &bytes);
    assert_int_equal(task_file_read(buf_as_text(&bytes), &arena, &task, &err), 0);
    assert_int_equal(task.gpus[1], 5);
    assert_string_equal(task.ssh_private_key, "KEY");
    task_file_write(&task, &again);
    assert_int_equal(again.length, bytes.length);
    assert_memory_equal(again.at, bytes.at, bytes.length);
    buf_release(&bytes);
    buf_release(&again);
    arena_release(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(task_round_trip),
};
UNIT_FILE(tests, NULL, NULL);
