#include "engine/local/network_rules.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include "sys/process.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NFT_TIMEOUT_MS = 30000 };

static const char published[] = "published";

/* --- rules --- */

/* Each line begins with the word, then the chain; T, G and S stand for table, group and subnet. */
static const char *const chains[][2] = {
    {"before", "type nat hook prerouting priority -100"},
    {"own", "type nat hook output priority -100"},
    {"after", "type nat hook postrouting priority 100"},
    {"through", "type filter hook forward priority 0"},
    {"in", "type filter hook input priority 0"},
};

static void chains_write(const struct network_rules *rules, struct buf *out)
{
    for (size_t i = 0; i < COUNT_OF(chains); i++)
        buf_format(out, "add chain ip %s %s { %s; }\nflush chain ip %s %s\n", rules->table,
                   chains[i][0], chains[i][1], rules->table, chains[i][0]);
}

static void rule(const struct network_rules *rules, struct buf *out, const char *chain,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

static void rule(const struct network_rules *rules, struct buf *out, const char *chain,
                 const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_format(out, "add rule ip %s %s ", rules->table, chain);
    buf_vformat(out, format, args);
    buf_char(out, '\n');
    va_end(args);
}

static void rules_text(const struct network_rules *rules, struct buf *out)
{
    static const char to_job[] =
        "fib daddr type local meta l4proto { tcp, udp } dnat to th dport map @%s";
    const unsigned group = rules->group;
    buf_format(out, "add table ip %s\n", rules->table);
    buf_format(out, "add map ip %s %s { type inet_service : ipv4_addr; }\n", rules->table,
               published);
    buf_format(out, "flush map ip %s %s\n", rules->table, published);
    chains_write(rules, out);
    rule(rules, out, "before", to_job, published);
    rule(rules, out, "own", to_job, published);
    /* not what the machine's own programs tell each other at the bridge's address: each must see
     * whom it has called, as Open MPI's do */
    rule(rules, out, "after", "oifgroup != %u oifname != lo ip saddr %s masquerade", group,
         rules->subnet);
    /* what comes back must come this way: a job that calls its own published port, a program of the
     * machine that calls one at 127.0.0.1 */
    rule(rules, out, "after", "oifgroup %u ct status dnat ip saddr { %s, 127.0.0.0/8 } masquerade",
         group, rules->subnet);
    rule(rules, out, "through", "oifgroup %u ct state established,related accept", group);
    rule(rules, out, "through", "oifgroup %u ct status dnat accept", group);
    rule(rules, out, "through", "oifgroup %u reject with icmp admin-prohibited", group);
    if (rules->is_closed) {
        rule(rules, out, "through", "iifgroup %u ct state established,related accept", group);
        rule(rules, out, "through", "iifgroup %u reject with icmp admin-prohibited", group);
    }
    rule(rules, out, "in", "iifgroup %u ct state established,related accept", group);
    rule(rules, out, "in", "iifgroup %u reject with icmp port-unreachable", group);
}

static int nft_run(struct text text, struct err *err)
{
    const char *argv[] = {"nft", "-f", "-", NULL};
    const char *env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    cleanup_buf struct buf complaint = BUF_INIT;
    cleanup_close int in = memfd_create("nft", MFD_CLOEXEC);
    if (in < 0 || write(in, text.at, text.length) != (ssize_t)text.length ||
        lseek(in, 0, SEEK_SET) < 0)
        return err_errno(err, errno, "write the rules for nft");
    struct process process = {.argv = argv, .env = env, .in = in, .out = -1, .err = -1};
    int exit_code = 0;
    int code = process_run(&process, NFT_TIMEOUT_MS, NULL, &complaint, &exit_code, err);
    if (code == ERR_NOT_FOUND)
        return err_fail(err, ERR_UNSUPPORTED, "engine.network",
                        "nft (the package nftables) is not installed");
    if (code == 0 && exit_code != 0) {
        struct text rest = buf_as_text(&complaint);
        return err_fail(err, ERR_UNSUPPORTED, "engine.network", "nft refuses the rules: %.*s",
                        TEXT_ARG(text_cut(&rest, '\n')));
    }
    return code;
}

int network_rules_write(const struct network_rules *rules, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT;
    rules_text(rules, &text);
    return nft_run(buf_as_text(&text), err);
}

/* --- published ports --- */

static void batch_edge(struct netlink_batch *batch, uint16_t type)
{
    const struct nfgenmsg header = {.nfgen_family = AF_UNSPEC,
                                    .res_id = htons(NFNL_SUBSYS_NFTABLES)};
    netlink_message(batch, type, 0, &header, sizeof header);
}

int network_rules_drop(const char *table, struct netlink *socket, struct err *err)
{
    const struct nfgenmsg header = {.nfgen_family = AF_INET};
    cleanup_netlink_batch struct netlink_batch batch = {0};
    batch_edge(&batch, NFNL_MSG_BATCH_BEGIN);
    netlink_message(&batch, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELTABLE, NLM_F_ACK, &header,
                    sizeof header);
    netlink_put_string(&batch, NFTA_TABLE_NAME, table);
    batch_edge(&batch, NFNL_MSG_BATCH_END);
    const int code = netlink_send(socket, &batch, err);
    if (code == ENOENT || code == EOPNOTSUPP || code == EINVAL) /* a kernel without tables */
        return 0;
    return code <= 0 ? code : err_errno(err, code, "delete the nft table ip %s", table);
}

static void data_put(struct netlink_batch *batch, uint16_t type, const void *bytes, size_t size)
{
    size_t data = netlink_nest(batch, type);
    netlink_put(batch, NFTA_DATA_VALUE, bytes, size);
    netlink_nest_end(batch, data);
}

static void element_put(struct netlink_batch *batch, uint16_t port, const uint32_t *address)
{
    const uint16_t key = htons(port);
    size_t element = netlink_nest(batch, NFTA_LIST_ELEM);
    data_put(batch, NFTA_SET_ELEM_KEY, &key, sizeof key);
    if (address) {
        const uint32_t value = htonl(*address);
        data_put(batch, NFTA_SET_ELEM_DATA, &value, sizeof value);
    }
    netlink_nest_end(batch, element);
}

/* One message of elements: a list may not be longer than an attribute. */
static int elements_send(const struct network_rules *rules, struct netlink *socket,
                         const struct engine_port *port, const uint32_t *address, struct err *err)
{
    enum { ELEMENTS_MAX = 1000 };
    const struct nfgenmsg header = {.nfgen_family = AF_INET};
    const uint16_t verb = address ? NFT_MSG_NEWSETELEM : NFT_MSG_DELSETELEM;
    const uint16_t create = address ? NLM_F_CREATE | NLM_F_EXCL : 0;
    int code = 0;
    for (unsigned at = 0; at < port->count && code == 0; at += ELEMENTS_MAX) {
        cleanup_netlink_batch struct netlink_batch batch = {0};
        batch_edge(&batch, NFNL_MSG_BATCH_BEGIN);
        netlink_message(&batch, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | verb), create | NLM_F_ACK,
                        &header, sizeof header);
        netlink_put_string(&batch, NFTA_SET_ELEM_LIST_TABLE, rules->table);
        netlink_put_string(&batch, NFTA_SET_ELEM_LIST_SET, published);
        size_t list = netlink_nest(&batch, NFTA_SET_ELEM_LIST_ELEMENTS);
        for (unsigned i = at; i < port->count && i < at + ELEMENTS_MAX; i++)
            element_put(&batch, (uint16_t)(port->first + i), address);
        netlink_nest_end(&batch, list);
        batch_edge(&batch, NFNL_MSG_BATCH_END);
        code = netlink_send(socket, &batch, err);
    }
    return code;
}

