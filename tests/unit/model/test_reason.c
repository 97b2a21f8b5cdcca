/* Why a job waits: written with the formats of reason.h, and taken apart again. */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "model/reason.h"

/* "code name=value; code; …", or "-". */
static const char *parts_of(const char *text, struct arena *arena)
{
    const struct reason_parts *parts = reason_read(text_of(text), arena);
    cleanup_buf struct buf out = BUF_INIT;
    if (!parts)
        return "-";
    for (unsigned i = 0; i < parts->count; i++) {
        const struct reason_part *part = &parts->items[i];
        buf_format(&out, "%s%s", i ? "; " : "", part->code);
        const struct reason_value *value = &parts->values[part->first];
        for (const struct reason_value *end = value + part->value_count; value < end; value++)
            buf_format(&out, " %s=%s%.*s", value->name, value->is_number ? "#" : "",
                       TEXT_ARG(value->text));
    }
    return arena_copy(arena, buf_as_text(&out));
}

static void parts_are(const char *text, const char *wanted)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    assert_string_equal(parts_of(text, &arena), wanted);
}

#define AT "2026-11-21 10:04:12 UTC"

static void reasons_of_a_cluster_and_an_attempt(void **state)
{
    (void)state;
    parts_are("virtual cluster vc1 is closed by ann since " AT,
              "closed cluster=vc1 user=ann since=" AT);
    parts_are("virtual cluster vc1 is closed by ann since " AT ": a disk; held by bob~x",
              "closedWhy cluster=vc1 user=ann since=" AT " why=a disk; held by bob~x");
    parts_are("virtual cluster vc1 has been opened again; it waits for its turn",
              "opened cluster=vc1");
    parts_are("it is retried at " AT ": attempt 2 ended with -1001 (PodNodeLost)",
              "retried time=" AT " attempt=#2 exit=#-1001 name=PodNodeLost");
}

static void reasons_of_what_there_is_not(void **state)
{
    (void)state;
    parts_are("there is no virtual cluster vc1; not used: n2 (lost)",
              "noCluster cluster=vc1; notUsed; nodeLost node=n2");
    parts_are("there is no pinned cell PIN: policy spread", "noPin cell=PIN policy=spread");
    parts_are("vc1 has no pinned cell PIN", "noPinOf cluster=vc1 cell=PIN");
    parts_are("an opportunistic gang cannot use a pinned cell", "pinBorrowed");
    parts_are("the cluster has no cells with GPUs", "noGpuCells");
    parts_are("the cluster has no cell type rack", "noCellType type=rack");
    parts_are("the cluster has no H100", "noLeafType type=H100");
    parts_are("the virtual cluster vc1 has no H100,A100 outside its pinned cells",
              "noLeafTypeOf cluster=vc1 type=H100,A100");
    parts_are("no leaf type can serve the demand; a task has at most 64 GPUs",
              "tooManyGpus most=#64");
    parts_are("the cells of some nodes are still to be made", "cellsToMake");
}

static void reasons_of_what_keeps_a_place(void **state)
{
    (void)state;
    parts_are("a node that was held back for it has failed", "nodeFailed");
    parts_are("others were ended for it several times, but it could not start", "endedOften");
    parts_are("room is held back for ann~big, which has waited 600 s",
              "heldBack job=ann~big seconds=#600");
    parts_are("the fixed port 8080 is taken on node n1.lab; not used: n2 (lost)",
              "fixedPortTaken port=#8080 node=n1.lab; notUsed; nodeLost node=n2");
    parts_are("too few free ports on node n1", "freePortsFew node=n1");
    parts_are("3 of its tasks need the fixed port 8080, each on a node of its own: 2 nodes could "
              "give it",
              "portNodes tasks=#3 port=#8080 nodes=#2");
}

