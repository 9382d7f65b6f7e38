/* SPDX-License-Identifier: MIT */
/*
 * The requests in flight. An entry is one allocation with its texts behind
 * it, linked into the list of arrivals and into three hash indexes whose
 * chains keep the order of arrival, so that the first match is the oldest.
 *
 * References count up; an entry's slot is its reference modulo the number of
 * slots, and a number whose slot is taken is skipped. So a reference comes
 * back only after 2^32 others, and doubling the slots cannot collide.
 *
 * Must not know what the requests mean, nor what time it is.
 */
#include "spillway/pending.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_MIN 16u	      /* entries that fit the first tables */
#define ROOM_MAX (1u << 28)
#define NOT_TIMED UINT32_MAX
#define MALLOC_COST 24u	      /* reckoned on top of each allocation */
#define DOUBLE_INFINITY UINT64_C(0x7ff0000000000000)

enum index_kind { INDEX_ID, INDEX_NUMBER, INDEX_TOKEN };
#define INDEXES 3

/* A ring with a sentinel; an element that is in none points nowhere. */
struct link {
	struct link *next;
	struct link *prev;
};

struct entry {
	struct pending_request req;
	struct link arrival;
	struct link chain[INDEXES];
	uint64_t hash[INDEXES];
	uint64_t number;	    /* bits of the id's double */
	uint32_t ref;
	uint32_t timed;		    /* its place in the heap, or NOT_TIMED */
	uint32_t cost;
	char text[];		    /* id, token, meta */
};

/* Everything that grows with the number of entries: one allocation. */
struct tables {
	uint32_t room;		    /* entries, a power of two */
	struct entry **slots;	    /* room * 2, and the allocation's start */
	struct link *chains[INDEXES]; /* room of each */
	struct entry **heap;	    /* room: nearest deadline first */
};

struct pending {
	struct budget *budget;
	uint64_t max_bytes;
	uint64_t bytes;
	uint64_t seed;
	uint64_t untracked;
	struct tables t;
	struct link arrivals;
	uint32_t held;		    /* entries, closed ones included */
	uint32_t count;		    /* entries that are not closed */
	uint32_t timed;		    /* entries in the heap */
	uint32_t next_ref;
	uint32_t removals;	    /* since the tables last changed size */
};

static void
ring_init(struct link *ring)
{
	ring->next = ring;
	ring->prev = ring;
}

static void
ring_append(struct link *ring, struct link *l)
{
	l->next = ring;
	l->prev = ring->prev;
	ring->prev->next = l;
	ring->prev = l;
}

static void
ring_remove(struct link *l)
{
	if (l->next == NULL)
		return;
	l->prev->next = l->next;
	l->next->prev = l->prev;
	l->next = NULL;
	l->prev = NULL;
}

static struct entry *
by_arrival(struct link *l)
{
	return (struct entry *)(void *)((char *)l -
	    offsetof(struct entry, arrival));
}

static struct entry *
by_chain(struct link *l, enum index_kind kind)
{
	return (struct entry *)(void *)((char *)(l - kind) -
	    offsetof(struct entry, chain));
}

static bool
closed(const struct entry *e)
{
	return e->arrival.next == NULL;
}

/* Deadline heap: a binary heap whose entries know their places. */

static bool
sooner(const struct entry *a, const struct entry *b)
{
	if (a->req.deadline != b->req.deadline)
		return a->req.deadline < b->req.deadline;
	return b->ref - a->ref < UINT32_MAX / 2; /* equal: by arrival */
}

static void
heap_place(struct tables *t, struct entry *e, uint32_t at)
{
	t->heap[at] = e;
	e->timed = at;
}

static void
heap_up(struct tables *t, struct entry *e, uint32_t at)
{
	while (at > 0 && sooner(e, t->heap[(at - 1) / 2])) {
		heap_place(t, t->heap[(at - 1) / 2], at);
		at = (at - 1) / 2;
	}
	heap_place(t, e, at);
}

