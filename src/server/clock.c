/* clock.c — see clock.h. */
#include "server/clock.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum {
    CREDIT_MS = 1000,         /* time of which a correction may be made at once */
    CONFIRM_MS = 3600 * 1000, /* retention believes what it did not see pass after this time, … */
    UNSTEADY_MS = 60 * 1000,  /* … in which the wall clock has not moved by more than this */
    APART_MS = 3600 * 1000,   /* beyond this the operator should know */
    WARN_MS = 86400 * 1000,   /* and be reminded */
};

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

void server_clock_start(struct server_clock *clock, const struct server_clock_past *past,
                        int64_t boot_ms, int64_t wall_ms)
{
    int64_t now = wall_ms;
    if (past->boot_ms > 0 && boot_ms >= past->boot_ms)
        now = past->now_ms + (boot_ms - past->boot_ms);
    *clock = (struct server_clock){.now_ms = now > past->last_ms ? now : past->last_ms,
                                   .boot_ms = boot_ms,
                                   .wall_ms = wall_ms,
                                   .steady_boot_ms = boot_ms,
                                   .trusted_ms = past->trusted_ms > 0 ? past->trusted_ms : wall_ms,
                                   .trusted_boot_ms = boot_ms};
}

/* A step of the wall clock against the other one begins the time of confirmation anew. */
static void wall_watch(struct server_clock *clock, int64_t boot_ms, int64_t wall_ms,
                       int64_t elapsed_ms)
{
    int64_t step = wall_ms - clock->wall_ms - elapsed_ms;
    if (step > UNSTEADY_MS || step < -UNSTEADY_MS) {
        clock->steady_boot_ms = boot_ms;
        clock->stepped_ms = step;
    }
    clock->wall_ms = wall_ms;
}

int64_t server_clock_step(struct server_clock *clock, int64_t boot_ms, int64_t wall_ms)
{
    int64_t elapsed = boot_ms > clock->boot_ms ? boot_ms - clock->boot_ms : 0, drift, change;
    wall_watch(clock, boot_ms, wall_ms, elapsed);
    clock->credit = clamp(clock->credit + elapsed, 0, elapsed > CREDIT_MS ? elapsed : CREDIT_MS);
    drift = wall_ms - (clock->now_ms + elapsed);
    change = clamp(drift, -clock->credit / 10, clock->credit / 10);
    if (change < -elapsed)
        change = -elapsed;
    clock->credit -= (change < 0 ? -change : change) * 10;
    clock->now_ms += elapsed + change;
    clock->boot_ms = boot_ms;
    assert(elapsed + change >= 0 && clock->credit >= 0);
    return clock->now_ms;
}

int64_t server_clock_behind_ms(const struct server_clock *clock)
{
    return clock->wall_ms - clock->now_ms;
}

static bool is_apart(int64_t behind_ms)
{
    return behind_ms > APART_MS || behind_ms < -APART_MS;
}

bool server_clock_warns(struct server_clock *clock)
{
    if (!is_apart(server_clock_behind_ms(clock)) ||
        (clock->warned_boot_ms && clock->boot_ms - clock->warned_boot_ms < WARN_MS))
        return false;
    clock->warned_boot_ms = clock->boot_ms;
    return true;
}

void server_clock_text(int64_t behind_ms, char *text, size_t size)
{
    int64_t behind_h = (behind_ms + (behind_ms < 0 ? -1800000 : 1800000)) / 3600000;
    if (!is_apart(behind_ms))
        snprintf(text, size, "the times that are shown are right");
    else if (behind_ms < 0)
        snprintf(text, size,
                 "the times that are shown are %" PRId64 " h ahead of the machine's clock until it "
                 "has caught up, or for ten times as long",
                 -behind_h);
    else
        snprintf(text, size,
                 "the times that are shown are %" PRId64 " h behind the machine's clock, for ten "
                 "times as long; skepd --take-clock takes the clock's time at once, and counts the "
                 "difference to all time limits",
                 behind_h);
}

static int64_t earlier(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

int64_t server_clock_trusted(struct server_clock *clock)
{
    const int64_t now = earlier(clock->wall_ms, clock->now_ms);
    const int64_t passed = clamp(clock->boot_ms - clock->trusted_boot_ms, 0, INT64_MAX);
    const bool is_steady = clock->boot_ms - clock->steady_boot_ms >= CONFIRM_MS;
    clock->trusted_ms = is_steady ? now : earlier(now, clock->trusted_ms + passed);
    clock->trusted_boot_ms = clock->boot_ms;
    return clock->trusted_ms;
}

int64_t server_clock_doubted_ms(const struct server_clock *clock)
{
    return earlier(clock->wall_ms, clock->now_ms) - clock->trusted_ms;
}
