#include "engine/fake/fake.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/memory.h"
#include "core/timers.h"

enum phase { PHASE_CREATED, PHASE_PREPARING, PHASE_RUNNING, PHASE_ENDED };

/* What is due. */
enum due { DUE_PREPARE, DUE_START, DUE_END, DUE_KILL, DUE_NODES, DUE_REPORT, DUE_AGAIN, DUE_LOSE };

enum { SIGNAL_KILL = 9, SIGNAL_TERM = 15, SIGNAL_BASE = 128 };

struct fake_container {
    struct attempt_id attempt; /* 0: free entry */
    enum phase phase;
    uint32_t node;
    const struct engine_fake_rule *rule;
    bool is_killed, is_refused;
    struct exit_report exit;
    char *log;
    int64_t created_ms;
    struct { /* our ends of the followers' sockets */
        int *items;
        size_t count, room;
    } followers;
};

struct fake_node {
    char name[64];
    const char *refusal; /* NULL: it takes what it is asked to; in the arena */
    uint32_t refusals;   /* how often more; 0: always */
    bool is_lost;
    uint64_t gpus_lost; /* a bit for each */
};

struct fake {
    struct engine engine;
    struct engine_sink sink;
    struct engine_fake_config config;
    struct engine_fake_rule *rules;
    struct arena arena; /* strings of the configuration */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool is_ending;
    int64_t now_ms; /* virtual */
    int64_t origin_ms;
    struct timers timers;
    struct id_map attempts;
    struct {
        struct fake_container *items;
        size_t count, room;
    } containers;
    struct {
        uint32_t *items;
        size_t count, room;
    } free_containers;
    struct fake_node *nodes;
};

static struct fake *fake_of(struct engine *engine)
{
    return (struct fake *)engine;
}

static int64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t fake_now_ms(const struct fake *fake)
{
    return fake->config.is_time_virtual ? fake->now_ms : clock_ms() - fake->origin_ms;
}

/* What is due for an attempt, or a node, is one timer for each kind. */
enum { DUE_BITS = 8 };

static uint64_t due_key(uint64_t key, enum due due)
{
    return key << DUE_BITS | due;
}

static void fake_due(struct fake *fake, int64_t after_ms, uint64_t key, enum due due)
{
    timers_set_earlier(&fake->timers, due_key(key, due), fake_now_ms(fake) + after_ms);
    pthread_cond_signal(&fake->changed);
}

static struct fake_container *container_find(struct fake *fake, struct attempt_id attempt)
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

static void container_drop(struct fake *fake, struct fake_container *container)
{
    id_map_remove(&fake->attempts, container->attempt.v);
    mem_free(container->log);
    for (size_t i = 0; i < container->followers.count; i++)
        close(container->followers.items[i]);
    ARRAY_FREE(&container->followers);
    *container = (struct fake_container){0};
    *ARRAY_ADD(&fake->free_containers) = (uint32_t)(container - fake->containers.items);
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
        posted->gpu_switch[i] =
            lost >> i & 1 ? NODE_GPU_LOST : (uint16_t)(per_switch ? i / per_switch : 0);
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

static void container_end(struct fake_container *container, int32_t code, int32_t signal)
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
    container_end(container, code, rule->signal);
    container->exit.is_oom_killed = rule->is_oom_killed;
}

/* A node goes, with its containers, or comes back. */
static void node_turn(struct fake *fake, uint32_t node, bool is_lost)
{
    fake->nodes[node].is_lost = is_lost;
    for (size_t i = 0; is_lost && i < fake->containers.count; i++)
        if (fake->containers.items[i].attempt.v && fake->containers.items[i].node == node)
            container_drop(fake, &fake->containers.items[i]);
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
    container_end(container, 0, 0);
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
        container_end(container, 0, 0);
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
        container_end(container, SIGNAL_BASE + SIGNAL_KILL, SIGNAL_KILL);
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
        node_turn(fake, (uint32_t)key, !fake->nodes[key].is_lost);
        fake_due(fake, fake->config.lose_every_ms / 2 + 1, key, DUE_LOSE);
        return false;
    }
    struct fake_container *container = container_find(fake, (struct attempt_id){key});
    /* NULL: forgotten, or lost with its node */
    return container && container_due(fake, container, due, posted);
}

