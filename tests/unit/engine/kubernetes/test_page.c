#include "unit.h"

#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/page.h"

static void objects_come_one_by_one(void **state)
{
    (void)state;
    struct page page;
    struct text item;
    assert_int_equal(
        page_open(
            TEXT("{\"kind\":\"PodList\",\"n\":12, \"metadata\" : {\"resourceVersion\":\"7\"},\n"
                 "\"items\": [ {\"a\":\"]}\\\"\"} ,\n{\"b\":[1,{}]}\t] }\n"),
            &page, NULL),
        0);
    assert_true(text_is(page.metadata, "{\"resourceVersion\":\"7\"}"));
    assert_true(page_next(&page, &item));
    assert_true(text_is(item, "{\"a\":\"]}\\\"\"}"));
    assert_true(page_next(&page, &item));
    assert_true(text_is(item, "{\"b\":[1,{}]}"));
    assert_false(page_next(&page, &item));
    assert_false(page_next(&page, &item));
}

static void a_list_may_be_empty(void **state)
{
    (void)state;
    static const char *const empty[] = {"{\"metadata\":{},\"items\":[]}",
                                        "{\"items\":null,\"metadata\":{}}",
                                        "{\"metadata\":{},\"items\":[  ]}"};
    for (size_t i = 0; i < COUNT_OF(empty); i++) {
        struct page page;
        struct text item;
        assert_int_equal(page_open(text_of(empty[i]), &page, NULL), 0);
        assert_false(page_next(&page, &item));
    }
}

/* A list that is cut anywhere is refused as a whole: half of the pods are not all pods. */
static void a_cut_list_is_refused(void **state)
{
    (void)state;
    static const char whole[] = "{\"k\":\"v\",\"n\":1,\"metadata\":{\"continue\":\"x\"},\"items\":["
                                "{\"a\":\"b\"},{\"c\":[]}]}";
    struct page page;
    for (size_t length = 0; length < sizeof whole - 1; length++) {
        struct err err = {0};
        assert_int_equal(page_open((struct text){whole, length}, &page, &err), ERR_CORRUPT);
        assert_non_null(strstr(err.text, "no whole list"));
    }
    assert_int_equal(page_open(TEXT(whole), &page, NULL), 0);
}

static void what_is_no_list_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "[]",
        "null",
        "{}",
        "{\"metadata\":{}}",
        "{\"items\":[]}",
        "{\"metadata\":3,\"items\":[]}",
        "{\"metadata\":{},\"items\":3}",
        "{metadata:{},\"items\":[]}",
        "{\"metadata\" {},\"items\":[]}",
        "{\"metadata\":{},\"items\":[]",
        "{\"metadata\":{},\"items\":[]]",
        "<html>",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct page page;
        assert_int_equal(page_open(text_of(bad[i]), &page, NULL), ERR_CORRUPT);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(objects_come_one_by_one),
    cmocka_unit_test(a_list_may_be_empty),
    cmocka_unit_test(a_cut_list_is_refused),
    cmocka_unit_test(what_is_no_list_is_refused),
};

UNIT_FILE(tests, NULL, NULL);
