// SPDX-License-Identifier: Apache-2.0
// `labtool capture --interface NAME --snapshot-length BYTES --file PATH`: everything of an interface into a pcap file with nanoseconds, until SIGTERM: frames of
// Ethernet, packets of PPP behind Linux's "cooked" header. The bytes are those of `tcpdump -w`, whose two dozen libraries cost more to load than a
// short cell takes. Filters are tcpdump's.
#define _GNU_SOURCE
#include "labtool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

// As libpcap has them for tcpdump: 2 MiB of memory, and a block is handed over after a second at the latest.
enum { BLOCKS = 8, BLOCK_BYTES = 1 << 18, BLOCK_MS = 1000 };
// tcpdump's largest snapshot length, which is what its 0 stands for too.
enum { LARGEST_SNAPSHOT_BYTES = 1 << 18 };
enum { MAGIC_NANOSECONDS = 0xa1b23c4d, LINKTYPE_ETHERNET = 1, LINKTYPE_LINUX_SLL = 113, ADDRESSES_BYTES = 2 * ETH_ALEN, TAG_BYTES = 4, OUTPUT_BYTES = 1 << 16 };

struct file_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, accuracy, snapshot_bytes, link_type;
};

struct record_header {
	uint32_t seconds, nanoseconds, captured, whole;
};

// In network order: type of packet, type and length of the link's address, the address, type of the payload.
struct cooked_header {
	uint16_t packet_type, link_type, address_bytes;
	unsigned char address[8];
	uint16_t payload_type;
};

static struct {
	int fd;
	size_t used;
	char bytes[OUTPUT_BYTES];
} output;

static volatile sig_atomic_t is_over;

static void end(int signal_number)
{
	is_over = 1;
}

static int flush(void)
{
	size_t done = 0;

	while (done < output.used) {
		ssize_t n = write(output.fd, output.bytes + done, output.used - done);
		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0)
			done += (size_t)n;
	}
	output.used = 0;
	return 0;
}

static int put(const void *bytes, size_t count)
{
	const char *from = bytes;

	while (count) {
		size_t room = sizeof output.bytes - output.used, part = count < room ? count : room;
		memcpy(output.bytes + output.used, from, part);
		output.used += part;
		from += part;
		count -= part;
		if (output.used == sizeof output.bytes && flush())
			return -1;
	}
	return 0;
}

// A tag that the kernel has taken out of the frame stands in the file where it stood on the wire.
static int put_frame(const struct tpacket3_hdr *frame, uint32_t snapshot_bytes)
{
	const char *bytes = (const char *)frame + frame->tp_mac;
	struct record_header head = { frame->tp_sec, frame->tp_nsec, frame->tp_snaplen, frame->tp_len };
	uint16_t tag[2];

	if (!(frame->tp_status & TP_STATUS_VLAN_VALID) || frame->tp_snaplen < ADDRESSES_BYTES)
		return put(&head, sizeof head) || put(bytes, head.captured);
	tag[0] = htons(frame->tp_status & TP_STATUS_VLAN_TPID_VALID ? frame->hv1.tp_vlan_tpid : ETH_P_8021Q);
	tag[1] = htons((uint16_t)frame->hv1.tp_vlan_tci);
	head.whole += TAG_BYTES;
	head.captured += TAG_BYTES;
	if (head.captured > snapshot_bytes)
		head.captured = snapshot_bytes;
	// The frame has its addresses whole, so the length is cut behind them.
	size_t behind = head.captured - ADDRESSES_BYTES, tag_bytes = behind < TAG_BYTES ? behind : TAG_BYTES;
	return put(&head, sizeof head) || put(bytes, ADDRESSES_BYTES) || put(tag, tag_bytes) ||
	       put(bytes + ADDRESSES_BYTES, behind - tag_bytes);
}

static int put_cooked(const struct tpacket3_hdr *frame, uint32_t snapshot_bytes)
{
	const struct sockaddr_ll *link = (const struct sockaddr_ll *)((const char *)frame + TPACKET_ALIGN(sizeof *frame));
	struct cooked_header cooked = { htons(link->sll_pkttype), htons(link->sll_hatype), htons(link->sll_halen), { 0 }, link->sll_protocol };
	struct record_header head = { frame->tp_sec, frame->tp_nsec, frame->tp_snaplen + sizeof cooked, frame->tp_len + sizeof cooked };

	// Behind a shorter address is what an earlier packet has left.
	memcpy(cooked.address, link->sll_addr, link->sll_halen < sizeof cooked.address ? link->sll_halen : sizeof cooked.address);
	if (head.captured > snapshot_bytes)
		head.captured = snapshot_bytes;
	size_t front = head.captured < sizeof cooked ? head.captured : sizeof cooked;
	return put(&head, sizeof head) || put(&cooked, front) || put((const char *)frame + frame->tp_net, head.captured - front);
}

