#include "api/audit.h"
#include "api/byte_budget.h"
#include "api/call.h"
#include "api/etag.h"
#include "api/fields.h"
#include "api/http_watch.h"
#include "api/portal.h"
#include "api/stream_guard.h"
#include "api/throttle.h"
#include "api/token.h"
#include "base/memory.h"
#include "sys/clock.h"
#include "sys/log.h"
#include <assert.h>
#include <stdio.h>

static void problems_json(struct json_writer *json, const struct problems *problems)
{
    json_key(json, "problems");
    json_array(json);
    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *problem = &problems->items[i];
        json_object(json);
        json_key_int(json, "line", problem->place.line);
        json_key_int(json, "column", problem->place.column);
        json_key_string(json, "path", problem->path);
        json_key_string(json, "message", problem->text);
        if (problem->hint)
            json_key_string(json, "hint", problem->hint);
        json_key_bool(json, "warning", problem->is_warning);
        json_object_end(json);
    }
    json_array_end(json);
}

/* Everything that is wrong in a job file, one a line, as `skep validate` prints it. */
static void message_json(struct call *call, struct json_writer *json)
{
    if (call->problems && call->problems->error_count) {
        cleanup_buf struct buf text = BUF_INIT;
        problems_print(call->problems, "job", &text);
        json_key_text(json, "message", text_trim(buf_as_text(&text)));
        problems_json(json, call->problems);
        return;
    }
    json_key_string(json, "message", call->err.text);
    if (call->err.path[0])
        json_key_string(json, "path", call->err.path);
}

/* HiveD's paths: its clients know its errors alone. */
static bool is_inspect(const struct exchange *exchange)
{
    return exchange->segment_count >= 2 && text_is(exchange->segments[0], "v1") &&
           text_is(exchange->segments[1], "inspect");
}

static void inspect_error(struct call *call, int status, struct json_writer *json)
{
    const char *whose = status < 500 ? "User" : "Platform";
    cleanup_buf struct buf text = BUF_INIT;
    buf_format(&text, "hivedscheduler: %s Error: %s", whose, call->err.text);
    json_text(json, buf_as_text(&text));
}

/* The one place where a failure becomes a reply. */
static void reply_error(struct call *call, int code)
{
    struct http_reply *reply = &call->exchange->reply;
    struct status status = status_of(code);
    const char *name = call->error_code ? call->error_code : status.name;
    if (status.http >= 500)
        log_error("api", "%s %s: %s", http_method_name(call->exchange->method),
                  call->route ? call->route->path : "?", call->err.text);
    if (status.http == 429 || status.http == 503)
        exchange_header(
            call->exchange, "Retry-After",
            arena_format(call->arena, "%lld", (long long)(call->retry_s ? call->retry_s : 1)));
    buf_release(&reply->body); /* may be large */
    reply->status = 0;
    struct json_writer json;
    call_json(call, status.http, &json);
    if (is_inspect(call->exchange)) {
        inspect_error(call, status.http, &json);
        return;
    }
    json_object(&json);
    json_key_string(&json, "code", name);
    if (call->route && call->route->is_v1)
        json_key_string(&json, "error", status_old_name(name));
    message_json(call, &json);
    if (call->reason)
        json_key_string(&json, "reason", call->reason);
    if (code == ERR_FORBIDDEN && call->missing_right)
        json_key_string(&json, "right", call->missing_right);
    json_object_end(&json);
}

/* A reply that waits as a whole for its reader, unless its handler has counted it before. What has
 * been changed is told in any case. */
static void reply_count(struct call *call, int code)
{
    struct exchange *exchange = call->exchange;
    struct http_reply *reply = &exchange->reply;
    const bool is_read = exchange->method == HTTP_GET || exchange->method == HTTP_HEAD;
    if (reply->status == 0 || reply->body.length <= BYTES_SMALL || reply->hold.free)
        return;
    const bool must = !code && !is_read && !call->is_trial;
    code = byte_budget_take(call->api->held, call_client(call), "reply", reply->body.length, must,
                            &reply->hold, &call->err);
    if (!code)
        return;
    if (call->problems)
        problems_release(call->problems);
    call->problems = NULL;
    call->error_code = call->reason = NULL;
    call->retry_s = 0;
    reply->header_count = 0;
    reply_error(call, code);
}

static void step_end(struct call *call, int code)
{
    struct service *service = call->api->service;
    if (!code)
        code = fields_reply(call);
    if (call->rules)
        service->rules_put(service->context);
    call->rules = NULL;
    if (call->reader) {
        service->reader_put(service->context, call->reader);
        call->reader = NULL;
    }
    if (code)
        reply_error(call, code);
    else
        etag_reply(call->exchange);
    reply_count(call, code);
    stream_guard(call);
}

/* Allowed methods of a path that exists, and what browsers ask before a request. */
static void reply_options(struct call *call)
{
    struct exchange *exchange = call->exchange;
    exchange_header(exchange, "Access-Control-Allow-Methods", "GET, POST, PUT, DELETE");
    exchange_header(exchange, "Access-Control-Allow-Headers",
                    "Authorization, Content-Type, Idempotency-Key");
    exchange_header(exchange, "Access-Control-Max-Age", "86400");
    exchange->reply.status = 204;
}

