/* The shared ground: texts, buffers, maps, arenas, JSON, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"

static void test_text_numbers(void **state)
{
    (void)state;
    int64_t value = 7;
    assert_true(text_to_int64(TEXT("-9223372036854775808"), &value));
    assert_true(value == INT64_MIN);
    assert_true(text_to_int64(TEXT("9223372036854775807"), &value));
    assert_true(value == INT64_MAX);
    const char *wrong[] = {"", "-", "1x", " 1", "9223372036854775808", "-9223372036854775809"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        value = 42;
        assert_false(text_to_int64(text_of(wrong[i]), &value));
        assert_int_equal(value, 42);
    }
}

static void test_text_parts(void **state)
{
    (void)state;
    struct text rest = TEXT("a,,b");
    assert_true(text_is(text_cut(&rest, ','), "a"));
    assert_true(text_is(text_cut(&rest, ','), ""));
    assert_non_null(rest.at);
    assert_true(text_is(text_cut(&rest, ','), "b"));
    assert_null(rest.at);
    assert_true(text_is(text_trim(TEXT(" \t a b\r\n")), "a b"));
    assert_int_equal(text_find(TEXT("abcabd"), TEXT("abd")), 3);
    assert_true(text_find(TEXT("abc"), TEXT("x")) == SIZE_MAX);
}

static void test_text_distance(void **state)
{
    (void)state;
    assert_int_equal(text_distance(TEXT("taskNumbr"), TEXT("taskNumber"), 3), 1);
    assert_int_equal(text_distance(TEXT("taksNumber"), TEXT("taskNumber"), 3), 1);
    assert_int_equal(text_distance(TEXT("abc"), TEXT("abc"), 3), 0);
    assert_int_equal(text_distance(TEXT("abc"), TEXT("xyz"), 2), 3);
    assert_int_equal(text_distance(TEXT(""), TEXT("ab"), 3), 2);
}

static void test_buf_encoding(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    buf_put_u8(&buf, 200);
    buf_put_u32(&buf, 0xdeadbeef);
    buf_put_u64(&buf, UINT64_MAX - 1);
    buf_put_text(&buf, TEXT("skep"));
    struct cursor cursor = cursor_of(buf_as_text(&buf));
    assert_int_equal(cursor_u8(&cursor), 200);
    assert_int_equal(cursor_u32(&cursor), 0xdeadbeef);
    assert_true(cursor_u64(&cursor) == UINT64_MAX - 1);
    assert_true(text_is(cursor_text(&cursor), "skep"));
    assert_false(cursor.is_bad);
    assert_int_equal(cursor_u8(&cursor), 0);
    assert_true(cursor.is_bad);
    assert_int_equal(cursor_text(&cursor).length, 0);
    buf_release(&buf);
}

/* A length that points past the end must not be believed. */
static void test_cursor_lying_length(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    buf_put_u32(&buf, UINT32_MAX);
    buf_string(&buf, "short");
    struct cursor cursor = cursor_of(buf_as_text(&buf));
    assert_int_equal(cursor_text(&cursor).length, 0);
    assert_true(cursor.is_bad);
    buf_release(&buf);
}

/* Against a plain array, through inserts and removals that move slots about. */
static void test_id_map_random(void **state)
{
    (void)state;
    enum { KEYS = 512, STEPS = 20000 };
    uint32_t want[KEYS];
    for (size_t i = 0; i < KEYS; i++)
        want[i] = MAP_NONE;
    struct id_map map = {0};
    struct random random = {1};
    for (int i = 0; i < STEPS; i++) {
        uint64_t key = random_below(&random, KEYS);
        if (random_below(&random, 2)) {
            want[key] = (uint32_t)random_below(&random, 1000);
            id_map_set(&map, key, want[key]);
        } else {
            want[key] = MAP_NONE;
            id_map_remove(&map, key);
        }
        uint64_t look = random_below(&random, KEYS);
        assert_int_equal(id_map_get(&map, look), want[look]);
    }
    size_t count = 0;
    for (uint64_t key = 0; key < KEYS; key++) {
        assert_int_equal(id_map_get(&map, key), want[key]);
        count += want[key] != MAP_NONE;
    }
    assert_int_equal(map.count, count);
    id_map_release(&map);
}

static void test_text_map_random(void **state)
{
    (void)state;
    enum { KEYS = 300, STEPS = 20000 };
    char names[KEYS][16];
    uint32_t want[KEYS];
    for (size_t i = 0; i < KEYS; i++) {
        snprintf(names[i], sizeof names[i], "job-%zu", i);
        want[i] = MAP_NONE;
    }
    struct text_map map = {.seed = 99};
    struct random random = {2};
    for (int i = 0; i < STEPS; i++) {
        size_t key = (size_t)random_below(&random, KEYS);
        if (random_below(&random, 2))
            text_map_set(&map, text_of(names[key]), want[key] = (uint32_t)i);
        else {
            text_map_remove(&map, text_of(names[key]));
            want[key] = MAP_NONE;
        }
        size_t look = (size_t)random_below(&random, KEYS);
        assert_int_equal(text_map_get(&map, text_of(names[look])), want[look]);
    }
    text_map_release(&map);
}

static void test_arena(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    for (size_t i = 1; i < 3000; i += 7) {
        unsigned char *bytes = arena_alloc(&arena, i);
        assert_int_equal((uintptr_t)bytes % _Alignof(max_align_t), 0);
        for (size_t j = 0; j < i; j++) {
            assert_int_equal(bytes[j], 0);
            bytes[j] = 0xff;
        }
    }
    arena_clear(&arena);
    assert_string_equal(arena_format(&arena, "%s-%d", "worker", 3), "worker-3");
    assert_string_equal(arena_copy(&arena, TEXT("abc")), "abc");
    arena_release(&arena);
}

static void test_json(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    struct json_writer json;
    json_init(&json, &out);
    json_object(&json);
    json_key_string(&json, "name", "a\"b\\\n\x01");
    json_key(&json, "list");
    json_array(&json);
    json_int(&json, -5);
    json_bool(&json, true);
    json_null(&json);
    json_array_end(&json);
    json_key_text(&json, "bad", TEXT("x\xff\xc3\xa9\xed\xa0\x80y"));
    json_object_end(&json);
    assert_string_equal(buf_cstr(&out),
                        "{\"name\":\"a\\\"b\\\\\\n\\u0001\",\"list\":[-5,true,null],"
                        "\"bad\":\"x\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd"
                        "\xef\xbf\xbdy\"}");
    buf_release(&out);
}

static void test_err(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(err_fail(&err, ERR_TOO_BIG, "taskRoles", "%d", 5), ERR_TOO_BIG);
    assert_string_equal(err.path, "taskRoles");
    assert_string_equal(err_name(err.code), "too-big");
    assert_int_equal(err_errno(&err, ENOENT, "open %s", "x"), ERR_IO);
    assert_string_equal(err.text, "open x: No such file or directory");
    assert_int_equal(err_fail(NULL, ERR_BUSY, "", "x"), ERR_BUSY);
    assert_string_equal(err_name(-1000), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_numbers),
        cmocka_unit_test(test_text_parts),
        cmocka_unit_test(test_text_distance),
        cmocka_unit_test(test_buf_encoding),
        cmocka_unit_test(test_cursor_lying_length),
        cmocka_unit_test(test_id_map_random),
        cmocka_unit_test(test_text_map_random),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_err),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
