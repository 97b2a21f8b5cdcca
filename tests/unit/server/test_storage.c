/* The storages of a job: whose they are, and what is mounted. */
#include "space.h"
#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "server/storage.h"
#include "spec/spec.h"

static const char FILE_HEAD[] = "protocolVersion: 2\nname: j\ntype: job\nprerequisites:\n"
                                "- {name: i, type: dockerimage, uri: d}\ntaskRoles:\n  w:\n"
                                "    dockerImage: i\n    resourcePerInstance: {cpu: 1, memoryMB: "
                                "1, gpu: 0}\n    commands: [x]\nextras:\n  storages: ";

static struct spec *spec_of(const char *storages)
{
    struct spec_parsed parsed = {0};
    struct problems problems;
    const char *text = arena_format(&arena, "%s%s\n", FILE_HEAD, storages);
    problems_init(&problems, &arena);
    assert_int_equal(spec_parse(text_of(text), &arena, &parsed, &problems), 0);
    problems_release(&problems);
    return parsed.spec;
}

static int make(struct storage_list list, const char *user, const char *storages,
                struct engine_mount *mounts, struct err *err)
{
    struct spec *spec = spec_of(storages);
    int code = storage_mounts_make(list, user, spec, &arena, mounts, err);
    for (size_t i = 0; code == 0 && i < spec->storage_count; i++)
        mounts[i].target = arena_copy(&arena, text_of(mounts[i].target));
    spec_free(spec);
    return code;
}

static void mounts_of_a_job(void **state)
{
    const char *corpus = arena_copy(&arena, text_of(in_work("outside")));
    const char *homes = arena_copy(&arena, text_of(in_work("homes")));
    const struct storage items[] = {
        {.name = "corpus", .directory = corpus, .is_shared = true, .is_read_only = true},
        {.name = "home", .directory = homes},
    };
    const struct storage_list list = {items, 2};
    struct engine_mount mounts[2];
    struct stat status;
    struct err err;
    (void)state;

    assert_int_equal(
        make(list, "ann", "[{name: home}, {name: corpus, mountPath: /c}]", mounts, &err), ERR_IO);
    assert_int_equal(mkdir(homes, 0755), 0);
    assert_int_equal(
        make(list, "ann", "[{name: home}, {name: corpus, mountPath: /c}]", mounts, &err), 0);
    /* outer folders first */
    assert_string_equal(mounts[0].source, corpus);
    assert_string_equal(mounts[0].target, "/c");
    assert_true(mounts[0].is_read_only);
    assert_string_equal(mounts[1].source, arena_format(&arena, "%s/ann", homes));
    assert_string_equal(mounts[1].target, "/mnt/home");
    assert_false(mounts[1].is_read_only);
    assert_int_equal(stat(mounts[1].source, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0777);
    /* a folder is not what somebody put in its place, nor another's */
    assert_int_equal(symlink("/", arena_format(&arena, "%s/eve", homes)), 0);
    assert_int_equal(make(list, "eve", "[{name: home}]", mounts, &err), ERR_IO);
    assert_int_equal(make(list, "..", "[{name: home}]", mounts, &err), ERR_INVALID);
    assert_int_equal(make(list, "ann", "[{name: gone}]", mounts, &err), ERR_INVALID);
    assert_string_equal(err.text, "storage gone is not configured any more");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(mounts_of_a_job),
};
UNIT_FILE(tests, setup, teardown);
