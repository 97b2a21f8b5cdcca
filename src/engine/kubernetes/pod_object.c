#include "engine/kubernetes/pod_object.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "doc/doc.h"
#include "engine/kubernetes/image_words.h"
#include "engine/kubernetes/object.h"
#include "init/exit_file.h"

#define UNKNOWN_STATUS "ContainerStatusUnknown"

enum { SIGNAL_KILL = 9, SIGNAL_BASE = 128, SIGNALS = 64, CODE_CANNOT_RUN = 128 };

static bool is_any(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static const struct doc *status_find(const struct doc *pod, const char *list, const char *name)
{
    const struct doc *statuses = doc_get_list(doc_get(pod, "status"), list);
    for (size_t i = 0; i < statuses->as.list.count; i++)
        if (strcmp(object_string(statuses->as.list.items[i], "name"), name) == 0)
            return statuses->as.list.items[i];
    return NULL;
}

static const struct doc *condition_find(const struct doc *pod, const char *type)
{
    const struct doc *conditions = doc_get_list(doc_get(pod, "status"), "conditions");
    for (size_t i = 0; i < conditions->as.list.count; i++)
        if (strcmp(object_string(conditions->as.list.items[i], "type"), type) == 0)
            return conditions->as.list.items[i];
    return NULL;
}

/* The reason of a condition that is true; "" otherwise. */
static const char *condition_reason(const struct doc *pod, const char *type, const char **message)
{
    const struct doc *condition = condition_find(pod, type);
    if (strcmp(object_string(condition, "status"), "True") != 0)
        return "";
    *message = object_string(condition, "message");
    return object_string(condition, "reason");
}

/* --- its node did not take it --- */

/* What kubelet answers at admission (pkg/kubelet/lifecycle and its resource managers). */
static bool is_refusal(const char *reason, const char *message)
{
    static const char *const reasons[] = {"NodeAffinity",
                                          "NodePorts",
                                          "TaintToleration",
                                          "UnexpectedAdmissionError",
                                          "NodeShutdown",
                                          "NodeName",
                                          "InvalidNodeInfo",
                                          "UnexpectedPredicateFailureType",
                                          "UnknownReason",
                                          "TopologyAffinityError",
                                          "SMTAlignmentError",
                                          "PodLevelResourcesNotAdmittedReason",
                                          "OutOfGPU", /* a device plugin of ours may say so */
                                          NULL};
    /* a node under pressure uses the word of those that it ends */
    const bool is_under_pressure =
        strcmp(reason, "Evicted") == 0 && text_starts(text_of(message), TEXT("Pod was rejected"));
    return text_starts(text_of(reason), TEXT("OutOf")) || is_any(reason, reasons) ||
           is_under_pressure;
}

/* --- the platform took it --- */

/* Kubelet evicts for what the node is short of, and says so with the same word of what has gone
 * beyond its own limit (localStorageEviction of pkg/kubelet/eviction); only the message differs. */
static bool is_over_own_disk(const char *message)
{
    static const char *const words[] = {"exceeds the total limit of containers",
                                        "exceeded its local ephemeral storage limit",
                                        "Usage of EmptyDir volume"};
    bool is_own = false;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        is_own = is_own || strstr(message, words[i]);
    return is_own;
}

/* A word that the table of exits has a row for; NULL: the platform did nothing to it. */
static const char *disruption_of(const struct doc *pod, const char **message)
{
    static const struct {
        const char *seen, *told;
    } words[] = {
        {"Evicted", "Evicted"},
        {"Preempting", "Preempting"},
        {"DeadlineExceeded", "DeadlineExceeded"}, /* the pod's; Skep's own time limit is none */
        {"Terminated", "NodeLost"},               /* the node shuts down in an orderly way */
        {"NodeShutdown", "NodeLost"},
        {"NodeLost", "NodeLost"},
        {"PreemptionByScheduler", "Preempting"},
        {"DeletionByTaintManager", "NodeLost"},
        {"EvictionByEvictionAPI", "Evicted"},
        {"DeletionByPodGC", "NodeLost"},
        {"TerminationByKubelet", "Evicted"},
    };
    const char *seen = object_string(pod, "status.reason");
    *message = object_string(pod, "status.message");
    if (strcmp(seen, "Evicted") == 0 && is_over_own_disk(*message))
        return "TaskDiskFull";
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < COUNT_OF(words); i++)
            if (strcmp(seen, words[i].seen) == 0)
                return words[i].told;
        seen = condition_reason(pod, "DisruptionTarget", message);
    }
    return NULL;
}

/* --- how the task's container ended --- */

