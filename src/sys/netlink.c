#include "sys/netlink.h"
#include "base/err.h"
#include <assert.h>
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_BYTES = 16 << 10 };

int netlink_open(struct netlink *netlink, int protocol, struct err *err)
{
    const int on = 1;
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    *netlink = (struct netlink){.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol)};
    if (netlink->fd < 0)
        return err_errno(err, errno, "open a netlink socket");
    /* without it each answer to a request that fails repeats the request */
    setsockopt(netlink->fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
    if (connect(netlink->fd, (struct sockaddr *)&kernel, sizeof kernel) == 0)
        return 0;
    int failure = errno;
    netlink_close(netlink);
    return err_errno(err, failure, "connect a netlink socket");
}

void netlink_close(struct netlink *netlink)
{
    if (netlink->fd >= 0)
        close(netlink->fd);
    netlink->fd = -1;
}

static void pad(struct buf *bytes)
{
    static const char zeros[NLMSG_ALIGNTO];
    buf_add(bytes, zeros, NLMSG_ALIGN(bytes->length) - bytes->length);
}

static struct nlmsghdr header_at(const struct netlink_batch *batch, size_t at)
{
    struct nlmsghdr header;
    memcpy(&header, batch->bytes.at + at, sizeof header);
    return header;
}

/* The last message is as long as what has been written of it. */
static void message_end(struct netlink_batch *batch)
{
    if (batch->bytes.length == 0)
        return;
    struct nlmsghdr header = header_at(batch, batch->message);
    header.nlmsg_len = (uint32_t)(batch->bytes.length - batch->message);
    memcpy(batch->bytes.at + batch->message, &header, sizeof header);
}

void netlink_message(struct netlink_batch *batch, uint16_t type, uint16_t flags, const void *header,
                     size_t size)
{
    message_end(batch);
    batch->message = batch->bytes.length;
    batch->count += (flags & NLM_F_ACK) != 0;
    const struct nlmsghdr begin = {.nlmsg_type = type, .nlmsg_flags = flags | NLM_F_REQUEST};
    buf_add(&batch->bytes, &begin, sizeof begin);
    buf_add(&batch->bytes, header, size);
    pad(&batch->bytes);
}

void netlink_put(struct netlink_batch *batch, uint16_t type, const void *bytes, size_t size)
{
    assert(batch->bytes.length > 0 && size < UINT16_MAX - sizeof(struct nlattr));
    const struct nlattr attribute = {.nla_len = (uint16_t)(sizeof attribute + size),
                                     .nla_type = type};
    buf_add(&batch->bytes, &attribute, sizeof attribute);
    if (size > 0)
        buf_add(&batch->bytes, bytes, size);
    pad(&batch->bytes);
}

void netlink_put_u32(struct netlink_batch *batch, uint16_t type, uint32_t value)
{
    netlink_put(batch, type, &value, sizeof value);
}

void netlink_put_string(struct netlink_batch *batch, uint16_t type, const char *string)
{
    netlink_put(batch, type, string, strlen(string) + 1);
}

size_t netlink_nest(struct netlink_batch *batch, uint16_t type)
{
    size_t nest = batch->bytes.length;
    netlink_put(batch, type | NLA_F_NESTED, NULL, 0);
    return nest;
}

void netlink_nest_end(struct netlink_batch *batch, size_t nest)
{
    struct nlattr attribute;
    assert(batch->bytes.length - nest <= UINT16_MAX);
    memcpy(&attribute, batch->bytes.at + nest, sizeof attribute);
    attribute.nla_len = (uint16_t)(batch->bytes.length - nest);
    memcpy(batch->bytes.at + nest, &attribute, sizeof attribute);
}

static void sequences_put(struct netlink *netlink, struct netlink_batch *batch)
{
    for (size_t at = 0; at < batch->bytes.length;) {
        struct nlmsghdr header = header_at(batch, at);
        header.nlmsg_seq = ++netlink->sequence;
        memcpy(batch->bytes.at + at, &header, sizeof header);
        at += NLMSG_ALIGN(header.nlmsg_len);
    }
}

/* Counts the answers in a packet; the first failure is kept. */
static size_t answers_read(const char *bytes, size_t length, int *failure)
{
    size_t count = 0;
    struct nlmsghdr header;
    for (size_t at = 0; at + sizeof header <= length;) {
        memcpy(&header, bytes + at, sizeof header);
        if (header.nlmsg_len < sizeof header || header.nlmsg_len > length - at)
            break;
        struct nlmsgerr answer;
        if (header.nlmsg_type == NLMSG_ERROR && header.nlmsg_len >= sizeof header + sizeof(int)) {
            memcpy(&answer.error, bytes + at + sizeof header, sizeof answer.error);
            if (answer.error != 0 && *failure == 0)
                *failure = -answer.error;
            count++;
        }
        at += NLMSG_ALIGN(header.nlmsg_len);
    }
    return count;
}

/* The batch is empty afterwards. */
static int batch_send(struct netlink *netlink, struct netlink_batch *batch, struct err *err)
{
    message_end(batch);
    sequences_put(netlink, batch);
    const ssize_t sent = send(netlink->fd, batch->bytes.at, batch->bytes.length, MSG_NOSIGNAL);
    buf_clear(&batch->bytes);
    batch->count = 0;
    return sent < 0 ? err_errno(err, errno, "ask the kernel by netlink") : 0;
}

int netlink_send(struct netlink *netlink, struct netlink_batch *batch, struct err *err)
{
    char answer[ANSWER_BYTES];
    int failure = 0;
    size_t left = batch->count;
    int code = batch_send(netlink, batch, err);
    if (code < 0)
        return code;
    while (left > 0) {
        ssize_t got = recv(netlink->fd, answer, sizeof answer, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return err_errno(err, errno, "hear the kernel by netlink");
        size_t count = answers_read(answer, (size_t)got, &failure);
        left -= count < left ? count : left;
    }
    return failure;
}

/* A packet of a list. True: it was the last one, by its end or by a failure. */
static bool list_read(const char *bytes, size_t length,
                      void (*each)(void *context, struct text message), void *context, int *failure)
{
    struct nlmsghdr header;
    for (size_t at = 0; at + sizeof header <= length;) {
        memcpy(&header, bytes + at, sizeof header);
        if (header.nlmsg_len < sizeof header || header.nlmsg_len > length - at)
            break;
        const char *rest = bytes + at + sizeof header;
        const size_t size = header.nlmsg_len - sizeof header;
        const bool is_end = header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR;
        int error = 0;
        if (is_end && size >= sizeof error)
            memcpy(&error, rest, sizeof error);
        if (is_end) {
            *failure = error < 0 ? -error : 0;
            return true;
        }
        each(context, (struct text){rest, size});
        at += NLMSG_ALIGN(header.nlmsg_len);
    }
    return false;
}

int netlink_list(struct netlink *netlink, struct netlink_batch *batch,
                 void (*each)(void *context, struct text message), void *context, struct err *err)
{
    char answer[ANSWER_BYTES];
    int failure = 0;
    int code = batch_send(netlink, batch, err);
    if (code < 0)
        return code;
    for (bool is_over = false; !is_over;) {
        const ssize_t got = recv(netlink->fd, answer, sizeof answer, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return err_errno(err, errno, "hear the kernel by netlink");
        is_over = list_read(answer, (size_t)got, each, context, &failure);
    }
    return failure;
}

void netlink_batch_release(struct netlink_batch *batch)
{
    buf_release(&batch->bytes);
    *batch = (struct netlink_batch){0};
}
