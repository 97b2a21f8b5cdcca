/* Whom a gang preempts under the plain policies, compared with a model that follows the rule word
 * for word: it places the gang anew for each group that may be ended. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/random.h"
#include "placement/simple.h"

enum {
    NODES_MAX = 6,
    GROUPS_MAX = 40,
    SLOTS_MAX = 12,
    MEMBERS_MAX = 3,
    WORLDS = 6000,
};

struct room {
    uint32_t cpu, memory, gpus; /* gpus: a mask */
};

struct slot {
    uint32_t node; /* NODES_MAX: none */
    struct room room;
};

struct group {
    char name[16];
    const char *cluster;
    int32_t priority;
    bool is_live, is_waiting;
    size_t count;
    struct slot slots[SLOTS_MAX];
};

struct node {
    struct room room; /* without lost GPUs */
    uint32_t gpu_count;
    bool is_healthy;
    const char *type;
};

struct model {
    const char *policy;
    struct node nodes[NODES_MAX];
    uint32_t node_count;
    struct group groups[GROUPS_MAX]; /* in the order of the placer's table */
    size_t group_count;
    struct room views[NODES_MAX];
    struct slot result[SLOTS_MAX];
};

static uint32_t bits(uint32_t mask)
{
    return (uint32_t)__builtin_popcount(mask);
}

static uint32_t minus(uint32_t a, uint32_t b)
{
    return a > b ? a - b : 0;
}

static void view_take(struct room *view, const struct room *room)
{
    view->cpu = minus(view->cpu, room->cpu);
    view->memory = minus(view->memory, room->memory);
    view->gpus &= ~room->gpus;
}

static void views_fill(struct model *model, const bool *is_victim, const char *except)
{
    for (uint32_t i = 0; i < model->node_count; i++)
        model->views[i] = model->nodes[i].room;
    for (int waiting = 0; waiting < 2; waiting++)
        for (size_t i = 0; i < model->group_count; i++) {
            const struct group *group = &model->groups[i];
            if (!group->is_live || group->is_waiting != waiting || is_victim[i] ||
                strcmp(group->name, except) == 0)
                continue;
            for (size_t j = 0; j < group->count; j++)
                if (group->slots[j].node < NODES_MAX)
                    view_take(&model->views[group->slots[j].node], &group->slots[j].room);
        }
}

static bool node_has(const struct model *model, uint32_t node,
                     const struct placement_member *member, uint32_t count)
{
    const struct room *view = &model->views[node];
    return model->nodes[node].is_healthy &&
           (!*member->sku_type || strcmp(member->sku_type, model->nodes[node].type) == 0) &&
           view->cpu >= member->cpu * count && view->memory >= member->memory_mib * count &&
           bits(view->gpus) >= member->gpu * count;
}

static int order(const struct model *model, uint32_t a, uint32_t b)
{
    const struct room *x = &model->views[a], *y = &model->views[b];
    int least = bits(x->gpus) != bits(y->gpus) ? (bits(x->gpus) < bits(y->gpus) ? -1 : 1)
                : x->cpu != y->cpu             ? (x->cpu < y->cpu ? -1 : 1)
                                               : (x->memory > y->memory) - (x->memory < y->memory);
    return strcmp(model->policy, "first-fit") == 0  ? 0
           : strcmp(model->policy, "best-fit") == 0 ? least
                                                    : -least;
}

static void task_put(struct model *model, uint32_t node, const struct placement_member *member,
                     struct slot *slot)
{
    *slot = (struct slot){node, {member->cpu, (uint32_t)member->memory_mib, 0}};
    for (uint32_t i = 0; i < 32 && bits(slot->room.gpus) < member->gpu; i++)
        slot->room.gpus |= model->views[node].gpus & 1u << i;
    view_take(&model->views[node], &slot->room);
}

/* The best node for `count` of them at once; NODES_MAX: none. */
static uint32_t node_best(const struct model *model, const struct placement_member *member,
                          uint32_t count)
{
    uint32_t best = NODES_MAX;
    for (uint32_t at = 0; at < model->node_count; at++)
        if (node_has(model, at, member, count) && (best == NODES_MAX || order(model, at, best) < 0))
            best = at;
    return best;
}

