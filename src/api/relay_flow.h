/* relay_flow.h — bytes on their way through the relay, in one direction of a connection.
 *
 * Pure. What has gone is given up from time to time, so that a flow that never becomes empty, as to
 * a client that reads more slowly than the task writes, does not grow with all that went through.
 */
#ifndef API_RELAY_FLOW_H
#define API_RELAY_FLOW_H
#include "base/buf.h"

struct relay_flow {
    struct buf bytes; /* new ones are appended here; those before `taken` have gone */
    size_t taken;
};

void relay_flow_release(struct relay_flow *flow);
size_t relay_flow_left(const struct relay_flow *flow);
/* `length` more have gone. */
void relay_flow_advance(struct relay_flow *flow, size_t length);

#endif
