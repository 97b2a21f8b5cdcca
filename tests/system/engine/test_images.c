/* Images of registries, with and without a password: who gets which, and what is said when it
 * cannot be had.
 *
 * Covers: src/engine/local/fetch.c, src/engine/local/pull.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "engine/local/manifest.h"
#include "image_world.h"
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
        cmocka_unit_test(test_zstd),
        cmocka_unit_test(test_moving),
    };
    return cmocka_run_group_tests(tests, image_world_open, image_world_close);
}
