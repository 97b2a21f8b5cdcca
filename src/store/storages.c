/* Which storages a user may have: what the user's groups name in acls.storageConfigs, as in
 * OpenPAI. The first one of each group is one of the user's defaults. */
#include "base/arena.h"
#include "doc/doc.h"
#include "store/read.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int names_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In order, each once. */
static void names_sort(struct store_names *names, const char **items)
{
    size_t kept = 0;
    qsort(items, names->count, sizeof *items, names_compare);
    for (size_t i = 0; i < names->count; i++)
        if (kept == 0 || strcmp(items[kept - 1], items[i]) != 0)
            items[kept++] = items[i];
    *names = (struct store_names){items, kept};
}

/* Each once. `names` has room. */
static void name_add(struct store_names *names, const char **items, const char *name)
{
    assert(names->count == 0 || items);
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(items[i], name) == 0)
            return;
    items[names->count++] = name;
}

static const struct doc *group_list(const char *extension_json, struct arena *arena)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, arena);
    const struct doc *doc = doc_parse(text_of(extension_json), DOC_JSON, arena, &problems);
    return doc_get_list(doc_get_map(doc, "acls"), "storageConfigs");
}

int store_user_storages(struct store_reader *reader, const char *name, struct arena *arena,
                        struct store_storages *storages, struct err *err)
{
    struct store_user user;
    size_t room = 0;
    int code = store_user(reader, text_of(name), arena, &user, err);
    *storages = (struct store_storages){0};
    if (code < 0)
        return code;
    storages->is_admin = user.is_admin || user.is_admin_by_group;
    const struct doc **lists = ARENA_ARRAY(arena, const struct doc *, user.groups.count + 1);
    for (size_t i = 0; code == 0 && i < user.groups.count; i++) {
        struct store_group group;
        code = store_group(reader, text_of(user.groups.items[i].name), arena, &group, NULL, err);
        if (code < 0)
            return code;
        lists[i] = group_list(group.extension_json, arena);
        room += lists[i]->as.list.count;
    }
    const char **names = ARENA_ARRAY(arena, const char *, room + 1);
    const char **defaults = ARENA_ARRAY(arena, const char *, room + 1);
    for (size_t i = 0; i < user.groups.count; i++) {
        bool is_first = true;
        for (size_t j = 0; j < lists[i]->as.list.count; j++) {
            const struct doc *item = lists[i]->as.list.items[j];
            if (item->kind != DOC_STRING)
                continue;
            names[storages->names.count++] = item->as.string.at;
            if (is_first)
                name_add(&storages->defaults, defaults, item->as.string.at);
            is_first = false;
        }
    }
    names_sort(&storages->names, names);
    storages->defaults.items = defaults;
    return 0;
}
