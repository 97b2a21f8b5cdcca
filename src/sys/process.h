/* process.h — child processes: started without copying our memory, waited for without polling.
 *
 * Edge. The child gets default signal actions, an empty mask, and only the descriptors named here:
 * all others of ours are close-on-exec.
 */
#ifndef SYS_PROCESS_H
#define SYS_PROCESS_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct err;

struct process {
    const char *const *argv; /* NULL-terminated; argv[0] is found in PATH unless it has a slash */
    const char *const *env;  /* NULL-terminated; NULL: ours */
    int in, out, err;        /* -1: /dev/null */
    int more;                /* becomes descriptor 3; 0: none. Not of one that is bound */
    /* The kernel kills it when the thread that started it ends, however that comes about. Only for
     * a thread that waits for the process itself. What the process starts is not killed. */
    bool is_bound;
    bool is_group; /* of one that is bound: process_run kills what it has started with it */
    int stop;      /* of process_run: it is killed once this descriptor becomes readable; 0: none */
};

/* Start it: 0 and its pid, or ERR_NOT_FOUND when there is no such program, ERR_IO. */
int process_spawn(const struct process *process, pid_t *pid, struct err *err);

/* Wait for its end: as waitpid's status. Retries EINTR. */
int process_wait(pid_t pid, int *status, struct err *err);

/* 0 … 255, or 128 + signal. */
int process_exit_code(int status);

enum { PROCESS_TEXT_MAX = 1 << 20 };

/* Run to the end and keep what it writes, at most PROCESS_TEXT_MAX of each (the rest is read and
 * dropped). `out` and `complaint` may be NULL: /dev/null, or our standard error when process->err
 * is that. After timeout_ms (0: never) it is killed
 * and the result is ERR_UNAVAILABLE, as after `stop`. *exit_code, 0 or not, is set when 0 is
 * returned. */
int process_run(const struct process *process, uint32_t timeout_ms, struct buf *out,
                struct buf *complaint, int *exit_code, struct err *err);

/* A descriptor that becomes readable when the process ends; close it. Works for processes that are
 * not our children. ERR_NOT_FOUND: there is no such process. */
int process_watch(pid_t pid, struct err *err);

/* Has a running process this among the arguments that it was started with? */
bool process_has_argument(pid_t pid, const char *argument);

/* What the kernel adds to a process's score when it looks for one to kill because the machine's
 * memory ran out, -1000 … 1000 (proc(5), oom_score_adj); of ourselves when pid is 0; 0 when it
 * cannot be read. Children inherit it. */
int process_oom_score(pid_t pid);

/* False: lower than it was needs CAP_SYS_RESOURCE, or there is no such process. */
bool process_oom_score_put(pid_t pid, int score);

/* Start time of a process in clock ticks since boot (0: gone): with the pid a name that is never
 * reused within one boot. */
uint64_t process_start_time(pid_t pid);

#endif
