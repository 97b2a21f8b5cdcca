/* A plain placer's search in pieces finds what the same search finds at once, whatever ends between
 * two pieces. */
#include "unit.h"

#include "plain.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "placement/simple.h"

enum { NODES = 6, TASKS = 16, SLICE = 3 };

static const struct placement_member large[] = {{TASKS - 4, 1, 64, 1, "", ""},
                                                {4, 2, 64, 1, "V100", ""}};

static struct placement_request ask_large(int32_t priority)
{
    struct placement_request request = plain_ask("large", large, COUNT_OF(large), priority);
    request.slice = SLICE;
    return request;
}

/* So many jobs of a whole node each run. */
static struct placer *cluster_of(const char *policy, uint32_t busy)
{
    struct placer *placer = placer_simple_new(policy);
    for (uint32_t i = 0; i < NODES; i++)
        plain_node_is(placer, i, true);
    plain_fill(placer, &plain_small, busy);
    return placer;
}

static void what_is_found_is_what_is_found_at_once(void **state)
{
    (void)state;
    const uint32_t busy[] = {0, 2, NODES, 4}; /* it is bound, preempts, or waits */
    const int32_t priorities[] = {100, 100, 100, 10};
    const enum placement_kind kinds[] = {PLACEMENT_BIND, PLACEMENT_BIND, PLACEMENT_PREEMPT,
                                         PLACEMENT_WAIT};
    for (size_t p = 0; p < COUNT_OF(plain_policies); p++)
        for (size_t i = 0; i < COUNT_OF(busy); i++) {
            uint32_t pieces;
            struct placer *placer = cluster_of(plain_policies[p], busy[i]);
            const struct placement_request request = ask_large(priorities[i]);
            const struct placement_result whole = plain_place_at_once(placer, request);
            const struct placement_result result = plain_search(placer, &request, &pieces);
            plain_results_equal(&result, &whole);
            assert_int_equal(result.kind, kinds[i]);
            assert_true(result.kind == PLACEMENT_WAIT || pieces > TASKS / SLICE / 2);
            plain_check(placer);
            if (result.kind == PLACEMENT_BIND)
                plain_take(placer, &request, &result);
            plain_check(placer);
            placer->ops->free(placer);
        }
}

static void nodes_to_avoid_are_those_of_the_beginning(void **state)
{
    (void)state;
    const struct node_id first[] = {{0}, {1}}, later[] = {{2}, {3}, {4}};
    for (size_t p = 0; p < COUNT_OF(plain_policies); p++) {
        uint32_t pieces;
        struct placer *placer = cluster_of(plain_policies[p], 0);
        struct placement_request request = ask_large(100);
        request.avoid = first;
        request.avoid_count = COUNT_OF(first);
        const struct placement_result whole = plain_place_at_once(placer, request);
        assert_true(plain_place(placer, &request).is_cut);
        request.avoid = later;
        request.avoid_count = COUNT_OF(later);
        const struct placement_result result = plain_search(placer, &request, &pieces);
        plain_results_equal(&result, &whole);
        placer->ops->free(placer);
    }
}

static void a_copy_goes_on_at_the_same_piece(void **state)
{
    (void)state;
    for (uint32_t cut = 1; cut < 10; cut++) {
        uint32_t left, left_of_copy;
        struct placer *placer = cluster_of(plain_policies[cut % 3], cut % 2 ? NODES : 2);
        const struct placement_request request = ask_large(100);
        struct placement_result result = {.is_cut = true};
        for (uint32_t i = 0; i < cut && result.is_cut; i++)
            result = plain_place(placer, &request);
        if (result.is_cut) {
            struct placer *copy = placer->ops->copy(placer);
            const struct placement_result other = plain_search(copy, &request, &left_of_copy);
            result = plain_search(placer, &request, &left);
            plain_results_equal(&result, &other);
            assert_int_equal(left, left_of_copy);
            copy->ops->free(copy);
        }
        placer->ops->free(placer);
    }
}

