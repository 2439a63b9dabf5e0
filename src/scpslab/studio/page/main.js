// The page: reads its data, shows cells below each other with one cursor, plays, and listens to keys.

import { cellOf, unpacked } from "./data.js";
import { CellView, moveTo, setWindow } from "./cell.js";
import { made } from "./packets.js";
import { overview } from "./plots.js";
import { timeText } from "./numbers.js";

const OVERVIEW = 40;
const page = JSON.parse(document.getElementById("data").textContent);
const get = id => document.getElementById(id);
const shared = { begin: 0, end: 1, from: 0, to: 1, at: 0, packetCell: null, isPlaying: false };
const views = [];
let [waiting, isWindowNew, before] = [false, true, 0];

function changed(isWindow) {
  isWindowNew ||= isWindow;
  if (!waiting) requestAnimationFrame(render);
  waiting = true;
}

function render(now) {
  waiting = false;
  if (shared.isPlaying) {
    moveTo(shared, shared.at + Math.max(1, (now - before) * 1e6 * Number(get("speed").value)));
    if (shared.at >= shared.end) play(false);
    isWindowNew = true;
    if (shared.isPlaying) changed(true);
  }
  before = now;
  for (const view of views) view.render(isWindowNew);
  const strip = get("strip");
  if (views.length) overview(strip, strip.parentElement.clientWidth, OVERVIEW, views[0].cell, shared, views[0].colour);
  if (document.activeElement !== get("at")) get("at").value = timeText(shared.at);
  get("cursor").setAttribute("aria-valuenow", String(shared.at / 1e9));
  get("cursor").setAttribute("aria-valuetext", timeText(shared.at));
  isWindowNew = false;
  if (!shared.isPlaying && views.length) keepPlace();
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
  if (isPlaying && shared.at >= shared.end) moveTo(shared, shared.begin);
  get("play").textContent = isPlaying ? "Pause" : "Play";
  get("play").setAttribute("aria-pressed", String(isPlaying));
  before = performance.now();
  changed(true);
}

function fit() {
  setWindow(shared, shared.begin, shared.end);
  changed(true);
}

function told() {
  const view = views[0], packet = view?.packet.textContent;
  get("live").textContent = `${timeText(shared.at)}. ${shared.packetCell ? packet : ""}`;
}

const first = () => shared.packetCell ?? views[0];
const ACTS = {
  play: () => play(!shared.isPlaying),
  "previous-packet": () => first().step(false), "next-packet": () => first().step(true),
  "previous-loss": () => first().jump(false, "loss"), "next-loss": () => first().jump(true, "loss"),
  "previous-event": () => first().jump(false, "mark"), "next-event": () => first().jump(true, "mark"),
  "zoom-in": () => first().zoom(0.5), "zoom-out": () => first().zoom(2), fit,
  slower: () => speed(-1), faster: () => speed(1), help: () => get("keys").showModal(),
};
const KEYS = {
  " ": "play", ArrowLeft: "previous-packet", ArrowRight: "next-packet", L: "previous-loss", l: "next-loss",
  E: "previous-event", e: "next-event", "+": "zoom-in", "=": "zoom-in", "-": "zoom-out", 0: "fit", "[": "slower", "]": "faster",
  "?": "help",
};

function speed(by) {
  const select = get("speed");
  select.selectedIndex = Math.min(select.length - 1, Math.max(0, select.selectedIndex + by));
}

function key(event) {
  const isText = event.target.matches?.("input[type=text], select"), act = KEYS[event.key];
  const isOfButton = event.key === " " && event.target.matches?.("button, input, summary, a");
  if (event.ctrlKey || event.metaKey || event.altKey || isText || isOfButton || !act || !views.length || get("keys").open) return;
  event.preventDefault();
  if (event.shiftKey && event.key.startsWith("Arrow")) moveTo(shared, shared.at + (event.key === "ArrowLeft" ? -1 : 1) * (shared.to - shared.from) / 20);
  else ACTS[act]();
  changed(true);
  requestAnimationFrame(told);
}

function drag(event) {
  const move = now => {
    const strip = get("strip"), share = (now.clientX - strip.getBoundingClientRect().left) / strip.clientWidth;
    const middle = share * shared.end, wide = shared.to - shared.from;
    if (wide < shared.end - shared.begin) setWindow(shared, middle - wide / 2, middle + wide / 2);
    shared.packetCell = null;
    moveTo(shared, middle);
    changed(true);
  };
  event.currentTarget.setPointerCapture(event.pointerId);
  event.currentTarget.onpointermove = move;
  event.currentTarget.onpointerup = () => { get("cursor").onpointermove = null; };
  move(event);
}

