#include "folder.h"

#include <stdio.h>
#include <stdlib.h>

static char folder[sizeof "/tmp/skep-test-XXXXXX"];

int folder_setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/skep-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

int folder_teardown(void **state)
{
    (void)state;
    char command[sizeof folder + 16];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? 0 : -1;
}

const char *in_folder(const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s%s%s", folder, *name ? "/" : "", name);
    return path;
}
