/* Threads of storages: they come and go with them, and what they find when they look. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/storage_thread.h"
#include "base/err.h"

enum { NOBODY = 65534, NO_PATIENCE_MS = 1, NO_END_MS = 3600 * 1000 };

/* A task that the thread is at until `go`. */
struct held {
    struct worker_task task; /* first */
    sem_t begun, go, ended;
    bool is_run;
};

static void held_run(struct worker_task *task, void *context)
{
    struct held *held = (struct held *)task;
    (void)context;
    sem_post(&held->begun);
    sem_wait(&held->go);
}

static void held_done(struct worker_task *task, bool is_run)
{
    struct held *held = (struct held *)task;
    held->is_run = is_run;
    sem_post(&held->ended);
}

static void hold(struct storage_thread *thread, struct held *held)
{
    struct err err;
    *held = (struct held){.task = {.run = held_run, .done = held_done}};
    assert_int_equal(sem_init(&held->begun, 0, 0), 0);
    assert_int_equal(sem_init(&held->go, 0, 0), 0);
    assert_int_equal(sem_init(&held->ended, 0, 0), 0);
    assert_int_equal(storage_thread_give(thread, &held->task, &err), 0);
    sem_wait(&held->begun);
}

static void let_go(struct held *held)
{
    sem_post(&held->go);
    sem_wait(&held->ended);
    assert_true(held->is_run);
}

struct room {
    char folder[64];
    struct storage storage;
};

static int setup(void **state)
{
    static struct room room;
    snprintf(room.folder, sizeof room.folder, "/tmp/skep-test-storage-XXXXXX");
    assert_non_null(mkdtemp(room.folder));
    room.storage = (struct storage){.name = "home", .directory = room.folder, .claim = ""};
    *state = &room;
    return 0;
}

static int teardown(void **state)
{
    rmdir(((struct room *)*state)->folder);
    return 0;
}

static struct storage_list list_of(const struct storage *storage)
{
    return (struct storage_list){storage, 1};
}

static struct storage_threads *start(const struct storage *storage, uint32_t patience_ms)
{
    struct storage_threads *threads;
    struct err err;
    assert_int_equal(storage_threads_start(list_of(storage), patience_ms, &threads, &err), 0);
    return threads;
}

/* Everything asked before has been done when this returns. */
static void settle(struct storage_threads *threads, const struct storage *storage)
{
    struct storage_thread *thread;
    struct held held;
    struct err err;
    assert_int_equal(storage_thread_take(threads, storage, &thread, &err), 0);
    hold(thread, &held);
    let_go(&held);
    storage_thread_put(threads, thread);
}

static struct storage_health health_of(struct storage_threads *threads,
                                       const struct storage *storage)
{
    struct storage_health health;
    storage_health(threads, storage, &health);
    return health;
}

static void a_folder_that_is_well(void **state)
{
    const struct storage *storage = &((struct room *)*state)->storage;
    struct storage_threads *threads = start(storage, NO_END_MS);
    settle(threads, storage);
    const struct storage_health health = health_of(threads, storage);
    assert_int_equal(health.state, STORAGE_WELL);
    assert_int_equal(health.number, 0);
    assert_true(health.looked_ms > 0 && health.silent_ms == 0);
    assert_true(health.total_bytes > 0 && health.free_bytes <= health.total_bytes);
    storage_threads_free(threads);
}

static void a_folder_that_is_not_there(void **state)
{
    struct room *room = *state;
    const struct storage gone = {.name = "gone", .directory = "/no/such/folder", .claim = ""};
    const struct storage claim = {.name = "claim", .directory = "", .claim = "c"};
    struct storage_threads *threads = start(&gone, NO_END_MS);
    settle(threads, &gone);
    assert_int_equal(health_of(threads, &gone).state, STORAGE_ABSENT);
    assert_int_equal(health_of(threads, &gone).number, ENOENT);
    assert_int_equal(health_of(threads, &claim).state, STORAGE_ELSEWHERE);
    assert_int_equal(health_of(threads, &room->storage).state, STORAGE_ELSEWHERE);
    storage_threads_change(threads, list_of(&claim));
    assert_int_equal(storage_threads_count(threads), 0);
    storage_threads_free(threads);
}

