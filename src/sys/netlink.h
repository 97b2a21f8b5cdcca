/* netlink.h — requests to the kernel's network configuration (netlink(7), rtnetlink(7)).
 *
 * Edge. Messages are gathered in a buffer and sent together: one system call, and one answer for
 * each. A socket belongs to the network namespace in which it was opened, and to one thread at a
 * time.
 */
#ifndef SYS_NETLINK_H
#define SYS_NETLINK_H
#include "base/buf.h"
#include "base/text.h"

struct err;

struct netlink {
    int fd; /* -1: closed */
    uint32_t sequence;
};

struct netlink_batch {
    struct buf bytes;
    size_t message, count; /* where the last one begins; how many are answered */
};

/* `protocol`: NETLINK_ROUTE, NETLINK_NETFILTER. */
int netlink_open(struct netlink *netlink, int protocol, struct err *err);
void netlink_close(struct netlink *netlink);

/* Begin a message of `type` whose fixed part is `header`. `flags` as NLM_F_CREATE; a message that
 * is not answered has none of NLM_F_ACK. The message before it is complete then. */
void netlink_message(struct netlink_batch *batch, uint16_t type, uint16_t flags, const void *header,
                     size_t size);

/* Attributes of the last message. What netlink_nest returns is for netlink_nest_end. */
void netlink_put(struct netlink_batch *batch, uint16_t type, const void *bytes, size_t size);
void netlink_put_u32(struct netlink_batch *batch, uint16_t type, uint32_t value);
void netlink_put_string(struct netlink_batch *batch, uint16_t type, const char *string);
size_t netlink_nest(struct netlink_batch *batch, uint16_t type);
void netlink_nest_end(struct netlink_batch *batch, size_t nest);

/* Send all and wait for the answers; the batch is empty afterwards. The kernel carries them out in
 * their order and goes on behind one that fails. 0, or the errno of the first that failed; ERR_*
 * (negative) when the kernel cannot be spoken to. */
int netlink_send(struct netlink *netlink, struct netlink_batch *batch, struct err *err);

/* Send the batch, one question that has a list for its answer (NLM_F_DUMP), and show `each` what
 * follows the header of every message of that list. The batch is empty afterwards. Errors as
 * netlink_send. */
int netlink_list(struct netlink *netlink, struct netlink_batch *batch,
                 void (*each)(void *context, struct text message), void *context, struct err *err);

void netlink_batch_release(struct netlink_batch *batch);
#define cleanup_netlink_batch __attribute__((cleanup(netlink_batch_release)))

#endif
