/* Automatic cells that are made in pieces are those that are made at once; what happens meanwhile
 * is not lost. */
#include "bench.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "hived/hived.h"
#include "placement/hived.h"

enum { NODES = 12, CPUS = 16, GPUS = 4, TASKS = 2 /* of a piece: 8 leaves, of a node 8 */ };

static bool tidy(struct bench *bench)
{
    return bench->placer->ops->tidy(bench->placer, TASKS);
}

static bool is_tidy(const struct bench *bench)
{
    return bench->placer->ops->tidy(bench->placer, 0);
}

/* How many pieces there were. */
static uint32_t make_all(struct bench *bench)
{
    uint32_t pieces = 0;
    for (; !is_tidy(bench); pieces++)
        tidy(bench);
    bench_check(bench);
    return pieces;
}

static void cluster_init(struct bench *bench, bool is_in_pieces)
{
    bench_init(bench, NULL);
    if (is_in_pieces)
        assert_true(tidy(bench));
    for (uint32_t i = 0; i < NODES; i++)
        assert_int_equal(bench_node(bench, i, CPUS, i % 3 ? GPUS : 0, i != 5), 0);
}

static struct placement_result ask(struct bench *bench, const char *group, uint32_t tasks,
                                   uint32_t gpus)
{
    const struct placement_request request = bench_ask(bench, group, tasks, gpus, 1);
    return bench_place(bench, &request, true);
}

static void cluster_write(struct bench *bench, struct buf *out)
{
    buf_clear(out);
    hived_inspect_cluster(placer_hived_state(bench->placer), out);
}

static void pieces_make_what_is_made_at_once(void **state)
{
    (void)state;
    struct bench whole, pieces;
    cleanup_buf struct buf first = BUF_INIT, second = BUF_INIT;
    cluster_init(&whole, false);
    cluster_init(&pieces, true);
    assert_false(is_tidy(&pieces));
    assert_null(placer_hived_state(pieces.placer));
    assert_in_range(make_all(&pieces), 3 * NODES / 2, 8 * NODES);
    cluster_write(&whole, &first);
    cluster_write(&pieces, &second);
    assert_string_equal(buf_cstr(&first), buf_cstr(&second));
    for (uint32_t i = 0; i < 9; i++) {
        char name[16];
        snprintf(name, sizeof name, "g%u", i);
        const struct placement_result a = ask(&whole, name, 1 + i % 3, i % 4),
                                      b = ask(&pieces, name, 1 + i % 3, i % 4);
        assert_int_equal(a.kind, b.kind);
        for (size_t k = 0; k < a.slot_count; k++)
            assert_int_equal(a.slots[k].node.v, b.slots[k].node.v);
    }
    bench_release(&whole);
    bench_release(&pieces);
}

/* Whoever asks nonetheless waits; a submission is accepted. */
static void nothing_is_promised_before_the_first_cells(void **state)
{
    (void)state;
    struct bench bench;
    cluster_init(&bench, true);
    struct placement_request request = bench_ask(&bench, "g", 1, 1, 1);
    struct placement_result result = bench_place(&bench, &request, true);
    assert_int_equal(result.kind, PLACEMENT_WAIT);
    assert_false(result.is_never);
    assert_string_equal(result.reason, "the cells of the nodes are being made");
    request.is_check = true;
    assert_int_equal(bench_place(&bench, &request, false).kind, PLACEMENT_WAIT);
    make_all(&bench);
    assert_int_equal(bench_place(&bench, &request, false).kind, PLACEMENT_BIND);
    request.is_check = false;
    assert_int_equal(bench_place(&bench, &request, true).kind, PLACEMENT_BIND);
    bench_release(&bench);
}

