/* Virtual clusters that are closed, and opening and closing them: OpenPAI's …/status. */
#include "api/cluster_status.h"
#include "api/audit.h"
#include "api/handlers.h"
#include "api/snapshot.h"
#include "api/view.h"
#include "model/reason.h"

int closed_clusters_read(struct call *call, struct store_clusters *clusters)
{
    struct store_reader *reader = call_reader(call);
    if (!reader)
        return call->err.code;
    return store_closed_clusters(reader, call->arena, clusters, &call->err);
}

const struct cluster_record *closed_cluster_find(const struct store_clusters *clusters,
                                                 struct text name)
{
    for (size_t i = 0; i < clusters->count; i++)
        if (text_is(name, clusters->items[i].name))
            return &clusters->items[i];
    return NULL;
}

void view_cluster_status(struct json_writer *json, const struct cluster_record *closed)
{
    const struct node_closing *closing = closed ? &closed->closing : NULL;
    json_key_string(json, "status", closed ? "STOPPED" : "RUNNING");
    json_key_string(json, "closedBy", closing ? closing->by : NULL);
    view_time(json, "closedTime", closing ? closing->at_ms : 0);
    json_key_string(json, "closedReason", closing && closing->why[0] ? closing->why : NULL);
}

/* The row of a job is not written when its virtual cluster is closed or opened, unless the job is
 * the first of its kind: it is this that tells the others. */
int cluster_waiting_reason(struct call *call, const struct job_record *job, const char **reason)
{
    struct store_clusters clusters = {0};
    *reason = job->reason;
    const bool was_closed = job->reason_topic == CLUSTER_CLOSED_TOPIC;
    const bool waits = job->state == LIFE_CREATION_PENDING;
    if (!was_closed && !(waits && (job->reason_topic || !job->reason || !job->reason[0])))
        return 0;
    int code = closed_clusters_read(call, &clusters);
    if (code)
        return code;
    const struct cluster_record *closed =
        closed_cluster_find(&clusters, text_of(job->virtual_cluster));
    if (closed)
        *reason = cluster_closed_text(closed, call->arena);
    else if (was_closed)
        *reason = arena_format(call->arena, REASON_OPENED, job->virtual_cluster);
    return 0;
}

/* --- changes --- */

struct cluster_act {
    const char *name;
    struct text reason;
    enum service_cluster_action action;
};

static int act_answered(struct call *call)
{
    const struct cluster_act *act = call->task;
    if (call->answer_code) {
        call->err = call->answer_err;
        return call->answer_code;
    }
    call_message(call, 201, "virtual cluster %s is %s", act->name,
                 act->action == SERVICE_CLUSTER_CLOSE ? "stopped" : "running");
    return 0;
}

static int act_post(struct call *call)
{
    const struct cluster_act *act = call->task;
    struct service *service = call->api->service;
    struct service_reply reply = call_suspend(call, act_answered);
    struct err err = {0};
    int code = service->cluster_act(service->context, act->action, call->caller.auth.user,
                                    act->name, act->reason, reply, &err);
    if (code)
        call_refused(call, code, &err);
    return 0;
}

/* One that the configuration does not name any more can be opened while it is closed. */
static int act_checked(struct call *call, const struct service_snapshot *snapshot)
{
    const struct cluster_act *act = call->task;
    const struct text name = text_of(act->name);
    struct store_clusters clusters = {0};
    if (vc_exists(snapshot, name))
        return act_post(call);
    int code = closed_clusters_read(call, &clusters);
    if (code)
        return code;
    if (act->action == SERVICE_CLUSTER_OPEN && closed_cluster_find(&clusters, name))
        return act_post(call);
    return call_fail(call, ERR_NOT_FOUND, "NoVirtualClusterError", "",
                     "there is no virtual cluster %s", act->name);
}

int handle_vc_status(struct call *call)
{
    static const char *const KEYS[] = {"vcStatus", "reason"};
    const struct doc *doc;
    struct text status, reason;
    int code = call_body_of_v2(call, KEYS, COUNT_OF(KEYS), "vcStatus and, maybe, a reason", &doc);
    if (!code)
        code = call_body_string(call, doc, "vcStatus", true, &status);
    if (!code)
        code = call_body_string(call, doc, "reason", false, &reason);
    if (code)
        return code;
    const bool is_closing = text_is(status, "stopped");
    if (!is_closing && !text_is(status, "running"))
        return call_fail(call, ERR_INVALID, NULL, "vcStatus", "vcStatus is stopped or running");
    if (reason.length > CLUSTER_CLOSED_WHY_MAX)
        return call_fail(call, ERR_INVALID, NULL, "reason", "reason must have at most %d bytes",
                         CLUSTER_CLOSED_WHY_MAX);
    if (reason.length && !is_closing)
        return call_fail(call, ERR_INVALID, NULL, "reason",
                         "a reason is kept while a virtual cluster is stopped only");
    struct cluster_act *act = ARENA_NEW(call->arena, struct cluster_act);
    *act = (struct cluster_act){
        .name = arena_copy(call->arena, call->parameters[0]),
        .reason = text_of(arena_copy(call->arena, reason.at ? reason : TEXT(""))),
        .action = is_closing ? SERVICE_CLUSTER_CLOSE : SERVICE_CLUSTER_OPEN,
    };
    call->task = act;
    audit_word(call, true, "status",
               is_closing ? arena_format(call->arena, "stopped%s%s", reason.length ? ": " : "",
                                         act->reason.at)
                          : "running");
    return snapshot_read(call, act_checked);
}
