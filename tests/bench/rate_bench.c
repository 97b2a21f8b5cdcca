/* rate-bench: what one decision about a rate costs.
 *
 * usage: rate-bench [NAMES [DECISIONS]]
 * NAMES: users with a bucket each (10000). DECISIONS: in all, by users in no order (10000000).
 * Prints the time of one decision, how many were refused, and the memory of the buckets without the
 * table that finds them. It asserts nothing. CPU time of the one thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "arguments.h"
#include "base/memory.h"
#include "base/rate.h"

enum { NAME_SIZE = 24, PER_SECOND = 100, SECOND_US = 1000000 };

static double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
    static const char usage[] = "usage: rate-bench [NAMES [DECISIONS]]\n";
    arguments_check(argc, argv, 0, 2, 0, usage);
    const uint64_t names = argc > 1 ? argument_number(argv[1], 1, RATE_NAMES_MAX, usage) : 10000;
    const uint64_t count = argc > 2 ? argument_number(argv[2], 1, 1000000000, usage) : 10000000;
    struct rate_table table = {.map = {.seed = 42}};
    char(*users)[NAME_SIZE] = mem_alloc(mem_size((size_t)names, NAME_SIZE));
    uint64_t refused = 0, random = 1;
    for (uint64_t i = 0; i < names; i++)
        snprintf(users[i], NAME_SIZE, "user-%" PRIu64, i);
    const double begin_us = now_us();
    for (uint64_t i = 0; i < count; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const char *user = users[(random >> 33) % names];
        refused += rate_take(&table, text_of(user), PER_SECOND, SECOND_US, (int64_t)i / 2) > 0;
    }
    const double spent_us = now_us() - begin_us;
    printf("%" PRIu64 " names, %" PRIu64 " decisions: %.0f ns each, %" PRIu64 " refused, %zu kB\n",
           names, count, spent_us * 1000 / (double)count, refused,
           table.count * (sizeof *table.items + NAME_SIZE) / 1000);
    rate_release(&table);
    mem_free(users);
    return 0;
}
