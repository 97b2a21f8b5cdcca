/* Paths of pages give the one page, paths of files their file, and nothing leads out of the folder.
 *
 * Covers: src/portal/none.c */
#include "folder.h"
#include "unit.h"

#include "base/arena.h"
#include "base/err.h"
#include "portal/files.h"
#include <stdio.h>

static void built_in_files_are_found_by_path(void **state)
{
    (void)state;
    if (!portal_is_built_in()) {
        assert_null(portal_find(TEXT("/")));
        assert_null(portal_find(TEXT("/assets/index.js")));
        return;
    }
    for (size_t i = 0; i < PORTAL_FILE_COUNT; i++) {
        const struct portal_file *file = &PORTAL_FILES[i];
        char path[256];
        snprintf(path, sizeof path, "/%s", file->path);
        assert_ptr_equal(portal_find(text_of(path)), file);
        assert_true(file->plain.length > 0);
        assert_true(text_starts(text_of(file->etag), TEXT("W/\"")));
        assert_true(!file->brotli.at || file->brotli.length < file->plain.length);
        assert_true(!file->gzip.at || file->gzip.length < file->plain.length);
    }
}

static void every_page_is_the_one_page(void **state)
{
    (void)state;
    const struct portal_file *page = portal_find(TEXT("/"));
    assert_ptr_equal(portal_find(TEXT("/jobs")), page);
    assert_ptr_equal(portal_find(TEXT("/jobs/alice~train")), page);
    assert_null(portal_find(TEXT("/assets/none.js")));
    assert_null(portal_find(TEXT("/assets/")));
    if (portal_is_built_in())
        assert_string_equal(page->path, "index.html");
}

static void a_folder_gives_its_files(void **state)
{
    (void)state;
    struct arena arena;
    struct portal_file file;
    struct err err;
    arena_init(&arena);
    folder_put("index.html", "<!doctype html>");
    folder_put("assets/main-1.js", "start()");
    assert_int_equal(portal_read(in_folder(""), TEXT("/jobs"), &arena, &file, &err), 0);
    assert_true(text_is(file.plain, "<!doctype html>"));
    assert_string_equal(file.type, "text/html; charset=utf-8");
    assert_null(file.etag);
    assert_int_equal(portal_read(in_folder(""), TEXT("/assets/main-1.js"), &arena, &file, &err), 0);
    assert_true(text_is(file.plain, "start()"));
    assert_string_equal(file.type, "text/javascript; charset=utf-8");
    assert_int_equal(portal_read(in_folder(""), TEXT("/assets/none.js"), &arena, &file, &err),
                     ERR_NOT_FOUND);
    arena_release(&arena);
}

static void nothing_leads_out_of_the_folder(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "/assets/../index.html", "/assets/%2e%2e/index.html",  "/assets//index.html",
        "/assets/.hidden",       "/assets/a/../../index.html", "/assets/a\\b",
    };
    struct arena arena;
    struct portal_file file;
    struct err err;
    arena_init(&arena);
    folder_put("index.html", "<!doctype html>");
    folder_put("assets/.hidden", "secret");
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_int_equal(portal_read(in_folder(""), text_of(paths[i]), &arena, &file, &err),
                         ERR_NOT_FOUND);
    arena_release(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(built_in_files_are_found_by_path),
    cmocka_unit_test(every_page_is_the_one_page),
    cmocka_unit_test(a_folder_gives_its_files),
    cmocka_unit_test(nothing_leads_out_of_the_folder),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
