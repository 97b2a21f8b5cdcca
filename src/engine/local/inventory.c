#include "engine/local/inventory.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/cdi.h"
#include "engine/local/gpu_watch.h"
#include "engine/local/local.h"
#include "engine/local/nvml.h"
#include "engine/local/task.h"
#include "engine/local/topology.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include "sys/log.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { GPUS_MAX = NVML_GPUS_MAX, MEMORY_KEPT_PART = 16, MEMORY_KEPT_MAX_MIB = 2048 };

static const char nvidia_kind[] = "nvidia.com/gpu";

struct inventory {
    struct arena arena;
    struct node_facts node;
    char name[256], address[64], gpu_type[96], reason[200];
    char ills[HEALTH_KINDS][200];
    char lost[200]; /* GPUs that are, beside others that work */
    bool is_nvidia;
    const char *cdi_kind;       /* of the GPUs; "" = no specification names them */
    struct gpu_watch *watch;    /* NULL: simulated GPUs */
    struct local_engine *local; /* for the watch's thread */
    struct nvml_gpu gpus[GPUS_MAX];
    uint16_t numa[GPUS_MAX], places[GPUS_MAX]; /* places: the switches as they are */
    uint16_t pci_switch[GPUS_MAX];             /* … with those that are lost marked */
    struct cdi cdi;
    pthread_mutex_t lock; /* of the node's health */
};

static void name_find(struct inventory *inventory, const char *wanted)
{
    if (wanted[0])
        snprintf(inventory->name, sizeof inventory->name, "%.255s", wanted);
    else if (gethostname(inventory->name, sizeof inventory->name - 1) < 0 || !inventory->name[0])
        snprintf(inventory->name, sizeof inventory->name, "localhost");
}

/* The address from which this machine would speak to the world; nothing is sent. */
static void address_find(struct inventory *inventory, const char *wanted)
{
    struct sockaddr_in far = {.sin_family = AF_INET, .sin_port = htons(9)}, near = {0};
    socklen_t size = sizeof near;
    snprintf(inventory->address, sizeof inventory->address, "%.63s",
             wanted[0] ? wanted : "127.0.0.1");
    if (wanted[0])
        return;
    cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, "203.0.113.1", &far.sin_addr); /* a documentation address */
    if (fd >= 0 && connect(fd, (struct sockaddr *)&far, sizeof far) == 0 &&
        getsockname(fd, (struct sockaddr *)&near, &size) == 0)
        inet_ntop(AF_INET, &near.sin_addr, inventory->address, sizeof inventory->address);
}

static uint32_t cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (uint32_t)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

/* What may be given to tasks. Without a share of its own the machine would run out of memory when
 * tasks use just what they were promised. */
static uint64_t memory_mib(void)
{
    cleanup_buf struct buf text = BUF_INIT;
    unsigned long long kib = 0;
    if (file_read("/proc/meminfo", 65536, &text, NULL) == 0)
        sscanf(buf_cstr(&text), "MemTotal: %llu kB", &kib);
    uint64_t total = kib >> 10, kept = total / MEMORY_KEPT_PART;
    return total - (kept < MEMORY_KEPT_MAX_MIB ? kept : MEMORY_KEPT_MAX_MIB);
}

/* "NVIDIA Tesla V100-SXM2-16GB" → "Tesla-V100-SXM2-16GB": a word for job files. */
static void type_set(struct inventory *inventory, const char *name)
{
    if (strncmp(name, "NVIDIA ", 7) == 0)
        name += 7;
    snprintf(inventory->gpu_type, sizeof inventory->gpu_type, "%.95s", name);
    for (char *at = inventory->gpu_type; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("._-", *at))
            *at = '-';
}

static void places_find(struct inventory *inventory, const char *xml)
{
    struct topology_place places[GPUS_MAX];
    struct err err = {0};
    uint32_t count = inventory->node.gpu_count;
    for (uint32_t i = 0; i < count; i++)
        places[i] = (struct topology_place){.bus_id = inventory->gpus[i].bus_id};
    if (topology_places(xml, places, count, &err) < 0)
        log_warning("engine", "%s", err.text);
    for (uint32_t i = 0; i < count; i++) {
        inventory->numa[i] = places[i].numa;
        inventory->pci_switch[i] = inventory->places[i] = places[i].pci_switch;
    }
    inventory->node.gpu_numa = inventory->numa;
    inventory->node.gpu_switch = inventory->pci_switch;
}

