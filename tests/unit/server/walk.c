/* walk.c — see walk.h: what happens. */
#include "walk.h"
#include "faults.h"
#include "quiet.h"
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audits.h"
#include "base/err.h"
#include "rounds.h"
#include "server/state.h"
#include "sys/log.h"
#include "sys/secret.h"

/* The machine of the test does not fail, so that nobody waits for its disk. */
int fsync(int fd)
{
    (void)fd;
    return 0;
}

int fdatasync(int fd)
{
    (void)fd;
    return 0;
}

int __wrap_password_hash(struct text password, char hash[PASSWORD_HASH_SIZE], struct err *err);

/* Nor does anybody guess its passwords. */
int __wrap_password_hash(struct text password, char hash[PASSWORD_HASH_SIZE], struct err *err)
{
    (void)password, (void)err;
    snprintf(hash, PASSWORD_HASH_SIZE, "none");
    return 0;
}

#define SCHEDULING                                                                                 \
    "finishedKeepSeconds: 0, backoffMinSeconds: 1, backoffMaxSeconds: 1, killGraceSeconds: 0"
static const char *const configurations[] = {
    "scheduling: {" SCHEDULING "}\n",
    "scheduling: {policy: best-fit, " SCHEDULING "}\n",
    "scheduling: {order: fifo, killGraceSeconds: 3, " /* two jobs may run for longer */
    "finishedKeepSeconds: 0, backoffMinSeconds: 1, backoffMaxSeconds: 1}\n",
    "scheduling: {policy: spread, " SCHEDULING "}\n",
};
enum { CONFIGURATIONS = sizeof configurations / sizeof configurations[0] };

static const char *const op_names[WALK_OPS] = {
    [WALK_SUBMIT] = "submit",
    [WALK_SUBMIT_AGAIN] = "submit again",
    [WALK_STOP] = "stop",
    [WALK_START] = "start",
    [WALK_DELETE] = "delete",
    [WALK_SCALE] = "scale",
    [WALK_RELEASE] = "release",
    [WALK_CORDON] = "cordon",
    [WALK_DRAIN] = "drain",
    [WALK_UNCORDON] = "uncordon",
    [WALK_CLOSE] = "close",
    [WALK_OPEN] = "open",
    [WALK_SETTING] = "setting",
    [WALK_ROUND] = "round",
    [WALK_RUN] = "run",
    [WALK_END] = "end",
    [WALK_FAIL] = "fail",
    [WALK_VANISH] = "vanish",
    [WALK_REFUSE] = "refuse",
    [WALK_UNHEARD] = "end unheard",
    [WALK_NODE_SICK] = "node sick",
    [WALK_NODE_GONE] = "node gone",
    [WALK_NODE_FINE] = "node fine",
    [WALK_AGAIN] = "tell again",
    [WALK_STRANGER] = "stranger",
    [WALK_CREATE_FAIL] = "creation refused",
    [WALK_PASS] = "pass",
    [WALK_CLOCK] = "clock",
    [WALK_DISK] = "disk",
    [WALK_ROW] = "row",
    [WALK_UNREAD] = "unreadable",
    [WALK_READABLE] = "readable",
    [WALK_RELOAD] = "reload",
    [WALK_RELOAD_BAD] = "bad reload",
    [WALK_RESTART] = "restart",
    [WALK_BOOT] = "boot",
    [WALK_CRASH] = "crash",
};

void walk_fail(const struct walk *walk, const char *format, ...)
{
    char text[400];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fail_msg("%s, seed %u, step %u (%s %d): %s", walk->what, walk->seed, walk->at,
             walk->step ? op_names[walk->step->op] : "end", walk->step ? walk->step->argument : 0,
             text);
    abort();
}

/* --- until nothing moves --- */

static void quiet_expect(struct walk *walk)
{
    if (!quiet_await())
        walk_fail(walk, "the server goes on without an end");
}