static void
heap_down(struct tables *t, uint32_t n, struct entry *e, uint32_t at)
{
	uint32_t child;

	while ((child = at * 2 + 1) < n) {
		if (child + 1 < n && sooner(t->heap[child + 1],
		    t->heap[child]))
			child++;
		if (!sooner(t->heap[child], e))
			break;
		heap_place(t, t->heap[child], at);
		at = child;
	}
	heap_place(t, e, at);
}

static void
heap_add(struct pending *p, struct entry *e)
{
	heap_up(&p->t, e, p->timed++);
}

static void
heap_remove(struct pending *p, struct entry *e)
{
	uint32_t at = e->timed;
	struct entry *last;

	if (at == NOT_TIMED)
		return;
	e->timed = NOT_TIMED;
	last = p->t.heap[--p->timed];
	if (last == e)
		return;
	heap_up(&p->t, last, at);
	heap_down(&p->t, p->timed, last, last->timed);
}

/* Tables */

static size_t
tables_bytes(uint32_t room)
{
	return room * (3 * sizeof(struct entry *) +
	    INDEXES * sizeof(struct link));
}

static bool
tables_new(struct pending *p, uint32_t room, struct tables *t)
{
	struct entry **at;
	uint32_t i;
	int k;

	at = budget_alloc(p->budget, BUDGET_BOOKS, tables_bytes(room));
	if (at == NULL)
		return false;
	t->room = room;
	t->slots = at;
	memset(at, 0, room * 2 * sizeof(struct entry *));
	t->heap = at + room * 2;
	for (k = 0; k < INDEXES; k++) {
		t->chains[k] = (struct link *)(void *)(at + room * 3) +
		    (size_t)room * (size_t)k;
		for (i = 0; i < room; i++)
			ring_init(&t->chains[k][i]);
	}
	return true;
}

static struct entry **
slot(const struct tables *t, uint32_t ref)
{
	return &t->slots[ref & (t->room * 2 - 1)];
}

static struct link *
chain(const struct tables *t, enum index_kind kind, uint64_t hash)
{
	return &t->chains[kind][hash & (t->room - 1)];
}

/* Move all slots; false if two want the same (shrinking only). */
static bool
slots_move(const struct tables *from, const struct tables *to)
{
	uint32_t i;

	for (i = 0; i < from->room * 2; i++) {
		struct entry *e = from->slots[i];

		if (e == NULL)
			continue;
		if (*slot(to, e->ref) != NULL)
			return false;
		*slot(to, e->ref) = e;
	}
	return true;
}

static void
chains_move(struct pending *p, const struct tables *to)
{
	struct link *l;
	int k;

	for (l = p->arrivals.next; l != &p->arrivals; l = l->next) {
		struct entry *e = by_arrival(l);

		for (k = 0; k < INDEXES; k++)
			if (e->chain[k].next != NULL)
				ring_append(chain(to, (enum index_kind)k,
				    e->hash[k]), &e->chain[k]);
	}
}

static bool
tables_resize(struct pending *p, uint32_t room)
{
	struct tables t;

	if (!tables_new(p, room, &t))
		return false;
	if (!slots_move(&p->t, &t)) {
		budget_release(p->budget, t.slots);
		return false;
	}
	chains_move(p, &t);
	memcpy(t.heap, p->t.heap, p->timed * sizeof(struct entry *));
	p->bytes = p->bytes - tables_bytes(p->t.room) + tables_bytes(room);
	budget_release(p->budget, p->t.slots);
	p->t = t;
	return true;
}

/* Room for one entry more: false if that would break a bound. */
static bool
tables_fit(struct pending *p)
{
	uint32_t room = p->t.room;

	if (p->held < room)
		return true;
	if (room == ROOM_MAX || p->max_bytes < p->bytes ||
	    p->max_bytes - p->bytes < tables_bytes(room))
		return false;
	p->removals = 0;
	return tables_resize(p, room * 2);
}

/*
 * After a burst, give memory back. Tried once per as many removals as there
 * are slots, which pays for it; old references may forbid it for a while.
 */
