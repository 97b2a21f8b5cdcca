/* liar.c — see liar.h. */
#include "liar.h"
#include "base/err.h"
#include "server/engines.h"
#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOLD_MAX = 1000 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool is_holding, is_held, is_sparing, is_still;
    char source[LIAR_TEXT_SIZE]; /* of the creation that was held */
    uint32_t graces_ms[TOLD_MAX];
    char reasons[TOLD_MAX][LIAR_TEXT_SIZE];
    const struct engine_ops *real;
    struct engine_ops ops;
    unsigned refusals, creates, creates_before[TOLD_MAX]; /* … the kill */
    int code;
    struct attempt_id listed[LIAR_LIST_MAX], killed[TOLD_MAX], forgotten[TOLD_MAX];
    size_t list_count, kill_count, forget_count;
    const struct engine_gpu *gpus;
    size_t gpu_count;
} liar = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

/* Under the lock. */
static void creation_hold(const struct container *container)
{
    liar.is_held = true;
    pthread_cond_broadcast(&liar.moved);
    while (liar.is_holding)
        pthread_cond_wait(&liar.moved, &liar.lock);
    snprintf(liar.source, sizeof liar.source, "%s",
             container->mount_count > 0 ? container->mounts[0].source : "");
    liar.is_held = false;
    pthread_cond_broadcast(&liar.moved);
}

static int lying_create(struct engine *engine, const struct container *container, struct err *err)
{
    bool is_refused;
    int code;

    pthread_mutex_lock(&liar.lock);
    if (liar.is_holding)
        creation_hold(container);
    liar.creates++;
    is_refused = liar.refusals > 0;
    liar.refusals -= is_refused;
    code = liar.code;
    pthread_mutex_unlock(&liar.lock);
    if (!is_refused)
        return liar.real->create(engine, container, err);
    return code < 0 ? err_fail(err, code, "", "refused by the test") : 0;
}

static int lying_kill(struct engine *engine, struct attempt_id attempt, uint32_t grace_ms,
                      const char *reason, bool is_held, struct err *err)
{
    pthread_mutex_lock(&liar.lock);
    assert(liar.kill_count < TOLD_MAX);
    liar.creates_before[liar.kill_count] = liar.creates;
    liar.graces_ms[liar.kill_count] = grace_ms;
    snprintf(liar.reasons[liar.kill_count], LIAR_TEXT_SIZE, "%s", reason);
    liar.killed[liar.kill_count++] = attempt;
    const bool is_sparing = liar.is_sparing;
    pthread_mutex_unlock(&liar.lock);
    return is_sparing ? 0 : liar.real->kill(engine, attempt, grace_ms, reason, is_held, err);
}

static int lying_forget(struct engine *engine, struct attempt_id attempt, struct err *err)
{
    pthread_mutex_lock(&liar.lock);
    assert(liar.forget_count < TOLD_MAX);
    liar.forgotten[liar.forget_count++] = attempt;
    pthread_mutex_unlock(&liar.lock);
    return liar.real->forget(engine, attempt, err);
}

static int lying_stats(struct engine *engine, struct attempt_id attempt, struct engine_stats *stats,
                       struct err *err)
{
    pthread_mutex_lock(&liar.lock);
    const bool is_still = liar.is_still;
    pthread_mutex_unlock(&liar.lock);
    const int code = liar.real->stats(engine, attempt, stats, err);

    if (is_still)
        stats->cpu_ns = 0;
    return code;
}

static int lying_list(struct engine *engine, struct attempt_id **attempts, size_t *count,
                      struct err *err)
{
    int code = liar.real->list(engine, attempts, count, err);

    if (code < 0)
        return code;
    pthread_mutex_lock(&liar.lock);
    *attempts = realloc(*attempts, (*count + LIAR_LIST_MAX) * sizeof **attempts);
    memcpy(*attempts + *count, liar.listed, liar.list_count * sizeof **attempts);
    *count += liar.list_count;
    pthread_mutex_unlock(&liar.lock);
    return 0;
}

static void lying_gpus(struct engine *engine, struct arena *arena, const struct engine_gpu **gpus,
                       size_t *count)
{
    (void)engine, (void)arena;
    pthread_mutex_lock(&liar.lock);
    *gpus = liar.gpus;
    *count = liar.gpu_count;
    pthread_mutex_unlock(&liar.lock);
}

int __real_engine_of_config(const struct engine_config *own, const char *data_directory,
                            const char *door, struct engine_sink sink, struct engine **engine,
                            struct err *err);
int __wrap_engine_of_config(const struct engine_config *own, const char *data_directory,
                            const char *door, struct engine_sink sink, struct engine **engine,
                            struct err *err);

