/* world.c — see world.h. */
#include "world.h"
#include "base/buf.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "hived_view.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct hived_config *world_config(struct arena *arena, const char *yaml, const char **problems)
{
    struct problems list;
    problems_init(&list, arena);
    const struct doc *doc = doc_parse(text_of(yaml), DOC_YAML, arena, &list);
    struct hived_config *config = hived_config_read(doc, &list);
    struct buf out = BUF_INIT;
    problems_print(&list, "config", &out);
    *problems = arena_copy(arena, buf_as_text(&out));
    buf_release(&out);
    problems_release(&list);
    return config;
}

int arena_setup(void **state)
{
    struct arena *arena = mem_zero(1, sizeof *arena);
    arena_init(arena);
    *state = arena;
    return 0;
}

int arena_teardown(void **state)
{
    arena_release(*state);
    mem_free(*state);
    return 0;
}

struct hived_config *world_config_good(struct arena *arena, const char *yaml, const char *says)
{
    const char *problems;
    struct hived_config *config = world_config(arena, yaml, &problems);
    if (!config || (says ? !strstr(problems, says) : problems[0] != '\0'))
        fail_msg("%.300s\nis %s: %s", yaml, config ? "accepted" : "refused", problems);
    return config;
}

void world_config_wrong(struct arena *arena, const char *yaml, const char *says)
{
    const char *problems;
    struct hived_config *config = world_config(arena, yaml, &problems);
    if (config || !strstr(problems, says))
        fail_msg("%.300s\nis %s: %.300s\nnot: %s", yaml, config ? "accepted" : "refused", problems,
                 says);
}

void world_init_of(struct world *world, const char *yaml,
                   struct hived *new (struct hived_config *config))
{
    arena_init(&world->arena);
    world->hived = new (world_config_good(&world->arena, yaml, ""));
    for (uint32_t i = 0; i < hived_node_count(world->hived); i++)
        hived_node_set(world->hived, hived_node_name(world->hived, i), true);
}

void world_init(struct world *world, const char *yaml)
{
    world_init_of(world, yaml, hived_new);
}

static void check(struct world *world)
{
    struct err err;
    if (hived_check(world->hived, &err))
        fail_msg("%s", err.text);
}

void world_release(struct world *world)
{
    check(world);
    hived_free(world->hived);
    arena_release(&world->arena);
}

static struct hived_request request_of(struct world *world, struct ask ask)
{
    struct hived_member *members = ARENA_ARRAY(&world->arena, struct hived_member, 2);
    members[0] = (struct hived_member){.pods = ask.pods, .leaves = ask.leaves};
    members[1] = (struct hived_member){.pods = ask.more_pods, .leaves = ask.more_leaves};
    return (struct hived_request){.group = ask.group,
                                  .virtual_cluster = ask.vc,
                                  .priority = ask.priority,
                                  .pinned_cell = ask.pin,
                                  .leaf_type = ask.type,
                                  .is_lazy = ask.is_lazy,
                                  .uses_suggested = ask.scope != NULL,
                                  .members = members,
                                  .member_count = ask.more_pods ? 2 : 1,
                                  .within_one_cell = ask.within};
}

struct hived_result world_ask(struct world *world, struct ask ask)
{
    struct hived_request request = request_of(world, ask);
    struct hived_result result;
    struct err err = {0};
    struct hived_ask own = {.request = &request,
                            .pod = ask.group,
                            .phase = ask.is_filtering ? HIVED_FILTERING : HIVED_PREEMPTING,
                            .scope = ask.scope,
                            .now_ms = ask.now_ms};
    int code = hived_schedule(world->hived, &own, &world->arena, &result, &err);
    if (code)
        fail_msg("%s: %s", err.path, err.text);
    if (result.kind == HIVED_BIND && !ask.is_not_committed &&
        hived_commit_gang(world->hived, &request, &result.placement, ask.now_ms, &err))
        fail_msg("%s", err.text);
    check(world);
    return result;
}