/* It has fewer tasks than a slice, but is placed on trial for each that runs. */
static void a_small_gang_of_unequal_tasks_is_cut(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < COUNT_OF(plain_policies); i++) {
        uint32_t pieces;
        struct placer *placer = cluster_of(plain_policies[i], NODES);
        struct placement_request request = ask_large(100);
        request.slice = TASKS + 1;
        const struct placement_result whole = plain_place_at_once(placer, request);
        const struct placement_result result = plain_search(placer, &request, &pieces);
        assert_int_equal(result.kind, PLACEMENT_PREEMPT);
        assert_true(pieces > 1);
        plain_results_equal(&result, &whole);
        plain_check(placer);
        placer->ops->free(placer);
    }
}

/* Room that becomes free meanwhile is not for the search that has begun; who has ended by itself is
 * no victim any more. */
static void ends_between_two_pieces(void **state)
{
    (void)state;
    for (uint32_t cut = 1; cut < 9; cut++) {
        uint32_t pieces;
        struct placer *placer = cluster_of(plain_policies[cut % 3], NODES);
        const struct placement_request request = ask_large(100);
        const struct placement_result whole = plain_place_at_once(placer, request);
        assert_int_equal(whole.victim_count, TASKS / PLAIN_GPUS);
        struct placement_result result = {.is_cut = true};
        for (uint32_t i = 0; i < cut && result.is_cut; i++)
            result = plain_place(placer, &request);
        assert_true(result.is_cut);
        placer->ops->release_slot(placer, "small0", 0);
        result = plain_search(placer, &request, &pieces);
        assert_int_equal(result.kind, PLACEMENT_PREEMPT);
        for (size_t i = 0; i < result.victim_count; i++)
            assert_string_not_equal(result.victims[i], "small0");
        assert_in_range(result.victim_count, TASKS / PLAIN_GPUS - 1, TASKS / PLAIN_GPUS);
        plain_check(placer);
        placer->ops->free(placer);
    }
}

/* All victims have ended by themselves: nobody has to be told. */
static void the_last_victim_ends_between_two_pieces(void **state)
{
    (void)state;
    for (uint32_t cut = 2; cut < 9; cut++) {
        uint32_t pieces;
        struct placer *placer = cluster_of("best-fit", NODES);
        const struct placement_request request = ask_large(100);
        for (uint32_t i = 0; i < cut; i++)
            assert_true(plain_place(placer, &request).is_cut);
        for (uint32_t i = 0; i < NODES; i++) {
            char name[16];
            snprintf(name, sizeof name, "small%u", i);
            placer->ops->release_group(placer, name);
        }
        const struct placement_result result = plain_search(placer, &request, &pieces);
        plain_take(placer, &request, &result);
        plain_check(placer);
        placer->ops->free(placer);
    }
}

static void what_is_given_up_leaves_nothing(void **state)
{
    (void)state;
    for (uint32_t cut = 1; cut < 9; cut++) {
        uint32_t pieces;
        struct placer *placer = cluster_of("spread", 2);
        const struct placement_request request = ask_large(100);
        struct placement_result result = {.is_cut = true};
        for (uint32_t i = 0; i < cut && result.is_cut; i++)
            result = plain_place(placer, &request);
        if (cut % 4 == 0)
            placer->ops->forget(placer);
        else if (cut % 4 == 1)
            placer->ops->cancel(placer, "large");
        else if (cut % 4 == 2)
            placer->ops->release_group(placer, "large");
        else
            plain_node_is(placer, NODES, true);
        plain_check(placer);
        const struct placement_result whole = plain_place_at_once(placer, request);
        result = plain_search(placer, &request, &pieces);
        assert_true(pieces > TASKS / SLICE / 2); /* from its beginning */
        plain_results_equal(&result, &whole);
        placer->ops->free(placer);
    }
}

/* --- a group that waits is asked for again --- */

