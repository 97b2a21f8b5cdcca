/* exit.h — how a container ended, as far as its engine and skep-init know.
 *
 * Pure. An engine reports it and exits/judge.h says what it means. Everything is borrowed; a report
 * that is all zero is a container that ended well without saying anything.
 */
#ifndef MODEL_EXIT_H
#define MODEL_EXIT_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kubernetes' view of a pod, for the engine that runs pods: init containers first. */
struct exit_container {
    const char *name, *reason, *message;
    int32_t exit_code, signal;
    int64_t finished_at;
    bool is_terminated;
};

struct exit_report {
    int32_t exit_code;      /* as waitpid gives it; 128 + signal when killed */
    int32_t signal;         /* 0 = none */
    bool is_oom_killed;     /* its memory ran out (the machine's: NodeOutOfMemory) */
    bool is_user_command;   /* false: setup failed before the user's command ran */
    bool is_missing;        /* removed behind our back */
    bool is_lost;           /* the node went away */
    bool has_gpu_ecc_error; /* a GPU of the task counted new uncorrectable memory errors */
    bool has_gpu_lost;      /* a GPU of the task was lost while it ran */
    const char *name;       /* of the pod; NULL where tasks are no pods */
    /* The engine's word, in Kubernetes' vocabulary where it has one: NULL or "", "ImagePullError",
     * "ImageNotFound", "ContainerCannotRun", "DiskFull", "CreationError", … */
    const char *reason;
    const char *message;                     /* may be NULL */
    struct text log_tail;                    /* of the merged user log, at most 10 MiB */
    struct text platform_tail;               /* of skep-init's own log */
    const struct exit_container *containers; /* NULL: one, made of the above */
    size_t container_count;
};

#endif
