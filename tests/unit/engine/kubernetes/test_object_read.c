#include "unit.h"

#include <string.h>

#include "base/buf.h"
#include "doc/doc.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/object_read.h"
#include "scratch.h"

/* In the order in which an API server writes it. */
#define HEAD                                                                                       \
    "\"kind\": \"Pod\", \"metadata\": {\"name\": \"one-7\", \"namespace\": \"jobs\", \"uid\": "    \
    "\"u\", "                                                                                      \
    "\"resourceVersion\": \"12\", \"deletionTimestamp\": \"2026-11-29T10:00:00Z\", \"labels\": "   \
    "{\"a\": \"b\", \"skep.internal/attempt\": \"7\", \"skep.internal/instance\": \"one\"}, "      \
    "\"annotations\": {\"skep.internal/devices\": \"d\", \"skep.internal/job\": \"ann~\\\"j\""
#define TAIL "}}, \"spec\": {\"nodeName\": \"n1\", \"driver\": \"g\", \"containers\": [{}]}"

static void head_is(const struct doc *object)
{
    assert_non_null(object);
    assert_string_equal(object_string(object, "metadata.name"), "one-7");
    assert_string_equal(object_string(object, "metadata.uid"), "u");
    assert_string_equal(object_string(object, "metadata.resourceVersion"), "12");
    assert_true(object_string(object, "metadata.deletionTimestamp")[0]);
    assert_int_equal(object_attempt(object, "one").v, 7);
    assert_string_equal(object_note(object, OBJECT_NOTE_DEVICES), "d");
    assert_string_equal(object_note(object, OBJECT_NOTE_JOB), "ann~\"j");
}

static void what_can_be_read_is_whole(void **state)
{
    const char *trouble = "";
    (void)state;
    const struct doc *object = object_read(TEXT("{" HEAD TAIL "}"), &arena, &trouble);
    head_is(object);
    assert_null(trouble);
    assert_int_equal(doc_count(object_at(object, "spec.containers")), 1);
    const struct doc *event =
        object_event_read(TEXT("{\"type\": \"BOOKMARK\", \"object\": {}}"), &arena, &trouble);
    assert_null(trouble);
    assert_string_equal(object_string(event, "type"), "BOOKMARK");
}

static void of_what_cannot_be_read_its_head_is(void **state)
{
    cleanup_buf struct buf deep = BUF_INIT;
    const char *trouble;
    (void)state;
    buf_string(&deep, "{" HEAD TAIL ", \"status\": ");
    for (int i = 0; i < DOC_DEPTH_MAX; i++)
        buf_char(&deep, '[');
    for (int i = 0; i < DOC_DEPTH_MAX; i++)
        buf_char(&deep, ']');
    buf_char(&deep, '}');
    const struct text all[] = {
        buf_as_text(&deep),
        TEXT("{" HEAD TAIL ", \"status\": {\"a\": 1, \"a\": 2}}"),
        TEXT("{" HEAD TAIL ", \"status\": no}"),
        TEXT("{\"kind\": no, " HEAD TAIL "}"),
        TEXT("{" HEAD TAIL ", \"metadata\": {\"name\": \"another\"}}"),
    };
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        const struct doc *object = object_read(all[i], &arena, &trouble);
        head_is(object);
        assert_string_equal(object_string(object, "spec.nodeName"), "n1");
        assert_string_equal(object_string(object, "spec.driver"), "g");
        assert_null(object_at(object, "spec.containers"));
        assert_true(trouble && trouble[0]);
    }
}

/* Wherever it is cut, what is read of it is true. */
static void a_text_that_is_cut_off_has_a_head(void **state)
{
    static const char whole[] = "{\"type\": \"ADDED\", \"object\": {" HEAD;
    const struct text text = TEXT(whole);
    size_t known = 0;
    (void)state;
    for (size_t length = 1; length <= text.length; length++) {
        const char *trouble;
        const struct doc *event =
            object_event_read((struct text){text.at, length}, &arena, &trouble);
        assert_true(trouble && trouble[0]);
        if (!event)
            continue;
        known++;
        assert_string_equal(object_string(event, "type"), "ADDED");
        assert_string_equal(object_string(event, "object.metadata.name"), "one-7");
        assert_string_equal(object_string(event, "object.metadata.uid"), "u");
        const uint64_t attempt = object_attempt(object_at(event, "object"), "one").v;
        assert_true(attempt == 0 || attempt == 7);
    }
    assert_true(known > strlen("\"resourceVersion\": \"12\""));
    const char *trouble;
    head_is(object_at(object_event_read(text, &arena, &trouble), "object"));
}

static void what_has_no_name_is_nothing(void **state)
{
    static const char *const all[] = {
        "",
        "garbage",
        "{",
        "{\"metadata\"",
        "{\"metadata\": 7, \"a\": }",
        "{\"metadata\": {\"name\": \"n\"}, \"a\": }",
        "{\"metadata\": {\"uid\": \"u\"}, \"a\": }",
        "{\"metadata\": {\"name\": 7, \"uid\": \"u\"}, \"a\": }",
        "{\"metadata\": {\"name\": \"\\x\", \"uid\": \"u\"}, \"a\": }",
        "[{\"metadata\": {\"name\": \"n\", \"uid\": \"u\"}}, }",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        const char *trouble = NULL;
        const struct doc *object = object_read(text_of(all[i]), &arena, &trouble);
        if (object) /* an empty text is a null */
            assert_int_equal(object->kind, DOC_NULL);
        else
            assert_true(trouble && trouble[0]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(what_can_be_read_is_whole, setup, teardown),
    cmocka_unit_test_setup_teardown(of_what_cannot_be_read_its_head_is, setup, teardown),
    cmocka_unit_test_setup_teardown(a_text_that_is_cut_off_has_a_head, setup, teardown),
    cmocka_unit_test_setup_teardown(what_has_no_name_is_nothing, setup, teardown),
};

UNIT_FILE(tests, NULL, NULL);