static bool member_put(struct model *model, const struct placement_member *member, uint32_t forced,
                       struct slot *slots)
{
    uint32_t node = forced;
    if (forced == NODES_MAX && *member->within_one_cell)
        node = node_best(model, member, member->count);
    for (uint32_t i = 0; i < member->count; i++) {
        if (forced == NODES_MAX && !*member->within_one_cell)
            node = node_best(model, member, 1);
        if (node == NODES_MAX)
            return false;
        task_put(model, node, member, &slots[i]);
    }
    return true;
}

/* The node that holds all, when the gang is to lie in one cell; NODES_MAX: none. */
static uint32_t gang_node(const struct model *model, const struct placement_request *request)
{
    uint32_t best = NODES_MAX;
    struct placement_member whole = {.count = 1, .sku_type = "", .within_one_cell = ""};
    for (size_t i = 0; i < request->member_count; i++) {
        const struct placement_member *member = &request->members[i];
        whole.cpu += member->cpu * member->count;
        whole.gpu += member->gpu * member->count;
        whole.memory_mib += member->memory_mib * member->count;
    }
    for (uint32_t at = 0; at < model->node_count; at++) {
        bool may = node_has(model, at, &whole, 1);
        for (size_t i = 0; i < request->member_count && may; i++)
            may = !*request->members[i].sku_type ||
                  strcmp(request->members[i].sku_type, model->nodes[at].type) == 0;
        if (may && (best == NODES_MAX || order(model, at, best) < 0))
            best = at;
    }
    return best;
}

static bool fits_without(struct model *model, const struct placement_request *request,
                         const bool *is_victim)
{
    size_t first[MEMBERS_MAX + 1] = {0};
    bool is_done[MEMBERS_MAX] = {false};
    views_fill(model, is_victim, request->group);
    for (size_t i = 0; i < request->member_count; i++)
        first[i + 1] = first[i] + request->members[i].count;
    uint32_t forced = NODES_MAX;
    if (*request->within_one_cell && (forced = gang_node(model, request)) == NODES_MAX)
        return false;
    for (size_t n = 0; n < request->member_count; n++) {
        size_t next = MEMBERS_MAX;
        for (size_t i = 0; i < request->member_count; i++) { /* the largest first */
            const struct placement_member *a = &request->members[i], *b = &request->members[next];
            if (!is_done[i] &&
                (next == MEMBERS_MAX || a->gpu > b->gpu ||
                 (a->gpu == b->gpu &&
                  (a->cpu > b->cpu || (a->cpu == b->cpu && a->memory_mib > b->memory_mib)))))
                next = i;
        }
        is_done[next] = true;
        if (!member_put(model, &request->members[next], forced, model->result + first[next]))
            return false;
    }
    return true;
}

/* Are the places that were found last still free? */
static bool places_are_free(struct model *model, const struct placement_request *request,
                            const bool *is_victim, const struct slot *places, size_t count)
{
    bool are_free = true;
    views_fill(model, is_victim, request->group);
    for (size_t i = 0; i < count && are_free; i++) {
        struct room *view = &model->views[places[i].node];
        const struct room *room = &places[i].room;
        are_free =
            view->cpu >= room->cpu && view->memory >= room->memory && !(room->gpus & ~view->gpus);
        view_take(view, room);
    }
    return are_free;
}

static bool may_end(const struct group *group, const struct placement_request *request)
{
    return group->is_live && !group->is_waiting && group->priority < request->priority &&
           (group->priority < 0 || strcmp(group->cluster, request->virtual_cluster) == 0);
}

static size_t request_count(const struct placement_request *request)
{
    size_t count = 0;
    for (size_t i = 0; i < request->member_count; i++)
        count += request->members[i].count;
    return count;
}

/* Each is spared that can be: the places that were found last do without what he has, or others are
 * found. At last its places are found anew, or stay these. */
static void model_spare(struct model *model, const struct placement_request *request,
                        bool *is_victim)
{
    const size_t count = request_count(request);
    struct slot places[SLOTS_MAX];
    memcpy(places, model->result, sizeof places);
    for (size_t i = 0; i < model->group_count; i++) {
        if (!is_victim[i])
            continue;
        is_victim[i] = false;
        if (places_are_free(model, request, is_victim, places, count))
            continue;
        is_victim[i] = !fits_without(model, request, is_victim);
        if (!is_victim[i])
            memcpy(places, model->result, sizeof places);
    }
    if (!fits_without(model, request, is_victim))
        memcpy(model->result, places, sizeof places);
}

