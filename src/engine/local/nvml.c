#include "engine/local/nvml.h"
#include "base/err.h"
#include "base/memory.h"
#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* NVML's own layouts: nvmlPciInfo_t, nvmlMemory_t, nvmlUtilization_t. */
struct pci_info {
    char legacy_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

struct memory_info {
    unsigned long long total, free, used;
};

struct utilization {
    unsigned gpu, memory;
};

/* NVML's own numbers: nvmlReturn_t and others. */
enum {
    ANSWER_OK = 0,
    ANSWER_TOO_SMALL = 7,
    ANSWER_LOST = 15,
    ANSWER_NEEDS_RESET = 16,
    ERRORS_UNCORRECTED = 1,
    COUNTER_VOLATILE = 0,
    RETIRED_DOUBLE_BIT = 1,
};

typedef struct device *device_handle; /* opaque */

struct nvml {
    void *file;
    bool is_up;
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *count);
    int (*handle)(unsigned index, device_handle *device);
    int (*name)(device_handle device, char *name, unsigned size);
    int (*uuid)(device_handle device, char *uuid, unsigned size);
    int (*minor)(device_handle device, unsigned *minor);
    int (*pci)(device_handle device, struct pci_info *info);
    int (*memory)(device_handle device, struct memory_info *info);
    /* may be NULL */
    int (*handle_by_uuid)(const char *uuid, device_handle *device);
    int (*use)(device_handle device, struct utilization *utilization);
    int (*power)(device_handle device, unsigned *milliwatts);
    int (*errors)(device_handle device, int kind, int counter, unsigned long long *count);
    int (*retired)(device_handle device, int cause, unsigned *count, unsigned long long *pages);
    int (*remapped)(device_handle device, unsigned *correctable, unsigned *uncorrectable,
                    unsigned *is_pending, unsigned *has_failed);
    device_handle devices[NVML_GPUS_MAX]; /* NULL: lost */
};

static int symbols_find(struct nvml *nvml, struct err *err)
{
    const struct {
        const char *name;
        void *slot;
        bool is_optional;
    } table[] = {
        {"nvmlInit_v2", &nvml->init, false},
        {"nvmlShutdown", &nvml->shutdown, false},
        {"nvmlDeviceGetCount_v2", &nvml->count, false},
        {"nvmlDeviceGetHandleByIndex_v2", &nvml->handle, false},
        {"nvmlDeviceGetName", &nvml->name, false},
        {"nvmlDeviceGetUUID", &nvml->uuid, false},
        {"nvmlDeviceGetMinorNumber", &nvml->minor, false},
        {"nvmlDeviceGetPciInfo_v3", &nvml->pci, false},
        {"nvmlDeviceGetMemoryInfo", &nvml->memory, false},
        {"nvmlDeviceGetHandleByUUID", &nvml->handle_by_uuid, true},
        {"nvmlDeviceGetUtilizationRates", &nvml->use, true},
        {"nvmlDeviceGetPowerUsage", &nvml->power, true},
        {"nvmlDeviceGetTotalEccErrors", &nvml->errors, true},
        {"nvmlDeviceGetRetiredPages", &nvml->retired, true},
        {"nvmlDeviceGetRemappedRows", &nvml->remapped, true},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        void *symbol = dlsym(nvml->file, table[i].name);
        if (!symbol && !table[i].is_optional)
            return err_fail(err, ERR_UNAVAILABLE, "", "NVML has no %s", table[i].name);
        memcpy(table[i].slot, &symbol, sizeof symbol);
    }
    return 0;
}

static int library_start(struct nvml *nvml, struct err *err)
{
    int code = nvml->init();
    nvml->is_up = code == ANSWER_OK;
    if (!nvml->is_up)
        return err_fail(err, ERR_UNAVAILABLE, "", "NVML does not start: it answers %d", code);
    return 0;
}

int nvml_open(const char *library, struct nvml **out, struct err *err)
{
    void *file = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!file)
        return err_fail(err, ERR_NOT_FOUND, "", "%s", dlerror());
    struct nvml *nvml = mem_zero(1, sizeof *nvml);
    nvml->file = file;
    int code = symbols_find(nvml, err);
    if (code == 0)
        code = library_start(nvml, err);
    if (code < 0) {
        nvml_close(nvml);
        return code;
    }
    *out = nvml;
    return 0;
}

void nvml_close(struct nvml *nvml)
{
    if (!nvml)
        return;
    if (nvml->is_up)
        nvml->shutdown();
    dlclose(nvml->file);
    mem_free(nvml);
}

static bool means_lost(int answer)
{
    return answer == ANSWER_LOST || answer == ANSWER_NEEDS_RESET;
}

