/* Any bytes as a document: no crash, no leak; a tree without errors survives its JSON form. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "doc/doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void depth_check(const struct doc *doc, unsigned depth)
{
    assert(depth <= DOC_DEPTH_MAX);
    for (size_t i = 0; doc->kind == DOC_LIST && i < doc->as.list.count; i++)
        depth_check(doc->as.list.items[i], depth + 1);
    for (size_t i = 0; doc->kind == DOC_MAP && i < doc->as.map.count; i++)
        depth_check(doc->as.map.entries[i].value, depth + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct arena arena;
    struct problems problems;
    struct buf out = BUF_INIT, json = BUF_INIT;
    struct text source = {(const char *)data + 1, size - 1};
    enum doc_format format = data[0] % 3 == 0   ? DOC_YAML
                             : data[0] % 3 == 1 ? DOC_JSON
                                                : DOC_JSON_COMMENTS;
    arena_init(&arena);
    problems_init(&problems, &arena);
    const struct doc *doc = doc_parse(source, format, &arena, &problems);
    assert(doc || problems.error_count > 0);
    problems_print(&problems, "fuzz", &out);
    if (doc) {
        depth_check(doc, 0);
        assert(doc_offset(source, doc->place) <= source.length);
        if (doc_to_json(doc, 1 << 20, &json) == 0) {
            struct problems again;
            problems_init(&again, &arena);
            const struct doc *copy = doc_parse(buf_as_text(&json), DOC_JSON, &arena, &again);
            assert(copy || json.length > DOC_BYTES_MAX);
            problems_release(&again);
        }
    }
    buf_release(&out);
    buf_release(&json);
    problems_release(&problems);
    arena_release(&arena);
    return 0;
}
