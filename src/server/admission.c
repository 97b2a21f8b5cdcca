#include "server/admission.h"
#include "base/err.h"
#include "core/plan.h"
#include "server/state.h"

static void mail_reject(struct server_mail *mail, const struct err *err)
{
    mail->is_done = true;
    mail_outcome(mail, err->code, err->text);
    mail_answer(mail,
                &(struct service_answer){.code = err->code, .path = err->path, .text = err->text});
}

/* What the core does not know any more, the store does. */
bool admission_submit(struct server *server, struct server_mail *mail)
{
    const struct plan *plan = mail->event.submit.plan;
    struct job_id job;
    if (store_job_find(server->store, text_of(plan->user), text_of(plan->name), &job, NULL) < 0)
        return true;
    struct err err;
    err_fail(&err, ERR_CONFLICT, "name", "job %.64s~%.120s exists already", plan->user, plan->name);
    mail_reject(mail, &err);
    return false;
}

/* The rows are as they were before this batch. */
static int job_still_there(const struct core_thread *core, struct job_id job, struct err *err)
{
    if (id_map_get(&core->deleted, job.v) == MAP_NONE)
        return 0;
    return err_fail(err, ERR_NOT_FOUND, "", "job %u has been deleted", job.v);
}

static bool admission_start(struct server *server, struct server_mail *mail)
{
    struct store_job *row = ARENA_NEW(&mail->arena, struct store_job);
    struct recall *start = &mail->event.start;
    struct err err;
    int code = job_still_there(&server->core, start->job, &err);
    start->plan = NULL;
    start->record = NULL;
    if (code == 0)
        code = store_job_read(server->core.reader, start->job, &mail->arena, row, &err);
    if (code == 0 && row->record.state == LIFE_COMPLETED)
        code = store_job_plan(server->core.reader, start->job, &start->plan, &err);
    if (code == 0 && start->plan)
        start->record = &row->record;
    if (code == 0)
        return true;
    mail_reject(mail, &err);
    return false;
}

static bool admission_delete(struct server *server, struct server_mail *mail)
{
    struct err err;
    int code = job_still_there(&server->core, mail->event.job, &err);
    struct store_job row;
    if (code == 0)
        code = store_job_summary(server->store, mail->event.job, &mail->arena, &row, &err);
    if (code == 0)
        return true;
    mail_reject(mail, &err);
    return false;
}

/* Of a disk that is nearly full, what would only fill it. */
static bool admission_room(struct server *server, struct server_mail *mail)
{
    struct err err;
    if (!mail->reply.done || !event_grows(mail->event.kind) || server_room(server, &err) == 0)
        return true;
    mail_reject(mail, &err);
    return false;
}

bool admission_pass(struct server *server, struct server_mail *mail)
{
    const enum event_kind kind = mail->event.kind;
    if (!admission_room(server, mail))
        return false;
    if (kind == EVENT_SUBMIT)
        return admission_submit(server, mail);
    if (kind == EVENT_START)
        return admission_start(server, mail);
    return kind != EVENT_DELETE || admission_delete(server, mail);
}
