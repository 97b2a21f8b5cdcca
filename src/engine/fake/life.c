/* life.c — what happens to the containers and nodes of the fake engine as time passes. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/memory.h"
#include "engine/fake/state.h"
#include "sys/clock.h"

int64_t fake_now_ms(const struct fake *fake)
{
    return fake->config.is_time_virtual ? fake->now_ms : clock_monotonic_ms() - fake->origin_ms;
}

void fake_due(struct fake *fake, int64_t after_ms, uint64_t key, enum due due)
{
    timers_set_earlier(&fake->timers, fake_due_key(key, due), fake_now_ms(fake) + after_ms);
    pthread_cond_signal(&fake->changed);
}

struct fake_container *fake_container_find(struct fake *fake, struct attempt_id attempt)
{
    uint32_t at = id_map_get(&fake->attempts, attempt.v);
    return at == MAP_NONE ? NULL : &fake->containers.items[at];
}

/* A full socket is news enough. A follower that has gone is noticed when it is told something. */
static void container_followers_tell(struct fake_container *container)
{
    size_t kept = 0;
    for (size_t i = 0; i < container->followers.count; i++) {
        const int fd = container->followers.items[i];
        if (send(fd, "", 1, MSG_NOSIGNAL) < 0 && errno != EAGAIN)
            close(fd);
        else
            container->followers.items[kept++] = fd;
    }
    container->followers.count = kept;
}

void fake_container_drop(struct fake *fake, struct fake_container *container)
{
    id_map_remove(&fake->attempts, container->attempt.v);
    mem_free(container->log);
    for (size_t i = 0; i < container->followers.count; i++)
        close(container->followers.items[i]);
    ARRAY_FREE(&container->followers);
    *container = (struct fake_container){0};
    *ARRAY_ADD(&fake->free_containers) = (uint32_t)(container - fake->containers.items);
}

/* --- events; called without the lock --- */

struct posted {
    struct engine_event event;
    struct node_facts node;
    uint16_t gpu_numa[ENGINE_FAKE_GPUS_MAX], gpu_switch[ENGINE_FAKE_GPUS_MAX];
    struct exit_report exit;
    char *log_tail; /* a copy: the container may be forgotten while it is told */
};

/* Neighbours share a switch, and some switches a NUMA node. */
static void post_fill_gpus(const struct fake *fake, uint64_t lost, struct posted *posted)
{
    const uint32_t per_numa = fake->config.gpus_per_numa, per_switch = fake->config.gpus_per_switch;
    for (uint32_t i = 0; i < fake->config.gpu_count; i++) {
        posted->gpu_numa[i] = (uint16_t)(per_numa ? i / per_numa : 0);
        posted->gpu_switch[i] = (uint16_t)(per_switch ? i / per_switch : 0);
        if (lost >> i & 1)
            posted->gpu_switch[i] = NODE_GPU_LOST;
    }
    if (per_numa)
        posted->node.gpu_numa = posted->gpu_numa;
    if (per_switch || lost)
        posted->node.gpu_switch = posted->gpu_switch;
}

static void post_fill_node(const struct fake *fake, uint32_t at, struct posted *posted)
{
    posted->event.kind = fake->nodes[at].is_lost ? ENGINE_NODE_LOST : ENGINE_NODE;
    posted->node = (struct node_facts){
        .name = fake->nodes[at].name,
        .address = "127.0.0.1",
        .gpu_type = fake->config.gpu_count ? fake->config.gpu_type : "",
        .cpu = fake->config.cpu,
        .gpu_count = fake->config.gpu_count,
        .memory_mib = fake->config.memory_mib,
        .is_healthy = !fake->nodes[at].is_lost,
        .is_gpu_simulated = true,
        .reason = fake->nodes[at].is_lost ? "lost" : "",
    };
    post_fill_gpus(fake, fake->nodes[at].gpus_lost, posted);
    posted->event.node = &posted->node;
}

static void post_fill_exit(const struct fake_container *container, struct posted *posted)
{
    if (container->is_refused) {
        posted->event.kind = ENGINE_REFUSED;
        posted->event.reason = container->exit.reason;
        posted->event.message = container->exit.message;
        return;
    }
    posted->event.kind = ENGINE_EXITED;
    posted->exit = container->exit;
    posted->log_tail = mem_copy(container->log);
    posted->exit.log_tail = text_of(posted->log_tail);
    posted->exit.platform_tail = TEXT("");
    posted->event.exit = &posted->exit;
}

void fake_container_end(struct fake_container *container, int32_t code, int32_t signal)
{
    container->phase = PHASE_ENDED;
    container->exit = (struct exit_report){
        .exit_code = code,
        .signal = signal,
        .is_user_command = true,
        .reason = "",
        .message = "",
    };
    container_followers_tell(container);
}

static void log_add(struct fake_container *container, const char *line)
{
    struct buf log = BUF_INIT;
    buf_string(&log, container->log);
    buf_string(&log, line);
    mem_free(container->log);
    container->log = buf_steal(&log);
    container_followers_tell(container);
}

static void container_finish(struct fake_container *container)
{
    const struct engine_fake_rule *rule = container->rule;
    if (rule->log)
        log_add(container, rule->log);
    int32_t code = rule->exit_code ? rule->exit_code
                   : rule->signal  ? SIGNAL_BASE + rule->signal
                                   : 0;
    fake_container_end(container, code, rule->signal);
    container->exit.is_oom_killed = rule->is_oom_killed;
}

