// SPDX-License-Identifier: Apache-2.0
// `labtool record --offers FD --offer-count N --sights FD --sight-count N --epoch-ns T`: the record of every packet (docs/plan-format.md, packets.rec) on standard
// output, from the lines that the stages of the links noted in two maps (stages.bpf.c). Standard input has lines
//   owner NAME GROUP                              whose sockets are in a control group (0: none); the first three are unknown, kernel and lab
//   address IP PORT OWNER                         whose it is (0: every port), by the number of the owner's line from 0; the first one that fits counts
//   direction LINK NAME ENTERING LEAVING ARRIVING the last three as slots; a link without a relay leaves where it arrives, and has -1.
#define _GNU_SOURCE
#include "labtool.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HEAD_BYTES = 96, SHOWN_BYTES = 64, ADDRESS_BYTES = 16, NAME_BYTES = 101, MOST_DIRECTIONS = 1 << 16 };
enum { FATE_DUPLICATE = 6, FATE_UNSEEN = 7, HAS_LEFT = 0x10, HAS_ARRIVED = 0x20 };
enum { UNKNOWN, KERNEL, LAB, MOST_OWNERS = 1 << 12 };
enum { IPV4 = 0x0800, IPV6 = 0x86dd, FRAGMENT = 0xffff, PROTOCOL_ICMP = 1, PROTOCOL_IGMP = 2, PROTOCOL_TCP = 6, PROTOCOL_UDP = 17, PROTOCOL_FRAGMENT = 44, PROTOCOL_ICMPV6 = 58, PROTOCOL_SCPS_TP = 106, TCP_BYTES = 20 };

// As the stages have them.
struct offer {
	uint64_t at_ns, due_ns;
	uint32_t slot, wire_bytes, waited_bytes, group;
	uint16_t type;
	uint8_t fate, head_bytes;
	uint32_t imprint;
	uint8_t head[HEAD_BYTES];
};

struct sight {
	uint64_t at_ns;
	uint32_t slot, fate, bit_errors, imprint;
};

struct direction {
	char link[NAME_BYTES], name[NAME_BYTES];
	long entering, leaving, arriving;
};

// Who talks to whom: packets with the same five are a flow. Addresses of IPv4 are mapped into IPv6's (RFC 4291 section 2.5.5.2).
struct flow {
	uint8_t from[ADDRESS_BYTES], to[ADDRESS_BYTES];
	uint16_t from_port, to_port, type, owner;
	uint8_t protocol, unused;
};

struct owner {
	char name[NAME_BYTES];
	uint32_t group;
};

struct address {
	uint8_t ip[ADDRESS_BYTES];
	uint16_t port, owner;
};

// What the flow's packet before this one had, from which the columns are differences.
struct before {
	uint32_t id, next_sequence, acknowledgement, window;
};

// SCPS-TP that is not compressed has the header of TCP.
static int has_tcp_header(const struct flow *flow)
{
	return flow->protocol == PROTOCOL_TCP || flow->protocol == PROTOCOL_SCPS_TP;
}

struct list {
	const void **lines;
	size_t count;
};

static void *room(size_t count, size_t bytes)
{
	void *found = calloc(count ? count : 1, bytes);
	if (!found)
		exit(die("memory"));
	return found;
}

static const void *mapped(long fd, size_t bytes)
{
	const void *found = bytes ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, (int)fd, 0) : "";
	if (found == MAP_FAILED)
		exit(die("a map"));
	return found;
}

static struct list lines_of(const void *lines, size_t count, size_t bytes, size_t slot_at, long slot)
{
	struct list found = { room(count, sizeof(void *)), 0 };
	for (size_t i = 0; i < count; i++) {
		const char *line = (const char *)lines + i * bytes;
		uint32_t here;
		memcpy(&here, line + slot_at, sizeof here);
		if (slot >= 0 && here == (uint32_t)slot)
			found.lines[found.count++] = line;
	}
	return found;
}