/** Shows cells, one above the other. */
async function show(numbers) {
  views.splice(0);
  for (const number of numbers) {
    const entry = page.cells[number];
    entry.read ??= cellOf(entry.meta, await unpacked(get(`columns-${number}`).textContent));
    views.push(Object.assign(new CellView(entry.read, shared, changed, numbers.length > 1), { entry }));
  }
  const ends = views.map(view => view.cell.meta.end_ns);
  Object.assign(shared, { begin: 0, end: Math.max(...ends), packetCell: null });
  get("cells").replaceChildren(...views.map(view => view.section));
  get("cells").classList.toggle("compared", views.length > 1);
  for (const id of ["controls", "time"]) get(id).hidden = !views.length;
  get("grid").hidden = page.cells.length < 2 || views.length > 0;
  get("back").hidden = !page.back && (page.cells.length < 2 || !views.length);
  setWindow(shared, 0, shared.end);
  const loss = views[0]?.cell.losses?.[0];
  moveTo(shared, loss ? loss[0] : shared.end / 2);
  changed(true);
}

/** The cells of a sweep, to open or to compare. */
function grid() {
  const axes = Object.keys(page.cells[0].axes), numbers = page.numbers, body = document.querySelector("#grid tbody");
  const heads = ["compare", "cell", ...axes, "ended", ...numbers.map(one => one.name)];
  document.querySelector("#grid thead tr").replaceChildren(...heads.map(head => made("th", head, { scope: "col" })));
  body.replaceChildren(...page.cells.map((cell, number) => {
    const line = made("tr"), box = made("input", "", { type: "checkbox", "aria-label": `compare ${cell.id}` }), name = made("td");
    box.addEventListener("change", compared);
    box.value = number;
    const open = cell.href ? made("a", cell.id, { href: cell.href }) : made("button", cell.id, { type: "button" });
    if (!cell.href) open.addEventListener("click", () => show([number]));
    name.append(open);
    const first = made("td");
    first.append(box);
    line.append(first, name, ...axes.map(axis => made("td", cell.axes[axis])), made("td", cell.status),
      ...cell.numbers.map(text => made("td", text, { class: "number" })));
    return line;
  }));
  get("compare").addEventListener("click", () => {
    const chosen = checked();
    if (page.cells[0].href) location.href = `compare/${chosen.join("/")}`;
    else show(chosen);
  });
  get("meanings").replaceChildren(...numbers.map(one => made("p", `${one.name}: ${one.says}`)));
}

const checked = () => [...document.querySelectorAll("#grid tbody input:checked")].map(box => Number(box.value));

function compared() {
  const count = checked().length;
  get("compare").disabled = count !== 2;
  get("compare").textContent = count === 2 ? "Compare these two" : `Compare: choose two cells, ${count} chosen`;
}

function start() {
  if (!("DecompressionStream" in window)) throw new Error("This browser is too old to unpack the page's data. Use one of 2023 or later.");
  get("title").textContent = document.title = page.title;
  get("about").textContent = page.about;
  for (const name of Object.keys(ACTS)) for (const button of document.querySelectorAll(`[data-act=${name}]`)) {
    button.addEventListener("click", () => {
      ACTS[name]();
      changed(true);
      requestAnimationFrame(told);
    });
  }
  document.addEventListener("keydown", key);
  get("cursor").addEventListener("pointerdown", drag);
  get("at").addEventListener("change", event => {
    const seconds = Number(event.target.value.replace(/[^\d.]/g, ""));
    if (Number.isFinite(seconds)) moveTo(shared, seconds * 1e9);
    event.target.blur();
    changed(true);
  });
  if (page.back) get("back").href = page.back;
  else get("back").addEventListener("click", event => {
    event.preventDefault();
    show([]);
  });
  if (page.cells.length > 1) grid();
  compared();
  const redraw = () => {
    views.forEach(view => view.recolour());
    changed(true);
  };
  for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", redraw);
  new ResizeObserver(() => changed(true)).observe(document.body);
}

/** What the address says of the cells and of the place in them. */
async function asked() {
  const words = new URLSearchParams(location.hash.slice(1)), all = [...page.cells.keys()].filter(one => page.cells[one].meta);
  const cells = (words.get("cells") ?? "").split(",").map(Number).filter(one => all.includes(one));
  await show(words.has("cells") && cells.length ? cells : page.shown);
  const [from, to, at] = ["from", "to", "at"].map(name => Number(words.get(name) ?? NaN));
  if (from < to) setWindow(shared, from, to);
  if (Number.isFinite(at)) moveTo(shared, at);
  changed(true);
}

try {
  start();
  await asked();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
} catch (error) {
  get("wrong").hidden = false;
  get("wrong").textContent = `This page cannot be shown: ${error.message}`;
  throw error;
}