/* It waits for the ends of four that run; a piece has one of them. */
static struct placer *cluster_with_waiting(const char *policy, struct placement_request *request)
{
    uint32_t pieces;
    struct placer *placer = cluster_of(policy, NODES);
    *request = ask_large(100);
    assert_int_equal(plain_search(placer, request, &pieces).kind, PLACEMENT_PREEMPT);
    request->slice = 1;
    return placer;
}

static void who_is_left_is_named_in_pieces(void **state)
{
    (void)state;
    for (size_t p = 0; p < COUNT_OF(plain_policies); p++) {
        uint32_t pieces;
        struct placement_request request;
        struct placer *placer = cluster_with_waiting(plain_policies[p], &request);
        const struct placement_result whole = plain_place_at_once(placer, request);
        assert_int_equal(whole.victim_count, TASKS / PLAIN_GPUS);
        assert_true(plain_place(placer, &request).is_cut);
        struct placer *copy = placer->ops->copy(placer);
        plain_check(placer);
        struct placement_result result = plain_search(placer, &request, &pieces);
        plain_results_equal(&result, &whole);
        assert_int_equal(pieces, TASKS / PLAIN_GPUS); /* the last one has the answer */
        result = plain_search(copy, &request, &pieces);
        plain_results_equal(&result, &whole);
        assert_int_equal(pieces, TASKS / PLAIN_GPUS);
        copy->ops->free(copy);
        placer->ops->free(placer);
    }
}

/* All have ended: its places are taken in a step behind the one in which that is seen, and nobody
 * is named. */
static void places_are_a_piece_of_their_own(void **state)
{
    (void)state;
    for (size_t p = 0; p < COUNT_OF(plain_policies); p++) {
        uint32_t pieces;
        struct placement_request request;
        struct placer *placer = cluster_with_waiting(plain_policies[p], &request);
        const struct placement_result whole = plain_place_at_once(placer, request);
        for (size_t i = 0; i < whole.victim_count; i++)
            placer->ops->release_group(placer, whole.victims[i]);
        request.slice = TASKS / PLAIN_GPUS; /* all victims are looked for in the first piece */
        const struct placement_result first = plain_place(placer, &request);
        assert_true(first.is_cut);
        assert_int_equal(first.victim_count, 0);
        struct placer *copy = placer->ops->copy(placer);
        const struct placement_result result = plain_search(placer, &request, &pieces);
        assert_int_equal(pieces, 1);
        plain_take(placer, &request, &result);
        plain_check(placer);
        const struct placement_result other = plain_search(copy, &request, &pieces);
        plain_results_equal(&result, &other);
        copy->ops->free(copy);
        placer->ops->free(placer);
    }
}

/* They end before their turn or after it; when all have, there is nobody to wait for. */
static void who_ends_between_two_pieces_is_not_named(void **state)
{
    (void)state;
    for (uint32_t cut = 0; cut < TASKS / PLAIN_GPUS; cut++)
        for (uint32_t ends = 1; ends <= TASKS / PLAIN_GPUS; ends++) {
            uint32_t pieces;
            struct placement_request request;
            struct placer *placer = cluster_with_waiting(plain_policies[cut % 3], &request);
            const struct placement_result whole = plain_place_at_once(placer, request);
            for (uint32_t i = 0; i < cut; i++)
                assert_true(plain_place(placer, &request).is_cut);
            for (uint32_t i = 0; i < ends; i++)
                placer->ops->release_group(placer, whole.victims[TASKS / PLAIN_GPUS - 1 - i]);
            plain_check(placer);
            struct placement_result result = plain_search(placer, &request, &pieces);
            if (result.kind == PLACEMENT_PREEMPT) {
                assert_in_range(result.victim_count, 1, TASKS / PLAIN_GPUS);
                for (size_t i = 0; i < result.victim_count; i++)
                    placer->ops->release_group(placer, result.victims[i]);
                result = plain_search(placer, &request, &pieces);
            }
            plain_take(placer, &request, &result);
            plain_check(placer);
            placer->ops->free(placer);
        }
}

