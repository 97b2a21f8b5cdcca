/* Job files of both formats into one checked structure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "spec/spec.h"

/* One parse and everything that it gives. */
struct parse {
    struct arena scratch;
    struct problems problems;
    struct spec_parsed parsed;
    struct buf masked, report;
    const struct spec *spec;
    int result;
};

static void parse_free(struct parse *parse)
{
    spec_free(parse->parsed.spec);
    problems_release(&parse->problems);
    buf_release(&parse->masked);
    buf_release(&parse->report);
    arena_release(&parse->scratch);
}

static void parse_text(struct parse *parse, struct text source)
{
    *parse = (struct parse){0};
    arena_init(&parse->scratch);
    problems_init(&parse->problems, &parse->scratch);
    parse->parsed.masked = &parse->masked;
    parse->result = spec_parse(source, &parse->scratch, &parse->parsed, &parse->problems);
    parse->spec = parse->parsed.spec;
    problems_print(&parse->problems, "job", &parse->report);
}

static void parse(struct parse *parse, const char *source)
{
    parse_text(parse, text_of(source));
}

#define HELLO                                                                                      \
    "protocolVersion: 2\n"                                                                         \
    "name: hello\n"                                                                                \
    "type: job\n"                                                                                  \
    "prerequisites:\n"                                                                             \
    "  - {type: dockerimage, name: debian, uri: debian:12}\n"                                      \
    "taskRoles:\n"                                                                                 \
    "  worker:\n"                                                                                  \
    "    dockerImage: debian\n"                                                                    \
    "    resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 0}\n"                                   \
    "    commands:\n"                                                                              \
    "      - echo hello\n"

static void test_hello(void **state)
{
    (void)state;
    struct parse p;
    parse(&p, HELLO);
    assert_string_equal(buf_cstr(&p.report), "");
    assert_int_equal(p.result, 0);
    assert_int_equal(p.spec->format, SPEC_V2);
    assert_string_equal(p.spec->name, "hello");
    assert_string_equal(p.spec->virtual_cluster, "default");
    assert_int_equal(p.spec->priority, SPEC_TEST);
    assert_false(p.spec->has_priority);
    assert_true(p.spec->is_gang);
    assert_true(p.spec->ignores_suggested_nodes);
    assert_int_equal(p.spec->image_count, 1);
    assert_string_equal(p.spec->images[0].uri, "debian:12");
    assert_null(p.spec->images[0].auth);
    assert_int_equal(p.spec->role_count, 1);
    const struct spec_role *role = &p.spec->roles[0];
    assert_string_equal(role->name, "worker");
    assert_string_equal(role->command, "echo hello");
    assert_int_equal(role->instances, 1);
    assert_int_equal(role->cpu, 1);
    assert_int_equal(role->memory_mib, 128);
    assert_int_equal(role->shm_mib, 512);
    assert_int_equal(role->port_count, 2);
    assert_int_equal(role->completion.min_failed, 1);
    assert_int_equal(role->completion.min_succeeded, 1);
    assert_string_equal(buf_cstr(&p.masked), HELLO);
    parse_free(&p);
}

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

static void test_codec(void **state)
{
    (void)state;
    struct parse p;
    struct buf bytes = BUF_INIT, again = BUF_INIT;
    struct err err;
    parse(&p, HELLO);
    spec_encode(p.spec, &bytes);
    struct spec *copy = spec_decode(buf_as_text(&bytes), &err);
    assert_non_null(copy);
    assert_string_equal(copy->roles[0].command, "echo hello");
    spec_encode(copy, &again);
    assert_true(text_equal(buf_as_text(&bytes), buf_as_text(&again)));
    spec_free(copy);
    for (size_t i = 0; i < bytes.length; i++) {
        assert_null(spec_decode((struct text){bytes.at, i}, &err));
        assert_int_equal(err.code, ERR_CORRUPT);
    }
    buf_release(&bytes);
    buf_release(&again);
    parse_free(&p);
}

static void test_secrets(void **state)
{
    (void)state;
    struct parse p;
    struct buf out = BUF_INIT;
    parse(&p, HELLO "      - echo <% $secrets.token %>\nsecrets:\n  token: s3 # really\n\n# end\n");
    assert_string_equal(buf_cstr(&p.report), "");
    assert_string_equal(p.spec->roles[0].command, "echo hello\necho <% $secrets.token %>");
    assert_int_equal(p.parsed.secret_count, 1);
    spec_render_secrets(text_of(p.spec->roles[0].command), p.parsed.secrets, p.parsed.secret_count,
                        &out);
    assert_string_equal(buf_cstr(&out), "echo hello\necho s3");
    assert_string_equal(buf_cstr(&p.masked), HELLO
                        "      - echo <% $secrets.token %>\nsecrets:\n  \"******\"\n\n# end\n");
    buf_release(&out);
    parse_free(&p);
}

static void test_problems(void **state)
{
    (void)state;
    struct parse p;
    parse(&p, "protocolVersion: 2\nname: a b\ntype: jobb\nprerequisites:\n"
              "  - {type: dockerimage, name: debian, uri: x}\ntaskRoles:\n  w:\n"
              "    instance: 2\n    dockerImage: debain\n"
              "    resourcePerInstance: {cpu: 1.5, memoryMB: 128}\n    commands: ls\n");
    assert_string_equal(
        buf_cstr(&p.report),
        "job:2:7: name: may only have letters, digits, _ and -\n"
        "job:3:7: type: must be job\n"
        "job:8:5: taskRoles.w.instance: unknown field (did you mean instances?)\n"
        "job:9:18: taskRoles.w.dockerImage: names no prerequisite of type dockerimage (did you "
        "mean debian?)\n"
        "job:10:26: taskRoles.w.resourcePerInstance.gpu: is missing\n"
        "job:10:32: taskRoles.w.resourcePerInstance.cpu: must be an integer, not a number\n"
        "job:11:15: taskRoles.w.commands: must be a list of strings, not a string (begin the line "
        "with \"- \")\n");
    assert_null(p.spec);
    parse_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hello),    cmocka_unit_test(test_v1),
        cmocka_unit_test(test_codec),    cmocka_unit_test(test_secrets),
        cmocka_unit_test(test_problems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