/* --- other engines --- */

static const char table_prefix[] = "skep_";

void network_table_name(uint32_t id, char table[NETWORK_TABLE_BYTES])
{
    snprintf(table, NETWORK_TABLE_BYTES, "%s%08x", table_prefix, id);
}

struct table_names {
    const char *own;
    struct table_name {
        char text[NETWORK_TABLE_BYTES];
    } * items;
    size_t count, room;
};

static void table_note(void *context, struct text message)
{
    struct table_names *names = context;
    struct nlattr attribute;
    for (size_t at = NLMSG_ALIGN(sizeof(struct nfgenmsg));
         at + sizeof attribute <= message.length;) {
        memcpy(&attribute, message.at + at, sizeof attribute);
        if (attribute.nla_len < sizeof attribute || attribute.nla_len > message.length - at)
            return;
        const char *name = message.at + at + sizeof attribute;
        const size_t size = attribute.nla_len - sizeof attribute; /* with its zero */
        if (attribute.nla_type == NFTA_TABLE_NAME && size > sizeof table_prefix &&
            size <= NETWORK_TABLE_BYTES && strncmp(name, table_prefix, strlen(table_prefix)) == 0 &&
            strcmp(name, names->own) != 0)
            memcpy(ARRAY_ADD(names)->text, name, size);
        at += (size_t)NLA_ALIGN(attribute.nla_len);
    }
}

