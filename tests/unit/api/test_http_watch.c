/* Who waits is woken once: when its time has come, by news, by the end of its client. */
#include "unit.h"

#include <semaphore.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/http.h"
#include "api/http_watch.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/random.h"
#include "sys/clock.h"

enum { MANY = 500 };

struct woken {
    int64_t due_ms, at_ms;
    bool is_client_gone;
};

static struct http_watch *watch;
static struct woken *order[HTTP_STREAMS_MAX + 1]; /* in which they were woken */
static size_t woken_count;
static sem_t woken;
static int client_fds[HTTP_STREAMS_MAX + 1];

/* The watch's thread alone wakes, or the test while it sleeps. */
static void wake(void *context, void *waiter, bool is_client_gone)
{
    (void)context;
    struct woken *one = waiter;
    one->at_ms = clock_monotonic_ms();
    one->is_client_gone = is_client_gone;
    order[woken_count++] = one;
    assert_int_equal(sem_post(&woken), 0);
}

static void sweep(void *context)
{
    (void)context;
}

static void woken_await(size_t count)
{
    for (size_t i = 0; i < count; i++)
        while (sem_wait(&woken) < 0)
            continue; /* a signal */
}

static int setup(void **state)
{
    (void)state;
    struct err err;
    struct rlimit files;
    const struct http_watch_ops ops = {.wake = wake, .sweep = sweep};
    woken_count = 0;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(sem_init(&woken, 0, 0), 0);
    for (size_t i = 0; i < COUNT_OF(client_fds); i++)
        client_fds[i] = eventfd(0, EFD_CLOEXEC);
    return http_watch_start(&ops, &watch, &err);
}

static int teardown(void **state)
{
    (void)state;
    http_watch_stop(watch);
    for (size_t i = 0; i < COUNT_OF(client_fds); i++)
        close(client_fds[i]);
    return sem_destroy(&woken);
}

static bool wait_for(struct woken *one, size_t client, int64_t due_ms, bool wants_news,
                     struct http_watch_rounds rounds)
{
    one->due_ms = due_ms;
    return http_watch_add(watch, one,
                          &(struct http_waiting){.fd = -1,
                                                 .client_fd = client_fds[client],
                                                 .due_ms = due_ms,
                                                 .wants_news = wants_news,
                                                 .rounds = rounds});
}

static void test_times(void **state)
{
    (void)state;
    static struct woken waiters[MANY];
    struct random random = {7};
    const struct http_watch_rounds rounds = http_watch_rounds(watch);
    const int64_t begin_ms = clock_monotonic_ms();
    for (size_t i = 0; i < MANY; i++)
        assert_true(wait_for(&waiters[i], i, begin_ms + 1 + (int64_t)random_below(&random, 400),
                             false, rounds));
    woken_await(MANY);
    for (size_t i = 0; i < MANY; i++) {
        assert_true(order[i]->at_ms >= order[i]->due_ms);
        assert_false(order[i]->is_client_gone);
    }
}

/* Who has no time is woken by news, if it wants them, and once. */
static void test_news(void **state)
{
    (void)state;
    struct woken wants = {0}, other = {0}, late = {0};
    const struct http_watch_rounds rounds = http_watch_rounds(watch);
    assert_true(wait_for(&wants, 0, 0, true, rounds));
    assert_true(wait_for(&other, 1, 0, false, rounds));
    http_watch_news(watch);
    http_watch_news(watch);
    woken_await(1);
    assert_ptr_equal(order[0], &wants);
    /* it has looked before there were news, and comes to wait after those who waited were woken */
    assert_true(wait_for(&late, 2, 0, true, rounds));
    woken_await(1);
    assert_ptr_equal(order[1], &late);
    http_watch_wake_all(watch);
    woken_await(1);
    assert_ptr_equal(order[2], &other);
    assert_int_equal(woken_count, 3);
    /* likewise of waking all */
    assert_true(wait_for(&other, 1, 0, false, rounds));
    woken_await(1);
    assert_ptr_equal(order[3], &other);
}

static void test_client_goes(void **state)
{
    (void)state;
    static struct woken stays; /* it is woken when the watch stops */
    struct woken goes = {0};
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const struct http_watch_rounds rounds = http_watch_rounds(watch);
    const struct http_waiting waiting = {.fd = -1, .client_fd = ends[0], .rounds = rounds};
    assert_true(wait_for(&stays, 0, 0, true, rounds));
    assert_true(http_watch_add(watch, &goes, &waiting));
    close(ends[1]);
    woken_await(1);
    assert_ptr_equal(order[0], &goes);
    assert_true(goes.is_client_gone);
    assert_int_equal(woken_count, 1);
    close(ends[0]);
}

/* So many and no more; a place is free as soon as its waiter has been woken. */
static void test_room(void **state)
{
    (void)state;
    static struct woken waiters[HTTP_STREAMS_MAX + 1];
    for (int i = 0; i < 2; i++) {
        const struct http_watch_rounds rounds = http_watch_rounds(watch);
        for (size_t at = 0; at < HTTP_STREAMS_MAX; at++)
            assert_true(wait_for(&waiters[at], at, 0, false, rounds));
        assert_false(wait_for(&waiters[HTTP_STREAMS_MAX], HTTP_STREAMS_MAX, 0, false, rounds));
        woken_count = 0;
        http_watch_wake_all(watch);
        woken_await(HTTP_STREAMS_MAX);
        assert_int_equal(woken_count, HTTP_STREAMS_MAX);
    }
    woken_count = 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_times, setup, teardown),
    cmocka_unit_test_setup_teardown(test_news, setup, teardown),
    cmocka_unit_test_setup_teardown(test_client_goes, setup, teardown),
    cmocka_unit_test_setup_teardown(test_room, setup, teardown),
};
UNIT_FILE(tests, NULL, NULL);
