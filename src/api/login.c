#include "api/login.h"
#include "api/audit.h"
#include "api/directory_login.h"
#include "api/grant.h"
#include "api/handlers.h"
#include "api/http_watch.h"
#include "api/oidc.h"
#include "api/page.h"
#include "api/passwords.h"
#include "api/token.h"
#include "base/memory.h"
#include "sys/clock.h"
#include "sys/secret.h"
#include <time.h>

static int64_t now_s(void)
{
    return (int64_t)time(NULL);
}

/* ---- login by password ---- */

/* A password that is being checked; in the call's arena. */
struct login {
    struct password_check check; /* first */
    struct call *call;
    struct login_try attempt;
    struct grant grant;
    int64_t life_s;
    bool is_tried, is_right;
};

/* On the passwords' thread. The brakes are told here, as a call whose client has gone is not
 * resumed. */
static void password_checked(struct password_check *check, bool is_tried, bool is_right)
{
    struct login *login = (struct login *)check;
    login->is_tried = is_tried;
    login->is_right = is_right;
    login_end(login->call->api->logins, &login->attempt, clock_monotonic_ms(), is_tried, is_right);
    if (is_tried && !is_right) /* also when the client has gone */
        audit_refusal(login->call, ERR_UNAUTHORIZED, "wrong password");
    exchange_resume(login->call->exchange);
}

int login_wrong(struct call *call)
{
    return call_fail(call, ERR_INVALID, "IncorrectPasswordError", "password",
                     "Password is incorrect."); /* OpenPAI's words: clients compare them */
}

static int login_checked(struct call *call)
{
    struct login *login = call->resume_state;
    if (!login->is_tried)
        return call_fail(call, ERR_UNAVAILABLE, NULL, "", "the server is ending");
    if (!login->is_right)
        return login_wrong(call);
    return grant_token(call, &login->grant, login->life_s);
}

/* The number of the token of this user that the request shows; it need not be valid any more. One
 * of an application does not count: whoever has a token can make as many of those as they like. */
static const char *device_of(struct call *call, struct text name)
{
    struct text token = call->exchange->authorization;
    struct token_claims claims;
    struct err err;
    if (!text_starts(token, TEXT("Bearer ")))
        return NULL;
    token = text_trim((struct text){token.at + 7, token.length - 7});
    if (token_verify(call->api->service->token_key, token, 0, call->arena, &claims, &err))
        return NULL;
    return login_is_same_user(name, text_of(claims.user)) && !claims.is_application ? claims.id
                                                                                    : NULL;
}

int login_try_begin(struct call *call, struct text user, struct login_try *attempt)
{
    struct login_who who = {
        .user = user, .address = call->exchange->address, .device = device_of(call, user)};
    return login_begin(call->api->logins, &who, clock_monotonic_ms(), attempt, &call->retry_s,
                       &call->err);
}

void login_stranger_set(struct call *call, struct worker_task *task)
{
    task->owner = arena_copy(call->arena, login_network(call->exchange->address));
    task->is_stranger = true;
}

void login_owner_set(struct call *call, struct text user, const struct login_try *attempt,
                     struct worker_task *task)
{
    if (!attempt->own) {
        login_stranger_set(call, task);
        return;
    }
    task->owner = arena_copy(call->arena, user);
    task->is_stranger = false;
}

static int login_refused(struct call *call)
{
    call->err = call->answer_err;
    return call->answer_code;
}

static int password_ask(struct call *call, struct login *login, struct text name)
{
    struct api *api = call->api;
    int code = login_try_begin(call, name, &login->attempt);
    if (code)
        return code;
    login->call = call;
    login->check.done = password_checked;
    login_owner_set(call, name, &login->attempt, &login->check.task);
    call_suspend(call, login_checked);
    call->resume_state = login;
    code = passwords_check(api->passwords, &login->check, &call->err);
    if (code) {
        struct err err = call->err;
        login_end(api->logins, &login->attempt, clock_monotonic_ms(), false, false);
        call->resume = login_refused;
        call_refused(call, code, &err);
    }
    return 0;
}

