/* Every limit that spec.h states: what just fits is read, one more is refused with a reason. */
#include "parse.h"

#include <stdio.h>
#include <string.h>

static void fits(struct buf *text)
{
    struct parse p;
    parse_text(&p, buf_as_text(text));
    if (!p.spec)
        fail_msg("%.500s", buf_cstr(&p.report));
    parse_free(&p);
    buf_clear(text);
}

static void refused(struct buf *text, const char *message)
{
    is_wrong(buf_cstr(text), message);
    buf_clear(text);
}

static void fill(struct buf *text, char c, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_char(text, c);
}

/* Errors of one file do not hide those of the next. */
static void test_same_problems(void **state)
{
    (void)state;
    struct parse p;
    parse(&p, "{\"jobName\": 1}");
    const size_t errors = p.problems.error_count, count = p.problems.count;
    assert_true(errors > 0);
    for (size_t round = 0; round < 2; round++) {
        struct spec_parsed again = {0};
        assert_int_not_equal(spec_parse(TEXT("{\"jobName\": 1}"), &p.scratch, &again, &p.problems),
                             0);
        assert_null(again.spec);
    }
    assert_int_equal(p.problems.error_count, errors);
    assert_int_equal(p.problems.count, count);
    parse_free(&p);
}

static void test_bytes(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    for (size_t more = 0; more < 2; more++) {
        buf_string(&text, HELLO "#");
        fill(&text, 'x', SPEC_BYTES_MAX + more - text.length);
        if (more)
            refused(&text, "the file has 1048577 bytes, at most 1048576 allowed");
        else
            fits(&text);
    }
    buf_release(&text);
}

static void test_names(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    for (size_t length = SPEC_NAME_MAX; length <= SPEC_NAME_MAX + 1; length++) {
        bool is_fit = length == SPEC_NAME_MAX;
        buf_string(&text, "protocolVersion: 2\ntype: job\nname: ");
        fill(&text, 'n', length);
        buf_string(&text, "\nprerequisites: [{type: dockerimage, name: debian, uri: u}]\n"
                          "taskRoles:\n" WORKER);
        if (is_fit)
            fits(&text);
        else
            refused(&text, "name: must be at most 255 bytes, not 256");
        buf_string(&text, HEAD "taskRoles:\n  ");
        fill(&text, 'r', length);
        buf_string(&text, ":\n    dockerImage: debian\n" RESOURCES "    commands: [a]\n");
        if (is_fit)
            fits(&text);
        else
            refused(&text, "the name of a role has at most 255 bytes");
        if (is_fit) { /* the place of a problem names the role whole */
            buf_string(&text, HEAD "taskRoles:\n  ");
            fill(&text, 'r', length);
            buf_string(&text, ":\n    dockerImage: debian\n" RESOURCES "    commands: [a, ");
            fill(&text, 'c', SPEC_COMMAND_MAX);
            buf_string(&text, "]\n");
            refused(&text, "r.commands[1]");
        }
        buf_string(&text,
                   "{\"jobName\": \"a\", \"image\": \"i\", \"taskRoles\": [{\"command\": \"c\", "
                   "\"name\": \"");
        fill(&text, 'r', length);
        buf_string(&text, "\"}]}");
        if (is_fit)
            fits(&text);
        else
            refused(&text, "taskRoles[0].name: must be at most 255 bytes, not 256");
    }
    buf_release(&text);
}

static void test_roles(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    for (int count = SPEC_ROLES_MAX; count <= SPEC_ROLES_MAX + 1; count++) {
        bool is_fit = count == SPEC_ROLES_MAX;
        buf_string(&text, HEAD "taskRoles:\n");
        for (int i = 0; i < count; i++)
            buf_format(&text, "  r%d:\n    dockerImage: debian\n" RESOURCES "    commands: [a]\n",
                       i);
        if (is_fit)
            fits(&text);
        else
            refused(&text, "taskRoles: must be at most 256 entries, not 257");
        buf_string(&text, "{\"jobName\": \"a\", \"image\": \"i\", \"taskRoles\": [");
        for (int i = 0; i < count; i++)
            buf_format(&text, "%s{\"name\": \"r%d\", \"command\": \"c\"}", i ? "," : "", i);
        buf_string(&text, "]}");
        if (is_fit)
            fits(&text);
        else
            refused(&text, "taskRoles: must be at most 256 items, not 257");
    }
    buf_release(&text);
}

