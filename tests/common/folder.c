#include "folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

static char folder[sizeof "/tmp/skep-test-XXXXXX"];

int folder_make(const char *name, char *path, size_t size)
{
    const char *parent = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
    const int length = snprintf(path, size, "%s/skep-test-%s-XXXXXX", parent, name);
    assert_in_range(length, 1, size - 1);
    return mkdtemp(path) ? 0 : -1;
}

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
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s%s%s", folder, *name ? "/" : "", name);
    return path;
}

void folder_put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s", in_folder(name));
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0755); /* or it is there */
        *slash = '/';
    }
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_not_equal(fputs(text, file), EOF);
    assert_int_equal(fclose(file), 0);
}
