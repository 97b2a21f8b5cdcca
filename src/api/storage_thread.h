/* storage_thread.h — a thread for each storage that has a directory, and how each storage is.
 *
 * Edge. A disk may take long, one of another machine for ever: a storage that hangs keeps nobody
 * waiting but who asks for its files. Storages come and go with the configuration; the thread of
 * one that is gone ends when nobody holds it any more.
 */
#ifndef API_STORAGE_THREAD_H
#define API_STORAGE_THREAD_H
#include "model/storage.h"
#include "sys/worker.h"
#include <stdint.h>

struct err;
struct storage_thread;
struct storage_threads;

enum {
    STORAGE_TASKS_MAX = 64, /* of one storage, that wait */
    STORAGE_PATIENCE_MS =
        5000, /* a look that takes longer is told; one that is older is repeated */
};

/* On failure, too, *threads is to be stopped and freed. `patience_ms` 0: STORAGE_PATIENCE_MS. */
int storage_threads_start(struct storage_list storages, uint32_t patience_ms,
                          struct storage_threads **threads, struct err *err);
/* These are the storages from now on. Never waits for a disk. What cannot be started is logged. */
void storage_threads_change(struct storage_threads *threads, struct storage_list storages);
/* Waits for what is under way; what waits is not run. */
void storage_threads_stop(struct storage_threads *threads);
void storage_threads_free(struct storage_threads *threads);

/* The thread of the storage, held until it is put. ERR_UNAVAILABLE: the storage is not there any
 * more, is somewhere else now, or has no thread. */
int storage_thread_take(struct storage_threads *threads, const struct storage *storage,
                        struct storage_thread **thread, struct err *err);
/* Once more, by who holds it. */
void storage_thread_again(struct storage_threads *threads, struct storage_thread *thread);
/* Any thread, also this one. */
void storage_thread_put(struct storage_threads *threads, struct storage_thread *thread);
/* As worker_give; who gives holds it until the task is done. */
int storage_thread_give(struct storage_thread *thread, struct worker_task *task, struct err *err);
/* How many there are, with those of storages that are gone which have not ended yet. */
size_t storage_threads_count(struct storage_threads *threads);

enum storage_state {
    STORAGE_UNSEEN,     /* nobody has looked yet */
    STORAGE_WELL,       /* its folder is there, and can be written to */
    STORAGE_UNWRITABLE, /* its folder is there; see `number` */
    STORAGE_ABSENT,     /* its folder cannot be opened; see `number` */
    STORAGE_SILENT,     /* a look has not come back; the rest is of the look before */
    STORAGE_ELSEWHERE,  /* it has no directory on this machine, or no thread */
};

struct storage_health {
    enum storage_state state;
    int number;                       /* errno, or 0 */
    int64_t looked_ms;                /* real time of the look that ended last; 0: none has */
    int64_t silent_ms;                /* how long the look under way has taken; 0: none is */
    uint64_t total_bytes, free_bytes; /* of its disk; 0: not known */
};

/* What is known. Who asks makes the thread look again when that is some seconds old. */
void storage_health(struct storage_threads *threads, const struct storage *storage,
                    struct storage_health *health);

#endif
