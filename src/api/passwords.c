#include "api/passwords.h"
#include "base/err.h"
#include "base/memory.h"

enum { WORD_LENGTH = 20, NICE = 5 }; /* who guesses must not take a processor from those who work */

struct passwords {
    struct worker *worker;
    char nobody[PASSWORD_HASH_SIZE]; /* of a word that nobody knows */
};

static void check_run(struct worker_task *task, void *context)
{
    struct password_check *check = (struct password_check *)task;
    const struct passwords *passwords = context;
    if (check->wants_hash) {
        check->is_right = password_hash(check->password, check->made, NULL) == 0;
        return;
    }
    bool is_there = check->hash && check->hash[0];
    bool matches = password_matches(check->password, is_there ? check->hash : passwords->nobody);
    check->is_right = matches && is_there;
}

static void check_done(struct worker_task *task, bool is_run)
{
    struct password_check *check = (struct password_check *)task;
    check->done(check, is_run, is_run && check->is_right);
}

int passwords_start(struct passwords **out, struct err *err)
{
    struct passwords *passwords = mem_zero(1, sizeof *passwords);
    const struct worker_config worker = {
        .name = "the thread that checks passwords",
        .waiting_max = PASSWORDS_WAITING_MAX,
        .busy_text = "too many logins at this moment: try again",
        .nice = NICE,
        .context = passwords,
    };
    char word[WORD_LENGTH + 1];
    secret_random_word(word, WORD_LENGTH);
    int code = password_hash(text_of(word), passwords->nobody, err);
    secret_wipe(word, sizeof word);
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
    check->task = (struct worker_task){.run = check_run, .done = check_done};
    return worker_give(passwords->worker, &check->task, err);
}
