// What is drawn over time: series that know their least and greatest values, so that none is left out where many fall
// on one dot of the screen.

import { place } from "./numbers.js";

const BLOCK = 64;
// Of the flags of TCP; and of `bits`: its bytes begin below the highest that were sent before.
export const ACK = 16, AGAIN = 0x40;

/** Values at ascending times; each holds until the next one. */
export class Series {
  constructor(times, values) {
    Object.assign(this, { times, values, blocks: [] });
  }

  /** The least and the greatest of the values from one place to another, without the latter. */
  bounds(from, to) {
    const { values, blocks } = this;
    let [low, high] = [Infinity, -Infinity];
    for (let at = from; at < to;) {
      const block = at / BLOCK, isWhole = at % BLOCK === 0 && at + BLOCK <= to;
      if (isWhole) blocks[block] ??= [Math.min(...values.subarray(at, at + BLOCK)), Math.max(...values.subarray(at, at + BLOCK))];
      const [least, most] = isWhole ? blocks[block] : [values[at], values[at]];
      if (least < low) low = least;
      if (most > high) high = most;
      at += isWhole ? BLOCK : 1;
    }
    return [low, high];
  }

  /** The value that holds at a time; NaN before the first. */
  at(ns) {
    return this.values[place(this.times, ns + 1) - 1] ?? NaN;
  }

  /** How much it grew from one time to another. */
  over(from, to) {
    return (this.at(to) || 0) - (this.at(from) || 0);
  }

  /** Those of its values whose places are chosen. */
  some(isChosen) {
    const kept = new Uint32Array(this.times.length).map((_, at) => at).filter(isChosen);
    return picked(kept, at => this.times[at], at => this.values[at]);
  }
}

function picked(rows, time, value) {
  return new Series(Float64Array.from(rows, time), Float64Array.from(rows, value));
}

/** Rows in the order of times, which some do not have: a series of what `value` is of each. */
function ordered(rows, times, value) {
  const there = rows.filter(row => !Number.isNaN(times[row]));
  if (!there.every((row, at) => !at || times[there[at - 1]] <= times[row])) there.sort((a, b) => times[a] - times[b] || a - b);
  return picked(there, row => times[row], value);
}

/** Bytes on the wire of some rows, summed up over times. */
export function sums(cell, rows, times) {
  let sum = 0;
  return ordered(rows, times, row => (sum += cell.wire_bytes[row]));
}

/**
 * The data of a conversation's one way, at its sender: `rows`, the bytes until the end of each as `sent`, of those the
 * `first` copies and those sent `again`; the places of those that were `lost` at some link. And what acknowledges it:
 * `ack`, `flight`, and `rtt`, a sample for each acknowledgement of new bytes of which none was sent twice.
 */
export function transfer(cell, number) {
  const talk = cell.talks[number], way = talk.data_way, flow = 2 * number + way, { is_tcp: isTcp } = talk;
  const rows = cell.rowsOf(flow, talk.first[way]).filter(row => cell.payload[row] || !isTcp), found = { talk, number, way, rows };
  if (!rows.length) return found;
  let sum = 0;
  const end = row => (isTcp ? cell.sequence[row] + cell.payload[row] : (sum += cell.payload[row] || cell.wire_bytes[row]));
  const sent = ordered(rows, cell.offered, end), isAgain = at => (cell.bits[rows[at]] & AGAIN) > 0;
  const losses = Array.from(rows, (row, at) => ({ t_ns: sent.times[at], value: sent.values[at], cause: cell.cause(cell.hops(row).at(-1)) }));
  found.lost = losses.filter(one => one.cause);
  Object.assign(found, { sent, first: sent.some(at => !isAgain(at)), again: sent.some(isAgain) });
  if (!isTcp) return found;
  const back = cell.rowsOf(flow ^ 1, talk.last[1 - way]).filter(row => cell.flags[row] & ACK && !cell.cause(row));
  const total = sent.values.reduce((most, one) => Math.max(most, one), 0);
  // A FIN takes a number of its own.
  const ack = ordered(back, cell.arrived, row => Math.min(Math.max(cell.acknowledgement[row], 0), total));
  let newest = 0;
  const timed = back.filter(row => newest !== (newest = cell.sample[row]));
  const rtt = ordered(timed, cell.arrived, row => cell.arrived[row] - cell.offered[cell.sample[row] - 1]);
  return Object.assign(found, { ack, rtt, flight: flightOf(sent, ack) });
}

function flightOf(...both) {
  const [offered, acked] = both.map(({ times, values }, number, all, most = 0) =>
    new Series(times, values.map(one => (most = Math.max(most, one)))));
  const times = Float64Array.from([...offered.times, ...acked.times]).sort();
  return new Series(times, times.map(ns => Math.max(0, (offered.at(ns) || 0) - (acked.at(ns) || 0))));
}

/**
 * The bytes in the queue before a direction, when each packet came, itself included unless it was dropped, and when it
 * left. A row that leaves is written as ~row; at one time, earlier rows are first.
 */
export function queueOf({ cell, all }) {
  const { offered, left, waited_bytes: waited, wire_bytes: wire } = cell, time = one => (one < 0 ? left[~one] : offered[one]);
  const events = Int32Array.from([...all, ...all.filter(row => left[row] >= offered[row]).map(row => ~row)]);
  events.sort((a, b) => time(a) - time(b) || Math.max(a, ~a) - Math.max(b, ~b) || b - a);
  const after = row => waited[row] + (cell.cause(row) === "queue" ? 0 : wire[row]);
  let bytes = 0;
  return picked(events, time, one => (bytes = one < 0 ? Math.max(0, bytes - wire[~one]) : after(one)));
}

/** Bytes of a conversation that reached their receiver, over time: a sum at each arrival. */
export function arrivals(cell, number) {
  const talk = cell.talks[number], way = talk.data_way;
  return (talk.arrivals ??= sums(cell, cell.rowsOf(2 * number + way, talk.last[way]).filter(row => !cell.cause(row)), cell.arrived));
}

/** The rate of a series of sums in bit/s, in bins that begin at multiples of their width. */
export function rates(series, from, to, bin) {
  const times = [], values = [];
  for (let at = Math.floor(from / bin) * bin, before = series.at(at - 1) || 0; at < to; at += bin) {
    const now = series.at(at + bin - 1) || 0;
    times.push(at);
    values.push(((now - before) * 8e9) / bin);
    before = now;
  }
  return new Series(times, Float64Array.from(values));
}
