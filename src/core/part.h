/* part.h — one part of a gang, or one task, gets its place: the placer is asked, in pieces when it
 * has many tasks, or makes others give back much, then who has room held back. Inside src/core
 * only.
 *
 * Owns nothing: a part is of one step. What it has found becomes the gang's with the next
 * parts_keep or parts_take of start.c.
 */
#ifndef CORE_PART_H
#define CORE_PART_H
#include "core/request.h"
#include "core/start.h"

/* Groups that start together: the parts of a gang, or one task. */
struct gang_part {
    struct request request; /* made when it is the part's turn: most searches fail before */
    struct placement_result result;
    uint16_t first_role;
    bool is_made, is_held, is_bound, is_preempting, is_held_back;
    bool is_for_later; /* a reservation has to be made anew first */
    bool may_preempt;  /* shadows have been asked */
};

struct parts {
    struct gang_part *items;
    size_t count, task_count;
    size_t first;              /* where this step begins */
    size_t searched;           /* the part that was searched for in the step before, … */
    struct part_search search; /* … and how far that has come */
    uint32_t work_end;         /* of core->pass.work: what is left then follows in the next step */
    bool is_task;
    struct node_id avoid[PORT_TRIES_MAX]; /* where ports were in conflict */
    uint32_t avoid_count;
    struct port_look look; /* of a task: how far its fixed ports have been looked for */
};

/* Its request: most searches fail before all parts have one. */
void part_make(struct core *core, const struct core_job *job, struct gang_part *part);
/* What it holds already, or NULL. Of a gang the holds are in the order of its parts. A part whose
 * request is not made has no name. */
struct hold *part_hold(struct core_job *job, const struct parts *parts,
                       const struct gang_part *part);
/* A search that begins. */
struct part_search part_search_new(const struct core *core);
/* The one for the part at that place is cut, if its turn has come: what is known when it goes on.
 */
struct part_search part_search_next(const struct core *core, const struct parts *parts, size_t at);
/* The placer's search that was cut will not be asked for again. */
void search_give_up(struct core *core);
/* Ask the placer, and commit what can be bound: the next part must see it taken. */
struct start_outcome part_place(struct core *core, struct core_job *job, const struct parts *parts,
                                struct gang_part *part);

#endif
