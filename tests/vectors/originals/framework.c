#include "originals/framework.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "doc/shape.h"
#include "exits/rules.h"
#include "model/completion.h"
#include <string.h>

/* ---- configuration ---- */

static const struct field snapshot_framework_fields[] = {
    {.name = "onFrameworkRetry", .kind = FIELD_BOOL, .flags = FIELD_NULLABLE},
    {.name = "onFrameworkDeletion", .kind = FIELD_BOOL, .flags = FIELD_NULLABLE},
    {.name = "onTaskRetry",
     .kind = FIELD_BOOL,
     .flags = FIELD_NULLABLE}, /* where it stood before tasks had their own */
};
static const struct field snapshot_task_fields[] = {
    {.name = "onTaskRetry", .kind = FIELD_BOOL, .flags = FIELD_NULLABLE},
    {.name = "onTaskDeletion", .kind = FIELD_BOOL, .flags = FIELD_NULLABLE},
};
static const struct field snapshot_pod_fields[] = {
    {.name = "onPodDeletion", .kind = FIELD_BOOL, .flags = FIELD_NULLABLE},
};
#define SHAPE(fields)                                                                              \
    {                                                                                              \
        (fields), COUNT_OF(fields), UNKNOWN_WARN                                                   \
    }
static const struct shape snapshot_framework = SHAPE(snapshot_framework_fields);
static const struct shape snapshot_task = SHAPE(snapshot_task_fields);
static const struct shape snapshot_pod = SHAPE(snapshot_pod_fields);
static const struct field snapshot_fields[] = {
    {.name = "framework", .kind = FIELD_MAP, .flags = FIELD_NULLABLE, .shape = &snapshot_framework},
    {.name = "task", .kind = FIELD_MAP, .flags = FIELD_NULLABLE, .shape = &snapshot_task},
    {.name = "pod", .kind = FIELD_MAP, .flags = FIELD_NULLABLE, .shape = &snapshot_pod},
};
static const struct shape snapshot = SHAPE(snapshot_fields);

static const struct field config_fields[] = {
    {.name = "kubeApiServerAddress", .kind = FIELD_STRING, .flags = FIELD_NULLABLE},
    {.name = "kubeConfigFilePath", .kind = FIELD_STRING, .flags = FIELD_NULLABLE},
    {.name = "kubeClientQps", .kind = FIELD_ANY},
    {.name = "kubeClientBurst",
     .kind = FIELD_INT,
     .flags = FIELD_NULLABLE,
     .min = INT32_MIN,
     .max = INT32_MAX},
    {.name = "workerNumber",
     .kind = FIELD_INT,
     .flags = FIELD_NULLABLE,
     .min = 1,
     .max = INT32_MAX},
    {.name = "largeFrameworkCompression", .kind = FIELD_BOOL, .flags = FIELD_NULLABLE},
    {.name = "crdEstablishedCheckIntervalSec",
     .kind = FIELD_INT,
     .flags = FIELD_NULLABLE,
     .min = 1,
     .max = INT64_MAX},
    {.name = "crdEstablishedCheckTimeoutSec",
     .kind = FIELD_INT,
     .flags = FIELD_NULLABLE,
     .min = 10,
     .max = INT64_MAX},
    {.name = "objectLocalCacheCreationTimeoutSec",
     .kind = FIELD_INT,
     .flags = FIELD_NULLABLE,
     .min = 60,
     .max = INT64_MAX},
    {.name = "frameworkCompletedRetainSec", .kind = FIELD_INT, .flags = FIELD_NULLABLE},
    {.name = "frameworkMinRetryDelaySecForTransientConflictFailed",
     .kind = FIELD_INT,
     .flags = FIELD_NULLABLE,
     .min = 0,
     .max = INT64_MAX},
    {.name = "frameworkMaxRetryDelaySecForTransientConflictFailed",
     .kind = FIELD_INT,
     .flags = FIELD_NULLABLE},
    {.name = "logObjectSnapshot", .kind = FIELD_MAP, .flags = FIELD_NULLABLE, .shape = &snapshot},
    {.name = "podFailureSpec", .kind = FIELD_ANY},
};
static const struct shape config_shape = SHAPE(config_fields);