static void test_tasks(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    buf_string(&text, HELLO "    instances: 10000\n  v:\n    instances: 10000\n"
                            "    dockerImage: debian\n" RESOURCES "    commands: [a]\n");
    struct buf more = BUF_INIT;
    buf_string(&more, buf_cstr(&text));
    fits(&text);
    buf_string(&more, "  u:\n    dockerImage: debian\n" RESOURCES "    commands: [a]\n");
    refused(&more, "taskRoles: more than 20000 tasks in all");
    is_wrong(HELLO "    instances: 10001\n",
             "taskRoles.worker.instances: must be at most 10000, not 10001");
    is_wrong(
        "{\"jobName\": \"a\", \"image\": \"i\", \"taskRoles\": [{\"name\": \"r\", \"command\": "
        "\"c\", \"taskNumber\": 10001}]}",
        "taskRoles[0].taskNumber: must be at most 10000, not 10001");
    buf_release(&text);
    buf_release(&more);
}

static void ports_try(const char *ports, const char *message)
{
    struct buf text = BUF_INIT;
    buf_format(&text,
               HEAD "taskRoles:\n  w:\n    dockerImage: debian\n    commands: [a]\n"
                    "    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0, ports: {%s}}\n",
               ports);
    if (message)
        refused(&text, message);
    else
        fits(&text);
    buf_release(&text);
}

static void test_ports(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    ports_try("a: 998", NULL);
    ports_try("ssh: 500, http: 500", NULL);
    ports_try("a: 999", "ports: more than 1000 ports with ssh and http");
    ports_try("a: 1001", "ports.a: must be at most 1000, not 1001");
    ports_try("a: 0", "ports.a: must be at least 1, not 0");
    for (int i = 0; i < 1200; i++)
        buf_format(&text, "%sp%d: 1", i ? ", " : "", i);
    ports_try(buf_cstr(&text), "ports: more than 1000 ports with ssh and http");
    buf_clear(&text);
    buf_string(&text, "{\"jobName\": \"a\", \"image\": \"i\", \"taskRoles\": [{\"name\": \"r\", "
                      "\"command\": \"c\", \"portList\": [");
    for (int i = 0; i < SPEC_LIST_MAX + 5; i++)
        buf_format(&text, "%s{\"label\": \"p%d\"}", i ? "," : "", i);
    buf_string(&text, "]}]}");
    refused(&text, "portList: must be at most 256 items, not 261");
    buf_release(&text);
}

/* `count` items of a list inside a job file. */
static void list_try(const char *before, const char *item, const char *after, int count,
                     const char *message)
{
    struct buf text = BUF_INIT;
    buf_string(&text, before);
    for (int i = 0; i < count; i++) {
        const char *rest = item;
        for (const char *hash; (hash = strchr(rest, '#')); rest = hash + 1) {
            buf_add(&text, rest, (size_t)(hash - rest));
            buf_format(&text, "%d", i);
        }
        buf_string(&text, rest);
    }
    buf_string(&text, after);
    if (message)
        refused(&text, message);
    else
        fits(&text);
    buf_release(&text);
}

