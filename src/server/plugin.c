/* plugin.c — shell text of the runtime plugins: cmd, git, tensorboard, ssh's further keys.
 *
 * Source of the rules: OpenPAI's runtime. A plugin's failure ends the task unless its failurePolicy
 * is `ignore`.
 */
#include "base/arena.h"
#include "base/err.h"
#include "doc/doc.h"
#include "server/container.h"
#include "sys/secret.h"
#include <string.h>

static bool is_for_role(const struct spec_plugin *plugin, const struct spec_role *role)
{
    if (!plugin->roles)
        return true;
    for (size_t i = 0; i < plugin->role_count; i++)
        if (strcmp(plugin->roles[i], role->name) == 0)
            return true;
    return false;
}

static void put_lines(struct buf *out, const struct doc *commands)
{
    if (!commands || commands->kind != DOC_LIST)
        return;
    for (size_t i = 0; i < commands->as.list.count; i++) {
        const struct doc *command = commands->as.list.items[i];
        if (command->kind == DOC_STRING) {
            buf_text(out, command->as.string);
            buf_char(out, '\n');
        }
    }
}

static struct text string_of(const struct doc *doc)
{
    return doc && doc->kind == DOC_STRING ? doc->as.string : TEXT("");
}

static void write_cmd(const struct doc *parameters, struct buf *pre, struct buf *post)
{
    const struct doc *callbacks = doc_get(parameters, "callbacks");
    put_lines(pre, doc_get(parameters, "preCommands"));
    put_lines(post, doc_get(parameters, "postCommands"));
    for (size_t i = 0; callbacks && callbacks->kind == DOC_LIST && i < callbacks->as.list.count;
         i++) {
        const struct doc *callback = callbacks->as.list.items[i];
        struct text event = string_of(doc_get(callback, "event"));
        if (text_is(event, "taskStarts"))
            put_lines(pre, doc_get(callback, "commands"));
        else if (text_is(event, "taskSucceeds"))
            put_lines(post, doc_get(callback, "commands"));
    }
}

/* A plugin whose program the image lacks fails at once, and says so. */
static void put_need(struct buf *pre, const char *program, const char *plugin)
{
    buf_format(pre,
               "command -v %s >/dev/null 2>&1 || { echo 'plugin %s: the image has no %s' >&2; exit "
               "1; }\n",
               program, plugin, program);
}

/* Ten tries, the pauses doubling up to 300 s, as OpenPAI's. */
static void write_git(const struct doc *parameters, struct buf *pre)
{
    struct text directory = string_of(doc_get(parameters, "clone_dir"));
    const struct doc *options = doc_get(parameters, "options");
    put_need(pre, "git", "git");
    buf_string(pre, "skep_pause=1\nfor skep_try in 1 2 3 4 5 6 7 8 9 10; do\n  if git clone");
    for (size_t i = 0; options && options->kind == DOC_LIST && i < options->as.list.count; i++) {
        buf_char(pre, ' ');
        buf_shell_word(pre, string_of(options->as.list.items[i]));
    }
    buf_string(pre, " -- ");
    buf_shell_word(pre, string_of(doc_get(parameters, "repo_uri")));
    if (directory.length) {
        buf_char(pre, ' ');
        buf_shell_word(pre, directory);
    }
    buf_string(pre, "; then break; fi\n"
                    "  if [ $skep_try = 10 ]; then echo 'git clone failed ten times'; exit 1; fi\n"
                    "  sleep $skep_pause\n"
                    "  skep_pause=$((skep_pause * 2)); [ $skep_pause -le 300 ] || skep_pause=300\n"
                    "done\n");
}

/* At the port of the parameters; else at the task's own one of the label `tensorboard`, which web
 * ports can open and no other task of the node has; else at OpenPAI's default. */
