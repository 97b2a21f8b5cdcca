/* OpenPAI's /storages, and the older shapes of the same under /storage */
#include "api/file_task.h"
#include "api/handlers.h"
#include "api/page.h"
#include "base/memory.h"

static bool is_default_of(const struct store_storages *rights, const char *name)
{
    for (size_t i = 0; i < rights->defaults.count; i++)
        if (strcmp(rights->defaults.items[i], name) == 0)
            return true;
    return false;
}

static int rights_of_caller(struct call *call, struct store_storages *rights)
{
    struct store_reader *reader = call_reader(call);
    if (!reader)
        return call->err.code;
    return store_user_storages(reader, call->caller.auth.user, call->arena, rights, &call->err);
}

static int may_use(struct call *call, const struct store_storages *rights, const char *name,
                   struct err *err)
{
    struct auth_caller caller = call->caller.auth;
    const struct auth_subject subject = {.storage = name};
    caller.storages = rights->names.items;
    caller.storage_count = rights->names.count;
    return auth_check(&caller, AUTH_USE_STORAGE, &subject, err);
}

static int one_of_path(struct call *call, struct store_storages *rights,
                       const struct storage **storage)
{
    struct text name = call->parameters[0];
    int code = rights_of_caller(call, rights);
    if (code)
        return code;
    *storage = call->api->service->storage(call->api->service->context, name, call->arena);
    if (!*storage)
        return call_fail(call, ERR_NOT_FOUND, "NoStorageError", "", "Storage %.*s is not found.",
                         TEXT_ARG(name));
    code = may_use(call, rights, (*storage)->name, &call->err);
    if (code == ERR_FORBIDDEN)
        call->missing_right = auth_right_name(AUTH_USE_STORAGE);
    return code;
}

int storage_of_call(struct call *call, const struct storage **storage)
{
    struct store_storages rights = {0};
    return one_of_path(call, &rights, storage);
}

/* What stands behind the folder, in the words of the original. */
static const char *type_name(const struct storage *storage)
{
    return strcmp(storage->type, "directory") == 0 ? "other" : storage->type;
}

static void data_json(struct json_writer *json, const struct storage *storage)
{
    json_key(json, "data");
    json_object(json);
    if (strcmp(storage->type, "nfs") == 0) {
        json_key_string(json, "server", storage->server);
        json_key_string(json, "path", storage->path);
    } else if (strcmp(storage->type, "samba") == 0) {
        cleanup_buf struct buf address = BUF_INIT;
        buf_format(&address, "//%s%s%s", storage->server, storage->path[0] == '/' ? "" : "/",
                   storage->path);
        json_key_text(json, "address", buf_as_text(&address));
    }
    json_object_end(json);
}

/* `volumeName` was the claim's; here nothing has another name. */
static void storage_head(struct json_writer *json, const struct storage *storage)
{
    json_key_string(json, "name", storage->name);
    json_key_bool(json, "share", storage->is_shared);
    json_key_string(json, "volumeName", storage->name);
}

typedef void (*storage_json_fn)(struct json_writer *json, const struct storage *storage,
                                bool is_default);

/* Those that the caller may use and has asked for. */
static int list_reply(struct list_page *page,
                      bool (*is_asked_for)(const struct call *call, const char *name,
                                           bool is_default),
                      storage_json_fn write)
{
    struct call *call = page->call;
    const struct service *service = call->api->service;
    const struct storage_list storages = service->storages(service->context, call->arena);
    struct store_storages rights = {0};
    int code = rights_of_caller(call, &rights);
    if (code)
        return code;
    struct text *names = ARENA_ARRAY(call->arena, struct text, storages.count + 1);
    const struct storage **shown =
        ARENA_ARRAY(call->arena, const struct storage *, storages.count + 1);
    size_t count = 0;
    for (size_t i = 0; i < storages.count; i++) {
        const char *name = storages.items[i].name;
        if (!is_asked_for(call, name, is_default_of(&rights, name)) ||
            may_use(call, &rights, name, NULL))
            continue;
        shown[count] = &storages.items[i];
        names[count++] = text_of(name);
    }
    const size_t *rows;
    count = page_pick(page, names, count, false, &rows);
    struct json_writer json;
    call_json(call, 200, &json);
    page_begin(page, &json);
    for (size_t i = 0; i < count; i++)
        write(&json, shown[rows[i]], is_default_of(&rights, shown[rows[i]]->name));
    page_end(page, &json);
    return 0;
}

