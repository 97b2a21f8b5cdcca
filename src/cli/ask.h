/* ask.h — what a user is asked on the terminal, or gives on standard input. */
#ifndef CLI_ASK_H
#define CLI_ASK_H
#include "cli/command.h"
#include <stdbool.h>

/* One line of standard input, without its end; on the heap. */
int ask_line(const char *what, char **line);
/* Yes or no, on the terminal; no is what anything but "y" and "yes" means. */
bool ask_yes(const char *question);
/* Without showing what is typed; from standard input with --password-stdin. Overwrite it after use
 * (ask_forget). */
int ask_password(const struct cli *cli, char **password);
void ask_forget(char *password); /* NULL is fine */

#endif