void framework_config_default(struct framework_config *config)
{
    *config = (struct framework_config){
        .kube_client_qps = 80,
        .kube_client_burst = 120,
        .worker_count = 200,
        .crd_check_interval_s = 1,
        .crd_check_timeout_s = 60,
        .cache_creation_timeout_s = 300,
        .completed_retain_s = 30 * 24 * 3600,
        .conflict_delay_min_s = 60,
        .conflict_delay_max_s = 900,
        .logs_framework_retry = true,
        .logs_framework_deletion = true,
        .logs_task_retry = true,
        .logs_task_deletion = true,
        .logs_pod_deletion = true,
    };
}

static void take_int(const struct doc *map, const char *key, int64_t *value)
{
    const struct doc *doc = doc_get(map, key);
    if (doc && doc->kind == DOC_INT)
        *value = doc->as.integer;
    else if (doc && doc->kind == DOC_REAL)
        *value = (int64_t)doc->as.real;
}

static void take_bool(const struct doc *map, const char *key, bool *value)
{
    const struct doc *doc = doc_get(map, key);
    if (doc && doc->kind == DOC_BOOL)
        *value = doc->as.boolean;
}

static void config_take(const struct doc *doc, struct framework_config *config)
{
    take_int(doc, "kubeClientQps", &config->kube_client_qps);
    take_int(doc, "kubeClientBurst", &config->kube_client_burst);
    take_int(doc, "workerNumber", &config->worker_count);
    take_bool(doc, "largeFrameworkCompression", &config->compresses_large);
    take_int(doc, "crdEstablishedCheckIntervalSec", &config->crd_check_interval_s);
    take_int(doc, "crdEstablishedCheckTimeoutSec", &config->crd_check_timeout_s);
    take_int(doc, "objectLocalCacheCreationTimeoutSec", &config->cache_creation_timeout_s);
    take_int(doc, "frameworkCompletedRetainSec", &config->completed_retain_s);
    take_int(doc, "frameworkMinRetryDelaySecForTransientConflictFailed",
             &config->conflict_delay_min_s);
    take_int(doc, "frameworkMaxRetryDelaySecForTransientConflictFailed",
             &config->conflict_delay_max_s);
    const struct doc *logs = doc_get(doc, "logObjectSnapshot");
    const struct doc *framework = doc_get(logs, "framework"), *task = doc_get(logs, "task");
    take_bool(framework, "onFrameworkRetry", &config->logs_framework_retry);
    take_bool(framework, "onFrameworkDeletion", &config->logs_framework_deletion);
    take_bool(framework, "onTaskRetry", &config->logs_task_retry);
    take_bool(task, "onTaskRetry", &config->logs_task_retry);
    take_bool(task, "onTaskDeletion", &config->logs_task_deletion);
    take_bool(doc_get(logs, "pod"), "onPodDeletion", &config->logs_pod_deletion);
}

static void config_check(const struct doc *doc, const struct framework_config *config,
                         struct problems *problems)
{
    const struct doc *qps = doc_get(doc, "kubeClientQps");
    if (qps && qps->kind != DOC_INT && qps->kind != DOC_REAL && qps->kind != DOC_NULL)
        problem_add(problems, qps->place, "kubeClientQps", "must be a number, is %s",
                    doc_kind_name(qps->kind));
    static const char max[] = "frameworkMaxRetryDelaySecForTransientConflictFailed";
    static const char min[] = "frameworkMinRetryDelaySecForTransientConflictFailed";
    if (config->conflict_delay_max_s < config->conflict_delay_min_s)
        problem_add(problems, (doc_get(doc, max) ? doc_get(doc, max) : doc_get(doc, min))->place,
                    max, "must not be less than the minimum, %lld",
                    (long long)config->conflict_delay_min_s);
}

bool framework_config_read(struct text source, struct framework_config *config,
                           struct problems *problems)
{
    framework_config_default(config);
    if (source.length == 0)
        return true;
    const size_t errors_before = problems->error_count;
    struct arena arena;
    arena_init(&arena);
    const struct doc *doc = doc_parse(source, DOC_YAML, &arena, problems);
    if (doc && doc->kind != DOC_NULL) {
        shape_check(&config_shape, doc, "", problems);
        if (problems->error_count == errors_before) {
            config_take(doc, config);
            config_check(doc, config, problems);
        }
    }
    if (doc && doc_get(doc, "podFailureSpec") && doc_get(doc, "podFailureSpec")->kind != DOC_NULL &&
        problems->error_count == errors_before)
        exit_rules_free(exit_rules_new(source, problems));
    arena_release(&arena);
    return problems->error_count == errors_before;
}

/* ---- Framework objects ---- */