static void test_lists(void **state)
{
    (void)state;
    const struct {
        const char *before, *item, *after, *message;
        int offset; /* items that `before` has already */
    } lists[] = {
        {HEAD, "  - {type: script, name: s#}\n", "taskRoles:\n" WORKER,
         "prerequisites: must be at most 256 items, not 257", 1},
        {HELLO "deployments:\n", "  - {name: d#, taskRoles: {}}\n", "",
         "deployments: must be at most 256 items, not 257", 0},
        {HELLO "extras:\n  storages:\n", "    - {name: s#}\n", "",
         "extras.storages: must be at most 256 items, not 257", 0},
        {HELLO "secrets:\n", "  s#: x\n", "", "secrets: too many secrets", 0},
        {HELLO "    prerequisites:\n", "      - debian\n", "",
         "taskRoles.worker.prerequisites: must be at most 256 items, not 257", 0},
        {HELLO "extras:\n  com.microsoft.pai.runtimeplugin:\n", "    - {plugin: cmd}\n", "",
         "runtimeplugin: must be at most 256 items, not 257", 0},
        {HELLO "extras:\n  com.microsoft.pai.runtimeplugin:\n    - plugin: cmd\n      taskroles:\n",
         "        - worker\n", "", "taskroles: must be at most 256 items, not 257", 0},
        {HELLO "extras:\n  com.microsoft.pai.runtimeplugin:\n    - plugin: teamwise_storage\n"
               "      parameters:\n        storageConfigNames:\n",
         "          - s#\n", "", "storageConfigNames: must be at most 256 items, not 257", 0},
        {"{\"jobName\": \"a\", \"image\": \"i\", \"jobEnvs\": {\"first\": 1", ", \"E#\": 1",
         "}, \"taskRoles\": [{\"name\": \"r\", \"command\": \"c\"}]}",
         "jobEnvs: more than 256 variables", 1},
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        int most = SPEC_LIST_MAX - lists[i].offset;
        list_try(lists[i].before, lists[i].item, lists[i].after, most, NULL);
        list_try(lists[i].before, lists[i].item, lists[i].after, most + 1, lists[i].message);
    }
    list_try(HEAD "  - {type: script, name: s, require: [debian]}\n"
                  "  - type: data\n    name: d\n    require:\n",
             "      - debian\n", "taskRoles:\n" WORKER, SPEC_LIST_MAX + 1,
             "prerequisites[2].require: must be at most 256 items, not 257");
    list_try(HELLO "secrets: {a: [", "x,", "]}\n", 300, "secrets: too many secrets");
    list_try(HELLO "extras:\n  storages:\n", "    - {name: s#}\n",
             "  com.microsoft.pai.runtimeplugin:\n    - plugin: teamwise_storage\n", 5, NULL);
    list_try(HELLO "      - b\n", "      - x\n", "", SPEC_LINES_MAX,
             "taskRoles.worker.commands: must be at most 100000 items, not 100002");
}

/* Two old storage plugins together, and a map of placements longer than the roles. */
static void test_extras(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    buf_string(&text, HELLO "extras:\n  com.microsoft.pai.runtimeplugin:\n");
    for (int plugin = 0; plugin < 2; plugin++) {
        buf_string(&text, "    - {plugin: teamwise_storage, parameters: {storageConfigNames: [");
        for (int i = 0; i < 200; i++)
            buf_format(&text, "s%d, ", plugin * 200 + i);
        buf_string(&text, "]}}\n");
    }
    refused(&text, "more than 256 storages");
    buf_string(&text, HELLO "extras:\n  hivedScheduler:\n    taskRoles:\n      worker: {}\n");
    for (int i = 0; i < SPEC_ROLES_MAX; i++)
        buf_format(&text, "      r%d: {}\n", i);
    refused(&text, "extras.hivedScheduler.taskRoles: must be at most 256 entries, not 257");
    buf_release(&text);
}

