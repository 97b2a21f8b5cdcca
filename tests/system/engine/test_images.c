/* Images: registries with and without a password, archives, layouts; what can go wrong with them.
 *
 * Covers: src/engine/local/fetch.c, src/engine/local/image.c, src/engine/local/pull.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "engine/local/image.h"
#include "engine/local/manifest.h"
#include "engine/local/task.h"
#include "registry.h"
#include "sys/process.h"
#include "waits.h"
#include "world.h"
#include <cmocka.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000, STALL_S = 2 };

static struct world world;
static struct registry open_registry, closed_registry;
static pid_t token_pid; /* in front of the open registry */
static unsigned token_port;

/* An OCI layout FOLDER/layout with one image `tag`: busybox, a user, a variable, a folder, and
 * `megabytes` of what cannot be compressed. */
static void image_make(const char *tag, unsigned megabytes)
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

static void image_push(const struct registry *registry, const char *tag, const char *name)
{
    assert_int_equal(shell("exec 2>%s/push.log >&2; skopeo --insecure-policy copy %s "
                           "--dest-tls-verify=false oci:%s/layout:%s docker://127.0.0.1:%u/%s",
                           world.folder, registry->has_password ? "--dest-creds bob:secret" : "",
                           world.folder, tag, registry->port, name),
                     0);
}

static unsigned halting_start(pid_t *pid)
{
    char port[16];
    snprintf(port, sizeof port, "%u", open_registry.port);
    return script_start(world.folder, "halting_registry.py", port, "halting.out", pid);
}

