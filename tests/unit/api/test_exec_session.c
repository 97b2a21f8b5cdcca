/* Sessions whose program has ended, and nobody has come for what it wrote: they wait for a client,
 * but not when they are told to end. And sessions whose user is not allowed any more. Programs are
 * the test's own; real ones, and clients, are tests/system/cli/test_exec.py's. */
#include "unit.h"
#include "world.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/exec_session.h"
#include "api/http_watch.h"
#include "api/service.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/clock.h"

/* What an engine would have started: it writes nothing, and ends when it is told to. */
struct program {
    struct engine_exec exec; /* first */
    sem_t started, seen, freed;
    char id[EXEC_ID_LENGTH + 1];
    bool is_lost;
    char ended[200]; /* what is noted of its end */
};

static void program_resize(struct engine_exec *exec, uint16_t rows, uint16_t columns)
{
    (void)exec, (void)rows, (void)columns;
}

static bool program_ended(struct engine_exec *exec, struct engine_exec_end *end)
{
    struct program *program = (struct program *)exec;
    *end = (struct engine_exec_end){.code = 3, .is_lost = program->is_lost};
    assert_int_equal(sem_post(&program->seen), 0);
    return true;
}

static void program_free(struct engine_exec *exec)
{
    struct program *program = (struct program *)exec;
    const int fds[] = {exec->input, exec->output, exec->error, exec->end};
    for (size_t i = 0; i < COUNT_OF(fds); i++)
        close(fds[i]);
    assert_int_equal(sem_post(&program->freed), 0);
}

static const struct engine_exec_ops PROGRAM_OPS = {program_resize, program_ended, program_free};

static int on_exec(void *context, uint8_t engine, struct attempt_id attempt,
                   const struct engine_exec_request *request, struct engine_exec **exec,
                   struct err *err)
{
    struct program *program = context;
    int output[2], error[2];
    (void)engine, (void)attempt, (void)request, (void)err;
    assert_int_equal(pipe(output), 0);
    assert_int_equal(pipe(error), 0);
    close(error[1]);
    program->exec = (struct engine_exec){.ops = &PROGRAM_OPS,
                                         .input = output[1],
                                         .output = output[0],
                                         .error = error[0],
                                         .end = eventfd(0, EFD_CLOEXEC)};
    *exec = &program->exec;
    return 0;
}

static void on_note(void *context, struct attempt_id attempt, const char *reason, const char *text)
{
    struct program *program = context;
    (void)attempt;
    if (strcmp(reason, "ExecEnded") == 0)
        snprintf(program->ended, sizeof program->ended, "%s", text);
}

static struct store_reader *no_reader(void *context, struct err *err)
{
    (void)context;
    err_fail(err, ERR_BUSY, "", "nobody looks users up here");
    return NULL;
}

static void on_started(void *context, const char *id, int code, const struct err *err)
{
    struct program *program = context;
    (void)err;
    assert_int_equal(code, 0);
    memcpy(program->id, id, sizeof program->id);
    assert_int_equal(sem_post(&program->started), 0);
}

/* One session, whose program has ended; it has looked. */
static void session_end_alone(struct exec_sessions *sessions, struct program *program,
                              bool has_terminal)
{
    const uint64_t one = 1;
    const char *const argv[] = {"true", NULL};
    struct err err;
    const struct exec_wanted wanted = {
        .opener = {.user = "ann"},
        .job = "ann~box",
        .role = "worker",
        .address = TEXT("127.0.0.1"),
        .attempt = {1},
        .request = {.argv = argv, .has_terminal = has_terminal, .rows = 24, .columns = 80},
        .started = on_started,
        .context = program};
    assert_int_equal(exec_session_open(sessions, &wanted, &err), 0);
    assert_int_equal(sem_wait(&program->started), 0);
    assert_int_equal(write(program->exec.end, &one, sizeof one), sizeof one);
    assert_int_equal(sem_wait(&program->seen), 0);
}

static struct program *program_new(void)
{
    struct program *program = mem_zero(1, sizeof *program);
    assert_int_equal(sem_init(&program->started, 0, 0), 0);
    assert_int_equal(sem_init(&program->seen, 0, 0), 0);
    assert_int_equal(sem_init(&program->freed, 0, 0), 0);
    return program;
}

static void end_is_not_delayed(bool has_terminal, bool is_by_its_user)
{
    struct program *program = program_new();
    struct service service = {
        .context = program, .exec = on_exec, .note = on_note, .reader_get = no_reader};
    struct exec_sessions *sessions = exec_sessions_new(&service);
    struct err err;
    session_end_alone(sessions, program, has_terminal);
    cleanup_arena struct arena arena;
    const char *job;
    arena_init(&arena);
    assert_int_equal(exec_session_check(sessions, text_of(program->id), "ann", &arena, &job, &err),
                     0);
    assert_string_equal(job, "ann~box");
    int64_t begun_ms = clock_monotonic_ms();
    if (is_by_its_user) {
        assert_int_equal(exec_session_end(sessions, text_of(program->id), "ann", &err), 0);
        assert_int_equal(sem_wait(&program->freed), 0);
    }
    exec_sessions_stop(sessions);
    /* by far less, but machines stand still at times */
    assert_true(clock_monotonic_ms() - begun_ms < 1000 * EXEC_DETACHED_S / 2);
    assert_int_equal(exec_session_check(sessions, text_of(program->id), "ann", &arena, &job, &err),
                     ERR_NOT_FOUND);
    exec_sessions_free(sessions);
    mem_free(program);
}