static void test_plugins(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    /* 17 prerequisites with plugins in each of 256 roles */
    buf_string(&text, HEAD);
    for (int i = 0; i < 17; i++)
        buf_format(&text, "  - {type: data, name: d%d, plugin: cmd}\n", i);
    buf_string(&text, "taskRoles:\n");
    for (int i = 0; i < SPEC_ROLES_MAX; i++) {
        buf_format(&text,
                   "  r%d:\n    dockerImage: debian\n" RESOURCES
                   "    commands: [a]\n    prerequisites: [",
                   i);
        for (int j = 0; j < 17; j++)
            buf_format(&text, "d%d,", j);
        buf_string(&text, "]\n");
    }
    refused(&text, "more than 4096 plugins in all roles");
    /* parameters of one plugin: its JSON, rendered, secrets counted */
    for (size_t more = 0; more < 2; more++) {
        buf_string(&text, HELLO "extras:\n  com.microsoft.pai.runtimeplugin:\n"
                                "    - {plugin: tensorboard, parameters: {logdir: {a: ");
        fill(&text, 'x', SPEC_PARAMETERS_MAX - strlen("{\"logdir\":{\"a\":\"\"}}") + more);
        buf_string(&text, "}}}\n");
        if (more)
            refused(&text, "[0].parameters: longer than 65536 bytes");
        else
            fits(&text);
    }
    buf_string(&text, HELLO "parameters: {p: ");
    fill(&text, 'x', 40000);
    buf_string(&text, "}\nextras:\n  com.microsoft.pai.runtimeplugin:\n    - plugin: cmd\n"
                      "      parameters: {preCommands: [\"<% $parameters.p %>\", "
                      "\"<% $parameters.p %>\"]}\n");
    refused(&text, "[0].parameters: longer than 65536 bytes");
    buf_string(&text, HEAD "  - {type: data, name: d, plugin: cmd, what: &long ");
    fill(&text, 'x', SPEC_PARAMETERS_MAX);
    buf_string(&text, "}\ntaskRoles:\n" WORKER "    prerequisites: [d]\n");
    refused(&text, "prerequisites[1]: longer than 65536 bytes");
    /* all parameters together */
    buf_string(&text, HELLO "parameters: {p: ");
    fill(&text, 'x', 60000);
    buf_string(&text, "}\nextras:\n  com.microsoft.pai.runtimeplugin:\n");
    for (int i = 0; i < 70; i++)
        buf_string(&text,
                   "    - {plugin: cmd, parameters: {preCommands: [\"<% $parameters.p %>\"]}}\n");
    refused(&text, "all parameters are longer than 4194304 bytes");
    buf_release(&text);
}

static void test_commands(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    for (size_t more = 0; more < 2; more++) {
        buf_string(&text, HELLO "      - ");
        fill(&text, 'x', SPEC_COMMAND_MAX - strlen("echo hello\n") + more);
        if (more)
            refused(&text, "the role's command is longer than 262144 bytes");
        else
            fits(&text);
        buf_string(&text,
                   "{\"jobName\": \"a\", \"image\": \"i\", \"taskRoles\": [{\"name\": \"r\", "
                   "\"command\": \"");
        fill(&text, 'x', SPEC_COMMAND_MAX + more);
        buf_string(&text, "\"}]}");
        if (more)
            refused(&text, "command: must be at most 262144 bytes, not 262145");
        else
            fits(&text);
    }
    /* a small text that stands for a large one: by templates, lists of them, and secrets */
    char line[9000];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\0';
    for (size_t i = 0; i < 2; i++) {
        buf_string(&text, HELLO);
        for (int j = 0; j < 40; j++)
            buf_string(&text, "      - <% $parameters.p %>\n");
        buf_string(&text, "parameters: {p: ");
        if (i == 0)
            buf_format(&text, "%s}\n", line);
        else
            buf_format(&text, "[%s, %s, %s]}\n", line, line, line);
        refused(&text, "the role's command is longer than 262144 bytes");
    }
    buf_string(&text, HELLO);
    for (int j = 0; j < 40; j++)
        buf_string(&text, "      - <% $secrets.p %>\n");
    buf_format(&text, "secrets: {p: %s}\n", line);
    refused(&text, "the role's command is longer than 262144 bytes");
    /* a secret counts with its own length, to the byte, though it is put in later */
    for (size_t more = 0; more < 2; more++) {
        buf_string(&text, HELLO "      - <% $secrets.p %>");
        fill(&text, 'x', SPEC_COMMAND_MAX - strlen("echo hello\n<% $secrets.p %>abc") + more);
        buf_string(&text, "\nsecrets: {p: abc}\n");
        if (more)
            refused(&text, "the role's command is longer than 262144 bytes");
        else
            fits(&text);
    }
    /* before and behind the role's own commands */
    for (int i = 0; i < 2; i++) {
        buf_format(&text, HELLO "deployments:\n  - {name: d, taskRoles: {worker: {%s: [\"",
                   i ? "preCommands" : "postCommands");
        fill(&text, 'y', SPEC_COMMAND_MAX + 1);
        buf_string(&text, "\"]}}}\ndefaults: {deployment: d}\n");
        refused(&text, "Commands[0]: the role's command is longer than 262144 bytes");
    }
    /* all roles together */
    buf_string(&text, HEAD "parameters: {p: ");
    fill(&text, 'x', 200000);
    buf_string(&text, "}\ntaskRoles:\n");
    for (int i = 0; i < 22; i++)
        buf_format(&text,
                   "  r%d:\n    dockerImage: debian\n" RESOURCES
                   "    commands: [\"<%% $parameters.p %%>\"]\n",
                   i);
    refused(&text, "the commands of all roles are longer than 4194304 bytes");
    is_wrong(HELLO "      - <% $parameters.p %>\nparameters: {p: \"a\\0b\"}\n",
             "must not hold a NUL character");
    buf_release(&text);
}

