#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "init/address_file.h"

static void what_is_written_is_read(void **state)
{
    static const struct address_file_task tasks[] = {{0, 0, "10.1.0.7"}, {1, 19999, "fd00::7"}};
    const struct address_file file = {tasks, 2}, none = {0};
    struct address_file back;
    cleanup_buf struct buf text = BUF_INIT;
    cleanup_arena struct arena arena;
    (void)state;
    arena_init(&arena);
    address_file_write(&file, &text);
    assert_string_equal(buf_cstr(&text), "0 0 10.1.0.7\n1 19999 fd00::7\n.\n");
    assert_int_equal(address_file_read(buf_as_text(&text), &arena, &back, NULL), 0);
    assert_int_equal(back.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(back.tasks[i].role, tasks[i].role);
        assert_int_equal(back.tasks[i].index, tasks[i].index);
        assert_string_equal(back.tasks[i].address, tasks[i].address);
    }
    buf_clear(&text);
    address_file_write(&none, &text);
    assert_int_equal(address_file_read(buf_as_text(&text), &arena, &back, NULL), 0);
    assert_int_equal(back.count, 0);
}

/* However much of it has come, it is not taken for all of it. */
static void what_is_cut_off_is_not_whole(void **state)
{
    static const char text[] = "0 0 10.1.0.7\n0 1 10.1.0.8\n.\n";
    struct address_file back;
    cleanup_arena struct arena arena;
    (void)state;
    arena_init(&arena);
    for (size_t length = 0; length < strlen(text); length++) {
        const struct text part = {text, length};
        assert_false(address_file_is_whole(part));
        assert_int_equal(address_file_read(part, &arena, &back, NULL), ERR_CORRUPT);
    }
    assert_true(address_file_is_whole(text_of(text)));
}

#define LINE(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }

static void what_is_no_line(void **state)
{
    static const struct {
        const char *at;
        size_t length;
    } texts[] = {
        LINE("0 0\n.\n"),
        LINE("0 0 \n.\n"),
        LINE("0 0 a b\n.\n"),
        LINE("\n.\n"),
        LINE("x 0 10.1.0.7\n.\n"),
        LINE("0 -1 10.1.0.7\n.\n"),
        LINE("-1 0 10.1.0.7\n.\n"),
        LINE("0 0 a\0b\n.\n"),
        LINE("4294967296 0 a\n.\n"),
        LINE("0 0 a\n.\n.\n"),
    };
    struct address_file back;
    cleanup_arena struct arena arena;
    (void)state;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        assert_int_equal(
            address_file_read((struct text){texts[i].at, texts[i].length}, &arena, &back, NULL),
            ERR_CORRUPT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_written_is_read),
    cmocka_unit_test(what_is_cut_off_is_not_whole),
    cmocka_unit_test(what_is_no_line),
};
UNIT_FILE(tests, NULL, NULL);
