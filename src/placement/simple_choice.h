/* simple_choice.h — how far the choice of victims has come, and what nodes offer for it. Inside
 * src/placement only.
 *
 * A try is "does the gang fit without these groups?". What the nodes would offer stands in
 * simple->views, and the room that the gang's tasks have there is counted, node by node. */
#ifndef PLACEMENT_SIMPLE_CHOICE_H
#define PLACEMENT_SIMPLE_CHOICE_H
#include "placement/simple_need.h"

/* How far the choice has come. */
struct simple_choice {
    enum choice_stage {
        CHOICE_LIST,        /* groups that may be ended are listed */
        CHOICE_COUNT,       /* the room of all nodes is counted */
        CHOICE_FEW,         /* some become victims */
        CHOICE_ALL,         /* all of them do: would that be enough? … */
        CHOICE_COUNT_ALL,   /* … their room is counted, … */
        CHOICE_COUNT_AGAIN, /* … then that without victims, … */
        CHOICE_ADD,         /* … and one becomes a victim after the other */
        CHOICE_SPARE,       /* each without which it fits as well is none */
        CHOICE_DONE,
        CHOICE_FAILED,
    } stage;
    size_t next; /* group, node or candidate */
    struct simple_needs needs;
    bool is_given;  /* ADD, FEW, SPARE: he at `next` is a victim, or spared, and … */
    bool is_asking; /* … whether the gang fits with that is not known yet */
    bool is_tried;  /* it is placed on trial for that, … */
    struct simple_gang gang;
    struct simple_view *saved; /* … and the views were these before; NULL: there was no trial */
    size_t trials_max;         /* of a stage */
    size_t trials;             /* that this stage has begun, … */
    size_t tried_at;           /* … the last one here */
    /* Where the last trial that it passed has put its tasks, and what that takes of each node: NULL
     * without such. What ends meanwhile takes nothing away from it. */
    struct simple_slot *places;
    size_t place_count;
    struct simple_share *taken;
    struct simple_candidates candidates;
    uint64_t before; /* FEW: the room without victims */
    struct {
        uint32_t *items; /* nodes of victims; not of use when there are very many of them */
        size_t count, room;
    } given;
    struct {
        uint32_t *items; /* nodes on which something has ended between two pieces */
        size_t count, room;
    } touched;
};

/* A piece of it. */
struct simple_trial {
    const struct simple_search *search;
    struct simple *simple;
    struct simple_choice *choice;
    bool *is_victim; /* by group */
    uint64_t *left;  /* work */
};

/* The room of the nodes from `next` on, with as much work as is left. */
void simple_choice_count(struct simple_trial *trial);
/* The room of the nodes on which something has ended since the piece before. */
void simple_choice_recount(struct simple_trial *trial);
/* A victim's place counts as free. The node's room is not counted anew. */
void simple_choice_add(const struct simple_trial *trial, const struct simple_slot *slot);
/* The group becomes a victim of the try, or is spared again, and room is counted. */
void simple_choice_give(struct simple_trial *trial, const struct simple_group *group,
                        bool is_given);
/* Nobody's places count as free any more. */
void simple_choice_clear(const struct simple *simple, struct simple_choice *choice);

/* Between two pieces of the course: a slot of the group is about to become free; what the node
 * offers has changed. */
void simple_choice_ends(struct simple *simple, size_t group, const struct simple_slot *slot);
void simple_choice_touch(struct simple *simple, uint32_t node);
void simple_choice_free(struct simple *simple, struct simple_choice *choice);
/* That of its course; NULL: there is none. `to` has the nodes. */
struct simple_choice *simple_choice_copy(struct simple *to, const struct simple *from);

#endif
