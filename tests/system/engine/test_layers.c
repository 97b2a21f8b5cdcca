/* Images that are shown with the ids of jobs by metadata layers: made once, used again, gone with
 * their images, and whole or not there.
 *
 * Covers: src/engine/local/layers.c, src/engine/local/layer.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "base/memory.h"
#include "engine/local/image.h"
#include "engine/local/layers.h"
#include "engine/local/task.h"
#include "world.h"
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 120000, MANY_FOLDERS = 50, MANY_FILES = 100 };

static struct world world;
static char pulled[300], many[300]; /* images: unpacked by the engine, used as it is */

static void create(uint64_t attempt, const char *command, const struct task_options *options)
{
    struct err err = {0};
    assert_int_equal(world_create_with(&world, attempt, command, options, &err), 0);
}

static void succeeds(uint64_t attempt)
{
    const struct seen *end = world_wait(&world, ENGINE_EXITED, attempt, 0, PATIENCE_MS);
    assert_non_null(end);
    if (end->exit.exit_code != 0)
        fail_msg("%d %s %s\n%s\n%s", end->exit.exit_code, end->reason, end->message, end->log,
                 end->platform);
}

static void kill_it(uint64_t attempt)
{
    struct err err = {0};
    assert_int_equal(
        world.engine->ops->kill(world.engine, (struct attempt_id){attempt}, 0, "", false, &err), 0);
}

static bool was_prepared(uint64_t attempt)
{
    for (size_t from = 0; from < world_seen_count(&world); from++) {
        const struct seen *note = world_wait(&world, ENGINE_NOTE, attempt, from, 0);
        if (note && strcmp(note->reason, "PreparingImage") == 0)
            return true;
    }
    return false;
}

/* Layers of the pulled image: how many, and what `find` says of them. */
static const char *layers_of_pulled(const char *what)
{
    return shell_output("find %s/data/images/*/ids -mindepth 1 -maxdepth 1 %s 2>/dev/null | wc -l",
                        world.folder, what);
}

#define WAIT "mkfifo /skep/run/wait; echo begun; read line < /skep/run/wait; "

static void go(uint64_t attempt)
{
    const char *pid =
        shell_output("cat %s/run/tasks/%llu/init.pid", world.folder, (unsigned long long)attempt);
    assert_int_equal(shell("echo go > /proc/%s/root/skep/run/wait", pid), 0);
}

static void test_a_layer_is_used_again(void **state)
{
    (void)state;
    const struct task_options ann = {.image = pulled, .job = "ann~a"},
                              bob = {.image = pulled, .job = "bob~b"};
    /* what it shows: owners, a hard link, a set-user-id program of another, data */
    static const char look[] =
        "fail() { echo $*; exit 1; }\n"
        "test $(stat -c %u:%g:%a /bin/su-worker) = 1000:1000:6755 || fail bits\n"
        "test $(stat -c %h /etc/one) = 2 && test $(stat -c %i /etc/one) = $(stat -c %i /etc/two) "
        "|| fail links\n"
        "cmp /etc/one /etc/two && test $(cat /etc/one) = words || fail data\n"
        "echo more >> /etc/one && test \"$(cat /etc/one)\" = \"$(printf 'words\\nmore')\" || fail "
        "change\n"
        "mv /opt/folder /opt/renamed && cat /opt/renamed/file && rm -r /opt/renamed || fail folder";
    create(1, look, &ann);
    succeeds(1);
    assert_true(was_prepared(1));
    assert_string_equal(layers_of_pulled(""), "1");
    create(2, look, &bob); /* another job gets the range that has a layer, and sees none of that */
    succeeds(2);
    assert_false(was_prepared(2));
    assert_string_equal(layers_of_pulled(""), "1");
    assert_string_equal(
        shell_output("find %s/data/images/*/rootfs ! -uid 0 ! -uid 1000 | wc -l", world.folder),
        "0");
    assert_string_equal(shell_output("find %s/data/pulls -mindepth 1 | wc -l", world.folder), "0");
}

/* By `metacopy` a file of an image could name another one as its data. umoci leaves such attributes
 * out when it unpacks the image's layers. */
