#include "engine/local/network.h"
#include "base/err.h"
#include "base/map.h"
#include "base/memory.h"
#include "engine/local/network_link.h"
#include "engine/local/network_pool.h"
#include "engine/local/network_rules.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include "sys/log.h"
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IDLE_MAX = 16 };

struct network { /* of one job; without members: of a user's last one, kept for the next */
    char *job;
    bool is_old; /* idle for a round of housekeeping */
    uint32_t address;
    int namespace_fd, link; /* link: index of the machine's end */
    size_t member_count;
};

struct network_member { /* a task */
    struct attempt_id attempt;
    struct network *network;
    struct engine_port *ports;
    size_t port_count;
};

struct networks {
    struct network_rules rules;
    struct network_space space;
    struct network_pool *pool;
    bool has_rules;
    pthread_mutex_t lock; /* of all that follows */
    struct netlink route, filter;
    struct {
        struct network **items;
        size_t count, room;
    } all;
    struct {
        int *items;
        size_t count, room;
    } retired; /* links whose namespaces should have gone with them */
    struct {
        struct network_member *items;
        size_t count, room;
    } members;
};

/* --- the machine --- */

struct subnet {
    char base[NETWORK_ADDRESS_MAX + 4];
    struct in_addr address;
    int64_t prefix;
};

static int subnet_parse(const char *words, struct subnet *subnet, struct err *err)
{
    struct text rest = text_of(words), address = text_cut(&rest, '/');
    *subnet = (struct subnet){.prefix = 0};
    snprintf(subnet->base, sizeof subnet->base, "%.*s", TEXT_ARG(address));
    if (inet_pton(AF_INET, subnet->base, &subnet->address) != 1 ||
        !text_to_int64(rest, &subnet->prefix) || subnet->prefix < NETWORK_PREFIX_LOW ||
        subnet->prefix > NETWORK_PREFIX_HIGH)
        return err_fail(err, ERR_INVALID, "engine.network.subnet",
                        "\"%.40s\" is not ADDRESS/BITS with %d to %d bits", words,
                        NETWORK_PREFIX_LOW, NETWORK_PREFIX_HIGH);
    return 0;
}

int network_subnet_check(const char *words, struct err *err)
{
    struct subnet subnet;
    return subnet_parse(words, &subnet, err);
}

static int subnet_read(const char *words, struct networks *networks, struct err *err)
{
    struct subnet subnet;
    const int code = subnet_parse(words, &subnet, err);
    if (code < 0)
        return code;
    const uint32_t size = 1u << (32 - subnet.prefix);
    networks->space.first = ntohl(subnet.address.s_addr) & ~(size - 1);
    networks->space.count = size - 3; /* not the net's, the machine's, the broadcast's */
    snprintf(networks->rules.subnet, sizeof networks->rules.subnet, "%s/%d", subnet.base,
             (int)subnet.prefix);
    return 0;
}

/* Without forwarding nothing leaves a namespace. */
static int forwarding_put(struct err *err)
{
    static const char path[] = "/proc/sys/net/ipv4/ip_forward";
    char now = '0';
    cleanup_close int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || read(fd, &now, 1) != 1)
        return err_errno(err, errno, "read %s", path);
    if (now == '1')
        return 0;
    log_info("engine", "%s is set to 1: the machine forwards packets from now on", path);
    if (pwrite(fd, "1", 1, 0) != 1)
        return err_errno(err, errno, "set %s", path);
    return 0;
}

static int machine_open(struct networks *networks, struct err *err)
{
    int code = netlink_open(&networks->route, NETLINK_ROUTE, err);
    if (code == 0)
        code = netlink_open(&networks->filter, NETLINK_NETFILTER, err);
    if (code == 0) {
        networks->space.host_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        if (networks->space.host_fd < 0)
            code = err_errno(err, errno, "open the machine's network namespace");
    }
    if (code == 0)
        code = forwarding_put(err);
    if (code == 0)
        code = network_rules_write(&networks->rules, err);
    networks->has_rules = code == 0;
    if (code == 0)
        code = network_pool_new(&networks->space, &networks->pool, err);
    return code;
}

int networks_new(const struct network_config *config, struct networks **out, struct err *err)
{
    struct networks *networks = mem_zero(1, sizeof *networks);
    networks->space.host_fd = networks->route.fd = networks->filter.fd = -1;
    networks->rules.is_closed = config->is_closed;
    networks->rules.group = networks->space.group = config->id & INT32_MAX;
    networks->space.subnet = networks->rules.subnet;
    network_table_name(config->id, networks->rules.table);
    pthread_mutex_init(&networks->lock, NULL);
    int code = subnet_read(config->subnet, networks, err);
    /* beside another engine: elsewhere */
    networks->space.next = code == 0 ? (uint32_t)getpid() % networks->space.count : 0;
    if (code == 0)
        code = machine_open(networks, err);
    if (code < 0) {
        networks_free(networks);
        return code;
    }
    *out = networks;
    return 0;
}

static void network_free(struct network *network)
{
    if (network->namespace_fd >= 0)
        close(network->namespace_fd);
    mem_free(network->job);
    mem_free(network);
}