/* What was kept for a disk that is good again is stored. */
static void disk_await(struct walk *walk)
{
    enum { TRIES = 40 };

    quiet_expect(walk);
    for (int i = 0; !power_is_off() && !is_writable(walk->world); i++) {
        if (i == TRIES)
            walk_fail(walk, "the store is not written any more");
        time_pass(PROBE_MS);
        quiet_expect(walk);
    }
}

static void walk_settle(struct walk *walk)
{
    do
        disk_await(walk);
    while (!power_is_off() && yard_kills_settle() > 0);
}

/* --- a server's begin and end --- */

/* A start may meet the disk or the power that fails: then there is another. */
static void server_begin(struct walk *walk)
{
    enum { TRIES = 5 };
    struct world *world = walk->world;
    int code = -1;

    for (int i = 0; code < 0; i++) {
        if (i == TRIES)
            walk_fail(walk, "no server starts: %s", world->err.text);
        power_restore();
        quiet_clear();
        code = world_try(world);
        walk->starts++;
    }
    server_start(world->server);
    world->service = server_service(world->server);
    walk_settle(walk);
}

static void server_end(struct walk *walk)
{
    world_stop(walk->world);
    quiet_clear();
}

void walk_crash(struct walk *walk)
{
    power_fail();
    do {
        server_end(walk);
        server_begin(walk);
    } while (power_is_off());
    walk_learn(walk);
}

void walk_restart(struct walk *walk, bool is_boot)
{
    static struct yard_container containers[YARD_CONTAINERS_MAX];

    server_end(walk);
    if (is_boot) {
        const size_t count = yard_containers(containers);
        for (size_t i = 0; i < count; i++)
            yard_vanish(containers[i].attempt);
        machine_boot();
    }
    server_begin(walk);
    if (power_is_off())
        walk_crash(walk);
}

/* --- requests --- */

struct ask {
    bool is_answered, is_noted;
    int code;
    struct job_id job;
    char text[200];
    struct store_audit audit;
};

static void answered(void *context, const struct service_answer *answer)
{
    struct ask *ask = context;

    if (power_is_off()) /* it does not arrive */
        return;
    assert_false(ask->is_answered);
    ask->is_answered = true;
    ask->is_noted = answer->is_noted;
    ask->code = answer->code;
    ask->job = answer->job;
    snprintf(ask->text, sizeof ask->text, "%s", answer->text ? answer->text : "");
}

static struct service_reply reply_of(struct ask *ask)
{
    *ask = (struct ask){.audit = {.user = "admin",
                                  .token = "",
                                  .address = "here",
                                  .right = "",
                                  .route = "walk",
                                  .subject_kind = "job",
                                  .subject = "",
                                  .reason = ""}};
    return (struct service_reply){.done = answered, .context = ask, .audit = &ask->audit};
}

/* What the port itself refused has no other answer. */
static void taken(struct walk *walk, struct ask *ask, int code)
{
    if (code == 0)
        return;
    ask->is_answered = true;
    ask->code = code;
    snprintf(ask->text, sizeof ask->text, "%.199s", walk->world->err.text);
}

/* The server has nothing more to do. True: it was answered, and the code is 0. */
static bool is_granted(struct walk *walk, const struct ask *ask)
{
    if (!ask->is_answered && !power_is_off())
        walk_fail(walk, "the request is not answered");
    /* what refuses or repeats is answered before its record is stored */
    walk->audits += ask->is_answered && ask->is_noted && !power_is_off();
    walk->audits_doubtful += power_is_off();
    if (ask->is_answered && ask->code == ERR_INTERNAL)
        walk_fail(walk, "the request is refused for good: %s", ask->text);
    return ask->is_answered && ask->code == 0;
}

