// The picture of the network: nodes where plan/flows.py puts them, links as wide as they are busy, packets on their way.

import { fill, glyph, sized, stroke, write } from "./canvas.js";
import { grouped, scaled, short } from "./numbers.js";

const ROW = 46, BOX = 26, LANE = 5, MOST_DOTS = 200, LETTER = 7.2, WIDEST = 9;
// A line is drawn through its points here, for it may be bent.
const SHARES = Array.from({ length: 17 }, (_, at) => at / 16);

export class Network {
  constructor(cell, colour) {
    const { nodes, links } = cell.meta, rows = nodes.map(node => node.row), least = Math.min(...rows);
    Object.assign(this, { cell, colour, height: (Math.max(...rows) - least) * ROW + BOX + 44 });
    this.columns = Math.max(...nodes.map(node => node.column)) + 1;
    const boxes = nodes.map(({ name, kind, column, row }) =>
      ({ name, column, isHost: kind === "host", wide: Math.max(38, name.length * LETTER + 18), y: 20 + BOX / 2 + (row - least) * ROW }));
    this.boxes = new Map(boxes.map(box => [box.name, box]));
    this.links = links.filter(link => link.ends.every(end => this.boxes.has(end)));
    /** The least width at which no box covers another. */
    this.leastWidth = this.columns * (Math.max(...boxes.map(box => box.wide)) + 26);
  }

  draw(canvas, width, view) {
    const context = sized(canvas, width, this.height), { cell, colour } = this, span = Math.max(1e6, (view.to - view.from) / 50);
    for (const box of this.boxes.values()) box.x = ((box.column + 0.5) * width) / this.columns;
    for (const link of this.links) for (const way of link.directions) this.trace(context, this.line(way), colour.line, 1.5);
    const said = cell.directions.filter(one => this.links.includes(one.link)).map(one => this.direction(context, one, view.at, span));
    for (const link of this.links) this.name(context, link);
    for (const { name, isHost, x, y, wide } of this.boxes.values()) {
      context.beginPath();
      context.roundRect(x - wide / 2, y - BOX / 2, wide, BOX, isHost ? 6 : BOX / 2);
      [context.fillStyle, context.strokeStyle, context.lineWidth] = [colour.card, isHost ? colour.ink : colour.faint, 1.2];
      context.fill();
      context.stroke();
      write(context, name, x, y + 0.5, colour.ink, "center");
    }
    this.said = said.filter(Boolean).join("; ");
  }

  /** The line of a direction, beside that of the other one, from the rim of one box to that of the other. */
  line(way) {
    const [a, b] = [this.boxes.get(way.from), this.boxes.get(way.to)], [dx, dy] = [b.x - a.x, b.y - a.y];
    const long = Math.hypot(dx, dy) || 1, isJump = Math.abs(a.column - b.column) > 1 && a.y === b.y;
    const [near, far] = [a, b].map(box => (dx ? Math.min(0.45, (box.wide / 2 + 2) / long) : 0));
    const at = share => [a.x - (dy / long) * LANE + dx * share, a.y + (dx / long) * LANE + dy * share];
    return { a, b, from: at(near), to: at(1 - far), bend: isJump ? -ROW * 0.8 : 0 };
  }

  point({ from, to, bend }, share) {
    return [from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share + bend * 4 * share * (1 - share)];
  }

  trace(context, line, ...style) {
    stroke(context, SHARES.map(share => this.point(line, share)), ...style);
  }

  /** A direction at a time: how busy it was in the span before, what it lost then, what waits and what flies. */
  direction(context, direction, at, span) {
    const { colour, cell } = this, line = this.line(direction.way), rate = direction.rateAt(at);
    const bytes = direction.sent.over(at - span, at), isOut = direction.isOut(at);
    const share = rate ? Math.min(1, (bytes * 8e9) / span / rate) : bytes && 0.25, cause = direction.lostBefore(at, span);
    if (share > 0 || cause || isOut) {
      context.globalAlpha = cause || isOut ? 0.9 : 0.45;
      const ink = cause ? colour[cause] : isOut ? colour.outage : colour.accent;
      this.trace(context, line, ink, 1.5 + share * WIDEST, isOut ? [4, 5] : []);
      context.globalAlpha = 1;
    }
    const rows = direction.underWay(at), flying = rows.filter(row => cell.left[row] <= at && cell.end(row) > at);
    const waiting = rows.reduce((sum, row) => sum + (cell.left[row] > at ? cell.wire_bytes[row] : 0), 0);
    const { room_bytes: room } = direction.way;
    if (waiting && room) {
      const { a } = line, high = Math.min(1, waiting / room) * (BOX + 6);
      fill(context, colour.queue, a.x + (line.b.x > a.x ? a.wide / 2 + 3 : -a.wide / 2 - 8), a.y + BOX / 2 - high, 5, high);
    }
    this.flying(context, flying, at, line);
    const words = [`${direction.name} ${Math.round(share * 100)} % busy`, waiting && `queue ${scaled(waiting, "B")}`, cause && `lost by ${cause}`];
    return share > 0 || waiting || cause ? words.filter(Boolean).join(", ") : "";
  }

  flying(context, rows, at, line) {
    const { colour, cell } = this, each = Math.ceil(rows.length / MOST_DOTS);
    for (let one = 0; one < rows.length; one += each) {
      const row = rows[one], [x, y] = this.point(line, (at - cell.left[row]) / (cell.end(row) - cell.left[row]));
      const cause = cell.cause(row), size = cell.payload[row] ? 4.5 : 2.5;
      if (cause) glyph(context, cause, x, y, 8, colour[cause]);
      else fill(context, row === this.marked ? colour.ink : colour.accent, x - size / 2, y - size / 2, size, size);
    }
    if (each < 2) return;
    const [x, y] = this.point(line, 0.5);
    write(context, `${grouped(rows.length)} packets, each ${short(each)}th drawn`, x, y + 20, colour.soft, "center");
  }

  /** The name and rate of a link, where there is room between its boxes and no other link beside it. */
  name(context, link) {
    const { a, b, bend } = this.line(link.directions[0]), isPlain = [`${a.name}-${b.name}`, `${b.name}-${a.name}`].includes(link.name);
    const rates = [...new Set(link.directions.map(way => way.rates[0]?.[1]).filter(Boolean))];
    const speed = rates.map(rate => scaled(rate, "bit/s")).join(" / "), name = isPlain ? "" : link.name;
    const room = Math.abs(b.x - a.x) - (a.wide + b.wide) / 2 - 12, texts = [[name, speed].filter(Boolean).join(", "), name];
    const fitting = texts.find(one => context.measureText(one).width < room);
    const columns = one => one.ends.map(end => this.boxes.get(end).column).sort().join();
    const isAlone = this.links.filter(one => columns(one) === columns(link)).length === 1;
    if (fitting && isAlone && Math.abs(a.y - b.y) < 20) write(context, fitting, (a.x + b.x) / 2, (a.y + b.y) / 2 - 21 + bend, this.colour.soft, "center");
  }
}
