#include "world_service.h"
#include "base/memory.h"
#include "core/plan.h"
#include "hived/hived.h"
#include "placement/hived.h"
#include "spec/spec.h"
#include <assert.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the server would write down with it. */
static struct store_change audit_change(const struct world *world, const struct event *event,
                                        const struct store_audit *from, struct store_audit *audit,
                                        char subject[200])
{
    *audit = *from;
    audit->at_ms = world->now_ms;
    if (event->kind == EVENT_SUBMIT)
        audit->subject = subject;
    if (world->output.answers.count) {
        audit->code = world->output.answers.items[0].code;
        audit->reason = world->output.answers.items[0].text;
    }
    return (struct store_change){.kind = CHANGE_AUDIT, .audit = audit};
}

void world_step(struct world *world, struct event *event, struct service_reply *reply)
{
    struct store_audit audit;
    struct store_change noted;
    char subject[200] = "";
    struct err err;
    event->now_ms = world->now_ms += 10;
    event->request = reply ? 1 : 0;
    if (!event->user)
        event->user = "";
    output_clear(&world->output);
    if (event->kind == EVENT_SUBMIT) /* the step takes the plan */
        snprintf(subject, sizeof subject, "%s~%s", event->submit.plan->user,
                 event->submit.plan->name);
    world->core_version++;
    core_step(world->core, event, &world->output);
    struct store_batch batch = {.output = &world->output};
    if (reply && reply->audit) {
        noted = audit_change(world, event, reply->audit, &audit, subject);
        batch.changes = &noted;
        batch.change_count = 1;
    }
    int failed = store_commit(world->store, &batch, &err);
    assert(failed == 0);
    if (world->watch)
        world->watch->notify(world->watch->context);
    if (!reply)
        return;
    assert(world->output.answers.count == 1);
    const struct answer *from = &world->output.answers.items[0];
    struct service_answer answer = {.code = from->code,
                                    .job = from->job,
                                    .path = from->path,
                                    .text = from->text,
                                    .is_noted = reply->audit != NULL};
    reply->done(reply->context, &answer);
}

static int refused(struct world *world, struct err *err)
{
    return err_fail(err, world->refuse, "", "refused by the test");
}

/* The submission that a job file asks for; what it points to lives in `scratch` and the buffers. */
struct reading {
    struct arena arena;
    struct buf masked, spec_bytes, plan_bytes;
    struct event event;
};

static int reading_begin(struct reading *reading, const char *user, struct text source,
                         struct problems *problems, struct err *err)
{
    *reading = (struct reading){.masked = BUF_INIT};
    arena_init(&reading->arena);
    struct spec_parsed parsed = {.masked = &reading->masked};
    if (spec_parse(source, &reading->arena, &parsed, problems))
        return err_fail(err, ERR_INVALID, "", "the job file is not valid");
    spec_encode(parsed.spec, &reading->spec_bytes);
    struct plan *plan = plan_of_spec(parsed.spec, user);
    plan_encode(plan, &reading->plan_bytes);
    reading->event = (struct event){.kind = EVENT_SUBMIT,
                                    .user = user,
                                    .submit = {.plan = plan,
                                               .spec_bytes = buf_as_text(&reading->spec_bytes),
                                               .plan_bytes = buf_as_text(&reading->plan_bytes),
                                               .has_priority = parsed.spec->has_priority,
                                               .source = buf_as_text(&reading->masked),
                                               .format = (uint8_t)parsed.spec->format}};
    spec_free(parsed.spec);
    return 0;
}

static void reading_end(struct reading *reading)
{
    buf_release(&reading->masked);
    buf_release(&reading->spec_bytes);
    buf_release(&reading->plan_bytes);
    arena_release(&reading->arena);
}

static int on_submit(void *context, const struct service_submission *submission,
                     struct problems *problems, struct service_reply reply, struct err *err)
{
    struct world *world = context;
    struct reading reading;
    world->secrets_job = submission->secrets_job;
    snprintf(world->submit_key, sizeof world->submit_key, "%.*s", TEXT_ARG(submission->key));
    if (world->refuse)
        return refused(world, err);
    if (world->submitted_before) {
        reply.done(reply.context, world->submitted_before);
        return 0;
    }
    int failed = reading_begin(&reading, submission->user, submission->source, problems, err);
    if (!failed)
        world_step(world, &reading.event, &reply);
    reading_end(&reading);
    return failed;
}

static int64_t on_submits_used(void *context, const char *user)
{
    (void)context, (void)user;
    return 0;
}

