#include "api/grant.h"
#include "api/audit.h"
#include "api/call.h"
#include "api/token.h"
#include <assert.h>
#include <time.h>

/* As OpenPAI's login answers. */
static int grant_answer(struct call *call, const struct grant *grant)
{
    if (call->answer_code) {
        call->err = call->answer_err;
        return call->answer_code;
    }
    struct json_writer json;
    call_json(call, 200, &json);
    json_object(&json);
    json_key_string(&json, "token", grant->token);
    if (grant->is_application) {
        json_key_bool(&json, "application", true);
        json_key_string(&json, "scope", auth_scope_name(grant->scope));
    } else {
        json_key_string(&json, "user", grant->user);
        json_key_bool(&json, "admin", grant->is_admin);
        json_key_bool(&json, "hasGitHubPAT", false);
    }
    json_object_end(&json);
    return 0;
}

static int grant_answered(struct call *call)
{
    const struct grant *grant = call->resume_state;
    return grant->answer ? grant->answer(call, grant) : grant_answer(call, grant);
}

int grant_token(struct call *call, struct grant *grant, int64_t life_s)
{
    struct service *service = call->api->service;
    char id[TOKEN_ID_SIZE];
    token_id_make(id);
    assert(grant->user);
    struct token_claims claims = {
        .id = id,
        .user = grant->user,
        .is_application = grant->is_application,
        .issued_s = (int64_t)time(NULL),
    };
    claims.expires_s = life_s ? claims.issued_s + life_s : 0;
    struct text token;
    int code = token_sign(service->token_key, &claims, call->arena, &token, &call->err);
    if (code)
        return code;
    grant->token = token.at;
    struct store_change change = {.kind = CHANGE_TOKEN_ADD,
                                  .token = {
                                      .id = id,
                                      .user = grant->user,
                                      .is_application = grant->is_application,
                                      .scope = (uint8_t)grant->scope,
                                      .created_ms = claims.issued_s * 1000,
                                      .expires_ms = claims.expires_s * 1000,
                                  }};
    call->resume_state = grant;
    if (!call->audit.user || !call->audit.user[0])
        call->audit.user = grant->user; /* a login */
    audit_subject(call, "token", text_of(id));
    struct service_reply reply = call_suspend(call, grant_answered);
    struct err err = {0};
    code = service->change(service->context, &change, reply, &err);
    if (code)
        call_refused(call, code, &err);
    return 0;
}
