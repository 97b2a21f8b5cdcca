/* Job files of both formats into one checked structure. */
#include "parse.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"

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

/* Names that differ in case or in signs alone are one in variables of the older kind. */
static void test_names_alike(void **state)
{
    (void)state;
    static const char *const others[] = {"AZ", "aZ", "a_z"};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct parse p;
        char text[500];
        snprintf(text, sizeof text,
                 "protocolVersion: 2\nname: j\ntype: job\nprerequisites:\n"
                 "- {name: i, type: dockerimage, uri: d}\ntaskRoles:\n"
                 "  az: &r {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}, "
                 "commands: [x]}\n  %s: *r\n",
                 others[i]);
        parse(&p, text);
        assert_int_equal(p.result, 0);
        assert_non_null(strstr(buf_cstr(&p.report), "cannot tell it from az"));
        parse_free(&p);
    }
}

static void test_formats(void **state)
{
    (void)state;
    is_wrong("", "job:1:1: must be a map, not null");
    is_wrong("{}", "job:1:1: jobName: is missing");
    is_wrong("{", "not valid JSON");
    is_wrong("{a", "not valid YAML");
    is_wrong("{\"a\": ", "not valid JSON");
    is_wrong("// a\n", "must be a map, not null");
    is_wrong("// a\n{x}", "not valid JSON");
    is_wrong("/", "not valid JSON");
    is_wrong("\xef\xbb\xbf {\"jobName\": 1}", "jobName: must be a string, not an integer");
    is_wrong("[]", "must be a map, not a list");
    is_wrong("{\"protocolVersion\": 2}", "name: is missing");
    is_wrong("{\"name\": \"x\"}", "protocolVersion: is missing");
    is_wrong("{\"taskRoles\": {}}", "protocolVersion: is missing");
    is_wrong("{\"taskRoles\": []}", "jobName: is missing");
    is_wrong("{\"jobName\": \"x\", \"image\": \"i\",}", "a comma before \"}\"");
    is_wrong("{jobName: x, image: i}", "a key in double quotes is expected");
    is_wrong("jobName: x\nimage: i\n", "of format 1 and must be JSON");
    is_wrong("{protocolVersion: 2, protocolVersion: 2}", "duplicate key");
    is_wrong("a\n---\nb\n", "only one document");
    struct parse p;
    parse(&p, "{protocolVersion: 2, name: x, type: job, extras: {debg: 1}, prerequisites: [{type: "
              "dockerimage, "
              "name: i, uri: u}], taskRoles: {w: {dockerImage: i, commands: [a],\n"
              " resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}}},}");
    assert_non_null(strstr(buf_cstr(&p.report), "warning: extras.debg: unknown field, ignored"));
    assert_non_null(p.spec);
    parse_free(&p);
}

/* A parse without `masked`, and problems that stood before do not count. */
static void test_caller(void **state)
{
    (void)state;
    struct arena scratch;
    struct problems problems;
    struct spec_parsed parsed = {0};
    arena_init(&scratch);
    problems_init(&problems, &scratch);
    problem_add(&problems, (struct place){1, 1}, "", "of another file");
    assert_int_equal(spec_parse(text_of(HELLO), &scratch, &parsed, &problems), 0);
    assert_non_null(parsed.spec);
    assert_int_equal(parsed.secret_count, 0);
    spec_free(parsed.spec);
    problems_release(&problems);
    arena_release(&scratch);
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_hello),    cmocka_unit_test(test_names_alike),
    cmocka_unit_test(test_formats),  cmocka_unit_test(test_caller),
    cmocka_unit_test(test_problems),
};
UNIT_FILE(tests, NULL, NULL);
