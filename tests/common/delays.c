/* Preloaded into what a test starts (tools/delay): threads and processes have no turn now and then.
 *
 * A busy machine stops any of them anywhere, for as long as it likes, but seldom. Here one stops
 * before it sends, reads, or lets another thread go on, and after it has waited: where what it
 * believes may not be true any more when it goes on. Of 100,000 such calls, times SKEP_DELAYS (1
 * where it is not set), 280 wait for up to 15 ms, 18 for 200 ms, 2 for 1.5 s. Of locks, which are
 * many more, every 16th counts as a call. Each thread has its own row of numbers, begun from the
 * clock: no run is like another. Programs that are linked statically are not delayed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 100000, LONG = 2, MIDDLE = 20, SHORT = 300, LOCKS_EACH = 16 };

/* What only computes, or is a machine of its own. */
static const char *const spared[] = {"chrom", "headless", "linux", "qemu", "cc1", "mkfs", "mke2fs"};

static unsigned often = 1; /* 0: never */
static __thread uint64_t random_state;
static __thread unsigned locks;

__attribute__((constructor)) static void begin(void)
{
    const char *wanted = getenv("SKEP_DELAYS");
    char name[32] = "";
    if (wanted)
        often = (unsigned)strtoul(wanted, NULL, 10);
    FILE *file = fopen("/proc/self/comm", "re");
    if (!file)
        return;
    if (!fgets(name, sizeof name, file))
        name[0] = '\0';
    fclose(file);
    for (size_t i = 0; i < sizeof spared / sizeof *spared; i++)
        if (strncmp(name, spared[i], strlen(spared[i])) == 0)
            often = 0;
}

static uint64_t draw(void)
{
    if (random_state == 0) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        random_state =
            ((uint64_t)now.tv_nsec * 2654435761u ^ (uint64_t)syscall(SYS_gettid) << 32) | 1;
    }
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state >> 16;
}

/* errno stays as it is. */
static void delay(void)
{
    const uint64_t drawn = draw(), place = drawn % CALLS;
    long ms = 0;
    if (place < (uint64_t)LONG * often)
        ms = 1500;
    else if (place < (uint64_t)MIDDLE * often)
        ms = 200;
    else if (place < (uint64_t)SHORT * often)
        ms = (long)(drawn / CALLS % 15);
    if (ms == 0)
        return;
    const int before = errno;
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    syscall(SYS_nanosleep, &pause, NULL);
    errno = before;
}

static void delay_of_lock(void)
{
    if (++locks % LOCKS_EACH == 0)
        delay();
}

/* The function of the same name that comes next, found at its first call. A condition variable has
 * an old version that would be found first. */
static void *next_of(const char *name)
{
    void *versioned = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
    return versioned ? versioned : dlsym(RTLD_NEXT, name);
}

#define DELAYED(type, name, parameters, arguments, before, after)                                  \
    type name parameters;                                                                          \
    type name parameters                                                                           \
    {                                                                                              \
        static type(*next) parameters;                                                             \
        if (!next)                                                                                 \
            *(void **)&next = next_of(#name);                                                      \
        before;                                                                                    \
        type result = next arguments;                                                              \
        after;                                                                                     \
        return result;                                                                             \
    }
#define BEFORE(type, name, parameters, arguments)                                                  \
    DELAYED(type, name, parameters, arguments, delay(), (void)0)
#define AFTER(type, name, parameters, arguments)                                                   \
    DELAYED(type, name, parameters, arguments, (void)0, delay())

BEFORE(ssize_t, read, (int fd, void *to, size_t size), (fd, to, size))
BEFORE(ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size))
BEFORE(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))
BEFORE(ssize_t, recv, (int fd, void *to, size_t size, int flags), (fd, to, size, flags))
BEFORE(ssize_t, send, (int fd, const void *from, size_t size, int flags), (fd, from, size, flags))
BEFORE(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
BEFORE(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
BEFORE(int, rename, (const char *from, const char *to), (from, to))
BEFORE(int, unlink, (const char *path), (path))
BEFORE(pid_t, waitpid, (pid_t pid, int *status, int options), (pid, status, options))
BEFORE(int, pthread_cond_signal, (pthread_cond_t * condition), (condition))
BEFORE(int, pthread_cond_broadcast, (pthread_cond_t * condition), (condition))
AFTER(int, poll, (struct pollfd * entries, nfds_t count, int ms), (entries, count, ms))
AFTER(int, epoll_wait, (int fd, struct epoll_event *events, int max, int ms), (fd, events, max, ms))
AFTER(pid_t, fork, (void), ())
DELAYED(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex), delay_of_lock(), (void)0)
DELAYED(int, pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex), (void)0, delay_of_lock())
