/* What the store gives back of a job, and any order of events after it. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "job/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct job_role_policy roles[] = {
    {.name = "a", .instances = 2, .min_failed = 1, .min_succeeded = -1, .task_retry = {1, true}},
    {.name = "b", .instances = 1, .min_failed = 2, .min_succeeded = 1},
};

static struct job_policy policy_of(uint8_t flags)
{
    return (struct job_policy){
        .retry = {(flags >> 4 & 3) - 2, flags & 1},
        .is_gang = flags & 2,
        .backoff = {60, 900},
        .pause = {1, 30, 60},
        .gang_timeout_s = flags & 4 ? 100 : 0,
        .time_limit_s = flags & 8 ? 100 : 0,
        .debug_hold_s = flags & 64 ? 100 : 0,
        .kill_all_on_completed = flags & 128 ? 2 : 0,
        .roles = roles,
        .role_count = 2,
    };
}

static void live(const struct job_policy *policy, const uint8_t *data, size_t size)
{
    struct arena arena;
    arena_init(&arena);
    struct job_output output = {.arena = &arena};
    struct job job;
    uint64_t last = 0;
    int64_t now_ms = 1000;
    job_init(&job, policy, now_ms, &output);
    for (size_t i = 0; i + 2 < size && i < 3000; i += 3) {
        struct completion completion = completion_of((int8_t)data[i + 1], "%s", "");
        completion.attributes = data[i + 2] >> 4;
        now_ms += data[i + 2];
        const struct job_event event = {
            .kind = data[i] % (JOB_EVENT_JUDGE + 1),
            .now_ms = now_ms,
            .random = data[i + 1],
            .attempt_last = &last,
            .task = {data[i + 1] & 1, data[i + 2] & 3},
            .completion = &completion,
            .scale = {.role = data[i + 1] & 3, .instances = data[i + 2] & 7},
        };
        output.count = 0;
        job_step(&job, policy, &event, &output);
        arena_clear(&arena);
    }
    assert(job.state != LIFE_COMPLETED || job.live == 0);
    job_release(&job);
    job_output_release(&output);
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const struct job_policy policy = policy_of(data[0]);
    struct job job;
    if (job_restore(&job, &policy, (struct text){(const char *)data + 1, size - 1}, NULL) == 0) {
        (void)job_hash(&job);
        job_release(&job);
    }
    live(&policy, data + 1, size - 1);
    return 0;
}