static size_t fake_run(struct fake *fake, int64_t now_ms)
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
        int64_t at_ms = fake->origin_ms + next_ms;
        struct timespec until = {at_ms / 1000, (at_ms % 1000) * 1000000};
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
            container_drop(fake, &fake->containers.items[i]);
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
    if (container_find(fake, container->attempt))
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
        container_end(&fake->containers.items[at], 0, 0);
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
    struct fake_container *container = container_find(fake, attempt);
    int code = container ? 0 : unknown(attempt, err);
    if (container && container->phase == PHASE_ENDED) {
        fake_due(fake, 0, attempt.v, DUE_REPORT); /* whoever asks does not know */
    } else if (container) {
        if (container->rule->is_deaf && container->phase == PHASE_RUNNING) {
            if (!container->is_killed)
                fake_due(fake, grace_ms, attempt.v, DUE_KILL);
        } else {
            container_end(container, SIGNAL_BASE + SIGNAL_TERM, SIGNAL_TERM);
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
    struct fake_container *container = container_find(fake, attempt);
    int code = 0;
    if (!container)
        code = unknown(attempt, err);
    else if (container->phase != PHASE_ENDED)
        code = err_fail(err, ERR_CONFLICT, "", "attempt %llu still runs",
                        (unsigned long long)attempt.v);
    else
        container_drop(fake, container);
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

static ssize_t fake_log_read(struct engine *engine, struct attempt_id attempt,
                             enum log_stream stream, uint64_t *offset, char *bytes, size_t size,
                             struct log_part *part, struct err *err)
{
    struct fake *fake = fake_of(engine);
    pthread_mutex_lock(&fake->lock);
    struct fake_container *container = container_find(fake, attempt);
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
    struct fake_container *container = container_find(fake, attempt);
    int code = container ? container_follow(container, err) : unknown(attempt, err);
    pthread_mutex_unlock(&fake->lock);
    return code;
}

static int fake_stats(struct engine *engine, struct attempt_id attempt, struct engine_stats *stats,
                      struct err *err)
{
    struct fake *fake = fake_of(engine);
    pthread_mutex_lock(&fake->lock);
    const struct fake_container *container = container_find(fake, attempt);
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
        node_turn(fake, node, is_lost);
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
    const struct fake_container *container = container_find(fake, attempt);
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
    struct fake_container *container = container_find(fake, attempt);
    int code = container ? 0 : unknown(attempt, err);
    if (container && container->phase != PHASE_ENDED) {
        container_end(container, SIGNAL_BASE + SIGNAL_KILL, SIGNAL_KILL);
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

static void nodes_make(struct fake *fake)
{
    fake->nodes = mem_zero(fake->config.node_count, sizeof *fake->nodes);
    for (uint32_t i = 0; i < fake->config.node_count; i++) {
        cleanup_buf struct buf name = BUF_INIT;
        buf_format(&name, "%.40s%u", fake->config.node_prefix, i);
        memcpy(fake->nodes[i].name, buf_cstr(&name), name.length + 1);
        timers_set(&fake->timers, due_key(i, DUE_NODES), 0);
    }
    if (fake->config.lose_every_ms)
        timers_set(&fake->timers, due_key(0, DUE_LOSE), fake->config.lose_every_ms);
}

static const struct engine_ops fake_ops = {
    .name = "fake",
    .free = fake_free,
    .list = fake_list,
    .create = fake_create,
    .kill = fake_kill,
    .forget = fake_forget,
    .log_read = fake_log_read,
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
    fake->origin_ms = clock_ms();
    pthread_mutex_init(&fake->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&fake->changed, &attributes);
    pthread_condattr_destroy(&attributes);
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
