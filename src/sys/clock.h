/* clock.h — the clocks of the machine, and waits by them.
 *
 * The monotonic clock is for spans, deadlines and waits: nobody can set it, and its zero means
 * nothing. The clock from boot is the same, but counts suspends as well. The Unix clock is what
 * people read; anybody may set it at any time, so no deadline is kept by it.
 */
#ifndef SYS_CLOCK_H
#define SYS_CLOCK_H
#include <pthread.h>
#include <stdint.h>
#include <time.h>

int64_t clock_monotonic_us(void);
int64_t clock_monotonic_ms(void);
int64_t clock_boot_ms(void);
int64_t clock_unix_ms(void); /* since 1970, as the machine believes */

/* A name of its own for each boot of the machine; "" when it is not known. Times of
 * clock_boot_ms compare within one boot alone. */
enum { CLOCK_BOOT_ID_MAX = 40 };
void clock_boot_id(char id[CLOCK_BOOT_ID_MAX]);

/* `due_ms` as pthread_cond_timedwait() takes it. */
struct timespec clock_moment(int64_t due_ms);

/* A condition whose timed waits end by the monotonic clock. */
void clock_condition_init(pthread_cond_t *condition);

#endif
