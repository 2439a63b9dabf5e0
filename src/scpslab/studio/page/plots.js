// The plots of a cell, one above the other on one axis of time.

import { CAUSES, LOST } from "./data.js";
import { FONT, dots, folded, glyph, labels, sized, steps } from "./canvas.js";
import { niceStep, place, scaled, spanText, timeTicks } from "./numbers.js";
import { Series, arrivals, losses, queueOf, rates, samplesOf, transfer } from "./series.js";

const BOLD = "600 12px system-ui, sans-serif";
const MARKS = 20, AXIS = 26, TITLE = 20, GAP = 10;
const MOST_LABELS = 6, RATE_BINS = 150;

/** What each plot shows: `lines(view)` its series, `height` its share. */
export class Plots {
  constructor(cell, colour, size) {
    Object.assign(this, { cell, colour, size, level: false });
    this.focus(0);
  }

  /** Chooses the conversation, and with it the queue: that of the busiest link on its way. */
  focus(number) {
    this.flow = this.cell.talks.length ? transfer(this.cell, number) : null;
    this.samples = this.flow && samplesOf(this.cell, number, this.flow.way);
    const onWay = this.cell.directions.filter(one => this.flow && one.talks.some(([talk, way]) => talk === number && way === this.flow.way));
    const most = one => one.waited_bytes.reduce((a, b) => Math.max(a, b), 0) + one.lost.length * 1e9;
    this.queue = onWay.reduce((best, one) => (best && most(best) >= most(one) ? best : one), null);
    if (this.flow?.sent) {
      const { sent, kind } = this.flow;
      [this.first, this.again] = [0, 1].map(wanted => {
        const kept = Uint32Array.from(kind.keys()).filter(at => kind[at] === wanted);
        return new Series(Float64Array.from(kept, at => sent.times[at]), Float64Array.from(kept, at => sent.values[at]));
      });
    }
  }

  /** The plots that this cell has. */
  get all() {
    const { flow, samples, queue, size } = this, rows = Object.keys(CAUSES).filter(cause =>
      losses(this.cell).some(loss => loss[3] === cause));
    return [
      flow?.sent && { name: "sequence", height: 190 * size, draw: this.sequence },
      (flow?.flight || samples) && { name: "window", height: 110 * size, draw: this.window },
      (flow?.rtt?.times.length || samples) && { name: "roundTrip", height: 80 * size, draw: this.roundTrip },
      queue && { name: "queue", height: 90 * size, draw: this.depth },
      this.cell.talks.length && { name: "rate", height: 90 * size, draw: this.rate },
      this.cell.directions.length && { name: "losses", height: 14 + 20 * Math.max(1, rows.length), draw: this.lost, rows },
    ].filter(Boolean);
  }

  get height() {
    return MARKS + AXIS + this.all.reduce((sum, one) => sum + one.height + TITLE + GAP, 0);
  }

  /** Where time stands: from x0 to x1. */
  span(width) {
    return width < 600 ? [56, width - 6] : [66, width - 108];
  }

  draw(canvas, width, view) {
    const context = sized(canvas, width, this.height), [x0, x1] = this.span(width), { colour } = this;
    const x = ns => x0 + ((ns - view.from) / (view.to - view.from)) * (x1 - x0);
    this.values = [];
    const axis = timeTicks(view.from, view.to, Math.max(2, Math.floor((x1 - x0) / 95)));
    let top = MARKS;
    for (const plot of this.all) {
      const box = { x0, x1, top: top + TITLE, bottom: top + TITLE + plot.height, width, context, view, x, plot };
      context.strokeStyle = colour.line;
      context.lineWidth = 1;
      context.beginPath();
      for (const [at] of axis.ticks) {
        context.moveTo(Math.round(x(at)) + 0.5, box.top);
        context.lineTo(Math.round(x(at)) + 0.5, box.bottom);
      }
      context.stroke();
      this.outages(box);
      plot.draw.call(this, box);
      top = box.bottom + GAP;
    }
    this.marks(context, x0, x1, x, view, top - GAP);
    [context.font, context.fillStyle, context.textBaseline, context.textAlign] = [FONT, colour.soft, "top", "center"];
    const edge = context.measureText(axis.base).width;
    if (axis.base) {
      context.textAlign = "left";
      context.fillText(axis.base, 2, top + 12);
    }
    context.textAlign = "center";
    axis.ticks.forEach(([at, text], number) => {
      const shown = number ? text : `${text}\u202f${axis.unit}`;
      if (x(at) - 30 > (axis.base ? edge - 40 : -99) || !axis.base) context.fillText(shown, x(at), top - 3);
    });
  }

