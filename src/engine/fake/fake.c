#include "engine/fake/fake.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/fake/state.h"
#include "sys/clock.h"

static struct fake *fake_of(struct engine *engine)
{
    return (struct fake *)engine;
}

static const char *config_string(struct fake *fake, const char *string)
{
    return string && *string ? arena_copy(&fake->arena, text_of(string)) : NULL;
}

static uint32_t node_of(const struct fake *fake, const char *name)
{
    for (uint32_t i = 0; i < fake->config.node_count; i++)
        if (strcmp(fake->nodes[i].name, name) == 0)
            return i;
    return UINT32_MAX;
}

static void *fake_thread(void *context)
{
    struct fake *fake = context;
    pthread_mutex_lock(&fake->lock);
    while (!fake->is_ending) {
        fake_run(fake, fake_now_ms(fake));
        int64_t next_ms = timers_next_ms(&fake->timers);
        if (fake->is_ending || next_ms <= fake_now_ms(fake))
            continue;
        if (next_ms == INT64_MAX) {
            pthread_cond_wait(&fake->changed, &fake->lock);
            continue;
        }
        const struct timespec until = clock_moment(fake->origin_ms + next_ms);
        pthread_cond_timedwait(&fake->changed, &fake->lock, &until);
    }
    pthread_mutex_unlock(&fake->lock);
    return NULL;
}

/* --- the port --- */

static void fake_free(struct engine *engine)
{
    struct fake *fake = fake_of(engine);
    if (!fake->config.is_time_virtual) {
        pthread_mutex_lock(&fake->lock);
        fake->is_ending = true;
        pthread_cond_signal(&fake->changed);
        pthread_mutex_unlock(&fake->lock);
        pthread_join(fake->thread, NULL);
    }
    for (size_t i = 0; i < fake->containers.count; i++)
        if (fake->containers.items[i].attempt.v)
            fake_container_drop(fake, &fake->containers.items[i]);
    ARRAY_FREE(&fake->containers);
    ARRAY_FREE(&fake->free_containers);
    id_map_release(&fake->attempts);
    timers_release(&fake->timers);
    arena_release(&fake->arena);
    pthread_cond_destroy(&fake->changed);
    pthread_mutex_destroy(&fake->lock);
    mem_free(fake->rules);
    mem_free(fake->nodes);
    mem_free(fake);
}

static bool rule_matches(const struct engine_fake_rule *rule, const struct container *container)
{
    return (!rule->job || strstr(container->job, rule->job)) &&
           (!rule->role || strcmp(rule->role, container->role) == 0) &&
           (rule->index < 0 || rule->index == container->index);
}

/* The last rule is the configuration's own and matches all. */
static const struct engine_fake_rule *rule_choose(struct fake *fake,
                                                  const struct container *container)
{
    for (size_t i = 0; i < fake->config.rule_count; i++) {
        struct engine_fake_rule *rule = &fake->rules[i];
        if (!rule_matches(rule, container) || rule->times == UINT32_MAX)
            continue;
        if (rule->times && --rule->times == 0)
            rule->times = UINT32_MAX; /* used up */
        return rule;
    }
    return &fake->rules[fake->config.rule_count];
}

