// What is drawn over time of a cell: series with a pyramid of their least and greatest values, so that no value is left
// out where many fall on one dot of the screen.

import { ACK, LOST, lastHop, signed } from "./data.js";
import { place } from "./numbers.js";

const STEP = 16;

/** Values at ascending times; each holds until the next one. */
export class Series {
  constructor(times, values) {
    Object.assign(this, { times, values, levels: [] });
  }

  /** The least and the greatest of the values from one place to another, without the latter; null: there is none. */
  bounds(from, to) {
    if (from >= to) return null;
    if (!this.levels.length) this.build();
    let low = Infinity, high = -Infinity, size = 1, level = -1;
    while (from < to) {
      const wide = size * STEP;
      if (level + 1 < this.levels.length && from % wide === 0 && to - from >= wide) {
        size = wide;
        level += 1;
      } else if (level >= 0 && (from % size || to - from < size)) {
        size /= STEP;
        level -= 1;
      } else {
        const at = from / size, [least, most] = level < 0 ? [this.values, this.values] : this.levels[level];
        if (least[at] < low) low = least[at];
        if (most[at] > high) high = most[at];
        from += size;
      }
    }
    return low <= high ? [low, high] : null;
  }

  build() {
    let [least, most] = [this.values, this.values];
    while (least.length > STEP) {
      const count = Math.ceil(least.length / STEP), low = new Float64Array(count).fill(Infinity);
      const high = new Float64Array(count).fill(-Infinity);
      for (let at = 0; at < least.length; at++) {
        const up = Math.floor(at / STEP);
        if (least[at] < low[up]) low[up] = least[at];
        if (most[at] > high[up]) high[up] = most[at];
      }
      this.levels.push([low, high]);
      [least, most] = [low, high];
    }
  }

  /** The bounds of what is seen in a span of time, what holds at its begin included. */
  seen(from, to) {
    return this.bounds(Math.max(0, place(this.times, from) - 1), place(this.times, to + 1));
  }

  /** The value that holds at a time; NaN before the first. */
  at(ns) {
    const after = place(this.times, ns + 1);
    return after ? this.values[after - 1] : NaN;
  }
}

/** Values at times that are not in order. */
function sorted(times, values) {
  const order = Uint32Array.from(times.keys()).sort((a, b) => times[a] - times[b] || a - b);
  return new Series(Float64Array.from(order, at => times[at]), Float64Array.from(order, at => values[at]));
}

/**
 * The data of a conversation's one way, and what acknowledges it, at the sender: `sent` ends of packets in bytes, by
 * the number of `kind` (0 first, 1 repeated), `rows` of the `direction` where they begin; `ack`; `flight`; `rtt` in ns,
 * a sample for each acknowledgement of new bytes of which none was sent twice (Karn and Partridge 1987).
 */
export function transfer(cell, number) {
  const talk = cell.talks[number], way = talk.data_way, direction = cell.directions[talk.first[way]];
  const found = { talk, number, way, direction, rows: new Int32Array(0) };
  if (!direction) return found;
  const mine = direction.rowsOf(number, way), isTcp = mine.length && direction.isTcp[direction.flow[mine[0]]];
  const rows = mine.filter(row => direction.payload[row] || !isTcp), count = rows.length;
  const times = Float64Array.from(rows, row => direction.offered[row]), ends = new Float64Array(count);
  const kind = new Uint8Array(count), fate = new Uint8Array(count);
  const base = isTcp ? talk.base[way] : 0;
  let before = 0, highest = 0;
  rows.forEach((row, at) => {
    const begin = isTcp ? before + signed(direction.sequence[row] - base - before) : highest;
    ends[at] = begin + (direction.payload[row] || (isTcp ? 0 : direction.wire_bytes[row]));
    kind[at] = isTcp && begin < highest ? 1 : 0;
    [before, highest] = [begin, Math.max(highest, ends[at])];
    const [last, end] = lastHop(cell, direction, row);
    fate[at] = last.fate[end];
  });
  Object.assign(found, { rows, kind, fate, isTcp, sent: new Series(times, ends) });
  found.lost = Int32Array.from(fate.keys()).filter(at => LOST[fate[at]]);
  const back = cell.directions[talk.last[1 - way]];
  if (isTcp && back) Object.assign(found, acknowledged(found, back, talk.base[way]));
  return found;
}

