#include "api/oidc.h"
#include "api/audit.h"
#include "api/grant.h"
#include "api/handlers.h"
#include "api/login.h"
#include "api/oidc_thread.h"
#include "base/memory.h"
#include "signon/fetch.h"
#include "sys/secret.h"
#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <time.h>

/* Keys of what is sealed, by purpose; link.c has number 1. */
enum { SEAL_COOKIE = 2, SEAL_CODE = 3, SEAL_DEVICE = 4, COOKIE_NAME_SIZE = 24, SEALED_MAX = 8192 };

/* A login, from request to request; in the call's arena. */
struct flow {
    struct worker_task task; /* first */
    struct call *call;
    struct oidc_try attempt;
    const char *redirect_uri, *from, *challenge; /* challenge "": no program */
    struct text code;                            /* the provider's */
    struct identity identity;
    const char *url; /* where the browser goes next */
    struct oidc_device device;
    bool is_run, is_too_fast;
    int code_of_run;
    struct err err;
};

/* ---- where browsers may be sent ---- */

/* Scheme, host and port of a URL. */
static struct text origin_of(struct text url)
{
    assert(url.at);
    size_t at = text_find(url, TEXT("://"));
    size_t end = at == SIZE_MAX ? url.length : at + 3;
    while (end < url.length && url.at[end] != '/' && url.at[end] != '?' && url.at[end] != '#')
        end++;
    return (struct text){url.at, end};
}

static bool is_of_program(struct text origin)
{
    struct text rest;
    int64_t port;
    if (text_starts(origin, TEXT("http://127.0.0.1:")))
        rest = (struct text){origin.at + 17, origin.length - 17};
    else if (text_starts(origin, TEXT("http://[::1]:")))
        rest = (struct text){origin.at + 13, origin.length - 13};
    else
        return false;
    return text_to_int64(rest, &port) && port > 0 && port <= UINT16_MAX;
}

bool oidc_redirect_is_allowed(const struct api_oidc *config, struct text uri, bool *is_program)
{
    *is_program = false;
    if (!uri.length || uri.length > OIDC_REDIRECT_MAX || memchr(uri.at, '#', uri.length) ||
        memchr(uri.at, '\0', uri.length))
        return false;
    struct text origin = origin_of(uri);
    if (text_equal(origin, origin_of(text_of(config->public_url))))
        return true;
    for (size_t i = 0; i < config->portal_count; i++)
        if (text_equal(origin, origin_of(text_of(config->portals[i]))))
            return true;
    *is_program = is_of_program(origin);
    return *is_program;
}

static bool is_printable(struct text text)
{
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)text.at[i] <= ' ' || (unsigned char)text.at[i] >= 0x7f)
            return false;
    return true;
}

static int go_to(struct call *call, const char *url)
{
    call_text(call, 302, "text/plain; charset=utf-8", TEXT(""));
    exchange_header(call->exchange, "Location", url);
    /* a token may stand in it */
    exchange_header(call->exchange, "Referrer-Policy", "no-referrer");
    return 0;
}

/* ---- what is sealed ---- */

static void sealing_key(struct call *call, uint64_t number, uint8_t key[SECRET_KEY_SIZE])
{
    secret_key_derive(call->api->service->token_key, number, "skepoidc", key);
}

