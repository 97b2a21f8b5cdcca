/* CDI specifications: devices by name, and what they add to a container. */
#include "machine.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/cdi.h"
#include "engine/local/inventory.h"
#include "sys/file.h"

static void test_cdi(void **state)
{
    (void)state;
    struct cdi cdi = {0};
    struct arena arena;
    struct device_edits edits;
    struct err err = {0};
    arena_init(&arena);
    folder_put("cdi/b.yaml", specification);
    folder_put("cdi/a.json",
               "{\"cdiVersion\":\"0.5.0\",\"kind\":\"amd.com/gpu\",\"devices\":[{\"name\":"
               "\"0\",\"containerEdits\":{}}]}");
    folder_put("cdi/broken.json", "{");
    folder_put("cdi/other.txt", "{}");
    const char *directories[] = {"/no/such/folder", in_folder("cdi")};
    cdi_load(&cdi, directories, 2, &arena);
    assert_int_equal(cdi.count, 4);
    const struct cdi_device *both[] = {cdi_find(&cdi, "nvidia.com/gpu", "0"),
                                       cdi_find(&cdi, "nvidia.com/gpu", "1")};
    assert_null(cdi_find(&cdi, "nvidia.com/gpu", "7"));
    assert_int_equal(cdi_edits(both, 2, &arena, &edits, &err), 0);
    assert_int_equal(edits.device_count, 3); /* the common ones once */
    assert_string_equal(edits.devices[0].path, "/dev/nvidiactl");
    assert_int_equal(edits.devices[0].major, 195);
    assert_string_equal(edits.devices[2].path, "/dev/gpu1");
    assert_int_equal(edits.devices[2].major, 1); /* of /dev/zero */
    assert_int_equal(edits.devices[2].minor, 5);
    assert_string_equal(edits.devices[2].access, "rw");
    assert_int_equal(edits.env_count, 2);
    assert_int_equal(edits.mount_count, 1);
    assert_int_equal(edits.mounts[0].option_count, 3);
    assert_string_equal(edits.mounts[0].options[2], "rbind");
    assert_int_equal(edits.hook_count, 1);
    assert_string_equal(edits.hooks[0].args[1], "ldcache");
    const struct cdi_device *gone = cdi_find(&cdi, "nvidia.com/gpu", "gone");
    assert_int_equal(cdi_edits(&gone, 1, &arena, &edits, &err), ERR_NOT_FOUND);
    assert_int_equal(cdi_parse(&cdi, TEXT("kind: x\n"), &arena, &err), ERR_INVALID);
    cdi_release(&cdi);
    arena_release(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_cdi),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
