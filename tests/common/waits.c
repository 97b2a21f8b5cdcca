/* waits.c — see waits.h. */
#include "waits.h"
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SAID_MAX = 64 << 10 };

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool exists(const char *path, const char *words)
{
    struct stat status;

    (void)words;
    return lstat(path, &status) == 0;
}

static bool says(const char *path, const char *words)
{
    static char said[SAID_MAX + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, said, SAID_MAX);

    if (fd >= 0)
        close(fd);
    return length > 0 && memmem(said, (size_t)length, words, strlen(words));
}

/* Watched before it is looked at, so that nothing comes in between. */
static bool await(const char *path, bool (*is_so)(const char *path, const char *words),
                  const char *words, int64_t limit_ms)
{
    const int64_t end_ms = now_ms() + limit_ms;
    struct pollfd watch = {.fd = inotify_init1(IN_CLOEXEC), .events = POLLIN};
    char folder[4096], told[4096];
    bool is_reached = false;

    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    if (inotify_add_watch(watch.fd, folder, IN_CREATE | IN_MOVED_TO | IN_MODIFY) >= 0) {
        while (!(is_reached = is_so(path, words))) {
            const int64_t left_ms = end_ms - now_ms();
            if (left_ms <= 0 || poll(&watch, 1, (int)left_ms) <= 0 ||
                read(watch.fd, told, sizeof told) <= 0)
                break;
        }
    }
    close(watch.fd);
    return is_reached;
}

bool file_await(const char *path, int64_t limit_ms)
{
    return await(path, exists, NULL, limit_ms);
}

bool file_says_await(const char *path, const char *words, int64_t limit_ms)
{
    return await(path, says, words, limit_ms);
}
