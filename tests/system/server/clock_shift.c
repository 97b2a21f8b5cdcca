/* clock_shift.c — a wall clock that a test sets, for the one program that this is preloaded into.
 *
 * The file that SKEP_TEST_CLOCK names holds a 64-bit number of nanoseconds, by which every reading
 * of the wall clock is shifted from then on. Clocks that count from boot are as they are, and so
 * are the machine's clock and the times of files.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { NS = 1000000000 };

static const _Atomic int64_t *shift_ns;

__attribute__((constructor)) static void shift_map(void)
{
    const char *path = getenv("SKEP_TEST_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *at;

    if (fd < 0)
        return;
    at = mmap(NULL, sizeof *shift_ns, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (at != MAP_FAILED)
        shift_ns = at;
}

int clock_gettime(clockid_t which, struct timespec *now)
{
    long result = syscall(SYS_clock_gettime, which, now);
    int64_t ns;

    if (result < 0 || !shift_ns || (which != CLOCK_REALTIME && which != CLOCK_REALTIME_COARSE))
        return (int)result;
    ns = (int64_t)now->tv_sec * NS + now->tv_nsec + atomic_load(shift_ns);
    now->tv_sec = (time_t)(ns / NS);
    now->tv_nsec = (long)(ns % NS);
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec at;

    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &at) < 0)
        return -1;
    *now = (struct timeval){at.tv_sec, at.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *now)
{
    struct timespec at;

    if (clock_gettime(CLOCK_REALTIME, &at) < 0)
        return -1;
    if (now)
        *now = at.tv_sec;
    return at.tv_sec;
}