static void
tables_shrink(struct pending *p)
{
	uint32_t room = p->t.room;

	if (room == ROOM_MIN || ++p->removals < room * 2 / 3 ||
	    p->held > room / 8)
		return;
	p->removals = 0;
	while (room > ROOM_MIN && p->held <= room / 8)
		room /= 2;
	(void)tables_resize(p, room);
}

struct pending *
pending_new(struct budget *budget, uint64_t max_bytes, uint64_t seed)
{
	struct pending *p = budget_alloc(budget, BUDGET_BOOKS, sizeof(*p));

	if (p == NULL)
		return NULL;
	memset(p, 0, sizeof(*p));
	p->budget = budget;
	p->max_bytes = max_bytes;
	p->seed = seed;
	ring_init(&p->arrivals);
	if (!tables_new(p, ROOM_MIN, &p->t)) {
		budget_release(budget, p);
		return NULL;
	}
	p->bytes = sizeof(*p) + tables_bytes(ROOM_MIN) + 2 * MALLOC_COST;
	return p;
}

void
pending_free(struct pending **pp)
{
	struct pending *p = *pp;
	uint32_t i;

	if (p == NULL)
		return;
	for (i = 0; i < p->t.room * 2; i++)
		budget_release(p->budget, p->t.slots[i]);
	budget_release(p->budget, p->t.slots);
	budget_release(p->budget, p);
	*pp = NULL;
}

/* Entries */

static struct entry *
entry_of(const struct pending *p, uint32_t ref)
{
	struct entry *e = *slot(&p->t, ref);

	return e != NULL && e->ref == ref ? e : NULL;
}

static void
entry_unlist(struct pending *p, struct entry *e)
{
	int k;

	if (closed(e))
		return;
	ring_remove(&e->arrival);
	for (k = 0; k < INDEXES; k++)
		ring_remove(&e->chain[k]);
	heap_remove(p, e);
	p->count--;
}

static void
entry_free(struct pending *p, struct entry *e)
{
	entry_unlist(p, e);
	*slot(&p->t, e->ref) = NULL;
	p->held--;
	p->bytes -= e->cost;
	budget_release(p->budget, e);
}

static void
entry_link(struct pending *p, struct entry *e, enum index_kind kind,
    uint64_t hash)
{
	e->hash[kind] = hash;
	ring_append(chain(&p->t, kind, hash), &e->chain[kind]);
}

static bool
forget_oldest(struct pending *p)
{
	if (p->count == 0)
		return false;
	entry_free(p, by_arrival(p->arrivals.next));
	p->untracked++;
	return true;
}

/*
 * Memory for an entry of n bytes. The oldest make room for it; but when the
 * budget refuses although enough was freed, others have taken it, and to
 * forget still more would be in vain.
 */
static struct entry *
entry_alloc(struct pending *p, size_t n)
{
	uint64_t cost = n + MALLOC_COST;
	uint64_t least = sizeof(*p) + tables_bytes(p->t.room) +
	    2 * MALLOC_COST;
	uint64_t start;
	struct entry *e;

	if (p->max_bytes < least || p->max_bytes - least < cost)
		return NULL;
	while (!tables_fit(p) || p->max_bytes - cost < p->bytes)
		if (!forget_oldest(p))
			return NULL;
	start = p->bytes;
	while ((e = budget_alloc(p->budget, BUDGET_BOOKS, n)) == NULL)
		if (start - p->bytes > 2 * cost || !forget_oldest(p))
			return NULL;
	memset(e, 0, sizeof(*e));
	e->cost = (uint32_t)cost;
	p->bytes += cost;
	return e;
}

static char *
text_copy(char *to, const char **text, size_t n)
{
	if (n > 0)
		memcpy(to, *text, n);
	*text = to;
	return to + n;
}

