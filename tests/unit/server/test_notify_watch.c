/* Messages about changes of jobs: from the change to a mail server or a webhook, over restarts, and
 * while those are away.
 *
 * Covers: src/server/notices.c */
#include "../notify/peer.h"
#include "unit.h"
#include "world.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "server/state.h"
#include "sys/log.h"

static struct peer mail, hook;
static char extra[1200];

#define ASKS_ALL                                                                                   \
    "extras: {jobStatusChangeNotification: {running: true, succeeded: true, stopped: true, "       \
    "failed: true, retried: true}}\n"

static int setup_told(void **state, const char *engine)
{
    peer_begin(&mail, PEER_SMTP);
    peer_begin(&hook, PEER_HTTP);
    snprintf(extra, sizeof extra,
             "notifications: {portalUrl: 'https://skep.example.org/', smtp: {url: '%s', from: "
             "skep@example.org, startTls: false}, webhooks: [{name: ops, url: '%s', events: "
             "[failed]}]}\n",
             mail.url, hook.url);
    const int code = setup_with(state, engine, extra);
    assert_int_equal(change(*state, (struct store_change){.kind = CHANGE_USER_SET,
                                                          .user = {.name = "admin",
                                                                   .email = "admin@example.org"},
                                                          .fields = USER_EMAIL}),
                     0);
    return code;
}

static int setup_short(void **state)
{
    return setup_told(state, "runMilliseconds: 30");
}

static int setup_failing(void **state)
{
    return setup_told(state, "runMilliseconds: 30, exitCode: 3");
}

/* Of which the webhook alone is told. */
static int setup_failing_quiet(void **state)
{
    const int code = setup_failing(state);
    assert_int_equal(change(*state, (struct store_change){.kind = CHANGE_USER_SET,
                                                          .user = {.name = "admin", .email = ""},
                                                          .fields = USER_EMAIL}),
                     0);
    return code;
}

static int setup_long(void **state)
{
    return setup_told(state, "runMilliseconds: 86400000");
}

static int teardown_told(void **state)
{
    const int code = teardown(state);
    peer_end(&mail);
    peer_end(&hook);
    return code;
}

/* How many mails say this, of those that have come. */
static size_t mails_of(const char *text)
{
    size_t found = 0;
    pthread_mutex_lock(&mail.lock);
    for (size_t i = 0; i < mail.count; i++)
        for (const char *at = mail.items[i]->text.at; (at = strstr(at, text)); at++)
            found++;
    pthread_mutex_unlock(&mail.lock);
    return found;
}

/* Changes of one moment may be one mail or two. */
static void mails_await(const char *text)
{
    for (size_t count = 1; mails_of(text) == 0; count++)
        assert_non_null(peer_await(&mail, count));
}

static uint64_t waiting(struct world *world)
{
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct store_notices rows;
    assert_int_equal(store_notices(reader, 1000, &world->arena, &rows, &world->err), 0);
    world->service->reader_put(world->service->context, reader);
    return rows.count;
}

/* The removal of rows is a commit of which nobody is told. */
static void waiting_await(struct world *world, uint64_t count)
{
    while (waiting(world) != count)
        sched_yield();
}

static void a_job_that_succeeds_is_told_of(void **state)
{
    struct world *world = *state;
    struct job_id job;
    assert_int_equal(submit(world, job_text(world, "train", ASKS_ALL), &job), 0);
    assert_int_equal(world->problems.count, 0);
    mails_await("State:            SUCCEEDED");
    mails_await("State:            RUNNING");
    assert_string_equal(mail.items[0]->recipient, "<admin@example.org>");
    assert_int_equal(mails_of("Page:             https://skep.example.org/jobs/admin~train"), 2);
    waiting_await(world, 0);
    assert_int_equal(hook.count, 0); /* it is told of failures alone */
    metric_await(world, "skep_notices_sent_total", 2);
}

static void a_job_that_asks_for_nothing_is_not(void **state)
{
    struct world *world = *state;
    struct job_id job;
    assert_int_equal(submit(world, job_text(world, "quiet", ""), &job), 0);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    assert_int_equal(submit(world,
                            job_text(world, "ends",
                                     "extras: {jobStatusChangeNotification: {succeeded: "
                                     "true}}\n"),
                            &job),
                     0);
    mails_await("admin~ends succeeded");
    assert_int_equal(mail.count, 1);
}

