/* random.h — a deterministic generator (splitmix64), for simulations, tests and jitter.
 *
 * Pure: the seed arrives as data. Never for secrets: those come from libsodium at the edges.
 */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H
#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline uint64_t random_next(struct random *random)
{
    return random_mix(random->state += 0x9e3779b97f4a7c15u);
}

/* 0 … limit - 1; limit > 0. The modulo's bias is below 2^-32 for limits below 2^32. */
static inline uint64_t random_below(struct random *random, uint64_t limit)
{
    return random_next(random) % limit;
}

#endif