static void test_the_end_of_all_waits_for_no_client(void **state)
{
    (void)state;
    end_is_not_delayed(true, false);
    end_is_not_delayed(false, false);
}

static void test_a_user_ends_what_has_ended(void **state)
{
    (void)state;
    end_is_not_delayed(true, true);
    end_is_not_delayed(false, true);
}

static void end_is_noted(bool is_lost, const char *words)
{
    struct program *program = program_new();
    struct service service = {
        .context = program, .exec = on_exec, .note = on_note, .reader_get = no_reader};
    struct exec_sessions *sessions = exec_sessions_new(&service);
    program->is_lost = is_lost;
    session_end_alone(sessions, program, false);
    exec_sessions_stop(sessions);
    assert_non_null(strstr(program->ended, words));
    exec_sessions_free(sessions);
    mem_free(program);
}

/* A code that nobody told is none. */
static void test_what_is_not_known_of_an_end_is_said(void **state)
{
    (void)state;
    end_is_noted(false, "with code 3");
    end_is_noted(true, "the connection to the program was lost");
}

/* ---- who is not allowed any more ---- */

static struct program *program_of_test;

static int on_exec_in_world(void *context, uint8_t engine, struct attempt_id attempt,
                            const struct engine_exec_request *request, struct engine_exec **exec,
                            struct err *err)
{
    (void)context;
    return on_exec(program_of_test, engine, attempt, request, exec, err);
}

static void on_note_in_world(void *context, struct attempt_id attempt, const char *reason,
                             const char *text)
{
    (void)context;
    on_note(program_of_test, attempt, reason, text);
}

static int world_setup_with_job(void **state)
{
    struct world *world = world_new();
    world->service.exec = on_exec_in_world;
    world->service.note = on_note_in_world;
    world_run(world, world_submit(world, world_login(world, "alice"), "box", 1));
    *state = world;
    return 0;
}

static void session_open(struct world *world, const char *token)
{
    program_of_test = program_new();
    assert_int_equal(world_send(world, HTTP_POST, "/api/v2/jobs/alice~box/exec", token, "{}"), 201);
}

/* The program has been ended, and the job's story says why. */
static void session_is_ended(struct world *world)
{
    assert_int_equal(sem_wait(&program_of_test->freed), 0);
    exec_sessions_stop(world->api.sessions);
    assert_non_null(strstr(program_of_test->ended, "the user is not allowed any more"));
    mem_free(program_of_test);
}

static void test_its_admin_is_none_any_more(void **state)
{
    struct world *world = *state;
    world_admin_set(world, "bob", true);
    session_open(world, world_login(world, "bob"));
    world_admin_set(world, "bob", false);
    session_is_ended(world);
}

static void test_its_token_is_revoked(void **state)
{
    struct world *world = *state;
    const char *alice = world_login(world, "alice");
    session_open(world, alice);
    assert_int_equal(world_send(world, HTTP_DELETE, "/api/v2/authn/basic/logout", alice, ""), 200);
    session_is_ended(world);
}

static void test_its_user_is_removed(void **state)
{
    struct world *world = *state;
    world_admin_set(world, "bob", true);
    session_open(world, world_login(world, "bob"));
    world_change(world,
                 &(struct store_change){.kind = CHANGE_USER_REMOVE, .user = {.name = "bob"}});
    session_is_ended(world);
}

/* Whoever comes back needs what was needed to open it: a token of a small scope carries nothing of
 * what its user may do as an administrator. */
static void test_who_comes_back_is_asked_for_the_right(void **state)
{
    struct world *world = *state;
    char token[2048], path[128];
    const char *admin = world_login(world, "admin");
    session_open(world, admin);
    const char *at = strstr(buf_cstr(&world->body), "\"id\":\"");
    assert_non_null(at);
    snprintf(path, sizeof path, "/api/v2/exec/%.*s/link", EXEC_ID_LENGTH, at + 6);
    assert_int_equal(
        world_send(world, HTTP_POST, "/api/v2/tokens/application", admin, "{\"scope\":\"submit\"}"),
        200);
    at = strstr(buf_cstr(&world->body), "\"token\":\"");
    assert_non_null(at);
    snprintf(token, sizeof token, "%.*s", (int)strcspn(at + 9, "\""), at + 9);
    assert_int_equal(world_send(world, HTTP_POST, path, token, ""), 403);
    assert_body(world, "auth.enter-job");
    assert_int_equal(world_send(world, HTTP_POST, path, admin, ""), 200);
    exec_sessions_stop(world->api.sessions);
    mem_free(program_of_test);
}

#define IN_WORLD(name) cmocka_unit_test_setup_teardown(name, world_setup_with_job, world_teardown)
static const struct CMUnitTest tests[] = {
    IN_WORLD(test_its_admin_is_none_any_more),
    IN_WORLD(test_its_token_is_revoked),
    IN_WORLD(test_its_user_is_removed),
    IN_WORLD(test_who_comes_back_is_asked_for_the_right),
    cmocka_unit_test(test_what_is_not_known_of_an_end_is_said),
    cmocka_unit_test(test_the_end_of_all_waits_for_no_client),
    cmocka_unit_test(test_a_user_ends_what_has_ended),
};

UNIT_FILE(tests, NULL, NULL);
