/* Messages about changes of jobs, as part of a commit. */
#include "faults.h"
#include "rounds.h"
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include "server/state.h"

static void a_message_that_cannot_be_made_hinders_nobody(void **state)
{
    struct world *world = *state;
    world_stop(world);
    world->extra = "notifications: {webhooks: [{name: ops, url: 'http://127.0.0.1:9/', events: "
                   "[stopped]}]}\n";
    world_start(world);
    const struct job_id unknown = running_job(world, "unknown"),
                        later = running_job(world, "later");
    world_stop(world); /* of what was before, the store alone knows now */
    jobs_unreadable(ERR_UNAVAILABLE);
    world_start(world);
    assert_int_equal(act(world, SERVICE_STOP, unknown), 0);
    wait_until(world, unknown, PUBLIC_STOPPED);
    jobs_unreadable(0);
    const struct job_id known = running_job(world, "known");
    jobs_unreadable(ERR_CORRUPT);
    assert_int_equal(act(world, SERVICE_STOP, known), 0);
    wait_until(world, known, PUBLIC_STOPPED);
    jobs_unreadable(0);
    assert_int_equal(act(world, SERVICE_STOP, later), 0);
    wait_until(world, later, PUBLIC_STOPPED);
    const struct store_notices rows = messages(world);
    assert_int_equal(rows.count, 2);
    assert_int_equal(rows.items[0].notice.job.v, known.v);
    assert_int_equal(rows.items[1].notice.job.v, later.v);
    assert_true(atomic_load(&world->server->is_writable));
}

static const struct CMUnitTest tests[] = {
    ROUNDS(a_message_that_cannot_be_made_hinders_nobody),
};
UNIT_FILE(tests, world_begin, NULL);