static void script_stop(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void create(uint64_t attempt, const char *image, const char *user, const char *password,
                   const char *command)
{
    struct err err = {0};
    struct task_options options = {.image = image, .user = user, .password = password};
    assert_int_equal(world_create_with(&world, attempt, command, &options, &err), 0);
}

static const struct seen *end_of(uint64_t attempt)
{
    const struct seen *end = world_wait(&world, ENGINE_EXITED, attempt, 0, PATIENCE_MS);
    assert_non_null(end);
    return end;
}

static void assert_ends(uint64_t attempt, int code, const char *log)
{
    const struct seen *end = end_of(attempt);
    if (end->exit.exit_code != code)
        fprintf(stderr, "%s: %s\n%s%s\n", end->reason, end->message, end->log, end->platform);
    assert_int_equal(end->exit.exit_code, code);
    if (log)
        assert_string_equal(end->log, log);
}

static void assert_fails(uint64_t attempt, const char *reason)
{
    const struct seen *end = end_of(attempt);
    if (strcmp(end->reason, reason) != 0)
        fprintf(stderr, "%s: %s\n", end->reason, end->message);
    assert_string_equal(end->reason, reason);
    assert_false(end->exit.is_user_command);
    assert_true(end->message[0]);
}

static size_t notes_of(uint64_t attempt, const char *reason)
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

static void test_pull(void **state)
{
    (void)state;
    image_push(&open_registry, "v1", "team/app:v1");
    const char *image = image_name(&open_registry, "team/app:v1");
    create(1, image, NULL, NULL, "id -un; echo $GREETING; pwd; cat /etc/tag; echo $HOME");
    assert_ends(1, 0, "worker\nhello\n/work\nv1\n/home/worker\n");
    assert_int_equal(notes_of(1, "Unpacking"), 1);
    registry_stop(&open_registry); /* from now on what is here is enough */
    create(2, image, NULL, NULL, "cat /etc/tag");
    assert_ends(2, 0, "v1\n");
    registry_start(&open_registry);
}

static void test_private(void **state)
{
    (void)state;
    image_push(&closed_registry, "v1", "secret/app:v1");
    const char *image = image_name(&closed_registry, "secret/app:v1");
    create(10, image, NULL, NULL, "true");
    assert_fails(10, "ImagePullUnauthorized");
    create(11, image, "bob", "wrong", "true");
    assert_fails(11, "ImagePullUnauthorized");
    create(12, image, "bob", "secret", "cat /etc/tag");
    assert_ends(12, 0, "v1\n");
    create(13, image, NULL, NULL, "true"); /* it is on this machine now, but not theirs */
    assert_fails(13, "ImagePullUnauthorized");
    assert_string_equal(shell_output("grep -rl 'secret' %s/data %s/run 2>/dev/null | "
                                     "grep -v rootfs | grep -v /blobs/ | grep -v /refs/",
                                     world.folder, world.folder),
                        "");
    assert_string_equal(shell_output("ls %s/run | grep auth", world.folder), "");
}

/* In the registry's own storage, as whoever runs one may: under this digest, true or not, and this
 * name and tag ("": none). */
static void manifest_plant(const struct registry *registry, const char *name, const char *tag,
                           const char *hex, const char *file)
{
    assert_int_equal(
        shell("set -e; v2=%s/data/docker/registry/v2; blob=$v2/blobs/sha256/%.2s/%s; "
              "own=$v2/repositories/%s/_manifests; mkdir -p $blob $own/revisions/sha256/%s; "
              "cp %s $blob/data; printf sha256:%s > $own/revisions/sha256/%s/link; "
              "if [ -n '%s' ]; then mkdir -p $own/tags/%s/current; "
              "printf sha256:%s > $own/tags/%s/current/link; fi",
              registry->folder, hex, hex, name, hex, file, hex, hex, tag, tag, hex, tag),
        0);
}

/* NAME:1 of the registry is a list, whose only manifest has this digest. */
static void list_plant(const struct registry *registry, const char *name, const char *hex)
{
    char file[300], list_hex[65];
    snprintf(file, sizeof file, "%s/list.json", world.folder);
    assert_int_equal(
        shell("printf "
              "'{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.index.v1+json\","
              "\"manifests\":[{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\","
              "\"digest\":\"sha256:%s\",\"size\":1,\"platform\":{\"os\":\"linux\","
              "\"architecture\":\"%s\"}}]}' > %s",
              hex, manifest_machine, file),
        0);
    snprintf(list_hex, sizeof list_hex, "%s", shell_output("sha256sum %s | cut -c1-64", file));
    manifest_plant(registry, name, "1", list_hex, file);
}

/* The manifest's bytes into a file of this name; its digest. */
static void manifest_save(const struct registry *registry, const char *name, const char *file,
                          char hex[65])
{
    assert_int_equal(shell("skopeo inspect --raw --tls-verify=false %s docker://127.0.0.1:%u/%s > "
                           "%s/%s",
                           registry->has_password ? "--creds bob:secret" : "", registry->port, name,
                           world.folder, file),
                     0);
    snprintf(hex, 65, "%s", shell_output("sha256sum %s/%s | cut -c1-64", world.folder, file));
}

/* A private image lies on this disk. Somebody who knows its digest, or even its manifest, names it
 * in a registry of his own, which says what he likes. */
static void test_stolen_digest(void **state)
{
    (void)state;
    char hex[65], file[300];
    image_make("private", 1);
    image_push(&closed_registry, "private", "secret/private:1");
    create(130, image_name(&closed_registry, "secret/private:1"), "bob", "secret", "cat /etc/tag");
    assert_ends(130, 0, "private\n");
    manifest_save(&closed_registry, "secret/private:1", "private.json", hex);
    snprintf(file, sizeof file, "%s/private.json", world.folder);

    list_plant(&open_registry, "thief/manifest", hex); /* all but the layers */
    manifest_plant(&open_registry, "thief/manifest", "", hex, file);
    create(132, image_name(&open_registry, "thief/manifest:1"), NULL, NULL, "cat /etc/tag");
    assert_true(end_of(132)->exit.exit_code != 0);
    assert_string_equal(end_of(132)->log, "");
    manifest_plant(&open_registry, "thief/plain", "1", hex, file); /* without a list */
    create(133, image_name(&open_registry, "thief/plain:1"), NULL, NULL, "cat /etc/tag");
    assert_true(end_of(133)->exit.exit_code != 0);
    assert_string_equal(end_of(133)->log, "");
}

/* He knows the digest only, and his registry answers with something else. */
static void test_lying_registry(void **state)
{
    (void)state;
    char hex[65], folder[300], image[100];
    manifest_save(&closed_registry, "secret/private:1", "private.json", hex);
    list_plant(&open_registry, "thief/list", hex);
    snprintf(folder, sizeof folder, "%s/lies", world.folder);
    assert_int_equal(shell("mkdir %s; cd %s; cp ../list.json v2_x_manifests_1; "
                           "tr 2 3 < ../private.json > v2_x_manifests_sha256:%s",
                           folder, folder, hex),
                     0);
    pid_t liar;
    unsigned port = script_start(world.folder, "lying_registry.py", folder, "liar.out", &liar);
    snprintf(image, sizeof image, "127.0.0.1:%u/x:1", port);
    create(134, image, NULL, NULL, "cat /etc/tag");
    const struct seen *end = end_of(134);
    script_stop(liar);
    assert_string_equal(end->reason, "ImageBroken");
    assert_non_null(strstr(end->message, hex));
}

/* The same in one registry, which has delivered the layers, but from a repository that others read.
 */
static void test_stolen_from_neighbour(void **state)
{
    (void)state;
    char hex[65], file[300];
    image_make("inner", 1);
    image_push(&open_registry, "inner", "team/inner:1");
    create(135, image_name(&open_registry, "team/inner:1"), NULL, NULL, "cat /etc/tag");
    assert_ends(135, 0, "inner\n");
    manifest_save(&open_registry, "team/inner:1", "inner.json", hex);
    snprintf(file, sizeof file, "%s/inner.json", world.folder);
    manifest_plant(&open_registry, "thief/inner", "1", hex, file);
    create(136, image_name(&open_registry, "thief/inner:1"), NULL, NULL, "cat /etc/tag");
    assert_true(end_of(136)->exit.exit_code != 0);
    assert_string_equal(end_of(136)->log, "");
}

/* Layers lie on this disk once; a registry that has delivered them is asked whether another of its
 * repositories has them, too, and does not send them again. */
static void test_shared_layers(void **state)
{
    (void)state;
    image_make("shared", 1);
    image_push(&open_registry, "shared", "team/shared:1");
    image_push(&open_registry, "shared", "other/shared:1");
    image_push(&closed_registry, "shared", "secret/shared:1");
    create(140, image_name(&open_registry, "team/shared:1"), NULL, NULL, "cat /etc/tag");
    assert_ends(140, 0, "shared\n");
    int before = atoi(shell_output("ls %s/data/blobs/sha256 | wc -l", world.folder));
    create(141, image_name(&open_registry, "other/shared:1"), NULL, NULL, "cat /etc/tag");
    assert_ends(141, 0, "shared\n");
    assert_int_equal(notes_of(141, "Unpacking"), 0);
    assert_string_equal(shell_output("grep -c 'method=GET .*uri=./v2/other/shared/blobs' %s/log",
                                     open_registry.folder),
                        "0");
    assert_string_not_equal(
        shell_output("grep -c 'method=HEAD .*uri=./v2/other/shared/blobs' %s/log",
                     open_registry.folder),
        "0");
    create(142, image_name(&closed_registry, "secret/shared:1"), "bob", "secret", "cat /etc/tag");
    assert_ends(142, 0, "shared\n"); /* sent, but unpacked and kept once */
    image_push(&closed_registry, "shared", "secret/again:1");
    create(143, image_name(&closed_registry, "secret/again:1"), "bob", "secret", "cat /etc/tag");
    assert_ends(143, 0, "shared\n");
    assert_string_equal(shell_output("grep -c 'method=GET .*uri=./v2/secret/again/blobs' %s/log",
                                     closed_registry.folder),
                        "0");
    assert_int_equal(notes_of(142, "Unpacking"), 0);
    assert_int_equal(atoi(shell_output("ls %s/data/blobs/sha256 | wc -l", world.folder)), before);
}

/* One on the machine's loopback that the operator has not named may be any task's: what it says of
 * its blobs is not believed, and all of them are fetched again. */
static void test_registry_not_named(void **state)
{
    (void)state;
    struct registry unnamed;
    registry_make(&unnamed, world.folder, "unnamed", false);
    image_push(&unnamed, "shared", "team/shared:1");
    image_push(&unnamed, "shared", "other/shared:1");
    create(160, image_name(&unnamed, "team/shared:1"), NULL, NULL, "cat /etc/tag");
    assert_ends(160, 0, "shared\n");
    create(161, image_name(&unnamed, "other/shared:1"), NULL, NULL, "cat /etc/tag");
    assert_ends(161, 0, "shared\n");
    assert_string_not_equal(
        shell_output("grep -c 'method=GET .*uri=./v2/other/shared/blobs' %s/log", unnamed.folder),
        "0");
    registry_stop(&unnamed);
}

/* A registry that wants tokens, as the large ones do. */
static void test_tokens(void **state)
{
    (void)state;
    char app[64], other[64];
    snprintf(app, sizeof app, "127.0.0.1:%u/token/app:1", token_port);
    snprintf(other, sizeof other, "127.0.0.1:%u/token/other:1", token_port);
    image_make("token", 1);
    image_push(&open_registry, "token", "token/app:1");
    image_push(&open_registry, "token", "token/other:1");
    create(145, app, NULL, NULL, "true");
    assert_fails(145, "ImagePullUnauthorized");
    assert_int_equal(notes_of(145, "PullFailed"), 0);
    create(146, app, "bob", "secret", "cat /etc/tag");
    assert_ends(146, 0, "token\n");
    create(147, other, "bob", "secret", "cat /etc/tag");
    assert_ends(147, 0, "token\n");
    assert_string_equal(
        shell_output("grep -c 'GET /v2/token/other/blobs' %s/token.out", world.folder), "0");
    assert_string_not_equal(
        shell_output("grep -c 'HEAD /v2/token/other/blobs' %s/token.out", world.folder), "0");
    create(148, other, "bob", "wrong", "cat /etc/tag");
    assert_fails(148, "ImagePullUnauthorized");
}

/* A token service that is away, for skopeo and for the engine that asks what that means, refuses
 * nobody: the next try has the image. */
static void test_token_service_away(void **state)
{
    (void)state;
    char late[64];
    snprintf(late, sizeof late, "127.0.0.1:%u/late/app:1", token_port);
    image_push(&open_registry, "token", "late/app:1");
    create(149, late, "bob", "secret", "cat /etc/tag");
    assert_ends(149, 0, "token\n");
    assert_int_equal(notes_of(149, "PullFailed"), 1);
    assert_string_not_equal(shell_output("grep 'away for skopeo' %s/token.out", world.folder), "");
    assert_string_not_equal(shell_output("grep 'away for the engine' %s/token.out", world.folder),
                            "");
}

static void test_not_found(void **state)
{
    (void)state;
    create(20, image_name(&open_registry, "team/app:v99"), NULL, NULL, "true");
    assert_fails(20, "ImageNotFound");
    create(21, image_name(&open_registry, "nobody/nothing"), NULL, NULL, "true");
    assert_fails(21, "ImageNotFound");
    char nowhere[100];
    snprintf(nowhere, sizeof nowhere, "127.0.0.1:%u/x:1", free_port());
    create(22, nowhere, NULL, NULL, "true");
    assert_fails(22, "RegistryUnavailable");
    assert_int_equal(notes_of(22, "PullFailed"), 1); /* two tries */
}

/* The reason is what the registry answers, not what a message of skopeo's happens to hold. */
static void test_reasons(void **state)
{
    (void)state;
    char name[300], nowhere[400];
    memset(name, 'a', 230); /* longer than what is kept of a message */
    snprintf(name + 230, sizeof name - 230, "/app:v1");
    create(25, image_name(&closed_registry, name), NULL, NULL, "true");
    assert_fails(25, "ImagePullUnauthorized");
    assert_int_equal(notes_of(25, "PullFailed"), 0); /* it is final */
    create(26, image_name(&open_registry, name), NULL, NULL, "true");
    assert_fails(26, "ImageNotFound");
    snprintf(nowhere, sizeof nowhere, "127.0.0.1:%u/access/denied-not-found:1", free_port());
    create(27, nowhere, NULL, NULL, "true");
    assert_fails(27, "RegistryUnavailable");
    assert_int_equal(notes_of(27, "PullFailed"), 1);
}

static void await_no_trash(void)
{
    int64_t due = now_us() + 60000000;
    while (strcmp(shell_output("ls %s/data/trash 2>/dev/null", world.folder), "") != 0)
        assert_true(now_us() < due);
}

/* A small layer that is large without its compression: the image's own fault, and the disk has its
 * space back. */
static void test_too_big(void **state)
{
    (void)state;
    static const char *const fill[] = {
        "head -c 300M /dev/zero > zeros",
        "mkdir many; cd many; i=0; while [ $i -lt 4000 ]; do : > $i; i=$((i+1)); done"};
    static const char *const words[] = {"more than 128 MiB", "more than 3000 files"};
    char blobs[16];
    images_collect(((struct local_engine *)world.engine)->images, world_trusted(&world) / 1000,
                   UINT32_MAX, UINT32_MAX, 1); /* what other pulls have left */
    snprintf(blobs, sizeof blobs, "%s",
             shell_output("ls %s/data/blobs/sha256 | wc -l", world.folder));
    for (uint64_t i = 0; i < 2; i++) {
        char tag[16], name[32];
        snprintf(tag, sizeof tag, "bomb%d", (int)i);
        snprintf(name, sizeof name, "bomb/app%d:1", (int)i);
        assert_int_equal(shell("set -e; cd %s; exec 2>make.log >&2; umoci new --image layout:%s; "
                               "umoci unpack --image layout:%s bundle; "
                               "(cd bundle/rootfs; %s); umoci repack --image layout:%s bundle; "
                               "rm -rf bundle",
                               world.folder, tag, tag, fill[i], tag),
                         0);
        image_push(&open_registry, tag, name);
        create(150 + i, image_name(&open_registry, name), NULL, NULL, "true");
        assert_fails(150 + i, "ImageTooBig");
        assert_non_null(strstr(end_of(150 + i)->message, words[i]));
        assert_int_equal(notes_of(150 + i, "PullFailed"), 0);
        assert_string_equal(shell_output("ls %s/data/pulls", world.folder), "");
        await_no_trash();
    }
    /* nor do its layers stay when somebody wants the space, though no image has to go for it */
    images_collect(((struct local_engine *)world.engine)->images, world_trusted(&world) / 1000,
                   UINT32_MAX, UINT32_MAX, 1);
    assert_string_equal(shell_output("ls %s/data/blobs/sha256 | wc -l", world.folder), blobs);
}

static void test_zstd(void **state)
{
    (void)state;
    image_make("zstd", 1);
    assert_int_equal(
        shell(
            "exec 2>%s/push.log >&2; skopeo --insecure-policy copy "
            "--dest-compress --dest-compress-format zstd oci:%s/layout:zstd dir:%s/zstd && skopeo "
            "--insecure-policy copy --dest-tls-verify=false dir:%s/zstd "
            "docker://127.0.0.1:%u/zstd/app:1 && grep -q zstd %s/zstd/manifest.json",
            world.folder, world.folder, world.folder, world.folder, open_registry.port,
            world.folder),
        0);
    create(155, image_name(&open_registry, "zstd/app:1"), NULL, NULL, "cat /etc/tag");
    assert_ends(155, 0, "zstd\n");
    assert_string_equal(shell_output("ls -d %s/data/images/*/as-gzip 2>/dev/null", world.folder),
                        "");
}

enum { FRESH_US = 1100000 }; /* image_fresh_s, and some */

static void test_moving(void **state)
{
    (void)state;
    image_push(&open_registry, "v1", "team/moving");
    create(30, image_name(&open_registry, "team/moving"), NULL, NULL, "cat /etc/tag");
    assert_ends(30, 0, "v1\n");
    image_push(&open_registry, "v2", "team/moving");
    usleep(FRESH_US); /* time alone makes it old */
    create(31, image_name(&open_registry, "team/moving"), NULL, NULL, "cat /etc/tag");
    assert_ends(31, 0, "v2\n");
    registry_stop(&open_registry);
    usleep(FRESH_US);
    create(32, image_name(&open_registry, "team/moving"), NULL, NULL, "cat /etc/tag");
    assert_ends(32, 0, "v2\n"); /* better the last one than none */
    registry_start(&open_registry);
}

/* Eight tasks want one image, two others theirs; a task whose image is here waits for none. */
static void test_parallel(void **state)
{
    (void)state;
    int64_t first_end_us = 0, last_begin_us = 0;
    for (unsigned i = 0; i < 3; i++) {
        char tag[16], name[32];
        snprintf(tag, sizeof tag, "p%u", i);
        snprintf(name, sizeof name, "par/app%u:1", i);
        image_make(tag, 12);
        image_push(&open_registry, tag, name);
    }
    kill(open_registry.pid, SIGSTOP);
    for (uint64_t i = 0; i < 10; i++) {
        char name[32];
        snprintf(name, sizeof name, "par/app%u:1", i < 8 ? 0 : (unsigned)i - 7);
        create(40 + i, image_name(&open_registry, name), NULL, NULL, "cat /etc/tag");
    }
    create(60, world.image, NULL, NULL, "echo here");
    assert_ends(60, 0, "here\n");
    kill(open_registry.pid, SIGCONT);
    for (uint64_t i = 0; i < 10; i++)
        assert_ends(40 + i, 0, i < 8 ? "p0\n" : i == 8 ? "p1\n" : "p2\n");
    for (size_t i = 0; i < world_seen_count(&world); i++) {
        const struct seen *seen = &world.seen.items[i];
        bool is_last = seen->attempt == 48 || seen->attempt == 49;
        if (is_last && seen->kind == ENGINE_NOTE && !last_begin_us)
            last_begin_us = seen->at_us;
        if (seen->attempt >= 40 && seen->attempt < 50 && seen->kind == ENGINE_STARTED &&
            !first_end_us)
            first_end_us = seen->at_us;
    }
    assert_true(last_begin_us < first_end_us + 500000); /* beside each other, not in turn */
    /* the image was fetched once: every waiter heard of one unpacking */
    for (uint64_t i = 0; i < 8; i++)
        assert_int_equal(notes_of(40 + i, "Unpacking"), 1);
}

/* More images than are fetched at the same time wait for their turn, each of them. */
static void test_queue(void **state)
{
    (void)state;
    enum { IMAGES = 7, FIRST = 170 };
    char name[32];
    image_make("q", 1);
    for (unsigned i = 0; i < IMAGES; i++) {
        snprintf(name, sizeof name, "queue/app%u:1", i);
        image_push(&open_registry, "q", name);
    }
    kill(open_registry.pid, SIGSTOP);
    for (unsigned i = 0; i < IMAGES; i++) {
        snprintf(name, sizeof name, "queue/app%u:1", i);
        create(FIRST + i, image_name(&open_registry, name), NULL, NULL, "cat /etc/tag");
    }
    kill(open_registry.pid, SIGCONT);
    for (unsigned i = 0; i < IMAGES; i++)
        assert_ends(FIRST + i, 0, "q\n");
}

/* Until the blob store of the engine holds something of a running pull, in a folder whose name is
 * not known before: nothing tells of it. */
/* Until something of this pattern is in the world's folder. */
static void await_path(const char *pattern)
{
    int64_t due = now_us() + 1000 * (int64_t)PATIENCE_MS;
    while (shell("ls %s/%s >/dev/null 2>&1", world.folder, pattern) != 0)
        assert_true(now_us() < due);
}

static void await_partial(void)
{
    await_path("data/pulls/*/oci-put-blob*");
}

/* The first note of this reason. */
static const struct seen *note_of(uint64_t attempt, const char *reason)
{
    const struct seen *note = world_wait(&world, ENGINE_NOTE, attempt, 0, PATIENCE_MS);
    while (note && strcmp(note->reason, reason) != 0)
        note = world_wait(&world, ENGINE_NOTE, attempt, (size_t)(note - world.seen.items) + 1,
                          PATIENCE_MS);
    assert_non_null(note);
    return note;
}

static void test_registry_stalls(void **state)
{
    (void)state;
    /* one that sends a byte now and then has stalled, too */
    static const char *const names[] = {"big/app:1", "dribble/app:1"};
    pid_t halting;
    const unsigned port = halting_start(&halting);
    image_make("big", 4);
    for (uint64_t i = 0; i < COUNT_OF(names); i++) {
        char image[64];
        snprintf(image, sizeof image, "127.0.0.1:%u/%s", port, names[i]);
        image_push(&open_registry, "big", names[i]);
        create(70 + i, image, NULL, NULL, "true");
        assert_non_null(strstr(note_of(70 + i, "PullFailed")->message,
                               "less than 1 MiB came in 2 s; trying again"));
        assert_fails(70 + i, "RegistryUnavailable");
    }
    script_stop(halting);
    create(72, image_name(&open_registry, names[0]), NULL, NULL, "cat /etc/tag");
    assert_ends(72, 0, "big\n");
}

static void test_registry_dies(void **state)
{
    (void)state;
    image_make("big2", 60);
    image_push(&open_registry, "big2", "big/app:2");
    create(75, image_name(&open_registry, "big/app:2"), NULL, NULL, "cat /etc/tag");
    await_partial();
    registry_stop(&open_registry);
    const struct seen *end = end_of(75);
    if (end->exit.exit_code != 0) /* else it was just done */
        assert_string_equal(end->reason, "RegistryUnavailable");
    registry_start(&open_registry);
    create(76, image_name(&open_registry, "big/app:2"), NULL, NULL, "cat /etc/tag");
    assert_ends(76, 0, "big2\n");
    assert_string_equal(shell_output("ls %s/data/pulls", world.folder), "");
}

static void test_progress(void **state)
{
    (void)state;
    char image[64];
    pid_t halting;
    snprintf(image, sizeof image, "127.0.0.1:%u/slow/app:1", halting_start(&halting));
    image_make("slow", 4);
    image_push(&open_registry, "slow", "slow/app:1");
    create(80, image, NULL, NULL, "true");
    const struct seen *note = note_of(80, "Pulling");
    assert_non_null(strstr(note->message, " % of "));
    script_stop(halting);
    assert_fails(80, "RegistryUnavailable");
}

static void kill_task(uint64_t attempt)
{
    assert_int_equal(world.engine->ops->kill(world.engine, (struct attempt_id){attempt}, 0,
                                             "stopped", false, NULL),
                     0);
    assert_fails(attempt, "Killed");
}

/* Registries that are slow on purpose: one user's take not all places, and whoever stops a task
 * ends its pull. */
static void test_slow_pulls(void **state)
{
    (void)state;
    enum { FIRST = 300, PULLS = 4, OTHER = FIRST + PULLS };
    pid_t halting;
    struct pollfd ended;
    world_stop(&world);
    world.config.pull_stall_s = PATIENCE_MS / 1000; /* none is given up before */
    world_start(&world);
    const unsigned port = halting_start(&halting);
    image_make("halt", 4);
    for (unsigned i = 0; i < PULLS; i++) {
        char name[32], image[64];
        snprintf(name, sizeof name, "halt/app%u:1", i);
        image_push(&open_registry, "halt", name);
        snprintf(image, sizeof image, "127.0.0.1:%u/%s", port, name);
        create(FIRST + i, image, NULL, NULL, "true");
    }
    struct task_options options = {.image = image_name(&open_registry, "halt/app0:1"),
                                   .job = "bob~job"};
    for (uint64_t i = 0; i + 1 < PULLS; i++)
        note_of(FIRST + i, "Pulling"); /* the last one waits for its turn */
    assert_int_equal(notes_of(OTHER - 1, "Pulling"), 0);
    assert_int_equal(world_create_with(&world, OTHER, "cat /etc/tag", &options, NULL), 0);
    assert_ends(OTHER, 0, "halt\n");
    assert_int_equal(notes_of(OTHER - 1, "Pulling"), 0);

    const pid_t skopeo = atoi(shell_output("pgrep -P %d skopeo | head -n 1", (int)getpid()));
    assert_true(skopeo > 0);
    ended = (struct pollfd){.fd = process_watch(skopeo, NULL), .events = POLLIN};
    assert_true(ended.fd >= 0);
    kill_task(OTHER - 1); /* out of the queue */
    for (uint64_t i = 0; i + 1 < PULLS; i++)
        kill_task(FIRST + i);
    assert_int_equal(poll(&ended, 1, PATIENCE_MS), 1);
    close(ended.fd);
    script_stop(halting);
    /* nothing is left of it, and the turns are free again */
    for (uint64_t i = 0; i < PULLS; i++) {
        char name[32];
        snprintf(name, sizeof name, "halt/app%u:1", (unsigned)i);
        create(FIRST + 10 + i, image_name(&open_registry, name), NULL, NULL, "cat /etc/tag");
    }
    for (uint64_t i = 0; i < PULLS; i++)
        assert_ends(FIRST + 10 + i, 0, "halt\n");
    assert_string_equal(shell_output("ls %s/data/pulls", world.folder), "");
    world_stop(&world);
    world.config.pull_stall_s = STALL_S;
    world_start(&world);
}

/* A registry that names more than an image may have is not asked for it. */
static void test_named_too_big(void **state)
{
    (void)state;
    char folder[300], image[100];
    pid_t liar;
    snprintf(folder, sizeof folder, "%s/boasts", world.folder);
    assert_int_equal(
        shell("mkdir %s; printf '{\"schemaVersion\":2,\"mediaType\":"
              "\"application/vnd.oci.image.manifest.v1+json\",\"config\":{\"mediaType\":"
              "\"application/vnd.oci.image.config.v1+json\",\"digest\":\"sha256:%064d\","
              "\"size\":2},\"layers\":[{\"mediaType\":"
              "\"application/vnd.oci.image.layer.v1.tar+gzip\",\"digest\":\"sha256:%064d\","
              "\"size\":%d}]}' > %s/v2_x_manifests_1",
              folder, 1, 2, 200 << 20, folder),
        0);
    const unsigned port =
        script_start(world.folder, "lying_registry.py", folder, "liar.out", &liar);
    snprintf(image, sizeof image, "127.0.0.1:%u/x:1", port);
    create(325, image, NULL, NULL, "true");
    assert_fails(325, "ImageTooBig");
    assert_non_null(strstr(end_of(325)->message, "have 200 MiB"));
    script_stop(liar);
}

/* A pull leaves others half of what is kept free. */
static void test_no_room(void **state)
{
    (void)state;
    char image[64];
    pid_t halting;
    const unsigned port = halting_start(&halting);
    const uint32_t before_mib = world.config.disk_reserve_mib;
    image_make("room", 1);
    image_push(&open_registry, "room", "room/app:1");
    world_stop(&world);
    world.config.disk_reserve_mib = INT32_MAX;
    world_start(&world);
    snprintf(image, sizeof image, "127.0.0.1:%u/halt/app0:1", port);
    create(330, image, NULL, NULL, "true");
    assert_fails(330, "DiskFull");
    assert_non_null(strstr(end_of(330)->message, "the disk has less than"));
    create(331, image_name(&open_registry, "room/app:1"), NULL, NULL, "true"); /* came at once */
    assert_fails(331, "DiskFull");
    assert_non_null(strstr(end_of(331)->message, "the disk has less than"));
    world_stop(&world);
    world.config.disk_reserve_mib = before_mib;
    world_start(&world);
    script_stop(halting);
}

/* Variables beyond what is read of an image again: it is refused, and nothing of it stays. */
static void test_many_variables(void **state)
{
    (void)state;
    image_make("wordy", 1);
    assert_int_equal(shell("cd %s; word=$(head -c 100000 /dev/zero | tr '\\0' x); set --; "
                           "for i in 1 2 3 4 5 6 7 8 9 10 11; do "
                           "set -- \"$@\" --config.env V$i=$word; done; "
                           "umoci config --image layout:wordy \"$@\" 2>make.log >&2",
                           world.folder),
                     0);
    image_push(&open_registry, "wordy", "wordy/app:1");
    create(335, image_name(&open_registry, "wordy/app:1"), NULL, NULL, "true");
    assert_fails(335, "ImageBroken");
    assert_non_null(strstr(end_of(335)->message, "larger than 1024 KiB"));
    assert_string_equal(shell_output("ls %s/data/pulls", world.folder), "");
}

/* What a power failure may leave of an image is in nobody's way after the next start. */
static void test_broken_image(void **state)
{
    (void)state;
    char path[300];
    image_make("again", 1);
    image_push(&open_registry, "again", "again/app:1");
    const char *image = image_name(&open_registry, "again/app:1");
    create(339, image, NULL, NULL, "true");
    assert_ends(339, 0, NULL);
    snprintf(path, sizeof path, "%s",
             shell_output("grep -l '^again$' %s/data/images/*/rootfs/etc/tag", world.folder));
    assert_non_null(strstr(path, "/rootfs/etc/tag"));
    *strstr(path, "/rootfs/etc/tag") = '\0';
    world_stop(&world);
    assert_int_equal(shell(": > %s/image.json", path), 0);
    world_start(&world);
    assert_string_equal(shell_output("ls -d %s 2>/dev/null", path), "");
    create(340, image, NULL, NULL, "cat /etc/tag");
    assert_ends(340, 0, "again\n");
    await_no_trash();
}

/* Credentials are known no longer than they are needed, however many somebody invents. */
static void test_many_credentials(void **state)
{
    (void)state;
    enum { FIRST = 350, COUNT = 12, LENGTH = 1 << 20 };
    char *password = malloc(LENGTH + 1);
    assert_non_null(password);
    memset(password, 'x', LENGTH);
    password[LENGTH] = '\0';
    assert_true(mallopt(M_MMAP_THRESHOLD, LENGTH / 2)); /* each one is counted by itself */
    const size_t before = mallinfo2().hblkhd;
    for (uint64_t i = 0; i < COUNT; i++) {
        password[0] = (char)('a' + i);
        create(FIRST + i, image_name(&open_registry, "team/app:v98"), "bob", password, "true");
    }
    for (uint64_t i = 0; i < COUNT; i++)
        assert_fails(FIRST + i, "ImageNotFound");
    for (uint64_t i = 0; i < COUNT; i++)
        assert_int_equal(
            world.engine->ops->forget(world.engine, (struct attempt_id){FIRST + i}, NULL), 0);
    const int64_t due = now_us() + 1000 * (int64_t)PATIENCE_MS;
    while (mallinfo2().hblkhd >= before + COUNT / 3 * LENGTH) /* they are forgotten by a thread */
        assert_true(now_us() < due);
    free(password);
}

/* The server is killed in the middle of a pull: skopeo, which waits for the rest, dies with it. */
static void test_server_killed(void **state)
{
    (void)state;
    char image[64];
    pid_t halting;
    image_make("orphan", 4);
    image_push(&open_registry, "orphan", "orphan/app:1");
    snprintf(image, sizeof image, "127.0.0.1:%u/orphan/app:1", halting_start(&halting));
    world_stop(&world); /* no thread of ours is left: we may fork */
    pid_t server = fork();
    assert_true(server >= 0);
    if (server == 0) {
        world.config.pull_stall_s = PATIENCE_MS / 1000; /* it is not given up before */
        world_start(&world);
        create(120, image, NULL, NULL, "true");
        pause();
        _exit(0);
    }
    await_partial();
    const pid_t skopeo = atoi(shell_output("pgrep -P %d skopeo", (int)server));
    assert_true(skopeo > 0);
    struct pollfd ended = {.fd = process_watch(skopeo, NULL), .events = POLLIN};
    assert_true(ended.fd >= 0);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    assert_int_equal(poll(&ended, 1, PATIENCE_MS), 1);
    close(ended.fd);
    script_stop(halting);
    world_start(&world);
    assert_string_equal(shell_output("ls %s/data/pulls 2>/dev/null", world.folder), "");
    assert_string_equal(shell_output("ls %s/run | grep auth", world.folder), "");
    create(121, image_name(&open_registry, "orphan/app:1"), NULL, NULL, "cat /etc/tag");
    assert_ends(121, 0, "orphan\n");
}

/* What an earlier server left half done is removed while this one works already: whoever opens the
 * folder in order to remove it is held up until a container has run. */
static void test_clean_up_beside(void **state)
{
    (void)state;
    char left[300];
    int gate = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY);
    if (gate < 0)
        skip(); /* a kernel without permission events */
    world_stop(&world);
    snprintf(left, sizeof left, "%s/data/pulls/9", world.folder);
    assert_int_equal(shell("mkdir -p %s/rootfs/a/b; touch %s/rootfs/a/c", left, left), 0);
    assert_int_equal(fanotify_mark(gate, FAN_MARK_ADD, FAN_OPEN_PERM | FAN_ONDIR, AT_FDCWD, left),
                     0);
    world_start(&world);
    create(125, world.image, NULL, NULL, "echo works");
    assert_ends(125, 0, "works\n");
    assert_string_not_equal(shell_output("ls %s/data/trash", world.folder), "");
    close(gate); /* lets everybody pass */
    await_no_trash();
}

