#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "init/init.h"
#include "init/layout.h"

extern char **environ;

enum {
    PASSWD_LINE = 1024,
    TASKS_ADDRESS = 127 << 24 | 1 << 16 | 1, /* 127.1.0.1: of the job's first task */
};

/* name:password:uid:gid:gecos:home:shell of our uid. Read by hand: a static program must not load
 * the image's name services. */
static void passwd_read(struct init *init)
{
    char line[PASSWD_LINE];
    FILE *file = fopen("/etc/passwd", "re");
    while (file && fgets(line, sizeof line, file)) {
        struct text rest = text_of(line), fields[6];
        int64_t uid;
        for (size_t i = 0; i < 6; i++)
            fields[i] = text_cut(&rest, ':');
        if (text_to_int64(fields[2], &uid) && uid == (int64_t)getuid() && fields[5].at) {
            init->user_name = arena_copy(&init->arena, fields[0]);
            if (!init->home && fields[5].length > 0)
                init->home = arena_copy(&init->arena, fields[5]);
            break;
        }
    }
    if (file)
        fclose(file);
}

static void host_line(struct buf *lines, const char *address, const char *const *names,
                      size_t count, uint32_t index)
{
    buf_string(lines, address);
    for (size_t i = 0; i < count; i++)
        buf_format(lines, " %s-%u", names[i], index);
    buf_char(lines, '\n');
}

/* Names for programs that know nothing of the variables: `ping worker-1`. Where the tasks on this
 * node share one address (`has_aliases`), by that alone mpirun takes all of them for this task, and
 * starts here what it should start there. So each has an address of the loopback as well: a task's
 * own name leads to both, that of another one only to its loopback address. */
static void hosts_write(struct init *init, const struct job_file *job, bool has_aliases)
{
    cleanup_buf struct buf lines = BUF_INIT;
    for (size_t r = 0; r < job->role_count; r++)
        for (uint32_t i = 0; i < job->roles[r].instances; i++) {
            const char *names[ENV_SPELLINGS];
            const size_t at = job_file_first_task(job, r) + i;
            const struct job_file_task *task = &job->tasks[at];
            const size_t count = env_role_spellings(job, r, &init->arena, names);
            const uint32_t alias = TASKS_ADDRESS + (uint32_t)at;
            if (!task->address[0])
                continue;
            const bool is_shared = strcmp(task->address, init->self->address) == 0;
            if (is_shared && has_aliases)
                host_line(&lines,
                          arena_format(&init->arena, "127.%u.%u.%u", alias >> 16 & 255,
                                       alias >> 8 & 255, alias & 255),
                          names, count, i);
            if (task == init->self || !is_shared)
                host_line(&lines, task->address, names, count, i);
        }
    const char *path = arena_format(&init->arena, "%s/../etc/hosts", init->root);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0 || write(fd, lines.at, lines.length) != (ssize_t)lines.length)
        note(init, "the names of the job's tasks are not in /etc/hosts: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
}

/* Where the job has a network of its own on this machine, its tasks here reach each other at that
 * network's address; the node's, which the server knows, is for those outside. Where each task has
 * one, nothing is known before all run. */
int setup_network(struct init *init, struct err *err)
{
    char address[INET6_ADDRSTRLEN] = "";
    const char *path = arena_format(&init->arena, "%s/%s", init->root, LAYOUT_NETWORK_NAME);
    struct job_file *job = &init->job;
    struct in_addr parsed;
    FILE *file = fopen(path, "re");
    if (!file)
        return errno == ENOENT ? 0 : err_errno(err, errno, "cannot open %s", path);
    const bool is_read = fgets(address, sizeof address, file) != NULL;
    fclose(file);
    address[strcspn(address, "\n")] = '\0';
    if (access(arena_format(&init->arena, "%s/%s", init->root, LAYOUT_PEERS_NAME), F_OK) == 0) {
        int code = addresses_setup(init, address, err);
        if (code == 0 && !init->is_guest && !init->is_stopping)
            hosts_write(init, job, false);
        return code;
    }
    if (!is_read || inet_pton(AF_INET, address, &parsed) != 1)
        return err_fail(err, ERR_CORRUPT, "", "%s is no address: \"%s\"", path, address);
    struct job_file_task *tasks = ARENA_ARRAY(&init->arena, struct job_file_task, job->task_count);
    memcpy(tasks, job->tasks, job->task_count * sizeof *tasks);
    for (size_t i = 0; i < job->task_count; i++)
        if (tasks[i].address[0] && strcmp(tasks[i].node, init->self->node) == 0)
            tasks[i].address = arena_copy(&init->arena, text_of(address));
    init->self = tasks + (init->self - job->tasks);
    job->tasks = tasks;
    if (!init->is_guest)
        hosts_write(init, job, true);
    return 0;
}

