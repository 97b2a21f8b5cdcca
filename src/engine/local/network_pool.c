#include "engine/local/network_pool.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/network_link.h"
#include "sys/log.h"
#include <assert.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { READY_MAX = 8, READY_LOW = READY_MAX / 2 };

struct network_pool {
    struct network_space *space;
    struct netlink route; /* of the thread alone */
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t has_work;
    bool is_filling, is_over;
    struct network_made ready[READY_MAX];
    size_t count;
};

/* --- one network --- */

void network_link_name(const struct network_space *space, uint32_t address, char name[IFNAMSIZ])
{
    snprintf(name, IFNAMSIZ, "skep%x", address - space->first);
}

/* The kernel says which addresses are free: it has the links of other engines as well. */
static int link_find(struct network_space *space, struct netlink *route, struct netlink *inside,
                     uint32_t *address, struct err *err)
{
    for (uint32_t tries = 0; tries < space->count; tries++) {
        struct network_link link = {.gateway = space->first + 1,
                                    .address = space->first + 2 + space->next++ % space->count,
                                    .group = space->group};
        network_link_name(space, link.address, link.name);
        int code = network_link_make(&link, route, inside, space->host_fd, err);
        *address = link.address;
        if (code != 0)
            return code;
    }
    return err_fail(err, ERR_TOO_BIG, "", "all %u addresses of %s are in use", space->count,
                    space->subnet);
}

int network_make(struct network_space *space, struct netlink *route, struct network_made *made,
                 struct err *err)
{
    struct netlink inside = {.fd = -1};
    made->namespace_fd = -1;
    int code = network_namespace_make(space->host_fd, &made->namespace_fd, &inside, err);
    if (code == 0)
        code = link_find(space, route, &inside, &made->address, err);
    netlink_close(&inside);
    if (code > 0) {
        made->link = code;
        return 0;
    }
    if (made->namespace_fd >= 0)
        close(made->namespace_fd);
    return code;
}

/* --- those made ahead of time --- */

static void *pool_run(void *context)
{
    struct network_pool *pool = context;
    pthread_mutex_lock(&pool->lock);
    while (!pool->is_over) {
        struct network_made made;
        struct err err = {0};
        if (!pool->is_filling) {
            pthread_cond_wait(&pool->has_work, &pool->lock);
            continue;
        }
        pthread_mutex_unlock(&pool->lock);
        const int code = network_make(pool->space, &pool->route, &made, &err);
        if (code < 0)
            log_warning("engine", "a network ahead of its job: %s", err.text);
        pthread_mutex_lock(&pool->lock);
        assert(pool->count < READY_MAX);
        if (code == 0)
            pool->ready[pool->count++] = made;
        if (code < 0 || pool->count == READY_MAX)
            pool->is_filling = false; /* until the next one is wanted */
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

int network_pool_new(struct network_space *space, struct network_pool **out, struct err *err)
{
    struct network_pool *pool = mem_zero(1, sizeof *pool);
    pool->space = space;
    pool->is_filling = true;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->has_work, NULL);
    int code = netlink_open(&pool->route, NETLINK_ROUTE, err);
    if (code == 0) {
        const int number = pthread_create(&pool->thread, NULL, pool_run, pool);
        pool->has_thread = number == 0;
        if (number != 0)
            code = err_errno(err, number, "start a thread");
    }
    if (code < 0) {
        network_pool_free(pool);
        return code;
    }
    *out = pool;
    return 0;
}

void network_pool_free(struct network_pool *pool)
{
    struct err err = {0};
    if (!pool)
        return;
    if (pool->has_thread) {
        pthread_mutex_lock(&pool->lock);
        pool->is_over = true;
        pthread_cond_signal(&pool->has_work);
        pthread_mutex_unlock(&pool->lock);
        pthread_join(pool->thread, NULL);
    }
    for (size_t i = 0; i < pool->count; i++) {
        if (network_link_drop(&pool->route, pool->ready[i].link, &err) < 0)
            log_warning("engine", "%s", err.text);
        close(pool->ready[i].namespace_fd);
    }
    netlink_close(&pool->route);
    pthread_cond_destroy(&pool->has_work);
    pthread_mutex_destroy(&pool->lock);
    mem_free(pool);
}

bool network_pool_take(struct network_pool *pool, struct network_made *made)
{
    pthread_mutex_lock(&pool->lock);
    const bool is_there = pool->count > 0;
    if (is_there)
        *made = pool->ready[--pool->count];
    if (pool->count <= READY_LOW && !pool->is_filling) {
        pool->is_filling = true;
        pthread_cond_signal(&pool->has_work);
    }
    pthread_mutex_unlock(&pool->lock);
    return is_there;
}
