#include "api/account.h"
#include "api/audit.h"
#include "api/handlers.h"
#include "api/http_watch.h"
#include "api/snapshot.h"
#include "base/mail_address.h"
#include "base/memory.h"
#include "sys/clock.h"
#include <assert.h>
#include <stdarg.h>

/* ---- a change, step by step ---- */

struct account_edit *account_edit_new(struct call *call, enum store_change_kind kind, int status,
                                      const char *format, ...)
{
    struct account_edit *edit = ARENA_NEW(call->arena, struct account_edit);
    cleanup_buf struct buf message = BUF_INIT;
    va_list args;
    va_start(args, format);
    buf_vformat(&message, format, args);
    va_end(args);
    edit->change.kind = kind;
    edit->status = status;
    edit->message = arena_copy(call->arena, buf_as_text(&message));
    edit->call = call;
    return edit;
}

static bool is_of_group(const struct store_change *change)
{
    const enum store_change_kind kind = change->kind;
    if (kind == CHANGE_QUOTAS)
        return change->quotas.is_group;
    return kind == CHANGE_GROUP_ADD || kind == CHANGE_GROUP_SET || kind == CHANGE_GROUP_REMOVE;
}

const char *account_conflict_name(const struct err *err, const char *other)
{
    assert(err->code == ERR_CONFLICT);
    return strcmp(err->path, STORE_REUSES_NAME) == 0 ? "UsedNameError" : other;
}

static const char *error_name(const struct store_change *change, const struct err *err)
{
    const int code = err->code;
    if (code == ERR_NOT_FOUND)
        return is_of_group(change) ? "NoGroupError" : "NoUserError";
    if (code == ERR_CONFLICT)
        return account_conflict_name(err, is_of_group(change) ? "ConflictGroupError"
                                                              : "ConflictUserError");
    if (code == ERR_FORBIDDEN)
        return "RemoveAdminError";
    return NULL;
}

static int changed(struct call *call)
{
    const struct account_edit *edit = call->task;
    if (call->answer_code) {
        call->err = call->answer_err;
        call->error_code = error_name(&edit->change, &call->err);
        return call->answer_code;
    }
    /* early PAI had two answers for everything */
    const bool is_old = call->route->is_v1;
    call_message(call, edit->status, "%s",
                 !is_old                                   ? edit->message
                 : edit->change.kind == CHANGE_USER_REMOVE ? "remove successfully"
                                                           : "update successfully");
    return 0;
}

static int step_store(struct call *call)
{
    struct service *service = call->api->service;
    struct account_edit *edit = call->task;
    struct service_reply reply = call_suspend(call, changed);
    struct err err = {0};
    int code = service->change(service->context, &edit->change, reply, &err);
    if (code)
        call_refused(call, code, &err);
    return 0;
}

static int refused(struct call *call)
{
    call->err = call->answer_err;
    return call->answer_code;
}

/* Give the check to the passwords' thread; `resume` runs when it has ended. */
static int password_work(struct call *call, void (*done)(struct password_check *, bool, bool),
                         int (*resume)(struct call *))
{
    struct account_edit *edit = call->task;
    struct err err = {0};
    edit->check.done = done;
    edit->check.task.owner = call->caller.auth.user;
    call_suspend(call, resume);
    int code = passwords_check(call->api->passwords, &edit->check, &err);
    if (code) {
        call->resume = refused;
        call_refused(call, code, &err);
    }
    return code;
}

static void hash_made(struct password_check *check, bool is_tried, bool is_right)
{
    struct account_edit *edit = (struct account_edit *)check;
    edit->is_tried = is_tried;
    edit->is_right = is_right;
    exchange_resume(edit->call->exchange);
}

static int hashed(struct call *call)
{
    struct account_edit *edit = call->task;
    if (!edit->is_tried)
        return call_fail(call, ERR_UNAVAILABLE, NULL, "", "the server is ending");
    if (!edit->is_right)
        return call_fail(call, ERR_UNAVAILABLE, NULL, "", "not enough memory to hash a password");
    edit->change.user.password_hash = edit->check.made;
    return step_store(call);
}

static int step_hash(struct call *call)
{
    struct account_edit *edit = call->task;
    if (!edit->password.at)
        return step_store(call);
    edit->check = (struct password_check){.password = edit->password, .wants_hash = true};
    password_work(call, hash_made, hashed);
    return 0;
}

/* On the passwords' thread, as in login.c. */
static void old_checked(struct password_check *check, bool is_tried, bool is_right)
{
    struct account_edit *edit = (struct account_edit *)check;
    edit->is_tried = is_tried;
    edit->is_right = is_right;
    login_end(edit->call->api->logins, &edit->attempt, clock_monotonic_ms(), is_tried, is_right);
    if (is_tried && !is_right)
        audit_refusal(edit->call, ERR_FORBIDDEN, "wrong old password");
    exchange_resume(edit->call->exchange);
}

