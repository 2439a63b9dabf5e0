// What is said in words: the packets around the cursor as a table, one packet at each link that it passed, and what the
// chosen flow is about.

import { CAUSES } from "./data.js";
import { grouped, scaled, spanText, timeText } from "./numbers.js";
import { ACK } from "./series.js";

// A window that falls for longer than some round trips answers more than one loss.
const AROUND = 7, SLOW = 4;
const REPAIRS = [
  "", "Its bytes were never sent again with success.", "It carried no data: nothing needs repair.",
  "Its bytes had arrived before: it was a copy.", "Its protocol has no sequence numbers in the record: its repair is not known.",
];

export const get = id => document.getElementById(id);

/** An element with attributes (functions listen), and what is in it: texts and elements. */
export function made(name, attributes = {}, ...inside) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value);
  }
  element.append(...inside);
  return element;
}

export const button = (text, click, more = {}) => made("button", { type: "button", click, ...more }, text);

/** The rows around a time in chosen directions, in the order of their offers; `count` on each side. */
export function around(cell, chosen, ns, count = AROUND) {
  const order = (a, b) => cell.offered[a] - cell.offered[b];
  const before = chosen.flatMap(one => [...one.all.subarray(0, one.before(ns + 1)).slice(-count - 1)]).sort(order);
  const after = chosen.flatMap(one => [...one.all.subarray(one.before(ns + 1)).slice(0, count)]).sort(order);
  return [...before.slice(-count - 1), ...after.slice(0, count)];
}

/** What happened to a packet at a link after it was offered. */
function passed(cell, row) {
  const after = ns => (Number.isNaN(ns) ? "–" : `+${spanText(ns - cell.offered[row])}`);
  return [cell.waited_bytes[row] ? scaled(cell.waited_bytes[row], "B") : "–", after(cell.left[row]), after(cell.arrived[row]), cell.became(row)];
}

/** Fills the table of packets; `choose` is called with the packet of a line. */
export function fillTable(table, cell, chosen, view, choose) {
  const rows = around(cell, chosen, view.packet === null ? view.at : cell.offered[view.packet]);
  table.tBodies[0].replaceChildren(...rows.map(row => {
    const isTcp = cell.isTcp(row), cause = cell.cause(row), talk = cell.talk(row);
    const texts = [
      cell.direction(row).name, talk.owner, grouped(cell.wire_bytes[row]), isTcp ? grouped(cell.sequence[row]) : "",
      isTcp && cell.flags[row] & ACK ? grouped(cell.acknowledgement[row]) : "", isTcp ? cell.flagsText(row) : talk.protocol, ...passed(cell, row),
    ];
    const open = button(timeText(cell.offered[row]), () => choose(row), { title: "Follow this packet" });
    const attributes = { ...(cause && { class: `lost ${cause}` }), ...(row === view.packet && { "aria-current": "true" }) };
    return made("tr", attributes, ...[open, ...texts].map(one => made("td", {}, one)));
  }));
}

/** Says of one packet what it is, its times at each link, and how its bytes were repaired. */
export function fillPacket(element, cell, row, go) {
  if (row === null) {
    element.replaceChildren(made("p", { class: "soft" }, "Choose a packet in the table, or step with the keys ← and →."));
    return;
  }
  const talk = cell.talk(row), way = cell.flow[row] & 1, isTcp = cell.isTcp(row), sequence = cell.sequence[row];
  const onWire = (((talk.base[way] + sequence) % 2 ** 32) + 2 ** 32) % 2 ** 32;
  const facts = [
    `${grouped(cell.wire_bytes[row])} B on the wire, ${grouped(cell.payload[row])} B of data`,
    isTcp && cell.flagsText(row), isTcp && `sequence ${grouped(sequence)} (on the wire ${onWire})`,
    isTcp && cell.flags[row] & ACK && `acknowledges ${grouped(cell.acknowledgement[row])}`,
    isTcp && `window ${grouped(cell.window[row])}, IP id ${cell.id[row]}`, cell.bit_errors[row] && `${cell.bit_errors[row]} wrong bits`,
  ];
  const hops = cell.hops(row), lost = cell.lost.find(one => one.row === hops.at(-1));
  element.replaceChildren(
    made("p", {}, `${talk.owner}, ${talk.protocol} · ${talk.ends[way]} → ${talk.ends[1 - way]}`),
    made("p", { class: "soft" }, facts.filter(Boolean).join(" · ")),
    made("ol", { class: "hops" }, ...hops.map(at => {
      const [waited, left, arrived, became] = passed(cell, at);
      const times = [`offered ${timeText(cell.offered[at])}`, `behind ${waited}`, `left after ${left}`, `arrived after ${arrived}`];
      const text = times.filter(one => !one.endsWith("–")).join(", ").replaceAll("+", "");
      return made("li", at === row ? { "aria-current": "true" } : {}, button(cell.direction(at).name, () => go(cell.offered[at], at)),
        made("span", {}, text), made("strong", { class: cell.cause(at) ?? "fine" }, became));
    })),
    ...(lost ? [made("p", { class: "repair" }, ...repair(cell, lost, go))] : []));
}

function repair(cell, lost, go) {
  if (lost.repair) return [REPAIRS[lost.repair]];
  const hops = cell.hops(lost.row + lost.by), sent = cell.offered[hops[0]];
  const jump = button(`sent at ${timeText(sent)}`, () => go(sent, hops[0]));
  return [`Repaired by sequence ${grouped(cell.sequence[hops[0]])}, `, jump, `, which arrived at ${timeText(cell.arrived[hops.at(-1)])}.`];
}

/** Says what the chosen flow and its queue are about at the cursor, and what its sender knew when its window fell last. */
export function fillMoment(element, cell, { flow, sender, others, queue, by }, ns, go) {
  const lines = [], { falls, cwnd, srtt } = sender ?? {}, fall = falls?.findLast(one => one.t_ns <= ns);
  if (flow?.flight) lines.push([`${scaled(flow.flight.at(ns) || 0, "B")} of ${flow.talk.owner} in flight`]);
  if (cwnd?.at(ns) >= 0) lines.push([`window${by} ${scaled(cwnd.at(ns), "B")}${others.length ? `, of ${sender.ends.join(" to ")}` : ""}`]);
  if (fall) {
    const { t_ns: t, from, to, row } = fall;
    const took = cwnd.times.find((ns, number) => ns >= t && cwnd.values[number] <= to) - t;
    const fell = `, from ${scaled(from, "B")} to ${scaled(to, "B")} ${took ? `within ${spanText(took)}` : "at once"}`;
    let why = ["; no answer had told of a loss."];
    if (took > SLOW * srtt.at(t)) why = [", little by little: no single loss explains that."];
    else if (row >= 0) why = [`; the newest loss that answers had told of, by ${CAUSES[cell.cause(row)]}: the packet sent at `,
      button(timeText(cell.offered[cell.hops(row)[0]]), () => go(cell.offered[row], row)),
      others.length ? ", of any of these connections." : "."];
    lines.push(["It last began to fall at ", button(timeText(t), () => go(t)), fell, ...why]);
  }
  if (queue) lines.push([`${scaled(queue.depth.at(ns) || 0, "B")} in the queue before ${queue.name}`]);
  element.replaceChildren(...lines.map(line => made("p", {}, ...line)));
}
