// Reads what studio/cell.py writes (docs/plan-format.md): tables of columns become typed arrays. A packet at a link is a
// row, and the row's number is its name everywhere.

import { place } from "./numbers.js";
import { Series, sums } from "./series.js";

const HAS_LEFT = 0x10, HAS_ARRIVED = 0x20;
const FLAGS = [[2, "SYN"], [1, "FIN"], [4, "RST"], [8, "PSH"], [16, "ACK"], [32, "URG"], [64, "ECE"], [128, "CWR"]];

/** What the page has besides columns; with it, what became of a packet by its fate: the cause of its loss, or null, and words. */
export const page = JSON.parse(document.getElementById("data").textContent);
// What causes of loss are called.
export const CAUSES = Object.fromEntries(page.causes);

/** The bytes of a blob, which is compressed and in base64. */
export async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.trim()), one => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Signed numbers of `width` bytes, the least significant bytes of all of them first; the last ones have the signs. */
function planes(raw, width, at, rows) {
  const found = new Float64Array(rows), signed = new Int8Array(raw.buffer);
  for (let plane = 0; plane < width; plane++) {
    const factor = 2 ** (8 * plane), start = at + plane * rows, bytes = plane === width - 1 ? signed : raw;
    for (let row = 0; row < rows; row++) found[row] += bytes[start + row] * factor;
  }
  return found;
}

/** A table's columns; of packets, `firsts` are the first rows of directions, and `left` or `arrived` is NaN where it is not. */
function table(raw, said, firsts = []) {
  const { rows, columns } = said ?? { rows: 0, columns: [] }, found = { rows };
  for (const [name, how, width, at, knows] of columns) {
    const numbers = planes(raw, width, at, rows), { before, flow, payload } = found, last = [];
    const times = name === "offered" && Object.assign(found, { left: new Float64Array(rows), arrived: new Float64Array(rows) });
    const known = times ? times.arrived : numbers;
    let gone = 0;
    for (let row = 0; row < rows; row++) {
      const from = knows ? before[row] : -1;
      if (from >= 0 && from < row) numbers[row] += known[from];
      else if (how === "step") numbers[row] += row ? numbers[row - 1] : 0;
      else if (how !== "value") numbers[row] += last[flow[row]] ?? 0;
      if (how === "flow" || how === "stream") last[flow[row]] = numbers[row] + (how === "stream" ? payload[row] : 0);
      if (!times) continue;
      if (firsts.includes(row)) gone = -Infinity;
      const hasLeft = found.bits[row] & HAS_LEFT, left = hasLeft ? Math.max(numbers[row], gone) + found.takes[row] : NaN;
      if (hasLeft) gone = Math.max(gone, left);
      times.left[row] = left;
      times.arrived[row] = found.bits[row] & HAS_ARRIVED ? (hasLeft ? left : numbers[row]) + found.after[row] : NaN;
    }
    // Half the room, where that is enough.
    found[name] = numbers.every(one => one === (one | 0)) ? Int32Array.from(numbers) : numbers;
  }
  return found;
}

/** The rows of a small table as objects. */
function listed(raw, said) {
  const { rows, ...columns } = table(raw, said), names = Object.keys(columns);
  return Array.from({ length: rows }, (_, row) => Object.fromEntries(names.map(name => [name, columns[name][row]])));
}

/** A cell: the columns of its packets, what was lost of them, its directions, conversations and senders. */
export class Cell {
  constructor(meta, raw) {
    Object.assign(this, table(raw, meta.packets, meta.directions.map(one => one.first)), { meta, talks: meta.conversations });
    this.next = new Int32Array(this.rows).fill(-1);
    for (let row = 0; row < this.rows; row++) if (this.before[row] >= 0) this.next[this.before[row]] = row;
    this.ofFlow = {};
    this.lost = listed(raw, meta.lost).map(one => ({ ...one, cause: this.cause(one.row), value: this.waited_bytes[one.row] }));
    this.directions = meta.directions.map(said => new Direction(this, said));
    this.senders = meta.series.map(one => {
      const tables = [one.cwnd, one.ssthresh, one.srtt].map(said => table(raw, said));
      const [cwnd, ssthresh, srtt] = tables.map(its => new Series(its.t_ns, its.value));
      return { ...one, cwnd, ssthresh, srtt, falls: listed(raw, one.falls) };
    });
  }

