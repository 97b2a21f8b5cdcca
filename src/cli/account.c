#include "cli/account.h"
#include "cli/print.h"
#include <stdlib.h>
#include <string.h>

int account_run(struct cli *cli, const struct account_action *actions)
{
    const char *name = cli->arguments[0];
    int count = cli->argument_count - 1;
    for (; actions->name; actions++) {
        if (strcmp(actions->name, name) != 0)
            continue;
        if (count < actions->min || (actions->max >= 0 && count > actions->max))
            return cli_fail(EXIT_USAGE, "%s %s: wrong number of names; see: skep help %s",
                            cli->command->name, name, cli->command->name);
        struct client *client = cli_client(cli);
        return client ? actions->run(cli, client) : EXIT_REFUSED;
    }
    return cli_fail(EXIT_USAGE, "%s: unknown action '%s'; see: skep help %s", cli->command->name,
                    name, cli->command->name);
}

void account_path(struct buf *path, const char *kind, const char *name, const char *rest)
{
    buf_format(path, "/api/v2/%s/", kind);
    client_encode(path, name);
    buf_string(path, rest);
}

int account_send(struct client *client, const char *method, const char *path, json_t *body,
                 const char *done, const char *what)
{
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    bool is_bad = body && !text;
    json_decref(body);
    if (is_bad)
        return cli_fail(EXIT_USAGE, "names and texts must be UTF-8");
    int code =
        client_call(client,
                    &(struct client_request){.method = method,
                                             .path = path,
                                             .content_type = text ? "application/json" : NULL,
                                             .body = text_of(text)},
                    NULL);
    if (text)
        explicit_bzero(text, strlen(text)); /* there may be a password in it */
    free(text);
    if (!code)
        printf("%s %s\n", done, what);
    return code;
}

json_t *names_split(const char *list)
{
    json_t *names = json_array();
    struct text rest = text_of(list);
    while (rest.length) {
        struct text name = text_trim(text_cut(&rest, ','));
        if (name.length)
            json_array_append_new(names, json_stringn(name.at, name.length));
    }
    return names;
}

const char *account_joined(const json_t *names, struct buf *out)
{
    buf_clear(out);
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        buf_format(out, "%s%s", i ? "," : "", name ? name : "");
    }
    return buf_cstr(out);
}

int account_choice(const struct cli *cli, const char *key, json_t *body, const char *field)
{
    const char *value = cli_value(cli, key);
    if (!value)
        return 0;
    bool is_yes = strcmp(value, "yes") == 0;
    if (!is_yes && strcmp(value, "no") != 0)
        return cli_fail(EXIT_USAGE, "--%s must be yes or no, got '%s'", key, value);
    json_object_set_new(body, field, json_boolean(is_yes));
    return 0;
}
