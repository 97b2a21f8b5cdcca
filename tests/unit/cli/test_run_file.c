/* `skep run`: a command line becomes a job file. */
#include "line.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/run_file.h"

static void test_run_file(void **state)
{
    (void)state;
    struct cli cli;
    struct buf file = BUF_INIT;
    assert_int_equal(parse(&cli, "run --image debian --memory 64 --vc vc1 echo it's $HOME"), 0);
    assert_int_equal(run_file(&cli, &file), 0);
    json_t *json = json_loadb(buf_cstr(&file), file.length, 0, NULL);
    const json_t *role = json_object_get(json_object_get(json, "taskRoles"), "main");
    assert_string_equal(json_string_value(json_array_get(json_object_get(role, "commands"), 0)),
                        "echo 'it'\\''s' '$HOME'");
    assert_int_equal(field_int(json_object_get(role, "extraContainerOptions"), "shmMB"), 33);
    assert_string_equal(field_text(json_object_get(json, "defaults"), "virtualCluster"), "vc1");
    assert_int_equal(strncmp(field_text(json, "name"), "run-", 4), 0);
    assert_int_equal(field_int(json, "protocolVersion"), 2);
    json_decref(json);
    mem_free(cli.arguments);
    assert_int_equal(parse(&cli, "run echo"), 0);
    assert_int_equal(run_file(&cli, &file), EXIT_USAGE);
    mem_free(cli.arguments);
    buf_release(&file);
}

static void messages_are_asked_for(void **state)
{
    (void)state;
    struct cli cli;
    struct buf file = BUF_INIT;
    assert_int_equal(
        parse(&cli, "run --image debian --priority prod --notify failed,succeeded echo"), 0);
    assert_int_equal(run_file(&cli, &file), 0);
    json_t *json = json_loadb(buf_cstr(&file), file.length, 0, NULL);
    const json_t *extras = json_object_get(json, "extras");
    const json_t *asked = json_object_get(extras, "jobStatusChangeNotification");
    assert_int_equal(json_object_size(asked), 2);
    assert_true(json_is_true(json_object_get(asked, "succeeded")));
    assert_true(json_is_true(json_object_get(asked, "failed")));
    assert_non_null(json_object_get(extras, "hivedScheduler"));
    json_decref(json);
    mem_free(cli.arguments);
    static const char *const wrong[] = {"run --image debian --notify failed,stops echo",
                                        "run --image debian --notify failed, echo"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        buf_clear(&file);
        assert_int_equal(parse(&cli, wrong[i]), 0);
        assert_int_equal(run_file(&cli, &file), EXIT_USAGE);
        mem_free(cli.arguments);
    }
    buf_release(&file);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_run_file),
    cmocka_unit_test(messages_are_asked_for),
};
UNIT_FILE(tests, NULL, NULL);
