/* Job files of format 2: names from before OpenPAI 1.0, fields that are null, commands, and what
 * prerequisites require. */
#include "parse.h"
#include "unit.h"

#include "base/memory.h"

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
        assert_true(p.spec->roles[0].is_ssh_enabled); /* somebody wants to come in */
        assert_false(p.spec->roles[0].has_ssh_barrier);
        parse_free(&p);
        buf_release(&text);
    }
    static const char *const closed[] = {"{jobssh: false}", "{userssh: ' '}",
                                         "{userssh: {type: none, value: k}}",
                                         "{sshbarrier: true, userssh: {type: custom}}"};
    for (size_t i = 0; i < COUNT_OF(closed); i++) {
        struct buf text = BUF_INIT;
        struct parse p;
        buf_format(&text,
                   HEAD
                   "taskRoles:\n" WORKER
                   "extras: {com.microsoft.pai.runtimeplugin: [{plugin: ssh, parameters: %s}]}",
                   closed[i]);
        parse_text(&p, buf_as_text(&text));
        assert_int_equal(p.result, 0);
        assert_false(p.spec->roles[0].is_ssh_enabled);
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

/* A secret may stand in a password as often as there is room for its name. */
static void test_credentials(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct buf text = BUF_INIT;
        buf_string(&text, "protocolVersion: 2\nname: a\ntype: job\nprerequisites:\n"
                          "  - {type: dockerimage, name: debian, uri: u, auth: {username: bob,\n"
                          "     password: \"");
        for (int k = 0; k < 250; k++)
            buf_string(&text, "<%$secrets.x%>");
        buf_string(&text, "\"}}\nsecrets: {x: ");
        fill(&text, 'y', i == 0 ? 18 : 19);
        buf_string(&text, "}\ntaskRoles:\n  w:\n    dockerImage: debian\n" RESOURCES
                          "    commands: [a]\n");
        if (i == 0) {
            struct parse p;
            parse_text(&p, buf_as_text(&text));
            assert_non_null(p.spec);
            parse_free(&p);
        } else {
            refused(&text, "prerequisites.auth.password: longer than 8192 bytes with its secrets");
        }
        buf_release(&text);
    }
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_early_names),
    cmocka_unit_test(test_commands),
    cmocka_unit_test(test_credentials),
    cmocka_unit_test(test_requirements),
};
UNIT_FILE(tests, NULL, NULL);
