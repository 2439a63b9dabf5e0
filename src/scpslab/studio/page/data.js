// Reads what studio/cell.py writes (docs/plan-format.md): tables of columns become typed arrays.

import { place } from "./numbers.js";

const HAS_LEFT = 0x10, HAS_ARRIVED = 0x20, WORD = 2 ** 32;
const KINDS = {
  flow: Int32Array, payload: Uint16Array, wire_bytes: Uint32Array, waited_bytes: Uint32Array, bit_errors: Uint32Array,
  id: Uint16Array, sequence: Uint32Array, acknowledgement: Uint32Array, window: Uint16Array, flags: Uint8Array,
  row: Int32Array, from: Int16Array, bits: Uint8Array,
};
const SYN = 2;
export const ACK = 16;
const FLAGS = [[2, "SYN"], [1, "FIN"], [4, "RST"], [8, "PSH"], [16, "ACK"], [32, "URG"], [64, "ECE"], [128, "CWR"]];

/** The bytes of a blob, which is compressed and in base64. */
export async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.trim()), one => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A cell: its `meta`, and its directions, conversations and samples with their numbers. */
export function cellOf(meta, raw) {
  const directions = [];
  for (const one of meta.directions) directions.push(new Direction(meta, one, raw, directions));
  directions.forEach((direction, number) => direction.joinTo(directions, number));
  for (const talk of meta.conversations) talk.base = [0, 1].map(way => firstByte(directions[talk.first[way]], meta, talk, way));
  const samples = meta.samples.map(one => ({ ...one, ...table(raw, one.table) }));
  return { meta, directions, samples, talks: meta.conversations };
}

/** The sequence number of the first byte that a conversation sends one way: behind its SYN, where that was seen. */
function firstByte(direction, meta, talk, way) {
  const rows = direction?.rowsOf(meta.conversations.indexOf(talk), way) ?? [], first = rows[0];
  return first === undefined ? 0 : direction.sequence[first] + (direction.flags[first] & SYN ? 1 : 0);
}

/** A packet's sequence number and what it acknowledges, counted from the first bytes. */
export function numbersOf(cell, direction, row) {
  const [number, way] = direction.talks[direction.flow[row]], { base } = cell.talks[number];
  return [signed(direction.sequence[row] - base[way]), signed(direction.acknowledgement[row] - base[1 - way])];
}

/** A table without flows. */
function table(raw, { rows, columns }) {
  const found = {};
  for (const [name, [how, width, at]] of Object.entries(columns)) {
    const numbers = planes(raw, width, at, rows);
    if (how === "step") for (let row = 1; row < rows; row++) numbers[row] += numbers[row - 1];
    found[name] = numbers;
  }
  return found;
}

/** Signed numbers of `width` bytes, the least significant bytes of all of them first. */
function planes(raw, width, at, rows) {
  const found = new Float64Array(rows);
  for (let plane = 0; plane < width; plane++) {
    const factor = 2 ** (8 * plane), start = at + plane * rows;
    for (let row = 0; row < rows; row++) found[row] += raw[start + row] * factor;
  }
  const top = at + (width - 1) * rows, whole = 2 ** (8 * width);
  if (width) for (let row = 0; row < rows; row++) if (raw[top + row] & 0x80) found[row] -= whole;
  return found;
}

/** The packets that one direction of a link was offered. Times that there are not are NaN. */
class Direction {
  constructor(meta, said, raw, earlier) {
    Object.assign(this, { link: meta.links[said.link], talks: said.talks, isTcp: said.is_tcp, rows: said.table.rows });
    this.way = this.link.directions[said.way];
    this.name = `${this.link.name} ${this.way.from} → ${this.way.to}`;
    this.duplicates = said.duplicates;
    const read = name => this.column(name, raw, said.table.columns[name], earlier);
    this.from = read("from");
    this.row = read("row");
    for (const name of ["flow", "payload", "bits", "wire_bytes", "waited_bytes", "bit_errors"]) this[name] = read(name);
    for (const name of ["id", "sequence", "acknowledgement", "window", "flags"]) this[name] = read(name);
    this.offered = read("offered");
    this.times(read("takes"), read("after"));
    this.fate = this.bits.map(one => one & 15);
    const lost = [];
    for (let row = 0; row < this.rows; row++) if (LOST[this.fate[row]]) lost.push(row);
    this.lost = Int32Array.from(lost);
    this.ofFlow = this.talks.map(() => null);
  }

