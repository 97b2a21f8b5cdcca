/* User ids of tasks: root in a task is nobody on the machine, and notices little of it.
 * SKEP_TEST_USER_IMAGES=metadata: images are shown with them by metadata layers.
 *
 * Covers: src/engine/local/id_ranges.c, src/engine/local/task_ids.c, src/sys/userns.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "base/memory.h"
#include "engine/local/task.h"
#include "world.h"
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000 };

static struct world world;

static const struct seen *end_of(uint64_t attempt)
{
    const struct seen *end = world_wait(&world, ENGINE_EXITED, attempt, 0, PATIENCE_MS);
    assert_non_null(end);
    return end;
}

static void create(uint64_t attempt, const char *command, const struct task_options *options)
{
    struct err err = {0};
    assert_int_equal(world_create_with(&world, attempt, command, options, &err), 0);
}

/* The command says what is wrong and ends with 1, or ends with 0. */
static void succeeds(uint64_t attempt)
{
    const struct seen *end = end_of(attempt);
    if (end->exit.exit_code != 0)
        fail_msg("%d %s %s\n%s\n%s", end->exit.exit_code, end->reason, end->message, end->log,
                 end->platform);
}

#define WAIT "mkfifo /skep/run/wait; echo begun; read line < /skep/run/wait; "

static int init_of(uint64_t attempt)
{
    return atoi(
        shell_output("cat %s/run/tasks/%llu/init.pid", world.folder, (unsigned long long)attempt));
}

static void go(uint64_t attempt)
{
    assert_int_equal(shell("echo go > /proc/%d/root/skep/run/wait", init_of(attempt)), 0);
}

static uint32_t first_of(uint64_t attempt)
{
    unsigned inside = 1, outside = 0, count = 0;
    world_log_await(&world, attempt, "begun", PATIENCE_MS);
    sscanf(shell_output("cat /proc/%d/uid_map", init_of(attempt)), "%u %u %u", &inside, &outside,
           &count);
    assert_int_equal(inside, 0);
    return count == ID_RANGE_IDS ? outside : 0;
}

static bool is_noted(uint32_t first)
{
    return shell("test -L /run/skep/ids/%u", first) == 0;
}

static void test_root_is_nobody(void **state)
{
    (void)state;
    create(1,
           "test $(id -u) = 0 || exit 1; touch /skep/run/mine /skep/log/mine /tmp/mine; " WAIT
           "exit 0",
           &(struct task_options){0});
    const uint32_t first = first_of(1);
    assert_int_equal(first % ID_RANGE_IDS, 0);
    assert_true(first > ID_RANGES_FIRST);
    assert_true(is_noted(first));
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%u %u %u %u", first, first, first, first);
    for (int i = 0; i < 2; i++)
        assert_string_equal(shell_output("grep %s /proc/%d/status | cut -f2- | tr '\t' ' '",
                                         i ? "Gid" : "Uid", init_of(1)),
                            wanted);
    static const char *const places[] = {"containers/1/run/mine", "logs/1/mine",
                                         "containers/1/upper/tmp/mine", "containers/1/upper"};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct stat stat_of_it;
        char path[400];
        snprintf(path, sizeof path, "%s/data/%s", world.folder, places[i]);
        assert_int_equal(stat(path, &stat_of_it), 0);
        assert_int_equal(stat_of_it.st_uid, first);
        assert_int_equal(stat_of_it.st_gid, first);
    }
    go(1);
    succeeds(1);
    assert_false(is_noted(first));
}

/* They are bound: what a task does to them must not reach others. */
static void test_machine_devices(void **state)
{
    (void)state;
    static const char *const paths[] = {"/dev/null", "/dev/zero", "/dev/urandom"};
    create(3,
           "for f in null zero urandom; do ! chmod 600 /dev/$f 2>/dev/null && ! chown 0 /dev/$f "
           "2>/dev/null || exit 1; done; ! chmod 600 /proc/self/fd/0 2>/dev/null",
           &(struct task_options){0});
    succeeds(3);
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        assert_string_equal(shell_output("stat -c %%u:%%g:%%a %s", paths[i]), "0:0:666");
}

