#include "api/handlers.h"
#include "api/page.h"
#include "api/view.h"
#include <time.h>

int handle_node_list(struct call *call)
{
    struct store_nodes nodes;
    struct list_page page;
    int code = page_parse(call, &page, "nodes", NULL);
    if (!code && !call_reader(call))
        code = call->err.code;
    if (!code)
        code = store_nodes(call->reader, call->arena, &nodes, &call->err);
    if (code)
        return code;
    const int64_t now_ms = (int64_t)time(NULL) * 1000;
    const struct service *service = call->api->service;
    const struct engine_gpu *gpus;
    size_t gpu_count;
    service->gpus(service->context, call->arena, &gpus, &gpu_count);
    struct text *names = ARENA_ARRAY(call->arena, struct text, nodes.count + 1);
    for (size_t i = 0; i < nodes.count; i++)
        names[i] = text_of(nodes.items[i].facts.name);
    const size_t *rows, count = page_pick(&page, names, nodes.count, false, &rows);
    page.total = (int64_t)nodes.count;
    struct json_writer json;
    call_json(call, 200, &json);
    page_begin(&page, &json);
    for (size_t i = 0; i < count; i++)
        view_node(&json, &nodes.items[rows[i]], now_ms, gpus, gpu_count);
    page_end(&page, &json);
    return 0;
}

static int pardon_answered(struct call *call)
{
    if (call->answer_code) {
        call->err = call->answer_err;
        if (call->answer_code == ERR_NOT_FOUND)
            call->error_code = "NoNodeError";
        return call->answer_code;
    }
    call_message(call, 202, "pardoned node %s", (const char *)call->resume_state);
    return 0;
}

int handle_node_pardon(struct call *call)
{
    struct service *service = call->api->service;
    char *node = arena_copy(call->arena, call->parameters[0]);
    call->resume_state = node;
    struct service_reply reply = call_suspend(call, pardon_answered);
    struct err err = {0};
    int code = service->node_pardon(service->context, call->caller.auth.user, node, reply, &err);
    if (code)
        call_refused(call, code, &err);
    return 0;
}
