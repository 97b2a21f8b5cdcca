/* line.h — a command line of words cut at spaces, for the tests of the command line. */
#ifndef TESTS_CLI_LINE_H
#define TESTS_CLI_LINE_H
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/command.h"

/* Parse a line of words cut at spaces. */
static inline int parse(struct cli *cli, const char *line)
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

#endif
