/* beside.c — becomes a program beside the task's own: with its environment and working directory.
 *
 * For engines that start programs in containers by a service of their own, which makes the terminal
 * and tells the code: in a pod, the node's runtime.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "init/init.h"
#include "init/layout.h"

enum { FAILED = 126, NOT_FOUND = 127 };

int beside(struct init *init, int count, char **arguments)
{
    static int (*const STEPS[])(struct init *, struct err *) = {
        task_read, job_read, setup_network, setup_identity, setup_environment,
    };
    struct err err = {0};
    bool is_bash;
    init->is_guest = true;
    int code = count > 0 ? 0 : err_fail(&err, ERR_INVALID, "", "beside needs a terminal's name");
    for (size_t i = 0; i < sizeof STEPS / sizeof STEPS[0] && code == 0; i++)
        code = STEPS[i](init, &err);
    if (code < 0) {
        dprintf(STDERR_FILENO, "skep-init: %s\n", err.text);
        return FAILED;
    }
    char *shell[2] = {(char *)(uintptr_t)shell_find(&is_bash), NULL};
    char **argv = count > 1 ? arguments + 1 : shell;
    environ = init->environment;
    if (strcmp(arguments[0], "-") != 0)
        setenv("TERM", arguments[0], 1);
    if (argv[0])
        execvp(argv[0], argv);
    dprintf(STDERR_FILENO, "skep-init: cannot run %s: %s\n", argv[0] ? argv[0] : "a shell",
            argv[0] ? strerror(errno) : "the image has neither bash nor sh");
    return !argv[0] || errno == ENOENT ? NOT_FOUND : FAILED;
}
