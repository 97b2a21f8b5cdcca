#include "sys/ids.h"
#include "base/buf.h"
#include "base/memory.h"
#include "sys/file.h"
#include <assert.h>
#include <stdio.h>

enum { FILE_BYTES = 16 << 20 };

static const struct id_file {
    const char *name;
    bool is_of_ranges; /* NAME:FIRST:COUNT; else NAME:PASSWORD:ID: */
} files[] = {{"passwd", false}, {"group", false}, {"subuid", true}, {"subgid", true}};

/* The ids of a line; false: it has none. */
static bool line_read(struct text line, bool is_of_ranges, struct text *name, uint64_t *first,
                      uint64_t *end)
{
    int64_t id, count = 1;
    *name = text_cut(&line, ':');
    if (!is_of_ranges)
        text_cut(&line, ':');
    const struct text number = text_cut(&line, ':');
    if (!text_to_int64(number, &id) || id < 0 || id > UINT32_MAX)
        return false;
    if (is_of_ranges && (!text_to_int64(text_trim(line), &count) || count < 0))
        return false;
    *first = (uint64_t)id;
    *end = (uint64_t)id + (uint64_t)count;
    return true;
}

bool ids_holder(const char *folder, uint32_t first, uint64_t end, char *holder, size_t size)
{
    assert(first < end);
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        char path[512];
        cleanup_buf struct buf text = BUF_INIT;
        snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        file_read(path, FILE_BYTES, &text, NULL);
        for (struct text rest = buf_as_text(&text); rest.length > 0;) {
            struct text name;
            uint64_t low, high;
            const struct text line = text_cut(&rest, '\n');
            if (!line_read(line, files[i].is_of_ranges, &name, &low, &high) || low >= end ||
                high <= first)
                continue;
            snprintf(holder, size, "%.*s in %s", TEXT_ARG(name), path);
            return true;
        }
    }
    return false;
}
