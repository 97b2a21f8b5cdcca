#include "cli/command.h"
#include <string.h>

enum { WIDTH = 78 };

/* Paragraphs of `text`, wrapped; an empty line stays. */
static void wrap(struct buf *out, const char *text, const char *indent)
{
    size_t column = 0;
    while (*text) {
        if (text[0] == '\n' && text[1] == '\n') {
            buf_string(out, "\n\n");
            column = 0;
            text += 2;
            continue;
        }
        size_t length = strcspn(text, " \n");
        if (column && column + 1 + length > WIDTH) {
            buf_char(out, '\n');
            column = 0;
        }
        if (length) {
            buf_string(out, column ? " " : indent);
            buf_add(out, text, length);
            column += length + (column ? 1 : strlen(indent));
        }
        text += length;
        if (*text == ' ' || (text[0] == '\n' && text[1] != '\n'))
            text++;
    }
    buf_char(out, '\n');
}

static void option_line(const struct cli_option *option, struct buf *out)
{
    cleanup_buf struct buf head = BUF_INIT;
    if (option->letter)
        buf_format(&head, "-%c, ", option->letter);
    else
        buf_string(&head, "    ");
    buf_format(&head, "--%s", option->name);
    if (option->value)
        buf_format(&head, " %s", option->value);
    buf_format(out, "  %-28s %s\n", buf_cstr(&head), option->help);
}

static void option_lines(const struct cli_option *options, struct buf *out)
{
    for (; options->name; options++)
        option_line(options, out);
}

void help_overview(struct buf *out)
{
    buf_string(
        out,
        "Skep runs jobs on a cluster.\n\nUsage: skep [OPTION…] COMMAND [OPTION…] [ARGUMENT…]\n\n"
        "Commands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        buf_format(out, "  %-12s %s\n", COMMANDS[i].name, COMMANDS[i].summary);
    buf_string(out, "\nOptions of all commands, which may stand before the command or after it:\n");
    option_lines(GLOBAL_OPTIONS, out);
    buf_string(out, "\nskep help COMMAND tells more.\n");
}

void help_command(const struct cli_command *command, struct buf *out)
{
    buf_format(out, "Usage: skep %s%s%s%s\n\n", command->name,
               command->options->name ? " [OPTION…]" : "", command->arguments[0] ? " " : "",
               command->arguments);
    wrap(out, command->description, "");
    if (command->options->name) {
        buf_string(out, "\nOptions:\n");
        option_lines(command->options, out);
    }
    buf_string(out, "\nOptions of all commands:\n");
    option_lines(GLOBAL_OPTIONS, out);
    if (command->example)
        buf_format(out, "\nExample:\n  %s\n", command->example);
}
