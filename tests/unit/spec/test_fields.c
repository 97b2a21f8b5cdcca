/* Every limit that spec.h states: what just fits is read, one more is refused with a reason. */
#include "parse.h"
#include "unit.h"

#include <string.h>

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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_same_problems), cmocka_unit_test(test_bytes),
    cmocka_unit_test(test_names),         cmocka_unit_test(test_roles),
    cmocka_unit_test(test_tasks),         cmocka_unit_test(test_ports),
    cmocka_unit_test(test_lists),         cmocka_unit_test(test_texts),
    cmocka_unit_test(test_numbers),
};
UNIT_FILE(tests, NULL, NULL);
