/* The words of a command line: options, their letters and values, what is refused. */
#include "line.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/command.h"

static void test_options(void **state)
{
    (void)state;
    struct cli cli;
    assert_int_equal(parse(&cli, "logs -f --role worker --index=1 train"), 0);
    assert_true(cli_flag(&cli, "follow"));
    assert_string_equal(cli_value(&cli, "role"), "worker");
    assert_string_equal(cli_value(&cli, "index"), "1");
    assert_int_equal(cli.argument_count, 1);
    assert_string_equal(cli.arguments[0], "train");
    mem_free(cli.arguments);
    assert_int_equal(parse(&cli, "submit -fqr worker -- -file"), 0);
    assert_true(cli_flag(&cli, "quiet"));
    assert_string_equal(cli_value(&cli, "role"), "worker");
    assert_string_equal(cli.arguments[0], "-file");
    mem_free(cli.arguments);
    assert_int_equal(parse(&cli, "list -l5 -ojson"), 0);
    assert_string_equal(cli_value(&cli, "limit"), "5");
    assert_string_equal(cli_value(&cli, "output"), "json");
    mem_free(cli.arguments);
    /* after the command of run nothing is an option of skep */
    assert_int_equal(parse(&cli, "run --image i ls -l --help"), 0);
    assert_int_equal(cli.argument_count, 3);
    assert_false(cli_flag(&cli, "help"));
    mem_free(cli.arguments);
    assert_int_equal(parse(&cli, "describe --help"), 0);
    mem_free(cli.arguments);
    /* "-" is standard input */
    assert_int_equal(parse(&cli, "validate -"), 0);
    mem_free(cli.arguments);
}

/* Options of all commands stand before the command's name, too. */
static int parse_globals(struct cli *cli, const char *line, char ***words)
{
    static char copy[128], *cut[16];
    int count = 0;
    memset(cli, 0, sizeof *cli);
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        cut[count++] = word;
    *words = cut;
    int failed = cli_parse_globals(cli, &count, words);
    if (!count)
        *words = NULL;
    return failed;
}

static void test_options_before(void **state)
{
    (void)state;
    struct cli cli;
    char **words;
    assert_int_equal(parse_globals(&cli, "--server http://a -ojson list -o yaml", &words), 0);
    assert_string_equal(words[0], "list");
    assert_string_equal(cli_value(&cli, "server"), "http://a");
    assert_string_equal(cli_value(&cli, "output"), "json");
    cli.command = command_find("list");
    assert_int_equal(cli_parse(&cli, 2, words + 1), 0);
    assert_string_equal(cli_value(&cli, "output"), "yaml"); /* the last one counts */
    mem_free(cli.arguments);
    assert_int_equal(parse_globals(&cli, "-h", &words), 0);
    assert_true(cli_flag(&cli, "help") && !words);
    assert_int_equal(parse_globals(&cli, "--color=never --version", &words), 0);
    assert_string_equal(words[0], "--version");
    static const char *const WRONG[] = {"--limit 5 list", "-l5 list", "-o", "-o xml list",
                                        "--help=yes list"};
    for (size_t i = 0; i < COUNT_OF(WRONG); i++)
        assert_int_equal(parse_globals(&cli, WRONG[i], &words), EXIT_USAGE);
}

static void test_wrong_options(void **state)
{
    (void)state;
    static const char *const WRONG[] = {
        "describe",          "describe a b", "list --stat x", "list -x",
        "logs --role",       "logs -n",      "list x",        "logs --follow=yes j",
        "list --output xml", "scale a b",    "list -o",
    };
    for (size_t i = 0; i < COUNT_OF(WRONG); i++) {
        struct cli cli;
        assert_int_equal(parse(&cli, WRONG[i]), EXIT_USAGE);
        mem_free(cli.arguments);
    }
    struct cli cli;
    long value;
    assert_int_equal(parse(&cli, "list --limit ten"), 0);
    assert_int_equal(cli_number(&cli, "limit", 1, 50, 20, &value), EXIT_USAGE);
    assert_int_equal(cli_number(&cli, "offset", 0, 50, 7, &value), 0);
    assert_int_equal(value, 7);
    mem_free(cli.arguments);
}

static bool is_in(const struct cli_option *options, const struct cli_option *option)
{
    for (; options->name; options++)
        if (strcmp(options->name, option->name) == 0 ||
            (options->letter && options->letter == option->letter))
            return true;
    return false;
}

/* An option of a command would hide one of all commands. */
static void test_names_of_options(void **state)
{
    (void)state;
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        for (const struct cli_option *option = COMMANDS[i].options; option->name; option++)
            if (is_in(GLOBAL_OPTIONS, option))
                fail_msg("%s: --%s is an option of all commands", COMMANDS[i].name, option->name);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_names_of_options),
    cmocka_unit_test(test_options),
    cmocka_unit_test(test_options_before),
    cmocka_unit_test(test_wrong_options),
};
UNIT_FILE(tests, NULL, NULL);
