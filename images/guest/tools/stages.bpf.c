// SPDX-License-Identifier: Apache-2.0
// The accounted ends of a link direction, as tc programs (clsact, direct action) shared by all interfaces of a lab:
//
//   entering  at the sending interface, before its queue: counts what is offered and holds the queue to its limit exactly;
//   leaving   at the relay, where the first half of a link ends: sees what has left the queue;
//   arriving  at the receiving interface: outages, drop lists and bit errors from a gap vector; counts what is delivered.
//
// Each notes what it sees of every packet: that is the record, from which labtool record makes a file.
// Another program gives the send window of a TCP connection a ceiling (a send buffer as the 1990s had it).
// An interface finds its state by its index, which the lab makes unique across all network namespaces: slot = ifindex - FIRST_IFINDEX.
// Layouts here are read and written by src/scpslab/lab/stages.py, which also sizes the maps; keep both in step.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdint.h>

#define SEC(name) __attribute__((section(name), used))
#define FIRST_IFINDEX 1000
#define ETHERNET_HEADER_BYTES 14
#define NS_PER_S 1000000000ULL
// Bounds that the kernel's verifier needs. 512 packets can leave a queue between two arrivals without its emptying; a packet
// can have 512 bit errors (1500 bytes at a bit error rate of 4 %), and what is beyond counts against the next packet. A packet
// passes over 128 * 128 * 128 windows, more than a plan may have.
#define MAX_EXPIRIES 512
#define MAX_ERRORS_PER_PACKET 512
#define MAX_STEPS 128
#define FOR_EVER_NS (1ULL << 62) // the end of a window that a person or an event has begun, before the epoch too

static void *(*map_lookup)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static uint64_t (*ktime_get_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static long (*skb_load)(const void *skb, uint32_t offset, void *to, uint32_t len) = (void *)BPF_FUNC_skb_load_bytes;
static long (*skb_store)(void *skb, uint32_t offset, const void *from, uint32_t len, uint64_t flags) = (void *)BPF_FUNC_skb_store_bytes;
static long (*clone_redirect)(void *skb, uint32_t ifindex, uint64_t flags) = (void *)BPF_FUNC_clone_redirect;
static long (*set_sockopt)(void *context, int level, int name, void *value, int len) = (void *)BPF_FUNC_setsockopt;

// Map symbols: the loader creates the maps and puts their descriptors where these are used.
struct map {
	uint32_t unused;
};
struct map entries SEC("maps"), departures SEC("maps"), arrivals SEC("maps"), gaps SEC("maps"), windows SEC("maps"), drop_list SEC("maps"),
	verdicts SEC("maps"), verdict_count SEC("maps"), send_ceilings SEC("maps"), recording SEC("maps"), offers SEC("maps"), sights SEC("maps");

// The record of every packet: what each direction was offered, with the head of the packet, and every sight of one on its way.
// A lab that records counts also the lines that have no room, so that the reader knows what it did not get.
enum { HEAD_BYTES = 96 }; // IP and TCP with all options, or IP and the first 76 bytes of what another protocol has
struct recording {
	uint64_t is_on, offers, sights;
};

struct offer {
	uint64_t at_ns, due_ns; // due 0: whoever passes packets on here gives them no time of their own
	uint32_t slot, wire_bytes, waited_bytes, fate;
	uint16_t head_bytes, type; // type: of Ethernet, in network order
	uint32_t imprint;
	uint8_t head[HEAD_BYTES];
};

struct sight {
	uint64_t at_ns;
	uint32_t slot, fate, bit_errors, imprint;
};

struct entry {
	// settings
	uint64_t rate_bytes_per_s; // 0: no serialiser, nothing is policed
	int64_t overhead_bytes;    // wire bytes = frame bytes - Ethernet header + this
	uint64_t limit_bytes;      // 0: not limited by bytes
	uint64_t limit_packets;    // 0: not limited by packets
	uint64_t ring_offset, ring_mask;
	uint64_t log_queue;        // 1: queue drops go to the verdict log
	// state
	uint64_t last_departure_ns, head, tail, backlog_bytes;
	// counters
	uint64_t offered_packets, offered_bytes, queue_packets, queue_bytes, most_bytes, most_packets;
	uint64_t pieces; // of several packets, which the kernel would cut up only behind the queue: none in the lab kernel
};

struct departure {
	uint64_t at_ns, bytes;
};

enum { ACTION_DROP, ACTION_FLIP };
enum { DUPLICATE_MARK = 0x5c95d }; // no one else in the lab marks packets

struct arrival {
	// settings
	int64_t overhead_bytes;
	uint64_t action;
	uint64_t gap_offset, gap_count; // count 0: no bit errors; else at least 2
	uint64_t window_offset, window_count;
	uint64_t drop_offset, drop_count, drop_min_bytes;
	uint64_t epoch_ns; // windows count from here, on the monotonic clock; 0: it has not begun
	uint64_t log;      // 1: verdicts go to the log
	uint64_t duplicate_below; // a draw below this doubles the packet; 0: never
	// state
	uint64_t gap_at, bits_to_error, window_at, drop_at, listed_packets, packet_errors;
	uint64_t draw; // xorshift64*: the draws for duplicates
	// counters
	uint64_t seen_packets, corrupt_packets, corrupt_bytes, outage_packets, outage_bytes, policy_packets, policy_bytes, delivered_packets,
		delivered_bytes, flipped_packets, bit_errors, vector_wraps, duplicated_packets, duplicated_bytes;
};

struct window {
	uint64_t from_ns, to_ns;
};

// A number for a packet by the bytes at its head, which the stages do not change but by bit errors: where packets overtake each
// other, or a queue of the kernel's drops some, the record is put together by it. The transport's checksum is not in it: the
// kernel completes it only behind the first stage.
static inline __attribute__((always_inline)) uint32_t imprint(const uint8_t *head)
{
	uint32_t is_6 = head[0] >> 4 == 6, is_udp = head[is_6 ? 6 : 9] == 17;
	uint32_t checksum = (is_6 ? 40 : 20) + (is_udp ? 6 : 16), mix = 2166136261u;
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < HEAD_BYTES; i += 4) {
		uint32_t word = *(const uint32_t *)(head + i);
		if (i == (checksum & ~3u))
			word &= checksum & 2 ? 0xffff : 0xffff0000;
		mix = (mix ^ word) * 16777619u;
	}
	return mix ^ mix >> 15;
}

