// SPDX-License-Identifier: Apache-2.0
// The accounted ends of a link direction, as tc programs (clsact, direct action) shared by all interfaces of a lab:
//
//   entering  at the sending interface, before its queue: counts what is offered and holds the queue to its limit exactly;
//   leaving   at the relay, where the first half of a link ends: sees what has left the queue;
//   delaying  at the relay's other interface, where delays change: gives each packet the time at which it is to arrive;
//   arriving  at the receiving interface: outages, drop lists and bit errors from a gap vector; counts what is delivered.
//
// Each notes what it sees of every packet: that is the record, from which labtool record makes a file.
// Another program gives the send window of a TCP connection a ceiling (a send buffer as the 1990s had it). Two more note the state of
// each connection of TCP: that of the kernel's sender, at each acknowledgement that changes it.
// An interface finds its state by its index, which the lab makes unique across all network namespaces: slot = ifindex - FIRST_IFINDEX.
// Layouts here are read and written by src/scpslab/lab/stages.py, which also sizes the maps; keep both in step.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdint.h>

#define SEC(name) __attribute__((section(name), used))
#define FIRST_IFINDEX 1000
#define ETHERNET_HEADER_BYTES 14
#define NS_PER_S 1000000000ULL
// Bounds that the kernel's verifier needs. 128 * 128 * 128 windows, departures, stretches and steps can be passed over at once, more
// than there may be. At most 256 bits of a packet are flipped in each state, after which a checksum is no better than chance.
#define MAX_STEPS 128
#define MAX_FLIPS 256
#define MAX_HALVINGS 28 // of a vector or of stretches: 2^28 are more than there may be
#define FOR_EVER_NS (1ULL << 62) // the end of a window that a person or an event has begun, before the epoch too

