/* kube_check.h — what a cluster lacks for Skep's engine, before Skep is installed in it.
 *
 * Edge. Asks the API server, and changes nothing: a pod is only tried (dryRun).
 */
#ifndef CLI_KUBE_CHECK_H
#define CLI_KUBE_CHECK_H
#include "cli/kube_ask.h"
#include "cli/kube_wants.h"
#include "sys/machine.h"

struct arena;

enum { KUBE_FINDINGS_MAX = 48, KUBE_MINOR_MIN = 27, KUBE_CLOCK_MS = 30 * 1000 };

/* In an order for people. Returns how many. */
size_t kube_check(struct kube_ask *ask, const struct kube_wants *wants, struct arena *arena,
                  struct machine_finding findings[KUBE_FINDINGS_MAX]);

/* --- its parts --- */

struct kube_judge {
    struct kube_ask *ask;
    const struct kube_wants *wants;
    struct arena *arena;
    struct machine_finding *findings;
    size_t count;
};

/* `meaning` is left out of what is good. Both are copied. */
void kube_find(struct kube_judge *judge, const char *name, enum machine_state state,
               const char *meaning, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The cluster's nodes, their GPUs and their kubelets. */
void kube_nodes_check(struct kube_judge *judge);

#endif
