#include "engine/local/network_link.h"
#include "base/err.h"
#include "sys/cleanup.h"
#include "sys/log.h"
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LOOPBACK = 1,
    INSIDE = 100, /* index of the link in its namespace: not one of the tunnels that some kernels
                     put into each */
    RETRY_MS = 10,
};

static void setting_put(const char *path, const char *value)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return; /* a kernel without IPv6 */
    if (fd < 0 || write(fd, value, strlen(value)) < 0)
        log_warning("engine", "%s cannot be set: errno %d", path, errno);
}

int network_namespace_make(int host_fd, int *namespace_fd, struct netlink *inside, struct err *err)
{
    if (unshare(CLONE_NEWNET) < 0)
        return err_errno(err, errno, "make a network namespace");
    int code = 0;
    *namespace_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (*namespace_fd < 0)
        code = err_errno(err, errno, "open a network namespace");
    if (code == 0)
        code = netlink_open(inside, NETLINK_ROUTE, err);
    setting_put("/proc/sys/net/ipv4/ping_group_range", "0 2147483647"); /* without CAP_NET_RAW */
    /* its ports are all its own, also where its root has no capabilities here */
    setting_put("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    setting_put("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    while (setns(host_fd, CLONE_NEWNET) < 0) { /* only memory can be missing */
        log_error("engine", "back to the machine's network: errno %d", errno);
        poll(NULL, 0, RETRY_MS);
    }
    if (code < 0 && *namespace_fd >= 0) {
        close(*namespace_fd);
        *namespace_fd = -1;
    }
    return code;
}

/* Asked for from inside: the kernel takes the index of our choice there, and one of its own for the
 * other end. */
static void pair_message(struct netlink_batch *batch, const struct network_link *link, int host_fd)
{
    const struct ifinfomsg inside = {.ifi_index = INSIDE}, outside = {0};
    netlink_message(batch, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &inside,
                    sizeof inside);
    netlink_put_string(batch, IFLA_IFNAME, "eth0");
    size_t info = netlink_nest(batch, IFLA_LINKINFO);
    netlink_put_string(batch, IFLA_INFO_KIND, "veth");
    size_t data = netlink_nest(batch, IFLA_INFO_DATA);
    size_t peer = netlink_nest(batch, VETH_INFO_PEER);
    buf_add(&batch->bytes, &outside, sizeof outside);
    netlink_put_string(batch, IFLA_IFNAME, link->name);
    netlink_put_u32(batch, IFLA_GROUP, link->group);
    netlink_put_u32(batch, IFLA_NET_NS_FD, (uint32_t)host_fd);
    netlink_nest_end(batch, peer);
    netlink_nest_end(batch, data);
    netlink_nest_end(batch, info);
}

static void up_message(struct netlink_batch *batch, int index)
{
    const struct ifinfomsg header = {.ifi_index = index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
    netlink_message(batch, RTM_SETLINK, NLM_F_ACK, &header, sizeof header);
}

static void address_message(struct netlink_batch *batch, unsigned index, uint32_t address)
{
    const struct ifaddrmsg header = {.ifa_family = AF_INET,
                                     .ifa_prefixlen = 32,
                                     .ifa_scope = RT_SCOPE_UNIVERSE,
                                     .ifa_index = index};
    netlink_message(batch, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &header,
                    sizeof header);
    netlink_put_u32(batch, IFA_LOCAL, htonl(address));
    netlink_put_u32(batch, IFA_ADDRESS, htonl(address));
}

/* To one address, or (0) everywhere by way of `gateway`; made, or removed. */
static void route_message(struct netlink_batch *batch, uint16_t type, unsigned index, uint32_t to,
                          uint32_t gateway)
{
    const uint16_t flags = type == RTM_NEWROUTE ? NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK : NLM_F_ACK;
    const struct rtmsg header = {.rtm_family = AF_INET,
                                 .rtm_dst_len = to ? 32 : 0,
                                 .rtm_table = RT_TABLE_MAIN,
                                 .rtm_protocol = RTPROT_STATIC,
                                 .rtm_scope = gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
                                 .rtm_type = RTN_UNICAST};
    netlink_message(batch, type, flags, &header, sizeof header);
    if (to)
        netlink_put_u32(batch, RTA_DST, htonl(to));
    if (gateway)
        netlink_put_u32(batch, RTA_GATEWAY, htonl(gateway));
    netlink_put_u32(batch, RTA_OIF, index);
}

static int outside_make(const struct network_link *link, struct netlink *host, int index,
                        struct err *err)
{
    cleanup_netlink_batch struct netlink_batch batch = {0};
    char path[80];
    /* neither end has an address of IPv6: that would lead past the rules, which are for IPv4 */
    snprintf(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/disable_ipv6", link->name);
    setting_put(path, "1");
    /* programs of the machine reach published ports at 127.0.0.1 as well; the rules let nothing of
     * a task's in there */
    snprintf(path, sizeof path, "/proc/sys/net/ipv4/conf/%s/route_localnet", link->name);
    setting_put(path, "1");
    up_message(&batch, index);
    address_message(&batch, (unsigned)index, link->gateway);
    route_message(&batch, RTM_NEWROUTE, (unsigned)index, link->address, 0);
    return netlink_send(host, &batch, err);
}

static int inside_make(const struct network_link *link, struct netlink *inside, struct err *err)
{
    cleanup_netlink_batch struct netlink_batch batch = {0};
    up_message(&batch, LOOPBACK);
    up_message(&batch, INSIDE);
    address_message(&batch, INSIDE, link->address);
    route_message(&batch, RTM_NEWROUTE, INSIDE, link->gateway, 0);
    route_message(&batch, RTM_NEWROUTE, INSIDE, 0, link->gateway);
    int code = netlink_send(inside, &batch, err);
    if (code > 0)
        return err_errno(err, code, "set up the network of a task");
    return code;
}

int network_link_make(const struct network_link *link, struct netlink *host, struct netlink *inside,
                      int host_fd, struct err *err)
{
    cleanup_netlink_batch struct netlink_batch batch = {0};
    assert(link->address && link->gateway && link->address != link->gateway);
    pair_message(&batch, link, host_fd);
    int code = netlink_send(inside, &batch, err);
    if (code == EEXIST)
        return 0;
    if (code != 0)
        return code < 0 ? code : err_errno(err, code, "make the link %s", link->name);
    const int index = (int)if_nametoindex(link->name);
    if (index == 0)
        return err_errno(err, errno, "find the link %s", link->name);
    code = outside_make(link, host, index, err);
    if (code > 0 && code != EEXIST)
        code = err_errno(err, code, "route to the link %s", link->name);
    if (code == 0)
        code = inside_make(link, inside, err);
    if (code == 0)
        return index;
    network_link_drop(host, index, NULL);
    return code == EEXIST ? 0 : code; /* another route leads to the address */
}

int network_link_retire(struct netlink *host, int index, uint32_t address, struct err *err)
{
    cleanup_netlink_batch struct netlink_batch batch = {0};
    route_message(&batch, RTM_DELROUTE, (unsigned)index, address, 0);
    int code = netlink_send(host, &batch, err);
    if (code > 0 && code != ESRCH && code != ENODEV)
        return err_errno(err, code, "remove the route to link %d", index);
    return code < 0 ? code : 0;
}

int network_link_drop(struct netlink *host, int index, struct err *err)
{
    cleanup_netlink_batch struct netlink_batch batch = {0};
    const struct ifinfomsg header = {.ifi_index = index};
    netlink_message(&batch, RTM_DELLINK, NLM_F_ACK, &header, sizeof header);
    int code = netlink_send(host, &batch, err);
    if (code > 0 && code != ENODEV)
        return err_errno(err, code, "remove link %d", index);
    return code < 0 ? code : 0;
}
