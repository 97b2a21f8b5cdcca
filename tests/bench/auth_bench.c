/* auth-bench: what one decision about a right costs.
 *
 * usage: auth-bench [GRANTS [ROUNDS]]
 * GRANTS: virtual clusters, storages and groups that the caller has, each (500). ROUNDS: decisions
 * of each kind (200000). For every right the program prints the mean time of a decision that says
 * yes and of one that says no, which writes the sentence, for a caller with that many grants, the
 * last of which is the one that is asked for. It asserts nothing. CPU time of the one thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arguments.h"
#include "auth/auth.h"
#include "base/err.h"
#include "base/memory.h"

static const char usage[] = "usage: auth-bench [GRANTS [ROUNDS]]\n"
                            "What one decision about a right costs.\n"
                            "  GRANTS  clusters, storages and groups of the caller, each (500)\n"
                            "  ROUNDS  decisions of each kind (200000)\n";

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Mean ns of a decision; how many said yes. */
static double measure(const struct auth_caller *caller, enum auth_right right,
                      const struct auth_subject *subject, uint64_t rounds, uint64_t *yes)
{
    struct err err;
    double begin = now_ns();
    *yes = 0;
    for (uint64_t i = 0; i < rounds; i++)
        *yes += auth_check(caller, right, subject, &err) == 0;
    return (now_ns() - begin) / (double)rounds;
}

int main(int argc, char **argv)
{
    arguments_check(argc, argv, 0, 2, 0, usage);
    size_t grants = argc > 1 ? argument_number(argv[1], 1, 100000, usage) : 500;
    uint64_t rounds = argc > 2 ? argument_number(argv[2], 1, 1000000000, usage) : 200000;
    char(*names)[40] = mem_zero(grants, sizeof *names);
    const char **list = mem_zero(grants, sizeof *list);
    for (size_t i = 0; i < grants; i++) {
        snprintf(names[i], sizeof names[i], "a-granted-name-%06zu", i);
        list[i] = names[i];
    }
    const struct auth_caller owner = {.user = "alice",
                                      .clusters = list,
                                      .cluster_count = grants,
                                      .storages = list,
                                      .storage_count = grants,
                                      .groups = list,
                                      .group_count = grants};
    struct auth_caller admin = owner, stranger = {.user = "mallory"};
    const char *last = list[grants - 1];
    const struct auth_subject subject = {
        .owner = "alice", .name = "job", .cluster = last, .storage = last, .group = last};
    const struct auth_caller *callers[] = {&owner, &admin, &stranger};
    double worst = 0;
    admin.is_admin = true;
    printf("%zu grants, %llu rounds; ns a decision (+: yes, -: no)\n%-22s %10s %10s %10s\n", grants,
           (unsigned long long)rounds, "right", "owner", "admin", "stranger");
    for (int right = 0; right < AUTH_RIGHT_COUNT; right++) {
        printf("%-22s", auth_right_name((enum auth_right)right));
        for (size_t i = 0; i < COUNT_OF(callers); i++) {
            uint64_t yes;
            double ns = measure(callers[i], (enum auth_right)right, &subject, rounds, &yes);
            worst = ns > worst ? ns : worst;
            printf(" %9.1f%c", ns, yes ? '+' : '-');
        }
        printf("\n");
    }
    printf("worst %.1f ns\n", worst);
    mem_free(list);
    mem_free(names);
    return 0;
}
