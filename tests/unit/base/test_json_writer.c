/* JSON as it is written: values, escapes, bytes that are no text. */
#include "unit.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "base/text.h"

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
        {TEXT("\xf5\x80\x80\x80"), /* no first byte of four, nor is the next */
         "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {TEXT("\x90\x80\x80\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_json),        cmocka_unit_test(test_json_escapes),
    cmocka_unit_test(test_json_bytes),  cmocka_unit_test(test_json_integers),
    cmocka_unit_test(test_json_values),
};
UNIT_FILE(tests, NULL, NULL);
