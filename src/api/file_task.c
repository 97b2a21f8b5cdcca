#include "api/file_task.h"
#include "api/audit.h"
#include "base/memory.h"
#include <assert.h>
#include <pthread.h>

/* What a user has under way, or a user at a storage; there is one for each that has anything. */
struct file_user {
    char *user;
    unsigned counts[FILE_COUNTS];
    struct file_user *next;
};

struct file_threads {
    struct api_files config;
    struct storage_threads *storages;
    struct uploads *uploads;
    pthread_mutex_t lock; /* guards what follows */
    struct file_user *users;
    unsigned totals[FILE_COUNTS];
};

/* ---- what is under way ---- */

static const struct {
    unsigned of_user, of_all;
    const char *text;
} LIMITS[FILE_COUNTS] = {
    [FILE_COUNT_TASKS] = {FILE_TASKS_OF_USER_MAX, UINT32_MAX, "requests for files of this storage"},
    [FILE_COUNT_LISTS] = {FILE_LISTS_OF_USER_MAX, UINT32_MAX, "lists of folders of this storage"},
    [FILE_COUNT_DOWNLOADS] = {FILE_DOWNLOADS_OF_USER_MAX, FILE_DOWNLOADS_MAX, "downloads"},
    [FILE_COUNT_UPLOADS] = {FILE_UPLOADS_OF_USER_MAX, FILE_UPLOADS_MAX, "uploads"},
};

static struct file_user **user_find(struct file_threads *threads, const char *user)
{
    struct file_user **at = &threads->users;
    while (*at && strcmp((*at)->user, user) != 0)
        at = &(*at)->next;
    return at;
}

int file_count_add(struct file_threads *threads, enum file_count what, const char *user,
                   struct err *err)
{
    int code = 0;
    pthread_mutex_lock(&threads->lock);
    struct file_user **at = user_find(threads, user);
    if (!*at) {
        *at = mem_zero(1, sizeof **at);
        (*at)->user = mem_copy(user);
    }
    if ((*at)->counts[what] >= LIMITS[what].of_user)
        code = err_fail(err, ERR_BUSY, "", "you have %u %s under way: wait until one has ended",
                        (*at)->counts[what], LIMITS[what].text);
    else if (threads->totals[what] >= LIMITS[what].of_all)
        code = err_fail(err, ERR_BUSY, "", "%u %s are under way, of all users: try again",
                        threads->totals[what], LIMITS[what].text);
    else {
        (*at)->counts[what]++;
        threads->totals[what]++;
    }
    pthread_mutex_unlock(&threads->lock);
    return code;
}

void file_count_remove(struct file_threads *threads, enum file_count what, const char *user)
{
    unsigned left = 0;
    pthread_mutex_lock(&threads->lock);
    struct file_user **at = user_find(threads, user), *found = *at;
    assert(found && found->counts[what] && threads->totals[what]);
    found->counts[what]--;
    threads->totals[what]--;
    for (size_t i = 0; i < FILE_COUNTS; i++)
        left += found->counts[i];
    if (!left) {
        *at = found->next;
        mem_free(found->user);
        mem_free(found);
    }
    pthread_mutex_unlock(&threads->lock);
}

/* ---- threads ---- */

int file_threads_start(const struct api_files *config, struct storage_list storages,
                       struct file_threads **out, struct err *err)
{
    struct file_threads *threads = mem_zero(1, sizeof *threads);
    threads->config = *config;
    pthread_mutex_init(&threads->lock, NULL);
    int code = storage_threads_start(storages, 0, &threads->storages, err);
    if (!code && config->is_on)
        code = uploads_start(threads, &threads->uploads, err);
    if (code) {
        file_threads_stop(threads);
        file_threads_free(threads);
        return code;
    }
    *out = threads;
    return 0;
}

void file_threads_stop(struct file_threads *threads)
{
    if (threads)
        storage_threads_stop(threads->storages);
}

void file_threads_free(struct file_threads *threads)
{
    if (!threads)
        return;
    storage_threads_stop(threads->storages);
    uploads_free(threads->uploads);
    storage_threads_free(threads->storages);
    assert(!threads->users);
    pthread_mutex_destroy(&threads->lock);
    mem_free(threads);
}