static bool is_listed(const struct call *call, const char *name, bool is_default)
{
    (void)name;
    return is_default || !call_flag(call, "default");
}

static void summary_json(struct json_writer *json, const struct storage *storage, bool is_default)
{
    json_object(json);
    storage_head(json, storage);
    json_key_bool(json, "default", is_default);
    json_object_end(json);
}

int handle_storage_list(struct call *call)
{
    struct list_page page;
    int code = page_parse(call, &page, "storages", NULL);
    page.key = "storages";
    return code ? code : list_reply(&page, is_listed, summary_json);
}

static void storage_json(struct json_writer *json, const struct storage *storage, bool is_default)
{
    (void)is_default;
    json_object(json);
    storage_head(json, storage);
    json_key_string(json, "type", type_name(storage));
    data_json(json, storage);
    json_key_bool(json, "readOnly", storage->is_read_only);
    json_key_strings(json, "mountOptions", NULL, 0);
    json_object_end(json);
}

/* The storage that the path names, if the caller may use it. */
static int storage_of_path(struct call *call, storage_json_fn write)
{
    struct store_storages rights = {0};
    const struct storage *storage;
    int code = one_of_path(call, &rights, &storage);
    if (code)
        return code;
    struct json_writer json;
    call_json(call, 200, &json);
    write(&json, storage, is_default_of(&rights, storage->name));
    return 0;
}

int handle_storage(struct call *call)
{
    return storage_of_path(call, storage_json);
}

/* ---- before OpenPAI 1.0: a "config" mounts folders of a "server" ---- */

static void config_json(struct json_writer *json, const struct storage *storage, bool is_default)
{
    json_object(json);
    json_key_string(json, "name", storage->name);
    json_key_bool(json, "default", is_default);
    json_key_strings(json, "servers", &storage->name, 1);
    json_key(json, "mountInfos");
    json_array(json);
    json_object(json);
    cleanup_buf struct buf point = BUF_INIT;
    buf_format(&point, "/mnt/%s", storage->name);
    json_key_text(json, "mountPoint", buf_as_text(&point));
    json_key_string(json, "server", storage->name);
    json_key_string(json, "path", storage->is_shared ? "" : "${PAI_USER_NAME}");
    json_key_string(json, "permission", storage->is_read_only ? "ro" : "rw");
    json_object_end(json);
    json_array_end(json);
    json_object_end(json);
}

static void server_json(struct json_writer *json, const struct storage *storage, bool is_default)
{
    (void)is_default;
    json_object(json);
    json_key_string(json, "spn", storage->name);
    json_key_string(json, "type", type_name(storage));
    data_json(json, storage);
    json_key(json, "extension");
    json_object(json);
    json_object_end(json);
    json_object_end(json);
}

/* `names=` once or more: those alone. */
static bool is_named(const struct call *call, const char *name, bool is_default)
{
    (void)is_default;
    bool has_names = false;
    for (size_t i = 0; i < call->exchange->query_count; i++) {
        if (!text_is(call->exchange->query[i].name, "names"))
            continue;
        has_names = true;
        struct text rest = call->exchange->query[i].value;
        while (rest.length)
            if (text_is(text_cut(&rest, ','), name))
                return true;
    }
    return !has_names;
}

static int old_list(struct call *call, storage_json_fn write)
{
    struct list_page page;
    int code = page_parse(call, &page, "storages", NULL);
    return code ? code : list_reply(&page, is_named, write);
}

int handle_storage_config_list(struct call *call)
{
    return old_list(call, config_json);
}

int handle_storage_config(struct call *call)
{
    return storage_of_path(call, config_json);
}

int handle_storage_server_list(struct call *call)
{
    return old_list(call, server_json);
}

int handle_storage_server(struct call *call)
{
    return storage_of_path(call, server_json);
}