static int on_trial(void *context, const struct service_submission *submission,
                    struct problems *problems, struct arena *arena, struct core_trial *trial,
                    struct service_reply reply, struct err *err)
{
    struct world *world = context;
    struct reading reading;
    struct err refusal = {0};
    world->secrets_job = submission->secrets_job;
    int failed = reading_begin(&reading, submission->user, submission->source, problems, err);
    if (!failed) {
        reading.event.now_ms = world->now_ms;
        struct core *copy = core_copy(world->core);
        while (!core_trial_prepare(copy, world->now_ms))
            ;
        int code = core_trial(copy, &reading.event, arena, trial, &refusal);
        core_free(copy);
        struct service_answer answer = {.code = code, .path = refusal.path, .text = refusal.text};
        reply.done(reply.context, &answer);
    }
    reading_end(&reading);
    return failed;
}

static int on_check(void *context, const struct service_submission *submission,
                    struct problems *problems, struct err *err)
{
    struct world *world = context;
    struct reading reading;
    world->secrets_job = submission->secrets_job;
    int failed = reading_begin(&reading, submission->user, submission->source, problems, err);
    if (!failed)
        plan_free(reading.event.submit.plan); /* no core takes it */
    reading_end(&reading);
    return failed;
}

static int on_act(void *context, enum service_action action, const char *user, struct job_id job,
                  struct service_reply reply, struct err *err)
{
    static const enum event_kind KINDS[] = {EVENT_STOP, EVENT_START, EVENT_DELETE, EVENT_RELEASE};
    struct world *world = context;
    if (world->refuse)
        return refused(world, err);
    struct event event = {.kind = KINDS[action], .user = user};
    event.start = (struct recall){.job = job};
    world_step(world, &event, &reply);
    return 0;
}

static int on_scale(void *context, const char *user, struct job_id job, uint16_t role,
                    uint32_t instances, struct service_reply reply, struct err *err)
{
    struct world *world = context;
    if (world->refuse)
        return refused(world, err);
    struct event event = {.kind = EVENT_SCALE,
                          .user = user,
                          .scale = {.job = job, .role = role, .instances = instances}};
    world_step(world, &event, &reply);
    return 0;
}

static int on_change(void *context, const struct store_change *change, struct service_reply reply,
                     struct err *err)
{
    struct world *world = context;
    if (world->refuse)
        return refused(world, err);
    struct err change_err = {0};
    struct store_change copy = *change;
    struct store_audit audit;
    copy.err = &change_err;
    if (reply.audit) {
        audit = *reply.audit;
        audit.at_ms = world->now_ms;
        copy.audit = &audit;
    }
    struct store_batch batch = {.changes = &copy, .change_count = 1};
    int failed = store_commit(world->store, &batch, err);
    assert(failed == 0);
    struct service_answer answer = {.code = copy.code,
                                    .path = change_err.path,
                                    .text = change_err.text,
                                    .is_noted = reply.audit != NULL};
    if (world->watch && copy.kind == CHANGE_TOKEN_REMOVE)
        world->watch->revoked(world->watch->context, copy.token.user);
    if (world->watch && (copy.kind == CHANGE_USER_SET || copy.kind == CHANGE_USER_REMOVE))
        world->watch->revoked(world->watch->context, copy.user.name);
    if (world->watch && copy.kind == CHANGE_MEMBER_REMOVE)
        world->watch->revoked(world->watch->context, copy.member.user);
    if (world->watch && (copy.kind == CHANGE_GROUP_SET || copy.kind == CHANGE_GROUP_REMOVE))
        world->watch->revoked(world->watch->context, "");
    if (reply.done)
        reply.done(reply.context, &answer);
    return 0;
}

static int on_node_act(void *context, enum service_node_action action, const char *user,
                       const char *node, struct text reason, struct service_reply reply,
                       struct err *err)
{
    static const enum event_kind kinds[] = {
        [SERVICE_NODE_PARDON] = EVENT_NODE_PARDON,
        [SERVICE_NODE_CORDON] = EVENT_NODE_CORDON,
        [SERVICE_NODE_DRAIN] = EVENT_NODE_DRAIN,
        [SERVICE_NODE_UNCORDON] = EVENT_NODE_UNCORDON,
    };
    struct world *world = context;
    char why[NODE_CLOSING_WHY_MAX + 1];
    (void)err;
    snprintf(why, sizeof why, "%.*s", TEXT_ARG(reason));
    struct event event = {
        .kind = kinds[action], .user = user, .node = {.name = node, .address = "", .reason = why}};
    world_step(world, &event, &reply);
    return 0;
}

