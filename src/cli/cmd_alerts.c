/* alerts: what needs attention, and since when */
#include "cli/client.h"
#include "cli/command.h"
#include "cli/print.h"
#include <string.h>

static void alert_row(const json_t *alert, struct table *table, bool is_all)
{
    cleanup_buf struct buf since = BUF_INIT, ended = BUF_INIT;
    const json_t *labels = json_object_get(alert, "labels");
    const char *state = field_text(json_object_get(alert, "status"), "state");
    const bool has_ended = state && strcmp(state, "resolved") == 0;
    print_time(&since, field_instant(alert, "startsAt"));
    table_cell(table, buf_cstr(&since));
    if (is_all) {
        print_time(&ended, has_ended ? field_instant(alert, "endsAt") : 0);
        table_cell(table, buf_cstr(&ended));
    }
    table_cell(table, field_text(labels, "severity"));
    table_cell(table, field_text(labels, "alertname"));
    table_cell(table, field_text(json_object_get(alert, "annotations"), "summary"));
}

int run_alerts(struct cli *cli)
{
    static const char *const HEADS[] = {"SINCE", "SEVERITY", "ALERT", "SUMMARY", NULL};
    static const char *const ALL[] = {"SINCE", "UNTIL", "SEVERITY", "ALERT", "SUMMARY", NULL};
    const bool is_all = cli_flag(cli, "all");
    struct client *client = cli_client(cli);
    json_auto_t *json = NULL;
    if (!client)
        return EXIT_REFUSED;
    int code = client_get(client, is_all ? "/api/v2/alerts?state=all" : "/api/v2/alerts", &json);
    if (code || print_raw(cli, json))
        return code;
    cleanup_table struct table table;
    cleanup_buf struct buf out = BUF_INIT;
    table_init(&table, cli->has_colours, is_all ? ALL : HEADS);
    for (size_t i = 0; i < json_array_size(json); i++)
        alert_row(json_array_get(json, i), &table, is_all);
    table_print(&table, &out);
    print_flush(&out);
    return 0;
}
