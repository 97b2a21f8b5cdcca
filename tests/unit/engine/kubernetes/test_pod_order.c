/* What pods are made of is kept whole until it is their turn, and what they share once. */
#include "unit.h"

#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "engine/kubernetes/node_object.h"
#include "engine/kubernetes/pod_make.h"
#include "engine/kubernetes/pod_order.h"

static const struct pod_settings settings = {
    .instance = "skep",
    .space = "jobs",
    .init_image = "i",
    .runtime_class = "",
    .priority_class = "",
    .service_account = "",
    .infiniband_resource = "rdma/hca",
    .nodes = {.gpu_resource = "nvidia.com/gpu", .taint = ""}};

/* Both objects of it. */
static void objects(const struct container *container, struct buf *out)
{
    pod_write(container, &settings, NULL, out);
    pod_secret_write(container, &settings, out);
}

static void an_order_is_a_whole_copy(void **state)
{
    (void)state;
    char job_file[4096], word[] = "user~job";
    char source[] = "/mnt/a", target[] = "/data", claim[] = "lab", folder[] = "ann";
    const struct engine_mount mounts[] = {
        {.source = source, .target = target, .is_read_only = true},
        {.source = "", .target = target, .claim = claim, .claim_folder = folder}};
    char *const borrowed[] = {source, target, claim, folder};
    uint16_t gpus[] = {1, 3};
    struct engine_port ports[] = {{100, 2}};
    struct engine_file files[] = {{"task", TEXT("secret"), 0400},
                                  {"job", {job_file, sizeof job_file}, 0444}};
    memset(job_file, 'j', sizeof job_file);
    const struct container container = {.attempt = {7},
                                        .job = word,
                                        .role = "main",
                                        .node = "n1",
                                        .image = "a/b:1",
                                        .registry_user = "me",
                                        .registry_password = "pw",
                                        .cpu = 1,
                                        .memory_mib = 100,
                                        .gpus = gpus,
                                        .gpu_count = 2,
                                        .wants_infiniband = true,
                                        .mounts = mounts,
                                        .mount_count = 2,
                                        .ports = ports,
                                        .port_count = 1,
                                        .files = files,
                                        .file_count = 2};
    struct pod_shares shares = {0};
    cleanup_buf struct buf wanted = BUF_INIT, got = BUF_INIT;
    objects(&container, &wanted);
    struct pod_order *order = pod_order_new(&container, &shares);
    struct pod_order *other = pod_order_new(&container, &shares);
    assert_int_equal(shares.all.count, 1);
    assert_in_range(order->bytes, 1, 700);  /* without the job's file */
    memset(job_file, 'x', sizeof job_file); /* what was borrowed has gone */
    memset(word, 'x', sizeof word - 1);
    for (size_t i = 0; i < COUNT_OF(borrowed); i++)
        memset(borrowed[i], 'x', strlen(borrowed[i]));
    gpus[0] = 9;
    ports[0].first = 9;
    pod_order_free(order, &shares);
    objects(&other->container, &got);
    assert_string_equal(buf_cstr(&got), buf_cstr(&wanted));
    assert_int_equal(other->container.gpus[0], 1);
    assert_int_equal(other->container.ports[0].first, 100);
    assert_null(other->container.virtual_cluster);
    pod_order_free(other, &shares);
    pod_order_free(NULL, &shares);
    pod_shares_release(&shares);
}

static struct pod_order *order_of(char fill, struct pod_shares *shares)
{
    char content[600];
    memset(content, fill, sizeof content);
    const struct engine_mount mount = {.source = "/a",
                                       .target = "/b",
                                       .claim = "data",
                                       .claim_folder = "ann",
                                       .is_read_only = true};
    const struct engine_file file = {"job", {content, sizeof content}, 0};
    const struct container container = {.attempt = {1},
                                        .job = "j",
                                        .role = "r",
                                        .node = "n",
                                        .image = "i",
                                        .mounts = &mount,
                                        .mount_count = 1,
                                        .files = &file,
                                        .file_count = 1};
    return pod_order_new(&container, shares);
}

static void shared_files_go_with_their_last_user(void **state)
{
    (void)state;
    struct pod_order *orders[20];
    struct pod_shares shares = {0};
    for (size_t i = 0; i < COUNT_OF(orders); i++)
        orders[i] = order_of((char)('a' + i / 2), &shares);
    assert_int_equal(shares.all.count, 10);
    for (size_t i = 0; i < COUNT_OF(orders); i++) {
        assert_int_equal(orders[i]->container.files[0].content.at[599], 'a' + i / 2);
        assert_string_equal(orders[i]->container.mounts[0].target, "/b");
        assert_string_equal(orders[i]->container.mounts[0].claim, "data");
        assert_string_equal(orders[i]->container.mounts[0].claim_folder, "ann");
        pod_order_free(orders[i], &shares);
        assert_int_equal(shares.all.count, 10 - (i + 1) / 2);
    }
    pod_shares_release(&shares);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_order_is_a_whole_copy),
    cmocka_unit_test(shared_files_go_with_their_last_user),
};

UNIT_FILE(tests, NULL, NULL);
