/* The queue beside a plain list: what is blocked, what fits, who comes next, whose limit is
 * shortest; another order takes over in pieces.
 *
 * Covers: src/core/queue_ranking.c
 */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/random.h"
#include "core/queue.h"

enum { SLOTS = 240, SHAPES = 48, STEPS = 30000 };

struct entry {
    bool is_in;
    struct queue_item item;
    uint32_t shape;
};

struct shape {
    struct queue_need need;
    bool is_blocked, was_tried, is_for_limit;
    bool is_closed; /* no room is enough for it, and it is blocked until all are opened */
};

struct plain {
    struct entry entries[SLOTS];
    struct shape shapes[SHAPES];
};

static uint32_t below(struct random *random, uint32_t limit)
{
    return (uint32_t)random_below(random, limit);
}

/* The first of the shape, or SLOTS: nobody is in it. */
static uint32_t plain_first(const struct plain *plain, const struct queue *queue, uint32_t shape)
{
    uint32_t best = SLOTS;
    for (uint32_t i = 0; i < SLOTS; i++)
        if (plain->entries[i].is_in && plain->entries[i].shape == shape &&
            (best == SLOTS ||
             queue_is_before(queue, &plain->entries[i].item, &plain->entries[best].item)))
            best = i;
    return best;
}

static bool plain_fits(const struct shape *shape, int32_t priority, const struct queue_room *room)
{
    if (room && shape->is_closed)
        return false;
    return !room || !shape->was_tried || priority > room->lowest ||
           (shape->need.task_gpus <= room->free.task_gpus && shape->need.gpus <= room->free.gpus &&
            shape->need.cpus <= room->free.cpus);
}

static uint32_t plain_next(const struct plain *plain, const struct queue *queue,
                           const struct queue_item *after, const struct queue_room *room)
{
    uint32_t best = SLOTS;
    for (uint32_t shape = 0; shape < SHAPES; shape++) {
        uint32_t first = plain_first(plain, queue, shape);
        if (first == SLOTS || plain->shapes[shape].is_blocked)
            continue;
        const struct queue_item *item = &plain->entries[first].item;
        if ((!after || queue_is_before(queue, after, item)) &&
            plain_fits(&plain->shapes[shape], item->priority, room) &&
            (best == SLOTS || queue_is_before(queue, item, &plain->entries[best].item)))
            best = first;
    }
    return best;
}

static uint32_t plain_shortest(const struct plain *plain, const struct queue *queue, uint32_t shape)
{
    uint32_t best = SLOTS;
    for (uint32_t i = 0; i < SLOTS; i++) {
        const struct entry *entry = &plain->entries[i];
        if (!entry->is_in || entry->shape != shape)
            continue;
        uint64_t limit = entry->item.limit_s - 1;
        uint64_t other = best == SLOTS ? 0 : plain->entries[best].item.limit_s - 1;
        if (best == SLOTS || limit < other ||
            (limit == other && queue_is_before(queue, &entry->item, &plain->entries[best].item)))
            best = i;
    }
    return best;
}

static struct queue_need need_any(struct random *random)
{
    return (struct queue_need){below(random, 4), below(random, 6), below(random, 6)};
}

static void compare(struct random *random, const struct plain *plain, const struct queue *queue)
{
    struct queue_room room = {need_any(random), (int32_t)below(random, 5)};
    uint32_t some = below(random, SLOTS), class, work = 0;
    const struct queue_item *after = &plain->entries[some].item;
    bool has_after = after->id && below(random, 2), has_room = below(random, 2);
    struct queue_item item;
    uint32_t expected = plain_next(plain, queue, has_after ? after : NULL, has_room ? &room : NULL);
    bool is_found =
        queue_next(queue, has_after ? after : NULL, has_room ? &room : NULL, &item, &class, &work);
    assert_int_equal(is_found, expected != SLOTS);
    if (!is_found)
        return;
    assert_int_equal(item.slot, expected);
    assert_true(work > 0);
    assert_int_equal(queue_class_of(queue, expected), class);
    assert_int_equal(queue_shortest(queue, class).slot,
                     plain_shortest(plain, queue, plain->entries[expected].shape));
}

/* Nobody is in it any more. */
static void shape_forget(struct shape *shape)
{
    shape->is_blocked = shape->was_tried = shape->is_for_limit = shape->is_closed = false;
}

