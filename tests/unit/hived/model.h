/* model.h — a naive model of a small cluster, kept from outcomes alone: who holds which device,
 * for which kind of quota cell. Feasibility is decided by trying everything. It knows nothing of
 * trees, bindings or free lists, so that it can be wrong only in other ways than the scheduler.
 */
#ifndef TEST_HIVED_MODEL_H
#define TEST_HIVED_MODEL_H
#include "hived/hived.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    MODEL_NODES = 12,
    MODEL_LEAVES = 8, /* of a node */
    MODEL_GROUPS = 64,
    MODEL_PODS = 8,
    MODEL_NAME = 16,
};

struct model_root { /* quota cells of a virtual cluster */
    const char *vc, *type, *chain;
    unsigned units;       /* nodes, or the smaller cells themselves */
    unsigned unit_leaves; /* devices of one */
};

struct model_cluster {
    const char *name, *yaml;
    struct {
        const char *name, *chain;
        unsigned leaves;
    } nodes[MODEL_NODES];
    struct model_root roots[8];
    const char *vcs[4];
};

struct model_pod {
    unsigned node, leaf_count;
    unsigned leaves[MODEL_LEAVES];
    const char *roots[MODEL_LEAVES]; /* type of the quota cell; NULL: opportunistic */
    bool is_bound;
};

struct model_group {
    char name[MODEL_NAME];
    const char *vc;
    int priority;
    bool is_live, is_preempting, is_guaranteed;
    unsigned pod_count;
    struct model_pod pods[MODEL_PODS];
};

struct model {
    const struct model_cluster *cluster;
    struct model_group groups[MODEL_GROUPS];
    bool is_bad[MODEL_NODES];
    bool is_excluded[MODEL_NODES]; /* for the request under way */
    bool knows_roots;              /* false after a change of quotas: then only safety is checked */
    bool was_bad; /* some node has been bad: guaranteed gangs may wait for reasons not modelled */
};

extern const struct model_cluster model_clusters[];
extern const unsigned model_cluster_count;

struct model_group *model_find(struct model *model, const char *name);
unsigned model_node(const struct model *model, const char *name);

/* Take over a placement, of a gang that was committed or that preempts. */
struct model_group *model_take(struct model *model, const struct hived_request *request,
                               const struct hived_result *result, bool is_preempting);

/* NULL, or what is wrong with the outcome of this request, given what the model holds. */
const char *model_judge(struct model *model, const struct hived_request *request,
                        const struct hived_result *result);

/* NULL, or what is wrong: a device with two owners. */
const char *model_check(const struct model *model);

#endif
