/* snapshot.h — HiveD's state and the use of nodes for readers: a copy that the core thread makes
 * now and then.
 *
 * Copying takes the core's time, so a copy is used again for SNAPSHOT_REST times as long as that
 * took, and one copy at a time is asked for: requests that come meanwhile wait for the same one.
 * Who asks gives the copy before the current one back, so that only what has changed has to be
 * copied. The snapshot owns every copy, never a request, whose client may
 * break off before the answer is there. At most two copies exist at once, however many ask. Any
 * thread.
 */
#ifndef API_SNAPSHOT_H
#define API_SNAPSHOT_H

struct call;
struct service_snapshot;
struct snapshot;

enum { SNAPSHOT_REST = 10 };

struct snapshot *snapshot_new(void);
/* No copy may be under way. */
void snapshot_free(struct snapshot *snapshot);

/* Run `read` with a recent copy; now, or after a suspension of the call. Only one runs at a time.
 * Returns what a handler returns. */
int snapshot_read(struct call *call,
                  int (*read)(struct call *call, const struct service_snapshot *copy));

#endif
