/* cluster_status.h — which virtual clusters are closed, for replies. */
#ifndef API_CLUSTER_STATUS_H
#define API_CLUSTER_STATUS_H
#include "base/text.h"
#include "store/read.h"

struct call;
struct json_writer;

int closed_clusters_read(struct call *call, struct store_clusters *clusters);
/* NULL: it is open. */
const struct cluster_record *closed_cluster_find(const struct store_clusters *clusters,
                                                 struct text name);
/* "status" and by whom, since when and why it is closed; `closed` NULL: it is open. */
void view_cluster_status(struct json_writer *json, const struct cluster_record *closed);
/* Why a job waits: its row may be older than the closing or the opening of its virtual cluster. */
int cluster_waiting_reason(struct call *call, const struct job_record *job, const char **reason);

#endif