// Gives each packet its sight, in `sight_of`: the first one with the imprint behind the packet that was seen before. A queue of the kernel's may
// have dropped what lies between, and packets that are alike are told apart by their order alone. Returns 0 where one overtook another.
static int match_in_order(const struct list *offers, const struct list *sights, const struct sight **sight_of)
{
	size_t at = 0;
	for (size_t i = 0; i < sights->count; i++) {
		const struct sight *sight = sights->lines[i];
		if (sight->fate == FATE_DUPLICATE)
			continue;
		const struct offer *offer = NULL;
		while (at < offers->count && ((offer = offers->lines[at])->fate || offer->imprint != sight->imprint))
			at++;
		if (at == offers->count)
			return 0;
		sight_of[at++] = sight;
	}
	return 1;
}

// The same where packets overtake each other: the first one with the imprint that has no sight yet.
static void match_by_imprint(const struct list *offers, const struct list *sights, const struct sight **sight_of)
{
	size_t buckets = 1;
	while (buckets < 2 * offers->count)
		buckets *= 2;
	// Chains of offers by imprint, in their order: the first of each, and after each the next.
	size_t *first = room(buckets, sizeof *first), *next = room(offers->count, sizeof *next);
	memset(sight_of, 0, offers->count * sizeof *sight_of);
	for (size_t i = offers->count; i-- > 0;) {
		const struct offer *offer = offers->lines[i];
		next[i] = first[offer->imprint & (buckets - 1)];
		if (!offer->fate)
			first[offer->imprint & (buckets - 1)] = i + 1;
	}
	for (size_t i = 0; i < sights->count; i++) {
		const struct sight *sight = sights->lines[i];
		if (sight->fate == FATE_DUPLICATE)
			continue;
		for (size_t *at = &first[sight->imprint & (buckets - 1)]; *at; at = &next[*at - 1]) {
			size_t found = *at - 1;
			if (((const struct offer *)offers->lines[found])->imprint == sight->imprint) {
				sight_of[found] = sight;
				*at = next[found];
				break;
			}
		}
	}
	free(first);
	free(next);
}

static void match(const struct list *offers, const struct list *sights, const struct sight **sight_of)
{
	if (!match_in_order(offers, sights, sight_of))
		match_by_imprint(offers, sights, sight_of);
}

static int by_sight(const void *one, const void *other)
{
	const struct sight *const *first = *(const struct sight *const *const *)one, *const *second = *(const struct sight *const *const *)other;
	return *first < *second ? -1 : *first > *second;
}

// The packets of those moments in which one was seen behind a packet that had been offered after it, in the order in which they were seen: of flows
// whose packets are due within a step of the clock, fq lets each pass in turn. Returns how many.
static size_t turns_of(const struct sight **sight_of, size_t count, uint32_t *turns)
{
	const struct sight ***rows = room(count, sizeof *rows);
	size_t seen = 0, found = 0;
	for (size_t row = 0; row < count; row++)
		if (sight_of[row])
			rows[seen++] = &sight_of[row];
	qsort(rows, seen, sizeof *rows, by_sight);
	for (size_t from = 0, to; from < seen; from = to) {
		int is_turned = 0;
		for (to = from + 1; to < seen && (*rows[to])->at_ns == (*rows[from])->at_ns; to++)
			is_turned |= rows[to] < rows[to - 1];
		for (size_t i = from; is_turned && i < to; i++)
			turns[found++] = (uint32_t)(rows[i] - sight_of);
	}
	free(rows);
	return found;
}

static uint16_t big16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t big32(const uint8_t *at)
{
	return (uint32_t)big16(at) << 16 | big16(at + 2);
}

static void map_ipv4(uint8_t *address, const uint8_t *ip)
{
	memset(address, 0, 10);
	address[10] = address[11] = 0xff;
	memcpy(address + 12, ip, 4);
}

static int is_icmp(uint8_t protocol)
{
	return protocol == PROTOCOL_ICMP || protocol == PROTOCOL_ICMPV6;
}

static int is_echo(uint8_t protocol, uint8_t type)
{
	return protocol == PROTOCOL_ICMP ? type == 0 || type == 8 : protocol == PROTOCOL_ICMPV6 && (type == 128 || type == 129);
}

