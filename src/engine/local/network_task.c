/* The network of one task: chosen at its start, noted in its state, taken up again by the next
 * engine. */
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "engine/local/document.h"
#include "engine/local/network.h"
#include "engine/local/network_rules.h"
#include "engine/local/task.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/machine.h"
#include "sys/mailbox.h"
#include "sys/netlink.h"
#include <linux/netlink.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RESOLVER_BYTES = 64 << 10, OPEN_AGAIN_MS = 60 * 1000 };

#define WORD "nameserver"

int task_networks_open(struct local_engine *local, struct err *err)
{
    const struct engine_local_config *config = &local->config;
    const struct network_config network = {
        .subnet = config->subnet,
        .is_closed = config->is_network_closed,
        .id = local->id,
    };
    struct networks *networks = NULL;
    const int code = networks_new(&network, &networks, err);
    if (code == 0)
        atomic_store(&local->networks, networks);
    return code;
}

/* With the first task that needs them: a machine whose tasks all have its own network is made no
 * router. One that cannot have them is not asked again by each task. */
static int networks_open_late(struct local_engine *local, struct err *err)
{
    int code = 0;
    pthread_mutex_lock(&local->networks_lock);
    if (!local->networks && clock_monotonic_ms() >= local->networks_retry_ms) {
        local->networks_failure = (struct err){0};
        task_networks_open(local, &local->networks_failure);
        local->networks_retry_ms = clock_monotonic_ms() + OPEN_AGAIN_MS;
    }
    if (!local->networks) {
        *err = local->networks_failure;
        code = err->code;
    }
    pthread_mutex_unlock(&local->networks_lock);
    return code;
}

int task_networks_try(struct local_engine *local, struct err *err)
{
    const int code = network_subnet_check(local->config.subnet, err);
    if (code == 0)
        machine_networks_try(&local->networks_failure);
    return code;
}

void task_networks_forget(struct local_engine *local)
{
    struct err err = {0};
    struct netlink socket;
    char table[NETWORK_TABLE_BYTES];
    if (local->networks || netlink_open(&socket, NETLINK_NETFILTER, &err) < 0)
        return; /* they have been written anew; a machine without that has no rules */
    network_table_name(local->id, table);
    if (network_rules_drop(table, &socket, &err) < 0)
        log_error("engine", "%s", err.text);
    netlink_close(&socket);
}

void engine_local_network_trouble(struct engine *engine, char *text, size_t size)
{
    struct local_engine *local = (struct local_engine *)engine;
    pthread_mutex_lock(&local->networks_lock);
    snprintf(text, size, "%s", local->networks ? "" : local->networks_failure.text);
    pthread_mutex_unlock(&local->networks_lock);
}

/* The machine's network is for all, for this virtual cluster or for this job. */
static bool is_in_machines(const struct local_engine *local, const struct container *wanted,
                           unsigned rights)
{
    const struct engine_local_config *config = &local->config;
    return !config->has_private_network || rights & 1u << RIGHT_HOST_NETWORK ||
           (config->is_network_by_job && wanted->may_have_host_network);
}

/* In the machine's network a task sees by itself whether others listen at its ports, and not where
 * another engine's rules lead them. A machine that cannot tell has no such rules. */
static int machine_ports_check(const struct local_engine *local, struct task *task,
                               const struct container *wanted)
{
    struct err err = {0};
    struct netlink socket;
    char own[NETWORK_TABLE_BYTES];
    if (wanted->port_count == 0 || netlink_open(&socket, NETLINK_NETFILTER, &err) < 0)
        return 0;
    network_table_name(local->id, own);
    const int code =
        network_ports_check_others(own, &socket, wanted->ports, wanted->port_count, &err);
    netlink_close(&socket);
    if (code != ERR_CONFLICT)
        return 0;
    task_fail(task, "PortConflict", "%s", err.text);
    return code;
}

