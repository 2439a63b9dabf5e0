// The plots of a cell, one above the other on one axis of time.

import { FONT, dots, fill, folded, glyph, labels, sized, steps, stroke, write } from "./canvas.js";
import { CAUSES } from "./data.js";
import { niceStep, scaled, spanText, timeTicks } from "./numbers.js";
import { Series, arrivals, queueOf, rates, transfer } from "./series.js";

const MARKS = 20, AXIS = 26, TITLE = 20, GAP = 10, NARROW = 60, LOSS_ROW = 20, REACH = 120;
const MOST_LABELS = 6, RATE_BINS = 150, DASHES = [[], [6, 3], [2, 2], [8, 2, 2, 2]];
const bytes = value => scaled(value, "B");

export class Plots {
  constructor(cell, colour, size) {
    Object.assign(this, { cell, colour, size, level: false });
    const causes = Object.keys(CAUSES).map(cause => [cause, cell.lost.filter(one => one.cause === cause)]);
    this.causes = causes.filter(([, losses]) => losses.length);
    this.focus(cell.meta.busiest[0] ?? 0);
  }

  /** Chooses the conversation, and with it the queue: that of the busiest link on its way. */
  focus(number) {
    const { cell } = this;
    this.flow = cell.talks.length ? transfer(cell, number) : null;
    const senders = cell.senders.filter(one => one.conversation === number), isMine = one => one.way === this.flow.way;
    // Gateways have all their connections in one conversation: the one that heard most comes first.
    [this.sender, ...this.others] = (senders.some(isMine) ? senders.filter(isMine) : senders)
      .sort((a, b) => b.srtt.times.length - a.srtt.times.length);
    const count = this.others.length ? ` 1/${this.others.length + 1}` : "";
    this.by = this.sender ? `${isMine(this.sender) ? "" : ` of ${this.flow.talk.nodes[this.sender.way]}`}${count}` : "";
    const onWay = cell.directions.filter((_, at) => this.flow && cell.rowsOf(2 * number + this.flow.way, at).length);
    this.queue = onWay.sort((a, b) => b.busy - a.busy)[0];
    if (this.queue) this.queue.depth ??= queueOf(this.queue);
  }

  /** What each plot shows. `losses`: their times, causes and values. */
  specs(view) {
    const { cell, colour, flow, sender, others, queue } = this, { from, to } = view, found = [], owner = flow?.talk.owner;
    const ofOthers = name => others.map(one => ({ name: "", series: one[name], colour: colour.soft, width: 0.8 }));
    if (flow?.sent) {
      const { sent } = flow, begin = this.level ? sent.at(from) || 0 : 0, slope = this.level ? (sent.at(to) - begin) / (to - from) : 0;
      const adjusted = (ns, value) => value - slope * (ns - from) - begin, what = flow.talk.is_tcp ? "Sequence" : "Bytes sent";
      found.push({
        title: `${what} of ${owner}${this.level ? ", without the mean rate of this window" : ""}`, height: 190, text: bytes, isFloating: true, adjusted,
        lines: [
          { name: "acknowledged", series: flow.ack, colour: colour.soft, width: 1 },
          { name: "first sent", series: flow.first, colour: colour.accent, size: 3.5 },
          { name: "sent again", series: flow.again, colour: colour.ink, size: 4, isQuiet: true },
        ],
        losses: flow.lost,
      });
    }
    if (flow?.flight || sender) found.push({
      title: `Window and flight of ${owner}`, height: 110, text: bytes, lines: [
        { name: "in flight", series: flow.flight, colour: colour.soft, fill: true, width: 1 },
        ...ofOthers("cwnd"),
        { name: "ssthresh", series: sender?.ssthresh, colour: colour.ink, dash: [5, 4], width: 1, isSoft: true },
        { name: `cwnd${this.by}`, series: sender?.cwnd, colour: colour.accent, width: 1.8 },
      ] });
    if (flow?.rtt?.times.length || sender) found.push({
      title: `Round trip of ${owner}`, height: 80, text: spanText, isFloating: true, lines: [
        { name: "each ACK", series: flow.rtt, colour: colour.soft, size: 2 },
        ...ofOthers("srtt"),
        { name: `smoothed${this.by}`, series: sender?.srtt, colour: colour.accent, width: 1.8 },
      ] });
    if (queue) found.push({
      title: `Queue before ${queue.name}`, height: 90, text: bytes, room: queue.way.room_bytes ?? 0, lines: [
        { name: "queue", series: queue.depth, colour: colour.queue, fill: true },
        { name: "limit", series: new Series([0], [queue.way.room_bytes ?? NaN]), colour: colour.soft, dash: [2, 3], width: 1, isSoft: true },
      ],
      losses: queue.lost.filter(one => one.cause === "queue"),
    });
    if (cell.talks.length) found.push(this.rate(from, to));
    if (cell.directions.length) found.push({ height: 14 + LOSS_ROW * Math.max(1, this.causes.length), isLosses: true });
    for (const one of found) if (!one.isLosses) one.height *= this.size;
    return found;
  }

