/* openpai_plugins.h — the plugins of OpenPAI's portal, said in Skep's words.
 *
 * Pure. Those whose script has an address of its own are carried over; those whose script OpenPAI's
 * portal itself had are not, as it goes with that portal.
 */
#ifndef CLI_OPENPAI_PLUGINS_H
#define CLI_OPENPAI_PLUGINS_H

struct arena;
struct doc;
struct openpai_output;

/* The value of `portal.plugins` as one line of YAML, in the arena; NULL: none is carried over.
 * Notes each of `list`, which stands at `path` of `file`. */
const char *openpai_plugins(const struct doc *list, const char *file, const char *path,
                            struct arena *arena, struct openpai_output *output);

#endif