static void write_tensorboard(const struct doc *parameters, const struct spec_role *role,
                              struct buf *pre)
{
    const struct doc *folders = doc_get(parameters, "logdir"), *port = doc_get(parameters, "port");
    cleanup_buf struct buf list = BUF_INIT;
    for (size_t i = 0; folders && folders->kind == DOC_MAP && i < folders->as.map.count; i++) {
        buf_string(&list, i ? "," : "");
        buf_text(&list, folders->as.map.entries[i].key);
        buf_char(&list, ':');
        buf_text(&list, string_of(folders->as.map.entries[i].value));
    }
    put_need(pre, "tensorboard", "tensorboard");
    buf_string(pre, "nohup tensorboard --bind_all --logdir_spec=");
    buf_shell_word(pre, buf_as_text(&list));
    buf_string(pre, " --port=");
    if (!port && spec_role_has_port(role, "tensorboard"))
        buf_string(pre, "\"${PAI_CONTAINER_HOST_tensorboard_PORT_LIST%%,*}\"");
    else
        buf_shell_word(pre, port ? port->source : TEXT("6006"));
    buf_string(pre, " </dev/null >/dev/null 2>&1 &\n");
}

static void write_ssh(const struct doc *parameters, struct buf *keys)
{
    const struct doc *user = doc_get(parameters, "userssh");
    const bool is_key = user && user->kind == DOC_STRING; /* before OpenPAI 1.0 */
    struct text value = text_trim(string_of(is_key ? user : doc_get(user, "value")));
    if (value.length) {
        buf_text(keys, value);
        buf_char(keys, '\n');
    }
}

/* In a shell of its own when its failure is to be ignored. */
static void put_part(struct buf *to, const struct buf *part, bool is_failure_ignored)
{
    if (part->length == 0)
        return;
    if (is_failure_ignored)
        buf_string(to, "(\n");
    buf_text(to, buf_as_text(part));
    if (is_failure_ignored)
        buf_string(to, ") || echo 'a plugin failed, ignored by its failurePolicy'\n");
}

static void wipe(struct buf *buf)
{
    if (buf->at)
        secret_wipe(buf->at, buf->room);
    buf_release(buf);
}

static int write_one(const struct spec_plugin *plugin, const struct spec_role *role,
                     const struct spec_pair *secrets, size_t count, struct plugin_text *text,
                     struct err *err)
{
    struct buf json = BUF_INIT, pre = BUF_INIT, post = BUF_INIT;
    int code = 0;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    cleanup_problems struct problems problems;
    problems_init(&problems, &arena);
    spec_render_secrets_json(text_of(plugin->parameters_json), secrets, count, &json);
    const struct doc *parameters = doc_parse(buf_as_text(&json), DOC_JSON, &arena, &problems);
    if (!parameters)
        code =
            err_fail(err, ERR_CORRUPT, "", "the parameters of plugin %s are damaged", plugin->name);
    else if (strcmp(plugin->name, "cmd") == 0)
        write_cmd(parameters, &pre, &post);
    else if (strcmp(plugin->name, "git") == 0)
        write_git(parameters, &pre);
    else if (strcmp(plugin->name, "tensorboard") == 0)
        write_tensorboard(parameters, role, &pre);
    else if (strcmp(plugin->name, "ssh") == 0)
        write_ssh(parameters, &text->authorized_keys);
    put_part(&text->pre, &pre, plugin->is_failure_ignored);
    struct buf later = text->post; /* what started first ends last */
    text->post = (struct buf)BUF_INIT;
    put_part(&text->post, &post, plugin->is_failure_ignored);
    buf_text(&text->post, buf_as_text(&later));
    wipe(&later);
    plugin_text_release(&(struct plugin_text){pre, post, json});
    return code;
}

int plugin_write(const struct spec *spec, const struct spec_role *role,
                 const struct spec_pair *secrets, size_t secret_count, struct plugin_text *text,
                 struct err *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < spec->plugin_count; i++)
        if (is_for_role(&spec->plugins[i], role))
            code = write_one(&spec->plugins[i], role, secrets, secret_count, text, err);
    return code;
}

void plugin_text_release(struct plugin_text *text)
{
    wipe(&text->pre);
    wipe(&text->post);
    wipe(&text->authorized_keys);
}
