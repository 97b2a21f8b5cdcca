/* placement.c — see placement.h. The one place that knows all implementations. */
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "placement/hived.h"
#include "placement/placement.h"
#include "placement/simple.h"

/* The first problem is enough here: the server has shown all of them before it gave the document.
 */
static struct placer *hived_of_document(struct text document, struct err *err)
{
    cleanup_arena struct arena arena;
    cleanup_problems struct problems problems;
    struct placer *placer = NULL;
    arena_init(&arena);
    problems_init(&problems, &arena);
    const struct doc *doc = doc_parse(document, DOC_YAML, &arena, &problems);
    if (problems.error_count) {
        const struct problem *first = problems_sorted(&problems)[0];
        err_fail(err, ERR_INVALID, first->path, "line %u: %s", first->place.line, first->text);
    } else {
        placer = placer_hived_new(doc->kind == DOC_NULL ? NULL : doc, err);
    }
    return placer;
}

struct placement_slot *placement_slots_copy(const struct placement_slot *slots, size_t count)
{
    size_t gpus = 0;
    for (size_t i = 0; i < count; i++)
        gpus += slots[i].gpu_count;
    struct placement_slot *copy =
        mem_alloc(mem_size(count, sizeof *copy) + mem_size(gpus, sizeof *copy->gpus));
    uint16_t *next = (uint16_t *)(void *)(copy + count);
    for (size_t i = 0; i < count; i++) {
        copy[i] = slots[i];
        copy[i].gpus = next;
        if (slots[i].gpu_count)
            memcpy(next, slots[i].gpus, slots[i].gpu_count * sizeof *next);
        next += slots[i].gpu_count;
    }
    return copy;
}

bool placer_free_some(struct placer *placer, uint32_t tasks)
{
    if (placer->ops->free_some)
        return placer->ops->free_some(placer, tasks);
    placer->ops->free(placer);
    return true;
}

struct placer *placer_new(const char *policy, struct text document, struct err *err)
{
    if (strcmp(policy, "hived") == 0)
        return document.length ? hived_of_document(document, err) : placer_hived_new(NULL, err);
    struct placer *placer = placer_simple_new(policy);
    if (!placer)
        err_fail(err, ERR_INVALID, "policy", "there is no policy %s", policy);
    return placer;
}
