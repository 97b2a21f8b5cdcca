/* Job files of format 1. */
#include "parse.h"
#include "unit.h"

#include "base/err.h"
#include "base/memory.h"

static void test_v1(void **state)
{
    (void)state;
    struct parse p;
    parse(&p,
          "// early\n{\"jobName\": \"j1\", /* block */ \"image\": \"img\",\n"
          " \"taskRoles\": [{\"name\": \"main\", \"command\": \"true\", \"taskNumber\": \"2\"}]}");
    assert_string_equal(buf_cstr(&p.report), "");
    assert_int_equal(p.spec->format, SPEC_V1);
    assert_string_equal(p.spec->name, "j1");
    assert_int_equal(p.spec->roles[0].instances, 2);
    assert_int_equal(p.spec->roles[0].shm_mib, 64);
    assert_int_equal(p.spec->roles[0].completion.min_succeeded, -1);
    assert_int_equal(spec_task_count(p.spec), 2);
    parse_free(&p);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_v1),
};
UNIT_FILE(tests, NULL, NULL);
