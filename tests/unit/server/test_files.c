/* test_files.c — the file space of v1 jobs: paths, links, folders; authFile; a job's directories.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "init/job_file.h"
#include "server/auth_file.h"
#include "server/file_space.h"
#include "server/v1_files.h"
#include "spec/spec.h"
#include "sys/file.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

static char work[] = "/tmp/test-files-XXXXXX";
static struct file_space space;
static struct arena arena;

static const char *in_work(const char *name)
{
    return arena_format(&arena, "%s/%s", work, name);
}

static void put(const char *name, const char *content)
{
    assert_int_equal(file_write(in_work(name), text_of(content), 0644, NULL), 0);
}

/* WORK/files is the space; WORK/outside is not. */
static int setup(void **state)
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

static int teardown(void **state)
{
    char command[100];
    (void)state;

    file_space_release(&space);
    arena_release(&arena);
    snprintf(command, sizeof command, "rm -rf %s", work);
    return system(command);
}

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

static int parse(const char *text, struct auth_file *file, struct err *err)
{
    return auth_file_parse(text_of(text), &arena, file, err);
}

static void auth_files_are_read(void **state)
{
    static const struct {
        const char *text, *registry, *user, *password;
    } cases[] = {
        {"r.example:5000\nbob\nse cret", "r.example:5000", "bob", "se cret"},
        {"r.example\r\nbob\r\nsecret \r\n\r\n\n", "r.example", "bob", "secret "},
        {"\xef\xbb\xbfhttps://index.docker.io/v1/\nbob\np\n", "docker.io", "bob", "p"},
        {"\nb\xc3\xb6\x62\np\xe2\x82\xac\n", "docker.io", "b\xc3\xb6\x62", "p\xe2\x82\xac"},
        {" http://r:1/v2/ \n bob \n:p:\n", "r:1", "bob", ":p:"},
    };
    struct auth_file file;
    struct err err;
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(cases[i].text, &file, &err), 0);
        assert_string_equal(file.registry, cases[i].registry);
        assert_string_equal(file.user, cases[i].user);
        assert_string_equal(file.password, cases[i].password);
    }
}

static void wrong_auth_files_are_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "r\n",
        "r\nbob",
        "r\nbob\n",
        "r\n\nzq",
        "r\nbob\nzq\nmore",
        "r\nb\tb\nzq",
        "r\nb:b\nzq",
        "r\nbob\nzq\xff",         /* not UTF-8 */
        "r\nbob\nzq\xed\xa0\x80", /* a surrogate */
        "r\nb\xc0\xaf\nzq",       /* too long a form */
        "r\nbob\nzq\x01",
    };
    struct buf big = BUF_INIT;
    struct auth_file file;
    struct err err;
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(cases[i], &file, &err), ERR_INVALID);
        assert_null(strstr(err.text, "zq"));
    }
    assert_int_equal(auth_file_parse((struct text){"r\nbob\nzq\0z", 10}, &arena, &file, &err),
                     ERR_INVALID);
    buf_string(&big, "r\n");
    while (big.length <= AUTH_FILE_NAME_MAX + 2)
        buf_char(&big, 'b');
    assert_int_equal(parse(arena_format(&arena, "%s\np\n", buf_cstr(&big)), &file, &err),
                     ERR_INVALID);
    while (big.length <= AUTH_FILE_BYTES_MAX)
        buf_char(&big, 'b');
    assert_int_equal(auth_file_parse(buf_as_text(&big), &arena, &file, &err), ERR_TOO_BIG);
    buf_release(&big);
}

static void a_password_goes_to_its_registry_only(void **state)
{
    struct auth_file hub, own;
    struct err err;
    (void)state;

    assert_int_equal(parse("docker.io\nbob\np", &hub, &err), 0);
    assert_int_equal(parse("127.0.0.1:5000\nbob\np", &own, &err), 0);
    assert_true(auth_file_fits(&hub, "bob/app:1"));
    assert_true(auth_file_fits(&hub, "debian"));
    assert_false(auth_file_fits(&hub, "127.0.0.1:5000/bob/app:1"));
    assert_true(auth_file_fits(&own, "127.0.0.1:5000/bob/app:1"));
    assert_false(auth_file_fits(&own, "127.0.0.1:5001/bob/app:1"));
    assert_false(auth_file_fits(&own, "bob/app:1"));
    assert_false(auth_file_fits(&own, "dir:/x"));
}

static int make(const char *fields, struct job_file *file, struct v1_files *files, struct err *err)
{
    struct spec_parsed parsed = {0};
    struct problems problems;
    const char *text = arena_format(&arena,
                                    "{\"jobName\": \"j\", \"image\": \"i\", %s \"taskRoles\": "
                                    "[{\"name\": \"r\", \"command\": \"c\"}]}",
                                    fields);
    int code;

    problems_init(&problems, &arena);
    assert_int_equal(spec_parse(text_of(text), &arena, &parsed, &problems), 0);
    problems_release(&problems);
    *file = (struct job_file){.name = "j", .user = "alice", .is_namespaced = true};
    code = v1_files_make(parsed.spec, &space, &arena, file, files, err);
    spec_free(parsed.spec);
    return code;
}

