#include "world.h"
#include "api/byte_budget.h"
#include "api/exec_session.h"
#include "api/file_task.h"
#include "api/log_search.h"
#include "api/login.h"
#include "api/passwords.h"
#include "api/snapshot.h"
#include "api/stream_guard.h"
#include "api/throttle.h"
#include "api/token.h"
#include "api/token_cache.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "folder.h"
#include "sys/secret.h"
#include "sys/worker.h"
#include "world_service.h"
#include <assert.h>
#include <semaphore.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void on_generation(void *context)
{
    atomic_fetch_add(&((struct api *)context)->generation, 1);
}

static void on_revoked(void *context, const char *user)
{
    struct api *api = context;
    stream_guards_doubt(api->guards, user);
    exec_sessions_doubt(api->sessions, user);
}

/* ---- set up ---- */

/* "NAME-password" by the same function as always, but with the least work: tests log in often. */
static void password_hash_light(const char *name, char hash[PASSWORD_HASH_SIZE])
{
    char password[64];
    int length = snprintf(password, sizeof password, "%s-password", name);
    int failed = crypto_pwhash_str(hash, password, (unsigned long long)length,
                                   crypto_pwhash_OPSLIMIT_MIN, crypto_pwhash_MEMLIMIT_MIN);
    assert(failed == 0);
}

static void user_add(struct world *world, const char *name, bool is_admin)
{
    char hash[PASSWORD_HASH_SIZE];
    struct err err;
    password_hash_light(name, hash);
    struct store_change change = {.kind = CHANGE_USER_ADD,
                                  .user = {.name = name,
                                           .password_hash = hash,
                                           .email = "",
                                           .is_admin = is_admin,
                                           .extension_json = "{}"}};
    struct store_batch batch = {.changes = &change, .change_count = 1};
    int failed = store_commit(world->store, &batch, &err);
    assert(failed == 0 && change.code == 0);
}

static void api_init(struct world *world)
{
    struct err err;
    world_service_init(world);
    world->api.service = &world->service;
    world->api.logins = login_table_new();
    world->api.throttle = throttle_new();
    world->api.held = byte_budget_new();
    int failed = passwords_start(&world->api.passwords, &err);
    assert(failed == 0);
    world->api.snapshot = snapshot_new();
    world->api.tokens = token_cache_new();
    world->api.guards = stream_guards_new();
    world->api.sessions = exec_sessions_new(&world->service);
    failed = log_search_start(&world->api, &err);
    assert(failed == 0);
    struct arena arena;
    arena_init(&arena);
    failed = file_threads_start(&world->api.config.files, world->service.storages(world, &arena),
                                &world->api.files, &err);
    arena_release(&arena);
    assert(failed == 0);
    world->api.watch = (struct service_watch){
        .notify = on_generation, .revoked = on_revoked, .context = &world->api};
    world->watch = &world->api.watch;
}

static void rules_init(struct world *world)
{
    struct arena arena;
    struct problems problems;
    arena_init(&arena);
    problems_init(&problems, &arena);
    world->rules = exit_rules_new(TEXT(""), &problems);
    assert(world->rules);
    problems_release(&problems);
    arena_release(&arena);
}

struct world *world_new_policy(const char *policy)
{
    return world_new_placing(policy, TEXT(""));
}

struct world *world_new_placing(const char *policy, struct text document)
{
    struct world *world = mem_zero(1, sizeof *world);
    struct err err = {0};
    int failed = secret_init(&err);
    assert(failed == 0);
    failed = folder_make("api", world->directory, sizeof world->directory);
    assert(failed == 0);
    failed = store_open(world->directory, &world->store, &err);
    assert(failed == 0);
    struct core_config config;
    core_config_default(&config);
    config.policy = policy;
    config.placement_document = document;
    world->core = core_new(&config, &err);
    if (!world->core)
        fprintf(stderr, "%s: %s\n", policy, err.text);
    assert(world->core);
    output_init(&world->output);
    rules_init(world);
    memset(world->key, 7, sizeof world->key);
    world->now_ms = 1700000000000;
    world->address = "127.0.0.1";
    world->peer_uid = -1;
    world->api.config.socket_user = "admin";
    world->api.config.log_search_ms = 600000; /* however busy the machine is */
    api_init(world);
    user_add(world, "admin", true);
    user_add(world, "alice", false);
    user_add(world, "bob", false);
    struct event event = {.kind = EVENT_NODE,
                          .node = {.name = "n1",
                                   .cpu = 8,
                                   .memory_mib = 16384,
                                   .gpu_count = 4,
                                   .gpu_type = "V100",
                                   .is_healthy = true,
                                   .address = "10.0.0.1"}};
    world_step(world, &event, NULL);
    return world;
}

