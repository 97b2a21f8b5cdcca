#include "rounds.h"
#include "faults.h"
#include "unit.h"

#include <sched.h>
#include <string.h>

#include "base/err.h"
#include "engine/fake/fake.h"
#include "server/state.h"
#include "sys/clock.h"
#include "sys/log.h"

int setup_quiet(void **state)
{
    log_to(-1);
    int code =
        setup_with(state, "runMilliseconds: 600000", "scheduling: {finishedKeepSeconds: 0}\n");
    metric_await(*state, "skep_nodes", 1);
    return code;
}

void ask_act(struct world *world, struct wait *wait, enum service_action action, struct job_id job)
{
    struct service_reply reply = wait_init(wait);

    assert_int_equal(
        world->service->act(world->service->context, action, "admin", job, reply, &world->err), 0);
}

void ask_submit(struct world *world, struct wait *wait, const char *name)
{
    struct service_reply reply = wait_init(wait);

    assert_int_equal(
        ask_submission(world,
                       (struct service_submission){.source = text_of(job_text(world, name, ""))},
                       reply),
        0);
}

void ask_change(struct world *world, struct wait *wait)
{
    struct store_change change = {.kind = CHANGE_SETTING, .setting = {"test", TEXT("x")}};
    struct service_reply reply = wait_init(wait);

    assert_int_equal(world->service->change(world->service->context, &change, reply, &world->err),
                     0);
}

void round_begin(struct world *world, struct wait *first)
{
    commits_hold();
    ask_change(world, first);
    commits_await_held();
}

void round_end(struct wait *first)
{
    commits_release();
    assert_int_equal(wait_for(first), 0);
}

bool is_writable(struct world *world)
{
    struct service_check checks[SERVICE_CHECKS_MAX];

    world->service->ready(world->service->context, checks);
    return checks[0].is_ok;
}

struct job_id stopped_job(struct world *world, const char *name)
{
    struct job_id job;

    assert_int_equal(submit(world, job_text(world, name, ""), &job), 0);
    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    wait_until(world, job, PUBLIC_STOPPED);
    return job;
}

struct job_id running_job(struct world *world, const char *name)
{
    struct job_id job;

    assert_int_equal(submit(world, job_text(world, name, ""), &job), 0);
    wait_until_tasks_run(world, job);
    return job;
}

void containers_finish(struct world *world, struct job_id job)
{
    const struct store_tasks tasks = tasks_of(world, job);

    for (size_t i = 0; i < tasks.count; i++)
        assert_int_equal(
            engine_fake_finish(world_engine(world), tasks.items[i].attempt, &world->err), 0);
}

void containers_await_none(struct world *world)
{
    while (engine_fake_container_count(world_engine(world)) > 0)
        sched_yield();
}

void settle(struct world *world)
{
    struct wait wait;

    /* the first answer may come in the midst of the round that does it, the second only in a later
     * one */
    for (int i = 0; i < 2; i++) {
        ask_change(world, &wait);
        assert_int_equal(wait_for(&wait), 0);
    }
    metric_await(world, "skep_commands_waiting", 0);
}

void tell_end(struct world *world, struct attempt_id attempt, const struct exit_report *exit)
{
    struct engine_sink sink = server_sink(world->server, 0);

    sink.post(
        sink.context,
        &(struct engine_event){
            .kind = ENGINE_EXITED, .attempt = attempt, .exit = exit, .reason = "", .message = ""});
}

static bool is_alerted(struct world *world, const char *name)
{
    struct alert *alerts;
    size_t count;
    assert_int_equal(world->service->alerts(world->service->context, &world->arena, &alerts, &count,
                                            &world->err),
                     0);
    for (size_t i = 0; i < count; i++)
        if (strcmp(alerts[i].name, name) == 0 && !alerts[i].ended_ms)
            return true;
    return false;
}

void alert_await(struct world *world, const char *name, bool stands)
{
    const int64_t end_ms = clock_monotonic_ms() + WAIT_S * 1000;

    while (is_alerted(world, name) != stands) {
        assert_true(clock_monotonic_ms() < end_ms);
        sched_yield();
    }
}

struct store_notices messages(struct world *world)
{
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct store_notices rows;
    assert_int_equal(store_notices(reader, 100, &world->arena, &rows, &world->err), 0);
    world->service->reader_put(world->service->context, reader);
    return rows;
}
