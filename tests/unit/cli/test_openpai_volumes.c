/* Storages and nodes of an OpenPAI cluster. */
#include "openpai_world.h"
#include "unit.h"

#include <string.h>

#include "cli/openpai_volumes.h"

static void noted(const struct openpai_world *world, enum openpai_note_kind kind, const char *path,
                  const char *says)
{
    for (size_t i = 0; i < world->output.note_count; i++) {
        const struct openpai_note *note = &world->output.notes[i];
        if (note->kind == kind && strcmp(note->path, path) == 0 && strstr(note->text, says))
            return;
    }
    fail_msg("there is no note on %s that says: %s", path, says);
}

static bool has(const struct buf *text, const char *part)
{
    return text->length && strstr(buf_cstr(text), part) != NULL;
}

static const char VOLUMES[] =
    "kind: List\nitems:\n"
    "- kind: PersistentVolumeClaim\n  metadata: {name: team, labels: {share: 'false'}}\n"
    "  spec: {volumeName: v1, accessModes: [ReadWriteMany]}\n"
    "- kind: PersistentVolumeClaim\n  metadata: {name: data}\n"
    "  spec: {volumeName: v2, accessModes: [ReadOnlyMany]}\n"
    "- kind: PersistentVolumeClaim\n  metadata: {name: waits}\n  spec: {}\n"
    "- kind: PersistentVolumeClaim\n  metadata: {name: ../up}\n  spec: {volumeName: v1}\n"
    "- kind: PersistentVolume\n  metadata: {name: v1, uid: u}\n"
    "  spec: {nfs: {server: 10.0.0.9, path: /export/team}, accessModes: [ReadWriteMany],\n"
    "    capacity: {storage: 5Gi}, mountOptions: [nfsvers=4.1], storageClassName: old,\n"
    "    persistentVolumeReclaimPolicy: Delete, claimRef: {namespace: default, name: team}}\n"
    "- kind: PersistentVolume\n  metadata: {name: v2}\n  spec: {csi: {driver: x}}\n";

static void claims_become_folders_where_tasks_run_here(void **state)
{
    struct openpai_world *world = *state;
    world->input.volumes = openpai_world_read(world, VOLUMES);
    world->input.is_local = true;
    openpai_world_import(world, "{}");
    assert_true(has(&world->output.skepd, "storages:\n"
                                          "- name: \"team\"\n  directory: \"/mnt/team\"\n"
                                          "  share: false\n  type: nfs\n  server: \"10.0.0.9\"\n"
                                          "  path: \"/export/team\"\n"
                                          "- name: \"data\"\n  directory: \"/mnt/data\"\n"
                                          "  readOnly: true\n"));
    assert_int_equal(world->output.claims.length, 0);
    noted(world, NOTE_TAKEN, "storages: team", "storages");
    noted(world, NOTE_TO_DO, "storages: team", "mount 10.0.0.9:/export/team at /mnt/team");
    noted(world, NOTE_TO_DO, "storages: data", "no NFS");
    noted(world, NOTE_GONE, "storages: waits", "bound to no volume");
    noted(world, NOTE_GONE, "storages: ../up", "");
}

/* A pod mounts claims of its own namespace, and a volume is bound to one claim. */
static void claims_stay_claims_where_tasks_are_pods(void **state)
{
    struct openpai_world *world = *state;
    world->input.volumes = openpai_world_read(world, VOLUMES);
    openpai_world_import(world, "{}");
    assert_true(has(&world->output.skepd, "storages:\n"
                                          "- name: \"team\"\n  claim: \"team\"\n"
                                          "  share: false\n  type: nfs\n  server: \"10.0.0.9\"\n"
                                          "  path: \"/export/team\"\n"
                                          "- name: \"data\"\n  claim: \"data\"\n"
                                          "  readOnly: true\n"));
    assert_false(has(&world->output.skepd, "directory"));
    assert_true(
        has(&world->output.claims,
            "---\n{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":"
            "\"skep-team\"},\"spec\":{\"nfs\":{\"server\":\"10.0.0.9\",\"path\":\"/export/team\"},"
            "\"accessModes\":[\"ReadWriteMany\"],\"capacity\":{\"storage\":\"5Gi\"},"
            "\"mountOptions\":[\"nfsvers=4.1\"],\"storageClassName\":\"\","
            "\"persistentVolumeReclaimPolicy\":\"Retain\","
            "\"claimRef\":{\"namespace\":\"skep-jobs\",\"name\":\"team\"}}}\n"
            "---\n{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":"
            "\"team\",\"namespace\":\"skep-jobs\"},\"spec\":{\"accessModes\":[\"ReadWriteMany\"],"
            "\"storageClassName\":\"\",\"volumeName\":\"skep-team\","
            "\"resources\":{\"requests\":{\"storage\":\"5Gi\"}}}}\n"));
    assert_true(has(&world->output.claims, "\"name\":\"skep-data\""));
    assert_false(has(&world->output.claims, "waits"));
    noted(world, NOTE_TAKEN, "storages: team", "as a claim");
    noted(world, NOTE_TO_DO, "storages: team", "kubectl apply -f claims.yaml");
    noted(world, NOTE_TO_DO, "storages: data", "no NFS");
    noted(world, NOTE_TO_DO, "storages", "without a job");
    noted(world, NOTE_GONE, "storages: waits", "bound to no volume");
}

