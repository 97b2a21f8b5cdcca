/* Random sequences against the naive model, every invariant checked at every step.
 *
 * usage: test-hived model [-- COUNT [SEED]]
 * COUNT sequences from SEED on (1,000 from 1); a failure prints the seed that repeats it.
 *
 * Covers: src/hived/bind.c, src/hived/free_list.c, src/hived/health.c, src/hived/span.c,
 * src/hived/tree.c, src/hived/view.c */
#include "model.h"
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

enum { EVENTS = 40 };

struct sequence {
    struct world world;
    struct model model;
    struct random random;
    uint64_t seed;
    unsigned event, next_group;
    struct hived *mirror;        /* of the world's cells, or of those before */
    struct random mirror_random; /* its own: the events of a seed are the same without it */
    struct random piece_random;  /* the same for commits in pieces */
    bool commits_whole;
    bool has_bad_nodes, has_changes;
    char story[16384]; /* what happened, for the report */
    size_t story_length;
};

static void tell(struct sequence *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void tell(struct sequence *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length =
        vsnprintf(s->story + s->story_length, sizeof s->story - s->story_length, format, args);
    va_end(args);
    if (length > 0 && s->story_length + (size_t)length < sizeof s->story)
        s->story_length += (size_t)length;
}

static void wrong(struct sequence *s, const char *what)
{
    printf("%s", s->story); /* longer than a message may be */
    fail_msg("seed %llu, cluster %s, event %u: %s", (unsigned long long)s->seed,
             s->model.cluster->name, s->event, what);
}

static unsigned rnd(struct sequence *s, unsigned limit)
{
    return (unsigned)random_below(&s->random, limit);
}

/* Lazy groups may have been downgraded by what was just done; victims may be pardoned. */
static void model_refresh(struct sequence *s)
{
    for (unsigned i = 0; i < MODEL_GROUPS; i++) {
        struct model_group *group = &s->model.groups[i];
        struct hived_group_view view;
        if (!group->is_live)
            continue;
        if (!hived_group_find(s->world.hived, group->name, &view)) {
            if (!group->is_preempting)
                wrong(s, "a running group is not known any more");
            group->is_live = false; /* its preemption was cancelled */
            continue;
        }
        if (view.state == HIVED_GROUP_PREEMPTING && !group->is_preempting)
            wrong(s, "a running group is said to preempt");
        group->is_guaranteed = group->priority >= 0 && view.has_virtual;
    }
}

static void step_check(struct sequence *s)
{
    struct err err;
    if (hived_check(s->world.hived, &err))
        wrong(s, err.text);
    model_refresh(s);
    const char *text = model_check(&s->model);
    if (text)
        wrong(s, text);
}

static struct hived_request request_random(struct sequence *s, struct hived_member *members,
                                           char *name)
{
    static const int priorities[] = {-1, -1, 0, 0, 1, 5};
    static const unsigned sizes[] = {1, 1, 2, 2, 3, 4, 5, 6, 8, 8};
    unsigned vcs = 0;
    while (vcs < 4 && s->model.cluster->vcs[vcs])
        vcs++;
    snprintf(name, MODEL_NAME, "g%u", s->next_group++);
    struct hived_request request = {.group = name, .members = members, .member_count = 1};
    request.virtual_cluster = s->model.cluster->vcs[rnd(s, vcs)];
    request.priority = priorities[rnd(s, 6)];
    request.is_lazy = rnd(s, 10) < 3;
    members[0] = (struct hived_member){.pods = 1 + rnd(s, 3), .leaves = sizes[rnd(s, 10)]};
    if (rnd(s, 4) == 0) {
        request.member_count = 2;
        members[1] = (struct hived_member){.pods = 1 + rnd(s, 2), .leaves = sizes[rnd(s, 10)]};
    }
    tell(s, "%u: %s %s p%d%s %ux%u", s->event, name, request.virtual_cluster, request.priority,
         request.is_lazy ? " lazy" : "", members[0].pods, members[0].leaves);
    if (request.member_count > 1)
        tell(s, "+%ux%u", members[1].pods, members[1].leaves);
    return request;
}

static void event_copy(struct sequence *s)
{
    struct hived *copy = hived_copy(s->world.hived);
    hived_free(s->world.hived);
    s->world.hived = copy;
}

/* What readers see is what a whole copy shows, however small the pieces were and whatever happened
 * between them. A decision that nobody has taken is not for readers. */
static void mirror_check(struct sequence *s)
{
    if (s->mirror && !hived_mirror_is_of(s->mirror, s->world.hived)) {
        hived_free(s->mirror);
        s->mirror = NULL;
    }
    if (!s->mirror)
        s->mirror = hived_mirror_new(s->world.hived);
    const uint64_t pieces = random_below(&s->mirror_random, 4);
    bool is_whole = false;
    for (uint64_t i = 0; i < pieces; i++)
        is_whole = hived_mirror_update(s->mirror, s->world.hived,
                                       1 + (uint32_t)random_below(&s->mirror_random, 200));
    if (!is_whole || hived_is_pending(s->world.hived))
        return;
    const char *text = world_mirror_differs(s->mirror, s->world.hived);
    if (text)
        wrong(s, text);
}

static bool somebody_preempts(const struct sequence *s)
{
    bool is_any = false;
    for (unsigned i = 0; i < MODEL_GROUPS; i++)
        is_any |= s->model.groups[i].is_live && s->model.groups[i].is_preempting;
    return is_any;
}

static void cells_check(struct sequence *s, struct hived *h)
{
    struct err err;
    if (hived_check(h, &err))
        wrong(s, err.text);
}

static uint32_t piece_leaves(struct sequence *s)
{
    return 1 + (uint32_t)random_below(&s->piece_random, 3);
}

/* Between two pieces a node fails, or is there again. */
static void piece_node(struct sequence *s, struct hived *h, bool *is_bad)
{
    unsigned count = 0;
    while (count < MODEL_NODES && s->model.cluster->nodes[count].name)
        count++;
    const uint64_t node = random_below(&s->piece_random, count);
    is_bad[node] = !is_bad[node];
    hived_node_set(h, s->model.cluster->nodes[node].name, !is_bad[node]);
    cells_check(s, h);
}

/* A group ends in pieces, while nodes change; at last its cells are free all the same. */
static void end_among_nodes(struct sequence *s, const char *group)
{
    struct hived *h = hived_copy(s->world.hived);
    struct hived_group_view view;
    bool is_bad[MODEL_NODES];
    memcpy(is_bad, s->model.is_bad, sizeof is_bad);
    while (!hived_group_end_some(h, group, piece_leaves(s))) {
        cells_check(s, h);
        piece_node(s, h, is_bad);
    }
    cells_check(s, h);
    if (hived_group_find(h, group, &view))
        wrong(s, "a group that has ended is known");
    hived_free(h);
}

/* What a gang has that has not all of its cells goes back, and nothing is left of it: all is as
 * `before`, but that others may have lost what they had reserved; or their cells (NULL). */
static void commit_give_up(struct sequence *s, const char *group, struct hived *before)
{
    struct hived *h = hived_copy(s->world.hived);
    while (!hived_group_end_some(h, group, piece_leaves(s)))
        cells_check(s, h);
    cells_check(s, h);
    if (before && !s->model.was_bad && !somebody_preempts(s) && world_mirror_differs(h, before))
        wrong(s, "what is given up of a commit has left something");
    hived_free(h);
    end_among_nodes(s, group);
}

/* The same of a gang that had preempted: its cells are reserved for it as `before` (the shown state
 * of cells above leaves depends on what they were); but if it is stopped meanwhile they are free.
 */
static void commit_take_back(struct sequence *s, const char *group, struct hived *before)
{
    const bool is_stopped = random_below(&s->piece_random, 3) == 0,
               has_nodes = random_below(&s->piece_random, 3) == 0;
    struct hived *h = hived_copy(s->world.hived);
    struct hived_group_view view;
    bool is_bad[MODEL_NODES], is_gone = false;
    memcpy(is_bad, s->model.is_bad, sizeof is_bad);
    bool is_done = hived_commit_undo(h, group, group, piece_leaves(s));
    while (!is_done && !is_gone) {
        cells_check(s, h);
        if (has_nodes)
            piece_node(s, h, is_bad);
        if (is_stopped)
            is_gone = hived_pod_cancel(h, group, group, piece_leaves(s));
        for (; is_stopped && !is_gone; is_gone = hived_group_end_some(h, group, piece_leaves(s)))
            cells_check(s, h);
        if (!is_stopped)
            is_done = hived_commit_undo(h, group, NULL, piece_leaves(s));
    }
    cells_check(s, h);
    const bool is_known = hived_group_find(h, group, &view);
    if (is_known == is_gone || (is_known && view.state != HIVED_GROUP_PREEMPTING))
        wrong(s, "a commit that is taken back leaves another group");
    if (is_known && !has_nodes && world_groups_differ(h, before))
        wrong(s, "a commit that is taken back has left something");
    hived_free(h);
}

/* Whatever sees the pieces: checks, readers, copies, of which one goes on instead. */
static void piece_check(struct sequence *s)
{
    struct err err;
    if (random_below(&s->piece_random, 4) == 0 && hived_check(s->world.hived, &err))
        wrong(s, err.text);
    if (random_below(&s->piece_random, 4) == 0)
        mirror_check(s);
    if (random_below(&s->piece_random, 16) == 0)
        event_copy(s);
}

static void commit(struct sequence *s, const struct hived_request *request,
                   const struct hived_placement *placement)
{
    struct hived *h = s->world.hived;
    struct err err = {0};
    if (s->commits_whole) {
        if (hived_commit_gang(h, request, placement, 0, &err))
            wrong(s, err.text);
        return;
    }
    const bool gives_up = random_below(&s->piece_random, 8) == 0;
    const struct model_group *known = model_find(&s->model, request->group);
    const bool displaces = hived_is_pending(h);
    struct hived *before = gives_up || known ? hived_copy(h) : NULL;
    struct hived_group_view view; /* it may have been cancelled */
    const bool preempts = known && hived_group_find(before, request->group, &view) &&
                          view.state == HIVED_GROUP_PREEMPTING;
    for (bool is_whole = false; !is_whole;) {
        if (hived_commit_some(s->world.hived, request, placement, 0,
                              1 + (uint32_t)random_below(&s->piece_random, 6), &is_whole, &err))
            wrong(s, err.text);
        if (!is_whole && gives_up)
            commit_give_up(s, request->group, displaces ? NULL : before);
        if (preempts)
            commit_take_back(s, request->group, before);
        if (!is_whole)
            piece_check(s);
    }
    hived_free(before);
}

static void ask(struct sequence *s, const struct hived_request *request, bool is_known,
                const struct hived_scope *scope)
{
    struct hived_result result;
    struct err err = {0};
    enum hived_phase phase = rnd(s, 2) ? HIVED_PREEMPTING : HIVED_FILTERING;
    arena_clear(&s->world.arena);
    struct hived_ask ask = {
        .request = request, .pod = request->group, .phase = phase, .scope = scope};
    int code = hived_schedule(s->world.hived, &ask, &s->world.arena, &result, &err);
    if (code && code != ERR_INVALID)
        wrong(s, err.text);
    if (code) {
        tell(s, " refused\n");
        return;
    }
    tell(s, " %s -> %s\n", phase == HIVED_PREEMPTING ? "P" : "F",
         result.kind == HIVED_BIND   ? "bind"
         : result.kind == HIVED_WAIT ? "wait"
                                     : "preempt");
    for (uint32_t i = 0; result.kind != HIVED_WAIT && i < result.placement.slot_count; i++)
        tell(s, "    %s/%u(%u %s)", result.placement.slots[i].node,
             result.placement.slots[i].indices[0], result.placement.slots[i].leaf_count,
             result.placement.slots[i].preassigned[0]);
    tell(s, "\n");
    const char *text = is_known ? NULL : model_judge(&s->model, request, &result);
    if (text)
        wrong(s, text);
    struct model_group *known = model_find(&s->model, request->group);
    if (result.kind == HIVED_BIND && rnd(s, 10) < 9) {
        commit(s, request, &result.placement);
        if (known)
            known->is_live = false;
        model_refresh(s);
        model_take(&s->model, request, &result, false);
    } else if (result.kind == HIVED_PREEMPT && phase == HIVED_PREEMPTING) {
        if (known)
            known->is_live = false;
        model_refresh(s);
        model_take(&s->model, request, &result, true);
    }
}

static void event_new(struct sequence *s)
{
    struct hived_member members[2];
    char name[MODEL_NAME];
    unsigned live = 0;
    for (unsigned i = 0; i < MODEL_GROUPS; i++)
        live += s->model.groups[i].is_live;
    if (live + 2 > MODEL_GROUPS)
        return;
    struct hived_request request = request_random(s, members, name);
    const char *excluded[MODEL_NODES];
    struct hived_scope scope = {.nodes = excluded, .is_avoid = true};
    memset(s->model.is_excluded, 0, sizeof s->model.is_excluded);
    request.uses_suggested = rnd(s, 8) == 0;
    for (unsigned i = 0; request.uses_suggested && i < MODEL_NODES; i++) {
        if (!s->model.cluster->nodes[i].name || rnd(s, 3))
            continue;
        s->model.is_excluded[i] = true;
        excluded[scope.count++] = s->model.cluster->nodes[i].name;
        tell(s, " -%s", s->model.cluster->nodes[i].name);
    }
    if (rnd(s, 8) == 0 && s->model.cluster == &model_clusters[0])
        request.within_one_cell = rnd(s, 2) ? "DUO" : "QUAD";
    ask(s, &request, false, &scope);
    memset(s->model.is_excluded, 0, sizeof s->model.is_excluded);
}

static struct model_group *group_pick(struct sequence *s)
{
    unsigned start = rnd(s, MODEL_GROUPS);
    for (unsigned i = 0; i < MODEL_GROUPS; i++) {
        struct model_group *group = &s->model.groups[(start + i) % MODEL_GROUPS];
        if (group->is_live)
            return group;
    }
    return NULL;
}

static void event_end(struct sequence *s)
{
    struct model_group *group = group_pick(s);
    if (!group)
        return;
    tell(s, "%u: %s ends\n", s->event, group->name);
    if (group->is_preempting) {
        hived_pod_cancel(s->world.hived, group->name, group->name, UINT32_MAX);
        group->is_live = false;
        return;
    }
    if (!s->commits_whole && random_below(&s->piece_random, 4) == 0)
        end_among_nodes(s, group->name);
    if (rnd(s, 3) == 0) {
        hived_group_end(s->world.hived, group->name);
        group->is_live = false;
        return;
    }
    for (unsigned p = 0; p < group->pod_count; p++) { /* one by one; perhaps not all */
        if (!group->pods[p].is_bound || rnd(s, 8) == 0)
            continue;
        if (!hived_pod_end(s->world.hived, group->name, p))
            wrong(s, "a bound pod is not known");
        group->pods[p].is_bound = false;
    }
    bool is_live = false;
    for (unsigned p = 0; p < group->pod_count; p++)
        is_live |= group->pods[p].is_bound;
    group->is_live = is_live;
}

/* The victims of a preemption end, and the preemptor asks again. */
static void event_again(struct sequence *s)
{
    struct model_group *group = group_pick(s);
    if (!group || !group->is_preempting)
        return;
    struct hived_member members[MODEL_PODS];
    struct hived_request request = {.group = group->name,
                                    .virtual_cluster = group->vc,
                                    .priority = group->priority,
                                    .members = members,
                                    .member_count = group->pod_count};
    for (unsigned p = 0; p < group->pod_count; p++)
        members[p] = (struct hived_member){.pods = 1, .leaves = group->pods[p].leaf_count};
    for (unsigned i = 0; i < MODEL_GROUPS; i++) {
        struct model_group *victim = &s->model.groups[i];
        struct hived_group_view view;
        if (!victim->is_live || victim->is_preempting || rnd(s, 4) == 0)
            continue;
        hived_group_find(s->world.hived, victim->name, &view);
        if (view.state != HIVED_GROUP_BEING_PREEMPTED)
            continue;
        hived_group_end(s->world.hived, victim->name);
        victim->is_live = false;
    }
    char name[MODEL_NAME];
    snprintf(name, sizeof name, "%s", group->name);
    request.group = name;
    tell(s, "%u: %s again", s->event, name);
    ask(s, &request, true, NULL);
}

static void event_node(struct sequence *s)
{
    unsigned count = 0;
    while (count < MODEL_NODES && s->model.cluster->nodes[count].name)
        count++;
    unsigned node = rnd(s, count);
    s->model.is_bad[node] = !s->model.is_bad[node];
    s->model.was_bad = true;
    tell(s, "%u: %s is %s\n", s->event, s->model.cluster->nodes[node].name,
         s->model.is_bad[node] ? "bad" : "healthy");
    hived_node_set(s->world.hived, s->model.cluster->nodes[node].name, !s->model.is_bad[node]);
}

static void preemptions_forget(struct sequence *s)
{
    for (unsigned i = 0; i < MODEL_GROUPS; i++)
        if (s->model.groups[i].is_preempting)
            s->model.groups[i].is_live = false;
}

static void event_reconfigure(struct sequence *s)
{
    const struct model_cluster *other = s->model.cluster;
    if (s->has_changes) { /* another cluster: some devices stay, some go; then all is as before */
        other = &model_clusters[rnd(s, model_cluster_count)];
        s->model.knows_roots = false;
    }
    tell(s, "%u: reconfigured to %s\n", s->event, other->name);
    preemptions_forget(s);
    hived_reconfigure(s->world.hived, world_config_good(&s->world.arena, other->yaml, ""));
    struct err err;
    if (hived_check(s->world.hived, &err))
        wrong(s, err.text);
    if (other != s->model.cluster)
        hived_reconfigure(s->world.hived,
                          world_config_good(&s->world.arena, s->model.cluster->yaml, ""));
    for (unsigned i = 0; i < MODEL_NODES && s->model.cluster->nodes[i].name; i++)
        hived_node_set(s->world.hived, s->model.cluster->nodes[i].name, !s->model.is_bad[i]);
}

static void event_run(struct sequence *s)
{
    unsigned kind = rnd(s, 100);
    if (kind < 50)
        event_new(s);
    else if (kind < 75)
        event_end(s);
    else if (kind < 85)
        event_again(s);
    else if (kind < 92 && s->has_bad_nodes)
        event_node(s);
    else if (kind >= 97)
        event_copy(s);
    else if (kind >= 95)
        event_reconfigure(s);
}

static void sequence_run(struct sequence *s, uint64_t seed, bool commits_whole)
{
    memset(s, 0, sizeof *s);
    s->seed = seed;
    s->random.state = s->mirror_random.state = s->piece_random.state = seed;
    s->commits_whole = commits_whole;
    s->model.cluster = &model_clusters[rnd(s, model_cluster_count)];
    s->model.knows_roots = true;
    s->has_bad_nodes = rnd(s, 2);
    s->has_changes = rnd(s, 5) == 0;
    world_init(&s->world, s->model.cluster->yaml);
    for (s->event = 0; s->event < EVENTS; s->event++) {
        event_run(s);
        if (commits_whole) {
            model_refresh(s); /* the rest is checked with the pieces */
            continue;
        }
        mirror_check(s);
        step_check(s);
    }
}

static void sequence_end(struct sequence *s)
{
    hived_free(s->mirror);
    world_release(&s->world);
}

enum { WHOLE_EVERY = 4 };

/* Each gang takes its cells in pieces; of some sequences all decisions and the last state are
 * compared with those of the same events where it takes them at once. */
static void sequence_compare(uint64_t seed)
{
    static struct sequence pieces, whole;
    sequence_run(&pieces, seed, false);
    if (seed % WHOLE_EVERY == 0) {
        sequence_run(&whole, seed, true);
        if (strcmp(pieces.story, whole.story) != 0)
            wrong(&pieces, "commits in pieces lead to other decisions");
        if (world_mirror_differs(pieces.world.hived, whole.world.hived))
            wrong(&pieces, "commits in pieces lead to another state");
        sequence_end(&whole);
    }
    sequence_end(&pieces);
}

enum { REPORTED = 100000 };

static uint64_t sequence_count = 1000, first_seed = 1;

static void sequences_agree_with_the_model(void **state)
{
    (void)state;
    print_message("seeds %llu to %llu\n", (unsigned long long)first_seed,
                  (unsigned long long)(first_seed + sequence_count - 1));
    for (uint64_t i = 0; i < sequence_count; i++) {
        sequence_compare(first_seed + i);
        if ((i + 1) % REPORTED == 0)
            print_message("%llu done\n", (unsigned long long)(i + 1));
    }
}

static int arguments_read(void **state)
{
    (void)state;
    sequence_count /= unit_every();
    if (unit_argument(0))
        sequence_count = strtoull(unit_argument(0), NULL, 10);
    if (unit_argument(1))
        first_seed = strtoull(unit_argument(1), NULL, 10);
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sequences_agree_with_the_model),
};
UNIT_FILE(tests, arguments_read, NULL);
