/* clock.h — the core's own time, made of the machine's clocks (sys/clock.h).
 *
 * The core's time is Unix time that never goes back and never jumps: it follows the clock that
 * counts from boot (suspends included), and nears the wall clock by at most a tenth of the time
 * that passes. So a wrong wall clock, or a mended one, fires no time limit early and holds up no
 * retry, over restarts of the server on one boot of the machine as well; see docs/rfc/0007. The
 * functions of `struct server_clock` are pure.
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
    int64_t trusted_ms;       /* how far retention has believed the time, … */
    int64_t trusted_boot_ms;  /* … and when */
    int64_t stepped_ms;       /* by which the wall clock was set last; cleared by who tells it */
    int64_t warned_boot_ms;   /* when it was last said that the clocks are apart; 0: never */
};

/* What an earlier server has left of its clock; all 0: there was none. */
struct server_clock_past {
    int64_t last_ms;    /* the core's time when it last did something */
    int64_t trusted_ms; /* what server_clock_trusted gave */
    /* of one instant of the boot that still is: the clock from boot, and the core's time; 0: the
     * boot is another one, or nothing was noted in it */
    int64_t boot_ms, now_ms;
};

/* On the same boot the core's time goes on by the clock from boot, on another one by the wall
 * clock; never back behind last_ms. */
void server_clock_start(struct server_clock *clock, const struct server_clock_past *past,
                        int64_t boot_ms, int64_t wall_ms);
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
 * It goes no faster than the clock from boot, until an hour has passed in which nobody has set the
 * wall clock. */
int64_t server_clock_trusted(struct server_clock *clock);

/* How far it is behind the earlier of both clocks: what it does not believe yet. */
int64_t server_clock_doubted_ms(const struct server_clock *clock);

#endif
