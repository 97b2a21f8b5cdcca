/* quota.h — how much one user may have and do.
 *
 * Pure. A quota of a kind is the user's own; else the largest of those of the user's groups; else
 * there is none. Who decides: docs/operator/quotas.md.
 */
#ifndef MODEL_QUOTA_H
#define MODEL_QUOTA_H
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

struct err;

/* Stored: never change one. */
enum quota_kind {
    QUOTA_LIVE_JOBS,       /* jobs that have not ended */
    QUOTA_GPUS,            /* GPUs of these */
    QUOTA_STORED_JOBS,     /* jobs, ended ones too */
    QUOTA_SUBMITS_MINUTE,  /* submissions and starts */
    QUOTA_REQUESTS_SECOND, /* of the API */
    QUOTA_STREAMS,         /* logs, events and changes that are followed */
    QUOTA_GPU_HOURS,       /* GPUs times the hours that tasks ran with them, in a calendar month */
    QUOTA_KEPT_JOBS,       /* ended jobs; who has more loses them first when there is no room */
};
enum { QUOTA_KIND_COUNT = QUOTA_KEPT_JOBS + 1, QUOTA_NONE = -1, QUOTA_MAX = 1000000000 };

struct quotas {
    int64_t values[QUOTA_KIND_COUNT]; /* QUOTA_NONE … QUOTA_MAX */
};

/* "liveJobs", … */
const char *quota_name(enum quota_kind kind);
bool quota_find(struct text name, enum quota_kind *kind);

/* ERR_QUOTA, and which quota it is. `group`: whose it is; NULL: the user's own. */
int quota_refuse(enum quota_kind kind, const char *group, int64_t value, int64_t used,
                 struct err *err);

/* The same of QUOTA_GPU_HOURS: `used` hours, of the month that ends at `end_ms`. */
int quota_refuse_hours(const char *group, int64_t value, int64_t used, int64_t end_ms,
                       struct err *err);

/* None of any kind. */
void quotas_init(struct quotas *quotas);

#endif
