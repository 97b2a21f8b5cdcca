/* hived_view.h — what tests and the drivers of HiveD's vectors see of its cells, nodes and pods.
 *
 * They reach into src/hived/state.h for it: no program asks such questions.
 */
#ifndef TEST_HIVED_VIEW_H
#define TEST_HIVED_VIEW_H
#include "hived/hived.h"

/* Nodes in configuration order, then those that were added. */
uint32_t hived_node_count(const struct hived *hived);
const char *hived_node_name(const struct hived *hived, uint32_t node);
bool hived_node_is_healthy(const struct hived *hived, uint32_t node);

struct hived_cell_view {
    const char *type, *vc;
    enum hived_cell_state state;
    bool is_healthy;
    int32_t priority;
};
/* By its address ("0/1/a2/3"); false: there is no such cell. */
bool hived_cell_find(struct hived *hived, const char *address, struct hived_cell_view *view);

/* One call a top cell of the virtual cluster: preassigned cells, pinned ones among them, then one
 * for each leaf used opportunistically (is_oppo). False: there is no such virtual cluster. */
typedef void hived_vc_visit(void *context, const char *type, bool is_healthy,
                            enum hived_cell_state state, bool is_oppo);
bool hived_vc_walk(struct hived *hived, const char *vc, hived_vc_visit *visit, void *context);

/* Level of the lowest cell that holds all leaves of a slot: 1 for a single leaf; 0: unknown. */
uint8_t hived_slot_level(const struct hived *hived, const struct hived_placement *placement,
                         uint32_t slot);

/* Leaves that lazy groups have lost to a search that is not over, or have not got back of it. */
uint32_t hived_displaced_leaves(const struct hived *hived);

/* hived_pod_end of a pod with this name. */
bool hived_pod_end_named(struct hived *hived, const char *group, const char *pod);

#endif
