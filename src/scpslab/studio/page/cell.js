// One cell on the page: its facts, network, plots, flows and packets.

import { colours } from "./canvas.js";
import { Network } from "./network.js";
import { grouped, scaled } from "./numbers.js";
import { HEADS, facts, fillMoment, fillPacket, fillTable, made, neighbour } from "./packets.js";
import { Plots } from "./plots.js";
import { losses } from "./series.js";

const SHORTEST_NS = 20, TELL_MS = 60;

export class CellView {
  /** `shared`: the view of all cells of the page; `changed(isWindow)`: is called when this one changed it. */
  constructor(cell, shared, changed, isCompared = false) {
    Object.assign(this, { cell, shared, changed, colour: colours() });
    this.plots = new Plots(cell, this.colour, isCompared ? 0.7 : 1);
    this.network = new Network(cell, this.colour);
    this.build(isCompared);
    const { queue } = this.plots;
    this.place.value = String(cell.directions.indexOf(queue));
    if (!this.place.value) this.place.value = "all";
  }

  get chosen() {
    const number = this.place.value;
    return number === "all" ? this.cell.directions : [this.cell.directions[Number(number)]];
  }

  build(isCompared) {
    const { cell } = this, { meta } = cell;
    this.section = document.getElementById("cell").content.firstElementChild.cloneNode(true);
    const of = name => this.section.querySelector(name);
    of("h2").textContent = meta.id;
    const notes = meta.notes.map(note => made("p", note));
    of(".notes").replaceChildren(...notes);
    of(".facts").replaceChildren(...facts(cell, losses(cell)).map(([text, at]) => {
      const item = made("li", at ? "" : text);
      if (at) item.append(this.button(text, () => this.go(at[0], at[1], at[2])));
      return item;
    }));
    [this.map, this.chart, this.overlay, this.list, this.moment, this.packet, this.body, this.place] = [".map", ".chart",
      ".overlay", ".flows", ".moment", ".packet", "tbody", ".place"].map(of);
    of("thead tr").replaceChildren(...HEADS.map(head => made("th", head, { scope: "col" })));
    this.place.append(made("option", "all links", { value: "all" }),
      ...cell.directions.map((one, number) => made("option", `${one.name}, ${grouped(one.rows)}`, { value: number })));
    this.place.addEventListener("change", () => this.changed(false));
    this.fillFlows();
    of("details").open = !isCompared;
    of("details").addEventListener("toggle", () => this.changed(false));
    of(".level").addEventListener("change", event => {
      this.plots.level = event.target.checked;
      this.changed(true);
    });
    this.overlay.addEventListener("pointerdown", event => this.drag(event));
    this.overlay.addEventListener("wheel", event => this.wheel(event), { passive: false });
    this.overlay.addEventListener("dblclick", event => this.zoom(0.25, this.timeAt(event)));
  }

  button(text, act) {
    const button = made("button", text, { type: "button" });
    button.addEventListener("click", act);
    return button;
  }

  fillFlows() {
    const order = [...this.cell.talks.keys()].sort((a, b) => Math.max(...this.cell.talks[b].payload) - Math.max(...this.cell.talks[a].payload));
    const total = this.cell.talks.reduce((sum, talk) => sum + talk.payload[talk.data_way], 0) || 1;
    this.list.replaceChildren(...order.map(number => {
      const talk = this.cell.talks[number], item = made("li"), way = talk.data_way, bytes = talk.payload[way];
      const shown = made("input", "", { type: "checkbox", "aria-label": `show ${talk.owner} in the rates` });
      shown.checked = !talk.hidden;
      shown.addEventListener("change", () => {
        talk.hidden = !shown.checked;
        this.changed(true);
      });
      const focus = this.button(talk.owner, () => this.focus(number));
      focus.setAttribute("aria-pressed", String(number === this.plots.flow?.number));
      const text = `${talk.protocol}, ${talk.nodes[way]} → ${talk.nodes[1 - way]}, ${scaled(bytes, "B")}, ${Math.round((100 * bytes) / total)} %`;
      item.append(shown, focus, made("span", text, { title: `${talk.ends[way]} → ${talk.ends[1 - way]}` }));
      return item;
    }));
  }

  focus(number) {
    this.plots.focus(number);
    this.fillFlows();
    this.place.value = String(Math.max(0, this.cell.directions.indexOf(this.plots.queue)));
    this.changed(true);
  }

