/* vector_hived.c — runs vectors of the scheduler's behaviour and prints the outcomes as JSON.
 *
 * usage: vector-hived [--reconfigure] FILE…
 * One list of outcomes a file, one outcome an event. A vector without a `quirk` records what the
 * original does, so its habits are imitated (hived_new_imitating); one
 * with a `quirk` states what is wanted instead, and runs as the server does. --reconfigure:
 * `restart` is done on the live object instead of replaying the bound pods into a new one.
 * A file that is not a vector (an unknown op, a field of the wrong kind) ends it with status 2 and
 * a line that says where.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "hived/hived.h"
#include "hived_view.h"
#include "originals/imitate.h"
#include "pod_request.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bound { /* what the annotations of a bound pod say */
    const char *pod;
    struct hived_request request;
    struct hived_placement placement;
    uint32_t slot;
    bool is_live;
};

struct run {
    struct arena arena; /* everything of one vector */
    struct hived *hived;
    struct json_writer json;
    struct bound *items; /* in the order of binding */
    size_t count, room;
    struct seen {
        const char *pod, *group;
    } * seen; /* pods that asked */
    size_t seen_count, seen_room;
    const char *path;
    size_t at; /* event */
    bool does_reconfigure;
    bool is_imitating; /* the vector records the original's habits, not what is wanted instead */
};

static _Noreturn void refuse(const struct run *run, const char *key, const char *why)
{
    fprintf(stderr, "%s: event %zu: %s%s%s\n", run->path, run->at, key, *key ? " " : "", why);
    exit(2);
}

static const struct doc *field_of(const struct run *run, const struct doc *event, const char *key,
                                  enum doc_kind kind, bool is_needed)
{
    const struct doc *value = doc_get(event, key);
    if (!value || value->kind == DOC_NULL) {
        if (is_needed)
            refuse(run, key, "is needed");
        return NULL;
    }
    if (value->kind != kind)
        refuse(run, key, "is of the wrong kind");
    return value;
}

static const char *text_at(struct run *run, const struct doc *event, const char *key)
{
    return arena_copy(&run->arena, field_of(run, event, key, DOC_STRING, true)->as.string);
}

/* A list of strings. */
static const struct doc *names_at(const struct run *run, const struct doc *event, const char *key,
                                  bool is_needed)
{
    const struct doc *list = field_of(run, event, key, DOC_LIST, is_needed);
    for (size_t i = 0; list && i < list->as.list.count; i++)
        if (list->as.list.items[i]->kind != DOC_STRING)
            refuse(run, key, "is a list of strings");
    return list;
}

static void outcome(struct run *run, const char *key, const char *value)
{
    json_object(&run->json);
    if (value)
        json_key_string(&run->json, key, value);
    else
        json_key_bool(&run->json, key, true);
    json_object_end(&run->json);
}

/* --- configuration --- */

static struct hived_config *config_read(struct run *run, const struct doc *doc)
{
    struct problems problems;
    problems_init(&problems, &run->arena);
    struct hived_config *config = hived_config_read(doc, &problems);
    if (!config) {
        struct buf out = BUF_INIT;
        problems_print(&problems, "config", &out);
        fputs(buf_cstr(&out), stderr);
        buf_release(&out);
    }
    problems_release(&problems);
    return config;
}

/* ["*"]: all; ["*", "-n1"]: all but n1; else by name. Unknown names name nothing. */
static bool *nodes_named(struct run *run, const struct doc *nodes)
{
    uint32_t count = hived_node_count(run->hived);
    bool *is_named = ARENA_ARRAY(&run->arena, bool, count + 1);
    for (size_t i = 0; nodes && i < nodes->as.list.count; i++) {
        struct text name = nodes->as.list.items[i]->as.string;
        bool is_all = text_is(name, "*"), is_minus = name.length > 1 && name.at[0] == '-';
        if (is_minus)
            name = (struct text){name.at + 1, name.length - 1};
        for (uint32_t n = 0; n < count; n++)
            if (is_all || text_is(name, hived_node_name(run->hived, n)))
                is_named[n] = !is_minus;
    }
    return is_named;
}

static void nodes_set(struct run *run, const struct doc *nodes, bool is_healthy)
{
    bool *is_named = nodes_named(run, nodes);
    for (uint32_t n = 0; n < hived_node_count(run->hived); n++)
        if (is_named[n])
            hived_node_set(run->hived, hived_node_name(run->hived, n), is_healthy);
}