static int create_locked(struct fake *fake, const struct container *container, struct err *err)
{
    if (fake_container_find(fake, container->attempt))
        return 0; /* asked again */
    uint32_t node = node_of(fake, container->node);
    if (!container->attempt.v || node == UINT32_MAX)
        return err_fail(err, ERR_INVALID, "node", "there is no node %s", container->node);
    if (fake->attempts.count >= ENGINE_FAKE_CONTAINERS_MAX)
        return err_fail(err, ERR_TOO_BIG, "", "more than %d containers",
                        ENGINE_FAKE_CONTAINERS_MAX);
    uint32_t at;
    if (fake->free_containers.count) {
        at = fake->free_containers.items[--fake->free_containers.count];
    } else {
        at = (uint32_t)fake->containers.count;
        ARRAY_ADD(&fake->containers);
    }
    assert(fake->containers.items && at < fake->containers.count);
    fake->containers.items[at] = (struct fake_container){
        .attempt = container->attempt,
        .node = node,
        .rule = rule_choose(fake, container),
        .created_ms = fake_now_ms(fake),
        .log = mem_copy(""),
    };
    id_map_set(&fake->attempts, container->attempt.v, at);
    if (fake->nodes[node].is_lost) {
        fake_container_end(&fake->containers.items[at], 0, 0);
        fake->containers.items[at].exit.is_lost = true;
        fake_due(fake, 0, container->attempt.v, DUE_REPORT);
        return 0;
    }
    fake_due(fake, fake->containers.items[at].rule->create_ms, container->attempt.v, DUE_PREPARE);
    return 0;
}

static int fake_create(struct engine *engine, const struct container *container, struct err *err)
{
    struct fake *fake = fake_of(engine);
    pthread_mutex_lock(&fake->lock);
    int code = create_locked(fake, container, err);
    pthread_mutex_unlock(&fake->lock);
    return code;
}

static int unknown(struct attempt_id attempt, struct err *err)
{
    return err_fail(err, ERR_NOT_FOUND, "", "there is no attempt %llu",
                    (unsigned long long)attempt.v);
}

static int fake_kill(struct engine *engine, struct attempt_id attempt, uint32_t grace_ms,
                     const char *reason, bool is_held, struct err *err)
{
    (void)reason;
    (void)is_held;
    struct fake *fake = fake_of(engine);
    pthread_mutex_lock(&fake->lock);
    struct fake_container *container = fake_container_find(fake, attempt);
    int code = container ? 0 : unknown(attempt, err);
    if (container && container->phase == PHASE_ENDED) {
        fake_due(fake, 0, attempt.v, DUE_REPORT); /* whoever asks does not know */
    } else if (container) {
        if (container->rule->is_deaf && container->phase == PHASE_RUNNING) {
            if (!container->is_killed)
                fake_due(fake, grace_ms, attempt.v, DUE_KILL);
        } else {
            fake_container_end(container, SIGNAL_BASE + SIGNAL_TERM, SIGNAL_TERM);
            fake_due(fake, 0, attempt.v, DUE_REPORT);
        }
        container->is_killed = true;
    }
    pthread_mutex_unlock(&fake->lock);
    return code;
}

static int fake_forget(struct engine *engine, struct attempt_id attempt, struct err *err)
{
    struct fake *fake = fake_of(engine);
    pthread_mutex_lock(&fake->lock);
    struct fake_container *container = fake_container_find(fake, attempt);
    int code = 0;
    if (!container)
        code = unknown(attempt, err);
    else if (container->phase != PHASE_ENDED)
        code = err_fail(err, ERR_CONFLICT, "", "attempt %llu still runs",
                        (unsigned long long)attempt.v);
    else
        fake_container_drop(fake, container);
    pthread_mutex_unlock(&fake->lock);
    return code;
}

/* Whoever asks has lost touch: everything is told again. */
static int fake_list(struct engine *engine, struct attempt_id **attempts, size_t *count,
                     struct err *err)
{
    (void)err;
    struct fake *fake = fake_of(engine);
    pthread_mutex_lock(&fake->lock);
    *count = 0;
    *attempts = mem_alloc(mem_size(fake->containers.count + 1, sizeof **attempts));
    for (size_t i = 0; i < fake->containers.count; i++) {
        const struct fake_container *container = &fake->containers.items[i];
        if (!container->attempt.v)
            continue;
        (*attempts)[(*count)++] = container->attempt;
        fake_due(fake, 0, container->attempt.v,
                 container->phase == PHASE_ENDED ? DUE_REPORT : DUE_AGAIN);
    }
    for (uint32_t i = 0; i < fake->config.node_count; i++)
        fake_due(fake, 0, i, DUE_NODES);
    pthread_mutex_unlock(&fake->lock);
    return 0;
}

