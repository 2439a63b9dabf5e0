// The picture of the network: nodes where layout.py puts them, links as wide as they are busy, packets on their way.

import { LOST } from "./data.js";
import { FONT, glyph, sized } from "./canvas.js";
import { grouped, place, scaled, short } from "./numbers.js";

const ROW = 46, BOX = 26, LANE = 5, MOST_DOTS = 200;
const LETTER = 7.2, WIDEST = 9;

export class Network {
  constructor(cell, colour) {
    Object.assign(this, { cell, colour });
    const { nodes } = cell.meta, rows = nodes.map(node => node.row);
    this.least = Math.min(...rows);
    this.height = (Math.max(...rows) - this.least) * ROW + BOX + 44;
    this.columns = Math.max(...nodes.map(node => node.column));
    this.boxes = new Map();
    for (const node of nodes) this.boxes.set(node.name, { node, wide: Math.max(38, node.name.length * LETTER + 18) });
  }

  /** The least width at which no box covers another. */
  get leastWidth() {
    const widest = Math.max(...[...this.boxes.values()].map(box => box.wide));
    return (this.columns + 1) * (widest + 26);
  }

  place(width) {
    const pitch = width / (this.columns + 1);
    for (const box of this.boxes.values()) {
      box.x = (box.node.column + 0.5) * pitch;
      box.y = 20 + BOX / 2 + (box.node.row - this.least) * ROW;
    }
  }

  draw(canvas, width, view) {
    this.place(width);
    const context = sized(canvas, width, this.height), { cell, colour } = this;
    [context.font, context.textAlign, context.textBaseline] = [FONT, "center", "middle"];
    const span = Math.max(1e6, (view.to - view.from) / 50), said = [];
    for (const link of cell.meta.links) this.line(context, link);
    for (const direction of cell.directions) said.push(this.direction(context, direction, view.at, span));
    for (const link of cell.meta.links) this.name(context, link);
    for (const { node, x, y, wide } of this.boxes.values()) {
      context.beginPath();
      context.roundRect(x - wide / 2, y - BOX / 2, wide, BOX, node.kind === "host" ? 6 : BOX / 2);
      context.fillStyle = colour.card;
      context.fill();
      [context.strokeStyle, context.lineWidth] = [node.kind === "host" ? colour.ink : colour.faint, 1.2];
      context.stroke();
      context.fillStyle = colour.ink;
      context.fillText(node.name, x, y + 0.5);
    }
    this.said = said.filter(Boolean).join("; ");
  }

  /** The two ends of a direction's line, beside that of the other one; `bend`: how far it leaves the straight way. */
  ends(way) {
    const [a, b] = [this.boxes.get(way.from), this.boxes.get(way.to)];
    if (!a || !b) return null;
    const [dx, dy] = [b.x - a.x, b.y - a.y], long = Math.hypot(dx, dy) || 1;
    const [nx, ny] = [-dy / long, dx / long], jump = Math.abs(a.node.column - b.node.column) > 1 && a.y === b.y;
    return { ax: a.x + nx * LANE, ay: a.y + ny * LANE, bx: b.x + nx * LANE, by: b.y + ny * LANE, bend: jump ? -ROW * 0.8 : 0,
      a, b, long };
  }

  point({ ax, ay, bx, by, bend, a, b, long }, share) {
    // From the rim of one box to that of the other.
    const rim = Math.min(0.45, (a.wide / 2 + 2) / long), other = Math.min(0.45, (b.wide / 2 + 2) / long);
    const at = Math.abs(bx - ax) < 1 ? share : rim + share * (1 - rim - other);
    return [ax + (bx - ax) * at, ay + (by - ay) * at + bend * 4 * at * (1 - at)];
  }

  trace(context, ends) {
    context.beginPath();
    const [x, y] = this.point(ends, 0), [toX, toY] = this.point(ends, 1);
    context.moveTo(x, y);
    context.quadraticCurveTo((x + toX) / 2, (y + toY) / 2 + ends.bend * 2, toX, toY);
    context.stroke();
  }

  line(context, link) {
    for (const way of link.directions) {
      const ends = this.ends(way);
      if (!ends) continue;
      [context.strokeStyle, context.lineWidth] = [this.colour.line, 1.5];
      this.trace(context, ends);
    }
  }

