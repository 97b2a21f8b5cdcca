#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/list_cut.h"

enum { SEEN_MAX = 8 };

struct seen {
    struct buf items; /* with | behind each */
    size_t count, most;
};

static bool item_see(void *context, struct text item)
{
    struct seen *seen = context;
    buf_text(&seen->items, item);
    buf_char(&seen->items, '|');
    return ++seen->count < seen->most;
}

/* The items and the metadata of a list that comes in pieces of `step` bytes; or why not. */
static int cut_run(const char *list, size_t step, size_t most, char *out, size_t room)
{
    struct seen seen = {.items = BUF_INIT, .most = most};
    struct list_cut cut = {.context = &seen, .item = item_see};
    struct text rest = text_of(list), metadata;
    struct err err = {0};
    bool goes_on = true;
    while (goes_on && rest.length > 0) {
        const size_t length = rest.length < step ? rest.length : step;
        goes_on = list_cut_take(&cut, (struct text){rest.at, length});
        rest = (struct text){rest.at + length, rest.length - length};
    }
    const int code = list_cut_end(&cut, &metadata, &err);
    assert_true((code == 0) == (err.text[0] == '\0'));
    snprintf(out, room, "%s%.*s", buf_cstr(&seen.items), TEXT_ARG(metadata));
    list_cut_clear(&cut);
    assert_ptr_equal(cut.context, &seen);
    assert_int_equal(cut.state, LIST_CUT_BEGIN);
    buf_release(&seen.items);
    return code;
}

static void objects_come_whole_however_they_are_cut(void **state)
{
    (void)state;
    static const struct {
        const char *list, *out;
    } CASES[] = {
        {" {\"kind\":\"L]}ist\",\"n\": 12 ,\"metadata\" : {\"continue\":\"a}b\"},\n\"items\": [ "
         "{\"a\":\"]}\\\"\"} ,\n{\"b\":[1,{}]}\t] , \"m\":[{\"c\":1}]}\n",
         "{\"a\":\"]}\\\"\"}|{\"b\":[1,{}]}|{\"continue\":\"a}b\"}"},
        {"{\"items\":[],\"metadata\":{}}", "{}"},
        {"{\"metadata\":{},\"items\":null}", "{}"},
        {"{\"items\":null,\"metadata\":{\"x\":1},\"metadata\":{}}", "{}"},
    };
    char out[256];
    for (size_t i = 0; i < COUNT_OF(CASES); i++)
        for (size_t step = 1; step <= strlen(CASES[i].list); step++) {
            assert_int_equal(cut_run(CASES[i].list, step, SEEN_MAX, out, sizeof out), 0);
            assert_string_equal(out, CASES[i].out);
        }
}

static void what_is_no_whole_list_is_refused(void **state)
{
    (void)state;
    static const char *const NONE[] = {
        "",
        "[]",
        "{}",
        "{\"metadata\":{}}",
        "{\"metadata\":{},\"items\":[]",
        "{\"metadata\":{},\"items\":[{]",
        "{\"metadata\":{},\"items\":[{}",
        "{\"metadata\":{},\"items\":[7]}",
        "{\"metadata\":{},\"items\":[]}x",
        "{\"metadata\":[],\"items\":[]}",
        "{\"metadata\":null,\"items\":[]}",
        "{\"items\":[]}",
        "{\"items\" []}",
        "{\"items\":}",
        "{\"items\":,}",
        "{\"items\":]}",
        "{\"items\"::}",
        "{items:[]}",
        "<html>sign in first</html>",
    };
    char out[256];
    for (size_t i = 0; i < COUNT_OF(NONE); i++)
        for (size_t step = 1; step < 99; step += 98)
            if (cut_run(NONE[i], step, SEEN_MAX, out, sizeof out) != ERR_CORRUPT)
                fail_msg("%s", NONE[i]);
}

static void whoever_wants_no_more_gets_no_more(void **state)
{
    (void)state;
    char out[256];
    assert_int_equal(
        cut_run("{\"metadata\":{},\"items\":[{},{\"a\":1},{}]}", 99, 2, out, sizeof out),
        ERR_CORRUPT);
    assert_string_equal(out, "{}|{\"a\":1}|{}");
}

/* Of what is not wanted nothing is kept, however large it is. */
static void an_object_may_not_be_larger_than_any_is(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
        int code;
    } CASES[] = {
        {"{\"metadata\":{},\"items\":[{\"a\":\"", "\"}]}", ERR_TOO_BIG},
        {"{\"items\":[],\"metadata\":{\"a\":\"", "\"}}", ERR_TOO_BIG},
        {"{\"metadata\":{},\"items\":[],\"more\":\"", "\"}", 0},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        cleanup_buf struct buf list = BUF_INIT;
        char out[8];
        buf_string(&list, CASES[i].before);
        for (size_t j = 0; j <= LIST_CUT_BYTES_MAX / 64; j++)
            buf_string(&list, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
        buf_string(&list, CASES[i].after);
        assert_int_equal(cut_run(buf_cstr(&list), 16384, SEEN_MAX, out, sizeof out), CASES[i].code);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(objects_come_whole_however_they_are_cut),
    cmocka_unit_test(what_is_no_whole_list_is_refused),
    cmocka_unit_test(whoever_wants_no_more_gets_no_more),
    cmocka_unit_test(an_object_may_not_be_larger_than_any_is),
};

UNIT_FILE(tests, NULL, NULL);