// What the head of a packet shows: its flow, its IP id, and where its transport's header begins; 0 where it has none.
static size_t read_head(const uint8_t *head, size_t bytes, uint16_t type, struct flow *flow, uint32_t *id)
{
	size_t at = 0;
	memset(flow, 0, sizeof *flow);
	flow->type = type;
	*id = 0;
	if (flow->type == IPV4 && bytes >= 20) {
		at = 4 * (size_t)(head[0] & 15);
		flow->protocol = head[9];
		*id = big16(head + 4);
		map_ipv4(flow->from, head + 12);
		map_ipv4(flow->to, head + 16);
		// Behind the first fragment there is no header.
		if (big16(head + 6) & 0x1fff)
			return 0;
	} else if (flow->type == IPV6 && bytes >= 40) {
		at = 40;
		flow->protocol = head[6];
		memcpy(flow->from, head + 8, ADDRESS_BYTES);
		memcpy(flow->to, head + 24, ADDRESS_BYTES);
		if (flow->protocol == PROTOCOL_FRAGMENT && bytes >= at + 8) {
			flow->protocol = head[at];
			*id = big16(head + at + 6);
			if (big16(head + at + 2) & 0xfff8)
				return 0;
			at += 8;
		}
	}
	if (at && bytes >= at + 4 && (has_tcp_header(flow) || flow->protocol == PROTOCOL_UDP)) {
		flow->from_port = big16(head + at);
		flow->to_port = big16(head + at + 2);
	} else if (at && bytes >= at + 8 && is_echo(flow->protocol, head[at])) {
		// Echoes have a number by which their sender knows them.
		flow->from_port = flow->to_port = big16(head + at + 4);
	}
	return at && at < bytes ? at : 0;
}

struct flows {
	struct flow *flows;
	struct before *before;
	uint32_t *places; // by hash: the number of a flow, and one
	size_t count, buckets;
};

// Where a flow has its number, or would have it: 0 there means that it has none yet.
static uint32_t *place_of(const struct flows *known, const struct flow *flow)
{
	uint32_t mix = 2166136261u;
	for (size_t i = 0; i < sizeof *flow; i++)
		mix = (mix ^ ((const uint8_t *)flow)[i]) * 16777619u;
	size_t at = mix & (known->buckets - 1);
	while (known->places[at] && memcmp(&known->flows[known->places[at] - 1], flow, sizeof *flow))
		at = (at + 1) & (known->buckets - 1);
	return &known->places[at];
}

static uint32_t number_of(struct flows *known, const struct flow *flow)
{
	uint32_t *place = place_of(known, flow);
	if (!*place) {
		known->flows[known->count] = *flow;
		*place = (uint32_t)++known->count;
	}
	return *place - 1;
}

static struct flows flows_for(size_t count)
{
	struct flows known = { room(count, sizeof(struct flow)), room(count, sizeof(struct before)), NULL, 0, 1 };
	while (known.buckets < 2 * count + 1)
		known.buckets *= 2;
	known.places = room(known.buckets, sizeof *known.places);
	return known;
}

static void free_flows(struct flows *known)
{
	free(known->flows);
	free(known->before);
	free(known->places);
}

static struct owner owners[MOST_OWNERS];
static struct address addresses[MOST_OWNERS];
static size_t owner_count, address_count;
// The flows that a socket of an owner's has sent, and whose each is.
static struct flows told;
static uint16_t *told_owners;

static uint16_t owner_of_group(uint32_t group)
{
	for (size_t i = LAB; group && i < owner_count; i++)
		if (owners[i].group == group)
			return (uint16_t)i;
	return UNKNOWN;
}

// As what the owner of a packet is remembered: its flow, or, where it is a fragment, its number among those of its hosts.
static struct flow known_as(const struct offer *offer, const struct flow *flow, uint32_t id)
{
	struct flow key = *flow;
	if (flow->type == IPV4 ? big16(offer->head + 6) & 0x3fff : flow->type == IPV6 && offer->head[6] == PROTOCOL_FRAGMENT) {
		key.type = FRAGMENT;
		key.from_port = key.to_port = (uint16_t)id;
	}
	return key;
}

static void tell(const struct flow *key, uint16_t owner)
{
	size_t before = told.count;
	uint32_t number = number_of(&told, key);
	if (number == before)
		told_owners[number] = owner;
}

// By the flow that a socket has sent; then by that which it answers.
static uint16_t owner_told(struct flow key)
{
	uint32_t number = *place_of(&told, &key);
	if (!number) {
		struct flow back = key;
		memcpy(back.from, key.to, ADDRESS_BYTES);
		memcpy(back.to, key.from, ADDRESS_BYTES);
		back.from_port = key.to_port;
		back.to_port = key.from_port;
		number = *place_of(&told, &back);
	}
	return number ? told_owners[number - 1] : UNKNOWN;
}