function acknowledged({ number, way, sent, kind }, back, base) {
  const got = back.rowsOf(number, 1 - way).filter(row => back.flags[row] & ACK && !Number.isNaN(back.arrived[row])
    && !LOST[back.fate[row]]);
  const total = sent.values.reduce((most, one) => Math.max(most, one), 0);
  let before = 0;
  const raw = Float64Array.from(got, row => (before += signed(back.acknowledgement[row] - base - before)));
  // A FIN takes a number of its own.
  const ack = sorted(Float64Array.from(got, row => back.arrived[row]), raw.map(one => Math.min(Math.max(one, 0), total)));
  const all = new Float64Array(sent.times.length + ack.times.length), flight = new Float64Array(all.length);
  let [data, answer, highest, acked] = [0, 0, 0, 0];
  for (let at = 0; at < all.length; at++) {
    const isData = answer >= ack.times.length || (data < sent.times.length && sent.times[data] < ack.times[answer]);
    if (isData) highest = Math.max(highest, sent.values[data]);
    else acked = Math.max(acked, ack.values[answer]);
    all[at] = isData ? sent.times[data++] : ack.times[answer++];
    flight[at] = Math.max(0, highest - acked);
  }
  return { ack, flight: new Series(all, flight), rtt: roundTrips(sent, kind, ack) };
}

function roundTrips(sent, kind, ack) {
  const fresh = Uint32Array.from(sent.times.keys()).filter(at => !kind[at]), again = new Set();
  const ends = Float64Array.from(fresh, at => sent.values[at]);
  for (let at = 0; at < kind.length; at++) if (kind[at]) again.add(place(ends, sent.values[at]));
  const spoilt = Float64Array.from(fresh.keys(), at => (again.has(at) ? 1 : 0));
  for (let at = 1; at < spoilt.length; at++) spoilt[at] += spoilt[at - 1];
  const times = [], values = [];
  let covered = 0;
  for (let at = 0; at < ack.times.length; at++) {
    const now = place(ends, ack.values[at] + 1);
    if (now > covered) {
      const clean = spoilt[now - 1] === (covered ? spoilt[covered - 1] : 0);
      if (clean) {
        times.push(ack.times[at]);
        values.push(ack.times[at] - sent.times[fresh[now - 1]]);
      }
      covered = now;
    }
  }
  return new Series(Float64Array.from(times), Float64Array.from(values));
}

/** The samples of a conversation's sender: series of cwnd and ssthresh in bytes, srtt in ns; null without any. */
export function samplesOf(cell, number, way) {
  const found = cell.samples.find(one => one.conversation === number && one.way === way);
  if (!found) return null;
  const series = (values, factor = 1) => {
    const kept = Uint32Array.from(values.keys()).filter(at => values[at] >= 0);
    return new Series(Float64Array.from(kept, at => found.t[at]), Float64Array.from(kept, at => values[at] * factor));
  };
  return { isSampled: found.probe !== null, cwnd: series(found.cwnd), ssthresh: series(found.ssthresh), srtt: series(found.srtt_us, 1e3) };
}

/** The bytes in the queue before a direction when each packet came, itself included, and where it dropped one. */
export function queueOf(direction) {
  return (direction.queue ??= new Series(direction.offered, Float64Array.from(direction.waited_bytes.keys(),
    row => direction.waited_bytes[row] + (LOST[direction.fate[row]] === "queue" ? 0 : direction.wire_bytes[row]))));
}

/** Bytes of a conversation that reached their receiver, over time: a sum at each arrival. */
export function arrivals(cell, number) {
  const talk = cell.talks[number], way = talk.data_way, direction = cell.directions[talk.last[way]];
  if (talk.arrivals || !direction) return talk.arrivals ?? null;
  const rows = direction.rowsOf(number, way).filter(row => !Number.isNaN(direction.arrived[row])
    && !LOST[direction.fate[row]]);
  const series = sorted(Float64Array.from(rows, row => direction.arrived[row]),
    Float64Array.from(rows, row => direction.wire_bytes[row]));
  for (let at = 1; at < series.values.length; at++) series.values[at] += series.values[at - 1];
  return (talk.arrivals = series);
}

/** The rate of a series of sums in bit/s, in bins that begin at multiples of their width. */
export function rates(series, from, to, bin) {
  const times = [], values = [];
  const sum = ns => (place(series.times, ns) ? series.values[place(series.times, ns) - 1] : 0);
  for (let at = Math.floor(from / bin) * bin; at < to; at += bin) {
    times.push(at);
    values.push(((sum(at + bin) - sum(at)) * 8e9) / bin);
  }
  return new Series(Float64Array.from(times), Float64Array.from(values));
}

/** Every loss of a cell in the order of time: `[time, direction, row, cause]`, the time where it was judged. */
export function losses(cell) {
  return (cell.losses ??= cell.directions.flatMap(direction => Array.from(direction.lost, row =>
    [direction.end(row), direction, row, LOST[direction.fate[row]]])).sort((a, b) => a[0] - b[0]));
}