struct world *world_new(void)
{
    return world_new_policy("first-fit");
}

void world_free(struct world *world)
{
    world_stream_close(world);
    core_free(world->core);
    exit_rules_free(world->rules);
    output_release(&world->output);
    exec_sessions_stop(world->api.sessions);
    exec_sessions_free(world->api.sessions);
    worker_free(world->api.search_worker);
    file_threads_free(world->api.files);
    store_close(world->store);
    passwords_free(world->api.passwords);
    login_table_free(world->api.logins);
    snapshot_free(world->api.snapshot);
    token_cache_free(world->api.tokens);
    throttle_free(world->api.throttle);
    byte_budget_free(world->api.held);
    stream_guards_free(world->api.guards);
    for (size_t i = 0; i < world->logs.count; i++) {
        buf_release(&world->logs.items[i].text);
        if (world->logs.items[i].follower >= 0)
            close(world->logs.items[i].follower);
    }
    ARRAY_FREE(&world->logs);
    buf_release(&world->body);
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", world->directory);
    int failed = system(command);
    assert(failed == 0);
    mem_free(world);
}

/* ---- requests ---- */

struct carried {
    struct exchange exchange; /* first */
    bool is_suspended;
    sem_t resumed; /* by the service of this world, at once, or by the thread of the passwords */
};

static void carried_suspend(struct exchange *exchange)
{
    ((struct carried *)exchange)->is_suspended = true;
}

static void carried_resume(struct exchange *exchange)
{
    int failed = sem_post(&((struct carried *)exchange)->resumed);
    assert(failed == 0);
}

static const struct exchange_port PORT = {carried_suspend, carried_resume};

static void carried_free(struct carried *carried)
{
    exchange_release(&carried->exchange);
    sem_destroy(&carried->resumed);
    mem_free(carried);
}

/* A reply that says that it is JSON is; a job's file is given back as it was sent. */
static void json_check(struct world *world)
{
    struct arena arena;
    struct problems problems;
    arena_init(&arena);
    problems_init(&problems, &arena);
    const struct doc *doc = doc_parse(buf_as_text(&world->body), DOC_JSON, &arena, &problems);
    if (!doc) {
        fprintf(stderr, "no JSON: %s\n", buf_cstr(&world->body));
        abort();
    }
    problems_release(&problems);
    arena_release(&arena);
}

static void header_copy(const struct exchange *exchange, const char *name, char *to, size_t size)
{
    *to = '\0';
    for (size_t i = 0; i < exchange->reply.header_count; i++)
        if (strcmp(exchange->reply.headers[i].name, name) == 0)
            snprintf(to, size, "%s", exchange->reply.headers[i].value);
}

