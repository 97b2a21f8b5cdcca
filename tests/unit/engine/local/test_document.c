/* JSON documents of images: their fields, and what is no document. */
#include "unit.h"

#include "base/arena.h"
#include "base/memory.h"
#include "engine/local/document.h"

static void test_documents(void **state)
{
    (void)state;
    struct arena arena;
    size_t count;
    arena_init(&arena);
    assert_null(document_read(TEXT("{\"a\":"), false, &arena));
    const struct doc *doc = document_read(
        TEXT("{\"s\":\"x\",\"n\":7,\"b\":true,\"l\":[\"p\",1,\"q\"]}"), false, &arena);
    assert_string_equal(document_string(doc, "s"), "x");
    assert_string_equal(document_string(doc, "n"), "");
    assert_string_equal(document_string(doc, "absent"), "");
    assert_int_equal(document_int(doc, "n"), 7);
    assert_int_equal(document_int(doc, "s"), 0);
    assert_true(document_bool(doc, "b"));
    assert_false(document_bool(doc, "n"));
    const char *const *list = document_strings(doc, "l", &arena, &count);
    assert_int_equal(count, 2);
    assert_string_equal(list[1], "q");
    document_strings(doc, "absent", &arena, &count);
    assert_int_equal(count, 0);
    assert_string_equal(document_string(NULL, "s"), "");
    static const char *const NUMBERS[] = {"0", "65535", "65537", "-1", "\"7\"", "7.5"};
    static const uint16_t WANTED[] = {0, 65535, 0, 0, 0, 0};
    for (size_t i = 0; i < COUNT_OF(NUMBERS); i++)
        assert_int_equal(document_u16(document_read(text_of(NUMBERS[i]), false, &arena)),
                         WANTED[i]);
    assert_int_equal(document_u16(NULL), 0);
    arena_release(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_documents),
};
UNIT_FILE(tests, NULL, NULL);