static void put(struct random *random, struct plain *plain, struct queue *queue)
{
    /* half of the jobs are of few shapes: large heaps beside small ones */
    uint32_t slot = below(random, SLOTS), at = below(random, below(random, 2) ? SHAPES : 3);
    struct entry *entry = &plain->entries[slot];
    struct shape *shape = &plain->shapes[at];
    uint32_t old = entry->shape;
    bool was_in = entry->is_in;
    entry->is_in = false;
    if (was_in && plain_first(plain, queue, old) == SLOTS)
        shape_forget(&plain->shapes[old]);
    entry->shape = at;
    entry->item = (struct queue_item){.slot = slot,
                                      .id = slot + 1,
                                      .priority = (int32_t)(at % 4),
                                      .submitted_ms = below(random, 50),
                                      .gpus = below(random, 3),
                                      .tasks = below(random, 3),
                                      .limit_s = below(random, 4)};
    entry->is_in = true;
    queue_push(queue, &entry->item, &shape->need, (struct text){(const char *)&at, sizeof at});
    if (shape->is_for_limit && plain_shortest(plain, queue, at) == slot)
        shape->is_blocked = shape->was_tried = false;
}

static void take(struct random *random, struct plain *plain, struct queue *queue)
{
    struct entry *entry = &plain->entries[below(random, SLOTS)];
    queue_remove(queue, entry->item.slot);
    bool was_in = entry->is_in;
    entry->is_in = false;
    if (was_in && plain_first(plain, queue, entry->shape) == SLOTS)
        shape_forget(&plain->shapes[entry->shape]);
}

/* Taken one after the other, all come in their order, and the shortest limit of each shape is known
 * at any time: whatever was pushed and removed before. */
static void drain(const struct plain *now, const struct queue *queue)
{
    struct plain plain = *now;
    struct queue *copy = queue_copy(queue);
    struct queue_item item;
    uint32_t class, left = 0;
    queue_unblock(copy);
    queue_reopen(copy);
    for (uint32_t i = 0; i < SHAPES; i++)
        plain.shapes[i].is_blocked = false;
    for (uint32_t i = 0; i < SLOTS; i++)
        left += plain.entries[i].is_in;
    assert_int_equal(queue_count(copy), left);
    for (; queue_first(copy, &item, &class); left--) {
        assert_int_equal(item.slot, plain_next(&plain, copy, NULL, NULL));
        assert_int_equal(queue_shortest(copy, class).slot,
                         plain_shortest(&plain, copy, plain.entries[item.slot].shape));
        plain.entries[item.slot].is_in = false;
        queue_remove(copy, item.slot);
    }
    assert_int_equal(left, 0);
    assert_int_equal(queue_class_count(copy), 0);
    queue_free(copy);
}

static void the_next_is_the_first_that_fits(void **state)
{
    (void)state;
    static const char *const orders[] = {"priority", "smallest", "fifo"};
    struct random random = {11};
    struct queue *queue = queue_new(queue_order_named("priority"));
    struct plain plain = {0};
    for (uint32_t i = 0; i < SHAPES; i++)
        plain.shapes[i].need = need_any(&random);
    for (uint32_t i = 0; i < SLOTS; i++)
        plain.entries[i].item.slot = i;
    for (uint32_t i = 0; i < STEPS; i++) {
        uint32_t action = below(&random, 100), slot = below(&random, SLOTS);
        if (action < 40) {
            put(&random, &plain, queue);
        } else if (action < 60) {
            take(&random, &plain, queue);
        } else if (action < 80 && plain.entries[slot].is_in) {
            struct shape *shape = &plain.shapes[plain.entries[slot].shape];
            shape->is_for_limit = below(&random, 2);
            queue_block(queue, queue_class_of(queue, slot), "full", 7, shape->is_for_limit);
            shape->is_blocked = shape->was_tried = true;
            shape->is_closed = false;
        } else if (action == 80) {
            queue_unblock(queue);
            for (uint32_t j = 0; j < SHAPES; j++)
                plain.shapes[j].is_blocked &= plain.shapes[j].is_closed;
        } else if (action > 90 && plain.entries[slot].is_in) {
            struct shape *shape = &plain.shapes[plain.entries[slot].shape];
            queue_close(queue, queue_class_of(queue, slot), "closed", 8);
            shape->is_blocked = shape->was_tried = shape->is_closed = true;
            shape->is_for_limit = false;
        } else if (action == 84) {
            queue_reopen(queue);
            for (uint32_t j = 0; j < SHAPES; j++)
                plain.shapes[j].is_blocked &= !plain.shapes[j].is_closed;
        } else if (action == 81) {
            queue_order_set(queue, queue_order_named(orders[below(&random, 3)]));
        } else if (action == 82) {
            struct queue *copy = queue_copy(queue);
            queue_free(queue);
            queue = copy;
        } else if (action == 83 && i % 4 == 0) {
            drain(&plain, queue);
        }
        queue_order_go_on(queue, below(&random, 30));
        queue_tidy(queue, below(&random, 3));
        compare(&random, &plain, queue);
    }
    queue_free(queue);
}

