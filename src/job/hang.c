#include "job/hang.h"
#include <assert.h>

static bool has_moved(const struct hang_sample *before, const struct hang_sample *now)
{
    if (now->output_bytes != before->output_bytes)
        return true;
    if (now->has_gpus && now->gpu_percent > 0)
        return true;
    const int64_t passed_ms = now->at_ms > before->at_ms ? now->at_ms - before->at_ms : 0;
    const uint64_t trickle_ns = (uint64_t)passed_ms * 10000 * HANG_CPU_TRICKLE;
    return now->cpu_ns > before->cpu_ns && now->cpu_ns - before->cpu_ns > trickle_ns;
}

void hang_track_sample(struct hang_track *track, const struct hang_sample *sample)
{
    if (track->moved_ms == 0 || has_moved(&track->last, sample)) {
        track->moved_ms = sample->at_ms;
        track->told = HANG_NO;
    }
    track->last = *sample;
}

enum hang_verdict hang_judge(struct hang_track *tracks, size_t count, size_t index,
                             uint64_t after_s, int64_t now_ms)
{
    assert(index < count);
    struct hang_track *track = &tracks[index];
    const uint64_t after_ms = after_s > UINT64_MAX / 1000 ? UINT64_MAX : after_s * 1000;
    if (after_s == 0 || track->moved_ms == 0 || now_ms < track->moved_ms ||
        (uint64_t)(now_ms - track->moved_ms) < after_ms)
        return HANG_NO;
    /* alone in its job there is nobody to compare with: standing still is enough */
    enum hang_verdict verdict = count == 1 ? HANG_IDLE : HANG_ALL;
    for (size_t i = 0; i < count; i++)
        if (i != index && now_ms >= tracks[i].moved_ms && tracks[i].moved_ms > 0 &&
            (uint64_t)(now_ms - tracks[i].moved_ms) < after_ms &&
            tracks[i].moved_ms > track->moved_ms &&
            (uint64_t)(tracks[i].moved_ms - track->moved_ms) >= after_ms / 2)
            verdict = HANG_IDLE;
    if (track->told == verdict || track->told == HANG_IDLE)
        return HANG_NO;
    track->told = verdict;
    return verdict;
}