static void check_name(const struct doc *doc, const char *path, struct problems *problems)
{
    static const struct shape_pattern pattern = {"a-z0-9", "a-z0-9", "small letters and digits"};
    if (!doc)
        return;
    if (doc->kind != DOC_STRING)
        problem_add(problems, doc->place, path, "must be a string, is %s",
                    doc_kind_name(doc->kind));
    else if (doc->as.string.length < 1 || doc->as.string.length > 63 ||
             !shape_pattern_fits(&pattern, doc->as.string))
        problem_add(problems, doc->place, path, "must have 1..63 small letters and digits");
}

static const struct field completion_fields[] = {
    {.name = "minFailedTaskCount", .kind = FIELD_INT, .min = -1, .max = INT32_MAX},
    {.name = "minSucceededTaskCount", .kind = FIELD_INT, .min = -1, .max = INT32_MAX},
};
static const struct field retry_fields[] = {
    {.name = "fancyRetryPolicy", .kind = FIELD_BOOL},
    {.name = "maxRetryCount", .kind = FIELD_INT, .min = -2, .max = INT32_MAX},
};
static const struct shape completion_shape = SHAPE(completion_fields);
static const struct shape retry_shape = SHAPE(retry_fields);
static const struct field task_fields[] = {
    {.name = "retryPolicy", .kind = FIELD_MAP, .shape = &retry_shape},
    {.name = "podGracefulDeletionTimeoutSec", .kind = FIELD_INT, .flags = FIELD_NULLABLE},
    {.name = "pod", .kind = FIELD_FREE_MAP},
};
static const struct shape task_shape = SHAPE(task_fields);
static const struct field role_fields[] = {
    {.name = "name", .kind = FIELD_ANY},
    {.name = "taskNumber", .kind = FIELD_INT, .min = 0, .max = 10000},
    {.name = "frameworkAttemptCompletionPolicy", .kind = FIELD_MAP, .shape = &completion_shape},
    {.name = "task", .kind = FIELD_MAP, .shape = &task_shape},
};
static const struct shape role_shape = SHAPE(role_fields);
static const char *const executions[] = {"Create", "Start", "Stop", NULL};
static const struct field spec_fields[] = {
    {.name = "description", .kind = FIELD_STRING},
    {.name = "executionType", .kind = FIELD_CHOICE, .choices = executions},
    {.name = "retryPolicy", .kind = FIELD_MAP, .shape = &retry_shape},
    {.name = "taskRoles", .kind = FIELD_MAP_LIST, .shape = &role_shape},
};
static const struct shape spec_shape = SHAPE(spec_fields);
static const struct field metadata_fields[] = {{.name = "name", .kind = FIELD_ANY}};
static const struct shape metadata_shape = {metadata_fields, 1, UNKNOWN_FREE};
static const struct field object_fields[] = {
    {.name = "apiVersion", .kind = FIELD_STRING},
    {.name = "kind", .kind = FIELD_STRING},
    {.name = "metadata", .kind = FIELD_MAP, .shape = &metadata_shape},
    {.name = "spec", .kind = FIELD_MAP, .shape = &spec_shape},
    {.name = "status", .kind = FIELD_ANY},
};
static const struct shape object_shape = SHAPE(object_fields);

bool framework_object_check(const struct doc *object, struct problems *problems)
{
    const size_t errors_before = problems->error_count;
    shape_check(&object_shape, object, "", problems);
    check_name(doc_get(doc_get(object, "metadata"), "name"), "metadata.name", problems);
    const struct doc *roles = doc_get(doc_get(object, "spec"), "taskRoles");
    for (size_t i = 0; roles && roles->kind == DOC_LIST && i < roles->as.list.count; i++)
        check_name(doc_get(roles->as.list.items[i], "name"), "spec.taskRoles.name", problems);
    return problems->error_count == errors_before;
}

/* ---- names ---- */

const char *const framework_pod_labels[] = {"FC_FRAMEWORK_NAME", "FC_TASKROLE_NAME",
                                            "FC_TASK_INDEX", NULL};
const char *const framework_pod_annotations[] = {"FC_FRAMEWORK_NAMESPACE",
                                                 "FC_FRAMEWORK_NAME",
                                                 "FC_TASKROLE_NAME",
                                                 "FC_TASK_INDEX",
                                                 "FC_CONFIGMAP_NAME",
                                                 "FC_POD_NAME",
                                                 "FC_FRAMEWORK_UID",
                                                 "FC_FRAMEWORK_ATTEMPT_ID",
                                                 "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID",
                                                 "FC_CONFIGMAP_UID",
                                                 "FC_TASKROLE_UID",
                                                 "FC_TASK_UID",
                                                 "FC_TASK_ATTEMPT_ID",
                                                 NULL};
