/* the storages that are offered at this moment */
#include "server/state.h"

struct storage_list server_storages(void *context, struct arena *arena)
{
    struct server *server = context;
    pthread_rwlock_rdlock(&server->rules_lock);
    struct storage_list copy = storage_list_copy(server->storages.list, arena);
    pthread_rwlock_unlock(&server->rules_lock);
    return copy;
}

bool server_has_user_folders(struct server *server)
{
    bool has_folders = false;
    pthread_rwlock_rdlock(&server->rules_lock);
    for (size_t i = 0; i < server->storages.list.count; i++)
        has_folders = has_folders || !server->storages.list.items[i].is_shared;
    pthread_rwlock_unlock(&server->rules_lock);
    return has_folders;
}

const struct storage *server_storage(void *context, struct text name, struct arena *arena)
{
    struct server *server = context;
    struct storage *copy = NULL;
    pthread_rwlock_rdlock(&server->rules_lock);
    const struct storage *found = storage_find(server->storages.list, name);
    if (found) {
        copy = ARENA_NEW(arena, struct storage);
        storage_copy(found, arena, copy);
    }
    pthread_rwlock_unlock(&server->rules_lock);
    return copy;
}

void server_storages_keep(struct server *server)
{
    struct arena arena;
    arena_init(&arena);
    const struct storage_list list = storage_list_copy(server->config->storages, &arena);
    pthread_rwlock_wrlock(&server->rules_lock);
    struct arena old = server->storages.arena;
    server->storages.arena = arena;
    server->storages.list = list;
    pthread_rwlock_unlock(&server->rules_lock);
    arena_release(&old);
    pthread_mutex_lock(&server->watch_lock);
    for (struct service_watch *watch = server->watches; watch; watch = watch->next)
        if (watch->storages)
            watch->storages(watch->context);
    pthread_mutex_unlock(&server->watch_lock);
}
