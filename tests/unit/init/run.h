/* run.h — skep-init run as a child in a directory that stands for /skep. */
#ifndef TESTS_INIT_RUN_H
#define TESTS_INIT_RUN_H
#include "unit.h"

#include <sys/types.h>

#include "base/buf.h"
#include "init/exit_file.h"
#include "init/job_file.h"
#include "init/layout.h"
#include "init/task_file.h"

struct world {
    char root[64];
    char output[96]; /* the file that is its standard output; "": ours */
    struct job_file job;
    struct job_file_role role;
    struct job_file_task tasks[2];
    struct job_file_port ports[2];
    uint16_t port_numbers[2];
    struct task_file task;
    struct exit_file end;
    int status;
};

/* What comes at once on a quiet machine comes within this on any. */
enum { RUN_LIMIT_MS = 120 * 1000 };

/* Of each test file. */
int run_setup(void **state);

char *path_in(const struct world *world, const char *name);
void write_whole(const char *path, const char *bytes, size_t length);
void read_whole(const char *path, struct buf *out);
void world_init(struct world *world, const char *command);
pid_t world_start(struct world *world);
void world_wait(struct world *world, pid_t pid);
void world_run(struct world *world);
void folder_remove(const char *path);
void log_is(const struct world *world, const char *stream, const char *wanted);
void log_has(const struct world *world, const char *stream, const char *wanted);
void end_is(const struct world *world, enum exit_stage stage, int code, int signal);
/* Until the command says so by making a file. */
void ready_await(const struct world *world);

#endif