  /** Sets the scale of a box to values, draws its ticks and its title; returns y. */
  scale(box, title, low, high, text) {
    const { context, x0, x1, top, bottom } = box, { colour } = this;
    if (!(low < high)) [low, high] = [Math.min(low, 0) || 0, Number.isFinite(high) && high > 0 ? high * 1.2 : 1];
    const step = niceStep(high - low, (bottom - top) / 34), y = value => bottom - ((value - low) / (high - low)) * (bottom - top);
    [context.font, context.textBaseline, context.textAlign] = [FONT, "middle", "right"];
    for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6; at += step) {
      context.fillStyle = colour.line;
      context.fillRect(x0, Math.round(y(at)), x1 - x0, 1);
      context.fillStyle = colour.soft;
      context.fillText(text(Math.abs(at) < step / 1e6 ? 0 : at), x0 - 6, y(at));
    }
    this.title(box, title);
    return y;
  }

  title({ context, x0, top }, title) {
    [context.font, context.fillStyle, context.textBaseline, context.textAlign] = [BOLD, this.colour.ink, "bottom", "left"];
    context.fillText(title, x0 < 60 ? 2 : x0, top - 5);
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
  names(box, lines) {
    const { context, x1, top, bottom, width } = box, isNarrow = width - x1 < 60;
    labels(context, lines, isNarrow ? x1 - 4 : x1 + 6, top, bottom, isNarrow ? "right" : "left");
  }

  sequence(box) {
    const { x0, x1, view, context } = box, { colour, flow } = this, wide = x1 - x0;
    const [begin, end] = [flow.sent.at(view.from) || 0, flow.sent.at(view.to) || 0];
    const slope = this.level ? (end - begin) / (view.to - view.from) : 0;
    const adjusted = (ns, value) => value - slope * (ns - view.from) - (this.level ? begin : 0);
    const of = series => (series ? folded(series, view.from, view.to, wide, adjusted) : []);
    const [first, again, ack] = [of(this.first), of(this.again), of(flow.ack)];
    const seen = [...first, ...again, ...ack].filter(point => point[0] >= 0 && point[0] <= wide);
    const low = seen.reduce((a, point) => Math.min(a, point[1]), Infinity);
    const high = seen.reduce((a, point) => Math.max(a, point[2]), -Infinity);
    const margin = (high - low) * 0.04 || 1, what = flow.isTcp ? "Sequence" : "Bytes sent";
    const title = `${what} of ${flow.talk.owner}${this.level ? ", without the mean rate of this window" : ""}`;
    const y = this.scale(box, title, low - margin, high + margin, value => scaled(value, "B"));
    this.inside(box, () => {
      steps(context, ack, x0, x1, y, { colour: colour.soft, width: 1 });
      dots(context, first, x0, y, colour.accent, first.length > wide / 3 ? 2 : 3.5);
      dots(context, again, x0, y, colour.ink, again.length > wide / 3 ? 2.5 : 4);
      this.each(flow.lost, at => flow.sent.times[at], box, (x, at) => {
        const cause = LOST[flow.fate[at]] ?? "";
        return [cause, x, y(adjusted(flow.sent.times[at], flow.sent.values[at]))];
      });
    });
    const ends = points => points.findLast(point => point[0] <= wide)?.[3];
    this.names(box, [
      first.length && { text: "first sent", y: y(ends(first)) - 6, colour: colour.accent },
      again.length && { text: "sent again", y: y(ends(again)), colour: colour.ink },
      ack.length && { text: "acknowledged", y: y(ends(ack)) + 8, colour: colour.soft },
    ].filter(Boolean));
    this.values.push({ box, y, read: ns => [[adjusted(ns, flow.sent.at(ns)), scaled(flow.sent.at(ns), "B"), colour.accent]] });
  }

  /** Shapes for some of a list in the order of time; those that would cover each other count as one. */
  each(list, time, { view, x0, x1, context }, of) {
    const drawn = new Set(), scale = (x1 - x0) / (view.to - view.from);
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (time(list[middle]) < view.from) low = middle + 1;
      else high = middle;
    }
    for (let at = low; at < list.length && time(list[at]) <= view.to; at++) {
      const [cause, x, y] = of(x0 + (time(list[at]) - view.from) * scale, list[at]);
      const key = `${cause}${Math.round(x / 2)},${Math.round(y / 2)}`;
      if (!cause || drawn.has(key)) continue;
      drawn.add(key);
      glyph(context, cause, x, y, 8, this.colour[cause]);
    }
  }

  window(box) {
    const { colour, flow, samples } = this;
    this.lines(box, `Window and flight of ${flow.talk.owner}`, value => scaled(value, "B"), [
      { name: "in flight", series: flow.flight, colour: colour.soft, fill: colour.soft, width: 1 },
      { name: "ssthresh", series: samples?.ssthresh, colour: colour.ink, dash: [5, 4], width: 1, soft: true },
      { name: "cwnd", series: samples?.cwnd, colour: colour.accent, width: 1.8, sampled: samples?.isSampled },
    ]);
  }

  roundTrip(box) {
    const { colour, flow, samples } = this;
    this.lines(box, `Round trip of ${flow.talk.owner}`, value => spanText(value), [
      { name: "each ACK", series: flow.rtt, colour: colour.soft, points: true },
      { name: "smoothed", series: samples?.srtt, colour: colour.accent, width: 1.8, sampled: samples?.isSampled },
    ], false);
  }

  depth(box) {
    const { colour, queue } = this, room = queue.way.room_bytes;
    const lines = [{ name: "queue", series: queueOf(queue), colour: colour.queue, fill: colour.queue }];
    const y = this.lines(box, `Queue before ${queue.name}`, value => scaled(value, "B"), lines, true, room);
    if (room && y(room) >= box.top - 2) {
      steps(box.context, [[0, room, room, room]], box.x0, box.x1, y, { colour: colour.soft, dash: [2, 3], width: 1 });
      this.names(box, [{ text: "limit", y: y(room), colour: colour.soft }]);
    }
    this.inside(box, () => this.each(queue.lost, row => queue.offered[row], box, (x, row) =>
      [queue.fate[row] === 5 ? "queue" : "", x, y(queue.waited_bytes[row]) - 2]));
  }

  rate(box) {
    const { view } = box, { colour } = this, bin = Math.max(1, niceStep(view.to - view.from, RATE_BINS));
    const lines = this.cell.talks.map((talk, number) => ({ talk, number, sums: talk.hidden ? null : arrivals(this.cell, number) }))
      .filter(one => one.sums?.times.length).map(({ talk, number, sums }) => {
        const isMine = number === this.flow?.number;
        return { name: talk.owner, series: rates(sums, view.from, view.to, bin), width: isMine ? 1.8 : 1.2,
          colour: isMine ? colour.accent : colour.soft, dash: isMine ? [] : [[], [6, 3], [2, 2], [8, 2, 2, 2]][number % 4],
          total: sums.at(view.to) - (sums.at(view.from) || 0) };
      }).sort((a, b) => a.total - b.total);
    lines.forEach((line, at) => { line.unnamed = at < lines.length - MOST_LABELS; });
    this.lines(box, `Rate at the receiver, in bins of ${spanText(bin)}`, value => scaled(value, "bit/s"), lines);
  }

  /** Lines from zero, or around their values, with their names; returns y. */
  lines(box, title, text, lines, fromZero = true, atLeast = 0) {
    const { x0, x1, view, context } = box, there = lines.filter(line => line.series?.times.length);
    for (const line of there) line.seen = line.series.seen(view.from, view.to);
    const highest = there.reduce((most, { seen, soft }) => (seen && !soft ? Math.max(most, seen[1]) : most), 0);
    const lowest = there.reduce((least, { seen, soft }) => (seen && !soft ? Math.min(least, seen[0]) : least), Infinity);
    const low = fromZero ? 0 : lowest - (highest - lowest) * 0.08 - 1, high = highest + (highest - Math.max(low, 0)) * 0.08;
    const y = this.scale(box, title, low, atLeast && highest > atLeast / 2 ? Math.max(high, atLeast * 1.05) : high, text);
    const ends = [];
    this.inside(box, () => {
      for (const line of there) {
        const points = folded(line.series, view.from, view.to, x1 - x0);
        if (line.points) dots(context, points, x0, y, line.colour, 2);
        else steps(context, points, x0, x1, y, { ...line, floor: box.bottom });
        // Samples are dots where they can be told apart.
        if (line.sampled && points.length < (x1 - x0) / 5) dots(context, points, x0, y, line.colour, 4);
        const value = line.series.at(view.to);
        if (!line.unnamed && Number.isFinite(value)) ends.push({ text: line.name, y: y(value), colour: line.colour });
      }
    });
    this.names(box, ends);
    const read = ns => there.filter(line => !line.unnamed).map(line => [line.series.at(ns), text(line.series.at(ns)), line.colour]);
    this.values.push({ box, y, read });
    return y;
  }

  lost(box) {
    const { context, x0, top, plot } = box, { colour } = this, all = losses(this.cell);
    this.title(box, all.length ? `Losses, ${all.length} in all` : "No packet was lost");
    plot.rows.forEach((cause, number) => {
      const y = top + 14 + number * 20, mine = all.filter(loss => loss[3] === cause);
      context.fillStyle = colour.line;
      context.fillRect(x0, y, box.x1 - x0, 1);
      this.inside(box, () => this.each(mine, loss => loss[0], box, x => [cause, x, y]));
      const isNarrow = box.width - box.x1 < 60, text = `${CAUSES[cause]}, ${mine.length}`;
      [context.fillStyle, context.textAlign, context.textBaseline] = [colour[cause], isNarrow ? "right" : "left", "middle"];
      context.fillText(text, isNarrow ? box.x1 - 4 : box.x1 + 6, isNarrow ? y - 9 : y);
    });
  }

  outages({ context, x, x0, x1, top, bottom }) {
    const spans = new Set(this.cell.directions.flatMap(one => one.way.outages.map(String)));
    context.fillStyle = this.colour.outage;
    context.globalAlpha = 0.12;
    for (const span of spans) {
      const [from, to] = span.split(",").map(Number), left = Math.max(x0, x(from));
      if (Math.min(x1, x(to)) > left) context.fillRect(left, top, Math.min(x1, x(to)) - left, bottom - top);
    }
    context.globalAlpha = 1;
  }

  marks(context, x0, x1, x, view, bottom) {
    const { colour } = this;
    let free = x0 - 4;
    [context.font, context.textAlign, context.textBaseline] = [FONT, "left", "middle"];
    for (const { t_ns: ns, text, kind } of this.cell.meta.marks) {
      if (ns < view.from || ns > view.to) continue;
      context.strokeStyle = kind === "event" ? colour.ink : colour.faint;
      context.setLineDash([3, 3]);
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(Math.round(x(ns)) + 0.5, 4);
      context.lineTo(Math.round(x(ns)) + 0.5, bottom);
      context.stroke();
      context.setLineDash([]);
      const wide = context.measureText(text).width, left = Math.min(x(ns) + 4, Math.max(x0, x1 + 90 - wide));
      if (left < free) continue;
      context.fillStyle = kind === "event" ? colour.ink : colour.soft;
      context.fillText(text, left, 9);
      free = left + wide + 10;
    }
  }

  /** The cursor over all plots, with the values there. */
  cursor(canvas, width, view) {
    const context = sized(canvas, width, this.height), [x0, x1] = this.span(width), { colour } = this;
    const x = x0 + ((view.at - view.from) / (view.to - view.from)) * (x1 - x0);
    if (x < x0 - 1 || x > x1 + 1) return;
    [context.strokeStyle, context.lineWidth, context.font] = [colour.accent, 1, FONT];
    context.beginPath();
    context.moveTo(Math.round(x) + 0.5, 2);
    context.lineTo(Math.round(x) + 0.5, this.height - AXIS);
    context.stroke();
    for (const { box, y, read } of this.values ?? []) {
      const isLeft = x > (x0 + x1) / 2, found = read(view.at).filter(([value]) => Number.isFinite(value));
      const texts = found.map(([value, text, ink]) => ({ text, y: Math.min(box.bottom, Math.max(box.top, y(value))), colour: ink }));
      for (const { y: at, colour: ink } of texts) {
        context.fillStyle = ink;
        context.fillRect(x - 2.5, at - 2.5, 5, 5);
      }
      for (const one of texts) {
        const wide = context.measureText(one.text).width;
        one.back = [isLeft ? x - 8 - wide : x + 8, wide];
      }
      context.globalAlpha = 0.85;
      context.fillStyle = colour.card;
      const wide = Math.max(0, ...texts.map(one => one.back[1]));
      const tops = texts.map(one => one.y);
      if (texts.length) {
        const low = Math.min(...tops) - 8, high = Math.max(Math.max(...tops) + 8, low + 13 * texts.length);
        context.fillRect(isLeft ? x - 10 - wide : x + 6, low, wide + 6, high - low);
      }
      context.globalAlpha = 1;
      labels(context, texts, isLeft ? x - 8 : x + 8, box.top, box.bottom, isLeft ? "right" : "left");
    }
  }
}

