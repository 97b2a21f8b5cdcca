/* openpai_mail.h — whom OpenPAI's alert manager told of alerts, said in Skep's words.
 *
 * Pure. Of its mails the server, the sender and the administrator's address are carried over. Its
 * receivers are sets of actions; each is noted with what does the same here, or that nothing does.
 */
#ifndef CLI_OPENPAI_MAIL_H
#define CLI_OPENPAI_MAIL_H
#include <stdbool.h>

struct arena;
struct doc;
struct openpai_output;

struct openpai_mail {
    const char *smtp;   /* the value of notifications.smtp as one line of YAML */
    const char *alerts; /* that of notifications.alerts.mail; NULL: nobody was told */
};

/* `configs`: alert-handler.email-configs, or email-notification of OpenPAI before 1.5, which stands
 * at `path` of `file`. False: it is not carried over. The password goes to output->mail_password,
 * of which the file `password_file` will be made. Notes it. */
bool openpai_mail(const struct doc *configs, const char *file, const char *path,
                  const char *password_file, struct arena *arena, struct openpai_output *output,
                  struct openpai_mail *mail);

/* `list`: customized-receivers. Notes each action of each. */
void openpai_receivers(const struct doc *list, const char *file, const char *path,
                       struct arena *arena, struct openpai_output *output);

#endif