static void test_kill_while_pulling(void **state)
{
    (void)state;
    image_make("never", 1);
    image_push(&open_registry, "never", "never/app:1");
    kill(open_registry.pid, SIGSTOP);
    create(85, image_name(&open_registry, "never/app:1"), NULL, NULL, "true");
    assert_int_equal(world.engine->ops->kill(world.engine, (struct attempt_id){85}, 5000, "stopped",
                                             false, NULL),
                     0);
    assert_fails(85, "Killed");
    kill(open_registry.pid, SIGCONT);
}

/* A registry that does not answer holds up nobody who ends the engine: the pull is given up, and
 * not tried again. */
static void test_stop_while_pulling(void **state)
{
    (void)state;
    image_make("unheard", 1);
    image_push(&open_registry, "unheard", "unheard/app:1");
    kill(open_registry.pid, SIGSTOP);
    create(87, image_name(&open_registry, "unheard/app:1"), NULL, NULL, "true");
    await_path("run/auth-*"); /* the pull is under way */
    world_stop(&world);
    assert_int_equal(notes_of(87, "PullFailed"), 0);
    kill(open_registry.pid, SIGCONT);
    world_start(&world);
    create(88, image_name(&open_registry, "unheard/app:1"), NULL, NULL, "cat /etc/tag");
    assert_ends(88, 0, "unheard\n");
}

