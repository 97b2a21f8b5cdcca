/* While the disk is nearly full, only what frees room, or has happened, takes some.
 *
 * Covers: src/server/admission.c, src/server/service.c */
#include "faults.h"
#include "rounds.h"
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include "base/memory.h"

static int64_t events(struct world *world)
{
    return number(world, "SELECT count(*) FROM event_log");
}

static int64_t audits(struct world *world)
{
    return number(world, "SELECT count(*) FROM audit");
}

static const struct store_audit asked = {.user = "bob", .route = "DELETE /x", .subject = "y"};

/* As the API asks: with a record of it. */
static int ask(struct world *world, enum service_action action, struct job_id job)
{
    struct wait wait;
    struct service_reply reply = wait_init(&wait);

    reply.audit = &asked;
    assert_int_equal(
        world->service->act(world->service->context, action, "bob", job, reply, &world->err), 0);
    return wait_for(&wait);
}

static int ask_changed(struct world *world, struct store_change change)
{
    struct wait wait;
    struct service_reply reply = wait_init(&wait);

    reply.audit = &asked;
    const int code = world->service->change(world->service->context, &change, reply, &world->err);
    return code < 0 ? code : wait_for(&wait);
}

static void what_changes_nothing_takes_no_room(void **state)
{
    struct world *world = *state;
    const struct job_id ended = stopped_job(world, "ended"), runs = running_job(world, "runs");
    const struct job_id last = running_job(world, "last"), unknown = {99};
    const struct {
        enum service_action action;
        struct job_id job;
    } asks[] = {
        {SERVICE_STOP, ended},      {SERVICE_STOP, unknown},  {SERVICE_DELETE, runs},
        {SERVICE_DELETE, unknown},  {SERVICE_RELEASE, ended}, {SERVICE_RELEASE, runs},
        {SERVICE_RELEASE, unknown},
    };

    settle(world);
    disk_short(true);
    const int64_t logged = events(world), noted = audits(world);
    for (int i = 0; i < 3; i++)
        for (size_t k = 0; k < COUNT_OF(asks); k++)
            assert_true(ask(world, asks[k].action, asks[k].job) < 0);
    /* what ends or removes is stored, with its record, once */
    assert_int_equal(ask(world, SERVICE_STOP, runs), 0);
    assert_int_equal(audits(world), noted + 1);
    assert_in_range(events(world), logged + 1, logged + 10); /* the ends of its tasks, too */
    assert_int_equal(ask(world, SERVICE_DELETE, ended), 0);
    assert_int_equal(audits(world), noted + 2);
    for (int i = 0; i < 3; i++) {
        assert_int_not_equal(ask(world, SERVICE_STOP, runs), 0);
        assert_int_not_equal(ask(world, SERVICE_DELETE, ended), 0);
    }
    assert_int_equal(ask(world, SERVICE_STOP, last), 0); /* stored after what was refused before */
    assert_int_equal(audits(world), noted + 3);
    /* as before, when there is room again */
    disk_short(false);
    assert_int_equal(ask(world, SERVICE_STOP, unknown), ERR_NOT_FOUND);
    assert_int_equal(audits(world), noted + 4);
}

static void changes_that_free_nothing_are_refused(void **state)
{
    static const enum store_change_kind kinds[] = {
        CHANGE_TAG_ADD,         CHANGE_USER_ADD,          CHANGE_GROUP_ADD,    CHANGE_GROUP_SET,
        CHANGE_MEMBER_ADD,      CHANGE_SETTING,           CHANGE_QUOTAS,       CHANGE_AUDIT,
        CHANGE_TEMPLATE_ADD,    CHANGE_TEMPLATE_SET,      CHANGE_TEMPLATE_USE, CHANGE_TEMPLATE_STAR,
        CHANGE_TEMPLATE_REVIEW, CHANGE_TEMPLATE_OFFICIAL, CHANGE_REQUEST_ADD,  CHANGE_REQUEST_ACT,
    };
    struct world *world = *state;

    disk_short(true);
    const int64_t noted = audits(world);
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        assert_int_equal(ask_changed(world, (struct store_change){.kind = kinds[i]}),
                         ERR_UNAVAILABLE);
    assert_int_equal(ask_changed(world, (struct store_change){.kind = CHANGE_TOKEN_ADD,
                                                              .token.is_application = true}),
                     ERR_UNAVAILABLE);
    assert_int_equal(audits(world), noted);
}

/* Nothing could be removed without it; again and again, it takes no more room than once. */
static void a_login_takes_no_room_but_its_token(void **state)
{
    struct world *world = *state;
    const struct store_token token = {.id = "t1", .user = "admin", .expires_ms = INT64_MAX};

    disk_short(true);
    const int64_t noted = audits(world);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            ask_changed(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}), 0);
        assert_int_equal(
            ask_changed(world, (struct store_change){.kind = CHANGE_TOKEN_REMOVE, .token = token}),
            0);
    }
    assert_int_equal(
        ask_changed(world, (struct store_change){.kind = CHANGE_TOKEN_REMOVE, .token = token}),
        ERR_NOT_FOUND);
    assert_int_equal(audits(world), noted);
}

static const struct CMUnitTest tests[] = {
    ROUNDS(what_changes_nothing_takes_no_room),
    ROUNDS(changes_that_free_nothing_are_refused),
    ROUNDS(a_login_takes_no_room_but_its_token),
};
UNIT_FILE(tests, world_begin, NULL);
