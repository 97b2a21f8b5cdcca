/* job.h — what several commands do with jobs. */
#ifndef CLI_JOB_H
#define CLI_JOB_H
#include "base/buf.h"
#include "cli/client.h"
#include "cli/command.h"

/* "/api/v2/jobs/NAME" + rest, percent-coded; nodes likewise. */
void job_path(struct buf *path, const char *job, const char *rest);
void node_path(struct buf *path, const char *node, const char *rest);

/* One call for each argument of the command: `path` of it and `rest`. */
struct each_call {
    void (*path)(struct buf *path, const char *argument, const char *rest);
    const char *method, *rest;
    const char *body; /* JSON; NULL: none */
    const char *done; /* what is printed before the argument: "stopping" */
};
/* Goes on after a refusal, not after EXIT_UNREACHABLE. The first failure's code. */
int each_argument(struct cli *cli, const struct each_call *call);

/* The file's content; "-" is standard input. EXIT_USAGE after a message. */
int file_content(const char *path, struct buf *content);

/* Submit; the job's full name into `name`. */
struct job_submission {
    const char *file;       /* the file's name, for what is said of it */
    struct text content;    /* … and what is in it */
    const char *secrets_of; /* the job whose secrets masked ones stand for; NULL: none do */
};
int job_submit(struct client *client, const struct job_submission *submission, struct buf *name);

struct wait_options {
    long timeout_s; /* 0: none */
    bool is_quiet;  /* do not tell the story on standard error */
};
/* Until the job is final; its exit code, EXIT_TIME_OVER, EXIT_SKEP. */
int job_wait(struct client *client, const char *job, const struct wait_options *options);

struct log_options {
    const char *role, *index, *stream; /* NULL: defaults */
    long tail_lines;                   /* < 0: all */
    int64_t since_ms;                  /* < 0: all */
    bool is_follow;
    bool is_whole; /* follow: all attempts from the job's start on */
};
/* Say on standard error how much of the log is missing at its beginning, if the reply said so. */
struct client_stream;
void job_log_removed(const struct client_stream *stream);
/* The log to standard output. After the server went away in a follow, goes on where it was. Exit
 * code. */
int job_log(struct client *client, const char *job, const struct log_options *options);

/* A task as the command line names it, "ROLE", "ROLE[INDEX]" or "ROLE:INDEX", into a request's
 * `role` and `index`. EXIT_USAGE after a message. */
int job_task_put(const char *task, json_t *request);

/* Exit code that stands for how the job (the JSON of its detail) ended. */
int job_exit_code(const json_t *detail);

#endif
