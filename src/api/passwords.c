#include "api/passwords.h"
#include "base/err.h"
#include "base/memory.h"
#include <assert.h>
#include <string.h>

enum { WORD_LENGTH = 20, NICE = 5 }; /* who guesses must not take a processor from those who work */
enum { IMPORTED_DIGITS = 128 };

struct passwords {
    struct worker *worker;
    /* One of each kind, which is nobody's: what matches it does not count. */
    char nobody[PASSWORD_KIND_COUNT][PASSWORD_HASH_SIZE];
};

/* Each check does the work of every kind, so that its time tells neither whether there is such a
 * user nor where their password came from. */
static bool matches_evenly(const struct passwords *passwords, struct text password,
                           const char *hash)
{
    const bool is_there = hash && hash[0];
    bool is_right = false;
    for (int kind = 0; kind < PASSWORD_KIND_COUNT; kind++) {
        const bool is_own = is_there && (int)password_kind(hash) == kind;
        const bool matches = password_matches(password, is_own ? hash : passwords->nobody[kind]);
        is_right |= matches && is_own;
    }
    return is_right;
}

static void check_run(struct worker_task *task, void *context)
{
    struct password_check *check = (struct password_check *)task;
    const struct passwords *passwords = context;
    if (check->wants_hash) {
        check->is_right = password_hash(check->password, check->made, NULL) == 0;
        return;
    }
    check->is_right = matches_evenly(passwords, check->password, check->hash);
}

static void check_done(struct worker_task *task, bool is_run)
{
    struct password_check *check = (struct password_check *)task;
    check->done(check, is_run, is_run && check->is_right);
}

static int nobody_init(struct passwords *passwords, struct err *err)
{
    char word[WORD_LENGTH + 1], digits[IMPORTED_DIGITS];
    secret_random_word(word, WORD_LENGTH);
    memset(digits, '0', sizeof digits);
    int code = password_hash(text_of(word), passwords->nobody[PASSWORD_ARGON2], err);
    secret_wipe(word, sizeof word);
    if (code)
        return code;
    code = password_hash_import(TEXT("nobody"), (struct text){digits, sizeof digits},
                                passwords->nobody[PASSWORD_IMPORTED]);
    assert(!code);
    return 0;
}

int passwords_start(struct passwords **out, struct err *err)
{
    struct passwords *passwords = mem_zero(1, sizeof *passwords);
    const struct worker_config worker = {
        .name = "the thread that checks passwords",
        .waiting_max = PASSWORDS_WAITING_MAX,
        .strangers_max = PASSWORDS_STRANGERS_MAX,
        .busy_text = "too many logins at this moment: try again",
        .nice = NICE,
        .context = passwords,
    };
    int code = nobody_init(passwords, err);
    if (!code)
        code = worker_start(&worker, &passwords->worker, err);
    if (code) {
        passwords_free(passwords);
        return code;
    }
    *out = passwords;
    return 0;
}

void passwords_stop(struct passwords *passwords)
{
    worker_stop(passwords->worker);
}

void passwords_free(struct passwords *passwords)
{
    if (!passwords)
        return;
    worker_free(passwords->worker);
    mem_free(passwords);
}

int passwords_check(struct passwords *passwords, struct password_check *check, struct err *err)
{
    assert(check->task.owner);
    check->task.run = check_run;
    check->task.done = check_done;
    return worker_give(passwords->worker, &check->task, err);
}