// How many bytes of a packet its head has, at least one. The compiler would take the mask away, which shows the verifier the bounds.
static inline __attribute__((always_inline)) uint32_t head_of(const struct __sk_buff *skb)
{
	uint64_t bytes = (uint64_t)skb->len - ETHERNET_HEADER_BYTES - 1;
	asm volatile("%0 &= 0xffff" : "+r"(bytes));
	return bytes < HEAD_BYTES ? (uint32_t)bytes + 1 : HEAD_BYTES;
}

static inline __attribute__((always_inline)) struct recording *recorded(void)
{
	uint32_t zero = 0;
	struct recording *state = map_lookup(&recording, &zero);
	return state && state->is_on ? state : 0;
}

// A line for a packet that is offered to the direction.
static inline __attribute__((always_inline)) struct offer *note_offer(struct __sk_buff *skb, uint32_t slot, uint64_t now, uint64_t bytes)
{
	struct recording *state = recorded();
	if (!state)
		return 0;
	uint32_t at = (uint32_t)state->offers;
	struct offer *line = map_lookup(&offers, &at);
	state->offers += 1;
	if (!line)
		return 0;
	line->at_ns = now;
	line->slot = slot;
	line->wire_bytes = (uint32_t)bytes;
	uint32_t head = head_of(skb);
	if (!skb_load(skb, ETHERNET_HEADER_BYTES, line->head, head))
		line->head_bytes = (uint16_t)head;
	line->type = (uint16_t)skb->protocol;
	line->imprint = imprint(line->head);
	return line;
}

// A line for a packet that is seen at `slot`; its imprint is that of the bytes as they were before errors.
static inline __attribute__((always_inline)) void note_sight(uint32_t slot, uint64_t now, uint32_t mark, uint32_t fate, uint32_t bit_errors)
{
	struct recording *state = recorded();
	if (!state)
		return;
	uint32_t at = (uint32_t)state->sights;
	struct sight *line = map_lookup(&sights, &at);
	state->sights += 1;
	if (!line)
		return;
	line->at_ns = now;
	line->slot = slot;
	line->fate = fate;
	line->bit_errors = bit_errors;
	line->imprint = mark;
}