  /** Moves the cursor to a time, and to a packet where one is given; the window follows. */
  go(ns, direction = null, row = 0) {
    this.shared.packetCell = direction ? this : null;
    this.packetHere = direction ? [direction, row] : null;
    if (direction && !this.chosen.includes(direction)) this.place.value = String(this.cell.directions.indexOf(direction));
    moveTo(this.shared, ns);
    this.changed(true);
  }

  step(isNext) {
    const found = neighbour(this.chosen, this.shared.at, isNext);
    if (found) this.go(found[0], found[1], found[2]);
  }

  /** The next or the previous loss, or mark. */
  jump(isNext, what) {
    const all = what === "loss" ? losses(this.cell) : this.cell.meta.marks.map(mark => [mark.t_ns]);
    const at = this.shared.at, found = isNext ? all.find(one => one[0] > at + 0.5) : all.findLast(one => one[0] < at - 0.5);
    if (found) this.go(...found);
    return Boolean(found);
  }

  timeAt(event) {
    const [x0, x1] = this.plots.span(this.width), { from, to } = this.shared;
    const share = (event.clientX - this.overlay.getBoundingClientRect().left - x0) / (x1 - x0);
    return Math.round(from + Math.min(1, Math.max(0, share)) * (to - from));
  }

  drag(event) {
    const start = this.timeAt(event), { from, to } = this.shared, [x0, x1] = this.plots.span(this.width);
    const isMove = event.shiftKey, scale = (to - from) / (x1 - x0);
    const move = now => {
      if (isMove) setWindow(this.shared, from - (now.clientX - event.clientX) * scale, to - (now.clientX - event.clientX) * scale);
      else this.shared.at = this.timeAt(now);
      this.shared.packetCell = null;
      this.changed(isMove);
    };
    this.overlay.setPointerCapture(event.pointerId);
    this.overlay.onpointermove = move;
    this.isDragged = true;
    this.overlay.onpointerup = this.overlay.onpointercancel = () => {
      this.overlay.onpointermove = null;
      this.isDragged = false;
    };
    if (!isMove) this.shared.at = start;
    move(event);
  }

  wheel(event) {
    const isZoom = event.ctrlKey || event.metaKey, sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (!isZoom && Math.abs(sideways) < Math.abs(event.deltaY) && !event.shiftKey) return;
    event.preventDefault();
    const { from, to } = this.shared;
    if (isZoom) this.zoom(2 ** (event.deltaY / 200), this.timeAt(event));
    else setWindow(this.shared, from + (sideways / 1000) * (to - from), to + (sideways / 1000) * (to - from));
    this.changed(true);
  }

  zoom(factor, around = this.shared.at) {
    const { from, to } = this.shared;
    setWindow(this.shared, around - (around - from) * factor, around + (to - around) * factor);
    this.changed(true);
  }

  render(isWindow) {
    const { shared } = this, view = { ...shared, packet: shared.packetCell === this ? this.packetHere : null };
    const [marked] = view.packet ?? [];
    this.network.marked = marked ? { direction: marked, row: view.packet[1] } : null;
    const mapWidth = Math.max(this.map.parentElement.clientWidth, this.network.leastWidth);
    this.network.draw(this.map, mapWidth, view);
    this.map.setAttribute("aria-label", `Network at the cursor: ${this.network.said || "nothing moves"}`);
    this.width = this.chart.parentElement.clientWidth;
    if (isWindow) this.plots.draw(this.chart, this.width, view);
    this.plots.cursor(this.overlay, this.width, view);
    clearTimeout(this.later);
    if (shared.isPlaying) return;
    // Tables take longer than pictures: while the cursor is dragged they wait.
    if (this.isDragged) this.later = setTimeout(() => this.tell(view), TELL_MS);
    else this.tell(view);
  }

  /** What is said in words of the time at the cursor. */
  tell(view) {
    const go = (ns, direction, row) => this.go(ns, direction, row);
    const open = (direction, row) => go(direction.offered[row], direction, row);
    if (this.body.closest("details").open) fillTable(this.body, this.cell, this.chosen, view, open);
    fillMoment(this.moment, this.cell, this.plots, view.at, go);
    fillPacket(this.packet, this.cell, view.packet, go);
  }

  recolour() {
    Object.assign(this.colour, colours());
  }
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