  rate(from, to) {
    const { cell, colour, flow } = this, bin = Math.max(1, niceStep(to - from, RATE_BINS));
    const lines = cell.talks.flatMap((talk, number) => {
      const all = talk.hidden ? null : arrivals(cell, number), isMine = number === flow?.number;
      if (!all?.times.length) return [];
      return { name: talk.owner, series: rates(all, from, to, bin), width: isMine ? 1.8 : 1.2, dash: isMine ? [] : DASHES[number % 4],
        colour: isMine ? colour.accent : colour.soft, total: all.over(from, to) };
    }).sort((a, b) => a.total - b.total);
    lines.forEach((line, at) => Object.assign(line, at < lines.length - MOST_LABELS && { name: "", isQuiet: true }));
    return { title: `Rate at the receiver, in bins of ${spanText(bin)}`, height: 90, text: value => scaled(value, "bit/s"), lines };
  }

  /** Where time stands: from x0 to x1. */
  span(width) {
    return width < 600 ? [64, width - 6] : [66, width - 108];
  }

  draw(canvas, width, view) {
    const specs = this.specs(view), [x0, x1] = this.span(width), { colour } = this;
    this.height = MARKS + AXIS + specs.reduce((sum, one) => sum + one.height + TITLE + GAP, 0);
    const context = sized(canvas, width, this.height), x = ns => x0 + ((ns - view.from) / (view.to - view.from)) * (x1 - x0);
    const axis = timeTicks(view.from, view.to, Math.max(2, Math.floor((x1 - x0) / 95)));
    this.read = [];
    let top = MARKS;
    for (const spec of specs) {
      const box = { x0, x1, top: top + TITLE, bottom: top + TITLE + spec.height, width, context, view, x };
      for (const [at] of axis.ticks) stroke(context, [[Math.round(x(at)) + 0.5, box.top], [Math.round(x(at)) + 0.5, box.bottom]], colour.line);
      this.outages(box);
      if (spec.isLosses) this.losses(box);
      else this.panel(box, spec);
      top = box.bottom + GAP;
    }
    this.marks(context, x0, width, x, view, top - GAP);
    if (axis.base) write(context, axis.base, 2, top + 18, colour.soft);
    axis.ticks.forEach(([at, text], number) => {
      if (!axis.base || x(at) > context.measureText(axis.base).width - 10) {
        write(context, number ? text : `${text}\u202f${axis.unit}`, x(at), top + 3, colour.soft, "center");
      }
    });
  }