static void reasons_of_preemption(void **state)
{
    (void)state;
    parts_are("preempts others of lower priority; not ended yet: ann~a/0, bob~b/1/w-0.0 and 4 more",
              "preempts; notEnded; holder job=ann~a/0; next; holder job=bob~b/1/w-0.0; more n=#4");
    parts_are("others of lower priority would have to be preempted, but room is held back for "
              "ann~big; held by bob~b",
              "wouldPreempt; butHeldBack job=ann~big; heldBy; holder job=bob~b");
    parts_are("others of lower priority would have to be preempted, but others have been ended for "
              "it before and it could not start; it tries again in 30 s",
              "wouldPreempt; butPaused seconds=#30");
    parts_are("others of lower priority would have to be preempted, but another task of the job "
              "does so first",
              "wouldPreempt; butAnother");
    parts_are("others of lower priority would have to be preempted, but they are of the same job",
              "wouldPreempt; butOwn");
}

static void reasons_of_hived(void **state)
{
    (void)state;
    parts_are("it needs 2 x 4 V100 within one server for vc1 at priority 10 in its cells of "
              "V100-NODE: 4 of 8 leaves are free, at most 4 on one node of 8, 4 more on bad nodes; "
              "it would have to use node n1, which is bad; held by ann~a/0 (8), bob~b (4) and "
              "others; this is more than there is, it can never start",
              "needs; cells n=#2 leaves=#4; typeWithin type=V100 within=server; for cluster=vc1 "
              "priority=#10; room chain=V100-NODE free=#4 total=#8; roomLargest n=#4 size=#8; "
              "roomBad n=#4; nodeBad node=n1; heldBy; holderCount job=ann~a/0 n=#8; next; "
              "holderCount job=bob~b n=#4; others; neverRoom");
    parts_are("it needs 1 x 1 (within one a) + 2 x 2 (within one b) K80, all within one rack, for "
              "opportunistic use by vc1 at priority -1 in the cluster's cells of K80: 0 of 8 "
              "leaves are free; its virtual cells are free, but to map them would need a bad node "
              "or one that may not be used; the search for a mixed placement was cut at its limit",
              "needs; cells n=#1 leaves=#1; cellsWithin within=a; plus; cells n=#2 leaves=#2; "
              "cellsWithin within=b; type type=K80; allWithin within=rack; forBorrowed cluster=vc1 "
              "priority=#-1; roomOfCluster chain=K80 free=#0 total=#8; mapping; searchCut");
    parts_are("it needs 1 x 1 leaves, but the virtual cluster vc1 owns none outside its pinned "
              "cells; it would take the CPUs of GPU cells only if its skuType named them",
              "needs; cells n=#1 leaves=#1; leaves; ownsNone cluster=vc1; cpus");
    parts_are("no cells; its roles may be on the types of cells in more ways than the 4096 that "
              "were tried: with a skuType each may be on fewer",
              "noCells; ways n=#4096");
    parts_are("it needs 1 x 9 K80 for vc1 at priority 0 in its pinned cell pin1: 8 of 8 leaves are "
              "free; it would have to use node n2, which may not be used; none of these cells is a "
              "whole rack that is large enough, it can never start",
              "needs; cells n=#1 leaves=#9; type type=K80; for cluster=vc1 priority=#0; roomPinned "
              "cell=pin1 free=#8 total=#8; nodeExcluded node=n2; neverCell cell=rack");
    parts_are("it needs 1 x 1 leaves within one rack, but the virtual cluster vc1 owns none "
              "outside its pinned cells",
              "needs; cells n=#1 leaves=#1; leavesWithin within=rack; ownsNone cluster=vc1");
    parts_are("no cells", "noCells");
}

static void reasons_of_other_policies(void **state)
{
    (void)state;
    parts_are(
        "it needs 2 x (1 GPU, 4 CPU, 512 MiB) of V100,A100 on one node + 1 x (0 GPU, 1 CPU, "
        "64 MiB), all on one node: free on 1 healthy node are 1 of 8 GPU (at most 1 on one), "
        "3 of 32 CPU, 100 of 65536 MiB; held by ann~a; this is more than there is, it can "
        "never start",
        "needs; tasks n=#2 gpu=#1 cpu=#4 mib=#512; tasksOf type=V100,A100; tasksOnOne; plus; "
        "tasks n=#1 gpu=#0 cpu=#1 mib=#64; tasksAllOnOne; roomOnNodes nodes=#1 gpuFree=#1 "
        "gpu=#8 most=#1 cpuFree=#3 cpu=#32 mibFree=#100 mib=#65536; heldBy; holder job=ann~a; "
        "neverRoom");
    parts_are("it needs 1 x (1 GPU, 1 CPU, 1 MiB) of T4: no node has that type; it can never start",
              "needs; tasks n=#1 gpu=#1 cpu=#1 mib=#1; tasksOf type=T4; noType; never");
}