static void test_texts(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    for (size_t more = 0; more < 2; more++) {
        buf_string(&text, HELLO "secrets: {a: ");
        fill(&text, 'x', SPEC_SECRET_MAX + more);
        buf_string(&text, "}\n");
        if (more)
            refused(&text, "secrets.a: longer than 65536 bytes");
        else
            fits(&text);
        buf_string(&text, HELLO "secrets: {");
        fill(&text, 'k', SPEC_NAME_MAX - strlen("secrets") + more);
        buf_string(&text, ": x}\n");
        if (more)
            refused(&text, "the name of a secret is too long");
        else
            fits(&text);
        buf_string(&text, "{\"jobName\": \"a\", \"image\": \"");
        fill(&text, 'i', SPEC_URI_MAX + more);
        buf_string(&text, "\", \"taskRoles\": [{\"name\": \"r\", \"command\": \"c\"}]}");
        if (more)
            refused(&text, "image: must be at most 4096 bytes, not 4097");
        else
            fits(&text);
        buf_string(&text, HELLO "description: ");
        fill(&text, 'd', SPEC_DESCRIPTION_MAX + more);
        if (more)
            refused(&text, "description: must be at most 65536 bytes, not 65537");
        else
            fits(&text);
        buf_string(&text, HELLO "extras:\n  submitFrom: ");
        fill(&text, 't', SPEC_NAME_MAX + more);
        if (more)
            refused(&text, "extras.submitFrom: must be at most 255 bytes, not 256");
        else
            fits(&text);
        buf_string(&text, HELLO "extras:\n  hivedScheduler: {taskRoles: {worker: {skuType: ");
        fill(&text, 't', SPEC_NAME_MAX + more);
        buf_string(&text, "}}}\n");
        if (more)
            refused(&text, "skuType: must be at most 255 bytes, not 256");
        else
            fits(&text);
        buf_string(&text, HELLO "extras:\n  storages: [{name: n, mountPath: ");
        fill(&text, 't', SPEC_URI_MAX + more);
        buf_string(&text, "}]\n");
        if (more)
            refused(&text, "mountPath: must be at most 4096 bytes, not 4097");
        else
            fits(&text);
        buf_string(&text, "{\"jobName\": \"a\", \"image\": \"i\", \"gpuType\": \"");
        fill(&text, 'g', SPEC_NAME_MAX + more);
        buf_string(&text,
                   "\", \"taskRoles\": [{\"name\": \"r\", \"command\": \"c\", \"gpuNumber\": 1}]}");
        if (more)
            refused(&text, "gpuType: must be at most 255 bytes, not 256");
        else
            fits(&text);
        buf_string(&text, "{\"jobName\": \"a\", \"image\": \"i\", \"jobEnvs\": {\"A\": [\"");
        fill(&text, 'g', SPEC_PARAMETERS_MAX - 4 + more);
        buf_string(&text, "\"]}, \"taskRoles\": [{\"name\": \"r\", \"command\": \"c\"}]}");
        if (more)
            refused(&text, "jobEnvs.A: longer than 65536 bytes");
        else
            fits(&text);
        buf_string(&text, "{\"jobName\": \"a\", \"image\": \"i\", \"jobEnvs\": {\"");
        fill(&text, 'E', SPEC_NAME_MAX + more);
        buf_string(&text, "\": 1}, \"taskRoles\": [{\"name\": \"r\", \"command\": \"c\"}]}");
        if (more)
            refused(&text,
                    "jobEnvs.EEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEE: "
                    "not a name that a variable can have");
        else
            fits(&text);
    }
    is_wrong(
        "{\"jobName\": \"a\", \"image\": \"i\", \"jobEnvs\": {\"a\\u0000b\": 1}, \"taskRoles\": "
        "[{\"name\": \"r\", \"command\": \"c\"}]}",
        "jobEnvs.ab: not a name that a variable can have");
    buf_release(&text);
}

