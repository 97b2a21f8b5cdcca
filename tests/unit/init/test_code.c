/* The code directory of a v1 job is copied into the task. */
#include "run.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "init/exit_file.h"

static void code_directory(void **state)
{
    (void)state;
    struct world w;
    char code[256];
    world_init(&w, "cat train/a/b.txt; readlink train/l; test -x train/run.sh");
    mkdir(path_in(&w, "code"), 0755);
    mkdir(path_in(&w, "code/a"), 0755);
    write_whole(path_in(&w, "code/a/b.txt"), "hello\n", 6);
    write_whole(path_in(&w, "code/run.sh"), "", 0);
    chmod(path_in(&w, "code/run.sh"), 0755);
    assert_int_equal(symlink("a/b.txt", path_in(&w, "code/l")), 0);
    w.job.code_dir = "hdfs://nn:9000/alice/train/";
    snprintf(code, sizeof code, "%s/code", w.root);
    w.task.code_path = code;
    world_run(&w);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    log_is(&w, "stdout", "hello\na/b.txt\n");
    folder_remove(w.root);
}

static void code_directory_too_large(void **state)
{
    (void)state;
    struct world w;
    char code[256], path[300];
    world_init(&w, "echo never");
    mkdir(path_in(&w, "code"), 0755);
    snprintf(code, sizeof code, "%s/code", w.root);
    snprintf(path, sizeof path, "%s/data", code);
    write_whole(path, "", 0);
    assert_int_equal(truncate(path, 200000001), 0);
    w.job.code_dir = "/alice/code";
    w.task.code_path = code;
    world_run(&w);
    end_is(&w, EXIT_STAGE_SETUP, EXIT_FILE_CODE_TOO_BIG, 0);
    assert_non_null(strstr(w.end.message, "more than 200000000 bytes"));
    log_is(&w, "stdout", "");
    folder_remove(w.root);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(code_directory),
    cmocka_unit_test(code_directory_too_large),
};
UNIT_FILE(tests, run_setup, NULL);