static uint32_t push(struct queue *queue, uint32_t slot, uint64_t limit_s)
{
    struct queue_item item = {.slot = slot, .id = slot + 1, .limit_s = limit_s};
    return queue_push(queue, &item, &(struct queue_need){0}, TEXT("shape"));
}

/* A class that room is held back from is open to whoever ends sooner than all that wait in it. */
static void a_shorter_limit_opens_its_class(void **state)
{
    (void)state;
    struct queue *queue = queue_new(queue_order_named("fifo"));
    uint32_t class = push(queue, 0, 0);
    queue_block(queue, class, "held back", 7, true);
    push(queue, 1, 0);
    assert_true(queue_is_blocked(queue, class));
    push(queue, 2, 60);
    assert_false(queue_is_blocked(queue, class));
    assert_int_equal(queue_shortest(queue, class).slot, 2);
    queue_block(queue, class, "held back", 7, true);
    push(queue, 3, 70);
    assert_true(queue_is_blocked(queue, class));
    queue_block(queue, class, "too little", 7, false);
    push(queue, 4, 50);
    assert_true(queue_is_blocked(queue, class));
    assert_int_equal(queue_class_count(queue), 1);
    queue_free(queue);
}

/* The least of a subtree may come from several classes of which none fits: the search gives up. */
static void a_search_in_vain_is_cut(void **state)
{
    (void)state;
    enum { CLASSES = 4000, WORK_MAX = 320 };
    struct queue *queue = queue_new(queue_order_named("fifo"));
    for (uint32_t i = 0; i < CLASSES; i++) {
        struct queue_need need = {i % 2 ? 8 : 0, 0, i % 2 ? 0 : 8};
        struct queue_item item = {.slot = i, .id = i + 1};
        uint32_t class = queue_push(queue, &item, &need, (struct text){(const char *)&i, sizeof i});
        queue_block(queue, class, "", 0, false);
    }
    queue_unblock(queue);
    struct queue_room room = {.free = {4, 4, 4}, .lowest = 1000};
    struct queue_item item;
    uint32_t class, work = 0, rounds = 0;
    while (queue_next(queue, NULL, &room, &item, &class, &work)) {
        assert_in_range(work, 1, WORK_MAX);
        work = 0;
        queue_block(queue, class, "", 0, false);
        rounds++;
    }
    assert_in_range(rounds, 1, CLASSES);
    queue_free(queue);
}

/* However many classes are closed, a search for another one passes them over. */
static void closed_classes_cost_nothing(void **state)
{
    (void)state;
    enum { CLASSES = 20000, WORK_MAX = 64 };
    struct queue *queue = queue_new(queue_order_named("fifo"));
    struct queue_item item;
    uint32_t class, work = 0;
    for (uint32_t i = 0; i < CLASSES; i++) {
        item = (struct queue_item){.slot = i, .id = i + 1};
        class = queue_push(queue, &item, &(struct queue_need){0},
                           (struct text){(const char *)&i, sizeof i});
        if (i != CLASSES / 2)
            queue_close(queue, class, "closed", 1);
    }
    const struct queue_room room = {.free = {4, 4, 4}, .lowest = 1000};
    for (int i = 0; i < 100; i++) {
        queue_unblock(queue);
        work = 0;
        assert_true(queue_next(queue, NULL, i % 2 ? &room : NULL, &item, &class, &work));
        assert_int_equal(item.slot, CLASSES / 2);
        assert_in_range(work, 1, WORK_MAX);
    }
    queue_block(queue, class, "full", 2, false);
    assert_false(queue_next(queue, NULL, NULL, &item, &class, &work));
    assert_true(queue_is_blocked(queue, queue_class_of(queue, 0)));
    queue_reopen(queue); /* all at once: they are found where no room is asked for */
    assert_false(queue_is_blocked(queue, queue_class_of(queue, 0)));
    assert_false(queue_next(queue, NULL, &room, &item, &class, &work));
    assert_true(queue_next(queue, NULL, NULL, &item, &class, &work));
    assert_int_equal(item.slot, 0);
    queue_free(queue);
}

