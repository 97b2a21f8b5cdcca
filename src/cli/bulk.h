/* bulk.h — one action for all jobs that a filter finds, or for those that are named. */
#ifndef CLI_BULK_H
#define CLI_BULK_H
#include "base/buf.h"
#include "cli/client.h"
#include "cli/command.h"

/* The options by which jobs are filtered, for tables of options. */
#define FILTER_OPTIONS                                                                               \
    {"user", 'u', "NAMES", "jobs of these users (comma list; @me: yours)", NULL, 0},                 \
        {"state",                                                                                    \
         0,                                                                                          \
         "STATES",                                                                                   \
         "in these states (comma list)",                                                             \
         "WAITING RUNNING STOPPING SUCCEEDED STOPPED FAILED",                                        \
         0},                                                                                         \
        {"vc", 0, "NAMES", "in these virtual clusters (comma list)", NULL, 0},                       \
        {"keyword", 'k', "TEXT", "with this text in name, user or virtual cluster", NULL, 0},        \
        {"tag", 't', "TAGS", "with any of these tags (comma list)", NULL, 0},                        \
        {"no-tag", 0, "TAGS", "with none of these tags (comma list)", NULL, 0},                      \
        {"since", 0, "TIME", "submitted at this time or later, or in the last 30m, 2h or 7d",        \
         NULL,    0},                                                                                \
        {"until", 0, "TIME", "submitted before this time, or more than 30m, 2h or 7d ago", NULL, 0}, \
    {                                                                                                \
        "priority", 0, "CLASSES", "of these priority classes (comma list)",                          \
            "oppo test prod crit default", 0                                                         \
    }

/* "&username=…" for each of them that was given. */
int filter_query(struct cli *cli, struct client *client, struct buf *query);
/* Was one of them given, or --all? */
bool filter_is_given(const struct cli *cli);

/* Are there names, or is there a filter, and not both? 0, or EXIT_USAGE after a message. */
int bulk_choice_check(const struct cli *cli, int names);

/* Let the server do it to all jobs that match; with --dry-run, print their names. The exit code is
 * that of the first failure. */
struct bulk_call {
    const char *action, *tag; /* as the API names them; tag NULL: the action has none */
    const char *done;         /* what is printed before a name: "stopping" */
};
int bulk_run(struct cli *cli, const struct bulk_call *call);
/* The names alone of those that match; with --all on a terminal, when the user has agreed. None
 * when nothing is to be done: it has been said why. The list is the caller's. */
int bulk_names(struct cli *cli, const struct bulk_call *call, json_t **names);

#endif
