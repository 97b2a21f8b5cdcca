/* init.h — the running skep-init: one event loop over signals, pipes and children.
 *
 * Private to the program. Edge. One thread. As the first process of a container it adopts every
 * orphan; elsewhere (tests) it makes itself a subreaper.
 */
#ifndef INIT_INIT_H
#define INIT_INIT_H
#include "base/arena.h"
#include "init/env.h"
#include "init/exit_file.h"
#include "init/job_file.h"
#include "init/log.h"
#include "init/log_times.h"
#include "init/task_file.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

enum pipe_kind { PIPE_STDOUT, PIPE_STDERR, PIPE_RUNTIME, PIPES };

struct init {
    struct arena arena;
    const char *root; /* "/skep" */
    struct job_file job;
    struct task_file task;
    const struct job_file_role *role;
    const struct job_file_task *self;
    struct env env;
    char **environment; /* for children */
    const char *home, *user_name, *work_dir;

    int log_directory;
    struct log_writer logs[PIPES], all;
    struct log_times times;
    int relay_fd; /* the container's own output, when it gets the logs as well; -1: it does not */
    uint64_t relay_offsets[PIPES], relay_all_offset;
    uint64_t relay_bytes;        /* of lines, so far */
    int taken_fd;                /* of the pipe LAYOUT_TAKEN_NAME; -1: there is none */
    int64_t began_ms, use_at_ms; /* monotonic; when the container's use is told next, 0 = never */
    int read_ends[PIPES], write_ends[PIPES]; /* -1: closed */
    enum pipe_kind unfinished;               /* whose line `all` is in the middle of */
    int signals;                             /* signalfd */

    pid_t main_pid; /* of the stage that runs; 0 = none */
    int main_status;
    bool is_main_done;
    pid_t sshd_pid;
    bool has_children;

    bool is_guest; /* beside the task's own skep-init, which has the logs */
    bool is_stopping, is_hung;
    int64_t kill_at_ms, term_at_ms; /* monotonic; 0 = never */
    struct exit_file end;
};

/* --- loop.c --- */
int loop_init(struct init *init, struct err *err);
/* Wait until `deadline_ms` (0 = for ever) for one of: signals, output, `fd` ready for `events`
 * (fd -1: none). All but `fd` is dealt with; returns what is ready on it. */
short loop_turn(struct init *init, int fd, short events, int64_t deadline_ms);
/* Read what is in the pipes now. */
void loop_drain(struct init *init);
/* Close our write ends and read to the end. All children must be gone. */
void loop_finish(struct init *init);
/* A line of the runtime log. */
void note(struct init *init, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- relay.c --- */
void relay_open(struct init *init); /* before the output is redirected */
void relay_write(struct init *init, enum pipe_kind kind, const char *bytes, size_t length);
/* Nothing more will be written. Waits until long logs have been taken, or nobody does. */
void relay_close(struct init *init);
void relay_deadlines(struct init *init);         /* what is due now */
int64_t relay_deadline(const struct init *init); /* the next; 0 = none */

/* --- process.c --- */
bool processes_reap(struct init *init); /* false: no child is left */
void processes_end(struct init *init);  /* until none is left */
void processes_signal(int signal); /* to all of the container but us; elsewhere our descendants */
void processes_stop(struct init *init);              /* SIGTERM has come */
void processes_deadlines(struct init *init);         /* what is due now */
int64_t processes_deadline(const struct init *init); /* the next; 0 = none */

/* --- command.c --- */
/* Start a program with its output to the pipes given; returns its pid or ERR_*. */
pid_t command_start(struct init *init, const char *const *argv, enum pipe_kind out,
                    enum pipe_kind err_to, struct err *err);
/* Run shell text as one stage; fills init->end. Returns true when it succeeded. */
bool command_run(struct init *init, enum exit_stage stage, const char *name, const char *text);
int file_write(const char *path, struct text bytes, mode_t mode, struct err *err);
/* The path of a file that holds a secret: in memory where the engine gives us such a folder. */
const char *private_path(struct init *init, const char *name);

/* bash when the image has it, else sh; NULL: neither. */
const char *shell_find(bool *is_bash);

/* --- enter.c: `skep-init enter …`, the arguments after that word; returns the exit code. */
int enter(struct init *init, int count, char **arguments);
/* --- beside.c: `skep-init beside …`, likewise; returns only when it fails. */
int beside(struct init *init, int count, char **arguments);
/* --- fetch.c: `skep-init fetch …`, likewise; returns the exit code. */
int fetch(struct init *init, int count, char **arguments);
/* --- reason.c: `skep-init reason …`, likewise. */
int reason(struct init *init, int count, char **arguments);

/* --- addresses.c: `skep-init addresses …`, likewise. */
int addresses(struct init *init, int count, char **arguments);
/* Every task has an address of its own, and this is ours: the job's table gets those of all, for
 * which the task's own skep-init waits. ERR_UNAVAILABLE: they have not come, end.code is set. */
int addresses_setup(struct init *init, const char *own, struct err *err);

/* --- main.c --- */
int task_read(struct init *init, struct err *err); /* the task file */
int job_read(struct init *init, struct err *err);  /* the job file */

/* --- setup.c, ssh.c, barrier.c, code.c: each returns 0, or ERR_* with end.code set --- */
int setup_network(struct init *init, struct err *err);
int setup_identity(struct init *init, struct err *err);
int setup_environment(struct init *init, struct err *err);
int setup_ports(struct init *init, struct err *err);
int code_copy(struct init *init, struct err *err);
int ssh_setup(struct init *init, struct err *err);
int barrier_ssh(struct init *init, struct err *err);
int barrier_start(struct init *init, struct err *err);

#endif
