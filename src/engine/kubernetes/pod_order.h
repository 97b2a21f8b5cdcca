/* pod_order.h — what a pod and its secret will be made of, until it is their turn.
 *
 * Pure. Thousands of attempts can be asked for at once, and written down each pod has some KiB,
 * each secret the whole table of its job's tasks: so an order keeps what they are made of, and
 * files that several attempts have are kept once. All of it is wiped when it is freed: it holds
 * secrets.
 */
#ifndef ENGINE_KUBERNETES_POD_ORDER_H
#define ENGINE_KUBERNETES_POD_ORDER_H
#include "base/map.h"
#include "engine/engine.h"

struct pod_shared;

/* The files that orders share. A zeroed one is empty. */
struct pod_shares {
    struct {
        struct pod_shared **items;
        size_t count, room;
    } all;
    struct id_map by_hash;
};

struct pod_order {
    struct container container; /* a copy of all of it */
    struct pod_shared **shared; /* of each of its files; NULL: it is the order's own */
    size_t bytes;
};

struct pod_order *pod_order_new(const struct container *container, struct pod_shares *shares);
void pod_order_free(struct pod_order *order, struct pod_shares *shares); /* NULL is fine */
/* All orders have been freed. */
void pod_shares_release(struct pod_shares *shares);

#endif
