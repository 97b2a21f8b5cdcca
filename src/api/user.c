/* OpenPAI's /users: who there is, and changes of one user */
#include "api/account.h"
#include "api/handlers.h"
#include "api/page.h"
#include "api/snapshot.h"
#include "base/memory.h"
#include "sys/secret.h"
#include <time.h>

#define DEFAULT_GROUP "default"
#define ADMIN_GROUP   "admingroup"

/* ---- as JSON ---- */

/* Names without doubles, in the order in which they came. */
struct name_set {
    const char **items;
    size_t count, room;
};

static void names_add(struct name_set *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0)
            return;
    *ARRAY_ADD(names) = name;
}

static void names_add_all(struct name_set *names, const struct store_names *from)
{
    for (size_t i = 0; i < from->count; i++)
        names_add(names, from->items[i]);
}

static void names_json(struct json_writer *json, const char *key, struct name_set *names)
{
    json_key_strings(json, key, names->items, names->count);
    ARRAY_FREE(names);
}

static int group_compare(const void *name, const void *group)
{
    return strcmp(name, ((const struct store_group *)group)->name);
}

static const struct store_group *group_of(const struct store_groups *groups, const char *name)
{
    return bsearch(name, groups->items, groups->count, sizeof groups->items[0], group_compare);
}

/* What the users of a reply need. */
struct user_context {
    struct store_groups groups;
    struct store_names clusters; /* of the cluster */
};

static void storages_add(struct call *call, struct name_set *names, const struct store_group *group)
{
    const struct doc *extension = account_extension(call, group->extension_json);
    const struct doc *list = doc_get_list(doc_get_map(extension, "acls"), "storageConfigs");
    for (size_t i = 0; i < list->as.list.count; i++)
        if (list->as.list.items[i]->kind == DOC_STRING)
            names_add(names, list->as.list.items[i]->as.string.at);
}

/* Only the user and admins see mail address and extension: keys and tokens stand in that. */
static void user_json(struct call *call, struct json_writer *json, const struct store_user *user,
                      const struct user_context *context)
{
    const struct auth_subject subject = {.owner = user->name};
    bool may_see = auth_check(&call->caller.auth, AUTH_READ_PROFILE, &subject, NULL) == 0;
    bool is_admin = user->is_admin || user->is_admin_by_group;
    struct name_set groups = {0}, clusters = {0}, storages = {0};
    names_add(&clusters, "default");
    names_add_all(&clusters, is_admin ? &context->clusters : &user->virtual_clusters);
    for (size_t i = 0; i < user->groups.count; i++) {
        const struct store_group *group = group_of(&context->groups, user->groups.items[i].name);
        names_add(&groups, user->groups.items[i].name);
        if (!group)
            continue;
        if (!is_admin)
            names_add_all(&clusters, &group->virtual_clusters);
        storages_add(call, &storages, group);
    }
    json_object(json);
    json_key_string(json, "username", user->name);
    json_key_string(json, "email", may_see ? user->email : "");
    names_json(json, "grouplist", &groups);
    if (call->caller.auth.group_count && strcmp(user->name, call->caller.auth.user) == 0)
        json_key_strings(json, "adminOfGroups", call->caller.auth.groups,
                         call->caller.auth.group_count);
    json_key_bool(json, "admin", is_admin);
    names_json(json, "virtualCluster", &clusters);
    json_key_strings(json, "ownVirtualCluster", user->virtual_clusters.items,
                     user->virtual_clusters.count);
    names_json(json, "storageConfig", &storages);
    json_key_bool(json, "active", !user->is_inactive);
    json_key(json, "extension");
    json_raw(json, may_see ? text_of(user->extension_json) : TEXT("{}"));
    json_object_end(json);
}

static int user_context_read(struct call *call, const struct service_snapshot *snapshot,
                             const struct store_users *users, struct user_context *context)
{
    context->clusters = vc_names(call, snapshot);
    return store_groups_of(call->reader, users, call->arena, &context->groups, &call->err);
}

