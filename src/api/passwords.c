#include "api/passwords.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/log.h"
#include "sys/secret.h"
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

enum { WORD_LENGTH = 20, NICE = 5 };

struct passwords {
    pthread_t thread;
    char nobody[PASSWORD_HASH_SIZE]; /* of a word that nobody knows */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct password_check *first, **last;
    unsigned waiting;
    bool is_running, is_stopping;
};

static bool is_right(const struct passwords *passwords, struct password_check *check)
{
    if (check->wants_hash)
        return password_hash(check->password, check->made, NULL) == 0;
    bool is_there = check->hash && check->hash[0];
    bool matches = password_matches(check->password, is_there ? check->hash : passwords->nobody);
    return matches && is_there;
}

/* The next check, or NULL when the thread shall end. */
static struct password_check *check_take(struct passwords *passwords, bool *is_stopping)
{
    pthread_mutex_lock(&passwords->lock);
    while (!passwords->first && !passwords->is_stopping)
        pthread_cond_wait(&passwords->moved, &passwords->lock);
    struct password_check *check = passwords->first;
    if (check) {
        passwords->first = check->next;
        if (!passwords->first)
            passwords->last = &passwords->first;
        passwords->waiting--;
    }
    *is_stopping = passwords->is_stopping;
    pthread_mutex_unlock(&passwords->lock);
    return check;
}

static void *passwords_run(void *context)
{
    struct passwords *passwords = context;
    struct password_check *check;
    bool is_stopping;
    /* guesses must not take a processor from those who have work to do */
    if (setpriority(PRIO_PROCESS, (id_t)gettid(), NICE) < 0)
        log_debug("api", "passwords are checked with the usual priority");
    while ((check = check_take(passwords, &is_stopping)))
        check->done(check, !is_stopping, !is_stopping && is_right(passwords, check));
    return NULL;
}

int passwords_start(struct passwords **out, struct err *err)
{
    struct passwords *passwords = mem_zero(1, sizeof *passwords);
    char word[WORD_LENGTH + 1];
    secret_random_word(word, WORD_LENGTH);
    int failed = password_hash(text_of(word), passwords->nobody, err);
    secret_wipe(word, sizeof word);
    pthread_mutex_init(&passwords->lock, NULL);
    pthread_cond_init(&passwords->moved, NULL);
    passwords->last = &passwords->first;
    if (!failed) {
        int number = pthread_create(&passwords->thread, NULL, passwords_run, passwords);
        if (number)
            failed = err_errno(err, number, "start the thread that checks passwords");
    }
    if (failed) {
        passwords_free(passwords);
        return failed;
    }
    passwords->is_running = true;
    *out = passwords;
    return 0;
}

void passwords_stop(struct passwords *passwords)
{
    pthread_mutex_lock(&passwords->lock);
    passwords->is_stopping = true;
    pthread_cond_signal(&passwords->moved);
    pthread_mutex_unlock(&passwords->lock);
    if (passwords->is_running)
        pthread_join(passwords->thread, NULL);
    passwords->is_running = false;
}

void passwords_free(struct passwords *passwords)
{
    if (!passwords)
        return;
    passwords_stop(passwords);
    pthread_cond_destroy(&passwords->moved);
    pthread_mutex_destroy(&passwords->lock);
    mem_free(passwords);
}

int passwords_check(struct passwords *passwords, struct password_check *check, struct err *err)
{
    int failed = 0;
    check->next = NULL;
    pthread_mutex_lock(&passwords->lock);
    if (passwords->is_stopping)
        failed = err_fail(err, ERR_UNAVAILABLE, "", "the server is ending");
    else if (passwords->waiting >= PASSWORDS_WAITING_MAX)
        failed = err_fail(err, ERR_BUSY, "", "too many logins at this moment: try again");
    if (!failed) {
        *passwords->last = check;
        passwords->last = &check->next;
        passwords->waiting++;
        pthread_cond_signal(&passwords->moved);
    }
    pthread_mutex_unlock(&passwords->lock);
    return failed;
}
