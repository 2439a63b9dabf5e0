// A lab that runs: what it prints, what is typed, set and started in it, and its packets as they come.

import { Cell, unpacked } from "./data.js";
import { button, get, made } from "./packets.js";

const EVERY_MS = 400, MOST_TEXT = 40_000, FIRST_PORT = 5201, LEAST_BER = -9;
// What a slider shows: powers of ten, from the first value on, or of the ratio itself; and its unit.
const SETTINGS = { rate: [-2, 2, " Mbit/s", 1e6], delay: [-2, 1, " ms", 1e6], ber: [LEAST_BER, -3, "", 1] };

function said(what, value) {
  const [, , unit, size] = SETTINGS[what];
  return what === "ber" && value ? value.toExponential() : `${Number((value / size).toPrecision(6))}${unit}`;
}

export class Lab {
  /** `arrived(cell)` is called with newer packets. */
  constructor(hosts, arrived) {
    Object.assign(this, { arrived, at: 0, version: "", port: FIRST_PORT, shown: new Map() });
    const on = (id, event, act) => get(id).addEventListener(event, act), line = get("line");
    get("lab").hidden = false;
    for (const id of ["work-from", "work-to"]) get(id).append(...hosts.map(name => made("option", {}, name)));
    get("work-to").selectedIndex = hosts.length - 1;
    on("prompt", "submit", event => {
      event.preventDefault();
      get("typed").append(made("option", {}, line.value));
      this.act({ line: line.value });
      line.value = "";
    });
    on("traffic", "submit", async event => {
      event.preventDefault();
      // Traffic is commands, which the transcript has like those that are typed.
      const words = { FROM: get("work-from").value, TO: get("work-to").value, FOR: get("work-for").value, PORT: this.port++ };
      const lines = get("work-kind").value.split("|");
      for (const one of lines) await this.act({ line: one.replace(/FROM|TO|FOR|PORT/g, word => words[word]) });
    });
    for (const act of ["interrupt", "keep"]) on(act, "click", () => this.act({ do: act }));
    on("end", "click", () => {
      this.isOver = true;
      this.act({ do: "end" }).then(() => this.ended());
    });
    this.ask();
  }

  async act(what) {
    const answer = await fetch("live", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(what) });
    get("kept").textContent = answer.ok ? (await answer.json()).said ?? get("kept").textContent : await answer.text();
  }

  /** Asks for what is new, and again a moment later. */
  async ask() {
    if (this.isOver) return;
    try {
      const { at, text, version, controls, meta, columns } = await (await fetch(`live?after=${this.at}&version=${this.version}`)).json();
      this.at = at;
      if (text) this.print(text);
      if (version) {
        this.version = version;
        this.control(controls);
        this.arrived(new Cell(meta, await unpacked(columns)));
      }
      if (!this.isOver) setTimeout(() => this.ask(), EVERY_MS);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      this.ended();
    }
  }

  ended() {
    this.isOver = true;
    get("kept").textContent = "The lab has ended. What the page has stays here.";
    for (const one of document.querySelectorAll("#lab button, #lab input, #lab select")) one.disabled = true;
  }

  print(text) {
    const screen = get("console"), isAtEnd = screen.scrollTop + screen.clientHeight > screen.scrollHeight - 20;
    screen.textContent = (screen.textContent + text.replace(/\r|\x1b\[[\d;?]*[A-Za-z]/g, "")).slice(-MOST_TEXT);
    if (isAtEnd) screen.scrollTop = screen.scrollHeight;
  }

  /** The fields and sliders of links; what somebody is changing is left alone. */
  control(controls) {
    for (const { link, way, ends, now, queue } of controls) {
      const name = `${link} ${way}`;
      if (!this.shown.has(name)) this.shown.set(name, this.row(name, `${name}, ${ends.join(" → ")}`, now, queue));
      for (const [what, set] of Object.entries(this.shown.get(name))) set(now[what]);
    }
  }

  /** A direction of a link: functions that show what each of its settings is. */
  row(name, title, now, queue) {
    const state = button("", () => this.act({ line: `link ${name} ${state.value}` })), own = made("div"), found = {};
    for (const [what, value] of Object.entries(now).filter(([what]) => what in SETTINGS)) {
      const [least, most, unit] = SETTINGS[what], base = what === "ber" || !value ? 1 : value;
      const read = () => (what === "ber" && Number(slider.value) <= least ? 0 : Number((10 ** slider.value * base).toPrecision(2)));
      const change = () => this.act({ line: `link ${name} ${what} ${field.value}${/[a-z]$/i.test(field.value) ? "" : unit}` });
      const field = made("input", { type: "text", size: 7, change });
      const slider = made("input", { type: "range", min: least, max: most, step: 0.05, "aria-label": `${what} of ${name}`, change,
        input: () => { field.value = said(what, read()); } });
      own.append(made("label", {}, `${what} `, field, slider));
      found[what] = number => {
        if ([field, slider].includes(document.activeElement)) return;
        [field.value, slider.value] = [said(what, number), number ? Math.log10(number / base) : least];
      };
    }
    found.state = (now = "up") => { [state.textContent, state.value] = now === "down" ? ["take up", "up"] : ["take down", "down"]; };
    own.append(state);
    get("links").append(made("fieldset", {}, made("legend", {}, title), own, made("p", { class: "soft" }, queue)));
    return found;
  }
}
