/* rogue.c — see rogue.h. */
#include "rogue.h"
#include "base/err.h"
#include "server/config.h"
#include "server/engines.h"
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_MAX = 100 };

static struct {
    pthread_mutex_t lock;
    struct engine engine;
    struct engine_sink sink;
    struct {
        struct attempt_id attempt;
        bool is_ended, is_refused;
    } held[HELD_MAX];
    size_t held_count;
    unsigned refusals, moves, creates, kills, forgets, opens;
    bool is_away;
} rogue = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void post(const struct engine_event *event)
{
    rogue.sink.post(rogue.sink.context, event);
}

static void post_end(struct attempt_id attempt, bool is_refused, int code)
{
    const struct exit_report exit = {
        .exit_code = code, .is_user_command = true, .reason = "", .message = ""};

    if (is_refused)
        post(&(struct engine_event){.kind = ENGINE_REFUSED,
                                    .attempt = attempt,
                                    .reason = "OutOfcpu",
                                    .message = "others were quicker"});
    else
        post(&(struct engine_event){.kind = ENGINE_EXITED, .attempt = attempt, .exit = &exit});
}

static size_t held_find(struct attempt_id attempt)
{
    size_t at = 0;

    while (at < rogue.held_count && rogue.held[at].attempt.v != attempt.v)
        at++;
    return at;
}

static int rogue_create(struct engine *engine, const struct container *container, struct err *err)
{
    const struct attempt_id attempt = container->attempt;
    bool is_refused = false, is_moved = false, is_new;
    (void)engine, (void)err;

    pthread_mutex_lock(&rogue.lock);
    is_new = held_find(attempt) == rogue.held_count;
    if (is_new) {
        assert(rogue.held_count < HELD_MAX);
        is_refused = rogue.refusals > 0 && rogue.refusals--;
        is_moved = !is_refused && rogue.moves > 0 && rogue.moves--;
        rogue.held[rogue.held_count].attempt = attempt;
        rogue.held[rogue.held_count].is_refused = is_refused;
        rogue.held[rogue.held_count++].is_ended = is_refused;
        rogue.creates++;
    }
    pthread_mutex_unlock(&rogue.lock);
    if (is_refused)
        post_end(attempt, true, 0);
    else if (is_new)
        post(&(struct engine_event){
            .kind = ENGINE_STARTED, .attempt = attempt, .runs_on = is_moved ? "elsewhere" : NULL});
    return 0;
}

static int rogue_kill(struct engine *engine, struct attempt_id attempt, uint32_t grace_ms,
                      const char *reason, bool is_held, struct err *err)
{
    (void)engine, (void)grace_ms, (void)reason, (void)is_held;

    pthread_mutex_lock(&rogue.lock);
    const size_t at = held_find(attempt);
    const bool is_there = at < rogue.held_count;
    const bool is_refused = is_there && rogue.held[at].is_refused;
    if (is_there)
        rogue.held[at].is_ended = true;
    rogue.kills++;
    pthread_mutex_unlock(&rogue.lock);
    if (!is_there)
        return err_fail(err, ERR_NOT_FOUND, "", "no such attempt");
    post_end(attempt, is_refused, 143);
    return 0;
}

static int rogue_forget(struct engine *engine, struct attempt_id attempt, struct err *err)
{
    (void)engine;

    pthread_mutex_lock(&rogue.lock);
    const size_t at = held_find(attempt);
    const bool is_there = at < rogue.held_count;
    if (is_there)
        rogue.held[at] = rogue.held[--rogue.held_count];
    rogue.forgets++;
    pthread_mutex_unlock(&rogue.lock);
    return is_there ? 0 : err_fail(err, ERR_NOT_FOUND, "", "no such attempt");
}

static int rogue_list(struct engine *engine, struct attempt_id **attempts, size_t *count,
                      struct err *err)
{
    (void)engine, (void)err;

