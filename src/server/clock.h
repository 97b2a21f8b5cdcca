/* clock.h — the core's own time, made of the machine's clocks (sys/clock.h).
 *
 * The core's time is Unix time that never goes back and never jumps: it follows the clock that
 * counts from boot (suspends included), and nears the wall clock by at most a tenth of the time
 * that passes. So a wrong wall clock, or a mended one, fires no time limit early and holds up no
 * retry; see docs/rfc/0007. The functions of `struct server_clock` are pure.
 */
#ifndef SERVER_CLOCK_H
#define SERVER_CLOCK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct server_clock {
    int64_t now_ms;           /* the core's time at the last step */
    int64_t boot_ms, wall_ms; /* what the two clocks said then */
    int64_t credit;           /* tenths of ms by which it may be corrected */
    int64_t steady_boot_ms;   /* since then the wall clock has not been set */
    int64_t trusted_ms;       /* how far retention has believed the time */
    int64_t stepped_ms;       /* by which the wall clock was set last; cleared by who tells it */
    int64_t warned_boot_ms;   /* when it was last said that the clocks are apart; 0: never */
};

/* `last_ms`: the core's time when the server last did something, 0: never. It goes on from there
 * when the wall clock is behind it. `trusted_ms`: what server_clock_trusted gave then, 0: never. */
void server_clock_start(struct server_clock *clock, int64_t boot_ms, int64_t wall_ms,
                        int64_t last_ms, int64_t trusted_ms);
/* The core's time now. */
int64_t server_clock_step(struct server_clock *clock, int64_t boot_ms, int64_t wall_ms);

/* By how much the core's time is behind the wall clock; negative: ahead of it. As of the last step.
 */
int64_t server_clock_behind_ms(const struct server_clock *clock);

/* True once a day while the two are more than an hour apart: the operator should know. */
bool server_clock_warns(struct server_clock *clock);

/* For the operator: whether the times that are shown are right, and what to do if not. */
void server_clock_text(int64_t behind_ms, char *text, size_t size);

/* The time by which retention removes what is old: the earlier of both clocks as of the last step.
 * More than a day beyond what it believed before is believed only after an hour in which nobody has
 * set the wall clock. */
int64_t server_clock_trusted(struct server_clock *clock);

#endif