/* What a package manager does to an image. */
static void test_image_is_its_own(void **state)
{
    (void)state;
    create(5,
           "set -e; fail() { echo $*; exit 1; }\n"
           "for f in / /bin /bin/sh /etc /etc/passwd /tmp /dev /dev/shm; do "
           "test $(stat -c %u:%g $f) = 0:0 || fail $f $(stat -c %u:%g $f); done\n"
           "echo x:x:70:70::/:/bin/sh >> /etc/passwd; chmod 1777 /tmp; mkdir -p /opt/a/b; "
           "cp /bin/busybox /opt/a\n"
           "chown -R 70:71 /opt; chmod 6755 /opt/a/busybox; test $(stat -c %u:%g:%a "
           "/opt/a/busybox) = 70:71:6755 || fail chown\n"
           "chown 65535:65535 /opt/a; mv /etc/passwd /etc/p; mv /etc/p /etc/passwd; "
           "ln /etc/passwd /etc/p2; ln -s /etc /e; chmod 700 /etc; chmod 755 /etc; rm /etc/p2\n"
           "! chown 65536 /opt/a 2>/dev/null || fail an id beyond\n"
           "mkfifo /tmp/pipe; ! mknod /tmp/null c 1 3 2>/dev/null || fail a device\n"
           "echo > /dev/null; head -c 9 /dev/zero > /dev/null; head -c 9 /dev/urandom > /dev/null\n"
           "test -d /sys/class/net; ! touch /sys/kernel/x 2>/dev/null\n"
           "su worker -c 'test $(id -u) = 1000; ! touch /etc/x 2>/dev/null; touch /tmp/w; echo > "
           "/dev/null; test $(stat -c %u /tmp/w) = 1000' || fail su\n"
           "test -r /skep/task; test -x /skep/init; test -w /skep/private; ! touch /skep/x "
           "2>/dev/null\n",
           &(struct task_options){0});
    succeeds(5);
    /* nothing of it reached the image */
    assert_int_equal(shell("test -e %s/images/busybox/opt", world.folder), 1);
    assert_string_equal(
        shell_output("find %s/images/busybox ! -uid 0 -o ! -gid 0 | wc -l", world.folder), "0");
}

static void storage_make(const char *name, unsigned owner, char path[300])
{
    snprintf(path, 300, "%s/%s", world.folder, name);
    assert_int_equal(shell("mkdir -m 755 %s; echo root > %s/of-root; chmod 644 %s/of-root; "
                           "echo 1000 > %s/of-1000; chown 1000:1000 %s/of-1000; chown %u:%u %s",
                           path, path, path, path, path, owner, owner, path),
                     0);
}

static const char *owner_of(const char *folder, const char *name)
{
    return shell_output("stat -c %%u:%%g %s/%s", folder, name);
}

static void test_storages(void **state)
{
    (void)state;
    char plain[300], users[300], roots[300], numbers[40];
    storage_make("plain", 0, plain);
    storage_make("users", 1000, users);
    storage_make("roots", 0, roots);
    const struct engine_mount mounts[] = {
        {.source = plain, .target = "/mnt/plain"},
        {.source = users, .target = "/mnt/users", .is_root_squashed = true},
        {.source = roots, .target = "/mnt/roots", .is_root_squashed = true},
        {.source = users, .target = "/mnt/read", .is_root_squashed = true, .is_read_only = true},
    };
    assert_int_equal(shell("chmod 777 %s", roots), 0);
    create(10,
           "fail() { echo $*; exit 1; }\n"
           "for s in plain users roots; do echo mine > /mnt/$s/made || fail make $s; cp "
           "/bin/busybox /mnt/$s/suid; chmod 4755 /mnt/$s/suid; touch /mnt/$s/given; chown 70:71 "
           "/mnt/$s/given || fail chown $s; "
           "test $(stat -c %u:%g /mnt/$s/made) = 0:0 || fail $s $(stat -c %u:%g /mnt/$s/made); "
           "done\n"
           "echo x >> /mnt/plain/of-root || fail plain\n"
           "for s in users roots; do ! echo x >> /mnt/$s/of-root 2>/dev/null || fail wrote $s; "
           "! chmod 666 /mnt/$s/of-root 2>/dev/null || fail chmod $s; ! chown 0 /mnt/$s/of-root "
           "2>/dev/null || fail took $s; grep -q root /mnt/$s/of-root || fail read $s; done\n"
           "echo x >> /mnt/users/of-1000 || fail its own\n"
           "test $(stat -c %u /mnt/roots/of-1000) = 1000 || fail 1000\n"
           "! touch /mnt/read/x 2>/dev/null || fail read only\n",
           &(struct task_options){.mounts = mounts, .mount_count = COUNT_OF(mounts)});
    succeeds(10);
    snprintf(numbers, sizeof numbers, "%u:%u", (unsigned)ID_RANGES_FIRST,
             (unsigned)ID_RANGES_FIRST);
    assert_string_equal(owner_of(plain, "made"), "0:0");
    assert_string_equal(owner_of(users, "made"), "1000:1000");
    assert_string_equal(owner_of(users, "suid"), "1000:1000");
    assert_string_equal(owner_of(roots, "made"), numbers);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(owner_of(mounts[i].source, "given"), "70:71");
    for (size_t i = 1; i < 3; i++)
        assert_string_equal(owner_of(mounts[i].source, "of-root"), "0:0");
    /* the next job sees them as its own, whatever its range is */
    create(11, "echo x >> /mnt/roots/made && echo x >> /mnt/users/made && rm /mnt/users/suid",
           &(struct task_options){.mounts = mounts, .mount_count = COUNT_OF(mounts), .job = "b~c"});
    succeeds(11);
}

