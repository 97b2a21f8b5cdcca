/* hived_giving.c — takes slots that were not just decided, at once or in pieces: see hived_parts.h,
 * and "Another placer takes over" in docs/rfc/0016-gangs-in-steps.md. */
#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "placement/hived_given.h"

/* Ended tasks hold nothing: HiveD sees their slot end at once. */
static void ended_release(struct placer_hived *p, const char *group,
                          const struct placement_slot *slots, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slots[i].node.v == UINT32_MAX)
            p->base.ops->release_slot(&p->base, group, i);
}

static int parts_commit(struct placer_hived *p, const struct decision *decision, int64_t now_ms,
                        struct err *err)
{
    int code = 0;
    for (uint32_t i = 0; i < decision->part_count && !code; i++) {
        code = hived_commit_gang(p->hived, &decision->parts[i].request,
                                 &decision->parts[i].placement, now_ms, err);
        for (uint32_t k = 0; code && k <= i; k++) /* the part that failed as well */
            hived_group_end(p->hived, decision->parts[k].request.group);
    }
    return code;
}

/* What runs may ask for a type that the cells no longer have, or for more than a task may: then its
 * devices say enough. Were it refused, they would be given to others. */
int placer_given_commit(struct placer_hived *p, const struct placement_request *request,
                        const struct placement_slot *slots, size_t slot_count, bool is_recovery,
                        struct err *err)
{
    assert(slot_count > 0);
    struct given given = {.p = p, .slot_count = slot_count, .is_recovery = is_recovery};
    struct err why;
    int code;
    arena_clear(&p->arena);
    do {
        why = (struct err){0};
        code = given_some(&given, request, slots, UINT64_MAX, &why);
        if (!code)
            code = parts_commit(p, &given.decision, request->now_ms, &why);
    } while (code && given_ask_less(&given));
    if (code)
        return err_fail(err, code, why.path, "%s", why.text);
    placer_held_add(p, request->group, &given.decision, slot_count);
    ended_release(p, request->group, slots, slot_count);
    return 0;
}

/* --- the same in pieces --- */

/* The next piece of it, and in a copy those before. *again: pieces that are left to be done. */
static int giving_look_up(struct placer_hived *p, const struct placement_request *request,
                          const struct placement_slot *slots, uint32_t *again, struct err *err)
{
    struct placer_search *search = &p->search;
    const size_t count = search->giving.slot_count;
    const uint64_t most = search->leaves, least = count / TAKINGS_MAX + 1;
    struct given *given = search->giving.given;
    int code = PLACER_CUT;
    *again = 1;
    if (!given) {
        *again += search->giving.pieces;
        given = search->giving.given = ARENA_NEW(&p->arena, struct given);
        *given =
            (struct given){.p = p, .slot_count = count, .is_recovery = search->giving.is_recovery};
    }
    for (; *again > 0 && code == PLACER_CUT; --*again)
        code = given_some(given, request, slots, most > least ? most : least, err);
    search->giving.pieces += !*again;
    return code;
}

/* From now on it is as if it had been found here. */
static void giving_decide(struct placer_hived *p, const struct placement_slot *slots)
{
    const struct placer_search *search = &p->search;
    p->decision = search->giving.given->decision;
    p->decided = arena_copy(&p->arena, text_of(search->group));
    p->decided_count = search->giving.slot_count;
    p->decided_slots = placer_slots_copy(slots, p->decided_count, &p->arena);
}

/* HiveD does not take it so: it is recovered at once, with what it is seen to have. */
static int giving_recover(struct placer_hived *p, const struct placement_request *request,
                          const struct placement_slot *slots, size_t slot_count, struct err *err)
{
    search_close(p, false);
    placer_leaving_finish(p);
    return placer_given_commit(p, request, slots, slot_count, true, err);
}

int placer_giving_go_on(struct placer_hived *p, const struct placement_request *request,
                        const struct placement_slot *slots, size_t slot_count, struct err *err)
{
    const struct placer_search *search = &p->search;
    struct err why = {0};
    uint32_t again = 1;
    int code = 0;
    search_go_on_given(p, request);
    if (!p->decided) {
        code = giving_look_up(p, request, slots, &again, &why);
        if (!code)
            giving_decide(p, slots);
        if (!code && !again)
            code = PLACER_CUT;
    }
    if (!code)
        code = placer_take_some(p, request->now_ms, &why);
    if (code == PLACER_CUT)
        return code;
    if (!code && !search->taking.parts) /* it cannot be cut */
        code = parts_commit(p, &p->decision, request->now_ms, &why);
    if (code && p->decided && search->giving.is_recovery)
        return giving_recover(p, request, slots, slot_count, err);
    if (!code)
        placer_held_add(p, request->group, &p->decision, slot_count);
    search_close(p, code == 0);
    if (code)
        return err_fail(err, code, why.path, "%s", why.text);
    ended_release(p, request->group, slots, slot_count);
    return 0;
}
