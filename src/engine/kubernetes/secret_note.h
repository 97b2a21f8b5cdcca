/* secret_note.h — attempts whose secret may be in the cluster, on disk: they outlive a restart.
 *
 * Edge. A pod is found by its list; secrets are not listed, as that is a right to read all of the
 * namespace. So an attempt is noted before its secret is asked for, and until its secret is known
 * to have gone (docs/rfc/0017-kubernetes-engine.md, "What is left of an attempt").
 *
 * A note is a file without content. It outlives skepd, but is not waited for: of a machine that
 * loses its power the notes of the last seconds may be lost.
 */
#ifndef ENGINE_KUBERNETES_SECRET_NOTE_H
#define ENGINE_KUBERNETES_SECRET_NOTE_H
#include "model/ids.h"

/* In all of them `directory` may be NULL: nothing is noted. */

/* That it cannot be written is logged: then a secret may be left. The folder is made when it is
 * missing. */
void secret_note_put(const char *directory, struct attempt_id attempt);
void secret_note_drop(const char *directory, struct attempt_id attempt); /* if there is one */

/* All of them, in no order. */
void secret_note_each(const char *directory, void (*seen)(void *context, struct attempt_id attempt),
                      void *context);

#endif