static const char *text_of_kind(struct walk *walk, const struct walk_job *job)
{
    static const struct {
        unsigned instances, cpu, gpu;
        const char *more;
    } kinds[WALK_KINDS] = {
        [WALK_GANG] = {2, 1, 1, "jobRetryCount: 1\n"},
        [WALK_LOOSE] = {3, 1, 0, "extras: {gangAllocation: false}\n"},
        [WALK_BIG] = {3, 2, 2, ""},
        [WALK_DEBUG] = {1, 1, 0, "extras: {debug: true}\n"},
        [WALK_URGENT] = {2, 1, 2, "extras: {hivedScheduler: {jobPriorityClass: prod}}\n"},
    };
    return arena_format(&walk->world->arena,
                        "protocolVersion: 2\nname: %s\ntype: job\nprerequisites:\n"
                        "- {protocolVersion: 2, name: i, type: dockerimage, uri: x}\n"
                        "taskRoles:\n  w:\n    instances: %u\n    dockerImage: i\n"
                        "    resourcePerInstance: {cpu: %u, memoryMB: 1, gpu: %u}\n"
                        "    commands: [x]\n%s",
                        job->name, kinds[job->kind].instances, kinds[job->kind].cpu,
                        kinds[job->kind].gpu, kinds[job->kind].more);
}

static void submit_ask(struct walk *walk, const struct walk_job *job, struct ask *ask)
{
    const struct service_submission submission = {.source = text_of(text_of_kind(walk, job)),
                                                  .key = text_of(job->name)};

    taken(walk, ask, ask_submission(walk->world, submission, reply_of(ask)));
}

static struct walk_job *job_new(struct walk *walk, int argument)
{
    static const uint32_t instances[WALK_KINDS] = {2, 3, 3, 1, 2};

    if (walk->job_count == WALK_JOBS_MAX)
        return NULL;
    struct walk_job *job = &walk->jobs[walk->job_count++];
    *job = (struct walk_job){.kind = (enum walk_kind)(argument % WALK_KINDS)};
    job->instances = instances[job->kind];
    snprintf(job->name, sizeof job->name, "j%zu", walk->job_count);
    return job;
}

static void submit_told(struct walk *walk, struct walk_job *job, const struct ask *ask)
{
    if (is_granted(walk, ask)) {
        if (job->is_there && job->id.v != ask->job.v)
            walk_fail(walk, "%s is taken a second time, as job %u", job->name, ask->job.v);
        job->is_there = !job->is_gone;
        job->id = ask->job;
    }
    job->is_doubtful = job->is_doubtful || !ask->is_answered;
}

/* NULL: there is none. */
static struct walk_job *job_of(struct walk *walk, int argument)
{
    size_t count = 0, at = 0;

    for (size_t i = 0; i < walk->job_count; i++)
        count += walk->jobs[i].is_there;
    if (count == 0)
        return NULL;
    size_t left = (size_t)argument % count;
    while (!walk->jobs[at].is_there || left-- > 0)
        at++;
    return &walk->jobs[at];
}

static void act_ask(struct walk *walk, enum service_action action, const struct walk_job *job,
                    struct ask *ask)
{
    struct service *service = walk->world->service;

    taken(
        walk, ask,
        service->act(service->context, action, "admin", job->id, reply_of(ask), &walk->world->err));
}

static void act_told(struct walk *walk, enum service_action action, struct walk_job *job,
                     const struct ask *ask)
{
    job->is_doubtful = job->is_doubtful || !ask->is_answered;
    if (!is_granted(walk, ask))
        return;
    if (action == SERVICE_DELETE) {
        job->is_there = false;
        job->is_gone = true;
    } else if (action != SERVICE_RELEASE) {
        job->is_stopped = action == SERVICE_STOP;
    }
}

static void step_submit(struct walk *walk, int argument)
{
    struct walk_job *job = job_new(walk, argument);
    struct ask ask;

    if (!job)
        return;
    submit_ask(walk, job, &ask);
    walk_settle(walk);
    submit_told(walk, job, &ask);
}

static void step_submit_again(struct walk *walk, int argument)
{
    struct ask ask;

    if (walk->job_count == 0)
        return;
    struct walk_job *job = &walk->jobs[(size_t)argument % walk->job_count];
    submit_ask(walk, job, &ask);
    walk_settle(walk);
    submit_told(walk, job, &ask);
}

