#include "core/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "job/retry.h"
#include "placement/placement.h"
#include "spec/spec.h"

enum { PLAN_VERSION = 2, PLAN_VERSION_WITHIN = 2, ALIGNMENT = 8 };

/* A plan is laid out in one block: the struct, its roles, all ports, all texts. */
struct layout {
    char *next;
};

struct plan_role plan_role_of(const char *name)
{
    return (struct plan_role){
        .name = name,
        .sku_type = "",
        .pinned_cell_id = "",
        .affinity_group = "",
        .within_one_cell = "",
        .instances = 1,
        .cpu = 1,
        .memory_mib = 1,
        .min_failed = 1,
        .min_succeeded = -1,
    };
}

static size_t text_size(const char *string)
{
    return string && *string ? strlen(string) + 1 : 0;
}

static size_t role_text_size(const struct plan_role *role)
{
    size_t size = text_size(role->name) + text_size(role->sku_type) +
                  text_size(role->pinned_cell_id) + text_size(role->affinity_group) +
                  text_size(role->within_one_cell);
    for (size_t i = 0; i < role->port_count; i++)
        size += text_size(role->ports[i].label);
    return size;
}

static const char *text_place(struct layout *layout, const char *string)
{
    size_t size = text_size(string);
    if (!size)
        return "";
    char *at = layout->next;
    memcpy(at, string, size);
    layout->next += size;
    return at;
}

static size_t port_total(const struct plan *plan)
{
    size_t count = 0;
    for (size_t i = 0; i < plan->role_count; i++)
        count += plan->roles[i].port_count;
    return count;
}

static void role_place(struct layout *layout, struct plan_role *role, struct plan_port *ports)
{
    role->name = text_place(layout, role->name);
    role->sku_type = text_place(layout, role->sku_type);
    role->pinned_cell_id = text_place(layout, role->pinned_cell_id);
    role->affinity_group = text_place(layout, role->affinity_group);
    role->within_one_cell = text_place(layout, role->within_one_cell);
    for (size_t i = 0; i < role->port_count; i++) {
        ports[i] = role->ports[i];
        ports[i].label = text_place(layout, ports[i].label);
    }
    role->ports = ports;
}

/* --- parts --- */

struct part_key {
    const char *affinity_group, *pinned_cell_id;
    uint16_t role;
};

static int part_key_compare(const void *a, const void *b)
{
    const struct part_key *x = a, *y = b;
    int order = strcmp(x->affinity_group, y->affinity_group);
    if (!order)
        order = strcmp(x->pinned_cell_id, y->pinned_cell_id);
    return order ? order : (x->role > y->role) - (x->role < y->role);
}

static void parts_find(struct plan *plan, struct plan_role *roles)
{
    struct part_key *keys = mem_alloc(mem_size(plan->role_count + 1u, sizeof *keys));
    for (uint16_t i = 0; i < plan->role_count; i++)
        keys[i] = (struct part_key){roles[i].affinity_group, roles[i].pinned_cell_id, i};
    qsort(keys, plan->role_count, sizeof *keys, part_key_compare);
    plan->part_count = 0;
    for (uint16_t i = 0; i < plan->role_count; i++) {
        struct plan_role *role = &roles[keys[i].role];
        struct plan_role *before = i ? &roles[keys[i - 1].role] : NULL;
        bool is_same = before && strcmp(before->affinity_group, role->affinity_group) == 0 &&
                       strcmp(before->pinned_cell_id, role->pinned_cell_id) == 0;
        plan->part_count += !is_same;
        role->part = is_same ? before->part : keys[i].role;
        role->part_next = 0;
        if (is_same)
            before->part_next = keys[i].role;
    }
    mem_free(keys);
}

struct plan *plan_copy(const struct plan *from)
{
    size_t size = sizeof *from + from->role_count * sizeof *from->roles +
                  port_total(from) * sizeof(struct plan_port);
    size_t text = text_size(from->name) + text_size(from->user) + text_size(from->virtual_cluster) +
                  text_size(from->within_one_cell);
    for (size_t i = 0; i < from->role_count; i++)
        text += role_text_size(&from->roles[i]);

    struct plan *plan = mem_alloc(size + text);
    struct plan_role *roles = (struct plan_role *)(plan + 1);
    struct plan_port *ports = (struct plan_port *)(roles + from->role_count);
    struct layout layout = {(char *)plan + size};
    *plan = *from;
    plan->roles = roles;
    plan->name = text_place(&layout, from->name);
    plan->user = text_place(&layout, from->user);
    plan->virtual_cluster = text_place(&layout, from->virtual_cluster);
    plan->within_one_cell = text_place(&layout, from->within_one_cell);
    for (size_t i = 0; i < from->role_count; i++) {
        roles[i] = from->roles[i];
        role_place(&layout, &roles[i], ports);
        ports += roles[i].port_count;
    }
    assert(layout.next == (char *)plan + size + text);
    parts_find(plan, roles);
    return plan;
}