int setup_identity(struct init *init, struct err *err)
{
    char directory[4096];
    const char *home = getenv("HOME");
    if (!getcwd(directory, sizeof directory))
        return err_errno(err, errno, "the working directory is gone");
    init->work_dir = arena_copy(&init->arena, text_of(directory));
    init->user_name = getuid() == 0 ? "root" : "";
    init->home = home && home[0] ? home : NULL;
    passwd_read(init);
    if (!init->home)
        init->home = "/";
    return 0;
}

static bool address_equal(const struct sockaddr *address, const char *text)
{
    char name[INET6_ADDRSTRLEN] = "";
    if (address->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr, name,
                  sizeof name);
    else if (address->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, name,
                  sizeof name);
    return name[0] && strcmp(name, text) == 0;
}

/* The interface that has our address: what gloo and NCCL would else guess from the host's name. */
static const char *interface_find(struct init *init)
{
    struct ifaddrs *all = NULL;
    const char *found = "";
    if (init->job.task_count < 2 || getifaddrs(&all) < 0)
        return found;
    for (const struct ifaddrs *one = all; one; one = one->ifa_next)
        if (one->ifa_addr && address_equal(one->ifa_addr, init->self->address))
            found = arena_copy(&init->arena, text_of(one->ifa_name));
    freeifaddrs(all);
    return found;
}

static int script_write(struct init *init, size_t left_out, struct err *err)
{
    const char *path = arena_format(&init->arena, "%s/run/environment", init->root);
    cleanup_buf struct buf script = BUF_INIT;
    env_set(&init->env, "SKEP_ENVIRONMENT_FILE", path);
    if (init->is_guest) /* the task's own skep-init has written it */
        return 0;
    env_write_script(&init->env, &script);
    int code = file_write(path, buf_as_text(&script), 0600, err);
    note(init, "%zu variables do not fit into the environment; all of them stand in %s", left_out,
         path);
    return code;
}

int setup_environment(struct init *init, struct err *err)
{
    const struct env_host host = {
        init->work_dir, interface_find(init),
        arena_format(&init->arena, "%s/run/%s", init->root, LAYOUT_REASON_NAME)};
    env_init(&init->env, &init->arena);
    env_build(&init->env, &init->job, &init->task, &host);
    if (!getenv("HOME"))
        env_set(&init->env, "HOME", init->home);
    if (!getenv("PATH"))
        env_set(&init->env, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    size_t left_out = env_merge(&init->env, environ, &init->environment);
    if (left_out == 0)
        return 0;
    int code = script_write(init, left_out, err);
    env_merge(&init->env, environ, &init->environment);
    return code;
}

/* Does somebody have the port, by IPv4 or IPv6? Only "in use" is a conflict: what else may be wrong
 * (a port below 1024 without the right) is between the user's program and the kernel. A connection
 * that was closed just now does not count, as servers reuse their address. */
static bool port_is_taken(unsigned port, int type)
{
    const struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    const struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const int on = 1, off = 0;
    int fd = socket(AF_INET6, type | SOCK_CLOEXEC, 0);
    const bool has_v6 = fd >= 0;
    if (!has_v6)
        fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    if (has_v6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (type == SOCK_STREAM)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const int bound = has_v6 ? bind(fd, (const struct sockaddr *)&any, sizeof any)
                             : bind(fd, (const struct sockaddr *)&any4, sizeof any4);
    const bool is_taken = bound < 0 && errno == EADDRINUSE;
    close(fd);
    return is_taken;
}

/* What the platform chose: with a conflict it chooses others. A port that the job itself fixed
 * would be the same the next time, and the program says best what it cannot have. */
int setup_ports(struct init *init, struct err *err)
{
    for (size_t i = 0; i < init->role->port_count; i++) {
        const struct job_file_port *port = &init->role->ports[i];
        for (uint32_t k = 0; k < port->count && !port->begin_at; k++) {
            unsigned number = init->self->ports[i] + k;
            if (number > 0 && number <= UINT16_MAX &&
                (port_is_taken(number, SOCK_STREAM) || port_is_taken(number, SOCK_DGRAM))) {
                init->end.code = EXIT_FILE_PORT_CONFLICT;
                return err_fail(err, ERR_CONFLICT, "", "port conflict: port %u (%s) is in use",
                                number, port->label);
            }
        }
    }
    return 0;
}
