/* audit: who changed what */
#include "base/memory.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/print.h"
#include <stdlib.h>
#include <string.h>

enum { PAGE = 1000, LIMIT = 100, LIMIT_MAX = 1000000 };

static int time_query(const struct cli *cli, const char *name, struct buf *query)
{
    int64_t at_ms;
    const int code = cli_time(cli, name, &at_ms);
    if (!code && at_ms >= 0)
        buf_format(query, "&%s=%lld", name, (long long)at_ms);
    return code;
}

static int query_of(const struct cli *cli, struct buf *query)
{
    static const char *const TEXTS[] = {"user", "subject"};
    for (size_t i = 0; i < COUNT_OF(TEXTS); i++) {
        const char *value = cli_value(cli, TEXTS[i]);
        if (!value)
            continue;
        buf_format(query, "&%s=", TEXTS[i]);
        client_encode(query, value);
    }
    if (cli_flag(cli, "refused"))
        buf_string(query, "&refused=true");
    int code = time_query(cli, "since", query);
    return code ? code : time_query(cli, "until", query);
}

/* All pages in one list. */
static int records_get(struct client *client, const char *query, long limit, json_t *records)
{
    cleanup_buf struct buf cursor = BUF_INIT;
    bool has_more = true;
    while ((long)json_array_size(records) < limit && has_more) {
        cleanup_buf struct buf path = BUF_INIT;
        long left = limit - (long)json_array_size(records);
        json_t *page = NULL;
        buf_format(&path, "/api/v2/audit?limit=%ld&cursor=%s%s", left < PAGE ? left : PAGE,
                   buf_cstr(&cursor), query);
        int code = client_get(client, buf_cstr(&path), &page);
        if (code)
            return code;
        json_array_extend(records, json_object_get(page, "data"));
        const char *next = field_text(page, "cursor");
        has_more = next;
        buf_clear(&cursor);
        buf_string(&cursor, next ? next : "");
        json_decref(page);
    }
    return 0;
}

static void state_put(struct buf *out, const json_t *record, const char *key)
{
    const json_t *state = json_object_get(record, key);
    if (json_is_object(state))
        print_json_line(out, state);
    while (out->length && out->at[out->length - 1] == '\n')
        out->at[--out->length] = '\0';
}

static void record_row(const json_t *record, struct table *table, bool is_wide)
{
    cleanup_buf struct buf text = BUF_INIT, after = BUF_INIT;
    print_time(&text, field_int(record, "time"));
    table_cell(table, buf_cstr(&text));
    table_cell(table, field_text(record, "username"));
    table_cell(table, field_text(record, "address"));
    table_cell(table, field_text(record, "route"));
    table_cell(table, field_text(record, "subject"));
    const char *outcome = field_text(record, "outcome"), *reason = field_text(record, "reason");
    if (reason && reason[0])
        table_format(table, "%s: %s", outcome ? outcome : "", reason);
    else
        table_cell(table, outcome);
    if (!is_wide)
        return;
    table_cell(table, field_text(record, "token"));
    table_cell(table, field_text(record, "right"));
    buf_clear(&text);
    state_put(&text, record, "before");
    table_cell(table, buf_cstr(&text));
    state_put(&after, record, "after");
    table_cell(table, buf_cstr(&after));
}

static void records_print(const struct cli *cli, const json_t *records)
{
    static const char *const HEADS[] = {"TIME",    "USER",    "ADDRESS", "REQUEST",
                                        "SUBJECT", "OUTCOME", NULL};
    static const char *const WIDE[] = {"TIME",  "USER",  "ADDRESS", "REQUEST", "SUBJECT", "OUTCOME",
                                       "TOKEN", "RIGHT", "BEFORE",  "AFTER",   NULL};
    const bool is_wide = cli->output == OUTPUT_WIDE;
    cleanup_table struct table table;
    cleanup_buf struct buf out = BUF_INIT;
    table_init(&table, cli->has_colours, is_wide ? WIDE : HEADS);
    for (size_t i = 0; i < json_array_size(records); i++)
        record_row(json_array_get(records, i), &table, is_wide);
    table_print(&table, &out);
    print_flush(&out);
}

int run_audit(struct cli *cli)
{
    cleanup_buf struct buf query = BUF_INIT;
    long limit;
    int code = cli_number(cli, "limit", 1, LIMIT_MAX, LIMIT, &limit);
    if (!code)
        code = query_of(cli, &query);
    if (code)
        return code;
    struct client *client = cli_client(cli);
    if (!client)
        return EXIT_REFUSED;
    json_auto_t *records = json_array();
    code = records_get(client, buf_cstr(&query), limit, records);
    if (!code && !print_raw(cli, records))
        records_print(cli, records);
    return code;
}
