#include "kube/rights.h"

#include "base/memory.h"

#define CLAIMS "no task with GPUs can run"

const struct kube_right KUBE_RIGHTS[] = {
    {"pods", "", "get list watch create delete", false, false, "no task can run"},
    {"pods/log", "", "get", false, false, "logs of tasks stay empty"},
    {"pods/exec", "", "get create", false, false, "skep exec and skep shell fail"},
    {"secrets", "", "create delete", false, false, "no task can run: its files come in a secret"},
    {"nodes", "", "list watch", true, false, "no node is known"},
    {"resourceclaims", "resource.k8s.io", "get create delete", false, true, CLAIMS},
    {"resourceclaims/status", "resource.k8s.io", "update", false, true, CLAIMS},
    {"resourceclaims/binding", "resource.k8s.io", "update", false, true,
     CLAIMS " from Kubernetes 1.36 on"},
    {"resourceslices", "resource.k8s.io", "list watch", true, true, "no GPU is known"},
};
const size_t KUBE_RIGHT_COUNT = COUNT_OF(KUBE_RIGHTS);
