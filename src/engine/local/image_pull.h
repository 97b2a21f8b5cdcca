/* image_pull.h — the pulls of the image store: who waits for which, and whose turn it is.
 *
 * Edge, internal to image.c, which has what is on the disk, and image_pull.c. Everything here is
 * under the images' lock: functions are called with it, unless they say something else.
 */
#ifndef ENGINE_LOCAL_IMAGE_PULL_H
#define ENGINE_LOCAL_IMAGE_PULL_H
#include "engine/local/local.h"
#include "engine/local/reference.h"
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image;
struct images;
struct local_engine;
struct task;
struct trash;

enum { ENTRY_NAME_BYTES = 16 }; /* of a reference's file: BLAKE2b-128 */

/* One reference under one set of credentials. */
struct entry {
    char name[2 * ENTRY_NAME_BYTES + 1];
    struct reference reference;
    char *user, *password;
    char *owner;       /* whose turn the pull is; NULL: it has not begun */
    char image_id[80]; /* "" = never resolved */
    int64_t checked_ms;
    bool is_queued; /* or being pulled */
    bool is_left;   /* its pull was told to end, as nobody waited for it any more */
    bool is_unsaved;
    struct task *waiters; /* by task->next */
    struct entry *next;   /* in the queue of pulls */
};

struct pulls {
    pthread_cond_t has_pull; /* there is more to do; pauses between tries wait for it, too */
    struct entry *queue, **queue_end;
    struct entry *places[ENGINE_LOCAL_PULLS_MAX]; /* what is being pulled; NULL: a free place */
    uint64_t next_number;
    bool is_stopping;
    bool is_held; /* none begins */
    pthread_t threads[ENGINE_LOCAL_PULLS_MAX];
    size_t thread_count, idle_count, queue_count;
};

struct images {
    struct local_engine *local;
    struct trash *trash;
    pthread_mutex_t lock;
    struct {
        struct image **items;
        size_t count, room;
    } images;
    struct { /* those that have a pull, and what could not be stored */
        struct entry **items;
        size_t count, room;
    } entries;
    struct pulls pulls;
    bool has_leftovers; /* there may be blobs that no image needs */
};

/* --- image_pull.c --- */

void pulls_init(struct pulls *pulls); /* without the lock, as the next */
void pulls_release(struct pulls *pulls);
/* The task waits for the image of the reference, which is pulled unless it is already. */
void pulls_add(struct images *images, struct entry *entry, struct task *task);
bool pulls_are_none(const struct pulls *pulls); /* under way */
/* From now on none begins; those under way go on. */
void pulls_hold(struct pulls *pulls);
void pulls_resume(struct pulls *pulls);
/* The task has its image, or has failed. Without the lock. */
void pull_answer(struct local_engine *local, struct task *task);

/* --- image.c --- */

/* From memory or disk; NULL: it is not there. Taken: in use once more, until images_return. */
struct image *image_get(struct images *images, const char *id);
struct image *image_take(struct images *images, const char *id);
/* What the reference was found to be, on the disk. */
void entry_save(struct images *images, struct entry *entry);
/* Unless it has a pull it is read back when somebody asks for it: users may name as many references
 * and credentials as they like. */
void entry_release(struct images *images, struct entry *entry);

#endif