static const char *uri(const char *below)
{
    return arena_format(&arena, "%s%s", space.uri, below);
}

static void directories_of_a_job(void **state)
{
    struct job_file file;
    struct v1_files files;
    struct err err;
    (void)state;

    assert_int_equal(make("", &file, &files, &err), 0);
    assert_false(files.is_mounted);
    assert_null(files.auth_path);
    assert_string_equal(file.fs_uri, space.uri);
    assert_int_equal(access(in_work("files/Output/alice/j"), F_OK), -1);

    assert_int_equal(make("\"codeDir\": \"$QIZHI_DEFAULT_FS_URI/$PAI_USER_NAME/code/\", "
                          "\"dataDir\": \"/data\", \"authFile\": \"/alice/auth\",",
                          &file, &files, &err),
                     0);
    assert_true(files.is_mounted);
    assert_string_equal(files.mount.source, space.directory);
    assert_string_equal(files.mount.target, space.directory);
    assert_false(files.mount.is_read_only);
    assert_string_equal(file.code_dir, uri("/alice/code"));
    assert_string_equal(files.code_path, in_work("files/alice/code"));
    assert_string_equal(file.data_dir, uri("/data"));
    assert_string_equal(file.output_dir, uri("/Output/alice/j"));
    assert_string_equal(files.auth_path, "alice/auth");
    assert_int_equal(access(in_work("files/Output/alice/j"), F_OK), 0);

    assert_int_equal(make("\"dataDir\": \"hdfs://nn:9000/$PAI_JOB_NAME\", \"outputDir\": "
                          "\"$PAI_DEFAULT_FS_URI/out\",",
                          &file, &files, &err),
                     0);
    assert_string_equal(file.data_dir, "hdfs://nn:9000/alice~j");
    assert_string_equal(file.output_dir, uri("/out"));
    assert_string_equal(files.code_path, "");
    assert_int_equal(access(in_work("files/out"), F_OK), 0);
}

static void wrong_directories_of_a_job(void **state)
{
    static const struct {
        const char *fields, *field;
        int code;
    } cases[] = {
        {"\"codeDir\": \"/none\",", "codeDir", ERR_NOT_FOUND},
        {"\"codeDir\": \"/alice/auth\",", "codeDir", ERR_INVALID},
        {"\"codeDir\": \"hdfs://nn:9000/code\",", "codeDir", ERR_UNSUPPORTED},
        {"\"codeDir\": \"/relative\",", "codeDir", ERR_FORBIDDEN},
        {"\"dataDir\": \"$PAI_DEFAULT_FS_URI/../outside\",", "dataDir", ERR_INVALID},
        {"\"outputDir\": \"/absolute/x\",", "outputDir", ERR_FORBIDDEN},
        {"\"authFile\": \"/../outside/secret\",", "authFile", ERR_INVALID},
    };
    struct job_file file;
    struct v1_files files;
    struct err err;
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].code == ERR_FORBIDDEN && !space.has_openat2)
            continue;
        assert_int_equal(make(cases[i].fields, &file, &files, &err), cases[i].code);
        assert_string_equal(err.path, cases[i].field);
    }
}

static void logins_are_for_the_image(void **state)
{
    struct v1_files files = {.code_path = "", .auth_path = "alice/auth"};
    const char *user, *password;
    struct err err;
    (void)state;

    assert_int_equal(v1_files_login(&files, &space, "r:1/app", &arena, &user, &password, &err), 0);
    assert_string_equal(user, "bob");
    assert_string_equal(password, "secret");
    assert_int_equal(v1_files_login(&files, &space, "s:1/app", &arena, &user, &password, &err), 0);
    assert_string_equal(user, "");
    assert_string_equal(password, "");
    files.auth_path = "alice/none";
    assert_int_equal(v1_files_login(&files, &space, "r:1/app", &arena, &user, &password, &err),
                     ERR_NOT_FOUND);
    files.auth_path = NULL;
    assert_int_equal(v1_files_login(&files, &space, "r:1/app", &arena, &user, &password, &err), 0);
    assert_string_equal(user, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_below_however_they_are_written),
        cmocka_unit_test(other_paths_are_refused),
        cmocka_unit_test(links_lead_nowhere_else),
        cmocka_unit_test(files_are_read_whole_or_not_at_all),
        cmocka_unit_test(directories_of_a_job),
        cmocka_unit_test(folders_are_made_for_all_to_write),
        cmocka_unit_test(a_space_that_hides_the_image_is_refused),
        cmocka_unit_test(auth_files_are_read),
        cmocka_unit_test(wrong_auth_files_are_refused),
        cmocka_unit_test(a_password_goes_to_its_registry_only),
        cmocka_unit_test(wrong_directories_of_a_job),
        cmocka_unit_test(logins_are_for_the_image),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