void fake_node_turn(struct fake *fake, uint32_t node, bool is_lost)
{
    fake->nodes[node].is_lost = is_lost;
    for (size_t i = 0; is_lost && i < fake->containers.count; i++)
        if (fake->containers.items[i].attempt.v && fake->containers.items[i].node == node)
            fake_container_drop(fake, &fake->containers.items[i]);
    fake_due(fake, 0, node, DUE_NODES);
}

/* Why it is not taken, which counts; NULL: it is. */
static const char *container_refusal(struct fake *fake, const struct fake_container *container)
{
    struct fake_node *node = &fake->nodes[container->node];
    const char *refusal = node->refusal;
    if (container->rule->refusal || !refusal)
        return container->rule->refusal;
    if (node->refusals && --node->refusals == 0)
        node->refusal = NULL;
    return refusal;
}

static void container_refuse(struct fake *fake, struct fake_container *container,
                             const char *reason)
{
    fake_container_end(container, 0, 0);
    container->is_refused = true;
    container->exit.reason = reason;
    container->exit.message = "scripted refusal";
    fake_due(fake, 0, container->attempt.v, DUE_REPORT);
}

/* The container's command begins, or fails to. True when that is to be posted. */
static bool container_start(struct fake *fake, struct fake_container *container,
                            struct posted *posted)
{
    const struct engine_fake_rule *rule = container->rule;
    if (rule->create_failure) {
        fake_container_end(container, 0, 0);
        container->exit.is_user_command = false;
        container->exit.reason = rule->create_failure;
        container->exit.message = "scripted failure";
        fake_due(fake, 0, container->attempt.v, DUE_REPORT);
        return false;
    }
    const char *refusal = container_refusal(fake, container);
    if (refusal) {
        container_refuse(fake, container, refusal);
        return false;
    }
    container->phase = PHASE_RUNNING;
    log_add(container, "started\n");
    posted->event.kind = ENGINE_STARTED;
    if (rule->is_moved)
        posted->event.runs_on = fake->nodes[(container->node + 1) % fake->config.node_count].name;
    if (!rule->runs_for_ever)
        fake_due(fake, rule->run_ms, container->attempt.v, DUE_END);
    return true;
}

/* One thing that is due for a container. True when something is to be posted. */
static bool container_due(struct fake *fake, struct fake_container *container, enum due due,
                          struct posted *posted)
{
    const struct engine_fake_rule *rule = container->rule;
    posted->event.attempt = container->attempt;
    switch (due) {
    case DUE_PREPARE:
        if (container->phase != PHASE_CREATED)
            return false;
        container->phase = PHASE_PREPARING;
        posted->event.kind = ENGINE_PREPARING;
        fake_due(fake, rule->start_ms, container->attempt.v, DUE_START);
        return true;
    case DUE_START:
        return container->phase == PHASE_PREPARING && container_start(fake, container, posted);
    case DUE_END:
        if (container->phase != PHASE_RUNNING)
            return false;
        container_finish(container);
        if (!rule->is_exit_lost)
            fake_due(fake, 0, container->attempt.v, DUE_REPORT);
        return false;
    case DUE_KILL:
        if (container->phase == PHASE_ENDED)
            return false;
        fake_container_end(container, SIGNAL_BASE + SIGNAL_KILL, SIGNAL_KILL);
        fake_due(fake, 0, container->attempt.v, DUE_REPORT);
        return false;
    case DUE_REPORT:
        post_fill_exit(container, posted);
        return true;
    case DUE_AGAIN:
        posted->event.kind =
            container->phase == PHASE_PREPARING ? ENGINE_PREPARING : ENGINE_STARTED;
        return container->phase == PHASE_PREPARING || container->phase == PHASE_RUNNING;
    case DUE_NODES:
    case DUE_LOSE:
        break;
    }
    return false;
}

/* One thing that is due. True when something is to be posted. */
static bool due_apply(struct fake *fake, uint64_t key, enum due due, struct posted *posted)
{
    *posted = (struct posted){0};
    if (due == DUE_NODES) {
        post_fill_node(fake, (uint32_t)key, posted);
        return true;
    }
    if (due == DUE_LOSE) {
        fake_node_turn(fake, (uint32_t)key, !fake->nodes[key].is_lost);
        fake_due(fake, fake->config.lose_every_ms / 2 + 1, key, DUE_LOSE);
        return false;
    }
    struct fake_container *container = fake_container_find(fake, (struct attempt_id){key});
    /* NULL: forgotten, or lost with its node */
    return container && container_due(fake, container, due, posted);
}

size_t fake_run(struct fake *fake, int64_t now_ms)
{
    struct timer timer;
    size_t count = 0;
    while (timers_take(&fake->timers, now_ms, &timer)) {
        struct posted posted;
        if (fake->config.is_time_virtual && timer.at_ms > fake->now_ms)
            fake->now_ms = timer.at_ms;
        if (!due_apply(fake, timer.key >> DUE_BITS, timer.key & ((1 << DUE_BITS) - 1), &posted))
            continue;
        /* the receiver may wait for room, or call us */
        pthread_mutex_unlock(&fake->lock);
        fake->sink.post(fake->sink.context, &posted.event);
        mem_free(posted.log_tail);
        pthread_mutex_lock(&fake->lock);
        count++;
    }
    return count;
}
