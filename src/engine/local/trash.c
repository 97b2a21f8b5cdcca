#include "engine/local/trash.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/runtime.h"
#include "sys/cleanup.h"
#include "sys/log.h"
#include "sys/process.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

struct trash {
    char folder[RUNTIME_PATH_MAX];
    pthread_mutex_t lock;
    uint64_t next_name;
    pthread_t thread;
    bool has_thread;
    int wake_fd; /* there is something to remove */
    int stop_fd; /* readable for good once we stop */
};

static bool name_is_entry(const char *name)
{
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* The name of something in the folder; false: it is empty. */
static bool entry_find(const struct trash *trash, char path[RUNTIME_PATH_MAX + 300])
{
    cleanup_dir DIR *dir = opendir(trash->folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (name_is_entry(entry->d_name)) {
            snprintf(path, RUNTIME_PATH_MAX + 300, "%s/%s", trash->folder, entry->d_name);
            return true;
        }
    return false;
}

/* By a program, because a program can be ended at any point. False: we stop, or something stays. */
static bool entry_remove(const struct trash *trash, const char *path)
{
    const char *argv[] = {"rm", "-rf", "--one-file-system", "--", path, NULL};
    struct process process = {.argv = argv, .in = -1, .out = -1, .err = -1, .is_bound = true};
    struct err err = {0};
    pid_t pid;
    int status = 0;
    if (process_spawn(&process, &pid, &err) < 0) {
        log_warning("engine", "cannot remove %s: %s", path, err.text);
        return false;
    }
    cleanup_close int ended = process_watch(pid, NULL);
    struct pollfd fds[] = {{.fd = ended, .events = POLLIN},
                           {.fd = trash->stop_fd, .events = POLLIN}};
    while (ended >= 0 && poll(fds, 2, -1) < 0 && errno == EINTR)
        continue;
    bool is_stopping = fds[1].revents != 0;
    if (is_stopping)
        kill(pid, SIGKILL);
    process_wait(pid, &status, NULL);
    if (!is_stopping && process_exit_code(status) != 0)
        log_warning("engine", "cannot remove %s; tried again with the next one", path);
    return !is_stopping && process_exit_code(status) == 0;
}

static void *trash_run(void *context)
{
    struct trash *trash = context;
    char path[RUNTIME_PATH_MAX + 300];
    struct pollfd fds[] = {{.fd = trash->wake_fd, .events = POLLIN},
                           {.fd = trash->stop_fd, .events = POLLIN}};
    for (;;) {
        while (entry_find(trash, path) && entry_remove(trash, path))
            continue;
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (fds[1].revents)
            return NULL;
        eventfd_t count;
        eventfd_read(trash->wake_fd, &count);
    }
}

struct trash *trash_new(const char *directory, struct err *err)
{
    struct trash *trash = mem_zero(1, sizeof *trash);
    pthread_mutex_init(&trash->lock, NULL);
    snprintf(trash->folder, sizeof trash->folder, "%s/trash", directory);
    trash->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    trash->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int code = 0;
    if (trash->wake_fd < 0 || trash->stop_fd < 0)
        code = err_errno(err, errno, "make the descriptors of the remover");
    if (code == 0 && pthread_create(&trash->thread, NULL, trash_run, trash) != 0)
        code = err_fail(err, ERR_IO, "", "cannot start the thread that removes folders");
    trash->has_thread = code == 0;
    if (code == 0)
        return trash;
    trash_free(trash);
    return NULL;
}

void trash_free(struct trash *trash)
{
    if (!trash)
        return;
    if (trash->has_thread) {
        eventfd_write(trash->stop_fd, 1);
        pthread_join(trash->thread, NULL);
    }
    if (trash->wake_fd >= 0)
        close(trash->wake_fd);
    if (trash->stop_fd >= 0)
        close(trash->stop_fd);
    pthread_mutex_destroy(&trash->lock);
    mem_free(trash);
}

void trash_put(struct trash *trash, const char *path)
{
    char target[RUNTIME_PATH_MAX + 32];
    int failure = 0;
    pthread_mutex_lock(&trash->lock);
    do { /* an earlier server's names are taken */
        snprintf(target, sizeof target, "%s/%llu", trash->folder,
                 (unsigned long long)trash->next_name++);
        failure = rename(path, target) < 0 ? errno : 0;
        if (failure == ENOENT && mkdir(trash->folder, 0700) == 0)
            failure = EEXIST; /* the first that goes there: once more */
    } while (failure == EEXIST || failure == ENOTEMPTY);
    pthread_mutex_unlock(&trash->lock);
    if (failure == 0)
        eventfd_write(trash->wake_fd, 1);
    else if (failure != ENOENT)
        tree_remove(path, NULL);
}
