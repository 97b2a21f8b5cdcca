/* Figures of the job's life and of the judge.
 *
 * usage: bench-job [MILLISECONDS_A_FIGURE]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arguments.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "base/random.h"
#include "doc/problem.h"
#include "exits/judge.h"
#include "job/job.h"

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* One whole life: submitted, placed, every task runs and ends well. Returns the steps taken. */
static unsigned life(const struct job_policy *policy, struct job_output *output, unsigned tasks)
{
    struct job job;
    uint64_t last = 0;
    int64_t now_ms = 1;
    const struct completion good = completion_of(0, "%s", "");
    job_init(&job, policy, now_ms, output);
    struct job_event event = {.kind = JOB_EVENT_PLACED, .attempt_last = &last};
    unsigned steps = 1;
    for (int phase = 0; phase < 3; phase++)
        for (unsigned i = 0; i < (phase == 0 ? 1 : tasks); i++) {
            static const enum job_event_kind kinds[] = {JOB_EVENT_PLACED, JOB_EVENT_TASK_RUNNING,
                                                        JOB_EVENT_TASK_EXITED};
            event.kind = kinds[phase];
            event.now_ms = ++now_ms;
            event.task.index = (uint16_t)i;
            event.completion = &good;
            output->count = 0;
            job_step(&job, policy, &event, output);
            arena_clear(output->arena);
            steps++;
        }
    if (!job_is_final(&job))
        abort();
    job_release(&job);
    return steps;
}

static void lives(unsigned tasks, double seconds)
{
    struct arena arena;
    arena_init(&arena);
    struct job_output output = {.arena = &arena};
    const struct job_role_policy role = {
        .name = "worker", .instances = tasks, .min_failed = 1, .min_succeeded = -1};
    const struct job_policy policy = {
        .is_gang = true, .backoff = {60, 900}, .roles = &role, .role_count = 1};
    const double begin_s = now_s();
    double steps = 0, jobs = 0;
    while (now_s() - begin_s < seconds) {
        steps += life(&policy, &output, tasks);
        jobs++;
    }
    const double spent_s = now_s() - begin_s;
    printf("%5u tasks a job: %9.0f steps/s, %8.0f lives/s\n", tasks, steps / spent_s,
           jobs / spent_s);
    job_output_release(&output);
    arena_release(&arena);
}

static void queued_size(void)
{
    struct arena arena;
    arena_init(&arena);
    struct job_output output = {.arena = &arena};
    const struct job_role_policy role = {.name = "worker", .instances = 16, .min_failed = 1};
    const struct job_policy policy = {
        .is_gang = true, .backoff = {60, 900}, .roles = &role, .role_count = 1};
    struct job job;
    uint64_t last = 0;
    job_init(&job, &policy, 1, &output);
    const size_t queued = job_memory(&job);
    const struct job_event placed = {.kind = JOB_EVENT_PLACED, .now_ms = 2, .attempt_last = &last};
    job_step(&job, &policy, &placed, &output);
    printf("a queued job: %zu bytes; a running one of 16 tasks: %zu bytes\n", queued,
           job_memory(&job));
    job_release(&job);
    job_output_release(&output);
    arena_release(&arena);
}

/* Log lines as training writes them. */
static struct text log_make(size_t size, const char *tail)
{
    char *log = mem_alloc(size);
    struct random random = {.state = 1};
    size_t at = 0;
    while (at < size) {
        char line[160];
        const int length = snprintf(
            line, sizeof line,
            "[2026-11-21 10:%02u:%02u] INFO train.py:%u epoch %u step %u loss %.4f "
            "acc %.3f lr 1e-4 (tensorflow not found, memory %u MiB, no error)\n",
            (unsigned)random_below(&random, 60), (unsigned)random_below(&random, 60),
            (unsigned)random_below(&random, 900), (unsigned)random_below(&random, 90),
            (unsigned)random_below(&random, 90000), (double)random_below(&random, 10000) / 1e4,
            (double)random_below(&random, 1000) / 1e3, (unsigned)random_below(&random, 90000));
        const size_t part = (size_t)length < size - at ? (size_t)length : size - at;
        memcpy(log + at, line, part);
        at += part;
    }
    const size_t length = strlen(tail);
    memcpy(log + size - length, tail, length);
    return (struct text){log, size};
}

