// Numbers as text, and places in sorted lists. Times are whole nanoseconds since the epoch.

const UNITS = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];

/** The place of the first number that is not below a value, in a sorted list; `to` where all are below. */
export function place(sorted, value, from = 0, to = sorted.length) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (sorted[middle] < value) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** A time to the nanosecond: 7.421 305 160 s. */
export function timeText(ns) {
  if (!Number.isFinite(ns)) return "–";
  const whole = Math.round(Math.abs(ns)), rest = String(whole % 1e9).padStart(9, "0");
  return `${ns < 0 ? "−" : ""}${Math.floor(whole / 1e9)}.${rest.replace(/(\d{3})(?=\d)/g, "$1\u202f")} s`;
}

/** A length of time with four digits, in the unit that fits. */
export function spanText(ns) {
  if (!Number.isFinite(ns)) return "–";
  const [unit, size] = UNITS.find(([, size]) => Math.abs(ns) >= size) ?? UNITS[3];
  return `${short(ns / size)}\u202f${unit}`;
}

/** At most four digits. */
export function short(value) {
  return String(Number(value.toPrecision(4))).replace("-", "−");
}

/** A whole number with its thousands apart. */
export function grouped(value) {
  return String(Math.round(value)).replace("-", "−").replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** A value with the prefix that fits: 120 kB, 1.5 Mbit/s. */
export function scaled(value, unit) {
  const [prefix, size] = [["G", 1e9], ["M", 1e6], ["k", 1e3]].find(([, size]) => Math.abs(value) >= size) ?? ["", 1];
  return `${short(value / size)}\u202f${prefix}${unit}`;
}

/** A step of 1, 2 or 5 times a power of ten, of which a span has about as many as wanted. */
export function niceStep(span, wanted) {
  const raw = span / Math.max(1, wanted), power = 10 ** Math.floor(Math.log10(raw));
  return power * ([1, 2, 5].find(one => one * power >= raw) ?? 10);
}

/** The ticks of a time axis: where, and what is written there; `base`: what is to be added to all, or "". */
export function timeTicks(from, to, wanted) {
  const step = Math.max(1, niceStep(to - from, wanted)), first = Math.ceil(from / step) * step, ticks = [];
  const [unit, size] = UNITS.find(([, size]) => step >= size / 100) ?? UNITS[3];
  const coarse = 10 ** Math.ceil(Math.log10(Math.max(10, step * wanted * 4)));
  const base = size < 1e9 ? Math.floor(from / coarse) * coarse : 0;
  for (let at = first; at <= to; at += step) ticks.push([at, short((at - base) / size)]);
  return { ticks, unit, base: base ? `${timeText(base)} +` : "" };
}
