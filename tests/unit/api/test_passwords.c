/* The thread that checks passwords: one after the other, a queue with an end, and each costs the
 * same. */
#include "unit.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#include "api/passwords.h"
#include "base/err.h"
#include "base/memory.h"
#include "hash_watch.h"
#include "sys/secret.h"

/* ---- the thread that checks ---- */

struct checked {
    struct password_check check; /* first */
    sem_t done, *hold;
    pthread_t thread;
    bool is_tried, is_right;
};

static void on_checked(struct password_check *check, bool is_tried, bool is_right)
{
    struct checked *checked = (struct checked *)check;
    checked->thread = pthread_self();
    checked->is_tried = is_tried;
    checked->is_right = is_right;
    sem_t *hold = checked->hold;
    assert_int_equal(sem_post(&checked->done), 0);
    if (hold)
        assert_int_equal(sem_wait(hold), 0);
}

static void checked_init(struct checked *checked, const char *hash, sem_t *hold)
{
    *checked = (struct checked){.check = {.task = {.owner = "ann"},
                                          .password = TEXT("word"),
                                          .hash = hash,
                                          .done = on_checked},
                                .hold = hold};
    assert_int_equal(sem_init(&checked->done, 0, 0), 0);
}

static void test_thread(void **state)
{
    (void)state;
    struct passwords *passwords;
    struct checked held, right, wrong, nobody, unset, late, waiting[PASSWORDS_WAITING_MAX];
    struct err err;
    char hash[PASSWORD_HASH_SIZE], other[PASSWORD_HASH_SIZE];
    sem_t hold;
    assert_int_equal(secret_init(&err), 0);
    assert_int_equal(password_hash(TEXT("word"), hash, &err), 0);
    assert_int_equal(password_hash(TEXT("another"), other, &err), 0);
    assert_int_equal(sem_init(&hold, 0, 0), 0);
    assert_int_equal(passwords_start(&passwords, &err), 0);
    struct checked *each[] = {&right, &wrong, &nobody, &unset};
    const char *hashes[] = {hash, other, NULL, ""};
    for (size_t i = 0; i < COUNT_OF(each); i++) {
        checked_init(each[i], hashes[i], NULL);
        assert_int_equal(passwords_check(passwords, &each[i]->check, &err), 0);
        assert_int_equal(sem_wait(&each[i]->done), 0);
        assert_true(each[i]->is_tried);
        assert_int_equal(each[i]->is_right, i == 0);
        assert_false(pthread_equal(each[i]->thread, pthread_self()));
    }
    /* a queue with an end */
    checked_init(&held, NULL, &hold);
    assert_int_equal(passwords_check(passwords, &held.check, &err), 0);
    assert_int_equal(sem_wait(&held.done), 0); /* and stays in the thread's hands */
    for (size_t i = 0; i < COUNT_OF(waiting); i++) {
        checked_init(&waiting[i], hash, NULL);
        assert_int_equal(passwords_check(passwords, &waiting[i].check, &err), 0);
    }
    checked_init(&late, hash, NULL);
    assert_int_equal(passwords_check(passwords, &late.check, &err), ERR_BUSY);
    assert_int_equal(sem_post(&hold), 0);
    passwords_stop(passwords);
    for (size_t i = 0; i < COUNT_OF(waiting); i++)
        assert_int_equal(sem_wait(&waiting[i].done), 0); /* answered, tried or not */
    assert_int_equal(passwords_check(passwords, &late.check, &err), ERR_UNAVAILABLE);
    passwords_free(passwords);
}

/* Strangers behind any number of addresses: a user is not refused for them, and comes next. */
static void test_strangers_refuse_no_user(void **state)
{
    (void)state;
    static struct checked strangers[PASSWORDS_STRANGERS_MAX + 1];
    static char owners[PASSWORDS_STRANGERS_MAX + 1][24];
    struct passwords *passwords;
    struct checked held, user;
    struct err err;
    sem_t hold, hold_user;
    unsigned tried = 0;
    assert_int_equal(secret_init(&err), 0);
    assert_int_equal(sem_init(&hold, 0, 0), 0);
    assert_int_equal(sem_init(&hold_user, 0, 0), 0);
    assert_int_equal(passwords_start(&passwords, &err), 0);
    checked_init(&held, NULL, &hold);
    assert_int_equal(passwords_check(passwords, &held.check, &err), 0);
    assert_int_equal(sem_wait(&held.done), 0);
    for (size_t i = 0; i < COUNT_OF(strangers); i++) {
        snprintf(owners[i], sizeof owners[i], "10.0.%zu.1", i);
        checked_init(&strangers[i], NULL, NULL);
        strangers[i].check.task.owner = owners[i];
        strangers[i].check.task.is_stranger = true;
        assert_int_equal(passwords_check(passwords, &strangers[i].check, &err),
                         i < PASSWORDS_STRANGERS_MAX ? 0 : ERR_BUSY);
    }
    checked_init(&user, NULL, &hold_user);
    assert_int_equal(passwords_check(passwords, &user.check, &err), 0);
    assert_int_equal(sem_post(&hold), 0);
    assert_int_equal(sem_wait(&user.done), 0);
    for (size_t i = 0; i < PASSWORDS_STRANGERS_MAX; i++)
        tried += sem_trywait(&strangers[i].done) == 0;
    assert_true(user.is_tried && tried == 1);
    assert_int_equal(sem_post(&hold_user), 0);
    passwords_free(passwords);
}

/* Whatever hash a user has, and if there is none: the same work. */
static void test_every_check_costs_the_same(void **state)
{
    (void)state;
    static const char DIGITS[] = /* as in test_account.c: of "test_password" and "eve" */
        "84470075e7f713d4362abae58924c0b2fb306be701dcbf8211492792741f4685"
        "903259f53b9615c19b372a4208bcc662339baff9a6e2e4da9863e58c416a3041";
    char argon2[PASSWORD_HASH_SIZE], imported[PASSWORD_HASH_SIZE];
    struct passwords *passwords;
    struct err err;
    assert_int_equal(secret_init(&err), 0);
    assert_int_equal(password_hash(TEXT("test_password"), argon2, &err), 0);
    assert_int_equal(password_hash_import(TEXT("eve"), text_of(DIGITS), imported), 0);
    assert_int_equal(passwords_start(&passwords, &err), 0);
    const struct {
        const char *hash, *word;
        bool is_right;
    } CHECKS[] = {
        {argon2, "test_password", true},
        {argon2, "wrong", false},
        {imported, "test_password", true},
        {imported, "wrong", false},
        {NULL, "wrong", false},
        {"", "wrong", false},
        {"$none-of-these$", "wrong", false},
    };
    for (size_t i = 0; i < COUNT_OF(CHECKS); i++) {
        struct checked checked;
        checked_init(&checked, CHECKS[i].hash, NULL);
        checked.check.password = text_of(CHECKS[i].word);
        hash_watch_begin(NULL, NULL);
        assert_int_equal(passwords_check(passwords, &checked.check, &err), 0);
        assert_int_equal(sem_wait(&checked.done), 0);
        const struct hash_counts counts = hash_watch_end();
        assert_int_equal(checked.is_right, CHECKS[i].is_right);
        assert_int_equal(counts.argon2, 1);
        assert_int_equal(counts.pbkdf2, 1);
    }
    passwords_stop(passwords);
    passwords_free(passwords);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_thread),
    cmocka_unit_test(test_strangers_refuse_no_user),
    cmocka_unit_test(test_every_check_costs_the_same),
};
UNIT_FILE(tests, NULL, NULL);
