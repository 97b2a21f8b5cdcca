/* config_storages.h — the configuration's `storages`: folders that jobs can have mounted.
 *
 * Private to server; config_shape.c has the keys.
 */
#ifndef SERVER_CONFIG_STORAGES_H
#define SERVER_CONFIG_STORAGES_H
#include <stdint.h>

struct doc;
struct problems;
struct server_config;

enum { CONFIG_STORAGES_PATIENCE_MS = 5000 };

/* The section, which fits its shape. */
void config_storages_read(struct server_config *config, const struct doc *doc);

/* What is wrong beyond the shape. No storage may lie in another one that is not read-only, nor in
 * the folder of `filesDirectory` or around it: mounts go by names, and whoever writes in the outer
 * folder could put a link in the place of the inner one's. Two storages may be one folder. The way
 * to each folder counts with all its links, as they are now. The links of disks that have not
 * answered for `patience_ms` are left out, which is a warning. The default of `filesDirectory` goes
 * by the data directory that the file names, also where the command line has another. */
void config_storages_check(const struct server_config *config, const struct doc *doc,
                           uint32_t patience_ms, struct problems *problems);

#endif