/* All of a log is there from the begin. */
static int fake_log_time(struct engine *engine, struct attempt_id attempt, enum log_stream stream,
                         int64_t at_ms, uint64_t *offset, struct err *err)
{
    struct fake *fake = fake_of(engine);
    (void)stream, (void)at_ms;
    pthread_mutex_lock(&fake->lock);
    const int code = fake_container_find(fake, attempt) ? 0 : unknown(attempt, err);
    pthread_mutex_unlock(&fake->lock);
    *offset = 0;
    return code;
}

static ssize_t fake_log_read(struct engine *engine, struct attempt_id attempt,
                             enum log_stream stream, uint64_t *offset, char *bytes, size_t size,
                             struct log_part *part, struct err *err)
{
    struct fake *fake = fake_of(engine);
    pthread_mutex_lock(&fake->lock);
    struct fake_container *container = fake_container_find(fake, attempt);
    ssize_t code;
    if (container) {
        bool has_text = stream == LOG_STDOUT || stream == LOG_ALL;
        size_t length = has_text ? strlen(container->log) : 0;
        *part = (struct log_part){0, length, container->phase == PHASE_ENDED};
        size_t left = *offset < length ? length - (size_t)*offset : 0;
        if (left > size)
            left = size;
        memcpy(bytes, container->log + (left ? *offset : 0), left);
        code = (ssize_t)left;
    } else {
        code = unknown(attempt, err);
    }
    pthread_mutex_unlock(&fake->lock);
    return code;
}

static int container_follow(struct fake_container *container, struct err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return err_errno(err, errno, "make a pair of sockets");
    *ARRAY_ADD(&container->followers) = ends[0];
    return ends[1];
}

static int fake_log_watch(struct engine *engine, struct attempt_id attempt, enum log_stream stream,
                          struct err *err)
{
    (void)stream;
    struct fake *fake = fake_of(engine);
    pthread_mutex_lock(&fake->lock);
    struct fake_container *container = fake_container_find(fake, attempt);
    int code = container ? container_follow(container, err) : unknown(attempt, err);
    pthread_mutex_unlock(&fake->lock);
    return code;
}

static int fake_stats(struct engine *engine, struct attempt_id attempt, struct engine_stats *stats,
                      struct err *err)
{
    struct fake *fake = fake_of(engine);
    pthread_mutex_lock(&fake->lock);
    const struct fake_container *container = fake_container_find(fake, attempt);
    int code = container ? 0 : unknown(attempt, err);
    *stats = (struct engine_stats){0};
    if (container && container->phase == PHASE_RUNNING)
        *stats = (struct engine_stats){
            .cpu_ns = (uint64_t)(fake_now_ms(fake) - container->created_ms) * 1000000u,
            .memory_bytes = 1 << 20,
            .pids = 1,
        };
    pthread_mutex_unlock(&fake->lock);
    return code;
}

/* --- what only a fake can do --- */

size_t engine_fake_advance(struct engine *engine, int64_t now_ms)
{
    struct fake *fake = fake_of(engine);
    assert(fake->config.is_time_virtual);
    pthread_mutex_lock(&fake->lock);
    size_t count = fake_run(fake, now_ms);
    if (now_ms > fake->now_ms)
        fake->now_ms = now_ms;
    pthread_mutex_unlock(&fake->lock);
    return count;
}

int64_t engine_fake_next_ms(struct engine *engine)
{
    struct fake *fake = fake_of(engine);
    pthread_mutex_lock(&fake->lock);
    int64_t next_ms = timers_next_ms(&fake->timers);
    pthread_mutex_unlock(&fake->lock);
    return next_ms;
}

static int node_set(struct engine *engine, const char *name, bool is_lost, struct err *err)
{
    struct fake *fake = fake_of(engine);
    pthread_mutex_lock(&fake->lock);
    uint32_t node = node_of(fake, name);
    int code =
        node == UINT32_MAX ? err_fail(err, ERR_NOT_FOUND, "node", "there is no node %s", name) : 0;
    if (!code && fake->nodes[node].is_lost != is_lost)
        fake_node_turn(fake, node, is_lost);
    pthread_mutex_unlock(&fake->lock);
    return code;
}

