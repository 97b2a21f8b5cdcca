#include "cli/run_file.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "base/text.h"
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* One word of the command line as one word of the shell. */
static void shell_quote(struct buf *out, const char *word)
{
    if (word[0] && !strpbrk(word, " \t\n'\"\\$`&|;<>()*?[]{}~#!=%"))
        buf_string(out, word);
    else
        buf_shell_word(out, text_of(word));
}

/* "run-1121-085500-k3x9": sorted by time, unlike any other. */
static void run_name(struct buf *name)
{
    static const char LETTERS[] = "abcdefghijkmnpqrstuvwxyz23456789";
    time_t now = time(NULL);
    struct tm local;
    char stamp[32];
    unsigned char random[4] = {0};
    if (!localtime_r(&now, &local) || !strftime(stamp, sizeof stamp, "%m%d-%H%M%S", &local))
        stamp[0] = '\0';
    while (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        continue;
    buf_format(name, "run-%s-", stamp);
    for (size_t i = 0; i < sizeof random; i++)
        buf_char(name, LETTERS[random[i] % (sizeof LETTERS - 1)]);
}

static bool is_variable(struct text name)
{
    for (size_t i = 0; i < name.length; i++) {
        char c = name.at[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return name.length > 0;
}

/* The lines of the task's command: its variables, then the command. */
static int run_commands(const struct cli *cli, struct json_writer *json)
{
    cleanup_buf struct buf line = BUF_INIT;
    json_key(json, "commands");
    json_array(json);
    for (size_t i = 0; i < cli->given_count; i++) {
        if (strcmp(cli->given[i].option->name, "env") != 0)
            continue;
        struct text value = text_of(cli->given[i].value);
        struct text name = text_cut(&value, '=');
        if (!value.at || !is_variable(name))
            return cli_fail(EXIT_USAGE, "--env must be NAME=VALUE, got '%s'", cli->given[i].value);
        buf_clear(&line);
        buf_format(&line, "export %.*s=", TEXT_ARG(name));
        shell_quote(&line, value.at);
        json_text(json, buf_as_text(&line));
    }
    buf_clear(&line);
    for (int i = 0; i < cli->argument_count; i++) {
        if (i)
            buf_char(&line, ' ');
        if (cli->argument_count == 1)
            buf_string(&line, cli->arguments[0]);
        else
            shell_quote(&line, cli->arguments[i]);
    }
    json_text(json, buf_as_text(&line));
    json_array_end(json);
    return 0;
}

struct run_numbers {
    long cpu, memory, gpu, shm, instances, retry;
};

static int run_numbers(const struct cli *cli, struct run_numbers *numbers)
{
    int code = cli_number(cli, "cpu", 1, 100000, 1, &numbers->cpu);
    if (!code)
        code = cli_number(cli, "memory", 1, 1L << 40, 1024, &numbers->memory);
    if (!code)
        code = cli_number(cli, "gpu", 0, 1024, 0, &numbers->gpu);
    if (!code)
        code = cli_number(cli, "shm", 1, 1L << 40,
                          numbers->memory < 1024 ? numbers->memory / 2 + 1 : 512, &numbers->shm);
    if (!code)
        code = cli_number(cli, "instances", 1, 10000, 1, &numbers->instances);
    if (!code)
        code = cli_number(cli, "retry", 0, 1000000, 0, &numbers->retry);
    return code;
}

static int run_role(const struct cli *cli, const struct run_numbers *numbers,
                    struct json_writer *json)
{
    json_key(json, "taskRoles");
    json_object(json);
    json_key(json, "main");
    json_object(json);
    json_key_int(json, "instances", numbers->instances);
    json_key_string(json, "dockerImage", "image");
    json_key(json, "resourcePerInstance");
    json_object(json);
    json_key_int(json, "cpu", numbers->cpu);
    json_key_int(json, "memoryMB", numbers->memory);
    json_key_int(json, "gpu", numbers->gpu);
    json_object_end(json);
    json_key(json, "extraContainerOptions");
    json_object(json);
    json_key_int(json, "shmMB", numbers->shm);
    json_object_end(json);
    int code = run_commands(cli, json);
    if (code)
        return code;
    json_object_end(json);
    json_object_end(json);
    return 0;
}

/* Of which changes of the job its user is told. */
static int run_notices(const char *list, struct json_writer *json)
{
    static const char *const kinds[] = {"running", "retried", "succeeded", "stopped", "failed"};
    bool is_asked[COUNT_OF(kinds)] = {false};
    struct text rest = text_of(list);
    while (rest.at) {
        const struct text word = text_cut(&rest, ',');
        size_t kind = 0;
        while (kind < COUNT_OF(kinds) && !text_is(word, kinds[kind]))
            kind++;
        if (kind == COUNT_OF(kinds))
            return cli_fail(EXIT_USAGE,
                            "--notify takes running, retried, succeeded, stopped and failed, with "
                            "commas, got '%.*s'",
                            TEXT_ARG(word));
        is_asked[kind] = true;
    }
    json_key(json, "jobStatusChangeNotification");
    json_object(json);
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (is_asked[i])
            json_key_bool(json, kinds[i], true);
    json_object_end(json);
    return 0;
}

static int run_extras(const struct cli *cli, struct json_writer *json)
{
    const char *priority = cli_value(cli, "priority"), *notices = cli_value(cli, "notify");
    int code = 0;
    if (!priority && !notices)
        return 0;
    json_key(json, "extras");
    json_object(json);
    if (priority) {
        json_key(json, "hivedScheduler");
        json_object(json);
        json_key_string(json, "jobPriorityClass", priority);
        json_object_end(json);
    }
    if (notices)
        code = run_notices(notices, json);
    json_object_end(json);
    return code;
}

/* The job file: JSON, which is YAML as well. */
int run_file(const struct cli *cli, struct buf *out)
{
    struct run_numbers numbers;
    const char *image = cli_value(cli, "image"), *name = cli_value(cli, "name");
    if (!image)
        return cli_fail(EXIT_USAGE, "run needs --image; see: skep help run");
    int code = run_numbers(cli, &numbers);
    if (code)
        return code;
    cleanup_buf struct buf made = BUF_INIT;
    run_name(&made);
    struct json_writer json;
    json_init(&json, out);
    json_object(&json);
    json_key_int(&json, "protocolVersion", 2);
    json_key_string(&json, "name", name ? name : buf_cstr(&made));
    json_key_string(&json, "type", "job");
    json_key_int(&json, "jobRetryCount", numbers.retry);
    json_key(&json, "prerequisites");
    json_array(&json);
    json_object(&json);
    json_key_string(&json, "name", "image");
    json_key_string(&json, "type", "dockerimage");
    json_key_string(&json, "uri", image);
    json_object_end(&json);
    json_array_end(&json);
    code = run_role(cli, &numbers, &json);
    if (code)
        return code;
    if (cli_value(cli, "vc")) {
        json_key(&json, "defaults");
        json_object(&json);
        json_key_string(&json, "virtualCluster", cli_value(cli, "vc"));
        json_object_end(&json);
    }
    code = run_extras(cli, &json);
    if (code)
        return code;
    json_object_end(&json);
    buf_char(out, '\n');
    return 0;
}