enum { RANDOM_SLOTS = 60 };

struct naive {
    bool is_in, is_blocked;
    struct queue_item item;
    int shape;
};

static int64_t sign(int64_t number)
{
    return (number > 0) - (number < 0);
}

/* By the words of queue.h: negative when a goes first. */
static int64_t naive_compare(const char *order, const struct queue_item *a,
                             const struct queue_item *b)
{
    int64_t by_time = 2 * sign(a->submitted_ms - b->submitted_ms) + sign((int64_t)a->id - b->id);
    int64_t by_size = 2 * sign((int64_t)(a->gpus - b->gpus)) + sign((int64_t)a->tasks - b->tasks);
    int64_t by_priority = sign((int64_t)b->priority - a->priority);
    if (!strcmp(order, "fifo"))
        return by_time;
    if (!strcmp(order, "smallest"))
        return 100 * by_priority + 10 * by_size + by_time;
    return 10 * by_priority + by_time;
}

static int naive_first(const struct naive *items, const char *order)
{
    int best = -1;
    for (int i = 0; i < RANDOM_SLOTS; i++)
        if (items[i].is_in && !items[i].is_blocked &&
            (best < 0 || naive_compare(order, &items[i].item, &items[best].item) < 0))
            best = i;
    return best;
}

static void naive_block(struct naive *items, int shape, bool is_blocked)
{
    for (int i = 0; i < RANDOM_SLOTS; i++)
        if (shape < 0 || items[i].shape == shape)
            items[i].is_blocked = is_blocked;
}

/* A job that comes into a blocked class is blocked with it; an empty class forgets. */
static bool naive_class_is_blocked(const struct naive *items, int shape)
{
    for (int i = 0; i < RANDOM_SLOTS; i++)
        if (items[i].is_in && items[i].shape == shape)
            return items[i].is_blocked;
    return false;
}

static void test_queue_random(void **state)
{
    (void)state;
    static const char *const orders[] = {"priority", "smallest", "fifo"};
    const char *order = orders[0], *asked = order;
    struct queue *queue = queue_new(queue_order_named(order));
    struct naive items[RANDOM_SLOTS] = {0};
    struct random random = {7};
    for (int i = 0; i < 20000; i++) {
        uint32_t slot = (uint32_t)random_below(&random, RANDOM_SLOTS), class;
        int shape = (int)random_below(&random, 6);
        struct queue_item item = {slot,
                                  slot + 1,
                                  shape % 3,
                                  (int64_t)random_below(&random, 50),
                                  (uint64_t)(shape / 3),
                                  (uint32_t)(shape % 2),
                                  0};
        switch (random_below(&random, 5)) {
        case 0:
        case 1:
            items[slot].is_in = false;
            items[slot] = (struct naive){true, naive_class_is_blocked(items, shape), item, shape};
            queue_push(queue, &item, &(struct queue_need){0},
                       (struct text){(char *)&shape, sizeof shape});
            break;
        case 2:
            items[slot].is_in = false;
            queue_remove(queue, slot);
            break;
        case 3:
            if (!queue_first(queue, &item, &class))
                break;
            queue_block(queue, class, "full", 7, false);
            assert_string_equal(queue_reason(queue, class), "full");
            assert_int_equal(queue_topic(queue, class), 7);
            assert_true(queue_is_blocked(queue, class));
            naive_block(items, items[item.slot].shape, true);
            break;
        default:
            if (random_below(&random, 10) == 0) {
                queue_unblock(queue);
                naive_block(items, -1, false);
            }
            if (random_below(&random, 50) == 0) {
                struct queue *copy = queue_copy(queue);
                queue_free(queue);
                queue = copy;
            }
            if (random_below(&random, 20) == 0) {
                asked = orders[random_below(&random, 3)];
                queue_order_set(queue, queue_order_named(asked));
            }
        }
        if (queue_order_go_on(queue, (uint32_t)random_below(&random, 10)) ||
            !queue_order_changes(queue))
            order = asked;
        queue_tidy(queue, (uint32_t)random_below(&random, 2));
        int best = naive_first(items, order);
        assert_int_equal(queue_first(queue, &item, &class), best >= 0);
        if (best >= 0)
            assert_int_equal(item.slot, best);
        size_t count = 0;
        for (int j = 0; j < RANDOM_SLOTS; j++) {
            count += items[j].is_in;
            assert_int_equal(queue_has(queue, (uint32_t)j), items[j].is_in);
        }
        assert_int_equal(queue_count(queue), count);
    }
    uint32_t slots[RANDOM_SLOTS];
    assert_int_equal(queue_list(queue, slots), queue_count(queue));
    assert_true(queue_memory(queue) > 0);
    assert_null(queue_order_named("random"));
    queue_free(queue);
    queue_free(NULL);
}