static void all_healthy(struct run *run)
{
    for (uint32_t n = 0; n < hived_node_count(run->hived); n++)
        hived_node_set(run->hived, hived_node_name(run->hived, n), true);
}

static void configure(struct run *run, const struct doc *event)
{
    struct hived_config *config = config_read(run, field_of(run, event, "config", DOC_MAP, true));
    if (config) {
        hived_free(run->hived);
        run->hived = (run->is_imitating ? hived_new_imitating : hived_new)(config);
        run->count = 0;
    }
    outcome(run, config ? "ok" : "error", config ? NULL : "platform");
}

static void restart(struct run *run, const struct doc *event)
{
    struct hived_config *config = config_read(run, field_of(run, event, "config", DOC_MAP, true));
    outcome(run, config ? "ok" : "error", config ? NULL : "platform");
    if (!config)
        return;
    if (run->does_reconfigure) {
        all_healthy(run);
        hived_reconfigure(run->hived, config);
        all_healthy(run);
        return;
    }
    hived_free(run->hived);
    run->hived = (run->is_imitating ? hived_new_imitating : hived_new)(config);
    all_healthy(run);
    for (size_t i = 0; i < run->count; i++) {
        const struct bound *bound = &run->items[i];
        struct err err = {0};
        struct hived_ask ask = {.request = &bound->request, .pod = bound->pod};
        if (bound->is_live && hived_commit(run->hived, &ask, &bound->placement, bound->slot, &err))
            fprintf(stderr, "replay of %s: %s\n", bound->pod, err.text);
    }
}

/* --- scheduling --- */

static void bound_add(struct run *run, const char *pod, const struct hived_request *request,
                      const struct hived_result *result)
{
    struct bound *bound = ARRAY_ADD(run);
    const struct hived_placement *from = &result->placement;
    *bound = (struct bound){.pod = pod, .request = *request, .slot = result->slot, .is_live = true};
    bound->placement.chain = arena_copy(&run->arena, text_of(from->chain));
    bound->placement.slot_count = from->slot_count;
    bound->placement.slots = ARENA_ARRAY(&run->arena, struct hived_slot, from->slot_count);
    for (uint32_t i = 0; i < from->slot_count; i++) { /* names live only until the next call */
        struct hived_slot *slot = &bound->placement.slots[i];
        *slot = from->slots[i];
        slot->node = arena_copy(&run->arena, text_of(slot->node));
        const char **types = ARENA_ARRAY(&run->arena, const char *, slot->leaf_count);
        for (uint32_t k = 0; k < slot->leaf_count; k++)
            types[k] = arena_copy(&run->arena, text_of(from->slots[i].preassigned[k]));
        slot->preassigned = types;
    }
}

static void bind_write(struct run *run, const struct hived_result *result)
{
    const struct hived_slot *slot = &result->placement.slots[result->slot];
    json_object(&run->json);
    json_key(&run->json, "bind");
    json_object(&run->json);
    json_key_string(&run->json, "node", slot->node);
    json_key(&run->json, "leaf");
    json_array(&run->json);
    for (uint32_t i = 0; i < slot->leaf_count; i++)
        json_int(&run->json, slot->indices[i]);
    json_array_end(&run->json);
    json_key_string(&run->json, "chain", result->placement.chain);
    json_key_int(&run->json, "affinityLevel",
                 hived_slot_level(run->hived, &result->placement, result->slot));
    json_object_end(&run->json);
    json_object_end(&run->json);
}

static void victims_write(struct run *run, const struct hived_result *result)
{
    json_object(&run->json);
    json_key(&run->json, "preempt");
    json_object(&run->json);
    json_key(&run->json, "victimsByNode");
    json_object(&run->json);
    for (uint32_t i = 0; i < result->victim_count; i++) {
        bool is_seen = false;
        for (uint32_t k = 0; k < i; k++)
            is_seen |= !strcmp(result->victims[k].node, result->victims[i].node);
        if (is_seen)
            continue;
        json_key(&run->json, result->victims[i].node);
        json_array(&run->json);
        for (uint32_t k = i; k < result->victim_count; k++)
            if (!strcmp(result->victims[k].node, result->victims[i].node))
                json_string(&run->json, result->victims[k].pod);
        json_array_end(&run->json);
    }
    json_object_end(&run->json);
    json_object_end(&run->json);
    json_object_end(&run->json);
}