/* One of its nodes fails: it is searched for anew. */
static void its_node_fails_between_two_pieces(void **state)
{
    (void)state;
    for (uint32_t cut = 0; cut < TASKS / PLAIN_GPUS; cut++)
        for (uint32_t node = 0; node < NODES; node++) {
            uint32_t pieces;
            struct placement_request request;
            struct placer *placer = cluster_with_waiting(plain_policies[cut % 3], &request);
            for (uint32_t i = 0; i < cut; i++)
                assert_true(plain_place(placer, &request).is_cut);
            plain_node_is(placer, node, false);
            struct placement_result result = plain_search(placer, &request, &pieces);
            assert_int_equal(result.kind, PLACEMENT_PREEMPT);
            assert_int_equal(result.victim_count, TASKS / PLAIN_GPUS);
            for (size_t i = 0; i < result.victim_count; i++)
                placer->ops->release_group(placer, result.victims[i]);
            result = plain_search(placer, &request, &pieces);
            plain_take(placer, &request, &result);
            for (size_t i = 0; i < result.slot_count; i++)
                assert_int_not_equal(result.slots[i].node.v, node);
            plain_check(placer);
            placer->ops->free(placer);
        }
}

/* All of its victims have ended, but a node has less than it had: it is searched for anew. */
static void its_node_shrinks_between_two_pieces(void **state)
{
    (void)state;
    for (uint32_t node = 0; node < NODES; node++) {
        uint32_t pieces;
        struct placement_request request;
        struct placer *placer = cluster_with_waiting(plain_policies[node % 3], &request);
        const struct placement_result whole = plain_place_at_once(placer, request);
        assert_true(plain_place(placer, &request).is_cut);
        plain_node_cpu(placer, node, 1);
        for (size_t i = 0; i < whole.victim_count; i++)
            placer->ops->release_group(placer, whole.victims[i]);
        struct placement_result result = plain_search(placer, &request, &pieces);
        for (size_t i = 0; result.kind == PLACEMENT_PREEMPT && i < result.victim_count; i++)
            placer->ops->release_group(placer, result.victims[i]);
        result = plain_search(placer, &request, &pieces);
        plain_take(placer, &request, &result);
        plain_check(placer);
        placer->ops->free(placer);
    }
}

/* --- random clusters and gangs --- */

enum { RANDOM_NODES = 9, RANDOM_GROUPS = 40, RANDOM_WORLDS = 600, RANDOM_PIECES_MAX = 5000 };

static uint32_t below(struct random *random, uint32_t end)
{
    return (uint32_t)random_below(random, end);
}

/* What runs is of any priority and of two virtual clusters. */
static struct placer *random_cluster(const char *policy, struct random *random)
{
    struct placer *placer = placer_simple_new(policy);
    for (uint32_t i = 0; i < RANDOM_NODES; i++)
        plain_node_is(placer, i, below(random, 12) > 0);
    for (uint32_t i = 0; i < RANDOM_GROUPS; i++) {
        char name[16];
        snprintf(name, sizeof name, "g%u", i);
        const struct placement_member member = {
            1 + below(random, 3), below(random, 6), 64, below(random, PLAIN_GPUS + 1), "", ""};
        struct placement_request request =
            plain_ask(name, &member, 1, (int32_t)below(random, 100) - 1);
        request.virtual_cluster = below(random, 3) ? "default" : "other";
        request.may_preempt = false;
        const struct placement_result result = plain_place(placer, &request);
        if (result.kind == PLACEMENT_BIND)
            plain_take(placer, &request, &result);
    }
    return placer;
}

static void random_end(struct placer *placer, struct random *random)
{
    char name[16];
    snprintf(name, sizeof name, "g%u", below(random, RANDOM_GROUPS));
    if (below(random, 2))
        placer->ops->release_group(placer, name);
    else
        placer->ops->release_slot(placer, name, below(random, 3));
}

