/* retry.h — is an attempt that has ended to be tried again, on whose account, and when?
 *
 * Pure. Source of the rule: FrameworkController's retry decision, in its exact order; the growing
 * back-off window is the early launcher's.
 */
#ifndef JOB_RETRY_H
#define JOB_RETRY_H
#include "job/completion.h"
#include <stdbool.h>
#include <stdint.h>

struct retry_policy {
    int32_t max;   /* -2 always, even after success; -1 after any failure; n that many failures */
    bool is_fancy; /* transient failures cost nothing, permanent ones are not retried */
};

struct retry_decision {
    bool is_retried;
    bool is_counted; /* against `max` */
    bool is_backoff; /* after a random delay, where the level has one (jobs; tasks retry at once) */
};

/* (0) ended by the user or with its attempt, or EXIT_NEVER_RETRIED: no. (1) fancy and failed:
 * transient → yes, uncounted; permanent → no. (2) -2, or failed and -1 or fewer than max counted
 * before: yes, counted. (3) no. */
struct retry_decision retry_decide(struct retry_policy policy, uint32_t counted,
                                   const struct completion *completion);

/* What `retryCount` of a v1 job means. */
struct retry_policy retry_policy_early(int32_t retry_count);

/* Seconds from which the delay is drawn. Growing (early launcher): min … min + min(1, n/6) of the
 * range after n earlier conflicts; else the whole of min … max. */
struct retry_window {
    uint32_t min_s, max_s;
};
struct retry_window retry_window(struct retry_window range, uint32_t conflicts, bool is_growing);
/* Whole seconds, uniform. */
uint32_t retry_delay_s(struct retry_window window, uint64_t random);

#endif
