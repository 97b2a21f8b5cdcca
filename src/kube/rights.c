#include "kube/rights.h"

#include "base/memory.h"

const struct kube_right KUBE_RIGHTS[] = {
    {"pods", "", "get list watch create delete", false, "no task can run"},
    {"pods/log", "", "get", false, "logs of tasks stay empty"},
    {"pods/exec", "", "get create", false, "skep exec and skep shell fail"},
    {"secrets", "", "create delete", false, "no task can run: its files come in a secret"},
    {"nodes", "", "list watch", true, "no node is known"},
};
const size_t KUBE_RIGHT_COUNT = COUNT_OF(KUBE_RIGHTS);
