#include "cli/job_file.h"
#include "base/arena.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "doc/doc.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_DIGITS_MAX = 9 };

/* The tree in which the file has a name, as JSON with comments or as YAML; NULL: neither has. */
static const struct doc *name_find(struct text source, struct arena *arena)
{
    static const enum doc_format formats[] = {DOC_JSON_COMMENTS, DOC_YAML};
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        cleanup_problems struct problems problems;
        problems_init(&problems, arena);
        const struct doc *root = doc_parse(source, formats[i], arena, &problems);
        const struct doc *name = doc_get_kind(root, "jobName", DOC_STRING);
        if (!name)
            name = doc_get_kind(root, "name", DOC_STRING);
        if (problems.error_count == 0 && name)
            return name;
    }
    return NULL;
}

static void name_next(struct text name, struct buf *out)
{
    size_t digits = 0;
    while (digits < name.length && isdigit((unsigned char)name.at[name.length - digits - 1]))
        digits++;
    const size_t head = name.length - digits;
    const bool is_numbered =
        digits > 0 && digits <= NUMBER_DIGITS_MAX && head > 0 && name.at[head - 1] == '_';
    buf_add(out, name.at, is_numbered ? head : name.length);
    if (!is_numbered)
        buf_string(out, "_2");
    else
        buf_format(out, "%ld", strtol(name.at + head, NULL, 10) + 1);
}

bool job_file_rename(struct text source, const char *name, struct buf *out)
{
    cleanup_buf struct buf next = BUF_INIT;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    const struct doc *old = name_find(source, &arena);
    if (!old)
        return false;
    if (!name)
        name_next(old->as.string, &next);
    const size_t begin = doc_offset(source, old->place);
    size_t end = doc_offset(source, old->end);
    while (end > begin && isspace((unsigned char)source.at[end - 1]))
        end--;
    buf_add(out, source.at, begin);
    struct json_writer json; /* what JSON writes YAML reads as well */
    json_init(&json, out);
    json_string(&json, name ? name : buf_cstr(&next));
    buf_add(out, source.at + end, source.length - end);
    return true;
}
