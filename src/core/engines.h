/* engines.h — a gang lies on the nodes of one engine, and on which is tried in turn:
 * docs/rfc/0019-several-engines.md. Inside src/core only.
 *
 * Owns core->engines: the names that nodes have told of, in the order in which they first did. The
 * core knows nothing else of engines. A place in the table is told as a number, from 1; 0: none,
 * any engine will do.
 */
#ifndef CORE_ENGINES_H
#define CORE_ENGINES_H
#include "core/start.h"

enum { ENGINES_SAID_MAX = 4 };

/* The node has appeared, has changed or is lost. */
void core_engine_update(struct core *core, uint32_t node);
void core_engines_copy(struct core *to, const struct core *from); /* `to` has none yet */
void core_engines_release(struct core *core);

/* NULL: any. */
const char *core_engine_name(const struct core *core, uint16_t number);
/* The first engine behind `number` that has nodes; 0: there is none. */
uint16_t core_engine_next(const struct core *core, uint16_t number);
/* Must all tasks of the job lie on one engine, and are there several? */
bool core_engine_matters(struct core *core, const struct core_job *job);

/* The search for a gang begins anew: with the first engine, and without ending anybody. */
void engine_try_begin(struct core *core, struct core_job *job);
/* The engine whose turn it is, when there are others; NULL: any will do. */
const char *engine_try_name(const struct core *core, const struct core_job *job);

/* It has failed there. True: now it is another engine's turn, or the first one's again, where
 * others may be ended from now on. False: all have been tried, and *outcome says what each engine
 * had to say, of ENGINES_SAID_MAX in words. What has been said is kept from step to step. */
bool engine_try_next(struct core *core, struct core_job *job, struct start_outcome *outcome);
/* The job is not searched for any more: what was said is forgotten. */
void engine_try_end(struct core_job *job);
void engine_try_copy(struct engine_try *to, const struct engine_try *from);

#endif
