/* space.h — a file space with files, links and folders, for the tests of v1 jobs. */
#ifndef TESTS_SERVER_SPACE_H
#define TESTS_SERVER_SPACE_H
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "server/file_space.h"
#include "sys/file.h"

static char work[] = "/tmp/test-files-XXXXXX";
static struct file_space space;
static struct arena arena;

static inline const char *in_work(const char *name)
{
    return arena_format(&arena, "%s/%s", work, name);
}

static inline void put(const char *name, const char *content)
{
    assert_int_equal(file_write(in_work(name), text_of(content), 0644, NULL), 0);
}

/* WORK/files is the space; WORK/outside is not. */
static inline int setup(void **state)
{
    (void)state;
    arena_init(&arena);
    assert_non_null(mkdtemp(work));
    mode_t before = umask(077); /* skepd's */
    assert_int_equal(file_space_init(&space, in_work("files"), NULL), 0);
    umask(before);
    struct stat what;
    assert_int_equal(stat(space.directory, &what), 0);
    assert_int_equal(what.st_mode & 0777, 0755);
    assert_int_equal(dir_make(in_work("outside"), 0755, NULL), 0);
    assert_int_equal(dir_make(in_work("files/alice/code"), 0755, NULL), 0);
    put("outside/secret", "secret\n");
    put("files/alice/auth", "r:1\nbob\nsecret\n");
    assert_int_equal(symlink(in_work("outside"), in_work("files/absolute")), 0);
    assert_int_equal(symlink("../outside", in_work("files/relative")), 0);
    assert_int_equal(symlink("/proc/self/root", in_work("files/magic")), 0);
    assert_int_equal(symlink("alice", in_work("files/inside")), 0);
    assert_int_equal(symlink("loop", in_work("files/loop")), 0);
    assert_int_equal(symlink("nowhere", in_work("files/dangling")), 0);
    return 0;
}

static inline int teardown(void **state)
{
    char command[100];
    (void)state;

    file_space_release(&space);
    arena_release(&arena);
    snprintf(command, sizeof command, "rm -rf %s", work);
    return system(command);
}

static inline const char *uri(const char *below)
{
    return arena_format(&arena, "%s%s", space.uri, below);
}

#endif
