/* The directories and the login of a v1 job. */
#include "space.h"
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "init/job_file.h"
#include "server/v1_files.h"
#include "spec/spec.h"

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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(directories_of_a_job),
    cmocka_unit_test(wrong_directories_of_a_job),
    cmocka_unit_test(logins_are_for_the_image),
};
UNIT_FILE(tests, setup, teardown);
