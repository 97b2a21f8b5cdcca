/* A thread that carries out tasks: in their order, so many may wait, and what waits at the end is
 * answered but not run. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "sys/worker.h"

enum { WAITING_MAX = 3, STRANGERS_MAX = 5 };

/* What the worker has done, and where it is held. */
struct journal {
    sem_t begun, go, ended;
    unsigned numbers[16];
    size_t count;
    int nice;
};

struct job {
    struct worker_task task; /* first */
    struct journal *journal;
    unsigned number;
    bool is_held, is_done, is_run;
    pthread_t thread;
};

static void job_run(struct worker_task *task, void *context)
{
    struct job *job = (struct job *)task;
    struct journal *journal = context;
    job->thread = pthread_self();
    journal->numbers[journal->count++] = job->number;
    journal->nice = getpriority(PRIO_PROCESS, (id_t)gettid());
    if (job->is_held) {
        sem_post(&journal->begun);
        sem_wait(&journal->go);
    }
}

static void job_done(struct worker_task *task, bool is_run)
{
    struct job *job = (struct job *)task;
    assert_false(job->is_done); /* once */
    job->is_done = true;
    job->is_run = is_run;
    sem_post(&job->journal->ended);
}

static struct job job_of(struct journal *journal, unsigned number)
{
    return (struct job){
        .task = {.run = job_run, .done = job_done}, .journal = journal, .number = number};
}

static struct worker *worker_of(struct journal *journal, int nice)
{
    struct worker *worker;
    struct err err;
    *journal = (struct journal){0};
    assert_int_equal(sem_init(&journal->begun, 0, 0), 0);
    assert_int_equal(sem_init(&journal->go, 0, 0), 0);
    assert_int_equal(sem_init(&journal->ended, 0, 0), 0);
    const struct worker_config config = {.name = "the thread of a test",
                                         .waiting_max = WAITING_MAX,
                                         .strangers_max = STRANGERS_MAX,
                                         .busy_text = "too many of them",
                                         .nice = nice,
                                         .context = journal};
    assert_int_equal(worker_start(&config, &worker, &err), 0);
    return worker;
}

/* A task that the worker is at, and cannot end before `go`. */
static void worker_hold(struct worker *worker, struct job *job)
{
    struct err err;
    job->is_held = true;
    assert_int_equal(worker_give(worker, &job->task, &err), 0);
    sem_wait(&job->journal->begun);
}

static void one_after_the_other(void **state)
{
    (void)state;
    struct journal journal;
    struct worker *worker = worker_of(&journal, 0);
    struct job held = job_of(&journal, 0), jobs[WAITING_MAX];
    struct err err;
    worker_hold(worker, &held);
    for (unsigned i = 0; i < WAITING_MAX; i++) {
        jobs[i] = job_of(&journal, i + 1);
        assert_int_equal(worker_give(worker, &jobs[i].task, &err), 0);
    }
    assert_int_equal(journal.count, 1);
    sem_post(&journal.go);
    for (unsigned i = 0; i < WAITING_MAX + 1; i++)
        sem_wait(&journal.ended);
    assert_int_equal(journal.count, WAITING_MAX + 1);
    for (unsigned i = 0; i < WAITING_MAX; i++) {
        assert_int_equal(journal.numbers[i + 1], i + 1);
        assert_true(jobs[i].is_run);
        assert_true(pthread_equal(jobs[i].thread, held.thread));
        assert_false(pthread_equal(jobs[i].thread, pthread_self()));
    }
    /* given again when it is done, also after the queue has been empty */
    jobs[0] = job_of(&journal, 9);
    assert_int_equal(worker_give(worker, &jobs[0].task, &err), 0);
    sem_wait(&journal.ended);
    assert_int_equal(journal.numbers[WAITING_MAX + 1], 9);
    worker_free(worker);
}

/* Who gives many does not keep the next one waiting for all of them. */
static void owners_take_turns(void **state)
{
    (void)state;
    static const struct {
        const char *owner;
        unsigned number;
    } given[] = {{"ann", 1}, {"ann", 3}, {"ann", 5}, {"bob", 2}, {"bob", 4}, {"cat", 0}};
    struct journal journal;
    struct worker *worker = worker_of(&journal, 0);
    struct job held = job_of(&journal, 9), jobs[COUNT_OF(given)], more;
    struct err err;
    held.task.owner = "ann";
    worker_hold(worker, &held);
    for (unsigned i = 0; i < COUNT_OF(given); i++) {
        jobs[i] = job_of(&journal, given[i].number);
        jobs[i].task.owner = given[i].owner;
        /* three may wait, and beside them the first one of each owner */
        const int code = worker_give(worker, &jobs[i].task, &err);
        assert_int_equal(code, i == 4 ? ERR_BUSY : 0);
    }
    more = job_of(&journal, 8);
    more.task.owner = "cat";
    assert_int_equal(worker_give(worker, &more.task, &err), ERR_BUSY);
    more.task.owner = NULL;
    assert_int_equal(worker_give(worker, &more.task, &err), ERR_BUSY);
    sem_post(&journal.go);
    for (unsigned i = 0; i < COUNT_OF(given); i++)
        sem_wait(&journal.ended);
    static const unsigned wanted[] = {9, 1, 2, 0, 3, 5};
    assert_int_equal(journal.count, COUNT_OF(wanted));
    for (unsigned i = 0; i < COUNT_OF(wanted); i++)
        assert_int_equal(journal.numbers[i], wanted[i]);
    worker_free(worker);
}

