/* queue-bench: what one event costs the core while many jobs wait, by what makes them different.
 *
 * usage: queue-bench [NODES [JOBS [POLICY [PART]]]]
 * NODES: of 8 GPUs, all in use (10000). JOBS: waiting (100000). POLICY: hived (default), first-fit,
 * best-fit, spread. PART: one of the following; all without it, but preempts.
 * waits: for each kind of queue the program prints the mean and the worst time of a submission, of
 * an end that frees a node's place, and of a timer with which a pass goes on, and how many such
 * timers an end causes. preempts: one scene of these, small jobs that preempt,
 * and two more in which very many jobs run.
 * lives: what happens to large jobs, which preempt or find an empty cluster, from submission to
 * end, by the kinds of events. unequal: to gangs of tasks of which no two kinds are equal.
 * cells: nodes appear, and one changes; the policy and the order do.
 * snapshots: what readers get is copied as a whole and in pieces.
 * starves: room is held back for a job. behind: a large gang starts behind such a job.
 * reads: a barrier of a large job, and which jobs are on all nodes.
 * interrupted: a node fails, or a large gang is stopped, while it takes its cells or gives them
 * back.
 * overtaken: a large gang takes places for which others preempt.
 * types: a large group is on several leaf types, when it starts and when another placer takes over;
 * and what another one takes from it then, as the quotas have shrunk. Many roles on many types.
 * It asserts nothing. CPU time of the one thread.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "base/memory.h"
#include "queue_scenes.h"
#include "queue_world.h"

static const char usage[] =
    "usage: queue-bench [NODES [JOBS [POLICY [PART]]]]     (10000, 100000, hived, all parts)\n"
    "POLICY: hived, first-fit, best-fit or spread. PART: waits, lives, cells, snapshots,\n"
    "starves, behind, reads, interrupted, overtaken, preempts, unequal or types.\n";

struct part {
    const char *name;
    void (*run)(struct bench *bench);
    bool is_default; /* it is run where no part is named */
};

static const struct part parts[] = {
    {"waits", waits_run, true},
    {"lives", lives_run, true},
    {"cells", cells_run, true},
    {"snapshots", snapshots_run, true},
    {"starves", starves_run, true},
    {"behind", behind_run, true},
    {"reads", reads_run, true},
    {"interrupted", interrupted_run, true},
    {"overtaken", overtaken_run, true},
    {"preempts", bench_preemptors, false}, /* one scene is among those of waits */
    {"unequal", unequal_run, true},
    {"types", types_run, true},
};

_Noreturn static void word_refuse(const char *word)
{
    fprintf(stderr, "%s: there is no such policy or part\n%s", word, usage);
    exit(2);
}

static const char *policy_of(const char *word)
{
    static const char *const policies[] = {"hived", "first-fit", "best-fit", "spread"};
    for (size_t i = 0; i < COUNT_OF(policies); i++)
        if (!strcmp(word, policies[i]))
            return policies[i];
    word_refuse(word);
}

static const struct part *part_of(const char *word)
{
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (!strcmp(word, parts[i].name))
            return &parts[i];
    word_refuse(word);
}

int main(int count, char **words)
{
    arguments_check(count, words, 0, 4, 0, usage);
    const char *policy = policy_of(count > 3 ? words[3] : "hived");
    const struct part *part = count > 4 ? part_of(words[4]) : NULL;
    struct bench bench = {
        .policy = policy,
        .nodes = count > 1 ? (uint32_t)argument_number(words[1], CLUSTERS, CORE_NODES_MAX, usage)
                           : 10000,
        .jobs =
            count > 2 ? (uint32_t)argument_number(words[2], 1, CORE_JOBS_MAX / 2, usage) : 100000,
    };
    heap_set();
    output_init(&bench.output);
    printf("policy %s, %u nodes, %u jobs wait; microseconds\n", bench.policy, bench.nodes,
           bench.jobs);
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (part ? part == &parts[i] : parts[i].is_default)
            parts[i].run(&bench);
    output_release(&bench.output);
    return 0;
}
