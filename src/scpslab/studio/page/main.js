// The page: reads its data, shows cells below each other with one cursor, plays, and listens to keys.

import { colours } from "./canvas.js";
import { CellView, dragged, moveTo, setWindow } from "./cell.js";
import { Cell, page, unpacked } from "./data.js";
import { Lab } from "./lab.js";
import { timeText } from "./numbers.js";
import { button, get, made } from "./packets.js";
import { overview } from "./plots.js";

const OVERVIEW = 40, LATE_NS = 3e9, BEHIND_NS = 1.3e9, LIVE_NS = 10e9, GROWS_MS = 3000;
const all = selector => [...document.querySelectorAll(selector)];
const shared = { begin: 0, end: 1, from: 0, to: 1, at: 0, packetCell: null, isPlaying: false };
const views = [];
let [waiting, isWindowNew, isStripNew, before, newer] = [false, true, true, 0, null];

function changed(isWindow) {
  isWindowNew ||= isWindow;
  if (!waiting) requestAnimationFrame(render);
  waiting = true;
}

function render(now) {
  waiting = false;
  if (shared.isPlaying) {
    const at = shared.at + Math.max(1, (now - before) * 1e6 * Number(get("speed").value)), { from } = shared;
    if (page.live) follow(at);
    else moveTo(shared, at);
    if (!page.live && shared.at >= shared.end) play(false);
    changed(Boolean(page.live) || from !== shared.from);
  }
  before = now;
  for (const view of views) view.render(isWindowNew);
  if (views.length) strip();
  isWindowNew = false;
  if (!shared.isPlaying && views.length) keepPlace();
}

/** The overview, and in it the window and the cursor. */
function strip() {
  const [cursor, seen, here] = ["cursor", "seen", "here"].map(get), share = ns => `${(100 * ns) / shared.end}%`;
  if (isStripNew) overview(get("strip"), cursor.clientWidth, OVERVIEW, views.map(view => view.cell), shared.end, views[0].colour);
  isStripNew = false;
  Object.assign(seen.style, { left: share(shared.from), width: share(shared.to - shared.from) });
  here.style.left = share(shared.at);
  if (document.activeElement !== get("at")) get("at").value = timeText(shared.at);
  Object.assign(cursor, { ariaValueNow: shared.at / 1e9, ariaValueMax: shared.end / 1e9, ariaValueText: timeText(shared.at) });
}

/** A lab that runs is shown a moment late, so that packets move evenly while news come in pieces. */
function follow(at) {
  if (newer) {
    views[0].update(newer);
    Object.assign(shared, { begin: newer.meta.begin_ns, end: newer.meta.end_ns, packetCell: null });
    [newer, isStripNew] = [null, true];
  }
  const isLate = shared.end - at > LATE_NS || at < shared.begin;
  shared.at = isLate ? Math.max(shared.begin, shared.end - BEHIND_NS) : Math.min(at, shared.end);
  const isAll = shared.from <= shared.begin, wide = isAll ? LIVE_NS : shared.to - shared.from;
  setWindow(shared, shared.at - wide * 0.93, shared.at + wide * 0.07);
}

/** The place in the address, so that it can be sent to somebody. A page within a report has no address of its own. */
function keepPlace() {
  if (location.protocol === "about:") return;
  clearTimeout(keepPlace.timer);
  keepPlace.timer = setTimeout(() => {
    const words = ["from", "to", "at"].map(name => `${name}=${Math.round(shared[name])}`);
    if (page.cells.length > 1) words.unshift(`cells=${views.map(view => page.cells.indexOf(view.entry)).join(",")}`);
    history.replaceState(null, "", `#${words.join("&")}`);
  }, 200);
}

function play(isPlaying) {
  shared.isPlaying = isPlaying;
  if (isPlaying && shared.at >= shared.end && !page.live) moveTo(shared, shared.begin);
  get("play").textContent = isPlaying ? "Pause" : page.live ? "Follow" : "Play";
  get("play").setAttribute("aria-pressed", String(isPlaying));
  before = performance.now();
}

const speed = by => { get("speed").selectedIndex = Math.min(6, Math.max(0, get("speed").selectedIndex + by)); };
const first = () => shared.packetCell ?? views[0];
const ACTS = {
  play: () => play(!shared.isPlaying),
  "previous-packet": () => first().step(false, "packet"), "next-packet": () => first().step(true, "packet"),
  "previous-loss": () => first().step(false, "loss"), "next-loss": () => first().step(true, "loss"),
  "previous-event": () => first().step(false, "event"), "next-event": () => first().step(true, "event"),
  "zoom-in": () => first().zoom(0.5), "zoom-out": () => first().zoom(2), fit: () => setWindow(shared, shared.begin, shared.end),
  slower: () => speed(-1), faster: () => speed(1), help: () => get("keys").showModal(),
};

/** Does an act, and tells those who listen what is at the cursor then. */
function act(name, more = ACTS[name]) {
  more();
  changed(true);
  setTimeout(() => { get("live").textContent = `${timeText(shared.at)}. ${shared.packetCell?.packet.textContent ?? ""}`; }, 50);
}

function key(event) {
  const is = names => event.target.matches?.(names), isSpace = event.key === " ";
  const own = all("[data-key]").find(one => one.dataset.key.split(" ").includes(isSpace ? "Space" : event.key))?.dataset.act;
  const isTaken = is("input[type=text], input[type=range], select") || (isSpace && is("button, input, summary, a"));
  if (event.ctrlKey || event.metaKey || event.altKey || isTaken || !own || !views.length || get("keys").open) return;
  event.preventDefault();
  const step = ((event.key === "ArrowRight" ? 1 : -1) * (shared.to - shared.from)) / 20;
  act(own, event.shiftKey && event.key.startsWith("Arrow") ? () => moveTo(shared, shared.at + step) : undefined);
}