static void test_local_files(void **state)
{
    (void)state;
    char image[400];
    assert_int_equal(
        shell("set -e; cd %s; exec 2>local.log >&2; cp -a layout images/layout; "
              "skopeo --insecure-policy copy oci:layout:v1 docker-archive:images/app.tar:app:v1; "
              "skopeo --insecure-policy copy oci:layout:v1 oci-archive:images/app-oci.tar; "
              "skopeo --insecure-policy copy oci:layout:v1 dir:images/app-dir",
              world.folder),
        0);
    static const char *const forms[] = {"oci:%s/layout:v1", "docker-archive:%s/app.tar",
                                        "oci-archive:%s/app-oci.tar", "dir:%s/app-dir"};
    for (uint64_t i = 0; i < 4; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(image, sizeof image, forms[i], world.image_root);
#pragma GCC diagnostic pop
        create(90 + i, image, NULL, NULL, "id -un; echo $GREETING; pwd");
        assert_ends(90 + i, 0, "worker\nhello\n/work\n");
    }
    snprintf(image, sizeof image, "oci:%s/layout:no-such-tag", world.image_root);
    create(95, image, NULL, NULL, "true");
    assert_fails(95, "ImageNotFound");
    snprintf(image, sizeof image, "oci:%s/layout:v1", world.folder); /* not below the root */
    create(96, image, NULL, NULL, "true");
    assert_fails(96, "InvalidImageName");
    /* a neighbour whose path begins as the root's does, or is as long */
    assert_int_equal(shell("cd %s && cp -a layout images-2 && mkdir others && "
                           "cp -a layout others/layout",
                           world.folder),
                     0);
    static const char *const neighbours[] = {"oci:%s/images-2:v1", "oci:%s/others/layout:v1"};
    for (uint64_t i = 0; i < COUNT_OF(neighbours); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(image, sizeof image, neighbours[i], world.folder);
#pragma GCC diagnostic pop
        create(97 + i, image, NULL, NULL, "true");
        assert_fails(97 + i, "InvalidImageName");
    }
    /* a link to a name that would be two folders in an overlay's options */
    assert_int_equal(shell("cp -a %s/busybox %s/'a:b' && ln -s 'a:b' %s/plain", world.image_root,
                           world.image_root, world.image_root),
                     0);
    snprintf(image, sizeof image, "dir:%s/plain", world.image_root);
    create(196, image, NULL, NULL, "true");
    assert_fails(196, "InvalidImageName");
}