/* Without NVML: devices that a specification numbers from 0, of any vendor. */
static void gpus_from_cdi(struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->cdi.count; i++) {
        const struct cdi_device *first = &inventory->cdi.items[i];
        const char *class = strchr(first->kind, '/');
        char name[16] = "0";
        uint32_t count = 0;
        if (!class || strcmp(class, "/gpu") != 0)
            continue;
        while (count < GPUS_MAX && cdi_find(&inventory->cdi, first->kind, name))
            snprintf(name, sizeof name, "%u", ++count);
        if (count == 0)
            continue;
        inventory->node.gpu_count = count;
        inventory->cdi_kind = first->kind;
        type_set(inventory, first->kind);
        return;
    }
}

static void watch_changed(void *context);

/* By NVML: the type is that of the first one that could tell. */
static bool gpus_from_nvml(struct inventory *inventory, const struct engine_local_config *config)
{
    struct err err = {0};
    int code = 0;
    const struct gpu_watch_config watch = {
        .library = config->nvml_path[0] ? config->nvml_path : "libnvidia-ml.so.1",
        .interval_ms = config->gpu_sample_ms ? config->gpu_sample_ms : 5000,
        .list_ms = config->nvml_list_ms ? config->nvml_list_ms : GPU_WATCH_LIST_MS,
        .changed = watch_changed,
        .context = inventory,
    };
    inventory->watch = gpu_watch_new(&watch, &err, &code);
    if (code < 0 && code != ERR_NOT_FOUND)
        log_warning("engine", "%s", err.text);
    const size_t count = gpu_watch_count(inventory->watch);
    if (count == 0)
        return false;
    inventory->node.gpu_count = (uint32_t)count;
    inventory->is_nvidia = true;
    type_set(inventory, "nvidia");
    for (size_t i = count; i-- > 0;) {
        inventory->gpus[i] = *gpu_watch_gpu(inventory->watch, i);
        if (!inventory->gpus[i].is_lost)
            type_set(inventory, inventory->gpus[i].name);
    }
    return true;
}

static void gpus_find(struct inventory *inventory, const struct engine_local_config *config)
{
    inventory->cdi_kind = "";
    if (config->simulated_gpus) {
        inventory->node.gpu_count =
            config->simulated_gpus < GPUS_MAX ? config->simulated_gpus : GPUS_MAX;
        inventory->node.is_gpu_simulated = true;
        type_set(inventory,
                 config->simulated_gpu_type[0] ? config->simulated_gpu_type : "simulated");
        return;
    }
    cdi_load(&inventory->cdi, config->cdi_directories, config->cdi_directory_count,
             &inventory->arena);
    if (!gpus_from_nvml(inventory, config)) {
        gpus_from_cdi(inventory);
        return;
    }
    if (cdi_find(&inventory->cdi, nvidia_kind, "0") ||
        cdi_find(&inventory->cdi, nvidia_kind, inventory->gpus[0].uuid))
        inventory->cdi_kind = nvidia_kind;
    places_find(inventory, config->topology_path);
}

struct inventory *inventory_new(const struct engine_local_config *config)
{
    struct inventory *inventory = mem_zero(1, sizeof *inventory);
    arena_init(&inventory->arena);
    pthread_mutex_init(&inventory->lock, NULL);
    name_find(inventory, config->node_name);
    address_find(inventory, config->address);
    inventory->node.cpu = config->cpu ? config->cpu : cpu_count();
    inventory->node.memory_mib = config->memory_mib ? config->memory_mib : memory_mib();
    inventory->node.is_healthy = true;
    gpus_find(inventory, config);
    inventory->node.name = inventory->name;
    inventory->node.address = inventory->address;
    inventory->node.gpu_type = inventory->gpu_type;
    inventory->node.reason = inventory->reason;
    return inventory;
}

void inventory_free(struct inventory *inventory)
{
    if (!inventory)
        return;
    gpu_watch_free(inventory->watch);
    cdi_release(&inventory->cdi);
    arena_release(&inventory->arena);
    pthread_mutex_destroy(&inventory->lock);
    mem_free(inventory);
}

const struct node_facts *inventory_node(const struct inventory *inventory)
{
    return &inventory->node;
}

void inventory_post(struct inventory *inventory, struct local_engine *local)
{
    pthread_mutex_lock(&inventory->lock);
    struct engine_event event = {
        .kind = ENGINE_NODE, .node = &inventory->node, .reason = "", .message = ""};
    local->sink.post(local->sink.context, &event);
    pthread_mutex_unlock(&inventory->lock);
}

