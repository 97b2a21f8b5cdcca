/* token_cache.h — who presented a token when it was looked up last.
 *
 * Edge. Any thread. To check a token costs its signature, a parser of JSON and four statements; the
 * same browser asks many times a minute. What was found counts until anything of tokens or accounts
 * changes (store_token_version), so that what is taken away is gone with the commit, as if the
 * store had been asked; and never longer than the token. Tokens are known here by a keyed hash
 * alone. Bounded: TOKEN_CACHE_SLOTS callers, of which one takes the place of another with the same
 * slot.
 */
#ifndef API_TOKEN_CACHE_H
#define API_TOKEN_CACHE_H
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct caller;
struct token_cache;

enum { TOKEN_CACHE_SLOTS = 16384 };

struct token_cache *token_cache_new(void);
void token_cache_free(struct token_cache *cache);

/* Who it was, in the arena, when that was found at this version. */
bool token_cache_get(struct token_cache *cache, struct text token, uint64_t version, int64_t now_s,
                     struct arena *arena, struct caller *caller);
/* `version` was asked for before the store was. `expires_s`: what the token itself says; 0: never.
 */
void token_cache_put(struct token_cache *cache, struct text token, uint64_t version,
                     int64_t expires_s, const struct caller *caller);

#endif
