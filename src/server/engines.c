/* engines.c — see engines.h. */
#include "server/engines.h"
#include "base/err.h"
#include "base/memory.h"
#include "server/config.h"
#include "server/job_network.h"
#include "server/state.h"
#include "sys/clock.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { REOPEN_FIRST_MS = 1000, REOPEN_MAX_MS = 60 * 1000 };

/* Who reads the log must know which key of the configuration is meant. */
static void key_name(struct err *err)
{
    const struct err plain = *err;
    if (plain.path[0])
        snprintf(err->text, sizeof err->text, "%.90s: %.140s", plain.path, plain.text);
    err->path[0] = '\0';
}

static int open_one(struct server_engine *own, struct err *err)
{
    struct server *server = own->server;
    struct engine *engine = NULL;
    struct engine_config config = *own->config;
    config.network_mode = job_network_mode(server, own->config);
    int code = engine_of_config(&config, server->engines.config->data_directory, server->door,
                                server_sink(server, own->number), &engine, err);
    if (code < 0)
        key_name(err);
    if (code == 0) {
        engine->name = own->name;
        code = engine->ops->list(engine, &own->held, &own->held_count, err);
        if (code < 0)
            engine->ops->free(engine);
    }
    server_trouble(server, own->trouble, code < 0 ? err->text : "");
    if (code < 0)
        return code;
    own->open_ms = clock_monotonic_ms();
    atomic_store(&own->engine, engine);
    return 0;
}

/* --- all of them --- */

void engines_init(struct server *server)
{
    struct engine_table *table = &server->engines;
    table->config = server->config;
    table->count = table->config->engine_count;
    assert(table->count > 0 && table->count <= ENGINES_MAX);
    for (size_t i = 0; i < table->count; i++) {
        struct server_engine *own = &table->items[i];
        own->server = server;
        own->number = (uint8_t)i;
        own->config = &table->config->engines[i];
        own->name = mem_copy(own->config->name);
        snprintf(own->check, sizeof own->check, "engine %.80s", own->name);
        own->log_segment_bytes = own->config->log_segment_mib << 20;
    }
    pthread_mutex_init(&table->lock, NULL);
    clock_condition_init(&table->wake);
}

int engines_open(struct server *server, struct err *err)
{
    struct engine_table *table = &server->engines;
    struct err first = {0}, failure;
    size_t opened = 0;
    for (size_t i = 0; i < table->count; i++) {
        if (open_one(&table->items[i], &failure) == 0) {
            opened++;
            continue;
        }
        if (first.code == 0)
            first = failure;
        if (table->count > 1)
            log_warning("engine", "%s cannot be opened, the others begin without it: %s",
                        table->items[i].name, failure.text);
    }
    if (opened > 0)
        return 0;
    *err = first;
    return first.code;
}

/* When the next is due; INT64_MAX: all are open. */
static int64_t keep_round(struct engine_table *table)
{
    int64_t next_ms = INT64_MAX;
    for (size_t i = 0; i < table->count; i++) {
        struct server_engine *own = &table->items[i];
        struct err err;
        if (atomic_load(&own->engine))
            continue;
        if (clock_monotonic_ms() >= own->next_ms && open_one(own, &err) == 0) {
            log_info("engine", "%s is open now", own->name);
            mailbox_wake(&own->server->mailbox); /* the core thread settles it */
            continue;
        }
        if (clock_monotonic_ms() >= own->next_ms) {
            own->pause_ms = own->pause_ms ? own->pause_ms * 2 : REOPEN_FIRST_MS;
            if (own->pause_ms > REOPEN_MAX_MS)
                own->pause_ms = REOPEN_MAX_MS;
            own->next_ms = clock_monotonic_ms() + own->pause_ms;
        }
        if (own->next_ms < next_ms)
            next_ms = own->next_ms;
    }
    return next_ms;
}

static void *keeper_run(void *argument)
{
    struct engine_table *table = argument;
    pthread_mutex_lock(&table->lock);
    while (!table->is_ending) {
        pthread_mutex_unlock(&table->lock);
        int64_t next_ms = keep_round(table);
        pthread_mutex_lock(&table->lock);
        if (next_ms == INT64_MAX)
            break;
        struct timespec until = {next_ms / 1000, next_ms % 1000 * 1000000};
        if (!table->is_ending)
            pthread_cond_timedwait(&table->wake, &table->lock, &until);
    }
    pthread_mutex_unlock(&table->lock);
    return NULL;
}

int engines_keep(struct server *server, struct err *err)
{
    struct engine_table *table = &server->engines;
    bool are_open = true;
    for (size_t i = 0; i < table->count; i++)
        are_open = are_open && atomic_load(&table->items[i].engine);
    if (are_open)
        return 0;
    if (pthread_create(&table->keeper, NULL, keeper_run, table) != 0)
        return err_fail(err, ERR_UNAVAILABLE, "", "no thread can be made");
    table->has_keeper = true;
    return 0;
}

void engines_stop(struct server *server)
{
    struct engine_table *table = &server->engines;
    pthread_mutex_lock(&table->lock);
    table->is_ending = true;
    pthread_cond_signal(&table->wake);
    pthread_mutex_unlock(&table->lock);
    if (table->has_keeper)
        pthread_join(table->keeper, NULL);
    table->has_keeper = false;
}

void engines_free(struct server *server)
{
    struct engine_table *table = &server->engines;
    for (size_t i = 0; i < table->count; i++) {
        struct server_engine *own = &table->items[i];
        struct engine *engine = atomic_load(&own->engine);
        if (engine)
            engine->ops->free(engine);
        free(own->held);
        mem_free(own->name);
    }
    table->count = 0;
    pthread_cond_destroy(&table->wake);
    pthread_mutex_destroy(&table->lock);
}

/* --- which one --- */

uint8_t engine_named(const struct server *server, const char *name)
{
    for (size_t i = 0; i < server->engines.count; i++)
        if (strcmp(server->engines.items[i].name, name) == 0)
            return (uint8_t)i;
    return ENGINE_NONE;
}

uint8_t engine_of_node(struct server *server, const char *node)
{
    pthread_mutex_lock(&server->state_lock);
    const struct node_known *known = server_node_find(server, node);
    uint8_t number = known ? known->engine : ENGINE_NONE;
    pthread_mutex_unlock(&server->state_lock);
    return number;
}

struct engine *engine_open(struct server *server, uint8_t number, struct err *err)
{
    struct engine *engine = NULL;
    if (number >= server->engines.count) {
        err_fail(err, ERR_UNAVAILABLE, "", "the node belongs to no engine of the configuration");
        return NULL;
    }
    engine = atomic_load(&server->engines.items[number].engine);
    if (!engine) {
        pthread_mutex_lock(&server->state_lock);
        err_fail(err, ERR_UNAVAILABLE, "", "the engine \"%s\" is not there: %.160s",
                 server->engines.items[number].name, server->engines.items[number].trouble);
        pthread_mutex_unlock(&server->state_lock);
    }
    return engine;
}

struct engine *engine_able(struct server *server, uint8_t number, enum engine_capability capability,
                           struct err *err)
{
    struct engine *engine = engine_open(server, number, err);
    return engine && engine_need(engine, capability, err) == 0 ? engine : NULL;
}
