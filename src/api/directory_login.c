#include "api/directory_login.h"
#include "api/audit.h"
#include "api/call.h"
#include "api/grant.h"
#include "api/http_watch.h"
#include "api/login.h"
#include "api/token.h"
#include "base/memory.h"
#include "sys/clock.h"
#include "sys/worker.h"
#include <assert.h>
#include <time.h>

static const char IDENTITY_KIND[] = "ldap ";

/* In the call's arena. */
struct directory_try {
    struct worker_task task; /* first */
    struct call *call;
    struct login_try attempt;
    struct text name, password;
    int64_t life_s;
    struct identity identity;
    bool is_run;
    int code; /* of the run */
    struct err err;
};

/* ---- life ---- */

int directory_login_start(struct api *api, struct err *err)
{
    const struct api_ldap *config = api->config.ldap;
    if (!config)
        return 0;
    int code = directory_new(&config->directory, &api->directory, err);
    if (code)
        return code;
    const struct worker_config worker = {
        .name = "the thread that asks the directory",
        .waiting_max = DIRECTORY_WAITING_MAX,
        .strangers_max = DIRECTORY_WAITING_MAX,
        .busy_text = "too many logins at this moment: try again",
        .context = api->directory,
    };
    return worker_start(&worker, &api->directory_worker, err);
}

void directory_login_stop(struct api *api)
{
    if (api->directory_worker)
        worker_stop(api->directory_worker);
}

void directory_login_free(struct api *api)
{
    worker_free(api->directory_worker);
    directory_free(api->directory);
}

bool directory_login_is_for(const struct api *api, const struct store_user *user)
{
    if (!api->directory)
        return false;
    return !user ||
           (!user->password_hash[0] && !user->is_inactive &&
            (!user->identity[0] || text_starts(text_of(user->identity), text_of(IDENTITY_KIND))));
}

/* ---- on the directory's thread ---- */

static void flow_run(struct worker_task *task, void *directory)
{
    struct directory_try *flow = (struct directory_try *)task;
    flow->code = directory_check(directory, flow->name, flow->password, (int64_t)time(NULL),
                                 flow->call->arena, &flow->identity, &flow->err);
}

/* The brakes are told here, as a call whose client has gone is not resumed. */
static void flow_done(struct worker_task *task, bool is_run)
{
    struct directory_try *flow = (struct directory_try *)task;
    bool is_wrong = flow->code == ERR_UNAUTHORIZED;
    bool is_tried = is_run && (is_wrong || flow->code == 0 || flow->code == ERR_FORBIDDEN);
    flow->is_run = is_run;
    if (is_tried && is_wrong)
        audit_refusal(flow->call, ERR_UNAUTHORIZED, "wrong password");
    login_end(flow->call->api->logins, &flow->attempt, clock_monotonic_ms(), is_tried,
              is_tried && !is_wrong);
    exchange_resume(flow->call->exchange);
}

/* ---- around it ---- */

static int user_known(struct call *call, int code, const struct store_user *user)
{
    const struct directory_try *flow = call->flow;
    if (code) {
        audit_subject(call, "user", text_of(flow->identity.name));
        audit_refusal(call, code, call->err.text);
        return code;
    }
    struct grant *grant = ARENA_NEW(call->arena, struct grant);
    *grant =
        (struct grant){.user = user->name, .is_admin = user->is_admin || user->is_admin_by_group};
    return grant_token(call, grant, flow->life_s);
}

static int flow_answered(struct call *call)
{
    struct directory_try *flow = call->resume_state;
    call->flow = flow;
    if (!flow->is_run)
        return call_fail(call, ERR_UNAVAILABLE, NULL, "", "the server is ending");
    if (flow->code == ERR_UNAUTHORIZED)
        return login_wrong(call);
    if (flow->code) {
        call->err = flow->err;
        return flow->code;
    }
    return signon_user(call, &flow->identity, &call->api->config.ldap->policy, user_known);
}

static int flow_refused(struct call *call)
{
    call->err = call->answer_err;
    return call->answer_code;
}

/* The directory takes "Alice" and "alice" for the same user: so do the brakes. */
static struct text folded(struct call *call, struct text name)
{
    char *small = arena_copy(call->arena, name);
    for (size_t i = 0; i < name.length; i++)
        if (small[i] >= 'A' && small[i] <= 'Z')
            small[i] = (char)(small[i] | 0x20);
    return (struct text){small, name.length};
}

int directory_login(struct call *call, struct text name, bool is_known, struct text password,
                    int64_t life_s)
{
    struct api *api = call->api;
    struct directory_try *flow = ARENA_NEW(call->arena, struct directory_try);
    struct err err = {0};
    assert(api->directory_worker);
    /* people type passwords into the wrong field: only who is known is named */
    audit_subject(call, "user", is_known ? name : TEXT(""));
    flow->call = call;
    flow->name = name;
    flow->password = password;
    flow->life_s = life_s;
    flow->task.run = flow_run;
    flow->task.done = flow_done;
    const struct text user = folded(call, name);
    int code = login_try_begin(call, user, &flow->attempt);
    if (code)
        return code;
    login_owner_set(call, user, &flow->attempt, &flow->task);
    call_suspend(call, flow_answered);
    call->resume_state = flow;
    code = worker_give(api->directory_worker, &flow->task, &err);
    if (code) {
        login_end(api->logins, &flow->attempt, clock_monotonic_ms(), false, false);
        call->resume = flow_refused;
        call_refused(call, code, &err);
    }
    return 0;
}
