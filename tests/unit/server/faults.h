/* faults.h — faults at the server's edges, by script.
 *
 * The linker puts these between the server and the real store (`--wrap`, see meson.build): what is
 * not told to fail goes through. Any thread. At the end of each test teardown_faults, or
 * faults_clear.
 */
#ifndef TEST_FAULTS_H
#define TEST_FAULTS_H
#include "model/ids.h"
#include <stdbool.h>
#include <stdint.h>

void faults_clear(void);
/* Without them the test's world (world.h) ends, and the log goes on where the test had silenced it.
 */
int teardown_faults(void **state);

/* The next commit waits; what is posted meanwhile is one round. Await: it has come. */
void commits_hold(void);
void commits_await_held(void);
void commits_let_one(void); /* the one that is held; the next one waits as well */
void commits_release(void);

/* Whoever makes a core of the rows waits, before it reads the first one. */
void restores_hold(void);
void restores_await_held(void);
void restores_release(void);

/* What becomes of the next commits, one by one: 0 is stored, ERR_* is refused and stores nothing.
 */
enum { COMMIT_CODES_MAX = 16 };
void commits_script(const int *codes, unsigned count);
#define COMMITS(...)                                                                               \
    commits_script((const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

/* How many there have been since faults_clear; and of those that come, the one after so many others
 * is refused with this code; 0: none is. */
unsigned commits_count(void);
void commit_fails_after(unsigned others, int code);

/* The power fails in the commit after so many others, once it is on the disk or just before: from
 * then on nothing is stored, and who is asked what has become of anything must know. */
void power_fails_after(unsigned others, bool is_stored);
void power_fail(void); /* now */
bool power_is_off(void);
void power_restore(void); /* and it does not fail again */

/* The next commit of a piece of what deleted jobs have left is refused with this code, however many
 * others come before it; or each one, until the code is 0. */
void piece_fails(int code);
void pieces_fail(int code);

/* No commit in which this job is deleted is stored, with this code; 0: all are. The store says the
 * same when it is asked which job's records are refused. */
void deletion_fails(struct job_id job, int code);

/* How large the database is cannot be read, with this code; 0: it can. */
void measure_fails(int code);

/* The store says that its disk is nearly full, its reserve given up; or not, as it is. */
void disk_short(bool is_short);

/* Servers that are started from now on keep their rows there, where commits fail by a script of its
 * own (tests/unit/store/memory.h); NULL: in a database of their folder. */
struct memory;
void store_in_memory(struct memory *memory);

/* Rows of attempts cannot be read, with this code; 0: they can. */
void attempts_unreadable(int code);
/* Likewise rows of jobs, one by one, and plans. */
void jobs_unreadable(int code);
void plans_unreadable(int code);

/* The wall clock is set by so much against the real one; since boot so much more has passed. */
void clock_set_by(int64_t wall_ms);
void clock_pass(int64_t boot_ms); /* of the wall clock as well */
/* They stand still but for that, until faults_clear. */
void clock_stop(void);
/* No server runs: for those that start from now on it is another boot of the machine. */
void machine_boot(void);

#endif
