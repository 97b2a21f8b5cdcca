/* pod_object.h — a Pod of the Kubernetes API as the life of an attempt.
 *
 * Pure. The table "life of a pod" of docs/rfc/0017-kubernetes-engine.md is this function: what is
 * seen, what it means, and in whose words it is told.
 */
#ifndef ENGINE_KUBERNETES_POD_OBJECT_H
#define ENGINE_KUBERNETES_POD_OBJECT_H
#include "model/exit.h"
#include "model/ids.h"
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct doc;

/* The container of a pod that is the task; and the one that brings skep-init. */
#define POD_CONTAINER_TASK "task"
#define POD_CONTAINER_INIT "skep"

/* A variable of the latter: the address of the pod. */
#define POD_ADDRESS_VARIABLE "SKEP_POD_ADDRESS"

/* The reason of a pod that waits for its volumes or its sandbox. */
#define POD_UNPREPARED "PodNotPrepared"
/* The reason of a pod whose container that brings skep-init cannot be started: its image is the
 * operator's. */
#define POD_INIT_FAILED "InitImageFailed"

enum pod_stage {
    POD_WAITING, /* its container does not run yet; `reason` says why */
    POD_RUNNING,
    POD_ENDED,   /* nothing of it runs any more: `exit` */
    POD_REFUSED, /* its node did not take it, nothing of it has run: `reason`, `message` */
};

/* Seen of a pod that waits. */
enum pod_patience {
    POD_WAIT,         /* it goes on by itself */
    POD_WAIT_SHORTLY, /* it is tried again, and may never succeed: `patience_ms` */
    POD_GIVE_UP,      /* it cannot succeed */
};

enum {
    POD_PATIENCE_MS = 5 * 60 * 1000,
    /* A kubelet before 1.29 does not tell a pod that is not prepared from one whose first image is
     * fetched, behind large images of others. */
    POD_PATIENCE_UNTOLD_MS = 30 * 60 * 1000,
};

struct pod_object {
    const char *name, *uid, *version, *node;
    const char *address; /* "": its sandbox has not been made, or that is not told yet */
    bool is_deleting;    /* it has a deletionTimestamp */
    bool has_started;    /* the task's container runs, or has run */
    bool asks_devices;   /* its kubelet has to find a device for it */
    enum pod_stage stage;
    enum pod_patience patience;   /* WAITING */
    uint32_t patience_ms;         /* POD_WAIT_SHORTLY */
    const char *reason, *message; /* WAITING, REFUSED */
    struct exit_report exit;      /* ENDED */
    /* ENDED: all of it was killed at once, and whether memory had run out may be told later: the
     * node's runtime learns both by different ways */
    bool is_word_open;
};

enum pod_sight {
    POD_SEEN,    /* it is there */
    POD_REMOVED, /* the object has gone, this was its last state */
};

/* Everything lives in `arena` or in the document. `is_ours`: Skep has asked for its deletion; what
 * others delete is the platform's doing, whatever code the task ended with. */
void pod_object_read(const struct doc *pod, enum pod_sight sight, bool is_ours, struct arena *arena,
                     struct pod_object *out);

/* Its container had been seen to run before this was read: then a refusal is an end. A kubelet that
 * begins anew admits its pods again, and forgets the containers of those that it refuses. */
void pod_object_had_started(struct pod_object *pod);

#endif
