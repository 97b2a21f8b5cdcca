/* A large gang among a stream of small jobs that fills the cluster: small ones that fit start while
 * it waits, and yet it starts in bounded time. All policies, several streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "../unit/core/world.h"
#include "base/memory.h"
#include "base/random.h"

enum {
    STREAMS = 20,
    EVERY_MS = 5000, /* a small job; eight GPUs and forty seconds each: more than there is room */
    RUN_MIN_MS = 20000,
    RUN_MAX_MS = 60000,
    BIG_AT_MS = 100000,
    STARVES_S = 120,
    END_MS = 900000,
};

struct running {
    uint64_t attempt;
    uint32_t job;
    int64_t ends_ms;
};

struct stream {
    struct world world;
    struct random random;
    struct running *items;
    size_t count, room;
    uint32_t big;
    int64_t begin_ms, big_asked_ms, big_starts_ms, reserved_ms;
    uint32_t small_starts; /* while the large gang waits */
};

/* What the last step said: new containers run at once. */
static void starts_note(struct stream *stream)
{
    struct world *world = &stream->world;
    uint64_t attempts[64];
    size_t count = world_command_count(world, COMMAND_CREATE);
    assert_in_range(count, 0, COUNT_OF(attempts));
    if (world_story_count(world, "Reserved"))
        stream->reserved_ms = world->now_ms;
    for (size_t i = 0; i < count; i++) {
        const struct command *command = world_command(world, COMMAND_CREATE, i);
        int64_t span = RUN_MIN_MS;
        span += (int64_t)random_below(&stream->random, RUN_MAX_MS - RUN_MIN_MS);
        attempts[i] = command->attempt.v;
        *ARRAY_ADD(stream) = (struct running){attempts[i], command->job.v, world->now_ms + span};
        if (command->job.v == stream->big)
            stream->big_starts_ms = world->now_ms;
        else if (stream->big && !stream->big_starts_ms)
            stream->small_starts++;
    }
    for (size_t i = 0; i < count; i++)
        world_run(world, attempts[i]);
}

static uint32_t submit(struct stream *stream, const char *name, uint32_t tasks, uint32_t gpus,
                       uint64_t limit_s)
{
    struct plan_role role = world_role("worker", tasks, 1, gpus);
    struct plan plan = world_plan_of(name, &role);
    plan.time_limit_s = limit_s;
    uint32_t job = world_submit(&stream->world, &plan);
    assert_int_not_equal(job, 0);
    if (tasks > 1)
        stream->big = job;
    starts_note(stream);
    return job;
}

/* To the next event: an end, or `until_ms`. */
static void advance(struct stream *stream, int64_t until_ms)
{
    for (;;) {
        size_t first = stream->count;
        for (size_t i = 0; i < stream->count; i++)
            if (stream->items[i].ends_ms <= until_ms &&
                (first == stream->count || stream->items[i].ends_ms < stream->items[first].ends_ms))
                first = i;
        if (first == stream->count)
            break;
        struct running ended = stream->items[first];
        stream->items[first] = stream->items[--stream->count];
        world_timer(&stream->world, ended.ends_ms - stream->world.now_ms);
        starts_note(stream);
        world_exit(&stream->world, ended.attempt, 0, 0);
        starts_note(stream);
    }
    world_timer(&stream->world, until_ms - stream->world.now_ms);
    starts_note(stream);
}

static void stream_run(const char *policy, uint64_t seed)
{
    struct stream stream = {.random = {seed}};
    struct world *world = &stream.world;
    world_init(world, policy);
    world->config.starvation_after_s = STARVES_S;
    world_configure(world);
    world_node(world, "n1", 16, 4);
    world_node(world, "n2", 16, 4);
    stream.begin_ms = world->now_ms;
    for (uint32_t i = 0; world->now_ms < stream.begin_ms + END_MS && !stream.big_starts_ms; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%u", i);
        submit(&stream, name, 1, 1, i % 2 ? RUN_MAX_MS / 1000 : 0);
        if (!stream.big && world->now_ms >= stream.begin_ms + BIG_AT_MS) {
            stream.big_asked_ms = world->now_ms;
            submit(&stream, "big", 2, 4, 0);
            assert_int_equal(stream.big_starts_ms, 0);
        }
        advance(&stream, world->now_ms + EVERY_MS);
    }
    if (!stream.big_starts_ms)
        print_error("%s, seed %llu: it never started\n", policy, (unsigned long long)seed);
    assert_int_not_equal(stream.big_starts_ms, 0);
    assert_int_not_equal(stream.reserved_ms, 0);
    /* until the reservation as many started as before; afterwards only what ends in time */
    assert_in_range(stream.small_starts, 10, UINT32_MAX);
    assert_in_range(stream.reserved_ms - stream.big_asked_ms, STARVES_S * 1000,
                    STARVES_S * 1000 + 15000);
    assert_in_range(stream.big_starts_ms - stream.reserved_ms, 0, RUN_MAX_MS + EVERY_MS);
    mem_free(stream.items);
    world_release(world);
}

static void a_large_gang_does_not_starve(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};
    for (size_t i = 0; i < COUNT_OF(policies); i++)
        for (uint64_t seed = 1; seed <= STREAMS; seed++)
            stream_run(policies[i], seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_gang_does_not_starve),
    };
    return cmocka_run_group_tests_name("starving", tests, NULL, NULL);
}
