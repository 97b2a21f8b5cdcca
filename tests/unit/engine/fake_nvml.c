/* A shared object with NVML's functions and four GPUs, for tests of what the engine does with it.
 * The file that FAKE_NVML_STATE names says how they are; it is read anew at every call (replace it
 * by a rename). A line each, in any order; what is not said is well, idle and without errors:
 *
 *   broken                    the library does not start
 *   gpu N busy P              … percent of the time
 *   gpu N used MIB            memory in use
 *   gpu N power MW            milliwatts drawn
 *   gpu N ecc E               uncorrectable errors since the driver was loaded
 *   gpu N retired R           pages retired for them
 *   gpu N lost | reset        fallen off the bus; must be reset
 *   gpu N plain               counts no errors, as small GPUs
 *   hang PATH                 every call first waits for a writer of that named pipe
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GPUS = 4, OK = 0, INVALID = 2, NOT_SUPPORTED = 3, TOO_SMALL = 7, LOST = 15, RESET = 16 };

struct pci {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

struct memory {
    unsigned long long total, free, used;
};

struct utilization {
    unsigned gpu, memory;
};

struct gpu {
    unsigned busy, retired, power_mw, answer;
    unsigned long long used_mib, ecc;
    int is_plain;
};

static const char *const buses[] = {"00000000:05:00.0", "00000000:06:00.0", "00000000:85:00.0",
                                    "00000000:95:00.0"};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetName(void *device, char *name, unsigned size);
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size);
int nvmlDeviceGetMinorNumber(void *device, unsigned *minor);
int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci);
int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory);
int nvmlDeviceGetUtilizationRates(void *device, struct utilization *utilization);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *count);
int nvmlDeviceGetRetiredPages(void *device, int cause, unsigned *count, unsigned long long *pages);

static unsigned index_of(void *device)
{
    return (unsigned)(size_t)device - 1;
}

static void word_apply(struct gpu *gpu, const char *word, unsigned long long value)
{
    if (strcmp(word, "busy") == 0)
        gpu->busy = (unsigned)value;
    else if (strcmp(word, "used") == 0)
        gpu->used_mib = value;
    else if (strcmp(word, "power") == 0)
        gpu->power_mw = (unsigned)value;
    else if (strcmp(word, "ecc") == 0)
        gpu->ecc = value;
    else if (strcmp(word, "retired") == 0)
        gpu->retired = (unsigned)value;
    else if (strcmp(word, "plain") == 0)
        gpu->is_plain = 1;
    else if (strcmp(word, "lost") == 0)
        gpu->answer = LOST;
    else if (strcmp(word, "reset") == 0)
        gpu->answer = RESET;
    else
        abort(); /* a mistake of the test */
}

static void hang(const char *pipe)
{
    int fd = open(pipe, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
}

/* 0, or what every function answers. */
static int state_read(struct gpu gpus[GPUS])
{
    const char *path = getenv("FAKE_NVML_STATE");
    FILE *file = path ? fopen(path, "re") : NULL;
    char line[512], word[32], pipe[512] = "";
    int answer = OK;
    memset(gpus, 0, GPUS * sizeof *gpus);
    while (file && fgets(line, sizeof line, file)) {
        unsigned gpu;
        unsigned long long value = 0;
        if (sscanf(line, "hang %511s", pipe) == 1)
            continue;
        if (strncmp(line, "broken", 6) == 0)
            answer = 999;
        else if (sscanf(line, "gpu %u %31s %llu", &gpu, word, &value) >= 2 && gpu < GPUS)
            word_apply(&gpus[gpu], word, value);
    }
    if (file)
        fclose(file);
    if (pipe[0])
        hang(pipe);
    return answer;
}

static int device_read(void *device, struct gpu *gpu)
{
    struct gpu gpus[GPUS];
    int answer = state_read(gpus);
    *gpu = gpus[index_of(device)];
    return answer == OK ? (int)gpu->answer : answer;
}

int nvmlInit_v2(void)
{
    struct gpu gpus[GPUS];
    return state_read(gpus);
}

int nvmlShutdown(void)
{
    return OK;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = GPUS;
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    struct gpu gpu;
    *device = (void *)(size_t)(index + 1);
    return index < GPUS ? device_read(*device, &gpu) : INVALID;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    unsigned index = GPUS;
    return sscanf(uuid, "GPU-%u", &index) == 1 ? nvmlDeviceGetHandleByIndex_v2(index, device)
                                               : INVALID;
}

int nvmlDeviceGetName(void *device, char *name, unsigned size)
{
    (void)device;
    snprintf(name, size, "NVIDIA Test V100 16GB");
    return OK;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size)
{
    snprintf(uuid, size, "GPU-%08u", index_of(device));
    return OK;
}

int nvmlDeviceGetMinorNumber(void *device, unsigned *minor)
{
    *minor = index_of(device);
    return OK;
}

int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci)
{
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "%s", buses[index_of(device)]);
    return OK;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
    struct gpu gpu;
    int answer = device_read(device, &gpu);
    *memory = (struct memory){.total = 16ull << 30, .used = gpu.used_mib << 20};
    memory->free = memory->total - memory->used;
    return answer;
}

int nvmlDeviceGetUtilizationRates(void *device, struct utilization *utilization)
{
    struct gpu gpu;
    int answer = device_read(device, &gpu);
    *utilization = (struct utilization){.gpu = gpu.busy, .memory = gpu.busy / 2};
    return answer;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    struct gpu gpu;
    int answer = device_read(device, &gpu);
    *milliwatts = gpu.power_mw;
    return answer;
}

int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *count)
{
    struct gpu gpu;
    int answer = device_read(device, &gpu);
    *count = gpu.ecc;
    if (kind != 1 || counter != 0)
        return INVALID;
    return answer == OK && gpu.is_plain ? NOT_SUPPORTED : answer;
}

int nvmlDeviceGetRetiredPages(void *device, int cause, unsigned *count, unsigned long long *pages)
{
    struct gpu gpu;
    int answer = device_read(device, &gpu);
    if (cause != 1 || pages)
        return INVALID;
    *count = gpu.retired;
    if (answer == OK && gpu.is_plain)
        return NOT_SUPPORTED;
    return answer == OK && gpu.retired > 0 ? TOO_SMALL : answer;
}
