/* framework.h — documents and names of FrameworkController, for clusters and operators that come
 * from it: its configuration, Framework objects, names of what it makes, its barrier.
 *
 * Source: FrameworkController 1.0 and its manual. No program contains it: the driver of the
 * recorded behaviour compares it with the original.
 */
#ifndef ORIGINALS_FRAMEWORK_H
#define ORIGINALS_FRAMEWORK_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct doc;
struct problems;

/* Defaults are framework_config_default's; unknown fields are warned about. */
struct framework_config {
    int64_t kube_client_qps, kube_client_burst, worker_count;
    bool compresses_large;
    int64_t crd_check_interval_s, crd_check_timeout_s, cache_creation_timeout_s;
    int64_t completed_retain_s, conflict_delay_min_s, conflict_delay_max_s;
    bool logs_framework_retry, logs_framework_deletion, logs_task_retry, logs_task_deletion,
        logs_pod_deletion;
};
void framework_config_default(struct framework_config *config);
/* YAML or JSON. False: errors are among the problems, by line and column. `podFailureSpec` is
 * checked as exits/rules.h reads it. */
bool framework_config_read(struct text source, struct framework_config *config,
                           struct problems *problems);

/* Is this a Framework that the API server would store? */
bool framework_object_check(const struct doc *object, struct problems *problems);

/* ---- names ---- */

/* Append; "FRAMEWORK-attempt" and "FRAMEWORK-ROLE-INDEX". */
void framework_attempt_name(const char *framework, struct buf *out); /* its ConfigMap */
void framework_pod_name(const char *framework, const char *role, uint32_t index, struct buf *out);
/* Of an attempt's object or of a pod: "ATTEMPT_OBJECTUID". */
void framework_instance_uid(uint32_t attempt, const char *object_uid, struct buf *out);

/* Ends with NULL. */
extern const char *const framework_pod_labels[];
extern const char *const framework_pod_annotations[]; /* variables of the same names as well */
extern const char *const framework_pod_variables[];   /* variables only */
extern const char *const framework_placeholder_names[];

struct framework_placeholder {
    const char *name, *value;
};
/* Replace `{{NAME}}`; an unknown one stays as it is. */
void framework_placeholders_render(struct text text, const struct framework_placeholder *values,
                                   size_t count, struct buf *out);

/* ---- the gang barrier ---- */

enum {
    BARRIER_PASSED = 0,
    BARRIER_UNKNOWN = 1,
    BARRIER_TIMEOUT = 201,   /* transient conflict: the framework backs off */
    BARRIER_PERMANENT = 210, /* bad settings, or no such framework */
    BARRIER_INTERVAL_S = 10, /* where nothing is set */
    BARRIER_TIMEOUT_S = 600,
};
/* Settings as its variables carry them; NULL or "" interval and timeout: the defaults. Returns
 * BARRIER_PASSED or BARRIER_PERMANENT. */
int framework_barrier_check(const char *framework, const char *interval, const char *timeout);

struct framework_barrier_role {
    uint32_t wanted; /* tasks of the spec */
    /* of tasks 0 … count - 1 of the status: has an address and is not being deleted */
    const bool *is_ready;
    uint32_t count;
};
bool framework_barrier_is_passed(const struct framework_barrier_role *roles, size_t count);
int framework_barrier_exit(bool is_passed, bool is_missing, bool is_last_read_good);

/* How a failure of Kubernetes' pod creation call is to be taken. `http_status` 0: no answer;
 * `network_error` NULL: none. CODE_CREATION_TRANSIENT: try again later, the attempt goes on. */
int32_t framework_creation_code(int http_status, const char *message, const char *network_error);

#endif
