/* plan.h — what the core must know of a job: the scheduling side of a spec, nothing else.
 *
 * Pure. Commands, images and secrets stay in the spec on disk; 100,000 queued jobs are 100,000
 * plans in memory, so a plan is one block of memory of a few hundred bytes. Immutable; owned by the
 * core once submitted.
 */
#ifndef CORE_PLAN_H
#define CORE_PLAN_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct spec;

struct plan_port {
    const char *label;
    uint32_t count, begin_at; /* from 1 on; begin_at 0: any free ports */
};

struct plan_role {
    const char *name;
    const char *sku_type, *pinned_cell_id, *affinity_group, *within_one_cell; /* "" = none */
    uint32_t instances, cpu, gpu;
    uint64_t memory_mib;
    int32_t min_failed, min_succeeded; /* -1 disables */
    int32_t task_retry_max;            /* 0 for gang jobs */
    const struct plan_port *ports;
    uint16_t port_count;
    /* Set by whatever makes a plan: roles of one affinity group and pinned cell are a part of the
     * gang, placed together. The first role of its part, and the next one (0: none). */
    uint16_t part, part_next;
};

struct plan {
    const char *name, *user, *virtual_cluster;
    const char *within_one_cell; /* of each part of the gang; "" or NULL = none */
    int32_t priority;            /* -1 … 1000 */
    int32_t retry_max;           /* -2 always, -1 any failure, n */
    bool is_retry_fancy, is_gang, is_lazy_preemptible, is_debug, is_hang_retry;
    uint32_t kill_all_on_completed;
    uint64_t time_limit_s, hang_after_s; /* 0 = none, the server's default */
    const struct plan_role *roles;
    uint16_t role_count, part_count;
};

/* A role that may stand anywhere: one task of one CPU and 1 MiB, without ports; the
 * job ends with the first task that fails (the default of OpenPAI's protocol). Borrows the name. */
struct plan_role plan_role_of(const char *name);

/* A new plan in one block (free with plan_free). */
struct plan *plan_of_spec(const struct spec *spec, const char *user);
struct plan *plan_copy(const struct plan *plan);
void plan_free(struct plan *plan);

static inline void cleanup_free_plan(struct plan **plan)
{
    plan_free(*plan);
}
#define cleanup_plan __attribute__((cleanup(cleanup_free_plan)))

/* Versioned binary form. Decoding checks everything; NULL and ERR_CORRUPT otherwise. */
void plan_encode(const struct plan *plan, struct buf *out);
struct plan *plan_decode(struct text bytes, struct err *err);

/* Tasks of all roles: at most SPEC_TASKS_MAX. */
uint32_t plan_task_count(const struct plan *plan);

#endif
