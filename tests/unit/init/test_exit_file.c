/* The report of an end, and the reason of a stop: what is written is read back. */
#include "unit.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "init/exit_file.h"

static void exit_round_trip(void **state)
{
    (void)state;
    struct exit_file file = {.stage = EXIT_STAGE_USER,
                             .code = 137,
                             .signal = 9,
                             .started_ms = 1000,
                             .ended_ms = 2000,
                             .message = "killed"},
                     back;
    struct buf bytes = BUF_INIT;
    struct err err = {0};
    exit_file_write(&file, &bytes);
    assert_string_equal(buf_cstr(&bytes), "skep-exit 1\nstage user\ncode 137\nsignal 9\n"
                                          "started_ms 1000\nended_ms 2000\nmessage killed\n");
    assert_int_equal(exit_file_read(buf_as_text(&bytes), &back, &err), 0);
    assert_int_equal(back.stage, EXIT_STAGE_USER);
    assert_int_equal(back.code, 137);
    assert_int_equal(back.ended_ms, 2000);
    assert_string_equal(back.message, "killed");
    buf_release(&bytes);
    static const char *const WRONG[] = {
        "",
        "skep-exit 2\ncode 1\n",
        "skep-exit 1\n",
        "skep-exit 1\ncode 256\n",
        "skep-exit 1\ncode x\n",
        "skep-exit 1\ncode 1\nstage never\n",
        "skep-exit 1\ncode 1\nsignal -1\n",
    };
    for (size_t i = 0; i < COUNT_OF(WRONG); i++)
        assert_int_equal(exit_file_read(text_of(WRONG[i]), &back, NULL), ERR_CORRUPT);
    assert_int_equal(exit_file_read(text_of("skep-exit 1\nnew x\ncode 1\n"), &back, NULL), 0);
    assert_int_equal(back.memory, EXIT_MEMORY_LASTED);
}

static void memory_round_trip(void **state)
{
    (void)state;
    static const enum exit_memory ENDS[] = {EXIT_MEMORY_LASTED, EXIT_MEMORY_LIMIT,
                                            EXIT_MEMORY_MACHINE};
    for (size_t i = 0; i < COUNT_OF(ENDS); i++) {
        cleanup_buf struct buf bytes = BUF_INIT;
        struct exit_file file = {.code = 1, .memory = ENDS[i]}, back;
        exit_file_write(&file, &bytes);
        assert_int_equal(exit_file_read(buf_as_text(&bytes), &back, NULL), 0);
        assert_int_equal(back.memory, ENDS[i]);
    }
    struct exit_file back;
    assert_int_equal(exit_file_read(text_of("skep-exit 1\ncode 1\nmemory gone\n"), &back, NULL), 0);
    assert_int_equal(back.memory, EXIT_MEMORY_LASTED);
}

static void reason_round_trip(void **state)
{
    (void)state;
    struct reason_file file = {"preempted", 30000}, back;
    struct buf bytes = BUF_INIT;
    reason_file_write(&file, &bytes);
    reason_file_read(buf_as_text(&bytes), &back);
    assert_string_equal(back.reason, "preempted");
    assert_int_equal(back.grace_ms, 30000);
    reason_file_read(text_of("grace_ms many"), &back);
    assert_string_equal(back.reason, "");
    assert_int_equal(back.grace_ms, 0);
    buf_release(&bytes);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(exit_round_trip),
    cmocka_unit_test(memory_round_trip),
    cmocka_unit_test(reason_round_trip),
};
UNIT_FILE(tests, NULL, NULL);
