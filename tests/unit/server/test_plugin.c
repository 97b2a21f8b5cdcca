/* Plugins of a job become shell text. */
#include "unit.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "server/container.h"

static void plugins_become_shell_text(void **state)
{
    const char *worker[] = {"worker"};
    struct spec_plugin plugins[] = {
        {.name = "cmd",
         .parameters_json = "{\"preCommands\":[\"before <% $secrets.k %>\"],"
                            "\"postCommands\":[\"after\"]}"},
        {.name = "cmd",
         .parameters_json = "{\"callbacks\":[{\"event\":\"taskStarts\",\"commands\":[\"c1\"]},"
                            "{\"event\":\"taskSucceeds\",\"commands\":[\"c2\"]}]}",
         .roles = worker,
         .role_count = 1,
         .is_failure_ignored = true},
        {.name = "git",
         .parameters_json = "{\"repo_uri\":\"https://x/y'z\",\"clone_dir\":\"d\"}",
         .roles = worker,
         .role_count = 1},
        {.name = "tensorboard",
         .parameters_json = "{\"port\":\"7000\",\"logdir\":{\"a\":\"/a\",\"b\":\"/b\"}}",
         .roles = worker,
         .role_count = 1},
        {.name = "ssh",
         .parameters_json = "{\"userssh\":{\"type\":\"custom\",\"value\":\" ssh-rsa AAA me \"}}"},
        {.name = "ssh", .parameters_json = "{\"userssh\":\"ssh-rsa BBB you\"}"},
    };
    struct spec_pair secret = {"k", "a\"b"};
    struct spec spec = {.plugins = plugins, .plugin_count = COUNT_OF(plugins)};
    struct spec_role role = {.name = "server"};
    struct plugin_text text = {0};
    struct err err;
    (void)state;

    assert_int_equal(plugin_write(&spec, &role, &secret, 1, &text, &err), 0);
    assert_string_equal(buf_cstr(&text.pre), "before a\"b\n");
    assert_string_equal(buf_cstr(&text.post), "after\n");
    assert_string_equal(buf_cstr(&text.authorized_keys), "ssh-rsa AAA me\nssh-rsa BBB you\n");
    plugin_text_release(&text);
    role.name = "worker";
    text = (struct plugin_text){0};
    assert_int_equal(plugin_write(&spec, &role, &secret, 1, &text, &err), 0);
    assert_non_null(strstr(buf_cstr(&text.pre), "(\nc1\n) || echo"));
    const char *second = strstr(buf_cstr(&text.post), "(\nc2\n) || echo");
    assert_non_null(second);
    assert_non_null(strstr(second, "after\n")); /* of the first plugin */
    assert_non_null(
        strstr(buf_cstr(&text.pre), "git clone -- 'https://x/y'\\''z' 'd'; then break"));
    assert_non_null(strstr(buf_cstr(&text.pre), "'plugin git: the image has no git'"));
    assert_non_null(strstr(buf_cstr(&text.pre), "command -v tensorboard >/dev/null 2>&1 || {"));
    assert_non_null(strstr(buf_cstr(&text.pre), "--logdir_spec='a:/a,b:/b' --port='7000' "));
    plugin_text_release(&text);

    /* without a port of its own TensorBoard has the task's of that label, and else OpenPAI's */
    struct spec_port ports[] = {{.label = "http", .count = 1},
                                {.label = "tensorboard", .count = 2}};
    plugins[3].parameters_json = "{\"logdir\":{\"a\":\"/a\"}}";
    role.ports = ports;
    role.port_count = COUNT_OF(ports);
    text = (struct plugin_text){0};
    assert_int_equal(plugin_write(&spec, &role, &secret, 1, &text, &err), 0);
    assert_non_null(strstr(buf_cstr(&text.pre),
                           " --port=\"${PAI_CONTAINER_HOST_tensorboard_PORT_LIST%%,*}\" <"));
    plugin_text_release(&text);
    role.port_count = 1;
    text = (struct plugin_text){0};
    assert_int_equal(plugin_write(&spec, &role, &secret, 1, &text, &err), 0);
    assert_non_null(strstr(buf_cstr(&text.pre), " --port='6006' <"));
    plugin_text_release(&text);
    plugins[0].parameters_json = "{";
    text = (struct plugin_text){0};
    assert_int_equal(plugin_write(&spec, &role, &secret, 1, &text, &err), ERR_CORRUPT);
    plugin_text_release(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(plugins_become_shell_text),
};
UNIT_FILE(tests, NULL, NULL);
