/* yard.c — see yard.h. */
#include "yard.h"
#include "base/err.h"
#include "faults.h"
#include "server/engines.h"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MADE_MAX = 4096, SIGNAL_TERM = 15, SIGNAL_BASE = 128, MEMORY_MIB = 4096 };

static struct {
    pthread_mutex_t lock;
    struct engine engine;
    struct engine_sink sink;
    bool is_open;
    struct yard_container containers[YARD_CONTAINERS_MAX];
    size_t count;
    bool is_made[MADE_MAX]; /* by the attempt's number: ever */
    enum yard_node nodes[YARD_NODES];
    unsigned failures, creates;
    int failure_code;
    char wrong[200];
} yard = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *const node_names[YARD_NODES] = {"yard0", "yard1", "yard2"};

const char *yard_node_name(unsigned node)
{
    assert(node < YARD_NODES);
    return node_names[node];
}

void yard_clear(void)
{
    pthread_mutex_lock(&yard.lock);
    yard.count = 0;
    yard.failures = yard.creates = 0;
    yard.wrong[0] = '\0';
    memset(yard.is_made, 0, sizeof yard.is_made);
    memset(yard.nodes, 0, sizeof yard.nodes);
    pthread_mutex_unlock(&yard.lock);
}

const char *yard_wrong(void)
{
    return yard.wrong;
}

unsigned yard_creates(void)
{
    pthread_mutex_lock(&yard.lock);
    const unsigned creates = yard.creates;
    pthread_mutex_unlock(&yard.lock);
    return creates;
}

/* --- under the lock --- */

static struct yard_container *container_find(struct attempt_id attempt)
{
    for (size_t i = 0; i < yard.count; i++)
        if (yard.containers[i].attempt.v == attempt.v)
            return &yard.containers[i];
    return NULL;
}

static void container_drop(struct yard_container *container)
{
    *container = yard.containers[--yard.count];
}

static void wrong(const char *what, struct attempt_id attempt)
{
    if (!yard.wrong[0])
        snprintf(yard.wrong, sizeof yard.wrong, "attempt %llu %s", (unsigned long long)attempt.v,
                 what);
}

/* A task has one container at a time, and a device one task. */
static void neighbours_check(const struct yard_container *made)
{
    for (size_t i = 0; i < yard.count; i++) {
        const struct yard_container *other = &yard.containers[i];
        if (other == made || other->phase == YARD_ENDED)
            continue;
        if (strcmp(other->job, made->job) == 0 && strcmp(other->role, made->role) == 0 &&
            other->index == made->index && !other->is_killed)
            wrong("is made while another of its task runs", made->attempt);
        if (other->node == made->node && other->gpus & made->gpus)
            wrong("is given a GPU that another has", made->attempt);
    }
}

static int container_make(const struct container *container, struct err *err)
{
    unsigned node = 0;

    while (node < YARD_NODES && strcmp(node_names[node], container->node) != 0)
        node++;
    if (node == YARD_NODES || yard.nodes[node] == YARD_NODE_GONE)
        return err_fail(err, ERR_UNAVAILABLE, "", "there is no node %s", container->node);
    assert(container->attempt.v < MADE_MAX && yard.count < YARD_CONTAINERS_MAX);
    if (yard.is_made[container->attempt.v])
        wrong("is made a second time", container->attempt);
    yard.is_made[container->attempt.v] = true;
    struct yard_container *made = &yard.containers[yard.count++];
    *made = (struct yard_container){.attempt = container->attempt,
                                    .index = container->index,
                                    .node = node,
                                    .cpu = container->cpu};
    snprintf(made->job, sizeof made->job, "%s", container->job);
    snprintf(made->role, sizeof made->role, "%s", container->role);
    for (size_t i = 0; i < container->gpu_count; i++)
        made->gpus |= UINT64_C(1) << container->gpus[i];
    neighbours_check(made);
    return 0;
}

/* --- the port --- */

static void yard_free(struct engine *engine)
{
    (void)engine;
    pthread_mutex_lock(&yard.lock);
    yard.is_open = false;
    pthread_mutex_unlock(&yard.lock);
}

static int yard_create(struct engine *engine, const struct container *container, struct err *err)
{
    int code = 0;

    (void)engine;
    pthread_mutex_lock(&yard.lock);
    yard.creates++;
    /* what there is already is never refused */
    const bool is_there = container_find(container->attempt) || power_is_off();
    const bool fails = !is_there && yard.failures > 0;
    yard.failures -= fails;
    if (fails && yard.failure_code < 0)
        code = err_fail(err, yard.failure_code, "", "refused by the test");
    else if (!is_there && !fails)
        code = container_make(container, err);
    pthread_mutex_unlock(&yard.lock);
    return code;
}

