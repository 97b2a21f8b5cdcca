#include "cli/command.h"
#include <string.h>

/* Text as roff: backslashes and hyphens as they are meant, no line that looks like a request. */
static void roff(struct buf *out, const char *text)
{
    bool is_line_start = true;
    for (; *text; text++) {
        if (is_line_start && (*text == '.' || *text == '\''))
            buf_string(out, "\\&");
        if (*text == '\n' && text[1] == '\n') {
            buf_string(out, "\n.PP\n");
            text++;
            is_line_start = true;
            continue;
        }
        if (*text == '\\')
            buf_string(out, "\\e");
        else if (*text == '-')
            buf_string(out, "\\-");
        else
            buf_char(out, *text);
        is_line_start = *text == '\n';
    }
}

static void title(struct buf *out, const char *name, const char *summary)
{
    buf_format(out, ".TH \"%s\" 1 \"2026-11-21\" \"Skep %s\" \"User commands\"\n.SH NAME\n", name,
               SKEP_VERSION);
    roff(out, name);
    buf_string(out, " \\- ");
    roff(out, summary);
    buf_char(out, '\n');
}

static void option_items(struct buf *out, const struct cli_option *options)
{
    for (; options->name; options++) {
        buf_string(out, ".TP\n");
        if (options->letter)
            buf_format(out, "\\fB\\-%c\\fR, ", options->letter);
        buf_string(out, "\\fB\\-\\-");
        roff(out, options->name);
        buf_string(out, "\\fR");
        if (options->value) {
            buf_string(out, " \\fI");
            roff(out, options->value);
            buf_string(out, "\\fR");
        }
        buf_char(out, '\n');
        roff(out, options->help);
        buf_string(out, ".\n");
    }
}

static void exit_codes(struct buf *out)
{
    static const struct {
        const char *code, *meaning;
    } CODES[] = {
        {"0", "Done; of wait, submit \\-\\-wait and run: the job succeeded."},
        {"1", "The file is not valid, or the server refused."},
        {"2", "The command line is wrong."},
        {"3", "No server can be reached."},
        {"4", "Not logged in, or not allowed."},
        {"124", "The time given to wait is over."},
        {"125", "While waiting for a job, skep itself failed."},
        {"126", "The platform ended the job; it has no exit code of its own."},
        {"130", "The job was stopped."},
        {NULL, NULL},
    };
    buf_string(out, ".SH EXIT STATUS\nA command that waits for a job exits with the job\\(aqs own "
                    "code. Otherwise:\n");
    for (size_t i = 0; CODES[i].code; i++)
        buf_format(out, ".TP\n%s\n%s\n", CODES[i].code, CODES[i].meaning);
}

static void environment(struct buf *out)
{
    buf_string(
        out,
        ".SH ENVIRONMENT\n.TP\nSKEP_SERVER\nURL of the server.\n.TP\nSKEP_CONTEXT\nContext whose "
        "server is meant; SKEP_SERVER comes first.\n.TP\nSKEP_TOKEN\nToken to "
        "present instead of the one kept by skep login, to the server of SKEP_SERVER or else of "
        "the current context, and to no other.\n.TP\nNO_COLOR\nWhen not empty, no "
        "colours.\n.SH FILES\n.TP\n~/.config/skep/settings\nServers and tokens, written by "
        "skep login with mode 0600.\n");
}

void man_overview(struct buf *out)
{
    title(out, "skep", "run jobs on a cluster");
    buf_string(out, ".SH SYNOPSIS\n.B skep\n[\\fIOPTION\\fR\\&...]\n.I COMMAND\n"
                    "[\\fIOPTION\\fR\\&...] [\\fIARGUMENT\\fR\\&...]\n.SH DESCRIPTION\nskep "
                    "submits jobs to a Skep server, "
                    "shows them and their logs, and stops them.\n.SH COMMANDS\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        buf_format(out, ".TP\n\\fB%s\\fR ", COMMANDS[i].name);
        roff(out, COMMANDS[i].arguments);
        buf_char(out, '\n');
        roff(out, COMMANDS[i].summary);
        buf_format(out, "; see \\fBskep\\-%s\\fR(1).\n", COMMANDS[i].name);
    }
    buf_string(out,
               ".SH OPTIONS OF ALL COMMANDS\nThey may stand before the command or after it.\n");
    option_items(out, GLOBAL_OPTIONS);
    exit_codes(out);
    environment(out);
}

void man_command(const struct cli_command *command, struct buf *out)
{
    cleanup_buf struct buf name = BUF_INIT;
    buf_format(&name, "skep-%s", command->name);
    title(out, buf_cstr(&name), command->summary);
    buf_format(out, ".SH SYNOPSIS\n.B skep %s\n%s", command->name,
               command->options->name ? "[\\fIOPTION\\fR\\&...] " : "");
    if (command->arguments[0]) {
        buf_string(out, "\\fI");
        roff(out, command->arguments);
        buf_string(out, "\\fR");
    }
    buf_string(out, "\n.SH DESCRIPTION\n");
    roff(out, command->description);
    buf_char(out, '\n');
    if (command->options->name) {
        buf_string(out, ".SH OPTIONS\n");
        option_items(out, command->options);
    }
    buf_string(out, ".SH OPTIONS OF ALL COMMANDS\n");
    option_items(out, GLOBAL_OPTIONS);
    if (command->example) {
        buf_string(out, ".SH EXAMPLES\n.nf\n");
        roff(out, command->example);
        buf_string(out, "\n.fi\n");
    }
    buf_string(out, ".SH SEE ALSO\n.BR skep (1)\n");
}
