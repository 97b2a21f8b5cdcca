/* Early PAI's /user: accounts, one path for all of them. */
#include "api/account.h"
#include "api/handlers.h"
#include "base/memory.h"
#include "store/read.h"

/* The body, which has these keys alone, and the user's name in it. */
static int body_user(struct call *call, const char *const *keys, size_t count, const char *what,
                     const struct doc **doc, struct text *name)
{
    int code = call_body_of(call, keys, count, what, doc);
    return code ? code : call_body_string(call, *doc, "username", true, name);
}

/* The password: who changes their own gives the old one beside it. Early PAI did not ask for it, so
 * that a token was enough to take an account over. */
static int own_password(struct call *call, const struct doc *doc, const struct store_user *user,
                        struct account_edit *edit)
{
    struct text old;
    int code = call_body_string(call, doc, "password", true, &edit->password);
    if (!code)
        code = account_password(call, "password", edit->password);
    if (!code)
        code = call_body_string(call, doc, "oldPassword", false, &old);
    edit->change.fields |= USER_PASSWORD;
    if (code || strcmp(user->name, call->caller.auth.user) != 0)
        return code;
    if (!old.at)
        return call_fail(call, ERR_INVALID, NULL, "oldPassword",
                         "oldPassword is missing: it is asked of those who change their own");
    edit->old_password = old;
    edit->old_hash = user->password_hash;
    return 0;
}

static int user_modify(struct call *call, const struct doc *doc, struct text name)
{
    const struct auth_subject subject = {.owner = arena_copy(call->arena, name)};
    struct store_user user;
    bool is_admin, is_given;
    int code = call_may_about(call, AUTH_EDIT_USER, &subject);
    if (!code)
        code = account_bool(call, doc, "admin", &is_admin, &is_given);
    if (!code && is_given && is_admin)
        code = call_may(call, AUTH_MANAGE, NULL);
    if (!code)
        code = account_user(call, name, &user);
    if (code)
        return code;
    struct account_edit *edit = account_edit_new(call, CHANGE_USER_SET, 201, "update successfully");
    edit->change.user.name = user.name;
    code = own_password(call, doc, &user, edit);
    if (!code && is_given && call_may(call, AUTH_MANAGE, NULL) == 0)
        account_admin(call, &user, is_admin, edit);
    return code ? code : account_change(call, edit);
}

int handle_user_put_v1(struct call *call)
{
    const struct doc *doc;
    struct text name;
    bool is_modify = false, is_given;
    static const char *const KEYS[] = {"username", "password", "oldPassword", "admin", "modify"};
    int code = body_user(call, KEYS, COUNT_OF(KEYS), "the fields of a user of the API's version 1",
                         &doc, &name);
    if (!code)
        code = account_bool(call, doc, "modify", &is_modify, &is_given);
    if (code)
        return code;
    if (is_modify)
        return user_modify(call, doc, name);
    code = call_may(call, AUTH_MANAGE, NULL);
    return code ? code : account_user_create(call, doc);
}

int handle_user_remove_v1(struct call *call)
{
    static const char *const KEYS[] = {"username"};
    const struct doc *doc;
    int code = body_user(call, KEYS, COUNT_OF(KEYS), "username alone", &doc, &call->parameters[0]);
    return code ? code : handle_user_remove(call);
}

static void clusters_json(struct json_writer *json, const struct store_user *user)
{
    cleanup_buf struct buf text = BUF_INIT;
    buf_string(&text, "default");
    for (size_t i = 0; i < user->virtual_clusters.count; i++)
        if (strcmp(user->virtual_clusters.items[i], "default") != 0)
            buf_format(&text, ",%s", user->virtual_clusters.items[i]);
    json_key_text(json, "virtualCluster", buf_as_text(&text));
}

/* `admin` was a text. */
int handle_user_list_v1(struct call *call)
{
    struct store_users users;
    int code = call_reader(call) ? 0 : call->err.code;
    if (!code)
        code = store_users(call->reader, call->arena, &users, &call->err);
    if (code)
        return code;
    struct json_writer json;
    call_json(call, 200, &json);
    json_array(&json);
    for (size_t i = 0; i < users.count; i++) {
        const struct store_user *user = &users.items[i];
        const struct doc *extension = account_extension(call, user->extension_json);
        json_object(&json);
        json_key_string(&json, "username", user->name);
        json_key_string(&json, "admin",
                        user->is_admin || user->is_admin_by_group ? "true" : "false");
        clusters_json(&json, user);
        json_key_bool(&json, "hasGithubPAT", doc_get_text(extension, "githubPAT", "").length > 0);
        json_object_end(&json);
    }
    json_array_end(&json);
    return 0;
}

/* "vc1,vc2": `default` is everybody's; "" leaves that alone. */
int handle_user_clusters_v1(struct call *call)
{
    static const char *const KEYS[] = {"virtualClusters"};
    const struct doc *doc;
    struct store_user user;
    struct text list;
    int code = call_body_of(call, KEYS, COUNT_OF(KEYS), "virtualClusters alone", &doc);
    if (!code)
        code = call_body_string(call, doc, "virtualClusters", true, &list);
    if (!code)
        code = account_user(call, call->parameters[0], &user);
    if (code)
        return code;
    struct account_edit *edit = account_edit_new(call, CHANGE_USER_SET, 201, "update successfully");
    const char **names = ARENA_ARRAY(call->arena, const char *, list.length + 1);
    size_t count = 0;
    while (list.length) {
        struct text name = text_trim(text_cut(&list, ','));
        if (name.length && !text_is(name, "default"))
            names[count++] = arena_copy(call->arena, name);
    }
    edit->change.user.name = user.name;
    edit->clusters = (struct store_names){names, count};
    edit->change.user.virtual_clusters = edit->clusters;
    edit->change.fields = USER_CLUSTERS;
    return account_change(call, edit);
}

int handle_user_pat_v1(struct call *call)
{
    const struct auth_subject subject = {.owner = arena_copy(call->arena, call->parameters[0])};
    static const char *const KEYS[] = {"githubPAT"};
    const struct doc *doc;
    struct text token;
    struct store_user user;
    int code = call_may_about(call, AUTH_EDIT_USER, &subject);
    if (!code)
        /* alone, as the whole body becomes part of the extension */
        code = call_body_of(call, KEYS, COUNT_OF(KEYS), "githubPAT alone", &doc);
    if (!code)
        code = call_body_string(call, doc, "githubPAT", true, &token);
    if (!code)
        code = account_user(call, call->parameters[0], &user);
    if (code)
        return code;
    struct account_edit *edit = account_edit_new(call, CHANGE_USER_SET, 201, "update successfully");
    const struct doc *extension =
        account_merge(call->arena, account_extension(call, user.extension_json), doc);
    edit->change.user.name = user.name;
    edit->change.extension_was = user.extension_json;
    edit->change.fields = USER_EXTENSION;
    code = account_json(call, extension, &edit->change.user.extension_json);
    return code ? code : account_change(call, edit);
}