/* The lowest priority first until it fits, then each is spared that can be. */
static bool model_victims(struct model *model, const struct placement_request *request,
                          bool *is_victim)
{
    memset(is_victim, 0, GROUPS_MAX * sizeof *is_victim);
    for (size_t i = 0; i < model->group_count; i++)
        is_victim[i] = may_end(&model->groups[i], request);
    if (!fits_without(model, request, is_victim))
        return false;
    memset(is_victim, 0, GROUPS_MAX * sizeof *is_victim);
    while (!fits_without(model, request, is_victim)) {
        size_t next = GROUPS_MAX;
        for (size_t i = 0; i < model->group_count; i++)
            if (!is_victim[i] && may_end(&model->groups[i], request) &&
                (next == GROUPS_MAX || model->groups[i].priority < model->groups[next].priority))
                next = i;
        assert_true(next < GROUPS_MAX);
        is_victim[next] = true;
    }
    model_spare(model, request, is_victim);
    return true;
}

static const char *const types[] = {"V100", "K80"}, *const clusters[] = {"a", "b"};

static void node_tell(const struct model *model, struct placer *placer, uint32_t at)
{
    const struct node *node = &model->nodes[at];
    uint16_t places[8] = {0};
    for (uint32_t i = 0; i < node->gpu_count; i++)
        places[i] = node->room.gpus & 1u << i ? 0 : NODE_GPU_LOST;
    const struct node_facts told = {.name = "n",
                                    .cpu = node->room.cpu,
                                    .memory_mib = node->room.memory,
                                    .gpu_count = node->gpu_count,
                                    .gpu_type = node->type,
                                    .gpu_switch = node->gpu_count ? places : NULL,
                                    .is_healthy = node->is_healthy};
    assert_int_equal(placer->ops->node_set(placer, (struct node_id){at}, &told, NULL), 0);
}

static void nodes_make(struct model *model, struct placer *placer, struct random *random)
{
    model->node_count = 1 + (uint32_t)random_below(random, NODES_MAX);
    for (uint32_t i = 0; i < model->node_count; i++) {
        struct node *node = &model->nodes[i];
        const uint32_t gpus = (uint32_t)random_below(random, 9);
        *node = (struct node){
            .room = {4 + (uint32_t)random_below(random, 13),
                     40 + (uint32_t)random_below(random, 60), (1u << gpus) - 1},
            .gpu_count = gpus,
            .is_healthy = random_below(random, 8) > 0,
            .type = types[random_below(random, 4) == 0],
        };
        node_tell(model, placer, i);
    }
}

/* A device is lost, whoever holds it. */
static void gpu_lose(struct model *model, struct placer *placer, struct random *random)
{
    const uint32_t at = (uint32_t)random_below(random, model->node_count);
    model->nodes[at].room.gpus &= ~(1u << random_below(random, 8));
    node_tell(model, placer, at);
}

static struct placement_member random_member(struct random *random, uint32_t count_max)
{
    return (struct placement_member){
        .count = 1 + (uint32_t)random_below(random, count_max),
        .cpu = (uint32_t)random_below(random, 5),
        .memory_mib = random_below(random, 25),
        .gpu = (uint32_t)random_below(random, 4),
        .sku_type = random_below(random, 4) == 0 ? types[random_below(random, 2)] : "",
        .within_one_cell = random_below(random, 6) == 0 ? "node" : "",
    };
}

static struct placement_result place(struct placer *placer, const struct placement_request *request,
                                     struct arena *arena)
{
    struct placement_result result;
    assert_int_equal(placer->ops->place(placer, request, arena, &result, NULL), 0);
    return result;
}

static void slots_are_the_models(const struct model *model, const struct placement_result *result)
{
    for (size_t i = 0; i < result->slot_count; i++) {
        uint32_t gpus = 0;
        for (size_t j = 0; j < result->slots[i].gpu_count; j++)
            gpus |= 1u << result->slots[i].gpus[j];
        assert_int_equal(result->slots[i].node.v, model->result[i].node);
        assert_int_equal(gpus, model->result[i].room.gpus);
    }
}

