// Drawing: colours of the page, shapes of the causes of loss, series folded to the dots of the screen.

import { place } from "./numbers.js";

export const FONT = "12px system-ui, sans-serif";
// The shapes of causes, so that nobody needs to tell colours apart: paths of SVG in a square around a point.
const SHAPES = {
  queue: "M-1-1H1L0 1", corrupt: "M-1-1 1 1M1-1-1 1", outage: "M-1-1H1V1H-1V-1", policed: "M-1 0H1", policy: "M0-1 1 0 0 1-1 0",
};
const FILLED = ["queue", "policy"];

/** A canvas of a size in CSS pixels, sharp on every screen; its context. */
export function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  [context.lineJoin, context.font] = ["round", FONT];
  return context;
}

/** The colours of the page as it is shown now: light, dark or on paper. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ink", "soft", "faint", "line", "paper", "card", "accent", "queue", "corrupt", "outage", "policy", "policed"];
  return Object.fromEntries(names.map(name => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** A line through points, drawn. */
export function stroke(context, points, colour, width = 1, dash = []) {
  context.beginPath();
  for (const [x, y] of points) context.lineTo(x, y);
  [context.strokeStyle, context.lineWidth] = [colour, width];
  context.setLineDash(dash);
  context.stroke();
  context.setLineDash([]);
}

/** A rectangle, filled. */
export function fill(context, colour, ...corners) {
  context.fillStyle = colour;
  context.fillRect(...corners);
}

export function write(context, text, x, y, colour, align = "left") {
  [context.fillStyle, context.textAlign, context.textBaseline] = [colour, align, "middle"];
  context.fillText(text, x, y);
}

/** The shape of a cause of loss around a point. */
export function glyph(context, cause, x, y, size, colour) {
  const shape = new Path2D(), half = size / 2, isFilled = FILLED.includes(cause);
  shape.addPath(new Path2D(SHAPES[cause]), new DOMMatrix([half, 0, 0, half, x, y]));
  [context.strokeStyle, context.fillStyle, context.lineWidth] = [colour, colour, isFilled ? 1 : 2];
  context.stroke(shape);
  if (isFilled) context.fill(shape);
}

/**
 * A series from one time to another, as at most a few hundred `[x, least, greatest, last]` from left to right, x from 0
 * to `width`: its own points where they are few, else what falls on each dot of the screen. `adjusted` changes values.
 */
export function folded(series, from, to, width, adjusted = (_, value) => value) {
  const { times, values } = series, scale = width / (to - from), found = [];
  const first = Math.max(0, place(times, from) - 1), end = Math.min(times.length, place(times, to) + 1);
  const isFew = end - first <= 2 * width;
  for (let start = first, stop, x = 0; start < end; start = stop, x++) {
    stop = isFew ? start + 1 : x >= width - 1 ? end : place(times, from + (x + 1) / scale, start, end);
    if (stop === start) continue;
    const ns = isFew ? times[start] : from + (x + 0.5) / scale, seen = isFew ? [values[start], values[start]] : series.bounds(start, stop);
    found.push([(ns - from) * scale, ...[...seen, values[stop - 1]].map(value => adjusted(ns, value))]);
  }
  return found;
}

/** Steps through folded points: a value holds until the next one. */
export function steps(context, points, x0, x1, y, { colour, width = 1.5, dash = [], fill = false, floor = 0 }) {
  if (!points.length) return;
  const trace = [];
  let last = points[0][3];
  for (const [x, low, high, now] of points) {
    trace.push([x0 + x, y(last)], ...(low === high ? [] : [[x0 + x, y(low)], [x0 + x, y(high)]]), [x0 + x, y(now)]);
    last = now;
  }
  trace.push([x1, y(last)]);
  stroke(context, trace, colour, width, dash);
  if (!fill) return;
  context.lineTo(x1, floor);
  context.lineTo(trace[0][0], floor);
  [context.globalAlpha, context.fillStyle] = [0.14, colour];
  context.fill();
  context.globalAlpha = 1;
}

/** A mark for every folded point. */
export function dots(context, points, x0, y, colour, size) {
  for (const [x, low, high] of points) fill(context, colour, x0 + x - size / 2, y(high) - size / 2, size, size + y(low) - y(high));
}

/** Labels at a side, moved apart so that none covers another, on a ground of the colour `card`. */
export function labels(context, wanted, x, top, bottom, align, card) {
  const lines = wanted.filter(one => Number.isFinite(one.y)).sort((a, b) => a.y - b.y);
  let [before, below] = [top - 19, bottom + 19];
  for (const one of lines) before = one.at = Math.max(one.y, before + 13);
  for (const one of lines.reverse()) below = one.at = Math.min(one.at, below - 13);
  [context.strokeStyle, context.lineWidth, context.textAlign, context.textBaseline] = [card, 5, align, "middle"];
  for (const { text, at } of lines) context.strokeText(text, x, at);
  for (const { text, at, colour } of lines) write(context, text, x, at, colour, align);
}
