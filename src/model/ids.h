/* ids.h — names of things in the core's tables. One-field structs, so that the compiler tells a
 * job from a node. Pure. */
#ifndef MODEL_IDS_H
#define MODEL_IDS_H
#include <stdint.h>

/* Number of a job, from 1, never reused; the key of its row. 0 is no job. */
struct job_id {
    uint32_t v;
};

/* Index of a node in the core's table; a lost node keeps its index for its return. */
struct node_id {
    uint32_t v;
};

/* A task within a job: the role's index in the spec and the instance's index in the role. */
struct task_ref {
    uint16_t role;
    uint16_t index;
};

/* One try of one task, from 1, never reused in the life of the installation: the container's or
 * pod's name is made of it, so that repeating a command is harmless. 0 is none. */
struct attempt_id {
    uint64_t v;
};

#define NODE_NONE ((struct node_id){UINT32_MAX})
#endif
