#include "unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static struct unit_file *files; /* in the order of their names */
static char **arguments;
static size_t argument_count;

/* `at` points to the name: "queue" of "tests/unit/core/test_queue.c". */
static int name_of(const struct unit_file *file, const char **at)
{
    const char *slash = strrchr(file->path, '/');
    *at = slash ? slash + 1 : file->path;
    if (strncmp(*at, "test_", 5) == 0)
        *at += 5;
    return (int)strcspn(*at, ".");
}

static bool is_named(const struct unit_file *file, const char *name)
{
    const char *at;
    int length = name_of(file, &at);
    return strlen(name) == (size_t)length && strncmp(at, name, (size_t)length) == 0;
}

void unit_file_add(struct unit_file *file)
{
    struct unit_file **at = &files;
    while (*at && strcmp((*at)->path, file->path) < 0)
        at = &(*at)->next;
    file->next = *at;
    *at = file;
}

const char *unit_argument(size_t index)
{
    return index < argument_count ? arguments[index] : NULL;
}

unsigned unit_every(void)
{
    return UNIT_EVERY;
}

static bool file_run(const struct unit_file *file)
{
    const char *at;
    char name[128];
    int length = name_of(file, &at);
    snprintf(name, sizeof name, "%.*s", length, at);
    return _cmocka_run_group_tests(name, file->tests, file->count, file->setup, file->teardown) ==
           0;
}

static void files_list(void)
{
    for (const struct unit_file *file = files; file; file = file->next) {
        const char *at;
        int length = name_of(file, &at);
        printf("%.*s\n", length, at);
    }
}

static int usage(const char *program, FILE *out)
{
    fprintf(out,
            "usage: %s [--list] [FILE…] [-- ARGUMENT…]\n\n"
            "Runs the tests of each FILE, which is the name of a test file without test_ and .c;\n"
            "without FILE all of them.\n\n"
            "  --list   print the names of the files\n",
            program);
    return out == stdout ? 0 : 2;
}

/* Every name is that of a file; `count` names. */
static bool names_are_known(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct unit_file *file = files;
        while (file && !is_named(file, names[i]))
            file = file->next;
        if (!file) {
            fprintf(stderr, "there is no test file of the name %s; see --list\n", names[i]);
            return false;
        }
    }
    return true;
}

static bool is_among(const struct unit_file *file, char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_named(file, names[i]))
            return true;
    return count == 0;
}

int main(int argc, char **argv)
{
    size_t count = 0;
    char **names = argv + 1;
    bool is_good = true;
    while (names[count] && strcmp(names[count], "--") != 0)
        count++;
    if (names[count]) {
        arguments = names + count + 1;
        argument_count = (size_t)argc - count - 2;
    }
    if (count == 1 && strcmp(names[0], "--help") == 0)
        return usage(argv[0], stdout);
    if (count == 1 && strcmp(names[0], "--list") == 0) {
        files_list();
        return 0;
    }
    if (count > 0 && names[0][0] == '-')
        return usage(argv[0], stderr);
    if (!names_are_known(names, count))
        return 2;
    for (const struct unit_file *file = files; file; file = file->next)
        if (is_among(file, names, count))
            is_good = file_run(file) && is_good;
    return is_good ? 0 : 1;
}
