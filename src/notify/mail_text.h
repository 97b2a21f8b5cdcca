/* mail_text.h — the parts of a mail that are the same whatever it is about.
 *
 * Pure. RFC 5322, 2045 and 2047: plain text in UTF-8, quoted-printable. Whatever the texts hold,
 * they become neither a header nor an end of the mail.
 */
#ifndef NOTIFY_MAIL_TEXT_H
#define NOTIFY_MAIL_TEXT_H
#include "base/text.h"
#include <stdint.h>

struct buf;

struct notify_mail_head {
    const char *from, *to; /* good addresses (base/mail_address.h) */
    struct text subject;
    const char *id; /* unique among our mails, of characters that an address may have */
    int64_t now_ms;
};
/* With the empty line behind it. */
void notify_mail_head_write(const struct notify_mail_head *head, struct buf *out);
void notify_mail_body_write(struct text body, struct buf *out);

/* As a part of a path of a URL. */
void notify_path_write(const char *text, struct buf *out);

#endif
