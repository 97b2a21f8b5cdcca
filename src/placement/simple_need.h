/* simple_need.h — what the tasks of a gang need, for counting where they have room. Inside
 * src/placement only.
 *
 * Pure. Owns the list; the members are the request's.
 */
#ifndef PLACEMENT_SIMPLE_NEED_H
#define PLACEMENT_SIMPLE_NEED_H
#include "placement/simple_parts.h"

/* Equal tasks of the gang. */
struct simple_need {
    size_t at;                             /* its first member in the request, … */
    const struct placement_member *member; /* … which is another one in each piece; NULL: all
                                              members on one node */
    struct demand demand;
    uint64_t count;
    bool is_together; /* on one node: room is a number of nodes, count is 1 */
    uint32_t tasks;   /* a node has room when it has it for so many at once */
    uint64_t room;    /* with the victims of this try; more than count does not matter */
};

/* What all tasks of a gang need together, and what there is of it on all nodes that have room for
 * any: a gang for which that is not enough need not be placed on trial. */
struct simple_sums {
    struct simple_share want, have;
    struct {
        uint32_t gpu;        /* of tasks of at least so many GPUs each … */
        uint64_t want, have; /* … there are so many, and nodes have GPUs for so many */
    } sizes[PLACEMENT_GPUS_MAX];
    size_t size_count;
};

struct simple_needs {
    struct simple_need *items; /* on the heap */
    size_t count;
    struct demand least;     /* of all: a node without so much has no room */
    struct simple_sums sums; /* of several */
};

/* Into empty needs. False: more than any node has. */
bool simple_needs_list(const struct placement_request *request, struct simple_needs *needs);
/* In each piece the request is another copy of the same. */
void simple_needs_settle(struct simple_needs *needs, const struct placement_request *request);

/* No node has anything. */
void simple_sums_clear(struct simple_sums *sums);
/* What a node offers is added, or taken away. */
void simple_sums_count(struct simple_sums *sums, const struct simple_view *view, bool is_added);
/* False: it is too little for all tasks, wherever they go. */
bool simple_sums_suffice(const struct simple_sums *sums);

#endif
