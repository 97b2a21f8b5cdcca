/* What comes by the socket of a program beside a task's own: whoever has got hold of the other end
 * leaves no descriptor in the server, however many it sends, and keeps nobody reading for ever. */
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "engine/local/enter_socket.h"
#include "init/layout.h"

enum { DESCRIPTORS_MAX = 8 };

static const char started[] = {LAYOUT_ENTER_STARTED};
static const char exited[] = {LAYOUT_ENTER_EXITED, 7};
static const char ending[] = {LAYOUT_ENTER_ENDING};
static const char other[] = {'?'};

struct pair {
    struct enter_socket socket;
    int peer;
};

static int pair_setup(void **state)
{
    struct pair *pair = mem_zero(1, sizeof *pair);
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    pair->socket.fd = fds[0];
    pair->peer = fds[1];
    *state = pair;
    return 0;
}

static int pair_teardown(void **state)
{
    struct pair *pair = *state;
    close(pair->socket.fd);
    if (pair->peer >= 0)
        close(pair->peer);
    mem_free(pair);
    return 0;
}

static size_t descriptors_open(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t count = 0;
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* One message, and `count` times our standard input with it. */
static void told(const struct pair *pair, const char *bytes, size_t length, size_t count)
{
    union {
        char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    const int fds[DESCRIPTORS_MAX] = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    assert_true(count <= DESCRIPTORS_MAX);
    if (count) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    }
    assert_int_equal(sendmsg(pair->peer, &message, MSG_NOSIGNAL), (ssize_t)length);
}

static void one_descriptor_is_the_callers(void **state)
{
    struct pair *pair = *state;
    const size_t before = descriptors_open();
    char bytes[ENTER_MESSAGE_SIZE];
    int fd;
    assert_int_equal(enter_socket_take(&pair->socket, bytes, &fd), -1);
    assert_int_equal(fd, -1);
    told(pair, started, sizeof started, 1);
    assert_int_equal(enter_socket_take(&pair->socket, bytes, &fd), 1);
    assert_int_equal(bytes[0], LAYOUT_ENTER_STARTED);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(descriptors_open(), before + 1);
    close(fd);
    told(pair, started, sizeof started, 0);
    assert_int_equal(enter_socket_take(&pair->socket, bytes, &fd), 1);
    assert_int_equal(fd, -1);
}

/* The buffer for one has room for two. */
static void more_than_one_leaves_none(void **state)
{
    struct pair *pair = *state;
    const size_t before = descriptors_open();
    static const size_t counts[] = {2, 3, DESCRIPTORS_MAX};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        char bytes[ENTER_MESSAGE_SIZE];
        int fd;
        told(pair, started, sizeof started, counts[i]);
        assert_int_equal(enter_socket_take(&pair->socket, bytes, &fd), 1);
        assert_int_equal(fd, -1);
        assert_int_equal(descriptors_open(), before);
    }
}

/* Nobody wants one once the program runs. */
static void later_ones_are_closed(void **state)
{
    struct pair *pair = *state;
    const size_t before = descriptors_open();
    told(pair, other, sizeof other, 1);
    told(pair, other, sizeof other, 2);
    told(pair, exited, sizeof exited, DESCRIPTORS_MAX);
    assert_false(enter_socket_is_over(&pair->socket));
    assert_true(pair->socket.has_code);
    assert_int_equal(descriptors_open(), before);
    /* nothing but a descriptor: as if the other end were closed */
    told(pair, other, 0, 1);
    assert_true(enter_socket_is_over(&pair->socket));
    assert_int_equal(descriptors_open(), before);
}

static void what_is_told_is_kept(void **state)
{
    struct pair *pair = *state;
    assert_false(enter_socket_is_over(&pair->socket));
    assert_false(pair->socket.has_code || pair->socket.is_ending);
    told(pair, ending, sizeof ending, 0);
    assert_false(enter_socket_is_over(&pair->socket));
    assert_true(pair->socket.is_ending && !pair->socket.has_code);
    told(pair, exited, sizeof exited, 0);
    told(pair, "X\x9", 2, 0); /* the first counts */
    close(pair->peer);
    pair->peer = -1;
    assert_true(enter_socket_is_over(&pair->socket));
    assert_true(pair->socket.is_ending && pair->socket.has_code);
    assert_int_equal(pair->socket.code, 7);
}

/* skep-init sends three messages: who sends without end is not read from without end. */
static void so_many_messages_end_it(void **state)
{
    struct pair *pair = *state;
    const size_t before = descriptors_open();
    for (int i = 0; i < ENTER_MESSAGES_MAX - 1; i++)
        told(pair, other, sizeof other, 0);
    assert_false(enter_socket_is_over(&pair->socket));
    told(pair, other, sizeof other, 1);
    told(pair, exited, sizeof exited, 1);
    assert_true(enter_socket_is_over(&pair->socket));
    assert_false(pair->socket.has_code); /* it has not been read */
    assert_true(enter_socket_is_over(&pair->socket));
    assert_int_equal(descriptors_open(), before);
}

#define PAIR(test) cmocka_unit_test_setup_teardown(test, pair_setup, pair_teardown)
static const struct CMUnitTest tests[] = {
    PAIR(one_descriptor_is_the_callers), PAIR(more_than_one_leaves_none),
    PAIR(later_ones_are_closed),         PAIR(what_is_told_is_kept),
    PAIR(so_many_messages_end_it),
};
UNIT_FILE(tests, NULL, NULL);
