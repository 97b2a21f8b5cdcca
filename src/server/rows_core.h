/* rows_core.h — a core of its own, made of the store's rows of one instant.
 *
 * Edge, any thread with a reader. It is what a restart would make: the core thread and its core
 * have no part in it, and nothing of what it says is stored or acted on.
 */
#ifndef SERVER_ROWS_CORE_H
#define SERVER_ROWS_CORE_H
#include "model/ids.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core;
struct core_config;
struct err;
struct store_reader;

struct rows_core_ask {
    const struct core_config *config;
    int64_t now_ms;                /* its time; that of the last event that is stored, if later */
    const _Atomic bool *is_ending; /* when it becomes true that is the end; NULL: it never does */
    uint32_t job; /* of the jobs this one alone, which gets no new places; 0: all */
    const struct job_id *left_out; /* and not these; may be NULL when there are none */
    size_t left_out_count;
};

/* Costs as much memory and time as a restart. The core is the caller's; NULL on errors.
 * ERR_UNAVAILABLE: the server is ending; others as of the store and the core. */
int rows_core(struct store_reader *reader, const struct rows_core_ask *ask, struct core **core,
              struct err *err);

#endif
