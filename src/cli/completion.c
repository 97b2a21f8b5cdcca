/* Completion scripts of the table. Names of jobs are asked of the server when Tab is pressed. */
#include "base/memory.h"
#include "cli/command.h"
#include <string.h>

/* Names of jobs, one a line, for all three shells; silent when there is no server. */
#define JOB_NAMES "skep list --quiet --limit 200 2>/dev/null"

/* ---- bash ---- */

static void bash_words(struct buf *out, const struct cli_option *options)
{
    for (; options->name; options++) {
        buf_format(out, " --%s", options->name);
        if (options->letter)
            buf_format(out, " -%c", options->letter);
    }
}

static void bash_values(struct buf *out, const struct cli_option *options)
{
    for (; options->name; options++) {
        if (!options->value)
            continue;
        buf_format(out, "        --%s", options->name);
        if (options->letter)
            buf_format(out, " | -%c", options->letter);
        if (options->choices)
            buf_format(out, ") COMPREPLY=($(compgen -W '%s' -- \"$word\")); return ;;\n",
                       options->choices);
        else
            buf_string(out, ") return ;;\n");
    }
}

static void bash_arguments(struct buf *out, const struct cli_command *command)
{
    switch (command->kind) {
    case KIND_FILE:
        buf_string(out, "        COMPREPLY=($(compgen -f -- \"$word\"))\n");
        break;
    case KIND_JOB:
        buf_string(out, "        COMPREPLY=($(compgen -W \"$(_skep_jobs)\" -- \"$word\"))\n");
        break;
    case KIND_COMMAND:
        buf_string(out, "        COMPREPLY=($(compgen -W \"$commands\" -- \"$word\"))\n");
        break;
    case KIND_CHOICE:
        buf_format(out, "        COMPREPLY=($(compgen -W '%s' -- \"$word\"))\n", command->choices);
        break;
    case KIND_REST:
        buf_string(out, "        COMPREPLY=($(compgen -c -- \"$word\"))\n");
        break;
    case KIND_NONE:
        buf_string(out, "        :\n");
        break;
    }
}

void completion_bash(struct buf *out)
{
    buf_string(out, "# bash completion of skep, made by: skep completion bash\n"
                    "_skep_jobs() {\n    " JOB_NAMES "\n}\n\n"
                    "_skep() {\n"
                    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
                    "    local commands='");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        buf_format(out, "%s%s", i ? " " : "", COMMANDS[i].name);
    buf_string(out, "'\n    local command= at\n"
                    "    COMPREPLY=()\n"
                    "    for ((at = 1; at < COMP_CWORD; at++)); do\n"
                    "        [[ \" $commands \" == *\" ${COMP_WORDS[at]} \"* ]] || continue\n"
                    "        command=${COMP_WORDS[at]}\n        break\n    done\n"
                    "    case $before in\n");
    bash_values(out, GLOBAL_OPTIONS);
    buf_string(out, "    esac\n    case $command in\n    '')\n"
                    "        COMPREPLY=($(compgen -W \"$commands\" -- \"$word\"))\n"
                    "        [[ $word != -* ]] || COMPREPLY=($(compgen -W '");
    bash_words(out, GLOBAL_OPTIONS);
    buf_string(out, "' -- \"$word\"))\n        ;;\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const struct cli_command *command = &COMMANDS[i];
        buf_format(out, "    %s)\n", command->name);
        if (command->options->name) {
            buf_string(out, "        case $before in\n");
            bash_values(out, command->options);
            buf_string(out, "        esac\n");
        }
        buf_string(out, "        if [[ $word == -* ]]; then\n"
                        "            COMPREPLY=($(compgen -W '");
        bash_words(out, command->options);
        bash_words(out, GLOBAL_OPTIONS);
        buf_string(out, "' -- \"$word\"))\n            return\n        fi\n");
        bash_arguments(out, command);
        buf_string(out, "        ;;\n");
    }
    buf_string(out, "    esac\n}\ncomplete -F _skep skep\n");
}

/* ---- zsh ---- */

/* Inside a specification of _arguments in single quotes. */
static void zsh_text(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            buf_string(out, "'\\''");
        else if (*text == ':' || *text == '[' || *text == ']')
            buf_format(out, "\\%c", *text);
        else
            buf_char(out, *text);
    }
}

static void zsh_options(struct buf *out, const struct cli_option *options)
{
    for (; options->name; options++) {
        for (int form = 0; form < 2; form++) {
            if (form == 1 && !options->letter)
                continue;
            buf_string(out, "            '");
            if (form == 0)
                buf_format(out, "*--%s%s[", options->name, options->value ? "=" : "");
            else
                buf_format(out, "*-%c%s[", options->letter, options->value ? "+" : "");
            zsh_text(out, options->help);
            buf_char(out, ']');
            if (options->value) {
                buf_char(out, ':');
                zsh_text(out, options->value);
                buf_char(out, ':');
                if (options->choices)
                    buf_format(out, "(%s)", options->choices);
            }
            buf_string(out, "' \\\n");
        }
    }
}

