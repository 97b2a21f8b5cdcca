#include "engine/local/nvml.h"
#include "base/err.h"
#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* NVML's own layouts: nvmlPciInfo_t and nvmlMemory_t. */
struct pci_info {
    char legacy_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

struct memory_info {
    unsigned long long total, free, used;
};

typedef struct device *device_handle; /* opaque */

struct library {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *count);
    int (*handle)(unsigned index, device_handle *device);
    int (*name)(device_handle device, char *name, unsigned size);
    int (*uuid)(device_handle device, char *uuid, unsigned size);
    int (*minor)(device_handle device, unsigned *minor);
    int (*pci)(device_handle device, struct pci_info *info);
    int (*memory)(device_handle device, struct memory_info *info);
};

static int symbols_find(void *file, struct library *library, struct err *err)
{
    const struct {
        const char *name;
        void *slot;
    } table[] = {
        {"nvmlInit_v2", &library->init},
        {"nvmlShutdown", &library->shutdown},
        {"nvmlDeviceGetCount_v2", &library->count},
        {"nvmlDeviceGetHandleByIndex_v2", &library->handle},
        {"nvmlDeviceGetName", &library->name},
        {"nvmlDeviceGetUUID", &library->uuid},
        {"nvmlDeviceGetMinorNumber", &library->minor},
        {"nvmlDeviceGetPciInfo_v3", &library->pci},
        {"nvmlDeviceGetMemoryInfo", &library->memory},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        void *symbol = dlsym(file, table[i].name);
        if (!symbol)
            return err_fail(err, ERR_UNAVAILABLE, "", "NVML has no %s", table[i].name);
        memcpy(table[i].slot, &symbol, sizeof symbol);
    }
    return 0;
}

static int gpu_read(const struct library *library, unsigned index, struct nvml_gpu *gpu,
                    struct err *err)
{
    device_handle device;
    struct pci_info pci = {0};
    struct memory_info memory = {0};
    memset(gpu, 0, sizeof *gpu);
    int code = library->handle(index, &device);
    if (code == 0)
        code = library->uuid(device, gpu->uuid, sizeof gpu->uuid);
    if (code == 0)
        code = library->minor(device, &gpu->minor);
    if (code == 0)
        code = library->pci(device, &pci);
    if (code != 0)
        return err_fail(err, ERR_UNAVAILABLE, "", "NVML answers %d about GPU %u", code, index);
    snprintf(gpu->bus_id, sizeof gpu->bus_id, "%.31s", pci.bus_id);
    if (library->name(device, gpu->name, sizeof gpu->name) != 0)
        snprintf(gpu->name, sizeof gpu->name, "nvidia");
    if (library->memory(device, &memory) == 0)
        gpu->memory_mib = memory.total >> 20;
    return 0;
}

int nvml_list(const char *path, struct nvml_gpu *gpus, size_t *count, struct err *err)
{
    struct library library = {0};
    *count = 0;
    void *file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!file)
        return err_fail(err, ERR_NOT_FOUND, "", "%s", dlerror());
    int result = symbols_find(file, &library, err);
    assert(result != 0 || (library.init && library.count && library.handle && library.uuid));
    int code = result == 0 ? library.init() : 0;
    if (code != 0)
        result = err_fail(err, ERR_UNAVAILABLE, "", "NVML does not start: it answers %d", code);
    if (result == 0) {
        unsigned found = 0;
        code = library.count(&found);
        if (code != 0)
            result = err_fail(err, ERR_UNAVAILABLE, "", "NVML answers %d about its GPUs", code);
        for (unsigned i = 0; result == 0 && i < found && i < NVML_GPUS_MAX; i++) {
            result = gpu_read(&library, i, &gpus[i], err);
            *count += result == 0;
        }
        library.shutdown();
    }
    dlclose(file);
    return result;
}