/* An OCI layout that names an image which lies unpacked on this disk must have its blobs: whoever
 * knows no more than their digests gets nothing. */
static void test_layout_that_lies(void **state)
{
    (void)state;
    char image[400], layer[600];
    snprintf(image, sizeof image, "oci:%s/layout:v1", world.image_root);
    create(162, image, NULL, NULL, "cat /etc/tag");
    assert_ends(162, 0, "v1\n");
    snprintf(layer, sizeof layer, "%s/copy/blobs/sha256/%.64s", world.image_root,
             shell_output("skopeo inspect --raw oci:%s/layout:v1 | grep -o 'sha256:[0-9a-f]*' | "
                          "tail -n 1 | cut -c8-",
                          world.image_root));
    assert_int_equal(
        shell("cp -a %s/layout %s/copy && test -f %s", world.image_root, world.image_root, layer),
        0);
    snprintf(image, sizeof image, "oci:%s/copy:v1", world.image_root);
    assert_int_equal(shell("echo other > %s", layer), 0);
    create(163, image, NULL, NULL, "cat /etc/tag");
    assert_fails(163, "ImageBroken");
    assert_int_equal(shell("rm %s", layer), 0);
    create(164, image, NULL, NULL, "cat /etc/tag");
    assert_fails(164, "ImageBroken");
    assert_int_equal(shell("rm -r %s/copy", world.image_root), 0);
}

