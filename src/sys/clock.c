/* clock.c — see clock.h. */
#include "sys/clock.h"
#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { MS_PER_S = 1000, US_PER_S = 1000 * 1000, NS_PER_US = 1000, NS_PER_MS = 1000 * 1000 };

static int64_t clock_ms(clockid_t which)
{
    struct timespec now;
    clock_gettime(which, &now);
    return (int64_t)now.tv_sec * MS_PER_S + now.tv_nsec / NS_PER_MS;
}

int64_t clock_monotonic_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / NS_PER_US;
}

int64_t clock_monotonic_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

int64_t clock_boot_ms(void)
{
    return clock_ms(CLOCK_BOOTTIME);
}

int64_t clock_unix_ms(void)
{
    return clock_ms(CLOCK_REALTIME);
}

void clock_boot_id(char id[CLOCK_BOOT_ID_MAX])
{
    ssize_t length = -1;
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        length = read(fd, id, CLOCK_BOOT_ID_MAX - 1);
        close(fd);
    }
    id[length > 0 ? length : 0] = '\0';
    id[strcspn(id, " \n")] = '\0';
}

struct timespec clock_moment(int64_t due_ms)
{
    assert(due_ms >= 0);
    return (struct timespec){.tv_sec = (time_t)(due_ms / MS_PER_S),
                             .tv_nsec = (long)(due_ms % MS_PER_S) * NS_PER_MS};
}

void clock_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}
