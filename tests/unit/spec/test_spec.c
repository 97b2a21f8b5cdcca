/* Job files of both formats into one checked structure. */
#include "parse.h"

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

/* What OpenPAI called things before 1.0, and fields that are there but null. */
static void test_early_names(void **state)
{
    static const char job[] = HEAD "taskRoles:\n" WORKER "extras:\n"
                                   "  submitFrom: null\n"
                                   "  storages: null\n"
                                   "  gangAllocation: null\n"
                                   "  hivedScheduler:\n"
                                   "    jobPriorityClass: null\n"
                                   "    lazyPreemptionEnable: null\n"
                                   "    taskRoles: {worker: {%s}}\n"
                                   "  com.microsoft.pai.runtimeplugin:\n"
                                   "  - {plugin: ssh, parameters: {userssh: ssh-rsa AAA me}}\n";
    static const struct {
        const char *placement, *sku_type, *pinned_cell_id;
    } cases[] = {
        {"gpuType: K80, gpuNumber: 1, reservationId: null", "K80", ""},
        {"gpuType: K80, skuType: null", "K80", ""},
        {"gpuType: K80, skuType: P100", "P100", ""},
        {"gpuType: null, reservationId: node-1", "", "node-1"},
        {"skuType: null, skuNum: 1", "", ""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buf text = BUF_INIT;
        struct parse p;
        buf_format(&text, job, cases[i].placement);
        parse_text(&p, buf_as_text(&text));
        assert_string_equal(buf_cstr(&p.report), "");
        assert_string_equal(p.spec->roles[0].placement.sku_type, cases[i].sku_type);
        assert_string_equal(p.spec->roles[0].placement.pinned_cell_id, cases[i].pinned_cell_id);
        assert_true(p.spec->is_gang);
        assert_false(p.spec->has_priority);
        assert_false(p.spec->wants_default_storages);
        assert_string_equal(p.spec->plugins[0].parameters_json, "{\"userssh\":\"ssh-rsa AAA me\"}");
        parse_free(&p);
        buf_release(&text);
    }
    is_wrong(HEAD "taskRoles:\n" WORKER
                  "extras: {hivedScheduler: {taskRoles: {worker: {gpuType: a, reservationId: b}}}}",
             "skuType and pinnedCellId exclude each other");
    is_right(HEAD "taskRoles:\n" WORKER "deployments:\n"
                  "- {name: d, version: 1.0, protocolVersion: 2, taskRoles: {worker: {preCommands: "
                  "[a]}}}\n");
    is_right(HEAD "taskRoles:\n" WORKER "extras: {hivedScheduler: null, "
                  "com.microsoft.pai.runtimeplugin: null}");
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
    spec_free(NULL);
    for (size_t i = 0; i < bytes.length; i++) {
        assert_null(spec_decode((struct text){bytes.at, i}, &err));
        assert_int_equal(err.code, ERR_CORRUPT);
    }
    buf_char(&again, 'x');
    assert_null(spec_decode(buf_as_text(&again), &err));
    again.at[0] = 99;
    assert_null(spec_decode(buf_as_text(&again), &err));
    assert_string_equal(err.text, "stored job specification has version 99, not 1 to 3");
    buf_release(&bytes);
    buf_release(&again);
    parse_free(&p);
}

/* Every byte changed in several ways: refused, or read as something sound. */
static void test_codec_damaged(void **state)
{
    (void)state;
    static const unsigned char changes[] = {0x01, 0x02, 0x10, 0x80, 0xff};
    struct parse p;
    struct buf bytes = BUF_INIT, again = BUF_INIT;
    struct err err;
    unsigned refused = 0;
    parse(&p, HELLO "extras:\n  storages: [{name: a}]\n"
                    "  com.microsoft.pai.runtimeplugin: [{plugin: ssh, taskroles: [worker]}]\n");
    assert_non_null(p.spec);
    spec_encode(p.spec, &bytes);
    for (size_t i = 0; i < bytes.length; i++)
        for (size_t j = 0; j < COUNT_OF(changes); j++) {
            bytes.at[i] = (char)(bytes.at[i] ^ changes[j]);
            struct spec *spec = spec_decode(buf_as_text(&bytes), &err);
            if (spec) {
                buf_clear(&again);
                spec_encode(spec, &again);
                assert_true(spec->roles[0].image < spec->image_count);
                assert_true(text_equal(buf_as_text(&bytes), buf_as_text(&again)));
            } else {
                refused++;
            }
            spec_free(spec);
            bytes.at[i] = (char)(bytes.at[i] ^ changes[j]);
        }
    assert_true(refused > bytes.length);
    buf_release(&bytes);
    buf_release(&again);
    parse_free(&p);
}

/* What the decoder must refuse although every field by itself is well formed. */
static void test_codec_unsound(void **state)
{
    (void)state;
    struct parse p;
    struct err err;
    parse(&p, HELLO);
    struct spec spec = *p.spec;
    struct spec_role role = p.spec->roles[0], many[3];
    struct spec_port ports[1] = {{.label = "p", .count = 1}};
    spec.roles = &role;
    for (int i = 0; i < 6; i++) {
        struct buf bytes = BUF_INIT;
        spec.role_count = 1;
        spec.roles = &role;
        role = p.spec->roles[0];
        switch (i) {
        case 0:
            role.image = 1;
            break;
        case 1:
            role.instances = 0;
            break;
        case 2:
            role.instances = SPEC_INSTANCES_MAX + 1;
            break;
        case 3:
            role.port_count = SPEC_PORTS_MAX + 1;
            role.ports = mem_zero(role.port_count, sizeof *role.ports);
            for (size_t j = 0; j < role.port_count; j++)
                role.ports[j] = ports[0];
            break;
        case 4:
            spec.role_count = 0;
            break;
        default:
            role.instances = SPEC_INSTANCES_MAX;
            many[0] = many[1] = many[2] = role;
            spec.roles = many;
            spec.role_count = 3;
            break;
        }
        spec_encode(&spec, &bytes);
        assert_null(spec_decode(buf_as_text(&bytes), &err));
        assert_string_equal(err.text, "stored job specification is damaged");
        if (i == 3)
            mem_free(role.ports);
        buf_release(&bytes);
    }
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

static void rendered_is(const char *value, const char *expected, bool is_json)
{
    static const struct spec_pair secrets[] = {
        {"a", "A"}, {"list.0.b", "deep"}, {"quote", "a\"b\\c\n"}, {"ab", "AB"}, {"a.b", "dotted"}};
    struct buf out = BUF_INIT;
    if (is_json)
        spec_render_secrets_json(text_of(value), secrets, COUNT_OF(secrets), &out);
    else
        spec_render_secrets(text_of(value), secrets, COUNT_OF(secrets), &out);
    assert_string_equal(buf_cstr(&out), expected);
    buf_release(&out);
}

static void test_render(void **state)
{
    (void)state;
    rendered_is("", "", false);
    rendered_is("<% $secrets.a %><%$secrets.ab%>", "AAB", false);
    rendered_is("<% $secrets.list[0].b %> <% $secrets.list.0.b %> <% $secrets.a.b %>",
                "deep deep dotted", false);
    rendered_is("<% $secrets.list[0] %> <% $secrets.list[0]b %>",
                "<% $secrets.list[0] %> <% $secrets.list[0]b %>", false);
    rendered_is("<% $secrets.abc %> <% $secrets %> <% $secrets. %> <% $secrets.[0] %>",
                "<% $secrets.abc %> <% $secrets %> <% $secrets. %> <% $secrets.[0] %>", false);
    rendered_is("<% $secrets.a.b.c %> <% $secrets.list.1.b %> <% $secrets.a",
                "<% $secrets.a.b.c %> <% $secrets.list.1.b %> <% $secrets.a", false);
    rendered_is("<% $parameters.a %> %> <%> <%", "<% $parameters.a %> %> <%> <%", false);
    rendered_is("<% x <% $secrets.a %>", "<% x A", false);
    rendered_is("<% $secrets.quote %>", "a\"b\\c\n", false);
    rendered_is("{\"x\": \"<% $secrets.quote %>\"}", "{\"x\": \"a\\\"b\\\\c\\n\"}", true);
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

static void masked_is(const char *source, const char *expected)
{
    struct parse p;
    parse(&p, source);
    assert_string_equal(buf_cstr(&p.report), "");
    assert_string_equal(buf_cstr(&p.masked), expected);
    assert_null(strstr(buf_cstr(&p.masked), "pw"));
    parse_free(&p);
}

/* However the block is written, its value goes and everything else stays. */
static void test_masks(void **state)
{
    (void)state;
    masked_is(HELLO "secrets: {a: pw}\n", HELLO "secrets: \"******\"\n");
    masked_is(HELLO "secrets: {a: pw}", HELLO "secrets: \"******\"");
    masked_is(HELLO "secrets: {a: pw} # pw\n", HELLO "secrets: \"******\"\n");
    masked_is(HELLO "secrets:\n  a: pw", HELLO "secrets:\n  \"******\"");
    masked_is(HELLO "secrets:\n  a: |\n    pw\n    pw\n\n\n", HELLO "secrets:\n  \"******\"\n\n\n");
    masked_is(HELLO "secrets:\n  a: >+\n    pw\n\n# c\n", HELLO "secrets:\n  \"******\"\n\n# c\n");
    masked_is(HELLO "secrets:\n  a: pw\n   # pw\n\n # pw\n\n# c\n",
              HELLO "secrets:\n  \"******\"\n\n# c\n");
    masked_is(HELLO "secrets: # c\n  # pw\n\n  # pw\n  a: pw\n",
              HELLO "secrets: # c\n  \"******\"\n");
    masked_is(HELLO "secrets:\n\n\n  a: pw\n", HELLO "secrets:\n\n\n  \"******\"\n");
    masked_is(HELLO "secrets:\r\n  # pw\r\n  a: pw\r\n  # pw\r\n",
              HELLO "secrets:\r\n  \"******\"\r\n");
    masked_is(HELLO "secrets:\r  # pw\r  a: pw\r  # pw\r# c", HELLO "secrets:\r  \"******\"\r# c");
    masked_is(HELLO "? secrets\n: a: pw\n  b: pw\n", HELLO "? secrets\n: \"******\"\n");
    masked_is(HELLO "secrets: !!map\n  a: pw\n", HELLO "secrets: \"******\"\n");
    masked_is(HELLO "secrets: {}\n", HELLO "secrets: \"******\"\n");
    masked_is(HELLO "secrets:\n", HELLO "secrets:\n");
    masked_is(HELLO "secrets:\n  a: 'p\xc3\xa9pw'\nversion: '\xc3\xa9'\n",
              HELLO "secrets:\n  \"******\"\nversion: '\xc3\xa9'\n");
    masked_is("secrets:\n  a: pw\n" HELLO, "secrets:\n  \"******\"\n" HELLO);
    masked_is("# secrets: a\nsecrets: {a: pw,\n  b: [pw]}   \n" HELLO
              "parameters: {secrets: {a: b}}\n",
              "# secrets: a\nsecrets: \"******\"   \n" HELLO "parameters: {secrets: {a: b}}\n");
}

static void test_secrets_wrong(void **state)
{
    (void)state;
    is_wrong(HELLO "secrets: {a: &x b}\n", "no anchors, aliases and merge keys here");
    is_wrong("parameters: {a: &x pw}\n" HELLO "secrets: {a: *x}\n", "no anchors");
    is_wrong("parameters: &x {a: pw}\n" HELLO "secrets: *x\n", "no anchors");
    is_wrong("parameters: &x {a: pw}\n" HELLO "secrets: {<<: *x}\n", "no anchors");
    is_wrong(HELLO "secrets: {a: [[{b: &x c}]]}\n", "no anchors");
    is_wrong(HELLO "secrets: [a]\n", "secrets: must be a map, not a list");
    is_wrong(HELLO "secrets: \"******\"\n", "this is a stored copy: write the secrets in again");
    is_wrong(HELLO "secrets: {a: \"b\\0c\"}\n", "secrets.a: must not hold a NUL character");
    is_wrong(HELLO "secrets: {a: b}\nsecrets: {a: b}\n", "duplicate key \"secrets\"");
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
        cmocka_unit_test(test_hello),         cmocka_unit_test(test_v1),
        cmocka_unit_test(test_codec),         cmocka_unit_test(test_codec_damaged),
        cmocka_unit_test(test_codec_unsound), cmocka_unit_test(test_secrets),
        cmocka_unit_test(test_early_names),   cmocka_unit_test(test_render),
        cmocka_unit_test(test_formats),       cmocka_unit_test(test_caller),
        cmocka_unit_test(test_masks),         cmocka_unit_test(test_secrets_wrong),
        cmocka_unit_test(test_problems),
    };
    int failed = cmocka_run_group_tests_name("spec", tests, NULL, NULL);
    return failed + test_limits() + test_mask() + test_mutations();
}