void file_threads_change(struct file_threads *threads, struct storage_list storages)
{
    storage_threads_change(threads->storages, storages);
}

struct storage_threads *file_storage_threads(struct file_threads *threads)
{
    return threads->storages;
}

const struct api_files *file_config(const struct file_threads *threads)
{
    return &threads->config;
}

struct uploads *file_uploads(struct file_threads *threads)
{
    return threads->uploads;
}

/* ---- tasks ---- */

int file_task_new(struct call *call, struct file_task **out)
{
    struct file_task *task = ARENA_NEW(call->arena, struct file_task);
    int code = storage_of_call(call, &task->storage);
    if (code)
        return code;
    if (!file_config(call->api->files)->is_on)
        return call_fail(call, ERR_UNSUPPORTED, "FilesOffError", "",
                         "the operator has turned off files of storages (api.files): use a job "
                         "that mounts the storage");
    if (!task->storage->directory[0])
        return call_fail(call, ERR_UNSUPPORTED, "NoFilesError", "",
                         "storage %s is a claim of Kubernetes clusters: its files are not on the "
                         "server, and can be reached by a job that mounts it",
                         task->storage->name);
    task->call = call;
    /* no user's name has a slash */
    task->counted = arena_format(call->arena, "%s/%s", call->caller.auth.user, task->storage->name);
    task->fd = -1;
    *out = task;
    return 0;
}

int file_task_path(struct file_task *task, struct text text)
{
    int code = files_path_parse(text, "path", &task->path, &task->call->err);
    if (!code)
        audit_word(task->call, true, "path", arena_copy(task->call->arena, text));
    return code;
}

static void task_run(struct worker_task *worker_task, void *context)
{
    struct file_task *task = (struct file_task *)worker_task;
    const struct call *call = task->call;
    struct files_root root;
    (void)context;
    task->is_run = true;
    task->code = files_root_open(task->storage, call->caller.auth.user,
                                 file_config(call->api->files)->nobody, &root, &task->err);
    if (task->code)
        return;
    task->code = task->work(task, &root);
    files_root_release(&root);
}

static void task_done(struct worker_task *worker_task, bool is_run)
{
    struct call *call = ((struct file_task *)worker_task)->call;
    (void)is_run;
    exchange_resume(call->exchange); /* nothing of it is ours any more */
}

static void task_release(struct call *call)
{
    struct file_task *task = call->task;
    file_count_remove(call->api->files, task->count, task->counted);
    storage_thread_put(call->api->files->storages, task->thread);
    if (task->end)
        task->end(task);
}

static int task_end(struct call *call)
{
    struct file_task *task = call->task;
    int code = task->code;
    if (!task->is_run)
        code = err_fail(&task->err, ERR_UNAVAILABLE, "", "the server is ending");
    call->err = task->err;
    if (!code)
        code = task->reply(call, task);
    task_release(call);
    return code;
}

int file_task_give(struct file_task *task)
{
    struct call *call = task->call;
    struct file_threads *threads = call->api->files;
    int code = file_count_add(threads, task->count, task->counted, &call->err);
    if (!code) {
        code = storage_thread_take(threads->storages, task->storage, &task->thread, &call->err);
        if (code)
            file_count_remove(threads, task->count, task->counted);
    }
    if (code) {
        if (task->end)
            task->end(task);
        return code;
    }
    task->task =
        (struct worker_task){.run = task_run, .done = task_done, .owner = call->caller.auth.user};
    call->task = task;
    call->resume = task_end;
    call->abandon = task_release;
    struct storage_thread *thread = task->thread;
    exchange_suspend(call->exchange);
    /* What it is given is its thread's: `task` may have ended before this returns. */
    struct err err;
    code = storage_thread_give(thread, &task->task, &err);
    if (code) {
        task->code = code;
        task->err = err;
        task->is_run = true; /* with this error */
        exchange_resume(call->exchange);
    }
    return 0;
}
