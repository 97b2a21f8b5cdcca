/* The command line without a server: words, tables, forms of output, what is made of the table. */
#include "base/memory.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/job.h"
#include "cli/print.h"
#include "cli/run_file.h"
#include "cli/settings.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Parse a line of words cut at spaces. */
static int parse(struct cli *cli, const char *line)
{
    static char copy[512], *words[32];
    int count = 0;
    memset(cli, 0, sizeof *cli);
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        words[count++] = word;
    cli->command = command_find(words[0]);
    assert_non_null(cli->command);
    return cli_parse(cli, count - 1, words + 1);
}

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

/* Every command can be found, explained, and has letters that do not clash. */
static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const struct cli_command *command = &COMMANDS[i];
        struct buf text = BUF_INIT;
        assert_ptr_equal(command_find(command->name), command);
        assert_non_null(command->run);
        assert_true(command->description[0] && command->summary[0]);
        for (const struct cli_option *a = command->options; a->name; a++) {
            for (const struct cli_option *b = a + 1; b->name; b++)
                assert_true(strcmp(a->name, b->name) != 0 &&
                            (!a->letter || a->letter != b->letter));
            for (const struct cli_option *b = GLOBAL_OPTIONS; b->name; b++)
                assert_true(strcmp(a->name, b->name) != 0 &&
                            (!a->letter || a->letter != b->letter));
        }
        help_command(command, &text);
        assert_non_null(strstr(buf_cstr(&text), command->name));
        buf_clear(&text);
        man_command(command, &text);
        assert_non_null(strstr(buf_cstr(&text), ".SH NAME"));
        buf_release(&text);
    }
    struct buf all = BUF_INIT;
    help_overview(&all);
    man_overview(&all);
    completion_bash(&all);
    completion_zsh(&all);
    completion_fish(&all);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        assert_non_null(strstr(buf_cstr(&all), COMMANDS[i].name));
    buf_release(&all);
}

static void test_print(void **state)
{
    (void)state;
    static const char *const HEADS[] = {"A", "LONGER", NULL};
    struct buf out = BUF_INIT;
    struct table table;
    table_init(&table, false, HEADS);
    table_cell(&table, "größe");
    table_cell(&table, NULL);
    table_format(&table, "%d", 5);
    table_cell(&table, "RUNNING");
    table_print(&table, &out);
    assert_string_equal(buf_cstr(&out), "A      LONGER\ngröße  -\n5      RUNNING\n");
    table.has_colours = true;
    buf_clear(&out);
    table_print(&table, &out);
    assert_non_null(strstr(buf_cstr(&out), "\033[34mRUNNING\033[0m"));
    table_release(&table);

    static const struct {
        int64_t ms;
        const char *text;
    } TIMES[] = {{-1, "-"},
                 {1500, "1.5 s"},
                 {59000, "59 s"},
                 {200000, "3 m 20 s"},
                 {7260000, "2 h 1 m"},
                 {90000000, "1 d 1 h"}};
    for (size_t i = 0; i < COUNT_OF(TIMES); i++) {
        buf_clear(&out);
        print_duration(&out, TIMES[i].ms);
        assert_string_equal(buf_cstr(&out), TIMES[i].text);
    }
    buf_clear(&out);
    print_time(&out, 0);
    assert_string_equal(buf_cstr(&out), "-");
    buf_release(&out);
}

static void test_yaml(void **state)
{
    (void)state;
    json_t *json = json_loads(
        "{\"a\":\"plain\",\"b\":[{\"c\":1,\"d\":[]},\"yes\",\"2:3\"],\"e\":{},\"f\":null,"
        "\"g h\":true,\"i\":[[1,2]]}",
        0, NULL);
    struct buf out = BUF_INIT;
    print_yaml(&out, json);
    assert_string_equal(buf_cstr(&out), "a: plain\n"
                                        "b:\n"
                                        "  - c: 1\n"
                                        "    d: []\n"
                                        "  - \"yes\"\n"
                                        "  - \"2:3\"\n"
                                        "e: {}\n"
                                        "f: null\n"
                                        "\"g h\": true\n"
                                        "i:\n"
                                        "  - - 1\n"
                                        "    - 2\n");
    json_decref(json);
    buf_release(&out);
}

/* What others wrote is shown, not obeyed: by tables, by texts, by JSON and YAML. */
static void test_control_characters(void **state)
{
    (void)state;
    static const char *const HEADS[] = {"TAGS", NULL};
    static const char TEXT_JSON[] =
        "{\"a\":\"x\\u001b[2Jy\\u009b2Jz\\u007f\\nb\",\"b\":[\"\\u001b]0;t\\u0007c\"],"
        "\"k\\u009b\":1}";
    json_t *json = json_loads(TEXT_JSON, 0, NULL), *again;
    struct buf out = BUF_INIT;
    assert_non_null(json);
    print_json_line(&out, json);
    print_yaml(&out, json);
    print_json(&out, json);
    for (size_t i = 0; i < out.length; i++) {
        unsigned char c = (unsigned char)out.at[i];
        assert_true((c >= 0x20 || c == '\n') && c < 0x7f);
    }
    /* and nothing is lost */
    *strchr(out.at, '\n') = '\0';
    again = json_loads(out.at, 0, NULL);
    assert_true(json_equal(json, again));
    json_decref(again);

    assert_string_equal(field_text(json, "a"), "xy2Jz\nb");
    assert_string_equal(item_text(json_object_get(json, "b"), 0), "c");
    assert_null(item_text(json_object_get(json, "b"), 1));
    assert_null(field_text(json, "c"));
    json_decref(json);

    struct table table;
    buf_clear(&out);
    table_init(&table, false, HEADS);
    table_cell(&table, "a\033[31mb\nc\td\xc2\x9b"
                       "e");
    table_print(&table, &out);
    assert_string_equal(buf_cstr(&out), "TAGS\nab c de\n");
    table_release(&table);
    buf_release(&out);
}

