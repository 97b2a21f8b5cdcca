/* task.h — what the files of the local engine share: the engine, its tasks, its locks.
 *
 * Edge, internal. A task is one container from create to forget. Its states and who moves them
 * stand in docs/rfc/0008-local-engine.md; all fields below are under the engine's lock, except that
 * a task in TASK_STARTING or TASK_ENDING belongs to the worker that has it.
 */
#ifndef ENGINE_LOCAL_TASK_H
#define ENGINE_LOCAL_TASK_H
#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "engine/engine.h"
#include "engine/local/cgroup.h"
#include "engine/local/id_ranges.h"
#include "engine/local/local.h"
#include "engine/local/runtime.h"
#include <pthread.h>

struct buf;
struct doc;
struct image;
struct images;
struct inventory;
struct json_writer;
struct layers;
struct log_watch;
struct id_ranges;
struct networks;
struct oci_device;
struct oci_mount;
struct user;

enum task_phase {
    TASK_WAITING,  /* for its image, or for its layer */
    TASK_QUEUED,   /* for a worker that starts it */
    TASK_STARTING, /* a worker has it */
    TASK_RUNNING,  /* the monitor watches it */
    TASK_ENDING,   /* waits for a worker that cleans up, or has one */
    TASK_ENDED,    /* EXITED was posted; waits for forget */
};

struct task_gpu { /* as it was when the task started */
    uint16_t gpu;
    bool has_errors, was_lost, is_lost_told;
    uint64_t ecc_errors, retired_pages;
};

struct task_gpus { /* of a task with GPUs that are sampled; heap */
    char *job, *role;
    uint32_t index;
    size_t count;
    struct task_gpu *items;
};

struct task {
    struct attempt_id attempt;
    char id[24]; /* the attempt's number: names directories, control group, runtime state */
    enum task_phase phase;
    struct arena arena;             /* of `wanted` */
    const struct container *wanted; /* until it runs; NULL for adopted ones */
    struct image *image;            /* in use; NULL: none yet, or an adopted task's is gone */
    char *image_key;                /* while it waits */
    struct task_gpus *gpus;         /* NULL: none */
    struct runtime_container process;
    int init_fd;          /* pidfd of the container's first process, or -1 */
    int disk_fd;          /* root of the file system made for it, or -1 */
    uint64_t init_start;  /* its start time, 0 unknown */
    bool is_unsupervised; /* conmon was killed: the monitor watches init_fd instead */
    bool is_ours;         /* conmon is our child */
    bool is_started;      /* the first process was let go */
    bool has_poststop;
    bool is_kill_wanted, is_term_sent, is_forget_wanted;
    bool is_log_final;   /* nothing runs that could write to the log */
    int64_t kill_due_ms; /* clock_monotonic_ms; 0: none */
    uint32_t kills_sent; /* how often SIGKILL was sent */
    char kill_reason[64];
    const char
        *fail_reason;   /* why it never ran, or was ended by us: static; NULL: nothing failed */
    char *fail_message; /* heap */
    struct task *next;  /* in a queue */
};

enum disk_way {               /* how the disk of a task is limited */
                DISK_OPEN,    /* not at all */
                DISK_PROJECT, /* by a project quota */
                DISK_IMAGE,   /* by a file system of its own, in a file */
};

/* of the engine's own directories: what stands below them then fits RUNTIME_PATH_MAX */
enum { LOCAL_DIRECTORY_MAX = 352 };

struct task_queue {
    struct task *first, **last;
    size_t count;
};

struct local_engine {
    struct engine engine; /* first */
    struct engine_sink sink;
    struct engine_local_config config; /* its strings are in `arena` */
    struct arena arena;
    char directory[LOCAL_DIRECTORY_MAX]; /* real path */
    char run_directory[LOCAL_DIRECTORY_MAX];
    uint32_t id;    /* HASH, of the directory */
    char group[64]; /* control group of all tasks: /skep/HASH */
    char boot_id[40];
    int lock_fd;
    struct cgroup_layout cgroups;
    struct runtime runtime;
    enum disk_way disk_way;
    struct images *images;
    struct inventory *inventory;
    struct id_ranges *id_ranges;
    bool gives_ids;                      /* else new tasks have the machine's ids */
    struct layers *layers;               /* images are shown with ids by these; NULL: by mounts */
    struct err device_failure;           /* code < 0: … and those with devices, because of this */
    bool are_ids_settled;                /* none are kept for what an earlier engine left */
    _Atomic(struct networks *) networks; /* NULL: no task has a network of its own */
    pthread_mutex_t networks_lock;       /* of making them late */
    int64_t networks_retry_ms;           /* … once that has failed; monotonic */
    struct err networks_failure;         /* … because of this */
    struct log_watch *log_watch;         /* NULL: whoever follows a log looks from time to time */