static void nodes_that_are_not_used(void **state)
{
    (void)state;
    parts_are("no cells; not used: a (lost: no heartbeat), b (not healthy), c (not healthy: full) "
              "and 2 more",
              "noCells; notUsed; nodeLostWhy node=a why=no heartbeat; nextNode; nodeUnhealthy "
              "node=b; nextNode; nodeUnhealthyWhy node=c why=full; moreNodes n=#2");
    parts_are("no cells; not used: a (cordoned by ann since " AT "), b (cordoned by bob since " AT
              ": a (bad) fan, (rack 2)), c (its SKU is of no chain)",
              "noCells; notUsed; nodeCordoned node=a user=ann since=" AT "; nextNode; "
              "nodeCordonedWhy node=b user=bob since=" AT " why=a (bad) fan, (rack 2); nextNode; "
              "nodeUnused node=c why=its SKU is of no chain");
    parts_are("no cells; not used: a (cordoned by the platform since " AT ": 3.2 failures of the "
              "platform were counted there, the last: PodNodeLost)",
              "noCells; notUsed; nodeBlamed node=a since=" AT " failures=#3.2 last=PodNodeLost");
}

static void reasons_of_several_engines(void **state)
{
    (void)state;
    parts_are("no engine has room for all of its tasks: on east (no cells); on an engine that is "
              "not known (it needs 1 x 2 K80, but the virtual cluster v owns none outside its "
              "pinned cells); nor on 1 other; not used: a (lost)",
              "noEngine; engine engine=east; noCells; engineEnd; nextEngine; engine engine=an "
              "engine that is not known; needs; cells n=#1 leaves=#2; type type=K80; ownsNone "
              "cluster=v; engineEnd; otherEngines n=#1; notUsed; nodeLost node=a");
}

static void what_is_no_reason_of_ours(void **state)
{
    (void)state;
    parts_are("", "-");
    parts_are("the answer of a placer that has no code", "-");
    parts_are("no cells, and more", "-");
    parts_are("room is held back for ann~big, which has waited x s", "-");
    parts_are("virtual cluster vc1 is closed by ann since today", "-");
    parts_are("; held by ann~a", "-");
    parts_are("it needs 1 x 2 + ", "-");
}

/* Whatever stands in a reason, it takes a bounded time: each place is tried once a kind. */
static void long_ones_are_left_as_they_are(void **state)
{
    (void)state;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    cleanup_buf struct buf text = BUF_INIT;
    buf_string(&text, "no cells; not used: a (lost)");
    for (int i = 0; i < REASON_PARTS_MAX; i++)
        buf_string(&text, ", a (b (c");
    assert_null(reason_read(buf_as_text(&text), &arena));
    while (text.length <= REASON_LENGTH_MAX)
        buf_string(&text, ", a (lost)");
    assert_null(reason_read(buf_as_text(&text), &arena));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(reasons_of_a_cluster_and_an_attempt),
    cmocka_unit_test(reasons_of_what_there_is_not),
    cmocka_unit_test(reasons_of_what_keeps_a_place),
    cmocka_unit_test(reasons_of_preemption),
    cmocka_unit_test(reasons_of_hived),
    cmocka_unit_test(reasons_of_other_policies),
    cmocka_unit_test(nodes_that_are_not_used),
    cmocka_unit_test(reasons_of_several_engines),
    cmocka_unit_test(what_is_no_reason_of_ours),
    cmocka_unit_test(long_ones_are_left_as_they_are),
};
UNIT_FILE(tests, NULL, NULL);
