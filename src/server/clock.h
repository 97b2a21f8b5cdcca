/* clock.h — the two clocks. */
#ifndef SERVER_CLOCK_H
#define SERVER_CLOCK_H
#include <stdint.h>
#include <time.h>

static inline int64_t clock_us(void) /* monotonic */
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static inline int64_t clock_unix_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