static void a_webhook_hears_of_all_jobs(void **state)
{
    struct world *world = *state;
    struct job_id job;
    assert_int_equal(submit(world, job_text(world, "quiet", ""), &job), 0);
    const struct peer_message *message = peer_await(&hook, 1);
    assert_non_null(message);
    assert_non_null(strstr(message->text.at, "\"job_name\":\"admin~quiet\""));
    assert_non_null(strstr(message->text.at, "\"state\":\"FAILED\""));
    assert_non_null(strstr(message->text.at, "\"code\":\"3\""));
    waiting_await(world, 0);
    assert_int_equal(mail.count, 0);
}

static void a_retry_says_why(void **state)
{
    struct world *world = *state;
    struct job_id job;
    assert_int_equal(submit(world, job_text(world, "again", "jobRetryCount: 1\n" ASKS_ALL), &job),
                     0);
    mails_await("State:            FAILED");
    mails_await("Attempt:          1, which begins now");
    mails_await("Exit code:        3 (");
    assert_int_equal(mails_of("State:            RETRIED"), 1);
    assert_int_equal(mails_of("State:            RUNNING"), 1);
    waiting_await(world, 0);
}

static void a_failure_says_what_is_kept(void **state)
{
    struct world *world = *state;
    struct job_id job;
    assert_int_equal(submit(world,
                            job_text(world, "kept",
                                     "extras: {debug: true, jobStatusChangeNotification: "
                                     "{failed: true}}\n"),
                            &job),
                     0);
    mails_await("admin~kept failed");
    assert_int_equal(mails_of("are kept for debugging"), 1);
    assert_int_equal(submit(world, job_text(world, "gone", ASKS_ALL), &job), 0);
    mails_await("admin~gone failed");
    assert_int_equal(mails_of("are kept for debugging"), 1);
}

/* What waits is in the store: a server that starts again sends it, and what comes later as well,
 * of a job that it did not take itself. */
static void a_restart_loses_nothing(void **state)
{
    struct world *world = *state;
    struct job_id job;
    peer_answers(&mail, 421, 0, 0, 0, 0);
    assert_int_equal(submit(world, job_text(world, "train", ASKS_ALL), &job), 0);
    wait_until_tasks_run(world, job);
    waiting_await(world, 1);
    world_stop(world);
    peer_answers(&mail, 0, 0, 0, 0, 0);
    world_start(world);
    mails_await("State:            RUNNING");
    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    mails_await("State:            STOPPED");
    assert_int_equal(mails_of("State:            RUNNING"), 1);
    waiting_await(world, 0);
}

/* Its row says what is told of it, so its file, which may be large, is not read again; only one
 * that an older version has taken is. */
static void after_a_restart_the_row_says_what_is_told(void **state)
{
    static const char *const changes[] = {"UPDATE job_sources SET spec = x'00'",
                                          "UPDATE jobs SET notices = -1"};
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        struct world *world = *state;
        struct job_id job;
        char text[60];
        const char *name = arena_format(&world->arena, "train%zu", i);
        assert_int_equal(submit(world, job_text(world, name, ASKS_ALL), &job), 0);
        snprintf(text, sizeof text, "%s is running", name);
        mails_await(text);
        waiting_await(world, 0);
        world_stop(world);
        assert_int_equal(sql(world, changes[i]), 0);
        const char *engine = world->engine;
        world->engine = "nodes: 1, cpu: 1"; /* its tasks have no room to start again in */
        world_start(world);
        assert_int_equal(act(world, SERVICE_STOP, job), 0);
        snprintf(text, sizeof text, "%s was stopped", name);
        mails_await(text);
        waiting_await(world, 0);
        world_stop(world);
        world->engine = engine;
        world_start(world);
    }
}

/* A job whose first mail is on its way to a server that does not answer before mails_release. */
static struct job_id submit_held(struct world *world)
{
    struct job_id job;
    pthread_mutex_lock(&mail.lock);
    mail.holds = true;
    pthread_mutex_unlock(&mail.lock);
    assert_int_equal(submit(world, job_text(world, "train", ASKS_ALL), &job), 0);
    pthread_mutex_lock(&mail.lock);
    while (mail.holding == 0)
        pthread_cond_wait(&mail.news, &mail.lock);
    pthread_mutex_unlock(&mail.lock);
    return job;
}

static void mails_release(void)
{
    pthread_mutex_lock(&mail.lock);
    mail.holds = false;
    pthread_cond_broadcast(&mail.news);
    pthread_mutex_unlock(&mail.lock);
}