static void step_act(struct walk *walk, enum service_action action, int argument)
{
    struct walk_job *job = job_of(walk, argument);
    struct ask ask;

    if (!job)
        return;
    act_ask(walk, action, job, &ask);
    walk_settle(walk);
    act_told(walk, action, job, &ask);
}

static void step_scale(struct walk *walk, int argument)
{
    struct walk_job *job = job_of(walk, argument);
    const uint32_t instances = 1 + (uint32_t)argument % 4;
    struct service *service = walk->world->service;
    struct ask ask;

    if (!job)
        return;
    taken(walk, &ask,
          service->scale(service->context, "admin", job->id, 0, instances, reply_of(&ask),
                         &walk->world->err));
    walk_settle(walk);
    job->is_doubtful = job->is_doubtful || !ask.is_answered;
    if (is_granted(walk, &ask))
        job->instances = instances;
}

static void step_node(struct walk *walk, enum service_node_action action, int argument)
{
    const unsigned node = (unsigned)argument % YARD_NODES;
    struct service *service = walk->world->service;
    struct ask ask;

    taken(walk, &ask,
          service->node_act(service->context, action, "admin", yard_node_name(node), TEXT("walk"),
                            reply_of(&ask), &walk->world->err));
    walk_settle(walk);
    walk->is_admin_doubtful = walk->is_admin_doubtful || !ask.is_answered;
    if (is_granted(walk, &ask))
        walk->is_cordoned[node] = action != SERVICE_NODE_UNCORDON;
}

static void step_cluster(struct walk *walk, enum service_cluster_action action)
{
    struct service *service = walk->world->service;
    struct ask ask;

    taken(walk, &ask,
          service->cluster_act(service->context, action, "admin", "default", TEXT("walk"),
                               reply_of(&ask), &walk->world->err));
    walk_settle(walk);
    walk->is_admin_doubtful = walk->is_admin_doubtful || !ask.is_answered;
    if (is_granted(walk, &ask))
        walk->is_closed = action == SERVICE_CLUSTER_CLOSE;
}

static void setting_ask(struct walk *walk, struct ask *ask)
{
    const struct store_change change = {
        .kind = CHANGE_SETTING,
        .setting = {"walk", text_of(arena_format(&walk->world->arena, "%u", walk->setting + 1))}};
    struct service *service = walk->world->service;

    taken(walk, ask, service->change(service->context, &change, reply_of(ask), &walk->world->err));
}

static void setting_told(struct walk *walk, const struct ask *ask)
{
    walk->is_admin_doubtful = walk->is_admin_doubtful || !ask->is_answered;
    walk->setting += is_granted(walk, ask);
}

static void step_setting(struct walk *walk)
{
    struct ask ask;

    setting_ask(walk, &ask);
    walk_settle(walk);
    setting_told(walk, &ask);
}

/* The first job is stopped and started, another submitted twice by one key, a setting changed. */
static void step_round(struct walk *walk, int argument)
{
    struct walk_job *old = job_of(walk, argument), *made = job_new(walk, argument);
    struct ask stop, start, first, second, setting;

    if (!made)
        return;
    quiet_hold();
    if (old) {
        act_ask(walk, SERVICE_STOP, old, &stop);
        act_ask(walk, SERVICE_START, old, &start);
    }
    submit_ask(walk, made, &first);
    submit_ask(walk, made, &second);
    setting_ask(walk, &setting);
    quiet_release();
    walk_settle(walk);
    if (old) {
        act_told(walk, SERVICE_STOP, old, &stop);
        act_told(walk, SERVICE_START, old, &start);
    }
    submit_told(walk, made, &first);
    submit_told(walk, made, &second);
    setting_told(walk, &setting);
}

/* --- the engine --- */

static void step_run(void)
{
    static struct yard_container containers[YARD_CONTAINERS_MAX];
    const size_t count = yard_containers(containers);

    for (size_t i = 0; i < count; i++)
        yard_start(containers[i].attempt);
}

