/* byte_flow.h — bytes on their way from one side of a connection to the other.
 *
 * Pure. What has gone is given up from time to time, so that a flow that never becomes empty, as to
 * a client that reads more slowly than a task writes, does not grow with all that went through.
 */
#ifndef BASE_BYTE_FLOW_H
#define BASE_BYTE_FLOW_H
#include "base/buf.h"

struct byte_flow {
    struct buf bytes; /* new ones are appended here; those before `taken` have gone */
    size_t taken;
};

void byte_flow_release(struct byte_flow *flow);
size_t byte_flow_left(const struct byte_flow *flow);
/* What is left; valid until something is appended or has gone. */
struct text byte_flow_front(const struct byte_flow *flow);
/* `length` more have gone. */
void byte_flow_advance(struct byte_flow *flow, size_t length);

#endif
