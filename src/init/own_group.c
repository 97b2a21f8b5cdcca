#include "init/own_group.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "init/log_line.h"
#include "init/own_files.h"

enum { FILE_BYTES = 4096, PATH_BYTES = 512 };

struct group_bytes {
    char bytes[FILE_BYTES];
};

/* The begin of a file; "" where there is none. */
static struct text file_text(const char *root, const char *name, struct group_bytes *file)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%.300s/../sys/fs/cgroup/%s", root, name);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, file->bytes, sizeof file->bytes);
    if (fd >= 0)
        close(fd);
    return (struct text){file->bytes, got > 0 ? (size_t)got : 0};
}

enum exit_memory own_group_memory(const char *root)
{
    struct group_bytes files[5];
    const struct text events = file_text(root, "memory.events", &files[0]);
    const bool is_v2 = events.length > 0;
    const struct own_memory memory = {
        .events = events,
        .oom_control = file_text(root, "memory/memory.oom_control", &files[1]),
        .failures = file_text(root, "memory/memory.failcnt", &files[2]),
        .limit = file_text(root, is_v2 ? "memory.max" : "memory/memory.limit_in_bytes", &files[3]),
        .most =
            file_text(root, is_v2 ? "memory.peak" : "memory/memory.max_usage_in_bytes", &files[4]),
    };
    return own_memory_judge(&memory);
}

bool own_group_use(const char *root, struct log_line_use *use)
{
    struct group_bytes files[9];
    const struct own_use own = {
        .cpu_stat = file_text(root, "cpu.stat", &files[0]),
        .memory = file_text(root, "memory.current", &files[1]),
        .io = file_text(root, "io.stat", &files[2]),
        .pids = file_text(root, "pids.current", &files[3]),
        .cpuacct = file_text(root, "cpuacct/cpuacct.usage", &files[4]),
        .memory_v1 = file_text(root, "memory/memory.usage_in_bytes", &files[5]),
        .blkio = file_text(root, "blkio/blkio.throttle.io_service_bytes_recursive", &files[6]),
        .pids_v1 = file_text(root, "pids/pids.current", &files[7]),
    };
    return own_use_read(&own, use);
}