/* --- one job's; with the lock --- */

static struct network *network_find(const struct networks *networks, const char *job)
{
    for (size_t i = 0; i < networks->all.count; i++)
        if (strcmp(networks->all.items[i]->job, job) == 0)
            return networks->all.items[i];
    return NULL;
}

/* A network without tasks of another job of the same user ("USER~NAME"): what its last job may have
 * left in it, connections that end by themselves, is the user's own. */
static struct network *network_take(const struct networks *networks, const char *job)
{
    const char *end = strchr(job, '~');
    const size_t length = end ? (size_t)(end - job) + 1 : 0;
    for (size_t i = 0; length > 0 && i < networks->all.count; i++) {
        struct network *network = networks->all.items[i];
        if (network->member_count > 0 || strncmp(network->job, job, length) != 0)
            continue;
        mem_free(network->job);
        network->job = mem_copy(job);
        return network;
    }
    return NULL;
}

static size_t idle_count(const struct networks *networks)
{
    size_t count = 0;
    for (size_t i = 0; i < networks->all.count; i++)
        count += networks->all.items[i]->member_count == 0;
    return count;
}

static struct network *network_add(struct networks *networks, const char *job, uint32_t address,
                                   int namespace_fd, int link)
{
    struct network *network = mem_zero(1, sizeof *network);
    network->job = mem_copy(job);
    network->address = address;
    network->namespace_fd = namespace_fd;
    network->link = link;
    *ARRAY_ADD(&networks->all) = network;
    return network;
}

static void network_drop(struct networks *networks, struct network *network)
{
    struct err err = {0};
    if (network->link > 0) {
        if (network_link_retire(&networks->route, network->link, network->address, &err) < 0)
            log_warning("engine", "%s: %s", network->job, err.text);
        *ARRAY_ADD(&networks->retired) = network->link;
    }
    for (size_t i = 0; i < networks->all.count; i++)
        if (networks->all.items[i] == network) {
            networks->all.items[i] = networks->all.items[--networks->all.count];
            break;
        }
    network_free(network);
}

/* One that is ready, or else made now. */
static int network_get(struct networks *networks, const char *job, struct network **network,
                       struct err *err)
{
    struct network_made made;
    int code = 0;
    if (!network_pool_take(networks->pool, &made))
        code = network_make(&networks->space, &networks->route, &made, err);
    if (code == 0)
        *network = network_add(networks, job, made.address, made.namespace_fd, made.link);
    return code;
}

/* Those that have been idle since the last round, or all. */
static void idle_drop(struct networks *networks, bool is_all)
{
    for (size_t i = networks->all.count; i-- > 0;) {
        struct network *network = networks->all.items[i];
        if (network->member_count > 0)
            continue;
        if (network->is_old || is_all)
            network_drop(networks, network); /* the last one takes its place */
        else
            network->is_old = true;
    }
}

static void sweep(struct networks *networks, bool is_all)
{
    struct err err = {0};
    pthread_mutex_lock(&networks->lock);
    idle_drop(networks, is_all);
    for (size_t i = 0; i < networks->retired.count; i++)
        if (network_link_drop(&networks->route, networks->retired.items[i], &err) < 0)
            log_warning("engine", "%s", err.text);
    networks->retired.count = 0;
    pthread_mutex_unlock(&networks->lock);
}

void networks_sweep(struct networks *networks)
{
    sweep(networks, false);
}

void networks_free(struct networks *networks)
{
    struct err err = {0};
    if (!networks)
        return;
    network_pool_free(networks->pool);
    sweep(networks, true);
    if (networks->all.count == 0 && networks->has_rules &&
        network_rules_drop(networks->rules.table, &networks->filter, &err) < 0)
        log_warning("engine", "%s", err.text);
    for (size_t i = 0; i < networks->all.count; i++)
        network_free(networks->all.items[i]);
    for (size_t i = 0; i < networks->members.count; i++)
        mem_free(networks->members.items[i].ports);
    ARRAY_FREE(&networks->all);
    ARRAY_FREE(&networks->retired);
    ARRAY_FREE(&networks->members);
    netlink_close(&networks->route);
    netlink_close(&networks->filter);
    if (networks->space.host_fd >= 0)
        close(networks->space.host_fd);
    pthread_mutex_destroy(&networks->lock);
    mem_free(networks);
}

/* --- tasks --- */

/* Does a program of the machine have it? Then it stays its own. */
static bool port_is_taken(unsigned port, int type)
{
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const int on = 1;
    cleanup_close int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    if (fd >= 0 && type == SOCK_STREAM)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return fd >= 0 && bind(fd, (const struct sockaddr *)&any, sizeof any) < 0 &&
           errno == EADDRINUSE;
}

static int ports_check(const struct engine_port *ports, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++)
        for (unsigned k = 0; k < ports[i].count; k++)
            if (port_is_taken(ports[i].first + k, SOCK_STREAM) ||
                port_is_taken(ports[i].first + k, SOCK_DGRAM))
                return err_fail(err, ERR_CONFLICT, "",
                                "port conflict: port %u is in use on the machine",
                                ports[i].first + k);
    return 0;
}

