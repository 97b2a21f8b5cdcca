/* command.h — the one table of commands: parsing, help, man pages and completion are made of it.
 *
 * A command is one row; its options are a list that ends with an empty row. Options of all commands
 * (--server, --output, …) stand in GLOBAL_OPTIONS.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H
#include "base/buf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct client;

/* Exit codes, documented in skep(1). While waiting for a job the job's own code is given. */
enum {
    EXIT_OK = 0,
    EXIT_REFUSED = 1,     /* the file is not valid, the server said no */
    EXIT_USAGE = 2,       /* wrong command line */
    EXIT_UNREACHABLE = 3, /* no server there */
    EXIT_NOT_ALLOWED = 4, /* not logged in, or not yours */
    EXIT_TIME_OVER = 124, /* wait --timeout */
    EXIT_SKEP = 125,      /* while waiting: skep failed, not the job */
    EXIT_PLATFORM = 126,  /* the platform ended the job: no code of its own */
    EXIT_STOPPED = 130,   /* the job was stopped */
};

/* What shells complete with. */
enum cli_kind { KIND_NONE, KIND_FILE, KIND_JOB, KIND_COMMAND, KIND_CHOICE, KIND_REST };

struct cli_option {
    const char *name;    /* without "--"; NULL ends the list */
    char letter;         /* 0: none */
    const char *value;   /* "FILE"; NULL: a flag */
    const char *help;    /* one line, no full stop */
    const char *choices; /* "table wide json yaml", or NULL */
    enum cli_kind kind;
};

struct cli;

struct cli_command {
    const char *name;
    const char *arguments;   /* "FILE…", "" */
    enum cli_kind kind;      /* of the arguments */
    const char *choices;     /* KIND_CHOICE */
    int min, max;            /* number of arguments; max < 0: any */
    const char *summary;     /* one line */
    const char *description; /* paragraphs, separated by an empty line */
    const char *example;     /* lines of shell, or NULL */
    const struct cli_option *options;
    int (*run)(struct cli *cli); /* exit code */
};

extern const struct cli_command COMMANDS[];
extern const size_t COMMAND_COUNT;
extern const struct cli_option GLOBAL_OPTIONS[];

const struct cli_command *command_find(const char *name);

enum { CLI_GIVEN_MAX = 256 };

enum cli_output { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_YAML };

struct cli {
    const struct cli_command *command;
    struct {
        const struct cli_option *option;
        const char *value; /* "" for a flag */
    } given[CLI_GIVEN_MAX];
    size_t given_count;
    const char **arguments;
    int argument_count;
    int rest_at; /* the first argument behind "--"; argument_count: there was none */
    enum cli_output output;
    bool has_colours;
    struct client *client; /* made by cli_client */
};

/* Options of all commands may stand before the command's name, too: take them, and move `words` to
 * the first word that is none of them (`count` may be 0 then). 0, or EXIT_USAGE after a message. */
int cli_parse_globals(struct cli *cli, int *count, char ***words);

/* Cut the command line behind the command's name. 0, or EXIT_USAGE after a message. `--` ends the
 * options; so does the first argument of a command with KIND_REST. */
int cli_parse(struct cli *cli, int count, char **words);

/* What the options say about the form of the output, and whether it has colours. */
void cli_output_choose(struct cli *cli);

/* Last value given of an option, or NULL; a flag's is "". */
const char *cli_value(const struct cli *cli, const char *name);
static inline bool cli_flag(const struct cli *cli, const char *name)
{
    return cli_value(cli, name) != NULL;
}
/* A number in min … max, or `fallback`. 0, or EXIT_USAGE after a message. */
int cli_number(const struct cli *cli, const char *name, long min, long max, long fallback,
               long *value);
/* A day, a time of it, or how long ago, as Unix time; -1 when it is not given. EXIT_USAGE after a
 * message. */
int cli_time(const struct cli *cli, const char *name, int64_t *at_ms);

/* "skep: …" on standard error; returns `code`. */
int cli_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The server by --server, or by SKEP_SERVER unless a context is named by its option; the context by
 * --context, or by SKEP_CONTEXT unless a server is given. NULL: by neither. */
const char *cli_given_server(const struct cli *cli);
const char *cli_given_context(const struct cli *cli);

/* Load the settings, and find the context that is meant: --context, SKEP_CONTEXT, or the current
 * one. *context is NULL when a server is given (--server, SKEP_SERVER), or there is no current one.
 * 0, or an exit code after a message; the settings are to be released either way. */
struct settings;
struct context;
int cli_context(const struct cli *cli, struct settings *settings, struct context **context);

/* The client for the server that is given, that of the context, or this machine's. NULL after a
 * message. */
struct client *cli_client(struct cli *cli);

/* Everything made of the table. */
void help_overview(struct buf *out);
void help_command(const struct cli_command *command, struct buf *out);
void man_overview(struct buf *out);
void man_command(const struct cli_command *command, struct buf *out);
void completion_bash(struct buf *out);
void completion_zsh(struct buf *out);
void completion_fish(struct buf *out);

/* The commands. */
int run_validate(struct cli *cli);
int run_convert(struct cli *cli);
int run_submit(struct cli *cli);
int run_clone(struct cli *cli);
int run_run(struct cli *cli);
int run_list(struct cli *cli);
int run_describe(struct cli *cli);
int run_config(struct cli *cli);
int run_logs(struct cli *cli);
int run_stop(struct cli *cli);
int run_start(struct cli *cli);
int run_delete(struct cli *cli);
int run_archive(struct cli *cli);
int run_release(struct cli *cli);
int run_scale(struct cli *cli);
int run_tag(struct cli *cli);
int run_wait(struct cli *cli);
int run_exec(struct cli *cli);
int run_shell(struct cli *cli);
int run_open(struct cli *cli);
int run_attach(struct cli *cli);
int run_events(struct cli *cli);
int run_use(struct cli *cli);
int run_nodes(struct cli *cli);
int run_pardon(struct cli *cli);
int run_cordon(struct cli *cli);
int run_drain(struct cli *cli);
int run_uncordon(struct cli *cli);
int run_exits(struct cli *cli);
int run_vc(struct cli *cli);
int run_cells(struct cli *cli);
int run_user(struct cli *cli);
int run_group(struct cli *cli);
int run_token(struct cli *cli);
int run_whoami(struct cli *cli);
int run_login(struct cli *cli);
int run_logout(struct cli *cli);
int run_context(struct cli *cli);
int run_audit(struct cli *cli);
int run_alerts(struct cli *cli);
int run_quota(struct cli *cli);
int run_request(struct cli *cli);
int run_storage(struct cli *cli);
int run_template(struct cli *cli);
int run_admin(struct cli *cli);
int run_kube(struct cli *cli);
int run_import(struct cli *cli);
int run_completion(struct cli *cli);
int run_man(struct cli *cli);
int run_version(struct cli *cli);
int run_help(struct cli *cli);

#endif