/* Under the lock. True: it is to be told. */
static bool health_set(struct inventory *inventory, enum health kind, const char *reason)
{
    char *ill = inventory->ills[kind];
    bool is_changed = !ill[0] != !reason[0] || (kind == HEALTH_GPUS && strcmp(ill, reason) != 0);
    snprintf(ill, sizeof inventory->ills[kind], "%s", reason);
    const char *first = "";
    for (int i = HEALTH_KINDS; i-- > 0;)
        if (inventory->ills[i][0])
            first = inventory->ills[i];
    inventory->node.is_healthy = !first[0];
    snprintf(inventory->reason, sizeof inventory->reason, "%s", first[0] ? first : inventory->lost);
    return is_changed;
}

void inventory_health(struct inventory *inventory, struct local_engine *local, enum health kind,
                      const char *reason)
{
    pthread_mutex_lock(&inventory->lock);
    bool is_changed = health_set(inventory, kind, reason);
    pthread_mutex_unlock(&inventory->lock);
    if (is_changed)
        inventory_post(inventory, local);
}

bool inventory_is_ill(struct inventory *inventory, enum health kind)
{
    pthread_mutex_lock(&inventory->lock);
    bool is_ill = inventory->ills[kind][0] != 0;
    pthread_mutex_unlock(&inventory->lock);
    return is_ill;
}

/* --- the watch on the GPUs --- */

enum { SILENCE_MS = 60000 }; /* a call of NVML that takes longer will not come back */

static bool gpu_is_lost(const struct inventory *inventory, uint32_t gpu)
{
    struct gpu_state state;
    return gpu_watch_read(inventory->watch, gpu, &state) ? state.is_lost
                                                         : inventory->gpus[gpu].is_lost;
}

/* Those that are lost, for people; returns their number. */
static uint32_t lost_list(const struct inventory *inventory, char *list, size_t size)
{
    uint32_t count = 0;
    size_t used = 0;
    list[0] = 0;
    for (uint32_t i = 0; i < inventory->node.gpu_count; i++) {
        if (!gpu_is_lost(inventory, i))
            continue;
        const char *uuid = inventory->gpus[i].uuid;
        if (used < size)
            used += (size_t)snprintf(list + used, size - used, "%sGPU %u (%s) is lost",
                                     count ? ", " : "", i, uuid[0] ? uuid : "it never answered");
        count++;
    }
    return count;
}

/* One that is lost is given to nobody, the others are; without any the node is of no use. Under the
 * lock. True: it is to be told. */
static bool gpus_judge(struct inventory *inventory)
{
    char lost[200];
    bool is_changed = false;
    uint32_t count = lost_list(inventory, lost, sizeof lost);
    for (uint32_t i = 0; i < inventory->node.gpu_count; i++) {
        uint16_t now = gpu_is_lost(inventory, i) ? NODE_GPU_LOST : inventory->places[i];
        is_changed |= inventory->pci_switch[i] != now;
        inventory->pci_switch[i] = now;
    }
    snprintf(inventory->lost, sizeof inventory->lost, "%s", lost);
    bool is_useless = count == inventory->node.gpu_count;
    if (gpu_watch_silent_ms(inventory->watch) > SILENCE_MS)
        is_changed |= health_set(inventory, HEALTH_GPUS,
                                 "the GPU driver does not answer: a call of NVML hangs");
    else
        is_changed |= health_set(inventory, HEALTH_GPUS, is_useless ? lost : "");
    return is_changed;
}

void inventory_gpus_check(struct inventory *inventory, struct local_engine *local)
{
    if (!inventory->is_nvidia)
        return;
    pthread_mutex_lock(&inventory->lock);
    bool is_changed = gpus_judge(inventory);
    pthread_mutex_unlock(&inventory->lock);
    if (is_changed)
        inventory_post(inventory, local);
}

static void watch_changed(void *context)
{
    struct inventory *inventory = context;
    inventory_gpus_check(inventory, inventory->local);
    gpus_lost_tell(inventory->local);
}

void inventory_watch(struct inventory *inventory, struct local_engine *local)
{
    if (!inventory->is_nvidia)
        return;
    inventory->local = local;
    pthread_mutex_lock(&inventory->lock);
    gpus_judge(inventory);
    pthread_mutex_unlock(&inventory->lock);
    gpu_watch_start(inventory->watch);
}

void inventory_unwatch(struct inventory *inventory)
{
    if (!inventory)
        return;
    gpu_watch_free(inventory->watch);
    inventory->watch = NULL;
}