/** The overview: where packets were offered and lost in the whole cell, and the window of the plots. */
export function overview(canvas, width, height, cell, view, colour) {
  const context = sized(canvas, width, height), end = cell.meta.end_ns;
  if (cell.bins?.length !== Math.ceil(width / 2)) {
    cell.bins = new Float64Array(Math.ceil(width / 2));
    for (const direction of cell.directions) {
      for (let bin = 0, before = 0; bin < cell.bins.length; bin++) {
        const now = place(direction.offered, ((bin + 1) / cell.bins.length) * end);
        cell.bins[bin] += now - before;
        before = now;
      }
    }
  }
  const { bins } = cell, most = bins.reduce((a, b) => Math.max(a, b), 1);
  context.fillStyle = colour.faint;
  bins.forEach((count, bin) => context.fillRect(bin * 2, height - 2 - (count / most) * (height - 10), 1.5, (count / most) * (height - 10) + 1));
  const drawn = new Set();
  for (const [ns, , , cause] of losses(cell)) {
    const x = Math.round((ns / end) * width);
    if (drawn.has(`${x}${cause}`)) continue;
    drawn.add(`${x}${cause}`);
    glyph(context, cause, x, 5, 6, colour[cause]);
  }
  const [from, to] = [view.from, view.to].map(ns => (ns / end) * width);
  context.fillStyle = colour.paper;
  context.globalAlpha = 0.72;
  context.fillRect(0, 0, from, height);
  context.fillRect(to, 0, width - to, height);
  context.globalAlpha = 1;
  [context.strokeStyle, context.lineWidth] = [colour.accent, 1.5];
  context.strokeRect(Math.max(0.75, from), 0.75, Math.max(3, Math.min(width - 1.5, to - from)), height - 1.5);
  context.fillStyle = colour.accent;
  context.fillRect((view.at / end) * width - 0.75, 0, 1.5, height);
}

