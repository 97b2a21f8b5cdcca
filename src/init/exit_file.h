/* exit_file.h — two small text files in /skep/run: how the task ended, and why it is being ended.
 *
 * Pure. Lines of `key value`; unknown keys are skipped, so that either side may be newer.
 *
 * exit (by skep-init, whole or not there: written aside, then renamed):
 *     skep-exit 1
 *     stage user            setup, pre, user or post: where it ended
 *     code 1                0…255, 128 + signal when killed
 *     signal 0
 *     started_ms N          Unix time at which the user's command began; 0 = never
 *     ended_ms N
 *     memory limit          in a pod: a process was killed because the container's limit was
 *                           reached; `machine`: because the machine had none left
 *     message TEXT          for people; only for ends that skep-init itself made
 *
 * reason (by the engine, before it sends SIGTERM; the task finds it through
 * $SKEP_STOP_REASON_FILE):
 *     reason preempted      preempted, stopped, hung, attempt completed, … : a few words
 *     grace_ms 30000        SIGKILL follows after that; 0 or absent: unknown
 */
#ifndef INIT_EXIT_FILE_H
#define INIT_EXIT_FILE_H
#include "base/text.h"
#include <stdint.h>

struct buf;
struct err;

enum exit_stage { EXIT_STAGE_SETUP, EXIT_STAGE_PRE, EXIT_STAGE_USER, EXIT_STAGE_POST };

/* codes of ends that skep-init itself makes, all with stage `setup`: OpenPAI's table where it has
 * one */
enum {
    EXIT_FILE_SSH_BARRIER = 10, /* the ssh barrier's time ran out; becomes 249 */
    EXIT_FILE_BARRIER = 250,    /* the start barrier failed; transient */
    EXIT_FILE_BARRIER_TIMEOUT = 251,
    EXIT_FILE_BARRIER_BROKEN = 252, /* a task will never come */
    EXIT_FILE_PORT_CONFLICT = 253,
    EXIT_FILE_SSH_MISSING = 217,  /* the job asks for ssh, the image has no server; ours */
    EXIT_FILE_CODE_TOO_BIG = 218, /* codeDir is larger than what is copied; ours */
    EXIT_FILE_SETUP = 1,          /* anything else: the message says what */
};

enum exit_memory { EXIT_MEMORY_LASTED, EXIT_MEMORY_LIMIT, EXIT_MEMORY_MACHINE };

struct exit_file {
    enum exit_stage stage;
    int32_t code, signal;
    int64_t started_ms, ended_ms;
    char message[240];
    enum exit_memory memory;
};

/* Append to `out`. The message is one line: its writer sees to that. */
void exit_file_write(const struct exit_file *file, struct buf *out);
/* ERR_CORRUPT when the first line or a number is wrong. */
int exit_file_read(struct text bytes, struct exit_file *file, struct err *err);

struct reason_file {
    char reason[64];
    uint32_t grace_ms;
};

/* Append; the reason is a few words on one line, without a tab. */
void reason_file_write(const struct reason_file *file, struct buf *out);
void reason_file_read(struct text bytes, struct reason_file *file); /* what is not there: empty */

const char *exit_stage_name(enum exit_stage stage); /* "setup", "pre", "user", "post" */

#endif