static struct entry *
entry_new(struct pending *p, const struct pending_request *r)
{
	size_t n = sizeof(struct entry) + r->id.len + r->token.len;
	struct entry *e;
	char *to;

	if (r->meta_len > UINT32_MAX - n - MALLOC_COST)
		return NULL;
	e = entry_alloc(p, n + r->meta_len);
	if (e == NULL)
		return NULL;
	e->req = *r;
	e->timed = NOT_TIMED;
	to = text_copy(e->text, &e->req.id.raw, r->id.len);
	to = text_copy(to, &e->req.token.raw, r->token.len);
	text_copy(to, &e->req.meta, r->meta_len);
	if (r->meta_len == 0)
		e->req.meta = NULL;
	return e;
}

static void
ref_take(struct pending *p, struct entry *e)
{
	while (p->next_ref == PENDING_NONE ||
	    *slot(&p->t, p->next_ref) != NULL)
		p->next_ref++;
	e->ref = p->next_ref++;
	*slot(&p->t, e->ref) = e;
}

/*
 * The bits of a number id's double, all zeros one; false for infinities,
 * which no JSON writer can send back.
 */
static bool
number_bits(const struct id *id, uint64_t *bits_r)
{
	double d = id->type == ID_NUMBER ? id_double(id) : 0;

	memcpy(bits_r, &d, sizeof(d));
	if (d == 0)
		*bits_r = 0;
	return id->type == ID_NUMBER &&
	    (*bits_r & DOUBLE_INFINITY) != DOUBLE_INFINITY;
}

/* Keyed, so that nobody can aim at one chain. */
static uint64_t
number_hash(const struct pending *p, uint64_t bits)
{
	uint64_t x = bits ^ p->seed;

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x + p->seed) ^ x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static bool
same_id(const struct pending *p, const struct id *a, const struct id *b,
    const struct id_key *key)
{
	struct id_key own;

	if (a->type != b->type)
		return false;
	if (a->len == b->len && memcmp(a->raw, b->raw, a->len) == 0)
		return true;
	return id_key(a, p->seed, &own) && own.len == key->len &&
	    memcmp(own.bytes, key->bytes, key->len) == 0;
}

static struct entry *
find_key(const struct pending *p, enum index_kind kind, const struct id *id,
    const struct id_key *key)
{
	struct link *ring = chain(&p->t, kind, key->hash);
	struct link *l;

	for (l = ring->next; l != ring; l = l->next) {
		struct entry *e = by_chain(l, kind);

		if (e->hash[kind] == key->hash && same_id(p,
		    kind == INDEX_TOKEN ? &e->req.token : &e->req.id, id, key))
			return e;
	}
	return NULL;
}

/* The only entry whose id is this double. */
static struct entry *
find_number(const struct pending *p, uint64_t bits)
{
	struct link *ring = chain(&p->t, INDEX_NUMBER, number_hash(p, bits));
	struct entry *found = NULL;
	struct link *l;

	for (l = ring->next; l != ring; l = l->next) {
		struct entry *e = by_chain(l, INDEX_NUMBER);

		if (e->number != bits)
			continue;
		if (found != NULL)
			return NULL;
		found = e;
	}
	return found;
}

static void
entry_index(struct pending *p, struct entry *e, const struct id_key *key)
{
	struct id_key token;

	entry_link(p, e, INDEX_ID, key->hash);
	if (number_bits(&e->req.id, &e->number))
		entry_link(p, e, INDEX_NUMBER, number_hash(p, e->number));
	if (id_key(&e->req.token, p->seed, &token))
		entry_link(p, e, INDEX_TOKEN, token.hash);
	ring_append(&p->arrivals, &e->arrival);
	p->held++;
	p->count++;
}

uint32_t
pending_add(struct pending *p, const struct pending_request *r)
{
	struct id_key key;
	struct entry *e = NULL;

	if (id_key(&r->id, p->seed, &key))
		e = entry_new(p, r);
	if (e == NULL) {
		p->untracked++;
		return PENDING_NONE;
	}
	ref_take(p, e);
	entry_index(p, e, &key);
	if (e->req.deadline != USEC_NEVER)
		heap_add(p, e);
	return e->ref;
}

