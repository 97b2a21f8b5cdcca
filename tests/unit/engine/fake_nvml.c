/* A shared object with NVML's functions and four GPUs, for the tests of detection. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pci {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

struct memory {
    unsigned long long total, free, used;
};

static const char *const buses[] = {"00000000:05:00.0", "00000000:06:00.0", "00000000:85:00.0",
                                    "00000000:95:00.0"};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetName(void *device, char *name, unsigned size);
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size);
int nvmlDeviceGetMinorNumber(void *device, unsigned *minor);
int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci);
int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory);

static unsigned index_of(void *device)
{
    return (unsigned)(size_t)device - 1;
}

int nvmlInit_v2(void)
{
    return getenv("FAKE_NVML_BROKEN") ? 999 : 0;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 4;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = (void *)(size_t)(index + 1);
    return index < 4 ? 0 : 2;
}

int nvmlDeviceGetName(void *device, char *name, unsigned size)
{
    (void)device;
    snprintf(name, size, "NVIDIA Test V100 16GB");
    return 0;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size)
{
    snprintf(uuid, size, "GPU-%08u", index_of(device));
    return 0;
}

int nvmlDeviceGetMinorNumber(void *device, unsigned *minor)
{
    *minor = index_of(device);
    return 0;
}

int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci)
{
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "%s", buses[index_of(device)]);
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
    (void)device;
    *memory = (struct memory){.total = 16ull << 30};
    return 0;
}
