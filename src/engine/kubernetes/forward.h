/* forward.h — connections to ports of pods, through the API server (`pods/portforward`).
 *
 * Edge. Each is a WebSocket of v4.channel.k8s.io, and one end of a pair of sockets is the caller's;
 * a thread moves the bytes in between. What is seen and what then happens stands in
 * docs/rfc/0017-kubernetes-engine.md, "Ports of tasks". Any thread.
 */
#ifndef ENGINE_KUBERNETES_FORWARD_H
#define ENGINE_KUBERNETES_FORWARD_H
#include <stddef.h>
#include <stdint.h>

struct err;
struct kube_access;
struct kube_client;
struct kube_forwards;

enum { KUBE_FORWARDS_MAX = 512 };

/* So many may be open at a time. Borrows client and access for as long as it lives. ERR_IO. */
int kube_forwards_new(struct kube_client *client, const struct kube_access *access, size_t most,
                      struct kube_forwards **out, struct err *err);
/* Ends all of them, which may take UPGRADE_MS; NULL is fine. */
void kube_forwards_free(struct kube_forwards *forwards);

/* A connection to a port of the pod at this path of the API ("/api/v1/…/pods/NAME"): a descriptor
 * that does not block, and is the caller's. It can be written at once, and ends without a byte when
 * the port cannot be reached. Never waits. ERR_BUSY: there are as many as there may be; ERR_IO,
 * ERR_UNAVAILABLE: no descriptor, or no thread, can be made. */
int kube_forward_open(struct kube_forwards *forwards, const char *pod, uint16_t port,
                      struct err *err);

#endif
