#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "engine/kubernetes/object.h"

static const struct doc *json(struct arena *arena, const char *text)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, arena);
    const struct doc *doc = doc_parse(text_of(text), DOC_JSON, arena, &problems);
    assert_non_null(doc);
    return doc;
}

static void a_name_is_its_instance_and_attempt(void **state)
{
    (void)state;
    char name[OBJECT_NAME_SIZE];
    object_name(name, "skep", (struct attempt_id){7});
    assert_string_equal(name, "skep-7");
    object_name(name, "a234567890b234567890c234567890d234567890", (struct attempt_id){UINT64_MAX});
    assert_string_equal(name, "a234567890b234567890c234567890d234567890-18446744073709551615");
    assert_true(strlen(name) <= 63);
}

static void instances_are_dns_labels(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "skep", "skep-2",
                                       "a234567890b234567890c234567890d234567890"};
    static const char *const bad[] = {
        "",       "2skep",  "-skep", "skep-", "Skep",
        "skep.x", "skep_x", "s kep", "skep{", "a234567890b234567890c234567890d2345678901"};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(object_instance_is_good(text_of(good[i])));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(object_instance_is_good(text_of(bad[i])));
}

static void a_value_of_a_query_is_encoded(void **state)
{
    (void)state;
    cleanup_buf struct buf out = BUF_INIT;
    object_encode(&out, "azAZ09-._~ /+=&{[\x7f\xc3\xa9");
    assert_string_equal(buf_cstr(&out), "azAZ09-._~%20%2F%2B%3D%26%7B%5B%7F%C3%A9");
}

static void labels_tell_whose_pod_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *labels;
        uint64_t attempt;
    } cases[] = {
        {"{\"skep.internal/instance\":\"skep\",\"skep.internal/attempt\":\"12\"}", 12},
        {"{\"skep.internal/instance\":\"other\",\"skep.internal/attempt\":\"12\"}", 0},
        {"{\"skep.internal/instance\":\"skep\",\"skep.internal/attempt\":\"0\"}", 0},
        {"{\"skep.internal/instance\":\"skep\",\"skep.internal/attempt\":\"-4\"}", 0},
        {"{\"skep.internal/instance\":\"skep\",\"skep.internal/attempt\":\"x\"}", 0},
        {"{\"skep.internal/instance\":\"skep\",\"skep.internal/attempt\":12}", 0},
        {"{\"skep.internal/instance\":\"skep\"}", 0},
        {"{}", 0},
        {"null", 0},
    };
    cleanup_arena struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *text = arena_format(&arena, "{\"metadata\":{\"labels\":%s}}", cases[i].labels);
        assert_int_equal(object_attempt(json(&arena, text), "skep").v, cases[i].attempt);
    }
}

static void values_are_found_by_path(void **state)
{
    (void)state;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    const struct doc *doc = json(&arena, "{\"a\":{\"b\":{\"c\":\"x\"},\"n\":3}}");
    assert_string_equal(object_string(doc, "a.b.c"), "x");
    assert_string_equal(object_string(doc, "a.n"), "");
    assert_string_equal(object_string(doc, "a.b.c.d"), "");
    assert_string_equal(object_string(doc, "z"), "");
    assert_string_equal(object_string(NULL, "a"), "");
    assert_int_equal(object_at(doc, "a.n")->as.integer, 3);
}

static void a_missing_right_is_no_quota(void **state)
{
    (void)state;
    assert_true(object_is_right_missing(
        TEXT("{\"message\":\"pods is forbidden: User \\\"skep\\\" cannot create resource\"}")));
    assert_false(object_is_right_missing(
        TEXT("{\"message\":\"pods \\\"a\\\" is forbidden: exceeded quota: gpus\"}")));
    assert_false(object_is_right_missing(TEXT("{\"message\":\"User \\\"a\\\" is late\"}")));
    assert_false(object_is_right_missing(TEXT("")));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_name_is_its_instance_and_attempt),
    cmocka_unit_test(instances_are_dns_labels),
    cmocka_unit_test(a_value_of_a_query_is_encoded),
    cmocka_unit_test(labels_tell_whose_pod_it_is),
    cmocka_unit_test(values_are_found_by_path),
    cmocka_unit_test(a_missing_right_is_no_quota),
};

UNIT_FILE(tests, NULL, NULL);