/* Seconds up to `max`; *life_s stays when none are given. */
static int expiration_parse(struct call *call, const struct doc *doc, int64_t max, int64_t *life_s)
{
    const struct doc *value = doc_get(doc, "expiration");
    if (!value || value->kind == DOC_NULL)
        return 0;
    bool is_number = value->kind == DOC_INT;
    if (is_number)
        *life_s = value->as.integer;
    else if (value->kind == DOC_STRING)
        is_number = text_to_int64(value->as.string, life_s);
    if (!is_number || *life_s < API_TOKEN_S_MIN || *life_s > max)
        return call_fail(call, ERR_INVALID, NULL, "expiration",
                         "expiration must be a number of seconds in %d..%lld", API_TOKEN_S_MIN,
                         (long long)max);
    return 0;
}

int handle_login(struct call *call)
{
    static const char *const KEYS[] = {"username", "password", "expiration"};
    const struct doc *doc;
    struct text name, password;
    int64_t life_s = API_TOKEN_S;
    int code =
        call_body_of_v2(call, KEYS, COUNT_OF(KEYS), "username, password and expiration", &doc);
    if (!code)
        code = call_body_string(call, doc, "username", true, &name);
    if (!code)
        code = call_body_string(call, doc, "password", true, &password);
    if (!code)
        code = expiration_parse(call, doc, API_TOKEN_S_MAX, &life_s);
    if (code)
        return code;
    if (name.length > STORE_USER_NAME_MAX || password.length > PASSWORD_MAX)
        return call_fail(call, ERR_INVALID, NULL, "username", "user name or password is too long");
    struct store_reader *reader = call_reader(call);
    if (!reader)
        return call->err.code;
    struct login *login = ARENA_NEW(call->arena, struct login);
    struct store_user user;
    code = store_user(reader, name, call->arena, &user, &call->err);
    if (code && code != ERR_NOT_FOUND)
        return code;
    if (directory_login_is_for(call->api, code ? NULL : &user))
        return directory_login(call, name, !code, password, life_s);
    login->check.password = password;
    login->life_s = life_s;
    /* who is not known is not named: people type passwords into the wrong field */
    audit_subject(call, "user", code ? TEXT("") : name);
    if (!code && !user.is_inactive) {
        login->check.hash = user.password_hash;
        login->grant =
            (struct grant){.user = user.name, .is_admin = user.is_admin || user.is_admin_by_group};
    }
    return password_ask(call, login, name);
}

/* ---- what was known before the start ---- */

/* From where users have come by this path. */
static int route_recall(struct api *api, struct store_reader *reader, const struct route *route,
                        struct err *err)
{
    const int64_t now_ms = clock_unix_ms(), apart_ms = clock_monotonic_ms() - now_ms;
    struct store_audit_places places;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    const char *name = arena_format(&arena, "%s %s", http_method_name(route->method), route->path);
    int code = store_audit_places(reader, text_of(name),
                                  now_ms - (int64_t)LOGIN_RECALL_DAYS * 86400 * 1000,
                                  LOGIN_KNOWN_MAX, &arena, &places, err);
    for (size_t i = 0; !code && i < places.count; i++)
        login_known_add(api->logins, text_of(places.items[i].user),
                        text_of(places.items[i].address), places.items[i].at_ms + apart_ms);
    return code;
}

int login_recall(struct api *api, struct err *err)
{
    struct service *service = api->service;
    struct store_reader *reader = service->reader_get(service->context, err);
    int code = 0;
    if (!reader)
        return err->code;
    for (size_t i = 0; !code && i < ROUTE_COUNT; i++)
        if (ROUTES[i].handle == handle_login)
            code = route_recall(api, reader, &ROUTES[i], err);
    service->reader_put(service->context, reader);
    return code;
}

