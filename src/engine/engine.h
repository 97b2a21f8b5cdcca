/* engine.h — the port through which containers are run. Engines: local (OCI), Kubernetes (pods) and
 * fake (in memory). What each must do stands in docs/rfc/0013-engine-port.md.
 *
 * Edge. create, kill and forget are called by one thread (the server's launcher); list by one
 * thread, before events are taken; what reads (log_read, log_watch, stats, gpus) by any thread, at
 * the same time as the others. All but exec return soon: long work (pulling an image) goes on
 * inside the engine and comes back as events through the sink. Repeating a create or kill of the
 * same attempt is harmless: its id names the container.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H
#include "base/text.h"
#include "model/exit.h"
#include "model/ids.h"
#include "model/node.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct arena;
struct err;

struct engine_mount {
    const char *source, *target; /* a folder of the machine */
    /* instead of `source`: a folder ("": all) of a cluster's PersistentVolumeClaim; NULL: none */
    const char *claim, *claim_folder;
    bool is_read_only;
    /* root of the task is the owner of `source` there and never the machine's root, where tasks
     * have user ids of their own */
    bool is_root_squashed;
};

struct engine_file { /* written into the task's directory, mounted at /skep (read-only) */
    const char *name;
    struct text content;
    uint32_t mode;
};

struct engine_port { /* consecutive numbers */
    uint16_t first, count;
};

/* Everything that an engine needs to start one attempt. Borrowed for the call. */
struct container {
    struct attempt_id attempt;
    const char *job; /* "user~job", for labels and names in process lists */
    const char *role;
    const char *virtual_cluster; /* its operator's rights go with it; NULL: none */
    uint32_t index;
    const char *node;
    const char *image; /* docker-style reference, docker-archive:PATH, oci:PATH[:TAG], dir */
    const char *registry_user, *registry_password; /* "" = anonymous */
    uint32_t cpu;                                  /* cores */
    uint64_t memory_mib, shm_mib;
    const uint16_t *gpus; /* device indices */
    size_t gpu_count;
    bool is_gpu_simulated; /* indices only, no devices */
    bool wants_infiniband;
    /* an engine that leaves it to the job puts it into the machine's network */
    bool may_have_host_network;
    const struct engine_port *ports; /* to be reached from outside at the node's address */
    size_t port_count;
    const struct engine_mount *mounts;
    size_t mount_count;
    const struct engine_file *files; /* the task file and the job file for skep-init */
    size_t file_count;
};

enum engine_event_kind {
    ENGINE_NODE, /* the machine's inventory, first and when it changes */
    ENGINE_NODE_LOST,
    ENGINE_PREPARING, /* began */
    ENGINE_NOTE,      /* progress for the story: reason, message */
    ENGINE_STARTED,   /* the container runs */
    ENGINE_EXITED,    /* final: it ended, or could not be created */
    ENGINE_REFUSED,   /* final: its node or cluster does not take it now; nothing of it has run */
};

struct engine_event {
    enum engine_event_kind kind;
    struct attempt_id attempt;
    const struct node_facts *node;
    const struct exit_report *exit;
    const char *runs_on;          /* STARTED: the node that it runs on; NULL: the one asked for */
    const char *address;          /* STARTED: the task's own; NULL: that of its node */
    const char *reason, *message; /* REFUSED: one word, "OutOfcpu", and a sentence for people */
};

/* Called from any thread of the engine; copies what it needs. May block for a short time when the
 * receiver's mailbox is full. */
struct engine_sink {
    void *context;
    void (*post)(void *context, const struct engine_event *event);
    /* Unix time by which the engine removes what is old. It does not follow a wall clock that has
     * been set far ahead before that is confirmed; the wall clock itself is never good enough, as
     * one wrong moment of it would remove everything. Any thread, at once. */
    int64_t (*trusted_ms)(void *context);
};

enum log_stream { LOG_STDOUT, LOG_STDERR, LOG_ALL, LOG_RUNTIME };

struct log_part {
    uint64_t begin; /* first offset that still exists (rotation drops the oldest) */
    uint64_t end;   /* bytes written so far */
    bool is_ended;  /* the task has ended: nothing will follow `end` */
};