static void test_an_image_that_speaks_to_overlays(void **state)
{
    (void)state;
    char image[300];
    snprintf(image, sizeof image, "oci:%s/images/layout:hostile", world.folder);
    assert_int_equal(
        shell("set -e; cd %s; exec 2>hostile.log >&2; python3 -c '\n"
              "import io, tarfile\n"
              "with tarfile.open(\"layer.tar\", \"w\", format=tarfile.PAX_FORMAT) as tar:\n"
              "    file = tarfile.TarInfo(\"etc/claims\")\n"
              "    file.size, file.mode = 9, 0o644\n"
              "    for name, value in ((\"metacopy\", \"y\"), (\"redirect\", \"/etc/passwd\")):\n"
              "        file.pax_headers[\"SCHILY.xattr.trusted.overlay.\" + name] = value\n"
              "    file.pax_headers[\"SCHILY.xattr.user.kept\"] = \"1\"\n"
              "    tar.addfile(file, io.BytesIO(b\"its own.\\n\"))\n"
              "'; umoci tag --image images/layout:1 hostile; umoci raw add-layer --image "
              "images/layout:hostile layer.tar",
              world.folder),
        0);
    create(7, "test \"$(cat /etc/claims)\" = 'its own.'", &(struct task_options){.image = image});
    succeeds(7);
    assert_string_equal(
        shell_output("python3 -c 'import glob, os; print(*[name for path in "
                     "glob.glob(\"%s/data/images/*/rootfs/etc/claims\") for name in "
                     "os.listxattr(path)])'",
                     world.folder),
        "user.kept");
    /* so that those below count their own */
    assert_int_equal(
        layers_collect((struct local_engine *)world.engine, world_trusted(&world) / 1000, 0, true),
        2);
    create(8, "true", &(struct task_options){.image = pulled});
    succeeds(8);
}

static void test_jobs_beside_each_other(void **state)
{
    (void)state;
    static const char command[] = WAIT "test \"$(cat /etc/one)\" = words && echo x > /etc/one";
    create(10, command, &(struct task_options){.image = pulled, .job = "ann~a"});
    create(11, command, &(struct task_options){.image = pulled, .job = "bob~b"});
    create(12, command, &(struct task_options){.image = pulled, .job = "bob~b"});
    for (uint64_t i = 10; i < 13; i++)
        world_log_await(&world, i, "begun", PATIENCE_MS);
    assert_string_equal(layers_of_pulled(""), "2");
    /* those of what runs stay, whatever is short */
    assert_int_equal(
        layers_collect((struct local_engine *)world.engine, world_trusted(&world) / 1000, 0, true),
        0);
    world_stop(&world);
    world_start(&world);
    assert_int_equal(
        layers_collect((struct local_engine *)world.engine, world_trusted(&world) / 1000, 0, true),
        0);
    for (uint64_t i = 10; i < 13; i++) {
        go(i);
        succeeds(i);
    }
}

static void test_unused_ones_are_few(void **state)
{
    (void)state;
    enum { JOBS = LAYERS_KEPT + 2 };
    char job[20];
    for (uint64_t i = 0; i < JOBS; i++) {
        snprintf(job, sizeof job, "ann~%llu", (unsigned long long)i);
        create(20 + i, WAIT, &(struct task_options){.image = pulled, .job = job});
        world_log_await(&world, 20 + i, "begun", PATIENCE_MS);
    }
    assert_int_equal(atoi(layers_of_pulled("")), JOBS);
    for (uint64_t i = 0; i < JOBS; i++) {
        go(20 + i);
        succeeds(20 + i);
    }
    struct local_engine *local = (struct local_engine *)world.engine;
    assert_int_equal(layers_collect(local, world_trusted(&world) / 1000, 3600, false), 2);
    assert_int_equal(atoi(layers_of_pulled("")), LAYERS_KEPT);
    /* what a clock that was ahead has left is unused from now on */
    assert_int_equal(shell("touch -d '400 days' %s/data/images/*/ids/*", world.folder), 0);
    assert_int_equal(atoi(layers_of_pulled("-newermt '1 hour'")), LAYERS_KEPT);
    assert_int_equal(layers_collect(local, world_trusted(&world) / 1000, 3600, false), 0);
    assert_int_equal(atoi(layers_of_pulled("-newermt '1 hour'")), 0);
    /* by a time before their last use nothing is old */
    assert_int_equal(layers_collect(local, world_trusted(&world) / 1000 - 86400, 0, false), 0);
    assert_int_equal(layers_collect(local, world_trusted(&world) / 1000, 3600, true), LAYERS_KEPT);
    create(30, "test $(cat /etc/one) = words", &(struct task_options){.image = pulled});
    succeeds(30);
    assert_int_equal(images_collect(local->images, world_trusted(&world) / 1000, 0, 0, UINT64_MAX),
                     2);
    assert_int_equal(shell("ls %s/data/images/*/ids 2>/dev/null", world.folder), 2);
    create(31, "test $(cat /etc/one) = words", &(struct task_options){.image = pulled});
    succeeds(31);
}

