#include "base/byte_flow.h"
#include <assert.h>
#include <string.h>

void byte_flow_release(struct byte_flow *flow)
{
    buf_release(&flow->bytes);
    flow->taken = 0;
}

size_t byte_flow_left(const struct byte_flow *flow)
{
    return flow->bytes.length - flow->taken;
}

struct text byte_flow_front(const struct byte_flow *flow)
{
    return (struct text){buf_cstr(&flow->bytes) + flow->taken, byte_flow_left(flow)};
}

/* Bytes are moved once at least as many have gone: the work stays that of the bytes. */
void byte_flow_advance(struct byte_flow *flow, size_t length)
{
    size_t left = byte_flow_left(flow);
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
