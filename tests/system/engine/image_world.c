/* image_world.c — see image_world.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "base/memory.h"
#include "image_world.h"
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct world world;
struct registry open_registry, closed_registry;
unsigned token_port;
static pid_t token_pid;

void image_make(const char *tag, unsigned megabytes)
{
    assert_int_equal(
        shell("set -e; cd %s; exec 2>make.log >&2; [ -d layout ] || umoci init --layout layout; "
              "umoci new --image layout:%s; umoci unpack --image layout:%s bundle; "
              "cp -a images/busybox/. bundle/rootfs/; mkdir -p bundle/rootfs/work; echo %s > "
              "bundle/rootfs/etc/tag; chown 1000 bundle/rootfs/work; "
              "head -c %uM /dev/urandom > bundle/rootfs/ballast; "
              "umoci repack --image layout:%s bundle; umoci config --image layout:%s "
              "--config.user worker --config.env GREETING=hello --config.workingdir /work; "
              "rm -rf bundle",
              world.folder, tag, tag, tag, megabytes, tag, tag),
        0);
}

void image_push(const struct registry *registry, const char *tag, const char *name)
{
    assert_int_equal(shell("exec 2>%s/push.log >&2; skopeo --insecure-policy copy %s "
                           "--dest-tls-verify=false oci:%s/layout:%s docker://127.0.0.1:%u/%s",
                           world.folder, registry->has_password ? "--dest-creds bob:secret" : "",
                           world.folder, tag, registry->port, name),
                     0);
}

unsigned halting_start(pid_t *pid)
{
    char port[16];
    snprintf(port, sizeof port, "%u", open_registry.port);
    return script_start(world.folder, "halting_registry.py", port, "halting.out", pid);
}

void script_stop(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

void create(uint64_t attempt, const char *image, const char *user, const char *password,
            const char *command)
{
    struct err err = {0};
    struct task_options options = {.image = image, .user = user, .password = password};
    assert_int_equal(world_create_with(&world, attempt, command, &options, &err), 0);
}

const struct seen *end_of(uint64_t attempt)
{
    const struct seen *end = world_wait(&world, ENGINE_EXITED, attempt, 0, PATIENCE_MS);
    assert_non_null(end);
    return end;
}

void assert_ends(uint64_t attempt, int code, const char *log)
{
    const struct seen *end = end_of(attempt);
    if (end->exit.exit_code != code)
        fprintf(stderr, "%s: %s\n%s%s\n", end->reason, end->message, end->log, end->platform);
    assert_int_equal(end->exit.exit_code, code);
    if (log)
        assert_string_equal(end->log, log);
}

void assert_fails(uint64_t attempt, const char *reason)
{
    const struct seen *end = end_of(attempt);
    if (strcmp(end->reason, reason) != 0)
        fprintf(stderr, "%s: %s\n", end->reason, end->message);
    assert_string_equal(end->reason, reason);
    assert_false(end->exit.is_user_command);
    assert_true(end->message[0]);
}

size_t notes_of(uint64_t attempt, const char *reason)
{
    size_t count = 0;
    pthread_mutex_lock(&world.lock);
    for (size_t i = 0; i < world.seen.count; i++)
        count += world.seen.items[i].kind == ENGINE_NOTE &&
                 world.seen.items[i].attempt == attempt &&
                 strcmp(world.seen.items[i].reason, reason) == 0;
    pthread_mutex_unlock(&world.lock);
    return count;
}

int image_world_open(void **state)
{
    (void)state;
    if (!world_open(&world))
        exit(77);
    if (shell("command -v docker-registry umoci skopeo htpasswd >/dev/null") != 0) {
        fprintf(stderr, "skipped: docker-registry, umoci, skopeo or htpasswd is not installed\n");
        exit(77);
    }
    world.config.pull_tries = 2;
    world.config.pull_stall_s = 1000;
    world.config.image_fresh_s = 1;
    world.config.image_max_mib = 128;
    world.config.image_max_entries = 3000;
    world.config.image_high_percent = 100;
    registry_make(&open_registry, world.folder, "open", false);
    registry_make(&closed_registry, world.folder, "closed", true);
    /* named by the operator: what they say of themselves is believed, as with TLS */
    static char hosts[3][32];
    static const char *const named[3] = {hosts[0], hosts[1], hosts[2]};
    char port[16];
    snprintf(port, sizeof port, "%u", open_registry.port);
    token_port = script_start(world.folder, "token_registry.py", port, "token.out", &token_pid);
    snprintf(hosts[0], sizeof hosts[0], "127.0.0.1:%u", open_registry.port);
    snprintf(hosts[1], sizeof hosts[1], "127.0.0.1:%u", closed_registry.port);
    snprintf(hosts[2], sizeof hosts[2], "127.0.0.1:%u", token_port);
    world.config.insecure_registries = named;
    world.config.insecure_registry_count = COUNT_OF(named);
    world_start(&world);
    image_make("v1", 1);
    image_make("v2", 1);
    return 0;
}

int image_world_close(void **state)
{
    (void)state;
    registry_stop(&open_registry);
    registry_stop(&closed_registry);
    kill(token_pid, SIGKILL);
    waitpid(token_pid, NULL, 0);
    world_close(&world);
    return 0;
}