static int gpu_read(struct nvml *nvml, unsigned index, struct nvml_gpu *gpu, struct err *err)
{
    device_handle device = NULL;
    struct pci_info pci = {0};
    struct memory_info memory = {0};
    memset(gpu, 0, sizeof *gpu);
    nvml->devices[index] = NULL;
    int code = nvml->handle(index, &device);
    if (code == ANSWER_OK)
        code = nvml->uuid(device, gpu->uuid, sizeof gpu->uuid);
    if (code == ANSWER_OK)
        code = nvml->minor(device, &gpu->minor);
    if (code == ANSWER_OK)
        code = nvml->pci(device, &pci);
    if (means_lost(code)) {
        gpu->is_lost = true;
        return 0;
    }
    if (code != ANSWER_OK)
        return err_fail(err, ERR_UNAVAILABLE, "", "NVML answers %d about GPU %u", code, index);
    snprintf(gpu->bus_id, sizeof gpu->bus_id, "%.31s", pci.bus_id);
    if (nvml->name(device, gpu->name, sizeof gpu->name) != ANSWER_OK)
        snprintf(gpu->name, sizeof gpu->name, "nvidia");
    if (nvml->memory(device, &memory) == ANSWER_OK)
        gpu->memory_mib = memory.total >> 20;
    nvml->devices[index] = device;
    return 0;
}

int nvml_list(struct nvml *nvml, struct nvml_gpu *gpus, size_t *count, struct err *err)
{
    unsigned found = 0;
    *count = 0;
    assert(nvml->is_up);
    int answer = nvml->count(&found);
    if (answer != ANSWER_OK)
        return err_fail(err, ERR_UNAVAILABLE, "", "NVML answers %d about its GPUs", answer);
    for (unsigned i = 0; i < found && i < NVML_GPUS_MAX; i++) {
        int code = gpu_read(nvml, i, &gpus[i], err);
        if (code < 0)
            return code;
        ++*count;
    }
    return 0;
}

/* Pages of older GPUs, rows of newer ones. */
static bool retired_read(struct nvml *nvml, device_handle device, uint64_t *pages)
{
    unsigned count = 0, correctable = 0, uncorrectable = 0, is_pending = 0, has_failed = 0;
    bool is_known = false;
    *pages = 0;
    if (nvml->retired) {
        int code = nvml->retired(device, RETIRED_DOUBLE_BIT, &count, NULL);
        is_known = code == ANSWER_OK || code == ANSWER_TOO_SMALL;
        *pages += is_known ? count : 0;
    }
    if (nvml->remapped && nvml->remapped(device, &correctable, &uncorrectable, &is_pending,
                                         &has_failed) == ANSWER_OK) {
        is_known = true;
        *pages += uncorrectable;
    }
    return is_known;
}

static void errors_read(struct nvml *nvml, device_handle device, struct nvml_sample *sample)
{
    unsigned long long errors = 0;
    if (nvml->errors &&
        nvml->errors(device, ERRORS_UNCORRECTED, COUNTER_VOLATILE, &errors) == ANSWER_OK) {
        sample->ecc_errors = errors;
        sample->has_errors = true;
    }
    if (retired_read(nvml, device, &sample->retired_pages))
        sample->has_errors = true;
}

void nvml_sample(struct nvml *nvml, size_t gpu, bool has_errors, struct nvml_sample *sample)
{
    assert(gpu < NVML_GPUS_MAX);
    device_handle device = nvml->is_up ? nvml->devices[gpu] : NULL;
    struct utilization use = {0};
    struct memory_info memory = {0};
    *sample = (struct nvml_sample){.is_lost = !device};
    if (!device)
        return;
    int code = nvml->memory(device, &memory);
    int use_code = nvml->use ? nvml->use(device, &use) : ANSWER_OK;
    if (means_lost(code) || means_lost(use_code)) {
        sample->is_lost = true;
        return;
    }
    sample->has_use = nvml->use && use_code == ANSWER_OK && code == ANSWER_OK;
    sample->busy_percent = (uint8_t)(use.gpu < 100 ? use.gpu : 100);
    sample->memory_used_bytes = memory.used;
    unsigned power_mw = 0;
    if (nvml->power && nvml->power(device, &power_mw) == ANSWER_OK)
        sample->power_mw = power_mw;
    if (has_errors)
        errors_read(nvml, device, sample);
}

int nvml_reopen(struct nvml *nvml, const struct nvml_gpu *gpus, size_t count, struct err *err)
{
    assert(count <= NVML_GPUS_MAX);
    memset(nvml->devices, 0, sizeof nvml->devices);
    if (nvml->is_up)
        nvml->shutdown();
    int code = library_start(nvml, err);
    for (size_t i = 0; code == 0 && i < count; i++) {
        device_handle device = NULL;
        int answer = nvml->handle_by_uuid && gpus[i].uuid[0]
                         ? nvml->handle_by_uuid(gpus[i].uuid, &device)
                         : nvml->handle((unsigned)i, &device);
        nvml->devices[i] = answer == ANSWER_OK ? device : NULL;
    }
    return code;
}
