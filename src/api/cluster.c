#include "api/audit.h"
#include "api/handlers.h"
#include "api/page.h"
#include "api/view.h"
#include <time.h>

int handle_node_list(struct call *call)
{
    struct store_nodes nodes;
    struct list_page page;
    int code = page_parse(call, &page, "nodes", NULL);
    if (!code)
        code = page_nodes(&page, &nodes);
    if (!code)
        code = store_node_count(call->reader, &page.total, &call->err);
    if (code)
        return code;
    const int64_t now_ms = (int64_t)time(NULL) * 1000;
    const struct service *service = call->api->service;
    const struct engine_gpu *gpus;
    size_t gpu_count;
    service->gpus(service->context, call->arena, &gpus, &gpu_count);
    struct json_writer json;
    call_json(call, 200, &json);
    page_begin(&page, &json);
    for (size_t i = 0; i < nodes.count; i++) {
        uint64_t use[USE_FIELDS];
        bool has_use = service->use_last(service->context, nodes.items[i].facts.name, use);
        view_node(&json, &nodes.items[i], now_ms, gpus, gpu_count, has_use ? use : NULL);
    }
    page_end(&page, &json);
    return 0;
}

struct node_act {
    const char *node, *done;
};

static int node_act_answered(struct call *call)
{
    const struct node_act *act = call->resume_state;
    if (call->answer_code) {
        call->err = call->answer_err;
        if (call->answer_code == ERR_NOT_FOUND)
            call->error_code = "NoNodeError";
        return call->answer_code;
    }
    call_message(call, 202, "%s node %s", act->done, act->node);
    return 0;
}

static int node_act(struct call *call, enum service_node_action action, const char *done,
                    struct text reason)
{
    struct service *service = call->api->service;
    struct node_act *act = arena_alloc(call->arena, sizeof *act);
    *act = (struct node_act){arena_copy(call->arena, call->parameters[0]), done};
    call->resume_state = act;
    struct service_reply reply = call_suspend(call, node_act_answered);
    struct err err = {0};
    int code = service->node_act(service->context, action, call->caller.auth.user, act->node,
                                 reason, reply, &err);
    if (code)
        call_refused(call, code, &err);
    return 0;
}

int handle_node_pardon(struct call *call)
{
    return node_act(call, SERVICE_NODE_PARDON, "pardoned", TEXT(""));
}

/* With a reason for people in the body, or without a body. */
static int node_close(struct call *call, enum service_node_action action, const char *done)
{
    static const char *const KEYS[] = {"reason"};
    const struct doc *doc;
    struct text reason = TEXT("");
    if (call->exchange->body.length) {
        int code = call_body_of(call, KEYS, COUNT_OF(KEYS), "reason alone", &doc);
        if (!code)
            code = call_body_string(call, doc, "reason", false, &reason);
        if (code)
            return code;
    }
    if (reason.length > NODE_CLOSING_WHY_MAX)
        return call_fail(call, ERR_INVALID, NULL, "reason", "reason must have at most %d bytes",
                         NODE_CLOSING_WHY_MAX);
    if (reason.length)
        audit_word(call, true, "reason", arena_copy(call->arena, reason));
    return node_act(call, action, done, reason);
}

int handle_node_cordon(struct call *call)
{
    return node_close(call, SERVICE_NODE_CORDON, "cordoned");
}

int handle_node_drain(struct call *call)
{
    return node_close(call, SERVICE_NODE_DRAIN, "draining");
}

int handle_node_uncordon(struct call *call)
{
    return node_act(call, SERVICE_NODE_UNCORDON, "uncordoned", TEXT(""));
}
