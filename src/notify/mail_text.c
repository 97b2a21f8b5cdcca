#include "notify/mail_text.h"
#include "base/buf.h"
#include "base/mail_address.h"
#include "base/printable.h"
#include <assert.h>
#include <string.h>
#include <time.h>

/* --- headers --- */

static bool is_plain_line(struct text text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.at[i] < ' ' || text.at[i] > '~')
            return false;
    return text.length < 900; /* of a line of 998 */
}

/* Unstructured text: as it is, or as encoded words, of which none has more than 75 bytes. */
static void header_write(struct buf *out, const char *name, struct text text)
{
    enum { WORD_BYTES = 18 }; /* thrice as long when all of them are coded */
    buf_format(out, "%s: ", name);
    if (is_plain_line(text)) {
        buf_text(out, text);
        buf_string(out, "\r\n");
        return;
    }
    cleanup_buf struct buf clean = BUF_INIT;
    printable_put(&clean, text);
    const struct text all = buf_as_text(&clean);
    for (size_t at = 0; at < all.length;) {
        const size_t end = at + WORD_BYTES;
        buf_string(out, at ? "\r\n =?UTF-8?Q?" : "=?UTF-8?Q?");
        do {
            const size_t length = text_utf8_length(all, at);
            for (size_t i = 0; i < length; i++)
                buf_format(out, "=%02X", (unsigned char)all.at[at + i]);
            at += length;
        } while (at < all.length && at + 4 <= end);
        buf_string(out, "?=");
    }
    buf_string(out, "\r\n");
}

static void date_write(struct buf *out, int64_t now_ms)
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const time_t seconds = (time_t)(now_ms / 1000);
    struct tm at;
    gmtime_r(&seconds, &at);
    buf_format(out, "Date: %s, %02d %s %04d %02d:%02d:%02d +0000\r\n", days[at.tm_wday], at.tm_mday,
               months[at.tm_mon], at.tm_year + 1900, at.tm_hour, at.tm_min, at.tm_sec);
}

/* --- quoted-printable --- */

enum { LINE_MAX_BYTES = 76 };

/* Newlines become CRLF; a space at the end of a line is coded, since relays may remove it. */
static void quoted_write(struct buf *out, struct text text)
{
    size_t column = 0;
    for (size_t i = 0; i < text.length; i++) {
        const char c = text.at[i];
        if (c == '\n') {
            buf_string(out, "\r\n");
            column = 0;
            continue;
        }
        const bool is_last = i + 1 == text.length || text.at[i + 1] == '\n';
        const bool is_plain = (c > ' ' && c <= '~' && c != '=') || (c == ' ' && !is_last);
        const size_t length = is_plain ? 1 : 3;
        if (column + length >= LINE_MAX_BYTES) {
            buf_string(out, "=\r\n");
            column = 0;
        }
        if (is_plain)
            buf_char(out, c);
        else
            buf_format(out, "=%02X", (unsigned char)c);
        column += length;
    }
}

/* --- the whole --- */

void notify_mail_head_write(const struct notify_mail_head *head, struct buf *out)
{
    assert(mail_address_is_good(text_of(head->from)));
    assert(mail_address_is_good(text_of(head->to)));
    buf_format(out, "From: Skep <%s>\r\nTo: <%s>\r\n", head->from, head->to);
    header_write(out, "Subject", head->subject);
    date_write(out, head->now_ms);
    buf_format(out, "Message-ID: <skep.%s%s>\r\n", head->id, strchr(head->from, '@'));
    buf_string(out, "Auto-Submitted: auto-generated\r\n"
                    "MIME-Version: 1.0\r\n"
                    "Content-Type: text/plain; charset=utf-8\r\n"
                    "Content-Transfer-Encoding: quoted-printable\r\n\r\n");
}

void notify_mail_body_write(struct text body, struct buf *out)
{
    cleanup_buf struct buf clean = BUF_INIT;
    printable_put(&clean, body);
    quoted_write(out, buf_as_text(&clean));
}

void notify_path_write(const char *text, struct buf *out)
{
    for (const char *c = text; *c; c++) {
        const bool is_plain = (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') ||
                              (*c >= 'a' && *c <= 'z') || strchr("-._~", *c);
        buf_format(out, is_plain ? "%c" : "%%%02X", (unsigned char)*c);
    }
}
