/* noun.c — see noun.h: what the nouns share. */
#include "store/noun.h"
#include "base/err.h"
#include <assert.h>

void completion_put(struct sql *sql, const struct completion *completion)
{
    assert(memchr(completion->phrase, '\0', sizeof completion->phrase));
    sql_put_int(sql, completion->code);
    sql_put_int(sql, completion->exit_code);
    sql_put_int(sql, completion->is_success);
    sql_put_int(sql, completion->attributes);
    sql_put_string(sql, completion->phrase);
    sql_put_string(sql, completion->diagnostics);
}

void completion_get(struct sql *sql, struct completion *completion)
{
    completion->code = (int32_t)sql_int(sql);
    completion->exit_code = (int32_t)sql_int(sql);
    completion->is_success = sql_bool(sql);
    completion->attributes = (uint8_t)sql_int(sql);
    sql_copy(sql, completion->phrase, sizeof completion->phrase);
    sql_copy(sql, completion->diagnostics, sizeof completion->diagnostics);
}

struct text numbers_put(struct buf *scratch, const uint16_t *numbers, size_t count)
{
    size_t begin = scratch->length;
    assert(count == 0 || numbers);
    for (size_t i = 0; i < count; i++) {
        buf_put_u8(scratch, (uint8_t)(numbers[i] & 0xff));
        buf_put_u8(scratch, (uint8_t)(numbers[i] >> 8));
    }
    return count ? (struct text){scratch->at + begin, scratch->length - begin} : (struct text){0};
}

const uint16_t *numbers_get(struct text bytes, size_t count, struct arena *arena)
{
    uint16_t *numbers = arena_array(arena, count, sizeof *numbers);
    for (size_t i = 0; i < count; i++)
        numbers[i] = (uint16_t)((uint8_t)bytes.at[2 * i] | (uint8_t)bytes.at[2 * i + 1] << 8);
    return numbers;
}

int purge(struct store *store, const char *text, struct job_id job, struct err *err)
{
    struct sql sql = sql_of(&store->session, text);
    assert(job.v != 0);
    sql_put_int(&sql, job.v);
    return sql_run(&sql, NULL, err);
}
