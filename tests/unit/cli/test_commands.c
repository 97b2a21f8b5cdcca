/* The table of commands: each is found, explained, and has letters that do not clash.
 *
 * Covers: src/cli/help.c, src/cli/man.c, src/cli/completion.c */
#include "unit.h"

#include <string.h>

#include "base/memory.h"
#include "cli/command.h"

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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_table),
};
UNIT_FILE(tests, NULL, NULL);
