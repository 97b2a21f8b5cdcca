/* name_pattern.h — which of a certificate's names is that of a user: "email:{user}@example.org".
 *
 * Pure. Before the colon stands the kind of name, "CN", "email" or "uri"; {user} stands in the rest
 * once, for the user's name.
 */
#ifndef BASE_NAME_PATTERN_H
#define BASE_NAME_PATTERN_H
#include "base/text.h"
#include <stdbool.h>

bool name_pattern_is_good(const char *pattern);
/* What stands for {user} in `name`, of this kind; never empty. The pattern is good. */
bool name_pattern_match(const char *pattern, const char *kind, struct text name, struct text *user);

#endif