int __wrap_engine_of_config(const struct engine_config *own, const char *data_directory,
                            const char *door, struct engine_sink sink, struct engine **engine,
                            struct err *err)
{
    int code = __real_engine_of_config(own, data_directory, door, sink, engine, err);

    if (code < 0)
        return code;
    liar.real = (*engine)->ops;
    liar.ops = *liar.real;
    liar.ops.create = lying_create;
    liar.ops.kill = lying_kill;
    liar.ops.forget = lying_forget;
    liar.ops.list = lying_list;
    liar.ops.stats = lying_stats;
    liar.ops.gpus = lying_gpus;
    (*engine)->capabilities |= ENGINE_CAN(ENGINE_CAN_SAMPLE_GPUS);
    (*engine)->ops = &liar.ops;
    return 0;
}

void liar_gpus(const struct engine_gpu *gpus, size_t count)
{
    pthread_mutex_lock(&liar.lock);
    liar.gpus = gpus;
    liar.gpu_count = count;
    pthread_mutex_unlock(&liar.lock);
}

void liar_refuse(unsigned count, int code)
{
    pthread_mutex_lock(&liar.lock);
    liar.refusals = count;
    liar.code = code;
    pthread_mutex_unlock(&liar.lock);
}

void liar_hold(void)
{
    pthread_mutex_lock(&liar.lock);
    liar.is_holding = true;
    pthread_mutex_unlock(&liar.lock);
}

void liar_await_held(void)
{
    pthread_mutex_lock(&liar.lock);
    while (!liar.is_held)
        pthread_cond_wait(&liar.moved, &liar.lock);
    pthread_mutex_unlock(&liar.lock);
}

void liar_release(char source[LIAR_TEXT_SIZE])
{
    pthread_mutex_lock(&liar.lock);
    liar.is_holding = false;
    pthread_cond_broadcast(&liar.moved);
    while (liar.is_held)
        pthread_cond_wait(&liar.moved, &liar.lock);
    memcpy(source, liar.source, LIAR_TEXT_SIZE);
    pthread_mutex_unlock(&liar.lock);
}

void liar_spare(void)
{
    pthread_mutex_lock(&liar.lock);
    liar.is_sparing = true;
    pthread_mutex_unlock(&liar.lock);
}

uint32_t liar_grace_ms(struct attempt_id attempt, char reason[LIAR_TEXT_SIZE])
{
    uint32_t grace_ms = UINT32_MAX;

    pthread_mutex_lock(&liar.lock);
    for (size_t i = 0; i < liar.kill_count; i++) {
        if (liar.killed[i].v != attempt.v)
            continue;
        grace_ms = liar.graces_ms[i];
        memcpy(reason, liar.reasons[i], LIAR_TEXT_SIZE);
    }
    pthread_mutex_unlock(&liar.lock);
    return grace_ms;
}

void liar_still(void)
{
    pthread_mutex_lock(&liar.lock);
    liar.is_still = true;
    pthread_mutex_unlock(&liar.lock);
}

void liar_list(const struct attempt_id *attempts, size_t count)
{
    pthread_mutex_lock(&liar.lock);
    assert(count <= LIAR_LIST_MAX);
    memcpy(liar.listed, attempts, count * sizeof *attempts);
    liar.list_count = count;
    pthread_mutex_unlock(&liar.lock);
}

void liar_clear(void)
{
    pthread_mutex_lock(&liar.lock);
    liar.refusals = liar.creates = 0;
    liar.list_count = liar.kill_count = liar.forget_count = liar.gpu_count = 0;
    liar.is_holding = liar.is_sparing = liar.is_still = false;
    pthread_mutex_unlock(&liar.lock);
}

static unsigned told(const struct attempt_id *attempts, const size_t *count,
                     struct attempt_id attempt)
{
    unsigned found = 0;

    pthread_mutex_lock(&liar.lock);
    for (size_t i = 0; i < *count; i++)
        found += attempts[i].v == attempt.v;
    pthread_mutex_unlock(&liar.lock);
    return found;
}

unsigned liar_kills(struct attempt_id attempt)
{
    return told(liar.killed, &liar.kill_count, attempt);
}

unsigned liar_forgets(struct attempt_id attempt)
{
    return told(liar.forgotten, &liar.forget_count, attempt);
}

unsigned liar_creates(void)
{
    pthread_mutex_lock(&liar.lock);
    unsigned count = liar.creates;
    pthread_mutex_unlock(&liar.lock);
    return count;
}

unsigned liar_creates_before(struct attempt_id killed)
{
    unsigned count = UINT_MAX;

    pthread_mutex_lock(&liar.lock);
    for (size_t i = liar.kill_count; i-- > 0;)
        if (liar.killed[i].v == killed.v)
            count = liar.creates_before[i];
    pthread_mutex_unlock(&liar.lock);
    return count;
}