static void role_of_spec(const struct spec *spec, const struct spec_role *from, struct arena *arena,
                         struct plan_role *role)
{
    struct plan_port *ports = ARENA_ARRAY(arena, struct plan_port, from->port_count + 1);
    for (size_t i = 0; i < from->port_count; i++)
        ports[i] =
            (struct plan_port){from->ports[i].label, from->ports[i].count, from->ports[i].begin_at};
    *role = (struct plan_role){
        .name = from->name,
        .sku_type = from->placement.sku_type,
        .pinned_cell_id = from->placement.pinned_cell_id,
        .affinity_group = from->placement.affinity_group,
        .within_one_cell = from->placement.within_one_cell,
        .instances = from->instances,
        .cpu = from->cpu,
        .gpu = from->gpu,
        .memory_mib = from->memory_mib,
        .min_failed = from->completion.min_failed,
        .min_succeeded = from->completion.min_succeeded,
        .task_retry_max = spec->is_gang ? 0 : from->task_retry_count,
        .ports = ports,
        .port_count = (uint16_t)from->port_count,
    };
}

struct plan *plan_of_spec(const struct spec *spec, const char *user)
{
    assert(spec->role_count <= SPEC_ROLES_MAX);
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct plan_role *roles = ARENA_ARRAY(&arena, struct plan_role, spec->role_count + 1);
    for (size_t i = 0; i < spec->role_count; i++)
        role_of_spec(spec, &spec->roles[i], &arena, &roles[i]);
    /* protocol 2 knows no negative numbers, so that its jobs are always fancy */
    const struct retry_policy retry = retry_policy_early(spec->retry_count);
    struct plan shallow = {
        .name = spec->name,
        .user = user,
        .virtual_cluster = spec->virtual_cluster,
        .within_one_cell = spec->within_one_cell,
        .priority = spec->priority,
        .retry_max = retry.max,
        .is_retry_fancy = retry.is_fancy,
        .is_gang = spec->is_gang,
        .is_lazy_preemptible = spec->is_lazy_preemptible,
        .is_debug = spec->is_debug,
        .is_hang_retry = spec->hang_retry,
        .kill_all_on_completed = spec->kill_all_on_completed,
        .time_limit_s = spec->time_limit_s,
        .hang_after_s = spec->hang_after_s,
        .roles = roles,
        .role_count = (uint16_t)spec->role_count,
    };
    return plan_copy(&shallow);
}

void plan_free(struct plan *plan)
{
    mem_free(plan);
}

static void put_string(struct buf *out, const char *string)
{
    buf_put_text(out, text_of(string ? string : ""));
}

static void role_encode(const struct plan_role *role, struct buf *out)
{
    assert(role->name);
    put_string(out, role->name);
    put_string(out, role->sku_type);
    put_string(out, role->pinned_cell_id);
    put_string(out, role->affinity_group);
    put_string(out, role->within_one_cell);
    buf_put_u32(out, role->instances);
    buf_put_u32(out, role->cpu);
    buf_put_u32(out, role->gpu);
    buf_put_u64(out, role->memory_mib);
    buf_put_u32(out, (uint32_t)role->min_failed);
    buf_put_u32(out, (uint32_t)role->min_succeeded);
    buf_put_u32(out, (uint32_t)role->task_retry_max);
    buf_put_u32(out, role->port_count);
    for (size_t i = 0; i < role->port_count; i++) {
        put_string(out, role->ports[i].label);
        buf_put_u32(out, role->ports[i].count);
        buf_put_u32(out, role->ports[i].begin_at);
    }
}

enum { FLAG_FANCY = 1, FLAG_GANG = 2, FLAG_LAZY = 4, FLAG_DEBUG = 8, FLAG_HANG_RETRY = 16 };

void plan_encode(const struct plan *plan, struct buf *out)
{
    buf_put_u8(out, PLAN_VERSION);
    put_string(out, plan->name);
    put_string(out, plan->user);
    put_string(out, plan->virtual_cluster);
    buf_put_u32(out, (uint32_t)plan->priority);
    buf_put_u32(out, (uint32_t)plan->retry_max);
    buf_put_u8(out,
               (uint8_t)((plan->is_retry_fancy ? FLAG_FANCY : 0) | (plan->is_gang ? FLAG_GANG : 0) |
                         (plan->is_lazy_preemptible ? FLAG_LAZY : 0) |
                         (plan->is_debug ? FLAG_DEBUG : 0) |
                         (plan->is_hang_retry ? FLAG_HANG_RETRY : 0)));
    buf_put_u32(out, plan->kill_all_on_completed);
    buf_put_u64(out, plan->time_limit_s);
    buf_put_u64(out, plan->hang_after_s);
    buf_put_u32(out, plan->role_count);
    for (size_t i = 0; i < plan->role_count; i++)
        role_encode(&plan->roles[i], out);
    put_string(out, plan->within_one_cell);
}

