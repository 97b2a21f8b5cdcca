/* answers.h — a server in a thread of the test, which answers each request as it is told, or cuts
 * the connection. */
#ifndef TEST_CLI_ANSWERS_H
#define TEST_CLI_ANSWERS_H
#include "cli/client.h"
#include <pthread.h>

enum { ANSWERS_MAX = 4, ANSWERS_REQUEST_MAX = 4096 };

struct answers {
    struct {
        const char *status; /* "200 OK"; NULL: the connection is cut */
        const char *body;
    } items[ANSWERS_MAX];
    int count;
    char requests[ANSWERS_MAX][ANSWERS_REQUEST_MAX]; /* as they came */
    int asked;
    pthread_t thread;
    int fd;
    char url[64];
};

void answers_start(struct answers *answers);
/* After the last answer; each must have been asked for. */
void answers_join(struct answers *answers);

/* Run a command line against these answers. Returns the command's exit code; what it printed is in
 * `printed`, cut at `size`. */
struct cli;
int answers_run_line(struct answers *answers, const char *line,
                     int (*run)(struct cli *cli, const void *context), const void *context,
                     char *printed, size_t size);

/* As answers_run_line, by the command's own function. */
int answers_command(struct answers *answers, const char *line, char *printed, size_t size);

/* A header's value in a request; "" when it has none. */
void answers_header(const struct answers *answers, int request, const char *name, char *value,
                    size_t size);

#endif