    pthread_mutex_lock(&rogue.lock);
    *attempts = malloc((rogue.held_count + 1) * sizeof **attempts);
    *count = rogue.held_count;
    for (size_t i = 0; i < *count; i++)
        (*attempts)[i] = rogue.held[i].attempt;
    pthread_mutex_unlock(&rogue.lock);
    return 0;
}

static void rogue_free(struct engine *engine)
{
    (void)engine;
}

void rogue_tell_node(const char *name)
{
    const struct node_facts node = {.name = name,
                                    .address = "127.0.0.1",
                                    .gpu_type = "",
                                    .cpu = ROGUE_CPU,
                                    .memory_mib = ROGUE_MIB,
                                    .is_healthy = true};

    post(&(struct engine_event){.kind = ENGINE_NODE, .node = &node});
}

void rogue_tell_exit(struct attempt_id attempt, int code)
{
    post_end(attempt, false, code);
}

static int rogue_open(struct engine_sink sink, struct engine **engine, struct err *err)
{
    static const struct engine_ops ops = {.name = "rogue",
                                          .free = rogue_free,
                                          .list = rogue_list,
                                          .create = rogue_create,
                                          .kill = rogue_kill,
                                          .forget = rogue_forget};

    pthread_mutex_lock(&rogue.lock);
    const bool is_away = rogue.is_away;
    rogue.opens++;
    rogue.sink = sink;
    rogue.engine = (struct engine){.ops = &ops};
    pthread_mutex_unlock(&rogue.lock);
    if (is_away)
        return err_fail(err, ERR_UNAVAILABLE, "", "the cluster does not answer");
    *engine = &rogue.engine;
    rogue_tell_node("rogue0");
    return 0;
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
    if (strcmp(own->name, "rogue") == 0)
        return rogue_open(sink, engine, err);
    return __real_engine_of_config(own, data_directory, door, sink, engine, err);
}

static void set(unsigned *number, unsigned value)
{
    pthread_mutex_lock(&rogue.lock);
    *number = value;
    pthread_mutex_unlock(&rogue.lock);
}

void rogue_refuse(unsigned count)
{
    set(&rogue.refusals, count);
}

void rogue_move(unsigned count)
{
    set(&rogue.moves, count);
}

void rogue_away(bool is_away)
{
    pthread_mutex_lock(&rogue.lock);
    rogue.is_away = is_away;
    pthread_mutex_unlock(&rogue.lock);
}

void rogue_hold(struct attempt_id attempt)
{
    pthread_mutex_lock(&rogue.lock);
    assert(rogue.held_count < HELD_MAX);
    rogue.held[rogue.held_count].is_ended = rogue.held[rogue.held_count].is_refused = false;
    rogue.held[rogue.held_count++].attempt = attempt;
    pthread_mutex_unlock(&rogue.lock);
}

void rogue_clear(void)
{
    pthread_mutex_lock(&rogue.lock);
    rogue.held_count = 0;
    rogue.refusals = rogue.moves = rogue.creates = rogue.kills = rogue.forgets = rogue.opens = 0;
    rogue.is_away = false;
    pthread_mutex_unlock(&rogue.lock);
}

static unsigned get(const unsigned *number)
{
    pthread_mutex_lock(&rogue.lock);
    const unsigned value = *number;
    pthread_mutex_unlock(&rogue.lock);
    return value;
}

unsigned rogue_creates(void)
{
    return get(&rogue.creates);
}

unsigned rogue_kills(void)
{
    return get(&rogue.kills);
}

unsigned rogue_forgets(void)
{
    return get(&rogue.forgets);
}

unsigned rogue_opens(void)
{
    return get(&rogue.opens);
}

bool rogue_has(struct attempt_id attempt)
{
    pthread_mutex_lock(&rogue.lock);
    const bool is_there = held_find(attempt) < rogue.held_count;
    pthread_mutex_unlock(&rogue.lock);
    return is_there;
}
