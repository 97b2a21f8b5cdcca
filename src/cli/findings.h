/* findings.h — what a check found, as people and programs read it. */
#ifndef CLI_FINDINGS_H
#define CLI_FINDINGS_H
#include "sys/machine.h"

struct cli;

/* As a table, or in the form of --output. EXIT_REFUSED when something is missing, else EXIT_OK. */
int findings_show(const struct cli *cli, const struct machine_finding *findings, size_t count);

#endif
