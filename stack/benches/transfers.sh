#!/bin/sh
# Whole transfers of one connection over a veth pair, ours beside the kernel's TCP in the same run. Prints one line per case:
# Gbit/s of data, CPU seconds per gigabyte at the sender and at the receiver. Needs root; removes its namespaces.
# SCPS names another program than the one that `make -C stack build` has built.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
scps=${SCPS:-$(find "$here"/target/*/release/scps | head -1)}
bytes=${BYTES:-1000000000}
a=scpsb$$a b=scpsb$$b
out=$(mktemp -d)
cleanup() { ip netns del "$a" 2>/dev/null || true; ip netns del "$b" 2>/dev/null || true; rm -rf "$out"; }
trap cleanup EXIT
trap 'exit 130' INT TERM
ip netns add "$a"
ip netns add "$b"
ip -n "$a" link add v0 type veth peer name v1 netns "$b"
ip -n "$a" addr add 10.9.0.1/24 dev v0
ip -n "$b" addr add 10.9.0.2/24 dev v1
for n in "$a" "$b"; do
	ip -n "$n" link set lo up
	ip netns exec "$n" sysctl -qw net.ipv4.ip_forward=1
done
ip -n "$a" link set v0 up
ip -n "$b" link set v1 up
ip -n "$a" route add 10.8.0.2/32 via 10.9.0.2
ip -n "$b" route add 10.8.0.1/32 via 10.9.0.1

# one NAME SEND-OPTIONS COMMON-OPTIONS...
ours() {
	name=$1 send=$2
	shift 2
	ip netns exec "$b" timeout 120 "$scps" recv --listen 10.8.0.2:5001 --json "$out/r" --no-hash "$@" &
	pid=$!
	sleep 0.5
	# shellcheck disable=SC2086 # several options
	ip netns exec "$a" timeout 120 "$scps" send --local 10.8.0.1 --to 10.8.0.2:5001 --bytes "$bytes" --no-hash \
		--json "$out/s" $send "$@" || true
	wait $pid || true
	python3 -c '
import json, sys
s, r = (json.load(open(f)) for f in sys.argv[2:])
gb = r["bytes"] / 1e9
print("%-34s %6.2f Gbit/s  CPU s/GB: sender %.2f receiver %.2f  resends %d" % (
    sys.argv[1], r["goodput_bps"] / 1e9, s["cpu_s"] / gb, r["cpu_s"] / gb, s["retransmissions"]))' "$name" "$out/s" "$out/r"
}

kernel() {
	ip netns exec "$b" python3 -c '
import resource, socket, time
s = socket.socket(); s.bind(("10.9.0.2", 9000)); s.listen(); c, _ = s.accept(); n = 0; t = time.time()
buf = bytearray(1 << 20)
while k := c.recv_into(buf): n += k
u = resource.getrusage(resource.RUSAGE_SELF); d = time.time() - t
print("%-34s %6.2f Gbit/s  CPU s/GB: receiver %.2f" % ("kernel TCP", n * 8 / d / 1e9, (u.ru_utime + u.ru_stime) * 1e9 / n))' &
	pid=$!
	sleep 0.5
	ip netns exec "$a" python3 -c "
import resource, socket
s = socket.create_connection(('10.9.0.2', 9000)); d = bytes(1 << 20)
for _ in range($bytes // len(d)): s.sendall(d)
s.close(); u = resource.getrusage(resource.RUSAGE_SELF)
print('%-34s CPU s/GB: sender %.2f' % ('', (u.ru_utime + u.ru_stime) * 1e9 / $bytes))"
	wait $pid
}

fast="--rate none --congestion none"
kernel
# shellcheck disable=SC2086 # several options
{
	ours "UDP encapsulation, offload" "--udp-remote 10.9.0.2:7168" --driver udp --offload $fast
	ours "UDP encapsulation" "--udp-remote 10.9.0.2:7168" --driver udp --rate none --congestion vj
	ours "TUN, offload" "" --driver tun --offload $fast
	ours "TUN, packet by packet, VJ" "" --driver tun --rate none --congestion vj
}
kernel