int world_ask(struct world *world, enum http_method method, const char *target, const char *token,
              const char *content_type, struct text body)
{
    struct http_app app = api_app(&world->api);
    struct carried *carried = mem_zero(1, sizeof *carried);
    struct exchange *exchange = &carried->exchange;
    world_stream_close(world);
    int failed = sem_init(&carried->resumed, 0, 0);
    assert(failed == 0);
    exchange_init(exchange);
    exchange->port = &PORT;
    if (world->range)
        exchange->range = text_of(world->range);
    if (world->if_range)
        exchange->if_range = text_of(world->if_range);
    if (world->idempotency_key)
        exchange->idempotency_key = text_of(world->idempotency_key);
    if (world->if_none_match)
        exchange->if_none_match = text_of(world->if_none_match);
    exchange->method = method;
    exchange->target = text_of(arena_copy(&exchange->arena, text_of(target)));
    exchange->address = text_of(world->address);
    exchange->peer_uid = world->peer_uid;
    exchange->content_type = content_type ? text_of(content_type) : (struct text){NULL, 0};
    if (token)
        exchange->authorization = text_of(
            strchr(token, ' ') ? token : arena_format(&exchange->arena, "Bearer %s", token));
    exchange->body_length = world->is_length_unknown ? -1 : (int64_t)body.length;
    exchange->is_body_too_big = !world->is_length_unknown && body.length > HTTP_BODY_MAX;
    if (app.begin(app.context, exchange)) {
        buf_text(&exchange->body, body);
        app.handle(app.context, exchange);
        while (carried->is_suspended) {
            while (sem_wait(&carried->resumed) < 0)
                continue; /* a signal */
            carried->is_suspended = false;
            app.resume(app.context, exchange);
        }
    }
    world->status = exchange->reply.status;
    assert(world->status >= 200 && world->status < 600);
    snprintf(world->content_type, sizeof world->content_type, "%s",
             exchange->reply.content_type ? exchange->reply.content_type : "");
    header_copy(exchange, "Retry-After", world->retry_after, sizeof world->retry_after);
    header_copy(exchange, "X-Skep-Removed", world->removed, sizeof world->removed);
    header_copy(exchange, "X-Skep-Offset", world->offset, sizeof world->offset);
    header_copy(exchange, "Content-Range", world->content_range, sizeof world->content_range);
    header_copy(exchange, "Location", world->location, sizeof world->location);
    header_copy(exchange, "Link", world->link, sizeof world->link);
    header_copy(exchange, "ETag", world->etag, sizeof world->etag);
    buf_clear(&world->body);
    buf_text(&world->body, buf_as_text(&exchange->reply.body));
    if (strncmp(world->content_type, "application/json", 16) == 0 && world->body.length &&
        world->body.length <= DOC_BYTES_MAX && !strstr(target, "/config"))
        json_check(world);
    app.end(app.context, exchange);
    exchange_forget(exchange); /* as the edge does: streams must not need it */
    if (exchange->reply.stream.read)
        world->streaming = exchange;
    else
        carried_free(carried);
    return world->status;
}

int world_get(struct world *world, const char *target, const char *token)
{
    return world_ask(world, HTTP_GET, target, token, NULL, TEXT(""));
}

int world_send(struct world *world, enum http_method method, const char *target, const char *token,
               const char *body)
{
    return world_ask(world, method, target, token, "application/json", text_of(body));
}

bool world_body_has(const struct world *world, const char *part)
{
    return strstr(buf_cstr(&world->body), part) != NULL;
}

const char *world_login(struct world *world, const char *user)
{
    static char tokens[8][2048];
    static unsigned next;
    char body[200];
    snprintf(body, sizeof body, "{\"username\":\"%s\",\"password\":\"%s-password\"}", user, user);
    int status = world_send(world, HTTP_POST, "/api/v2/authn/basic/login", NULL, body);
    assert(status == 200);
    const char *from = strstr(buf_cstr(&world->body), "\"token\":\"");
    assert(from);
    from += 9;
    char *token = tokens[next++ % 8];
    snprintf(token, sizeof tokens[0], "%.*s", (int)strcspn(from, "\""), from);
    return token;
}

void world_change(struct world *world, const struct store_change *change)
{
    struct err err = {0};
    int code =
        world->service.change(world->service.context, change, (struct service_reply){0}, &err);
    assert(code == 0);
}

void world_admin_set(struct world *world, const char *user, bool is_admin)
{
    const struct store_user changed = {.name = user,
                                       .password_hash = "",
                                       .email = "",
                                       .is_admin = is_admin,
                                       .extension_json = "{}",
                                       .identity = ""};
    world_change(world, &(struct store_change){
                            .kind = CHANGE_USER_SET, .user = changed, .fields = USER_ADMIN});
}

/* ---- jobs ---- */

struct job_id world_submit(struct world *world, const char *token, const char *name,
                           unsigned instances)
{
    struct buf file = BUF_INIT;
    buf_format(&file,
               "protocolVersion: 2\nname: %s\ntype: job\nprerequisites:\n"
               "- {protocolVersion: 2, name: image, type: dockerimage, uri: 'debian:12'}\n"
               "secrets: {password: hush-hush}\n"
               "taskRoles:\n  worker:\n    instances: %u\n    dockerImage: image\n"
               "    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}\n"
               "    commands: ['echo <%% $secrets.password %%>']\n",
               name, instances);
    int status =
        world_ask(world, HTTP_POST, "/api/v2/jobs", token, "text/plain", buf_as_text(&file));
    if (status != 202)
        fprintf(stderr, "%s\n", buf_cstr(&world->body));
    assert(status == 202);
    buf_release(&file);
    struct job_filter filter = {.limit = 1, .is_descending = true, .keyword = text_of(name)};
    struct arena arena;
    struct job_page page = {0};
    arena_init(&arena);
    store_job_list(world->store, &filter, &arena, &page);
    assert(page.count == 1);
    struct job_id job = page.items[0].record.id;
    arena_release(&arena);
    return job;
}