static struct hived_scope scope_of(struct run *run, const struct doc *suggested)
{
    bool *is_named = nodes_named(run, suggested);
    struct hived_scope scope = {0};
    uint32_t count = hived_node_count(run->hived);
    const char **names = ARENA_ARRAY(&run->arena, const char *, count + 1);
    for (uint32_t n = 0; n < count; n++)
        if (is_named[n])
            names[scope.count++] = hived_node_name(run->hived, n);
    scope.nodes = names;
    return scope;
}

static int request_read(struct run *run, const struct doc *event, const char *pod,
                        struct hived_request *request, struct err *err)
{
    const struct doc *raw = field_of(run, event, "specRaw", DOC_STRING, false);
    const struct doc *spec = doc_get(event, "spec"); /* whatever it is: a user's error */
    if (raw && raw->kind != DOC_NULL) {
        struct problems problems;
        problems_init(&problems, &run->arena);
        spec = doc_parse(raw->as.string, DOC_YAML, &run->arena, &problems);
        bool is_bad = problems.error_count > 0;
        problems_release(&problems);
        if (is_bad)
            return err_fail(err, ERR_INVALID, "", "the scheduling request is not YAML");
    }
    return pod_request_read(spec, arena_format(&run->arena, "t/%s", pod), &run->arena, request,
                            err);
}

static void schedule(struct run *run, const struct doc *event)
{
    const char *pod = text_at(run, event, "pod");
    struct hived_request request;
    struct hived_result result;
    struct err err = {0};
    struct hived_scope scope = scope_of(run, names_at(run, event, "suggested", false));
    const struct doc *allocate = field_of(run, event, "allocate", DOC_BOOL, false);
    const char *phase = text_at(run, event, "phase");
    bool is_preempting = !strcmp(phase, "Preempting");
    if (!is_preempting && strcmp(phase, "Filtering"))
        refuse(run, "phase", "is Filtering or Preempting");
    struct hived_ask ask = {.request = &request,
                            .pod = pod,
                            .phase = is_preempting ? HIVED_PREEMPTING : HIVED_FILTERING,
                            .scope = &scope};
    int code = request_read(run, event, pod, &request, &err);
    if (!code)
        code = hived_schedule(run->hived, &ask, &run->arena, &result, &err);
    if (code) {
        fprintf(stderr, "%s: %s: %s %s\n", pod, err_name(code), err.path, err.text);
        outcome(run, "error", code == ERR_INVALID ? "user" : "platform");
        return;
    }
    run->seen = array_reserve(run->seen, &run->seen_room, run->seen_count + 1, sizeof *run->seen);
    run->seen[run->seen_count++] = (struct seen){pod, request.group};
    if (result.kind == HIVED_WAIT) {
        fprintf(stderr, "%s: %s\n", pod, result.reason);
        outcome(run, "wait", NULL);
    } else if (result.kind == HIVED_PREEMPT) {
        victims_write(run, &result);
    } else {
        bind_write(run, &result);
        if (allocate && !allocate->as.boolean)
            return;
        bound_add(run, pod, &request, &result);
        if (hived_commit(run->hived, &ask, &result.placement, result.slot, &err))
            fprintf(stderr, "%s: commit: %s\n", pod, err.text);
    }
}

static void pod_end(struct run *run, const char *pod)
{
    for (size_t i = 0; i < run->count; i++) {
        struct bound *bound = &run->items[i];
        if (!bound->is_live || strcmp(bound->pod, pod))
            continue;
        bound->is_live = false;
        hived_pod_end_named(run->hived, bound->request.group, pod);
        return;
    }
}

static bool pod_is_bound(const struct run *run, const char *pod)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->items[i].is_live && !strcmp(run->items[i].pod, pod))
            return true;
    return false;
}

static void pod_cancel(struct run *run, const char *pod)
{
    for (size_t i = 0; i < run->seen_count; i++)
        if (!strcmp(run->seen[i].pod, pod))
            hived_pod_cancel(run->hived, run->seen[i].group, pod, UINT32_MAX);
}

static void pods_visit(struct run *run, const struct doc *event, bool ends, bool cancels)
{
    const struct doc *pods = names_at(run, event, "pods", true);
    for (size_t i = 0; i < pods->as.list.count; i++) {
        const char *pod = arena_copy(&run->arena, pods->as.list.items[i]->as.string);
        if (ends && (!cancels || pod_is_bound(run, pod)))
            pod_end(run, pod);
        else
            pod_cancel(run, pod);
    }
    outcome(run, "ok", NULL);
}

