/* A set of variables, written as a shell script. */
#include "env_world.h"
#include "unit.h"

#include "base/buf.h"
#include "base/memory.h"
#include "init/env.h"
#include "init/job_file.h"

static void script_quotes(void **state)
{
    (void)state;
    struct fixture f;
    struct job_file job = job_of(JOB_FILE_V2);
    struct buf script = BUF_INIT;
    begin(&f, &job, &TASK);
    env_set(&f.env, "ODD", "it's $HOME");
    env_set(&f.env, "not-a-name", "x");
    env_write_script(&f.env, &script);
    assert_non_null(strstr(buf_cstr(&script), "export ODD='it'\\''s $HOME'\n"));
    assert_null(strstr(buf_cstr(&script), "not-a-name"));
    buf_release(&script);
    finish(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(script_quotes),
};
UNIT_FILE(tests, NULL, NULL);
