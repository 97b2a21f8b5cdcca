/* id_ranges.h — ranges of user and group ids of this machine: each job that has tasks here has one
 * of its own, which its tasks share (docs/rfc/0015-walls.md).
 *
 * Edge; thread-safe. Engines beside each other have one register: a folder in /run with a link for
 * each range that is in use, named by the range, whose target is the engine's folder. So the
 * kernel decides who gets a range, and who is killed keeps it until its next start.
 */
#ifndef ENGINE_LOCAL_ID_RANGES_H
#define ENGINE_LOCAL_ID_RANGES_H
#include "model/ids.h"
#include "sys/ids.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct id_ranges;

enum {
    ID_RANGES_COUNT_MAX = 32768,
};

struct id_ranges_config {
    /* a multiple of ID_RANGE_IDS; jobs have the ranges behind this one, of which the first id is
     * who root of a task is in a storage where it must not be root */
    uint32_t first;
    uint32_t count;       /* of jobs */
    const char *registry; /* shared by all engines of the machine; made when it is not there */
    const char *owner;    /* the engine's folder */
    /* What the kernel counts by user is counted for root as well, whose namespaces they are; else
     * for each job by itself. */
    bool is_counted_for_root;
    /* A range was given to a job that had none, and to nobody else yet; NULL: nobody wants to know
     */
    void (*on_taken)(void *context, uint32_t first);
    void *context;
};

struct id_place {   /* what a container needs to have a range */
    uint32_t first; /* 0: the machine's own ids */
    int userns_fd;
};

/* ERR_INVALID: such ranges cannot be; ERR_IO. */
int id_ranges_new(const struct id_ranges_config *config, struct id_ranges **ranges,
                  struct err *err);
/* What is in use stays so. */
void id_ranges_free(struct id_ranges *ranges);

struct id_wish { /* ranges that a job would like, the dearest one first */
    const uint32_t *firsts;
    size_t count;
};

/* The range of the job, chosen when this is its first task: one of its wishes (NULL: none) that is
 * free, or any. Harmless for a task that has joined. ERR_TOO_BIG: all are in use. */
int id_ranges_join(struct id_ranges *ranges, const char *job, struct attempt_id attempt,
                   const struct id_wish *wish, uint32_t *first, struct err *err);
/* Calls `act` while no job of this engine has the range, or can get it; false: one has it. */
bool id_ranges_while_free(struct id_ranges *ranges, uint32_t first, void (*act)(void *context),
                          void *context);
/* The user namespace of a job that has a task: 0 … 65535 are its range. A descriptor, borrowed for
 * so long. ERR_UNAVAILABLE: the kernel gives no more of them. */
int id_ranges_namespace(struct id_ranges *ranges, const char *job, struct err *err);
/* A task of an earlier engine; also of one that was configured otherwise. ERR_CONFLICT: others have
 * it. */
int id_ranges_adopt(struct id_ranges *ranges, const char *job, struct attempt_id attempt,
                    uint32_t first, struct err *err);
/* Nothing of the task runs any more: with the last one its job's range is free. One that has not
 * joined is harmless. */
void id_ranges_leave(struct id_ranges *ranges, struct attempt_id attempt);

/* All tasks of an earlier engine were adopted: what else it had is free, and so is what engines had
 * whose folders are gone. */
void id_ranges_settle(struct id_ranges *ranges);

enum { ID_OWNER = 65533 }; /* who owns a folder with an id that tasks do not have */

struct id_owner { /* of a folder on the disk */
    uint32_t user, group;
    bool is_root; /* root must not be root there: root of the task is these, who are not root */
};

/* Such a one by which a folder is mounted whose owner is another one in the task: root, or ID_OWNER
 * for ids above 65535. All other ids are what they are on the disk. ERR_UNAVAILABLE as above. */
int id_ranges_view(struct id_ranges *ranges, const char *job, const struct id_owner *owner,
                   struct err *err);

#endif
