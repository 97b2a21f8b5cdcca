#include "model/quota.h"
#include "base/err.h"
#include "base/utc.h"
#include <assert.h>
#include <stdio.h>

static const char *const names[QUOTA_KIND_COUNT] = {
    [QUOTA_LIVE_JOBS] = "liveJobs",
    [QUOTA_GPUS] = "gpus",
    [QUOTA_STORED_JOBS] = "storedJobs",
    [QUOTA_SUBMITS_MINUTE] = "submitsPerMinute",
    [QUOTA_REQUESTS_SECOND] = "requestsPerSecond",
    [QUOTA_STREAMS] = "streams",
    [QUOTA_GPU_HOURS] = "gpuHoursPerMonth",
    [QUOTA_KEPT_JOBS] = "keptJobs",
};

const char *quota_name(enum quota_kind kind)
{
    assert((unsigned)kind < QUOTA_KIND_COUNT);
    return names[kind];
}

bool quota_find(struct text name, enum quota_kind *kind)
{
    for (int i = 0; i < QUOTA_KIND_COUNT; i++) {
        if (text_is(name, names[i])) {
            *kind = (enum quota_kind)i;
            return true;
        }
    }
    return false;
}

int quota_refuse(enum quota_kind kind, const char *group, int64_t value, int64_t used,
                 struct err *err)
{
    return err_fail(err, ERR_QUOTA, quota_name(kind),
                    "the quota %s%s%.64s is %lld, and %lld %s used", quota_name(kind),
                    group ? " of group " : "", group ? group : "", (long long)value,
                    (long long)used, used == 1 ? "is" : "are");
}

int quota_refuse_hours(const char *group, int64_t value, int64_t used, int64_t end_ms,
                       struct err *err)
{
    char end[UTC_SIZE], text[sizeof err->text];
    struct err first;
    const int code = quota_refuse(QUOTA_GPU_HOURS, group, value, used, &first);
    snprintf(text, sizeof text, "%.160s; the count begins anew at %s", first.text,
             utc_text(end_ms, end));
    return err_fail(err, code, first.path, "%s", text);
}

void quotas_init(struct quotas *quotas)
{
    for (int i = 0; i < QUOTA_KIND_COUNT; i++)
        quotas->values[i] = QUOTA_NONE;
}
