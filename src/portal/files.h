/* files.h — the table of built-in files, ordered by path. Made by web/build.mjs; empty in a build
 * without the portal (none.c).
 */
#ifndef PORTAL_FILES_H
#define PORTAL_FILES_H
#include "portal/portal.h"
#include <stddef.h>

extern const struct portal_file PORTAL_FILES[];
extern const size_t PORTAL_FILE_COUNT;

#endif
