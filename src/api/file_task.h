/* file_task.h — requests for files of storages, each carried out by the thread of its storage
 * (storage_thread.h).
 *
 * Edge. The request is suspended meanwhile.
 */
#ifndef API_FILE_TASK_H
#define API_FILE_TASK_H
#include "api/api.h"
#include "api/call.h"
#include "api/storage_thread.h"
#include "files/upload.h"
#include "model/storage.h"

struct file_threads;
struct upload;

enum {
    FILE_TASKS_OF_USER_MAX = 16, /* of one storage, that wait or run … */
    FILE_LISTS_OF_USER_MAX = 4,  /* … and lists of folders beside them, which may take long */
    FILE_DOWNLOADS_MAX = 64,     /* at one time */
    FILE_DOWNLOADS_OF_USER_MAX = 8,
    FILE_UPLOADS_MAX = 256, /* begun and not ended */
    FILE_UPLOADS_OF_USER_MAX = 8,
};

/* The threads of the storages; uploads only when `config` is on. */
int file_threads_start(const struct api_files *config, struct storage_list storages,
                       struct file_threads **threads, struct err *err);
/* These are the storages from now on. */
void file_threads_change(struct file_threads *threads, struct storage_list storages);
struct storage_threads *file_storage_threads(struct file_threads *threads);
/* Answers who waits, refuses who comes. NULL is fine. */
void file_threads_stop(struct file_threads *threads);
void file_threads_free(struct file_threads *threads);

/* The storage that the path names, if the caller may use it. NoStorageError, ERR_FORBIDDEN. */
int storage_of_call(struct call *call, const struct storage **storage);

enum file_count {
    FILE_COUNT_TASKS,
    FILE_COUNT_LISTS,
    FILE_COUNT_DOWNLOADS,
    FILE_COUNT_UPLOADS,
    FILE_COUNTS
};

struct file_task {
    struct worker_task task; /* first */
    struct call *call;
    const struct storage *storage; /* in the arena of the call */
    enum file_count count;         /* as what it is counted … */
    const char *counted;           /* … and under which name: the user's at the storage */
    struct storage_thread *thread; /* held from file_task_give until all is over */
    struct files_path path, other;
    /* On the thread of the storage. `root` is the caller's folder. */
    int (*work)(struct file_task *task, const struct files_root *root);
    int (*reply)(struct call *call, struct file_task *task); /* when work has returned 0 */
    void (*end)(struct file_task *task); /* NULL, or after all, whatever has become of it */
    struct upload *upload;
    uint64_t size;
    bool is_replacing;
    int fd;
    bool is_run;
    int code;
    struct err err;
};

/* A task for the storage of the request, in the call's arena, with the right of the caller checked.
 * ERR_UNSUPPORTED: the operator has turned files off. */
int file_task_new(struct call *call, struct file_task **task);
/* The path that the query, or the body, names. */
int file_task_path(struct file_task *task, struct text text);
/* Suspends the call. Returns what a handler returns; `end` is called in any case. */
int file_task_give(struct file_task *task);

/* What one user has under way, of all that is counted; of tasks and lists at one storage. ERR_BUSY.
 */
int file_count_add(struct file_threads *threads, enum file_count what, const char *user,
                   struct err *err);
void file_count_remove(struct file_threads *threads, enum file_count what, const char *user);

const struct api_files *file_config(const struct file_threads *threads);

/* upload.c: uploads that are under way. */
struct uploads;
int uploads_start(struct file_threads *threads, struct uploads **uploads, struct err *err);
void uploads_free(struct uploads *uploads); /* nothing runs any more; NULL is fine */
struct uploads *file_uploads(struct file_threads *threads);

#endif
