/* completion.h — how a try ended: code, kind and what it means for a retry.
 *
 * Pure. Codes are OpenPAI's: 0 success, 1…255 the container's (after the failure rules), negative
 * the platform's. Source of the rules: FrameworkController 6.3, OpenPAI exit-spec.
 */
#ifndef MODEL_COMPLETION_H
#define MODEL_COMPLETION_H
#include <stdbool.h>
#include <stdint.h>

/* attributes; a failure with none of them is "unknown" and consumes the retry budget */
enum {
    EXIT_TRANSIENT = 1,
    EXIT_CONFLICT = 2, /* with EXIT_TRANSIENT: retry after a jittered back-off */
    EXIT_PERMANENT = 4,
    EXIT_NEVER_RETRIED = 8,   /* whatever the job's policy says: trying again cannot help */
    EXIT_ALWAYS_RETRIED = 16, /* whatever the job's policy says, and no budget pays: nothing ran */
};

/* codes that the platform itself gives (OpenPAI's exit-spec table); all others are rules' results
 */
enum {
    CODE_SUCCEEDED = 0,
    CODE_OBJECT_DELETED = -100,    /* job attempt's object removed behind our back */
    CODE_CONTAINER_DELETED = -101, /* container removed behind our back */
    CODE_OBJECT_CREATION_TIMEOUT = -110,
    CODE_CREATION_TIMEOUT = -111,
    CODE_CREATION_TRANSIENT = -120,
    CODE_CREATION_PERMANENT = -200,
    CODE_STOP_REQUESTED = -210,
    CODE_ATTEMPT_COMPLETION = -220, /* the job's attempt ended; this task was stopped with it */
    CODE_SCALED_DOWN = -230,
    CODE_FAILED_WITHOUT_CONTAINER = -300,
    CODE_CREATION_UNKNOWN = -310,
    CODE_EVICTED = -1000,
    CODE_NODE_LOST = -1001,
    CODE_PREEMPTED = -1003,
    CODE_DEADLINE_EXCEEDED = -1004,
    CODE_HUNG = -1400,       /* our own: idle while its peers moved, ended at the job's wish */
    CODE_REFUSED = -1401,    /* our own: its node or cluster did not take it; it is placed anew */
    CODE_GANG_TIMEOUT = 251, /* waited longer for its places than the job allows */
    CODE_TRANSIENT = 200,    /* a container may exit with these three to say it itself */
    CODE_TRANSIENT_CONFLICT = 201,
    CODE_PERMANENT = 210,
};

/* Who vouches for what is known of an end. */
enum exit_evidence {
    EVIDENCE_TASK,     /* the task's program could have made it: its exit code, its log, what is in
                        * its container (skep-init's report and log too), words that name its files */
    EVIDENCE_PLATFORM, /* the kernel, NVML, the engine: nothing that a user can write */
};

struct completion {
    int32_t code;
    int32_t exit_code; /* as the container ended, before the rules; 0 when it never ran */
    bool is_success;
    uint8_t attributes;    /* EXIT_* */
    char phrase[48];       /* OpenPAI's, "ContainerSyntaxError" */
    char diagnostics[256]; /* one sentence for people */
};

/* The completion of a code that needs no rule (the enum above), with its phrase and attributes.
 * An unknown code gives a failure without attributes, phrase "ContainerUnrecognizedFailed". The
 * diagnostics are cut to what fits. */
struct completion completion_of(int32_t code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
