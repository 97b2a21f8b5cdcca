/* A plain placer's choice of victims in pieces, while a gang of unequal tasks is placed on trial:
 * what somebody's end between two pieces makes free leaves true what is promised. */
#include "unit.h"

#include "plain.h"

#include <stdio.h>

#include "base/memory.h"
#include "placement/simple.h"

/* Behind so many pieces he ends; what the search promises then holds. */
static enum placement_kind ends_behind(struct placer *placer,
                                       const struct placement_request *request, uint32_t cut,
                                       const char *name)
{
    uint32_t pieces;
    for (uint32_t i = 0; i < cut; i++)
        assert_true(plain_place(placer, request).is_cut);
    placer->ops->release_group(placer, name);
    struct placement_result result = plain_search(placer, request, &pieces);
    const enum placement_kind kind = result.kind;
    plain_check(placer);
    for (size_t i = 0; i < result.victim_count; i++)
        placer->ops->release_group(placer, result.victims[i]);
    if (kind == PLACEMENT_PREEMPT)
        result = plain_search(placer, request, &pieces);
    if (kind != PLACEMENT_WAIT)
        plain_take(placer, request, &result);
    plain_check(placer);
    return kind;
}

static uint32_t pieces_of(struct placer *placer, const struct placement_request *request)
{
    uint32_t pieces;
    struct placer *copy = placer->ops->copy(placer);
    assert_int_equal(plain_search(copy, request, &pieces).kind, PLACEMENT_PREEMPT);
    copy->ops->free(copy);
    return pieces;
}

/* All of them must go; the one that is spared on trial ends by itself just then. */
static void who_is_spared_on_trial_ends(void **state)
{
    (void)state;
    enum { RUN = 4 };
    static const struct placement_member one = {1, 1, 64, 0, "", ""};
    static const struct placement_member wanted[] = {{2, 1, 64, 0, "", ""}, {1, 2, 64, 0, "", ""}};
    struct placement_request request = plain_ask("gang", wanted, COUNT_OF(wanted), 100);
    request.slice = 1;
    for (uint32_t i = 0; i < COUNT_OF(plain_policies) * RUN; i++) {
        uint32_t pieces = 2;
        for (uint32_t cut = 1; cut < pieces; cut++) {
            char name[16];
            snprintf(name, sizeof name, "small%u", i % RUN);
            struct placer *placer = placer_simple_new(plain_policies[i / RUN]);
            plain_node_cpu(placer, 0, RUN);
            plain_node_is(placer, 1, false); /* beside it, sums alone do not tell that it fails */
            plain_fill(placer, &one, RUN);
            pieces = pieces_of(placer, &request);
            assert_int_equal(ends_behind(placer, &request, cut, name), PLACEMENT_PREEMPT);
            placer->ops->free(placer);
        }
    }
}

static void start(struct placer *placer, const char *name, struct placement_member member,
                  int32_t priority)
{
    const struct placement_request request = plain_ask(name, &member, 1, priority);
    const struct placement_result result = plain_place(placer, &request);
    plain_take(placer, &request, &result);
}

/* Spread puts the first task where most is free. When somebody of higher priority ends on the node
 * of the second one, that is there: then what did fit fits no more. */
static void more_room_is_less(void **state)
{
    (void)state;
    static const struct placement_member wanted[] = {{1, 1, 64, 2, "", ""}, {1, 8, 64, 1, "", ""}};
    struct placement_request request = plain_ask("gang", wanted, COUNT_OF(wanted), 100);
    uint32_t pieces = 2, by_kind[PLACEMENT_PREEMPT + 1] = {0};
    request.slice = 1;
    for (uint32_t cut = 1; cut < pieces; cut++) {
        struct placer *placer = placer_simple_new("spread");
        plain_node_cpu(placer, 0, 8);
        start(placer, "high", (struct placement_member){1, 0, 64, 2, "", ""}, 120);
        plain_node_cpu(placer, 1, 4);
        start(placer, "low", (struct placement_member){1, 4, 64, 4, "", ""}, 10);
        pieces = pieces_of(placer, &request);
        by_kind[ends_behind(placer, &request, cut, "high")]++;
        placer->ops->free(placer);
    }
    assert_true(by_kind[PLACEMENT_WAIT] > 0 && by_kind[PLACEMENT_PREEMPT] > 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(who_is_spared_on_trial_ends),
    cmocka_unit_test(more_room_is_less),
};
UNIT_FILE(tests, plain_setup, plain_teardown);