static int on_cluster_act(void *context, enum service_cluster_action action, const char *user,
                          const char *cluster, struct text reason, struct service_reply reply,
                          struct err *err)
{
    static const enum event_kind kinds[] = {
        [SERVICE_CLUSTER_CLOSE] = EVENT_CLUSTER_CLOSE,
        [SERVICE_CLUSTER_OPEN] = EVENT_CLUSTER_OPEN,
    };
    struct world *world = context;
    char why[CLUSTER_CLOSED_WHY_MAX + 1];
    (void)err;
    snprintf(why, sizeof why, "%.*s", TEXT_ARG(reason));
    struct event event = {
        .kind = kinds[action], .user = user, .cluster = {.name = cluster, .reason = why}};
    world_step(world, &event, &reply);
    return 0;
}

static int on_barrier(void *context, const struct service_barrier *report,
                      struct service_reply reply, struct err *err)
{
    struct world *world = context;
    if (!text_is(report->token, "of-the-try"))
        return err_fail(err, ERR_UNAUTHORIZED, "", "not the token");
    world->barrier = *report;
    struct service_answer answer = {
        .code = world->barrier_code, .path = "", .text = "w-1 has ended"};
    reply.done(reply.context, &answer);
    return 0;
}

static int on_snapshot(void *context, struct service_snapshot *snapshot, struct service_reply reply,
                       struct err *err)
{
    struct world *world = context;
    (void)err;
    const struct core *core = world->core;
    const struct hived *hived = placer_hived_state(core_placer(core));
    hived_free(snapshot->hived); /* of another copy */
    mem_free(snapshot->nodes);
    core_node_jobs_release(&snapshot->jobs);
    *snapshot = (struct service_snapshot){.hived = hived ? hived_copy(hived) : NULL,
                                          .node_count = core_node_count(core),
                                          .version = world->core_version};
    snapshot->nodes = mem_alloc(mem_size(snapshot->node_count + 1u, sizeof *snapshot->nodes));
    for (uint32_t i = 0; i < snapshot->node_count; i++)
        snapshot->nodes[i] = core_node_use(core, (struct node_id){i});
    core_node_jobs_update(core, &snapshot->jobs, UINT32_MAX);
    struct service_answer answer = {.path = "", .text = ""};
    reply.done(reply.context, &answer);
    return 0;
}

static uint64_t on_snapshot_version(void *context)
{
    return ((struct world *)context)->core_version;
}

/* Sessions ask in threads of their own: nothing is written in a test that has not set `reading`. */
static struct store_reader *on_reader_get(void *context, struct err *err)
{
    struct world *world = context;
    struct store_reader *reader = NULL;
    void (*reading)(struct world *) = world->reading;
    if (reading) {
        world->reading = NULL;
        reading(world);
    }
    if (world->has_no_reader)
        return err_fail(err, ERR_UNAVAILABLE, "", "all readers are at work"), NULL;
    return store_reader_open(world->store, &reader, err) ? NULL : reader;
}

static void on_reader_put(void *context, struct store_reader *reader)
{
    (void)context;
    store_reader_close(reader);
}

static uint8_t on_engine_of(void *context, const char *node)
{
    struct world *world = context;
    void (*between)(struct world *) = world->between;
    (void)node;
    world->between = NULL;
    if (between)
        between(world);
    return world->engine;
}

static int on_log_can_follow(void *context, uint8_t engine, struct err *err)
{
    struct world *world = context;
    (void)engine;
    if (!world->cannot_follow)
        return 0;
    return err_fail(err, ERR_UNSUPPORTED, "", "the engine \"mute\" cannot follow logs");
}

/* A byte in every millisecond. */
static int on_log_time(void *context, uint8_t engine, struct attempt_id attempt,
                       enum log_stream stream, int64_t at_ms, uint64_t *offset, struct err *err)
{
    (void)context, (void)engine, (void)attempt, (void)stream, (void)err;
    *offset = (uint64_t)at_ms;
    return 0;
}

