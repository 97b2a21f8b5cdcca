/* reserve.h — capacity held back for gangs that have waited too long. Inside src/core only.
 *
 * Owns core->reservations. The others say here what they take, release and change.
 */
#ifndef CORE_RESERVE_H
#define CORE_RESERVE_H
#include <assert.h>

#include "core/request.h"

void reserve_update(struct core *core, struct core_job *job); /* it waits; does it starve? */
void reserve_drop(struct core *core, uint32_t slot);
void reserve_drop_cluster(struct core *core, const char *name); /* a virtual cluster is closed */
void reserve_drop_all(struct core *core);
static inline size_t reserve_count(const struct core *core)
{
    return core->reservations.count;
}
static inline const struct reservation *reserve_at(const struct core *core, size_t nth)
{
    assert(nth < core->reservations.count);
    return &core->reservations.items[nth];
}
void reserve_copy(struct core *to, const struct core *from); /* `to` has none yet */
void reserve_release(struct core *core);
bool reserve_has(const struct core *core, uint32_t slot); /* is capacity held back for it? */
/* Its shadow, or when its job starts, is known: nobody has to wait for that any more. */
void reserve_made(struct core *core, const struct shadow_making *made);
/* May `job`, behind a starving job, take these slots? "" or why not, in `arena`. NULL: that is
 * known in a later step, until when nobody is tried. */
const char *reserve_check(struct core *core, const struct core_job *job,
                          const struct request *request, const struct placement_slot *slots,
                          size_t slot_count, struct arena *arena);
/* May it end others to start itself? Only if the starving jobs ahead of it have room beside it:
 * NULL, or the one that has not. Once they have ended for it, its start is not questioned again.
 * *is_later: that is known in a later step, until when nobody is tried. */
const struct core_job *reserve_holder(struct core *core, const struct core_job *job,
                                      const struct request *request, bool *is_later);
/* It has taken these slots, and takes them in the shadows as well. A large part does so in pieces:
 * until it is there nobody is tried. */
void reserve_commit(struct core *core, const struct core_job *job, const struct request *request,
                    const struct placement_slot *slots);
bool reserve_is_joining(const struct core *core);
/* Some more of it, until core->pass.work is so much; at least one piece. */
void reserve_join(struct core *core, uint32_t work_end);
void reserve_settle(struct core *core); /* has its job been stopped, or does it do without? */
void reserve_release_slot(struct core *core, const char *group, size_t slot);
void reserve_release_group(struct core *core, const char *group);
void reserve_cancel(struct core *core, const char *group);
void reserve_node(struct core *core, uint32_t node);
void reserve_started(struct core *core); /* a time limit has begun to count */

#endif
