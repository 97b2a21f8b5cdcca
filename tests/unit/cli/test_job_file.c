/* A copy's file differs from the original in its name alone. */
#include "unit.h"

#include "base/buf.h"
#include "base/memory.h"
#include "cli/job_file.h"

static void becomes(const char *source, const char *name, const char *wanted)
{
    cleanup_buf struct buf out = BUF_INIT;
    assert_true(job_file_rename(text_of(source), name, &out));
    assert_string_equal(buf_cstr(&out), wanted);
}

static void the_name_alone_is_changed(void **state)
{
    (void)state;
    becomes("# a\nname: train   # of lr\nx: {name: train}\n", "new",
            "# a\nname: \"new\"   # of lr\nx: {name: train}\n");
    becomes("x: 1\nname: 'train'", "new", "x: 1\nname: \"new\"");
    becomes("{\"name\": \"train\", \"x\": 1}", "new", "{\"name\": \"new\", \"x\": 1}");
    becomes("{ // of early PAI\n  \"jobName\": \"train\" /* here */, \"name\": \"x\"}", "new",
            "{ // of early PAI\n  \"jobName\": \"new\" /* here */, \"name\": \"x\"}");
    becomes("name: >-\n  train\n\nx: 1\n", "new", "name: \"new\"\n\nx: 1\n");
    /* what the server refuses at its line, and no other text of the file */
    becomes("name: a\n", "b\"\nx: 1", "name: \"b\\\"\\nx: 1\"\n");
}

static void names_are_counted_on(void **state)
{
    (void)state;
    becomes("name: train\n", NULL, "name: \"train_2\"\n");
    becomes("name: train_2\n", NULL, "name: \"train_3\"\n");
    becomes("name: train_99\n", NULL, "name: \"train_100\"\n");
    becomes("name: train2\n", NULL, "name: \"train2_2\"\n");
    becomes("name: _7\n", NULL, "name: \"_8\"\n");
    becomes("name: a_1234567890\n", NULL, "name: \"a_1234567890_2\"\n");
    becomes("name: '7'\n", NULL, "name: \"7_2\"\n");
}

static void what_has_no_name_is_refused(void **state)
{
    static const char *const sources[] = {"", "x: 1\n", "name: [a]\n", "name: 7\n", "name: 'a\n"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sources); i++) {
        cleanup_buf struct buf out = BUF_INIT;
        assert_false(job_file_rename(text_of(sources[i]), "new", &out));
        assert_int_equal(out.length, 0);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_name_alone_is_changed),
    cmocka_unit_test(names_are_counted_on),
    cmocka_unit_test(what_has_no_name_is_refused),
};
UNIT_FILE(tests, NULL, NULL);
