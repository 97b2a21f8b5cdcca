/* admin: for who runs the server */
#include "base/err.h"
#include "base/memory.h"
#include "cli/admin_config.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/findings.h"
#include "cli/job.h"
#include "cli/print.h"
#include "sys/machine.h"
#include <stdlib.h>
#include <string.h>

/* of the machine, of all storages, and of what else is configured */
enum { FINDINGS_MAX = MACHINE_FINDINGS_MAX + ADMIN_STORAGES_MAX + ADMIN_RIGHTS + 8 };

static const char data_default[] = "/var/lib/skep";

/* Of the machine, and of what a configuration wants of it when one is named. 0, or a code to end
 * with. */
static int findings_make(const struct cli *cli, struct arena *arena,
                         struct machine_finding *findings, size_t *count)
{
    const char *data = cli_value(cli, "data"), *path = cli_value(cli, "config");
    struct admin_config *config = ARENA_NEW(arena, struct admin_config);
    struct err err;
    if (path && admin_config_read(path, arena, config, &err) < 0)
        return cli_fail(EXIT_USAGE, "%s", err.text);
    if (!data)
        data = config->data_directory ? config->data_directory : data_default;
    *count = machine_check(data, findings);
    if (!path)
        return EXIT_OK;
    admin_config_try(config);
    *count = admin_config_judge(config, arena, findings, *count, FINDINGS_MAX);
    return EXIT_OK;
}

static int check(const struct cli *cli)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct machine_finding *findings = ARENA_ARRAY(&arena, struct machine_finding, FINDINGS_MAX);
    size_t count = 0;
    const int failure = findings_make(cli, &arena, findings, &count);
    if (failure)
        return failure;
    return findings_show(cli, findings, count);
}

/* ---- settings: the configuration in force, as the server says it ---- */

/* "skepd.yaml:12", "default", "command line" */
static const char *setting_source(const json_t *row, const char *file, struct buf *out)
{
    const json_t *line = json_object_get(row, "line");
    const char *name = file ? strrchr(file, '/') : NULL;
    buf_clear(out);
    if (line)
        buf_format(out, "%s:%lld", name ? name + 1 : file, (long long)json_integer_value(line));
    else
        buf_string(out, field_text(row, "source"));
    return buf_cstr(out);
}

static const char *setting_value(const json_t *value, struct buf *out)
{
    buf_clear(out);
    if (json_is_string(value)) {
        buf_string(out, json_string_value(value));
    } else if (!json_is_null(value)) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        buf_string(out, text);
        free(text);
    } else {
        buf_string(out, "-");
    }
    return buf_cstr(out);
}

static void settings_print(const struct cli *cli, const json_t *reply)
{
    static const char *const heads[] = {"KEY", "VALUE", "FROM", NULL};
    static const char *const heads_wide[] = {"KEY", "VALUE", "FROM", "MEANING", NULL};
    const json_t *file = json_object_get(reply, "file"), *row, *key;
    cleanup_buf struct buf out = BUF_INIT, cell = BUF_INIT;
    cleanup_table struct table table;
    const bool is_wide = cli->output == OUTPUT_WIDE;
    size_t i;
    table_init(&table, cli->has_colours, is_wide ? heads_wide : heads);
    json_array_foreach (json_object_get(reply, "settings"), i, row) {
        table_cell(&table, field_text(row, "key"));
        table_cell(&table, setting_value(json_object_get(row, "value"), &cell));
        table_cell(&table, setting_source(row, json_string_value(file), &cell));
        if (is_wide)
            table_cell(&table, field_text(row, "help"));
    }
    table_print(&table, &out);
    json_array_foreach (json_object_get(reply, "needRestart"), i, key)
        buf_format(&out, "%s: changed in the file, takes effect only after a restart\n",
                   json_string_value(key));
    print_flush(&out);
}

static int settings(struct cli *cli)
{
    struct client *client = cli_client(cli);
    json_auto_t *reply = NULL;
    if (!client)
        return EXIT_REFUSED;
    int code = client_get(client, "/api/v2/settings", &reply);
    if (!code && !print_raw(cli, reply))
        settings_print(cli, reply);
    return code;
}

int run_admin(struct cli *cli)
{
    if (strcmp(cli->arguments[0], "check") == 0)
        return check(cli);
    if (strcmp(cli->arguments[0], "settings") == 0)
        return settings(cli);
    return cli_fail(EXIT_USAGE, "admin: %s is not an action; there are: check, settings",
                    cli->arguments[0]);
}