static void code_set(struct exit_report *exit, int64_t code, int64_t signal)
{
    if (code > SIGNAL_BASE && code <= SIGNAL_BASE + SIGNALS && signal == 0)
        signal = code - SIGNAL_BASE;
    exit->exit_code = (int32_t)code;
    exit->signal = (int32_t)signal;
}

/* What skep-init has found in its control group. A program that went on after a child of it had
 * been killed, and succeeded, has succeeded. */
static void memory_read(enum exit_memory memory, struct exit_report *exit)
{
    if (memory == EXIT_MEMORY_LASTED || exit->exit_code == 0 || exit->is_oom_killed)
        return;
    exit->is_oom_killed = memory == EXIT_MEMORY_LIMIT;
    exit->reason = exit->is_oom_killed ? "OOMKilled" : "NodeOutOfMemory";
    if (!exit->is_oom_killed)
        exit->message = "the machine ran out of memory while the task was within its own limit";
}

/* Killed with skep-init, which has left no word. */
static bool is_word_open(const struct doc *terminated, const struct exit_report *exit)
{
    return exit->exit_code == SIGNAL_BASE + SIGNAL_KILL && !exit->is_oom_killed &&
           !exit->reason[0] && !object_string(terminated, "message")[0];
}

/* What skep-init left as the termination message. */
static void message_read(const struct doc *terminated, struct arena *arena,
                         struct exit_report *exit)
{
    struct exit_file file;
    struct text message = text_of(object_string(terminated, "message"));
    if (exit_file_read(message, &file, NULL) < 0) {
        exit->message = arena_copy(arena, message);
        return;
    }
    exit->is_user_command = file.stage != EXIT_STAGE_SETUP;
    exit->message = arena_copy(arena, text_of(file.message));
    if (!exit->is_oom_killed)
        code_set(exit, file.code, file.signal);
    memory_read(file.memory, exit);
}

static void terminated_read(const struct doc *terminated, struct arena *arena,
                            struct exit_report *exit)
{
    const char *reason = object_string(terminated, "reason");
    code_set(exit, doc_get_int(terminated, "exitCode", 0), doc_get_int(terminated, "signal", 0));
    exit->is_user_command = true;
    if (strcmp(reason, UNKNOWN_STATUS) == 0) { /* 137 says nothing: nobody killed it */
        exit->reason = "NodeRestarted";
        exit->message = object_string(terminated, "message");
        return;
    }
    if (strcmp(reason, "ContainerCannotRun") == 0 || strcmp(reason, "StartError") == 0) {
        exit->is_user_command = false;
        exit->reason = "ContainerCannotRun";
        exit->message = object_string(terminated, "message");
        return;
    }
    exit->is_oom_killed = strcmp(reason, "OOMKilled") == 0;
    if (exit->is_oom_killed)
        exit->reason = "OOMKilled";
    message_read(terminated, arena, exit);
}

/* The container that brings skep-init: that it fails is never the user's doing. */
static bool init_failed(const struct doc *pod, struct arena *arena, struct exit_report *exit)
{
    const struct doc *status = status_find(pod, "initContainerStatuses", POD_CONTAINER_INIT);
    const struct doc *terminated = object_at(status, "state.terminated");
    const int64_t code = doc_get_int(terminated, "exitCode", 0);
    if (!terminated || code == 0)
        return false;
    code_set(exit, code, 0);
    exit->reason = "CreationError";
    exit->message =
        arena_format(arena, "skep-init could not be brought into the pod: %.60s %.200s",
                     object_string(terminated, "reason"), object_string(terminated, "message"));
    return true;
}

/* Of a pod that is deleted while its container waits kubelet says that it cannot find the
 * container; one that it has lost had begun some time, as far as this kubelet knows. */
static bool has_begun(const struct doc *status)
{
    const struct doc *terminated = object_at(status, "state.terminated");
    if (!terminated)
        return object_at(status, "state.running") != NULL;
    return strcmp(object_string(terminated, "reason"), UNKNOWN_STATUS) != 0 ||
           object_string(terminated, "startedAt")[0] != '\0';
}

static bool is_running(const struct doc *pod)
{
    static const char *const lists[] = {"containerStatuses", "initContainerStatuses"};
    for (size_t l = 0; l < COUNT_OF(lists); l++) {
        const struct doc *statuses = doc_get_list(doc_get(pod, "status"), lists[l]);
        for (size_t i = 0; i < statuses->as.list.count; i++)
            if (object_at(statuses->as.list.items[i], "state.running"))
                return true;
    }
    return false;
}

