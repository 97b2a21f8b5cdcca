#include "engine/local/enter_socket.h"
#include "init/layout.h"
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The kernel has put all of these into our table: the one that is wanted stays, if it is alone. */
static int descriptor_pick(struct msghdr *message)
{
    size_t count = 0;
    int kept = -1;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t end = CMSG_LEN(sizeof kept); end <= at->cmsg_len; end += sizeof kept) {
            int fd;
            memcpy(&fd, (const char *)at + end - sizeof fd, sizeof fd);
            if (count++ == 0)
                kept = fd;
            else
                close(fd);
        }
    }
    if (kept >= 0 && (count > 1 || (message->msg_flags & MSG_CTRUNC) != 0)) {
        close(kept);
        kept = -1;
    }
    return kept;
}

ssize_t enter_socket_take(struct enter_socket *socket, char bytes[ENTER_MESSAGE_SIZE], int *fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct iovec part = {.iov_base = bytes, .iov_len = ENTER_MESSAGE_SIZE};
    /* CMSG_SPACE has room for two: the kernel would put both into our table */
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_LEN(sizeof(int))};
    assert(socket->messages <= ENTER_MESSAGES_MAX);
    *fd = -1;
    if (socket->messages == ENTER_MESSAGES_MAX)
        return 0;
    ssize_t length = recvmsg(socket->fd, &message, MSG_CMSG_CLOEXEC);
    if (length < 0)
        return errno == EAGAIN || errno == EINTR ? -1 : 0;
    socket->messages++;
    *fd = descriptor_pick(&message);
    return length;
}

bool enter_socket_is_over(struct enter_socket *socket)
{
    char bytes[ENTER_MESSAGE_SIZE];
    ssize_t length = 1;
    while (length > 0) {
        int fd;
        length = enter_socket_take(socket, bytes, &fd);
        if (fd >= 0)
            close(fd);
        socket->is_ending = socket->is_ending || (length > 0 && bytes[0] == LAYOUT_ENTER_ENDING);
        if (length == 2 && bytes[0] == LAYOUT_ENTER_EXITED && !socket->has_code) {
            socket->has_code = true;
            socket->code = (unsigned char)bytes[1];
        }
    }
    return length == 0;
}
