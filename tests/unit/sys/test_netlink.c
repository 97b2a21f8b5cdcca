/* Messages as rtnetlink wants them, and answers as the kernel gives them: the other end of a pair
 * of sockets plays the kernel. */
#include "unit.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "sys/netlink.h"

struct kernel {
    struct netlink netlink;
    int fd;
};

static void kernel_open(struct kernel *kernel)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
    kernel->netlink = (struct netlink){.fd = ends[0]};
    kernel->fd = ends[1];
}

static void kernel_close(struct kernel *kernel)
{
    netlink_close(&kernel->netlink);
    assert_int_equal(kernel->netlink.fd, -1);
    netlink_close(&kernel->netlink); /* harmless */
    close(kernel->fd);
}

struct answer {
    struct nlmsghdr header;
    struct nlmsgerr error;
};

static void answers_give(const struct kernel *kernel, const int *errors, size_t count)
{
    struct answer answers[8] = {0};
    assert_true(count <= COUNT_OF(answers));
    for (size_t i = 0; i < count; i++) {
        answers[i].header =
            (struct nlmsghdr){.nlmsg_len = sizeof answers[i], .nlmsg_type = NLMSG_ERROR};
        answers[i].error.error = -errors[i];
    }
    const size_t size = count * sizeof *answers;
    assert_int_equal(send(kernel->fd, answers, size, 0), size);
}

static struct nlmsghdr header_of(const char *bytes)
{
    struct nlmsghdr header;
    memcpy(&header, bytes, sizeof header);
    return header;
}

static struct nlattr attribute_of(const char *bytes)
{
    struct nlattr attribute;
    memcpy(&attribute, bytes, sizeof attribute);
    return attribute;
}

static void test_layout(void **state)
{
    (void)state;
    struct kernel kernel;
    struct netlink_batch batch = {0};
    char got[512];
    struct err err = {0};
    kernel_open(&kernel);
    netlink_message(&batch, 16, NLM_F_ACK | NLM_F_CREATE, "hd", 2);
    netlink_put_string(&batch, 3, "eth0");
    size_t nest = netlink_nest(&batch, 18);
    netlink_put_u32(&batch, 4, 0x01020304);
    netlink_nest_end(&batch, nest);
    netlink_message(&batch, 17, 0, "tail", 4);
    answers_give(&kernel, (int[]){0}, 1);
    assert_int_equal(netlink_send(&kernel.netlink, &batch, &err), 0);
    assert_int_equal(batch.bytes.length, 0);
    const ssize_t length = recv(kernel.fd, got, sizeof got, 0);
    /* 16 + 2 (4) + 4 + 5 (12) + 4 (nest) + 8, then 16 + 4 */
    assert_int_equal(length, 44 + 20);
    assert_int_equal(header_of(got).nlmsg_len, 44);
    assert_int_equal(header_of(got).nlmsg_type, 16);
    assert_int_equal(header_of(got).nlmsg_flags, NLM_F_ACK | NLM_F_CREATE | NLM_F_REQUEST);
    assert_int_equal(header_of(got).nlmsg_seq, 1);
    assert_memory_equal(got + 16, "hd\0\0", 4); /* padded by zeros */
    assert_int_equal(attribute_of(got + 20).nla_len, 9);
    assert_int_equal(attribute_of(got + 20).nla_type, 3);
    assert_memory_equal(got + 24, "eth0\0\0\0\0", 8);
    assert_int_equal(attribute_of(got + 32).nla_len, 12);
    assert_int_equal(attribute_of(got + 32).nla_type, 18 | NLA_F_NESTED);
    assert_int_equal(attribute_of(got + 36).nla_len, 8);
    const uint32_t value = 0x01020304;
    assert_memory_equal(got + 40, &value, 4);
    assert_int_equal(header_of(got + 44).nlmsg_len, 20);
    assert_int_equal(header_of(got + 44).nlmsg_seq, 2);
    netlink_batch_release(&batch);
    kernel_close(&kernel);
}

/* As many answers as were asked for, in one packet or in several; the first failure counts. */
static void test_answers(void **state)
{
    (void)state;
    static const struct {
        int first[4], second[4];
        size_t first_count, second_count;
        int result;
    } cases[] = {
        {{0, 0, 0}, {0}, 3, 0, 0},
        {{0, EEXIST, 0}, {0}, 3, 0, EEXIST},
        {{ENODEV}, {0, EEXIST}, 1, 2, ENODEV},
        {{0, 0, 0, EPERM}, {0}, 4, 0, EPERM}, /* one more than asked for */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct kernel kernel;
        struct netlink_batch batch = {0};
        struct err err = {0};
        kernel_open(&kernel);
        for (int k = 0; k < 3; k++)
            netlink_message(&batch, 16, NLM_F_ACK, "x", 1);
        answers_give(&kernel, cases[i].first, cases[i].first_count);
        if (cases[i].second_count)
            answers_give(&kernel, cases[i].second, cases[i].second_count);
        assert_int_equal(netlink_send(&kernel.netlink, &batch, &err), cases[i].result);
        netlink_batch_release(&batch);
        kernel_close(&kernel);
    }
}

/* What is no whole message ends its packet; the answer comes in the next. */
static void test_broken_answers(void **state)
{
    (void)state;
    struct kernel kernel;
    struct netlink_batch batch = {0};
    struct err err = {0};
    struct answer broken = {.header = {.nlmsg_len = 9999, .nlmsg_type = NLMSG_ERROR}};
    kernel_open(&kernel);
    netlink_message(&batch, 16, NLM_F_ACK, "x", 1);
    assert_int_equal(send(kernel.fd, &broken, sizeof broken, 0), sizeof broken);
    broken.header.nlmsg_len = 3;
    assert_int_equal(send(kernel.fd, &broken, sizeof broken, 0), sizeof broken);
    assert_int_equal(send(kernel.fd, "short", 5, 0), 5);
    broken.header = (struct nlmsghdr){.nlmsg_len = sizeof broken, .nlmsg_type = NLMSG_DONE};
    assert_int_equal(send(kernel.fd, &broken, sizeof broken, 0), sizeof broken);
    answers_give(&kernel, (int[]){EBUSY}, 1);
    assert_int_equal(netlink_send(&kernel.netlink, &batch, &err), EBUSY);
    netlink_batch_release(&batch);
    kernel_close(&kernel);
}

static void test_gone(void **state)
{
    (void)state;
    struct kernel kernel;
    struct netlink_batch batch = {0};
    struct err err = {0};
    kernel_open(&kernel);
    close(kernel.fd);
    kernel.fd = -1;
    netlink_message(&batch, 16, NLM_F_ACK, "x", 1);
    assert_true(netlink_send(&kernel.netlink, &batch, &err) < 0);
    assert_non_null(strstr(err.text, "ask the kernel"));
    assert_int_equal(batch.count, 0);
    netlink_batch_release(&batch);
    netlink_close(&kernel.netlink);
    assert_true(netlink_open(&kernel.netlink, 9999, &err) < 0);
    assert_non_null(strstr(err.text, "netlink"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_layout),
    cmocka_unit_test(test_answers),
    cmocka_unit_test(test_broken_answers),
    cmocka_unit_test(test_gone),
};
UNIT_FILE(tests, NULL, NULL);