  column(name, raw, [how, width, at, knows], earlier) {
    const { rows, from, row: source, flow, payload } = this, numbers = planes(raw, width, at, rows);
    const there = earlier.map(one => (name === "offered" ? one.arrived : one[name]));
    const flows = name === "flow" ? earlier.map(one => one.talks.map(talk => this.flowOf(talk))) : null;
    const last = how === "flow" || how === "stream" ? new Float64Array(this.talks.length) : null;
    for (let row = 0; row < rows; row++) {
      const before = knows ? from[row] - 1 : -1;
      if (before >= 0 && before < earlier.length) {
        const known = there[before][source[row]];
        numbers[row] += flows ? flows[before][known] : known;
      } else if (how === "step") numbers[row] += row ? numbers[row - 1] : 0;
      else if (last) numbers[row] = (((numbers[row] + last[flow[row]]) % WORD) + WORD) % WORD;
      if (last) last[flow[row]] = numbers[row] + (how === "stream" ? payload[row] : 0);
    }
    return name in KINDS ? KINDS[name].from(numbers) : numbers;
  }

  flowOf([talk, way]) {
    return Math.max(0, this.talks.findIndex(one => one[0] === talk && one[1] === way));
  }

  times(takes, after) {
    const { rows, bits, offered } = this;
    this.left = new Float64Array(rows);
    this.arrived = new Float64Array(rows);
    this.longest = 0;
    let before = -Infinity;
    for (let row = 0; row < rows; row++) {
      const gone = Math.max(offered[row], before) + takes[row];
      this.left[row] = bits[row] & HAS_LEFT ? gone : NaN;
      if (bits[row] & HAS_LEFT) before = Math.max(before, gone);
      this.arrived[row] = bits[row] & HAS_ARRIVED ? (bits[row] & HAS_LEFT ? gone : offered[row]) + after[row] : NaN;
      const end = this.end(row) - offered[row];
      if (end > this.longest) this.longest = end;
    }
  }

  /** When a packet's way over this link is over; of what was lost on it, when it would have arrived. */
  end(row) {
    if (this.arrived[row] >= 0 || this.arrived[row] < 0) return this.arrived[row];
    return Number.isNaN(this.left[row]) ? this.offered[row] : this.left[row] + this.way.delay_ns;
  }

  /** Joins the packets that came from other directions to what they were there. */
  joinTo(directions) {
    this.nextDirection ??= new Int16Array(this.rows).fill(-1);
    this.nextRow ??= new Int32Array(this.rows);
    const here = directions.indexOf(this);
    for (let row = 0; row < this.rows; row++) {
      const before = directions[this.from[row] - 1];
      if (!before) continue;
      before.nextDirection ??= new Int16Array(before.rows).fill(-1);
      before.nextRow ??= new Int32Array(before.rows);
      before.nextDirection[this.row[row]] = here;
      before.nextRow[this.row[row]] = row;
    }
  }

  /** The rows of a conversation's packets one way. */
  rowsOf(talk, way) {
    const flow = this.talks.findIndex(one => one[0] === talk && one[1] === way);
    if (flow < 0) return new Int32Array(0);
    return (this.ofFlow[flow] ??= Int32Array.from(this.flow.keys()).filter(row => this.flow[row] === flow));
  }

  /** Bytes on the wire until a time, and the rate that the plan has then (bit/s; null: no limit). */
  sentUntil(ns) {
    if (!this.sent) {
      const rows = Int32Array.from(this.left.keys()).filter(row => !Number.isNaN(this.left[row]));
      const times = Float64Array.from(rows, row => this.left[row]), bytes = new Float64Array(rows.length + 1);
      rows.forEach((row, at) => { bytes[at + 1] = bytes[at] + this.wire_bytes[row]; });
      this.sent = { times, bytes };
    }
    return this.sent.bytes[place(this.sent.times, ns)];
  }