/* --- another order --- */

enum { WAITING = 24, KINDS = 7 };

enum happening {
    NOTHING,
    ONE_COMES,
    ONE_COMES_OF_A_NEW_KIND,
    ONE_COMES_BEHIND_ALL_SLOTS,
    ONE_MOVES,
    THE_FIRST_GOES,
    THE_LAST_GOES,
    A_KIND_GOES,
    ALL_GO,
    A_KIND_IS_BLOCKED,
    A_KIND_IS_OPENED_BY_A_LIMIT,
    A_KIND_IS_CLOSED,
    ALL_ARE_UNBLOCKED,
    HAPPENINGS,
};

/* Of its kind; smaller ones come later. */
static void come(struct queue *queue, uint32_t slot, uint32_t kind, uint64_t limit_s)
{
    const struct queue_item item = {.slot = slot,
                                    .id = 1000 + slot,
                                    .submitted_ms = slot * 5 % WAITING,
                                    .gpus = 1 + (WAITING - slot % WAITING) / 4,
                                    .limit_s = limit_s};
    queue_push(queue, &item, &(struct queue_need){0}, (struct text){(const char *)&kind, 1});
}

static struct queue *waiting_new(void)
{
    struct queue *queue = queue_new(queue_order_named("fifo"));
    for (uint32_t i = 0; i < WAITING; i++)
        if (i % 5 != 3) /* there are empty slots */
            come(queue, i, i % KINDS, 100 + i * 7 % WAITING);
    queue_block(queue, queue_class_of(queue, 1), "full", 1, false);
    return queue;
}

static void happen(struct queue *queue, enum happening happening)
{
    switch (happening) {
    case NOTHING:
    case HAPPENINGS:
        break;
    case ONE_COMES:
        come(queue, 3, 2, 90);
        break;
    case ONE_COMES_OF_A_NEW_KIND:
        come(queue, 8, KINDS, 90);
        break;
    case ONE_COMES_BEHIND_ALL_SLOTS:
        come(queue, WAITING + 9, KINDS, 90);
        break;
    case ONE_MOVES:
        come(queue, 7, 4, 90);
        break;
    case THE_FIRST_GOES:
        queue_remove(queue, 0);
        break;
    case THE_LAST_GOES:
        queue_remove(queue, WAITING - 2);
        break;
    case A_KIND_GOES:
        for (uint32_t i = 2; i < WAITING; i += KINDS)
            queue_remove(queue, i);
        break;
    case ALL_GO:
        for (uint32_t i = 0; i < WAITING; i++)
            queue_remove(queue, i);
        break;
    case A_KIND_IS_BLOCKED:
        queue_block(queue, queue_class_of(queue, 4), "too little", 2, false);
        break;
    case A_KIND_IS_OPENED_BY_A_LIMIT:
        queue_block(queue, queue_class_of(queue, 4), "held back", 2, true);
        come(queue, 13, 4, 50);
        break;
    case A_KIND_IS_CLOSED:
        queue_close(queue, queue_class_of(queue, 4), "closed", 2);
        break;
    case ALL_ARE_UNBLOCKED:
        queue_unblock(queue);
        break;
    }
}

/* Who comes after whom, and how each of them stands. */
static void assert_alike(const struct queue *a, const struct queue *b)
{
    struct queue *left = queue_copy(a), *right = queue_copy(b);
    struct queue_item x, y;
    uint32_t class, of;
    assert_int_equal(queue_count(a), queue_count(b));
    while (queue_first(left, &x, &class)) {
        assert_true(queue_first(right, &y, &of));
        assert_int_equal(x.slot, y.slot);
        assert_int_equal(queue_shortest(left, class).slot, queue_shortest(right, of).slot);
        assert_int_equal(queue_is_blocked(left, class), queue_is_blocked(right, of));
        assert_string_equal(queue_reason(left, class), queue_reason(right, of));
        queue_remove(left, x.slot);
        queue_remove(right, x.slot);
    }
    assert_false(queue_first(right, &y, &of));
    queue_free(left);
    queue_free(right);
}

