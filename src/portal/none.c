/* The table of a program that was built without the portal. */
#include "portal/files.h"

const struct portal_file PORTAL_FILES[1] = {{0}};
const size_t PORTAL_FILE_COUNT = 0;
