/* layer-bench — what a metadata layer costs: time and processor time to make one of an image with
 * so many files, and what it takes on the disk. Needs root. */
#include "base/err.h"
#include "engine/local/layer.h"
#include "figures.h"
#include "sys/ids.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_OF_A_FOLDER = 100, FILE_BYTES = 2000, ROUNDS_MAX = 100 };

static int usage(FILE *out, int code)
{
    fputs("usage: layer-bench [FILES [ROUNDS [FOLDER]]]     (50000, 5, /var/tmp)\n", out);
    return code;
}

static void image_make(const char *folder, unsigned files)
{
    shell(
        "mkdir %s/image; cd %s/image; head -c %d /dev/zero > ../file; for d in $(seq %u); do mkdir "
        "$d; (cd $d; tee $(seq %d) < ../../file > /dev/null); done",
        folder, folder, FILE_BYTES, files / FILES_OF_A_FOLDER, FILES_OF_A_FOLDER);
}

static int round_run(const char *folder, unsigned round, double *took_ms, double *took_cpu_ms)
{
    char image[300], path[300];
    struct err err = {0};
    uint64_t entries;
    snprintf(image, sizeof image, "%s/image", folder);
    snprintf(path, sizeof path, "%s/layer-%u", folder, round);
    const struct layer_order order = {
        .lower = {image}, .folder = path, .first = ID_RANGES_FIRST, .nobody = ID_RANGES_FIRST};
    if (mkdir(path, 0700) < 0)
        return -1;
    const double cpu = cpu_ms();
    const int64_t begun_us = now_us();
    if (layer_make(&order, &entries, &err) < 0) {
        fprintf(stderr, "layer-bench: %s\n", err.text);
        return -1;
    }
    *took_ms = (double)(now_us() - begun_us) / 1000;
    *took_cpu_ms = cpu_ms() - cpu;
    return 0;
}

int main(int argc, char **argv)
{
    double took[ROUNDS_MAX], cpu[ROUNDS_MAX];
    char folder[200];
    const unsigned files = argc > 1 ? (unsigned)atoi(argv[1]) : 50000;
    const unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 5;
    if (argc > 1 && strcmp(argv[1], "--help") == 0)
        return usage(stdout, 0);
    if (argc > 4 || files < FILES_OF_A_FOLDER || rounds < 1 || rounds > ROUNDS_MAX)
        return usage(stderr, 2);
    snprintf(folder, sizeof folder, "%s/layer-bench-XXXXXX", argc > 3 ? argv[3] : "/var/tmp");
    if (!mkdtemp(folder)) {
        perror("layer-bench");
        return 1;
    }
    image_make(folder, files);
    int code = 0;
    unsigned done = 0;
    for (; done < rounds && code == 0; done++)
        code = round_run(folder, done, &took[done], &cpu[done]);
    if (code == 0) {
        printf("%u files: %.0f ms, %.0f ms of processor time (medians of %u)\n", files,
               quantile(took, rounds, 0.5), quantile(cpu, rounds, 0.5), rounds);
        printf("the image takes %s KiB, ", shell_output("du -s %s/image | cut -f1", folder));
        printf("a layer %s KiB and ", shell_output("du -s %s/layer-0/upper | cut -f1", folder));
        printf("%s inodes\n", shell_output("find %s/layer-0/upper | wc -l", folder));
    }
    shell("rm -rf %s", folder);
    return code == 0 ? 0 : 1;
}
