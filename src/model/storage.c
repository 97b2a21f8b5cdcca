#include "model/storage.h"

const struct storage *storage_find(struct storage_list storages, struct text name)
{
    for (size_t i = 0; i < storages.count; i++)
        if (text_is(name, storages.items[i].name))
            return &storages.items[i];
    return NULL;
}
