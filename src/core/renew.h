/* renew.h — another placer is told of the nodes and of what runs, and takes over: at once, or in
 * pieces (docs/rfc/0016-gangs-in-steps.md). Inside src/core only.
 *
 * Owns core->placer, core->renewal, core->policy_change and core->past_placers.
 */
#ifndef CORE_RENEW_H
#define CORE_RENEW_H
#include "core/state.h"

/* Give a new placer the nodes, and the places of all that runs. */
void placer_fill(struct core *core, struct placer *placer);
/* The configuration asks for this one: what runs is told to it, as much as fits into one step, and
 * then config_take_over is told. One that was to take over before is dropped. */
void placer_change(struct core *core, struct placer *placer);
/* Another placer, when the configuration has asked for one, or the nodes have outdated the one
 * there is: as much of it as fits into one step, unless there was one to go on with. */
void placer_renew(struct core *core);
/* The next piece. */
void renewal_go_on(struct core *core);

/* Nobody is tried meanwhile. */
static inline bool placer_is_renewing(const struct core *core)
{
    return core->renewal.placer != NULL;
}
/* The next one; NULL: there is none. */
static inline struct placer *placer_next(const struct core *core)
{
    return core->renewal.placer;
}
/* It is to be renewed, but a gang takes its places first, whose tasks are to be told. */
bool renewal_waits(const struct core *core);

/* What happens meanwhile, after core->placer has been told. */
void renewal_node(struct core *core, uint32_t node);
void renewal_release_slot(struct core *core, const char *group, size_t slot);
void renewal_release_group(struct core *core, const char *group);

/* Nobody needs this one any more: it is freed, some of it with each step. */
void past_placer_add(struct core *core, struct placer *placer);
void past_placer_drop(struct core *core);
size_t past_placer_count(const struct core *core); /* that are not freed yet */

void renewal_copy(struct core *to, const struct core *from);
void renewal_release(struct core *core);

#endif
