/* The limits of plugins and their parameters. */
#include "parse.h"
#include "unit.h"

#include <string.h>

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

/* Which roles have ssh, and for which an image without a server is no failure. */
static void test_ssh(void **state)
{
    (void)state;
    static const struct {
        const char *plugins;
        bool is_enabled, is_optional, has_barrier;
    } rows[] = {
        {"{plugin: ssh, parameters: {jobssh: true}}", true, false, false},
        {"{plugin: ssh, parameters: {jobssh: true, sshbarrier: true}, failurePolicy: ignore}", true,
         true, true},
        {"{plugin: ssh, parameters: {userssh: {value: ssh-ed25519 A}}}", true, false, false},
        {"{plugin: ssh, parameters: {userssh: {type: none, value: ssh-ed25519 A}}}", false, false,
         false},
        {"{plugin: ssh, parameters: {jobssh: true}}, {plugin: ssh, failurePolicy: ignore, "
         "parameters: {jobssh: true}}",
         true, false, false},
        {"{plugin: ssh, failurePolicy: ignore, parameters: {jobssh: true}}, {plugin: ssh, "
         "parameters: {jobssh: true}}",
         true, false, false},
        {"{plugin: ssh, parameters: {jobssh: false}}", false, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct buf text = BUF_INIT;
        struct parse p;
        buf_format(&text, HELLO "extras:\n  com.microsoft.pai.runtimeplugin: [%s]\n",
                   rows[i].plugins);
        parse_text(&p, buf_as_text(&text));
        assert_non_null(p.spec);
        assert_int_equal(p.spec->roles[0].is_ssh_enabled, rows[i].is_enabled);
        assert_int_equal(p.spec->roles[0].is_ssh_optional, rows[i].is_optional);
        assert_int_equal(p.spec->roles[0].has_ssh_barrier, rows[i].has_barrier);
        parse_free(&p);
        buf_release(&text);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_ssh),
    cmocka_unit_test(test_plugins),
};
UNIT_FILE(tests, NULL, NULL);