/* That it was is remembered until it can be stored. */
static void a_message_on_a_full_disk_is_sent_once(void **state)
{
    struct world *world = *state;
    struct rlimit before;
    submit_held(world);
    before = disk_fill();
    mails_release();
    mails_await("State:            RUNNING");
    metric_await(world, "skep_facts_kept", 1);
    disk_empty(before);
    waiting_await(world, 0);
    log_to(2);
    assert_int_equal(mails_of("State:            RUNNING"), 1);
}

/* Killed after the message was sent, and before that could be stored: it is sent again, the same.
 */
static void a_message_is_the_same_the_second_time(void **state)
{
    struct world *world = *state;
    struct job_id job;
    job = submit_held(world);
    world_stop(world); /* gives up the mail that is under way */
    mails_release();
    world_start(world);
    mails_await("State:            RUNNING");
    char id[100];
    snprintf(id, sizeof id, "Message-ID: <skep.%u.0.running.", job.v);
    assert_int_equal(mails_of(id), 1);
    waiting_await(world, 0);
}

static void who_refuses_is_not_asked_again(void **state)
{
    struct world *world = *state;
    struct job_id job;
    peer_answers(&mail, 0, 0, 550, 0, 0);
    assert_int_equal(submit(world, job_text(world, "train", ASKS_ALL), &job), 0);
    wait_until_tasks_run(world, job);
    metric_await(world, "skep_notices_dropped_total", 1);
    waiting_await(world, 0);
    assert_int_equal(metric(world, "skep_notice_targets_away"), 0);
}

/* A second user, for whom a message waits as well. */
static void bob_add(struct world *world)
{
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_USER_ADD,
                                                         .user = {.name = "bob",
                                                                  .email = "bob@example.org",
                                                                  .extension_json = "{}",
                                                                  .password_hash = "x"}}),
                     0);
}

static void submit_as(struct world *world, const char *user, const char *name)
{
    const char *before = world->user;
    struct job_id job;
    world->user = user;
    assert_int_equal(submit(world, job_text(world, name, ASKS_ALL), &job), 0);
    world->user = before;
}

/* The mail server fails for one of two users, whose mail comes first. */
static void one_recipient_holds_up_nobody(void **state)
{
    struct world *world = *state;
    bob_add(world);
    peer_answers(&mail, 0, 0, 421, 0, 0);
    mail.only = "admin@";
    submit_as(world, "admin", "first");
    metric_await(world, "skep_notices_waiting", 1);
    submit_as(world, "bob", "second");
    mails_await("bob~second is running");
    assert_int_equal(mails_of("admin~first"), 0);
    waiting_await(world, 1);
    assert_int_equal(metric(world, "skep_notice_targets_away"), 0);
    server_reload(world->server, config_of(world, extra)); /* ends the pauses */
    submit_as(world, "bob", "third");
    mails_await("bob~third is running");
    waiting_await(world, 1);
    assert_int_equal(metric(world, "skep_notice_targets_away"), 0);
}

/* When it fails for a second one, it is the server. */
static void two_recipients_are_the_server(void **state)
{
    struct world *world = *state;
    bob_add(world);
    peer_answers(&mail, 0, 0, 421, 0, 0);
    submit_as(world, "admin", "first");
    metric_await(world, "skep_notices_waiting", 1);
    assert_int_equal(metric(world, "skep_notice_targets_away"), 0);
    submit_as(world, "bob", "second");
    metric_await(world, "skep_notice_targets_away", 1);
    assert_int_equal(waiting(world), 2);
}

/* A webhook that fails over one body takes the others. The jobs ask for no mail, whose row would be
 * one that waits, too. */
static void one_body_holds_up_nobody(void **state)
{
    struct world *world = *state;
    struct job_id job;
    peer_answers(&hook, 0, 0, 0, 0, 500);
    hook.only = "admin~poison";
    assert_int_equal(submit(world, job_text(world, "poison", ""), &job), 0);
    metric_await(world, "skep_notices_waiting", 1);
    assert_int_equal(submit(world, job_text(world, "fine", ""), &job), 0);
    const struct peer_message *message = peer_await(&hook, 1);
    assert_non_null(message);
    assert_non_null(strstr(message->text.at, "admin~fine"));
    waiting_await(world, 1);
    assert_int_equal(metric(world, "skep_notice_targets_away"), 0);
}

