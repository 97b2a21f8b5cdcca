/* context: the servers that were logged in to, and which of them is meant */
#include "base/err.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/context.h"
#include "cli/print.h"
#include <string.h>

static struct context *named(struct settings *settings, const char *name)
{
    struct context *context = settings_find(settings, name);
    if (!context)
        cli_fail(EXIT_REFUSED, "there is no context '%s'; see: skep context list", name);
    return context;
}

static json_t *contexts_json(struct settings *settings)
{
    json_t *list = json_array();
    for (size_t i = 0; i < settings->count; i++) {
        const struct context *context = &settings->contexts[i];
        json_array_append_new(list, json_pack("{s:s, s:s?, s:s?, s:b, s:b}", "name", context->name,
                                              "server", context->server, "user", context->user,
                                              "loggedIn", context->token != NULL, "current",
                                              context == settings_current(settings)));
    }
    return list;
}

static int context_list(struct cli *cli, struct settings *settings)
{
    static const char *const HEADS[] = {"CURRENT", "NAME", "SERVER", "USER", "LOGGED IN", NULL};
    cleanup_table struct table table;
    cleanup_buf struct buf out = BUF_INIT;
    table_init(&table, cli->has_colours, HEADS);
    if (cli->output == OUTPUT_JSON || cli->output == OUTPUT_YAML) {
        json_t *list = contexts_json(settings);
        print_raw(cli, list);
        json_decref(list);
        return 0;
    }
    for (size_t i = 0; i < settings->count; i++) {
        const struct context *context = &settings->contexts[i];
        table_cell(&table, context == settings_current(settings) ? "*" : " ");
        table_cell(&table, context->name);
        table_cell(&table, context->server);
        table_cell(&table, context->user);
        table_cell(&table, context->token ? "yes" : "no");
    }
    table_print(&table, &out);
    print_flush(&out);
    return 0;
}

static int settings_keep(const struct settings *settings)
{
    struct err err;
    return settings_save(settings, &err) ? cli_fail(EXIT_REFUSED, "%s", err.text) : 0;
}

static int context_use(struct cli *cli, struct settings *settings)
{
    struct context *context = named(settings, cli->arguments[1]);
    if (!context)
        return EXIT_REFUSED;
    settings_choose(settings, context);
    int code = settings_keep(settings);
    if (!code)
        printf("the server is %s now\n", context->server ? context->server : "not known");
    return code;
}

static int context_rename(struct cli *cli, struct settings *settings)
{
    const char *name = cli->arguments[2];
    struct context *context = named(settings, cli->arguments[1]);
    if (!context)
        return EXIT_REFUSED;
    if (!context_is_name(name))
        return cli_fail(EXIT_USAGE, "a context's name is 1 to %d of A-Z a-z 0-9 . _ -, got '%s'",
                        CONTEXT_NAME_MAX, name);
    if (settings_find(settings, name))
        return cli_fail(EXIT_REFUSED, "there is a context '%s' already", name);
    const bool is_current = context == settings_current(settings);
    context_set(&context->name, name);
    if (is_current)
        settings_choose(settings, context);
    int code = settings_keep(settings);
    if (!code)
        printf("renamed %s to %s\n", cli->arguments[1], name);
    return code;
}

/* Its token is revoked where the server can be reached; a context of a server that is no more can
 * be forgotten as well. */
static int context_delete(struct cli *cli, struct settings *settings)
{
    struct context *context = named(settings, cli->arguments[1]);
    if (!context)
        return EXIT_REFUSED;
    if (context->token && context->server && context_log_out(context))
        print_error("skep: the token of %s was not revoked, and is forgotten\n", context->name);
    settings_remove(settings, context);
    int code = settings_keep(settings);
    if (!code)
        printf("deleted %s\n", cli->arguments[1]);
    return code;
}

int run_context(struct cli *cli)
{
    static const struct {
        const char *name;
        int count; /* of arguments, with its own name */
        int (*run)(struct cli *cli, struct settings *settings);
    } ACTIONS[] = {
        {"list", 1, context_list},
        {"use", 2, context_use},
        {"rename", 3, context_rename},
        {"delete", 2, context_delete},
    };
    cleanup_settings struct settings settings;
    struct err err;
    if (settings_load(&settings, &err))
        return cli_fail(EXIT_REFUSED, "%s", err.text);
    if (!cli->argument_count)
        return context_list(cli, &settings);
    for (size_t i = 0; i < COUNT_OF(ACTIONS); i++) {
        if (strcmp(ACTIONS[i].name, cli->arguments[0]) != 0)
            continue;
        if (cli->argument_count != ACTIONS[i].count)
            return cli_fail(EXIT_USAGE, "context %s: see: skep help context", ACTIONS[i].name);
        return ACTIONS[i].run(cli, &settings);
    }
    return cli_fail(EXIT_USAGE, "context: list, use, rename or delete, not '%s'",
                    cli->arguments[0]);
}
