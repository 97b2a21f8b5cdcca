/* config_values.h — readers of the configuration's values, which fit their shape: what is not
 * there, or of another kind, leaves the value as it is.
 *
 * Private to server. Texts are copied into the configuration's arena.
 */
#ifndef SERVER_CONFIG_VALUES_H
#define SERVER_CONFIG_VALUES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct doc;
struct server_config;

void config_string(struct server_config *config, const struct doc *doc, const char *key,
                   const char **value);
uint64_t config_int(const struct doc *doc, const char *key, uint64_t otherwise);
void config_u32(const struct doc *doc, const char *key, uint32_t *value);
void config_bool(const struct doc *doc, const char *key, bool *value);
void config_strings(struct server_config *config, const struct doc *doc, const char *key,
                    const char *const **items, size_t *count);
int config_choice(const struct doc *doc, const char *key, const char *const *choices,
                  int otherwise);

#endif
