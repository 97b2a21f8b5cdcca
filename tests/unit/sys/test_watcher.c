/* A thread that works in rounds. */
#include "unit.h"

#include "base/err.h"
#include "sys/clock.h"
#include "sys/mailbox.h"
#include "sys/watcher.h"

struct rounds {
    struct watcher watcher;
    unsigned count; /* under its lock */
    bool has_news;
};

static void *rounds_run(void *context)
{
    struct rounds *rounds = context;
    pthread_mutex_lock(&rounds->watcher.lock);
    while (!rounds->watcher.is_ending) {
        if (rounds->has_news) {
            rounds->has_news = false;
            rounds->count++;
            watcher_wake(&rounds->watcher);
        }
        watcher_await(&rounds->watcher, clock_monotonic_ms() + 3600000);
    }
    pthread_mutex_unlock(&rounds->watcher.lock);
    return NULL;
}

/* News wakes the thread, and so does its end, an hour before its time. */
static void news_and_the_end_wake_it(void **state)
{
    (void)state;
    struct rounds rounds = {0};
    struct err err = {0};
    watcher_init(&rounds.watcher);
    assert_false(watcher_stop(&rounds.watcher)); /* not started */
    assert_int_equal(watcher_start(&rounds.watcher, rounds_run, &rounds, "a thread", &err), 0);
    for (unsigned i = 1; i <= 3; i++) {
        pthread_mutex_lock(&rounds.watcher.lock);
        rounds.has_news = true;
        while (rounds.count < i) {
            watcher_wake(&rounds.watcher);
            watcher_await(&rounds.watcher, clock_monotonic_ms() + 10);
        }
        pthread_mutex_unlock(&rounds.watcher.lock);
    }
    assert_true(watcher_stop(&rounds.watcher));
    assert_false(watcher_stop(&rounds.watcher));
    assert_int_equal(rounds.count, 3);
    watcher_release(&rounds.watcher);
}

static void a_round_begins_at_its_time(void **state)
{
    (void)state;
    struct watcher watcher;
    watcher_init(&watcher);
    pthread_mutex_lock(&watcher.lock);
    const int64_t due_ms = clock_monotonic_ms() + 20;
    while (watcher_await(&watcher, due_ms)) /* woken for nothing */
        continue;
    assert_true(clock_monotonic_ms() >= due_ms);
    assert_false(watcher_await(&watcher, due_ms)); /* a time that has passed */
    pthread_mutex_unlock(&watcher.lock);
    watcher_release(&watcher);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(news_and_the_end_wake_it),
    cmocka_unit_test(a_round_begins_at_its_time),
};
UNIT_FILE(tests, NULL, NULL);