struct engine_stats {
    bool has_only_gpus; /* of what is not of GPUs nothing is known */
    bool has_no_disk;   /* of what is read and written nothing is known */
    uint64_t cpu_ns, memory_bytes, io_read_bytes, io_write_bytes, pids;
    uint32_t gpu_count;   /* of its GPUs, those that are sampled: the rest is about them */
    uint32_t gpu_percent; /* mean use by the last sample */
    uint64_t gpu_busy_ms; /* summed up; grows while they are used, never falls while it runs */
    uint64_t gpu_memory_bytes;
    uint64_t gpu_power_mw;  /* by the last sample; 0: not known */
    uint32_t network_tasks; /* that share what follows, this one included; 0: it is not known */
    uint64_t received_bytes, sent_bytes;
};

/* A GPU that the engine samples, and the task that has it. */
struct engine_gpu {
    const char *node, *uuid;
    uint16_t index;
    bool is_lost; /* of what follows nothing is known */
    bool has_use, has_errors;
    uint32_t busy_percent;
    uint64_t memory_bytes, memory_used_bytes;
    uint64_t ecc_errors, retired_pages; /* uncorrectable; since the driver was loaded, and ever */
    struct attempt_id attempt;          /* 0: nobody's */
    const char *job, *role;             /* its names, "" without one */
    uint32_t task_index;
};

enum { ENGINE_EXEC_ARGUMENTS_MAX = 1024, ENGINE_EXEC_BYTES_MAX = 64 << 10 };

/* A program that is to run beside a task's own, in its container: as its user, with its environment
 * and working directory, within its limits. */
struct engine_exec_request {
    const char *const *argv; /* NULL-terminated; an empty list: the image's shell */
    bool has_terminal;
    uint16_t rows, columns; /* of the terminal */
    const char *terminal;   /* $TERM */
};

/* How it ended. */
struct engine_exec_end {
    int code;           /* 0 … 255, 128 + signal */
    bool is_task_ended; /* it was ended because its task ends; the code says nothing */
    bool is_lost; /* so was the connection to it: whether it has ended nobody knows; likewise */
};

/* A program that runs so. The descriptors do not block; they are closed by `free`. */
struct engine_exec {
    const struct engine_exec_ops *ops;
    int input;  /* -1: closed, by the caller, who may */
    int output; /* a terminal: the same as input, with both streams; else standard output */
    int error;  /* standard error; -1: a terminal's is in `output` */
    int end;    /* becomes readable when `ended` may be able to tell */
};

struct engine_exec_ops {
    void (*resize)(struct engine_exec *exec, uint16_t rows, uint16_t columns);
    /* False: it runs. True: it has ended, with all that it started; may wait two seconds to find
     * out whether its task has. */
    bool (*ended)(struct engine_exec *exec, struct engine_exec_end *end);
    /* What runs of it is ended: SIGHUP, and SIGKILL half a second later. */
    void (*free)(struct engine_exec *exec);
};

struct engine;

