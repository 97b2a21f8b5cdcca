#include "base/memory.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/print.h"
#include "sys/clock.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int cli_fail(int code, const char *format, ...)
{
    cleanup_buf struct buf text = BUF_INIT;
    va_list args;
    va_start(args, format);
    buf_vformat(&text, format, args);
    va_end(args);
    print_error("skep: %s\n", buf_cstr(&text));
    return code;
}

static const struct cli_option *find_by_name(const struct cli_option *options, struct text name)
{
    for (; options->name; options++)
        if (text_is(name, options->name))
            return options;
    return NULL;
}

static const struct cli_option *find_by_letter(const struct cli_option *options, char letter)
{
    for (; options->name; options++)
        if (options->letter == letter)
            return options;
    return NULL;
}

/* The option most like what was written, for a hint. */
static const char *nearest(const struct cli *cli, struct text name)
{
    const struct cli_option *lists[] = {cli->command->options, GLOBAL_OPTIONS};
    const char *best = NULL;
    unsigned best_distance = 3;
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        for (const struct cli_option *option = lists[i]; option->name; option++) {
            unsigned distance = text_distance(name, text_of(option->name), 3);
            if (distance < best_distance) {
                best = option->name;
                best_distance = distance;
            }
        }
    }
    return best;
}

static int is_choice(const struct cli_option *option, const char *value)
{
    if (!option->choices || strchr(value, ','))
        return 1;
    struct text rest = text_of(option->choices);
    while (rest.at && rest.length)
        if (text_is(text_cut(&rest, ' '), value))
            return 1;
    return 0;
}

static int give(struct cli *cli, const struct cli_option *option, const char *value)
{
    if (cli->given_count == CLI_GIVEN_MAX)
        return cli_fail(EXIT_USAGE, "more than %d options", CLI_GIVEN_MAX);
    if (option->value && !is_choice(option, value))
        return cli_fail(EXIT_USAGE, "--%s must be one of %s, got '%s'", option->name,
                        option->choices, value);
    cli->given[cli->given_count].option = option;
    cli->given[cli->given_count++].value = value;
    return 0;
}

/* "--name", "--name=value", "--name value"; takes one more word when needed. */
static int parse_long(struct cli *cli, char **words, int count, int *at)
{
    struct text value = text_of(words[*at] + 2);
    struct text name = text_cut(&value, '=');
    const struct cli_option *option = find_by_name(cli->command->options, name);
    if (!option)
        option = find_by_name(GLOBAL_OPTIONS, name);
    if (!option) {
        const char *hint = nearest(cli, name);
        return cli_fail(EXIT_USAGE, "%s: unknown option --%.*s%s%s%s", cli->command->name,
                        TEXT_ARG(name), hint ? ", did you mean --" : "", hint ? hint : "",
                        hint ? "?" : "");
    }
    if (!option->value) {
        if (value.at)
            return cli_fail(EXIT_USAGE, "--%s takes no value", option->name);
        return give(cli, option, "");
    }
    if (value.at)
        return give(cli, option, value.at);
    if (*at + 1 >= count)
        return cli_fail(EXIT_USAGE, "--%s needs a value: %s", option->name, option->value);
    return give(cli, option, words[++*at]);
}

/* "-f", "-fq", "-n5", "-n 5" */
static int parse_short(struct cli *cli, char **words, int count, int *at)
{
    for (const char *letter = words[*at] + 1; *letter; letter++) {
        const struct cli_option *option = find_by_letter(cli->command->options, *letter);
        if (!option)
            option = find_by_letter(GLOBAL_OPTIONS, *letter);
        if (!option)
            return cli_fail(EXIT_USAGE, "%s: unknown option -%c", cli->command->name, *letter);
        int code;
        if (!option->value) {
            code = give(cli, option, "");
            if (code)
                return code;
            continue;
        }
        if (letter[1])
            return give(cli, option, letter + 1);
        if (*at + 1 >= count)
            return cli_fail(EXIT_USAGE, "-%c needs a value: %s", *letter, option->value);
        return give(cli, option, words[++*at]);
    }
    return 0;
}

static int check_count(const struct cli *cli)
{
    const struct cli_command *command = cli->command;
    if (cli_flag(cli, "help"))
        return 0;
    if (cli->argument_count < command->min)
        return cli_fail(EXIT_USAGE, "%s needs %s; see: skep help %s", command->name,
                        command->arguments, command->name);
    if (command->max >= 0 && cli->argument_count > command->max)
        return cli_fail(EXIT_USAGE, "%s: too much: '%s'; see: skep help %s", command->name,
                        cli->arguments[command->max], command->name);
    return 0;
}

