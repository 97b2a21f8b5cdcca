#include <errno.h>
#include <pthread.h>

#include "no_threads.h"

atomic_size_t threads_refused, threads_to_refuse;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context)
{
    size_t left = atomic_load(&threads_to_refuse);
    while (left > 0 && !atomic_compare_exchange_weak(&threads_to_refuse, &left, left - 1))
        continue;
    if (left == 0)
        return __real_pthread_create(thread, attributes, run, context);
    atomic_fetch_add(&threads_refused, 1);
    return EAGAIN;
}
