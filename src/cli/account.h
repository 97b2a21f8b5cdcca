/* account.h — what the commands of users, groups and tokens share: `skep user ACTION NAME…`. */
#ifndef CLI_ACCOUNT_H
#define CLI_ACCOUNT_H
#include "cli/client.h"
#include "cli/command.h"

struct account_action {
    const char *name;
    int min, max; /* number of names behind it; max < 0: any */
    int (*run)(struct cli *cli, struct client *client);
};

/* Run the action that the first argument names; the last row has no name. */
int account_run(struct cli *cli, const struct account_action *actions);

/* "/api/v2/users/NAME" + rest, percent-coded. */
void account_path(struct buf *path, const char *kind, const char *name, const char *rest);
/* Send JSON (freed here) and print "DONE WHAT". */
int account_send(struct client *client, const char *method, const char *path, json_t *body,
                 const char *done, const char *what);
/* The names of a comma list, without empty ones. */
json_t *names_split(const char *list);
/* The names of a JSON list with a comma between them, into `out`. */
const char *account_joined(const json_t *names, struct buf *out);
/* --KEY yes|no into body[field], when it is given. EXIT_USAGE after a message. */
int account_choice(const struct cli *cli, const char *key, json_t *body, const char *field);

#endif