static int unknown(struct attempt_id attempt, struct err *err)
{
    return err_fail(err, ERR_NOT_FOUND, "", "there is no attempt %llu",
                    (unsigned long long)attempt.v);
}

static int yard_kill(struct engine *engine, struct attempt_id attempt, uint32_t grace_ms,
                     const char *reason, bool is_held, struct err *err)
{
    int code = 0;

    (void)engine, (void)grace_ms, (void)reason, (void)is_held;
    pthread_mutex_lock(&yard.lock);
    struct yard_container *container = container_find(attempt);
    if (!container)
        code = unknown(attempt, err);
    else if (!power_is_off())
        container->is_killed = true;
    if (container && container->phase == YARD_ENDED)
        container->is_told = false; /* whoever asks does not know */
    pthread_mutex_unlock(&yard.lock);
    return code;
}

static int yard_forget(struct engine *engine, struct attempt_id attempt, struct err *err)
{
    int code = 0;

    (void)engine;
    pthread_mutex_lock(&yard.lock);
    struct yard_container *container = container_find(attempt);
    if (!container)
        code = unknown(attempt, err);
    else if (container->phase != YARD_ENDED)
        code = err_fail(err, ERR_CONFLICT, "", "attempt %llu still runs",
                        (unsigned long long)attempt.v);
    else if (!power_is_off())
        container_drop(container);
    pthread_mutex_unlock(&yard.lock);
    return code;
}

void yard_node_tell(unsigned node)
{
    const struct node_facts facts = {.name = node_names[node],
                                     .address = "127.0.0.1",
                                     .gpu_type = "FAKE",
                                     .cpu = YARD_CPU,
                                     .gpu_count = YARD_GPUS,
                                     .memory_mib = MEMORY_MIB,
                                     .is_healthy = yard.nodes[node] == YARD_NODE_FINE,
                                     .is_gpu_simulated = true,
                                     .reason = yard.nodes[node] == YARD_NODE_FINE ? "" : "sick"};
    const bool is_gone = yard.nodes[node] == YARD_NODE_GONE;

    if (!yard.is_open)
        return;
    yard.sink.post(
        yard.sink.context,
        &(struct engine_event){.kind = is_gone ? ENGINE_NODE_LOST : ENGINE_NODE, .node = &facts});
}

static void tell(const struct yard_container *container)
{
    if (!yard.is_open) /* no server hears it: the next one lists what there is */
        return;
    const struct exit_report exit = {.exit_code = container->exit_code,
                                     .is_user_command = true,
                                     .is_missing = container->is_missing,
                                     .reason = "",
                                     .message = ""};
    struct engine_event event = {
        .attempt = container->attempt, .exit = &exit, .reason = "", .message = ""};

    event.kind = container->phase == YARD_MADE   ? ENGINE_PREPARING
                 : container->phase == YARD_RUNS ? ENGINE_STARTED
                 : container->is_refused         ? ENGINE_REFUSED
                                                 : ENGINE_EXITED;
    yard.sink.post(yard.sink.context, &event);
}

static int yard_list(struct engine *engine, struct attempt_id **attempts, size_t *count,
                     struct err *err)
{
    static struct yard_container containers[YARD_CONTAINERS_MAX];

    (void)engine, (void)err;
    *count = yard_containers(containers);
    *attempts = calloc(*count + 1, sizeof **attempts);
    for (size_t i = 0; i < *count; i++)
        (*attempts)[i] = containers[i].attempt;
    for (unsigned i = 0; i < YARD_NODES; i++)
        yard_node_tell(i);
    for (size_t i = 0; i < *count; i++)
        yard_tell_again(containers[i].attempt);
    return 0;
}

static const struct engine_ops ops = {.name = "yard",
                                      .free = yard_free,
                                      .list = yard_list,
                                      .create = yard_create,
                                      .kill = yard_kill,
                                      .forget = yard_forget};

int __wrap_engine_of_config(const struct engine_config *own, const char *data_directory,
                            const char *door, struct engine_sink sink, struct engine **engine,
                            struct err *err);

