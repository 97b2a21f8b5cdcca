/* no_threads.h — a machine that has no room for another thread, as long as a test wants it so. */
#ifndef TEST_KUBERNETES_NO_THREADS_H
#define TEST_KUBERNETES_NO_THREADS_H
#include <stdatomic.h>
#include <stddef.h>

/* So many are refused from now on; those that were asked for and refused. */
extern atomic_size_t threads_refused, threads_to_refuse;

#endif