static int users_read(struct call *call, const struct service_snapshot *snapshot)
{
    struct user_context context;
    struct store_users users;
    struct list_page page;
    int code = page_parse(call, &page, "users", NULL);
    if (!code)
        code = call_reader(call) ? 0 : call->err.code;
    if (!code)
        code = store_users_page(call->reader, page.after, page_most(&page), call->arena, &users,
                                &call->err);
    if (code)
        return code;
    const size_t count = page_keep(&page, users.count);
    if (count > 0 && count < users.count)
        page.last = text_of(users.items[count - 1].name);
    users.count = count;
    code = user_context_read(call, snapshot, &users, &context);
    if (code)
        return code;
    struct json_writer json;
    call_json(call, 200, &json);
    page_begin(&page, &json);
    for (size_t i = 0; i < count; i++) {
        if (i && page_is_full(&page, text_of(users.items[i - 1].name)))
            break;
        user_json(call, &json, &users.items[i], &context);
    }
    page_end(&page, &json);
    return 0;
}

int handle_user_list(struct call *call)
{
    return snapshot_read(call, users_read);
}

/* The original answers 400 for a user that is not there; its documentation says 404. */
static int user_read(struct call *call, const struct service_snapshot *snapshot)
{
    struct user_context context;
    struct store_user user;
    int code = account_user(call, call->parameters[0], &user);
    if (!code)
        code = user_context_read(call, snapshot, &(struct store_users){&user, 1}, &context);
    if (code)
        return code;
    struct json_writer json;
    call_json(call, 200, &json);
    user_json(call, &json, &user, &context);
    return 0;
}

int handle_user(struct call *call)
{
    return snapshot_read(call, user_read);
}

/* ---- new users ---- */

/* A password, or the hash of one as OpenPAI stored it. */
static int new_password(struct call *call, const struct doc *doc, struct account_edit *edit)
{
    struct text hash;
    int code = call_body_string(call, doc, "password", false, &edit->password);
    if (!code)
        code = call_body_string(call, doc, "passwordHash", false, &hash);
    if (code)
        return code;
    if (!hash.at && !edit->password.at)
        return call_fail(call, ERR_INVALID, NULL, "password", "password is missing");
    if (!hash.at)
        return account_password(call, "password", edit->password);
    if (edit->password.at)
        return call_fail(call, ERR_INVALID, NULL, "passwordHash",
                         "give password or passwordHash, not both");
    edit->change.user.password_hash = "";
    if (!hash.length) /* the user logs in by the provider, or not at all */
        return 0;
    char *kept = arena_alloc(call->arena, PASSWORD_HASH_SIZE);
    if (password_hash_import(text_of(edit->change.user.name), hash, kept))
        return call_fail(call, ERR_INVALID, NULL, "passwordHash",
                         "passwordHash must be 128 hexadecimal digits, as OpenPAI stored it");
    edit->change.user.password_hash = kept;
    return 0;
}

/* Everybody is in the group `default`; further ones must exist. */
static int new_groups(struct call *call, const struct doc *doc, bool is_admin,
                      struct store_members *groups)
{
    struct store_names given;
    struct store_group group;
    int code = account_names(call, doc, "grouplist", &given);
    if (code)
        return code;
    groups->items = ARENA_ARRAY(call->arena, struct store_member, given.count + 2);
    const char *always[] = {DEFAULT_GROUP, is_admin ? ADMIN_GROUP : NULL};
    struct err err;
    for (size_t i = 0; i < COUNT_OF(always); i++)
        if (always[i] && store_group(call_reader(call), text_of(always[i]), call->arena, &group,
                                     NULL, &err) == 0)
            groups->items[groups->count++].name = always[i];
    for (size_t i = 0; i < given.count; i++) {
        code = account_group_exists(call, text_of(given.items[i]));
        if (code)
            return code;
        groups->items[groups->count++].name = given.items[i];
    }
    return 0;
}

