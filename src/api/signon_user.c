#include "api/signon_user.h"
#include "api/audit.h"
#include "api/call.h"
#include "base/mail_address.h"
#include "base/memory.h"
#include <time.h>

#define GROUP_OF_ALL "default"

struct signon_task { /* in the call's arena */
    const struct identity *identity;
    const struct signon_policy *policy;
    int (*then)(struct call *call, int code, const struct store_user *user);
    struct store_user user; /* as it will be */
};

/* One to which nothing could be sent is none: a job that wants mails warns of that. */
static const char *email_of(const struct identity *identity)
{
    return mail_address_is_good(text_of(identity->email)) ? identity->email : "";
}

static bool has_group(const struct identity *identity, const char *name)
{
    for (size_t i = 0; i < identity->group_count; i++)
        if (strcmp(identity->groups[i], name) == 0)
            return true;
    return false;
}

static int policy_check(struct call *call, const struct signon_task *task)
{
    const struct signon_policy *policy = task->policy;
    for (size_t i = 0; i < policy->allowed_count; i++)
        if (has_group(task->identity, policy->allowed[i]))
            return 0;
    if (!policy->allowed_count)
        return 0;
    return call_fail(call, ERR_FORBIDDEN, "ForbiddenUserError", "",
                     "%s is in none of the groups that may log in", task->identity->name);
}

static const struct store_member *member_of(const struct store_members *members, const char *name)
{
    for (size_t i = 0; i < members->count; i++)
        if (strcmp(members->items[i].name, name) == 0)
            return &members->items[i];
    return NULL;
}

/* The groups that the user will be in; returns whether they differ from those now. */
static bool groups_merge(struct call *call, const struct store_groups *groups,
                         struct signon_task *task, bool is_new)
{
    const struct store_members now = task->user.groups;
    struct store_members next = {
        .items = ARENA_ARRAY(call->arena, struct store_member, groups->count + 1)};
    bool differs = false;
    for (size_t i = 0; i < groups->count; i++) {
        const struct store_group *group = &groups->items[i];
        const struct store_member *member = member_of(&now, group->name);
        bool is_in = group->external_name[0] ? has_group(task->identity, group->external_name)
                                             : member != NULL;
        if (is_new && strcmp(group->name, GROUP_OF_ALL) == 0)
            is_in = true;
        differs = differs || is_in != (member != NULL);
        if (is_in)
            next.items[next.count++] =
                (struct store_member){.name = group->name, .is_admin = member && member->is_admin};
    }
    task->user.groups = next;
    return differs;
}

/* Who it is, and whether they are here already. */
static int user_find(struct call *call, struct store_reader *reader, struct signon_task *task,
                     bool *is_here)
{
    const struct identity *identity = task->identity;
    struct store_user *user = &task->user;
    int code = store_user_identified(reader, text_of(identity->id), call->arena, user, &call->err);
    *is_here = true;
    if (code != ERR_NOT_FOUND)
        return code;
    code = store_user(reader, text_of(identity->name), call->arena, user, &call->err);
    if (code && code != ERR_NOT_FOUND)
        return code;
    *is_here = !code;
    if (code && !task->policy->creates_users)
        return call_fail(call, ERR_FORBIDDEN, "ForbiddenUserError", "",
                         "there is no user %s here: an administrator must make one",
                         identity->name);
    if (*is_here && user->identity[0])
        return call_fail(call, ERR_FORBIDDEN, "ForbiddenUserError", "",
                         "the user %s is somebody else", identity->name);
    if (*is_here && user->password_hash[0] && !task->policy->adopts_users)
        return call_fail(call, ERR_FORBIDDEN, "ForbiddenUserError", "",
                         "the user %s logs in with a password here", identity->name);
    return 0;
}

static int task_end(struct call *call, int code)
{
    struct signon_task *task = call->task;
    return task->then(call, code, code ? NULL : &task->user);
}

/* The rights are read as they are now: the groups' come with them. */
static int user_reload(struct call *call)
{
    struct signon_task *task = call->task;
    struct store_reader *reader = call_reader(call);
    if (!reader)
        return task_end(call, call->err.code);
    return task_end(
        call, store_user(reader, text_of(task->user.name), call->arena, &task->user, &call->err));
}

static int user_stored(struct call *call)
{
    if (call->answer_code) {
        struct signon_task *task = call->task;
        call->err = call->answer_err;
        if (call->answer_code == ERR_CONFLICT && !strcmp(call->err.path, STORE_REUSES_NAME))
            return task_end(call, call_fail(call, ERR_FORBIDDEN, "ForbiddenUserError", "",
                                            "there was another user %.64s here before: an "
                                            "administrator must make the user anew (skep user add "
                                            "--reuse-name --no-password)",
                                            task->user.name));
        return task_end(call, call->answer_code);
    }
    return user_reload(call);
}

static int user_store(struct call *call, enum store_change_kind kind, unsigned fields)
{
    struct service *service = call->api->service;
    struct signon_task *task = call->task;
    const struct store_change change = {.kind = kind, .user = task->user, .fields = fields};
    audit_subject(call, "user", text_of(task->user.name));
    struct service_reply reply = call_suspend(call, user_stored);
    struct err err = {0};
    int code = service->change(service->context, &change, reply, &err);
    if (code)
        call_refused(call, code, &err);
    return 0;
}

/* The mail address of an account that a visitor asked for is one that nobody has checked: messages
 * about the jobs of whose it is from now on go to the provider's. */
static void requested_adopt(struct signon_task *task, unsigned *fields)
{
    if (!(*fields & USER_IDENTITY) || !task->user.is_requested)
        return;
    task->user.email = email_of(task->identity);
    *fields |= USER_EMAIL;
}

static int user_prepare(struct call *call, bool *is_here, unsigned *fields)
{
    struct signon_task *task = call->task;
    struct store_reader *reader = call_reader(call);
    struct store_groups groups;
    if (!reader)
        return call->err.code;
    int code = policy_check(call, task);
    if (!code)
        code = user_find(call, reader, task, is_here);
    if (!code && *is_here && task->user.is_inactive)
        code = call_fail(call, ERR_FORBIDDEN, "ForbiddenUserError", "",
                         "the user %s has been deactivated", task->user.name);
    if (!code)
        code = store_groups(reader, call->arena, &groups, &call->err);
    if (code)
        return code;
    if (!*is_here)
        task->user = (struct store_user){.name = task->identity->name,
                                         .password_hash = "",
                                         .email = email_of(task->identity),
                                         .extension_json = "{}",
                                         .created_ms = (int64_t)time(NULL) * 1000};
    *fields = groups_merge(call, &groups, task, !*is_here) ? USER_GROUPS : 0;
    if (!*is_here || strcmp(task->user.identity, task->identity->id) != 0)
        *fields |= USER_IDENTITY;
    requested_adopt(task, fields);
    task->user.identity = task->identity->id;
    return 0;
}

int signon_user(struct call *call, const struct identity *identity,
                const struct signon_policy *policy,
                int (*then)(struct call *call, int code, const struct store_user *user))
{
    struct signon_task *task = ARENA_NEW(call->arena, struct signon_task);
    bool is_here = false;
    unsigned fields = 0;
    *task = (struct signon_task){.identity = identity, .policy = policy, .then = then};
    call->task = task;
    int code = user_prepare(call, &is_here, &fields);
    if (code)
        return task_end(call, code);
    if (!is_here)
        return user_store(call, CHANGE_USER_ADD, 0);
    return fields ? user_store(call, CHANGE_USER_SET, fields) : task_end(call, 0);
}
