/* quiet.c — see quiet.h. */
#include "quiet.h"
#include "faults.h"
#include "sys/clock.h"
#include "sys/mailbox.h"
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    MAILBOXES = 2, /* of the core thread and of the launcher */
    FAR_S = 3600,
    TURNS_MAX = 100000 /* more than anything takes that has an end */
};

struct known_mailbox {
    struct mailbox *mailbox;
    /* under the mailbox's lock: its thread waits, until this time; how often it went on */
    bool is_idle;
    int64_t deadline_ms;
    uint64_t turns;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct known_mailbox mailboxes[MAILBOXES];
    size_t count;
    bool is_holding;
} quiet = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

struct mail *__real_mailbox_take(struct mailbox *mailbox, size_t limit, int64_t deadline_ms);
struct mail *__wrap_mailbox_take(struct mailbox *mailbox, size_t limit, int64_t deadline_ms);
int64_t __wrap_clock_monotonic_ms(void);
struct timespec __wrap_clock_moment(int64_t due_ms);

int64_t __wrap_clock_monotonic_ms(void)
{
    return clock_boot_ms();
}

/* Whoever waits for a time that has not come waits to be woken. */
struct timespec __wrap_clock_moment(int64_t due_ms)
{
    struct timespec moment;

    clock_gettime(CLOCK_MONOTONIC, &moment);
    if (due_ms > clock_boot_ms())
        moment.tv_sec += FAR_S;
    return moment;
}

static struct known_mailbox *known_of(struct mailbox *mailbox)
{
    struct known_mailbox *known = NULL;

    pthread_mutex_lock(&quiet.lock);
    for (size_t i = 0; i < quiet.count; i++)
        if (quiet.mailboxes[i].mailbox == mailbox)
            known = &quiet.mailboxes[i];
    if (!known) {
        assert(quiet.count < MAILBOXES);
        known = &quiet.mailboxes[quiet.count++];
        *known = (struct known_mailbox){.mailbox = mailbox};
    }
    pthread_mutex_unlock(&quiet.lock);
    return known;
}

static void idle_set(struct known_mailbox *known, bool is_idle)
{
    known->is_idle = is_idle;
    known->turns += !is_idle;
    pthread_mutex_lock(&quiet.lock);
    pthread_cond_broadcast(&quiet.moved);
    pthread_mutex_unlock(&quiet.lock);
}

static bool is_held(void)
{
    pthread_mutex_lock(&quiet.lock);
    const bool is_holding = quiet.is_holding;
    pthread_mutex_unlock(&quiet.lock);
    return is_holding;
}

static bool is_due(const struct known_mailbox *known)
{
    return known->deadline_ms >= 0 && known->deadline_ms <= clock_boot_ms();
}

static bool has_come(const struct mailbox *mailbox)
{
    return mailbox->first || mailbox->is_closed || mailbox->is_woken;
}

struct mail *__wrap_mailbox_take(struct mailbox *mailbox, size_t limit, int64_t deadline_ms)
{
    struct known_mailbox *known = known_of(mailbox);

    pthread_mutex_lock(&mailbox->lock);
    known->deadline_ms = deadline_ms;
    while (is_held() || !(has_come(mailbox) || is_due(known))) {
        if (!known->is_idle)
            idle_set(known, true);
        pthread_cond_wait(&mailbox->has_mail, &mailbox->lock);
    }
    idle_set(known, false);
    pthread_mutex_unlock(&mailbox->lock);
    return __real_mailbox_take(mailbox, limit, 0);
}

void quiet_clear(void)
{
    pthread_mutex_lock(&quiet.lock);
    quiet.count = 0;
    quiet.is_holding = false;
    pthread_mutex_unlock(&quiet.lock);
}

/* Has it nothing to do, or is it held? How often it has had something so far. */
static bool is_idle(struct known_mailbox *known, uint64_t *turns)
{
    struct mailbox *mailbox = known->mailbox;

    pthread_mutex_lock(&mailbox->lock);
    const bool has_nothing = !has_come(mailbox) && !is_due(known);
    const bool is_quiet = known->is_idle && (has_nothing || is_held());
    *turns += known->turns;
    pthread_mutex_unlock(&mailbox->lock);
    return is_quiet;
}

static bool are_idle(uint64_t *turns)
{
    bool are_all = true;

    pthread_mutex_lock(&quiet.lock);
    const size_t count = quiet.count;
    pthread_mutex_unlock(&quiet.lock);
    *turns = 0;
    for (size_t i = 0; i < count; i++)
        are_all = is_idle(&quiet.mailboxes[i], turns) && are_all;
    return are_all && count == MAILBOXES;
}

/* One may have had mail from another that was looked at before: so they are looked at twice. */
static bool is_quiet(uint64_t *turns)
{
    uint64_t first;

    const bool are_first = are_idle(&first);
    return are_idle(turns) && are_first && first == *turns;
}

bool quiet_await(void)
{
    uint64_t begin, turns;

    /* whoever goes idle in the midst of a look is not waited for longer than this */
    are_idle(&begin);
    for (turns = begin; !is_quiet(&turns);) {
        if (turns > begin + TURNS_MAX)
            return false;
        struct timespec soon;
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec += 1000 * 1000;
        if (soon.tv_nsec >= 1000 * 1000 * 1000) {
            soon.tv_sec++;
            soon.tv_nsec -= 1000 * 1000 * 1000;
        }
        pthread_mutex_lock(&quiet.lock);
        pthread_cond_timedwait(&quiet.moved, &quiet.lock, &soon);
        pthread_mutex_unlock(&quiet.lock);
    }
    return true;
}

static void mailboxes_wake(void)
{
    pthread_mutex_lock(&quiet.lock);
    const size_t count = quiet.count;
    pthread_mutex_unlock(&quiet.lock);
    for (size_t i = 0; i < count; i++) {
        struct mailbox *mailbox = quiet.mailboxes[i].mailbox;
        pthread_mutex_lock(&mailbox->lock);
        pthread_cond_broadcast(&mailbox->has_mail);
        pthread_mutex_unlock(&mailbox->lock);
    }
}

void quiet_hold(void)
{
    pthread_mutex_lock(&quiet.lock);
    quiet.is_holding = true;
    pthread_mutex_unlock(&quiet.lock);
    quiet_await();
}

void quiet_release(void)
{
    pthread_mutex_lock(&quiet.lock);
    quiet.is_holding = false;
    pthread_mutex_unlock(&quiet.lock);
    mailboxes_wake();
}

void time_pass(int64_t ms)
{
    clock_pass(ms);
    mailboxes_wake();
}