int account_user_create(struct call *call, const struct doc *doc)
{
    const struct doc *extension = NULL;
    struct text name, email;
    bool is_admin, reuses_name, is_given;
    int code = call_body_string(call, doc, "username", true, &name);
    if (!code)
        code = account_user_name(call, name);
    if (!code)
        code = call_body_string(call, doc, "email", false, &email);
    if (!code)
        code = account_email(call, email);
    if (!code)
        code = account_bool(call, doc, "admin", &is_admin, &is_given);
    if (!code)
        code = account_map(call, doc, "extension", &extension);
    if (!code)
        code = account_bool(call, doc, STORE_REUSES_NAME, &reuses_name, &is_given);
    if (!code && !call_reader(call))
        code = call->err.code;
    if (code)
        return code;
    struct account_edit *edit =
        account_edit_new(call, CHANGE_USER_ADD, 201, "User is created successfully");
    struct store_user *user = &edit->change.user;
    *user = (struct store_user){.name = arena_copy(call->arena, name),
                                .email = arena_copy(call->arena, email),
                                .is_admin = is_admin,
                                .extension_json = "{}",
                                .created_ms = (int64_t)time(NULL) * 1000};
    edit->change.reuses_name = reuses_name;
    code = new_password(call, doc, edit);
    if (!code)
        code = account_names(call, doc, "virtualCluster", &edit->clusters);
    if (!code)
        code = new_groups(call, doc, is_admin, &user->groups);
    if (!code && extension)
        code = account_json(call, extension, &user->extension_json);
    user->virtual_clusters = edit->clusters;
    return code ? code : account_change(call, edit);
}

int handle_user_create(struct call *call)
{
    static const char *const KEYS[] = {"username",       "password",  "passwordHash",
                                       "email",          "admin",     "grouplist",
                                       "virtualCluster", "extension", STORE_REUSES_NAME};
    const struct doc *doc;
    int code = call_body_of(call, KEYS, COUNT_OF(KEYS), "the fields of a new user", &doc);
    return code ? code : account_user_create(call, doc);
}

int handle_user_remove(struct call *call)
{
    struct store_user user;
    int code = account_user(call, call->parameters[0], &user);
    if (code)
        return code;
    if (user.is_admin || user.is_admin_by_group)
        return call_fail(call, ERR_FORBIDDEN, "RemoveAdminError", "",
                         "Admin %s is not allowed to remove: take the admin's rights away first",
                         user.name);
    struct account_edit *edit =
        account_edit_new(call, CHANGE_USER_REMOVE, 200, "user is removed successfully");
    edit->change.user.name = user.name;
    return account_change(call, edit);
}

/* ---- changes of one user ---- */

/* An edit of some fields of a user who exists. */
static int edit_of(struct call *call, struct text name, const char *message,
                   struct account_edit **edit, struct store_user *user)
{
    int code = account_user(call, name, user);
    if (code)
        return code;
    *edit = account_edit_new(call, CHANGE_USER_SET, 201, "%s", message);
    (*edit)->change.user.name = user->name;
    return 0;
}

static int may_edit(struct call *call, struct text name)
{
    const struct auth_subject subject = {.owner = arena_copy(call->arena, name)};
    return call_may_about(call, AUTH_EDIT_USER, &subject);
}

/* What it is already is taken as it is: older versions took more, and whoever sends the whole user
 * back means to change something else. */
static int set_email(struct call *call, const struct doc *doc, const struct store_user *user,
                     struct account_edit *edit)
{
    struct text email;
    int code = call_body_string(call, doc, "email", false, &email);
    if (code || !email.at)
        return code;
    edit->change.user.email = arena_copy(call->arena, email);
    edit->change.fields |= USER_EMAIL;
    return text_is(email, user->email) ? 0 : account_email(call, email);
}