// The imprint of a packet that is under way.
static inline __attribute__((always_inline)) uint32_t imprint_of(struct __sk_buff *skb)
{
	uint8_t head[HEAD_BYTES] = { 0 };
	skb_load(skb, ETHERNET_HEADER_BYTES, head, head_of(skb));
	return imprint(head);
}

enum { VERDICT_CORRUPT = 1, VERDICT_OUTAGE, VERDICT_POLICY, VERDICT_FLIPPED, VERDICT_QUEUE, VERDICT_DUPLICATE };

struct verdict {
	uint64_t at_ns, ordinal;
	uint32_t slot, wire_bytes, verdict, bit_errors;
};

static inline __attribute__((always_inline)) void log_verdict(uint32_t slot, uint64_t now, uint64_t ordinal, uint32_t bytes, uint32_t verdict,
							      uint32_t bit_errors)
{
	uint32_t zero = 0;
	uint64_t *count = map_lookup(&verdict_count, &zero);
	if (!count)
		return;
	uint32_t at = (uint32_t)*count;
	struct verdict *line = map_lookup(&verdicts, &at);
	*count += 1; // counted even when the log is full, so that the reader knows what it did not get
	if (!line)
		return;
	line->at_ns = now;
	line->ordinal = ordinal;
	line->slot = slot;
	line->wire_bytes = bytes;
	line->verdict = verdict;
	line->bit_errors = bit_errors;
}

// Forgets the packets that have left the queue by now.
static inline __attribute__((always_inline)) void expire(struct entry *entry, uint64_t now)
{
	if (entry->last_departure_ns <= now) {
		entry->head = entry->tail;
		entry->backlog_bytes = 0;
		return;
	}
#pragma clang loop unroll(disable)
	for (int i = 0; i < MAX_EXPIRIES; i++) {
		uint32_t at = (uint32_t)(entry->ring_offset + (entry->head & entry->ring_mask));
		struct departure *departure = map_lookup(&departures, &at);
		if (!departure || departure->at_ns > now)
			return;
		entry->backlog_bytes -= departure->bytes;
		entry->head += 1;
	}
}

SEC("tc/entering") int entering(struct __sk_buff *skb)
{
	uint32_t slot = skb->ifindex - FIRST_IFINDEX;
	struct entry *entry = map_lookup(&entries, &slot);
	if (!entry)
		return TC_ACT_OK;
	uint64_t bytes = (uint64_t)((int64_t)skb->len - ETHERNET_HEADER_BYTES + entry->overhead_bytes);
	entry->offered_packets += 1;
	entry->offered_bytes += bytes;
	entry->pieces += skb->gso_segs > 1;
	uint64_t now = ktime_get_ns();
	struct offer *line = note_offer(skb, slot, now, bytes);
	if (!entry->rate_bytes_per_s || !(entry->limit_bytes | entry->limit_packets))
		return TC_ACT_OK;

	expire(entry, now);
	if (line)
		line->waited_bytes = (uint32_t)entry->backlog_bytes;
	if ((entry->limit_bytes && entry->backlog_bytes + bytes > entry->limit_bytes) ||
	    (entry->limit_packets && entry->tail - entry->head + 1 > entry->limit_packets)) {
		entry->queue_packets += 1;
		entry->queue_bytes += bytes;
		if (entry->log_queue)
			log_verdict(slot, now, entry->offered_packets, (uint32_t)bytes, VERDICT_QUEUE, 0);
		if (line)
			line->fate = VERDICT_QUEUE;
		// "Stolen" and not "shot": the sender must not hear of a drop in a modem's queue.
		return TC_ACT_STOLEN;
	}
	// The serialiser's own arithmetic (netem's rate): a packet leaves one packet time after the one before it, or after now.
	uint64_t start = entry->last_departure_ns > now ? entry->last_departure_ns : now;
	entry->last_departure_ns = start + bytes * NS_PER_S / entry->rate_bytes_per_s;
	if (line)
		line->due_ns = entry->last_departure_ns;
	uint32_t at = (uint32_t)(entry->ring_offset + (entry->tail & entry->ring_mask));
	struct departure *departure = map_lookup(&departures, &at);
	if (departure) {
		departure->at_ns = entry->last_departure_ns;
		departure->bytes = bytes;
		entry->tail += 1;
		entry->backlog_bytes += bytes;
	}
	if (entry->backlog_bytes > entry->most_bytes)
		entry->most_bytes = entry->backlog_bytes;
	if (entry->tail - entry->head > entry->most_packets)
		entry->most_packets = entry->tail - entry->head;
	return TC_ACT_OK;
}

