/* The server without HTTP: requests in, durable answers out, reloads, and a full disk.
 *
 * Covers: src/server/service.c, src/server/engines.c */
#include "audits.h"
#include "unit.h"
#include "world.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "engine/fake/fake.h"
#include "server/config.h"
#include "server/container.h"
#include "server/server.h"
#include "server/state.h"
#include "store/read.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/log.h"

static void a_job_runs_and_is_there_after_a_restart(void **state)
{
    struct world *world = *state;
    struct store_reader *reader;
    struct store_source source;
    struct stories stories;
    struct job_id job, again;

    assert_int_equal(strlen(world->password), 20); /* a first start */
    assert_int_equal(submit(world, job_text(world, "train", ""), &job), 0);
    assert_int_equal(job.v, 1);
    assert_int_equal(submit(world, job_text(world, "train", ""), &again), ERR_CONFLICT);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    world_stop(world);
    world_start(world);
    assert_string_equal(world->password, "");
    assert_int_equal(shown(world, job), PUBLIC_SUCCEEDED);
    /* the name stays taken, though the core has forgotten the job */
    assert_int_equal(submit(world, job_text(world, "train", ""), &again), ERR_CONFLICT);
    assert_non_null(strstr(world->err.text, "exists"));
    assert_int_equal(submit(world, job_text(world, "train2", ""), &again), 0);
    assert_int_equal(again.v, 2);
    reader = world->service->reader_get(world->service->context, &world->err);
    assert_non_null(reader);
    assert_int_equal(store_job_source(reader, job, &world->arena, &source, &world->err), 0);
    assert_int_equal(text_find(source.source, TEXT("topsecret")), SIZE_MAX);
    assert_int_equal(text_find(source.sealed, TEXT("topsecret")), SIZE_MAX);
    assert_true(source.sealed.length > 0);
    assert_int_equal(store_stories(reader, &(struct story_filter){.job = job, .is_warning = -1},
                                   true, &world->arena, &stories, &world->err),
                     0);
    assert_true(stories.count >= 3);
    world->service->reader_put(world->service->context, reader);
    wait_until(world, again, PUBLIC_SUCCEEDED);
}

static void wrong_files_and_forbidden_clusters_are_refused(void **state)
{
    struct world *world = *state;
    const char *const vc1 = "vc1", *const vc3 = "vc3";
    struct store_user bob = {.name = "bob",
                             .password_hash = "",
                             .email = "",
                             .is_admin = false,
                             .virtual_clusters = {&vc1, 1},
                             .extension_json = "{}",
                             .created_ms = 5};
    struct job_id job;

    /* a policy for which virtual clusters are names alone */
    world_stop(world);
    world->extra = "scheduling: {policy: first-fit}\n";
    world_start(world);
    assert_int_equal(submit(world, "protocolVersion: 2\nname: x\n", &job), ERR_INVALID);
    assert_true(world->problems.error_count > 0);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = bob}), 0);
    world->user = "bob";
    assert_int_equal(submit(world, job_text(world, "a", "defaults: {virtualCluster: vc2}\n"), &job),
                     ERR_FORBIDDEN);
    assert_string_equal(world->err.path, "defaults.virtualCluster");
    assert_int_equal(submit(world, job_text(world, "a", "defaults: {virtualCluster: vc1}\n"), &job),
                     0);
    /* a group gives its members what it was granted */
    struct store_group team = {.name = "team", .description = "", .virtual_clusters = {&vc3, 1}};
    struct store_member in_team = {.name = "team", .is_admin = false};
    assert_int_equal(submit(world, job_text(world, "b", "defaults: {virtualCluster: vc3}\n"), &job),
                     ERR_FORBIDDEN);
    bob.groups = (struct store_members){&in_team, 1};
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_USER_SET, .user = bob}),
                     ERR_NOT_FOUND);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_GROUP_ADD, .group = team}),
                     0);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_USER_SET, .user = bob}), 0);
    assert_int_equal(submit(world, job_text(world, "b", "defaults: {virtualCluster: vc3}\n"), &job),
                     0);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_GROUP_REMOVE,
                                                         .group = {.name = "team"}}),
                     0);
    assert_int_equal(submit(world, job_text(world, "c", "defaults: {virtualCluster: vc3}\n"), &job),
                     ERR_FORBIDDEN);
    world->user = "nobody";
    assert_int_equal(submit(world, job_text(world, "a", "defaults: {virtualCluster: vc1}\n"), &job),
                     ERR_NOT_FOUND);
}