/* What a route's column of the table asks for. */
static const enum auth_right access_rights[] = {
    [ACCESS_READ_V1] = AUTH_CALL,     [ACCESS_USER] = AUTH_CALL,
    [ACCESS_BROWSER] = AUTH_SESSION,  [ACCESS_SUBMIT] = AUTH_SUBMIT,
    [ACCESS_ADMIN] = AUTH_ADMINISTER, [ACCESS_MANAGE] = AUTH_MANAGE,
};

static int body_fail(struct call *call)
{
    return call_fail(call, ERR_TOO_BIG, NULL, "", "the body has more than %zu bytes",
                     call->exchange->body_max);
}

static int call_check(struct call *call, const struct route_match *match)
{
    if (!match->route) {
        if (match->is_path_known && is_inspect(call->exchange))
            return call_fail(call, ERR_UNSUPPORTED, NULL, "", "NotImplemented");
        if (match->is_path_known)
            return call_fail(call, ERR_NOT_FOUND, "NoApiError", "",
                             "this path is there, but not with this method");
        return call_fail(
            call, ERR_NOT_FOUND, "NoApiError", "", "no such path: %.*s",
            (int)(call->exchange->target.length > 120 ? 120 : call->exchange->target.length),
            call->exchange->target.at);
    }
    if (call->exchange->is_body_too_big)
        return body_fail(call);
    if (call->route->access == ACCESS_ANYONE)
        return 0;
    if (call->route->access == ACCESS_READ_V1 && call->api->config.is_v1_read_open &&
        !call->exchange->authorization.at)
        return 0;
    int code = token_caller(call);
    if (!code)
        code = throttle_request(call);
    if (code)
        return code;
    return call_may(call, access_rights[call->route->access], NULL);
}

/* The body is kept until the reply is made; of one without a length nobody knows how much comes. */
static int body_count(struct call *call)
{
    struct exchange *exchange = call->exchange;
    if (!call->caller.auth.user[0])
        exchange->body_max = HTTP_BODY_STRANGER_MAX;
    if (exchange->body_length > (int64_t)exchange->body_max)
        return body_fail(call);
    const size_t length =
        exchange->body_length < 0 ? exchange->body_max : (size_t)exchange->body_length;
    return byte_budget_take(call->api->held, call_client(call), "body", length, false,
                            &exchange->body_hold, &call->err);
}

static bool app_begin(void *context, struct exchange *exchange)
{
    struct call *call = ARENA_NEW(&exchange->arena, struct call);
    call->api = context;
    call->exchange = exchange;
    call->arena = &exchange->arena;
    call->caller.auth.user = "";
    exchange->app_state = call;
    int code = exchange_target(exchange, exchange->target, &call->err);
    if (!code && exchange->method == HTTP_OPTIONS) {
        reply_options(call);
        return false;
    }
    if (!code) {
        struct route_match match;
        route_find(ROUTES, ROUTE_COUNT, exchange, &match);
        if (!match.route && !match.is_path_known)
            route_find(PORTAL_ROUTES, PORTAL_ROUTE_COUNT, exchange, &match);
        if (!match.route && !match.is_path_known)
            match.route = portal_missing_page(call->api, exchange);
        call->route = match.route;
        memcpy(call->parameters, match.parameters, sizeof match.parameters);
        code = call_check(call, &match);
    }
    if (!code)
        code = body_count(call);
    if (code)
        audit_end(call, code);
    step_end(call, code);
    return code == 0;
}

/* Of a handler: the call goes on when it has been suspended. */
static void handler_end(struct call *call, int code)
{
    if (!call->resume)
        audit_end(call, code);
    step_end(call, code);
}

static void app_handle(void *context, struct exchange *exchange)
{
    (void)context;
    struct call *call = exchange->app_state;
    if (exchange->is_body_too_big) {
        handler_end(call, body_fail(call));
        return;
    }
    handler_end(call, call->route->handle(call));
}

static void app_resume(void *context, struct exchange *exchange)
{
    (void)context;
    struct call *call = exchange->app_state;
    int (*resume)(struct call *) = call->resume;
    assert(resume);
    call->resume = NULL;
    handler_end(call, resume(call));
}

static void app_end(void *context, struct exchange *exchange)
{
    struct api *api = context;
    struct call *call = exchange->app_state;
    if (call->resume && call->abandon)
        call->abandon(call);
    if (call->problems)
        problems_release(call->problems);
    int class = exchange->reply.status / 100;
    if (class >= 1 && class <= 5)
        atomic_fetch_add(&api->requests[class], 1);
    int64_t spent_us = clock_monotonic_us() - exchange->begin_us;
    if (spent_us > 0 && !exchange->reply.stream.read && !call->is_held)
        atomic_fetch_add(&api->request_us, (uint64_t)spent_us);
    /* the route, not the target: a token may stand in that */
    if (call->route)
        log_debug("api", "%s %s %d, %s from %.*s, %lld us", http_method_name(exchange->method),
                  call->route->path, exchange->reply.status,
                  call->caller.auth.user[0] ? call->caller.auth.user : "nobody",
                  TEXT_ARG(exchange->address), (long long)spent_us);
}

struct http_app api_app(struct api *api)
{
    return (struct http_app){
        .context = api,
        .begin = app_begin,
        .handle = app_handle,
        .resume = app_resume,
        .end = app_end,
    };
}