static void a_folder_that_cannot_be_written_to(void **state)
{
    struct room *room = *state;
    const bool is_root = geteuid() == 0; /* who may everything */
    assert_int_equal(chmod(room->folder, 0555), 0);
    if (is_root)
        assert_int_equal(seteuid(NOBODY), 0);
    struct storage_threads *threads = start(&room->storage, NO_END_MS);
    settle(threads, &room->storage);
    const struct storage_health health = health_of(threads, &room->storage);
    storage_threads_free(threads);
    if (is_root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(health.state, STORAGE_UNWRITABLE);
    assert_int_equal(health.number, EACCES);
    assert_true(health.total_bytes > 0);
}

static void what_is_old_is_looked_at_again(void **state)
{
    struct room *room = *state;
    struct storage_threads *threads = start(&room->storage, NO_PATIENCE_MS);
    settle(threads, &room->storage);
    assert_int_equal(rmdir(room->folder), 0);
    while (health_of(threads, &room->storage).state != STORAGE_ABSENT)
        settle(threads, &room->storage);
    assert_int_equal(mkdir(room->folder, 0700), 0);
    while (health_of(threads, &room->storage).state != STORAGE_WELL)
        settle(threads, &room->storage);
    storage_threads_free(threads);
}

static void a_disk_that_hangs_is_told(void **state)
{
    struct room *room = *state;
    struct storage_threads *threads = start(&room->storage, NO_PATIENCE_MS);
    struct storage_thread *thread;
    struct held held;
    struct err err;
    settle(threads, &room->storage);
    assert_int_equal(storage_thread_take(threads, &room->storage, &thread, &err), 0);
    hold(thread, &held);
    struct storage_health health;
    do
        health = health_of(threads, &room->storage); /* never waits */
    while (health.state != STORAGE_SILENT);
    assert_true(health.silent_ms >= NO_PATIENCE_MS && health.total_bytes > 0);
    let_go(&held);
    storage_thread_put(threads, thread);
    settle(threads, &room->storage);
    storage_threads_free(threads);
}

static void threads_come_and_go(void **state)
{
    struct room *room = *state;
    const struct storage moved = {.name = "home", .directory = "/", .claim = ""};
    struct storage_threads *threads = start(&room->storage, NO_END_MS);
    struct storage_thread *thread, *other;
    struct held held;
    struct err err;
    settle(threads, &room->storage);
    assert_int_equal(storage_thread_take(threads, &room->storage, &thread, &err), 0);
    storage_thread_again(threads, thread);
    storage_thread_put(threads, thread);
    hold(thread, &held);

    /* withdrawn while something is under way: nobody waits for that, and it goes on */
    storage_threads_change(threads, (struct storage_list){0});
    assert_int_equal(storage_threads_count(threads), 1);
    assert_int_equal(storage_thread_take(threads, &room->storage, &other, &err), ERR_UNAVAILABLE);
    assert_string_equal(err.text, "storage home is being changed on the server: try again");
    assert_null(other);

    /* its name may stand for another folder meanwhile */
    storage_threads_change(threads, list_of(&moved));
    assert_int_equal(storage_threads_count(threads), 2);
    assert_int_equal(storage_thread_take(threads, &room->storage, &other, &err), ERR_UNAVAILABLE);
    settle(threads, &moved);
    let_go(&held);
    storage_thread_put(threads, thread);
    settle(threads, &moved); /* which ends the other one */
    assert_int_equal(storage_threads_count(threads), 1);
    storage_threads_change(threads, list_of(&moved)); /* nothing new */
    assert_int_equal(storage_threads_count(threads), 1);
    storage_threads_change(threads, (struct storage_list){0});
    assert_int_equal(storage_threads_count(threads), 0);
    storage_threads_free(threads);
}

static void the_end_waits_for_what_is_under_way(void **state)
{
    struct room *room = *state;
    struct storage_threads *threads = start(&room->storage, NO_END_MS);
    struct storage_thread *thread;
    struct held held, waiting;
    struct err err;
    assert_int_equal(storage_thread_take(threads, &room->storage, &thread, &err), 0);
    hold(thread, &held);
    waiting = (struct held){.task = {.run = held_run, .done = held_done}};
    assert_int_equal(sem_init(&waiting.begun, 0, 0), 0);
    assert_int_equal(sem_init(&waiting.go, 0, 1), 0);
    assert_int_equal(sem_init(&waiting.ended, 0, 0), 0);
    assert_int_equal(storage_thread_give(thread, &waiting.task, &err), 0);
    storage_threads_change(threads, (struct storage_list){0});
    storage_thread_put(threads, thread);
    sem_post(&held.go);
    storage_threads_stop(threads);
    sem_wait(&waiting.ended);
    assert_int_equal(storage_thread_give(thread, &held.task, &err), ERR_UNAVAILABLE);
    storage_threads_change(threads, list_of(&room->storage)); /* too late */
    assert_int_equal(storage_threads_count(threads), 1);
    storage_threads_stop(NULL);
    storage_threads_free(NULL);
    storage_threads_free(threads);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_folder_that_is_well, setup, teardown),
    cmocka_unit_test_setup_teardown(a_folder_that_is_not_there, setup, teardown),
    cmocka_unit_test_setup_teardown(a_folder_that_cannot_be_written_to, setup, teardown),
    cmocka_unit_test_setup_teardown(what_is_old_is_looked_at_again, setup, teardown),
    cmocka_unit_test_setup_teardown(a_disk_that_hangs_is_told, setup, teardown),
    cmocka_unit_test_setup_teardown(threads_come_and_go, setup, teardown),
    cmocka_unit_test_setup_teardown(the_end_waits_for_what_is_under_way, setup, teardown),
};
UNIT_FILE(tests, NULL, NULL);
