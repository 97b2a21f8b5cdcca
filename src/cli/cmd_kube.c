/* kube: looks at a Kubernetes cluster, without a server */
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "cli/command.h"
#include "cli/findings.h"
#include "cli/kube_check.h"

static int check(const struct cli *cli)
{
    cleanup_arena struct arena arena;
    struct err err;
    struct kube_ask *ask = NULL;
    arena_init(&arena);
    struct kube_wants *wants = ARENA_NEW(&arena, struct kube_wants);
    struct machine_finding *findings =
        ARENA_ARRAY(&arena, struct machine_finding, KUBE_FINDINGS_MAX);
    int code = kube_wants_read(cli, &arena, wants);
    if (code == 0 && kube_ask_new(&wants->access, &ask, &err) < 0)
        code = cli_fail(EXIT_USAGE, "%s", err.text);
    if (code == 0) {
        const size_t count = kube_check(ask, wants, &arena, findings);
        code = findings_show(cli, findings, count);
    }
    kube_ask_free(ask);
    arena_wipe(&arena); /* it has the token and the key */
    return code;
}

int run_kube(struct cli *cli)
{
    if (strcmp(cli->arguments[0], "check") == 0)
        return check(cli);
    return cli_fail(EXIT_USAGE, "kube: %s is not an action; there is: check", cli->arguments[0]);
}
