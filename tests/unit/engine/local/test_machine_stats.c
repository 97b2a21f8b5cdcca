/* What a machine uses, by files of the kernel as they look; and of this machine, that it moves. */
#include "unit.h"

#include "base/err.h"
#include "engine/engine.h"
#include "engine/local/machine_stats.h"
#include "sys/file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char root[] = "/tmp/skep-machine-stats-XXXXXX";

static void put(const char *path, const char *content)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", root, path);
    *strrchr(full, '/') = 0;
    assert_int_equal(dir_make(full, 0755, NULL), 0);
    full[strlen(full)] = '/';
    assert_int_equal(file_write(full, text_of(content), 0644, NULL), 0);
}

static int machine_make(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(root));
    put("proc/stat", "cpu  100 20 30 9000 400 5 6 7 50 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
    put("proc/meminfo", "MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    400 kB\n");
    put("proc/diskstats", " 254 0 vda 10 0 2000 5 20 0 4000 9 0 0 0 0 0 0 0\n"
                          " 254 1 vda1 10 0 2000 5 20 0 4000 9 0 0 0 0 0 0 0\n"
                          " 7 0 loop0 10 0 2000 5 20 0 4000 9 0 0 0 0 0 0 0\n"
                          "half a line\n");
    put("proc/net/dev", "Inter-|   Receive | Transmit\n face |bytes packets |bytes\n"
                        "    lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0\n"
                        "  eth0: 300 1 0 0 0 0 0 0 70 1 0 0 0 0 0 0\n"
                        "veth12:5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0\n");
    put("sys/block/vda/device/x", "");
    put("sys/class/net/eth0/device/x", "");
    return 0;
}

static int machine_drop(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static void test_files(void **state)
{
    (void)state;
    struct engine_stats stats;
    uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    machine_stats(root, &stats);
    assert_int_equal(stats.cpu_ns, 168 * tick_ns); /* neither idle nor guests */
    assert_int_equal(stats.memory_bytes, 600 << 10);
    assert_int_equal(stats.io_read_bytes, 2000 * 512);
    assert_int_equal(stats.io_write_bytes, 4000 * 512);
    assert_int_equal(stats.received_bytes, 300);
    assert_int_equal(stats.sent_bytes, 70);
    assert_int_equal(stats.network_tasks, 1);
}

static void test_nothing(void **state)
{
    (void)state;
    struct engine_stats stats;
    machine_stats("/nowhere", &stats);
    assert_int_equal(stats.cpu_ns + stats.memory_bytes + stats.io_read_bytes + stats.sent_bytes, 0);
    assert_int_equal(stats.network_tasks, 0);
}

/* A processor that works is seen within two of the kernel's ticks. */
static void test_this_machine(void **state)
{
    (void)state;
    struct engine_stats before, now;
    struct timespec used;
    machine_stats("", &before);
    assert_true(before.memory_bytes > 1 << 20);
    do {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
        machine_stats("", &now);
    } while (now.cpu_ns == before.cpu_ns && used.tv_sec < 20);
    assert_true(now.cpu_ns > before.cpu_ns);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_files),
    cmocka_unit_test(test_nothing),
    cmocka_unit_test(test_this_machine),
};
UNIT_FILE(tests, machine_make, machine_drop);