/* The operator may change a folder that is used as it is between two jobs. */
static void test_a_folder_that_changes(void **state)
{
    (void)state;
    const struct task_options options = {.image = many};
    const char *folder = many + strlen("dir:");
    assert_int_equal(shell("echo before > %s/etc/changes", folder), 0);
    create(40, "test $(cat /etc/changes) = before", &options);
    succeeds(40);
    assert_int_equal(
        shell("echo much longer than before > %s/etc/changes; echo > %s/etc/new", folder, folder),
        0);
    for (uint64_t i = 41; i < 44; i++) { /* whichever range it is */
        create(i,
               "test \"$(cat /etc/changes)\" = 'much longer than before' && test $(stat -c %u "
               "/etc/new) = 0",
               &options);
        succeeds(i);
        assert_true(was_prepared(i));
    }
}

static void test_it_is_ended_while_it_waits(void **state)
{
    (void)state;
    create(50, "true", &(struct task_options){.image = many, .job = "ann~a"});
    create(51, "true", &(struct task_options){.image = many, .job = "bob~b"});
    create(52, "true", &(struct task_options){.image = many, .job = "bob~b"});
    kill_it(50);
    kill_it(51);
    assert_non_null(world_wait(&world, ENGINE_EXITED, 50, 0, PATIENCE_MS));
    assert_non_null(world_wait(&world, ENGINE_EXITED, 51, 0, PATIENCE_MS));
    succeeds(52);
}

/* Ends without a word while a layer is being made. */
static void engine_begin(int told)
{
    world_start(&world);
    create(60, "true", &(struct task_options){.image = many});
    for (size_t from = 0; !was_prepared(60); from++)
        world_wait(&world, ENGINE_NOTE, 60, from, PATIENCE_MS);
    if (write(told, "", 1) == 1)
        pause();
    _exit(1);
}

static void test_a_kill_in_the_midst(void **state)
{
    (void)state;
    int ends[2], status;
    char byte;
    world_stop(&world);
    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0)
        engine_begin(ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    /* and one that came no further than this */
    assert_int_equal(shell("mkdir -p %s/data/pulls/ids-77/upper/etc", world.folder), 0);
    world_start(&world);
    assert_string_equal(shell_output("ls %s/data/pulls 2>/dev/null", world.folder), "");
    create(61,
           "test $(find /many -type f | wc -l) = 5000 && ! find / -xdev ! -user 0 | grep ^/many",
           &(struct task_options){.image = many});
    succeeds(61);
}

static int setup(void **state)
{
    (void)state;
    if (shell("command -v umoci skopeo >/dev/null") != 0 || !world_open(&world))
        exit(77);
    snprintf(pulled, sizeof pulled, "oci:%s/images/layout:1", world.folder);
    snprintf(many, sizeof many, "dir:%s/images/many", world.folder);
    world.config.user_images = USER_IMAGES_METADATA;
    world.config.user_namespaces = USER_NAMESPACES_AUTO;
    assert_int_equal(
        shell("set -e; cd %s; exec 2>make.log >&2; umoci init --layout images/layout; umoci new "
              "--image images/layout:1; umoci unpack --image images/layout:1 bundle; cp -a "
              "images/busybox/. bundle/rootfs/; cd bundle/rootfs; cp bin/busybox bin/su-worker; "
              "chown 1000:1000 bin/su-worker; chmod 6755 bin/su-worker; echo words > etc/one; ln "
              "etc/one etc/two; mkdir -p opt/folder; echo file > opt/folder/file; cd ../..; umoci "
              "repack --image images/layout:1 bundle; rm -rf bundle; cp -a images/busybox "
              "images/many; mkdir images/many/many; cd images/many/many; for d in $(seq %d); do "
              "mkdir $d; (cd $d; touch $(seq %d)); done",
              world.folder, MANY_FOLDERS, MANY_FILES),
        0);
    world_start(&world);
    if (!((const struct local_engine *)world.engine)->layers) {
        fprintf(stderr, "skipped: there are no metadata layers here\n");
        world_close(&world);
        exit(77);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_close(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_layer_is_used_again),
        cmocka_unit_test(test_an_image_that_speaks_to_overlays),
        cmocka_unit_test(test_jobs_beside_each_other),
        cmocka_unit_test(test_unused_ones_are_few),
        cmocka_unit_test(test_a_folder_that_changes),
        cmocka_unit_test(test_it_is_ended_while_it_waits),
        cmocka_unit_test(test_a_kill_in_the_midst),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
