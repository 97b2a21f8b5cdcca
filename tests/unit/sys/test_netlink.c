/* Messages as rtnetlink wants them, and answers as the kernel gives them: the other end of a pair
 * of sockets plays the kernel. */
#include "unit.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
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

/* --- lists --- */

struct note {
    char text[64];
};

static void note(void *context, struct text message)
{
    struct note *own = context;
    snprintf(own->text + strlen(own->text), sizeof own->text - strlen(own->text), "%.*s;",
             TEXT_ARG(message));
}

static void packet_give(const struct kernel *kernel, const struct buf *packet)
{
    assert_int_equal(send(kernel->fd, packet->at, packet->length, 0), packet->length);
}

static void item_put(struct buf *packet, uint16_t type, const void *rest, size_t size)
{
    const struct nlmsghdr header = {.nlmsg_len = (uint32_t)(sizeof header + size),
                                    .nlmsg_type = type};
    buf_add(packet, &header, sizeof header);
    buf_add(packet, rest, size);
    buf_add(packet, "\0\0\0", NLMSG_ALIGN(packet->length) - packet->length);
}

static void test_list(void **state)
{
    (void)state;
    const int fine = 0, failure = -EPERM;
    struct kernel kernel;
    struct netlink_batch batch = {0};
    struct buf packet = BUF_INIT;
    struct note own = {0};
    struct err err = {0};
    kernel_open(&kernel);
    /* in two packets, with an end */
    item_put(&packet, 20, "one", 3);
    item_put(&packet, 20, "three", 5);
    packet_give(&kernel, &packet);
    buf_clear(&packet);
    item_put(&packet, 20, "two", 3);
    item_put(&packet, NLMSG_DONE, &fine, sizeof fine);
    packet_give(&kernel, &packet);
    netlink_message(&batch, 16, NLM_F_DUMP, "hd", 2);
    assert_int_equal(netlink_list(&kernel.netlink, &batch, note, &own, &err), 0);
    assert_string_equal(own.text, "one;three;two;");
    char got[64];
    assert_true(recv(kernel.fd, got, sizeof got, 0) > 0);
    assert_int_equal(header_of(got).nlmsg_flags, NLM_F_REQUEST | NLM_F_DUMP);
    assert_int_equal(header_of(got).nlmsg_len, sizeof(struct nlmsghdr) + 4);
    /* a refusal, and one behind a message that is longer than its packet */
    buf_clear(&packet);
    item_put(&packet, NLMSG_ERROR, &failure, sizeof failure);
    packet_give(&kernel, &packet);
    netlink_message(&batch, 16, NLM_F_DUMP, "hd", 2);
    assert_int_equal(netlink_list(&kernel.netlink, &batch, note, &own, &err), EPERM);
    buf_clear(&packet);
    const struct nlmsghdr longer = {.nlmsg_len = 100, .nlmsg_type = 20};
    buf_add(&packet, &longer, sizeof longer);
    packet_give(&kernel, &packet);
    buf_clear(&packet);
    item_put(&packet, NLMSG_DONE, &failure, sizeof failure);
    packet_give(&kernel, &packet);
    netlink_message(&batch, 16, NLM_F_DUMP, "hd", 2);
    assert_int_equal(netlink_list(&kernel.netlink, &batch, note, &own, &err), EPERM);
    assert_string_equal(own.text, "one;three;two;");
    /* nobody answers */
    close(kernel.fd);
    kernel.fd = -1;
    netlink_message(&batch, 16, NLM_F_DUMP, "hd", 2);
    assert_true(netlink_list(&kernel.netlink, &batch, note, &own, &err) < 0);
    netlink_batch_release(&batch);
    buf_release(&packet);
    kernel_close(&kernel);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_layout),         cmocka_unit_test(test_answers),
    cmocka_unit_test(test_broken_answers), cmocka_unit_test(test_gone),
    cmocka_unit_test(test_list),
};
UNIT_FILE(tests, NULL, NULL);