/* The keys of the user's profile go to his tasks, one a line. */
static void keys_of_the_profile_are_lines(void **state)
{
    struct world *world = *state;
    struct launch_job launch;
    struct job_id job;
    struct store_user bob = {.name = "bob",
                             .password_hash = "",
                             .email = "",
                             .is_admin = true,
                             .extension_json = "{\"sshKeys\":[{\"title\":\"one\",\"value\":"
                                               "\" ssh-ed25519 AAAA bob \\n\"},{\"value\":7},"
                                               "{\"value\":\"ssh-rsa BBBB\"}]}",
                             .created_ms = 5};

    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = bob}), 0);
    world->user = "bob";
    assert_int_equal(submit(world, job_text(world, "keys", ""), &job), 0);
    struct store_reader *rows = world->service->reader_get(world->service->context, &world->err);
    assert_int_equal(launch_job_load(rows, job, &(struct launch_places){0}, &launch, &world->err),
                     0);
    assert_string_equal(launch.user_keys, "ssh-ed25519 AAAA bob\nssh-rsa BBBB\n");
    launch_job_release(&launch);
    world->service->reader_put(world->service->context, rows);
}

static void jobs_are_stopped_and_deleted(void **state)
{
    struct world *world = *state;
    struct job_id job;

    const char *quick = world->engine;

    world_stop(world);
    world->extra = "scheduling: {finishedKeepSeconds: 0}\n";
    world->engine = "runMilliseconds: 600000";
    world_start(world);
    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    assert_int_equal(act(world, SERVICE_DELETE, job), ERR_CONFLICT); /* it lives */
    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    wait_until(world, job, PUBLIC_STOPPED);
    world_stop(world);
    world->engine = quick;
    world_start(world);
    assert_int_equal(act(world, SERVICE_START, job), 0);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    assert_int_equal(act(world, SERVICE_DELETE, job), 0);
    assert_int_equal(act(world, SERVICE_DELETE, job), ERR_NOT_FOUND);
    assert_int_equal(act(world, SERVICE_START, job), ERR_NOT_FOUND);
    assert_int_equal(act(world, SERVICE_STOP, (struct job_id){99}), ERR_NOT_FOUND);
}

static void tags_users_and_settings_change_durably(void **state)
{
    struct world *world = *state;
    struct job_id job;
    struct store_user user = {.name = "bob",
                              .password_hash = "",
                              .email = "",
                              .is_admin = false,
                              .virtual_clusters = {0},
                              .extension_json = "{}",
                              .created_ms = 5};

    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    assert_int_equal(
        change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {job, "red"}}), 0);
    assert_int_equal(
        change(world, (struct store_change){.kind = CHANGE_TAG_REMOVE, .tag = {job, "blue"}}),
        ERR_NOT_FOUND);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = user}),
                     0);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = user}),
                     ERR_CONFLICT);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_USER_ADD,
                                                         .user = {.name = "admin",
                                                                  .password_hash = "",
                                                                  .email = "",
                                                                  .is_admin = true,
                                                                  .virtual_clusters = {0},
                                                                  .extension_json = "{}",
                                                                  .created_ms = 5}}),
                     ERR_CONFLICT); /* the first start has made it */
}

struct told {
    struct job_id job;
    int (*act)(struct world *world, struct job_id job);
    bool is_done;
};

/* The first time it acts, and is called again when who watches was told. */
static bool is_told(struct world *world, const void *what)
{
    struct told *told = *(struct told *const *)what;
    if (told->is_done)
        return true;
    assert_int_equal(told->act(world, told->job), 0);
    told->is_done = true;
    return false;
}