/* As people of a directory have it: root of a task goes on to be root there, and who owns the
 * folder is one of the task's ids. */
static void test_owners_of_high_ids(void **state)
{
    (void)state;
    char folder[300];
    snprintf(folder, sizeof folder, "%s/directory", world.folder);
    assert_int_equal(shell("mkdir %s && echo x > %s/theirs && chown -R 1234567:7654321 %s && "
                           "chmod -R go-w %s && echo y > %s/of-root",
                           folder, folder, folder, folder, folder),
                     0);
    const struct engine_mount mount = {.source = folder, .target = "/mnt/d"};
    create(15,
           "test $(cut -c 1-21 /proc/self/uid_map | tr -d ' ') != 00 || exit 2\n"
           "test $(stat -c %u:%g /mnt/d/theirs) = 65533:65533 || exit 3\n"
           "echo x >> /mnt/d/theirs && echo z > /mnt/d/made && echo z >> /mnt/d/of-root || exit 4\n"
           "cp /mnt/d/made /mnt/d/given && chown 65533:65533 /mnt/d/given",
           &(struct task_options){.mounts = &mount, .mount_count = 1});
    succeeds(15);
    assert_string_equal(owner_of(folder, "theirs"), "1234567:7654321");
    assert_string_equal(owner_of(folder, "given"), "1234567:7654321");
    assert_string_equal(owner_of(folder, "made"), "0:0");
}

static void test_a_file_is_mounted(void **state)
{
    (void)state;
    char path[300];
    snprintf(path, sizeof path, "%s/one-file", world.folder);
    assert_int_equal(shell("echo words > %s; chmod 600 %s", path, path), 0);
    const struct engine_mount mount = {.source = path, .target = "/etc/words"};
    create(12, "cat /etc/words && echo more >> /etc/words",
           &(struct task_options){.mounts = &mount, .mount_count = 1});
    succeeds(12);
    assert_string_equal(shell_output("cat %s", path), "words\nmore");
}

static void test_ranges_of_jobs(void **state)
{
    (void)state;
    create(20, WAIT, &(struct task_options){.job = "ann~a"});
    create(21, WAIT, &(struct task_options){.job = "ann~a"});
    create(22, WAIT, &(struct task_options){.job = "ann~b"});
    const uint32_t first = first_of(20), other = first_of(22);
    assert_int_equal(first_of(21), first);
    assert_int_not_equal(first, other);
    go(20);
    succeeds(20);
    assert_true(is_noted(first));
    for (uint64_t i = 21; i < 23; i++) {
        go(i);
        succeeds(i);
    }
    assert_false(is_noted(first));
    assert_false(is_noted(other));
}

static void test_right(void **state)
{
    (void)state;
    create(25, "test \"$(tr -s ' ' < /proc/self/uid_map)\" = ' 0 0 4294967295'",
           &(struct task_options){.virtual_cluster = "trusted"});
    succeeds(25);
}