uint32_t
pending_find(const struct pending *p, const struct id *id)
{
	struct id_key key;
	struct entry *e;
	uint64_t bits;

	if (!id_key(id, p->seed, &key))
		return PENDING_NONE;
	e = find_key(p, INDEX_ID, id, &key);
	if (e == NULL && number_bits(id, &bits))
		e = find_number(p, bits);
	return e != NULL ? e->ref : PENDING_NONE;
}

uint32_t
pending_find_token(const struct pending *p, const struct id *token)
{
	struct id_key key;
	struct entry *e;

	if (!id_key(token, p->seed, &key))
		return PENDING_NONE;
	e = find_key(p, INDEX_TOKEN, token, &key);
	return e != NULL ? e->ref : PENDING_NONE;
}

struct pending_request *
pending_get(struct pending *p, uint32_t ref)
{
	struct entry *e = entry_of(p, ref);

	return e != NULL ? &e->req : NULL;
}

void
pending_remove(struct pending *p, uint32_t ref)
{
	struct entry *e = entry_of(p, ref);

	if (e == NULL)
		return;
	entry_free(p, e);
	tables_shrink(p);
}

void
pending_close(struct pending *p, uint32_t ref)
{
	struct entry *e = entry_of(p, ref);

	if (e == NULL)
		return;
	entry_unlist(p, e);
	e->req.state = PENDING_CLOSED;
}

static uint32_t
ref_at(const struct pending *p, struct link *l)
{
	return l != &p->arrivals ? by_arrival(l)->ref : PENDING_NONE;
}

uint32_t
pending_first(const struct pending *p)
{
	return ref_at(p, p->arrivals.next);
}

uint32_t
pending_next(const struct pending *p, uint32_t ref)
{
	struct entry *e = entry_of(p, ref);

	if (e == NULL || closed(e))
		return PENDING_NONE;
	return ref_at(p, e->arrival.next);
}

void
pending_set_deadline(struct pending *p, uint32_t ref, usec_t when)
{
	struct entry *e = entry_of(p, ref);

	if (e == NULL || closed(e))
		return;
	heap_remove(p, e);
	e->req.deadline = when;
	if (when != USEC_NEVER)
		heap_add(p, e);
}

usec_t
pending_next_deadline(const struct pending *p)
{
	return p->timed > 0 ? p->t.heap[0]->req.deadline : USEC_NEVER;
}

uint32_t
pending_expired(const struct pending *p, usec_t now)
{
	if (p->timed == 0 || p->t.heap[0]->req.deadline > now)
		return PENDING_NONE;
	return p->t.heap[0]->ref;
}

uint64_t
pending_count(const struct pending *p)
{
	return p->count;
}

uint64_t
pending_bytes(const struct pending *p)
{
	return p->bytes;
}

uint64_t
pending_untracked(const struct pending *p)
{
	return p->untracked;
}

const char *
method_class_name(enum method_class m)
{
	switch (m) {
	case METHOD_OTHER:
		return "other";
	case METHOD_INITIALIZE:
		return "initialize";
	case METHOD_DISCOVER:
		return "server/discover";
	case METHOD_TOOLS_CALL:
		return "tools/call";
	case METHOD_TOOLS_LIST:
		return "tools/list";
	case METHOD_TASKS_RESULT:
		return "tasks/result";
	case METHOD_LISTEN:
		return "subscriptions/listen";
	case METHOD_ASKS_PERSON:
		return "asks_person";
	}
	return "unknown";
}

const char *
pending_state_name(enum pending_state s)
{
	switch (s) {
	case PENDING_QUEUED:
		return "queued";
	case PENDING_SENT:
		return "sent";
	case PENDING_REPLYING:
		return "replying";
	case PENDING_ANSWERED:
		return "answered";
	case PENDING_CLOSED:
		return "closed";
	}
	return "unknown";
}

void
pending_miss(struct pending *p)
{
	p->untracked++;
}
