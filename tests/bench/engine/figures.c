#include "figures.h"
#include "base/memory.h"
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>

int figure_order(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

double quantile(double *values, size_t count, double q)
{
    qsort(values, count, sizeof *values, figure_order);
    return values[(size_t)((double)(count - 1) * q)];
}

struct middle middle_of(double *values, size_t count)
{
    const double half = 0.98 * sqrt((double)count), center = (double)(count - 1) / 2;
    const size_t low = center > half ? (size_t)(center - half) : 0;
    const double median = quantile(values, count, 0.5);
    return (struct middle){median, values[low], values[count - 1 - low]};
}

double cpu_ms(void)
{
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    const struct timeval times[] = {own.ru_utime, own.ru_stime, children.ru_utime,
                                    children.ru_stime};
    double sum = 0;
    for (size_t i = 0; i < COUNT_OF(times); i++)
        sum += (double)times[i].tv_sec * 1000 + (double)times[i].tv_usec / 1000;
    return sum;
}
