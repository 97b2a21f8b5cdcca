/* kept_secrets.h — the secrets of a job that is there, for one that is submitted.
 *
 * Any thread. They are as old as the job's row: a job keeps its secrets until it is removed.
 */
#ifndef SERVER_KEPT_SECRETS_H
#define SERVER_KEPT_SECRETS_H
#include "api/service.h"
#include "spec/spec.h"

struct arena;
struct err;
struct server;

/* Those of submission->secrets_job, which is set, in `scratch`: it holds plain secrets afterwards
 * and must be wiped. ERR_NOT_FOUND at "secretsOf": the job has been removed. */
int kept_secrets_read(struct server *server, const struct service_submission *submission,
                      struct arena *scratch, struct spec_kept *kept, struct err *err);

#endif
