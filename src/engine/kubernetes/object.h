/* object.h — what all objects of the Kubernetes API have in common, and how Skep names its own.
 *
 * Pure. A pod is named after its attempt, INSTANCE-ATTEMPT, so that asking for it again is
 * harmless: the answer is "exists already" (docs/rfc/0017-kubernetes-engine.md). Labels find the
 * pods of one Skep; what is for people only (job, role) stands in annotations.
 */
#ifndef ENGINE_KUBERNETES_OBJECT_H
#define ENGINE_KUBERNETES_OBJECT_H
#include "base/text.h"
#include "model/ids.h"
#include <stdbool.h>

struct buf;
struct doc;

#define OBJECT_LABEL_INSTANCE "skep.internal/instance"
#define OBJECT_LABEL_ATTEMPT  "skep.internal/attempt"
#define OBJECT_NOTE_JOB       "skep.internal/job"     /* USER~JOB */
#define OBJECT_NOTE_TASK      "skep.internal/task"    /* ROLE/INDEX */
#define OBJECT_NOTE_DEVICES   "skep.internal/devices" /* devices.h */

enum {
    OBJECT_INSTANCE_MAX = 40,
    OBJECT_NAME_SIZE = OBJECT_INSTANCE_MAX + 22, /* of a pod, with its end: a DNS label has 63 */
};

/* A name that pods may begin with: a DNS label of at most OBJECT_INSTANCE_MAX bytes that begins
 * with a letter. */
bool object_instance_is_good(struct text instance);

/* The name of an attempt's pod, and of its secret. */
void object_name(char name[OBJECT_NAME_SIZE], const char *instance, struct attempt_id attempt);

/* The attempt whose labels these are; 0: they are not of a pod of this instance. */
struct attempt_id object_attempt(const struct doc *object, const char *instance);

/* By a path of keys without dots, "status.nodeInfo.bootID". NULL: it is not there. */
const struct doc *object_at(const struct doc *object, const char *path);
const char *object_string(const struct doc *object, const char *path); /* "": no string there */

const char *object_label(const struct doc *object, const char *name); /* "": it has none */
const char *object_note(const struct doc *object, const char *name);  /* an annotation; likewise */

/* Is this what the API server's authorizer answers with 403? A server that has just begun says so
 * of all rights, before it has read the roles. Others that answer 403 (quotas, the policies of a
 * namespace) have looked at what was asked for. */
bool object_is_right_missing(struct text body);
/* Is this a Status with the reason Conflict? What is there already has the reason AlreadyExists. */
bool object_is_conflict(struct text body);

/* Append as the value of a query (RFC 3986): a continue token is base64, a version is opaque. */
void object_encode(struct buf *out, const char *value);

#endif
