/* Published ports: all of a task's, or none. The other end of a pair of sockets plays the kernel;
 * the rules themselves need one (tests/system/engine/test_network.c). */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/local/network_rules.h"

static const struct network_rules rules = {.table = "skep_01234567", .subnet = "10.213.0.0/16"};
static struct netlink netlink;
static int kernel;

static int setup(void **state)
{
    (void)state;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    netlink = (struct netlink){.fd = ends[0]};
    kernel = ends[1];
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    netlink_close(&netlink);
    close(kernel);
    return 0;
}

static void answer(int error)
{
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
    } packet = {.header = {.nlmsg_len = sizeof packet, .nlmsg_type = NLMSG_ERROR},
                .error = {.error = -error}};
    assert_int_equal(send(kernel, &packet, sizeof packet, 0), sizeof packet);
}

/* What the kernel was asked next: NFT_MSG_NEWSETELEM or NFT_MSG_DELSETELEM; its bytes. */
static int asked(char *bytes, size_t *length)
{
    struct nlmsghdr begin, verb;
    const ssize_t got = recv(kernel, bytes, *length, MSG_DONTWAIT);
    if (got < 0)
        return -1;
    *length = (size_t)got;
    memcpy(&begin, bytes, sizeof begin);
    assert_int_equal(begin.nlmsg_type, NFNL_MSG_BATCH_BEGIN);
    memcpy(&verb, bytes + NLMSG_ALIGN(begin.nlmsg_len), sizeof verb);
    assert_int_equal(verb.nlmsg_type >> 8, NFNL_SUBSYS_NFTABLES);
    assert_non_null(memmem(bytes, *length, rules.table, sizeof "skep_01234567"));
    return verb.nlmsg_type & 0xff;
}

static bool names_port(const char *bytes, size_t length, uint16_t port)
{
    const uint16_t key = htons(port);
    for (size_t at = 0; at + 8 <= length; at += 4) {
        struct nlattr attribute;
        memcpy(&attribute, bytes + at, sizeof attribute);
        if (attribute.nla_len == sizeof attribute + sizeof key &&
            attribute.nla_type == NFTA_DATA_VALUE &&
            memcmp(bytes + at + sizeof attribute, &key, sizeof key) == 0)
            return true;
    }
    return false;
}

static void test_publish(void **state)
{
    (void)state;
    static const struct engine_port ports[] = {{20000, 2}, {20010, 1}};
    static char bytes[1 << 17];
    struct err err = {0};
    const uint32_t address = 0x0ad50102, order = htonl(address);
    answer(0);
    answer(0);
    assert_int_equal(network_ports_publish(&rules, &netlink, ports, 2, address, &err), 0);
    size_t length = sizeof bytes;
    assert_int_equal(asked(bytes, &length), NFT_MSG_NEWSETELEM);
    assert_true(names_port(bytes, length, 20000) && names_port(bytes, length, 20001));
    assert_false(names_port(bytes, length, 20010));
    assert_non_null(memmem(bytes, length, &order, sizeof order));
    length = sizeof bytes;
    assert_int_equal(asked(bytes, &length), NFT_MSG_NEWSETELEM);
    assert_true(names_port(bytes, length, 20010));
    length = sizeof bytes;
    assert_int_equal(asked(bytes, &length), -1);
}

/* The second is another's: the first is taken back. */
static void test_conflict(void **state)
{
    (void)state;
    static const struct engine_port ports[] = {{20000, 2}, {20010, 1}, {20020, 1}};
    static char bytes[1 << 17];
    struct err err = {0};
    answer(0);
    answer(EEXIST);
    answer(0);
    assert_int_equal(network_ports_publish(&rules, &netlink, ports, 3, 1, &err), ERR_CONFLICT);
    assert_non_null(strstr(err.text, "port 20010"));
    static const int verbs[] = {NFT_MSG_NEWSETELEM, NFT_MSG_NEWSETELEM, NFT_MSG_DELSETELEM, -1};
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        size_t length = sizeof bytes;
        assert_int_equal(asked(bytes, &length), verbs[i]);
        if (verbs[i] == NFT_MSG_DELSETELEM)
            assert_true(names_port(bytes, length, 20000) && names_port(bytes, length, 20001));
    }
    answer(EPERM);
    assert_int_equal(network_ports_publish(&rules, &netlink, ports, 1, 1, &err), ERR_IO);
    assert_non_null(strstr(err.text, "publish port 20000"));
}

/* More than fit into one attribute go in several messages. */
static void test_many(void **state)
{
    (void)state;
    static const struct engine_port ports[] = {{20000, 2500}};
    static char bytes[1 << 17];
    struct err err = {0};
    for (int i = 0; i < 3; i++)
        answer(0);
    assert_int_equal(network_ports_publish(&rules, &netlink, ports, 1, 1, &err), 0);
    static const uint16_t within[] = {20999, 21000, 22499};
    for (size_t i = 0; i < COUNT_OF(within); i++) {
        size_t length = sizeof bytes;
        assert_int_equal(asked(bytes, &length), NFT_MSG_NEWSETELEM);
        assert_true(names_port(bytes, length, within[i]));
        assert_false(names_port(bytes, length, 22500));
    }
}

static void test_withdraw(void **state)
{
    (void)state;
    static const struct engine_port ports[] = {{20000, 1}, {20010, 1}};
    struct err err = {0};
    answer(ENOENT); /* it is not there: fine */
    answer(0);
    assert_int_equal(network_ports_withdraw(&rules, &netlink, ports, 2, &err), 0);
    answer(EPERM);
    assert_int_equal(network_ports_withdraw(&rules, &netlink, ports, 2, &err), ERR_IO);
    assert_non_null(strstr(err.text, "withdraw port 20000"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_publish, setup, teardown),
    cmocka_unit_test_setup_teardown(test_conflict, setup, teardown),
    cmocka_unit_test_setup_teardown(test_many, setup, teardown),
    cmocka_unit_test_setup_teardown(test_withdraw, setup, teardown),
};
UNIT_FILE(tests, NULL, NULL);
