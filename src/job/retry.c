#include "job/retry.h"
#include <assert.h>

struct retry_decision retry_decide(struct retry_policy policy, uint32_t counted,
                                   const struct completion *completion)
{
    assert(completion);
    const struct retry_decision no = {0};
    const bool is_failed = !completion->is_success;
    if (completion->code == CODE_STOP_REQUESTED || completion->code == CODE_ATTEMPT_COMPLETION ||
        completion->code == CODE_SCALED_DOWN || (completion->attributes & EXIT_NEVER_RETRIED))
        return no;
    if (completion->attributes & EXIT_ALWAYS_RETRIED)
        return (struct retry_decision){.is_retried = true};
    if (policy.is_fancy && is_failed) {
        if (completion->attributes & EXIT_TRANSIENT)
            return (struct retry_decision){
                .is_retried = true, .is_backoff = (completion->attributes & EXIT_CONFLICT) != 0};
        if (completion->attributes & EXIT_PERMANENT)
            return no;
    }
    if (policy.max == -2 || (is_failed && policy.max == -1) ||
        (is_failed && (int64_t)counted < policy.max))
        return (struct retry_decision){.is_retried = true, .is_counted = true};
    return no;
}

struct retry_policy retry_policy_early(int32_t retry_count)
{
    return (struct retry_policy){.max = retry_count, .is_fancy = retry_count != -2};
}

uint64_t retry_pause_ms(struct retry_pause pause, uint32_t before, uint64_t random)
{
    assert(pause.first_s <= pause.max_s);
    if (pause.first_s == 0 || before == 0)
        return 0;
    uint64_t whole_s = pause.first_s;
    for (uint32_t i = 1; i < before && whole_s < pause.max_s; i++)
        whole_s *= 2;
    const uint64_t whole_ms = (whole_s < pause.max_s ? whole_s : pause.max_s) * 1000;
    return whole_ms - random % (whole_ms / 4 + 1);
}

bool retry_is_paused(struct retry_policy policy, struct retry_decision decision,
                     const struct completion *completion)
{
    if (!decision.is_retried || completion->code == CODE_PREEMPTED)
        return false;
    return !decision.is_counted || policy.max < 0;
}

bool retry_is_quick(struct retry_pause pause, int64_t launched_ms, int64_t now_ms)
{
    return launched_ms == 0 || now_ms - launched_ms < (int64_t)pause.calm_s * 1000;
}

struct retry_window retry_window(struct retry_window range, uint32_t conflicts, bool is_growing)
{
    const uint32_t steps = 6; /* conflicts until the window is whole */
    assert(range.min_s <= range.max_s);
    if (!is_growing || conflicts >= steps)
        return range;
    const uint64_t width = (uint64_t)(range.max_s - range.min_s) * conflicts / steps;
    return (struct retry_window){range.min_s, range.min_s + (uint32_t)width};
}

uint32_t retry_delay_s(struct retry_window window, uint64_t random)
{
    assert(window.min_s <= window.max_s);
    const uint64_t choices = (uint64_t)window.max_s - window.min_s + 1;
    return window.min_s + (uint32_t)(random % choices);
}