static void test_numbers(void **state)
{
    (void)state;
    const struct {
        const char *resources, *message;
    } cases[] = {
        {"cpu: 100000, memoryMB: 1073741824, gpu: 10000", NULL},
        {"cpu: 100001, memoryMB: 1, gpu: 0", "cpu: must be at most 100000, not 100001"},
        {"cpu: 1, memoryMB: 1073741825, gpu: 0", "memoryMB: must be at most 1073741824"},
        {"cpu: 1, memoryMB: 1, gpu: 10001", "gpu: must be at most 10000, not 10001"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buf text = BUF_INIT;
        buf_format(&text,
                   HEAD "taskRoles:\n  w:\n    dockerImage: debian\n    commands: [a]\n"
                        "    resourcePerInstance: {%s}\n",
                   cases[i].resources);
        if (cases[i].message)
            refused(&text, cases[i].message);
        else
            fits(&text);
        buf_release(&text);
    }
    is_wrong(HELLO "jobRetryCount: 1000001\n", "jobRetryCount: must be at most 1000000");
}

/* A complete graph of requirements, in every role. */
static void test_requirements(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    buf_string(&text, HEAD);
    for (int i = 0; i < 200; i++) {
        buf_format(&text, "  - {type: script, name: s%d, require: [", i);
        for (int j = 0; j < i; j++)
            buf_format(&text, "s%d,", j);
        buf_string(&text, "]}\n");
    }
    buf_string(&text, "taskRoles:\n");
    for (int i = 0; i < 200; i++)
        buf_format(&text,
                   "  r%d:\n    dockerImage: debian\n" RESOURCES
                   "    commands: [a]\n    prerequisites: [s199]\n",
                   i);
    struct parse p;
    parse_text(&p, buf_as_text(&text));
    assert_non_null(p.spec);
    assert_int_equal(p.spec->roles[199].prerequisite_count, 200);
    assert_string_equal(p.spec->roles[199].prerequisites[0], "s0");
    parse_free(&p);
    buf_release(&text);
}

int test_limits(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_problems), cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_names),         cmocka_unit_test(test_roles),
        cmocka_unit_test(test_tasks),         cmocka_unit_test(test_ports),
        cmocka_unit_test(test_lists),         cmocka_unit_test(test_plugins),
        cmocka_unit_test(test_commands),      cmocka_unit_test(test_texts),
        cmocka_unit_test(test_numbers),       cmocka_unit_test(test_requirements),
        cmocka_unit_test(test_extras),
    };
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
