#include "kube/rights.h"

#include "base/memory.h"

#define CLAIMS "no task with GPUs can run"

const struct kube_right KUBE_RIGHTS[] = {
    {"pods", "", "get list watch create delete", .without = "no task can run"},
    {"pods/log", "", "get", .without = "logs of tasks stay empty"},
    {"pods/exec", "", "get create", .without = "skep exec and skep shell fail"},
    {"pods/portforward", "", "get create", .can_lack = true,
     .without = "no port of a task can be opened"},
    {"secrets", "", "create delete", .without = "no task can run: its files come in a secret"},
    {"nodes", "", "list watch", .is_of_cluster = true, .without = "no node is known"},
    {"nodes", "metrics.k8s.io", "list", .is_of_cluster = true, .is_for_metrics = true,
     .can_lack = true, .without = "charts of nodes have no processors and no memory"},
    {"resourceclaims", "resource.k8s.io", "get create delete", .is_for_claims = true,
     .without = CLAIMS},
    {"resourceclaims/status", "resource.k8s.io", "update", .is_for_claims = true,
     .without = CLAIMS},
    {"resourceclaims/binding", "resource.k8s.io", "update", .is_for_claims = true,
     .without = CLAIMS " from Kubernetes 1.36 on"},
    {"resourceslices", "resource.k8s.io", "list watch", .is_of_cluster = true,
     .is_for_claims = true, .without = "no GPU is known"},
};
const size_t KUBE_RIGHT_COUNT = COUNT_OF(KUBE_RIGHTS);