  /** A plot with a scale: its lines, their names at their right ends, and the shapes of losses. */
  panel(box, { title, text, lines, isFloating, room, adjusted = (_, value) => value, losses = [] }) {
    const { x0, x1, top, bottom, view, context } = box, wide = x1 - x0, there = lines.filter(line => line.series?.times.length);
    let [low, high] = [isFloating ? Infinity : 0, 0];
    for (const line of there) {
      line.points = folded(line.series, view.from, view.to, wide, adjusted);
      for (const [x, least, most] of line.points) {
        // What holds at the begin belongs to steps alone.
        if (line.isSoft || ((line.size || isFloating) && (x < 0 || x > wide))) continue;
        [low, high] = [Math.min(low, least), Math.max(high, most)];
      }
    }
    const margin = (high - low) * 0.06, isNear = high > room / 2;
    const y = this.scale(box, title, low - (isFloating ? margin || 1 : 0), Math.max(high, isNear ? room : 0) + margin, text);
    this.inside(box, () => {
      for (const { points, ...line } of there) {
        if (line.size) dots(context, points, x0, y, line.colour, points.length > wide / 3 ? 2 : line.size);
        else steps(context, points, x0, x1, y, { ...line, floor: bottom });
      }
      this.shapes(box, losses, one => y(adjusted(one.t_ns, one.value)));
    });
    const read = (line, ns, name) => {
      const value = line.series.at(ns);
      return { text: name || text(value), colour: line.colour, y: y(adjusted(ns, value)) };
    };
    this.names(box, there.filter(line => line.name).map(line => read(line, view.to, line.name)).filter(one => one.y > top - 9));
    this.read.push(ns => [top, bottom, there.filter(line => line.name && !line.isSoft).map(line => read(line, ns))]);
  }

  /** Sets the scale of a box to values, draws its ticks and its title; returns y. */
  scale(box, title, least, most, text) {
    const { context, x0, x1, top, bottom } = box, { colour } = this, [low, high] = least < most ? [least, most] : [0, 1];
    const step = niceStep(high - low, Math.max(2.5, (bottom - top) / 34)), y = value => bottom - ((value - low) / (high - low)) * (bottom - top);
    for (let at = Math.ceil(low / step) * step; at <= high; at += step) {
      fill(context, colour.line, x0, Math.round(y(at)), x1 - x0, 1);
      write(context, text(Math.abs(at) < step / 1e6 ? 0 : at), x0 - 6, y(at), colour.soft, "right");
    }
    this.title(box, title);
    return y;
  }

  title({ context, x0, top }, title) {
    context.font = `600 ${FONT}`;
    write(context, title, x0 < 66 ? 2 : x0, top - 12, this.colour.ink);
    context.font = FONT;
  }

  /** Draws inside of a box only. */
  inside({ context, x0, x1, top, bottom }, draw) {
    context.save();
    context.beginPath();
    context.rect(x0, top - 4, x1 - x0, bottom - top + 8);
    context.clip();
    draw();
    context.restore();
  }

  /** The names of lines, at their right ends, or above them where there is no room beside them. */
  names({ context, x1, top, bottom, width }, lines) {
    const isNarrow = width - x1 < NARROW;
    labels(context, lines, isNarrow ? x1 - 4 : x1 + 6, top, bottom, isNarrow ? "right" : "left", this.colour.card);
  }

  /** Shapes of losses; those that would cover each other count as one. */
  shapes({ view, x, context }, losses, y) {
    const drawn = new Set();
    for (const one of losses.filter(({ t_ns: ns }) => ns >= view.from && ns <= view.to)) {
      const [left, top] = [x(one.t_ns), y(one)], key = Math.round(left / 2) * 1e4 + Math.round(top / 2);
      if (!drawn.has(key)) glyph(context, one.cause, left, top, 8, this.colour[one.cause]);
      drawn.add(key);
    }
  }