struct engine_ops {
    const char *name;
    void (*free)(struct engine *engine); /* stops its threads; running containers stay */
    /* After a restart: ids of all containers that exist, running or ended but not yet reported.
     * Then events flow for them as for new ones: STARTED is repeated, EXITED comes when due. */
    int (*list)(struct engine *engine, struct attempt_id **attempts, size_t *count,
                struct err *err);
    /* Accepts and returns: all that goes wrong later is an EXITED with a reason. ERR_INVALID,
     * ERR_TOO_BIG, ERR_UNSUPPORTED: never; ERR_BUSY, ERR_UNAVAILABLE: as REFUSED, nothing has
     * changed. */
    int (*create)(struct engine *engine, const struct container *container, struct err *err);
    /* `reason` is a few words, told to the task before SIGTERM. is_held is for the server's own
     * bookkeeping: files stay until forget in any case. An unknown attempt is ERR_NOT_FOUND. */
    int (*kill)(struct engine *engine, struct attempt_id attempt, uint32_t grace_ms,
                const char *reason, bool is_held, struct err *err);
    /* The attempt's exit is on disk and nobody holds it: its files may go, its logs stay for the
     * engine's retention. Until then list gives it and EXITED is posted again after a restart, so
     * this is called after the commit of every exit (at once, or at RELEASE for held ones). */
    int (*forget)(struct engine *engine, struct attempt_id attempt, struct err *err);
    /* Read at `offset` (counted from the attempt's start); returns bytes read, 0 at the end, or
     * ERR_*. An offset before part->begin is moved up to it: *offset says where the bytes are. */
    ssize_t (*log_read)(struct engine *engine, struct attempt_id attempt, enum log_stream stream,
                        uint64_t *offset, char *bytes, size_t size, struct log_part *part,
                        struct err *err);
    /* Where the log is to be read from, so that nothing is left out that was written at `at_ms`
     * (Unix time) or later, UINT64_MAX: nothing was; what comes first may be older. */
    int (*log_time)(struct engine *engine, struct attempt_id attempt, enum log_stream stream,
                    int64_t at_ms, uint64_t *offset, struct err *err);
    /* For a follower that waits without a thread: a descriptor of its own, which becomes readable
     * whenever the log has grown, has ended or is gone; nothing else wakes the follower. What
     * happened before this call wakes nobody: read the log once more after it. The caller empties
     * the descriptor before each log_read, and closes it. End of file: the engine watches no more.
     */
    int (*log_watch)(struct engine *engine, struct attempt_id attempt, enum log_stream stream,
                     struct err *err);
    int (*stats)(struct engine *engine, struct attempt_id attempt, struct engine_stats *stats,
                 struct err *err);
    /* Of a whole machine, what is not Skep's included; `pids` is not known of it. ERR_NOT_FOUND: it
     * is none of this engine's. */
    int (*node_stats)(struct engine *engine, const char *node, struct engine_stats *stats,
                      struct err *err);
    /* Start a program in a running task. Waits until it runs or cannot, 10 s at most; by any
     * thread. *exec must be freed before the engine. ERR_NOT_FOUND: no such attempt; ERR_CONFLICT:
     * it does not run, or is ending; ERR_UNAVAILABLE: the program could not be started, and why. */
    int (*exec)(struct engine *engine, struct attempt_id attempt,
                const struct engine_exec_request *request, struct engine_exec **exec,
                struct err *err);
    /* A connection to a port of a running task, on the task's own network; the caller's. The
     * descriptor does not block, and the connection may still be on its way: it becomes writable,
     * and SO_ERROR says how it went; or it ends before a byte has come. Never waits; by any
     * thread. Errors as exec; ERR_UNAVAILABLE: nobody listens; ERR_BUSY: there are as many as there
     * may be. */
    int (*connect)(struct engine *engine, struct attempt_id attempt, uint16_t port,
                   struct err *err);
    /* What is known of the GPUs that are sampled, by node and index; everything in `arena`. Never
     * waits for a driver. */
    void (*gpus)(struct engine *engine, struct arena *arena, const struct engine_gpu **gpus,
                 size_t *count);
    /* Where tasks have addresses of their own: tasks of one job that run wait for those of their
     * peers, and these are they (init/address_file.h). A task is told once, whatever the engine has
     * to do for that; what it has been told before, or does not run any more, is passed over. NULL
     * where the engine lacks ENGINE_CAN_TELL_ADDRESSES. Called by the launcher's thread. */
    void (*tell_addresses)(struct engine *engine, const struct attempt_id *attempts, size_t count,
                           struct text addresses);
};

/* What an engine may lack; a setting of what stands behind it can decide. */
enum engine_capability {
    ENGINE_CAN_LOG,            /* log_read, log_time */
    ENGINE_CAN_FOLLOW,         /* log_watch */
    ENGINE_CAN_STATS,          /* stats */
    ENGINE_CAN_NODE_STATS,     /* node_stats */
    ENGINE_CAN_SAMPLE_GPUS,    /* gpus */
    ENGINE_CAN_EXACT_DEVICES,  /* a task gets the GPUs of its indices, not just as many */
    ENGINE_CAN_EXEC,           /* exec */
    ENGINE_CAN_RESIZE,         /* no operation yet */
    ENGINE_CAN_CONNECT,        /* connect */
    ENGINE_CAN_TELL_ADDRESSES, /* tell_addresses: STARTED has each task's own */
    ENGINE_CAPABILITIES,
};
#define ENGINE_CAN(capability) (1u << (capability))

struct engine { /* first member of every implementation */
    const struct engine_ops *ops;
    const char *name;      /* in the configuration; its owner's. NULL: ops->name */
    uint32_t capabilities; /* ENGINE_CAN of each */
};

/* Asked before what it may lack is used. ERR_UNSUPPORTED: names the engine and what it cannot do.
 * Pure. */
int engine_need(const struct engine *engine, enum engine_capability capability, struct err *err);

#endif