static void all_are_opened(struct queue *queue)
{
    queue_unblock(queue);
    queue_reopen(queue);
}

/* So many pieces are done before it happens: until the last one the order of before decides, and
 * then all is as if the other one had been the queue's from the beginning. */
static bool another_order_takes_over(uint32_t pieces, enum happening happening)
{
    const struct queue_order *smallest = queue_order_named("smallest");
    struct queue *queue = waiting_new(), *before = waiting_new(), *after = waiting_new();
    queue_order_set(after, smallest);
    assert_true(queue_order_go_on(after, UINT32_MAX));
    queue_order_set(queue, smallest);
    bool is_over = false;
    for (uint32_t i = 0; i < pieces && !is_over; i++)
        is_over = queue_order_go_on(queue, 1);
    assert_int_equal(queue_order_changes(queue), !is_over);
    assert_alike(queue, is_over ? after : before);
    happen(queue, happening);
    happen(before, happening);
    happen(after, happening);
    assert_alike(queue, is_over ? after : before);
    struct queue *copy = queue_copy(queue);
    while (queue_order_changes(queue)) {
        assert_alike(queue, before);
        assert_int_equal(queue_order_go_on(copy, 1), queue_order_go_on(queue, 1));
    }
    all_are_opened(queue);
    all_are_opened(after);
    assert_alike(queue, after);
    all_are_opened(copy);
    assert_alike(copy, after);
    queue_free(copy);
    queue_free(queue);
    queue_free(before);
    queue_free(after);
    return is_over;
}

static void another_order_takes_over_in_pieces(void **state)
{
    (void)state;
    for (int i = 0; i < HAPPENINGS; i++) {
        uint32_t pieces = 0;
        while (!another_order_takes_over(pieces, (enum happening)i))
            pieces++;
        assert_in_range(pieces, WAITING / 2, 4 * WAITING);
    }
}

/* What has been done for an order that nobody wants any more counts for no other one. */
static void the_last_order_that_was_asked_for_counts(void **state)
{
    (void)state;
    static const char *const orders[] = {"fifo", "priority", "smallest"};
    for (uint32_t pieces = 0; pieces < 2 * WAITING; pieces++)
        for (size_t i = 0; i < COUNT_OF(orders); i++) {
            const struct queue_order *last = queue_order_named(orders[i]);
            struct queue *queue = waiting_new(), *other = waiting_new();
            queue_order_set(queue, queue_order_named("smallest"));
            for (uint32_t k = 0; k < pieces; k++)
                queue_order_go_on(queue, 1);
            queue_order_set(queue, last);
            queue_order_set(queue, last);
            queue_order_go_on(queue, UINT32_MAX);
            queue_order_set(other, last);
            queue_order_go_on(other, UINT32_MAX);
            assert_false(queue_order_changes(queue));
            assert_alike(queue, other);
            queue_free(queue);
            queue_free(other);
        }
}

/* What the order of before needed goes in pieces. */
static void what_was_needed_before_is_freed(void **state)
{
    (void)state;
    struct queue *queue = waiting_new();
    const size_t memory = queue_memory(queue);
    queue_order_set(queue, queue_order_named("smallest"));
    assert_true(queue_order_go_on(queue, UINT32_MAX));
    assert_true(queue_memory(queue) > memory);
    uint32_t pieces = 0;
    for (size_t last = SIZE_MAX; queue_memory(queue) < last; pieces++) {
        last = queue_memory(queue);
        queue_tidy(queue, 1);
    }
    assert_in_range(pieces, 2 * KINDS, 2 * WAITING);
    struct queue *copy = queue_copy(queue);
    assert_true(queue_memory(queue) <= 2 * queue_memory(copy));
    queue_free(copy);
    queue_free(queue);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(another_order_takes_over_in_pieces),
    cmocka_unit_test(the_last_order_that_was_asked_for_counts),
    cmocka_unit_test(what_was_needed_before_is_freed),
    cmocka_unit_test(the_next_is_the_first_that_fits),
    cmocka_unit_test(a_shorter_limit_opens_its_class),
    cmocka_unit_test(a_search_in_vain_is_cut),
    cmocka_unit_test(closed_classes_cost_nothing),
    cmocka_unit_test(test_queue_random),
};
UNIT_FILE(tests, NULL, NULL);