static int node_cordon(struct world *world, struct job_id job)
{
    (void)job;
    struct wait wait;
    struct service_reply reply = wait_init(&wait);
    int code = world->service->node_act(world->service->context, SERVICE_NODE_CORDON, "admin",
                                        "fake0", TEXT(""), reply, &world->err);
    return code < 0 ? code : wait_for(&wait);
}

static int tag_add(struct world *world, struct job_id job)
{
    return change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {job, "red"}});
}

/* A node, or a tag, that changes while no job does. */
static void who_watches_is_told_of_nodes_and_tags(void **state)
{
    struct world *world = *state;
    struct told told = {.act = tag_add};
    struct told *const what = &told;
    assert_int_equal(submit(world, job_text(world, "a", ""), &told.job), 0);
    wait_until(world, told.job, PUBLIC_SUCCEEDED);
    commit_await(world, is_told, &what);
    told.act = node_cordon;
    told.is_done = false;
    commit_await(world, is_told, &what);
}

static _Atomic bool is_revoked;
static const char *_Atomic revoked_name;

static void on_commit(void *context)
{
    (void)context;
}

static void on_revoked(void *context, const char *user)
{
    (void)context;
    assert_string_equal(user, revoked_name);
    is_revoked = true;
}

/* An adoption ends the tokens of the account, so what was opened by one is told. */
static void who_watches_is_told_when_an_identity_takes_an_account(void **state)
{
    struct world *world = *state;
    struct service_watch watch = {.notify = on_commit, .revoked = on_revoked};
    struct store_user bob = {
        .name = "bob", .password_hash = "", .email = "", .extension_json = "{}", .identity = ""};
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = bob}), 0);
    bob.identity = "idp bob";
    is_revoked = false;
    revoked_name = "bob";
    world->service->watch(world->service->context, &watch);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_USER_SET,
                                                         .user = bob,
                                                         .fields = USER_IDENTITY}),
                     0);
    world->service->unwatch(world->service->context, &watch);
    assert_true(is_revoked);
}

/* Whoever is an administrator, by themselves or by a group, may be one no more. */
static void who_watches_is_told_of_lost_rights(void **state)
{
    const struct store_user bob = {
        .name = "bob", .password_hash = "", .email = "", .extension_json = "{}", .identity = ""};
    const struct store_group staff = {
        .name = "staff", .description = "", .external_name = "", .extension_json = "{}"};
    const struct {
        struct store_change change;
        const char *told; /* NULL: nobody */
    } cases[] = {
        {{.kind = CHANGE_USER_SET, .user = bob, .fields = USER_EMAIL}, NULL},
        {{.kind = CHANGE_USER_SET, .user = bob, .fields = USER_ADMIN}, "bob"},
        {{.kind = CHANGE_USER_SET, .user = bob, .fields = USER_GROUPS}, "bob"},
        {{.kind = CHANGE_MEMBER_ADD, .member = {.user = "bob", .group = "staff"}}, NULL},
        {{.kind = CHANGE_MEMBER_REMOVE, .member = {.user = "bob", .group = "staff"}}, "bob"},
        {{.kind = CHANGE_GROUP_SET, .group = staff, .fields = GROUP_DESCRIPTION}, NULL},
        {{.kind = CHANGE_GROUP_SET, .group = staff, .fields = GROUP_ADMIN}, ""},
        {{.kind = CHANGE_GROUP_SET, .group = staff}, ""},
        {{.kind = CHANGE_GROUP_REMOVE, .group = {.name = "staff"}}, ""},
    };
    struct world *world = *state;
    struct service_watch watch = {.notify = on_commit, .revoked = on_revoked};
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = bob}), 0);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_GROUP_ADD, .group = staff}),
                     0);
    world->service->watch(world->service->context, &watch);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        is_revoked = false;
        revoked_name = cases[i].told ? cases[i].told : "nobody";
        assert_int_equal(change(world, cases[i].change), 0);
        assert_int_equal(is_revoked, cases[i].told != NULL);
    }
    world->service->unwatch(world->service->context, &watch);
}

