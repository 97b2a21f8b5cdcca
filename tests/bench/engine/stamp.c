/* The user's command of the benchmark: says when it began to run. */
#include <stdio.h>
#include <time.h>

int main(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%lld\n", (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
    return 0;
}
