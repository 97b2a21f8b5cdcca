/* world_service.h — what the API finds behind its port (api/service.h) in a world: a server as
 * small as it can be.
 *
 * Each request is a step of the world's core and a commit to its store, at once.
 */
#ifndef TEST_API_WORLD_SERVICE_H
#define TEST_API_WORLD_SERVICE_H
#include "core/event.h"
#include "world.h"

void world_service_init(struct world *world);

/* `reply` NULL: nobody waits. */
void world_step(struct world *world, struct event *event, struct service_reply *reply);

#endif