static void who_is_away_is_said(void **state)
{
    struct world *world = *state;
    struct job_id job;
    peer_answers(&mail, 421, 0, 0, 0, 0);
    assert_int_equal(submit(world, job_text(world, "train", ASKS_ALL), &job), 0);
    metric_await(world, "skep_notice_targets_away", 1);
    metric_await(world, "skep_notices_waiting", 1);
    assert_int_equal(waiting(world), 1);
}

static void what_nobody_will_get_is_a_warning(void **state)
{
    struct world *world = *state;
    struct job_id job;
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_USER_SET,
                                                         .user = {.name = "admin", .email = ""},
                                                         .fields = USER_EMAIL}),
                     0);
    assert_int_equal(submit(world, job_text(world, "train", ASKS_ALL), &job), 0);
    assert_int_equal(world->problems.count, 1);
    assert_non_null(strstr(world->problems.items[0].text, "your account has no mail address"));
    assert_int_equal(world->problems.error_count, 0);
    metric_await(world, "skep_notices_dropped_total", 1);
    assert_int_equal(mail.count, 0);
}

static void without_a_target_that_is_a_warning(void **state)
{
    struct world *world = *state;
    struct job_id job;
    assert_int_equal(submit(world, job_text(world, "train", ASKS_ALL), &job), 0);
    assert_int_equal(world->problems.count, 1);
    assert_non_null(strstr(world->problems.items[0].text, "no message can be sent here"));
    wait_until(world, job, PUBLIC_SUCCEEDED);
    assert_int_equal(waiting(world), 0);
}

static void a_reload_brings_another_target(void **state)
{
    struct world *world = *state;
    struct job_id job;
    char more[300];
    assert_int_equal(submit(world, job_text(world, "train", ASKS_ALL), &job), 0);
    mails_await("State:            RUNNING");
    snprintf(more, sizeof more, "notifications: {webhooks: [{name: own, url: '%s'}]}\n", hook.url);
    server_reload(world->server, config_of(world, more));
    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    const struct peer_message *message = peer_await(&hook, 1);
    assert_non_null(message);
    assert_non_null(strstr(message->text.at, "\"state\":\"STOPPED\""));
    assert_int_equal(mails_of("STOPPED"), 0);
}

static void a_trial_shows_whether_mails_arrive(void **state)
{
    struct world *world = *state;
    const struct notify_config *config = &world->server->config->notify;
    assert_int_equal(notify_try(config, TEXT("bob@example.org"), &world->err), 0);
    assert_non_null(peer_await(&mail, 1));
    assert_string_equal(mail.items[0]->recipient, "<bob@example.org>");
    assert_int_equal(notify_try(config, TEXT(""), &world->err), ERR_INVALID);
    peer_answers(&mail, 0, 0, 550, 0, 0);
    assert_int_equal(notify_try(config, TEXT("bob@example.org"), &world->err), ERR_UNAVAILABLE);
    assert_non_null(strstr(world->err.text, "550 as the test says"));
    const struct notify_config none = {.has_smtp = false};
    assert_int_equal(notify_try(&none, TEXT("bob@example.org"), &world->err), ERR_UNSUPPORTED);
}

#define TOLD(test, begin) cmocka_unit_test_setup_teardown(test, begin, teardown_told)
static const struct CMUnitTest tests[] = {
    TOLD(a_job_that_succeeds_is_told_of, setup_short),
    TOLD(a_job_that_asks_for_nothing_is_not, setup_short),
    TOLD(a_webhook_hears_of_all_jobs, setup_failing),
    TOLD(a_retry_says_why, setup_failing),
    TOLD(a_failure_says_what_is_kept, setup_failing),
    TOLD(a_restart_loses_nothing, setup_long),
    TOLD(after_a_restart_the_row_says_what_is_told, setup_long),
    TOLD(a_message_is_the_same_the_second_time, setup_long),
    TOLD(a_message_on_a_full_disk_is_sent_once, setup_long),
    TOLD(who_refuses_is_not_asked_again, setup_long),
    TOLD(who_is_away_is_said, setup_long),
    TOLD(one_recipient_holds_up_nobody, setup_long),
    TOLD(two_recipients_are_the_server, setup_long),
    TOLD(one_body_holds_up_nobody, setup_failing_quiet),
    TOLD(what_nobody_will_get_is_a_warning, setup_long),
    TOLD(a_reload_brings_another_target, setup_long),
    TOLD(a_trial_shows_whether_mails_arrive, setup_long),
    cmocka_unit_test_setup_teardown(without_a_target_that_is_a_warning, setup, teardown),
};
UNIT_FILE(tests, world_begin, NULL);
