#include "model/storage.h"
#include "base/arena.h"

void storage_copy(const struct storage *storage, struct arena *arena, struct storage *copy)
{
    *copy = *storage;
    copy->name = arena_copy(arena, text_of(storage->name));
    copy->directory = arena_copy(arena, text_of(storage->directory));
    copy->claim = arena_copy(arena, text_of(storage->claim));
    copy->type = arena_copy(arena, text_of(storage->type));
    copy->server = arena_copy(arena, text_of(storage->server));
    copy->path = arena_copy(arena, text_of(storage->path));
}

struct storage_list storage_list_copy(struct storage_list storages, struct arena *arena)
{
    struct storage *items = ARENA_ARRAY(arena, struct storage, storages.count);
    for (size_t i = 0; i < storages.count; i++)
        storage_copy(&storages.items[i], arena, &items[i]);
    return (struct storage_list){items, storages.count};
}

const struct storage *storage_find(struct storage_list storages, struct text name)
{
    for (size_t i = 0; i < storages.count; i++)
        if (text_is(name, storages.items[i].name))
            return &storages.items[i];
    return NULL;
}