  losses(box) {
    const { context, x0, x1, top } = box, { colour, causes } = this, count = this.cell.lost.length;
    this.title(box, count ? `Losses, ${count} in all` : "No packet was lost");
    causes.forEach(([cause, losses], number) => {
      const y = top + 14 + number * LOSS_ROW, beside = box.width - x1 < NARROW ? y - 9 : y;
      fill(context, colour.line, x0, y, x1 - x0, 1);
      this.inside(box, () => this.shapes(box, losses, () => y));
      this.names(box, [{ text: `${CAUSES[cause]}, ${losses.length}`, y: beside, colour: colour[cause] }]);
    });
  }

  outages({ context, x, x0, x1, top, bottom }) {
    context.globalAlpha = 0.12;
    for (const span of new Set(this.cell.directions.flatMap(one => one.way.outages.map(String)))) {
      const [left, right] = span.split(",").map(ns => Math.min(x1, Math.max(x0, x(Number(ns)))));
      fill(context, this.colour.outage, left, top, right - left, bottom - top);
    }
    context.globalAlpha = 1;
  }

  marks(context, x0, width, x, view, bottom) {
    let free = x0 - 4;
    for (const { t_ns: ns, text, kind } of this.cell.meta.marks) {
      if (ns < view.from || ns > view.to) continue;
      const line = Math.round(x(ns)) + 0.5, { ink, soft, faint } = this.colour, isEvent = kind === "event";
      const wide = context.measureText(text).width, left = Math.min(x(ns) + 4, Math.max(x0, width - 4 - wide)), isFree = left >= free;
      // Workloads that start close to each other would be a curtain before the plots.
      stroke(context, isFree || kind !== "workload" ? [[line, 4], [line, bottom]] : [[line, 16], [line, MARKS]], isEvent ? ink : faint, 1, [3, 3]);
      if (!isFree) continue;
      write(context, text, left, 9, isEvent ? ink : soft);
      free = left + wide + 10;
    }
  }

  /** The cursor over all plots, with the values there. */
  cursor(canvas, width, view) {
    const context = sized(canvas, 2 * REACH, this.height), [x0, x1] = this.span(width), { colour } = this, x = REACH;
    const here = Math.round(x0 + ((view.at - view.from) / (view.to - view.from)) * (x1 - x0)), isLeft = here > (x0 + x1) / 2;
    canvas.style.transform = `translateX(${here - REACH}px)`;
    if (here < x0 - 1 || here > x1 + 1) return;
    stroke(context, [[x + 0.5, 2], [x + 0.5, this.height - AXIS]], colour.accent);
    for (const [top, bottom, all] of this.read.map(read => read(view.at))) {
      const texts = all.filter(one => Number.isFinite(one.y)).map(one => ({ ...one, y: Math.min(bottom, Math.max(top, one.y)) }));
      for (const { y, colour: ink } of texts) fill(context, ink, x - 2.5, y - 2.5, 5, 5);
      labels(context, texts, isLeft ? x - 8 : x + 8, top, bottom, isLeft ? "right" : "left", colour.card);
    }
  }
}

/** The overview: where packets were offered and lost in all of the cells that are shown, until `end`. */
export function overview(canvas, width, height, cells, end, colour) {
  const context = sized(canvas, width, height), directions = cells.flatMap(cell => cell.directions), drawn = new Set();
  const counts = Array.from({ length: Math.ceil(width / 2) }, (_, bin, ns = at => (at * 2 * end) / width) =>
    directions.reduce((sum, one) => sum + one.before(ns(bin + 1)) - one.before(ns(bin)), 0));
  const most = Math.max(...counts, 1);
  counts.forEach((count, bin) => fill(context, colour.faint, bin * 2, height - 2, 1.5, -(count / most) * (height - 10) - 1));
  for (const { t_ns: ns, cause } of cells.flatMap(cell => cell.lost)) {
    const x = Math.round((ns / end) * width);
    if (!drawn.has(`${x}${cause}`)) glyph(context, cause, x, 5, 6, colour[cause]);
    drawn.add(`${x}${cause}`);
  }
}
