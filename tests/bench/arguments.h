/* arguments.h — the command line of a benchmark: words in a fixed order, --help, and nothing
 * unknown.
 */
#ifndef BENCH_ARGUMENTS_H
#define BENCH_ARGUMENTS_H
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exit 0 with the usage when it is asked for, 2 when there are too few or too many words, or an
 * option (`options`: the program reads its own). */
static inline void arguments_check(int argc, char **argv, int least, int most, int options,
                                   const char *usage)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            fputs(usage, stdout);
            exit(0);
        }
    int is_known = argc - 1 >= least && argc - 1 <= most;
    for (int i = 1; i < argc && !options; i++)
        is_known &= argv[i][0] != '-';
    if (!is_known) {
        fputs(usage, stderr);
        exit(2);
    }
}

/* A number in these limits, or exit 2 saying so. */
static inline uint64_t argument_number(const char *word, uint64_t least, uint64_t most,
                                       const char *usage)
{
    char *end = NULL;
    errno = 0;
    uint64_t value = strtoull(word, &end, 10);
    if (errno != 0 || end == word || *end || word[0] == '-' || value < least || value > most) {
        fprintf(stderr, "%s: not a number from %llu to %llu\n%s", word, (unsigned long long)least,
                (unsigned long long)most, usage);
        exit(2);
    }
    return value;
}

#endif
