"""ping: round-trip times without a transport."""

import re
import struct
from socket import AF_INET, AF_INET6, CMSG_SPACE, IPPROTO_ICMP, IPPROTO_ICMPV6, SOCK_RAW, SOL_SOCKET, socket
from zlib import crc32

from scpslab.core.strict_json import JsonObject
from scpslab.lab.loop import SECOND_NS
from scpslab.lab.netlink import inside
from scpslab.lab.workloads import Workload

from scpslab.kinds.workloads.ping import plan as planned

PATIENCE_S = 10
REPLY = re.compile(r"icmp_seq=(\d+) ttl=\d+ time=([\d.]+) ms")
SUMMARY = re.compile(r"(\d+) packets transmitted, (\d+) received")
# RFC 792, RFC 4443: type, identifier and sequence number of an echo's answer; behind them ping's time, as struct
# timeval.
ANSWERS, HEADER, STAMP = (0, 129), struct.Struct("!BxxxHH"), struct.Struct("@qq")
SO_TIMESTAMPNS, LONGEST_PACKET = 35, 1 << 16
# Of IPv4 and of IPv6.
RAW = ((AF_INET, SOCK_RAW, IPPROTO_ICMP), (AF_INET6, SOCK_RAW, IPPROTO_ICMPV6))


class Ping(Workload[planned.Ping], kind="ping"):
    """`count` echo requests; completed when the last one is answered or given up."""

    # What is heard beside ping, if anybody listens, and what ping has said at its end.
    heard: dict[int, JsonObject] | None = None
    summary: tuple[int, int] | None = None

    def start(self) -> None:
        """Starts ping."""
        spec = self.spec
        self.answered: set[int] = set()
        # ping gives up ten seconds after its last request where no answer has come.
        argv = ["ping", "-n", "-c", str(spec.count), "-i", f"{spec.interval_ns / 1e9:.6f}"]
        if (longest_s := -(-self.network.longest_ns() // SECOND_NS)) > PATIENCE_S:
            argv += ["-W", str(longest_s)]
        if any(one.stretches or one.delays for one in self.network.moves.values()):
            argv += ["-e", str(self._hear_on())]
        self.run(spec.from_, [*argv, "-s", str(spec.payload_bytes), spec.to_ip], self._line, self._exit)

    def stop(self) -> None:
        """Ends ping. Answers are heard as long as packets are under way."""
        super().close()

    def close(self) -> None:
        """Tells of all answers, also of those that came when ping had given up: two round trips after its last
        request, where others came.
        """
        super().close()
        if self.summary and self.heard is not None:
            late = [answer for seq, answer in self.heard.items() if seq not in self.answered]
            for answer in late:
                self.records.write(**answer)
            self.records.write(event="summary", sent=self.summary[0], received=self.summary[1] + len(late))
            self.summary = None

    def _hear_on(self) -> int:
        """Hears answers beside ping; returns the identifier of its requests."""
        number, is_ipv6 = 1 + crc32(self.name.encode()) % 0xFFFF, ":" in self.spec.to_ip
        with inside(self.network.pid(self.spec.from_)):
            source = socket(*RAW[is_ipv6])
        source.setsockopt(SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.heard = heard = {}

        def hear() -> None:
            packet, notes, _, _ = source.recvmsg(LONGEST_PACKET, CMSG_SPACE(STAMP.size))
            message = packet if is_ipv6 else packet[4 * (packet[0] & 15) :]
            kind, found, seq = HEADER.unpack_from(message)
            if kind in ANSWERS and found == number and notes:
                (sent_s, sent_us), (s, ns) = STAMP.unpack_from(message, 8), STAMP.unpack(notes[0][2])
                rtt_ns = (s - sent_s) * SECOND_NS + ns - sent_us * 1000
                heard[seq] = {"seq": seq, "rtt_ms": round(rtt_ns / 1e6, 3), "t_s": self.context.epoch.now_s()}

        self.context.loop.on_readable(source, hear)
        return number

    def _line(self, line: str) -> None:
        if reply := REPLY.search(line):
            self.answered.add(int(reply[1]))
            self.records.write(seq=int(reply[1]), rtt_ms=float(reply[2]), t_s=self.context.epoch.now_s())
        elif summary := SUMMARY.search(line):
            self.summary = (int(summary[1]), int(summary[2]))
            if self.heard is None:
                self.records.write(event="summary", sent=self.summary[0], received=self.summary[1])

    def _exit(self, code: int) -> None:
        if code > 1:
            self.fail(f"ping exit code {code}", log_of=self.spec.from_)
        self.finish("completed")