static void pods_end(struct run *run, const struct doc *event)
{
    pods_visit(run, event, true, false);
}

static void pods_cancel(struct run *run, const struct doc *event)
{
    pods_visit(run, event, false, true);
}

static void pods_go(struct run *run, const struct doc *event)
{
    pods_visit(run, event, true, true);
}

/* --- check --- */

static const char *const cell_states[] = {"Free", "Used", "Reserving", "Reserved"};
static const char *const group_states[] = {"Allocated", "Preempting", "BeingPreempted"};

static int number_compare(const void *a, const void *b)
{
    return *(const uint16_t *)a - *(const uint16_t *)b;
}

static void placement_write(struct run *run, const char *name, uint32_t slot_count)
{
    enum { INDICES_MAX = 4096 };
    static uint16_t some[INDICES_MAX], all[INDICES_MAX];
    const char **done = ARENA_ARRAY(&run->arena, const char *, slot_count + 1), *node, *other;
    size_t done_count = 0;
    json_key(&run->json, "physicalPlacement");
    json_object(&run->json);
    for (uint32_t s = 0; s < slot_count; s++) {
        hived_group_slot(run->hived, name, s, &node, some, 0);
        bool is_done = !node;
        for (size_t i = 0; i < done_count && node; i++)
            is_done |= !strcmp(done[i], node);
        if (is_done)
            continue;
        done[done_count++] = node;
        size_t count = 0;
        for (uint32_t k = s; k < slot_count; k++) {
            uint32_t got = hived_group_slot(run->hived, name, k, &other, some, INDICES_MAX);
            for (uint32_t i = 0; other && !strcmp(other, node) && i < got && count < INDICES_MAX;
                 i++)
                all[count++] = some[i];
        }
        qsort(all, count, sizeof *all, number_compare);
        json_key(&run->json, node);
        json_array(&run->json);
        for (size_t i = 0; i < count; i++)
            json_int(&run->json, all[i]);
        json_array_end(&run->json);
    }
    json_object_end(&run->json);
}

static void check_groups(struct run *run, const struct doc *names)
{
    json_key(&run->json, "groups");
    json_object(&run->json);
    for (size_t i = 0; i < names->as.list.count; i++) {
        const char *name = arena_copy(&run->arena, names->as.list.items[i]->as.string);
        struct hived_group_view view;
        json_key(&run->json, name);
        json_object(&run->json);
        bool exists = hived_group_find(run->hived, name, &view);
        json_key_bool(&run->json, "exists", exists);
        if (exists) {
            json_key_string(&run->json, "state", group_states[view.state]);
            json_key_bool(&run->json, "lazyPreempted", view.is_lazy_preempted);
            if (view.is_lazy_preempted)
                json_key_string(&run->json, "preemptor", view.preemptor);
            json_key_bool(&run->json, "hasVirtualPlacement", view.has_virtual);
            placement_write(run, name, view.slot_count);
        }
        json_object_end(&run->json);
    }
    json_object_end(&run->json);
}

struct tally {
    struct arena *arena;
    struct kind {
        const char *key;
        int number;
    } * items;
    size_t count, room;
};

static void tally_add(void *context, const char *type, bool is_healthy, enum hived_cell_state state,
                      bool is_oppo)
{
    struct tally *tally = context;
    const char *key = arena_format(tally->arena, "%s%s|%s|%s", is_oppo ? "opportunistic|" : "",
                                   type, is_healthy ? "Healthy" : "Bad", cell_states[state]);
    for (size_t i = 0; i < tally->count; i++) {
        if (!strcmp(tally->items[i].key, key)) {
            tally->items[i].number++;
            return;
        }
    }
    *ARRAY_ADD(tally) = (struct kind){key, 1};
}

static void check_vcs(struct run *run, const struct doc *names)
{
    json_key(&run->json, "vcs");
    json_object(&run->json);
    for (size_t i = 0; i < names->as.list.count; i++) {
        const char *name = arena_copy(&run->arena, names->as.list.items[i]->as.string);
        struct tally tally = {.arena = &run->arena};
        (run->is_imitating ? hived_vc_walk_imitating : hived_vc_walk)(run->hived, name, tally_add,
                                                                      &tally);
        json_key(&run->json, name);
        json_object(&run->json);
        for (size_t k = 0; k < tally.count; k++)
            json_key_int(&run->json, tally.items[k].key, tally.items[k].number);
        json_object_end(&run->json);
        mem_free(tally.items);
    }
    json_object_end(&run->json);
}

