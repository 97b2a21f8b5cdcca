/* given_up.h — attempts that the engine gives up itself, on disk: they outlive a restart.
 *
 * Edge. A pod that cannot start is deleted, and with it why: whoever lists the pods later sees one
 * that is being deleted, or none. So the reason is written down before the pod is deleted, and
 * stays until the attempt is forgotten.
 */
#ifndef ENGINE_KUBERNETES_GIVEN_UP_H
#define ENGINE_KUBERNETES_GIVEN_UP_H
#include "base/buf.h"
#include "model/ids.h"
#include <stdbool.h>

struct err;

/* Durable when it returns 0. ERR_IO. The folder is made when it is missing. */
int given_up_put(const char *directory, struct attempt_id attempt, const char *reason,
                 const char *message, struct err *err);
/* False: it was not given up. Appends both. */
bool given_up_read(const char *directory, struct attempt_id attempt, struct buf *reason,
                   struct buf *message);
void given_up_drop(const char *directory, struct attempt_id attempt); /* if it was */

#endif
