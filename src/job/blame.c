#include "job/blame.h"
#include "base/memory.h"
#include <assert.h>
#include <math.h>
#include <string.h>

/* Failures of the platform that no other node would have avoided: decided elsewhere, sent by
 * somebody, or the network's and the registry's. */
static const int32_t not_the_nodes[] = {
    CODE_PREEMPTED,
    CODE_OBJECT_DELETED,
    CODE_OBJECT_CREATION_TIMEOUT,
    CODE_GANG_TIMEOUT,
    CODE_CONTAINER_DELETED, /* who deletes a pod says nothing about its node */
    CODE_EVICTED,           /* a task that fills a volume is; a node that is short says so itself */
    -1210 /* image not fetched */,
    -1211 /* no space: the node is unhealthy for as long as that is so */,
    -1212 /* memory given to tasks that others use: a node put aside would not help a cluster of one
           */
    ,
    130,
    131,
    137,
    143, /* signals */
    -1202,
    -1203, /* nothing in the image to start */
    -1300, /* too little memory asked for */
    249,
    250,
    252, /* barriers */
    253, /* a port in use */
};

double blame_weight(const struct completion *completion, const char *type,
                    enum exit_evidence evidence)
{
    if (completion->is_success || evidence != EVIDENCE_PLATFORM ||
        strcmp(type, "PLATFORM_FAILURE") != 0)
        return 0;
    for (size_t i = 0; i < COUNT_OF(not_the_nodes); i++)
        if (not_the_nodes[i] == completion->code)
            return 0;
    return 1;
}

double blame_value(const struct blame *blame, const struct blame_policy *policy, int64_t now_ms)
{
    if (policy->half_life_s == 0 || now_ms <= blame->at_ms)
        return blame->value;
    const double age_s = (double)(now_ms - blame->at_ms) / 1000;
    return blame->value * exp2(-age_s / policy->half_life_s);
}

static bool level_set(struct blame *blame, const struct blame_policy *policy)
{
    assert(policy->avoid <= policy->cordon);
    enum blame_level level = BLAME_NONE;
    if (blame->value >= policy->cordon ||
        (blame->level == BLAME_CORDON && blame->value >= policy->avoid))
        level = BLAME_CORDON;
    else if (blame->value >= policy->avoid)
        level = BLAME_AVOID;
    const bool is_changed = level != blame->level;
    blame->level = level;
    return is_changed;
}

bool blame_add(struct blame *blame, const struct blame_policy *policy, double weight,
               int64_t now_ms)
{
    assert(weight >= 0);
    blame->value = blame_value(blame, policy, now_ms) + weight;
    blame->at_ms = now_ms;
    return level_set(blame, policy);
}

bool blame_refresh(struct blame *blame, const struct blame_policy *policy, int64_t now_ms)
{
    return blame_add(blame, policy, 0, now_ms);
}

void blame_pardon(struct blame *blame, int64_t now_ms)
{
    *blame = (struct blame){.at_ms = now_ms};
}

int64_t blame_next_ms(const struct blame *blame, const struct blame_policy *policy)
{
    if (blame->level == BLAME_NONE || policy->half_life_s == 0 || policy->avoid <= 0)
        return 0;
    /* both levels end below `avoid`; the smallest step below, so that a refresh then sees it */
    const double halves = log2(blame->value / policy->avoid);
    const double wait_ms = halves > 0 ? ceil(halves * policy->half_life_s * 1000) : 0;
    return wait_ms < 1e15 ? blame->at_ms + (int64_t)wait_ms + 1 : 0;
}

const char *blame_level_name(enum blame_level level)
{
    static const char *const names[] = {
        [BLAME_NONE] = "none", [BLAME_AVOID] = "avoid", [BLAME_CORDON] = "cordon"};
    assert((unsigned)level <= BLAME_CORDON);
    return names[level];
}
