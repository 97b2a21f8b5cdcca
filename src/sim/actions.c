#include "sim/actions.h"
#include "base/memory.h"
#include "core/plan.h"
#include "sim/world.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    CALM_KINDS = 6,
    ROLES_MAX = 6,
    ACTION_GAP_MS = 3000, /* mean time between two things that happen from outside */
};
static const char *const kinds[] = {"ok",      "ok",      "fails", "permanent", "deaf",
                                    "noimage", "lost",    "flaky", "transient", "conflict",
                                    "forever", "refused", "moved"};

const struct engine_fake_rule action_rules[] = {
    {.job = "fails", .index = 0, .exit_code = 1},
    {.job = "transient", .index = -1, .exit_code = 3, .times = 3},
    {.job = "conflict", .index = 0, .exit_code = 4, .times = 1},
    {.job = "permanent", .index = -1, .exit_code = 5},
    {.job = "deaf", .index = -1, .is_deaf = true, .run_ms = 60000},
    {.job = "noimage", .index = -1, .create_failure = "ImageNotFound"},
    {.job = "flaky", .index = -1, .exit_code = 1, .times = 2},
    {.job = "lost", .index = -1, .is_exit_lost = true, .times = 3},
    {.job = "forever", .index = -1, .runs_for_ever = true},
    {.job = "refused", .index = -1, .refusal = "OutOfcpu", .times = 4},
    {.job = "moved", .index = 0, .is_moved = true, .times = 2},
};
const size_t action_rule_count = COUNT_OF(action_rules);

static uint64_t chance(struct sim *sim, uint64_t limit)
{
    return random_below(&sim->random, limit);
}

static void role_random(struct sim *sim, struct plan_role *role, struct plan_port *ports,
                        uint32_t number, size_t cluster, bool is_gang)
{
    static const char *const names[ROLES_MAX] = {"worker", "ps", "master", "eval", "log", "cache"};
    uint32_t most = is_gang ? 6 : 4;
    if (sim->config->slice)
        most = 2;
    bool is_huge = chance(sim, 30) == 0;
    *role = plan_role_of(names[number]);
    if (chance(sim, sim->config->slice ? 2 : 10) == 0)
        role->affinity_group = names[number];
    role->instances = 1 + (uint32_t)chance(sim, most) * (is_huge ? 20 : 1);
    role->cpu = 1 + (uint32_t)chance(sim, 2);
    if (sim->config->gpu_count)
        role->gpu = (uint32_t)chance(sim, sim->config->gpu_count + 1);
    role->memory_mib = 1 + chance(sim, 100);
    role->min_failed = chance(sim, 4) ? 1 : -1;
    /* of a failure and a success at one instant either may decide */
    role->min_succeeded = sim->config->is_calm || chance(sim, 4) ? -1 : 1;
    role->task_retry_max = is_gang ? 0 : (int32_t)chance(sim, 3);
    role->ports = ports;
    role->port_count = 2;
    if (sim->config->pins && sim->config->pins[cluster] && chance(sim, 10) == 0)
        role->pinned_cell_id = sim->config->pins[cluster];
    ports[0] = (struct plan_port){"ssh", 1, 0};
    /* tasks of a gang with one fixed port depend on luck: no placer knows of ports */
    bool is_fixed = !sim->config->is_calm && !sim->config->has_gangs_only && chance(sim, 20) == 0;
    ports[1] = (struct plan_port){"http", 1 + (uint32_t)chance(sim, 3), is_fixed ? 9000 : 0};
}