  rateAt(ns) {
    return (this.way.rates.find(([until]) => until === null || ns < until) ?? [null, null])[1];
  }

  /** The cause of the last loss in a span of time before one; null: nothing was lost. */
  lostBefore(ns, span) {
    this.ends ??= Float64Array.from(this.lost, row => this.end(row)).sort();
    this.byEnd ??= Int32Array.from(this.lost).sort((a, b) => this.end(a) - this.end(b));
    const last = place(this.ends, ns + 1) - 1;
    return last >= 0 && this.ends[last] > ns - span ? LOST[this.fate[this.byEnd[last]]] : null;
  }

  isOut(ns) {
    return this.way.outages.some(([from, to]) => ns >= from && ns < to);
  }
}

/** Fates by number; those that are losses, with the name of the cause. */
export const FATES = ["delivered", "corrupt", "outage", "policy", "flipped", "queue", "duplicate", "unseen", "policed"];
export const CAUSES = {
  queue: "queue full", corrupt: "bit errors", outage: "link out", policy: "drop list", policed: "policer",
};
export const LOST = FATES.map(fate => (fate in CAUSES ? fate : null));

/** What became of a packet in words. */
export function fateText(direction, row) {
  const fate = FATES[direction.fate[row]];
  if (LOST[direction.fate[row]]) return `lost: ${CAUSES[fate]}`;
  return fate === "unseen" ? "on its way at the end" : fate === "flipped" ? "arrived with wrong bits" : fate;
}

export function flagsText(flags) {
  return FLAGS.filter(([bit]) => flags & bit).map(([, name]) => name).join(" ");
}

/** A packet at each link that it passed, from the first: pairs of direction and row. */
export function hops(cell, direction, row) {
  let [first, at] = [direction, row];
  while (first.from[at]) [first, at] = [cell.directions[first.from[at] - 1], first.row[at]];
  const found = [[first, at]];
  while (first.nextDirection[at] >= 0) {
    [first, at] = [cell.directions[first.nextDirection[at]], first.nextRow[at]];
    found.push([first, at]);
  }
  return found;
}

/** The last place of a packet. */
export function lastHop(cell, direction, row) {
  let [last, at] = [direction, row];
  while (last.nextDirection[at] >= 0) [last, at] = [cell.directions[last.nextDirection[at]], last.nextRow[at]];
  return [last, at];
}

/** How the bytes of a lost packet came to their receiver: what `kind` of repair, and the packet that brought the last. */
export function repair(cell, direction, row) {
  const [first, at] = hops(cell, direction, row)[0], [talk, way] = first.talks[first.flow[at]];
  if (!first.isTcp[first.flow[at]]) return { kind: "not followed" };
  if (!first.payload[at]) return { kind: "no data" };
  const begin = first.sequence[at], rows = first.rowsOf(talk, way), wanted = [[0, first.payload[at]]];
  const lost = lastHop(cell, first, at), lostAt = lost[0].end(lost[1]);
  let arrivedBefore = true;
  // What arrived by then is looked at first; then what is sent later, in its order.
  for (const other of rows) {
    const from = signed(first.sequence[other] - begin), to = from + first.payload[other];
    if (other === at || to <= 0 || from >= first.payload[at] || !first.payload[other]) continue;
    const [end, last] = lastHop(cell, first, other);
    if (LOST[end.fate[last]] || Number.isNaN(end.arrived[last])) continue;
    for (let part = wanted.length - 1; part >= 0; part--) {
      const [low, high] = wanted[part];
      const left = [[low, Math.min(high, from)], [Math.max(low, to), high]].filter(([a, b]) => a < b);
      if (from < high && to > low) wanted.splice(part, 1, ...left);
    }
    arrivedBefore &&= end.arrived[last] <= lostAt;
    if (!wanted.length) return { kind: arrivedBefore ? "arrived before" : "repaired", hop: [first, other], end: [end, last] };
  }
  return { kind: "never" };
}

/** The difference of two sequence numbers, the nearer way round (RFC 9293 §3.4). */
export function signed(difference) {
  return ((difference % WORD) + WORD + WORD / 2) % WORD - WORD / 2;
}
