/* image_world.h — an engine with registries beside it, for the system tests of images.
 *
 * Images of more than 128 MiB or 3,000 files are too big; a reference is asked for again after a
 * second; a pull is tried twice, and none stalls unless a test has it so.
 */
#ifndef TESTS_SYSTEM_ENGINE_IMAGE_WORLD_H
#define TESTS_SYSTEM_ENGINE_IMAGE_WORLD_H
#include "registry.h"
#include "world.h"

enum { PATIENCE_MS = 120000 };

extern struct world world;
extern struct registry open_registry, closed_registry;
extern unsigned token_port; /* a registry that wants tokens, in front of the open one */

/* Of a program of tests. The layout has the images v1 and v2. Skips all where a program that is
 * needed is not installed. */
int image_world_open(void **state);
int image_world_close(void **state);

/* An OCI layout FOLDER/layout with one image `tag`: busybox, a user, a variable, a folder, and
 * `megabytes` of what cannot be compressed. */
void image_make(const char *tag, unsigned megabytes);
/* From the layout. */
void image_push(const struct registry *registry, const char *tag, const char *name);
/* In front of the open registry, one that says no more after the first MiB of a blob; its port. */
unsigned halting_start(pid_t *pid);
void script_stop(pid_t pid);

/* A task. NULL: without credentials. */
void create(uint64_t attempt, const char *image, const char *user, const char *password,
            const char *command);
const struct seen *end_of(uint64_t attempt);
void assert_ends(uint64_t attempt, int code, const char *log); /* NULL: whatever it wrote */
void assert_fails(uint64_t attempt, const char *reason);
/* How many events of it have this reason. */
size_t notes_of(uint64_t attempt, const char *reason);

#endif
