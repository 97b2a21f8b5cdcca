#include "init/own_files.h"

#include "init/log_line.h"

/* A pod has the limit of its container, and holds more: the container that keeps its namespaces, a
 * runtime's monitor, files that its first container has read. When all of it reaches the limit, a
 * process is killed though its own group, by so much at most, has not. */
enum { USED_BESIDE_BYTES = 16 << 20 };

static int64_t number_of(struct text text)
{
    int64_t number;
    return text_to_int64(text_cut(&text, '\n'), &number) ? number : 0;
}

/* The number of a line "KEY NUMBER". */
static int64_t field_of(struct text lines, const char *key)
{
    while (lines.length > 0) {
        struct text line = text_cut(&lines, '\n');
        if (text_is(text_cut(&line, ' '), key))
            return number_of(line);
    }
    return 0;
}

enum exit_memory own_memory_judge(const struct own_memory *memory)
{
    const bool is_v2 = memory->events.length > 0;
    if (field_of(is_v2 ? memory->events : memory->oom_control, "oom_kill") == 0)
        return EXIT_MEMORY_LASTED;
    /* what the group itself had to refuse; newer kernels with version 1 do not always count it */
    if ((is_v2 ? field_of(memory->events, "oom") : number_of(memory->failures)) > 0)
        return EXIT_MEMORY_LIMIT;
    const int64_t limit = number_of(memory->limit);
    const int64_t most = memory->most.length > 0 ? number_of(memory->most) : limit;
    return limit > 0 && most >= limit - USED_BESIDE_BYTES ? EXIT_MEMORY_LIMIT : EXIT_MEMORY_MACHINE;
}

/* The sum of what stands behind `word` in all lines: "rbytes=1 wbytes=2" with '=', "8:0 Read 1". */
static uint64_t sum_of(struct text lines, const char *word, char separator)
{
    uint64_t sum = 0;
    while (lines.length > 0) {
        struct text line = text_cut(&lines, '\n');
        for (bool is_found = false; line.length > 0;) {
            struct text part = text_cut(&line, ' ');
            struct text name = separator == '=' ? text_cut(&part, '=') : part;
            const bool is_number = separator == '=' ? text_is(name, word) : is_found;
            sum += is_number ? (uint64_t)number_of(part) : 0;
            is_found = text_is(name, word);
        }
    }
    return sum;
}

bool own_use_read(const struct own_use *own, struct log_line_use *use)
{
    *use = (struct log_line_use){0};
    if (own->memory.length == 0 && own->memory_v1.length == 0)
        return false;
    if (own->memory.length > 0) {
        use->cpu_ns = (uint64_t)field_of(own->cpu_stat, "usage_usec") * 1000;
        use->memory_bytes = (uint64_t)number_of(own->memory);
        use->read_bytes = sum_of(own->io, "rbytes", '=');
        use->written_bytes = sum_of(own->io, "wbytes", '=');
        use->pids = (uint64_t)number_of(own->pids);
        return true;
    }
    use->cpu_ns = (uint64_t)number_of(own->cpuacct);
    use->memory_bytes = (uint64_t)number_of(own->memory_v1);
    use->read_bytes = sum_of(own->blkio, "Read", ' ');
    use->written_bytes = sum_of(own->blkio, "Write", ' ');
    use->pids = (uint64_t)number_of(own->pids_v1);
    return true;
}