/* An image without a host is looked for below each of the roots. */
static void test_second_root(void **state)
{
    (void)state;
    const struct engine_local_config before = world.config;
    char none[300];
    snprintf(none, sizeof none, "%s/no-images", world.folder);
    const char *const roots[] = {none, world.image_root};
    assert_int_equal(shell("set -e; cd %s; mkdir no-images images/own; "
                           "cp -a images/busybox images/own/tool; echo own > "
                           "images/own/tool/etc/tag",
                           world.folder),
                     0);
    world_stop(&world);
    world.config.image_roots = roots;
    world.config.image_root_count = COUNT_OF(roots);
    world_start(&world);
    create(99, "own/tool", NULL, NULL, "cat /etc/tag");
    assert_ends(99, 0, "own\n");
    world_stop(&world);
    world.config = before;
    world_start(&world);
}

static void test_removed_images(void **state)
{
    (void)state;
    const char *image = image_name(&open_registry, "team/app:v1");
    create(100, image, NULL, NULL, "cat /etc/tag; while :; do sleep 0.1; done");
    assert_non_null(world_wait(&world, ENGINE_STARTED, 100, 0, PATIENCE_MS));
    shell("rm -rf %s/data/images/*", world.folder); /* in use */
    world.engine->ops->kill(world.engine, (struct attempt_id){100}, 0, "stopped", false, NULL);
    end_of(100);
    create(101, image, NULL, NULL, "cat /etc/tag"); /* fetched and unpacked again */
    assert_ends(101, 0, "v1\n");
}