static int old_known(struct call *call)
{
    struct account_edit *edit = call->task;
    if (!edit->is_tried)
        return call_fail(call, ERR_UNAVAILABLE, NULL, "", "the server is ending");
    if (!edit->is_right)
        return call_fail(call, ERR_FORBIDDEN, NULL, "oldPassword",
                         "Pls input the correct password.");
    return step_hash(call);
}

/* Whoever has found somebody's token must not guess their password with it. */
static int step_old_password(struct call *call)
{
    struct account_edit *edit = call->task;
    struct api *api = call->api;
    if (!edit->old_password.at)
        return step_hash(call);
    const struct auth_caller *caller = &call->caller.auth;
    const struct login_who who = {.user = text_of(caller->user),
                                  .address = call->exchange->address,
                                  .device = caller->is_application ? NULL : call->caller.token_id};
    int64_t now_ms = clock_monotonic_ms();
    int code = login_begin(api->logins, &who, now_ms, &edit->attempt, &call->retry_s, &call->err);
    if (code)
        return code;
    edit->check = (struct password_check){.password = edit->old_password, .hash = edit->old_hash};
    if (password_work(call, old_checked, old_known))
        login_end(api->logins, &edit->attempt, now_ms, false, false);
    return 0;
}

static int clusters_checked(struct call *call, const struct service_snapshot *snapshot)
{
    const struct account_edit *edit = call->task;
    for (size_t i = 0; i < edit->clusters.count; i++)
        if (!vc_exists(snapshot, text_of(edit->clusters.items[i])))
            return call_fail(call, ERR_INVALID, "NoVirtualClusterError", "virtualCluster",
                             "there is no virtual cluster %.100s", edit->clusters.items[i]);
    return step_old_password(call);
}

/* Of those that name it in the body. */
static void edit_subject(struct call *call, const struct store_change *change)
{
    if (change->kind != CHANGE_MEMBER_ADD && change->kind != CHANGE_MEMBER_REMOVE &&
        change->kind != CHANGE_QUOTAS)
        audit_subject(call, is_of_group(change) ? "group" : "user",
                      text_of(is_of_group(change) ? change->group.name : change->user.name));
}

int account_change(struct call *call, struct account_edit *edit)
{
    edit_subject(call, &edit->change);
    call->task = edit;
    if (edit->clusters.count)
        return snapshot_read(call, clusters_checked);
    return step_old_password(call);
}

/* Nobody stays an admin by a group when that shall end. */
void account_admin(struct call *call, const struct store_user *user, bool is_admin,
                   struct account_edit *edit)
{
    struct store_members kept = {
        .items = ARENA_ARRAY(call->arena, struct store_member, user->groups.count + 1)};
    edit->change.user.is_admin = is_admin;
    edit->change.fields |= USER_ADMIN;
    if (is_admin || !user->is_admin_by_group)
        return;
    for (size_t i = 0; i < user->groups.count; i++)
        if (!user->groups.items[i].makes_admins)
            kept.items[kept.count++] = user->groups.items[i];
    edit->change.user.groups = kept;
    edit->change.fields |= USER_GROUPS;
}

/* ---- who it is about ---- */

int account_user(struct call *call, struct text name, struct store_user *user)
{
    struct store_reader *reader = call_reader(call);
    if (!reader)
        return call->err.code;
    int code = store_user(reader, name, call->arena, user, &call->err);
    if (code == ERR_NOT_FOUND)
        return call_fail(
            call, ERR_NOT_FOUND, "NoUserError", "", "User %.*s not found.",
            (int)(name.length > STORE_USER_NAME_MAX ? STORE_USER_NAME_MAX : name.length), name.at);
    return code;
}

int account_group(struct call *call, struct text name, struct store_group *group)
{
    struct store_reader *reader = call_reader(call);
    if (!reader)
        return call->err.code;
    int code = store_group(reader, name, call->arena, group, NULL, &call->err);
    if (code == ERR_NOT_FOUND)
        return call_fail(
            call, ERR_NOT_FOUND, "NoGroupError", "", "Group %.*s is not found.",
            (int)(name.length > STORE_USER_NAME_MAX ? STORE_USER_NAME_MAX : name.length), name.at);
    return code;
}

int account_group_exists(struct call *call, struct text name)
{
    struct store_group group;
    return account_group(call, name, &group);
}

/* ---- what bodies hold ---- */

static bool is_word(struct text name, const char *others)
{
    for (size_t i = 0; i < name.length; i++) {
        char c = name.at[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_letter && (!c || !strchr(others, c)))
            return false;
    }
    return name.length > 0 && name.length <= STORE_USER_NAME_MAX;
}

int account_user_name(struct call *call, struct text name)
{
    const bool is_folder = text_is(name, ".") || text_is(name, ".."); /* of another one, to paths */
    if (is_word(name, "_.-") && !is_folder)
        return 0;
    return call_fail(call, ERR_INVALID, NULL, "username",
                     "username must have 1..%d letters, digits, or _ . -, and not be . or ..",
                     STORE_USER_NAME_MAX);
}