/* As long as new nodes come, it is not begun; one that changes for ever does not hinder it. */
static void it_begins_when_no_more_nodes_come(void **state)
{
    (void)state;
    struct bench bench;
    cluster_init(&bench, true);
    for (uint32_t i = 0; i < 200; i++) {
        bench_node(&bench, NODES + i, CPUS, GPUS, true);
        assert_false(tidy(&bench));
    }
    const uint32_t pieces = make_all(&bench);
    assert_in_range(pieces, 3 * (NODES + 200) / 2, 8 * (NODES + 200));
    uint32_t changes = 0;
    do {
        bench_node(&bench, 1, CPUS, 1 + changes % 3, true);
        tidy(&bench);
    } while (!is_tidy(&bench) && ++changes < 2 * pieces);
    assert_true(is_tidy(&bench)); /* one question is answered by what there is */
    struct placement_result result = ask(&bench, "g", 1, GPUS);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    assert_int_not_equal(result.slots[0].node.v, 1);
    assert_false(is_tidy(&bench));
    bench_release(&bench);
}

static uint32_t free_gpus(struct bench *bench, uint32_t node)
{
    char name[16];
    snprintf(name, sizeof name, "n%u", node);
    return hived_node_free(placer_hived_state(bench->placer), name, "V100", NULL, 0);
}

/* At each of its pieces, another thing happens. */
enum happening { NODE_LOSES, NODE_FAILS, NODE_RECOVERS, NODE_COMES, KIND_COMES, HAPPENINGS };

static void happen(struct bench *bench, enum happening what)
{
    const uint32_t gpus[] = {[NODE_LOSES] = 2, GPUS, GPUS, GPUS, 3};
    const uint32_t nodes[] = {[NODE_LOSES] = 1, 2, 5, NODES, NODES};
    bench_node(bench, nodes[what], CPUS, gpus[what], what != NODE_FAILS);
}

static void what_happens_meanwhile_counts(void **state)
{
    (void)state;
    struct bench probe;
    cluster_init(&probe, true);
    const uint32_t pieces = make_all(&probe);
    bench_release(&probe);
    for (uint32_t at = 0; at <= pieces; at++)
        for (enum happening what = 0; what < HAPPENINGS; what++) {
            struct bench bench;
            cluster_init(&bench, true);
            for (uint32_t i = 0; i < at; i++)
                tidy(&bench);
            happen(&bench, what);
            make_all(&bench);
            if (what == NODE_LOSES || what == KIND_COMES) { /* cells without it, for one question */
                ask(&bench, "first", 1, 1);
                make_all(&bench);
            }
            assert_true(is_tidy(&bench));
            assert_int_equal(free_gpus(&bench, NODES), what == NODE_COMES   ? GPUS
                                                       : what == KIND_COMES ? 3
                                                                            : 0);
            uint32_t all = 0, most = 0;
            while (ask(&bench, "all", 1, 1).kind == PLACEMENT_BIND) {
                bench.placer->ops->release_group(bench.placer, "all");
                break;
            }
            for (char name[16]; all < 100; all++) { /* as many as there are places */
                snprintf(name, sizeof name, "task%u", all);
                if (ask(&bench, name, 1, 1).kind != PLACEMENT_BIND)
                    break;
            }
            const uint32_t gpu_nodes = NODES * 2 / 3;
            most = (gpu_nodes - 1) * GPUS; /* the sixth is not healthy */
            const int32_t more[] = {
                [NODE_LOSES] = -2, -GPUS, GPUS, GPUS, 3,
            };
            most = (uint32_t)((int32_t)most + more[what]);
            most -= what == NODE_LOSES || what == KIND_COMES; /* the first one has one */
            assert_int_equal(all, most);
            bench_release(&bench);
        }
}

/* One that has come meanwhile may change before they are whole, before and after it has joined. */
static void a_node_that_joins_may_change(void **state)
{
    (void)state;
    enum { OLD = 40, NEW = 6, BEGUN = 3 };
    bool is_over = false;
    for (uint32_t at = 0; !is_over; at++) {
        struct bench bench;
        cluster_init(&bench, true);
        for (uint32_t i = NODES; i < OLD; i++)
            bench_node(&bench, i, CPUS, GPUS, true);
        for (uint32_t i = 0; i < BEGUN; i++)
            tidy(&bench);
        for (uint32_t i = 0; i < NEW; i++)
            bench_node(&bench, OLD + i, CPUS, GPUS, true);
        for (uint32_t i = 0; i < at; i++)
            tidy(&bench);
        is_over = is_tidy(&bench);
        bench_node(&bench, OLD, CPUS, GPUS / 2, true);
        make_all(&bench);
        ask(&bench, "first", 1, 1); /* cells without it, for one question */
        make_all(&bench);
        bench.placer->ops->release_group(bench.placer, "first");
        make_all(&bench);
        assert_int_equal(free_gpus(&bench, OLD), GPUS / 2);
        for (uint32_t i = 1; i < NEW; i++)
            assert_int_equal(free_gpus(&bench, OLD + i), GPUS);
        bench_release(&bench);
    }
}

