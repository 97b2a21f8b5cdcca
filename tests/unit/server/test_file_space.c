/* The file space of v1 jobs: paths, links, folders. */
#include "space.h"
#include "unit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "server/file_space.h"

static int path_of(const char *path, const char **below, struct err *err)
{
    return file_space_path(&space, "codeDir", path, &arena, below, err);
}

static void paths_are_below_however_they_are_written(void **state)
{
    static const struct {
        const char *path, *below;
    } cases[] = {{"/alice/code", "alice/code"},
                 {"//alice/./code///", "alice/code"},
                 {"/", ""},
                 {"/..a/b..", "..a/b.."},
                 {"/file:/x", "file:/x"}};
    const char *below;
    struct err err;
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(path_of(cases[i].path, &below, &err), 0);
        assert_string_equal(below, cases[i].below);
        assert_int_equal(
            path_of(arena_format(&arena, "%s%s", space.uri, cases[i].path), &below, &err), 0);
        assert_string_equal(below, cases[i].below);
    }
    assert_int_equal(path_of(space.uri, &below, &err), 0);
    assert_string_equal(below, "");
}

static void other_paths_are_refused(void **state)
{
    const struct {
        const char *path;
        int code;
    } cases[] = {{"", ERR_INVALID},
                 {"alice", ERR_INVALID},
                 {"/..", ERR_INVALID},
                 {"/a/../../b", ERR_INVALID},
                 {"hdfs://10.0.0.1:9000/code", ERR_UNSUPPORTED},
                 {"file:///etc/passwd", ERR_UNSUPPORTED},
                 {arena_format(&arena, "%s2/x", space.uri), ERR_UNSUPPORTED},
                 {arena_format(&arena, "%s/../outside", space.uri), ERR_INVALID},
                 {arena_format(&arena, "/%0*d", PATH_MAX, 0), ERR_TOO_BIG}};
    const char *below;
    struct err err;
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(path_of(cases[i].path, &below, &err), cases[i].code);
        assert_string_equal(err.path, "codeDir");
        assert_non_null(strstr(err.text, "codeDir: "));
    }
}

static void links_lead_nowhere_else(void **state)
{
    static const char *const out[] = {
        "absolute",        "relative",         "magic", "absolute/secret",
        "relative/secret", "magic/etc/passwd", "loop"};
    struct buf bytes = BUF_INIT;
    struct err err;
    (void)state;

    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
            assert_true(file_space_folder_check(&space, "codeDir", out[i], &err) < 0);
            assert_true(file_space_folder_make(&space, "outputDir", out[i], &err) < 0);
            assert_true(file_space_read(&space, "authFile", out[i], 100, &bytes, &err) < 0);
            if (space.has_openat2)
                assert_int_equal(err.code, ERR_FORBIDDEN);
        }
        assert_true(file_space_folder_make(&space, "outputDir", "relative/new", &err) < 0);
        assert_true(file_space_folder_make(&space, "outputDir", "dangling/new", &err) < 0);
        assert_int_equal(access(in_work("outside/new"), F_OK), -1);
        assert_int_equal(bytes.length, 0);
        if (space.has_openat2)
            assert_int_equal(file_space_folder_check(&space, "codeDir", "inside/code", &err), 0);
        space.has_openat2 = !space.has_openat2; /* once more as on an old kernel */
    }
    buf_release(&bytes);
}