/* The pod is over. */
static void end_read(const struct doc *pod, enum pod_sight sight, bool is_ours, struct arena *arena,
                     struct pod_object *out)
{
    const struct doc *status = status_find(pod, "containerStatuses", POD_CONTAINER_TASK);
    const struct doc *terminated = object_at(status, "state.terminated");
    struct exit_report *exit = &out->exit;
    const char *message, *disruption = disruption_of(pod, &message);
    *exit = (struct exit_report){.name = out->name, .reason = "", .message = ""};
    out->stage = POD_ENDED;
    if (terminated)
        terminated_read(terminated, arena, exit);
    else if (!init_failed(pod, arena, exit))
        code_set(exit, SIGNAL_BASE + SIGNAL_KILL, 0);
    if (terminated && exit->exit_code == 0 && !exit->reason[0])
        return; /* it had done its work, whatever happened to the pod then */
    out->is_word_open = terminated && !is_ours && !disruption && is_word_open(terminated, exit);
    if (disruption) {
        exit->reason = disruption;
        exit->message = message;
        return;
    }
    if (!is_ours && (out->is_deleting || sight == POD_REMOVED)) {
        exit->is_missing = true;
        exit->reason = "ContainerMissing";
        exit->message = "the pod was deleted by somebody else";
        return;
    }
    if (terminated || exit->reason[0])
        return;
    exit->reason = object_string(pod, "status.reason");
    exit->message = object_string(pod, "status.message");
    if (!exit->reason[0] && !is_ours)
        exit->reason = "CreationError";
}

/* --- it waits --- */

static const char *image_of(const struct doc *pod, const char *list, const char *name)
{
    const struct doc *containers = doc_get_list(doc_get(pod, "spec"), list);
    for (size_t i = 0; i < containers->as.list.count; i++)
        if (strcmp(object_string(containers->as.list.items[i], "name"), name) == 0)
            return object_string(containers->as.list.items[i], "image");
    return "";
}

/* Does it say that a registry does not have this image, or does not give it? Runtimes write "401
 * Unauthorized" and "unauthorized" alike. */
static bool is_image_refused(const char *message, const char *image, struct arena *arena)
{
    static const char *const refused[] = {
        "not found", "manifest unknown",        "name unknown", "unauthorized",
        "denied",    "authentication required", "forbidden"};
    const char *words = image_words(message, image, arena);
    for (size_t i = 0; i < COUNT_OF(refused); i++)
        if (strstr(words, refused[i]))
            return true;
    return false;
}

/* What a container waits for whose image this is. */
static enum pod_patience patience_of(const char *reason, const char *message, const char *image,
                                     struct arena *arena)
{
    static const char *const never[] = {"InvalidImageName", "ErrImageNeverPull",
                                        "CreateContainerConfigError", NULL};
    static const char *const perhaps[] = {
        "ErrImagePull",          "ImagePullBackOff",     "ImageInspectError",
        "RegistryUnavailable",   "CreateContainerError", "RunContainerError",
        "CreatePodSandboxError", "CrashLoopBackOff",     NULL};
    if (is_any(reason, never))
        return POD_GIVE_UP;
    if (!is_any(reason, perhaps))
        return POD_WAIT;
    if (strcmp(reason, "ErrImagePull") == 0 && is_image_refused(message, image, arena))
        return POD_GIVE_UP;
    return POD_WAIT_SHORTLY;
}

/* Its kubelet knows it, and nothing says that its sandbox has been made: neither its first
 * container, which that of skep-init is, nor an address of its own. */
static bool is_without_sandbox(const struct doc *pod)
{
    const struct doc *init = status_find(pod, "initContainerStatuses", POD_CONTAINER_INIT);
    const bool is_on_host = doc_get_bool(doc_get(pod, "spec"), "hostNetwork", false);
    return strcmp(object_string(condition_find(pod, "PodScheduled"), "status"), "True") == 0 &&
           !object_at(init, "state.running") && !object_at(init, "state.terminated") &&
           (is_on_host || !object_string(pod, "status.podIP")[0]);
}

/* Its volumes are mounted and its sandbox is made before anything is pulled for the task. For how
 * long that is waited for; 0: it has been done. */
static uint32_t unprepared_ms(const struct doc *pod)
{
    const struct doc *condition = condition_find(pod, "PodReadyToStartContainers");
    if (condition)
        return strcmp(object_string(condition, "status"), "False") == 0 ? POD_PATIENCE_MS : 0;
    return is_without_sandbox(pod) ? POD_PATIENCE_UNTOLD_MS : 0;
}