/* A leaf gets more CPUs because of nodes that change before they are described: they are not left
 * out. */
static void the_unit_of_cells_may_change(void **state)
{
    (void)state;
    enum { LARGE = HIVED_NODE_LEAVES_MAX, LAST = HIVED_LEAVES_MAX / LARGE, PIECE = 1 << 16 };
    struct bench bench;
    bench_init(&bench, NULL);
    bench.placer->ops->tidy(bench.placer, PIECE);
    for (uint32_t i = 0; i <= LAST; i++)
        bench_node(&bench, i, i + 1 < LAST ? LARGE : 1, 0, true);
    for (uint32_t i = 0; i < 3; i++)
        assert_false(bench.placer->ops->tidy(bench.placer, PIECE));
    for (uint32_t i = LAST - 1; i <= LAST; i++)
        bench_node(&bench, i, LARGE, 0, true);
    for (uint32_t i = 0; i < 2; i++) {
        assert_false(is_tidy(&bench));
        while (!bench.placer->ops->tidy(bench.placer, PIECE))
            ;
        const struct placement_request request = bench_ask(&bench, "g", 1, 0, 1);
        struct placement_result result;
        struct err err;
        assert_int_equal(
            bench.placer->ops->place(bench.placer, &request, &bench.arena, &result, &err), 0);
        assert_int_equal(result.kind, PLACEMENT_BIND);
    }
    assert_true(is_tidy(&bench));
    char last[16];
    snprintf(last, sizeof last, "n%u", LAST);
    assert_int_equal(hived_node_free(placer_hived_state(bench.placer), last, "CPU2-2048M", NULL, 0),
                     LARGE / 2);
    bench.placer->ops->free(bench.placer); /* without a check of them all */
    arena_release(&bench.arena);
}

/* A kind of GPUs has come, the cells of which are not made yet. */
static void cells_of_before_refuse_nobody(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench, NULL);
    tidy(&bench);
    for (uint32_t i = 0; i < NODES; i++)
        bench_node(&bench, i, CPUS, 0, true);
    make_all(&bench);
    struct placement_request request = bench_ask(&bench, "g", 1, 1, 1);
    struct placement_result result;
    struct err err = {0};
    request.is_check = true;
    assert_int_equal(bench.placer->ops->place(bench.placer, &request, &bench.arena, &result, &err),
                     ERR_NOT_FOUND);
    bench_node(&bench, NODES, CPUS, GPUS, true);
    result = bench_place(&bench, &request, false);
    assert_int_equal(result.kind, PLACEMENT_WAIT);
    assert_false(result.is_never);
    request.virtual_cluster = "none";
    assert_int_equal(bench.placer->ops->place(bench.placer, &request, &bench.arena, &result, &err),
                     ERR_NOT_FOUND);
    request.virtual_cluster = "default";
    make_all(&bench);
    assert_int_equal(bench_place(&bench, &request, false).kind, PLACEMENT_BIND);
    request.is_check = false;
    assert_int_equal(bench_place(&bench, &request, true).kind, PLACEMENT_BIND);
    bench_release(&bench);
}