static const char *zsh_action(const struct cli_command *command)
{
    switch (command->kind) {
    case KIND_FILE:
        return "_files";
    case KIND_JOB:
        return "_skep_jobs";
    case KIND_COMMAND:
        return "_skep_commands";
    case KIND_REST:
        return "_command_names";
    case KIND_CHOICE:
    case KIND_NONE:
        break;
    }
    return " ";
}

void completion_zsh(struct buf *out)
{
    buf_string(out, "#compdef skep\n# zsh completion of skep, made by: skep completion zsh\n\n"
                    "_skep_jobs() {\n    local -a jobs\n    jobs=(${(f)\"$(" JOB_NAMES ")\"})\n"
                    "    compadd -a jobs\n}\n\n"
                    "_skep_commands() {\n    local -a commands\n    commands=(\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        buf_format(out, "        '%s:", COMMANDS[i].name);
        zsh_text(out, COMMANDS[i].summary);
        buf_string(out, "'\n");
    }
    buf_string(out, "    )\n    _describe command commands\n}\n\n"
                    "_skep() {\n    local -i at\n    local -a names=(");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        buf_format(out, "%s%s", i ? " " : "", COMMANDS[i].name);
    buf_string(out, ")\n    for ((at = 2; at < CURRENT; at++)); do\n"
                    "        ((${names[(Ie)$words[at]]})) && break\n    done\n"
                    "    if ((at >= CURRENT)); then\n        _arguments \\\n");
    zsh_options(out, GLOBAL_OPTIONS);
    buf_string(out, "            '*:command:_skep_commands'\n"
                    "        return\n    fi\n    local command=$words[at]\n"
                    "    shift $((at - 1)) words\n    ((CURRENT -= at - 1))\n"
                    "    case $command in\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const struct cli_command *command = &COMMANDS[i];
        buf_format(out, "    %s)\n        _arguments \\\n", command->name);
        zsh_options(out, command->options);
        zsh_options(out, GLOBAL_OPTIONS);
        if (command->kind == KIND_CHOICE)
            buf_format(out, "            '*:argument:(%s)'\n", command->choices);
        else
            buf_format(out, "            '*:argument:%s'\n", zsh_action(command));
        buf_string(out, "        ;;\n");
    }
    buf_string(out, "    esac\n}\n\nif [ \"$funcstack[1]\" = _skep ]; then\n    _skep \"$@\"\n"
                    "else\n    compdef _skep skep\nfi\n");
}

/* ---- fish ---- */

static void fish_text(struct buf *out, const char *text)
{
    buf_char(out, '\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            buf_char(out, '\\');
        buf_char(out, *text);
    }
    buf_char(out, '\'');
}

static void fish_options(struct buf *out, const char *condition, const struct cli_option *options)
{
    for (; options->name; options++) {
        buf_format(out, "complete -c skep -n '%s' -l %s", condition, options->name);
        if (options->letter)
            buf_format(out, " -s %c", options->letter);
        if (options->value)
            buf_string(out, " -x");
        if (options->choices)
            buf_format(out, " -a '%s'", options->choices);
        buf_string(out, " -d ");
        fish_text(out, options->help);
        buf_char(out, '\n');
    }
}

void completion_fish(struct buf *out)
{
    buf_string(out, "# fish completion of skep, made by: skep completion fish\n"
                    "function __skep_jobs\n    " JOB_NAMES "\nend\n\n"
                    "complete -c skep -f\n");
    fish_options(out, "true", GLOBAL_OPTIONS);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const struct cli_command *command = &COMMANDS[i];
        cleanup_buf struct buf condition = BUF_INIT;
        buf_format(&condition, "__fish_seen_subcommand_from %s", command->name);
        buf_format(out, "complete -c skep -n __fish_use_subcommand -a %s -d ", command->name);
        fish_text(out, command->summary);
        buf_char(out, '\n');
        fish_options(out, buf_cstr(&condition), command->options);
        if (command->kind == KIND_FILE || command->kind == KIND_REST)
            buf_format(out, "complete -c skep -n '%s' -F\n", buf_cstr(&condition));
        if (command->kind == KIND_JOB)
            buf_format(out, "complete -c skep -n '%s' -a '(__skep_jobs)'\n", buf_cstr(&condition));
        if (command->kind == KIND_CHOICE)
            buf_format(out, "complete -c skep -n '%s' -a '%s'\n", buf_cstr(&condition),
                       command->choices);
        if (command->kind == KIND_COMMAND) {
            buf_format(out, "complete -c skep -n '%s' -a '", buf_cstr(&condition));
            for (size_t k = 0; k < COMMAND_COUNT; k++)
                buf_format(out, "%s%s", k ? " " : "", COMMANDS[k].name);
            buf_string(out, "'\n");
        }
    }
}