static int tables_find(struct netlink *socket, struct table_names *names, struct err *err)
{
    const struct nfgenmsg header = {.nfgen_family = AF_INET};
    cleanup_netlink_batch struct netlink_batch batch = {0};
    netlink_message(&batch, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETTABLE, NLM_F_DUMP, &header,
                    sizeof header);
    return netlink_list(socket, &batch, table_note, names, err);
}

/* 0: yes; ENOENT: no. */
static int element_find(const char *table, struct netlink *socket, uint16_t port, struct err *err)
{
    const struct nfgenmsg header = {.nfgen_family = AF_INET};
    cleanup_netlink_batch struct netlink_batch batch = {0};
    netlink_message(&batch, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETSETELEM, NLM_F_ACK, &header,
                    sizeof header);
    netlink_put_string(&batch, NFTA_SET_ELEM_LIST_TABLE, table);
    netlink_put_string(&batch, NFTA_SET_ELEM_LIST_SET, published);
    size_t list = netlink_nest(&batch, NFTA_SET_ELEM_LIST_ELEMENTS);
    element_put(&batch, port, NULL);
    netlink_nest_end(&batch, list);
    return netlink_send(socket, &batch, err);
}

static int ports_check(const char *table, struct netlink *socket, const struct engine_port *port,
                       struct err *err)
{
    for (unsigned i = 0; i < port->count; i++) {
        const int code = element_find(table, socket, (uint16_t)(port->first + i), err);
        if (code == 0)
            return err_fail(err, ERR_CONFLICT, "",
                            "port conflict: port %u leads to a task of another Skep of this "
                            "machine (its rules: nft list table ip %s)",
                            port->first + i, table);
        if (code < 0)
            return code;
    }
    return 0;
}

int network_ports_check_others(const char *own, struct netlink *socket,
                               const struct engine_port *ports, size_t count, struct err *err)
{
    struct table_names names = {.own = own};
    /* a kernel that does not know tables has none */
    int code = count > 0 ? tables_find(socket, &names, err) : 0;
    code = code > 0 ? 0 : code;
    for (size_t i = 0; i < names.count; i++)
        for (size_t k = 0; code == 0 && k < count; k++)
            code = ports_check(names.items[i].text, socket, &ports[k], err);
    ARRAY_FREE(&names);
    return code;
}

int network_ports_publish(const struct network_rules *rules, struct netlink *socket,
                          const struct engine_port *ports, size_t count, uint32_t address,
                          struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        int code = elements_send(rules, socket, &ports[i], &address, err);
        if (code == 0)
            continue;
        network_ports_withdraw(rules, socket, ports, i, NULL);
        if (code == EEXIST)
            return err_fail(err, ERR_CONFLICT, "", "port conflict: port %u is another task's",
                            ports[i].first);
        return code < 0 ? code : err_errno(err, code, "publish port %u", ports[i].first);
    }
    return 0;
}

int network_ports_withdraw(const struct network_rules *rules, struct netlink *socket,
                           const struct engine_port *ports, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        int code = elements_send(rules, socket, &ports[i], NULL, err);
        if (code != 0 && code != ENOENT)
            return code < 0 ? code : err_errno(err, code, "withdraw port %u", ports[i].first);
    }
    return 0;
}
