#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/config.h"
#include "core/nodes.h"
#include "core/records.h"
#include "core/renew.h"

void core_config_default(struct core_config *config)
{
    *config = (struct core_config){
        .port_first = 15000,
        .port_last = 40000,
        .backoff_min_s = 60,
        .backoff_max_s = 900,
        .retry_pause_first_s = 1,
        .retry_pause_max_s = 300,
        .retry_calm_s = 600,
        .kill_grace_ms = 10000,
        .preemption_grace_ms = 30000,
        .starvation_after_s = 600,
        .finished_keep_s = 60,
        .debug_hold_s = 604800,
        .blame_half_life_s = 3600,
        .blame_avoid = 3,
        .blame_cordon = 10,
        .placement_document = TEXT(""),
        .policy = "hived",
        .order = "priority",
    };
}

static int config_check(const struct core_config *config, struct err *err)
{
    if (config->port_first < 1 || config->port_first > config->port_last)
        return err_fail(err, ERR_INVALID, "ports", "must be a range within 1…65535, got %u…%u",
                        config->port_first, config->port_last);
    if (config->backoff_min_s > config->backoff_max_s)
        return err_fail(err, ERR_INVALID, "backoff", "must be a range, got %u…%u s",
                        config->backoff_min_s, config->backoff_max_s);
    if (config->retry_pause_first_s > config->retry_pause_max_s)
        return err_fail(err, ERR_INVALID, "retryPause", "must be a range, got %u…%u s",
                        config->retry_pause_first_s, config->retry_pause_max_s);
    if (!(config->blame_avoid > 0) || !(config->blame_avoid <= config->blame_cordon))
        return err_fail(err, ERR_INVALID, "blame", "avoid must be positive and at most cordon");
    if (!config->policy)
        return err_fail(err, ERR_INVALID, "policy", "is missing");
    if (!config->order || !queue_order_named(config->order))
        return err_fail(err, ERR_INVALID, "order", "there is no order %s",
                        config->order ? config->order : "");
    return 0;
}

int core_config_copy(struct core_config *to, const struct core_config *from, struct err *err)
{
    int code = config_check(from, err);
    if (code)
        return code;
    *to = *from;
    to->policy = mem_copy(from->policy);
    to->order = queue_order_named(from->order)->name;
    char *document = mem_alloc(from->placement_document.length + 1);
    if (from->placement_document.length)
        memcpy(document, from->placement_document.at, from->placement_document.length);
    document[from->placement_document.length] = '\0';
    to->placement_document.at = document;
    return 0;
}

void core_config_release(struct core_config *config)
{
    mem_free((char *)(uintptr_t)config->policy);
    mem_free((char *)(uintptr_t)config->placement_document.at);
    *config = (struct core_config){0};
}

bool core_config_same_policy(const struct core_config *a, const struct core_config *b)
{
    return strcmp(a->policy, b->policy) == 0 &&
           text_equal(a->placement_document, b->placement_document);
}

static void policy_swap(struct core_config *a, struct core_config *b)
{
    const char *policy = a->policy;
    const struct text document = a->placement_document;
    a->policy = b->policy;
    a->placement_document = b->placement_document;
    b->policy = policy;
    b->placement_document = document;
}

bool core_policy_changes(const struct core *core)
{
    return core->policy_change.config.policy != NULL;
}

bool core_order_changes(const struct core *core)
{
    return queue_order_changes(core->queue);
}

/* Of the last policy that was asked for, or of the one in force? Else *placer is its placer, or
 * NULL: ERR_INVALID. */
static int policy_ask(struct core *core, const struct core_config *config, struct placer *made,
                      struct placer **placer, struct err *err)
{
    const struct core_config *last =
        core_policy_changes(core) ? &core->policy_change.config : &core->config;
    const bool is_same = core_config_same_policy(config, last);
    if (is_same && made)
        past_placer_add(core, made);
    *placer = NULL;
    if (is_same)
        return 0;
    *placer = made ? made : placer_new(config->policy, config->placement_document, err);
    return *placer ? 0 : err->code;
}

/* A piece of it. From the last one on the order decides, as if it had been asked for only then. */
static void order_go_on(struct core *core)
{
    if (!queue_order_go_on(core->queue, core->slice))
        return;
    core->is_unblocked = true;
    nodes_note_change(core);
}

void config_go_on(struct core *core)
{
    assert(core->output);
    queue_tidy(core->queue, core->slice);
    if (!queue_order_changes(core->queue))
        return;
    order_go_on(core);
    if (!queue_order_changes(core->queue))
        core_trace(core, "the order of the queue is %s", core->config.order);
}

/* Numbers count at once, the order when all jobs are in it, the policy and its document from the
 * take-over on. */
static void config_set(struct core *core, struct core_config *config, struct placer *placer)
{
    if (placer || core_policy_changes(core)) {
        core_config_release(&core->policy_change.config);
        const int code = core_config_copy(&core->policy_change.config, config, NULL);
        assert(!code);
        (void)code;
        policy_swap(config, &core->config);
    }
    core_config_release(&core->config);
    core->config = *config;
    core->policy_job = 0;
    queue_order_set(core->queue, queue_order_named(config->order));
    order_go_on(core);
}

void config_event(struct core *core, const struct event *event)
{
    assert(event->kind == EVENT_CONFIG);
    struct err err = {0};
    struct core_config config;
    struct placer *placer;
    int code = core_config_copy(&config, event->config, &err);
    if (code) {
        if (event->placer)
            past_placer_add(core, event->placer);
        core_answer(core, event, (struct job_id){0}, &err);
        return;
    }
    code = policy_ask(core, &config, event->placer, &placer, &err);
    if (code) {
        core_config_release(&config);
        core_answer(core, event, (struct job_id){0}, &err);
        return;
    }
    core_trace(core, "configuration: order %s%s%s", config.order,
               placer ? ", what runs is told to a new placer of the policy " : "",
               placer ? config.policy : "");
    config_set(core, &config, placer);
    core->is_unblocked = true;
    nodes_note_change(core); /* reasons told before may name what is no more */
    if (placer)
        placer_change(core, placer);
    core_answer(core, event, (struct job_id){0}, NULL);
}

void config_take_over(struct core *core)
{
    assert(core_policy_changes(core));
    policy_swap(&core->policy_change.config, &core->config);
    core_config_release(&core->policy_change.config);
    nodes_note_change(core);
    core_trace(core, "the policy is %s, what runs was told to a new placer", core->config.policy);
}
