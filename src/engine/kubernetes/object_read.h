/* object_read.h — an object of the Kubernetes API, or an event of a watch, from its text.
 *
 * Pure. One that cannot be read, as it is too large, too deep or no JSON somewhere (doc.h), must
 * not keep the others from being followed, nor be taken for one that has gone. So of such a text
 * its head is read: what says which object it is. The text may end anywhere behind that.
 */
#ifndef ENGINE_KUBERNETES_OBJECT_READ_H
#define ENGINE_KUBERNETES_OBJECT_READ_H
#include "base/text.h"

struct arena;
struct doc;

/* In `arena`. *trouble is NULL, or why only the head could be read: metadata's name, uid,
 * resourceVersion, deletionTimestamp and what Skep labels and annotates, spec's nodeName and
 * driver, as far as they are there. NULL: not even its name and its uid can be read. */
const struct doc *object_read(struct text text, struct arena *arena, const char **trouble);
/* The same of {"type": …, "object": …}; the head has the type as well. */
const struct doc *object_event_read(struct text line, struct arena *arena, const char **trouble);

#endif
