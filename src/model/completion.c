#include "model/completion.h"
#include "base/memory.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    int32_t code;
    uint8_t attributes;
    const char *phrase;
} known[] = {
    {CODE_SUCCEEDED, 0, "Succeeded"},
    {CODE_TRANSIENT, EXIT_TRANSIENT, "ContainerTransientFailed"},
    {CODE_TRANSIENT_CONFLICT, EXIT_TRANSIENT | EXIT_CONFLICT, "ContainerTransientConflictFailed"},
    {CODE_PERMANENT, EXIT_PERMANENT, "ContainerPermanentFailed"},
    {CODE_GANG_TIMEOUT, EXIT_TRANSIENT | EXIT_CONFLICT, "JobGangAllocationTimeout"},
    {CODE_OBJECT_DELETED, EXIT_TRANSIENT, "ConfigMapExternalDeleted"},
    {CODE_CONTAINER_DELETED, EXIT_TRANSIENT, "PodExternalDeleted"},
    {CODE_OBJECT_CREATION_TIMEOUT, EXIT_TRANSIENT, "ConfigMapLocalCacheCreationTimeout"},
    {CODE_CREATION_TIMEOUT, EXIT_TRANSIENT, "PodLocalCacheCreationTimeout"},
    {CODE_CREATION_TRANSIENT, EXIT_TRANSIENT, "PodCreationTransientError"},
    {CODE_CREATION_PERMANENT, EXIT_PERMANENT, "PodCreationPermanentError"},
    {CODE_STOP_REQUESTED, EXIT_PERMANENT, "StopFrameworkRequested"},
    {CODE_ATTEMPT_COMPLETION, EXIT_PERMANENT, "FrameworkAttemptCompletion"},
    {CODE_SCALED_DOWN, EXIT_PERMANENT, "DeleteTaskRequested"},
    {CODE_FAILED_WITHOUT_CONTAINER, 0, "PodFailedWithoutFailedContainer"},
    {CODE_CREATION_UNKNOWN, 0, "PodCreationUnknownError"},
    {CODE_EVICTED, EXIT_TRANSIENT, "PodEvicted"},
    {CODE_NODE_LOST, EXIT_TRANSIENT, "PodNodeLost"},
    {CODE_PREEMPTED, EXIT_TRANSIENT, "PodPreemptedForCriticalPod"},
    /* the limit has passed for every further attempt too */
    {CODE_DEADLINE_EXCEEDED, EXIT_PERMANENT | EXIT_NEVER_RETRIED, "PodDeadlineExceeded"},
    {CODE_HUNG, 0, "ContainerHung"},
    {CODE_REFUSED, EXIT_TRANSIENT | EXIT_ALWAYS_RETRIED, "TaskRefused"},
};

struct completion completion_of(int32_t code, const char *format, ...)
{
    struct completion completion = {.code = code, .is_success = code == CODE_SUCCEEDED};
    const char *phrase = "ContainerUnrecognizedFailed";
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (known[i].code == code) {
            phrase = known[i].phrase;
            completion.attributes = known[i].attributes;
        }
    assert(strlen(phrase) < sizeof completion.phrase);
    memcpy(completion.phrase, phrase, strlen(phrase) + 1);
    va_list args;
    va_start(args, format);
    vsnprintf(completion.diagnostics, sizeof completion.diagnostics, format, args);
    va_end(args);
    return completion;
}
