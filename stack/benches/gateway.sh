#!/bin/sh
# One transfer of kernel TCP between two namespaces, in the same run directly routed, through a socat relay (where there is one) and
# through a pair of gateways; then the time of small requests. Prints Gbit/s, and CPU seconds per gigabyte of each relay or gateway, what
# iperf3 says of the same ways (where it is installed), and what 1,000 connections cost that do nothing, and 20 that are full.
# Needs root; removes its namespaces. SCPS names another program than the one that `make -C stack build` has built. The load average at
# both ends tells how much else the machine had to do.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
scps=${SCPS:-$(find "$here"/target/*/release/scps | head -1)}
bytes=${BYTES:-1000000000}
c=gwb$$c n=gwb$$n f=gwb$$f s=gwb$$s
out=$(mktemp -d)
pids=
cleanup() {
	for pid in $pids; do kill "$pid" 2>/dev/null || true; done
	for ns in "$c" "$n" "$f" "$s"; do ip netns del "$ns" 2>/dev/null || true; done
	rm -rf "$out"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
for ns in "$c" "$n" "$f" "$s"; do
	ip netns add "$ns"
	ip netns exec "$ns" sysctl -qw net.ipv4.ip_forward=1
	ip -n "$ns" link set lo up
done
join() { # NS DEV ADDRESS NS DEV ADDRESS
	ip -n "$1" link add "$2" type veth peer name "$5" netns "$4"
	ip -n "$1" addr add "$3/24" dev "$2"
	ip -n "$4" addr add "$6/24" dev "$5"
	ip -n "$1" link set "$2" up
	ip -n "$4" link set "$5" up
}
join "$c" v0 10.1.0.1 "$n" lan 10.1.0.9
join "$n" wan 10.9.0.1 "$f" wan 10.9.0.2
join "$f" lan 10.2.0.9 "$s" v0 10.2.0.1
ip -n "$c" route add default via 10.1.0.9
ip -n "$s" route add default via 10.2.0.9
ip -n "$n" route add default via 10.9.0.2
ip -n "$f" route add default via 10.9.0.1

cat >"$out/server.py" <<'END'
import socket, threading
bulk, echo, deaf = (socket.create_server(("10.2.0.1", port), backlog=2000) for port in (9000, 9001, 9002))
def swallow(c):
    buffer = bytearray(1 << 20)
    while c.recv_into(buffer): pass
    c.close()
def keep(c): kept.append(c)
kept = []
def answer(c):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while d := c.recv(4096): c.sendall(d)
    c.close()
def serve(listener, with_what):
    while True: threading.Thread(target=with_what, args=(listener.accept()[0],), daemon=True).start()
threading.Thread(target=serve, args=(echo, answer), daemon=True).start()
threading.Thread(target=serve, args=(deaf, keep), daemon=True).start()
serve(bulk, swallow)
END
cat >"$out/client.py" <<'END'
import socket, sys, time
name, host, total, pids = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
def cpu(pid):
    f = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    # utime, stime, and those of children that have ended: socat has one for each connection.
    return sum(map(int, f[11:15])) / 100
before = [cpu(p) for p in pids]
s = socket.create_connection((host, 9000)); d = bytes(1 << 20); t = time.time()
for _ in range(total // len(d)): s.sendall(d)
s.shutdown(socket.SHUT_WR); s.recv(1); t = time.time() - t; s.close(); time.sleep(0.5)
used = " ".join("%.2f" % ((cpu(p) - b) * 1e9 / total) for p, b in zip(pids, before)) or "-"
e = socket.create_connection((host, 9001)); e.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
times = []
for _ in range(2000):
    b = time.perf_counter(); e.sendall(bytes(100)); e.recv(4096); times.append((time.perf_counter() - b) * 1e6)
times.sort()
b = time.time()
for _ in range(300):
    with socket.create_connection((host, 9001)) as one: one.sendall(b"x"); one.recv(1)
rate = 300 / (time.time() - b)
print("%-17s %6.2f Gbit/s  CPU s/GB %-10s  round trip of 100 bytes: p50 %4.0f us, p99 %5.0f us  %5.0f connections/s"
      % (name, total * 8 / t / 1e9, used, times[1000], times[1980], rate), flush=True)
END
cat >"$out/many.py" <<'END'
import resource, socket, sys, time
port, count, octets = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
kept = []
for _ in range(count):
    s = socket.create_connection(("10.2.0.1", port)); kept.append(s)
    if not octets: s.sendall(b"x"); s.recv(1)
    s.setblocking(False)
until = time.time() + 4
left = [octets] * count
while time.time() < until:
    for i, s in enumerate(kept):
        try: left[i] -= s.send(bytes(left[i])) if left[i] else 0
        except BlockingIOError: pass
    time.sleep(0.01)
print("ready", flush=True)
sys.stdin.read()
END
load() { cut -d' ' -f1-3 /proc/loadavg; }
outside() { # NAME: what iperf3 measures
	command -v iperf3 >/dev/null || return 0
	ip netns exec "$s" iperf3 --server --one-off >/dev/null &
	sleep 1
	ip netns exec "$c" iperf3 --client 10.2.0.1 --time 5 --json >"$out/iperf3.json"
	python3 -c 'import json, sys
end = json.load(open(sys.argv[2]))["end"]
print("%-10s %6.2f Gbit/s by iperf3" % (sys.argv[1], end["sum_received"]["bits_per_second"] / 1e9))' "$1" "$out/iperf3.json"
}
echo "load average: $(load)"
ip netns exec "$s" python3 "$out/server.py" &
pids="$pids $!"
sleep 1
ip netns exec "$c" python3 "$out/client.py" direct 10.2.0.1 "$bytes"
outside direct
if command -v socat >/dev/null; then
	for port in 9000 9001; do
		ip netns exec "$n" socat "TCP-LISTEN:$port,bind=10.1.0.9,fork,reuseaddr" "TCP:10.2.0.1:$port" &
		pids="$pids $!"
		relays="${relays:-} $!"
	done
	sleep 1
	# shellcheck disable=SC2086 # two processes, the first for the transfer
	ip netns exec "$c" python3 "$out/client.py" socat 10.1.0.9 "$bytes" $relays
else
	echo "socat: not installed; left out"
fi
command -v iperf3 >/dev/null || echo "iperf3: not installed; left out"
start() { # WAN-KEYS: a pair, and their processes in $gateways
	gateways=
	for side in "near $n 10.9.0.2 10.2.0.0/24" "far $f 10.9.0.1 10.1.0.0/24"; do
		# shellcheck disable=SC2086 # four words
		set -- "$1" $side
		cat >"$out/$2.json" <<END
{"lan": {"carrier": {"kind": "tun", "routes": ["$5"]}},
 "wan": {"carrier": {"kind": "udp", "remote": "$4:7168"}, $1
         "transport": {"rate": "none", "congestion": "${CONGESTION:-vj}", "rtt_ms": 1, "buffer": 4000000}},
 "limits": {"connections": 2000, "buffered_bytes": 100000000000}}
END
		ip netns exec "$3" "$scps" gateway "$out/$2.json" >"$out/$2.log" &
		pids="$pids $!"
		gateways="$gateways $!"
	done
	sleep 1
}
for suite in aes-256-gcm chacha20-poly1305; do
	mkdir -m 700 "$out/$suite"
	"$scps" sp-key "$out/$suite/link.key" >/dev/null
	sed -e 's/203.0.113/10.9.0/g' -e "s/chacha20-poly1305/$suite/" "$here/examples/gateway/sp/sp.json" >"$out/$suite/sp.json"
	start "\"sp\": {\"file\": \"$out/$suite/sp.json\"},"
	# shellcheck disable=SC2086 # two processes
	ip netns exec "$c" python3 "$out/client.py" "$suite" 10.2.0.1 "$bytes" $gateways
	# shellcheck disable=SC2086 # two processes
	kill $gateways
	# shellcheck disable=SC2086 # two processes
	wait $gateways || true
done
start ""
# shellcheck disable=SC2086 # two processes
ip netns exec "$c" python3 "$out/client.py" gateways 10.2.0.1 "$bytes" $gateways
outside gateways
resident() { for pid in $gateways; do awk '/RssAnon/{printf "%s ", $2}' "/proc/$pid/status"; done; }
# What the transfer left in the allocator is not the connections'.
many() { # NAME PORT COUNT OCTETS
	before=$(resident)
	mkfifo "$out/end"
	ip netns exec "$c" python3 "$out/many.py" "$2" "$3" "$4" <"$out/end" >"$out/said" &
	waited=$!
	exec 3>"$out/end"
	until grep -q ready "$out/said" 2>/dev/null; do sleep 0.2; done
	echo "resident before and with $3 $1 connections, KiB: $before/ $(resident)"
	exec 3>&-
	wait "$waited"
	# What one said is no answer of the next, which may not have begun to write.
	rm "$out/end" "$out/said"
	sleep 1
}
many idle 9001 1000 0
many full 9002 20 100000000
for pid in $gateways; do
	before=$(awk '{print $14 + $15}' "/proc/$pid/stat")
	sleep 5
	echo "idle for 5 s: $(($(awk '{print $14 + $15}' "/proc/$pid/stat") - before)) hundredths of a second of CPU; $(awk '/VmRSS/{print $2}' "/proc/$pid/status") KiB resident"
done
echo "load average: $(load)"
