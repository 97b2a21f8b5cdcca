#include "server/rows_core.h"
#include "base/err.h"
#include "core/core.h"
#include "core/plan.h"
#include "store/read.h"
#include <assert.h>

struct rows_making {
    struct core *core;
    const struct rows_core_ask *ask;
};

static int making_goes_on(const struct rows_making *making, struct err *err)
{
    const _Atomic bool *is_ending = making->ask->is_ending;
    return is_ending && atomic_load(is_ending)
               ? err_fail(err, ERR_UNAVAILABLE, "", "the server is ending")
               : 0;
}

static int take_counters(void *context, struct job_id last_job, struct attempt_id last_attempt,
                         struct err *err)
{
    const struct rows_making *making = context;
    int code = making_goes_on(making, err);
    return code < 0 ? code : core_restore_counters(making->core, last_job, last_attempt);
}

static int take_node(void *context, const struct node_record *node, struct err *err)
{
    const struct rows_making *making = context;
    return core_restore_node(making->core, node, err);
}

static int take_cluster(void *context, const struct cluster_record *cluster, struct err *err)
{
    const struct rows_making *making = context;
    return making->ask->job ? 0 : core_restore_cluster(making->core, cluster, err);
}

/* Before the job is queued: a core begins with a pass, and attempts that it gave here would have
 * the numbers of others. */
static int places_close(const struct rows_making *making, const struct job_record *job,
                        struct err *err)
{
    const struct cluster_record closed = {.name = job->virtual_cluster,
                                          .closing = {.is_closed = true, .by = "", .why = ""}};
    return making->ask->job ? core_restore_cluster(making->core, &closed, err) : 0;
}

static bool is_asked_for(const struct rows_making *making, struct job_id job)
{
    const struct rows_core_ask *ask = making->ask;
    for (size_t i = 0; i < ask->left_out_count; i++)
        if (ask->left_out[i].v == job.v)
            return false;
    return !ask->job || ask->job == job.v;
}

static int take_job(void *context, const struct job_record *job, struct text plan_bytes,
                    struct err *err)
{
    const struct rows_making *making = context;
    int code = making_goes_on(making, err);
    if (code < 0 || !is_asked_for(making, job->id))
        return code;
    code = places_close(making, job, err);
    if (code < 0)
        return code;
    struct plan *plan = plan_decode(plan_bytes, err);
    return plan ? core_restore_job(making->core, job, plan, err) : ERR_CORRUPT;
}

static int take_task(void *context, const struct task_record *task, struct err *err)
{
    const struct rows_making *making = context;
    int code = making_goes_on(making, err);
    return code < 0 || !is_asked_for(making, task->job)
               ? code
               : core_restore_task(making->core, task, err);
}

int rows_core(struct store_reader *reader, const struct rows_core_ask *ask, struct core **core,
              struct err *err)
{
    assert(ask->config);
    int64_t last_ms = 0;
    *core = core_new(ask->config, err);
    if (!*core)
        return err->code;
    struct rows_making making = {*core, ask};
    const struct store_restore restore = {&making,      take_counters, take_node,
                                          take_cluster, take_job,      take_task};
    cleanup_output struct output output;
    output_init(&output);
    int code = store_restore(reader, &restore, err);
    if (code == 0) /* after the rows: none of them is of a later time */
        code = store_restore_time(reader, &last_ms, err);
    if (code == 0)
        code =
            core_restore_finish(*core, last_ms > ask->now_ms ? last_ms : ask->now_ms, &output, err);
    if (code < 0) {
        core_free(*core);
        *core = NULL;
    }
    return code;
}
