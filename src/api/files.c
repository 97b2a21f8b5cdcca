/* files of storages: listed, removed, renamed; folders made */
#include "api/file_task.h"
#include "api/handlers.h"
#include "api/page.h"
#include "base/memory.h"
#include "sys/cleanup.h"

/* ---- list ---- */

struct file_list {
    struct file_task *task;
    struct files_listing listing;
};

static const char *const KINDS[] = {
    [FILES_FILE] = "file", [FILES_FOLDER] = "folder", [FILES_OTHER] = "other"};

static int list_work(struct file_task *task, const struct files_root *root)
{
    struct file_list *list = task->call->flow;
    return files_list(root, &task->path, task->call->arena, &list->listing, &task->err);
}

static void entry_json(struct json_writer *json, const struct files_entry *entry)
{
    json_object(json);
    json_key_string(json, "name", entry->name);
    json_key_string(json, "kind", KINDS[entry->kind]);
    json_key_int(json, "size", (int64_t)entry->size);
    json_key_int(json, "changedTime", entry->changed_ms);
    json_object_end(json);
}

static int list_reply(struct call *call, struct file_task *task)
{
    const struct files_listing *listing = &((struct file_list *)call->flow)->listing;
    struct list_page page;
    struct json_writer json;
    const size_t *rows;
    (void)task;
    int code = page_parse(call, &page, "files", NULL);
    if (code)
        return code;
    page.key = "files";
    struct text *names = ARENA_ARRAY(call->arena, struct text, listing->count + 1);
    for (size_t i = 0; i < listing->count; i++)
        names[i] = text_of(listing->items[i].name);
    const size_t count = page_pick(&page, names, listing->count, false, &rows);
    call_json(call, 200, &json);
    page_begin(&page, &json);
    for (size_t i = 0; i < count; i++)
        entry_json(&json, &listing->items[rows[i]]);
    page_end(&page, &json);
    return 0;
}

static void list_end(struct file_task *task)
{
    mem_free(((struct file_list *)task->call->flow)->listing.items);
}

static struct text query_path(const struct call *call)
{
    struct text path = exchange_query(call->exchange, "path");
    return path.at ? path : TEXT("");
}

/* GET /storages/:storage/files?path= */
int handle_file_list(struct call *call)
{
    struct file_task *task;
    struct list_page page;
    int code = page_parse(call, &page, "files", NULL);
    if (!code)
        code = file_task_new(call, &task);
    if (!code)
        code = file_task_path(task, query_path(call));
    if (code)
        return code;
    call->flow = ARENA_NEW(call->arena, struct file_list);
    task->count = FILE_COUNT_LISTS;
    task->work = list_work;
    task->reply = list_reply;
    task->end = list_end;
    return file_task_give(task);
}

/* ---- changes ---- */

static int changed_reply(struct call *call, struct file_task *task)
{
    (void)task;
    call_message(call, 200, "Done.");
    return 0;
}

static int remove_work(struct file_task *task, const struct files_root *root)
{
    return files_remove(root, &task->path, &task->err);
}

/* DELETE /storages/:storage/files?path= */
int handle_file_remove(struct call *call)
{
    struct file_task *task;
    int code = file_task_new(call, &task);
    if (!code)
        code = file_task_path(task, query_path(call));
    if (code)
        return code;
    task->work = remove_work;
    task->reply = changed_reply;
    return file_task_give(task);
}

static int rename_work(struct file_task *task, const struct files_root *root)
{
    return files_rename(root, &task->path, &task->other, &task->err);
}

/* PUT /storages/:storage/files {path, newPath} */
int handle_file_rename(struct call *call)
{
    static const char *const keys[] = {"path", "newPath"};
    const struct doc *body;
    struct text path, other;
    struct file_task *task;
    int code = file_task_new(call, &task);
    if (!code)
        code = call_body_of(call, keys, COUNT_OF(keys), "the new name of a file", &body);
    if (!code)
        code = call_body_string(call, body, "path", true, &path);
    if (!code)
        code = call_body_string(call, body, "newPath", true, &other);
    if (!code)
        code = file_task_path(task, path);
    if (!code)
        code = files_path_parse(other, "newPath", &task->other, &call->err);
    if (code)
        return code;
    task->work = rename_work;
    task->reply = changed_reply;
    return file_task_give(task);
}

static int folder_work(struct file_task *task, const struct files_root *root)
{
    return files_make_folder(root, &task->path, &task->err);
}

static int folder_reply(struct call *call, struct file_task *task)
{
    (void)task;
    call_message(call, 201, "The folder is made.");
    return 0;
}

/* POST /storages/:storage/folders {path} */
int handle_folder_make(struct call *call)
{
    static const char *const keys[] = {"path"};
    const struct doc *body;
    struct text path;
    struct file_task *task;
    int code = file_task_new(call, &task);
    if (!code)
        code = call_body_of(call, keys, COUNT_OF(keys), "a folder", &body);
    if (!code)
        code = call_body_string(call, body, "path", true, &path);
    if (!code)
        code = file_task_path(task, path);
    if (code)
        return code;
    task->work = folder_work;
    task->reply = folder_reply;
    return file_task_give(task);
}