/* Keys over the ones that are there, or instead of them. */
static int set_extension(struct call *call, const struct doc *doc, const struct store_user *user,
                         bool is_patch, struct account_edit *edit)
{
    const struct doc *extension;
    int code = account_map(call, doc, "extension", &extension);
    if (code || !extension)
        return code;
    if (is_patch)
        extension =
            account_merge(call->arena, account_extension(call, user->extension_json), extension);
    edit->change.extension_was = user->extension_json;
    edit->change.fields |= USER_EXTENSION;
    return account_json(call, extension, &edit->change.user.extension_json);
}

static int set_clusters(struct call *call, const struct doc *doc, struct account_edit *edit)
{
    int code = account_names(call, doc, "virtualCluster", &edit->clusters);
    if (code || !edit->clusters.items)
        return code;
    edit->change.user.virtual_clusters = edit->clusters;
    edit->change.fields |= USER_CLUSTERS;
    return 0;
}

/* Nothing to change is no change of everything. */
static int edit_end(struct call *call, struct account_edit *edit)
{
    if (edit->change.fields)
        return account_change(call, edit);
    call_message(call, edit->status, "%s", edit->message);
    return 0;
}

static int patch_flag(struct call *call, const struct doc *doc, bool *is_patch)
{
    bool is_given;
    return account_bool(call, doc, "patch", is_patch, &is_given);
}

/* patch false: everything must be given. */
static int check_whole(struct call *call, const struct doc *data, bool is_patch,
                       const char *const *keys, size_t count)
{
    for (size_t i = 0; !is_patch && i < count; i++)
        if (!doc_get(data, keys[i]))
            return call_fail(call, ERR_INVALID, NULL, keys[i], "%s is missing: give it, or patch",
                             keys[i]);
    return 0;
}

/* PUT /users and PUT /users/me: some fields of one user, or all. */
struct update {
    const struct doc *data;
    struct text name;
    bool is_patch; /* else everything must be given */
    struct store_user user;
    struct account_edit *edit;
};

static int update_begin(struct call *call, const char *const *keys, size_t key_count,
                        struct update *update)
{
    static const char *const BODY_KEYS[] = {"data", "patch"};
    const struct doc *doc;
    *update = (struct update){0};
    int code = call_body_of(call, BODY_KEYS, COUNT_OF(BODY_KEYS), "data and patch", &doc);
    if (!code)
        code = account_data(call, doc, &update->data);
    if (!code)
        code = call_body_keys(call, update->data, keys, key_count,
                              "in data the fields of a user that may be changed");
    if (!code)
        code = patch_flag(call, doc, &update->is_patch);
    return code ? code : call_body_string(call, update->data, "username", true, &update->name);
}

/* What both may change. */
static int update_fields(struct call *call, struct update *update, const char *const *whole,
                         size_t whole_count)
{
    int code = check_whole(call, update->data, update->is_patch, whole, whole_count);
    if (!code)
        code = edit_of(call, update->name, "Update user data successfully.", &update->edit,
                       &update->user);
    if (!code)
        code = set_email(call, update->data, &update->user, update->edit);
    return code ? code
                : set_extension(call, update->data, &update->user, update->is_patch, update->edit);
}

static int update_flags(struct call *call, const struct update *update)
{
    bool value, is_given;
    int code = account_bool(call, update->data, "admin", &value, &is_given);
    if (!code && is_given)
        account_admin(call, &update->user, value, update->edit);
    if (!code)
        code = account_bool(call, update->data, "active", &value, &is_given);
    if (!code && is_given) {
        update->edit->change.user.is_inactive = !value;
        update->edit->change.fields |= USER_INACTIVE;
    }
    return code;
}