static int exit_code_of(const char *status)
{
    struct buf text = BUF_INIT;
    buf_format(&text, "{\"jobStatus\":{%s}}", status);
    json_t *detail = json_loads(buf_cstr(&text), 0, NULL);
    assert_non_null(detail);
    int code = job_exit_code(detail);
    json_decref(detail);
    buf_release(&text);
    return code;
}

static void test_exit_codes(void **state)
{
    (void)state;
    assert_int_equal(exit_code_of("\"state\":\"SUCCEEDED\",\"appExitCode\":0"), 0);
    assert_int_equal(exit_code_of("\"state\":\"FAILED\",\"appExitCode\":7"), 7);
    assert_int_equal(exit_code_of("\"state\":\"FAILED\",\"appExitCode\":255"), 255);
    assert_int_equal(
        exit_code_of("\"state\":\"FAILED\",\"appExitCode\":220,\"appOriginalExitCode\":127"), 127);
    assert_int_equal(
        exit_code_of("\"state\":\"FAILED\",\"appExitCode\":-1003,\"appOriginalExitCode\":137"),
        EXIT_PLATFORM);
    assert_int_equal(exit_code_of("\"state\":\"FAILED\",\"appExitCode\":256"), EXIT_PLATFORM);
    assert_int_equal(exit_code_of("\"state\":\"FAILED\",\"appExitCode\":-1001"), EXIT_PLATFORM);
    assert_int_equal(exit_code_of("\"state\":\"STOPPED\",\"appExitCode\":-210"), EXIT_STOPPED);
    assert_int_equal(exit_code_of("\"state\":\"FAILED\",\"appExitCode\":null"), EXIT_PLATFORM);
}

static void test_paths(void **state)
{
    (void)state;
    struct buf path = BUF_INIT;
    job_path(&path, "alice~a b/../c", "/config");
    assert_string_equal(buf_cstr(&path), "/api/v2/jobs/alice~a%20b%2F..%2Fc/config");
    buf_release(&path);
}

static void test_run_file(void **state)
{
    (void)state;
    struct cli cli;
    struct buf file = BUF_INIT;
    assert_int_equal(parse(&cli, "run --image debian --memory 64 --vc vc1 echo it's $HOME"), 0);
    assert_int_equal(run_file(&cli, &file), 0);
    json_t *json = json_loadb(buf_cstr(&file), file.length, 0, NULL);
    const json_t *role = json_object_get(json_object_get(json, "taskRoles"), "main");
    assert_string_equal(json_string_value(json_array_get(json_object_get(role, "commands"), 0)),
                        "echo 'it'\\''s' '$HOME'");
    assert_int_equal(field_int(json_object_get(role, "extraContainerOptions"), "shmMB"), 33);
    assert_string_equal(field_text(json_object_get(json, "defaults"), "virtualCluster"), "vc1");
    assert_int_equal(strncmp(field_text(json, "name"), "run-", 4), 0);
    json_decref(json);
    mem_free(cli.arguments);
    assert_int_equal(parse(&cli, "run echo"), 0);
    assert_int_equal(run_file(&cli, &file), EXIT_USAGE);
    mem_free(cli.arguments);
    buf_release(&file);
}

static void test_settings(void **state)
{
    (void)state;
    char folder[] = "/tmp/skep-cli-test-XXXXXX", path[100];
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("XDG_CONFIG_HOME", folder, 1), 0);
    struct settings read, settings = {.server = mem_copy("http://h:1"),
                                      .user = mem_copy("alice"),
                                      .token = mem_copy("a.b.c")};
    assert_int_equal(settings_load(&read, NULL), 0);
    assert_null(read.token);
    assert_int_equal(settings_save(&settings, NULL), 0);
    assert_int_equal(settings_load(&read, NULL), 0);
    assert_string_equal(read.server, "http://h:1");
    assert_string_equal(read.token, "a.b.c");
    assert_string_equal(read.user, "alice");
    settings_release(&read);
    settings_release(&settings);
    struct stat status;
    snprintf(path, sizeof path, "%s/skep/settings", folder);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    chmod(path, 0644);
    assert_true(settings_load(&read, NULL) < 0);
    settings_release(&read);
    unlink(path);
    snprintf(path, sizeof path, "%s/skep", folder);
    rmdir(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_options_before),
        cmocka_unit_test(test_wrong_options),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_yaml),
        cmocka_unit_test(test_control_characters),
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_run_file),
        cmocka_unit_test(test_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