static void step_container(enum walk_op op, int argument)
{
    static struct yard_container containers[YARD_CONTAINERS_MAX];
    const size_t count = yard_containers(containers);

    if (count == 0)
        return;
    const struct attempt_id attempt = containers[(size_t)argument % count].attempt;
    if (op == WALK_END)
        yard_end(attempt, 0);
    else if (op == WALK_FAIL)
        yard_end(attempt, 1);
    else if (op == WALK_VANISH)
        yard_vanish(attempt);
    else if (op == WALK_REFUSE)
        yard_refuse(attempt);
    else
        yard_end_unheard(attempt, 0);
}

static void step_again(void)
{
    static struct yard_container containers[YARD_CONTAINERS_MAX];
    const size_t count = yard_containers(containers);

    for (size_t i = 0; i < count; i++)
        if (containers[i].phase != YARD_ENDED || containers[i].is_told)
            yard_tell_again(containers[i].attempt);
    for (unsigned i = 0; i < YARD_NODES; i++)
        yard_node_tell(i);
}

/* --- the machine --- */

static void step_reload(struct walk *walk, int argument, bool is_good)
{
    const char *extra = configurations[argument % CONFIGURATIONS];
    struct server_config *config = config_of(walk->world, extra);

    if (is_good)
        walk->world->extra = extra; /* a start reads the same file */
    else
        config->core.policy = "no such policy";
    server_reload(walk->world->server, config);
    walk_settle(walk);
    if (power_is_off())
        walk->reloads_doubtful++;
    else
        walk->reloads++;
}

static void disk_refuse(int argument)
{
    int codes[COMMIT_CODES_MAX];
    const unsigned count = 1 + (unsigned)argument % 4;

    for (unsigned i = 0; i < count; i++)
        codes[i] = ERR_UNAVAILABLE;
    commits_script(codes, count);
}

static void step_machine(struct walk *walk, const struct walk_step *step)
{
    enum { MS_PER_S = 1000, MS_PER_MIN = 60 * 1000 };
    const struct err none = {0};

    if (step->op == WALK_PASS)
        time_pass((int64_t)step->argument * MS_PER_S);
    else if (step->op == WALK_CLOCK)
        clock_set_by((int64_t)step->argument * MS_PER_MIN);
    else if (step->op == WALK_DISK)
        disk_refuse(step->argument);
    else if (step->op == WALK_ROW)
        COMMITS(ERR_INTERNAL);
    else if (step->op == WALK_UNREAD || step->op == WALK_READABLE)
        attempts_unreadable(step->op == WALK_UNREAD ? ERR_IO : none.code);
    else if (step->op == WALK_RESTART || step->op == WALK_BOOT)
        walk_restart(walk, step->op == WALK_BOOT);
    else
        walk_crash(walk);
    walk->is_unreadable =
        step->op == WALK_UNREAD || (walk->is_unreadable && step->op != WALK_READABLE);
    if (step->op == WALK_READABLE)
        time_pass(UPKEEP_MS);
}

static void step_engine(const struct walk_step *step)
{
    const unsigned node = (unsigned)step->argument % YARD_NODES;

    if (step->op == WALK_RUN)
        step_run();
    else if (step->op == WALK_NODE_SICK)
        yard_node_set(node, YARD_NODE_SICK);
    else if (step->op == WALK_NODE_GONE)
        yard_node_set(node, YARD_NODE_GONE);
    else if (step->op == WALK_NODE_FINE)
        yard_node_set(node, YARD_NODE_FINE);
    else if (step->op == WALK_AGAIN)
        step_again();
    else if (step->op == WALK_STRANGER)
        yard_tell_stranger((struct attempt_id){4000});
    else if (step->op == WALK_CREATE_FAIL)
        yard_creates_fail(1, ERR_BUSY);
    else
        step_container(step->op, step->argument);
}

