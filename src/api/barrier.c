/* barrier.c — what skep-init asks at a barrier: held until all tasks of its job attempt have come.
 */
#include "api/handlers.h"

/* A request that may wait for hours says nothing of how fast requests are. */
static int barrier_answered(struct call *call)
{
    if (call->answer_code) {
        call->err = call->answer_err;
        call->error_code = call->answer_code == ERR_CONFLICT    ? "BarrierBrokenError"
                           : call->answer_code == ERR_NOT_FOUND ? "NoTaskError"
                                                                : NULL;
        return call->answer_code;
    }
    struct json_writer json;
    call_json(call, 200, &json);
    json_object(&json);
    json_key_string(&json, "state", call->is_held ? "passed" : "noted");
    json_object_end(&json);
    return 0;
}

static int barrier_kind(struct call *call, enum barrier_kind *kind)
{
    if (text_is(call->parameters[1], "start"))
        *kind = BARRIER_START;
    else if (text_is(call->parameters[1], "ssh"))
        *kind = BARRIER_SSH;
    else
        return call_fail(call, ERR_NOT_FOUND, NULL, "", "there is no barrier %.*s",
                         (int)(call->parameters[1].length > 40 ? 40 : call->parameters[1].length),
                         call->parameters[1].at);
    return 0;
}

int handle_barrier(struct call *call)
{
    static const char BEARER[] = "Bearer ";
    struct service *service = call->api->service;
    struct text token = call->exchange->authorization;
    struct service_barrier report = {.is_up = !call_flag(call, "missing"),
                                     .is_waiting = !call_flag(call, "report")};
    struct service_reply reply;
    struct err err = {0};
    int64_t attempt;
    int code = call_index(call, call->parameters[0], "attempt", INT64_MAX, &attempt);

    if (!code)
        code = barrier_kind(call, &report.kind);
    if (code)
        return code;
    if (!text_starts(token, TEXT("Bearer ")))
        return call_fail(call, ERR_UNAUTHORIZED, NULL, "", "the token of the try is missing");
    token.at += sizeof BEARER - 1;
    token.length -= sizeof BEARER - 1;
    report.attempt.v = (uint64_t)attempt;
    report.token = token;
    call->is_held = report.is_waiting;
    reply = call_suspend(call, barrier_answered);
    code = service->barrier(service->context, &report, reply, &err);
    if (code)
        call_refused(call, code, &err);
    return 0;
}