/* Without ends it finds what it finds at once; with them what it promises holds. */
static void random_search(uint64_t seed, bool has_ends)
{
    struct random random = {seed};
    struct placer *placer = random_cluster(plain_policies[seed % 3], &random);
    struct placement_member members[3];
    const uint32_t count = 1 + below(&random, COUNT_OF(members));
    for (uint32_t i = 0; i < count; i++)
        members[i] = (struct placement_member){1 + below(&random, 6),
                                               below(&random, 5),
                                               64,
                                               below(&random, PLAIN_GPUS + 1),
                                               below(&random, 4) ? "" : "V100",
                                               below(&random, 6) ? "" : "node"};
    struct placement_request request =
        plain_ask("large", members, count, (int32_t)below(&random, 120));
    request.slice = 1;
    const struct placement_result whole = plain_place_at_once(placer, request);
    struct placement_result result = {.is_cut = true};
    for (uint32_t pieces = 0; result.is_cut; pieces++) {
        assert_true(pieces < RANDOM_PIECES_MAX);
        result = plain_place(placer, &request);
        if (has_ends && below(&random, 4) == 0)
            random_end(placer, &random);
        if (below(&random, 4) == 0 && result.is_cut) {
            struct placer *copy = placer->ops->copy(placer);
            placer->ops->free(placer);
            placer = copy;
        }
    }
    if (!has_ends)
        plain_results_equal(&result, &whole);
    plain_check(placer);
    for (size_t i = 0; result.kind == PLACEMENT_PREEMPT && i < result.victim_count; i++)
        placer->ops->release_group(placer, result.victims[i]);
    const bool is_waiting = result.kind == PLACEMENT_PREEMPT;
    for (uint32_t pieces = 0; is_waiting && (result.is_cut || !pieces); pieces++)
        result = plain_place(placer, &request);
    if (is_waiting || result.kind == PLACEMENT_BIND)
        plain_take(placer, &request, &result);
    plain_check(placer);
    placer->ops->free(placer);
}

static void random_searches_in_pieces(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= RANDOM_WORLDS; seed++) {
        random_search(seed, false);
        random_search(seed, true);
        arena_clear(&plain_arena);
    }
}

/* --- very many that may be ended --- */

/* Of one task as well: under spread nearly all of them are tried, until one node is free, and
 * spared again. No piece does more than its slice, and each says how much it did. */
static void one_task_is_searched_for_in_pieces(void **state)
{
    (void)state;
    enum { MANY = 60 };
    static const struct placement_member one = {1, 1, 64, 1, "", ""};
    for (size_t p = 0; p < COUNT_OF(plain_policies); p++) {
        uint32_t pieces;
        struct placer *placer = placer_simple_new(plain_policies[p]);
        for (uint32_t i = 0; i < MANY; i++)
            plain_node_is(placer, i, true);
        plain_fill(placer, &one, MANY * PLAIN_GPUS);
        struct placement_request request = plain_ask("task", &plain_small, 1, 100);
        request.slice = 1;
        request.may_preempt = false;
        const struct placement_result whole = plain_place_at_once(placer, request);
        struct placement_result result = plain_search(placer, &request, &pieces);
        plain_results_equal(&result, &whole);
        assert_int_equal(result.victim_count, PLAIN_GPUS);
        assert_in_range(pieces, strcmp(plain_policies[p], "spread") ? 8 : 60, PLAIN_PIECES_MAX);
        request.slice = 2 * pieces;
        result = plain_place(placer, &request);
        plain_results_equal(&result, &whole);
        assert_in_range(result.work, pieces / 2, pieces + pieces / 2);
        plain_check(placer);
        placer->ops->free(placer);
    }
}