SEC("tc/leaving") int leaving(struct __sk_buff *skb)
{
	note_sight(skb->ifindex - FIRST_IFINDEX, ktime_get_ns(), imprint_of(skb), 0, 0);
	return TC_ACT_OK;
}

// Walks the gap vector over a packet of `bits` bits on the wire, of which `body_bits` are in the frame's body and can be
// flipped; returns the number of errors in it and leaves the distance to the next one.
//
// Position and count live in the map and not in variables: the verifier then sees the same state in every turn of the loop and
// need not follow each path through all of them.
static inline __attribute__((always_inline)) uint32_t walk_errors(struct __sk_buff *skb, struct arrival *arrival, uint64_t bits, uint64_t body_bits)
{
	arrival->packet_errors = 0;
#pragma clang loop unroll(disable)
	for (int i = 0; i < MAX_ERRORS_PER_PACKET; i++) {
		uint64_t position = arrival->bits_to_error;
		if (position >= bits)
			break;
		if (arrival->action == ACTION_FLIP && position < body_bits) {
			uint32_t offset = ETHERNET_HEADER_BYTES + (uint32_t)(position >> 3);
			uint8_t byte = 0;
			skb_load(skb, offset, &byte, 1);
			byte ^= 0x80 >> (position & 7);
			skb_store(skb, offset, &byte, 1, 0);
		}
		arrival->packet_errors += 1;
		arrival->gap_at += 1;
		if (arrival->gap_at >= arrival->gap_count) {
			arrival->gap_at = 1; // the first gap leads to the first error, once; the others repeat
			arrival->vector_wraps += 1;
		}
		uint32_t at = (uint32_t)(arrival->gap_offset + arrival->gap_at);
		uint64_t *gap = map_lookup(&gaps, &at);
		if (!gap)
			break;
		arrival->bits_to_error = position + *gap; // a distance from one error to the next, at least 1
	}
	arrival->bits_to_error = arrival->bits_to_error > bits ? arrival->bits_to_error - bits : 0;
	arrival->bit_errors += arrival->packet_errors;
	return (uint32_t)arrival->packet_errors;
}

// Passes over windows that have ended, some at once; their ends ascend.
static inline __attribute__((always_inline)) void pass_windows(struct arrival *arrival, uint64_t t_ns, uint64_t step)
{
#pragma clang loop unroll(disable)
	for (int i = 0; i < MAX_STEPS; i++) {
		uint64_t last = arrival->window_at + step - 1;
		uint32_t at = (uint32_t)(arrival->window_offset + last);
		struct window *window = map_lookup(&windows, &at);
		if (!window || last >= arrival->window_count || t_ns < window->to_ns)
			return;
		arrival->window_at += step;
	}
}

// No window is used up before the epoch.
static inline __attribute__((always_inline)) int in_outage(struct arrival *arrival, uint64_t now)
{
	if (arrival->window_at >= arrival->window_count)
		return 0;
	int has_begun = arrival->epoch_ns && now >= arrival->epoch_ns;
	uint64_t t_ns = has_begun ? now - arrival->epoch_ns : 0;
	if (has_begun) {
		pass_windows(arrival, t_ns, MAX_STEPS * MAX_STEPS);
		pass_windows(arrival, t_ns, MAX_STEPS);
		pass_windows(arrival, t_ns, 1);
	}
	uint32_t at = (uint32_t)(arrival->window_offset + arrival->window_at);
	struct window *window = map_lookup(&windows, &at);
	if (!window || arrival->window_at >= arrival->window_count)
		return 0;
	return window->to_ns == FOR_EVER_NS || (has_begun && t_ns >= window->from_ns);
}

