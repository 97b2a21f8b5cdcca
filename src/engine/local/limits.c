#include "engine/local/limits.h"
#include "base/buf.h"
#include "engine/local/cgroup.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    PIDS_DEFAULT = 32768, /* the kernel's own, where /proc does not say */
    HIGH_PART = 64,
    HIGH_GAP_MIB_MAX = 32,
    IO_WEIGHT_OF_CPU = 10,
};

/* --- figures --- */

static uint64_t number_of_file(const char *path, uint64_t otherwise)
{
    cleanup_buf struct buf text = BUF_INIT;
    int64_t value;
    if (file_read(path, 64, &text, NULL) < 0 ||
        !text_to_int64(text_trim(buf_as_text(&text)), &value) || value <= 0)
        return otherwise;
    return (uint64_t)value;
}

uint64_t limit_pids_machine(void)
{
    const uint64_t pids = number_of_file("/proc/sys/kernel/pid_max", PIDS_DEFAULT);
    const uint64_t threads = number_of_file("/proc/sys/kernel/threads-max", PIDS_DEFAULT);
    return pids < threads ? pids : threads;
}

uint64_t limit_pids(uint64_t machine_pids, uint32_t machine_cpu, uint32_t cpu)
{
    const uint64_t half = machine_pids / 2;
    const bool is_whole = cpu == 0 || cpu >= machine_cpu;
    uint64_t share = is_whole ? half : half / machine_cpu * cpu;
    if (share < LIMIT_PIDS_MIN)
        share = LIMIT_PIDS_MIN;
    return share < LIMIT_PIDS_MAX ? share : LIMIT_PIDS_MAX;
}

uint64_t limit_memory_high(uint64_t memory_mib)
{
    const uint64_t bytes = memory_mib << 20, most = (uint64_t)HIGH_GAP_MIB_MAX << 20;
    const uint64_t gap = bytes / HIGH_PART;
    return bytes - (gap < most ? gap : most);
}

uint32_t limit_io_weight(uint32_t cpu)
{
    if (cpu == 0 || cpu > LIMIT_IO_WEIGHT_MAX / IO_WEIGHT_OF_CPU)
        return LIMIT_IO_WEIGHT_MAX;
    return cpu * IO_WEIGHT_OF_CPU;
}

/* --- control groups --- */

/* False: the kernel has no such file for this group. */
static bool group_put(const struct cgroup_layout *layout, const char *controller, const char *group,
                      const char *name, uint64_t value)
{
    char path[CGROUP_PATH_MAX], file[CGROUP_PATH_MAX + 40], text[24];
    if (!cgroup_path(layout, controller, group, path))
        return false;
    snprintf(file, sizeof file, "%s/%s", path, name);
    cleanup_close int fd = open(file, O_WRONLY | O_CLOEXEC);
    const int length = snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return fd >= 0 && write(fd, text, (size_t)length) == length;
}

void limits_set(const struct cgroup_layout *layout, const char *group, uint64_t memory_mib,
                uint32_t cpu)
{
    /* of the scheduler BFQ, of io.cost or CFQ: a kernel has one of them, or none */
    static const char *const v1[] = {"blkio.bfq.weight", "blkio.weight"}, *const v2[] = {
                                                                              "io.bfq.weight",
                                                                              "io.weight"};
    const bool is_v2 = layout->kind == CGROUP_V2;
    for (int i = 0; i < 2; i++)
        group_put(layout, "blkio", group, (is_v2 ? v2 : v1)[i], limit_io_weight(cpu));
    if (is_v2 && memory_mib)
        group_put(layout, "memory", group, "memory.high", limit_memory_high(memory_mib));
}

uint64_t limit_pids_refused(const struct cgroup_layout *layout, const char *group)
{
    char path[CGROUP_PATH_MAX], file[CGROUP_PATH_MAX + 40];
    cleanup_buf struct buf text = BUF_INIT;
    if (!cgroup_path(layout, "pids", group, path))
        return 0;
    snprintf(file, sizeof file, "%s/pids.events", path);
    file_read(file, 4096, &text, NULL);
    struct text left = buf_as_text(&text);
    while (left.length > 0) {
        struct text line = text_cut(&left, '\n');
        int64_t value;
        if (text_is(text_cut(&line, ' '), "max") && text_to_int64(text_trim(line), &value))
            return value > 0 ? (uint64_t)value : 0;
    }
    return 0;
}

bool limit_can_raise(void)
{
    static atomic_int answer; /* 0: not asked yet */
    if (atomic_load(&answer) == 0) {
        cleanup_file FILE *status = fopen("/proc/self/status", "re");
        char line[256];
        unsigned long long effective = 0;
        while (status && fgets(line, sizeof line, status))
            sscanf(line, "CapEff: %llx", &effective);
        atomic_store(&answer, effective & (1ull << 24) ? 1 : -1); /* CAP_SYS_RESOURCE */
    }
    return atomic_load(&answer) > 0;
}
