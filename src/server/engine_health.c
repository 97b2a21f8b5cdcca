/* engine_health.c — how each engine is: for /readyz and /metrics. */
#include "api/service.h"
#include "base/buf.h"
#include "server/state.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

static_assert(5 + ENGINES_MAX + 1 <= SERVICE_CHECKS_MAX, "a check for each engine");

static void node_count(const struct node_known *node, struct engine_health *health)
{
    if (node->is_lost)
        return;
    health->nodes++;
    if (node->facts.is_healthy) {
        health->healthy++;
        health->gpus += node->facts.gpu_count;
    } else if (!health->trouble[0] && node->facts.reason) {
        snprintf(health->trouble, sizeof health->trouble, "%.60s: %.130s", node->facts.name,
                 node->facts.reason);
    }
}

void engine_health_of(struct server *server, uint8_t engine, struct engine_health *health)
{
    assert(engine < server->engines.count);
    const struct server_engine *own = &server->engines.items[engine];
    *health = (struct engine_health){.is_open = atomic_load(&own->engine) != NULL,
                                     .held = launcher_held_count(server->launcher, engine)};
    pthread_mutex_lock(&server->state_lock);
    snprintf(health->trouble, sizeof health->trouble, "%s", own->trouble);
    health->is_degraded = !health->is_open || own->trouble[0];
    for (size_t i = 0; i < server->nodes.count; i++)
        if (server->nodes.items[i].engine == engine)
            node_count(&server->nodes.items[i], health);
    pthread_mutex_unlock(&server->state_lock);
    if (!health->is_open) { /* whatever was told of them last */
        health->healthy = 0;
        health->gpus = 0;
    }
    health->is_degraded |= health->nodes > 0 && health->healthy == 0;
}

/* Others go on without it, and what is submitted waits for it: the server is ready all the same. */
static void check_fill(struct server *server, uint8_t engine, struct service_check *check)
{
    struct engine_health health;
    engine_health_of(server, engine, &health);
    *check = (struct service_check){.name = server->engines.items[engine].check,
                                    .is_ok = true,
                                    .is_degraded = health.is_degraded};
    int length = snprintf(check->text, sizeof check->text, "%s%u node%s, %u healthy",
                          health.is_open ? "" : "not open; ", health.nodes,
                          health.nodes == 1 ? "" : "s", health.healthy);
    if (health.held)
        length +=
            snprintf(check->text + length, sizeof check->text - (size_t)length,
                     ", %zu command%s for it", health.held, health.held == 1 ? " waits" : "s wait");
    if (health.trouble[0])
        snprintf(check->text + length, sizeof check->text - (size_t)length, ": %.120s",
                 health.trouble);
}

size_t engine_checks(struct server *server, struct service_check *checks)
{
    for (size_t i = 0; i < server->engines.count; i++)
        check_fill(server, (uint8_t)i, &checks[i]);
    return server->engines.count;
}

enum { FIGURE_OPEN, FIGURE_NODES, FIGURE_HEALTHY, FIGURE_GPUS, FIGURE_HELD, FIGURES };

static uint64_t figure_of(const struct engine_health *health, int figure)
{
    const uint64_t figures[FIGURES] = {health->is_open, health->nodes, health->healthy,
                                       health->gpus, health->held};
    return figures[figure];
}

void engine_metrics_write(struct server *server, struct buf *out)
{
    static const struct {
        const char *name, *help;
    } figures[FIGURES] = {
        {"skep_engine_open", "1 when the engine has been opened."},
        {"skep_engine_nodes", "Its machines, without those that are gone for good."},
        {"skep_engine_nodes_healthy", "Of these, those that are healthy as the engine says."},
        {"skep_engine_gpus", "GPUs of the healthy ones."},
        {"skep_engine_commands_held", "Commands that wait until the engine is open."},
    };
    struct engine_health healths[ENGINES_MAX];
    for (size_t i = 0; i < server->engines.count; i++)
        engine_health_of(server, (uint8_t)i, &healths[i]);
    for (int figure = 0; figure < FIGURES; figure++) {
        metric_head_write(out, figures[figure].name, "gauge", figures[figure].help);
        for (size_t i = 0; i < server->engines.count; i++) {
            buf_format(out, "%s{", figures[figure].name);
            metric_label_write(out, "engine", server->engines.items[i].name);
            buf_format(out, "} %llu\n", (unsigned long long)figure_of(&healths[i], figure));
        }
    }
}