const char *const framework_pod_variables[] = {"FC_TASK_ATTEMPT_INSTANCE_UID", "FC_POD_UID", NULL};
const char *const framework_placeholder_names[] = {"FC_FRAMEWORK_NAMESPACE",
                                                   "FC_FRAMEWORK_NAME",
                                                   "FC_TASKROLE_NAME",
                                                   "FC_TASK_INDEX",
                                                   "FC_CONFIGMAP_NAME",
                                                   "FC_POD_NAME",
                                                   NULL};

void framework_attempt_name(const char *framework, struct buf *out)
{
    buf_format(out, "%s-attempt", framework);
}

void framework_pod_name(const char *framework, const char *role, uint32_t index, struct buf *out)
{
    buf_format(out, "%s-%s-%u", framework, role, index);
}

void framework_instance_uid(uint32_t attempt, const char *object_uid, struct buf *out)
{
    buf_format(out, "%u_%s", attempt, object_uid);
}

static const char *placeholder_find(struct text name, const struct framework_placeholder *values,
                                    size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (text_is(name, values[i].name))
            return values[i].value;
    return NULL;
}

void framework_placeholders_render(struct text text, const struct framework_placeholder *values,
                                   size_t count, struct buf *out)
{
    while (text.length > 0) {
        const size_t open = text_find(text, TEXT("{{"));
        if (open == SIZE_MAX)
            break;
        const struct text rest = {text.at + open + 2, text.length - open - 2};
        const size_t close = text_find(rest, TEXT("}}"));
        const char *value = close == SIZE_MAX
                                ? NULL
                                : placeholder_find((struct text){rest.at, close}, values, count);
        buf_text(out, (struct text){text.at, value ? open : open + 2});
        if (value)
            buf_string(out, value);
        const size_t taken = value ? open + 2 + close + 2 : open + 2;
        text = (struct text){text.at + taken, text.length - taken};
    }
    buf_text(out, text);
}

/* ---- the barrier ---- */

static bool is_in(const char *text, int64_t otherwise, int64_t min, int64_t max)
{
    int64_t value = otherwise;
    if (text && text[0] != '\0' && !text_to_int64(text_of(text), &value))
        return false;
    return value >= min && value <= max;
}

int framework_barrier_check(const char *framework, const char *interval, const char *timeout)
{
    if (framework[0] == '\0' || !is_in(interval, BARRIER_INTERVAL_S, 5, INT64_MAX) ||
        !is_in(timeout, BARRIER_TIMEOUT_S, 60, 1200))
        return BARRIER_PERMANENT;
    return BARRIER_PASSED;
}

bool framework_barrier_is_passed(const struct framework_barrier_role *roles, size_t count)
{
    for (size_t r = 0; r < count; r++)
        for (uint32_t i = 0; i < roles[r].wanted; i++)
            if (i >= roles[r].count || !roles[r].is_ready[i])
                return false;
    return true;
}

int framework_barrier_exit(bool is_passed, bool is_missing, bool is_last_read_good)
{
    if (is_passed)
        return BARRIER_PASSED;
    if (is_missing)
        return BARRIER_PERMANENT;
    return is_last_read_good ? BARRIER_TIMEOUT : BARRIER_UNKNOWN;
}

/* ---- errors of the API server ---- */

/* A connection that broke in the middle: what the answer seems to say may be half of it. */
static bool is_torn(const char *network_error)
{
    static const char *const signs[] = {"connection reset", "EOF", "broken connection",
                                        "closed idle connection", "closed network connection"};
    for (size_t i = 0; network_error && i < COUNT_OF(signs); i++)
        if (strstr(network_error, signs[i]))
            return true;
    return false;
}

int32_t framework_creation_code(int http_status, const char *message, const char *network_error)
{
    if (strstr(message, "exceeded quota"))
        return CODE_CREATION_TRANSIENT; /* it will fit when others have ended */
    switch (http_status) {
    case 413:
    case 422:
        return is_torn(network_error) ? CODE_CREATION_UNKNOWN : CODE_CREATION_PERMANENT;
    case 400:
    case 403:
        return CODE_CREATION_UNKNOWN;
    default:
        return CODE_CREATION_TRANSIENT;
    }
}