struct gpu_watch *inventory_gpus(const struct inventory *inventory)
{
    return inventory->is_nvidia ? inventory->watch : NULL;
}

/* --- devices of one container --- */

struct device_list {
    struct oci_device *items;
    size_t count, room;
};

static bool file_device(const char *path, struct oci_device *device)
{
    struct stat found;
    if (stat(path, &found) < 0 || !S_ISCHR(found.st_mode))
        return false;
    *device = (struct oci_device){.path = path,
                                  .type = 'c',
                                  .major = major(found.st_rdev),
                                  .minor = minor(found.st_rdev),
                                  .mode = found.st_mode & 0777,
                                  .uid = found.st_uid,
                                  .gid = found.st_gid,
                                  .access = "rwm"};
    return true;
}

static void device_put(struct device_list *list, const char *path)
{
    struct oci_device device;
    if (file_device(path, &device))
        list->items[list->count++] = device;
}

/* Without a specification: the device files. The driver's libraries must then be in the image. */
static int nvidia_files(const struct inventory *inventory, const struct container *container,
                        struct arena *arena, struct device_list *list, struct err *err)
{
    static const char *const common[] = {"/dev/nvidiactl", "/dev/nvidia-uvm",
                                         "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"};
    for (size_t i = 0; i < container->gpu_count; i++) {
        const struct nvml_gpu *gpu = &inventory->gpus[container->gpus[i]];
        size_t before = list->count;
        device_put(list, arena_format(arena, "/dev/nvidia%u", gpu->minor));
        if (list->count == before)
            return err_fail(err, ERR_NOT_FOUND, "", "there is no device /dev/nvidia%u", gpu->minor);
    }
    for (size_t i = 0; i < COUNT_OF(common); i++)
        device_put(list, common[i]);
    return 0;
}

static int cdi_devices(const struct inventory *inventory, const struct container *container,
                       struct arena *arena, struct device_edits *edits, struct err *err)
{
    const struct cdi_device **devices =
        ARENA_ARRAY(arena, const struct cdi_device *, container->gpu_count);
    for (size_t i = 0; i < container->gpu_count; i++) {
        uint16_t index = container->gpus[i];
        const char *uuid = inventory->is_nvidia ? inventory->gpus[index].uuid : "";
        char name[8];
        snprintf(name, sizeof name, "%u", index);
        devices[i] = uuid[0] ? cdi_find(&inventory->cdi, inventory->cdi_kind, uuid) : NULL;
        if (!devices[i])
            devices[i] = cdi_find(&inventory->cdi, inventory->cdi_kind, name);
        if (!devices[i])
            return err_fail(err, ERR_NOT_FOUND, "", "no CDI specification has %s=%s",
                            inventory->cdi_kind, name);
    }
    return cdi_edits(devices, container->gpu_count, arena, edits, err);
}

static void infiniband_files(struct arena *arena, struct device_list *list, size_t room)
{
    cleanup_dir DIR *dir = opendir("/dev/infiniband");
    for (struct dirent *entry; dir && list->count < room && (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            device_put(list, arena_format(arena, "/dev/infiniband/%s", entry->d_name));
}

int inventory_devices(const struct inventory *inventory, const struct container *container,
                      struct arena *arena, struct device_edits *edits, struct err *err)
{
    enum { ROOM = 256 };
    memset(edits, 0, sizeof *edits);
    for (size_t i = 0; i < container->gpu_count; i++)
        if (container->gpus[i] >= inventory->node.gpu_count)
            return err_fail(err, ERR_NOT_FOUND, "", "this machine has no GPU %u",
                            container->gpus[i]);
    bool has_devices =
        container->gpu_count && !container->is_gpu_simulated && !inventory->node.is_gpu_simulated;
    int code = 0;
    if (has_devices && inventory->cdi_kind[0])
        code = cdi_devices(inventory, container, arena, edits, err);
    if (code < 0 || (!container->wants_infiniband && (!has_devices || inventory->cdi_kind[0])))
        return code;
    struct device_list list = {
        ARENA_ARRAY(arena, struct oci_device, edits->device_count + ROOM + container->gpu_count),
        edits->device_count, 0};
    if (edits->device_count)
        memcpy(list.items, edits->devices, edits->device_count * sizeof *list.items);
    if (has_devices && !inventory->cdi_kind[0])
        code = nvidia_files(inventory, container, arena, &list, err);
    if (container->wants_infiniband)
        infiniband_files(arena, &list, edits->device_count + ROOM);
    edits->devices = list.items;
    edits->device_count = list.count;
    return code;
}
