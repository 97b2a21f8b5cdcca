#include "api/relay_flow.h"
#include <assert.h>
#include <string.h>

void relay_flow_release(struct relay_flow *flow)
{
    buf_release(&flow->bytes);
    flow->taken = 0;
}

size_t relay_flow_left(const struct relay_flow *flow)
{
    return flow->bytes.length - flow->taken;
}

/* Bytes are moved once at least as many have gone: the work stays that of the bytes. */
void relay_flow_advance(struct relay_flow *flow, size_t length)
{
    size_t left = relay_flow_left(flow);
    assert(length <= left);
    flow->taken += length;
    left -= length;
    if (flow->taken < left || !flow->taken)
        return;
    buf_clear(&flow->bytes);
    memmove(flow->bytes.at, flow->bytes.at + flow->taken, left);
    buf_wrote(&flow->bytes, left);
    flow->taken = 0;
}