static ssize_t on_log_read(void *context, uint8_t engine, struct attempt_id attempt,
                           enum log_stream stream, uint64_t *offset, char *bytes, size_t size,
                           struct log_part *part, struct err *err)
{
    struct world *world = context;
    (void)stream;
    if (engine != world->engine)
        return err_fail(err, ERR_NOT_FOUND, "", "this engine has no such attempt");
    struct world_attempt_log *log = world_log(world, attempt);
    if (!log->text.at && !log->is_ended)
        return err_fail(err, ERR_NOT_FOUND, "", "the attempt has no log");
    if (log->is_unreadable)
        return err_fail(err, ERR_UNAVAILABLE, "", "its machine does not answer");
    *part = (struct log_part){
        .begin = log->removed, .end = log->text.length, .is_ended = log->is_ended};
    if (*offset >= log->text.length)
        return 0;
    size_t length = log->text.length - *offset;
    if (log->piece && length > log->piece - *offset % log->piece)
        length = log->piece - *offset % log->piece;
    if (length > size)
        length = size;
    memcpy(bytes, log->text.at + *offset, length);
    return (ssize_t)length;
}

static int on_log_watch(void *context, uint8_t engine, struct attempt_id attempt,
                        enum log_stream stream, struct err *err)
{
    struct world *world = context;
    struct world_attempt_log *log = world_log(world, attempt);
    int ends[2];
    (void)engine, (void)stream;
    if (!world->can_watch)
        return err_fail(err, ERR_UNSUPPORTED, "", "no watch in this test");
    assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    if (log->follower >= 0)
        close(log->follower);
    log->follower = ends[0];
    if (log->late)
        buf_string(&log->text, log->late);
    log->late = NULL;
    return ends[1];
}

static int on_exec(void *context, uint8_t engine, struct attempt_id attempt,
                   const struct engine_exec_request *request, struct engine_exec **exec,
                   struct err *err)
{
    (void)context, (void)engine, (void)attempt, (void)request, (void)exec;
    return err_fail(err, ERR_UNSUPPORTED, "",
                    "the engine \"mute\" cannot start a program in a running task");
}

static int on_connect(void *context, uint8_t engine, struct attempt_id attempt, uint16_t port,
                      struct err *err)
{
    (void)context, (void)engine, (void)attempt, (void)port;
    return err_fail(err, ERR_UNSUPPORTED, "",
                    "the engine \"mute\" cannot reach a port of a running task");
}

static void on_note(void *context, struct attempt_id attempt, const char *reason,
                    const char *message)
{
    (void)context, (void)attempt, (void)reason, (void)message;
}

static const struct exit_rules *on_rules_get(void *context)
{
    return ((struct world *)context)->rules;
}

static void on_settings(void *context, struct buf *out)
{
    (void)context;
    buf_string(out, "{\"file\":null,\"needRestart\":[],\"settings\":[]}");
}

static void on_rules_put(void *context)
{
    (void)context;
}

static void on_ssh_keys(void *context, struct job_id job, const char *comment, struct arena *arena,
                        const char **private_key, const char **public_key)
{
    (void)context;
    *private_key = arena_format(arena, "private key of job %u", job.v);
    *public_key = arena_format(arena, "ssh-ed25519 AAAA %s", comment);
}

static void on_watch(void *context, struct service_watch *watch)
{
    ((struct world *)context)->watch = watch;
}

static void on_unwatch(void *context, struct service_watch *watch)
{
    (void)watch;
    ((struct world *)context)->watch = NULL;
}

static size_t on_ready(void *context, struct service_check checks[SERVICE_CHECKS_MAX])
{
    struct world *world = context;
    checks[0] = (struct service_check){
        .name = "store", .is_ok = !world->refuse, .is_degraded = world->is_degraded};
    snprintf(checks[0].text, sizeof checks[0].text, "of the test");
    return 1;
}

static bool on_is_alive(void *context)
{
    (void)context;
    return true;
}

static void on_metrics(void *context, struct buf *out)
{
    (void)context;
    buf_string(out, "skep_test 1\n");
}

static int on_use(void *context, struct job_id job, struct attempt_id attempt, const char *node,
                  enum use_resolution resolution, struct use_points *points, struct err *err)
{
    (void)context;
    (void)job;
    (void)attempt;
    (void)node;
    (void)resolution;
    (void)points;
    return err_fail(err, ERR_NOT_FOUND, "", "nothing is known");
}

/* Of "n1": of the GPUs and the network nothing is known. */
static bool on_use_last(void *context, const char *node, uint64_t values[USE_FIELDS])
{
    (void)context;
    if (strcmp(node, "n1") != 0)
        return false;
    for (size_t i = 0; i < USE_FIELDS; i++)
        values[i] = i <= USE_WRITTEN ? 500 + i : USE_UNKNOWN;
    return true;
}