static void image_make(const char *name, const char *user)
{
    assert_int_equal(shell("cp -a %s/images/busybox %s/images/%s; echo '%s' >> "
                           "%s/images/%s/etc/passwd; echo x > %s/images/%s/etc/strange; "
                           "chown 70000:70000 %s/images/%s/etc/strange; chmod 644 "
                           "%s/images/%s/etc/strange",
                           world.folder, world.folder, name, user, world.folder, name, world.folder,
                           name, world.folder, name, world.folder, name),
                     0);
}

/* Files of ids that no task has are nobody's: they can be read as others can, not changed. */
static void test_files_of_high_ids(void **state)
{
    (void)state;
    char image[300];
    image_make("high", "other:x:5:5::/:/bin/sh");
    snprintf(image, sizeof image, "dir:%s/images/high", world.folder);
    create(30,
           "test $(stat -c %u /etc/strange) = 65534 && cat /etc/strange && ! chown 0 /etc/strange "
           "&& touch /etc/other",
           &(struct task_options){.image = image});
    succeeds(30);
}

static const char *note_of(uint64_t attempt)
{
    const struct seen *note = world_wait(&world, ENGINE_NOTE, attempt, 0, 0);
    return note && strcmp(note->reason, "MachineUsers") == 0 ? note->message : "";
}

/* A file system whose files cannot be shown with other ids, as those of NFS. */
static void test_stubborn_storage(void **state)
{
    (void)state;
    const struct engine_mount mount = {
        .source = "/proc/tty", .target = "/mnt/tty", .is_read_only = true};
    const struct task_options options = {.mounts = &mount, .mount_count = 1};
    create(40, "test -d /mnt/tty/driver && test $(cut -c 1-21 /proc/self/uid_map | tr -d ' ') = 00",
           &options);
    succeeds(40);
    assert_non_null(strstr(note_of(40), "/proc/tty"));
    world_stop(&world);
    world.config.user_namespaces = USER_NAMESPACES_REQUIRED;
    world_start(&world);
    create(41, "true", &options);
    assert_string_equal(end_of(41)->reason, "CreationError");
    assert_non_null(strstr(end_of(41)->message, "/proc/tty cannot be mounted with other ids"));
    create(42, "test $(cut -c 1-21 /proc/self/uid_map | tr -d ' ') != 00",
           &(struct task_options){0});
    succeeds(42);
    world_stop(&world);
    world.config.user_namespaces = USER_NAMESPACES_OFF;
    world_start(&world);
    create(43, "test $(cut -c 1-21 /proc/self/uid_map | tr -d ' ') = 00",
           &(struct task_options){0});
    succeeds(43);
    world_stop(&world);
    world.config.user_namespaces = USER_NAMESPACES_AUTO;
    world_start(&world);
}

static void test_restart(void **state)
{
    (void)state;
    create(50, WAIT "exit 7", &(struct task_options){.job = "ann~a"});
    create(51, WAIT "exit 8", &(struct task_options){.job = "ann~b"});
    const uint32_t first = first_of(50), other = first_of(51);
    world_stop(&world);
    assert_int_equal(shell("ln -s %s/data /run/skep/ids/%u", world.folder, 5 * ID_RANGE_IDS), 0);
    go(51); /* it ends while nobody looks */
    const int pid = init_of(51);
    while (kill(pid, 0) == 0)
        ;
    const size_t seen = world_seen_count(&world);
    world_start(&world);
    assert_non_null(world_wait(&world, ENGINE_STARTED, 50, seen, PATIENCE_MS));
    const struct seen *end = world_wait(&world, ENGINE_EXITED, 51, seen, PATIENCE_MS);
    assert_non_null(end);
    assert_int_equal(end->exit.exit_code, 8);
    assert_true(is_noted(first));
    assert_false(is_noted(other));
    assert_false(is_noted(5 * ID_RANGE_IDS)); /* of a start that did not come so far */
    create(52, WAIT, &(struct task_options){.job = "ann~a"});
    assert_int_equal(first_of(52), first);
    go(50);
    go(52);
    assert_int_equal(end_of(50)->exit.exit_code, 7);
    succeeds(52);
    assert_false(is_noted(first));
}

static bool has_machine_ids(uint64_t attempt)
{
    world_log_await(&world, attempt, "begun", PATIENCE_MS);
    return shell("test $(readlink /proc/%d/ns/user) = $(readlink /proc/self/ns/user)",
                 init_of(attempt)) == 0;
}