/* The keys of OpenPAI name one way: the provider's, where there is one. */
int handle_authn_info(struct call *call)
{
    static const struct {
        const char *type, *uri, *method;
    } ways[] = {{"OIDC", "/api/v2/authn/oidc/login", "get"},
                {"basic", "/api/v2/authn/basic/login", "post"}};
    size_t first = call->api->oidc ? 0 : 1;
    struct json_writer json;
    call_json(call, 200, &json);
    json_object(&json);
    json_key_string(&json, "authn_type", ways[first].type);
    json_key_string(&json, "loginURI", ways[first].uri);
    json_key_string(&json, "loginURIMethod", ways[first].method);
    json_key(&json, "methods");
    json_array(&json);
    for (size_t i = first; i < sizeof ways / sizeof *ways; i++) {
        json_object(&json);
        json_key_string(&json, "type", ways[i].type);
        json_key_string(&json, "loginURI", ways[i].uri);
        json_key_string(&json, "loginURIMethod", ways[i].method);
        if (i == 0) /* cookies of a login are kept for that host */
            json_key_string(&json, "publicUrl", call->api->config.oidc->public_url);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_key_string(&json, "signUp", call->api->config.has_sign_up ? "request" : "off");
    json_object_end(&json);
    return 0;
}

/* ---- the list of tokens ---- */

static int revoked(struct call *call)
{
    if (call->answer_code == ERR_NOT_FOUND)
        return call_fail(call, ERR_NOT_FOUND, "NoTokenError", "",
                         "there is no such token of yours");
    if (call->answer_code) {
        call->err = call->answer_err;
        return call->answer_code;
    }
    /* OpenPAI's words: clients compare them */
    call_message(call, 200, "%s",
                 call->route->handle == handle_logout ? "Logout successfully"
                                                      : "revoke successfully");
    return 0;
}

static int revoke(struct call *call, const char *id)
{
    struct service *service = call->api->service;
    audit_subject(call, "token", text_of(id));
    struct store_change change = {.kind = CHANGE_TOKEN_REMOVE,
                                  .token = {.id = id, .user = call->caller.auth.user}};
    struct service_reply reply = call_suspend(call, revoked);
    struct err err = {0};
    int code = service->change(service->context, &change, reply, &err);
    if (code)
        call_refused(call, code, &err);
    return 0;
}

int handle_logout(struct call *call)
{
    return revoke(call, call->caller.token_id);
}

/* The token itself, as OpenPAI has it, or its id. */
int handle_token_remove(struct call *call)
{
    struct text token = call->parameters[0];
    struct token_claims claims;
    struct err err;
    if (!memchr(token.at, '.', token.length))
        return revoke(call, arena_copy(call->arena, token));
    int code = token_verify(call->api->service->token_key, token, 0, call->arena, &claims, &err);
    if (code)
        return call_fail(call, ERR_INVALID, NULL, "token", "%s", err.text);
    audit_subject(call, "token", text_of(claims.id));
    const struct auth_subject subject = {.owner = claims.user};
    code = call_may_about(call, AUTH_REVOKE, &subject);
    if (code)
        return code;
    return revoke(call, claims.id);
}

static int scope_parse(struct call *call, const struct doc *doc, enum auth_scope *scope)
{
    struct text name;
    int code = call_body_string(call, doc, "scope", false, &name);
    *scope = AUTH_SCOPE_USUAL;
    if (code || !name.at)
        return code;
    for (int i = 0; i < AUTH_SCOPE_COUNT; i++) {
        if (text_is(name, auth_scope_name((enum auth_scope)i))) {
            *scope = (enum auth_scope)i;
            return 0;
        }
    }
    return call_fail(call, ERR_INVALID, NULL, "scope",
                     "scope must be one of usual, read, submit, admin");
}

/* Without a body as in OpenPAI: of the usual scope, and it never expires. */
int handle_token_application(struct call *call)
{
    struct grant *grant = ARENA_NEW(call->arena, struct grant);
    static const char *const KEYS[] = {"scope", "expiration"};
    const struct doc *doc;
    int64_t life_s = 0;
    int code = call_body_of_v2(call, KEYS, COUNT_OF(KEYS), "scope and expiration", &doc);
    if (!code)
        code = scope_parse(call, doc, &grant->scope);
    if (!code)
        code = expiration_parse(call, doc, API_APPLICATION_S_MAX, &life_s);
    if (code)
        return code;
    grant->user = call->caller.auth.user;
    grant->is_application = true;
    return grant_token(call, grant, life_s);
}

static bool is_over(const struct store_token *row)
{
    return row->expires_ms && row->expires_ms / 1000 <= now_s();
}

/* What stands in a token, for people: its id revokes it. */
static void token_json(struct json_writer *json, const struct store_token *row, struct text token)
{
    json_object(json);
    json_key_string(json, "id", row->id);
    if (token.at)
        json_key_text(json, "token", token);
    json_key_bool(json, "application", row->is_application);
    json_key_string(json, "scope",
                    row->is_application ? auth_scope_name((enum auth_scope)row->scope) : NULL);
    json_key_int(json, "createdTime", row->created_ms);
    if (row->expires_ms)
        json_key_int(json, "expiresTime", row->expires_ms);
    else
        json_key_null(json, "expiresTime");
    json_object_end(json);
}

/* Tokens are not stored; the same claims under the same key give the same token again. */
static int tokens_sign(struct call *call, const struct store_tokens *rows, struct text *tokens)
{
    int code = 0;
    for (size_t i = 0; !code && i < rows->count; i++) {
        const struct store_token *row = &rows->items[i];
        const struct token_claims claims = {
            .id = row->id,
            .user = row->user,
            .is_application = row->is_application,
            .issued_s = row->created_ms / 1000,
            .expires_s = row->expires_ms / 1000,
        };
        code =
            token_sign(call->api->service->token_key, &claims, call->arena, &tokens[i], &call->err);
    }
    return code;
}

/* OpenPAI had the tokens alone. */
static void tokens_json(struct json_writer *json, const struct store_tokens *rows,
                        const struct text *tokens)
{
    json_object(json);
    json_key(json, "tokens");
    json_array(json);
    for (size_t i = 0; i < rows->count; i++)
        json_text(json, tokens[i]);
    json_array_end(json);
    json_key(json, "details");
    json_array(json);
    for (size_t i = 0; i < rows->count; i++)
        token_json(json, &rows->items[i], (struct text){NULL, 0});
    json_array_end(json);
    json_object_end(json);
}

/* Those that are shown and count still, in their order. */
static void tokens_keep(struct list_page *page, struct store_tokens *rows)
{
    struct arena *arena = page->call->arena;
    struct text *keys = ARENA_ARRAY(arena, struct text, rows->count + 1);
    struct store_token *all = ARENA_ARRAY(arena, struct store_token, rows->count + 1);
    const size_t *order;
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const struct store_token *row = &rows->items[i];
        if (is_over(row))
            continue;
        all[count] = *row;
        keys[count++] = text_of(arena_format(
            arena, "%s%s", page_number(page->call, (uint64_t)row->created_ms).at, row->id));
    }
    rows->count = page_pick(page, keys, count, true, &order);
    for (size_t i = 0; i < rows->count; i++)
        rows->items[i] = all[order[i]];
}

