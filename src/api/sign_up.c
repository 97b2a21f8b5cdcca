/* A visitor asks for an account: docs/rfc/0022-requests.md. The reply is the same, after the same
 * work, whether or not there is a user of the name. */
#include "api/account.h"
#include "api/handlers.h"
#include "api/login.h"
#include "api/passwords.h"
#include "api/request.h"
#include "api/throttle.h"
#include "base/memory.h"
#include "sys/clock.h"

/* In the call's arena. */
struct sign_up {
    struct password_check check; /* first */
    struct call *call;
    struct store_request row;
    bool is_tried, is_made;
};

static int kept(struct call *call)
{
    if (call->answer_code) {
        call->err = call->answer_err;
        return call->answer_code;
    }
    call_message(call, 202, "the request is taken: an administrator decides about it");
    return 0;
}

static int refused(struct call *call)
{
    call->err = call->answer_err;
    return call->answer_code;
}

static int hashed(struct call *call)
{
    struct sign_up *sign_up = call->task;
    struct service *service = call->api->service;
    if (!sign_up->is_tried)
        return call_fail(call, ERR_UNAVAILABLE, NULL, "", "the server is ending");
    if (!sign_up->is_made)
        return call_fail(call, ERR_UNAVAILABLE, NULL, "", "not enough memory to hash a password");
    sign_up->row.password_hash = sign_up->check.made;
    const struct store_change change = {.kind = CHANGE_REQUEST_ADD, .request.row = sign_up->row};
    struct err err = {0};
    struct service_reply reply = call_suspend(call, kept);
    int code = service->change(service->context, &change, reply, &err);
    if (code)
        call_refused(call, code, &err);
    return 0;
}

/* Before anything is taken of the rates: a network that has all that it may have open keeps nobody
 * else out. */
static int site_check(struct call *call, const char *address)
{
    if (!call_reader(call))
        return call->err.code;
    return store_request_site(call->reader, address, &call->err);
}

/* On the passwords' thread. */
static void hash_made(struct password_check *check, bool is_tried, bool is_right)
{
    struct sign_up *sign_up = (struct sign_up *)check;
    sign_up->is_tried = is_tried;
    sign_up->is_made = is_right;
    exchange_resume(sign_up->call->exchange);
}

static int body_read(struct call *call, struct sign_up *sign_up)
{
    static const char *const KEYS[] = {"username", "password", "email", "reason"};
    const struct doc *doc;
    struct text name, email;
    int code =
        call_body_of(call, KEYS, COUNT_OF(KEYS), "username, password, email and reason", &doc);
    if (!code)
        code = call_body_string(call, doc, "username", true, &name);
    if (!code)
        code = account_user_name(call, name);
    if (!code)
        code = call_body_string(call, doc, "email", true, &email);
    if (!code)
        code = account_email(call, email);
    if (!code && !email.length)
        code = call_fail(call, ERR_INVALID, NULL, "email", "email is missing");
    if (!code)
        code = call_body_string(call, doc, "password", true, &sign_up->check.password);
    if (!code)
        code = account_password(call, "password", sign_up->check.password);
    if (!code)
        code = request_line_read(call, doc, "reason", &sign_up->row.why);
    if (code)
        return code;
    sign_up->row.user = arena_copy(call->arena, name);
    sign_up->row.email = arena_copy(call->arena, email);
    return 0;
}

int handle_sign_up(struct call *call)
{
    struct sign_up *sign_up = ARENA_NEW(call->arena, struct sign_up);
    if (!call->api->config.has_sign_up)
        return call_fail(call, ERR_FORBIDDEN, NULL, "",
                         "this server takes no requests for accounts: speak with an administrator");
    sign_up->row.address = arena_copy(call->arena, call->exchange->address);
    int code = body_read(call, sign_up);
    if (!code)
        code = site_check(call, sign_up->row.address);
    if (!code)
        code = throttle_sign_up(call);
    if (code)
        return code;
    sign_up->call = call;
    sign_up->row.id = request_id_make(call);
    sign_up->row.kind = REQUEST_ACCOUNT;
    sign_up->row.asked_ms = clock_unix_ms();
    sign_up->check.wants_hash = true;
    sign_up->check.done = hash_made;
    login_stranger_set(call, &sign_up->check.task);
    call->task = sign_up;
    call_suspend(call, hashed);
    struct err err = {0};
    code = passwords_check(call->api->passwords, &sign_up->check, &err);
    if (code) {
        call->resume = refused;
        call_refused(call, code, &err);
    }
    return 0;
}
