/* What the state of a task says of its user ids, and when a task may do without ids of its own. */
#include "folder.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "engine/local/id_ranges.h"
#include "engine/local/image.h"
#include "engine/local/task.h"
#include "engine/local/user.h"

static void the_state_has_the_first_id(void **state)
{
    static const struct {
        uint32_t first;
        const char *json;
    } cases[] = {
        {0, "{}"}, /* the machine's ids */
        {2000748544, "{\"ids\":2000748544}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct task_ids ids = {.place = {.first = cases[i].first}};
        struct buf out = BUF_INIT;
        struct json_writer json;
        json_init(&json, &out);
        json_object(&json);
        task_ids_write(&ids, &json);
        json_object_end(&json);
        assert_string_equal(buf_cstr(&out), cases[i].json);
        buf_release(&out);
    }
}

struct told {
    char reason[40], message[300];
};

static void told_put(void *context, const struct engine_event *event)
{
    struct told *told = context;
    snprintf(told->reason, sizeof told->reason, "%s", event->reason);
    snprintf(told->message, sizeof told->message, "%s", event->message);
}

struct join_case {
    enum user_namespaces mode;
    struct engine_mount mounts[2];
    size_t count;
    const char *failure; /* NULL: it has the machine's ids */
    size_t device_count;
};

/* Where neither mounts with other ids are possible for /proc/tty nor device files can be made. */
static int join_code(const struct join_case *wants, struct task *task, struct told *told)
{
    struct err err = {0};
    struct id_ranges *ranges = NULL;
    struct image image = {.user = ""};
    struct container wanted = {
        .job = "ann~a", .mounts = wants->mounts, .mount_count = wants->count};
    struct local_engine local = {
        .sink = {.context = told, .post = told_put},
        .gives_ids = true,
        .device_failure = {.code = ERR_IO, .text = "make /dev/null: refused"},
        .config = {.user_namespaces = wants->mode, .first_id = 20 * ID_RANGE_IDS}};
    const struct id_ranges_config config = {.first = local.config.first_id,
                                            .count = 1,
                                            .registry = in_folder("ids"),
                                            .owner = in_folder("")};
    const struct user user = {.uid = 0};
    struct task_ids ids;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    assert_int_equal(id_ranges_new(&config, &ranges, &err), 0);
    snprintf(local.directory, sizeof local.directory, "%s", in_folder(""));
    snprintf(image.rootfs, sizeof image.rootfs, "%s", in_folder(""));
    mkdir(in_folder("points"), 0755);
    local.id_ranges = ranges;
    *task = (struct task){.attempt = {7}, .id = "7", .wanted = &wanted, .image = &image};
    *told = (struct told){.reason = ""};
    const struct task_ids_need need = {.user = &user, .device_count = wants->device_count};
    const int code = task_ids_join(&local, task, &need, &arena, &ids);
    assert_true(code < 0 || ids.place.first == 0);
    task_ids_release(&ids);
    id_ranges_leave(ranges, task->attempt);
    id_ranges_free(ranges);
    task->wanted = NULL;
    return code;
}

static void assert_joins(const struct join_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct task task;
        struct told told;
        const int code = join_code(&cases[i], &task, &told);
        if (code == ERR_UNAVAILABLE) { /* no user namespaces here */
            mem_free(task.fail_message);
            skip();
        }
        assert_int_equal(code, cases[i].failure ? ERR_UNSUPPORTED : 0);
        assert_string_equal(told.reason, cases[i].failure ? "" : "MachineUsers");
        if (cases[i].failure) {
            assert_string_equal(task.fail_reason, "CreationError");
            assert_non_null(strstr(task.fail_message, cases[i].failure));
            mem_free(task.fail_message);
        }
    }
}

/* A job that names a storage that cannot be mounted with other ids is not root in another one where
 * the operator wants nobody to be root. */
static void no_storage_makes_root_of_another(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    const struct engine_mount stubborn = {.source = "/proc/tty", .target = "/mnt/tty"};
    char source[300];
    snprintf(source, sizeof source, "%s", in_folder("squashed"));
    mkdir(source, 0755);
    const struct engine_mount squashed = {
        .source = source, .target = "/mnt/s", .is_root_squashed = true};
    const struct join_case cases[] = {
        {USER_NAMESPACES_AUTO, {stubborn}, 1, NULL, 0},
        {USER_NAMESPACES_REQUIRED, {stubborn}, 1, "other ids", 0},
        {USER_NAMESPACES_AUTO, {stubborn, squashed}, 2, "(rootSquash)", 0},
        {USER_NAMESPACES_AUTO, {squashed, stubborn}, 2, "(rootSquash)", 0},
        {USER_NAMESPACES_REQUIRED, {stubborn, squashed}, 2, "(rootSquash)", 0},
    };
    assert_joins(cases, COUNT_OF(cases));
}

/* A machine that refuses device files is told from the first task on, not by a failed start. */
static void without_device_files_tasks_with_devices_have_the_machines_ids(void **state)
{
    (void)state;
    char source[300];
    snprintf(source, sizeof source, "%s", in_folder("squashed"));
    mkdir(source, 0755);
    const struct engine_mount squashed = {
        .source = source, .target = "/mnt/s", .is_root_squashed = true};
    const struct join_case cases[] = {
        {USER_NAMESPACES_AUTO, {{0}}, 0, NULL, 1},
        {USER_NAMESPACES_REQUIRED, {{0}}, 0, "its devices: make /dev/null: refused", 1},
        {USER_NAMESPACES_AUTO, {squashed}, 1, "(rootSquash)", 1},
    };
    assert_joins(cases, COUNT_OF(cases));
}

static void what_remains_keeps_its_ids_over_a_restart(void **state)
{
    (void)state;
    struct err err = {0};
    struct stat link;
    char name[40], note[300];
    struct local_engine local = {.group = "/skep/1"};
    const struct id_ranges_config config = {.first = 20 * ID_RANGE_IDS,
                                            .count = 2,
                                            .registry = in_folder("noted"),
                                            .owner = in_folder("engine")};
    folder_put("engine/containers/7/ended", "{}");
    folder_put("groups/skep/1/7/cgroup.procs", "99\n");
    folder_put("noted/other", "");
    snprintf(local.directory, sizeof local.directory, "%s", in_folder("engine"));
    snprintf(local.cgroups.trees[0].mount, sizeof local.cgroups.trees[0].mount, "%s",
             in_folder("groups"));
    local.cgroups.tree_count = 1;
    assert_int_equal(id_ranges_new(&config, &local.id_ranges, &err), 0);
    snprintf(name, sizeof name, "noted/%d", 21 * ID_RANGE_IDS);
    snprintf(note, sizeof note, "%s", in_folder(name));
    assert_int_equal(symlink(in_folder("engine"), note), 0);
    assert_int_equal(adopt_all(&local, &err), 0);
    assert_int_equal(lstat(note, &link), 0);
    assert_int_equal(unlink(in_folder("groups/skep/1/7/cgroup.procs")), 0);
    assert_int_equal(rmdir(in_folder("groups/skep/1/7")), 0);
    task_ids_settle(&local);
    assert_int_equal(lstat(note, &link), -1);
    task_drop(&local, task_find(&local, (struct attempt_id){7}));
    id_ranges_free(local.id_ranges);
    id_map_release(&local.task_index);
    mem_free(local.tasks);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_state_has_the_first_id),
    cmocka_unit_test(no_storage_makes_root_of_another),
    cmocka_unit_test(without_device_files_tasks_with_devices_have_the_machines_ids),
    cmocka_unit_test(what_remains_keeps_its_ids_over_a_restart),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