int handle_token_list(struct call *call)
{
    struct list_page page;
    struct store_tokens rows;
    int code = page_parse(call, &page, "tokens", NULL);
    if (!code && !call_reader(call))
        code = call->err.code;
    if (!code)
        code = store_tokens(call->reader, text_of(call->caller.auth.user), call->arena, &rows,
                            &call->err);
    if (code)
        return code;
    tokens_keep(&page, &rows);
    struct text *tokens = ARENA_ARRAY(call->arena, struct text, rows.count + 1);
    code = tokens_sign(call, &rows, tokens);
    if (code)
        return code;
    struct json_writer json;
    call_json(call, 200, &json);
    if (!page.has_cursor) {
        tokens_json(&json, &rows, tokens);
        page_link(&page);
        return 0;
    }
    page_begin(&page, &json);
    for (size_t i = 0; i < rows.count; i++)
        token_json(&json, &rows.items[i], tokens[i]);
    page_end(&page, &json);
    return 0;
}

int handle_token_check(struct call *call)
{
    const struct caller *caller = &call->caller;
    struct json_writer json;
    call_json(call, 200, &json);
    json_object(&json);
    json_key_string(&json, "username", caller->auth.user);
    json_key_bool(&json, "application", caller->auth.is_application);
    json_key_bool(&json, "admin", caller->auth.is_admin);
    if (caller->auth.is_application)
        json_key_string(&json, "scope", auth_scope_name(caller->auth.scope));
    if (caller->expires_ms)
        json_key_int(&json, "exp", caller->expires_ms / 1000);
    json_object_end(&json);
    return 0;
}