static void step_request(struct walk *walk, const struct walk_step *step)
{
    static const enum service_action actions[] = {[WALK_STOP] = SERVICE_STOP,
                                                  [WALK_START] = SERVICE_START,
                                                  [WALK_DELETE] = SERVICE_DELETE,
                                                  [WALK_RELEASE] = SERVICE_RELEASE};

    if (step->op == WALK_SUBMIT)
        step_submit(walk, step->argument);
    else if (step->op == WALK_SUBMIT_AGAIN)
        step_submit_again(walk, step->argument);
    else if (step->op == WALK_SCALE)
        step_scale(walk, step->argument);
    else if (step->op == WALK_CORDON || step->op == WALK_DRAIN || step->op == WALK_UNCORDON)
        step_node(walk,
                  step->op == WALK_CORDON  ? SERVICE_NODE_CORDON
                  : step->op == WALK_DRAIN ? SERVICE_NODE_DRAIN
                                           : SERVICE_NODE_UNCORDON,
                  step->argument);
    else if (step->op == WALK_CLOSE || step->op == WALK_OPEN)
        step_cluster(walk, step->op == WALK_CLOSE ? SERVICE_CLUSTER_CLOSE : SERVICE_CLUSTER_OPEN);
    else if (step->op == WALK_SETTING)
        step_setting(walk);
    else if (step->op == WALK_ROUND)
        step_round(walk, step->argument);
    else
        step_act(walk, actions[step->op], step->argument);
}

/* What a watch of the server posts may meet a fault after everything else is done. */
void walk_hold(struct walk *walk)
{
    for (;;) {
        walk_settle(walk);
        if (power_is_off())
            walk_crash(walk);
        quiet_hold();
        if (!power_is_off() && is_writable(walk->world))
            return;
        quiet_release();
    }
}

void walk_step(struct walk *walk, const struct walk_step *step)
{
    walk->step = step;
    log_debug("walk", "step %u: %s %d", walk->at, op_names[step->op], step->argument);
    if (step->op <= WALK_ROUND)
        step_request(walk, step);
    else if (step->op <= WALK_CREATE_FAIL)
        step_engine(step);
    else if (step->op == WALK_RELOAD || step->op == WALK_RELOAD_BAD)
        step_reload(walk, step->argument, step->op == WALK_RELOAD);
    else
        step_machine(walk, step);
    walk_check(walk);
    walk->at++;
}

void walk_begin(struct walk *walk, struct world *world, const char *what, unsigned seed)
{
    *walk = (struct walk){.world = world, .what = what, .seed = seed};
    yard_clear();
    clock_stop();
    world->extra = configurations[0];
    server_begin(walk);
    walk_check(walk);
}

/* Everything that may hinder one is over. */
static void faults_end(struct walk *walk)
{
    commits_script(NULL, 0);
    commit_fails_after(0, 0);
    power_restore();
    attempts_unreadable(0);
    yard_creates_fail(0, 0);
    walk->is_unreadable = false;
    time_pass(UPKEEP_MS);
    walk_settle(walk);
}

void walk_end(struct walk *walk)
{
    static const struct walk_step restart = {WALK_RESTART, 0};

    walk->step = NULL;
    faults_end(walk);
    for (size_t i = 0; i < walk->job_count; i++) {
        struct walk_job *job = &walk->jobs[i];
        struct ask ask;
        if (!job->is_there)
            continue;
        static const enum service_action actions[] = {SERVICE_STOP, SERVICE_RELEASE,
                                                      SERVICE_DELETE};
        for (size_t a = 0; a < sizeof actions / sizeof actions[0]; a++) {
            act_ask(walk, actions[a], job, &ask);
            walk_settle(walk);
            act_told(walk, actions[a], job, &ask);
        }
        if (job->is_there)
            walk_fail(walk, "%s is not deleted: %s", job->name, ask.text);
    }
    walk_check_empty(walk);
    walk_step(walk, &restart);
    walk_check_empty(walk);
    server_end(walk);
    if (audit(walk->world) < 0)
        walk_fail(walk, "by the event log: %s", walk->world->err.text);
}