/* In base64url, in the arena. */
static const char *seal(struct call *call, uint64_t number, const struct buf *plain)
{
    cleanup_buf struct buf sealed = BUF_INIT;
    uint8_t key[SECRET_KEY_SIZE];
    sealing_key(call, number, key);
    secret_seal(key, buf_as_text(plain), &sealed);
    secret_wipe(key, sizeof key);
    size_t size =
        sodium_base64_encoded_len(sealed.length, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    char *text = arena_alloc(call->arena, size);
    sodium_bin2base64(text, size, (const unsigned char *)sealed.at, sealed.length,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    return text;
}

static bool unseal(struct call *call, uint64_t number, struct text text, struct buf *plain)
{
    char *bytes = arena_alloc(call->arena, text.length + 1);
    size_t length = 0;
    uint8_t key[SECRET_KEY_SIZE];
    if (!text.length || text.length > SEALED_MAX ||
        sodium_base642bin((unsigned char *)bytes, text.length + 1, text.at, text.length, NULL,
                          &length, NULL, sodium_base64_VARIANT_URLSAFE_NO_PADDING))
        return false;
    sealing_key(call, number, key);
    int code = secret_open(key, (struct text){bytes, length}, plain, NULL);
    secret_wipe(key, sizeof key);
    return !code;
}

/* One for each login, so that several tabs do not disturb each other. */
static void cookie_name(const char *state, char name[COOKIE_NAME_SIZE])
{
    snprintf(name, COOKIE_NAME_SIZE, "skep_oidc_%.8s", state);
}

static void cookie_put(struct call *call, const char *state, const char *value, int life_s)
{
    char name[COOKIE_NAME_SIZE];
    bool is_https = strncmp(call->api->config.oidc->public_url, "https:", 6) == 0;
    cookie_name(state, name);
    exchange_header(call->exchange, "Set-Cookie",
                    arena_format(call->arena, "%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax%s",
                                 name, value, life_s, is_https ? "; Secure" : ""));
}

static const char *flow_seal(struct call *call, const struct flow *flow)
{
    cleanup_buf struct buf plain = BUF_INIT;
    buf_put_u64(&plain, (uint64_t)time(NULL) + OIDC_LOGIN_S);
    buf_put_text(&plain, text_of(flow->attempt.state));
    buf_put_text(&plain, text_of(flow->attempt.nonce));
    buf_put_text(&plain, text_of(flow->attempt.verifier));
    buf_put_text(&plain, text_of(flow->redirect_uri));
    buf_put_text(&plain, text_of(flow->from));
    buf_put_text(&plain, text_of(flow->challenge));
    return seal(call, SEAL_COOKIE, &plain);
}

static void word_take(struct cursor *cursor, char word[OIDC_WORD_SIZE])
{
    struct text text = cursor_text(cursor);
    snprintf(word, OIDC_WORD_SIZE, "%.*s", TEXT_ARG(text));
}

static bool flow_open(struct call *call, struct text state, struct flow *flow)
{
    cleanup_buf struct buf plain = BUF_INIT;
    char name[COOKIE_NAME_SIZE];
    if (state.length != OIDC_WORD_SIZE - 1)
        return false;
    cookie_name(arena_copy(call->arena, state), name);
    if (!unseal(call, SEAL_COOKIE, exchange_cookie(call->exchange, name), &plain))
        return false;
    struct cursor cursor = cursor_of(buf_as_text(&plain));
    bool is_late = cursor_u64(&cursor) < (uint64_t)time(NULL);
    word_take(&cursor, flow->attempt.state);
    word_take(&cursor, flow->attempt.nonce);
    word_take(&cursor, flow->attempt.verifier);
    flow->redirect_uri = arena_copy(call->arena, cursor_text(&cursor));
    flow->from = arena_copy(call->arena, cursor_text(&cursor));
    flow->challenge = arena_copy(call->arena, cursor_text(&cursor));
    assert(!cursor.is_bad);
    return !is_late && sodium_memcmp(flow->attempt.state, state.at, state.length) == 0;
}

/* ---- on the provider's thread ---- */

static void task_done(struct worker_task *task, bool is_run)
{
    struct flow *flow = (struct flow *)task;
    flow->is_run = is_run;
    if (!is_run)
        flow->code_of_run = err_fail(&flow->err, ERR_UNAVAILABLE, "", "the server is ending");
    exchange_resume(flow->call->exchange);
}

static int flow_refused(struct call *call)
{
    call->err = call->answer_err;
    return call->answer_code;
}

static int flow_give(struct call *call, struct flow *flow,
                     void (*run)(struct worker_task *task, void *oidc),
                     int (*resume)(struct call *call))
{
    struct err err = {0};
    flow->call = call;
    flow->task.run = run;
    flow->task.done = task_done;
    login_stranger_set(call, &flow->task);
    call_suspend(call, resume);
    call->resume_state = flow;
    int code = oidc_thread_give(call->api->oidc, &flow->task, &err);
    if (code) {
        call->resume = flow_refused;
        call_refused(call, code, &err);
    }
    return 0;
}

static int check_configured(struct call *call)
{
    if (call->api->oidc)
        return 0;
    return call_fail(call, ERR_NOT_FOUND, "NoApiError", "",
                     "OpenID Connect is not configured on this server");
}

/* ---- the beginning of a login ---- */

static void login_run(struct worker_task *task, void *oidc)
{
    struct flow *flow = (struct flow *)task;
    cleanup_buf struct buf url = BUF_INIT;
    flow->code_of_run = oidc_login_url(oidc, &flow->attempt, (int64_t)time(NULL), &url, &flow->err);
    flow->url = arena_copy(flow->call->arena, buf_as_text(&url));
}

static int login_begun(struct call *call)
{
    const struct flow *flow = call->resume_state;
    if (flow->code_of_run) {
        call->err = flow->err;
        return flow->code_of_run;
    }
    cookie_put(call, flow->attempt.state, flow_seal(call, flow), OIDC_LOGIN_S);
    return go_to(call, flow->url);
}

static int redirect_parse(struct call *call, const char **uri, bool *is_program)
{
    const struct api_oidc *config = call->api->config.oidc;
    struct text given = exchange_query(call->exchange, "redirect_uri");
    *is_program = false;
    if (!given.at)
        given = text_of(config->public_url);
    if (!is_printable(given) || !oidc_redirect_is_allowed(config, given, is_program))
        return call_fail(call, ERR_INVALID, NULL, "redirect_uri",
                         "redirect_uri must be of a configured origin, or http://127.0.0.1:PORT/ "
                         "for a program, of %d bytes at most, without a fragment",
                         OIDC_REDIRECT_MAX);
    *uri = arena_copy(call->arena, given);
    return 0;
}

int handle_oidc_login(struct call *call)
{
    struct flow *flow = ARENA_NEW(call->arena, struct flow);
    struct text from = exchange_query(call->exchange, "from");
    struct text challenge = exchange_query(call->exchange, "code_challenge");
    bool is_program = false;
    int code = check_configured(call);
    if (!code)
        code = redirect_parse(call, &flow->redirect_uri, &is_program);
    if (code)
        return code;
    if (from.length > OIDC_REDIRECT_MAX)
        return call_fail(call, ERR_INVALID, NULL, "from", "from has at most %d bytes",
                         OIDC_REDIRECT_MAX);
    if (is_program && challenge.length != OIDC_WORD_SIZE - 1)
        return call_fail(call, ERR_INVALID, NULL, "code_challenge",
                         "a program must give its code_challenge, of %d letters",
                         OIDC_WORD_SIZE - 1);
    flow->from = arena_copy(call->arena, from);
    flow->challenge = is_program ? arena_copy(call->arena, challenge) : "";
    oidc_try_make(&flow->attempt);
    return flow_give(call, flow, login_run, login_begun);
}

/* ---- its return ---- */

/* Back to where the login was asked for, with what went wrong. */
static int return_failed(struct call *call, const struct flow *flow)
{
    cleanup_buf struct buf url = BUF_INIT;
    buf_string(&url, flow->redirect_uri);
    fetch_parameter(&url, "errorMessage", text_of(call->err.text));
    if (flow->from[0])
        fetch_parameter(&url, "from", text_of(flow->from));
    return go_to(call, arena_copy(call->arena, buf_as_text(&url)));
}

static int return_granted(struct call *call, const struct grant *grant)
{
    const struct flow *flow = call->flow;
    cleanup_buf struct buf url = BUF_INIT;
    if (call->answer_code) {
        call->err = call->answer_err;
        return return_failed(call, flow);
    }
    buf_string(&url, flow->redirect_uri);
    fetch_parameter(&url, "user", text_of(grant->user));
    fetch_parameter(&url, "token", text_of(grant->token));
    fetch_parameter(&url, "admin", grant->is_admin ? TEXT("true") : TEXT("false"));
    fetch_parameter(&url, "hasGitHubPAT", TEXT("false"));
    if (flow->from[0])
        fetch_parameter(&url, "from", text_of(flow->from));
    return go_to(call, arena_copy(call->arena, buf_as_text(&url)));
}

/* A program gets a code, which it can exchange for a token: handle_oidc_token. */
static int return_code(struct call *call, const struct flow *flow, const char *user)
{
    cleanup_buf struct buf url = BUF_INIT, plain = BUF_INIT;
    buf_put_u64(&plain, (uint64_t)time(NULL) + OIDC_EXCHANGE_S);
    buf_put_text(&plain, text_of(user));
    buf_put_text(&plain, text_of(flow->challenge));
    buf_string(&url, flow->redirect_uri);
    fetch_parameter(&url, "code", text_of(seal(call, SEAL_CODE, &plain)));
    return go_to(call, arena_copy(call->arena, buf_as_text(&url)));
}

static int return_known(struct call *call, int code, const struct store_user *user)
{
    struct flow *flow = call->flow;
    if (code) {
        audit_subject(call, "user", text_of(flow->identity.name));
        audit_refusal(call, code, call->err.text);
        return return_failed(call, flow);
    }
    if (flow->challenge[0])
        return return_code(call, flow, user->name);
    struct grant *grant = ARENA_NEW(call->arena, struct grant);
    *grant = (struct grant){.user = user->name,
                            .is_admin = user->is_admin || user->is_admin_by_group,
                            .answer = return_granted};
    code = grant_token(call, grant, API_TOKEN_S);
    return code ? return_failed(call, flow) : 0;
}

static void return_run(struct worker_task *task, void *oidc)
{
    struct flow *flow = (struct flow *)task;
    flow->code_of_run = oidc_finish(oidc, &flow->attempt, flow->code, (int64_t)time(NULL),
                                    flow->call->arena, &flow->identity, &flow->err);
}

static int return_identified(struct call *call)
{
    struct flow *flow = call->resume_state;
    call->flow = flow;
    if (flow->code_of_run) {
        call->err = flow->err;
        audit_refusal(call, flow->code_of_run, flow->err.text);
        return return_failed(call, flow);
    }
    return signon_user(call, &flow->identity, &call->api->config.oidc->policy, return_known);
}

/* What the provider sent the browser back with. */
static int return_check(struct call *call, const struct flow *flow)
{
    struct text error = exchange_query(call->exchange, "error");
    struct text issuer = exchange_query(call->exchange, "iss");
    if (error.at)
        return call_fail(call, ERR_UNAUTHORIZED, NULL, "", "the provider refuses the login: %.*s",
                         (int)(error.length > 60 ? 60 : error.length), error.at);
    if (issuer.at && !text_is(issuer, call->api->config.oidc->provider.issuer))
        return call_fail(call, ERR_UNAUTHORIZED, NULL, "", "another provider answers");
    if (!flow->code.length || flow->code.length > OIDC_CODE_MAX)
        return call_fail(call, ERR_UNAUTHORIZED, NULL, "", "the provider gives no code");
    return 0;
}

int handle_oidc_return(struct call *call)
{
    struct flow *flow = ARENA_NEW(call->arena, struct flow);
    struct text state = exchange_query(call->exchange, "state");
    int code = check_configured(call);
    if (code)
        return code;
    if (!flow_open(call, state, flow))
        return call_fail(call, ERR_INVALID, NULL, "state",
                         "this login was not begun in this browser, or more than %d minutes ago: "
                         "begin again",
                         OIDC_LOGIN_S / 60);
    cookie_put(call, flow->attempt.state, "", 0); /* for one return */
    flow->code = exchange_query(call->exchange, "code");
    if (return_check(call, flow))
        return return_failed(call, flow);
    return flow_give(call, flow, return_run, return_identified);
}

/* A provider that was told to answer by a form, as OpenPAI told its own. The browser sends no
 * cookie with a form of another site: it comes again, by itself, with what the form holds. */
int handle_oidc_return_form(struct call *call)
{
    static const char *const names[] = {"state", "code", "iss", "error"};
    cleanup_buf struct buf url = BUF_INIT;
    const struct doc *doc;
    int code = check_configured(call);
    if (!code)
        code = call_body(call, &doc);
    if (code)
        return code;
    for (size_t i = 0; i < call->exchange->segment_count; i++)
        buf_format(&url, "/%.*s", TEXT_ARG(call->exchange->segments[i]));
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct text value = doc_get_text(doc, names[i], "");
        if (value.length)
            fetch_parameter(&url, names[i], value);
    }
    exchange_header(call->exchange, "Location", arena_copy(call->arena, buf_as_text(&url)));
    call->exchange->reply.status = 303; /* GET, whatever the method was */
    return 0;
}

/* ---- programs ---- */

static bool code_open(struct call *call, struct text code, struct text verifier, struct text *user)
{
    cleanup_buf struct buf plain = BUF_INIT;
    char challenge[OIDC_WORD_SIZE];
    if (!unseal(call, SEAL_CODE, code, &plain))
        return false;
    struct cursor cursor = cursor_of(buf_as_text(&plain));
    bool is_late = cursor_u64(&cursor) < (uint64_t)time(NULL);
    *user = text_of(arena_copy(call->arena, cursor_text(&cursor)));
    struct text wanted = cursor_text(&cursor);
    assert(!cursor.is_bad);
    oidc_challenge(verifier, challenge);
    return !is_late && wanted.length == OIDC_WORD_SIZE - 1 &&
           sodium_memcmp(challenge, wanted.at, wanted.length) == 0;
}

static int token_of_code(struct call *call, const struct doc *doc)
{
    struct text login_code, verifier, name;
    struct store_user user;
    int code = call_body_string(call, doc, "code", true, &login_code);
    if (!code)
        code = call_body_string(call, doc, "code_verifier", true, &verifier);
    if (code)
        return code;
    if (!code_open(call, login_code, verifier, &name))
        return call_fail(call, ERR_INVALID, NULL, "code",
                         "the code is not one of this login, or more than %d s old",
                         OIDC_EXCHANGE_S);
    struct store_reader *reader = call_reader(call);
    if (!reader)
        return call->err.code;
    code = store_user(reader, name, call->arena, &user, &call->err);
    if (code == ERR_NOT_FOUND || (!code && user.is_inactive))
        return call_fail(call, ERR_FORBIDDEN, "ForbiddenUserError", "",
                         "the user has been removed or deactivated");
    if (code)
        return code;
    struct grant *grant = ARENA_NEW(call->arena, struct grant);
    *grant = (struct grant){.user = user.name, .is_admin = user.is_admin || user.is_admin_by_group};
    return grant_token(call, grant, API_TOKEN_S);
}

/* ---- device codes: the browser is on another machine ---- */

static void device_run(struct worker_task *task, void *oidc)
{
    struct flow *flow = (struct flow *)task;
    flow->code_of_run =
        oidc_device_begin(oidc, (int64_t)time(NULL), flow->call->arena, &flow->device, &flow->err);
}

/* What the program shows again is sealed: only codes that were given out here are asked about. */
static int device_begun(struct call *call)
{
    const struct flow *flow = call->resume_state;
    cleanup_buf struct buf plain = BUF_INIT;
    struct json_writer json;
    if (flow->code_of_run) {
        call->err = flow->err;
        return flow->code_of_run;
    }
    buf_put_u64(&plain, (uint64_t)(time(NULL) + flow->device.life_s));
    buf_put_u64(&plain, (uint64_t)flow->device.interval_s);
    buf_put_text(&plain, text_of(flow->device.code));
    call_json(call, 200, &json);
    json_object(&json);
    json_key_string(&json, "device_code", seal(call, SEAL_DEVICE, &plain));
    json_key_string(&json, "user_code", flow->device.user_code);
    json_key_string(&json, "verification_uri", flow->device.url);
    if (flow->device.url_whole[0])
        json_key_string(&json, "verification_uri_complete", flow->device.url_whole);
    json_key_int(&json, "expires_in", flow->device.life_s);
    json_key_int(&json, "interval", flow->device.interval_s);
    json_object_end(&json);
    return 0;
}

int handle_oidc_device(struct call *call)
{
    struct flow *flow = ARENA_NEW(call->arena, struct flow);
    int code = check_configured(call);
    return code ? code : flow_give(call, flow, device_run, device_begun);
}

static void device_token_run(struct worker_task *task, void *oidc)
{
    struct flow *flow = (struct flow *)task;
    flow->code_of_run = oidc_device_finish(oidc, flow->code, (int64_t)time(NULL), flow->call->arena,
                                           &flow->identity, &flow->is_too_fast, &flow->err);
}

static int device_known(struct call *call, int code, const struct store_user *user)
{
    if (code) {
        const struct flow *flow = call->resume_state;
        audit_subject(call, "user", text_of(flow->identity.name));
        audit_refusal(call, code, call->err.text);
        return code;
    }
    struct grant *grant = ARENA_NEW(call->arena, struct grant);
    *grant =
        (struct grant){.user = user->name, .is_admin = user->is_admin || user->is_admin_by_group};
    return grant_token(call, grant, API_TOKEN_S);
}

static int device_answered(struct call *call)
{
    struct flow *flow = call->resume_state;
    struct json_writer json;
    if (flow->code_of_run == ERR_BUSY) { /* nobody has to wait but who asked */
        call_json(call, 202, &json);
        json_object(&json);
        json_key_string(&json, "message", flow->err.text);
        json_key_int(&json, "interval", flow->device.interval_s + (flow->is_too_fast ? 5 : 0));
        json_object_end(&json);
        return 0;
    }
    if (flow->code_of_run) {
        call->err = flow->err;
        return flow->code_of_run;
    }
    return signon_user(call, &flow->identity, &call->api->config.oidc->policy, device_known);
}

static int token_of_device(struct call *call, struct text sealed)
{
    struct flow *flow = ARENA_NEW(call->arena, struct flow);
    cleanup_buf struct buf plain = BUF_INIT;
    bool is_good = unseal(call, SEAL_DEVICE, sealed, &plain);
    struct cursor cursor = cursor_of(buf_as_text(&plain));
    if (!is_good || cursor_u64(&cursor) < (uint64_t)time(NULL))
        return call_fail(call, ERR_INVALID, NULL, "device_code",
                         "the code is not one of this server's, or too old: begin again");
    flow->device.interval_s = (int64_t)cursor_u64(&cursor);
    flow->code = text_of(arena_copy(call->arena, cursor_text(&cursor)));
    assert(!cursor.is_bad);
    return flow_give(call, flow, device_token_run, device_answered);
}

int handle_oidc_token(struct call *call)
{
    static const char *const KEYS[] = {"code", "code_verifier", "device_code"};
    const struct doc *doc;
    struct text sealed;
    int code = check_configured(call);
    if (!code)
        code = call_body_of(call, KEYS, COUNT_OF(KEYS), "code and code_verifier, or device_code",
                            &doc);
    if (!code)
        code = call_body_string(call, doc, "device_code", false, &sealed);
    if (code)
        return code;
    return sealed.at ? token_of_device(call, sealed) : token_of_code(call, doc);
}

/* ---- logout ---- */

static void logout_run(struct worker_task *task, void *oidc)
{
    struct flow *flow = (struct flow *)task;
    cleanup_buf struct buf url = BUF_INIT;
    flow->code_of_run =
        oidc_logout_url(oidc, flow->redirect_uri, (int64_t)time(NULL), &url, &flow->err);
    if (!url.length) /* the provider knows no logout */
        buf_string(&url, flow->redirect_uri);
    flow->url = arena_copy(flow->call->arena, buf_as_text(&url));
}

/* Whoever logs out has none of our tokens left: without the provider they go back, and are told. */
static int logout_begun(struct call *call)
{
    const struct flow *flow = call->resume_state;
    if (!flow->code_of_run)
        return go_to(call, flow->url);
    call->err = flow->err;
    return return_failed(call, flow);
}

int handle_oidc_logout(struct call *call)
{
    struct flow *flow = ARENA_NEW(call->arena, struct flow);
    bool is_program;
    int code = check_configured(call);
    if (!code)
        code = redirect_parse(call, &flow->redirect_uri, &is_program);
    flow->from = ""; /* nothing comes back with the answer */
    return code ? code : flow_give(call, flow, logout_run, logout_begun);
}