int engine_fake_node_lose(struct engine *engine, const char *name, struct err *err)
{
    return node_set(engine, name, true, err);
}

int engine_fake_node_return(struct engine *engine, const char *name, struct err *err)
{
    return node_set(engine, name, false, err);
}

int engine_fake_gpu_set(struct engine *engine, const char *name, uint32_t gpu, bool is_lost,
                        struct err *err)
{
    struct fake *fake = fake_of(engine);
    int code = 0;
    pthread_mutex_lock(&fake->lock);
    uint32_t at = node_of(fake, name);
    if (at == UINT32_MAX || gpu >= fake->config.gpu_count) {
        code = err_fail(err, ERR_NOT_FOUND, "node", "there is no GPU %u of a node %s", gpu, name);
    } else {
        struct fake_node *node = &fake->nodes[at];
        const uint64_t bit = UINT64_C(1) << gpu;
        node->gpus_lost = is_lost ? node->gpus_lost | bit : node->gpus_lost & ~bit;
        fake_due(fake, 0, at, DUE_NODES);
    }
    pthread_mutex_unlock(&fake->lock);
    return code;
}

int engine_fake_node_refuse(struct engine *engine, const char *name, const char *reason,
                            uint32_t times, struct err *err)
{
    struct fake *fake = fake_of(engine);
    int code = 0;
    pthread_mutex_lock(&fake->lock);
    uint32_t at = node_of(fake, name);
    if (at == UINT32_MAX)
        code = err_fail(err, ERR_NOT_FOUND, "node", "there is no node %s", name);
    if (!code) {
        fake->nodes[at].refusal = config_string(fake, reason);
        fake->nodes[at].refusals = times;
    }
    pthread_mutex_unlock(&fake->lock);
    return code;
}

int engine_fake_finish(struct engine *engine, struct attempt_id attempt, struct err *err)
{
    struct fake *fake = fake_of(engine);
    pthread_mutex_lock(&fake->lock);
    const struct fake_container *container = fake_container_find(fake, attempt);
    int code = container ? 0 : unknown(attempt, err);
    if (container)
        fake_due(fake, 0, attempt.v, DUE_END);
    pthread_mutex_unlock(&fake->lock);
    return code;
}

int engine_fake_remove(struct engine *engine, struct attempt_id attempt, struct err *err)
{
    struct fake *fake = fake_of(engine);
    pthread_mutex_lock(&fake->lock);
    struct fake_container *container = fake_container_find(fake, attempt);
    int code = container ? 0 : unknown(attempt, err);
    if (container && container->phase != PHASE_ENDED) {
        fake_container_end(container, SIGNAL_BASE + SIGNAL_KILL, SIGNAL_KILL);
        container->exit.is_missing = true;
        fake_due(fake, 0, attempt.v, DUE_REPORT);
    }
    pthread_mutex_unlock(&fake->lock);
    return code;
}

size_t engine_fake_container_count(struct engine *engine)
{
    struct fake *fake = fake_of(engine);
    pthread_mutex_lock(&fake->lock);
    size_t count = fake->attempts.count;
    pthread_mutex_unlock(&fake->lock);
    return count;
}

/* --- life --- */

static void rules_copy(struct fake *fake, const struct engine_fake_config *config)
{
    fake->rules = mem_zero(config->rule_count + 1, sizeof *fake->rules);
    for (size_t i = 0; i < config->rule_count; i++) {
        struct engine_fake_rule *rule = &fake->rules[i];
        *rule = config->rules[i];
        rule->job = config_string(fake, rule->job);
        rule->role = config_string(fake, rule->role);
        rule->log = config_string(fake, rule->log);
        rule->create_failure = config_string(fake, rule->create_failure);
        rule->refusal = config_string(fake, rule->refusal);
        rule->create_ms = rule->create_ms ? rule->create_ms : config->create_ms;
        rule->start_ms = rule->start_ms ? rule->start_ms : config->start_ms;
        rule->run_ms = rule->run_ms ? rule->run_ms : config->run_ms;
    }
    fake->rules[config->rule_count] = (struct engine_fake_rule){
        .index = -1,
        .create_ms = config->create_ms,
        .start_ms = config->start_ms,
        .run_ms = config->run_ms,
    };
}

