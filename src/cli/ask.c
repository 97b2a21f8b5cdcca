#include "cli/ask.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <termios.h>
#include <unistd.h>

enum { LINE_LENGTH_MAX = 8192 };

int ask_line(const char *what, char **line)
{
    size_t room = 0;
    *line = NULL;
    ssize_t length = getline(line, &room, stdin);
    if (length <= 0 || length > LINE_LENGTH_MAX)
        return cli_fail(EXIT_USAGE, "no %s on standard input", what);
    while (length && ((*line)[length - 1] == '\n' || (*line)[length - 1] == '\r'))
        (*line)[--length] = '\0';
    return 0;
}

bool ask_yes(const char *question)
{
    char *line = NULL;
    fprintf(stderr, "%s [y/N] ", question);
    const bool is_yes = ask_line("answer", &line) == 0 &&
                        (strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0);
    free(line);
    return is_yes;
}

int ask_password(const struct cli *cli, char **password)
{
    struct termios before, quiet;
    if (cli_flag(cli, "password-stdin"))
        return ask_line("password", password);
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &before))
        return cli_fail(EXIT_USAGE, "give --password-stdin, as standard input is not a terminal");
    quiet = before;
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
    fprintf(stderr, "Password: "); /* after it: what is typed at the prompt is not thrown away */
    int code = ask_line("password", password);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    fprintf(stderr, "\n");
    return code;
}

void ask_forget(char *password)
{
    if (password)
        explicit_bzero(password, strlen(password));
    free(password);
}
