/* shadow.h — the shadow of a reservation is made in steps: docs/rfc/0016-gangs-in-steps.md, "Room
 * that is held back". Inside src/core only.
 *
 * Owns core->shadow_making, of which there is one at a time; nobody is tried meanwhile. While the
 * placer is being copied it is not told what ends and what changes: that is kept, and told after
 * the copy. So all who tell it do it by the functions below.
 */
#ifndef CORE_SHADOW_H
#define CORE_SHADOW_H
#include "core/state.h"

/* For a job, from now on: the placer as if all that runs of others had ended, and when the job
 * could start. */
void shadow_begin(struct core *core, uint32_t job, enum shadow_purpose purpose);
/* Until core->pass.work is so much; at least one piece. True: it is made. */
bool shadow_go_on(struct core *core, uint32_t work_end);
/* The job of it does not need it any more. */
void shadow_leave(struct core *core, uint32_t job);
/* Another placer begins, or the core ends: it is thrown away. */
void shadow_drop(struct core *core);
void shadow_copy(struct core *to, const struct core *from); /* `to` has its placer */
static inline bool shadow_is_made(const struct core *core)
{
    return core->shadow_making.stage != SHADOW_NONE;
}
/* Whose it is; NONE: nobody's. */
static inline uint32_t shadow_job(const struct core *core)
{
    return shadow_is_made(core) ? core->shadow_making.job : NONE;
}
/* The placer must not change. */
static inline bool placer_is_copied(const struct core *core)
{
    return core->shadow_making.stage == SHADOW_COPY || core->shadow_making.stage == SHADOW_TELL;
}
/* What ends meanwhile is told to the placer later: it still holds this. */
bool shadow_defers(const struct core *core, const char *group);

/* Does all that waits of the job fit into the shadow? In pieces, which are told how long their
 * search may be, and return their work; the last ones leave the shadow as it was. */
void fitting_begin(struct core *core, const struct core_job *job, struct fitting *fitting);
uint32_t fitting_next(struct core *core, struct placer *shadow, struct core_job *job,
                      struct fitting *fitting, uint32_t slice);
void fitting_stop(struct fitting *fitting); /* only these last ones are left */
void fitting_release(struct fitting *fitting);
void fitting_copy(struct fitting *to, const struct fitting *from);
/* A large group that has ended in the shadow still has cells there; some more of them are given
 * back. False: none has any left. */
bool shadow_is_untidy(struct placer *shadow);
bool shadow_tidies(struct placer *shadow, uint32_t slice);
/* The next piece of a copy. True: it is whole. */
bool shadow_copy_piece(const struct core *core, const struct placer *from, struct placer **copy,
                       uint32_t *work);
void shadow_told_apply(struct core *core, struct placer *placer, const struct shadow_told *told);
/* When its time limit ends it. The limit counts from the job's first start: before that the end is
 * not known, but it cannot come before the limit from `now_ms` on. INT64_MAX: never. */
int64_t core_job_ends_ms(const struct core_job *job, int64_t now_ms);

/* The placer, and a shadow that is being made, are told. */
void placer_release_slot(struct core *core, const char *group, size_t slot);
void placer_release_group(struct core *core, const char *group);
void placer_cancel(struct core *core, const char *group);
void placer_node(struct core *core, uint32_t node);

#endif