    pthread_mutex_t lock;
    pthread_cond_t has_work;      /* queue, or is_stopping */
    struct task **tasks;          /* slots; NULL: free */
    size_t task_count, task_room; /* task_count: slots in use */
    struct id_map task_index;
    struct task_queue work; /* TASK_QUEUED and TASK_ENDING */
    struct {
        struct remains {
            char id[24];
        } * items; /* ended tasks of which something could not be removed */
        size_t count, room;
    } remains;
    bool is_stopping;
    bool is_storage_short; /* when the data and the run directory were checked last */
    bool is_announced;     /* adopted tasks were told of: workers may end them now */
    pthread_t workers[ENGINE_LOCAL_WORKERS_MAX], monitor, keeper;
    size_t worker_count;
    bool has_monitor, has_keeper;
    pthread_cond_t keeper_wake;
    pthread_mutex_t keeper_lock; /* one round at a time */
    int epoll_fd, wake_fd;
};

/* --- table (local.c); the lock is held --- */
struct task *task_find(struct local_engine *local, struct attempt_id attempt);
struct task *task_add(struct local_engine *local, struct attempt_id attempt);
void task_drop(struct local_engine *local, struct task *task); /* frees it */
void task_enqueue(struct local_engine *local, struct task *task);

/* --- paths; NAME may be "" ---
 * DIRECTORY/containers/ID/NAME: on the disk, what must outlive a boot or may be large
 * RUN_DIRECTORY/tasks/ID/NAME: on a tmpfs, small files of this boot; secrets among them */
void task_path(const struct local_engine *local, const char *id, const char *name,
               char path[RUNTIME_PATH_MAX]);
void task_run_path(const struct local_engine *local, const char *id, const char *name,
                   char path[RUNTIME_PATH_MAX]);
void task_log_path(const struct local_engine *local, const char *id, char path[RUNTIME_PATH_MAX]);
void task_group(const struct local_engine *local, const char *id, char group[CGROUP_PATH_MAX]);

/* --- the engine's own folders (directories.c) ---
 * Make what is missing below the data directory, and name what is in /run: local->directory,
 * local->id, local->group, local->run_directory. */
int local_directories_make(struct local_engine *local, struct err *err);
/* One engine has a data directory at a time: ERR_BUSY. */
int local_directory_lock(struct local_engine *local, struct err *err);
int local_run_directory_make(struct local_engine *local, struct err *err);
/* When nothing runs any more, nothing is left in /run. */
void local_run_directory_drop(const struct local_engine *local);

/* --- events --- */
void event_post(struct local_engine *local, enum engine_event_kind kind, struct attempt_id attempt,
                const char *reason, const char *message);