void action_submit(struct sim *sim)
{
    struct plan_role roles[ROLES_MAX];
    struct plan_port ports[ROLES_MAX][2];
    char name[40];
    size_t cluster = chance(sim, sim->config->cluster_count);
    static const int32_t priorities[] = {-1, 10, 10, 100, 120};
    /* the first kinds do not depend on how often a rule was used before */
    size_t kind = chance(sim, sim->config->is_calm ? CALM_KINDS : COUNT_OF(kinds));
    uint32_t number = (uint32_t)chance(sim, sim->config->jobs);
    if (sim->config->is_calm) /* a restart forgets which names have just been used */
        number = sim->result.submitted + sim->result.refused;
    snprintf(name, sizeof name, "%s-%u", kinds[kind], number);
    struct plan plan = {
        .name = name,
        .user = chance(sim, 2) ? "alice" : "bob",
        .virtual_cluster = sim->config->clusters[cluster],
        .priority = sim->config->has_priorities ? priorities[chance(sim, 5)] : 10,
        .retry_max = (int32_t)chance(sim, 4),
        .is_retry_fancy = chance(sim, 5) != 0,
        .is_gang = sim->config->has_gangs_only || chance(sim, 3) != 0,
        .is_lazy_preemptible = chance(sim, 3) == 0,
        .is_debug = chance(sim, sim->config->slice ? 3 : 10) == 0,
        .kill_all_on_completed = !sim->config->is_calm && chance(sim, 10) == 0,
        .time_limit_s = !sim->config->is_calm && chance(sim, 3) == 0 ? 60 + chance(sim, 600) : 0,
        .roles = roles,
        .role_count = (uint16_t)(1 + chance(sim, sim->config->slice ? ROLES_MAX : 3)),
    };
    for (uint16_t i = 0; i < plan.role_count; i++)
        role_random(sim, &roles[i], ports[i], i, cluster, plan.is_gang);
    struct event event = {.kind = EVENT_SUBMIT, .submit = {.plan = plan_copy(&plan)}};
    if (sim_step(sim, &event, NULL))
        sim->result.refused++;
    else
        sim->result.submitted++;
}

static uint32_t job_random(struct sim *sim)
{
    size_t count = rows_job_count(sim->rows);
    return count ? 1 + (uint32_t)chance(sim, count) : 0;
}

static void start_again(struct sim *sim, uint32_t id)
{
    const struct rows_job *job = rows_job(sim->rows, id - 1);
    struct event event = {.kind = EVENT_START};
    struct job_record record = {.id = {id}, .extra = {job->extra, job->extra_length}, .reason = ""};
    event.start.job.v = id;
    if (job->state == LIFE_COMPLETED && !job->is_deleted) {
        event.start.record = &record;
        event.start.plan = plan_decode((struct text){job->plan, job->plan_length}, NULL);
    }
    sim_step(sim, &event, NULL);
}

static void config_random(struct sim *sim)
{
    static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};
    static const char *const orders[] = {"priority", "smallest", "fifo"};
    if (sim->config->has_policies)
        sim->core_config.policy = policies[chance(sim, COUNT_OF(policies))];
    else if (strcmp(sim->config->policy, "hived") != 0 && chance(sim, 2))
        sim->core_config.policy = policies[chance(sim, 3)];
    sim->core_config.order = orders[chance(sim, 3)];
    sim->core_config.kill_grace_ms = 1000 + (uint32_t)chance(sim, 10) * 1000;
    sim->core_config.starvation_after_s = sim->config->starvation_s + (uint32_t)chance(sim, 30);
    struct event event = {.kind = EVENT_CONFIG, .config = &sim->core_config};
    int code = sim_step(sim, &event, NULL);
    assert(!code);
    (void)code;
}

void action_request(struct sim *sim)
{
    uint32_t id = job_random(sim);
    if (!id)
        return;
    struct event event = {.kind = EVENT_STOP};
    event.job.v = id;
    switch (chance(sim, 12)) {
    case 0:
    case 1:
    case 2:
        sim_step(sim, &event, NULL);
        break;
    case 3:
    case 4:
        start_again(sim, id);
        break;
    case 5:
        event.kind = EVENT_DELETE;
        if (!rows_job(sim->rows, id - 1)->is_deleted)
            sim_step(sim, &event, NULL);
        break;
    case 6:
    case 7:
    case 8:
        event.kind = EVENT_SCALE;
        event.scale.job.v = id;
        event.scale.role = (uint16_t)chance(sim, 3);
        event.scale.instances = (uint32_t)chance(sim, 6);
        sim_step(sim, &event, NULL);
        break;
    case 9:
        event.kind = EVENT_RELEASE;
        sim_step(sim, &event, NULL);
        break;
    default:
        config_random(sim);
        break;
    }
}

static void node_name(struct sim *sim, char *name, size_t size)
{
    snprintf(name, size, "%s%u", sim->config->node_prefix ? sim->config->node_prefix : "fake",
             (unsigned)chance(sim, sim->config->node_count));
}

