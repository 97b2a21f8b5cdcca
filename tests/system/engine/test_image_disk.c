/* Images on the disk: archives and layouts there, images that are too large for it or broken, and
 * what is removed.
 *
 * Covers: src/engine/local/image.c, src/engine/local/unpack.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "base/memory.h"
#include "engine/local/image.h"
#include "engine/local/task.h"
#include "image_world.h"
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <unistd.h>

static void await_no_trash(void)
{
    int64_t due = now_us() + 1000 * (int64_t)PATIENCE_MS;
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
    image_push(&open_registry, "v1", "team/app:v1");
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
    image_push(&open_registry, "v2", "team/other:1");
    create(109, image_name(&open_registry, "team/other:1"), NULL, NULL, "true");
    assert_ends(109, 0, NULL);
    create(110, image_name(&open_registry, "team/app:v1"), NULL, NULL, "sleep 1000");
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
    create(112, image_name(&open_registry, "team/other:1"), NULL, NULL, "true");
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
    if (world_is_listed(&world, 111))
        assert_true(world_ended_undone(&world, end_of(111)));
    assert_string_not_equal(shell_output("ls %s/data/images", world.folder), "");
    images_collect(((struct local_engine *)world.engine)->images, world_trusted(&world) / 1000, 0,
                   0, UINT64_MAX);
    assert_string_equal(shell_output("ls %s/data/images", world.folder), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_big),      cmocka_unit_test(test_many_variables),
        cmocka_unit_test(test_broken_image), cmocka_unit_test(test_clean_up_beside),
        cmocka_unit_test(test_local_files),  cmocka_unit_test(test_layout_that_lies),
        cmocka_unit_test(test_second_root),  cmocka_unit_test(test_removed_images),
        cmocka_unit_test(test_collect),      cmocka_unit_test(test_undone),
    };
    return cmocka_run_group_tests(tests, image_world_open, image_world_close);
}
