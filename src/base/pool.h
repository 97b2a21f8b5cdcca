/* pool.h — objects of one size, in blocks of many.
 *
 * Pure. For small objects that live long, made while much comes and goes around them: each alone
 * would keep the page that it stands in, of which malloc could otherwise give the rest back. A pool
 * frees a block when nothing is left in it, but keeps one.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H
#include <stddef.h>

struct pool_block;

struct pool {
    size_t size;              /* of an object, in bytes; set before the first one is taken */
    struct pool_block *roomy; /* blocks that have a free place */
    size_t blocks;
};

/* Zeroed, at an address that is a multiple of 8. */
void *pool_take(struct pool *pool);
void pool_give(struct pool *pool, void *object); /* it is free; NULL is fine */
/* All have been given back. The pool is empty and usable again. */
void pool_release(struct pool *pool);

#endif