/* Of one node a GPU that works and one that is lost; others of its neighbours by name. */
static void on_gpus(void *context, struct arena *arena, const struct engine_gpu **gpus,
                    size_t *count)
{
    static const struct engine_gpu all[] = {
        {.node = "m1", .uuid = "GPU-m", .job = "", .role = ""},
        {.node = "n1",
         .uuid = "GPU-0",
         .has_use = true,
         .has_errors = true,
         .busy_percent = 70,
         .memory_bytes = 16ull << 30,
         .memory_used_bytes = 3ull << 30,
         .ecc_errors = 2,
         .retired_pages = 1,
         .job = "",
         .role = ""},
        {.node = "n1", .uuid = "GPU-1", .index = 1, .is_lost = true, .job = "", .role = ""},
        {.node = "n10", .uuid = "GPU-n", .job = "", .role = ""},
    };
    (void)context;
    (void)arena;
    *gpus = all;
    *count = COUNT_OF(all);
}

/* Two about machines, of which one is over, and two about jobs of alice and of bob. */
static int on_alerts(void *context, struct arena *arena, struct alert **alerts, size_t *count,
                     struct err *err)
{
    static const struct alert all[] = {
        {.name = "JobIdle",
         .severity = "warn",
         .labels = {{"job_name", "alice~train"}, {"username", "alice"}},
         .summary = "no task of job alice~train works or writes",
         .since_ms = 1764000060000},
        {.name = "JobIdle",
         .severity = "warn",
         .labels = {{"job_name", "bob~train"}, {"username", "bob"}},
         .summary = "no task of job bob~train works or writes",
         .since_ms = 1764000030000},
        {.name = "NvidiaGpuLost",
         .severity = "error",
         .labels = {{"node_name", "n1"}, {"minor_number", "1"}},
         .summary = "GPU 1 of node n1 is lost",
         .since_ms = 1764000000000},
        {.name = "NodeNotReady",
         .severity = "error",
         .labels = {{"node_name", "n1"}},
         .summary = "node n1 is lost",
         .since_ms = 1764000010000,
         .ended_ms = 1764000020000},
    };
    const struct world *world = context;
    if (world->refuse)
        return err_fail(err, world->refuse, "", "the test refuses it");
    *count = COUNT_OF(all);
    *alerts = ARENA_ARRAY(arena, struct alert, *count);
    memcpy(*alerts, all, sizeof all);
    return 0;
}

static const struct storage storages[] = {
    {.name = "corpus",
     .directory = "/srv/corpus",
     .type = "nfs",
     .server = "nfs.lab",
     .path = "/export/corpus",
     .is_shared = true,
     .is_read_only = true},
    {.name = "home", .directory = "/srv/home", .type = "directory", .server = "", .path = ""},
    {.name = "share",
     .directory = "/srv/share",
     .type = "samba",
     .server = "files.lab",
     .path = "share",
     .is_shared = true},
};

static struct storage_list on_storages(void *context, struct arena *arena)
{
    (void)context;
    return storage_list_copy((struct storage_list){storages, COUNT_OF(storages)}, arena);
}

static const struct storage *on_storage(void *context, struct text name, struct arena *arena)
{
    return storage_find(on_storages(context, arena), name);
}

void world_service_init(struct world *world)
{
    world->service = (struct service){
        .context = world,
        .store = world->store,
        .token_key = world->key,
        .storages = on_storages,
        .storage = on_storage,
        .submit = on_submit,
        .submits_used = on_submits_used,
        .trial = on_trial,
        .check = on_check,
        .act = on_act,
        .scale = on_scale,
        .change = on_change,
        .node_act = on_node_act,
        .cluster_act = on_cluster_act,
        .barrier = on_barrier,
        .reader_get = on_reader_get,
        .reader_put = on_reader_put,
        .engine_of = on_engine_of,
        .log_can_follow = on_log_can_follow,
        .log_read = on_log_read,
        .log_time = on_log_time,
        .log_watch = on_log_watch,
        .exec = on_exec,
        .connect = on_connect,
        .note = on_note,
        .use = on_use,
        .use_last = on_use_last,
        .gpus = on_gpus,
        .alerts = on_alerts,
        .snapshot = on_snapshot,
        .snapshot_version = on_snapshot_version,
        .rules_get = on_rules_get,
        .rules_put = on_rules_put,
        .settings = on_settings,
        .ssh_keys = on_ssh_keys,
        .watch = on_watch,
        .unwatch = on_unwatch,
        .ready = on_ready,
        .is_alive = on_is_alive,
        .metrics = on_metrics,
    };
}