void event_note(struct local_engine *local, struct attempt_id attempt, const char *reason,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Say why a task cannot run; its worker or waiter then ends it. First reason wins. */
void task_fail(struct task *task, const char *reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Do these words of the kernel or a program mean that a disk is full? */
bool words_say_full(const char *words);

/* --- life (start.c, finish.c, monitor.c, adopt.c); without the lock --- */
void task_start(struct local_engine *local, struct task *task);
void task_finish(struct local_engine *local, struct task *task);
/* Is an overlay of the task mounted anywhere in our namespace? */
bool task_mounts_remain(const struct local_engine *local, const char *id);
/* Remove all but the logs. */
void task_erase(struct local_engine *local, const char *id);

/* The image of a waiting task has come, or cannot come (task_fail was called). With the lock. */
void task_image_settled(struct local_engine *local, struct task *task);

/* Watch conmon (or, when unsupervised, the first process). With the lock. */
int monitor_watch(struct local_engine *local, struct task *task, struct err *err);
void monitor_wake(struct local_engine *local);
void *monitor_run(void *local);
/* Send SIGTERM now and SIGKILL when the grace is over, then, as long as it has not ended, again and
 * to its whole control group. With the lock; the task runs. */
void monitor_kill(struct local_engine *local, struct task *task);

/* Find the tasks of an earlier engine on this directory. Before the threads start. */
int adopt_all(struct local_engine *local, struct err *err);
/* Tell of them: ENGINE_NODE, then STARTED of those that run and EXITED of those that have ended. In
 * a thread of its own, because the receiver may not listen before engine_local_new returns. */
void adopt_announce(struct local_engine *local);

/* --- the disk of a task (task_disk.c), without the lock --- */

#define TASK_DISK_NAME "disk" /* where a file system of its own is mounted, in its namespaces */
enum { TASK_DISK_REASON_MAX = 80 };
/* local->disk_way, as the configuration wants it. ERR_UNSUPPORTED: it requires a limit, and this
 * machine has none. */
int task_disks_open(struct local_engine *local, struct err *err);
/* upper, work, run, log, hosts: as this process reaches them. */
void task_disk_path(const struct local_engine *local, const struct task *task, const char *name,
                    char path[RUNTIME_PATH_MAX]);
/* The file system of its own, where it has one; before anything is put into it. */
int task_disk_make(struct local_engine *local, struct task *task, struct err *err);
/* These files and folders count, where there are project quotas; its log counts by itself. */
int task_disk_limit(struct local_engine *local, struct task *task, const char *const *paths,
                    size_t count, struct err *err);
/* Of a task that an earlier engine started. Before the threads start. */
void task_disk_adopt(struct local_engine *local, struct task *task);
/* False also where it has no limit. */
bool task_disk_is_full(const struct local_engine *local, const struct task *task,
                       char reason[TASK_DISK_REASON_MAX]);
/* Nothing of it runs any more: its log is put beside all others. */
void task_disk_end(struct local_engine *local, struct task *task);
/* Nobody wants its files any more. */
void task_disk_drop(struct local_engine *local, struct task *task);

/* --- its log (task_log.c) --- */

/* Where it is now. The descriptor keeps it there and is the caller's; or -1. */
int task_log_find(struct local_engine *local, struct attempt_id attempt, bool *is_ended,
                  char path[RUNTIME_PATH_MAX]);
void task_log_close(struct local_engine *local, struct task *task);
/* engine_ops.log_read, log_time, log_watch */
ssize_t local_log_read(struct engine *engine, struct attempt_id attempt, enum log_stream stream,
                       uint64_t *offset, char *bytes, size_t size, struct log_part *part,
                       struct err *err);
int local_log_time(struct engine *engine, struct attempt_id attempt, enum log_stream stream,
                   int64_t at_ms, uint64_t *offset, struct err *err);
int local_log_watch(struct engine *engine, struct attempt_id attempt, enum log_stream stream,
                    struct err *err);

/* --- programs beside it (exec.c) --- */

/* A pidfd of the first process of a task that runs; the caller's. ERR_NOT_FOUND, ERR_CONFLICT. */
int task_hold(struct local_engine *local, struct attempt_id attempt, struct err *err);
/* engine_ops.connect (connect.c), engine_ops.exec */
int local_connect(struct engine *engine, struct attempt_id attempt, uint16_t port, struct err *err);
int local_exec(struct engine *engine, struct attempt_id attempt,
               const struct engine_exec_request *request, struct engine_exec **exec,
               struct err *err);

/* --- networks (network_task.c) --- */

struct network_place;
/* local->networks, which is NULL before. */
int task_networks_open(struct local_engine *local, struct err *err);
/* For an engine that makes them with the first job that needs them: is the configuration good? What
 * stands against them is noted (engine_local_network_trouble); nothing is set up. */
int task_networks_try(struct local_engine *local, struct err *err);
/* When what runs is adopted: without a task that has a network, what an earlier engine wrote for
 * such tasks leads nowhere now, and is removed: a program of the machine may want their ports. */
void task_networks_forget(struct local_engine *local);
/* `place->address` is "" where the task is in the machine's network. Fails the task. */
int task_network_join(struct local_engine *local, struct task *task, const struct container *wanted,
                      unsigned rights, struct network_place *place);
void task_network_leave(struct local_engine *local, struct task *task);
/* Into the task's state, and from that of an earlier engine; the task runs. */
void task_network_write(const struct container *wanted, const struct network_place *place,
                        struct json_writer *json);
void task_network_adopt(struct local_engine *local, struct task *task, const struct doc *state);
/* /etc/hosts and /etc/resolv.conf of such a task. */
void task_hosts_text(const struct network_place *place, struct buf *out);
void task_resolver_text(struct buf *out);
/* The first of these files that names a server elsewhere, without servers on the loopback; the last
 * when none does. */
void resolver_text(const char *const *paths, size_t count, struct buf *out);

/* --- user ids (task_ids.c) --- */

struct task_ids {               /* of a task that is being started */
    struct id_place place;      /* first: 0 where it has the machine's ids; then nothing follows */
    char user_path[48];         /* of its user namespace */
    const char *lower;          /* what its overlay stands on, for the runtime … */
    bool has_layer;             /* … of which the first folder is a metadata layer */
    const char *const *sources; /* of the mounts that it wants, for the runtime */
    const char *devices;        /* a folder with its device files, for the runtime */
    struct spawn_mount *mounts; /* these are put there before: */
    size_t mount_count;
};

/* local->id_ranges, and whether it gives them: the configuration wants it, and this machine can.
 * ERR_UNSUPPORTED: it is required, and cannot be. */
int task_ids_open(struct local_engine *local, struct err *err);
/* Must the task wait until its image can be shown with its ids? Then it is no longer the worker's,
 * and comes to one again (layers.h). */
bool task_ids_await(struct local_engine *local, struct task *task);
struct task_ids_need {
    unsigned rights;
    const struct user *user; /* of its image */
    size_t device_count;     /* that task_ids_devices will be given */
};

/* Fails the task. Once its folder in the run directory is there, task_ids_places makes the places
 * of the mounts. */
int task_ids_join(struct local_engine *local, struct task *task, const struct task_ids_need *need,
                  struct arena *arena, struct task_ids *ids);
/* Makes its device files, which runtimes would give to nobody or bind as the machine's; to be
 * called before task_ids_places. Fails the task. */
int task_ids_devices(struct local_engine *local, struct task *task,
                     const struct oci_device *devices, size_t count, struct arena *arena,
                     struct task_ids *ids);
/* How the container gets the one of that number. */
struct oci_mount task_ids_device(const struct task_ids *ids, const struct oci_device *device,
                                 size_t number, struct arena *arena);
/* The folder or file `source` is mounted under that name in the task's folder of the run directory,
 * for the runtime; where that is. NULL: the task has failed. Three at most. */
const char *task_ids_bind(struct local_engine *local, struct task *task, const char *source,
                          const char *name, struct arena *arena, struct task_ids *ids);
int task_ids_places(struct task *task, const struct task_ids *ids);
/* Completes the options of a bind mount, whose source is where this process finds it. */
void task_ids_options(struct oci_mount *mount, struct arena *arena);
void task_ids_release(struct task_ids *ids); /* the mounts; those that were put somewhere stay */
void task_ids_leave(struct local_engine *local, struct task *task);
/* Into the task's state, and from that of an earlier engine. */
void task_ids_write(const struct task_ids *ids, struct json_writer *json);
void task_ids_adopt(struct local_engine *local, struct task *task, const struct doc *state);
/* Once the tasks of an earlier engine were adopted: what else it had is free, as soon as nothing
 * remains of its ended tasks. With the lock. */
void task_ids_settle(struct local_engine *local);

/* --- GPUs (gpus.c): all do nothing where NVML found none --- */

/* How the task's GPUs are before it starts; `gpus` are indices. Asks NVML, and waits for it ten
 * seconds at most. Without the lock. */
void task_gpus_note(struct local_engine *local, struct task *task, const struct container *wanted);
/* The same from the record of an earlier engine, and into it. With the lock. */
void task_gpus_adopt(struct local_engine *local, struct task *task, const struct doc *state);
void task_gpus_write(const struct local_engine *local, const struct task *task,
                     struct json_writer *json);
void task_gpus_free(struct task_gpus *gpus);
/* What became of them: asks NVML, and waits for it as long at most. Without the lock. */
void task_gpus_judge(struct local_engine *local, struct task *task, struct exit_report *report);
/* With the lock. */
void task_gpus_stats(struct local_engine *local, const struct task *task,
                     struct engine_stats *stats);
/* All of this machine, whoever has them. */
void machine_gpus_stats(struct local_engine *local, struct engine_stats *stats);
/* Tell the tasks whose GPUs were lost. Without the lock. */
void gpus_lost_tell(struct local_engine *local);
/* engine_ops.gpus */
void local_gpus(struct engine *engine, struct arena *arena, const struct engine_gpu **gpus,
                size_t *count);

/* Ended tasks, read back: fills `report` with strings in `arena`. */
int ended_read(const struct local_engine *local, const char *id, struct arena *arena,
               struct exit_report *report, struct err *err);
/* Post EXITED with the log tails. */
void ended_post(struct local_engine *local, struct attempt_id attempt, const char *id,
                struct exit_report *report);

/* Have the data and the run directory space? Sets the node's health; thread-safe. */
void storage_check(struct local_engine *local);
/* One round of housekeeping (keeper.c). */
void keeper_round(struct local_engine *local);
void *keeper_run(void *local);

/* A small file, replaced whole but not synced: what a power cut takes away ends the task anyway. */
int file_put(const char *path, struct text content, mode_t mode, struct err *err);

#endif
