/* describe: everything about one job, for people */
#include "base/memory.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/history.h"
#include "cli/job.h"
#include "cli/print.h"
#include "sys/clock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void line(struct buf *out, const char *head, const char *text)
{
    if (text && text[0])
        buf_format(out, "%-17s%s\n", head, text);
}

static void line_time(struct buf *out, const char *head, int64_t at_ms)
{
    if (!at_ms)
        return;
    buf_format(out, "%-17s", head);
    print_time(out, at_ms);
    buf_char(out, '\n');
}

static void tags_line(struct buf *out, const json_t *tags)
{
    cleanup_buf struct buf text = BUF_INIT;
    for (size_t i = 0; i < json_array_size(tags); i++)
        buf_format(&text, "%s%s", i ? ", " : "", item_text(tags, i));
    line(out, "Tags:", buf_cstr(&text));
}

/* The exit table's row: what it means and what can be done. */
static void exit_spec(struct buf *out, const json_t *spec)
{
    const json_t *solutions = json_object_get(spec, "solution");
    line(out, "Meaning:", field_text(spec, "reason"));
    for (size_t i = 0; i < json_array_size(solutions); i++)
        line(out, i ? "" : "What to do:", item_text(solutions, i));
}

static void exit_lines(struct buf *out, const json_t *status)
{
    if (!field_has(status, "appExitCode"))
        return;
    const json_t *spec = json_object_get(status, "appExitSpec");
    const char *phrase = field_text(spec, "phrase");
    int64_t code = field_int(status, "appExitCode"), own = field_int(status, "appOriginalExitCode");
    buf_format(out, "%-17s%lld%s%s", "Exit:", (long long)code, phrase && phrase[0] ? " " : "",
               phrase ? phrase : "");
    if (own && own != code)
        buf_format(out, " (the program's own code: %lld)", (long long)own);
    buf_char(out, '\n');
    line(out, "Diagnostics:", field_text(status, "appExitDiagnostics"));
    if (field_has(status, "appExitTriggerTaskRoleName"))
        buf_format(out, "%-17s%s-%lld\n",
                   "Decided by:", field_text(status, "appExitTriggerTaskRoleName"),
                   (long long)field_int(status, "appExitTriggerTaskIndex"));
    line(out, "Why:", field_text(status, "appExitTriggerMessage"));
    if (field_int(status, "appExitCode"))
        exit_spec(out, spec);
}

/* What is left of failed tasks, and how it is let go. */
static void held_lines(struct buf *out, const json_t *detail, const json_t *status)
{
    enum { NAMED = 5 };
    const json_t *held = json_object_get(status, "held");
    if (!json_is_object(held))
        return;
    const long long count = (long long)field_int(held, "containers");
    const json_t *tasks = json_object_get(held, "tasks");
    buf_format(out, "%-17s%lld container%s, for debugging: ", "Held:", count,
               count == 1 ? "" : "s");
    for (size_t i = 0; i < json_array_size(tasks) && i < NAMED; i++) {
        const json_t *task = json_array_get(tasks, i);
        buf_format(out, "%s%s-%lld", i ? ", " : "", field_text(task, "taskRoleName"),
                   (long long)field_int(task, "taskIndex"));
    }
    if (count > NAMED)
        buf_format(out, " and %lld more", count - NAMED);
    buf_string(out, "\n");
    if (field_int(held, "until"))
        line_time(out, "Held until:", field_int(held, "until"));
    buf_format(out, "%-17sskep release %s~%s\n", "Let go by:", field_text(status, "username"),
               field_text(detail, "name"));
}

static void head_lines(struct cli *cli, struct buf *out, const json_t *detail)
{
    const json_t *status = json_object_get(detail, "jobStatus");
    const json_t *retries = json_object_get(status, "retryDetails");
    const char *state = field_text(status, "state");
    buf_format(out, "%-17s%s~%s\n", "Job:", field_text(status, "username"),
               field_text(detail, "name"));
    buf_format(out, "%-17s", "State:");
    print_state(out, state ? state : "-", cli->has_colours);
    buf_format(out, " (%s)\n", field_text(status, "subState"));
    line(out, "Waits because:", field_text(status, "waitingReason"));
    line(out, "Virtual cluster:", field_text(status, "virtualCluster"));
    line(out, "Priority:", field_text(detail, "jobPriority"));
    tags_line(out, json_object_get(detail, "tags"));
    line_time(out, "Submitted:", field_int(status, "submissionTime"));
    line_time(out, "Started:",
              field_has(status, "appLaunchedTime") ? field_int(status, "launchedTime") : 0);
    line_time(out, "Ended:", field_int(status, "completedTime"));
    buf_format(out, "%-17s%lld (own failures %lld, platform %lld, resources %lld)\n",
               "Retries:", (long long)field_int(status, "retries"),
               (long long)field_int(retries, "user"), (long long)field_int(retries, "platform"),
               (long long)field_int(retries, "resource"));
    exit_lines(out, status);
    held_lines(out, detail, status);
}

