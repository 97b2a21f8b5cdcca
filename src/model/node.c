#include "model/node.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/text.h"

/* What `to` has already, when it is the same; a new copy otherwise. */
static const char *string_copy(const char *to, const char *from)
{
    from = from ? from : "";
    return to && strcmp(to, from) == 0 ? to : mem_copy(from);
}

static void string_free(const char *old, const char *new)
{
    if (old != new)
        mem_free((char *)old);
}

void node_facts_copy(struct node_facts *to, const struct node_facts *from)
{
    struct node_facts copy = *from;
    copy.name = string_copy(to->name, from->name);
    copy.address = string_copy(to->address, from->address);
    copy.gpu_type = string_copy(to->gpu_type, from->gpu_type);
    copy.engine = string_copy(to->engine, from->engine);
    copy.reason = string_copy(to->reason, from->reason);
    copy.gpu_numa = mem_copy_array(from->gpu_numa, from->gpu_count, sizeof *from->gpu_numa);
    copy.gpu_switch = mem_copy_array(from->gpu_switch, from->gpu_count, sizeof *from->gpu_switch);
    string_free(to->name, copy.name);
    string_free(to->address, copy.address);
    string_free(to->gpu_type, copy.gpu_type);
    string_free(to->engine, copy.engine);
    string_free(to->reason, copy.reason);
    mem_free((uint16_t *)to->gpu_numa);
    mem_free((uint16_t *)to->gpu_switch);
    *to = copy;
}

void node_facts_release(struct node_facts *facts)
{
    mem_free((char *)facts->name);
    mem_free((char *)facts->address);
    mem_free((char *)facts->gpu_type);
    mem_free((char *)facts->engine);
    mem_free((char *)facts->reason);
    mem_free((uint16_t *)facts->gpu_numa);
    mem_free((uint16_t *)facts->gpu_switch);
    *facts = (struct node_facts){0};
}

static const char *string_keep(struct arena *arena, const char *string)
{
    return string ? arena_copy(arena, text_of(string)) : "";
}

static const uint16_t *numbers_keep(struct arena *arena, const uint16_t *numbers, uint32_t count)
{
    if (!numbers || count == 0)
        return NULL;
    uint16_t *copy = ARENA_ARRAY(arena, uint16_t, count);
    memcpy(copy, numbers, count * sizeof *copy);
    return copy;
}

struct node_facts node_facts_keep(struct arena *arena, const struct node_facts *facts)
{
    struct node_facts kept = *facts;
    kept.name = string_keep(arena, facts->name);
    kept.address = string_keep(arena, facts->address);
    kept.gpu_type = string_keep(arena, facts->gpu_type);
    kept.engine = string_keep(arena, facts->engine);
    kept.reason = string_keep(arena, facts->reason);
    kept.gpu_numa = numbers_keep(arena, facts->gpu_numa, facts->gpu_count);
    kept.gpu_switch = numbers_keep(arena, facts->gpu_switch, facts->gpu_count);
    return kept;
}

static bool numbers_are_equal(const uint16_t *a, const uint16_t *b, uint32_t count)
{
    if (!a || !b)
        return a == b;
    return memcmp(a, b, count * sizeof *a) == 0;
}

bool node_facts_are_alike(const struct node_facts *a, const struct node_facts *b)
{
    assert(a->gpu_type && b->gpu_type);
    return a->cpu == b->cpu && a->memory_mib == b->memory_mib && a->gpu_count == b->gpu_count &&
           strcmp(a->gpu_type, b->gpu_type) == 0 &&
           numbers_are_equal(a->gpu_numa, b->gpu_numa, a->gpu_count) &&
           numbers_are_equal(a->gpu_switch, b->gpu_switch, a->gpu_count);
}

bool node_gpu_is_lost(const struct node_facts *facts, uint32_t gpu)
{
    assert(gpu < facts->gpu_count);
    return facts->gpu_switch && facts->gpu_switch[gpu] == NODE_GPU_LOST;
}

void node_closing_copy(struct node_closing *to, const struct node_closing *from)
{
    struct node_closing before = *to;
    const struct node_closing copy = {from->is_closed, mem_copy(from->by ? from->by : ""),
                                      mem_copy(from->why ? from->why : ""), from->at_ms};
    *to = copy;
    node_closing_release(&before);
}

void node_closing_release(struct node_closing *closing)
{
    mem_free((char *)(uintptr_t)closing->by);
    mem_free((char *)(uintptr_t)closing->why);
    *closing = (struct node_closing){0};
}