int handle_user_update(struct call *call)
{
    static const char *const whole[] = {"email", "virtualCluster", "admin", "password",
                                        "extension"};
    static const char *const KEYS[] = {"username", "email",  "virtualCluster", "admin",
                                       "password", "active", "extension"};
    struct update update;
    int code = update_begin(call, KEYS, COUNT_OF(KEYS), &update);
    if (!code)
        code = update_fields(call, &update, whole, COUNT_OF(whole));
    if (!code)
        code = set_clusters(call, update.data, update.edit);
    if (!code)
        code = update_flags(call, &update);
    if (!code)
        code = call_body_string(call, update.data, "password", false, &update.edit->password);
    if (!code && update.edit->password.at) {
        code = account_password(call, "password", update.edit->password);
        update.edit->change.fields |= USER_PASSWORD;
    }
    return code ? code : edit_end(call, update.edit);
}

/* Whose password it is must give the old one, and stays signed in where they gave it; an admin need
 * not for others. */
static int set_password(struct call *call, const struct doc *doc, const struct store_user *user,
                        const char *old_fallback, struct account_edit *edit)
{
    struct text old;
    int code = call_body_string(call, doc, "newPassword", false, &edit->password);
    if (!code)
        code = call_body_string(call, doc, "oldPassword", false, &old);
    if (code || !edit->password.at)
        return code;
    code = account_password(call, "newPassword", edit->password);
    if (code)
        return code;
    if (!old.at)
        old = text_of(old_fallback);
    if (strcmp(user->name, call->caller.auth.user) == 0) {
        if (!old.at)
            return call_fail(call, ERR_INVALID, NULL, "oldPassword", "oldPassword is missing");
        edit->old_password = old;
        edit->old_hash = user->password_hash;
        edit->change.token_kept = call->caller.token_id;
    }
    edit->change.fields |= USER_PASSWORD;
    return 0;
}

int handle_user_update_self(struct call *call)
{
    static const char *const whole[] = {"email", "newPassword"};
    static const char *const KEYS[] = {"username", "email", "oldPassword", "newPassword",
                                       "extension"};
    struct update update;
    int code = update_begin(call, KEYS, COUNT_OF(KEYS), &update);
    if (code)
        return code;
    if (!text_is(update.name, call->caller.auth.user))
        return call_fail(call, ERR_FORBIDDEN, NULL, "username", "username must be your own, %s",
                         call->caller.auth.user);
    code = may_edit(call, update.name);
    if (!code)
        code = update_fields(call, &update, whole, COUNT_OF(whole));
    if (!code)
        code = set_password(call, update.data, &update.user, NULL, update.edit);
    return code ? code : edit_end(call, update.edit);
}

/* ---- one field: OpenPAI's older paths ---- */

/* The body, which must have `key` and nothing beside it, and the user whose path it is. */
static int field_begin(struct call *call, const char *key, const char *message,
                       const struct doc **doc, struct account_edit **edit, struct store_user *user)
{
    const char *const keys[] = {key, "oldPassword"};
    const bool is_password = strcmp(key, "newPassword") == 0;
    int code = call_body_of(call, keys, is_password ? 2 : 1,
                            is_password ? "oldPassword and newPassword"
                                        : arena_format(call->arena, "%s alone", key),
                            doc);
    if (!code)
        code = edit_of(call, call->parameters[0], message, edit, user);
    if (!code && !doc_get(*doc, key))
        code = call_fail(call, ERR_INVALID, NULL, key, "%s is missing", key);
    return code;
}

int handle_user_extension(struct call *call)
{
    const struct doc *doc;
    struct account_edit *edit;
    struct store_user user;
    int code = may_edit(call, call->parameters[0]);
    if (!code)
        code = field_begin(call, "extension", "Update user extension data successfully.", &doc,
                           &edit, &user);
    if (!code)
        code = set_extension(call, doc, &user, true, edit);
    return code ? code : edit_end(call, edit);
}

int handle_user_email(struct call *call)
{
    const struct doc *doc;
    struct account_edit *edit;
    struct store_user user;
    int code = may_edit(call, call->parameters[0]);
    if (!code)
        code =
            field_begin(call, "email", "Update user email data successfully.", &doc, &edit, &user);
    if (!code)
        code = set_email(call, doc, &user, edit);
    return code ? code : edit_end(call, edit);
}

