#include "originals/vc_share.h"
#include <assert.h>
#include <string.h>

const char *vc_share_result_name(enum vc_share_result result)
{
    static const char *const names[] = {
        [VC_SHARE_OK] = "",
        [VC_SHARE_NO_QUOTA] = "NoEnoughQuotaError",
        [VC_SHARE_RUNNING] = "RemoveRunningVcError",
        [VC_SHARE_READ_ONLY] = "ReadOnlyVcError",
        [VC_SHARE_DEFAULT] = "ForbiddenUserError",
        [VC_SHARE_MISSING] = "NoVirtualClusterError",
        [VC_SHARE_INVALID] = "InvalidParametersError",
    };
    assert((unsigned)result <= VC_SHARE_INVALID);
    return names[result];
}

static struct vc_share *find(struct vc_share *shares, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(shares[i].name, name) == 0)
            return &shares[i];
    return NULL;
}

/* `default` may use all that is idle unless it was held to its share. */
static void default_set(struct vc_share *rest, double capacity)
{
    const bool is_open = rest->max == 100 || rest->max > rest->capacity;
    rest->capacity = capacity;
    rest->max = is_open ? 100 : capacity;
}

enum vc_share_result vc_share_put(struct vc_share *shares, size_t *count, const char *name,
                                  double capacity, double max)
{
    struct vc_share *rest = find(shares, *count, "default");
    struct vc_share *share = find(shares, *count, name);
    if (!rest)
        return VC_SHARE_MISSING;
    if (share == rest)
        return VC_SHARE_DEFAULT;
    if (share && share->is_dedicated)
        return VC_SHARE_READ_ONLY;
    if (max < 0)
        max = capacity;
    if (capacity < 0 || capacity > 100 || max < capacity || max > 100)
        return VC_SHARE_INVALID;
    const double left = rest->capacity + (share ? share->capacity : 0) - capacity;
    if (left < 0)
        return VC_SHARE_NO_QUOTA;
    default_set(rest, left);
    if (!share)
        share = &shares[(*count)++];
    *share = (struct vc_share){.name = name, .capacity = capacity, .max = max};
    return VC_SHARE_OK;
}

enum vc_share_result vc_share_remove(struct vc_share *shares, size_t *count, const char *name,
                                     uint64_t jobs)
{
    struct vc_share *rest = find(shares, *count, "default");
    struct vc_share *share = find(shares, *count, name);
    if (!rest || !share)
        return VC_SHARE_MISSING;
    if (share == rest)
        return VC_SHARE_DEFAULT;
    if (share->is_dedicated)
        return VC_SHARE_READ_ONLY;
    if (jobs > 0)
        return VC_SHARE_RUNNING;
    default_set(rest, rest->capacity + share->capacity);
    const size_t index = (size_t)(share - shares);
    memmove(share, share + 1, (*count - index - 1) * sizeof *share);
    (*count)--;
    return VC_SHARE_OK;
}

struct vc_resources vc_share_resources(const struct vc_resources *nodes, size_t count,
                                       double capacity)
{
    struct vc_resources sum = {0};
    for (size_t i = 0; i < count; i++) {
        sum.gpus += nodes[i].gpus;
        sum.cores += nodes[i].cores;
        sum.memory_mib += nodes[i].memory_mib;
    }
    const double part = capacity / 100;
    return (struct vc_resources){sum.gpus * part, sum.cores * part, sum.memory_mib * part};
}