static void check_cells(struct run *run, const struct doc *addresses)
{
    json_key(&run->json, "cells");
    json_object(&run->json);
    for (size_t i = 0; i < addresses->as.list.count; i++) {
        const char *address = arena_copy(&run->arena, addresses->as.list.items[i]->as.string);
        struct hived_cell_view view;
        if (!hived_cell_find(run->hived, address, &view))
            continue;
        json_key(&run->json, address);
        json_object(&run->json);
        json_key_string(&run->json, "type", view.type);
        json_key_string(&run->json, "state", cell_states[view.state]);
        json_key_string(&run->json, "healthiness", view.is_healthy ? "Healthy" : "Bad");
        json_key_int(&run->json, "priority", view.priority);
        json_key_string(&run->json, "vc", view.vc);
        json_object_end(&run->json);
    }
    json_object_end(&run->json);
}

static void check(struct run *run, const struct doc *event)
{
    json_object(&run->json);
    const struct doc *names = names_at(run, event, "groups", false);
    if (names)
        check_groups(run, names);
    if ((names = names_at(run, event, "vcs", false)))
        check_vcs(run, names);
    if ((names = names_at(run, event, "cells", false)))
        check_cells(run, names);
    json_object_end(&run->json);
}

/* --- */

static void nodes_come(struct run *run, const struct doc *event)
{
    nodes_set(run, names_at(run, event, "nodes", true), true);
    outcome(run, "ok", NULL);
}

static void nodes_leave(struct run *run, const struct doc *event)
{
    nodes_set(run, names_at(run, event, "nodes", true), false);
    outcome(run, "ok", NULL);
}

static const struct op {
    const char *name;
    void (*run)(struct run *run, const struct doc *event);
} ops[] = {
    {"configure", configure},        {"restart", restart},
    {"schedule", schedule},          {"node_up", nodes_come},
    {"node_not_ready", nodes_leave}, {"node_deleted", nodes_leave},
    {"pod_done", pods_end},          {"pod_cancelled", pods_cancel},
    {"pods_gone", pods_go},          {"check", check},
};

static void event_run(struct run *run, const struct doc *event)
{
    if (event->kind != DOC_MAP)
        refuse(run, "", "must be a map");
    const char *name = text_at(run, event, "op");
    const struct op *op = NULL;
    for (size_t i = 0; i < COUNT_OF(ops); i++)
        if (!strcmp(ops[i].name, name))
            op = &ops[i];
    if (!op)
        refuse(run, name, "is not an op of vectors");
    else if (!run->hived && op->run != configure)
        outcome(run, "error", "platform");
    else
        op->run(run, event);
    struct err err = {0};
    if (run->hived && hived_check(run->hived, &err))
        refuse(run, name, err.text);
}

static void file_run(const char *path, bool does_reconfigure)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        exit(2);
    }
    struct buf source = BUF_INIT, out = BUF_INIT;
    char block[65536];
    for (size_t got; (got = fread(block, 1, sizeof block, file)) > 0;)
        buf_add(&source, block, got);
    fclose(file);
    struct run run = {.does_reconfigure = does_reconfigure, .path = path};
    arena_init(&run.arena);
    json_init(&run.json, &out);
    struct problems problems;
    problems_init(&problems, &run.arena);
    const struct doc *vector = doc_parse(buf_as_text(&source), DOC_JSON, &run.arena, &problems);
    if (problems.error_count) {
        problems_print(&problems, path, &out);
        fputs(buf_cstr(&out), stderr);
        exit(2);
    }
    const struct doc *events = field_of(&run, vector, "events", DOC_LIST, true);
    run.is_imitating = !doc_get(vector, "quirk");
    json_array(&run.json);
    for (run.at = 0; run.at < events->as.list.count; run.at++)
        event_run(&run, events->as.list.items[run.at]);
    json_array_end(&run.json);
    puts(buf_cstr(&out));
    hived_free(run.hived);
    mem_free(run.items);
    mem_free(run.seen);
    problems_release(&problems);
    arena_release(&run.arena);
    buf_release(&source);
    buf_release(&out);
}

int main(int argc, char **argv)
{
    bool does_reconfigure = false;
    if (argc < 2) {
        fputs("usage: vector-hived [--reconfigure] FILE...\n", stderr);
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--reconfigure"))
            does_reconfigure = true;
        else
            file_run(argv[i], does_reconfigure);
    }
    return 0;
}