int __wrap_engine_of_config(const struct engine_config *own, const char *data_directory,
                            const char *door, struct engine_sink sink, struct engine **engine,
                            struct err *err)
{
    (void)own, (void)data_directory, (void)door, (void)err;
    pthread_mutex_lock(&yard.lock);
    assert(!yard.is_open);
    yard.is_open = true;
    yard.engine =
        (struct engine){.ops = &ops, .capabilities = ENGINE_CAN(ENGINE_CAN_EXACT_DEVICES)};
    yard.sink = sink;
    pthread_mutex_unlock(&yard.lock);
    *engine = &yard.engine;
    return 0;
}

/* --- what the test says --- */

size_t yard_containers(struct yard_container *containers)
{
    pthread_mutex_lock(&yard.lock);
    const size_t count = yard.count;
    memcpy(containers, yard.containers, count * sizeof *containers);
    pthread_mutex_unlock(&yard.lock);
    return count;
}

/* From one of the phases, as bits, into the next one; `change` has what it ends with. */
static bool become(struct attempt_id attempt, unsigned phases, struct yard_container change,
                   bool is_told)
{
    struct yard_container copy;

    pthread_mutex_lock(&yard.lock);
    struct yard_container *container = container_find(attempt);
    const bool is_so = container && phases >> container->phase & 1;
    if (is_so) {
        container->phase = change.phase;
        container->exit_code = change.exit_code;
        container->is_refused = change.is_refused;
        container->is_missing = change.is_missing;
        container->is_told = is_told && change.phase == YARD_ENDED;
        copy = *container;
    }
    pthread_mutex_unlock(&yard.lock);
    if (is_so && is_told)
        tell(&copy);
    return is_so;
}

bool yard_start(struct attempt_id attempt)
{
    return become(attempt, 1u << YARD_MADE, (struct yard_container){.phase = YARD_RUNS}, true);
}

bool yard_end(struct attempt_id attempt, int32_t exit_code)
{
    return become(attempt, 1u << YARD_RUNS,
                  (struct yard_container){.phase = YARD_ENDED, .exit_code = exit_code}, true);
}

bool yard_end_unheard(struct attempt_id attempt, int32_t exit_code)
{
    return become(attempt, 1u << YARD_RUNS,
                  (struct yard_container){.phase = YARD_ENDED, .exit_code = exit_code}, false);
}

bool yard_vanish(struct attempt_id attempt)
{
    return become(
        attempt, 1u << YARD_MADE | 1u << YARD_RUNS,
        (struct yard_container){.phase = YARD_ENDED, .exit_code = 137, .is_missing = true}, true);
}

bool yard_refuse(struct attempt_id attempt)
{
    return become(attempt, 1u << YARD_MADE,
                  (struct yard_container){.phase = YARD_ENDED, .is_refused = true}, true);
}

size_t yard_kills_settle(void)
{
    static struct yard_container containers[YARD_CONTAINERS_MAX];
    const struct yard_container end = {.phase = YARD_ENDED, .exit_code = SIGNAL_BASE + SIGNAL_TERM};
    const size_t count = yard_containers(containers);
    size_t ended = 0;

    for (size_t i = 0; i < count; i++) {
        const struct yard_container *own = &containers[i];
        if (!own->is_killed || own->is_told)
            continue;
        if (own->phase == YARD_ENDED)
            ended += become(own->attempt, 1u << YARD_ENDED, *own, true);
        else
            ended += become(own->attempt, 1u << YARD_MADE | 1u << YARD_RUNS, end, true);
    }
    return ended;
}

void yard_node_set(unsigned node, enum yard_node state)
{
    pthread_mutex_lock(&yard.lock);
    yard.nodes[node] = state;
    for (size_t i = yard.count; state == YARD_NODE_GONE && i-- > 0;)
        if (yard.containers[i].node == node)
            container_drop(&yard.containers[i]);
    pthread_mutex_unlock(&yard.lock);
    yard_node_tell(node);
}

void yard_creates_fail(unsigned count, int code)
{
    pthread_mutex_lock(&yard.lock);
    yard.failures = count;
    yard.failure_code = code;
    pthread_mutex_unlock(&yard.lock);
}

void yard_tell_again(struct attempt_id attempt)
{
    struct yard_container copy = {0};

    pthread_mutex_lock(&yard.lock);
    struct yard_container *container = container_find(attempt);
    if (container) {
        container->is_told = container->phase == YARD_ENDED;
        copy = *container;
    }
    pthread_mutex_unlock(&yard.lock);
    if (copy.attempt.v)
        tell(&copy);
}

void yard_tell_stranger(struct attempt_id attempt)
{
    tell(&(struct yard_container){.attempt = attempt, .phase = YARD_ENDED, .exit_code = 1});
}
