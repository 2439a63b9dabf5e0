// One cell on the page: its facts, network, plots, flows and packets.

import { colours } from "./canvas.js";
import { Network } from "./network.js";
import { grouped, scaled, timeText } from "./numbers.js";
import { around, button, fillMoment, fillPacket, fillTable, made } from "./packets.js";
import { Plots } from "./plots.js";
import { arrivals } from "./series.js";

const SHORTEST_NS = 20, TELL_MS = 60;

export class CellView {
  /** `shared`: the view of all cells of the page; `changed(isWindow)`: is called when this one changed it. */
  constructor(cell, shared, changed, isCompared = false) {
    Object.assign(this, { cell, shared, changed, colour: colours(), size: isCompared ? 0.7 : 1, packetHere: null });
    this.section = document.getElementById("cell").content.firstElementChild.cloneNode(true);
    const names = ["map", "chart", "overlay", "flows", "moment", "packet", "packets", "place", "more", "level"];
    for (const name of names) this[name] = this.section.querySelector(`.${name}`);
    const { overlay, more, level } = this;
    this.draws();
    this.showQueue();
    more.open = !isCompared && cell.meta.status !== "live";
    for (const one of [more, this.place]) one.addEventListener(one === more ? "toggle" : "change", () => changed(false));
    level.addEventListener("change", () => {
      this.plots.level = level.checked;
      changed(true);
    });
    overlay.addEventListener("pointerdown", event => this.drag(event));
    overlay.addEventListener("wheel", event => this.wheel(event), { passive: false });
    overlay.addEventListener("dblclick", event => this.zoom(0.25, this.timeAt(event)));
  }

  /** The directions whose packets the table has. */
  get chosen() {
    return this.cell.directions.filter((_, number) => ["all", String(number)].includes(this.place.value));
  }

  showQueue() {
    this.place.value = this.plots.queue ? this.cell.directions.indexOf(this.plots.queue) : "all";
  }

  /** What draws the cell, and what is told of it as a whole. */
  draws() {
    const { cell, colour } = this, { meta } = cell, of = name => this.section.querySelector(name), { value } = this.place;
    Object.assign(this, { plots: new Plots(cell, colour, this.size), network: new Network(cell, colour) });
    of("h2").textContent = meta.id;
    of(".notes").replaceChildren(...meta.notes.map(note => made("p", {}, note)));
    of(".facts").replaceChildren(...meta.facts.map(([text, ns, row]) =>
      made("li", {}, row === undefined ? text : button(`${text}, ${timeText(ns)}`, () => this.go(ns, row)))));
    this.place.replaceChildren(made("option", { value: "all" }, "all links"),
      ...cell.directions.map((one, number) => made("option", { value: number }, `${one.name}, ${grouped(one.rows)}`)));
    this.place.value = value;
    if (meta.status === "live") this.moment.textContent ||= "Pause to read what stands at the cursor.";
    this.fillFlows();
  }

  /** Takes newer packets of a lab that runs, in place of those that are there. */
  update(cell) {
    const { talks } = this.cell, { level, flow } = this.plots, same = (one, other) => String(one?.ends) === String(other?.ends);
    for (const talk of cell.talks) talk.hidden = talks.some(one => one.hidden && same(one, talk));
    Object.assign(this, { cell, packetHere: null });
    this.draws();
    this.plots.level = level;
    const mine = this.isChosen ? cell.talks.findIndex(talk => same(talk, talks[flow?.number])) : -1;
    if (mine >= 0) this.plots.focus(mine);
    this.fillFlows();
    if (!this.place.value) this.place.value = "all";
  }

  fillFlows() {
    const { talks, meta } = this.cell;
    this.shares = [];
    this.flows.replaceChildren(...meta.busiest.map(number => {
      const talk = talks[number], way = talk.data_way;
      const shown = made("input", { type: "checkbox", "aria-label": `show ${talk.owner} in the rates`, change: () => {
        talk.hidden = !shown.checked;
        this.changed(true);
      } });
      shown.checked = !talk.hidden;
      const focus = button(talk.owner, () => this.focus(number), { "aria-pressed": number === this.plots.flow?.number });
      const share = this.shares[number] = made("b"), title = `${talk.ends[way]} → ${talk.ends[1 - way]}`;
      return made("li", {}, shown, focus, made("span", { title }, `${talk.protocol}, ${talk.nodes[way]} → ${talk.nodes[1 - way]}: `, share));
    }));
  }

  /** Who got what of the time that is shown, at its receivers. */
  fillShares({ from, to }) {
    const got = this.shares.map((_, number) => arrivals(this.cell, number).over(from, to)), all = got.reduce((a, b) => a + b, 0) || 1;
    got.forEach((bytes, number) => {
      this.shares[number].textContent = `${scaled((bytes * 8e9) / (to - from), "bit/s")}, ${Math.round((100 * bytes) / all)} %`;
    });
  }