/* However many strangers there are: another one is not refused for them, and waits for one of
 * theirs. Among themselves they take turns, too. */
static void strangers_keep_nobody_out(void **state)
{
    (void)state;
    static const struct {
        const char *owner;
        unsigned number;
        bool is_stranger;
        int code;
    } given[] = {
        {"a", 1, true, 0},           {"a", 6, true, 0},        {"a", 8, true, 0},
        {"a", 0, true, ERR_BUSY},    {"b", 3, true, 0},        {"c", 5, true, 0},
        {"d", 0, true, ERR_BUSY}, /* also the first one of an owner */
        {"ann", 2, false, 0},        {"ann", 4, false, 0},     {"ann", 7, false, 0},
        {"ann", 0, false, ERR_BUSY}, {"a", 0, true, ERR_BUSY}, {"bob", 9, false, 0},
    };
    struct journal journal;
    struct worker *worker = worker_of(&journal, 0);
    struct job held = job_of(&journal, 99), jobs[COUNT_OF(given)];
    struct err err;
    size_t taken = 1;
    held.task.owner = "ann";
    worker_hold(worker, &held);
    for (size_t i = 0; i < COUNT_OF(given); i++) {
        jobs[i] = job_of(&journal, given[i].number);
        jobs[i].task.owner = given[i].owner;
        jobs[i].task.is_stranger = given[i].is_stranger;
        assert_int_equal(worker_give(worker, &jobs[i].task, &err), given[i].code);
        taken += given[i].code == 0;
    }
    sem_post(&journal.go);
    for (size_t i = 0; i < taken; i++)
        sem_wait(&journal.ended);
    static const unsigned wanted[] = {99, 1, 2, 3, 9, 5, 4, 6, 7, 8};
    assert_int_equal(journal.count, COUNT_OF(wanted));
    for (size_t i = 0; i < COUNT_OF(wanted); i++)
        assert_int_equal(journal.numbers[i], wanted[i]);
    worker_free(worker);
}

static void so_many_wait(void **state)
{
    (void)state;
    struct journal journal;
    struct worker *worker = worker_of(&journal, 0);
    struct job held = job_of(&journal, 0), jobs[WAITING_MAX], late = job_of(&journal, 8);
    struct err err;
    worker_hold(worker, &held); /* the one under way does not wait */
    for (unsigned i = 0; i < WAITING_MAX; i++) {
        jobs[i] = job_of(&journal, i + 1);
        assert_int_equal(worker_give(worker, &jobs[i].task, &err), 0);
    }
    assert_int_equal(worker_give(worker, &late.task, &err), ERR_BUSY);
    assert_string_equal(err.text, "too many of them");
    sem_post(&journal.go);
    for (unsigned i = 0; i < WAITING_MAX + 1; i++)
        sem_wait(&journal.ended);
    assert_false(late.is_done);
    assert_int_equal(worker_give(worker, &late.task, &err), 0);
    sem_wait(&journal.ended);
    assert_true(late.is_run);
    worker_free(worker);
}

static void *stop_it(void *worker)
{
    worker_stop(worker);
    return NULL;
}

static void what_waits_at_the_end(void **state)
{
    (void)state;
    struct journal journal;
    struct worker *worker = worker_of(&journal, 0);
    struct job held = job_of(&journal, 0), jobs[WAITING_MAX], late = job_of(&journal, 8);
    pthread_t stopper;
    struct err err;
    worker_hold(worker, &held);
    for (unsigned i = 0; i < COUNT_OF(jobs); i++) {
        jobs[i] = job_of(&journal, i + 1);
        assert_int_equal(worker_give(worker, &jobs[i].task, &err), 0);
    }
    assert_int_equal(pthread_create(&stopper, NULL, stop_it, worker), 0);
    while (worker_give(worker, &late.task, &err) == ERR_BUSY) /* until it is stopping */
        sched_yield();
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    sem_post(&journal.go);
    pthread_join(stopper, NULL);
    assert_true(held.is_run); /* it was under way */
    for (unsigned i = 0; i < COUNT_OF(jobs); i++) {
        assert_true(jobs[i].is_done);
        assert_false(jobs[i].is_run);
    }
    assert_int_equal(journal.count, 1);
    assert_int_equal(worker_give(worker, &late.task, &err), ERR_UNAVAILABLE);
    worker_stop(worker); /* again */
    worker_free(worker);
    worker_free(NULL);
}

static void lower_priority(void **state)
{
    (void)state;
    struct journal journal;
    const int own = getpriority(PRIO_PROCESS, (id_t)gettid());
    const int lower = own == -3 ? own + 4 : own + 3; /* 0 would leave it */
    struct worker *worker = worker_of(&journal, lower);
    struct job job = job_of(&journal, 1);
    struct err err;
    assert_int_equal(worker_give(worker, &job.task, &err), 0);
    sem_wait(&journal.ended);
    assert_int_equal(journal.nice, lower > 19 ? 19 : lower);
    assert_int_equal(getpriority(PRIO_PROCESS, (id_t)gettid()), own); /* of the thread alone */
    worker_free(worker);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_after_the_other), cmocka_unit_test(owners_take_turns),
    cmocka_unit_test(so_many_wait),        cmocka_unit_test(what_waits_at_the_end),
    cmocka_unit_test(lower_priority),      cmocka_unit_test(strangers_keep_nobody_out),
};
UNIT_FILE(tests, NULL, NULL);
