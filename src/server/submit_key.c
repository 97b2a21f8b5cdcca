#include "server/submit_key.h"
#include "base/err.h"
#include "server/state.h"
#include <assert.h>
#include <string.h>

static bool is_same_file(const struct store_submit_key *one, const struct store_submit_key *other)
{
    return memcmp(one->digest, other->digest, sizeof one->digest) == 0;
}

static bool is_same_key(const struct store_submit_key *one, const struct store_submit_key *other)
{
    return strcmp(one->user, other->user) == 0 && strcmp(one->key, other->key) == 0;
}

static void repeat_note(struct server_mail *mail)
{
    if (!mail->audit)
        return;
    mail->audit->code = 0;
    mail->audit->reason = "sent again: answered as the first time";
}

static void other_file_refuse(struct server_mail *mail, const char *job_name)
{
    struct err err;
    err_fail(&err, ERR_CONFLICT, "Idempotency-Key",
             "this idempotency key was sent with another job file, that of %.64s~%.100s: each "
             "submission has a key of its own",
             mail->submit_key->user, job_name);
    mail->is_done = true;
    mail_outcome(mail, err.code, err.text);
    mail_answer(mail,
                &(struct service_answer){.code = err.code, .path = err.path, .text = err.text});
}

/* The submission of this batch that has taken the key; NULL: none has. */
static struct server_mail *taker_in_batch(const struct core_thread *core,
                                          const struct server_mail *mail)
{
    for (size_t i = 0; i < core->batch_count; i++) {
        struct server_mail *other = core->batch[i];
        if (other != mail && other->has_change && other->submit_key &&
            is_same_key(other->submit_key, mail->submit_key))
            return other;
    }
    return NULL;
}

static void repeat_join(struct server_mail *first, struct server_mail *mail)
{
    if (!is_same_file(first->submit_key, mail->submit_key)) {
        other_file_refuse(mail, first->submit_key->job_name);
        return;
    }
    while (first->repeat)
        first = first->repeat;
    first->repeat = mail;
    repeat_note(mail);
}

static void repeat_answer(struct server_mail *mail, const struct store_submit_key *stored)
{
    if (!is_same_file(stored, mail->submit_key)) {
        other_file_refuse(mail, stored->job_name);
        return;
    }
    mail->is_done = true;
    repeat_note(mail);
    mail_answer(mail, &(struct service_answer){
                          .job = stored->job, .name = stored->job_name, .path = "", .text = ""});
}

bool submit_key_pass(struct server *server, struct server_mail *mail)
{
    const struct store_submit_key *key = mail->submit_key;
    struct store_submit_key stored;
    struct err err;
    mail->repeat = NULL; /* of an earlier try to store the batch */
    mail->has_change = false;
    struct server_mail *first = taker_in_batch(&server->core, mail);
    if (first) {
        repeat_join(first, mail);
        return false;
    }
    int code =
        store_submit_key(server->core.reader, key->user, key->key, &mail->arena, &stored, &err);
    if (code == ERR_NOT_FOUND)
        return true;
    if (code == 0) {
        repeat_answer(mail, &stored);
        return false;
    }
    mail->is_done = true;
    mail_refuse(mail, code, err.text);
    return false;
}

void submit_key_keep(struct core_thread *core, struct server_mail *mail)
{
    const struct answer *answer = core->output.answers.items + core->output.answers.count;
    do {
        assert(answer > core->output.answers.items);
        answer--;
    } while (answer->request != mail->event.request);
    assert(mail->event.kind == EVENT_SUBMIT && answer->code == 0);
    mail->submit_key->job = answer->job;
    mail->submit_key->at_ms = mail->event.now_ms;
    mail->change =
        (struct store_change){.kind = CHANGE_SUBMIT_KEY, .submit_key = *mail->submit_key};
    mail->has_change = true;
}
