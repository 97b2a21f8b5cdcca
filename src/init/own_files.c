#include "init/own_files.h"

#include "init/log_line.h"

/* A group of version 1 is charged by so much at once: the most that was used is that far below the
 * limit at least when a process was killed for it. */
enum { CHARGED_AT_ONCE = 128 << 10 };

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
    if (memory->events.length > 0) {
        if (field_of(memory->events, "oom_kill") == 0)
            return EXIT_MEMORY_LASTED;
        return field_of(memory->events, "oom") > 0 ? EXIT_MEMORY_LIMIT : EXIT_MEMORY_MACHINE;
    }
    if (field_of(memory->oom_control, "oom_kill") == 0)
        return EXIT_MEMORY_LASTED;
    const int64_t limit = number_of(memory->limit), most = number_of(memory->most);
    /* newer kernels count no failures any more */
    const bool is_limit =
        number_of(memory->failures) > 0 || (limit > 0 && most >= limit - CHARGED_AT_ONCE);
    return is_limit ? EXIT_MEMORY_LIMIT : EXIT_MEMORY_MACHINE;
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