/* "http:15001,15002 ssh:15000" */
static void ports_cell(struct table *table, json_t *ports)
{
    cleanup_buf struct buf text = BUF_INIT;
    const char *label;
    json_t *value;
    json_object_foreach (ports, label, value)
        buf_format(&text, "%s%s:%s", text.length ? " " : "", label, json_string_value(value));
    table_cell(table, buf_cstr(&text));
}

static void gpus_cell(struct table *table, const json_t *gpus)
{
    cleanup_buf struct buf text = BUF_INIT;
    for (size_t i = 0; i < json_array_size(gpus); i++)
        buf_format(&text, "%s%lld", i ? "," : "", json_integer_value(json_array_get(gpus, i)));
    table_cell(table, buf_cstr(&text));
}

static void exit_cell(struct table *table, const json_t *task)
{
    if (field_has(task, "containerExitCode"))
        table_format(table, "%lld", (long long)field_int(task, "containerExitCode"));
    else
        table_cell(table, NULL);
}

static void time_cell(struct table *table, const json_t *task)
{
    cleanup_buf struct buf text = BUF_INIT;
    int64_t from = field_int(task, "currentAttemptLaunchedTime");
    int64_t to = field_int(task, "currentAttemptCompletedTime");
    print_duration(&text, from ? (to ? to : clock_unix_ms()) - from : -1);
    table_cell(table, buf_cstr(&text));
}

static void tasks_print(struct cli *cli, struct buf *out, const json_t *detail)
{
    static const char *const HEADS[] = {"TASK", "STATE", "NODE",    "ADDRESS",     "GPUS", "PORTS",
                                        "EXIT", "TIME",  "RETRIES", "DIAGNOSTICS", NULL};
    cleanup_table struct table table;
    table_init(&table, cli->has_colours, HEADS);
    const char *role;
    json_t *value;
    json_object_foreach (json_object_get(detail, "taskRoles"), role, value) {
        const json_t *tasks = json_object_get(value, "taskStatuses");
        for (size_t i = 0; i < json_array_size(tasks); i++) {
            const json_t *task = json_array_get(tasks, i);
            table_format(&table, "%s-%lld", role, (long long)field_int(task, "taskIndex"));
            table_cell(&table, field_text(task, "taskState"));
            table_cell(&table, field_text(task, "containerNodeName"));
            table_cell(&table, field_text(task, "containerIp"));
            gpus_cell(&table, json_object_get(task, "gpus"));
            ports_cell(&table, json_object_get(task, "containerPorts"));
            exit_cell(&table, task);
            time_cell(&table, task);
            table_format(&table, "%lld", (long long)field_int(task, "retries"));
            table_cell(&table, field_text(task, "containerExitDiagnostics"));
        }
    }
    buf_char(out, '\n');
    table_print(&table, out);
}

/* ---- attempts ---- */

enum { TAILS_MAX = 16 << 10 }; /* of all last lines together, in the table */

/* By which rule the end was recognised. */
static void rule_lines(struct buf *out, const json_t *rule)
{
    const char *file = field_text(rule, "file"), *text = field_text(rule, "text");
    bool is_builtin = file && strcmp(file, "built-in") == 0;
    if (!file)
        return;
    buf_format(out, "  recognised as %s (%lld) by rule %lld, pattern %lld, of %s (line %lld)\n",
               field_text(rule, "name"), (long long)field_int(rule, "code"),
               (long long)field_int(rule, "number"), (long long)field_int(rule, "pattern"),
               is_builtin ? "the built-in table" : file, (long long)field_int(rule, "line"));
    if (text)
        buf_format(out, "  from the %s log's line: %s\n",
                   strcmp(field_text(rule, "log"), "user") == 0 ? "task" : "platform", text);
}

/* How it was recognised, and its last lines, indented: of what failed. */
static void end_lines(struct buf *out, const json_t *attempt, const char *role, int64_t index,
                      int64_t job_attempt)
{
    struct text tail = text_of(field_text(attempt, "containerLogTail"));
    const json_t *rule = json_object_get(attempt, "matchedRule");
    if (!field_int(attempt, "containerExitCode") || (!tail.at && !json_is_object(rule)))
        return;
    buf_format(out, "\n%s-%lld, attempt %lld.%lld:\n", role, (long long)index,
               (long long)job_attempt, (long long)field_int(attempt, "attemptId"));
    rule_lines(out, rule);
    if (tail.at)
        buf_string(out, "  last lines:\n");
    while (tail.at && tail.length) {
        struct text line_of_log = text_cut(&tail, '\n');
        buf_format(out, "    %.*s\n", TEXT_ARG(line_of_log));
    }
}

