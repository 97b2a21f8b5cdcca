#include "engine/local/machine_stats.h"
#include "base/buf.h"
#include "engine/engine.h"
#include "sys/file.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROC_FILE_MAX = 4 << 20, SECTOR_BYTES = 512 };

/* Time that no processor had work: idle, and idle while a disk works. */
static bool is_idle_column(size_t column)
{
    return column == 3 || column == 4;
}

/* The first line, "cpu" and ten columns; of these the last two, guests, are within the first two.
 */
static uint64_t cpu_ns_read(struct text stat)
{
    uint64_t ticks = 0;
    struct text line = text_cut(&stat, '\n');
    long ticks_a_second = sysconf(_SC_CLK_TCK);
    if (line.length < 4 || memcmp(line.at, "cpu ", 4) != 0 || ticks_a_second <= 0)
        return 0;
    const char *at = line.at + 4;
    for (size_t column = 0; column < 8; column++) {
        char *end;
        uint64_t value = strtoull(at, &end, 10);
        at = end;
        if (!is_idle_column(column))
            ticks += value;
    }
    return ticks * (1000000000u / (uint64_t)ticks_a_second);
}

static uint64_t kib_after(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static bool has_device(const char *root, const char *kind, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/sys/%s/%s/device", root, kind, name);
    return access(path, F_OK) == 0;
}

/* "MAJOR MINOR NAME READS MERGED SECTORS MS WRITES MERGED SECTORS …" */
static void disks_add(const char *root, struct text lines, struct engine_stats *stats)
{
    while (lines.length > 0) {
        struct text line = text_cut(&lines, '\n');
        char text[256], name[64];
        uint64_t read_sectors, written_sectors;
        snprintf(text, sizeof text, "%.*s", TEXT_ARG(line));
        if (sscanf(text, "%*u %*u %63s %*u %*u %" SCNu64 " %*u %*u %*u %" SCNu64, name,
                   &read_sectors, &written_sectors) != 3 ||
            !has_device(root, "block", name))
            continue;
        stats->io_read_bytes += read_sectors * SECTOR_BYTES;
        stats->io_write_bytes += written_sectors * SECTOR_BYTES;
    }
}

/* "  NAME: BYTES PACKETS … (8 columns received) BYTES PACKETS …" */
static void links_add(const char *root, struct text lines, struct engine_stats *stats)
{
    while (lines.length > 0) {
        struct text line = text_cut(&lines, '\n');
        char text[400], name[64];
        uint64_t received, sent;
        snprintf(text, sizeof text, "%.*s", TEXT_ARG(line));
        if (sscanf(text, " %63[^: ]: %" SCNu64 " %*u %*u %*u %*u %*u %*u %*u %" SCNu64, name,
                   &received, &sent) != 3 ||
            !has_device(root, "class/net", name))
            continue;
        stats->received_bytes += received;
        stats->sent_bytes += sent;
        stats->network_tasks = 1;
    }
}

/* "" when it cannot be read. */
static struct text proc_read(const char *root, const char *name, struct buf *file)
{
    char path[512];
    snprintf(path, sizeof path, "%s/proc/%s", root, name);
    file->length = 0;
    if (file_read(path, PROC_FILE_MAX, file, NULL) < 0)
        return TEXT("");
    return buf_as_text(file);
}

void machine_stats(const char *root, struct engine_stats *stats)
{
    cleanup_buf struct buf file = BUF_INIT;
    memset(stats, 0, sizeof *stats);
    stats->cpu_ns = cpu_ns_read(proc_read(root, "stat", &file));
    const char *memory = proc_read(root, "meminfo", &file).at;
    stats->memory_bytes = (kib_after(memory, "MemTotal:") - kib_after(memory, "MemAvailable:"))
                          << 10;
    disks_add(root, proc_read(root, "diskstats", &file), stats);
    links_add(root, proc_read(root, "net/dev", &file), stats);
}