// What sockets have sent; then the first fragments of whoever answers them, which alone show a port.
static void tell_all(const struct offer *offers, size_t count)
{
	told = flows_for(2 * count);
	told_owners = room(2 * count, sizeof *told_owners);
	for (size_t i = 0; i < 2 * count; i++) {
		const struct offer *offer = &offers[i % count];
		int by_socket = i < count;
		struct flow flow;
		uint32_t id;
		size_t at = read_head(offer->head, offer->head_bytes, ntohs(offer->type), &flow, &id);
		struct flow key = known_as(offer, &flow, id);
		uint16_t owner = by_socket ? owner_of_group(offer->group) : at && key.type == FRAGMENT ? owner_told(flow) : UNKNOWN;
		if (!owner)
			continue;
		tell(&key, owner);
		if (at && by_socket)
			tell(&flow, owner);
	}
}

static int is_at(const struct address *address, const uint8_t *ip, uint16_t port)
{
	return (!address->port || address->port == port) && !memcmp(address->ip, ip, ADDRESS_BYTES);
}

static uint16_t owner_of(const struct offer *offer, const struct flow *flow, uint32_t id, size_t at)
{
	const uint8_t *icmp = offer->head + at;
	struct flow quoted;
	uint32_t unused;
	uint16_t owner = owner_of_group(offer->group);
	if (!owner)
		owner = owner_told(known_as(offer, flow, id));
	// A report of an error quotes the packet that it is about.
	if (!owner && at && is_icmp(flow->protocol) && offer->head_bytes >= at + 8 && !is_echo(flow->protocol, icmp[0])) {
		read_head(icmp + 8, offer->head_bytes - at - 8, flow->type, &quoted, &unused);
		owner = owner_told(quoted);
	}
	for (size_t i = 0; !owner && i < address_count; i++)
		if (is_at(&addresses[i], flow->from, flow->from_port) || is_at(&addresses[i], flow->to, flow->to_port))
			owner = addresses[i].owner;
	if (!owner && ((flow->type != IPV4 && flow->type != IPV6) || is_icmp(flow->protocol) || flow->protocol == PROTOCOL_IGMP))
		owner = KERNEL;
	return owner || !offer->group ? owner : LAB;
}

// The columns of a direction, in their order in the file; a value has so many bytes, the least significant first.
enum { OFFERED, WIRE, WAITED, DUE, LEFT, ARRIVED, FATE, BIT_ERRORS, FLOW, ID, PAYLOAD, SEQUENCE, ACKNOWLEDGEMENT, WINDOW, FLAGS, COLUMNS };
static const struct {
	const char *name;
	int bytes;
} COLUMN[COLUMNS] = {
	[OFFERED] = { "offered", 8 }, [WIRE] = { "wire_bytes", 4 },   [WAITED] = { "waited_bytes", 4 }, [DUE] = { "due", 8 },		   [LEFT] = { "left", 8 },
	[ARRIVED] = { "arrived", 8 }, [FATE] = { "fate", 1 },	      [BIT_ERRORS] = { "bit_errors", 4 }, [FLOW] = { "flow", 4 },	   [ID] = { "id", 2 },
	[PAYLOAD] = { "payload", 2 }, [SEQUENCE] = { "sequence", 4 }, [ACKNOWLEDGEMENT] = { "acknowledgement", 4 },
	[WINDOW] = { "window", 2 },   [FLAGS] = { "flags", 1 },
};

// Puts a value into a column of `count`: all first bytes stand together, then all second ones, so that what is small takes no room when packed.
static void put(uint8_t *column, size_t count, size_t row, int bytes, uint64_t value)
{
	for (int i = 0; i < bytes; i++)
		column[(size_t)i * count + row] = (uint8_t)(value >> 8 * i);
}

static void write_all(const void *from, size_t bytes)
{
	if (fwrite(from, 1, bytes, stdout) != bytes)
		exit(die("the record"));
}

