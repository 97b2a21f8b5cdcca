/* gpu_use.h — the GPU time of users: how long their tasks ran with how many GPUs, by calendar
 * month.
 *
 * Private to store. Attempts that have ended are summed in the table `gpu_use`, in the transaction
 * that stores their end; those that run are kept here, with a sum for each user, so that a question
 * costs one row and no scan. An attempt counts from the start of its container (PREPARING, with the
 * download of its image, does not count) to its end. Months begin at midnight UTC.
 */
#ifndef STORE_GPU_USE_H
#define STORE_GPU_USE_H
#include "base/map.h"
#include "core/output.h"
#include <pthread.h>
#include <stddef.h>

struct err;
struct store;

/* The committing thread's: what a batch changes. */
struct gpu_use_step {
    struct attempt_id attempt;
    uint32_t user, gpus;
    int64_t begin_ms;
    bool is_end;
};

struct gpu_use {
    pthread_mutex_t lock; /* guards the sums, `running` and what finds it */
    struct id_map attempts;
    struct {
        struct gpu_use_run {
            struct attempt_id attempt;
            uint32_t user, gpus;
            int64_t begin_ms;
        } * items;
        size_t count, room;
    } running;
    int64_t floor_ms; /* the sums count no attempt from before this time: it begins a month */
    struct text_map user_names;
    struct {
        struct gpu_use_user {
            char *name;
            uint64_t gpus;  /* of running attempts */
            int64_t begins; /* their GPUs times the time when they began, or floor_ms */
        } * items;
        size_t count, room;
    } users;
    struct {
        struct gpu_use_step *items;
        size_t count, room;
    } steps; /* of the batch that is being stored */
};

void gpu_use_init(struct gpu_use *use);
void gpu_use_release(struct gpu_use *use);

/* What runs, of the rows, in place of what is here; the job index has been loaded. `seed`: of the
 * hash table, because users choose names. */
int gpu_use_load(struct store *store, uint64_t seed, struct err *err);

/* Within the transaction: add up what ends. Nothing in memory changes before gpu_use_apply. */
int gpu_use_write(struct store *store, const struct output *output, struct err *err);
/* It is stored. */
void gpu_use_apply(struct store *store);

#endif
