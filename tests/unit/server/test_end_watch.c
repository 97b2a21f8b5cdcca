/* The end of the server has a bound: who watches it gives up once, naming what is waited for. */
#include "unit.h"

#include <semaphore.h>

#include "server/end_watch.h"

struct witness {
    sem_t gave_up;
    const char *stage;
    int count;
};

static void on_give_up(void *context, const char *stage)
{
    struct witness *witness = context;
    witness->stage = stage;
    witness->count++;
    assert_int_equal(sem_post(&witness->gave_up), 0);
}

static struct end_watch *watch_of(struct witness *witness, int64_t tell_ms, int64_t limit_ms)
{
    const struct end_watch_config config = {
        .tell_ms = tell_ms, .limit_ms = limit_ms, .give_up = on_give_up, .context = witness};
    *witness = (struct witness){0};
    assert_int_equal(sem_init(&witness->gave_up, 0, 0), 0);
    struct end_watch *watch = end_watch_start(&config, "the first part");
    assert_non_null(watch);
    return watch;
}

static void test_gives_up_once_and_says_for_what(void **state)
{
    (void)state;
    struct witness witness;
    struct end_watch *watch = watch_of(&witness, 1, 5); /* it also tells a few times */
    assert_int_equal(sem_wait(&witness.gave_up), 0);
    assert_string_equal(witness.stage, "the first part");
    end_watch_stage(watch, "the second part");
    end_watch_stop(watch);
    assert_int_equal(witness.count, 1);
}

static void test_an_end_in_time_is_left_alone(void **state)
{
    (void)state;
    struct witness witness;
    struct end_watch *watch = watch_of(&witness, INT32_MAX, INT32_MAX);
    end_watch_stage(watch, "the second part");
    end_watch_stop(watch);
    assert_int_equal(witness.count, 0);
}

static void test_none_can_be_stopped(void **state)
{
    (void)state;
    end_watch_stage(NULL, "no part");
    end_watch_stop(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_gives_up_once_and_says_for_what),
    cmocka_unit_test(test_an_end_in_time_is_left_alone),
    cmocka_unit_test(test_none_can_be_stopped),
};

UNIT_FILE(tests, NULL, NULL);
