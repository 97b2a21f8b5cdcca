#include "engine/kubernetes/pod_order.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

#include "base/memory.h"

/* A file that is smaller costs less than to look for it. */
enum { SHARED_MIN = 512 };

struct pod_shared {
    uint64_t hash;
    uint32_t at; /* in all.items */
    uint32_t users;
    size_t length;
    char bytes[];
};

/* --- shared files --- */

static struct pod_shared *shared_take(struct pod_shares *shares, struct text content)
{
    const uint64_t hash = text_hash(content, 0);
    const uint32_t at = id_map_get(&shares->by_hash, hash);
    if (at != MAP_NONE) {
        struct pod_shared *known = shares->all.items[at];
        if (known->length != content.length ||
            memcmp(known->bytes, content.at, content.length) != 0)
            return NULL; /* another one of the same hash: this one is the order's own */
        known->users++;
        return known;
    }
    struct pod_shared *shared = mem_alloc(sizeof *shared + content.length);
    *shared = (struct pod_shared){
        .hash = hash, .at = (uint32_t)shares->all.count, .users = 1, .length = content.length};
    memcpy(shared->bytes, content.at, content.length);
    id_map_set(&shares->by_hash, hash, shared->at);
    *ARRAY_ADD(&shares->all) = shared;
    return shared;
}

static void shared_leave(struct pod_shares *shares, struct pod_shared *shared)
{
    assert(shared->users > 0);
    if (--shared->users > 0)
        return;
    struct pod_shared *last = shares->all.items[--shares->all.count];
    shares->all.items[shared->at] = last;
    last->at = shared->at;
    id_map_set(&shares->by_hash, last->hash, last->at);
    id_map_remove(&shares->by_hash, shared->hash);
    explicit_bzero(shared->bytes, shared->length);
    mem_free(shared);
}

void pod_shares_release(struct pod_shares *shares)
{
    assert(shares->all.count == 0);
    ARRAY_FREE(&shares->all);
    id_map_release(&shares->by_hash);
}

/* --- one block --- */

/* Where the next copy goes; without a block only its size is counted. */
struct copy_place {
    char *at;
    size_t used;
};

static void *put(struct copy_place *place, const void *bytes, size_t size, size_t alignment)
{
    place->used = (place->used + alignment - 1) / alignment * alignment;
    char *at = place->at ? place->at + place->used : NULL;
    if (at && size > 0)
        memcpy(at, bytes, size);
    place->used += size;
    return at;
}

static const char *word_put(struct copy_place *place, const char *word)
{
    return word ? put(place, word, strlen(word) + 1, 1) : NULL;
}

static void files_put(struct copy_place *place, const struct container *from, struct pod_order *to,
                      struct pod_shared *const *shared)
{
    struct engine_file *files =
        put(place, from->files, from->file_count * sizeof *files, alignof(struct engine_file));
    struct pod_shared **users =
        put(place, shared, from->file_count * sizeof(struct pod_shared *), alignof(void *));
    for (size_t i = 0; i < from->file_count; i++) {
        const char *name = word_put(place, from->files[i].name);
        const char *content =
            shared[i] ? shared[i]->bytes
                      : put(place, from->files[i].content.at, from->files[i].content.length, 1);
        if (files) {
            files[i].name = name;
            files[i].content.at = content;
        }
    }
    to->container.files = files;
    to->shared = users;
}

static void mounts_put(struct copy_place *place, const struct container *from, struct container *to)
{
    struct engine_mount *mounts =
        put(place, from->mounts, from->mount_count * sizeof *mounts, alignof(struct engine_mount));
    for (size_t i = 0; i < from->mount_count; i++) {
        const char *source = word_put(place, from->mounts[i].source);
        const char *target = word_put(place, from->mounts[i].target);
        const char *claim = word_put(place, from->mounts[i].claim);
        const char *folder = word_put(place, from->mounts[i].claim_folder);
        if (mounts) {
            mounts[i].source = source;
            mounts[i].target = target;
            mounts[i].claim = claim;
            mounts[i].claim_folder = folder;
        }
    }
    to->mounts = mounts;
}

/* All that a container points to; `order` is the begin of the block. */
static void order_put(struct copy_place *place, const struct container *from,
                      struct pod_order *order, struct pod_shared *const *shared)
{
    struct container *to = &order->container;
    const struct {
        const char *from, **to;
    } words[] = {
        {from->job, &to->job},
        {from->role, &to->role},
        {from->virtual_cluster, &to->virtual_cluster},
        {from->node, &to->node},
        {from->image, &to->image},
        {from->registry_user, &to->registry_user},
        {from->registry_password, &to->registry_password},
    };
    *to = *from;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        *words[i].to = word_put(place, words[i].from);
    to->gpus = put(place, from->gpus, from->gpu_count * sizeof *from->gpus, alignof(uint16_t));
    to->ports = put(place, from->ports, from->port_count * sizeof *from->ports,
                    alignof(struct engine_port));
    mounts_put(place, from, to);
    files_put(place, from, order, shared);
}

struct pod_order *pod_order_new(const struct container *container, struct pod_shares *shares)
{
    /* order_put copies what a container points to: a new pointer must be copied there as well */
    _Static_assert(sizeof(struct container) == 168 && sizeof(struct engine_mount) == 40 &&
                       sizeof(struct engine_file) == 32 && sizeof(struct engine_port) == 4,
                   "look whether order_put copies all of it");
    struct pod_order counted;
    struct copy_place place = {NULL, sizeof counted};
    struct pod_shared **shared = mem_zero(container->file_count + 1, sizeof(struct pod_shared *));
    for (size_t i = 0; i < container->file_count; i++)
        if (container->files[i].content.length >= SHARED_MIN)
            shared[i] = shared_take(shares, container->files[i].content);
    order_put(&place, container, &counted, shared);
    struct pod_order *order = mem_alloc(place.used);
    order->bytes = place.used;
    place = (struct copy_place){(char *)order, sizeof *order};
    order_put(&place, container, order, shared);
    assert(place.used == order->bytes);
    mem_free(shared);
    return order;
}

void pod_order_free(struct pod_order *order, struct pod_shares *shares)
{
    if (!order)
        return;
    for (size_t i = 0; i < order->container.file_count; i++)
        if (order->shared[i])
            shared_leave(shares, order->shared[i]);
    explicit_bzero(order, order->bytes);
    mem_free(order);
}