/* What runs is known to the new cells. */
static void what_runs_goes_on(void **state)
{
    (void)state;
    struct bench bench;
    cluster_init(&bench, true);
    make_all(&bench);
    struct placement_result result = ask(&bench, "g", 6, 2);
    assert_int_equal(result.kind, PLACEMENT_BIND);
    bench_node(&bench, NODES, CPUS, 3, true);
    assert_false(is_tidy(&bench));
    const uint32_t pieces = make_all(&bench) / 2;
    for (size_t i = 0; i < 6; i++)
        assert_in_range(free_gpus(&bench, result.slots[i].node.v), 0, GPUS - 2);
    bench_node(&bench, NODES, CPUS, 2, true);
    for (uint32_t i = 0; i < pieces; i++)
        tidy(&bench);
    bench.placer->ops->release_slot(bench.placer, "g", 0); /* one ends while they are made */
    make_all(&bench);
    for (size_t i = 1; i < 6; i++)
        bench.placer->ops->release_slot(bench.placer, "g", i);
    make_all(&bench);
    for (uint32_t i = 0; i < NODES; i++)
        assert_int_equal(free_gpus(&bench, i), i % 3 ? GPUS : 0);
    bench_release(&bench);
}

/* At any piece, also when a node has changed since it was described. */
static void a_copy_goes_on(void **state)
{
    (void)state;
    cleanup_buf struct buf first = BUF_INIT, second = BUF_INIT;
    bool is_over = false;
    for (uint32_t at = 0; !is_over; at++) {
        struct bench bench;
        cluster_init(&bench, true);
        for (uint32_t i = 0; i < at; i++)
            tidy(&bench);
        is_over = is_tidy(&bench);
        if (at % 2)
            bench_node(&bench, 1, CPUS, 2, true);
        struct bench copy = {.placer = bench.placer->ops->copy(bench.placer)};
        arena_init(&copy.arena);
        assert_int_equal(make_all(&copy), make_all(&bench));
        cluster_write(&bench, &first);
        cluster_write(&copy, &second);
        assert_string_equal(buf_cstr(&first), buf_cstr(&second));
        assert_int_equal(ask(&copy, "g", 1, 1).slots[0].node.v,
                         ask(&bench, "g", 1, 1).slots[0].node.v);
        bench_release(&copy);
        bench_release(&bench);
    }
}

/* Whoever has all the time takes it. */
static void it_may_be_one_piece_after_all(void **state)
{
    (void)state;
    struct bench bench;
    cluster_init(&bench, true);
    tidy(&bench);
    tidy(&bench);
    bench.placer->ops->tidy(bench.placer, 1 << 20);
    assert_int_equal(ask(&bench, "g", 1, 1).kind, PLACEMENT_BIND);
    bench_release(&bench);
}

/* CPU leaves that mean something else: what has begun to run since then needs another placer. */
static void leaves_that_change_their_meaning_are_not_taken(void **state)
{
    (void)state;
    struct bench bench;
    cluster_init(&bench, true);
    make_all(&bench);
    bench_node(&bench, 0, CPUS, 1, true);
    bench_node(&bench, 3, 1000, 0, true);
    for (uint32_t i = 0; !is_tidy(&bench); i++) { /* again and again: cells without it are served */
        tidy(&bench);
        bench_node(&bench, 3, 1000 + i % 2, 0, true);
    }
    assert_int_equal(ask(&bench, "g", 1, 0).kind, PLACEMENT_BIND);
    assert_false(is_tidy(&bench));
    for (uint32_t i = 0; i < 100 * NODES && !bench.placer->ops->is_outdated(bench.placer); i++)
        tidy(&bench);
    assert_true(bench.placer->ops->is_outdated(bench.placer));
    bench_release(&bench);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pieces_make_what_is_made_at_once),
    cmocka_unit_test(nothing_is_promised_before_the_first_cells),
    cmocka_unit_test(it_begins_when_no_more_nodes_come),
    cmocka_unit_test(what_happens_meanwhile_counts),
    cmocka_unit_test(a_node_that_joins_may_change),
    cmocka_unit_test(the_unit_of_cells_may_change),
    cmocka_unit_test(cells_of_before_refuse_nobody),
    cmocka_unit_test(what_runs_goes_on),
    cmocka_unit_test(a_copy_goes_on),
    cmocka_unit_test(it_may_be_one_piece_after_all),
    cmocka_unit_test(leaves_that_change_their_meaning_are_not_taken),
};
UNIT_FILE(tests, NULL, NULL);
