#include "cli/findings.h"

#include "cli/command.h"
#include "cli/print.h"

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

int findings_show(const struct cli *cli, const struct machine_finding *findings, size_t count)
{
    json_t *json = findings_json(findings, count);
    if (!print_raw(cli, json))
        findings_print(cli, findings, count);
    json_decref(json);
    for (size_t i = 0; i < count; i++)
        if (findings[i].state == MACHINE_MISSING)
            return EXIT_REFUSED;
    return EXIT_OK;
}