  /** A direction at a time: how busy it was in the span before, what it lost then, what waits and what flies. */
  direction(context, direction, at, span) {
    const { colour } = this, ends = this.ends(direction.way);
    if (!ends) return "";
    const rate = direction.rateAt(at), bytes = direction.sentUntil(at) - direction.sentUntil(at - span);
    const share = rate ? Math.min(1, (bytes * 8e9) / span / rate) : Math.min(1, bytes > 0 ? 0.25 : 0);
    const cause = direction.lostBefore(at, span), isOut = direction.isOut(at);
    if (share > 0 || cause || isOut) {
      [context.strokeStyle, context.lineWidth] = [cause ? colour[cause] : isOut ? colour.outage : colour.accent, 1.5 + share * WIDEST];
      context.globalAlpha = cause || isOut ? 0.9 : 0.45;
      context.setLineDash(isOut ? [4, 5] : []);
      this.trace(context, ends);
      context.setLineDash([]);
      context.globalAlpha = 1;
    }
    const waiting = this.waiting(direction, at), room = direction.way.room_bytes;
    if (waiting && room) {
      const { a } = ends, high = Math.min(1, waiting / room) * (BOX + 6);
      context.fillStyle = colour.queue;
      context.fillRect(a.x + (ends.bx > ends.ax ? a.wide / 2 + 3 : -a.wide / 2 - 8), a.y + BOX / 2 - high, 5, high);
    }
    this.flying(context, direction, at, ends);
    const words = [`${direction.name} ${Math.round(share * 100)} % busy`];
    if (waiting) words.push(`queue ${scaled(waiting, "B")}`);
    if (cause) words.push(`lost by ${cause}`);
    return share > 0 || waiting || cause ? words.join(", ") : "";
  }

  /** Bytes that wait at a time, the packet in transmission included. */
  waiting(direction, at) {
    const last = place(direction.offered, at + 1) - 1;
    let bytes = 0;
    for (let row = last; row >= 0 && direction.offered[row] > at - direction.longest; row--) {
      if (direction.left[row] <= at) break;
      if (direction.left[row] > at) bytes += direction.wire_bytes[row];
    }
    return bytes;
  }

  flying(context, direction, at, ends) {
    const { colour } = this, rows = [];
    for (let row = place(direction.offered, at + 1) - 1; row >= 0 && direction.offered[row] >= at - direction.longest; row--) {
      if (direction.left[row] <= at && direction.end(row) > at) rows.push(row);
    }
    const each = Math.ceil(rows.length / MOST_DOTS);
    for (let one = 0; one < rows.length; one += each) {
      const row = rows[one], long = direction.end(row) - direction.left[row];
      const [x, y] = this.point(ends, (at - direction.left[row]) / long), cause = LOST[direction.fate[row]];
      const size = direction.payload[row] ? 4.5 : 2.5;
      if (cause) glyph(context, cause, x, y, 8, colour[cause]);
      else {
        context.fillStyle = row === this.marked?.row && direction === this.marked.direction ? colour.ink : colour.accent;
        context.fillRect(x - size / 2, y - size / 2, size, size);
      }
    }
    if (each > 1) {
      context.fillStyle = colour.soft;
      context.fillText(`${grouped(rows.length)} packets, each ${short(each)}th drawn`, (ends.ax + ends.bx) / 2, (ends.ay + ends.by) / 2 + 20);
    }
  }

  /** The name and rate of a link, where there is room between its boxes. */
  name(context, link) {
    const ends = this.ends(link.directions[0]);
    if (!ends) return;
    const rates = link.directions.map(way => way.rates[0]?.[1]).filter(Boolean);
    const [near, far] = link.ends, isPlain = [`${near}-${far}`, `${far}-${near}`].includes(link.name);
    const speed = [...new Set(rates)].map(rate => scaled(rate, "bit/s")).join(" / ");
    const text = isPlain ? speed : [link.name, speed].filter(Boolean).join(", ");
    const room = Math.abs(ends.bx - ends.ax) - ends.a.wide / 2 - ends.b.wide / 2 - 12;
    const fitting = [text, isPlain ? "" : link.name].find(one => context.measureText(one).width < room);
    const columns = one => one.ends.map(end => this.boxes.get(end)?.node.column).sort().join();
    const isAlone = this.cell.meta.links.filter(one => columns(one) === columns(link)).length === 1;
    if (!fitting || !isAlone || Math.abs(ends.by - ends.ay) > 20) return;
    context.fillStyle = this.colour.soft;
    context.fillText(fitting, (ends.a.x + ends.b.x) / 2, (ends.ay + ends.by) / 2 - 16 + ends.bend);
  }
}
