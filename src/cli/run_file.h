/* run_file.h — the job file that `skep run` makes of its flags. */
#ifndef CLI_RUN_FILE_H
#define CLI_RUN_FILE_H
#include "base/buf.h"
#include "cli/command.h"

/* JSON, which is YAML as well. EXIT_USAGE after a message. */
int run_file(const struct cli *cli, struct buf *out);

#endif
