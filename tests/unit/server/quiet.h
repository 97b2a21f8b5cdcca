/* quiet.h — whether the server has nothing more to do, and time that passes only when it is told
 * to.
 *
 * The linker puts these between the server's threads and their mailboxes and clocks (`--wrap`, see
 * meson.build). The clocks are those of faults.h; clock_stop comes first, so that what has time
 * until later waits for time_pass and not for the machine. One server at a time.
 */
#ifndef TEST_QUIET_H
#define TEST_QUIET_H
#include <stdbool.h>
#include <stdint.h>

/* Before a server begins, and when it has ended: no mailbox is known. */
void quiet_clear(void);

/* All threads with a mailbox wait for mail, or for a time that has not come. False: they go on
 * without end. */
bool quiet_await(void);

/* They wait, and stay where they are until quiet_release, whatever comes: the watches of the server
 * post what they like. */
void quiet_hold(void);
void quiet_release(void);

/* All clocks go forward; whoever waits looks again. */
void time_pass(int64_t ms);

#endif