/* Every item takes at least one byte, so that a lying count cannot make us allocate. */
static uint32_t cursor_count(struct cursor *cursor, uint32_t limit)
{
    uint32_t count = cursor_u32(cursor);
    if (count > limit || count > (size_t)(cursor->end - cursor->at)) {
        cursor->is_bad = true;
        return 0;
    }
    return count;
}

static const char *cursor_string(struct cursor *cursor, struct arena *arena)
{
    struct text text = cursor_text(cursor);
    if (text.length && memchr(text.at, 0, text.length)) {
        cursor->is_bad = true;
        return "";
    }
    return arena_copy(arena, text);
}

static void role_decode(struct cursor *cursor, struct arena *arena, struct plan_role *role)
{
    role->name = cursor_string(cursor, arena);
    role->sku_type = cursor_string(cursor, arena);
    role->pinned_cell_id = cursor_string(cursor, arena);
    role->affinity_group = cursor_string(cursor, arena);
    role->within_one_cell = cursor_string(cursor, arena);
    role->instances = cursor_u32(cursor);
    role->cpu = cursor_u32(cursor);
    role->gpu = cursor_u32(cursor);
    role->memory_mib = cursor_u64(cursor);
    role->min_failed = (int32_t)cursor_u32(cursor);
    role->min_succeeded = (int32_t)cursor_u32(cursor);
    role->task_retry_max = (int32_t)cursor_u32(cursor);
    role->port_count = (uint16_t)cursor_count(cursor, SPEC_PORTS_MAX);
    struct plan_port *ports = ARENA_ARRAY(arena, struct plan_port, role->port_count + 1u);
    for (size_t i = 0; i < role->port_count; i++) {
        ports[i].label = cursor_string(cursor, arena);
        ports[i].count = cursor_u32(cursor);
        ports[i].begin_at = cursor_u32(cursor);
        if (ports[i].count < 1 || ports[i].count > SPEC_PORTS_MAX || ports[i].begin_at > UINT16_MAX)
            cursor->is_bad = true;
    }
    role->ports = ports;
    if (role->instances > SPEC_INSTANCES_MAX)
        cursor->is_bad = true;
}

static void plan_read(struct cursor *cursor, struct arena *arena, struct plan *plan)
{
    uint8_t version = cursor_u8(cursor);
    if (version < 1 || version > PLAN_VERSION) {
        cursor->is_bad = true;
        return;
    }
    plan->name = cursor_string(cursor, arena);
    plan->user = cursor_string(cursor, arena);
    plan->virtual_cluster = cursor_string(cursor, arena);
    plan->priority = (int32_t)cursor_u32(cursor);
    plan->retry_max = (int32_t)cursor_u32(cursor);
    uint8_t flags = cursor_u8(cursor);
    plan->is_retry_fancy = flags & FLAG_FANCY;
    plan->is_gang = flags & FLAG_GANG;
    plan->is_lazy_preemptible = flags & FLAG_LAZY;
    plan->is_debug = flags & FLAG_DEBUG;
    plan->is_hang_retry = flags & FLAG_HANG_RETRY;
    plan->kill_all_on_completed = cursor_u32(cursor);
    plan->time_limit_s = cursor_u64(cursor);
    plan->hang_after_s = cursor_u64(cursor);
    plan->role_count = (uint16_t)cursor_count(cursor, SPEC_ROLES_MAX);
    struct plan_role *roles = ARENA_ARRAY(arena, struct plan_role, plan->role_count + 1u);
    for (size_t i = 0; i < plan->role_count; i++)
        role_decode(cursor, arena, &roles[i]);
    plan->roles = roles;
    plan->within_one_cell = version >= PLAN_VERSION_WITHIN ? cursor_string(cursor, arena) : "";
}

struct plan *plan_decode(struct text bytes, struct err *err)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct cursor cursor = cursor_of(bytes);
    struct plan shallow = {0};
    plan_read(&cursor, &arena, &shallow);
    struct plan *plan = NULL;
    if (cursor.is_bad || cursor.at != cursor.end || shallow.role_count == 0 ||
        shallow.priority < PLACEMENT_PRIORITY_OPPO || shallow.priority > PLACEMENT_PRIORITY_MAX ||
        plan_task_count(&shallow) > SPEC_TASKS_MAX)
        err_fail(err, ERR_CORRUPT, "plan", "not a stored plan");
    else
        plan = plan_copy(&shallow);
    return plan;
}

uint32_t plan_task_count(const struct plan *plan)
{
    uint32_t count = 0;
    for (size_t i = 0; i < plan->role_count; i++)
        count += plan->roles[i].instances;
    return count;
}
