/* plans.h — a plan with everything in it, for the tests of what is stored. */
#ifndef TESTS_CORE_PLANS_H
#define TESTS_CORE_PLANS_H
#include "unit.h"

#include "world.h"

static inline struct plan *plan_full(void)
{
    struct plan_port ports[] = {{"ssh", 1, 0}, {"grpc", 3, 9000}};
    struct plan_role roles[] = {world_role("master", 1, 2, 0), world_role("worker", 4, 1, 8)};
    roles[1].ports = ports;
    roles[1].sku_type = "V100,K80";
    roles[1].pinned_cell_id = "PIN";
    roles[1].affinity_group = "g";
    roles[1].within_one_cell = "RACK";
    roles[1].task_retry_max = 3;
    struct plan plan = world_plan("train");
    plan.is_gang = plan.is_debug = plan.is_hang_retry = plan.is_lazy_preemptible = true;
    plan.retry_max = -2;
    plan.priority = -1;
    plan.time_limit_s = 77;
    plan.hang_after_s = 66;
    plan.kill_all_on_completed = 2;
    plan.roles = roles;
    plan.role_count = 2;
    return plan_copy(&plan);
}

#endif