int handle_user_password(struct call *call)
{
    const struct doc *doc;
    struct account_edit *edit;
    struct store_user user;
    int code = may_edit(call, call->parameters[0]);
    if (!code)
        code = field_begin(call, "newPassword", "update user password successfully.", &doc, &edit,
                           &user);
    if (!code)
        code = set_password(call, doc, &user, "defaultpai", edit);
    return code ? code : edit_end(call, edit);
}

int handle_user_clusters(struct call *call)
{
    const struct doc *doc;
    struct account_edit *edit;
    struct store_user user;
    int code = field_begin(call, "virtualCluster", "Update user virtualCluster data successfully.",
                           &doc, &edit, &user);
    if (code)
        return code;
    if (user.is_admin || user.is_admin_by_group)
        return call_fail(call, ERR_FORBIDDEN, NULL, "",
                         "Admin's virtual clusters cannot be updated.");
    code = set_clusters(call, doc, edit);
    return code ? code : edit_end(call, edit);
}

int handle_user_admin(struct call *call)
{
    const struct doc *doc;
    struct account_edit *edit;
    struct store_user user;
    bool is_admin, is_given;
    int code = field_begin(call, "admin", "Update user admin permission successfully.", &doc, &edit,
                           &user);
    if (!code)
        code = account_bool(call, doc, "admin", &is_admin, &is_given);
    if (code)
        return code;
    account_admin(call, &user, is_admin, edit);
    return edit_end(call, edit);
}

int handle_user_groups(struct call *call)
{
    const struct doc *doc;
    struct account_edit *edit;
    struct store_user user;
    struct store_names names;
    int code =
        field_begin(call, "grouplist", "update user grouplist successfully.", &doc, &edit, &user);
    if (!code)
        code = account_names(call, doc, "grouplist", &names);
    if (code)
        return code;
    struct store_members *groups = &edit->change.user.groups;
    groups->items = ARENA_ARRAY(call->arena, struct store_member, names.count + 1);
    for (size_t i = 0; i < names.count; i++) {
        code = account_group_exists(call, text_of(names.items[i]));
        if (code)
            return code;
        groups->items[groups->count++].name = names.items[i];
    }
    edit->change.fields |= USER_GROUPS;
    return edit_end(call, edit);
}

/* ---- in and out of one group ---- */

static int member_change(struct call *call, enum store_change_kind kind, const char *verb)
{
    const struct doc *doc;
    struct text group;
    struct store_user user;
    bool is_admin, is_given;
    static const char *const KEYS[] = {"groupname", "admin"};
    int code = call_body_of(call, KEYS, COUNT_OF(KEYS), "groupname and admin", &doc);
    if (!code)
        code = call_body_string(call, doc, "groupname", true, &group);
    if (!code)
        code = account_group_name(call, group);
    if (code)
        return code;
    const struct auth_subject subject = {.group = arena_copy(call->arena, group)};
    code = call_may_about(call, AUTH_MANAGE_GROUP, &subject);
    if (!code)
        code = account_group_exists(call, group);
    if (!code)
        code = account_user(call, call->parameters[0], &user);
    if (!code)
        code = account_bool(call, doc, "admin", &is_admin, &is_given);
    if (!code && is_given) /* only the platform's admins make admins of groups */
        code = call_may(call, AUTH_MANAGE, NULL);
    if (code)
        return code;
    struct account_edit *edit =
        account_edit_new(call, kind, 201, "User %s is %s group %s", user.name, verb, subject.group);
    edit->change.member.user = user.name;
    edit->change.member.group = subject.group;
    edit->change.member.is_admin = is_given ? is_admin : -1;
    return account_change(call, edit);
}

int handle_member_add(struct call *call)
{
    return member_change(call, CHANGE_MEMBER_ADD, "added into");
}

int handle_member_remove(struct call *call)
{
    return member_change(call, CHANGE_MEMBER_REMOVE, "removed from");
}