int task_network_join(struct local_engine *local, struct task *task, const struct container *wanted,
                      unsigned rights, struct network_place *place)
{
    struct err err = {0};
    place->address[0] = '\0';
    if (is_in_machines(local, wanted, rights))
        return machine_ports_check(local, task, wanted);
    int code = networks_open_late(local, &err);
    if (code < 0) {
        log_warning("engine", "attempt %s: the task is in the machine's network: %s", task->id,
                    err.text);
        event_note(local, task->attempt, "MachineNetwork",
                   "the task is in the machine's network: %s", err.text);
        return 0;
    }
    code = networks_join(local->networks, wanted->job, task->attempt, wanted->ports,
                         wanted->port_count, place, &err);
    if (code < 0)
        task_fail(task, code == ERR_CONFLICT ? "PortConflict" : "CreationError", "%s", err.text);
    return code;
}

void task_network_leave(struct local_engine *local, struct task *task)
{
    struct err err = {0};
    if (local->networks && networks_leave(local->networks, task->attempt, &err) < 0)
        log_error("engine", "attempt %s: %s", task->id, err.text);
}

/* --- its state: "address": "10.213.0.7", "ports": [first, count, …] --- */

void task_network_write(const struct container *wanted, const struct network_place *place,
                        struct json_writer *json)
{
    if (!place->address[0])
        return;
    json_key_string(json, "address", place->address);
    json_key(json, "ports");
    json_array(json);
    for (size_t i = 0; i < wanted->port_count; i++) {
        json_int(json, wanted->ports[i].first);
        json_int(json, wanted->ports[i].count);
    }
    json_array_end(json);
}

void task_network_adopt(struct local_engine *local, struct task *task, const struct doc *state)
{
    const char *address = document_string(state, "address");
    const struct doc *list = doc_get(state, "ports");
    struct err err = {0};
    if (!address[0] || task->init_fd < 0)
        return;
    const size_t count = list && list->kind == DOC_LIST ? list->as.list.count / 2 : 0;
    cleanup_free struct engine_port *ports = mem_zero(count ? count : 1, sizeof *ports);
    for (size_t i = 0; i < count; i++)
        ports[i] = (struct engine_port){document_u16(list->as.list.items[2 * i]),
                                        document_u16(list->as.list.items[2 * i + 1])};
    int code = local->networks ? 0 : task_networks_open(local, &err);
    if (code == 0)
        code = networks_adopt(local->networks, document_string(state, "job"), task->attempt, ports,
                              count, address, task->process.init, &err);
    if (code < 0)
        log_error("engine", "attempt %s: its network: %s", task->id, err.text);
}

/* --- files of a container with a network of its own --- */

/* skep-init adds the names of the job's tasks. */
void task_hosts_text(const struct network_place *place, struct buf *out)
{
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    buf_string(out, "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n");
    buf_format(out, "%s %s\n", place->address, name);
}

/* Lines that lead to a server elsewhere, or that name none; the number of servers. */
static size_t resolver_filter(struct text text, struct buf *out)
{
    size_t count = 0;
    while (text.length > 0) {
        struct text line = text_cut(&text, '\n'), rest = text_trim(line);
        if (text_starts(rest, TEXT(WORD))) {
            rest.at += sizeof WORD - 1;
            rest.length -= sizeof WORD - 1;
            rest = text_trim(rest);
            if (text_starts(rest, TEXT("127.")) || text_starts(rest, TEXT("::1")))
                continue; /* the machine's loopback is out of reach */
            count++;
        }
        buf_format(out, "%.*s\n", TEXT_ARG(line));
    }
    return count;
}

void resolver_text(const char *const *paths, size_t count, struct buf *out)
{
    cleanup_buf struct buf text = BUF_INIT;
    for (size_t i = 0; i < count; i++) {
        buf_clear(&text);
        buf_clear(out);
        if (file_read(paths[i], RESOLVER_BYTES, &text, NULL) == 0 &&
            resolver_filter(buf_as_text(&text), out) > 0)
            break;
    }
}

void task_resolver_text(struct buf *out)
{
    /* systemd's own names the servers behind the one on the loopback */
    static const char *const paths[] = {"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"};
    resolver_text(paths, COUNT_OF(paths), out);
}
