#include "engine/local/document.h"
#include "base/arena.h"
#include "doc/problem.h"

const struct doc *document_read(struct text text, bool is_yaml, struct arena *arena)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, arena);
    const struct doc *doc = doc_parse(text, is_yaml ? DOC_YAML : DOC_JSON, arena, &problems);
    if (problems.error_count)
        doc = NULL;
    return doc;
}

const char *document_string(const struct doc *doc, const char *key)
{
    const struct doc *value = doc_get(doc, key);
    return value && value->kind == DOC_STRING ? value->as.string.at : "";
}

int64_t document_int(const struct doc *doc, const char *key)
{
    const struct doc *value = doc_get(doc, key);
    return value && value->kind == DOC_INT ? value->as.integer : 0;
}

uint16_t document_u16(const struct doc *value)
{
    const bool is_good = value && value->kind == DOC_INT && value->as.integer >= 0 &&
                         value->as.integer <= UINT16_MAX;
    return is_good ? (uint16_t)value->as.integer : 0;
}

bool document_bool(const struct doc *doc, const char *key)
{
    const struct doc *value = doc_get(doc, key);
    return value && value->kind == DOC_BOOL && value->as.boolean;
}

size_t document_count(const struct doc *doc)
{
    return doc && doc->kind == DOC_LIST ? doc->as.list.count : 0;
}

const char *const *document_strings(const struct doc *doc, const char *key, struct arena *arena,
                                    size_t *count)
{
    const struct doc *list = doc_get(doc, key);
    size_t items = document_count(list);
    const char **strings = ARENA_ARRAY(arena, const char *, items);
    *count = 0;
    for (size_t i = 0; i < items; i++)
        if (list->as.list.items[i]->kind == DOC_STRING)
            strings[(*count)++] = list->as.list.items[i]->as.string.at;
    return strings;
}
