/* Groups that may be ended under the plain plain_policies are passed over where that would not
 * help: it is seen in how many pieces a search takes. */
#include "unit.h"

#include "plain.h"

#include "base/memory.h"
#include "placement/simple.h"

enum { MANY = 400, PROMISED = 380 };

static void node_set(struct placer *placer, uint32_t id, const char *type, const char *engine)
{
    struct node_facts node = plain_node();
    node.gpu_type = type;
    node.engine = engine;
    plain_node_set(placer, id, &node);
}

/* As many nodes, each with a job on all of its GPUs. */
static struct placer *crowd_of(const char *policy)
{
    struct placer *placer = placer_simple_new(policy);
    for (uint32_t i = 0; i < MANY; i++)
        node_set(placer, i, "V100", "");
    plain_fill(placer, &plain_small, MANY);
    return placer;
}

/* Who preempts does not pass over those for whose places others wait: it is searched for in as many
 * pieces as if there were none. When these give up, it does again. */
static void promised_places_cost_nothing(void **state)
{
    (void)state;
    static const struct placement_member waits = {PROMISED, 1, 64, PLAIN_GPUS, "", ""};
    static const struct placement_member pair = {2, 1, 64, PLAIN_GPUS, "", ""};
    for (size_t p = 0; p < COUNT_OF(plain_policies); p++) {
        uint32_t pieces, fewest;
        struct placer *placer = crowd_of(plain_policies[p]);
        struct placement_request request = plain_ask("pair", &pair, 1, 100);
        request.slice = 1;
        request.may_preempt = false;
        assert_int_equal(plain_search(placer, &request, &fewest).kind, PLACEMENT_PREEMPT);
        const struct placement_request many = plain_ask("waits", &waits, 1, 100);
        struct placement_result result = plain_place(placer, &many);
        assert_int_equal(result.victim_count, PROMISED);
        struct placement_result whole = plain_place_at_once(placer, request);
        result = plain_search(placer, &request, &pieces);
        plain_results_equal(&result, &whole);
        assert_int_equal(pieces, fewest);
        assert_string_equal(result.victims[0], "small380");
        placer->ops->cancel(placer, "waits");
        whole = plain_place_at_once(placer, request);
        result = plain_search(placer, &request, &pieces);
        plain_results_equal(&result, &whole);
        assert_string_equal(result.victims[0], "small0");
        plain_check(placer);
        placer->ops->free(placer);
    }
}

/* Nor over those on nodes of another type, or of another engine. */
static void other_nodes_cost_nothing(void **state)
{
    (void)state;
    static const struct placement_member pair = {2, 1, 64, PLAIN_GPUS, "A100", ""};
    for (uint32_t is_of_engine = 0; is_of_engine < 2; is_of_engine++) {
        uint32_t pieces, fewest;
        struct placer *placer = crowd_of("first-fit");
        struct placement_member member = pair;
        member.sku_type = is_of_engine ? "" : "V100";
        struct placement_request request = plain_ask("pair", &member, 1, 100);
        request.slice = 1;
        request.may_preempt = false;
        assert_int_equal(plain_search(placer, &request, &fewest).kind, PLACEMENT_PREEMPT);
        for (uint32_t i = PROMISED; i < MANY; i++) { /* these are the others then */
            if (is_of_engine)
                node_set(placer, i, "V100", "second");
            else
                node_set(placer, i, "A100", "");
        }
        member.sku_type = is_of_engine ? "" : "A100";
        request.engine = is_of_engine ? "second" : NULL;
        const struct placement_result whole = plain_place_at_once(placer, request);
        const struct placement_result result = plain_search(placer, &request, &pieces);
        plain_results_equal(&result, &whole);
        assert_string_equal(result.victims[0], "small380");
        assert_in_range(pieces, fewest - 1, fewest + 1);
        plain_check(placer);
        placer->ops->free(placer);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(promised_places_cost_nothing),
    cmocka_unit_test(other_nodes_cost_nothing),
};
UNIT_FILE(tests, plain_setup, plain_teardown);