static void transport(const struct offer *offer, const struct flow *flow, size_t at, struct before *before, uint8_t **columns, size_t count, size_t row)
{
	const uint8_t *head = offer->head + at;
	size_t packet = flow->type == IPV4 ? big16(offer->head + 2) : (size_t)big16(offer->head + 4) + 40;
	size_t payload = packet > at ? packet - at : 0;
	if (flow->protocol == PROTOCOL_UDP)
		payload -= payload < 8 ? payload : 8;
	if (has_tcp_header(flow) && offer->head_bytes >= at + TCP_BYTES) {
		size_t header = 4 * (size_t)(head[12] >> 4);
		payload -= payload < header ? payload : header;
		uint32_t sequence = big32(head + 4), acknowledgement = big32(head + 8), window = big16(head + 14);
		put(columns[SEQUENCE], count, row, 4, sequence - before->next_sequence);
		put(columns[ACKNOWLEDGEMENT], count, row, 4, acknowledgement - before->acknowledgement);
		put(columns[WINDOW], count, row, 2, window - before->window);
		put(columns[FLAGS], count, row, 1, head[13]);
		before->next_sequence = sequence + (uint32_t)payload;
		before->acknowledgement = acknowledgement;
		before->window = window;
	}
	put(columns[PAYLOAD], count, row, 2, payload);
}

static void write_direction(const struct direction *direction, const struct list *offers, const struct list *left, const struct list *arrivals, int64_t epoch_ns)
{
	size_t count = offers->count, duplicates = 0, heads = 0;
	const struct sight **left_of = room(count, sizeof *left_of), **arrival_of = room(count, sizeof *arrival_of);
	const struct list *out = direction->leaving < 0 ? arrivals : left;
	match(offers, out, left_of);
	match(offers, arrivals, arrival_of);
	uint32_t *left_turns = room(count, sizeof *left_turns), *arrival_turns = room(count, sizeof *arrival_turns);
	size_t left_turned = turns_of(left_of, count, left_turns), arrivals_turned = turns_of(arrival_of, count, arrival_turns);

	struct flows known = flows_for(count);
	uint8_t *columns[COLUMNS], *shown = room(count, SHOWN_BYTES);
	for (int i = 0; i < COLUMNS; i++)
		columns[i] = room(count, (size_t)COLUMN[i].bytes);
	uint64_t offered_before = (uint64_t)epoch_ns, due_before = 0;
	uint32_t wire_before = 0, waited_before = 0;
	for (size_t row = 0; row < count; row++) {
		const struct offer *offer = offers->lines[row];
		struct flow flow;
		uint32_t id;
		size_t at = read_head(offer->head, offer->head_bytes, ntohs(offer->type), &flow, &id);
		flow.owner = owner_of(offer, &flow, id, at);
		uint32_t number = number_of(&known, &flow);
		struct before *before = &known.before[number];
		uint32_t fate = offer->fate;
		put(columns[OFFERED], count, row, 8, offer->at_ns - offered_before);
		put(columns[WIRE], count, row, 4, offer->wire_bytes - wire_before);
		put(columns[WAITED], count, row, 4, offer->waited_bytes - waited_before);
		put(columns[FLOW], count, row, 4, number);
		put(columns[ID], count, row, 2, id - before->id);
		uint64_t from_ns = offer->at_ns;
		if (offer->due_ns) {
			// What the packet takes from where it can begin: the same for packets of one size.
			put(columns[DUE], count, row, 8, offer->due_ns - (due_before > from_ns ? due_before : from_ns));
			from_ns = due_before = offer->due_ns;
		}
		if (left_of[row]) {
			put(columns[LEFT], count, row, 8, left_of[row]->at_ns - from_ns);
			from_ns = left_of[row]->at_ns;
			fate |= HAS_LEFT;
		}
		if (arrival_of[row]) {
			put(columns[ARRIVED], count, row, 8, arrival_of[row]->at_ns - from_ns);
			put(columns[BIT_ERRORS], count, row, 4, arrival_of[row]->bit_errors);
			fate |= arrival_of[row]->fate | HAS_ARRIVED;
		} else if (!fate || fate == HAS_LEFT) {
			fate |= FATE_UNSEEN;
		}
		put(columns[FATE], count, row, 1, fate);
		if (at)
			transport(offer, &flow, at, before, columns, count, row);
		if (!has_tcp_header(&flow) && flow.protocol != PROTOCOL_UDP && at)
			memcpy(shown + SHOWN_BYTES * heads++, offer->head + at, offer->head_bytes - at < SHOWN_BYTES ? offer->head_bytes - at : SHOWN_BYTES);
		before->id = id;
		offered_before = offer->at_ns;
		wire_before = offer->wire_bytes;
		waited_before = offer->waited_bytes;
	}
	for (size_t i = 0; i < arrivals->count; i++)
		duplicates += ((const struct sight *)arrivals->lines[i])->fate == FATE_DUPLICATE;

	printf("direction %s %s packets %zu duplicates %zu flows %zu heads %zu left-turns %zu arrived-turns %zu\n", direction->link, direction->name, count,
	       duplicates, known.count, heads, left_turned, arrivals_turned);
	write_all(known.flows, known.count * sizeof(struct flow));
	for (int i = 0; i < COLUMNS; i++)
		write_all(columns[i], count * (size_t)COLUMN[i].bytes);
	write_all(shown, heads * SHOWN_BYTES);
	for (size_t i = 0; i < arrivals->count; i++) {
		const struct sight *sight = arrivals->lines[i];
		int64_t at_ns = (int64_t)(sight->at_ns - (uint64_t)epoch_ns);
		if (sight->fate == FATE_DUPLICATE)
			write_all(&at_ns, sizeof at_ns);
	}
	write_all(left_turns, left_turned * sizeof *left_turns);
	write_all(arrival_turns, arrivals_turned * sizeof *arrival_turns);
	for (int i = 0; i < COLUMNS; i++)
		free(columns[i]);
	free(shown);
	free_flows(&known);
	free(left_of);
	free(arrival_of);
	free(left_turns);
	free(arrival_turns);
}

