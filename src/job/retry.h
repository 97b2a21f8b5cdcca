/* retry.h — decides whether an attempt that has ended is retried, which budget pays, and when.
 *
 * Pure. Source of the rule: FrameworkController's retry decision, in its exact order; the growing
 * back-off window is the early launcher's.
 */
#ifndef JOB_RETRY_H
#define JOB_RETRY_H
#include "model/completion.h"
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

/* (0) ended by the user or with its attempt, or EXIT_NEVER_RETRIED: no; EXIT_ALWAYS_RETRIED: yes,
 * uncounted. (1) fancy and failed: transient → yes, uncounted; permanent → no. (2) -2, or failed
 * and -1 or fewer than max counted before: yes, counted. (3) no. */
struct retry_decision retry_decide(struct retry_policy policy, uint32_t counted,
                                   const struct completion *completion);

/* What `retryCount` of a v1 job means. */
struct retry_policy retry_policy_early(int32_t retry_count);

/* Spacing of retries that no budget ends (docs/rfc/0004, Pause): after `before` quick ends in a row
 * none, first_s, twice that, …, at most max_s; less up to a quarter by chance. An attempt that ran
 * for calm_s is no quick end. */
struct retry_pause {
    uint32_t first_s, max_s, calm_s; /* first_s 0: no pauses; first_s <= max_s */
};
uint64_t retry_pause_ms(struct retry_pause pause, uint32_t before, uint64_t random);
/* Is a retry so decided one of them? */
bool retry_is_paused(struct retry_policy policy, struct retry_decision decision,
                     const struct completion *completion);
/* Had an attempt launched then (0: never) ended quickly now? */
bool retry_is_quick(struct retry_pause pause, int64_t launched_ms, int64_t now_ms);

/* Seconds from which the delay is drawn. Growing (early launcher): min … min + min(1, n/6) of the
 * range after n earlier conflicts; else the whole of min … max. */
struct retry_window {
    uint32_t min_s, max_s;
};
struct retry_window retry_window(struct retry_window range, uint32_t conflicts, bool is_growing);
/* Whole seconds, uniform. */
uint32_t retry_delay_s(struct retry_window window, uint64_t random);

#endif