static struct group *group_make(struct model *model, size_t at,
                                const struct placement_request *request, size_t count)
{
    struct group *group = &model->groups[at];
    *group = (struct group){.cluster = request->virtual_cluster,
                            .priority = request->priority,
                            .is_live = true,
                            .count = count};
    snprintf(group->name, sizeof group->name, "%s", request->group);
    memcpy(group->slots, model->result, count * sizeof *group->slots);
    return group;
}

/* Ask both for a gang; one that binds is committed, one that preempts waits. */
static void gang_ask(struct model *model, struct placer *placer, struct random *random,
                     uint32_t number, struct arena *arena)
{
    struct placement_member members[MEMBERS_MAX];
    const size_t member_count = 1 + (size_t)random_below(random, MEMBERS_MAX);
    for (size_t i = 0; i < member_count; i++)
        members[i] = random_member(random, i == 0 ? 6 : 3);
    if (member_count > 1 && random_below(random, 3) == 0)
        members[1] = members[0];
    char name[16];
    snprintf(name, sizeof name, "g%u", number);
    const struct placement_request request = {
        .group = name,
        .virtual_cluster = clusters[random_below(random, 4) == 0],
        .priority = (int32_t)random_below(random, 4) - 1,
        .pinned_cell_id = "",
        .within_one_cell = random_below(random, 8) == 0 ? "node" : "",
        .members = members,
        .member_count = member_count,
        .may_preempt = true,
    };
    const bool none[GROUPS_MAX] = {false};
    bool is_victim[GROUPS_MAX];
    const size_t count = request_count(&request);
    if (count > SLOTS_MAX || model->group_count == GROUPS_MAX)
        return;
    const struct placement_result result = place(placer, &request, arena);
    const bool is_free = fits_without(model, &request, none),
               is_found = is_free || model_victims(model, &request, is_victim);
    /* who can all be spared are no victims: places are free that were not found at first */
    if (is_free || (is_found && !memchr(is_victim, true, model->group_count))) {
        assert_int_equal(result.kind, PLACEMENT_BIND);
        slots_are_the_models(model, &result);
        assert_int_equal(placer->ops->commit(placer, &request, result.slots, count, false, NULL),
                         0);
        group_make(model, model->group_count++, &request, count);
    } else if (is_found) {
        assert_int_equal(result.kind, PLACEMENT_PREEMPT);
        size_t next = 0;
        for (size_t i = 0; i < model->group_count; i++)
            if (is_victim[i]) {
                assert_true(next < result.victim_count);
                assert_string_equal(result.victims[next++], model->groups[i].name);
            }
        assert_int_equal(next, result.victim_count);
        group_make(model, model->group_count++, &request, count)->is_waiting = true;
    } else {
        assert_int_equal(result.kind, PLACEMENT_WAIT);
    }
}

static void tasks_end(struct model *model, struct placer *placer, struct random *random)
{
    for (size_t i = 0; i < model->group_count; i++) {
        struct group *group = &model->groups[i];
        const size_t slot = (size_t)random_below(random, group->count);
        if (group->is_waiting || group->count < 2 || random_below(random, 8))
            continue;
        placer->ops->release_slot(placer, group->name, slot);
        group->slots[slot].node = NODES_MAX;
        bool is_live = false;
        for (size_t j = 0; j < group->count; j++)
            is_live = is_live || group->slots[j].node < NODES_MAX;
        assert_true(is_live);
        break; /* at most one task of a world, so that no group ends */
    }
}

static void victims_are_the_models(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit", "best-fit", "spread"};
    for (uint32_t seed = 0; seed < WORLDS; seed++) {
        struct random random = {seed};
        struct arena arena;
        struct model model = {.policy = policies[seed % COUNT_OF(policies)]};
        struct placer *placer = placer_simple_new(model.policy);
        arena_init(&arena);
        nodes_make(&model, placer, &random);
        for (uint32_t i = 0; i < GROUPS_MAX; i++) {
            gang_ask(&model, placer, &random, i, &arena);
            if (i == GROUPS_MAX / 2)
                tasks_end(&model, placer, &random);
            if (random_below(&random, GROUPS_MAX / 2) == 0)
                gpu_lose(&model, placer, &random);
        }
        placer->ops->free(placer);
        arena_release(&arena);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(victims_are_the_models),
};
UNIT_FILE(tests, NULL, NULL);