/* What keeps the container of skep-init from its start is nothing that a user can mend. */
static void init_wait_read(const struct doc *pod, const struct doc *waiting, struct arena *arena,
                           struct pod_object *out)
{
    const char *reason = object_string(waiting, "reason");
    const char *message = object_string(waiting, "message");
    out->patience =
        patience_of(reason, message, image_of(pod, "initContainers", POD_CONTAINER_INIT), arena);
    out->reason = reason;
    out->message = message;
    if (out->patience == POD_WAIT)
        return;
    out->reason = POD_INIT_FAILED;
    out->message = arena_format(arena,
                                "the container that brings skep-init (initImage of the "
                                "configuration) cannot be started: %.60s%s%.300s",
                                reason, message[0] ? ": " : "", message);
}

static void wait_read(const struct doc *pod, struct arena *arena, struct pod_object *out)
{
    const struct doc *status = status_find(pod, "initContainerStatuses", POD_CONTAINER_INIT);
    const struct doc *waiting = object_at(status, "state.waiting");
    out->stage = POD_WAITING;
    if (waiting && strcmp(object_string(waiting, "reason"), "PodInitializing") != 0) {
        init_wait_read(pod, waiting, arena, out);
    } else {
        status = status_find(pod, "containerStatuses", POD_CONTAINER_TASK);
        waiting = object_at(status, "state.waiting");
        out->reason = object_string(waiting, "reason");
        out->message = object_string(waiting, "message");
        out->patience = patience_of(out->reason, out->message,
                                    image_of(pod, "containers", POD_CONTAINER_TASK), arena);
    }
    out->patience_ms = POD_PATIENCE_MS;
    const uint32_t prepare_ms = unprepared_ms(pod);
    if (out->patience == POD_WAIT && prepare_ms > 0) {
        out->patience = POD_WAIT_SHORTLY;
        out->patience_ms = prepare_ms;
        out->reason = POD_UNPREPARED;
        out->message = "";
    }
}

/* By a claim, or by an extended resource: its name has a domain, as no resource of the cluster's
 * own has that may stand among limits. */
static bool asks_devices(const struct doc *pod)
{
    const struct doc *containers = doc_get_list(doc_get(pod, "spec"), "containers");
    for (size_t i = 0; i < containers->as.list.count; i++) {
        const struct doc *resources = doc_get(containers->as.list.items[i], "resources");
        const struct doc *limits = doc_get_map(resources, "limits");
        if (doc_count(doc_get_list(resources, "claims")) > 0)
            return true;
        for (size_t j = 0; j < limits->as.map.count; j++)
            if (memchr(limits->as.map.entries[j].key.at, '/', limits->as.map.entries[j].key.length))
                return true;
    }
    return false;
}

void pod_object_read(const struct doc *pod, enum pod_sight sight, bool is_ours, struct arena *arena,
                     struct pod_object *out)
{
    const char *phase = object_string(pod, "status.phase");
    const char *reason = object_string(pod, "status.reason"), *gone;
    const struct doc *status = status_find(pod, "containerStatuses", POD_CONTAINER_TASK);
    *out = (struct pod_object){
        .name = object_string(pod, "metadata.name"),
        .uid = object_string(pod, "metadata.uid"),
        .version = object_string(pod, "metadata.resourceVersion"),
        .node = object_string(pod, "spec.nodeName"),
        .address = object_string(pod, "status.podIP"),
        .is_deleting = object_string(pod, "metadata.deletionTimestamp")[0] != '\0',
        .has_started = has_begun(status),
        .asks_devices = asks_devices(pod),
        .reason = "",
        .message = "",
    };
    const bool is_failed = strcmp(phase, "Failed") == 0;
    const bool is_over = is_failed || strcmp(phase, "Succeeded") == 0;
    /* what is left of a pod whose node has gone still says that it runs */
    const bool is_collected =
        strcmp(condition_reason(pod, "DisruptionTarget", &gone), "DeletionByPodGC") == 0;
    if (is_failed && !out->has_started &&
        is_refusal(reason, object_string(pod, "status.message"))) {
        out->stage = POD_REFUSED;
        out->reason = reason;
        out->message = object_string(pod, "status.message");
    } else if (sight == POD_REMOVED || (is_over && (is_collected || !is_running(pod)))) {
        end_read(pod, sight, is_ours, arena, out);
    } else if (out->has_started || is_over) {
        out->stage = POD_RUNNING;
    } else {
        wait_read(pod, arena, out);
    }
}

void pod_object_had_started(struct pod_object *pod)
{
    if (pod->stage != POD_REFUSED)
        return;
    pod->stage = POD_ENDED;
    pod->exit = (struct exit_report){.name = pod->name,
                                     .reason = "NodeRestarted",
                                     .message = pod->message,
                                     .is_user_command = true};
    code_set(&pod->exit, SIGNAL_BASE + SIGNAL_KILL, 0);
}
