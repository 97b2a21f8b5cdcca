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
#include "base/printable.h"
#include "base/random.h"
#include "base/text.h"
#include "base/utc.h"

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
    arena_wipe(&arena); /* nothing to wipe */
    const char *secret = arena_copy(&arena, TEXT("secret"));
    arena_wipe(&arena); /* its memory is kept for the next, but not what was in it */
    for (size_t i = 0; i < sizeof "secret"; i++)
        assert_int_equal(secret[i], 0);
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
    assert_string_equal(err_name(1), "unknown");
    assert_int_equal(err_errno(NULL, ENOENT, "x"), ERR_IO);
    err_errno(&err, 100000, "x");
    assert_string_equal(err.text, "x: unknown error");
    err_fail(&err, ERR_INVALID, NULL, "x");
    assert_string_equal(err.path, "");
}

/* Every kind of byte that JSON or UTF-8 treats in its own way. */
static void test_json_escapes(void **state)
{
    (void)state;
    const struct {
        struct text in;
        const char *out;
    } cases[] = {
        {TEXT("\b\t\f\r"), "\"\\b\\t\\f\\r\""},
        {TEXT("\x7f\x1f"), "\"\\u007f\\u001f\""},
        {TEXT("\xe4\xbd\xa0"), "\"\xe4\xbd\xa0\""},         /* three bytes */
        {TEXT("\xf0\x9f\x90\x9d"), "\"\xf0\x9f\x90\x9d\""}, /* four */
        {TEXT("\xe4\xbd"), "\"\xef\xbf\xbd\xef\xbf\xbd\""}, /* cut short */
        {TEXT("\xc1\xbf"), "\"\xef\xbf\xbd\xef\xbf\xbd\""}, /* overlong */
        {TEXT("\xe0\x80\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {TEXT("\xf0\x80\x80\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {TEXT("\xf4\x90\x80\x80"), /* beyond U+10FFFF */
         "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {TEXT("\xf5"), "\"\xef\xbf\xbd\""},
        {TEXT("\xe4x"), "\"\xef\xbf\xbdx\""},
        {TEXT("\xe4xx"), "\"\xef\xbf\xbdxx\""},
        {TEXT(""), "\"\""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buf out = BUF_INIT;
        struct json_writer json;
        json_init(&json, &out);
        json_text(&json, cases[i].in);
        assert_string_equal(buf_cstr(&out), cases[i].out);
        buf_release(&out);
    }
}

/* Every byte at every place of short and long strings against what the rules say. */
static void test_json_bytes(void **state)
{
    (void)state;
    for (size_t length = 1; length <= 20; length++)
        for (size_t place = 0; place < length; place++)
            for (int byte = 0; byte < 256; byte++) {
                char in[32], wanted[64];
                memset(in, 'a', length);
                in[place] = (char)byte;
                const char *middle = byte == '"'    ? "\\\""
                                     : byte == '\\' ? "\\\\"
                                     : byte == '\b' ? "\\b"
                                     : byte == '\t' ? "\\t"
                                     : byte == '\n' ? "\\n"
                                     : byte == '\f' ? "\\f"
                                     : byte == '\r' ? "\\r"
                                     : byte >= 0x80 ? "\xef\xbf\xbd"
                                                    : NULL;
                char plain[8];
                snprintf(plain, sizeof plain, byte < 0x20 || byte == 0x7f ? "\\u%04x" : "%c", byte);
                snprintf(wanted, sizeof wanted, "\"%.*s%s%.*s\"", (int)place,
                         "aaaaaaaaaaaaaaaaaaaaaa", middle ? middle : plain,
                         (int)(length - place - 1), "aaaaaaaaaaaaaaaaaaaaaa");
                struct buf out = BUF_INIT;
                struct json_writer json;
                json_init(&json, &out);
                json_text(&json, (struct text){in, length});
                assert_string_equal(buf_cstr(&out), wanted);
                buf_release(&out);
            }
}

static void test_json_integers(void **state)
{
    (void)state;
    const int64_t values[] = {0, 1, -1, 9, 10, -10, 99, 100, 1234567890123, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char wanted[32];
        struct buf out = BUF_INIT;
        struct json_writer json;
        json_init(&json, &out);
        json_int(&json, values[i]);
        snprintf(wanted, sizeof wanted, "%lld", (long long)values[i]);
        assert_string_equal(buf_cstr(&out), wanted);
        buf_release(&out);
    }
}

static void test_json_values(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    struct json_writer json;
    json_init(&json, &out);
    json_array(&json);
    json_string(&json, NULL);
    json_real(&json, 0.5);
    json_real(&json, 1.0 / 0.0);
    json_raw(&json, TEXT("{}"));
    json_object(&json);
    json_key_int(&json, "a", 1);
    json_key_bool(&json, "b", false);
    json_key_null(&json, "c");
    json_key_strings(&json, "d", (const char *const[]){"e", NULL, "f"}, 3);
    json_key_strings(&json, "g", NULL, 0);
    json_object_end(&json);
    json_array_end(&json);
    assert_string_equal(buf_cstr(&out), "[null,0.5,null,{},{\"a\":1,\"b\":false,\"c\":null,"
                                        "\"d\":[\"e\",null,\"f\"],\"g\":[]}]");
    buf_release(&out);
}

static void test_buf_grows(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT;
    assert_string_equal(buf_cstr(&buf), "");
    buf_clear(&buf);
    for (int i = 0; i < 1000; i++)
        buf_format(&buf, "%d,", i);
    assert_int_equal(buf.length, 3890);
    assert_true(text_starts(buf_as_text(&buf), TEXT("0,1,2,")));
    assert_false(text_starts(TEXT("ab"), TEXT("abc")));
    buf_clear(&buf);
    assert_string_equal(buf_cstr(&buf), "");
    buf_char(&buf, 'x');
    char *bytes = buf_steal(&buf);
    assert_string_equal(bytes, "x");
    mem_free(bytes);
    bytes = buf_steal(&buf); /* of an empty buffer: an empty string */
    assert_string_equal(bytes, "");
    mem_free(bytes);
    struct cursor none = cursor_of((struct text){NULL, 0});
    assert_int_equal(cursor_u64(&none), 0);
    assert_true(none.is_bad);
}

static void test_empty_maps(void **state)
{
    (void)state;
    struct text_map texts = {0};
    assert_int_equal(text_map_get(&texts, TEXT("a")), MAP_NONE);
    text_map_remove(&texts, TEXT("a"));
    struct id_map ids = {0};
    assert_int_equal(id_map_get(&ids, 1), MAP_NONE);
    id_map_remove(&ids, 1);
}

static void test_arrays(void **state)
{
    (void)state;
    struct {
        int *items;
        size_t count, room;
    } numbers = {0};
    for (int i = 0; i < 100; i++)
        *ARRAY_ADD(&numbers) = i;
    ARRAY_RESERVE(&numbers, 1000);
    assert_true(numbers.room >= 1000);
    assert_int_equal(numbers.items[99], 99);
    ARRAY_FREE(&numbers);
    assert_null(numbers.items);
    char *copy = mem_copy("abc");
    assert_string_equal(copy, "abc");
    mem_free(copy);
    void *nothing = mem_realloc(mem_alloc(0), 0), *zero = mem_zero(0, 8);
    assert_true(nothing && zero);
    mem_free(nothing);
    mem_free(zero);
    int *zeros = mem_zero(4, sizeof *zeros);
    assert_int_equal(zeros[3], 0);
    mem_free(zeros);
}

static void test_copies(void **state)
{
    (void)state;
    const uint16_t numbers[] = {3, 1, 2};
    uint16_t *copy = mem_copy_array(numbers, 3, sizeof *numbers);
    assert_ptr_not_equal(copy, numbers);
    assert_memory_equal(copy, numbers, sizeof numbers);
    mem_free(copy);
    assert_null(mem_copy_array(numbers, 0, sizeof *numbers));
    assert_null(mem_copy_array(NULL, 3, sizeof *numbers));
    char *text = mem_copy("skep");
    assert_string_equal(text, "skep");
    mem_free(text);
}

static void test_arena_large(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    arena_clear(&arena); /* nothing to forget */
    assert_int_equal(arena_size(&arena), 0);
    memset(arena_alloc(&arena, 3 << 20), 1, 3 << 20); /* larger than a block */
    for (int i = 0; i < 5; i++)
        assert_non_null(arena_alloc(&arena, 1 << 20));
    assert_true(arena_size(&arena) >= 8 << 20);
    int *numbers = ARENA_ARRAY(&arena, int, 10);
    assert_int_equal(numbers[9], 0);
    assert_non_null(ARENA_NEW(&arena, struct err));
    assert_string_equal(arena_copy(&arena, (struct text){NULL, 0}), "");
    arena_release(&arena);
}

static void test_text_edges(void **state)
{
    (void)state;
    assert_int_equal(text_of(NULL).length, 0);
    assert_true(text_equal((struct text){NULL, 0}, TEXT("")));
    assert_false(text_equal(TEXT("a"), TEXT("b")));
    assert_false(text_is(TEXT("a"), "ab"));
    assert_int_equal(text_find(TEXT("abc"), TEXT("")), 0);
    assert_true(text_find((struct text){NULL, 0}, TEXT("a")) == SIZE_MAX);
    struct text none = {NULL, 0};
    assert_int_equal(text_cut(&none, ',').length, 0);
    assert_int_equal(text_trim(TEXT(" \t\r\n")).length, 0);
    int64_t value;
    assert_false(text_to_int64(TEXT("99999999999999999999"), &value));
    assert_false(text_to_int64(TEXT("/"), &value));
    char longer[70] = {0};
    memset(longer, 'a', 69);
    assert_int_equal(text_distance(text_of(longer), TEXT("a"), 2), 3);
    assert_int_equal(text_distance(TEXT("a"), text_of(longer), 2), 3);
    assert_int_equal(text_distance(TEXT("ab"), TEXT("ba"), 2), 1);
    assert_int_equal(text_distance(TEXT("abcd"), TEXT("acxd"), 3), 2);
    assert_true(text_hash(TEXT("a"), 0) != text_hash(TEXT("a"), 1));
    assert_true(text_words_hash(TEXT("1 of 20"), 0) == text_words_hash(TEXT("12 of 3"), 0));
    assert_true(text_words_hash(TEXT("1 of 20"), 0) != text_words_hash(TEXT("1 or 20"), 0));
    assert_true(text_words_hash(TEXT("a"), 0) != text_words_hash(TEXT("a"), 1));
}

/* Of what a program writes stays what a terminal would show. */
static void test_printable(void **state)
{
    (void)state;
    const struct {
        struct text in;
        const char *out;
    } CASES[] = {
        {TEXT(""), ""},
        {TEXT("plain\n\tline\n"), "plain\n\tline\n"},
        {TEXT("caf\xc3\xa9 \xe6\x9c\xac \xf0\x9f\x90\x9d"),
         "caf\xc3\xa9 \xe6\x9c\xac \xf0\x9f\x90\x9d"},
        {TEXT("\x1b[1;31mred\x1b[0m!"), "red!"},
        {TEXT("\x1b]0;title\x07shell"), "shell"},
        {TEXT("\x1b]0;title\x1b\\shell"), "shell"},
        {TEXT("\x1b]never ended\nnext"), "\nnext"},
        {TEXT("\x1b(Bcharset \x1b=keypad \x1b"), "charset keypad "},
        {TEXT("\x1b[12"), ""},
        {TEXT("a\0b\ac\x7f"), "abc"},
        {TEXT("c1 \xc2\x9b gone"), "c1  gone"},
        {TEXT("dos\r\nlines\r\n"), "dos\nlines\n"},
        {TEXT(" 10%\r 50%\r100%\ndone"), "100%\ndone"},
        {TEXT("one\nold\r\x1b[Knew"), "one\nnew"},
        {TEXT("kept\r"), "kept"},
        {TEXT("half \xe6\x9c"), "half \xef\xbf\xbd\xef\xbf\xbd"},
        {TEXT("\xff\xc0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {TEXT("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct buf out = BUF_INIT;
        buf_string(&out, "before ");
        printable_put(&out, CASES[i].in);
        assert_memory_equal(buf_cstr(&out), "before ", 7);
        assert_string_equal(buf_cstr(&out) + 7, CASES[i].out);
        buf_release(&out);
    }
}

static void test_printable_line(void **state)
{
    (void)state;
    assert_true(printable_is_line(TEXT("")));
    assert_true(printable_is_line(TEXT("gr\xc3\xb6\xc3\x9f\x65 2 \xe2\x82\xac")));
    static const struct text BAD[] = {{"a\nb", 3}, {"\t", 1},       {"\x1b[0m", 4}, {"\x7f", 1},
                                      {"\0", 1},   {"\xc2\x9b", 2}, {"\xff", 1}};
    for (size_t i = 0; i < COUNT_OF(BAD); i++)
        assert_false(printable_is_line(BAD[i]));
}

static void test_printable_strip(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    printable_strip(&out, TEXT("\x1b[31mSyntax\x1b[1mError\x1b[0m\r\n\xff\a\x1b"));
    assert_string_equal(buf_cstr(&out), "SyntaxError\r\n\xff\a");
    buf_clear(&out);
    printable_strip(&out, (struct text){NULL, 0});
    assert_int_equal(out.length, 0);
    buf_release(&out);
}

static bool is_printable(struct text text)
{
    for (size_t i = 0; i < text.length;) {
        const size_t length = text_utf8_length(text, i);
        const unsigned char c = (unsigned char)text.at[i];
        if (!length || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
            return false;
        i += length;
    }
    return true;
}

/* Whatever comes, and wherever it is cut. */
static void test_printable_is_always_valid(void **state)
{
    (void)state;
    static const char ALPHABET[] = "\x1b[]\\;1m\r\n\t\a\x7f\xc2\x9b\xe6\x9c\xac\xf0\x9f\xff a";
    struct random random = {7};
    for (int round = 0; round < 20000; round++) {
        char bytes[40];
        struct buf out = BUF_INIT;
        const size_t length = random_below(&random, sizeof bytes + 1);
        for (size_t i = 0; i < length; i++)
            bytes[i] = ALPHABET[random_below(&random, sizeof ALPHABET)];
        printable_put(&out, (struct text){bytes, length});
        assert_true(out.length <= 3 * length);
        assert_true(is_printable(buf_as_text(&out)));
        const size_t most = random_below(&random, sizeof bytes);
        const struct text tail = printable_tail(buf_as_text(&out), most);
        const struct text head = printable_head(buf_as_text(&out), most);
        assert_true(tail.length <= most && head.length <= most);
        assert_true(is_printable(tail) && is_printable(head));
        buf_release(&out);
    }
}

static void test_printable_cut(void **state)
{
    (void)state;
    struct text text = TEXT("one\ntwo\nthree\n");
    assert_true(text_is(printable_tail(text, 100), "one\ntwo\nthree\n"));
    assert_true(text_is(printable_tail(text, 10), "two\nthree\n"));
    assert_true(text_is(printable_tail(text, 9), "three\n"));
    assert_true(text_is(printable_tail(text, 6), "three\n"));
    assert_true(text_is(printable_tail(text, 4), "ree\n")); /* no whole line fits */
    assert_true(text_is(printable_tail(text, 0), ""));
    assert_true(text_is(printable_tail(TEXT("a\xe6\x9c\xac"), 2), ""));
    assert_true(text_is(printable_tail(TEXT("a\xe6\x9c\xac"), 3), "\xe6\x9c\xac"));
    assert_true(text_is(printable_head(TEXT("a\xe6\x9c\xac"), 3), "a"));
    assert_true(text_is(printable_head(TEXT("a\xe6\x9c\xac"), 4), "a\xe6\x9c\xac"));
}

static void test_utc(void **state)
{
    (void)state;
    static const struct {
        int64_t at_ms;
        const char *text;
    } CASES[] = {
        {0, "1970-01-01 00:00:00 UTC"},
        {-1, "1970-01-01 00:00:00 UTC"},
        {951782399999, "2000-02-28 23:59:59 UTC"},
        {951782400000, "2000-02-29 00:00:00 UTC"},
        {951868800000, "2000-03-01 00:00:00 UTC"},
        {4107542400000, "2100-03-01 00:00:00 UTC"}, /* no leap year */
        {1798761599000, "2026-12-31 23:59:59 UTC"},
        {INT64_MAX, "9999-12-31 23:59:59 UTC"},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        char text[UTC_SIZE];
        assert_string_equal(utc_text(CASES[i].at_ms, text), CASES[i].text);
    }
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
        cmocka_unit_test(test_json_escapes),
        cmocka_unit_test(test_json_bytes),
        cmocka_unit_test(test_json_integers),
        cmocka_unit_test(test_json_values),
        cmocka_unit_test(test_buf_grows),
        cmocka_unit_test(test_empty_maps),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_printable),
        cmocka_unit_test(test_printable_line),
        cmocka_unit_test(test_printable_strip),
        cmocka_unit_test(test_printable_is_always_valid),
        cmocka_unit_test(test_printable_cut),
        cmocka_unit_test(test_utc),
        cmocka_unit_test(test_arena_large),
        cmocka_unit_test(test_text_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
