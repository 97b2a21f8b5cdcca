/* Ends that an engine tells of: what they say of the node. */
#include "faults.h"
#include "rounds.h"
#include "unit.h"
#include "world.h"

#include "store/read.h"

static double blame(struct world *world)
{
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct store_nodes nodes;

    assert_int_equal(store_nodes(reader, &world->arena, &nodes, &world->err), 0);
    world->service->reader_put(world->service->context, reader);
    assert_int_equal(nodes.count, 1);
    return nodes.items[0].blame;
}

static void a_printed_line_blames_no_node(void **state)
{
    struct world *world = *state;
    const struct exit_report printed = {.exit_code = 1,
                                        .is_user_command = true,
                                        .reason = "",
                                        .message = "",
                                        .log_tail = TEXT("GPU is lost\n")};
    struct exit_report measured = printed;
    struct job_id job;

    for (int i = 0; i < 12; i++) {
        job = running_job(world, arena_format(&world->arena, "p%d", i));
        tell_end(world, tasks_of(world, job).items[0].attempt, &printed);
        assert_int_equal(act(world, SERVICE_STOP, job), 0);
    }
    assert_true(blame(world) == 0);
    measured.has_gpu_lost = true;
    job = running_job(world, "measured");
    tell_end(world, tasks_of(world, job).items[0].attempt, &measured);
    settle(world);
    assert_true(blame(world) > 0.9);
}

static const struct CMUnitTest tests[] = {
    ROUNDS(a_printed_line_blames_no_node),
};
UNIT_FILE(tests, world_begin, NULL);
