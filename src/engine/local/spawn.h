/* spawn.h — starts conmon in a mount namespace and control group of its own, without copying the
 * server's memory. */
#ifndef ENGINE_LOCAL_SPAWN_H
#define ENGINE_LOCAL_SPAWN_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;

struct spawn_mount { /* a mount that is nowhere yet, and where it is put */
    int fd;
    const char *target;
};

struct spawn {
    const char *const *argv, *const *env;
    const char *directory;
    int fds[4];                       /* become 0 … 3 */
    int pid_fd;                       /* its pid is written here before it runs */
    int group_fds[2];                 /* cgroup.procs files; -1: none */
    const char *hidden_mount;         /* unmounted in its namespace; NULL: none */
    const struct spawn_mount *mounts; /* in its namespace, below the overlay */
    size_t mount_count;
    const char *sys_target;   /* a sysfs is mounted there; NULL: none … */
    const char *network_path; /* … of this network namespace; NULL: ours */
    bool is_in_network;       /* conmon stays in that one */
    const char *overlay_options, *overlay_target;
};

/* 0, its pid and a pidfd (the caller's); ERR_IO says which step failed and how. */
int spawn_start(const struct spawn *spawn, pid_t *pid, int *pid_fd, struct err *err);

/* kill(2) by pidfd. */
int syscall_kill(int pid_fd, int signal);

#endif
