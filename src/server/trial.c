#include "server/trial.h"
#include "base/err.h"
#include "base/memory.h"
#include "server/admission.h"
#include "server/rows_core.h"
#include "server/state.h"
#include "sys/clock.h"
#include "sys/worker.h"
#include <assert.h>

enum { TRIAL_STEPS_MAX = 4096 }; /* of what is under way, about a millisecond each */

struct trials {
    struct server *server;
    struct worker *worker;
    _Atomic bool is_ending;
};

struct job_ids {
    struct job_id *items;
    size_t count, room;
};

struct trial_task {
    struct worker_task task; /* first */
    struct trials *trials;
    struct server_mail *mail;
    struct core_config config; /* of when it was asked for; owned */
    struct job_ids left_out;   /* by the core thread, likewise (quarantine.h) */
};

static void task_free(struct trial_task *task)
{
    mail_free(task->mail);
    core_config_release(&task->config);
    ARRAY_FREE(&task->left_out);
    mem_free(task);
}

static void task_answer(struct trial_task *task, int code, const struct err *err)
{
    struct server *server = task->trials->server;
    struct server_mail *mail = task->mail;
    histogram_add(&server->metrics.request, clock_monotonic_us() - mail->posted_us);
    mail_answer(mail, &(struct service_answer){.code = code,
                                               .path = code < 0 ? err->path : "",
                                               .text = code < 0 ? err->text : ""});
}

/* What is under way has its turn before the job, as it would have. With very many shapes of jobs
 * that wait, some of them have it after. */
static int core_prepare(const struct trials *trials, struct core *core, int64_t now_ms,
                        struct err *err)
{
    for (int i = 0; i < TRIAL_STEPS_MAX && !core_trial_prepare(core, now_ms); i++)
        if (atomic_load(&trials->is_ending))
            return err_fail(err, ERR_UNAVAILABLE, "", "the server is ending");
    return 0;
}

static int task_try(struct trial_task *task, struct err *err)
{
    const struct trials *trials = task->trials;
    struct server_mail *mail = task->mail;
    const struct rows_core_ask ask = {.config = &task->config,
                                      .now_ms = mail->event.now_ms,
                                      .is_ending = &trials->is_ending,
                                      .left_out = task->left_out.items,
                                      .left_out_count = task->left_out.count};
    cleanup_store_reader struct store_reader *reader = NULL;
    cleanup_core struct core *core = NULL;
    int code = store_reader_open(trials->server->store, &reader, err);
    if (code == 0)
        code = rows_core(reader, &ask, &core, err);
    if (code == 0)
        code = core_prepare(trials, core, mail->event.now_ms, err);
    if (code == 0)
        code = core_trial(core, &mail->event, mail->trial_arena, mail->trial, err);
    return code;
}

static void task_run(struct worker_task *worker_task, void *context)
{
    struct trial_task *task = (struct trial_task *)(void *)worker_task;
    struct err err = {0};
    (void)context;
    task_answer(task, task_try(task, &err), &err);
}

static void task_done(struct worker_task *worker_task, bool is_run)
{
    struct trial_task *task = (struct trial_task *)(void *)worker_task;
    if (!is_run)
        mail_refuse(task->mail, ERR_UNAVAILABLE, "the server is ending");
    task_free(task);
}

void trials_take(struct trials *trials, struct server_mail *mail)
{
    assert(mail->kind == MAIL_TRIAL);
    struct server *server = trials->server;
    struct err err = {0};
    if (!admission_submit(server, mail)) { /* answered */
        mail_free(mail);
        return;
    }
    mail->event.now_ms = core_thread_now(server);
    mail->event.random = core_thread_random();
    struct trial_task *task = mem_zero(1, sizeof *task);
    task->task =
        (struct worker_task){.run = task_run, .done = task_done, .owner = mail->event.user};
    task->trials = trials;
    task->mail = mail;
    for (size_t i = 0; i < server->core.quarantine.count; i++)
        *ARRAY_ADD(&task->left_out) = server->core.quarantine.items[i].job;
    int code = core_config_copy(&task->config, &server->config->core, &err);
    assert(code == 0); /* it is in force */
    code = worker_give(trials->worker, &task->task, &err);
    if (code == 0)
        return;
    mail_refuse(mail, code, err.text);
    task_free(task);
}

int trials_new(struct server *server, struct trials **out, struct err *err)
{
    struct trials *trials = mem_zero(1, sizeof *trials);
    trials->server = server;
    const struct worker_config config = {.name = "the thread that answers dry runs",
                                         .waiting_max = TRIALS_WAITING,
                                         .busy_text = "others try jobs just now: ask again",
                                         .nice = 10};
    int code = worker_start(&config, &trials->worker, err);
    if (code < 0) {
        mem_free(trials);
        return code;
    }
    *out = trials;
    return 0;
}

void trials_stop(struct trials *trials)
{
    if (!trials)
        return;
    atomic_store(&trials->is_ending, true);
    worker_stop(trials->worker);
}

void trials_free(struct trials *trials)
{
    if (!trials)
        return;
    trials_stop(trials);
    worker_free(trials->worker);
    mem_free(trials);
}