  focus(number) {
    this.isChosen = true;
    this.plots.focus(number);
    this.fillFlows();
    this.showQueue();
    this.changed(true);
  }

  /** Moves the cursor to a time, and to a packet where one is given; the window follows. */
  go(ns, row = null) {
    const isPacket = row !== null, direction = isPacket && this.cell.direction(row);
    this.shared.packetCell = isPacket ? this : null;
    this.packetHere = row;
    if (isPacket && !this.chosen.includes(direction)) this.place.value = String(this.cell.directions.indexOf(direction));
    moveTo(this.shared, ns);
    this.changed(true);
  }

  /** The next or the previous loss, event, or packet of the chosen directions. */
  step(isNext, what) {
    const { cell, shared: { at } } = this, near = () => around(cell, this.chosen, at - (isNext ? 0 : 1), 1);
    const all = { loss: cell.lost, event: cell.meta.marks }[what] ?? near().map(row => ({ t_ns: cell.offered[row], row }));
    const found = isNext ? all.find(one => one.t_ns > at) : all.findLast(one => one.t_ns < at);
    if (found) this.go(found.t_ns, found.row);
  }

  timeAt(event) {
    const [x0, x1] = this.plots.span(this.width), { from, to } = this.shared;
    const share = (event.clientX - this.overlay.getBoundingClientRect().left - x0) / (x1 - x0);
    return Math.round(from + Math.min(1, Math.max(0, share)) * (to - from));
  }

  /** Drags the cursor; with Shift, the window. */
  drag(event) {
    const { shared } = this, { from, to } = shared, [x0, x1] = this.plots.span(this.width), isMove = event.shiftKey;
    dragged(this.overlay, event, now => {
      const by = ((now.clientX - event.clientX) * (to - from)) / (x1 - x0);
      if (isMove) setWindow(shared, from - by, to - by);
      else shared.at = this.timeAt(now);
      shared.packetCell = null;
      this.changed(isMove);
    });
  }

  wheel(event) {
    const { from, to } = this.shared, sideways = ((event.shiftKey ? event.deltaY : event.deltaX) / 1000) * (to - from);
    const isZoom = event.ctrlKey || event.metaKey;
    if (!isZoom && !event.shiftKey && Math.abs(event.deltaX) < Math.abs(event.deltaY)) return;
    event.preventDefault();
    if (isZoom) this.zoom(2 ** (event.deltaY / 200), this.timeAt(event));
    else setWindow(this.shared, from + sideways, to + sideways);
    this.changed(true);
  }

  zoom(factor, around = this.shared.at) {
    const { from, to } = this.shared;
    setWindow(this.shared, around - (around - from) * factor, around + (to - around) * factor);
    this.changed(true);
  }

  render(isWindow) {
    const { shared, network, plots } = this, view = { ...shared, packet: shared.packetCell === this ? this.packetHere : null };
    network.marked = view.packet;
    network.draw(this.map, Math.max(this.map.parentElement.clientWidth, network.leastWidth), view);
    this.width = this.chart.parentElement.clientWidth;
    if (isWindow) {
      plots.draw(this.chart, this.width, view);
      this.fillShares(view);
    }
    plots.cursor(this.overlay.firstChild, this.width, view);
    clearTimeout(this.later);
    // Words take longer than pictures: while the cursor is dragged they wait.
    if (!shared.isPlaying) this.later = setTimeout(() => this.tell(view), dragged.isOn ? TELL_MS : 0);
  }

  /** What is said in words of the time at the cursor. */
  tell(view) {
    const { cell, shared } = this, go = (ns, row) => this.go(ns, row);
    this.map.setAttribute("aria-label", `Network at the cursor: ${this.network.said || "nothing moves"}`);
    if (this.more.open) fillTable(this.packets, cell, this.chosen, view, row => go(cell.offered[row], row));
    fillMoment(this.moment, cell, this.plots, shared.at, go);
    fillPacket(this.packet, cell, view.packet, go);
  }
}

/** Calls `move` with the pointer until it is let go. */
export function dragged(element, event, move) {
  element.setPointerCapture(event.pointerId);
  [element.onpointermove, dragged.isOn] = [move, true];
  element.onpointerup = element.onpointercancel = () => { [element.onpointermove, dragged.isOn] = [null, false]; };
  move(event);
}

/** Shows a span of time: not shorter than some nanoseconds, and inside of the cell. */
export function setWindow(shared, from, to) {
  const wide = Math.min(Math.max(to - from, SHORTEST_NS), shared.end - shared.begin);
  shared.from = Math.min(Math.max(from, shared.begin), shared.end - wide);
  shared.to = shared.from + wide;
}

/** Moves the cursor; the window follows where it would leave it. */
export function moveTo(shared, ns) {
  shared.at = Math.min(Math.max(Math.round(ns), shared.begin), shared.end);
  const { from, to } = shared, wide = to - from;
  if (shared.at < from || shared.at > to) setWindow(shared, shared.at - wide / 2, shared.at + wide / 2);
}