int cli_parse_globals(struct cli *cli, int *count, char ***words)
{
    static const struct cli_option NONE[] = {{0}};
    static const struct cli_command ANY = {.name = "before the command", .options = NONE};
    int code = 0, at = 0;
    cli->command = &ANY;
    for (; at < *count && !code; at++) {
        const char *word = (*words)[at];
        if (word[0] != '-' || !word[1] || strcmp(word, "--") == 0 || strcmp(word, "--version") == 0)
            break;
        code = word[1] == '-' ? parse_long(cli, *words, *count, &at)
                              : parse_short(cli, *words, *count, &at);
    }
    cli->command = NULL;
    *count -= at;
    *words += at;
    return code;
}

int cli_parse(struct cli *cli, int count, char **words)
{
    bool are_options_over = false;
    int rest_at = -1;
    cli->arguments = mem_zero((size_t)count + 1, sizeof *cli->arguments);
    for (int at = 0; at < count; at++) {
        const char *word = words[at];
        int code = 0;
        if (are_options_over || word[0] != '-' || !word[1]) {
            cli->arguments[cli->argument_count++] = word;
            are_options_over = are_options_over || cli->command->kind == KIND_REST;
        } else if (strcmp(word, "--") == 0) {
            are_options_over = true;
            rest_at = cli->argument_count;
        } else if (word[1] == '-') {
            code = parse_long(cli, words, count, &at);
        } else {
            code = parse_short(cli, words, count, &at);
        }
        if (code)
            return code;
    }
    cli->rest_at = rest_at < 0 ? cli->argument_count : rest_at;
    return check_count(cli);
}

const char *cli_value(const struct cli *cli, const char *name)
{
    for (size_t i = cli->given_count; i-- > 0;)
        if (strcmp(cli->given[i].option->name, name) == 0)
            return cli->given[i].value;
    return NULL;
}

int cli_number(const struct cli *cli, const char *name, long min, long max, long fallback,
               long *value)
{
    const char *text = cli_value(cli, name);
    *value = fallback;
    if (!text)
        return 0;
    int64_t number;
    if (!text_to_int64(text_of(text), &number) || number < min || number > max)
        return cli_fail(EXIT_USAGE, "--%s must be a number in %ld..%ld, got '%s'", name, min, max,
                        text);
    *value = (long)number;
    return 0;
}

/* "30m", "2h", "7d" before now. */
static bool ago_read(const char *text, int64_t *at_ms)
{
    static const struct {
        char letter;
        int64_t s;
    } UNITS[] = {{'m', 60}, {'h', 3600}, {'d', 86400}};
    const size_t length = strlen(text);
    int64_t number;
    for (size_t i = 0; length > 1 && i < COUNT_OF(UNITS); i++) {
        if (text[length - 1] != UNITS[i].letter ||
            !text_to_int64((struct text){text, length - 1}, &number) || number < 0 ||
            number > 36500 * 1440LL)
            continue;
        *at_ms = clock_unix_ms() - number * UNITS[i].s * 1000;
        return true;
    }
    return false;
}

/* A day, or a time of it, of this machine's clock. */
static bool time_read(const char *text, int64_t *at_ms)
{
    static const char *const FORMS[] = {"%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d"};
    for (size_t i = 0; i < COUNT_OF(FORMS); i++) {
        struct tm tm = {.tm_isdst = -1};
        const char *end = strptime(text, FORMS[i], &tm);
        if (!end || *end)
            continue;
        tm.tm_isdst = -1;
        *at_ms = (int64_t)mktime(&tm) * 1000;
        return *at_ms >= 0;
    }
    return false;
}

int cli_time(const struct cli *cli, const char *name, int64_t *at_ms)
{
    const char *text = cli_value(cli, name);
    *at_ms = -1;
    if (!text)
        return 0;
    if (!ago_read(text, at_ms) && !time_read(text, at_ms))
        return cli_fail(EXIT_USAGE,
                        "--%s must be a time such as 2026-11-22, \"2026-11-22 09:30\", 30m, 2h or "
                        "7d (ago), got '%s'",
                        name, text);
    if (*at_ms < 0)
        *at_ms = 0;
    return 0;
}

void cli_output_choose(struct cli *cli)
{
    static const char *const FORMS[] = {"table", "wide", "json", "yaml"};
    const char *form = cli_value(cli, "output");
    for (size_t i = 0; form && i < COUNT_OF(FORMS); i++)
        if (strcmp(form, FORMS[i]) == 0)
            cli->output = (enum cli_output)i;
    const char *when = cli_value(cli, "color");
    const char *terminal = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    cli->has_colours = isatty(STDOUT_FILENO) && !(no_color && no_color[0]) && terminal &&
                       strcmp(terminal, "dumb") != 0;
    if (when && strcmp(when, "auto") != 0)
        cli->has_colours = strcmp(when, "always") == 0;
}