static void files_are_read_whole_or_not_at_all(void **state)
{
    struct buf bytes = BUF_INIT;
    struct err err;
    (void)state;

    assert_int_equal(mkfifo(in_work("files/fifo"), 0644), 0);
    const bool has_device = mknod(in_work("files/device"), S_IFCHR | 0666, makedev(240, 77)) == 0;
    for (int round = 0; round < 2; round++) {
        buf_clear(&bytes);
        assert_int_equal(file_space_read(&space, "authFile", "alice/auth", 15, &bytes, &err), 0);
        assert_string_equal(buf_cstr(&bytes), "r:1\nbob\nsecret\n");
        buf_clear(&bytes);
        assert_int_equal(file_space_read(&space, "authFile", "alice/auth", 14, &bytes, &err),
                         ERR_TOO_BIG);
        assert_null(strstr(err.text, "secret"));
        assert_int_equal(file_space_read(&space, "authFile", "alice/none", 14, &bytes, &err),
                         ERR_NOT_FOUND);
        assert_non_null(strstr(err.text, "authFile: there is no /alice/none in the file space"));
        if (has_device) { /* of no driver: had it been opened, that would be ERR_IO */
            assert_int_equal(file_space_read(&space, "authFile", "device", 14, &bytes, &err),
                             ERR_INVALID);
            assert_non_null(strstr(err.text, "is not a plain file"));
        }
        assert_int_equal(file_space_read(&space, "authFile", "alice", 14, &bytes, &err),
                         ERR_INVALID);
        assert_int_equal(file_space_read(&space, "authFile", "fifo", 14, &bytes, &err),
                         ERR_INVALID);
        assert_int_equal(file_space_read(&space, "authFile", "", 14, &bytes, &err), ERR_INVALID);
        assert_int_equal(file_space_folder_check(&space, "codeDir", "alice/auth", &err),
                         ERR_INVALID);
        assert_int_equal(file_space_folder_check(&space, "codeDir", "none", &err), ERR_NOT_FOUND);
        space.has_openat2 = !space.has_openat2;
    }
    buf_release(&bytes);
}

static void folders_are_made_for_all_to_write(void **state)
{
    struct stat what;
    struct err err;
    (void)state;

    for (int round = 0; round < 2; round++) {
        const char *below = round ? "Output/alice/b/c" : "Output/alice/a";
        assert_int_equal(file_space_folder_make(&space, "outputDir", below, &err), 0);
        assert_int_equal(file_space_folder_make(&space, "outputDir", below, &err), 0);
        assert_int_equal(stat(in_work(arena_format(&arena, "files/%s", below)), &what), 0);
        assert_int_equal(what.st_mode & 0777, 0777);
        assert_int_equal(file_space_folder_make(&space, "outputDir", "alice/auth/x", &err),
                         ERR_INVALID);
        space.has_openat2 = !space.has_openat2;
    }
    assert_int_equal(file_space_folder_make(&space, "outputDir", "", &err), 0);
}

static void a_space_that_hides_the_image_is_refused(void **state)
{
    static const char *const bad[] = {"/", "/usr", "/proc/self", "/dev/shm", "/tmp/../etc"};
    struct file_space other;
    struct err err;
    (void)state;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(file_space_init(&other, bad[i], &err), ERR_INVALID);
        assert_string_equal(err.path, "filesDirectory");
        file_space_release(&other);
    }
}

static void a_path_may_fill_its_buffer(void **state)
{
    const char *const longest = arena_format(&arena, "%0*d", PATH_MAX - 1, 0);
    struct err err;
    (void)state;

    /* a name of so many bytes is too long for a folder, but not for us */
    assert_true(file_space_folder_make(&space, "outputDir", longest, &err) < 0);
    assert_int_not_equal(err.code, ERR_TOO_BIG);
    assert_int_equal(
        file_space_folder_make(&space, "outputDir", arena_format(&arena, "%s0", longest), &err),
        ERR_TOO_BIG);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(paths_are_below_however_they_are_written),
    cmocka_unit_test(other_paths_are_refused),
    cmocka_unit_test(links_lead_nowhere_else),
    cmocka_unit_test(files_are_read_whole_or_not_at_all),
    cmocka_unit_test(folders_are_made_for_all_to_write),
    cmocka_unit_test(a_space_that_hides_the_image_is_refused),
    cmocka_unit_test(a_path_may_fill_its_buffer),
};
UNIT_FILE(tests, setup, teardown);