/* The first ones tell nothing: all of them are counted, then one after the other must go. */
static void thousands_run_and_most_must_go(void **state)
{
    (void)state;
    enum { RUN = 5000, WANTED = 4000 };
    static const struct placement_member one = {1, 1, 1, 0, "", ""};
    static const struct placement_member wanted[] = {{1, WANTED, 1, 0, "", ""},
                                                     {2, WANTED / 2, 1, 0, "", ""}};
    for (uint32_t i = 0; i < COUNT_OF(wanted); i++) {
        struct placer *placer = placer_simple_new("best-fit");
        plain_node_cpu(placer, 0, RUN);
        for (uint32_t k = 0; k < RUN; k++) {
            char name[16];
            snprintf(name, sizeof name, "g%u", k);
            const struct placement_request request = plain_ask(name, &one, 1, 10);
            const struct placement_result result = plain_place(placer, &request);
            plain_take(placer, &request, &result);
        }
        const struct placement_request request = plain_ask("large", &wanted[i], 1, 100);
        const struct placement_result result = plain_place(placer, &request);
        assert_int_equal(result.kind, PLACEMENT_PREEMPT);
        assert_int_equal(result.victim_count, WANTED);
        for (size_t k = 0; k < result.victim_count; k++)
            placer->ops->release_group(placer, result.victims[k]);
        const struct placement_result again = plain_place(placer, &request);
        plain_take(placer, &request, &again);
        plain_check(placer);
        placer->ops->free(placer);
    }
}

/* Best-fit finds no places for these two tasks, though there are some: the larger task goes where
 * fewer GPUs are free, and the other one has no other place. If `low` had ended it would not: then
 * they have places which are free without its end. */
static struct placer *spared_world(void)
{
    static const struct placement_member five = {1, 1, 64, 5, "", ""},
                                         three = {1, 3, 64, 3, "", ""};
    struct placer *placer = placer_simple_new("best-fit");
    struct node_facts node = plain_node();
    node.cpu = 72;
    node.gpu_count = 8;
    plain_node_set(placer, 0, &node);
    const struct placement_request before = plain_ask("before", &five, 1, 10),
                                   low = plain_ask("low", &three, 1, 10);
    struct placement_result result = plain_place(placer, &before);
    plain_take(placer, &before, &result);
    result = plain_place(placer, &low);
    plain_take(placer, &low, &result);
    placer->ops->release_group(placer, "before");
    node.cpu = 2;
    node.gpu_count = 6;
    plain_node_set(placer, 1, &node);
    return placer;
}

static void who_needs_nobodys_end_starts(void **state)
{
    (void)state;
    enum { SLICES = 2 }; /* at once, and in as many pieces as there are */
    static const struct placement_member two[] = {{1, 1, 64, 5, "", ""}, {1, 64, 64, 4, "", ""}};
    for (uint32_t slice = 0; slice < SLICES; slice++) {
        struct placer *placer = spared_world();
        struct placement_request request = plain_ask("gang", two, COUNT_OF(two), 100);
        request.slice = slice;
        uint32_t pieces;
        const struct placement_result result = plain_search(placer, &request, &pieces);
        assert_int_equal(result.kind, PLACEMENT_BIND);
        assert_int_equal(result.slots[0].node.v, 1);
        assert_int_equal(result.slots[1].node.v, 0);
        plain_take(placer, &request, &result);
        plain_check(placer);
        placer->ops->free(placer);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(thousands_run_and_most_must_go),
    cmocka_unit_test(one_task_is_searched_for_in_pieces),
    cmocka_unit_test(what_is_found_is_what_is_found_at_once),
    cmocka_unit_test(nodes_to_avoid_are_those_of_the_beginning),
    cmocka_unit_test(a_copy_goes_on_at_the_same_piece),
    cmocka_unit_test(a_small_gang_of_unequal_tasks_is_cut),
    cmocka_unit_test(ends_between_two_pieces),
    cmocka_unit_test(the_last_victim_ends_between_two_pieces),
    cmocka_unit_test(what_is_given_up_leaves_nothing),
    cmocka_unit_test(who_is_left_is_named_in_pieces),
    cmocka_unit_test(places_are_a_piece_of_their_own),
    cmocka_unit_test(who_ends_between_two_pieces_is_not_named),
    cmocka_unit_test(its_node_fails_between_two_pieces),
    cmocka_unit_test(its_node_shrinks_between_two_pieces),
    cmocka_unit_test(random_searches_in_pieces),
    cmocka_unit_test(who_needs_nobodys_end_starts),
};
UNIT_FILE(tests, plain_setup, plain_teardown);