/* Visit the current tasks of a job. */
static void tasks_visit(struct world *world, struct job_id job,
                        void (*visit)(struct world *, const struct task_record *, void *),
                        void *context)
{
    struct arena arena;
    struct err err;
    struct store_tasks tasks = {0};
    struct store_reader *reader = world->service.reader_get(world, &err);
    arena_init(&arena);
    assert(reader);
    int failed = store_tasks(reader, job, -1, &arena, &tasks, &err);
    assert(failed == 0);
    world->service.reader_put(world, reader);
    for (size_t i = 0; i < tasks.count; i++)
        visit(world, &tasks.items[i], context);
    arena_release(&arena);
}

static void task_run(struct world *world, const struct task_record *task, void *context)
{
    (void)context;
    if (!task->attempt.v)
        return;
    struct event event = {.kind = EVENT_TASK_PREPARING, .task = {.attempt = task->attempt}};
    world_step(world, &event, NULL);
    event = (struct event){.kind = EVENT_TASK_STARTED, .task = {.attempt = task->attempt}};
    world_step(world, &event, NULL);
}

void world_run(struct world *world, struct job_id job)
{
    tasks_visit(world, job, task_run, NULL);
}

struct found {
    unsigned index;
    struct attempt_id attempt;
};

static void task_find(struct world *world, const struct task_record *task, void *context)
{
    (void)world;
    struct found *found = context;
    if (task->task.index == found->index)
        found->attempt = task->attempt;
}

struct attempt_id world_attempt(struct world *world, struct job_id job, unsigned index)
{
    struct found found = {.index = index};
    tasks_visit(world, job, task_find, &found);
    return found.attempt;
}

void world_exit(struct world *world, struct job_id job, unsigned index, int code)
{
    struct event event = {.kind = EVENT_TASK_EXITED,
                          .task = {.attempt = world_attempt(world, job, index)}};
    event.task.completion = completion_of(code, "%s", "said the test");
    event.task.completion.exit_code = code;
    world_step(world, &event, NULL);
}

void world_refuse(struct world *world, struct job_id job, unsigned index)
{
    struct event event = {.kind = EVENT_TASK_REFUSED,
                          .task = {.attempt = world_attempt(world, job, index),
                                   .reason = "OutOfcpu",
                                   .message = "others were quicker"}};
    world_step(world, &event, NULL);
}

/* ---- logs and streams ---- */

struct world_attempt_log *world_log(struct world *world, struct attempt_id attempt)
{
    for (size_t i = 0; i < world->logs.count; i++)
        if (world->logs.items[i].attempt.v == attempt.v)
            return &world->logs.items[i];
    struct world_attempt_log *log = ARRAY_ADD(&world->logs);
    log->attempt = attempt;
    log->follower = -1;
    return log;
}

void world_log_wake(struct world_attempt_log *log)
{
    assert(write(log->follower, "", 1) == 1);
}

ssize_t world_stream(struct world *world)
{
    char bytes[4096];
    assert(world->streaming);
    struct http_stream *stream = &world->streaming->reply.stream;
    ssize_t length = stream->read(stream->state, bytes, sizeof bytes);
    buf_clear(&world->body);
    if (length > 0)
        buf_add(&world->body, bytes, (size_t)length);
    return length;
}

void world_stream_close(struct world *world)
{
    if (world->streaming)
        carried_free((struct carried *)world->streaming);
    world->streaming = NULL;
}

ssize_t world_read_all(struct world *world, struct buf *out)
{
    ssize_t length;
    buf_clear(out);
    while ((length = world_stream(world)) > 0)
        buf_text(out, buf_as_text(&world->body));
    return length;
}

int world_setup(void **state)
{
    *state = world_new();
    return 0;
}

int world_teardown(void **state)
{
    world_free(*state);
    return 0;
}
