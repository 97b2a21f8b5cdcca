/* pod_template.h — what the operator adds to every pod: a part of a Pod, merged into what Skep
 * makes.
 *
 * Pure. Maps are merged key by key; lists of maps by their items' mountPath or name, and what has
 * neither, or is new, comes behind what Skep has. Anything else in the template takes the place of
 * Skep's. What makes a pod a task is Skep's alone (docs/rfc/0017-kubernetes-engine.md).
 */
#ifndef ENGINE_KUBERNETES_POD_TEMPLATE_H
#define ENGINE_KUBERNETES_POD_TEMPLATE_H
#include "base/text.h"
#include <stdbool.h>

struct arena;
struct buf;
struct doc;
struct err;

enum { POD_TEMPLATE_BYTES_MAX = 256 << 10 };

/* YAML or JSON; NULL: the file is empty. ERR_INVALID: it is no document, or has what is Skep's
 * alone, and where. */
int pod_template_read(struct text bytes, struct arena *arena, const struct doc **template_,
                      struct err *err);

/* It mounts something there in the task's container: merged, that would be half a storage's mount.
 */
bool pod_template_mounts_at(const struct doc *template_, const char *path);

/* Append the pod with the template in it. `pod` is what Skep has made, as JSON. */
void pod_template_merge(struct text pod, const struct doc *template_, struct buf *out);

#endif
