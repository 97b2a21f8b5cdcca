/* admin: for who runs the server; no server is needed */
#include "cli/client.h"
#include "cli/command.h"
#include "cli/job.h"
#include "cli/print.h"
#include "sys/machine.h"
#include <string.h>

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

static int check(const struct cli *cli)
{
    struct machine_finding findings[MACHINE_FINDINGS_MAX];
    const char *data = cli_value(cli, "data");
    const size_t count = machine_check(data ? data : data_default, findings);
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