/* Tasks go on as they are; what starts afterwards is as configured now, of the same job as well. */
static void test_changed_setting(void **state)
{
    (void)state;
    static const char command[] = WAIT "echo after > /tmp/after && cat /tmp/after; exit 9";
    const struct task_options options = {.job = "ann~a"};
    for (size_t i = 0; i < 2; i++) {
        const uint64_t attempt = 55 + 2 * i;
        world_stop(&world);
        world.config.user_namespaces = i ? USER_NAMESPACES_AUTO : USER_NAMESPACES_OFF;
        world_start(&world);
        create(attempt, command, &options);
        assert_int_equal(has_machine_ids(attempt), i == 0);
        world_stop(&world);
        world.config.user_namespaces = i ? USER_NAMESPACES_OFF : USER_NAMESPACES_AUTO;
        const size_t seen = world_seen_count(&world);
        world_start(&world);
        assert_non_null(world_wait(&world, ENGINE_STARTED, attempt, seen, PATIENCE_MS));
        assert_int_equal(has_machine_ids(attempt), i == 0);
        create(attempt + 1, command, &options);
        assert_int_equal(has_machine_ids(attempt + 1), i == 1);
        for (uint64_t of = attempt; of < attempt + 2; of++) {
            go(of);
            assert_int_equal(end_of(of)->exit.exit_code, 9);
            assert_non_null(strstr(end_of(of)->log, "after"));
        }
    }
    world_stop(&world);
    world.config.user_namespaces = USER_NAMESPACES_AUTO;
    world_start(&world);
}

/* Its disk, its log and the reasons of its end are the same. */
static void test_own_disk(void **state)
{
    (void)state;
    world_stop(&world);
    world.config.disk_quota = DISK_QUOTA_REQUIRED;
    world.config.disk_mib = 32;
    world_start(&world);
    create(60, WAIT "chown 70 /tmp; dd if=/dev/zero of=/tmp/x bs=64k || exit 7",
           &(struct task_options){0});
    assert_true(first_of(60) > 0);
    go(60);
    assert_int_equal(end_of(60)->exit.exit_code, 7);
    assert_string_equal(end_of(60)->reason, "TaskDiskFull");
    world_stop(&world);
    world.config.disk_quota = DISK_QUOTA_OFF;
    world_start(&world);
}

static void test_network(void **state)
{
    (void)state;
    world_stop(&world);
    world.config.has_private_network = true;
    world_start(&world);
    create(65,
           "set -e; test \"$(ls /sys/class/net | sort | tr '\\n' ' ')\" = 'eth0 lo '\n"
           "nc -l -p 80 -e echo answer & until grep -q ':0050 .* 0A ' /proc/net/tcp "
           "/proc/net/tcp6; do :; done; test $(nc $(cat /skep/network) 80) = answer\n"
           "echo 10.1.1.1 other >> /etc/hosts; test -r /etc/resolv.conf\n",
           &(struct task_options){0});
    succeeds(65);
    world_stop(&world);
    world.config.has_private_network = false;
    world_start(&world);
}

static int setup(void **state)
{
    (void)state;
    static const char *const trusted[] = {"trusted"};
    if (!world_open(&world))
        exit(77);
    const char *images = getenv("SKEP_TEST_USER_IMAGES");
    if (images && strcmp(images, "metadata") == 0)
        world.config.user_images = USER_IMAGES_METADATA;
    world.config.user_namespaces = USER_NAMESPACES_AUTO;
    world.config.rights[RIGHT_HOST_USERS] = (struct right_list){trusted, 1};
    world_start(&world);
    if (!((const struct local_engine *)world.engine)->gives_ids) {
        fprintf(stderr, "skipped: tasks cannot have user ids of their own here\n");
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_root_is_nobody),
        cmocka_unit_test(test_machine_devices),
        cmocka_unit_test(test_image_is_its_own),
        cmocka_unit_test(test_storages),
        cmocka_unit_test(test_owners_of_high_ids),
        cmocka_unit_test(test_a_file_is_mounted),
        cmocka_unit_test(test_ranges_of_jobs),
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_files_of_high_ids),
        cmocka_unit_test(test_stubborn_storage),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_changed_setting),
        cmocka_unit_test(test_own_disk),
        cmocka_unit_test(test_network),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, setup, teardown);
}
