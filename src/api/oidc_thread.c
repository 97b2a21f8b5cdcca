#include "api/oidc_thread.h"
#include "base/err.h"
#include "base/memory.h"
#include <assert.h>
#include <stdatomic.h>

struct oidc_thread {
    struct worker *worker;
    struct oidc *oidc;     /* the worker's */
    atomic_bool is_ending; /* read by requests to the provider that are under way */
};

int oidc_thread_start(const struct oidc_config *config, struct oidc_thread **out, struct err *err)
{
    struct oidc_thread *thread = mem_zero(1, sizeof *thread);
    struct oidc_config own = *config;
    own.is_ending = &thread->is_ending;
    int code = oidc_new(&own, &thread->oidc, err);
    if (!code) {
        const struct worker_config worker = {
            .name = "the thread of the sign-on",
            .waiting_max = OIDC_WAITING_MAX,
            .strangers_max = OIDC_STRANGERS_MAX,
            .busy_text = "too many logins at this moment: try again",
            .context = thread->oidc,
        };
        code = worker_start(&worker, &thread->worker, err);
    }
    if (code) {
        oidc_thread_free(thread);
        return code;
    }
    *out = thread;
    return 0;
}

void oidc_thread_stop(struct oidc_thread *thread)
{
    atomic_store(&thread->is_ending, true);
    worker_stop(thread->worker);
}

void oidc_thread_free(struct oidc_thread *thread)
{
    if (!thread)
        return;
    atomic_store(&thread->is_ending, true);
    worker_free(thread->worker);
    oidc_free(thread->oidc);
    mem_free(thread);
}

int oidc_thread_give(struct oidc_thread *thread, struct worker_task *task, struct err *err)
{
    assert(task->owner && task->is_stranger);
    return worker_give(thread->worker, task, err);
}
