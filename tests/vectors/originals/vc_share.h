/* vc_share.h — shares of virtual clusters as percentages, as API version 1 set them: what is given
 * to one comes from `default`, which holds what is left of 100.
 *
 * Dedicated virtual clusters are outside the 100 %. Source: the early REST server. No program
 * contains it: the driver of the recorded behaviour compares it with the original.
 */
#ifndef ORIGINALS_VC_SHARE_H
#define ORIGINALS_VC_SHARE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vc_share {
    const char *name;
    double capacity, max; /* percent */
    bool is_dedicated;
};

enum vc_share_result {
    VC_SHARE_OK,
    VC_SHARE_NO_QUOTA,  /* NoEnoughQuotaError: `default` has too little left */
    VC_SHARE_RUNNING,   /* RemoveRunningVcError: it has jobs */
    VC_SHARE_READ_ONLY, /* ReadOnlyVcError: dedicated */
    VC_SHARE_DEFAULT,   /* ForbiddenUserError: `default` holds what is left and cannot be set */
    VC_SHARE_MISSING,   /* NoVirtualClusterError */
    VC_SHARE_INVALID,   /* InvalidParametersError: not 0 … 100, or the maximum below the share */
};
const char *vc_share_result_name(enum vc_share_result result); /* as API version 1 says it */

/* Set the share of `name` (a new one is added; `shares` has room for one more) or take it away.
 * `max` < 0: as the share. Nothing changes unless the result is VC_SHARE_OK. */
enum vc_share_result vc_share_put(struct vc_share *shares, size_t *count, const char *name,
                                  double capacity, double max);
enum vc_share_result vc_share_remove(struct vc_share *shares, size_t *count, const char *name,
                                     uint64_t jobs);

/* What a share is worth: of the sum over the nodes that carry the virtual cluster's label (shared
 * ones: none). */
struct vc_resources {
    double gpus, cores, memory_mib;
};
struct vc_resources vc_share_resources(const struct vc_resources *nodes, size_t count,
                                       double capacity);

#endif
