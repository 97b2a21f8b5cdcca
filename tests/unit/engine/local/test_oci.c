/* The OCI configuration of a container, whole, against golden files. */
#include "unit.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/oci.h"
#include "engine/local/rights.h"
#include "sys/file.h"

static void golden_compare(const char *name, const struct buf *text)
{
    char path[512];
    struct buf wanted = BUF_INIT;
    struct err err = {0};
    snprintf(path, sizeof path, "%s/%s", GOLDEN_DIRECTORY, name);
    if (getenv("SKEP_GOLDEN_UPDATE"))
        assert_int_equal(file_write(path, buf_as_text(text), 0644, &err), 0);
    assert_int_equal(file_read(path, 1 << 20, &wanted, &err), 0);
    if (!text_equal(buf_as_text(&wanted), buf_as_text(text)))
        fail_msg("%s differs:\n%s", name, buf_cstr(text));
    buf_release(&wanted);
}

static void test_config_golden(void **state)
{
    (void)state;
    const char *argv[] = {"/skep/init"}, *env[] = {"PATH=/bin", "A=\"b\"\n"};
    const char *options[] = {"ro", "nosuid", "rbind"}, *args[] = {"hook", "x"};
    const uint32_t groups[] = {4, 27};
    const struct oci_mount mounts[] = {
        {.source = "/data/17/skep", .target = "/skep", .is_read_only = true},
        {.source = "/srv/data", .target = "/mnt/data"},
        {.source = "/usr/lib/x", .target = "/usr/lib/x", .options = options, .option_count = 3},
    };
    const struct oci_device devices[] = {
        {.path = "/dev/nvidia0", .type = 'c', .major = 195, .mode = 0666, .access = "rw"}};
    const struct oci_hook hooks[] = {{.kind = "createContainer",
                                      .path = "/usr/bin/hook",
                                      .args = args,
                                      .arg_count = 2,
                                      .timeout_s = 10}};
    const struct oci_rlimit limits[] = {{"RLIMIT_NOFILE", 1024, 20000},
                                        {"RLIMIT_MEMLOCK", UINT64_MAX, UINT64_MAX}};
    const char *annotations[] = {"skep.job", "alice~train"};
    struct oci_config config = {.rootfs = "/data/17/merged",
                                .rights = 1u << RIGHT_SYS_ADMIN | 1u << RIGHT_LOCK_MEMORY |
                                          1u << RIGHT_NEW_PRIVILEGES,
                                .argv = argv,
                                .argv_count = 1,
                                .env = env,
                                .env_count = 2,
                                .cwd = "/work",
                                .uid = 1000,
                                .gid = 100,
                                .groups = groups,
                                .group_count = 2,
                                .cgroup_path = "/skep/1a2b/17",
                                .is_cgroup_v2 = true,
                                .has_swap = true,
                                .cpu = 4,
                                .memory_mib = 8192,
                                .shm_mib = 512,
                                .pids_max = 32768,
                                .mounts = mounts,
                                .mount_count = COUNT_OF(mounts),
                                .devices = devices,
                                .device_count = 1,
                                .hooks = hooks,
                                .hook_count = 1,
                                .rlimits = limits,
                                .rlimit_count = 2,
                                .has_oom_score = true,
                                .annotations = annotations,
                                .annotation_count = 1,
                                .seccomp_bpf = "AAAA"};
    struct buf text = BUF_INIT;
    oci_config_write(&config, &text);
    buf_char(&text, '\n');
    golden_compare("oci-full.json", &text);
    buf_clear(&text);
    config = (struct oci_config){.rootfs = "r",
                                 .argv = argv,
                                 .argv_count = 1,
                                 .env = env,
                                 .env_count = 1,
                                 .cwd = "/",
                                 .cgroup_path = "/skep/x",
                                 .pids_max = 10,
                                 .seccomp_bpf = "AAAA"};
    oci_config_write(&config, &text);
    buf_char(&text, '\n');
    golden_compare("oci-least.json", &text);
    buf_clear(&text);
    config.user_path = "/proc/7/fd/9";
    config.first_id = 2000748544;
    config.id_count = 65536;
    config.devices = devices;
    config.device_count = 1;
    config.are_devices_bound = true;
    config.sys_path = "/run/skep/1a2b/sys";
    oci_config_write(&config, &text);
    buf_char(&text, '\n');
    golden_compare("oci-users.json", &text);
    buf_release(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_config_golden),
};
UNIT_FILE(tests, NULL, NULL);
