/* figures.h — what the benches of the engine measure by. */
#ifndef BENCH_FIGURES_H
#define BENCH_FIGURES_H
#include <stddef.h>

/* Of two doubles, for qsort. */
int figure_order(const void *a, const void *b);
/* Sorts the values; q from 0 to 1. */
double quantile(double *values, size_t count, double q);
/* The median, and the interval in which that of all such values lies by 95 of 100: between the
 * ranks of a coin thrown as often. Sorts the values. */
struct middle {
    double median, low, high;
};
struct middle middle_of(double *values, size_t count);
/* Processor time of this process and of all that it has waited for, in ms: comparable on a busy
 * machine, too. */
double cpu_ms(void);

#endif
