#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "doc/doc.h"
#include "engine/engine.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/pod_volumes.h"
#include "scratch.h"

/* Both lists of a pod, in one object. */
static const struct doc *written_for(const struct container *container)
{
    cleanup_problems struct problems problems;
    cleanup_buf struct buf bytes = BUF_INIT;
    struct json_writer json;
    json_init(&json, &bytes);
    json_object(&json);
    pod_volumes_write(&json, container, 0, "skep-7");
    pod_mounts_write(&json, container);
    json_object_end(&json);
    problems_init(&problems, &arena);
    const struct doc *doc = doc_parse(buf_as_text(&bytes), DOC_JSON, &arena, &problems);
    assert_non_null(doc);
    assert_int_equal(problems.error_count, 0);
    return doc;
}

static const struct doc *named(const struct doc *list, const char *key, const char *name)
{
    for (size_t i = 0; i < doc_count(list); i++)
        if (strcmp(object_string(list->as.list.items[i], key), name) == 0)
            return list->as.list.items[i];
    return NULL;
}

static void storages_are_claims_or_folders_of_the_node(void **state)
{
    (void)state;
    static const struct engine_mount mounts[] = {
        {.source = "/srv/corpus", .target = "/mnt/corpus", .is_read_only = true},
        {.source = "", .target = "/mnt/all", .claim = "data", .claim_folder = ""},
        {.source = "", .target = "/mnt/home", .claim = "data", .claim_folder = "ann"},
    };
    const struct container container = {.mounts = mounts, .mount_count = COUNT_OF(mounts)};
    struct err err;
    assert_int_equal(pod_mounts_check(&container, &err), 0);
    const struct doc *written = written_for(&container);
    const struct doc *volumes = doc_get(written, "volumes");
    const struct doc *inside = doc_get(written, "volumeMounts");
    assert_int_equal(doc_count(volumes), 5 + 2); /* a claim is one volume, however often mounted */
    const struct doc *corpus = named(inside, "mountPath", "/mnt/corpus");
    assert_true(doc_get_bool(corpus, "readOnly", false));
    const struct doc *volume = named(volumes, "name", object_string(corpus, "name"));
    assert_string_equal(object_string(volume, "hostPath.path"), "/srv/corpus");
    assert_string_equal(object_string(volume, "hostPath.type"), "Directory");
    const struct doc *all = named(inside, "mountPath", "/mnt/all");
    volume = named(volumes, "name", object_string(all, "name"));
    assert_string_equal(object_string(volume, "persistentVolumeClaim.claimName"), "data");
    assert_null(doc_get(all, "subPath"));
    assert_false(doc_get_bool(all, "readOnly", false));
    const struct doc *home = named(inside, "mountPath", "/mnt/home");
    assert_string_equal(object_string(home, "name"), object_string(all, "name"));
    assert_string_equal(object_string(home, "subPath"), "ann");
}

static void a_storage_that_no_pod_can_have_is_refused(void **state)
{
    (void)state;
    static const struct engine_mount mounts[] = {
        {.source = "/data", .target = "/mnt/data", .is_root_squashed = true},
        {.source = "/data", .target = "/mnt/a:b"}};
    struct err err;
    for (size_t i = 0; i < COUNT_OF(mounts); i++) {
        const struct container container = {.mounts = &mounts[i], .mount_count = 1};
        assert_int_equal(pod_mounts_check(&container, &err), ERR_UNSUPPORTED);
        assert_non_null(strstr(err.text, mounts[i].target));
    }
    /* the API server makes a key of it that nobody could read */
    char path[514] = "/";
    memset(path + 1, 'p', sizeof path - 2);
    for (int i = 0; i < 2; i++) {
        const struct engine_mount mount = {.source = "/data", .target = path + (i ? 0 : 1)};
        const struct container container = {.mounts = &mount, .mount_count = 1};
        assert_int_equal(pod_mounts_check(&container, &err), i ? ERR_UNSUPPORTED : 0);
    }
    assert_non_null(strstr(err.text, "more than 512 bytes"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(storages_are_claims_or_folders_of_the_node),
    cmocka_unit_test(a_storage_that_no_pod_can_have_is_refused),
};

UNIT_FILE(tests, setup, teardown);
