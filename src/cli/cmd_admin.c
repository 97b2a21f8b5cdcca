/* admin: for who runs the server; no server is needed */
#include "base/err.h"
#include "base/memory.h"
#include "cli/admin_config.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/job.h"
#include "cli/print.h"
#include "sys/machine.h"
#include <string.h>

/* of the machine, of all storages, and of what else is configured */
enum { FINDINGS_MAX = MACHINE_FINDINGS_MAX + ADMIN_STORAGES_MAX + ADMIN_RIGHTS + 8 };

static const char data_default[] = "/var/lib/skep";

static json_t *findings_json(const struct machine_finding *findings, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{ssssssss}", "check", findings[i].name, "state",
                                              machine_state_words[findings[i].state], "found",
                                              findings[i].found, "meaning", findings[i].meaning));
    return list;
}

static void findings_print(const struct cli *cli, const struct machine_finding *findings,
                           size_t count)
{
    static const char *const heads[] = {"CHECK", "STATE", "FOUND", "MEANING", NULL};
    cleanup_buf struct buf out = BUF_INIT;
    cleanup_table struct table table;
    table_init(&table, cli->has_colours, heads);
    for (size_t i = 0; i < count; i++) {
        table_cell(&table, findings[i].name);
        table_cell(&table, machine_state_words[findings[i].state]);
        table_cell(&table, findings[i].found);
        table_cell(&table, findings[i].meaning);
    }
    table_print(&table, &out);
    print_flush(&out);
}

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
    json_t *json = findings_json(findings, count);
    if (!print_raw(cli, json))
        findings_print(cli, findings, count);
    json_decref(json);
    int code = EXIT_OK;
    for (size_t i = 0; i < count; i++)
        if (findings[i].state == MACHINE_MISSING)
            code = EXIT_REFUSED;
    return code;
}

int run_admin(struct cli *cli)
{
    if (strcmp(cli->arguments[0], "check") != 0)
        return cli_fail(EXIT_USAGE, "admin: %s is not an action; there is: check",
                        cli->arguments[0]);
    return check(cli);
}