static int put_block(struct tpacket_block_desc *block, uint32_t snapshot_bytes, int is_cooked)
{
	const char *at = (const char *)block + block->hdr.bh1.offset_to_first_pkt;

	for (uint32_t i = 0; i < block->hdr.bh1.num_pkts; i++) {
		const struct tpacket3_hdr *frame = (const struct tpacket3_hdr *)at;
		if (is_cooked ? put_cooked(frame, snapshot_bytes) : put_frame(frame, snapshot_bytes))
			return -1;
		at += frame->tp_next_offset;
	}
	return 0;
}

// Negative when something failed, which has been said.
static int is_other_than_ethernet(const char *interface)
{
	struct ifreq asked = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	strncpy(asked.ifr_name, interface, sizeof asked.ifr_name - 1);
	if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &asked))
		return -die(interface);
	close(fd);
	return asked.ifr_hwaddr.sa_family != ARPHRD_ETHER;
}

// A socket whose ring gets everything of the interface, cut to the snapshot length; negative when something failed, which has been said.
static int open_ring(const char *interface, uint32_t snapshot_bytes, int is_cooked, char **ring)
{
	struct tpacket_req3 wanted = {
		.tp_block_size = BLOCK_BYTES, .tp_block_nr = BLOCKS, .tp_frame_size = BLOCK_BYTES, .tp_frame_nr = BLOCKS, .tp_retire_blk_tov = BLOCK_MS,
	};
	struct sock_filter cut = BPF_STMT(BPF_RET | BPF_K, snapshot_bytes);
	struct sock_fprog program = { .len = 1, .filter = &cut };
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex(interface) };
	struct packet_mreq promiscuous = { .mr_ifindex = address.sll_ifindex, .mr_type = PACKET_MR_PROMISC };
	int version = TPACKET_V3;
	// Of protocol 0: nothing arrives until everything is set.
	int fd = socket(AF_PACKET, (is_cooked ? SOCK_DGRAM : SOCK_RAW) | SOCK_CLOEXEC, 0);

	if (!address.sll_ifindex || fd < 0)
		return -die(interface);
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) || setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
	    setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &wanted, sizeof wanted))
		return -die("ring");
	*ring = mmap(NULL, (size_t)BLOCKS * BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*ring == MAP_FAILED)
		return -die("ring");
	if (bind(fd, (struct sockaddr *)&address, sizeof address) || setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous))
		return -die(interface);
	return fd;
}

// An interface that went down says so until it is asked, and every wait ends at once. The capture goes on when it is up again.
static int has_failed(int fd)
{
	int error = 0;
	socklen_t size = sizeof error;

	if (!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size))
		errno = error;
	return errno && errno != ENETDOWN;
}

int capture_main(int argc, char **argv)
{
	const char *interface = option(argc, argv, "interface", ""), *path = option(argc, argv, "file", "");
	int64_t asked_bytes = option_number(argc, argv, "snapshot-length", 0);
	uint32_t snapshot_bytes = asked_bytes ? (uint32_t)asked_bytes : LARGEST_SNAPSHOT_BYTES;
	struct file_header head = { MAGIC_NANOSECONDS, 2, 4, 0, 0, snapshot_bytes, 0 };
	struct sigaction action = { .sa_handler = end };
	struct tpacket_stats_v3 counted = { 0 };
	socklen_t size = sizeof counted;
	sigset_t blocked, open;
	uint64_t frames = 0;
	char *ring = NULL;

	if (asked_bytes < 0 || asked_bytes > LARGEST_SNAPSHOT_BYTES) {
		fprintf(stderr, "labtool capture: --snapshot-length: found %lld; expected 0 to %d bytes\n", (long long)asked_bytes, LARGEST_SNAPSHOT_BYTES);
		return 2;
	}
	// The signal ends a wait, and comes at no other place.
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &open);
	sigaction(SIGTERM, &action, NULL);
	int is_cooked = is_other_than_ethernet(interface);
	int fd = is_cooked < 0 ? -1 : open_ring(interface, snapshot_bytes, is_cooked, &ring);
	if (fd < 0)
		return 1;
	head.link_type = is_cooked ? LINKTYPE_LINUX_SLL : LINKTYPE_ETHERNET;
	output.fd = creat(path, 0644);
	if (output.fd < 0 || put(&head, sizeof head))
		return die(path);
	fprintf(stderr, "labtool: listening on %s, snapshot length %u bytes\n", interface, snapshot_bytes);
	for (unsigned int next = 0; !is_over;) {
		struct tpacket_block_desc *block = (struct tpacket_block_desc *)(ring + (size_t)next * BLOCK_BYTES);
		if (!(__atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) {
			struct pollfd ready = { .fd = fd, .events = POLLIN };
			if ((ppoll(&ready, 1, NULL, &open) < 0 && errno != EINTR) || (ready.revents & POLLERR && has_failed(fd)))
				return die(interface);
			continue;
		}
		if (put_block(block, snapshot_bytes, is_cooked))
			return die(path);
		frames += block->hdr.bh1.num_pkts;
		__atomic_store_n(&block->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		next = (next + 1) % BLOCKS;
	}
	if (flush())
		return die(path);
	getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &counted, &size);
	fprintf(stderr, "%llu packets captured\n%u packets dropped by kernel\n", (unsigned long long)frames, counted.tp_drops);
	return 0;
}