static void what_is_no_list_of_volumes_is_told(void **state)
{
    struct openpai_world *world = *state;
    openpai_world_import(world, "{}");
    noted(world, NOTE_TO_DO, "", "volumes.yaml");
    world->input.volumes = openpai_world_read(world, "{}");
    openpai_world_import(world, "{}");
    noted(world, NOTE_TO_DO, "items", "kubectl get pvc,pv");
    assert_false(has(&world->output.skepd, "storages"));
}

static void groups_have_their_storages(void **state)
{
    struct openpai_world *world = *state;
    openpai_world_import(
        world, "authentication: {group-manager: {grouplist: [{groupname: lab, extension: {acls: "
               "{virtualClusters: [a], storageConfigs: [team, data]}}}]}}\n");
    assert_true(has(&world->output.groups, "\ngroup 'lab' --vc 'a' --storages 'team,data'\n"));
}

#define LAYOUT_OF(DEVICE)                                                                          \
    "machine-sku:\n  big: {mem: 100Gi, " DEVICE "}\n  master: {mem: 10Gi}\nmachine-list:\n"        \
    "- {hostname: a, machine-type: big, pai-worker: 'true'}\n"                                     \
    "- {hostname: b, nodename: node-b, machine-type: big, pai-worker: 'true'}\n"                   \
    "- {hostname: m, machine-type: master, pai-master: 'true'}\n- 7\n"

static void nodes_are_made_ready(void **state)
{
    struct openpai_world *world = *state;
    world->input.layout = openpai_world_read(
        world, LAYOUT_OF("computing-device: {type: nvidia.com/gpu, model: V100, count: 4}"));
    openpai_world_import(world, "{}");
    assert_true(has(&world->output.nodes, "\nnode 'a' nvidia.com/gpu.count=4\n"));
    assert_true(has(&world->output.nodes, "\nnode 'node-b' nvidia.com/gpu.count=4\n"));
    assert_false(has(&world->output.nodes, "node 'm'"));
    assert_true(has(&world->output.skepd, "    gpus: \"env\"\n"));
    noted(world, NOTE_TO_DO, "machine-list", "run nodes.sh");
    world->input.layout = openpai_world_read(world, LAYOUT_OF("gpu: {type: V100, count: 2}"));
    openpai_world_import(world, "{}");
    assert_true(has(&world->output.nodes, "\nnode 'a' nvidia.com/gpu.count=2\n"));
}

static void a_device_plugin_is_told_of(void **state)
{
    struct openpai_world *world = *state;
    world->input.layout = openpai_world_read(
        world, LAYOUT_OF("computing-device: {type: amd.com/gpu, model: MI50, count: 4}"));
    openpai_world_import(world, "{}");
    assert_true(has(&world->output.skepd, "    gpuResource: \"amd.com/gpu\"\n"));
    assert_true(has(&world->output.skepd, "    gpus: \"device-plugin\"\n"));
    assert_true(has(&world->output.nodes, "\nnode 'a'\n"));
    noted(world, NOTE_TO_DO, "machine-sku", "amd.com/gpu");
    world->input.config = openpai_world_read(world, "enable_hived_scheduler: 'false'\n");
    world->input.layout = openpai_world_read(
        world, LAYOUT_OF("computing-device: {type: nvidia.com/gpu, model: V100, count: 4}"));
    openpai_world_import(world, "{}");
    assert_true(has(&world->output.skepd, "    gpus: \"device-plugin\"\n"));
    assert_false(has(&world->output.skepd, "gpuResource"));
    world->input.is_local = true;
    openpai_world_import(world, "{}");
    assert_int_equal(world->output.nodes.length, 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, openpai_world_make, openpai_world_free)
static const struct CMUnitTest tests[] = {
    TEST(claims_become_folders_where_tasks_run_here),
    TEST(claims_stay_claims_where_tasks_are_pods),
    TEST(what_is_no_list_of_volumes_is_told),
    TEST(groups_have_their_storages),
    TEST(nodes_are_made_ready),
    TEST(a_device_plugin_is_told_of),
};
UNIT_FILE(tests, NULL, NULL);
