/* Pulls beside each other, slow ones, and those that are given up.
 *
 * Covers: src/engine/local/fetch.c, src/engine/local/image_pull.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "base/memory.h"
#include "image_world.h"
#include "sys/process.h"
#include <cmocka.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Until as many pulls are under way: each has a file of credentials. */
static void await_pulls(int count)
{
    const int64_t due_us = now_us() + PATIENCE_MS * 1000ll;
    while (atoi(shell_output("ls %s/run | grep -c ^auth-", world.folder)) < count)
        assert_true(now_us() < due_us);
}

/* Eight tasks want one image, two others theirs; a task whose image is here waits for none. */
static void test_parallel(void **state)
{
    (void)state;
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
    await_pulls(3); /* beside each other, not in turn: the registry says nothing yet */
    create(60, world.image, NULL, NULL, "echo here");
    assert_ends(60, 0, "here\n");
    kill(open_registry.pid, SIGCONT);
    for (uint64_t i = 0; i < 10; i++)
        assert_ends(40 + i, 0, i < 8 ? "p0\n" : i == 8 ? "p1\n" : "p2\n");
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
 * not known before: nothing tells of it. No longer than until this attempt, if any, has ended. */
static void await_partial(uint64_t attempt)
{
    const int64_t due_us = now_us() + PATIENCE_MS * 1000ll;
    while (shell("ls %s/data/pulls/*/oci-put-blob* >/dev/null 2>&1", world.folder) != 0 &&
           !(attempt && world_wait(&world, ENGINE_EXITED, attempt, 0, 0)))
        assert_true(now_us() < due_us);
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
    const uint32_t usual_s = world.config.pull_stall_s;
    const unsigned port = halting_start(&halting);
    world_stop(&world);
    world.config.pull_stall_s = 2;
    world_start(&world);
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
    world_stop(&world);
    world.config.pull_stall_s = usual_s;
    world_start(&world);
    create(72, image_name(&open_registry, names[0]), NULL, NULL, "cat /etc/tag");
    assert_ends(72, 0, "big\n");
}

static void test_registry_dies(void **state)
{
    (void)state;
    image_make("big2", 60);
    image_push(&open_registry, "big2", "big/app:2");
    create(75, image_name(&open_registry, "big/app:2"), NULL, NULL, "cat /etc/tag");
    await_partial(75);
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
        world_start(&world);
        create(120, image, NULL, NULL, "true");
        pause();
        _exit(0);
    }
    await_partial(0);
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
    await_pulls(1);
    world_stop(&world);
    assert_int_equal(notes_of(87, "PullFailed"), 0);
    kill(open_registry.pid, SIGCONT);
    world_start(&world);
    create(88, image_name(&open_registry, "unheard/app:1"), NULL, NULL, "cat /etc/tag");
    assert_ends(88, 0, "unheard\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parallel),           cmocka_unit_test(test_queue),
        cmocka_unit_test(test_registry_stalls),    cmocka_unit_test(test_registry_dies),
        cmocka_unit_test(test_progress),           cmocka_unit_test(test_slow_pulls),
        cmocka_unit_test(test_named_too_big),      cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_many_credentials),   cmocka_unit_test(test_server_killed),
        cmocka_unit_test(test_kill_while_pulling), cmocka_unit_test(test_stop_while_pulling),
    };
    return cmocka_run_group_tests(tests, image_world_open, image_world_close);
}
