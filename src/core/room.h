/* room.h — is there room beside a job that starves? Its shadow is asked in steps:
 * docs/rfc/0016-gangs-in-steps.md, "Room that is held back". Inside src/core only.
 *
 * Owns core->room. One job asks at a time, of one shadow after the other; nobody is tried
 * meanwhile.
 */
#ifndef CORE_ROOM_H
#define CORE_ROOM_H
#include "core/request.h"

/* A part of a gang, or a task, behind the job that starves. */
struct room_question {
    const struct core_job *job;
    const struct request *request;
    const struct placement_slot *slots; /* that it would take; NULL: it would end others first */
    size_t slot_count;
};

enum room_answer {
    ROOM_FOR_BOTH,
    ROOM_FOR_ONE,
    ROOM_ASKED, /* it is known in a later step: then the same is asked again */
};

/* A slice of it from `work_begin` of core->pass.work on, more when it has begun anew often; at
 * least one piece. ROOM_FOR_ONE as well when other places have been found too often. */
enum room_answer room_ask(struct core *core, const struct reservation *reservation,
                          const struct room_question *question, uint32_t work_begin);
/* The question has all of its answers. */
void room_forget(struct core *core);

/* What was begun in a step before goes on. */
static inline bool room_is_asked(const struct core *core)
{
    return core->room.stage != ROOM_NONE && core->room.stage != ROOM_KNOWN;
}
void room_go_on(struct core *core, uint32_t work_begin);
/* Has the job of it been stopped, or does it do without? */
void room_settle(struct core *core);

/* The shadow holds more than the core says. */
bool room_is_in(const struct core *core, const struct placer *shadow);
/* What ends and changes is told to a reservation's shadow. */
void room_tell(struct core *core, struct placer *shadow, const struct shadow_told *told);
/* Nobody needs its shadow any more. */
void room_shadow_leave(struct core *core, const struct reservation *reservation);
/* Another placer begins, or the core ends: shadows are about to be freed. */
void room_drop(struct core *core);
void room_copy(struct core *to, const struct core *from); /* `to` has its reservations */

#endif