/* Published first: of two engines that take one at the same time, both see the other. */
static int ports_take(struct networks *networks, const struct engine_port *ports, size_t count,
                      uint32_t address, struct err *err)
{
    int code =
        network_ports_publish(&networks->rules, &networks->filter, ports, count, address, err);
    if (code < 0)
        return code;
    code = network_ports_check_others(networks->rules.table, &networks->filter, ports, count, err);
    if (code < 0)
        network_ports_withdraw(&networks->rules, &networks->filter, ports, count, NULL);
    return code;
}

static void member_add(struct networks *networks, struct network *network,
                       struct attempt_id attempt, const struct engine_port *ports, size_t count)
{
    struct network_member *member = ARRAY_ADD(&networks->members);
    *member = (struct network_member){.attempt = attempt, .network = network, .port_count = count};
    member->ports = mem_zero(count ? count : 1, sizeof *ports);
    if (count)
        memcpy(member->ports, ports, count * sizeof *ports);
    network->member_count++;
    network->is_old = false;
}

int networks_join(struct networks *networks, const char *job, struct attempt_id attempt,
                  const struct engine_port *ports, size_t count, struct network_place *place,
                  struct err *err)
{
    int code = ports_check(ports, count, err);
    if (code < 0)
        return code;
    pthread_mutex_lock(&networks->lock);
    struct network *network = network_find(networks, job);
    if (!network)
        network = network_take(networks, job);
    if (!network)
        code = network_get(networks, job, &network, err);
    assert(code != 0 || network);
    if (code == 0)
        code = ports_take(networks, ports, count, network->address, err);
    if (code == 0) {
        const struct in_addr address = {htonl(network->address)};
        member_add(networks, network, attempt, ports, count);
        inet_ntop(AF_INET, &address, place->address, sizeof place->address);
        snprintf(place->path, sizeof place->path, "/proc/%d/fd/%d", (int)getpid(),
                 network->namespace_fd);
    } else if (network && network->member_count == 0) {
        network_drop(networks, network);
    }
    pthread_mutex_unlock(&networks->lock);
    return code;
}

int networks_adopt(struct networks *networks, const char *job, struct attempt_id attempt,
                   const struct engine_port *ports, size_t count, const char *address, int process,
                   struct err *err)
{
    char path[64], name[IFNAMSIZ];
    struct in_addr parsed;
    if (inet_pton(AF_INET, address, &parsed) != 1)
        return err_fail(err, ERR_CORRUPT, "", "\"%.40s\" is no address", address);
    snprintf(path, sizeof path, "/proc/%d/ns/net", process);
    pthread_mutex_lock(&networks->lock);
    int code = 0;
    struct network *network = network_find(networks, job);
    if (!network) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        network_link_name(&networks->space, ntohl(parsed.s_addr), name);
        if (fd < 0)
            code = err_errno(err, errno, "open %s", path);
        else
            network =
                network_add(networks, job, ntohl(parsed.s_addr), fd, (int)if_nametoindex(name));
    }
    assert(code != 0 || network);
    if (code == 0) {
        member_add(networks, network, attempt, ports, count);
        code = network_ports_publish(&networks->rules, &networks->filter, ports, count,
                                     network->address, err);
    }
    pthread_mutex_unlock(&networks->lock);
    return code;
}

int networks_leave(struct networks *networks, struct attempt_id attempt, struct err *err)
{
    int code = 0;
    pthread_mutex_lock(&networks->lock);
    for (size_t i = 0; i < networks->members.count; i++) {
        struct network_member member = networks->members.items[i];
        if (member.attempt.v != attempt.v)
            continue;
        code = network_ports_withdraw(&networks->rules, &networks->filter, member.ports,
                                      member.port_count, err);
        mem_free(member.ports);
        networks->members.items[i] = networks->members.items[--networks->members.count];
        assert(member.network->member_count > 0);
        if (--member.network->member_count == 0 && idle_count(networks) > IDLE_MAX)
            network_drop(networks, member.network);
        break;
    }
    pthread_mutex_unlock(&networks->lock);
    return code;
}

/* A counter of the machine's end of a link. */
static uint64_t link_counter(const char *link, const char *name)
{
    char path[128], text[32] = "";
    snprintf(path, sizeof path, "/sys/class/net/%s/statistics/%s", link, name);
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        return 0;
    return strtoull(text, NULL, 10);
}

void networks_traffic(struct networks *networks, struct attempt_id attempt,
                      struct engine_stats *stats)
{
    char link[IFNAMSIZ] = "";
    pthread_mutex_lock(&networks->lock);
    for (size_t i = 0; i < networks->members.count; i++)
        if (networks->members.items[i].attempt.v == attempt.v) {
            const struct network *network = networks->members.items[i].network;
            network_link_name(&networks->space, network->address, link);
            stats->network_tasks = (uint32_t)network->member_count;
        }
    pthread_mutex_unlock(&networks->lock);
    if (!link[0])
        return;
    stats->received_bytes = link_counter(link, "tx_bytes"); /* what the machine's end sends */
    stats->sent_bytes = link_counter(link, "rx_bytes");
}
