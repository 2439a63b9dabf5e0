// Drawing: colours of the page, shapes of the causes of loss, series folded to the dots of the screen.

import { place } from "./numbers.js";

export const FONT = "12px system-ui, sans-serif";

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
  context.lineJoin = "round";
  return context;
}

/** The colours of the page as it is shown now: light, dark or on paper. */
export function colours() {
  const style = getComputedStyle(document.documentElement), found = {};
  for (const name of ["ink", "soft", "faint", "line", "paper", "card", "accent", "queue", "corrupt", "outage", "policy", "policed"]) {
    found[name] = style.getPropertyValue(`--${name}`).trim();
  }
  return found;
}

/** The shape of a cause of loss around a point: nobody needs to tell colours apart. */
export function glyph(context, cause, x, y, size, colour) {
  const half = size / 2;
  context.beginPath();
  [context.fillStyle, context.strokeStyle, context.lineWidth] = [colour, colour, Math.max(1.6, size / 4)];
  if (cause === "queue") {
    context.moveTo(x - half, y - half);
    context.lineTo(x + half, y - half);
    context.lineTo(x, y + half);
    context.fill();
  } else if (cause === "corrupt") {
    context.moveTo(x - half, y - half);
    context.lineTo(x + half, y + half);
    context.moveTo(x + half, y - half);
    context.lineTo(x - half, y + half);
    context.stroke();
  } else if (cause === "outage") {
    context.strokeRect(x - half + 1, y - half + 1, size - 2, size - 2);
  } else if (cause === "policed") {
    context.fillRect(x - half, y - 1, size, 2.4);
  } else {
    context.moveTo(x, y - half);
    context.lineTo(x + half, y);
    context.lineTo(x, y + half);
    context.lineTo(x - half, y);
    context.fill();
  }
}

/**
 * A series from one time to another, as at most a few hundred `[x, least, greatest, last]` from left to right, x from 0
 * to `width`: its own points where they are few, else what falls on each dot of the screen. `adjusted` changes values.
 */
export function folded(series, from, to, width, adjusted = (_, value) => value) {
  const { times, values } = series, scale = width / (to - from), found = [];
  const first = Math.max(0, place(times, from) - 1), end = Math.min(times.length, place(times, to) + 1);
  if (end - first <= 2 * width) {
    for (let at = first; at < end; at++) {
      const value = adjusted(times[at], values[at]);
      found.push([(times[at] - from) * scale, value, value, value]);
    }
    return found;
  }
  let start = first;
  for (let x = 0; x < width && start < end; x++) {
    const stop = x === Math.ceil(width) - 1 ? end : place(times, from + (x + 1) / scale, start, end);
    const bounds = series.bounds(start, stop), middle = from + (x + 0.5) / scale;
    if (bounds) found.push([x + 0.5, ...[...bounds, values[stop - 1]].map(value => adjusted(middle, value))]);
    start = stop;
  }
  return found;
}

/** Steps through folded points: a value holds until the next one. */
export function steps(context, points, x0, x1, y, { colour, width = 1.5, dash = [], fill = null, floor = 0 }) {
  if (!points.length) return;
  const trace = () => {
    let last = points[0][3];
    context.beginPath();
    context.moveTo(x0 + points[0][0], y(points[0][1]));
    for (const [x, low, high, now] of points) {
      context.lineTo(x0 + x, y(last));
      if (low !== high) {
        context.lineTo(x0 + x, y(low));
        context.lineTo(x0 + x, y(high));
      }
      context.lineTo(x0 + x, y(now));
      last = now;
    }
    context.lineTo(x1, y(last));
  };
  if (fill) {
    trace();
    context.lineTo(x1, floor);
    context.lineTo(x0 + points[0][0], floor);
    context.globalAlpha = 0.14;
    context.fillStyle = fill;
    context.fill();
    context.globalAlpha = 1;
  }
  trace();
  [context.strokeStyle, context.lineWidth] = [colour, width];
  context.setLineDash(dash);
  context.stroke();
  context.setLineDash([]);
}

/** A mark for every folded point. */
export function dots(context, points, x0, y, colour, size) {
  context.fillStyle = colour;
  for (const [x, low, high] of points) {
    const top = y(high) - size / 2;
    context.fillRect(x0 + x - size / 2, top, size, Math.max(size, y(low) + size / 2 - top));
  }
}

/** Labels at a side, moved apart so that none covers another. */
export function labels(context, wanted, x, top, bottom, align = "left") {
  const lines = wanted.filter(one => Number.isFinite(one.y)).sort((a, b) => a.y - b.y);
  let before = top - 6;
  for (const one of lines) before = one.at = Math.max(one.y, before + 13);
  let below = bottom + 6;
  for (const one of lines.reverse()) below = one.at = Math.min(one.at, below - 13);
  context.textAlign = align;
  context.textBaseline = "middle";
  for (const { text, at, colour } of lines) {
    context.fillStyle = colour;
    context.fillText(text, x, at);
  }
}
