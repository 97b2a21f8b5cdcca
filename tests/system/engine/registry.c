#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "registry.h"
#include "waits.h"
#include "world.h"
#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REGISTRY_PATIENCE_MS = 120000, SERVERS_FIRST = 21000, SERVERS_END = 22000 };

/* A name in the machine's network, for as long as the process lives. */
static bool port_mark(uint16_t port)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                                "skep-test-server-%u", (unsigned)port);
    const size_t size = offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length;
    const int mark = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (bind(mark, (struct sockaddr *)&address, (socklen_t)size) == 0)
        return true;
    close(mark);
    return false;
}

static bool port_is_free(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), again = 1;
    setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &again, sizeof again);
    const bool is_free = bind(probe, (const struct sockaddr *)&address, sizeof address) == 0;
    close(probe);
    return is_free;
}

unsigned free_port(void)
{
    for (uint16_t port = SERVERS_FIRST; port < SERVERS_END; port++)
        if (port_mark(port) && port_is_free(port))
            return port;
    fail_msg("all ports of servers are taken");
    return 0;
}

void registry_start(struct registry *registry)
{
    char config[400], log[400];
    snprintf(config, sizeof config, "%s/config.yml", registry->folder);
    snprintf(log, sizeof log, "%s/log", registry->folder);
    char *argv[] = {(char *)(uintptr_t) "docker-registry", (char *)(uintptr_t) "serve", config,
                    NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(posix_spawnp(&registry->pid, "docker-registry", &actions, NULL, argv, environ),
                     0);
    posix_spawn_file_actions_destroy(&actions);
    assert_true(file_says_await(log, "listening on", REGISTRY_PATIENCE_MS));
}

unsigned script_start(const char *folder, const char *script, const char *argument,
                      const char *output, pid_t *pid)
{
    char path[300], file[300];
    snprintf(path, sizeof path, "%s/%s", SOURCE_FOLDER, script);
    snprintf(file, sizeof file, "%s/%s", folder, output);
    char *argv[] = {(char *)(uintptr_t) "python3", path, (char *)(uintptr_t)argument, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(posix_spawnp(pid, "python3", &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    assert_true(file_says_await(file, "\n", REGISTRY_PATIENCE_MS));
    return (unsigned)atoi(shell_output("head -n 1 %s", file));
}

void registry_stop(struct registry *registry)
{
    if (registry->pid > 0) {
        kill(registry->pid, SIGKILL);
        waitpid(registry->pid, NULL, 0);
    }
    registry->pid = 0;
}

void registry_make(struct registry *registry, const char *folder, const char *name,
                   bool has_password)
{
    registry->port = free_port();
    registry->has_password = has_password;
    snprintf(registry->folder, sizeof registry->folder, "%s/%s", folder, name);
    assert_int_equal(
        shell(
            "mkdir -p %s; printf 'version: 0.1\\nstorage: {filesystem: {rootdirectory: %s/data}}\\n"
            "http: {addr: 127.0.0.1:%u}\\n' > %s/config.yml",
            registry->folder, registry->folder, registry->port, registry->folder),
        0);
    if (has_password)
        assert_int_equal(shell("htpasswd -Bbn bob secret > %s/htpasswd; printf 'auth: {htpasswd: "
                               "{realm: x, path: %s/htpasswd}}\\n' >> %s/config.yml",
                               registry->folder, registry->folder, registry->folder),
                         0);
    registry_start(registry);
}

const char *image_name(const struct registry *registry, const char *name)
{
    static char names[8][400];
    static unsigned next;
    char *out = names[next++ % 8];
    snprintf(out, sizeof names[0], "127.0.0.1:%u/%s", registry->port, name);
    return out;
}
