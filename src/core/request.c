#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/request.h"
#include "core/state.h"

static void request_head(struct core *core, const struct core_job *job, struct arena *arena,
                         struct request *request)
{
    assert(job->id.v);
    const struct plan *plan = job->plan;
    *request = (struct request){0};
    request->placement = (struct placement_request){
        .virtual_cluster = plan->virtual_cluster,
        .priority = plan->priority,
        .is_lazy_preemptible = plan->is_lazy_preemptible,
        .may_preempt = true,
        .now_ms = core->now_ms,
    };
    request->placement.avoid_count = nodes_to_avoid(core, arena, &request->placement.avoid);
}

static struct placement_member member_of(const struct plan_role *role, uint32_t count)
{
    assert(count > 0);
    return (struct placement_member){
        .count = count,
        .cpu = role->cpu,
        .memory_mib = role->memory_mib,
        .gpu = role->gpu,
        .sku_type = role->sku_type,
        .within_one_cell = role->within_one_cell,
    };
}

/* Does the part go on behind `role`? */
static bool part_next(const struct plan *plan, uint16_t *role)
{
    *role = plan->roles[*role].part_next;
    return *role != 0;
}

static size_t part_role_count(const struct plan *plan, uint16_t first_role)
{
    size_t count = 1;
    for (uint16_t role = first_role; part_next(plan, &role);)
        count++;
    return count;
}

uint32_t part_task_count(struct core *core, const struct core_job *job, uint16_t first_role)
{
    const struct job_policy *policy = policy_of(core, job);
    uint32_t count = 0;
    uint16_t role = first_role;
    assert(job->plan->roles[first_role].part == first_role);
    do
        count += job_role_instances(&job->life, policy, role);
    while (part_next(job->plan, &role));
    return count;
}

void request_of_part(struct core *core, const struct core_job *job, uint16_t first_role,
                     struct arena *arena, struct request *request)
{
    assert(first_role < job->plan->role_count);
    const struct plan *plan = job->plan;
    const struct job_policy *policy = policy_of(core, job);
    request_head(core, job, arena, request);
    uint32_t tasks = part_task_count(core, job, first_role);
    struct placement_member *members =
        ARENA_ARRAY(arena, struct placement_member, part_role_count(plan, first_role));
    size_t count = 0;
    request->tasks = ARENA_ARRAY(arena, struct task_ref, tasks + 1);
    uint16_t role = first_role;
    do {
        uint32_t instances = job_role_instances(&job->life, policy, role);
        if (instances)
            members[count++] = member_of(&plan->roles[role], instances);
        for (uint32_t j = 0; j < instances; j++)
            request->tasks[request->task_count++] = (struct task_ref){role, (uint16_t)j};
    } while (part_next(plan, &role));
    request->placement.members = members;
    request->placement.member_count = count;
    request->placement.within_one_cell = plan->within_one_cell;
    request->placement.pinned_cell_id = plan->roles[first_role].pinned_cell_id;
    request->placement.group = plan->part_count == 1
                                   ? arena_format(arena, "%s/%u", job->full_name, job->life.attempt)
                                   : arena_format(arena, "%s/%u/%s", job->full_name,
                                                  job->life.attempt, plan->roles[first_role].name);
}

void request_of_task(struct core *core, const struct core_job *job, struct task_ref task,
                     uint32_t task_attempt, struct arena *arena, struct request *request)
{
    assert(task.role < job->plan->role_count);
    const struct plan_role *role = &job->plan->roles[task.role];
    request_head(core, job, arena, request);
    struct placement_member *member = ARENA_NEW(arena, struct placement_member);
    *member = member_of(role, 1);
    member->within_one_cell = ""; /* each task has its own cell anyway */
    request->tasks = ARENA_NEW(arena, struct task_ref);
    *request->tasks = task;
    request->task_count = 1;
    request->placement.members = member;
    request->placement.member_count = 1;
    request->placement.pinned_cell_id = role->pinned_cell_id;
    request->placement.group =
        arena_format(arena, "%s/%u/%s-%u.%u", job->full_name, job->life.attempt, role->name,
                     task.index, task_attempt);
}

/* --- shapes --- */

static void role_shape(const struct plan_role *role, uint32_t count, struct buf *out)
{
    buf_put_u32(out, count);
    buf_put_u32(out, role->cpu);
    buf_put_u32(out, role->gpu);
    buf_put_u64(out, role->memory_mib);
    buf_put_text(out, text_of(role->sku_type));
    buf_put_text(out, text_of(role->pinned_cell_id));
    buf_put_text(out, text_of(role->affinity_group));
    buf_put_text(out, text_of(role->within_one_cell));
    buf_put_u32(out, role->port_count);
    for (size_t i = 0; i < role->port_count; i++)
        buf_put_u32(out, role->ports[i].begin_at << 16 | role->ports[i].count);
}

bool role_is_waiting(const struct core_job *job, const struct job_policy *policy, uint16_t role)
{
    assert(role < job->plan->role_count && role < policy->role_count);
    uint32_t count = job_role_count(&job->life, policy, role);
    for (uint32_t i = 0; i < count; i++)
        if (job_task_is_waiting(&job->life, policy, (struct task_ref){role, (uint16_t)i}))
            return true;
    return false;
}

struct text shape_of(struct core *core, const struct core_job *job, struct arena *arena)
{
    assert(job->id.v);
    const struct plan *plan = job->plan;
    const struct job_policy *policy = policy_of(core, job);
    cleanup_buf struct buf out = BUF_INIT;
    buf_put_text(&out, text_of(plan->virtual_cluster));
    buf_put_u32(&out, (uint32_t)plan->priority);
    buf_put_u8(&out, (uint8_t)(plan->is_gang | plan->is_lazy_preemptible << 1));
    buf_put_text(&out, text_of(plan->within_one_cell));
    buf_put_u32(&out, job->is_alone || job->hold_count ? job->id.v : 0);
    for (uint16_t i = 0; i < plan->role_count; i++) {
        if (plan->is_gang)
            role_shape(&plan->roles[i], job_role_instances(&job->life, policy, i), &out);
        else if (role_is_waiting(job, policy, i))
            role_shape(&plan->roles[i], 1, &out);
    }
    char *copy = arena_alloc(arena, out.length + 1);
    memcpy(copy, buf_cstr(&out), out.length);
    struct text shape = {copy, out.length};
    return shape;
}
