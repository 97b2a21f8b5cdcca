/* small_cluster.h — what an engine is told of a cluster of which a test plays a part, and who hears
 * what the engine says of it, where that is not what the test is about. */
#ifndef TEST_KUBERNETES_SMALL_CLUSTER_H
#define TEST_KUBERNETES_SMALL_CLUSTER_H
#include "engine/engine.h"
#include "engine/kubernetes/pod_make.h"

static const struct pod_settings small_settings = {
    .space = "default",
    .instance = "one",
    .runtime_class = "",
    .infiniband_resource = "",
    .nodes = {.gpu_resource = "g", .gpu_count_label = "c", .gpu_type_label = "t", .taint = "x"},
};

static inline void nothing_posted(void *context, const struct engine_event *event)
{
    (void)context, (void)event;
}

#endif