static void task_attempt_row(struct table *table, const json_t *task, const json_t *attempt,
                             int64_t job_attempt)
{
    cleanup_buf struct buf text = BUF_INIT;
    table_format(table, "%lld", (long long)job_attempt);
    table_format(table, "%s-%lld", field_text(task, "taskRoleName"),
                 (long long)field_int(task, "taskIndex"));
    table_format(table, "%lld", (long long)field_int(attempt, "attemptId"));
    table_cell(table, field_text(attempt, "attemptState"));
    table_cell(table, field_text(attempt, "containerNodeName"));
    gpus_cell(table, json_object_get(attempt, "gpus"));
    ports_cell(table, json_object_get(attempt, "containerPorts"));
    exit_cell(table, attempt);
    print_time(&text, field_int(attempt, "currentAttemptLaunchedTime"));
    table_cell(table, buf_cstr(&text));
    time_cell(table, attempt);
    table_cell(table, field_text(attempt, "containerExitDiagnostics"));
}

static void task_attempt_rows(struct table *table, struct buf *ends, const json_t *task,
                              int64_t job_attempt)
{
    const json_t *attempts = json_object_get(task, "attempts");
    if (!attempts)
        task_attempt_row(table, task, task, job_attempt);
    for (size_t i = json_array_size(attempts); i-- > 0;) {
        const json_t *attempt = json_array_get(attempts, i);
        task_attempt_row(table, task, attempt, job_attempt);
        if (ends->length < TAILS_MAX)
            end_lines(ends, attempt, field_text(task, "taskRoleName"), field_int(task, "taskIndex"),
                      job_attempt);
    }
}

static void job_attempt_row(struct table *table, const json_t *attempt)
{
    cleanup_buf struct buf text = BUF_INIT;
    table_format(table, "%lld", (long long)field_int(attempt, "attemptIndex"));
    table_cell(table, field_text(attempt, "state"));
    print_time(&text, field_int(attempt, "attemptStartedTime"));
    table_cell(table, buf_cstr(&text));
    buf_clear(&text);
    print_time(&text, field_int(attempt, "attemptCompletedTime"));
    table_cell(table, buf_cstr(&text));
    if (field_has(attempt, "exitCode"))
        table_format(table, "%lld", (long long)field_int(attempt, "exitCode"));
    else
        table_cell(table, NULL);
    table_cell(table, field_text(attempt, "exitPhrase"));
    table_cell(table, field_text(attempt, "exitDiagnostics"));
}

static void attempts_print(struct cli *cli, struct buf *out, const json_t *attempts)
{
    static const char *const JOB_HEADS[] = {"ATTEMPT", "STATE",  "CREATED",     "ENDED",
                                            "EXIT",    "PHRASE", "DIAGNOSTICS", NULL};
    static const char *const TASK_HEADS[] = {"JOB ATTEMPT", "TASK", "ATTEMPT",     "STATE",
                                             "NODE",        "GPUS", "PORTS",       "EXIT",
                                             "STARTED",     "TIME", "DIAGNOSTICS", NULL};
    cleanup_buf struct buf ends = BUF_INIT;
    cleanup_table struct table jobs, tasks;
    table_init(&jobs, cli->has_colours, JOB_HEADS);
    table_init(&tasks, cli->has_colours, TASK_HEADS);
    for (size_t i = json_array_size(attempts); i-- > 0;) {
        const json_t *attempt = json_array_get(attempts, i);
        const json_t *of_attempt = json_object_get(attempt, "tasks");
        job_attempt_row(&jobs, attempt);
        for (size_t k = 0; k < json_array_size(of_attempt); k++)
            task_attempt_rows(&tasks, &ends, json_array_get(of_attempt, k),
                              field_int(attempt, "attemptIndex"));
    }
    buf_char(out, '\n');
    table_print(&jobs, out);
    buf_char(out, '\n');
    table_print(&tasks, out);
    buf_text(out, buf_as_text(&ends));
    table_release(&tasks);
}

/* ---- events ---- */

static void events_print(struct buf *out, const json_t *events)
{
    buf_char(out, '\n');
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        print_time(out, field_instant(event, "firstTimestamp"));
        buf_format(out, "  %s\n", field_text(event, "message"));
    }
}

int run_describe(struct cli *cli)
{
    struct client *client = cli_client(cli);
    if (!client)
        return EXIT_REFUSED;
    cleanup_buf struct buf path = BUF_INIT, out = BUF_INIT;
    json_auto_t *detail = NULL;
    const bool is_raw = cli->output == OUTPUT_JSON || cli->output == OUTPUT_YAML;
    job_path(&path, cli->arguments[0], "");
    int code = client_get(client, buf_cstr(&path), &detail);
    if (!code && cli_flag(cli, "attempts"))
        code = history_attempts(client, cli->arguments[0], !is_raw, detail);
    if (!code && cli_flag(cli, "events"))
        code = history_events(client, cli->arguments[0], detail);
    if (!code && !print_raw(cli, detail)) {
        head_lines(cli, &out, detail);
        tasks_print(cli, &out, detail);
        if (cli_flag(cli, "attempts"))
            attempts_print(cli, &out, json_object_get(detail, "attempts"));
        if (cli_flag(cli, "events"))
            events_print(&out, json_object_get(detail, "events"));
        print_flush(&out);
    }
    return code;
}