/* In real time they are told to whoever lists, and only then: told before as well, one may come a
 * second time at any moment. Whoever makes the time pass has nothing to list at first. */
static void nodes_make(struct fake *fake)
{
    fake->nodes = mem_zero(fake->config.node_count, sizeof *fake->nodes);
    for (uint32_t i = 0; i < fake->config.node_count; i++) {
        cleanup_buf struct buf name = BUF_INIT;
        buf_format(&name, "%.40s%u", fake->config.node_prefix, i);
        memcpy(fake->nodes[i].name, buf_cstr(&name), name.length + 1);
        if (fake->config.is_time_virtual)
            timers_set(&fake->timers, fake_due_key(i, DUE_NODES), 0);
    }
    if (fake->config.lose_every_ms)
        timers_set(&fake->timers, fake_due_key(0, DUE_LOSE), fake->config.lose_every_ms);
}

static const struct engine_ops fake_ops = {
    .name = "fake",
    .free = fake_free,
    .list = fake_list,
    .create = fake_create,
    .kill = fake_kill,
    .forget = fake_forget,
    .log_read = fake_log_read,
    .log_time = fake_log_time,
    .log_watch = fake_log_watch,
    .stats = fake_stats,
};

int engine_fake_new(const struct engine_fake_config *config, const struct engine_sink *sink,
                    struct engine **engine, struct err *err)
{
    if (config->node_count < 1 || config->cpu < 1 || config->memory_mib < 1)
        return err_fail(err, ERR_INVALID, "engine.fake", "needs nodes with CPUs and memory");
    if (config->rule_count > ENGINE_FAKE_RULES_MAX)
        return err_fail(err, ERR_TOO_BIG, "engine.fake", "more than %d rules",
                        ENGINE_FAKE_RULES_MAX);
    if (config->gpu_count > ENGINE_FAKE_GPUS_MAX)
        return err_fail(err, ERR_TOO_BIG, "engine.fake.gpu", "more than %d GPUs of a node",
                        ENGINE_FAKE_GPUS_MAX);
    struct fake *fake = mem_zero(1, sizeof *fake);
    arena_init(&fake->arena);
    fake->engine.ops = &fake_ops;
    fake->engine.capabilities = ENGINE_CAN(ENGINE_CAN_LOG) | ENGINE_CAN(ENGINE_CAN_FOLLOW) |
                                ENGINE_CAN(ENGINE_CAN_STATS) | ENGINE_CAN(ENGINE_CAN_EXACT_DEVICES);
    fake->sink = *sink;
    fake->config = *config;
    fake->config.rules = NULL;
    fake->config.node_prefix = config_string(fake, config->node_prefix);
    if (!fake->config.node_prefix)
        fake->config.node_prefix = "fake";
    fake->config.gpu_type = config_string(fake, config->gpu_type);
    if (!fake->config.gpu_type)
        fake->config.gpu_type = "FAKE";
    rules_copy(fake, config);
    fake->origin_ms = clock_monotonic_ms();
    pthread_mutex_init(&fake->lock, NULL);
    clock_condition_init(&fake->changed);
    nodes_make(fake);
    if (!config->is_time_virtual) {
        int code = pthread_create(&fake->thread, NULL, fake_thread, fake);
        if (code) {
            fake->config.is_time_virtual = true; /* there is no thread to end */
            fake_free(&fake->engine);
            return err_errno(err, code, "start the thread of the fake engine");
        }
    }
    *engine = &fake->engine;
    return 0;
}