// Whether the drop list names this packet; the list is ascending.
static inline __attribute__((always_inline)) int in_drop_list(struct arrival *arrival, uint64_t bytes)
{
	if (!arrival->drop_count || bytes < arrival->drop_min_bytes)
		return 0;
	arrival->listed_packets += 1;
	if (arrival->drop_at >= arrival->drop_count)
		return 0;
	uint32_t at = (uint32_t)(arrival->drop_offset + arrival->drop_at);
	uint64_t *ordinal = map_lookup(&drop_list, &at);
	if (!ordinal || *ordinal != arrival->listed_packets)
		return 0;
	arrival->drop_at += 1;
	return 1;
}

// Whether this packet is to arrive twice.
static inline __attribute__((always_inline)) int draw_duplicate(struct arrival *arrival)
{
	if (!arrival->duplicate_below)
		return 0;
	uint64_t state = arrival->draw;
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	arrival->draw = state;
	return state * 0x2545F4914F6CDD1DULL < arrival->duplicate_below;
}

SEC("tc/arriving") int arriving(struct __sk_buff *skb)
{
	uint32_t slot = skb->ifindex - FIRST_IFINDEX;
	struct arrival *arrival = map_lookup(&arrivals, &slot);
	if (!arrival)
		return TC_ACT_OK;
	uint64_t body = skb->len - ETHERNET_HEADER_BYTES;
	uint64_t bytes = (uint64_t)((int64_t)body + arrival->overhead_bytes);
	uint64_t now = ktime_get_ns();
	uint32_t errors = 0, mark = imprint_of(skb);

	if (skb->mark == DUPLICATE_MARK) {
		// The second copy comes in here again, and has been through the channel.
		skb->mark = 0;
		arrival->duplicated_packets += 1;
		arrival->duplicated_bytes += bytes;
		arrival->delivered_packets += 1;
		arrival->delivered_bytes += bytes;
		note_sight(slot, now, mark, VERDICT_DUPLICATE, 0);
		return TC_ACT_OK;
	}
	arrival->seen_packets += 1;
	// The bits pass the channel whatever else happens to the packet, so the vector moves on first.
	if (arrival->gap_count)
		errors = walk_errors(skb, arrival, bytes * 8, body * 8);
	uint32_t verdict = 0;
	if (in_outage(arrival, now)) {
		verdict = VERDICT_OUTAGE;
		arrival->outage_packets += 1;
		arrival->outage_bytes += bytes;
	}
	int listed = in_drop_list(arrival, bytes);
	if (!verdict && listed) {
		verdict = VERDICT_POLICY;
		arrival->policy_packets += 1;
		arrival->policy_bytes += bytes;
	}
	if (!verdict && errors && arrival->action == ACTION_DROP) {
		verdict = VERDICT_CORRUPT;
		arrival->corrupt_packets += 1;
		arrival->corrupt_bytes += bytes;
	}
	uint32_t fate = verdict ? verdict : errors ? VERDICT_FLIPPED : 0;
	note_sight(slot, now, mark, fate, errors);
	if (!verdict) {
		arrival->delivered_packets += 1;
		arrival->delivered_bytes += bytes;
		arrival->flipped_packets += errors > 0;
		if (draw_duplicate(arrival)) {
			skb->mark = DUPLICATE_MARK;
			clone_redirect(skb, skb->ifindex, BPF_F_INGRESS);
			skb->mark = 0;
		}
	}
	if (arrival->log && fate)
		log_verdict(slot, now, arrival->seen_packets, (uint32_t)bytes, fate, errors);
	return verdict ? TC_ACT_SHOT : TC_ACT_OK;
}

#define SOL_TCP_LEVEL 6
#define SEND_CEILING_OPTION 1002 // TCP_BPF_SNDCWND_CLAMP

// Gives a new connection's congestion window the ceiling stated for its remote address and port, in segments.
SEC("sockops/established") int established(struct bpf_sock_ops *ops)
{
	if (ops->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		return 1;
	uint64_t to = (uint64_t)ops->remote_ip4 << 32 | (__builtin_bswap32(ops->remote_port) & 0xffff);
	uint32_t *ceiling = map_lookup(&send_ceilings, &to);
	if (ceiling && *ceiling) {
		int segments = (int)*ceiling;
		set_sockopt(ops, SOL_TCP_LEVEL, SEND_CEILING_OPTION, &segments, sizeof segments);
	}
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