int record_main(int argc, char **argv)
{
	size_t offered = (size_t)option_number(argc, argv, "offer-count", 0), seen = (size_t)option_number(argc, argv, "sight-count", 0);
	const struct offer *offers = mapped(option_number(argc, argv, "offers", 0), offered * sizeof *offers);
	const struct sight *sights = mapped(option_number(argc, argv, "sights", 0), seen * sizeof *sights);
	int64_t epoch_ns = option_number(argc, argv, "epoch-ns", 0);
	struct direction direction;
	char word[NAME_BYTES];
	while (scanf("%100s", word) == 1 && strcmp(word, "direction")) {
		struct address *address = &addresses[address_count];
		if (!strcmp(word, "owner") && owner_count < MOST_OWNERS && scanf("%100s %u", owners[owner_count].name, &owners[owner_count].group) == 2) {
			owner_count++;
		} else if (!strcmp(word, "address") && address_count < MOST_OWNERS && scanf("%100s %hu %hu", word, &address->port, &address->owner) == 3) {
			uint8_t ip[4];
			if (inet_pton(AF_INET, word, ip) == 1)
				map_ipv4(address->ip, ip);
			else if (inet_pton(AF_INET6, word, address->ip) != 1)
				return die(word);
			address_count++;
		} else {
			return die("an owner");
		}
	}
	tell_all(offers, offered);
	printf("scpslab packets 1\ncolumns");
	for (int i = 0; i < COLUMNS; i++)
		printf(" %s:%d", COLUMN[i].name, COLUMN[i].bytes);
	printf("\nowners");
	for (size_t i = 0; i < owner_count; i++)
		printf(" %s", owners[i].name);
	printf("\n");
	while (scanf("%100s %100s %ld %ld %ld", direction.link, direction.name, &direction.entering, &direction.leaving, &direction.arriving) == 5) {
		struct list own = lines_of(offers, offered, sizeof *offers, offsetof(struct offer, slot), direction.entering);
		struct list left = lines_of(sights, seen, sizeof *sights, offsetof(struct sight, slot), direction.leaving);
		struct list arrivals = lines_of(sights, seen, sizeof *sights, offsetof(struct sight, slot), direction.arriving);
		write_direction(&direction, &own, &left, &arrivals, epoch_ns);
		free(own.lines);
		free(left.lines);
		free(arrivals.lines);
		if (scanf("%100s", word) != 1)
			break;
	}
	return fflush(stdout) ? die("the record") : 0;
}