void action_fault(struct sim *sim)
{
    static const enum event_kind asked[] = {
        EVENT_NODE_PARDON,   EVENT_NODE_PARDON,   EVENT_NODE_CORDON,   EVENT_NODE_DRAIN,
        EVENT_NODE_UNCORDON, EVENT_NODE_UNCORDON, EVENT_NODE_UNCORDON, EVENT_NODE_UNCORDON};
    char name[80];
    struct attempt_id *attempts;
    size_t count;
    struct event event = {0};
    node_name(sim, name, sizeof name);
    if (sim->config->has_gpu_faults && sim->config->gpu_count && chance(sim, 3) == 0) {
        const uint32_t gpu = (uint32_t)chance(sim, sim->config->gpu_count);
        engine_fake_gpu_set(sim->engine, name, gpu, chance(sim, 2) == 0, NULL);
        return;
    }
    switch (chance(sim, 10)) {
    case 8:
        engine_fake_node_refuse(sim->engine, name, "UnexpectedAdmissionError",
                                1 + (uint32_t)chance(sim, 20), NULL);
        break;
    case 9:
        engine_fake_node_refuse(sim->engine, name, NULL, 0, NULL);
        break;
    case 0:
        engine_fake_node_lose(sim->engine, name, NULL);
        break;
    case 1:
    case 2:
    case 3:
        engine_fake_node_return(sim->engine, name, NULL);
        break;
    case 4: /* more are opened than closed, or the last jobs find no room */
        event.kind = asked[chance(sim, COUNT_OF(asked))];
        event.user = "admin";
        event.node = (struct node_facts){.name = name, .gpu_type = "", .address = ""};
        sim_step(sim, &event, NULL);
        break;
    case 5: {
        /* its engine says that it is not well, or well again, perhaps with other memory */
        uint64_t lost_mib = sim->config->memory_mib / 16 * chance(sim, 2);
        event.kind = EVENT_NODE;
        event.node = (struct node_facts){
            .name = name,
            .cpu = sim->config->cpu,
            .memory_mib = sim->config->memory_mib - lost_mib,
            .gpu_count = sim->config->gpu_count,
            .gpu_type = sim->config->gpu_count
                            ? (sim->config->gpu_type ? sim->config->gpu_type : "FAKE")
                            : "",
            .is_healthy = chance(sim, 3) != 0,
            .address = "127.0.0.1",
            .engine = sim_node_engine(sim, name),
            .reason = "disk",
        };
        sim_step(sim, &event, NULL);
        break;
    }
    default:
        sim->engine->ops->list(sim->engine, &attempts, &count, NULL);
        if (count)
            engine_fake_remove(sim->engine, attempts[chance(sim, count)], NULL);
        mem_free(attempts);
        break;
    }
}

static void cluster_act(struct sim *sim, enum event_kind kind, const char *name)
{
    struct event event = {
        .kind = kind, .user = "admin", .cluster = {.name = name, .reason = "maintenance"}};
    sim_step(sim, &event, NULL);
}

/* By chances of their own, so that the rest of a world is as without them. */
static void cluster_random(struct sim *sim)
{
    struct random *closing = &sim->closing;
    if (!sim->config->has_requests || random_below(closing, 12) != 0)
        return;
    const char *name = sim->config->clusters[random_below(closing, sim->config->cluster_count)];
    const bool is_closing = random_below(closing, 2) == 0;
    cluster_act(sim, is_closing ? EVENT_CLUSTER_CLOSE : EVENT_CLUSTER_OPEN, name);
}

void action_open_all(struct sim *sim)
{
    for (size_t i = 0; i < sim->config->cluster_count; i++)
        cluster_act(sim, EVENT_CLUSTER_OPEN, sim->config->clusters[i]);
}

void action_next(struct sim *sim)
{
    cluster_random(sim);
    sim->action_ms = sim->now_ms + 1 + (int64_t)chance(sim, 2 * ACTION_GAP_MS);
    uint64_t dice = chance(sim, 10);
    if (sim->config->has_faults && dice < 2)
        action_fault(sim);
    else if (sim->config->has_requests && dice < 5)
        action_request(sim);
    else
        action_submit(sim);
}
