/* The disk of a task, over a file system in a file that the kernel mounts. That takes root; what a
 * container does with it is in tests/system/engine/test_disk.c. */
#include "folder.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/local/task.h"
#include "sys/cleanup.h"

enum { DISK_MIB = 16 };

struct disk {
    struct local_engine local;
    struct task task;
};

/* False: nothing is mounted here, as this takes root and loop devices, or the folder's file system
 * has quotas of its own. */
static bool disk_open(struct disk *disk)
{
    struct err err = {0};
    *disk = (struct disk){.task = {.attempt = {7}, .id = "7", .init_fd = -1, .disk_fd = -1}};
    struct local_engine *local = &disk->local;
    snprintf(local->directory, sizeof local->directory, "%s", in_folder(""));
    local->config.disk_quota = DISK_QUOTA_REQUIRED;
    local->config.disk_mib = DISK_MIB;
    local->config.log_max_mib = 1;
    pthread_mutex_init(&local->lock, NULL);
    if (geteuid() != 0 || access("/dev/loop-control", R_OK | W_OK) < 0)
        return false;
    if (task_disks_open(local, &err) < 0)
        fail_msg("%s", err.text);
    folder_put("containers/7/there", "");
    folder_put("logs/7/there", "");
    return local->disk_way == DISK_IMAGE;
}

static void disk_close(struct disk *disk)
{
    task_disk_drop(&disk->local, &disk->task);
    assert_int_equal(disk->task.disk_fd, -1);
    pthread_mutex_destroy(&disk->local.lock);
}

static void fill(const struct disk *disk, const char *name, size_t bytes)
{
    static const char block[64 << 10];
    char path[RUNTIME_PATH_MAX];
    task_disk_path(&disk->local, &disk->task, name, path);
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (size_t sum = 0; sum < bytes; sum += sizeof block)
        if (write(fd, block, sizeof block) != sizeof block)
            return; /* it is full */
}

static void make(struct disk *disk)
{
    struct err err = {0};
    if (task_disk_make(&disk->local, &disk->task, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(disk->task.disk_fd >= 0);
}

/* The empty file system from which all are copied is there under its name, and nothing else. */
static void all_disks_begin_as_one(void **state)
{
    (void)state;
    struct disk disk;
    if (!disk_open(&disk))
        skip();
    assert_int_equal(access(in_folder("disk.empty"), F_OK), 0);
    assert_int_equal(access(in_folder("disk.empty~"), F_OK), -1);
    assert_int_equal(task_disks_open(&disk.local, NULL), 0); /* as the next engine does */
    make(&disk);
    disk_close(&disk);
}

/* A task without a file system of its own has its files on the machine's. */
static void without_a_disk_it_is_the_machines(void **state)
{
    (void)state;
    struct local_engine local = {.directory = "/data/engine"};
    const struct task task = {.id = "7", .disk_fd = -1};
    char path[RUNTIME_PATH_MAX] = "nowhere", reason[TASK_DISK_REASON_MAX];
    task_disk_path(&local, &task, "log", path);
    assert_string_equal(path, "/data/engine/containers/7/log");
    task_disk_path(&local, &task, "", path);
    assert_string_equal(path, "/data/engine/containers/7");
    assert_false(task_disk_is_full(&local, &task, reason));
}

/* What a task reads as the reason of its end: only when it is full, and of what. */
static void a_full_disk_is_told(void **state)
{
    (void)state;
    struct disk disk;
    char reason[TASK_DISK_REASON_MAX] = "";
    if (!disk_open(&disk))
        skip();
    assert_false(task_disk_is_full(&disk.local, &disk.task, reason)); /* it has none yet */
    make(&disk);
    assert_false(task_disk_is_full(&disk.local, &disk.task, reason));
    fill(&disk, "half", DISK_MIB / 2 << 20);
    assert_false(task_disk_is_full(&disk.local, &disk.task, reason));
    fill(&disk, "rest", DISK_MIB << 20);
    assert_true(task_disk_is_full(&disk.local, &disk.task, reason));
    assert_string_equal(reason, "its disk of 16 MiB is full");
    disk_close(&disk);
}

/* So many files that no other can be made, with room for bytes left. */
static void a_disk_full_of_files_is_told(void **state)
{
    (void)state;
    enum { FILES_MAX = 1 << 16 };
    struct disk disk;
    char reason[TASK_DISK_REASON_MAX] = "";
    if (!disk_open(&disk))
        skip();
    make(&disk);
    for (unsigned i = 0; i < FILES_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u", i);
        cleanup_close int fd =
            openat(disk.task.disk_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
            break;
    }
    assert_true(task_disk_is_full(&disk.local, &disk.task, reason));
    assert_non_null(strstr(reason, "files, and has them"));
    disk_close(&disk);
}

/* A task's disk goes with it, but its log is kept beside those of all others. */
static void the_log_outlives_the_disk(void **state)
{
    (void)state;
    struct disk disk;
    struct stat log;
    char path[RUNTIME_PATH_MAX];
    if (!disk_open(&disk))
        skip();
    make(&disk);
    task_disk_path(&disk.local, &disk.task, "log", path);
    assert_int_equal(mkdir(path, 0700), 0);
    fill(&disk, "log/stdout.000000000000000", 64 << 10);
    task_disk_end(&disk.local, &disk.task);
    disk_close(&disk);
    task_log_path(&disk.local, disk.task.id, path);
    snprintf(path + strlen(path), sizeof path - strlen(path), "/stdout.000000000000000");
    assert_int_equal(stat(path, &log), 0);
    assert_int_equal(log.st_size, 64 << 10);
}

/* An engine that begins anew finds the disk with all that the task has written. */
static void the_next_engine_finds_it(void **state)
{
    (void)state;
    struct disk disk;
    if (!disk_open(&disk))
        skip();
    make(&disk);
    fill(&disk, "kept", 64 << 10);
    struct task task = disk.task;
    task.disk_fd = -1;
    task_disk_adopt(&disk.local, &task);
    assert_true(task.disk_fd >= 0);
    assert_int_equal(faccessat(task.disk_fd, "kept", F_OK, 0), 0);
    task_disk_drop(&disk.local, &task);
    disk_close(&disk);
    struct task other = {.id = "8", .disk_fd = -1};
    task_disk_adopt(&disk.local, &other); /* it never had one */
    assert_int_equal(other.disk_fd, -1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(all_disks_begin_as_one, folder_setup, folder_teardown),
    cmocka_unit_test(without_a_disk_it_is_the_machines),
    cmocka_unit_test_setup_teardown(a_full_disk_is_told, folder_setup, folder_teardown),
    cmocka_unit_test_setup_teardown(a_disk_full_of_files_is_told, folder_setup, folder_teardown),
    cmocka_unit_test_setup_teardown(the_log_outlives_the_disk, folder_setup, folder_teardown),
    cmocka_unit_test_setup_teardown(the_next_engine_finds_it, folder_setup, folder_teardown),
};
UNIT_FILE(tests, NULL, NULL);
