#include "init/address_file.h"

#include <assert.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define LAST_LINE ".\n"

void address_file_write(const struct address_file *file, struct buf *out)
{
    for (size_t i = 0; i < file->count; i++) {
        const struct address_file_task *task = &file->tasks[i];
        assert(task->address[0] && !strpbrk(task->address, " \n"));
        buf_format(out, "%u %u %s\n", task->role, task->index, task->address);
    }
    buf_string(out, LAST_LINE);
}

static size_t lines_count(struct text bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes.length; i++)
        count += bytes.at[i] == '\n';
    return count;
}

bool address_file_is_whole(struct text bytes)
{
    const size_t length = strlen(LAST_LINE);
    return bytes.length >= length &&
           memcmp(bytes.at + bytes.length - length, LAST_LINE, length) == 0 &&
           (bytes.length == length || bytes.at[bytes.length - length - 1] == '\n');
}

static bool number_read(struct text word, uint32_t *number)
{
    int64_t value;
    if (!text_to_int64(word, &value) || value < 0 || value > UINT32_MAX)
        return false;
    *number = (uint32_t)value;
    return true;
}

static bool line_read(struct text line, struct arena *arena, struct address_file_task *task)
{
    const struct text role = text_cut(&line, ' '), index = text_cut(&line, ' ');
    if (!number_read(role, &task->role) || !number_read(index, &task->index) || !line.at ||
        line.length == 0 || memchr(line.at, 0, line.length) || memchr(line.at, ' ', line.length))
        return false;
    task->address = arena_copy(arena, line);
    return true;
}

int address_file_read(struct text bytes, struct arena *arena, struct address_file *file,
                      struct err *err)
{
    *file = (struct address_file){0};
    if (!address_file_is_whole(bytes))
        return err_fail(err, ERR_CORRUPT, "", "the addresses of the job's tasks are not whole");
    const size_t count = lines_count(bytes) - 1;
    struct address_file_task *tasks = ARENA_ARRAY(arena, struct address_file_task, count + 1);
    for (size_t i = 0; i < count; i++)
        if (!line_read(text_cut(&bytes, '\n'), arena, &tasks[i]))
            return err_fail(err, ERR_CORRUPT, "",
                            "line %zu of the addresses of the job's tasks is none", i + 1);
    file->tasks = tasks;
    file->count = count;
    return 0;
}