static void test_collect(void **state)
{
    (void)state;
    create(109, image_name(&open_registry, "par/app0:1"), NULL, NULL, "true");
    assert_ends(109, 0, NULL);
    create(110, image_name(&open_registry, "team/app:v1"), NULL, NULL, "sleep 100");
    assert_non_null(world_wait(&world, ENGINE_STARTED, 110, 0, PATIENCE_MS));
    assert_true(atoi(shell_output("ls %s/data/images | wc -l", world.folder)) > 1);
    const int images = atoi(shell_output("ls %s/data/images | wc -l", world.folder));
    shell("touch -d '30 days ago' %s/data/images/*/image.json", world.folder);
    world_stop(&world);
    size_t from = world_seen_count(&world);
    atomic_store(&world.trusted_ms, world_trusted(&world) - 30 * INT64_C(86400000));
    world_start(&world);
    assert_non_null(world_wait(&world, ENGINE_STARTED, 110, from, PATIENCE_MS));
    /* by a wall clock that is far ahead of the trusted time nothing is old */
    engine_local_housekeep(world.engine);
    assert_int_equal(atoi(shell_output("ls %s/data/images | wc -l", world.folder)), images);
    atomic_store(&world.trusted_ms, 0);
    engine_local_housekeep(world.engine);
    /* only the one in use stays, and only its blobs */
    assert_string_equal(shell_output("ls %s/data/images | wc -l", world.folder), "1");
    const int blobs = atoi(shell_output("ls %s/data/blobs/sha256 | wc -l", world.folder));
    assert_true(blobs <= 4);
    /* nor do those of an image that this engine has fetched */
    from = world_seen_count(&world);
    create(112, image_name(&open_registry, "par/app0:1"), NULL, NULL, "true");
    assert_non_null(world_wait(&world, ENGINE_EXITED, 112, from, PATIENCE_MS));
    assert_true(atoi(shell_output("ls %s/data/blobs/sha256 | wc -l", world.folder)) > blobs);
    images_collect(((struct local_engine *)world.engine)->images, world_trusted(&world) / 1000, 0,
                   0, UINT64_MAX);
    assert_string_equal(shell_output("ls %s/data/images | wc -l", world.folder), "1");
    assert_int_equal(atoi(shell_output("ls %s/data/blobs/sha256 | wc -l", world.folder)), blobs);
    world.engine->ops->kill(world.engine, (struct attempt_id){110}, 0, "stopped", false, NULL);
    assert_non_null(world_wait(&world, ENGINE_EXITED, 110, from, PATIENCE_MS));
}