static void *(*map_lookup)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static uint64_t (*ktime_get_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static long (*skb_load)(const void *skb, uint32_t offset, void *to, uint32_t len) = (void *)BPF_FUNC_skb_load_bytes;
static long (*skb_store)(void *skb, uint32_t offset, const void *from, uint32_t len, uint64_t flags) = (void *)BPF_FUNC_skb_store_bytes;
static uint64_t (*skb_cgroup)(const void *skb) = (void *)BPF_FUNC_skb_cgroup_id;
static long (*set_hash)(void *skb, uint32_t hash) = (void *)BPF_FUNC_set_hash;
static long (*clone_redirect)(void *skb, uint32_t ifindex, uint64_t flags) = (void *)BPF_FUNC_clone_redirect;
static struct bpf_sock *(*full_sock)(struct bpf_sock *sock) = (void *)BPF_FUNC_sk_fullsock;
static struct bpf_tcp_sock *(*tcp_of)(struct bpf_sock *sock) = (void *)BPF_FUNC_tcp_sock;
static uint64_t (*cookie_of)(void *skb) = (void *)BPF_FUNC_get_socket_cookie;
static long (*map_update)(void *map, const void *key, const void *value, uint64_t flags) = (void *)BPF_FUNC_map_update_elem;
static long (*set_flags)(void *ops, int flags) = (void *)BPF_FUNC_sock_ops_cb_flags_set;
static long (*set_sockopt)(void *context, int level, int name, void *value, int len) = (void *)BPF_FUNC_setsockopt;

// Map symbols: the loader creates the maps and puts their descriptors where these are used.
struct map {
	uint32_t unused;
};
struct map entries SEC("maps"), departures SEC("maps"), arrivals SEC("maps"), places SEC("maps"), windows SEC("maps"), drop_list SEC("maps"),
	stretches SEC("maps"), steps SEC("maps"), passages SEC("maps"), send_ceilings SEC("maps"), recording SEC("maps"), offers SEC("maps"), sights SEC("maps"),
	states SEC("maps"), known_states SEC("maps");

// The record of every packet: what each direction was offered, with the head of the packet, and every sight of one on its way.
// A lab that records counts also the lines that have no room, so that the reader knows what it did not get.
enum { HEAD_BYTES = 96 }; // IP and TCP with all options, or IP and the first 76 bytes of what another protocol has
struct recording {
	uint64_t is_on, offers, sights, states;
};

struct offer {
	uint64_t at_ns, due_ns; // due 0: whoever passes packets on here gives them no time of their own
	uint32_t slot, wire_bytes, waited_bytes;
	uint32_t group;   // the control group of the socket that sent it, in the node that did; else 0
	uint16_t type;    // of Ethernet, in network order
	uint8_t fate, head_bytes;
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
	uint64_t stretch_offset, stretch_count; // count 0: the rate never changes
	uint64_t epoch_ns;	   // stretches count from here, on the monotonic clock; 0: it has not begun
	uint64_t in_chances;	   // 1: stretches are not rates but instants, with what may have left by then
	// state
	uint64_t stretch_at, low, high; // the latter two are of a search
	uint64_t used_bytes;		// of what all instants so far have let leave
	uint64_t last_departure_ns, head, tail, backlog_bytes, passed_bytes;
	// counters
	uint64_t offered_packets, offered_bytes, queue_packets, queue_bytes, most_bytes, most_packets;
	uint64_t pieces; // of several packets, which the kernel would cut up only behind the queue: none in the lab kernel
	// of an aggregator: packets begin to leave at multiples of this time since the epoch; 0: at once
	uint64_t hold_ns;
	// of a policer: what its bucket gains and holds (0: there is none), what was in it and when, in bytes times 10^9; and what it dropped
	uint64_t police_bytes_per_s, burst_bytes, tokens, tokens_at_ns, policed_packets, policed_bytes;
};

struct departure {
	uint64_t at_ns, bytes; // bytes: of all packets up to this one
};

// A rate, and until when it holds, in ns since the epoch; and how many bits, and bits times 10^-9, have left at the stretches' rates
// from the epoch until then. Or an instant, and how many bytes may have left until then and at it.
struct stretch {
	uint64_t to_ns, bits_per_s, sum, rest;
};

// A value, and from when it holds, in ns since the epoch: of delays (ns), or weights of bit errors (65536 is the whole). The first is from 0 on.
struct step {
	uint64_t from_ns, value;
};

// The steps of a direction, and which one holds.
struct course {
	uint64_t offset, count, at;
};

// Stage 2 of a direction whose delay changes.
struct passage {
	uint64_t epoch_ns;    // 0: it has not begun
	uint64_t is_linear;   // 1: between two steps the delay goes in a straight line
	uint64_t may_reorder; // 1: a packet may overtake others
	struct course delays;
	uint64_t last_ns; // when the packet before is to arrive
	uint64_t packets;
	// packets of at least so many bytes on the wire are counted, and those on this list arrive later; count 0: none is
	int64_t overhead_bytes;
	uint64_t late_offset, late_count, late_min_bytes, late_by_ns, late_at, counted;
};

enum { ACTION_DROP, ACTION_FLIP };
enum { DUPLICATE_MARK = 0x5c95d, DELAY_MARK = 0x5c95e }; // no one else in the lab marks packets

// Bit errors: their places, ascending from 0, which is the first one's, and behind them the place where they begin again.
struct track {
	uint64_t offset, count; // in the map `places`; count 0: no errors; else it counts the last place too
	uint64_t period;
	// state: the number of the next place, and how far the bits have come; negative before the first error
	uint64_t at, position;
};

struct arrival {
	// settings
	int64_t overhead_bytes;
	uint64_t action;
	uint64_t window_offset, window_count;
	uint64_t drop_offset, drop_count, drop_min_bytes;
	uint64_t epoch_ns; // windows and spells in time count from here, on the monotonic clock; 0: it has not begun
	uint64_t duplicate_below; // a draw below this doubles the packet; 0: never
	uint64_t spell_offset, spell_count, spell_period; // of the bad state; count 0: there is only one state
	uint64_t spells_in_time;  // 1: they count nanoseconds; 0: bits
	struct track tracks[2];	  // of the good state, or the only one; and of the bad one
	// state
	uint64_t channel_bits, wrong_bits, low, high, window_at, drop_at, listed_packets;
	uint64_t draw; // xorshift64*: the draws for duplicates
	struct course weights; // by how many parts of each bit a packet moves the errors on; count 0: places count in bits
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
	line->group = (uint32_t)skb_cgroup(skb);
	uint32_t head = head_of(skb);
	if (!skb_load(skb, ETHERNET_HEADER_BYTES, line->head, head))
		line->head_bytes = (uint8_t)head;
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

// 7 is what the record says of packets that nobody has seen.
enum { VERDICT_CORRUPT = 1, VERDICT_OUTAGE, VERDICT_POLICY, VERDICT_FLIPPED, VERDICT_QUEUE, VERDICT_DUPLICATE, VERDICT_POLICED = 8 };

// Passes over packets that have left the queue, some at once.
static inline __attribute__((always_inline)) void pass_departures(struct entry *entry, uint64_t now, uint64_t step)
{
#pragma clang loop unroll(disable)
	for (int i = 0; i < MAX_STEPS; i++) {
		uint64_t last = entry->head + step - 1;
		uint32_t at = (uint32_t)(entry->ring_offset + (last & entry->ring_mask));
		struct departure *departure = map_lookup(&departures, &at);
		if (!departure || last >= entry->tail || departure->at_ns > now)
			return;
		entry->backlog_bytes = entry->passed_bytes - departure->bytes;
		entry->head += step;
	}
}

// Forgets the packets that have left the queue by now.
static inline __attribute__((always_inline)) void expire(struct entry *entry, uint64_t now)
{
	if (entry->last_departure_ns <= now) {
		entry->head = entry->tail;
		entry->backlog_bytes = 0;
		return;
	}
	pass_departures(entry, now, MAX_STEPS * MAX_STEPS);
	pass_departures(entry, now, MAX_STEPS);
	pass_departures(entry, now, 1);
}

static inline __attribute__((always_inline)) struct stretch *stretch_at(struct entry *entry, uint64_t number)
{
	uint32_t at = (uint32_t)(entry->stretch_offset + number);
	return number < entry->stretch_count ? map_lookup(&stretches, &at) : 0;
}

static inline __attribute__((always_inline)) void pass_stretches(struct entry *entry, int64_t t_ns, uint64_t step)
{
#pragma clang loop unroll(disable)
	for (int i = 0; i < MAX_STEPS; i++) {
		struct stretch *stretch = stretch_at(entry, entry->stretch_at + step - 1);
		if (!stretch || t_ns < (int64_t)stretch->to_ns)
			return;
		entry->stretch_at += step;
	}
}

// The first stretch, from one on, whose sum is at least so much.
static inline __attribute__((always_inline)) uint64_t with_sum(struct entry *entry, uint64_t from, uint64_t sum, uint64_t rest)
{
	entry->low = from;
	entry->high = entry->stretch_count;
#pragma clang loop unroll(disable)
	for (int i = 0; i < MAX_HALVINGS; i++) {
		uint64_t low = entry->low, high = entry->high, middle = (low + high) / 2;
		struct stretch *stretch = low < high ? stretch_at(entry, middle) : 0;
		if (!stretch)
			break;
		if (stretch->sum < sum || (stretch->sum == sum && stretch->rest < rest))
			entry->low = middle + 1;
		else
			entry->high = middle;
	}
	return entry->low;
}

// When a packet that is offered now leaves, where instants let so many bytes leave. What was let before now, and not used, is lost.
static inline __attribute__((always_inline)) uint64_t let_leave_at(struct entry *entry, int64_t t_ns, uint64_t bytes)
{
	struct stretch *before = entry->stretch_at ? stretch_at(entry, entry->stretch_at - 1) : 0;
	if (before && before->sum > entry->used_bytes)
		entry->used_bytes = before->sum;
	entry->used_bytes += bytes;
	struct stretch *instant = stretch_at(entry, with_sum(entry, entry->stretch_at, entry->used_bytes, 0));
	return instant ? instant->to_ns : 0;
}

// When the last of so many bits leaves that begin to leave at `start_ns`, where the rate changes: when its integral over time has
// grown by them, and then up to a whole nanosecond. Before the epoch the first rate holds.
static inline __attribute__((always_inline)) uint64_t leaves_at(struct entry *entry, uint64_t now, uint64_t start_ns, uint64_t bits)
{
	uint64_t from_ns = entry->in_chances ? now : start_ns;
	int64_t before_epoch = -(int64_t)FOR_EVER_NS, t_ns = entry->epoch_ns ? (int64_t)(from_ns - entry->epoch_ns) : before_epoch;

	pass_stretches(entry, t_ns, MAX_STEPS * MAX_STEPS);
	pass_stretches(entry, t_ns, MAX_STEPS);
	pass_stretches(entry, t_ns, 1);
	if (entry->in_chances && t_ns >= 0)
		return entry->epoch_ns + let_leave_at(entry, t_ns, bits / 8);
	uint64_t left = bits * NS_PER_S, first_rate = entry->rate_bytes_per_s * 8;
	if (entry->in_chances)
		return start_ns + (left + first_rate - 1) / first_rate;
	struct stretch *stretch = stretch_at(entry, entry->stretch_at);
	if (!stretch)
		return start_ns;
	uint64_t has_ns = stretch->to_ns - (uint64_t)t_ns;
	if (stretch->bits_per_s) {
		uint64_t needs_ns = (left + stretch->bits_per_s - 1) / stretch->bits_per_s;
		if (needs_ns <= has_ns)
			return start_ns + needs_ns;
		left -= has_ns * stretch->bits_per_s;
	}
	uint64_t rest = stretch->rest + left % NS_PER_S, sum = stretch->sum + left / NS_PER_S + rest / NS_PER_S;
	uint64_t last = with_sum(entry, entry->stretch_at + 1, sum, rest % NS_PER_S);
	struct stretch *before = stretch_at(entry, last - 1), *ends_in = stretch_at(entry, last);
	if (!before || !ends_in || !ends_in->bits_per_s)
		return start_ns;
	left = (sum - before->sum) * NS_PER_S + rest % NS_PER_S - before->rest;
	return entry->epoch_ns + before->to_ns + (left + ends_in->bits_per_s - 1) / ends_in->bits_per_s;
}

// Whether a policer lets a packet pass. Its bucket is full at first, and gains until it is full again.
static inline __attribute__((always_inline)) int conforms(struct entry *entry, uint64_t now, uint64_t bytes)
{
	if (!entry->burst_bytes || !entry->police_bytes_per_s)
		return 1;
	uint64_t full = entry->burst_bytes * NS_PER_S, since_ns = now - entry->tokens_at_ns, tokens = entry->tokens;
	int is_full = !entry->tokens_at_ns || since_ns > full / entry->police_bytes_per_s;
	tokens = is_full ? full : tokens + since_ns * entry->police_bytes_per_s;
	tokens = tokens < full ? tokens : full;
	int has_enough = tokens >= bytes * NS_PER_S;
	entry->tokens = has_enough ? tokens - bytes * NS_PER_S : tokens;
	entry->tokens_at_ns = now;
	return has_enough;
}

// When a packet that is offered now may begin to leave.
static inline __attribute__((always_inline)) uint64_t let_go_at(struct entry *entry, uint64_t now)
{
	if (!entry->hold_ns || !entry->epoch_ns || now < entry->epoch_ns)
		return now;
	return entry->epoch_ns + (now - entry->epoch_ns + entry->hold_ns - 1) / entry->hold_ns * entry->hold_ns;
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
	if (!conforms(entry, now, bytes)) {
		entry->policed_packets += 1;
		entry->policed_bytes += bytes;
		if (line)
			line->fate = VERDICT_POLICED;
		return TC_ACT_STOLEN;
	}
	if (!entry->rate_bytes_per_s || !(entry->limit_bytes | entry->limit_packets))
		return TC_ACT_OK;

	expire(entry, now);
	if (line)
		line->waited_bytes = (uint32_t)entry->backlog_bytes;
	if ((entry->limit_bytes && entry->backlog_bytes + bytes > entry->limit_bytes) ||
	    (entry->limit_packets && entry->tail - entry->head + 1 > entry->limit_packets)) {
		entry->queue_packets += 1;
		entry->queue_bytes += bytes;
		if (line)
			line->fate = VERDICT_QUEUE;
		// "Stolen" and not "shot": the sender must not hear of a drop in a modem's queue.
		return TC_ACT_STOLEN;
	}
	// The serialiser's own arithmetic (netem's rate): a packet leaves one packet time after the one before it, or after now.
	uint64_t from = let_go_at(entry, now), start = entry->last_departure_ns > from ? entry->last_departure_ns : from;
	if (entry->stretch_count) {
		// The kernel's fq holds it until then; at equal times, and of control priority, it would not keep the order.
		uint64_t due_ns = leaves_at(entry, now, start, bytes * 8);
		entry->last_departure_ns = due_ns > start ? due_ns : start + 1;
		skb->tstamp = entry->last_departure_ns;
		skb->priority = 0;
	} else {
		entry->last_departure_ns = start + bytes * NS_PER_S / entry->rate_bytes_per_s;
	}
	if (line)
		line->due_ns = entry->last_departure_ns;
	uint32_t at = (uint32_t)(entry->ring_offset + (entry->tail & entry->ring_mask));
	struct departure *departure = map_lookup(&departures, &at);
	if (departure) {
		departure->at_ns = entry->last_departure_ns;
		departure->bytes = entry->passed_bytes += bytes;
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

static inline __attribute__((always_inline)) struct step *step_at(struct course *course, uint64_t number)
{
	uint32_t at = (uint32_t)(course->offset + number);
	return number < course->count ? map_lookup(&steps, &at) : 0;
}

static inline __attribute__((always_inline)) void pass_steps(struct course *course, uint64_t t_ns, uint64_t many)
{
#pragma clang loop unroll(disable)
	for (int i = 0; i < MAX_STEPS; i++) {
		struct step *step = step_at(course, course->at + many);
		if (!step || t_ns < step->from_ns)
			return;
		course->at += many;
	}
}

// The step that holds at a time on the monotonic clock; before the epoch the first one.
static inline __attribute__((always_inline)) struct step *step_of(struct course *course, uint64_t epoch_ns, uint64_t now)
{
	if (epoch_ns && now >= epoch_ns) {
		pass_steps(course, now - epoch_ns, MAX_STEPS * MAX_STEPS);
		pass_steps(course, now - epoch_ns, MAX_STEPS);
		pass_steps(course, now - epoch_ns, 1);
	}
	return step_at(course, course->at);
}

// By how much longer than others this packet is under way; the list is ascending.
static inline __attribute__((always_inline)) uint64_t late_by(struct passage *passage, uint64_t bytes)
{
	if (!passage->late_count || bytes < passage->late_min_bytes)
		return 0;
	passage->counted += 1;
	uint32_t at = (uint32_t)(passage->late_offset + passage->late_at);
	uint64_t *number = passage->late_at < passage->late_count ? map_lookup(&drop_list, &at) : 0;
	if (!number || *number != passage->counted)
		return 0;
	passage->late_at += 1;
	return passage->late_by_ns;
}

// Stage 2 where the delay changes, or is another one for some packets. The kernel's fq holds the packet until its time, and a packet is never to arrive before the one
// that left before it, unless it may.
SEC("tc/delaying") int delaying(struct __sk_buff *skb)
{
	uint32_t slot = skb->ifindex - FIRST_IFINDEX;
	struct passage *passage = map_lookup(&passages, &slot);
	if (!passage || !passage->delays.count)
		return TC_ACT_OK;
	int is_apart = passage->may_reorder || passage->late_count;
	if (is_apart && skb->mark != DELAY_MARK) {
		// fq looks at the first packet of a flow only, and a socket's packets are one: a copy is no socket's.
		skb->mark = DELAY_MARK;
		clone_redirect(skb, skb->ifindex, 0);
		return TC_ACT_STOLEN;
	}
	uint64_t now = ktime_get_ns();
	struct step *step = step_of(&passage->delays, passage->epoch_ns, now);
	if (!step)
		return TC_ACT_OK;
	uint64_t delay_ns = step->value;
	struct step *next = step_at(&passage->delays, passage->delays.at + 1);
	if (passage->is_linear && next && passage->epoch_ns && now >= passage->epoch_ns) {
		// Planning makes the pieces so short that the products fit.
		uint64_t since_ns = now - passage->epoch_ns - step->from_ns, lasts_ns = next->from_ns - step->from_ns;
		if (next->value >= step->value)
			delay_ns += (next->value - step->value) * since_ns / lasts_ns;
		else
			delay_ns -= (step->value - next->value) * since_ns / lasts_ns;
	}
	uint64_t late_ns = late_by(passage, (uint64_t)((int64_t)skb->len - ETHERNET_HEADER_BYTES + passage->overhead_bytes));
	uint64_t due_ns = now + delay_ns + late_ns;
	if (is_apart) {
		skb->mark = 0;
		set_hash(skb, (uint32_t)++passage->packets); // a flow of its own
	}
	if (!passage->may_reorder && !late_ns && due_ns <= passage->last_ns)
		due_ns = passage->last_ns + 1;
	if (!late_ns)
		passage->last_ns = due_ns;
	skb->tstamp = due_ns;
	skb->priority = 0;
	return TC_ACT_OK;
}

// How many of the ascending numbers are below a value. As in other loops here, what changes lives in the map and not in variables:
// the verifier then sees the same state in every turn and need not follow each path through all of them.
static inline __attribute__((always_inline)) uint64_t below(struct arrival *arrival, uint64_t offset, uint64_t count, uint64_t value)
{
	arrival->low = 0;
	arrival->high = count;
#pragma clang loop unroll(disable)
	for (int i = 0; i < MAX_HALVINGS; i++) {
		uint64_t low = arrival->low, high = arrival->high, middle = (low + high) / 2;
		uint32_t at = (uint32_t)(offset + middle);
		uint64_t *number = map_lookup(&places, &at);
		if (low >= high || !number)
			break;
		if (*number < value)
			arrival->low = middle + 1;
		else
			arrival->high = middle;
	}
	return arrival->low;
}

static inline __attribute__((always_inline)) uint64_t number_at(uint64_t at)
{
	uint32_t place = (uint32_t)at;
	uint64_t *number = map_lookup(&places, &place);
	return number ? *number : 0;
}

// For how much of the channel's clock it was in the bad state, up to a time. Where the spells begin stands first, and behind it the
// sums of those before each, and of all.
static inline __attribute__((always_inline)) uint64_t bad_until(struct arrival *arrival, uint64_t time)
{
	uint64_t sums = arrival->spell_offset + arrival->spell_count;
	uint64_t turns = time / arrival->spell_period, rest = time % arrival->spell_period;
	uint64_t begun = below(arrival, arrival->spell_offset, arrival->spell_count, rest), all = turns * number_at(sums + arrival->spell_count);
	if (!begun)
		return all;
	uint64_t before = number_at(sums + begun - 1), length = number_at(sums + begun) - before;
	uint64_t inside = rest - number_at(arrival->spell_offset + begun - 1);
	return all + before + (inside < length ? inside : length);
}

// How many bits of a packet meet the bad state. Spells in time count as the channel is when the packet arrives.
static inline __attribute__((always_inline)) uint64_t bad_bits(struct arrival *arrival, uint64_t bits, uint64_t now)
{
	if (!arrival->spell_count)
		return 0;
	if (arrival->spells_in_time) {
		uint64_t t_ns = arrival->epoch_ns && now > arrival->epoch_ns ? now - arrival->epoch_ns : 0;
		return bad_until(arrival, t_ns + 1) > bad_until(arrival, t_ns) ? bits : 0;
	}
	uint64_t start = arrival->channel_bits;
	arrival->channel_bits = start + bits;
	return bad_until(arrival, start + bits) - bad_until(arrival, start);
}

// Flips the bits of a packet that `bits` of a track make wrong, of which the first is the packet's bit `first`.
static inline __attribute__((always_inline)) void flip(struct __sk_buff *skb, struct track *track, uint64_t first, uint64_t bits, uint64_t body_bits)
{
	uint64_t at = track->at, position = track->position;
#pragma clang loop unroll(disable)
	for (int i = 0; i < MAX_FLIPS; i++) {
		uint64_t place = number_at(track->offset + track->at) - track->position;
		if (place >= bits)
			break;
		if (first + place < body_bits) {
			uint32_t offset = ETHERNET_HEADER_BYTES + (uint32_t)((first + place) >> 3);
			uint8_t byte = 0;
			skb_load(skb, offset, &byte, 1);
			byte ^= 0x80 >> ((first + place) & 7);
			skb_store(skb, offset, &byte, 1, 0);
		}
		track->at += 1;
		if (track->at >= track->count) {
			track->at = 1; // the last place is the first one of the next turn
			track->position -= track->period;
		}
	}
	track->at = at;
	track->position = position;
}

// Moves a track on by so many bits of a packet; `wrong_bits` counts the errors that it passes.
static inline __attribute__((always_inline)) void walk(struct __sk_buff *skb, struct arrival *arrival, struct track *track, uint64_t first, uint64_t bits,
						       uint64_t body_bits)
{
	if (!track->count || !bits)
		return;
	uint64_t end = track->position + bits, at = track->at;
	if ((int64_t)(end - number_at(track->offset + at)) <= 0) {
		track->position = end;
		return;
	}
	if (arrival->action == ACTION_FLIP)
		flip(skb, track, first, bits, body_bits);
	uint64_t turns = (end - 1) / track->period;
	track->position = (end - 1) % track->period + 1;
	track->at = below(arrival, track->offset, track->count - 1, track->position);
	arrival->vector_wraps += turns;
	arrival->wrong_bits += turns * (track->count - 1) + track->at - at;
}

// Walks the errors over a packet of `bits` bits on the wire, of which `body_bits` are in the frame's body and can be flipped;
// returns how many are wrong. Of a packet that meets both states the bits of the good one come first.
static inline __attribute__((always_inline)) uint32_t walk_errors(struct __sk_buff *skb, struct arrival *arrival, uint64_t bits, uint64_t body_bits,
								  uint64_t now)
{
	uint64_t bad = bad_bits(arrival, bits, now);
	arrival->wrong_bits = 0;
	walk(skb, arrival, &arrival->tracks[0], 0, bits - bad, body_bits);
	walk(skb, arrival, &arrival->tracks[1], bits - bad, bad, body_bits);
	arrival->bit_errors += arrival->wrong_bits;
	return (uint32_t)arrival->wrong_bits;
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
	uint32_t mark = imprint_of(skb);

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
	uint64_t bits = bytes * 8;
	struct step *weight = arrival->weights.count ? step_of(&arrival->weights, arrival->epoch_ns, now) : 0;
	if (weight)
		// Places count in parts of a bit here: a smaller error rate is a packet of fewer of them.
		bits *= weight->value;
	uint32_t errors = walk_errors(skb, arrival, bits, body * 8, now);
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
	return verdict ? TC_ACT_SHOT : TC_ACT_OK;
}

#define SOL_TCP_LEVEL 6
#define SEND_CEILING_OPTION 1002 // TCP_BPF_SNDCWND_CLAMP

// What congestion control knows of a connection, in packets and microseconds. `lost`, `resent` and `sacked`: packets under way that it
// takes for lost, has sent again, or has been told of by SACK.
struct congestion {
	uint32_t cwnd, ssthresh, srtt_us, lost, resent, sacked;
};

struct state {
	uint64_t at_ns;
	uint32_t near, far; // addresses, in network order; of IPv6 the last four bytes, for the lab has one prefix
	uint16_t near_port, far_port;
	uint32_t mss_bytes;
	struct congestion congestion;
};

struct known_state {
	uint64_t at_ns; // of the look before
	struct congestion congestion;
};

// Of networks with addresses of IPv6 there is a program of its own: a kernel without them knows no such fields.
#ifdef WITH_IPV6
#define FAMILY 10 // AF_INET6
#define OF_IP(from, field) ((from)->field##6[3])
#else
#define FAMILY 2 // AF_INET
#define OF_IP(from, field) ((from)->field##4)
#endif
enum { LISTENS = 10, SYN_IS_SENT = 2 }; // states of TCP
enum { STREAM = 1 };			// SOCK_STREAM

// Notes a connection's state where it is another than at the look before. Each packet that a socket sends or gets is a look, and so is
// a timeout before it acts; between two looks nothing changes the state but the packet or the timeout of the first one. The timer of
// RACK besides tells that packets are lost, and sends one of them at once: what a packet finds lost while no acknowledgement told
// anything is so from now on.
static inline __attribute__((always_inline)) int note_state(struct bpf_sock *sock, uint64_t cookie)
{
	uint32_t zero = 0;
	struct recording *record = map_lookup(&recording, &zero);
	if (!record || !sock)
		return 1;
	// A raw socket of protocol 6, as a gateway has, passes for one of TCP.
	if (sock->type != STREAM || sock->family != FAMILY || sock->state == LISTENS || sock->state == SYN_IS_SENT)
		return 1;
	struct bpf_tcp_sock *tcp = tcp_of(sock);
	if (!tcp)
		return 1;
	// To look at the clock moves it, so the clock is read without a record too.
	uint64_t now = ktime_get_ns();
	if (!record->is_on)
		return 1;
	struct congestion found = {tcp->snd_cwnd, tcp->snd_ssthresh, tcp->srtt_us >> 3, tcp->lost_out, tcp->retrans_out, tcp->sacked_out};
	struct known_state *known = map_lookup(&known_states, &cookie);
	int is_told = known && (known->congestion.srtt_us != found.srtt_us || known->congestion.sacked != found.sacked);
	uint64_t since = known && (is_told || known->congestion.lost || !found.lost) ? known->at_ns : now;
	int is_same = known && known->congestion.cwnd == found.cwnd && known->congestion.ssthresh == found.ssthresh &&
		      known->congestion.srtt_us == found.srtt_us && !known->congestion.lost == !found.lost &&
		      !known->congestion.sacked == !found.sacked;
	struct known_state next = {now, found};
	map_update(&known_states, &cookie, &next, BPF_ANY);
	if (is_same)
		return 1;
	uint32_t at = (uint32_t)record->states;
	record->states += 1;
	struct state *state = map_lookup(&states, &at);
	if (!state)
		return 1;
	state->at_ns = since;
	state->near = OF_IP(sock, src_ip);
	state->far = OF_IP(sock, dst_ip);
	state->near_port = (uint16_t)sock->src_port;
	state->far_port = __builtin_bswap16(sock->dst_port);
	state->mss_bytes = tcp->mss_cache;
	state->congestion = found;
	return 1;
}

SEC("cgroup/packet") int packet(struct __sk_buff *skb)
{
	struct bpf_sock *sock = skb->sk;
	return note_state(sock ? full_sock(sock) : 0, cookie_of(skb));
}

// Gives a new connection's congestion window the ceiling stated for its remote address and port, in segments; asks to be told of
// timeouts of every connection.
SEC("sockops/established") int established(struct bpf_sock_ops *ops)
{
	if (ops->op == BPF_SOCK_OPS_RTO_CB)
		return note_state(ops->sk, cookie_of(ops));
	if (ops->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && ops->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	set_flags(ops, BPF_SOCK_OPS_RTO_CB_FLAG);
	if (ops->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		return 1;
	uint64_t to = (uint64_t)OF_IP(ops, remote_ip) << 32 | (__builtin_bswap32(ops->remote_port) & 0xffff);
	uint32_t *ceiling = map_lookup(&send_ceilings, &to);
	if (ceiling && *ceiling) {
		int segments = (int)*ceiling;
		set_sockopt(ops, SOL_TCP_LEVEL, SEND_CEILING_OPTION, &segments, sizeof segments);
	}
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