static void judge(const struct exit_rules *rules, const char *what, size_t size, const char *tail)
{
    const struct text log = log_make(size, tail);
    const struct exit_report input = {.exit_code = 1, .is_user_command = true, .log_tail = log};
    struct exit_verdict verdict;
    double best_s = 1e9;
    for (int i = 0; i < 5; i++) {
        const double begin_s = now_s();
        exit_judge(rules, &input, &verdict);
        const double spent_s = now_s() - begin_s;
        best_s = spent_s < best_s ? spent_s : best_s;
    }
    printf("judge, %4.1f MiB, %-28s %8.2f ms -> %d\n", (double)size / (1 << 20), what, best_s * 1e3,
           verdict.completion.code);
    mem_free((char *)log.at);
}

/* A log of the words that the built-in rules look for, in random order, none of which ends a match:
 * all rules must be searched, and RE2 meets many states. */
static void judge_hostile(const struct exit_rules *rules)
{
    static const char *const words[] = {"NCCL ",
                                        "gloo ",
                                        "IndexError:",
                                        "Unable to allocate ",
                                        "syntax error: ",
                                        "AttributeError:",
                                        "TypeError: ",
                                        "OSError:",
                                        ": line 1: ",
                                        ": 1: ",
                                        "utils.lua:",
                                        "a",
                                        "b",
                                        "pthread_create",
                                        "torch/install/share/lua"};
    char *log = mem_alloc(EXIT_TAIL_MAX);
    struct random random = {.state = 3};
    size_t at = 0;
    while (at + 64 < EXIT_TAIL_MAX) {
        const char *word = words[random_below(&random, COUNT_OF(words))];
        memcpy(log + at, word, strlen(word));
        at += strlen(word);
    }
    const struct exit_report input = {
        .exit_code = 1, .is_user_command = true, .log_tail = {log, at}};
    struct exit_verdict verdict;
    const double begin_s = now_s();
    exit_judge(rules, &input, &verdict);
    printf("judge, %4.1f MiB, %-28s %8.2f ms -> %d\n", (double)at / (1 << 20), "a hostile log",
           (now_s() - begin_s) * 1e3, verdict.completion.code);
    mem_free(log);
}

static void judges(double seconds)
{
    struct arena arena;
    struct problems problems;
    arena_init(&arena);
    problems_init(&problems, &arena);
    double begin_s = now_s(), count = 0;
    while (now_s() - begin_s < seconds) {
        exit_rules_free(exit_rules_new((struct text){0}, &problems));
        count++;
    }
    printf("rules made from the table: %.2f ms\n", (now_s() - begin_s) / count * 1e3);
    struct exit_rules *rules = exit_rules_new((struct text){0}, &problems);
    judge(rules, "nothing matches", 4096, "\n");
    judge(rules, "nothing matches", EXIT_TAIL_MAX, "\n");
    judge(rules, "SyntaxError at the end", EXIT_TAIL_MAX, "\nSyntaxError: invalid syntax\n");
    judge(rules, "Traceback at the end", EXIT_TAIL_MAX,
          "\nTraceback (most recent call last):\nValueError: no\n");
    judge_hostile(rules);
    exit_rules_free(rules);
    const char *bad =
        "- containerExitCode: 248\n  patterns: [{userLogRegex: "
        "'(?s)epoch.*step.*loss.*acc.*never'}, {userLogRegex: '(\\w+\\s?)*never!'}]\n";
    rules = exit_rules_new(text_of(bad), &problems);
    judge(rules, "expressions made to blow up", EXIT_TAIL_MAX, "\nnever\n");
    exit_rules_free(rules);
    struct buf file = BUF_INIT;
    buf_string(&file, "- containerExitCode: 248\n  patterns:\n");
    for (int i = 0; i < 100; i++)
        buf_format(&file,
                   "  - {userLogRegex: '(?i)site error %d: [^\\n]*(lost|gone) on rack-%d\\b'}\n", i,
                   i);
    rules = exit_rules_new(buf_as_text(&file), &problems);
    judge(rules, "100 operator's rules more", EXIT_TAIL_MAX, "\n");
    judge(rules, "the last of them matches", EXIT_TAIL_MAX,
          "\nsite error 99: all lost on rack-99\n");
    exit_rules_free(rules);
    buf_release(&file);
    problems_release(&problems);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const char usage[] = "usage: bench-job [MILLISECONDS_A_FIGURE]     (500)\n";
    arguments_check(argc, argv, 0, 1, 0, usage);
    const double seconds =
        (double)(argc > 1 ? argument_number(argv[1], 1, 3600000, usage) : 500) / 1e3;
    printf("CPU time, one thread\n");
    lives(1, seconds);
    lives(16, seconds);
    lives(2000, seconds);
    queued_size();
    judges(seconds);
    return 0;
}
