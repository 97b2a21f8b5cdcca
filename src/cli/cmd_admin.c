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
#include <time.h>

/* of the machine, of all storages, and of what else is configured */
enum { FINDINGS_MAX = MACHINE_FINDINGS_MAX + ADMIN_STORAGES_MAX + ADMIN_RIGHTS + 8 };

#define GIB (1024.0 * 1024 * 1024)

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

/* ---- storages: how each is ---- */

static void storages_print(const struct cli *cli, const json_t *reply)
{
    static const char *const HEADS[] = {"STORAGE", "STATE", "FREE", "SIZE", "JOBS", "WHERE", NULL};
    cleanup_table struct table table;
    cleanup_buf struct buf out = BUF_INIT, text = BUF_INIT;
    const json_t *storage;
    size_t i;
    table_init(&table, cli->has_colours, HEADS);
    json_array_foreach (json_object_get(reply, "storages"), i, storage) {
        const json_t *health = json_object_get(storage, "health");
        const char *directory = field_text(storage, "directory");
        table_cell(&table, field_text(storage, "name"));
        table_cell(&table, field_text(health, "state"));
        for (int of_all = 0; of_all < 2; of_all++) {
            const json_t *bytes = json_object_get(health, of_all ? "totalBytes" : "freeBytes");
            buf_clear(&text);
            if (bytes)
                buf_format(&text, "%.1f GiB", (double)json_integer_value(bytes) / GIB);
            table_cell(&table, buf_cstr(&text));
        }
        table_format(&table, "%lld", (long long)field_int(storage, "jobs"));
        table_format(&table, "%s%s", *directory ? directory : "claim ",
                     *directory ? "" : field_text(storage, "claim"));
    }
    table_print(&table, &out);
    json_array_foreach (json_object_get(reply, "storages"), i, storage) {
        const char *message = field_text(json_object_get(storage, "health"), "message");
        if (*message)
            buf_format(&out, "%s: %s\n", field_text(storage, "name"), message);
    }
    const long long others = field_int(reply, "jobsNotRead");
    if (others)
        buf_format(&out, "JOBS counts the newest %lld that run; %lld more do\n",
                   (long long)field_int(reply, "jobsRead"), others);
    print_flush(&out);
}

static int storages(struct cli *cli)
{
    struct client *client = cli_client(cli);
    json_auto_t *reply = NULL;
    if (!client)
        return EXIT_REFUSED;
    int code = client_get(client, "/api/v2/storage/health", &reply);
    if (!code && !print_raw(cli, reply))
        storages_print(cli, reply);
    return code;
}

/* ---- log: the server's own ---- */

enum { LOG_LINES = 100, LOG_LINES_MAX = 2000 };

static void log_print(const struct cli *cli, const json_t *reply, bool is_following)
{
    cleanup_buf struct buf out = BUF_INIT;
    const json_t *line;
    size_t i;
    if (json_is_true(json_object_get(reply, "missed")))
        buf_string(&out, "(lines between were gone before they could be read)\n");
    json_array_foreach (json_object_get(reply, "lines"), i, line) {
        if (is_following && cli->output == OUTPUT_JSON) {
            print_json_line(&out, line);
            continue;
        }
        print_time(&out, field_int(line, "time"));
        buf_format(&out, " %-7s %s: %s\n", field_text(line, "level"), field_text(line, "part"),
                   field_text(line, "text"));
    }
    print_flush(&out);
}

/* Asks for what follows once a second; nothing tells of lines. A server that is away is asked on:
 * the numbers of the next one are higher. */
static int log_follow(struct cli *cli, struct client *client, const char *level, json_int_t next)
{
    for (;;) {
        const struct timespec second = {.tv_sec = 1};
        cleanup_buf struct buf path = BUF_INIT;
        json_auto_t *reply = NULL;
        cleanup_client_reply struct client_reply answer;
        buf_format(&path, "/api/v2/log?level=%s&limit=%d&after=%lld", level, LOG_LINES_MAX,
                   (long long)next);
        client_ask(client, &(struct client_request){.method = "GET", .path = buf_cstr(&path)},
                   &answer);
        if (answer.status) {
            const int code = client_result(client, &answer, &reply);
            if (code)
                return code;
            log_print(cli, reply, true);
            next = json_integer_value(json_object_get(reply, "next"));
        }
        if (!answer.status || json_is_true(json_object_get(reply, "complete")))
            nanosleep(&second, NULL);
    }
}

static int server_log(struct cli *cli)
{
    static const char *const LEVELS[] = {"error", "warning", "info", "debug"};
    const char *level = cli_value(cli, "level") ? cli_value(cli, "level") : "debug";
    cleanup_buf struct buf path = BUF_INIT;
    json_auto_t *reply = NULL;
    long lines;
    size_t known = 0;
    while (known < COUNT_OF(LEVELS) && strcmp(level, LEVELS[known]) != 0)
        known++;
    if (known == COUNT_OF(LEVELS))
        return cli_fail(EXIT_USAGE, "admin log: --level is error, warning, info or debug");
    int code = cli_number(cli, "lines", 1, LOG_LINES_MAX, LOG_LINES, &lines);
    if (code)
        return code;
    struct client *client = cli_client(cli);
    if (!client)
        return EXIT_REFUSED;
    buf_format(&path, "/api/v2/log?level=%s&limit=%ld", level, lines);
    code = client_get(client, buf_cstr(&path), &reply);
    if (code)
        return code;
    if (!cli_flag(cli, "follow")) {
        if (!print_raw(cli, json_object_get(reply, "lines")))
            log_print(cli, reply, false);
        return 0;
    }
    log_print(cli, reply, true);
    return log_follow(cli, client, level, json_integer_value(json_object_get(reply, "next")));
}

/* Why it is no command of this program: docs/rfc/0012-store-seam.md. */
static int backup(const struct cli *cli)
{
    return cli_fail(EXIT_USAGE,
                    "admin backup: a backup is made by the server's own program, on its machine "
                    "and as its user: skepd --backup %s",
                    cli->argument_count > 1 ? cli->arguments[1] : "FILE");
}

int run_admin(struct cli *cli)
{
    if (strcmp(cli->arguments[0], "backup") == 0)
        return backup(cli);
    if (cli->argument_count > 1)
        return cli_fail(EXIT_USAGE, "admin: too much: '%s'; see: skep help admin",
                        cli->arguments[1]);
    if (strcmp(cli->arguments[0], "check") == 0)
        return check(cli);
    if (strcmp(cli->arguments[0], "settings") == 0)
        return settings(cli);
    if (strcmp(cli->arguments[0], "log") == 0)
        return server_log(cli);
    if (strcmp(cli->arguments[0], "storages") == 0)
        return storages(cli);
    return cli_fail(EXIT_USAGE,
                    "admin: %s is not an action; there are: check, log, settings, storages",
                    cli->arguments[0]);
}