function drag(event) {
  const { left, width } = get("cursor").getBoundingClientRect();
  dragged(get("cursor"), event, now => {
    const middle = ((now.clientX - left) / width) * shared.end, wide = shared.to - shared.from;
    if (wide < shared.end - shared.begin) setWindow(shared, middle - wide / 2, middle + wide / 2);
    shared.packetCell = null;
    moveTo(shared, middle);
    changed(true);
  });
}

/** Shows cells, one above the other. */
async function show(numbers) {
  views.splice(0);
  for (const number of numbers) {
    const entry = page.cells[number];
    entry.read ??= new Cell(entry.meta, await unpacked(get(`columns-${number}`).textContent));
    views.push(Object.assign(new CellView(entry.read, shared, changed, numbers.length > 1), { entry }));
  }
  Object.assign(shared, { begin: 0, end: Math.max(...views.map(view => view.cell.meta.end_ns)), packetCell: null });
  get("cells").replaceChildren(...views.map(view => view.section));
  for (const id of ["controls", "time"]) get(id).hidden = !views.length;
  get("grid").hidden = page.cells.length < 2 || views.length > 0;
  get("back").hidden = !page.back && (page.cells.length < 2 || !views.length);
  setWindow(shared, 0, shared.end);
  moveTo(shared, views[0]?.cell.lost[0]?.t_ns ?? shared.end / 2);
  isStripNew = true;
  changed(true);
}

/** The sweep: rows and columns of points, in each the cells of its repeats, with one of their numbers. */
function grid(metric) {
  const [rows, columns] = [0, 1].map(at => [...new Set(page.cells.map(cell => cell.place[at]))]);
  const open = (cell, number) => {
    const text = cell.numbers[metric] ?? cell.status, about = { title: `${cell.id}: ${cell.status}` };
    const name = cell.href ? made("a", { href: cell.href, ...about }, text) : cell.meta ? button(text, () => show([number]), about) : text;
    const box = made("input", { type: "checkbox", value: number, change: compared, "aria-label": `compare ${cell.id}` });
    return made("div", { class: cell.status }, ...(cell.href || cell.meta ? [box] : []), name);
  };
  get("grid").querySelector("thead tr").replaceChildren(...["", ...columns].map(text => made("th", { scope: "col" }, text)));
  get("grid").querySelector("tbody").replaceChildren(...rows.map(row => made("tr", {}, made("th", { scope: "row" }, row),
    ...columns.map(column => made("td", {}, ...page.cells.map((cell, number) =>
      (String(cell.place) === String([row, column]) ? open(cell, number) : "")))))));
  get("meaning").textContent = page.numbers[metric]?.[1] ?? "";
  compared();
}

const checked = () => all("#grid tbody input:checked").map(box => Number(box.value));

function compared() {
  const count = checked().length;
  get("compare").disabled = count !== 2;
  get("compare").textContent = count === 2 ? "Compare these two" : `Compare: choose two cells, ${count} chosen`;
}

function compare() {
  const chosen = checked();
  if (page.cells[0].href) location.href = `compare/${chosen.map(one => encodeURIComponent(page.cells[one].id)).join("/")}`;
  else show(chosen);
}

/** Shows the cells that have ended since, unless somebody is choosing. */
async function grown() {
  const { cells } = await (await fetch("cells")).json();
  if (cells !== page.ended && !checked().length) location.reload();
}

function start() {
  if (!("DecompressionStream" in window)) throw new Error("This browser is too old to unpack the page's data. Use one of 2023 or later.");
  for (const one of all("[data-act]")) one.addEventListener("click", () => act(one.dataset.act));
  document.addEventListener("keydown", key);
  get("cursor").addEventListener("pointerdown", drag);
  get("at").addEventListener("change", ({ target }) => {
    const seconds = Number(target.value.replace(/[^\d.]/g, ""));
    target.blur();
    act("", () => Number.isFinite(seconds) && moveTo(shared, seconds * 1e9));
  });
  if (page.back) get("back").href = page.back;
  else get("back").addEventListener("click", event => {
    event.preventDefault();
    show([]);
  });
  get("metric").append(...page.numbers.map(([name], number) => made("option", { value: number }, name)));
  get("metric").addEventListener("change", () => grid(get("metric").value));
  get("compare").addEventListener("click", compare);
  if (page.cells.length > 1) grid(0);
  if (page.ended) setInterval(grown, GROWS_MS);
  const redraw = () => {
    for (const view of views) Object.assign(view.colour, colours());
    isStripNew = true;
    changed(true);
  };
  for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", redraw);
  new ResizeObserver(redraw).observe(document.body);
}

/** What the address says of the cells and of the place in them. */
async function asked() {
  const words = new URLSearchParams(location.hash.slice(1)), [from, to, at] = ["from", "to", "at"].map(name => Number(words.get(name) ?? NaN));
  const cells = (words.get("cells") ?? "").split(",").map(Number).filter(one => page.cells[one]?.meta);
  await show(words.has("cells") && cells.length ? cells : page.shown);
  if (from < to) setWindow(shared, from, to);
  if (Number.isFinite(at)) moveTo(shared, at);
}

try {
  start();
  await asked();
  if (page.live) {
    new Lab(page.live.hosts, cell => { newer = cell; });
    play(true);
  }
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
} catch (error) {
  get("wrong").hidden = false;
  get("wrong").textContent = `This page cannot be shown: ${error.message}`;
  throw error;
}