  direction(row) {
    return this.directions.findLast(one => one.first <= row);
  }

  talk(row) {
    return this.talks[this.flow[row] >> 1];
  }

  isTcp(row) {
    return this.talk(row).is_tcp && this.flags[row] > 0;
  }

  /** Why a packet was lost there; null: it was not. */
  cause(row) {
    return page.fates[this.bits[row] & 15][0];
  }

  /** What became of a packet there, in words. */
  became(row) {
    return page.fates[this.bits[row] & 15][1];
  }

  flagsText(row) {
    return FLAGS.filter(([bit]) => this.flags[row] & bit).map(([, name]) => name).join(" ");
  }

  /** When a packet's way over this link is over; of what was lost on it, when it would have arrived. */
  end(row) {
    if (!Number.isNaN(this.arrived[row])) return this.arrived[row];
    return Number.isNaN(this.left[row]) ? this.offered[row] : this.left[row] + this.direction(row).way.delay_ns;
  }

  /** A packet at each link that it passed, from the first. */
  hops(row) {
    let at = row;
    while (this.before[at] >= 0) at = this.before[at];
    const found = [at];
    while (this.next[at] >= 0) found.push((at = this.next[at]));
    return found;
  }

  /** The rows of a flow (twice the conversation, and its way) at a direction. */
  rowsOf(flow, direction) {
    const { all } = this.directions[direction] ?? { all: new Int32Array() };
    return (this.ofFlow[`${flow} ${direction}`] ??= all.filter(row => this.flow[row] === flow));
  }
}

/** One direction of a link: the rows of the packets that it was offered, from `first` to before `end`. */
class Direction {
  constructor(cell, { link, way, first, rows }) {
    Object.assign(this, { cell, first, end: first + rows, rows, link: cell.meta.links[link] });
    this.way = this.link.directions[way];
    this.name = `${this.link.name} ${this.way.from} → ${this.way.to}`;
    this.lost = cell.lost.filter(({ row }) => row >= first && row < this.end);
    this.all = Int32Array.from({ length: rows }, (_, at) => first + at);
    // That which lost more is busier, else that whose queue was longer.
    this.busy = cell.waited_bytes.subarray(first, this.end).reduce((a, b) => Math.max(a, b), 0) + this.lost.length * 1e9;
  }

  /** How many of its rows were offered before a time. */
  before(ns) {
    return place(this.cell.offered, ns, this.first, this.end) - this.first;
  }

  /** The rows that may be under way at a time, in the queue or behind it. */
  underWay(ns) {
    if (!this.over) {
      this.over = new Float64Array(this.rows);
      for (let at = 0; at < this.rows; at++) this.over[at] = Math.max(this.over[at - 1] ?? 0, this.cell.end(this.first + at));
    }
    return this.all.subarray(place(this.over, ns), this.before(ns + 1));
  }

  /** Bytes on the wire, summed up. */
  get sent() {
    return (this.sums ??= sums(this.cell, this.all, this.cell.left));
  }

  /** The rate that the plan has at a time, in bit/s; null: no limit. */
  rateAt(ns) {
    return (this.way.rates.find(([until]) => until === null || ns < until) ?? [null, null])[1];
  }

  /** The cause of the last loss in a span of time before one. */
  lostBefore(ns, span) {
    return this.lost.findLast(one => one.t_ns <= ns && one.t_ns > ns - span)?.cause;
  }

  isOut(ns) {
    return this.way.outages.some(([from, to]) => ns >= from && ns < to);
  }
}
