/* refusal.h — what is the operator's of the cluster to mend: a task that meets it is refused, goes
 * back to the queue, and no job fails for it.
 *
 * Pure. The table "What the API server refuses" of docs/rfc/0017-kubernetes-engine.md is
 * refusal_read.
 */
#ifndef ENGINE_KUBERNETES_REFUSAL_H
#define ENGINE_KUBERNETES_REFUSAL_H
#include "base/text.h"
#include <stdbool.h>

struct arena;

/* Why an attempt is refused: the namespace has a quota; skepd may not make it; the namespace is not
 * there, or is being deleted; the API server does not have this kind of objects; a policy of the
 * cluster or the namespace does not let it in. */
#define KUBE_QUOTA  "QuotaExceeded"
#define KUBE_RIGHT  "RightMissing"
#define KUBE_SPACE  "NamespaceMissing"
#define KUBE_API    "ApiMissing"
#define KUBE_POLICY "AdmissionRefused"
/* The API server has made a pod without the user ids that it was asked for. */
#define KUBE_USERS "UserNamespaceMissing"

/* One of the first five, for the answer to a create that was refused for good; NULL: what was asked
 * for is itself wrong. `body` is a Status. */
const char *refusal_read(int status, struct text body, bool is_right_missing, struct arena *arena);

/* Is this one of the words above, or POD_INIT_FAILED? NULL is none. */
bool refusal_is_operators(const char *reason);

#endif
