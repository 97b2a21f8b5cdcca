#include "base/memory.h"
#include "cli/client.h"
#include "cli/command.h"
#include <locale.h>
#include <signal.h>
#include <string.h>

static int unknown_command(const char *name)
{
    const char *best = NULL;
    unsigned best_distance = 3;
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        unsigned distance = text_distance(text_of(name), text_of(COMMANDS[i].name), 3);
        if (distance < best_distance) {
            best = COMMANDS[i].name;
            best_distance = distance;
        }
    }
    return cli_fail(EXIT_USAGE, "unknown command '%s'%s%s%s; see: skep help", name,
                    best ? ", did you mean " : "", best ? best : "", best ? "?" : "");
}

static int overview(void)
{
    cleanup_buf struct buf text = BUF_INIT;
    help_overview(&text);
    fwrite(buf_cstr(&text), 1, text.length, stdout);
    return 0;
}

/* "skep submit …", or "skep-submit …" through a link of that name. 0, or an exit code. */
static int command_name(struct cli *cli, int *count, char ***words, const char **name)
{
    const char *base = strrchr((*words)[0], '/');
    base = base ? base + 1 : (*words)[0];
    (*count)--;
    (*words)++;
    *name = NULL;
    if (strncmp(base, "skep-", 5) == 0 && command_find(base + 5)) {
        *name = base + 5;
        return 0;
    }
    int code = cli_parse_globals(cli, count, words);
    if (code || *count == 0)
        return code;
    (*count)--;
    *name = *(*words)++;
    return 0;
}

int main(int count, char **words)
{
    setlocale(LC_TIME, "");
    signal(SIGPIPE, SIG_DFL);
    struct cli cli = {0};
    const char *name;
    int code = command_name(&cli, &count, &words, &name);
    if (code)
        return code;
    if (!name) {
        overview();
        return cli_flag(&cli, "help") ? 0 : EXIT_USAGE;
    }
    if (strcmp(name, "--version") == 0)
        name = "version";
    cli.command = command_find(name);
    if (!cli.command)
        return unknown_command(name);
    code = cli_parse(&cli, count, words);
    if (!code)
        cli_output_choose(&cli);
    if (!code && cli_flag(&cli, "help")) {
        cleanup_buf struct buf text = BUF_INIT;
        help_command(cli.command, &text);
        fwrite(buf_cstr(&text), 1, text.length, stdout);
    } else if (!code) {
        code = cli.command->run(&cli);
    }
    if (fflush(stdout) != 0 && !code)
        code = cli_fail(EXIT_REFUSED, "cannot write the output");
    client_free(cli.client);
    mem_free(cli.arguments);
    return code;
}
