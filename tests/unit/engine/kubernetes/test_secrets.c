/* The begin and the end of an attempt's secret, at an API server that the test plays. */
#include "unit.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/secret_note.h"
#include "engine/kubernetes/state.h"
#include "folder.h"
#include "played.h"

static struct {
    struct played server;
    int connection;
    struct kube kube;
} world;

static int setup(void **state)
{
    struct err err;
    if (folder_setup(state) != 0 || played_open(&world.server, 8) != 0)
        return -1;
    world.connection = -1;
    world.kube = (struct kube){.lock = PTHREAD_MUTEX_INITIALIZER,
                               .settings = {.space = "default", .instance = "one"},
                               .is_listed = true,
                               .late_ms = 1,
                               .secret_notes = in_folder("secrets")};
    return kube_client_new(&world.server.access, UNWATCHED, &world.kube.client, &err);
}

static int teardown(void **state)
{
    kube_client_free(world.kube.client);
    tasks_free(&world.kube);
    if (world.connection >= 0)
        close(world.connection);
    played_close(&world.server);
    return folder_teardown(state);
}

/* The next request; a connection that is kept is used again. */
static void asked(const char *line)
{
    char request[PLAYED_REQUEST_MAX];
    size_t length = 0, rest = 0;
    const char *head = NULL;
    if (world.connection < 0)
        world.connection = accept(world.server.listener, NULL, NULL);
    assert_true(world.connection >= 0);
    while (!head || length < (size_t)(head + 4 - request) + rest) {
        ssize_t got = read(world.connection, request + length, sizeof request - 1 - length);
        assert_true(got > 0);
        length += (size_t)got;
        request[length] = '\0';
        head = strstr(request, "\r\n\r\n");
        const char *size = strstr(request, "Content-Length: ");
        rest = head && size ? strtoul(size + 16, NULL, 10) : 0;
    }
    assert_memory_equal(request, line, strlen(line));
}

/* The connection is closed, so that the next request brings its own. */
static void say(const char *status)
{
    char answer[200];
    int length = snprintf(answer, sizeof answer,
                          "HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status);
    assert_int_equal(write(world.connection, answer, (size_t)length), length);
    close(world.connection);
    world.connection = -1;
}

static void count(void *context, struct attempt_id attempt)
{
    assert_int_equal(attempt.v, 7);
    ++*(size_t *)context;
}

static bool is_noted(void)
{
    size_t notes = 0;
    secret_note_each(world.kube.secret_notes, count, &notes);
    return notes > 0;
}

static void note_goes(void)
{
    while (is_noted())
        sched_yield();
}

static bool is_there(void)
{
    pthread_mutex_lock(&world.kube.lock);
    const bool is_known = kube_task_find(&world.kube, (struct attempt_id){7});
    pthread_mutex_unlock(&world.kube.lock);
    return is_known;
}

static void forget(bool is_unsure)
{
    const struct attempt_id attempt = {7};
    secret_note_put(world.kube.secret_notes, attempt);
    pthread_mutex_lock(&world.kube.lock);
    struct kube_task *task = kube_task_add(&world.kube, attempt, "n1");
    task->state = TASK_ENDED;
    task->is_secret_unsure = is_unsure;
    kube_task_forget(&world.kube, task);
    pthread_mutex_unlock(&world.kube.lock);
}

#define DELETE_SECRET "DELETE /api/v1/namespaces/default/secrets/one-7 "

static void a_secret_that_was_there_has_gone_with_its_note(void **state)
{
    (void)state;
    forget(false);
    asked(DELETE_SECRET);
    assert_true(is_noted());
    say("200 OK");
    note_goes();
    pthread_mutex_lock(&world.kube.lock);
    assert_null(kube_task_find(&world.kube, (struct attempt_id){7}));
    pthread_mutex_unlock(&world.kube.lock);
}

/* What a skepd that was killed had asked for may be made after the first answer. */
static void a_secret_that_was_not_there_is_looked_for_again(void **state)
{
    (void)state;
    forget(false);
    asked(DELETE_SECRET);
    say("404 Not Found");
    asked(DELETE_SECRET);
    assert_true(is_noted());
    say("200 OK");
    note_goes();
}

/* Of two creates, the first without an answer, the first may be the later one. */
static void a_secret_that_was_asked_for_twice_is_looked_for_again(void **state)
{
    (void)state;
    forget(true);
    asked(DELETE_SECRET);
    say("200 OK");
    asked(DELETE_SECRET);
    assert_true(is_noted());
    say("404 Not Found");
    note_goes();
}

/* --- it cannot be made --- */

static atomic_int refused;

static void refusal_posted(void *context, const struct engine_event *event)
{
    const char *const *reason = context;
    assert_int_equal(event->kind, ENGINE_REFUSED);
    assert_string_equal(event->reason, *reason);
    refused++;
}

static void begin(void)
{
    const struct container container = {
        .attempt = {7}, .job = "ann~j", .role = "r", .node = "n1", .image = "i"};
    pthread_mutex_lock(&world.kube.lock);
    kube_task_begin(&world.kube, kube_task_add(&world.kube, container.attempt, "n1"), &container);
    pthread_mutex_unlock(&world.kube.lock);
}

/* A policy, a quota or a namespace that is away is the operator's: no job fails for it. */
static void what_is_refused_at_admission_goes_back_to_the_queue(void **state)
{
    static const struct {
        const char *status, *reason;
    } cases[] = {{"403 Forbidden", KUBE_POLICY}, {"404 Not Found", KUBE_API}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *reason = cases[i].reason;
        refused = 0;
        world.kube.sink = (struct engine_sink){.context = &reason, .post = refusal_posted};
        begin();
        asked("POST /api/v1/namespaces/default/secrets ");
        say(cases[i].status);
        while (refused == 0)
            sched_yield();
        pthread_mutex_lock(&world.kube.lock);
        kube_task_forget(&world.kube, kube_task_find(&world.kube, (struct attempt_id){7}));
        pthread_mutex_unlock(&world.kube.lock);
        asked(DELETE_SECRET);
        say("200 OK");
        note_goes();
        while (is_there())
            sched_yield();
    }
}

/* --- what an earlier skepd has left --- */

static const struct engine_event *told_exit(struct tells *tells)
{
    assert_int_equal(tells->events.count, 1);
    assert_int_equal(tells->events.items[0].kind, ENGINE_EXITED);
    return &tells->events.items[0];
}

/* Its pod has gone, or never was: it is held until it is forgotten, and then its secret goes. */
static void an_attempt_without_a_pod_has_ended(void **state)
{
    struct tells tells;
    (void)state;
    secret_note_put(world.kube.secret_notes, (struct attempt_id){7});
    kube_enter(&world.kube, &tells);
    tasks_left(&world.kube, &tells);
    assert_true(told_exit(&tells)->exit->is_missing);
    tasks_left(&world.kube, &tells);
    assert_int_equal(tells.events.count, 1);
    kube_task_forget(&world.kube, kube_task_find(&world.kube, (struct attempt_id){7}));
    tells.events.count = 0; /* there is no sink */
    kube_leave(&world.kube, &tells);
    asked(DELETE_SECRET);
    say("200 OK");
    note_goes();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_secret_that_was_there_has_gone_with_its_note, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_secret_that_was_not_there_is_looked_for_again, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_secret_that_was_asked_for_twice_is_looked_for_again, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(what_is_refused_at_admission_goes_back_to_the_queue, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(an_attempt_without_a_pod_has_ended, setup, teardown),
};

UNIT_FILE(tests, NULL, NULL);