/* Only where folders bear users' names a removed user's name is more than a name. */
static void a_removed_users_name_is_free_without_folders_of_users(void **state)
{
    struct world *world = *state;
    const struct store_user bob = {
        .name = "bob", .password_hash = "", .email = "", .extension_json = "{}", .identity = ""};
    const struct store_change add = {.kind = CHANGE_USER_ADD, .user = bob},
                              gone = {.kind = CHANGE_USER_REMOVE, .user = bob};
    assert_int_equal(change(world, add), 0);
    assert_int_equal(change(world, gone), 0);
    assert_int_equal(change(world, add), 0);
    assert_int_equal(change(world, gone), 0);
    world_stop(world);
    world->extra = "storages: [{name: home, directory: /srv, share: false}]\n";
    world_start(world);
    assert_int_equal(change(world, add), ERR_CONFLICT);
    struct store_change again = add;
    again.reuses_name = true;
    assert_int_equal(change(world, again), 0);
}

static void a_second_server_is_refused(void **state)
{
    struct world *world = *state;
    struct world other = {.extra = "", .engine = "nodes: 1"};
    pid_t child = fork();
    int status;

    if (child == 0) { /* the lock is one process's own */
        strcpy(other.directory, world->directory);
        _exit(world_try(&other) == ERR_CONFLICT && strstr(other.err.text, "in use") ? 0 : 1);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

static void a_reload_takes_effect(void **state)
{
    struct world *world = *state;
    struct server_config *config;
    struct buf report = BUF_INIT, keys = BUF_INIT;
    char path[100];
    struct job_id job;

    snprintf(path, sizeof path, "%s/new.yaml", world->directory);
    assert_int_equal(file_write(path,
                                TEXT("engine: {kind: fake}\nscheduling: {finishedKeepSeconds: 7}\n"
                                     "api: {listen: \"127.0.0.1:1\"}\n"),
                                0600, &world->err),
                     0);
    assert_int_equal(server_config_read(path, &config, &report, &world->err), 0);
    assert_int_equal(config->core.finished_keep_s, 7);
    server_reload(world->server, config);
    assert_int_equal(submit(world, job_text(world, "after", ""), &job), 0);
    buf_release(&report);
    buf_release(&keys);
}

/* The containers of a job of which all tasks run end now. */
static size_t containers_finish(struct world *world, struct job_id job)
{
    const struct store_tasks tasks = tasks_of(world, job);

    for (size_t i = 0; i < tasks.count; i++)
        assert_int_equal(
            engine_fake_finish(world_engine(world), tasks.items[i].attempt, &world->err), 0);
    return tasks.count;
}

/* They end, and nobody can write it down. */
static void containers_finish_unwritten(struct world *world, struct job_id job)
{
    metric_await(world, "skep_facts_kept", containers_finish(world, job));
}

static void a_full_disk_refuses_requests_and_loses_no_fact(void **state)
{
    struct world *world = *state;
    struct service_check checks[SERVICE_CHECKS_MAX];
    struct rlimit before;
    struct job_id job, refused;

    world_stop(world);
    world->engine = "runMilliseconds: 600000";
    world_start(world);
    assert_int_equal(submit(world, job_text(world, "runs", ""), &job), 0);
    wait_until_tasks_run(world, job);
    before = disk_fill();
    assert_int_equal(submit(world, job_text(world, "more", ""), &refused), ERR_UNAVAILABLE);
    assert_non_null(strstr(world->err.text, "nothing can be stored: "));
    assert_int_equal(submit(world, job_text(world, "more", ""), &refused), ERR_UNAVAILABLE);
    assert_int_equal(act(world, SERVICE_STOP, job), ERR_UNAVAILABLE);
    world->service->ready(world->service->context, checks);
    assert_false(checks[0].is_ok);
    containers_finish_unwritten(world, job);
    assert_int_equal(shown(world, job), PUBLIC_RUNNING);
    disk_empty(before);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    log_to(2);
    assert_int_equal(submit(world, job_text(world, "more", ""), &refused), 0);
    assert_int_equal(refused.v, 2); /* what was refused has left no trace */
    wait_until_tasks_run(world, refused);
    containers_finish(world, refused);
    wait_until(world, refused, PUBLIC_SUCCEEDED);
    world->service->ready(world->service->context, checks);
    assert_true(checks[0].is_ok);
}

static void the_end_of_an_attempt_outlives_a_full_disk(void **state)
{
    struct world *world = *state;
    struct rlimit before;
    struct job_id job;
    size_t ended = 0;

    world_stop(world);
    world->engine = "runMilliseconds: 600000, " SYNTAX_ERROR;
    world_start(world);
    assert_int_equal(submit(world, job_text(world, "fails", ""), &job), 0);
    wait_until_tasks_run(world, job);
    before = disk_fill();
    containers_finish_unwritten(world, job);
    assert_int_equal(shown(world, job), PUBLIC_RUNNING);
    disk_empty(before);
    wait_until(world, job, PUBLIC_FAILED);
    log_to(2);
    expect_ends(world, world->service->store, job, &ended);
    assert_true(ended >= 1); /* one fails, the other ends with the attempt or by itself */
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
/* Submits, or stops, as it is asked by the API: with what is to be written down. */
static int noted_submit(struct world *world, const char *text, bool *is_noted)
{
    const struct store_audit audit = {.user = "admin", .route = "POST", .subject_kind = "job"};
    struct wait wait;
    struct service_reply reply = wait_init(&wait);
    int code;

    reply.audit = &audit;
    code = ask_submission(world, (struct service_submission){.source = text_of(text)}, reply);
    if (code == 0)
        code = wait_for(&wait);
    *is_noted = wait.answer.is_noted;
    return code;
}

static int noted_stop(struct world *world, struct job_id job)
{
    const struct store_audit audit = {.user = "bob", .subject = "a job"};
    struct wait wait;
    struct service_reply reply = wait_init(&wait);
    int code;

    reply.audit = &audit;
    code =
        world->service->act(world->service->context, SERVICE_STOP, "bob", job, reply, &world->err);
    return code < 0 ? code : wait_for(&wait);
}

/* With what is asked for its outcome is stored: when the core thread refuses it before its step,
 * when the core does, and when it is done. */
static void what_is_asked_for_is_written_down(void **state)
{
    struct world *world = *state;
    struct store_reader *reader;
    struct store_audits audits;
    struct audit_filter filter = {.limit = 4};
    bool is_noted = false;

    assert_int_equal(noted_submit(world, job_text(world, "train", ""), &is_noted), 0);
    assert_true(is_noted);
    assert_int_equal(noted_submit(world, job_text(world, "train", ""), &is_noted), ERR_CONFLICT);
    assert_true(is_noted);
    assert_int_equal(noted_submit(world, "name: [", &is_noted), ERR_INVALID); /* nothing is asked */
    assert_int_equal(noted_stop(world, (struct job_id){999}), ERR_NOT_FOUND);
    world_stop(world);
    world_start(world);
    reader = world->service->reader_get(world->service->context, &world->err);
    assert_int_equal(store_audits(reader, &filter, &world->arena, &audits, &world->err), 0);
    world->service->reader_put(world->service->context, reader);
    assert_int_equal(audits.count, 4); /* and the first user */
    assert_string_equal(audits.items[0].user, "bob");
    assert_string_equal(audits.items[0].subject, "a job");
    assert_int_equal(audits.items[0].code, ERR_NOT_FOUND);
    assert_true(audits.items[0].reason[0]);
    assert_string_equal(audits.items[1].subject, "admin~train");
    assert_int_equal(audits.items[1].code, ERR_CONFLICT);
    assert_non_null(strstr(audits.items[1].reason, "exists"));
    assert_string_equal(audits.items[2].subject, "admin~train");
    assert_int_equal(audits.items[2].code, 0);
    assert_string_equal(audits.items[2].reason, "");
    assert_true(audits.items[2].at_ms > 1000000000000);
}

static void quota_give(struct world *world, enum quota_kind kind, int64_t value)
{
    struct store_change set = {.kind = CHANGE_QUOTAS,
                               .quotas = {.holder = "admin", .kinds = 1u << kind}};

    set.quotas.values.values[kind] = value;
    assert_int_equal(change(world, set), 0);
}

enum { QUOTA_WAITS = 40 };

/* So many submissions at once: how many are taken, and what the others are told. */
static unsigned submit_at_once(struct world *world, const char *prefix, const char *more,
                               const char *expected)
{
    struct wait waits[QUOTA_WAITS];
    unsigned taken = 0;

    for (unsigned i = 0; i < QUOTA_WAITS; i++) {
        const char *name = arena_format(&world->arena, "%s-%u", prefix, i);
        struct service_reply reply = wait_init(&waits[i]);
        const struct service_submission submission = {
            .user = "admin", .source = text_of(job_text(world, name, more))};
        assert_int_equal(ask_submission(world, submission, reply), 0);
    }
    for (unsigned i = 0; i < QUOTA_WAITS; i++) {
        int code = wait_for(&waits[i]);
        taken += code == 0;
        if (code == 0)
            continue;
        assert_int_equal(code, ERR_QUOTA);
        assert_non_null(strstr(waits[i].text, expected));
        assert_true(waits[i].answer.retry_s >= 1);
    }
    return taken;
}

/* Submissions that come at the same moment do not slip by each other. */
static void quotas_hold_for_submissions_at_once(void **state)
{
    struct world *world = *state;
    struct job_id job;

    world_stop(world);
    world->engine = "runMilliseconds: 600000";
    world_start(world);
    quota_give(world, QUOTA_LIVE_JOBS, 3);
    assert_int_equal(submit_at_once(world, "a", "", "the quota liveJobs is 3, and 3 are used"), 3);
    /* a name that is taken needs no place; one that has gone gives its place back */
    assert_int_equal(submit(world, job_text(world, "a-0", ""), &job), ERR_CONFLICT);
    assert_int_equal(submit(world, job_text(world, "b", ""), &job), ERR_QUOTA);
    assert_int_equal(act(world, SERVICE_STOP, (struct job_id){1}), 0);
    wait_until(world, (struct job_id){1}, PUBLIC_STOPPED);
    assert_int_equal(submit(world, job_text(world, "b", ""), &job), 0);
    /* to start again what has ended needs one as well */
    assert_int_equal(act(world, SERVICE_START, (struct job_id){1}), ERR_QUOTA);
    assert_int_equal(act(world, SERVICE_START, (struct job_id){2}),
                     ERR_CONFLICT); /* it lives already */
    quota_give(world, QUOTA_LIVE_JOBS, QUOTA_NONE);
    quota_give(world, QUOTA_STORED_JOBS, 6);
    assert_int_equal(submit_at_once(world, "c", "", "the quota storedJobs is 6, and 6 are used"),
                     2);
    quota_give(world, QUOTA_STORED_JOBS, QUOTA_NONE);
    quota_give(world, QUOTA_SUBMITS_MINUTE, 5);
    const int64_t began_ms = clock_monotonic_ms();
    const int64_t taken =
        submit_at_once(world, "d", "", "the quota submitsPerMinute is 5, and 5 are used");
    const int64_t used = world->service->submits_used(world->service->context, "admin");
    /* one of them comes back every twelve seconds */
    const int64_t back = (clock_monotonic_ms() - began_ms) / 12000;
    assert_in_range(taken, 5, 5 + back);
    assert_in_range(used + back, 5, 5 + back);
    quota_give(world, QUOTA_SUBMITS_MINUTE, 0);
    assert_int_equal(submit(world, job_text(world, "e", ""), &job), ERR_QUOTA);
}

static const char *gpu_job(struct world *world, const char *name, unsigned instances)
{
    return arena_format(&world->arena,
                        "protocolVersion: 2\nname: %s\ntype: job\n"
                        "prerequisites:\n- {name: i, type: dockerimage, uri: x}\n"
                        "taskRoles:\n  w:\n    instances: %u\n    dockerImage: i\n"
                        "    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 2}\n"
                        "    commands: [x]\nextras: {gangAllocation: false}\n",
                        name, instances);
}

static void quota_of_gpus(void **state)
{
    struct world *world = *state;
    struct job_id job, other;
    struct wait wait;
    struct service_reply reply;

    world_stop(world);
    world->engine = "gpus: 16, runMilliseconds: 600000";
    world_start(world);
    metric_await(world, "skep_gpus", 16); /* the node had none before */
    quota_give(world, QUOTA_GPUS, 8);
    assert_int_equal(submit(world, gpu_job(world, "big", 5), &job), ERR_QUOTA);
    assert_non_null(strstr(world->err.text, "the quota gpus is 8, and 0 are used"));
    assert_int_equal(submit(world, gpu_job(world, "a", 3), &job), 0);
    assert_int_equal(submit(world, gpu_job(world, "b", 2), &other), ERR_QUOTA);
    assert_int_equal(submit(world, job_text(world, "none", ""), &other), 0); /* without GPUs */
    reply = wait_init(&wait);
    assert_int_equal(
        world->service->scale(world->service->context, "admin", job, 0, 5, reply, &world->err), 0);
    assert_int_equal(wait_for(&wait), ERR_QUOTA);
    reply = wait_init(&wait);
    assert_int_equal(
        world->service->scale(world->service->context, "admin", job, 0, 4, reply, &world->err), 0);
    assert_int_equal(wait_for(&wait), 0);
    assert_int_equal(submit(world, gpu_job(world, "b", 1), &other), ERR_QUOTA);
}

/* What is used up by what has been let in; that runs on, and what needs no GPU is let in. */
static void quota_of_gpu_hours(void **state)
{
    struct world *world = *state;
    struct job_id job, other;
    struct wait wait;
    struct service_reply reply;

    world_stop(world);
    world->engine = "gpus: 16, runMilliseconds: 600000";
    world_start(world);
    metric_await(world, "skep_gpus", 16);
    quota_give(world, QUOTA_GPU_HOURS, 1);
    assert_int_equal(submit(world, gpu_job(world, "a", 1), &job), 0);
    wait_until(world, job, PUBLIC_RUNNING);
    assert_int_equal(submit(world, gpu_job(world, "b", 1), &other), 0);
    quota_give(world, QUOTA_GPU_HOURS, 0);
    assert_int_equal(submit(world, gpu_job(world, "c", 1), &other), ERR_QUOTA);
    assert_non_null(strstr(world->err.text, "the quota gpuHoursPerMonth is 0, and 0 are used; the "
                                            "count begins anew at "));
    assert_int_equal(submit(world, job_text(world, "none", ""), &other), 0);
    reply = wait_init(&wait);
    assert_int_equal(
        world->service->scale(world->service->context, "admin", job, 0, 2, reply, &world->err), 0);
    assert_int_equal(wait_for(&wait), ERR_QUOTA);
    assert_in_range(wait.answer.retry_s, 1, 31 * 86400);
    reply = wait_init(&wait);
    assert_int_equal(
        world->service->scale(world->service->context, "admin", job, 0, 0, reply, &world->err), 0);
    assert_int_equal(wait_for(&wait), 0);
}

static const struct CMUnitTest tests[] = {
    WORLD(quota_of_gpu_hours),
    WORLD(a_job_runs_and_is_there_after_a_restart),
    WORLD(wrong_files_and_forbidden_clusters_are_refused),
    WORLD(keys_of_the_profile_are_lines),
    WORLD(jobs_are_stopped_and_deleted),
    WORLD(tags_users_and_settings_change_durably),
    WORLD(who_watches_is_told_of_nodes_and_tags),
    WORLD(who_watches_is_told_when_an_identity_takes_an_account),
    WORLD(who_watches_is_told_of_lost_rights),
    WORLD(a_removed_users_name_is_free_without_folders_of_users),
    WORLD(what_is_asked_for_is_written_down),
    WORLD(quotas_hold_for_submissions_at_once),
    WORLD(quota_of_gpus),
    WORLD(a_second_server_is_refused),
    WORLD(a_reload_takes_effect),
    WORLD(a_full_disk_refuses_requests_and_loses_no_fact),
    WORLD(the_end_of_an_attempt_outlives_a_full_disk),
};
UNIT_FILE(tests, world_begin, NULL);
