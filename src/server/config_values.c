#include "server/config_values.h"
#include "base/arena.h"
#include "doc/doc.h"
#include "server/config.h"

void config_string(struct server_config *config, const struct doc *doc, const char *key,
                   const char **value)
{
    const struct doc *found = doc_get(doc, key);
    if (found && found->kind == DOC_STRING)
        *value = arena_copy(&config->arena, found->as.string);
}

uint64_t config_int(const struct doc *doc, const char *key, uint64_t otherwise)
{
    const struct doc *found = doc_get(doc, key);
    return found && found->kind == DOC_INT ? (uint64_t)found->as.integer : otherwise;
}

void config_u32(const struct doc *doc, const char *key, uint32_t *value)
{
    *value = (uint32_t)config_int(doc, key, *value);
}

void config_bool(const struct doc *doc, const char *key, bool *value)
{
    const struct doc *found = doc_get(doc, key);
    if (found && found->kind == DOC_BOOL)
        *value = found->as.boolean;
}

void config_strings(struct server_config *config, const struct doc *doc, const char *key,
                    const char *const **items, size_t *count)
{
    const struct doc *found = doc_get(doc, key);
    if (!found || found->kind != DOC_LIST)
        return;
    const char **list;
    list = arena_array(&config->arena, found->as.list.count, sizeof *list);
    for (size_t i = 0; i < found->as.list.count; i++)
        list[i] = arena_copy(&config->arena, found->as.list.items[i]->as.string);
    *items = list;
    *count = found->as.list.count;
}

int config_choice(const struct doc *doc, const char *key, const char *const *choices, int otherwise)
{
    const struct doc *found = doc_get(doc, key);
    if (found && found->kind == DOC_STRING)
        for (int i = 0; choices[i]; i++)
            if (text_is(found->as.string, choices[i]))
                return i;
    return otherwise;
}