/* What was made but never let go is undone after a restart, and does not hold its image. */
static void test_undone(void **state)
{
    (void)state;
    create(111, image_name(&open_registry, "team/app:v1"), NULL, NULL, "sleep 1000");
    assert_non_null(world_wait(&world, ENGINE_STARTED, 111, 0, PATIENCE_MS));
    world_stop(&world);
    /* as a server leaves it that was killed before it let the container go */
    assert_int_equal(shell("set -e; cd %s/run; kill -9 $(cat tasks/111/conmon.pid) "
                           "$(cat tasks/111/init.pid); rm -rf tasks/111/starting "
                           "tasks/111/started runtime/111 exits/111",
                           world.folder),
                     0);
    world_start(&world);
    assert_false(world_is_listed(&world, 111));
    assert_string_not_equal(shell_output("ls %s/data/images", world.folder), "");
    images_collect(((struct local_engine *)world.engine)->images, world_trusted(&world) / 1000, 0,
                   0, UINT64_MAX);
    assert_string_equal(shell_output("ls %s/data/images", world.folder), "");
}

static int setup(void **state)
{
    (void)state;
    if (!world_open(&world))
        exit(77);
    if (shell("command -v docker-registry umoci skopeo htpasswd >/dev/null") != 0) {
        fprintf(stderr, "skipped: docker-registry, umoci, skopeo or htpasswd is not installed\n");
        exit(77);
    }
    world.config.pull_tries = 2;
    world.config.pull_stall_s = STALL_S;
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

static int teardown(void **state)
{
    (void)state;
    registry_stop(&open_registry);
    registry_stop(&closed_registry);
    kill(token_pid, SIGKILL);
    waitpid(token_pid, NULL, 0);
    world_close(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pull),
        cmocka_unit_test(test_private),
        cmocka_unit_test(test_stolen_digest),
        cmocka_unit_test(test_lying_registry),
        cmocka_unit_test(test_stolen_from_neighbour),
        cmocka_unit_test(test_shared_layers),
        cmocka_unit_test(test_registry_not_named),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_token_service_away),
        cmocka_unit_test(test_not_found),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_too_big),
        cmocka_unit_test(test_zstd),
        cmocka_unit_test(test_moving),
        cmocka_unit_test(test_parallel),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_registry_stalls),
        cmocka_unit_test(test_registry_dies),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_slow_pulls),
        cmocka_unit_test(test_named_too_big),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_many_variables),
        cmocka_unit_test(test_broken_image),
        cmocka_unit_test(test_many_credentials),
        cmocka_unit_test(test_server_killed),
        cmocka_unit_test(test_clean_up_beside),
        cmocka_unit_test(test_kill_while_pulling),
        cmocka_unit_test(test_stop_while_pulling),
        cmocka_unit_test(test_local_files),
        cmocka_unit_test(test_layout_that_lies),
        cmocka_unit_test(test_second_root),
        cmocka_unit_test(test_removed_images),
        cmocka_unit_test(test_collect),
        cmocka_unit_test(test_undone),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
