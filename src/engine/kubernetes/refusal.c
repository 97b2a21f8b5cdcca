#include "engine/kubernetes/refusal.h"

#include <string.h>

#include "base/memory.h"
#include "doc/doc.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/pod_object.h"

enum { BAD_REQUEST = 400, FORBIDDEN = 403, NOT_FOUND = 404, NOT_ALLOWED = 405 };

static bool has_cause(const struct doc *answer, const char *reason)
{
    const struct doc *causes = doc_get_list(doc_get(answer, "details"), "causes");
    for (size_t i = 0; i < causes->as.list.count; i++)
        if (strcmp(object_string(causes->as.list.items[i], "reason"), reason) == 0)
            return true;
    return false;
}

/* A webhook and a ValidatingAdmissionPolicy choose the status with which they refuse; only the
 * message is theirs alone. */
static bool is_denied(const char *message)
{
    return (strstr(message, "admission webhook \"") && strstr(message, "denied the request")) ||
           (strstr(message, "ValidatingAdmissionPolicy '") && strstr(message, "denied request"));
}

static const char *reason_of(int status, const struct doc *answer, bool is_right_missing)
{
    const char *message = object_string(answer, "message");
    if (is_right_missing)
        return KUBE_RIGHT;
    if (is_denied(message))
        return KUBE_POLICY;
    switch (status) {
    case FORBIDDEN:
        if (has_cause(answer, "NamespaceTerminating"))
            return KUBE_SPACE;
        return strstr(message, "exceeded quota") ? KUBE_QUOTA : KUBE_POLICY;
    case NOT_FOUND:
        return strcmp(object_string(answer, "details.kind"), "namespaces") == 0 ? KUBE_SPACE
                                                                                : KUBE_API;
    case NOT_ALLOWED:
        return KUBE_API;
    case BAD_REQUEST: /* a word of podTemplate that the cluster does not know */
        return strstr(message, "strict decoding error") ? KUBE_POLICY : NULL;
    default:
        return NULL;
    }
}

const char *refusal_read(int status, struct text body, bool is_right_missing, struct arena *arena)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, arena);
    return reason_of(status, doc_parse(body, DOC_JSON, arena, &problems), is_right_missing);
}

bool refusal_is_operators(const char *reason)
{
    static const char *const words[] = {KUBE_QUOTA,  KUBE_RIGHT, KUBE_SPACE,     KUBE_API,
                                        KUBE_POLICY, KUBE_USERS, POD_INIT_FAILED};
    for (size_t i = 0; reason && i < COUNT_OF(words); i++)
        if (strcmp(reason, words[i]) == 0)
            return true;
    return false;
}
