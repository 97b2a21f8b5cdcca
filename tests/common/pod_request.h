/* pod_request.h — requests as HiveD's pods carry them, in their annotation.
 *
 * Skep makes its requests of job files; its tests read HiveD's own, so that both are asked the
 * same.
 */
#ifndef TEST_POD_REQUEST_H
#define TEST_POD_REQUEST_H
#include "hived/hived.h"

struct arena;
struct doc;
struct err;

/* Fill `request` (its strings and members in the arena) from a pod-scheduling-spec; old names of
 * the keys are accepted. `pod` names the group by default. ERR_INVALID for whatever HiveD answers
 * with a user error. */
int pod_request_read(const struct doc *doc, const char *pod, struct arena *arena,
                     struct hived_request *request, struct err *err);

#endif