int world_refuse(struct world *world, struct ask ask)
{
    struct hived_request request = request_of(world, ask);
    struct hived_result result;
    struct err err = {0};
    struct hived_ask own = {
        .request = &request, .pod = ask.group, .phase = HIVED_PREEMPTING, .scope = ask.scope};
    int code = hived_schedule(world->hived, &own, &world->arena, &result, &err);
    check(world);
    return code;
}

const char *world_inspect(struct world *world, void (*write)(struct hived *, struct buf *))
{
    cleanup_buf struct buf out = BUF_INIT;
    write(world->hived, &out);
    return arena_copy(&world->arena, buf_as_text(&out));
}

const char *world_inspect_named(struct world *world,
                                bool (*write)(struct hived *, const char *, struct buf *),
                                const char *name)
{
    cleanup_buf struct buf out = BUF_INIT;
    return write(world->hived, name, &out) ? arena_copy(&world->arena, buf_as_text(&out)) : NULL;
}

/* --- mirrors --- */

static bool documents_differ(struct hived *a, struct hived *b,
                             void (*write)(struct hived *, struct buf *))
{
    cleanup_buf struct buf x = BUF_INIT, y = BUF_INIT;
    write(a, &x);
    write(b, &y);
    return strcmp(buf_cstr(&x), buf_cstr(&y)) != 0;
}

static bool groups_differ(struct hived *a, struct hived *b)
{
    const char *name;
    for (uint32_t at = 0; (name = hived_group_next(b, &at));) {
        cleanup_buf struct buf x = BUF_INIT, y = BUF_INIT;
        if (!hived_inspect_group(a, name, &x) || !hived_inspect_group(b, name, &y) ||
            strcmp(buf_cstr(&x), buf_cstr(&y)) != 0)
            return true;
    }
    return false;
}

static bool vcs_differ(const struct hived *a, const struct hived *b)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    for (uint32_t vc = 0; vc < hived_vc_count(b); vc++) {
        uint32_t count, others;
        const struct hived_quota *x = hived_vc_quota(a, vc, &arena, &count),
                                 *y = hived_vc_quota(b, vc, &arena, &others);
        for (uint32_t i = 0; i < others; i++)
            if (count != others || strcmp(hived_vc_name(a, vc), hived_vc_name(b, vc)) != 0 ||
                strcmp(x[i].leaf_type, y[i].leaf_type) != 0 || x[i].total != y[i].total ||
                x[i].used != y[i].used || x[i].bad != y[i].bad || x[i].oppo != y[i].oppo)
                return true;
    }
    return hived_vc_count(a) != hived_vc_count(b);
}

static bool nodes_differ(const struct hived *a, const struct hived *b)
{
    enum { INDICES = 64 };
    for (uint32_t i = 0; i < hived_node_count(b); i++)
        for (uint32_t type = 0; type < hived_leaf_type_count(b); type++) {
            const char *name = hived_node_name(b, i), *leaf = hived_leaf_type_name(b, type);
            uint16_t x[INDICES] = {0}, y[INDICES] = {0};
            if (strcmp(leaf, hived_leaf_type_name(a, type)) != 0 ||
                hived_node_free(a, name, leaf, x, INDICES) !=
                    hived_node_free(b, name, leaf, y, INDICES) ||
                memcmp(x, y, sizeof x) != 0 ||
                hived_node_highest(a, name, leaf) != hived_node_highest(b, name, leaf))
                return true;
        }
    return hived_node_count(a) != hived_node_count(b) ||
           hived_leaf_type_count(a) != hived_leaf_type_count(b);
}

bool world_groups_differ(struct hived *a, struct hived *b)
{
    return documents_differ(a, b, hived_inspect_groups) || groups_differ(a, b);
}

const char *world_mirror_differs(struct hived *mirror, const struct hived *hived)
{
    struct hived *copy = hived_copy(hived);
    const char *what = NULL;
    if (documents_differ(mirror, copy, hived_inspect_cluster))
        what = "the mirror's cells differ";
    else if (world_groups_differ(mirror, copy))
        what = "the mirror's groups differ";
    else if (vcs_differ(mirror, copy))
        what = "the mirror's virtual clusters differ";
    else if (nodes_differ(mirror, copy))
        what = "the mirror's nodes differ";
    hived_free(copy);
    return what;
}
