/* layers.h — the metadata layers of this machine's images: made beside the starts, used again by
 * the next job that has the same range of ids (docs/rfc/0015-walls.md).
 *
 * Edge; thread-safe. The folders are the register:
 *   images/HEX/ids/FIRST    of a pulled image, gone with it
 *   layers/FIRST/dir-HASH   of a folder that is used as it is, for one job
 *   pulls/ids-N             one that is being made; renamed when it is whole
 * Whoever has a range may count on its layers: they are taken away while it is free.
 */
#ifndef ENGINE_LOCAL_LAYERS_H
#define ENGINE_LOCAL_LAYERS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct image;
struct layers;
struct local_engine;
struct task;

enum { LAYERS_AT_ONCE = 4 /* being made */, LAYERS_KEPT = 4 /* unused ones of an image */ };

/* Starts a thread, and others when there is more to make than one can. NULL: ERR_IO. */
struct layers *layers_new(struct local_engine *local, struct err *err);
void layers_stop(struct layers *layers); /* ends what is being made */
void layers_free(struct layers *layers);

/* The layer of an image for the range from `first` on; it need not be there. */
void layer_path(const struct local_engine *local, const struct image *image, uint32_t first,
                char *path, size_t size);

/* Ranges for which the image has a layer, the last used one first. */
size_t layers_ranges(const struct local_engine *local, const struct image *image, uint32_t *firsts,
                     size_t room);

/* Is the layer of a task's image there? Else the task, which a worker has, waits (TASK_WAITING)
 * until it is, or cannot be, and is settled as by images_request: the worker has it no more. */
bool layers_await(struct layers *layers, struct task *task, uint32_t first);
/* Take a task out of those that wait; false: it does not. With the engine's lock. */
bool layers_cancel(struct layers *layers, struct task *task);

/* A range was given to a job: what was made from folders that may have changed is not for it. */
void layers_forget(struct local_engine *local, uint32_t first);

/* Remove what nobody uses: of each image all but the newest, and those unused for keep_s; all with
 * `is_short`. `now_s` is a trusted time (engine.h). Returns how many. */
size_t layers_collect(struct local_engine *local, int64_t now_s, uint64_t keep_s, bool is_short);

#endif
