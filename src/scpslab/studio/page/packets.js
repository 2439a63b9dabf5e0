// The packets around the cursor as a table, and one packet at each link that it passed.

import { CAUSES, LOST, fateText, flagsText, hops, lastHop, numbersOf, repair } from "./data.js";
import { grouped, place, scaled, spanText, timeText } from "./numbers.js";

const AROUND = 7, FALL = 0.92;
export const HEADS = ["offered", "link", "flow", "bytes", "seq", "ack", "flags", "waited", "left", "arrived", "became"];

/** An element with a text, and attributes. */
export function made(name, text = "", attributes = {}) {
  const element = document.createElement(name);
  element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/** The packets around a time in chosen directions: pairs of direction and row, in the order of their offers. */
export function around(chosen, ns, count = AROUND) {
  const before = [], after = [];
  for (const direction of chosen) {
    const at = place(direction.offered, ns + 1);
    for (let row = Math.max(0, at - count - 1); row < at; row++) before.push([direction, row]);
    for (let row = at; row < Math.min(direction.rows, at + count); row++) after.push([direction, row]);
  }
  const order = (a, b) => a[0].offered[a[1]] - b[0].offered[b[1]];
  return [...before.sort(order).slice(-count - 1), ...after.sort(order).slice(0, count)];
}

/** The next or the previous packet of chosen directions from a time on; null: there is none. */
export function neighbour(chosen, ns, isNext) {
  let best = null;
  for (const direction of chosen) {
    const row = isNext ? place(direction.offered, ns + 1) : place(direction.offered, ns) - 1;
    if (row < 0 || row >= direction.rows) continue;
    const time = direction.offered[row];
    if (!best || (isNext ? time < best[0] : time > best[0])) best = [time, direction, row];
  }
  return best;
}

/** Fills the table of packets; `choose` is called with the packet of a line. */
export function fillTable(body, cell, chosen, view, choose) {
  const middle = view.packet ? view.packet[0].offered[view.packet[1]] : view.at;
  const lines = around(chosen, middle).map(([direction, row]) => {
    const isTcp = direction.isTcp[direction.flow[row]], talk = cell.talks[direction.talks[direction.flow[row]][0]];
    const line = made("tr"), cause = LOST[direction.fate[row]];
    const waited = direction.waited_bytes[row], [seq, ack] = numbersOf(cell, direction, row);
    const texts = [
      timeText(direction.offered[row]), direction.name, talk.owner, grouped(direction.wire_bytes[row]),
      isTcp ? grouped(seq) : "", isTcp && direction.flags[row] & 16 ? grouped(ack) : "",
      isTcp ? flagsText(direction.flags[row]) : talk.protocol, waited ? scaled(waited, "B") : "–",
      Number.isNaN(direction.left[row]) ? "–" : `+${spanText(direction.left[row] - direction.offered[row])}`,
      Number.isNaN(direction.arrived[row]) ? "–" : `+${spanText(direction.arrived[row] - direction.offered[row])}`,
      fateText(direction, row),
    ];
    line.append(...texts.map((text, at) => made("td", text, { "data-head": HEADS[at] })));
    const open = made("button", texts[0], { type: "button", title: "Follow this packet" });
    line.firstChild.replaceChildren(open);
    open.addEventListener("click", () => choose(direction, row));
    if (cause) line.className = `lost ${cause}`;
    if (isSame(view.packet, direction, row)) line.setAttribute("aria-current", "true");
    return line;
  });
  body.replaceChildren(...lines);
}

function isSame(packet, direction, row) {
  return packet && packet[0] === direction && packet[1] === row;
}

/** Says of one packet what it is, its times at each link, and how its bytes were repaired. */
export function fillPacket(element, cell, packet, go) {
  if (!packet) {
    element.replaceChildren(made("p", "Choose a packet in the table, or step with the keys ← and →.", { class: "soft" }));
    return;
  }
  const [direction, row] = packet, talk = cell.talks[direction.talks[direction.flow[row]][0]];
  const way = direction.talks[direction.flow[row]][1], isTcp = direction.isTcp[direction.flow[row]];
  const parts = [`${talk.owner}, ${talk.protocol}`, `${talk.ends[way]} → ${talk.ends[1 - way]}`];
  const facts = [`${grouped(direction.wire_bytes[row])} B on the wire, ${grouped(direction.payload[row])} B of data`];
  if (isTcp) {
    const [seq, ack] = numbersOf(cell, direction, row);
    facts.push(flagsText(direction.flags[row]), `sequence ${grouped(seq)} (on the wire ${direction.sequence[row]})`);
    if (direction.flags[row] & 16) facts.push(`acknowledges ${grouped(ack)}`);
    facts.push(`window ${grouped(direction.window[row])}, IP id ${direction.id[row]}`);
  }
  if (direction.bit_errors[row]) facts.push(`${direction.bit_errors[row]} wrong bits`);
  const list = made("ol", "", { class: "hops" });
  for (const [place, at] of hops(cell, direction, row)) {
    const item = made("li"), isHere = place === direction && at === row;
    const jump = made("button", place.name, { type: "button" });
    jump.addEventListener("click", () => go(place.offered[at], place, at));
    const times = [`offered ${timeText(place.offered[at])}`];
    if (place.waited_bytes[at]) times.push(`behind ${scaled(place.waited_bytes[at], "B")}`);
    if (!Number.isNaN(place.left[at])) times.push(`left after ${spanText(place.left[at] - place.offered[at])}`);
    if (!Number.isNaN(place.arrived[at])) times.push(`arrived after ${spanText(place.arrived[at] - place.offered[at])}`);
    item.append(jump, made("span", times.join(", ")), made("strong", fateText(place, at), { class: LOST[place.fate[at]] ?? "fine" }));
    if (isHere) item.setAttribute("aria-current", "true");
    list.append(item);
  }
  element.replaceChildren(made("p", parts.join(" · ")), made("p", facts.join(" · "), { class: "soft" }), list);
  const [last, end] = lastHop(cell, direction, row);
  if (LOST[last.fate[end]]) element.append(repairLine(cell, direction, row, go));
}

function repairLine(cell, direction, row, go) {
  const found = repair(cell, direction, row), line = made("p", "", { class: "repair" });
  const words = {
    "no data": "It carried no data: nothing needs repair.", never: "Its bytes were never sent again with success.",
    "not followed": "Its protocol has no sequence numbers in the record: its repair is not known.",
    "arrived before": "Its bytes had arrived before: it was a copy.", repaired: "",
  };
  line.textContent = words[found.kind];
  if (found.kind === "repaired") {
    const [first, at] = found.hop, [end, last] = found.end;
    const jump = made("button", `sent at ${timeText(first.offered[at])}`, { type: "button" });
    jump.addEventListener("click", () => go(first.offered[at], first, at));
    line.append("Repaired by sequence ", grouped(numbersOf(cell, first, at)[0]), ", ", jump, ", which arrived at ", timeText(end.arrived[last]), ".");
  }
  return line;
}

/** Says what the chosen flow is about at the cursor, and what happened before its window fell last. */
export function fillMoment(element, cell, plots, ns, go) {
  const { flow, samples } = plots, lines = [];
  if (flow?.flight) lines.push(made("p", `${scaled(flow.flight.at(ns) || 0, "B")} of ${flow.talk.owner} in flight`));
  if (samples && Number.isFinite(samples.cwnd.at(ns))) {
    const { times, values } = samples.cwnd;
    let at = place(times, ns + 1) - 1;
    lines.push(made("p", `window ${scaled(values[at], "B")}`));
    for (let top = at; at > 0; at = top - 1) {
      // A fall: samples of which none is above the one before.
      for (top = at; top > 0 && values[top - 1] >= values[top];) top--;
      if (values[at] < FALL * values[top]) {
        while (values[top + 1] === values[top]) top++;
        lines.push(fall(cell, flow, [times[top + 1], values[top], values[at]], go));
        break;
      }
      if (top === 0) break;
    }
  }
  element.replaceChildren(...lines);
}

function fall(cell, flow, [ns, from, to], go) {
  const line = made("p", ""), jump = made("button", timeText(ns), { type: "button" });
  jump.addEventListener("click", () => go(ns));
  line.append(`It fell last, from ${scaled(from, "B")} to ${scaled(to, "B")}, from `, jump, " on");
  const last = flow.lost.findLast(at => flow.sent.times[at] < ns);
  if (last === undefined) line.append("; no packet of this flow was lost before.");
  else {
    const [end, row] = lastHop(cell, flow.direction, flow.rows[last]);
    const lost = made("button", timeText(flow.sent.times[last]), { type: "button" });
    lost.addEventListener("click", () => go(end.offered[row], end, row));
    line.append(`; lost last before that, by ${CAUSES[LOST[end.fate[row]]]}: the packet sent at `, lost, ".");
  }
  return line;
}

/** What a new reader asks first, answered: sentences, some with a time to go to. */
export function facts(cell, all) {
  const found = [], first = all[0];
  const counts = Object.keys(CAUSES).map(cause => [CAUSES[cause], all.filter(one => one[3] === cause).length]);
  const packets = cell.directions.reduce((sum, one) => sum + one.rows, 0);
  found.push([`${grouped(packets)} packets on ${cell.meta.links.length === 1 ? "a link" : `${cell.meta.links.length} links`}`, null]);
  if (first) {
    const said = counts.filter(([, count]) => count).map(([cause, count]) => `${count} ${cause}`).join(", ");
    found.push([`Lost: ${said}`, null], [`First loss: ${timeText(first[0])}, ${CAUSES[first[3]]}`, first]);
  }
  let longest = [0];
  for (const direction of cell.directions) {
    direction.waited_bytes.forEach((bytes, row) => { if (bytes > longest[0]) longest = [bytes, direction, row]; });
  }
  if (longest[1]) {
    const [bytes, direction, row] = longest;
    found.push([`Longest queue: ${scaled(bytes, "B")} before ${direction.name}, ${timeText(direction.offered[row])}`,
      [direction.offered[row], direction, row]]);
  }
  return found;
}
