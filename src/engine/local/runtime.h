/* runtime.h — the OCI runtime and conmon: which one works here, and starting a container with it.
 *
 * Edge. Every container gets a mount namespace of its own before conmon starts: the task's overlay
 * is mounted only there, so it goes away with the last process of the container, whatever was
 * killed, and the host's mount table never shows it.
 */
#ifndef ENGINE_LOCAL_RUNTIME_H
#define ENGINE_LOCAL_RUNTIME_H
#include "engine/local/cgroup.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct err;
struct id_place;
struct spawn_mount;

enum { RUNTIME_PATH_MAX = 512, RUNTIME_MESSAGE_MAX = 4096 };

struct runtime {
    char program[RUNTIME_PATH_MAX]; /* crun or runc */
    char sealed[RUNTIME_PATH_MAX];  /* where its copy in memory may be found (sealed.h) */
    int sealed_fd;                  /* -1: there is none; conmon executes `program` itself */
    char conmon[RUNTIME_PATH_MAX];
    char root[RUNTIME_PATH_MAX];           /* the runtime's own state: ROOT/ID */
    char exit_directory[RUNTIME_PATH_MAX]; /* conmon writes EXITS/ID */
    char hidden_mount[128]; /* the v2 tree of a hybrid machine, kept from crun; "" = none */
    bool has_volatile;      /* the kernel's overlay can leave out syncs */
    bool has_start_fifo;    /* see runtime_start */
    bool wants_mappings;    /* of a user namespace that exists, see oci.c */
    /* It enters the container's user namespace before all others, and may not enter a network of
     * the machine's from there: with user ids of its own a task inherits its network from it. */
    bool is_users_first;
    char *seccomp_bpf; /* compiled profile that this runtime takes; NULL: it compiles itself */
    int procs_fds[2];  /* of conmon's control group */
};

struct runtime_launch {
    const char *id;
    const char *bundle; /* holds config.json; conmon's and the container's small files come here */
    const char *lower, *upper, *work; /* of the overlay … (lower: folders joined by ':') */
    bool has_layer;                   /* … the first of them is a metadata layer (layer.h) */
    const char *merged;               /* … mounted here: config.json's root.path */
    const char *output;               /* what the first process writes itself */
    const struct spawn_mount *mounts; /* made in the container's mount namespace before these */
    size_t mount_count;
    const char *sys;          /* there a sysfs is mounted; NULL: none … */
    const char *network_path; /* … of this network namespace; NULL: the machine's */
    bool is_in_network;       /* the runtime is started there: config.json names no network */
};

struct runtime_container {
    pid_t conmon, init;
    int conmon_fd; /* pidfd; the caller's */
};

/* `layout->has_swap` is corrected when the kernel does not account swap. Find conmon and a runtime
 * that creates a container here; `wanted` ("": any) is a path or name. `scratch` is an empty
 * directory on the disk where overlays will be; it is empty again afterwards. ERR_UNSUPPORTED tells
 * for each why not. */
int runtime_find(struct runtime *runtime, struct cgroup_layout *layout, const char *wanted,
                 const char *scratch, const char *group, struct err *err);

/* Does that runtime create a container in the user namespace of `place`, over an image whose files
 * are mounted with these ids, or have them by a metadata layer? `scratch` as above; `view` has the
 * folders merged, lower and sys, and anybody may pass through it. ERR_UNSUPPORTED says why not. */
int runtime_try_ids(const struct runtime *runtime, const struct cgroup_layout *layout,
                    const struct id_place *place, bool by_layer, const char *scratch,
                    const char *view, const char *group, struct err *err);

/* Let go of what runtime_find made. */
void runtime_release(struct runtime *runtime);

/* Start conmon, which creates the container; its first process waits for runtime_start. The file
 * BUNDLE/conmon.pid is written before anything runs. On failure `message` (RUNTIME_MESSAGE_MAX)
 * has the runtime's own words; conmon has ended, and the rest is removed by runtime_remove. */
int runtime_create(const struct runtime *runtime, const struct runtime_launch *launch,
                   struct runtime_container *container, char *message, struct err *err);

/* Let the first process go. crun's `start` does nothing but write one byte into the pipe at which
 * the container's process waits; where that pipe is there and listened to we do it ourselves and
 * save a process. */
int runtime_start(const struct runtime *runtime, const char *id, struct err *err);

/* The same where somebody may have done it already, whole or in part, and ended in the midst of it:
 * afterwards it has been let go once. */
void runtime_start_again(const struct runtime *runtime, const char *id);

struct runtime_program {
    const char *process; /* a file with the program as the runtime specification has it */
    int streams[3];      /* become its 0 … 2 (-1: /dev/null) */
    int more;            /* becomes its 3 */
    int network_of;      /* pidfd: the runtime is started in that process's network; -1: in ours */
};

/* Start a program in the container's namespaces and groups. The process that is started is the
 * runtime's own: it ends after the program, with its code. */
int runtime_exec(const struct runtime *runtime, const char *id,
                 const struct runtime_program *program, pid_t *pid, struct err *err);

/* This thread, and what it starts, enters the network of a process (its pidfd); *home is the way
 * back, the caller's to close after it. Failing, it is where it was. */
int runtime_network_enter(int process, int *home, struct err *err);
void runtime_network_leave(int home);

/* "created", "running", "stopped", or "" when the runtime knows no such container. */
int runtime_status(const struct runtime *runtime, const char *id, char *status, size_t size,
                   struct err *err);

/* Forget the container: its state directory; runs `delete` when the bundle has hooks for it. */
void runtime_remove(const struct runtime *runtime, const char *id, bool has_poststop);

/* rm -r, within one file system, however deep; never follows links, also when somebody changes the
 * tree meanwhile. 0 also when it was not there. */
int tree_remove(const char *path, struct err *err);

/* The later one of the wall clock and of a trusted time (engine.h), in Unix seconds: what was
 * written later was so by a clock that was ahead, or by somebody who set the time of a file. */
int64_t tree_latest_s(int64_t trusted_s);
/* The time of a file in the folder (an open one, or AT_FDCWD; NULL: the folder itself), which is
 * not followed. One that is more than a minute later than `latest_s` becomes that, on the disk as
 * well: its age begins now, and not when the clock gets there. Returns the file's time. */
int64_t tree_time_settle(int folder, const char *name, int64_t used_s, int64_t latest_s);

#endif
