/* pull.h — fetching and unpacking one image: skopeo, umoci, and what their words mean.
 *
 * Edge, internal to the image store.
 */
#ifndef ENGINE_LOCAL_PULL_H
#define ENGINE_LOCAL_PULL_H
#include "engine/local/local.h"
#include "engine/local/reference.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct arena;
struct err;
struct trash;

/* What a pull may be asked: is it to stop? Waits at most wait_ms for that answer. */
struct pull_watch {
    void *context;
    bool (*is_stopping)(void *context, uint32_t wait_ms);
    void (*progress)(void *context, const char *reason, const char *message);
};

struct pull {
    const struct engine_local_config *config;
    const char *directory; /* the engine's */
    const char *run_directory;
    const struct reference *reference;
    const char *user, *password; /* "" = none */
    uint64_t number;             /* names pulls/N */
    struct trash *trash;         /* where pulls/N goes */
    const char *known_id;        /* what this reference was for these credentials; "": unknown */
    struct pull_watch watch;
    /* result */
    char image_id[80];
    const char *reason; /* of a failure: "ImageNotFound", "ImagePullError", … */
    bool is_final;      /* trying again cannot help */
};

/* One try: afterwards images/ID is there, whole. `err` has the words for people. */
int pull_run(struct pull *pull, struct err *err);

/* What an operator's program said, without its time stamps and level. */
void pull_complaint(const char *text, char *out, unsigned long size);

/* Which reason a complaint of skopeo means; `name`, of the image, does not count as a part of it.
 */
const char *pull_reason(const char *complaint, const char *name, bool *is_final);

/* Which reason the status means by which a registry refuses a manifest; NULL: it does not say. */
const char *pull_reason_of_status(long status, bool *is_final);

#endif
