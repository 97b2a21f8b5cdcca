/* init-bench SKEP_INIT [RUNS [TASKS]]: what starting a command through skep-init costs over the
 * bare command.
 *
 * Each run starts `true` under the shell in both ways, alternating, and waits for its end. The job
 * has TASKS tasks, whose variables skep-init computes. Prints medians and the 95th percentile, in
 * milliseconds.
 */
#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arguments.h"
#include "base/buf.h"
#include "base/memory.h"
#include "init/job_file.h"
#include "init/task_file.h"

extern char **environ;

static const struct job_file_port PORTS[] = {{"http", 1, 0}, {"ssh", 1, 0}};

static void write_whole(const char *path, const struct buf *bytes)
{
    FILE *file = fopen(path, "w");
    if (!file || fwrite(bytes->at, 1, bytes->length, file) != bytes->length || fclose(file) != 0) {
        perror(path);
        exit(2);
    }
}

static void files_write(const char *root, uint32_t task_count)
{
    char path[256];
    static const uint16_t NUMBERS[2] = {0, 0};
    struct job_file_role role = {.name = "worker",
                                 .instances = task_count,
                                 .cpu = 1,
                                 .memory_mib = 100,
                                 .ports = PORTS,
                                 .port_count = 2};
    struct job_file_task *tasks = mem_zero(task_count, sizeof *tasks);
    for (uint32_t i = 0; i < task_count; i++)
        tasks[i] = (struct job_file_task){"10.0.0.1", "n", NUMBERS};
    const struct job_file job = {.format = JOB_FILE_V2,
                                 .name = "bench",
                                 .user = "u",
                                 .roles = &role,
                                 .role_count = 1,
                                 .tasks = tasks,
                                 .task_count = task_count};
    const struct task_file task = {.attempt_id = 1, .container = "skep-1", .command = "true"};
    struct buf bytes = BUF_INIT;
    job_file_write(&job, &bytes);
    snprintf(path, sizeof path, "%s/job", root);
    write_whole(path, &bytes);
    buf_clear(&bytes);
    task_file_write(&task, &bytes);
    snprintf(path, sizeof path, "%s/task", root);
    write_whole(path, &bytes);
    buf_clear(&bytes);
    buf_string(&bytes, "true");
    snprintf(path, sizeof path, "%s/bare", root);
    write_whole(path, &bytes);
    buf_release(&bytes);
    mem_free(tasks);
}

static double run_ms(const char *const *argv)
{
    struct timespec begin, end;
    pid_t pid;
    int status;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (posix_spawn(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) != 0 ||
        waitpid(pid, &status, 0) != pid || status != 0) {
        fprintf(stderr, "init-bench: %s failed\n", argv[0]);
        exit(2);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
}

static int double_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void clean(const char *root)
{
    static const char *const NAMES[] = {"run/exit",
                                        "run/started",
                                        "run/command",
                                        "run/environment",
                                        "log/all.000000000000000",
                                        "log/stdout.000000000000000",
                                        "log/stderr.000000000000000",
                                        "log/runtime.000000000000000",
                                        "job",
                                        "task",
                                        "bare",
                                        "log",
                                        "run",
                                        ""};
    char path[256];
    for (size_t i = 0; i < COUNT_OF(NAMES); i++) {
        snprintf(path, sizeof path, "%s/%s", root, NAMES[i]);
        remove(path);
    }
}

int main(int argc, char **argv)
{
    char root[] = "/tmp/skep-init-bench-XXXXXX", path[256];
    static const char usage[] = "usage: init-bench SKEP_INIT [RUNS [TASKS]]     (200, 1)\n";
    arguments_check(argc, argv, 1, 3, 0, usage);
    size_t runs = argc > 2 ? argument_number(argv[2], 1, 1000000, usage) : 200;
    uint32_t tasks =
        argc > 3 ? (uint32_t)argument_number(argv[3], 1, JOB_FILE_TASKS_MAX, usage) : 1;
    if (access(argv[1], X_OK) != 0 || !mkdtemp(root)) {
        perror(argv[1]);
        return 2;
    }
    snprintf(path, sizeof path, "%s/log", root);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/run", root);
    mkdir(path, 0755);
    files_write(root, tasks);
    snprintf(path, sizeof path, "%s/bare", root);
    const char *const bare[] = {access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh", "-eu",
                                path, NULL};
    const char *const init[] = {argv[1], root, NULL};
    double *without = mem_zero(runs, sizeof *without), *with = mem_zero(runs, sizeof *with);
    for (size_t i = 0; i < runs; i++) {
        without[i] = run_ms(bare);
        with[i] = run_ms(init);
    }
    qsort(without, runs, sizeof *without, double_compare);
    qsort(with, runs, sizeof *with, double_compare);
    printf("runs %zu, tasks in the job %u\n", runs, tasks);
    printf("bare command   median %6.2f ms  p95 %6.2f ms\n", without[runs / 2],
           without[runs * 95 / 100]);
    printf("with skep-init median %6.2f ms  p95 %6.2f ms\n", with[runs / 2], with[runs * 95 / 100]);
    printf("cost           median %6.2f ms\n", with[runs / 2] - without[runs / 2]);
    clean(root);
    mem_free(without);
    mem_free(with);
    return 0;
}