int account_group_name(struct call *call, struct text name)
{
    if (is_word(name, "_-"))
        return 0;
    return call_fail(call, ERR_INVALID, NULL, "groupname",
                     "groupname must have 1..%d letters, digits, _ or -", STORE_USER_NAME_MAX);
}

int account_email(struct call *call, struct text email)
{
    if (!email.length || mail_address_is_good(email))
        return 0;
    return call_fail(call, ERR_INVALID, NULL, "email",
                     "email must be " MAIL_ADDRESS_RULE "; or \"\" for none");
}

int account_password(struct call *call, const char *key, struct text password)
{
    if (password.length >= ACCOUNT_PASSWORD_MIN && password.length <= PASSWORD_MAX)
        return 0;
    return call_fail(call, ERR_INVALID, NULL, key, "%s must have %d..%d bytes", key,
                     ACCOUNT_PASSWORD_MIN, PASSWORD_MAX);
}

static int kind_problem(struct call *call, const char *key, const struct doc *found,
                        const char *wanted)
{
    return call_fail(call, ERR_INVALID, NULL, key, "body:%u:%u: %s must be %s, got %s",
                     found->place.line, found->place.column, key, wanted,
                     doc_kind_name(found->kind));
}

int account_bool(struct call *call, const struct doc *doc, const char *key, bool *value,
                 bool *is_given)
{
    const struct doc *found = doc_get(doc, key);
    *is_given = found && found->kind != DOC_NULL;
    *value = false;
    if (!*is_given)
        return 0;
    if (found->kind == DOC_BOOL)
        *value = found->as.boolean;
    else if (found->kind == DOC_STRING && text_is(found->as.string, "true")) /* of a form */
        *value = true;
    else if (found->kind != DOC_STRING || !text_is(found->as.string, "false"))
        return kind_problem(call, key, found, "true or false");
    return 0;
}

int account_names(struct call *call, const struct doc *doc, const char *key,
                  struct store_names *names)
{
    const struct doc *found = doc_get(doc, key);
    *names = (struct store_names){0};
    if (!found || found->kind == DOC_NULL)
        return 0;
    if (found->kind != DOC_LIST)
        return kind_problem(call, key, found, "a list of names");
    const char **items = ARENA_ARRAY(call->arena, const char *, found->as.list.count + 1);
    for (size_t i = 0; i < found->as.list.count; i++) {
        const struct doc *item = found->as.list.items[i];
        if (item->kind != DOC_STRING || memchr(item->as.string.at, '\0', item->as.string.length))
            return kind_problem(call, key, item, "a list of names");
        items[i] = arena_copy(call->arena, item->as.string);
    }
    *names = (struct store_names){items, found->as.list.count};
    return 0;
}

int account_map(struct call *call, const struct doc *doc, const char *key, const struct doc **map)
{
    const struct doc *found = doc_get(doc, key);
    *map = NULL;
    if (!found || found->kind == DOC_NULL)
        return 0;
    if (found->kind != DOC_MAP)
        return kind_problem(call, key, found, "an object");
    *map = found;
    return 0;
}

int account_data(struct call *call, const struct doc *doc, const struct doc **data)
{
    int code = account_map(call, doc, "data", data);
    if (!code && !*data)
        return call_fail(call, ERR_INVALID, NULL, "data", "data is missing");
    return code;
}

const struct doc *account_extension(struct call *call, const char *json)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, call->arena);
    if (strcmp(json, "{}") != 0) { /* most are: a page of users has those of all their groups */
        const struct doc *doc = doc_parse(text_of(json), DOC_JSON, call->arena, &problems);
        if (doc && doc->kind == DOC_MAP)
            return doc;
    }
    struct doc *empty = ARENA_NEW(call->arena, struct doc);
    empty->kind = DOC_MAP;
    return empty;
}

const struct doc *account_merge(struct arena *arena, const struct doc *base, const struct doc *over)
{
    struct doc *sum = ARENA_NEW(arena, struct doc);
    size_t room = base->as.map.count + over->as.map.count;
    sum->kind = DOC_MAP;
    sum->as.map.entries = ARENA_ARRAY(arena, struct doc_entry, room + 1);
    for (size_t i = 0; i < base->as.map.count; i++)
        if (!doc_find(over, base->as.map.entries[i].key))
            sum->as.map.entries[sum->as.map.count++] = base->as.map.entries[i];
    for (size_t i = 0; i < over->as.map.count; i++)
        sum->as.map.entries[sum->as.map.count++] = over->as.map.entries[i];
    return sum;
}

int account_json(struct call *call, const struct doc *doc, const char **json)
{
    cleanup_buf struct buf text = BUF_INIT;
    if (doc_to_json(doc, STORE_EXTENSION_MAX, &text))
        return call_fail(call, ERR_TOO_BIG, NULL, "extension", "an extension has at most %d bytes",
                         STORE_EXTENSION_MAX);
    *json = arena_copy(call->arena, buf_as_text(&text));
    return 0;
}
