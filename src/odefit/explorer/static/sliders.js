// A slider and a number field for each unknown. Both work by keyboard; the field takes any value
// between the bounds, and makes the slider longer where that is beyond its end.

import { parsed, short } from "./numbers.js";

const STEPS = 1000;
const DIGITS = 4;
const MANY = 12; // more unknowns than that can be searched for

const GROUPS = [
  ["parameter", "Parameters"],
  ["initial", "Initial values"],
  ["noise", "Noise"],
];

/** Make the sliders within an element. */
export class Sliders {
  constructor(state, element, filter) {
    this.state = state;
    this.rows = new Map();
    for (const [kind, title] of GROUPS) {
      const mine = state.unknowns.map((u, i) => [u, i]).filter(([u]) => u.kind === kind);
      if (!mine.length) continue;
      const group = document.createElement("fieldset");
      const legend = document.createElement("legend");
      legend.textContent = title;
      group.append(legend);
      for (const [unknown, index] of mine) group.append(this.row(unknown, index));
      element.append(group);
    }
    filter.hidden = state.unknowns.length <= MANY;
    filter.querySelector("input").addEventListener("input", (event) => this.find(event.target.value));
    state.listen((source) => this.update(source));
    this.update("all");
  }

  row(unknown, index) {
    const row = document.createElement("div");
    row.className = "unknown";
    const id = `unknown-${index}`;
    const label = document.createElement("label");
    label.htmlFor = `${id}-field`;
    label.textContent = unknown.key;
    label.title = unknown.key;
    if (unknown.unit) {
      const unit = document.createElement("span");
      unit.className = "unit";
      unit.textContent = ` ${unknown.unit}`;
      label.append(unit);
    }
    const field = document.createElement("input");
    Object.assign(field, { type: "text", id: `${id}-field`, inputMode: "decimal", autocomplete: "off" });
    field.setAttribute("aria-describedby", `${id}-note`);
    const hold = document.createElement("label");
    hold.className = "hold";
    const box = document.createElement("input");
    box.type = "checkbox";
    box.setAttribute("aria-label", `hold ${unknown.key}: it is not fitted`);
    hold.append(box, " hold");
    hold.title = "Held unknowns are not fitted";
    const slider = document.createElement("input");
    Object.assign(slider, { type: "range", min: "0", max: String(STEPS), step: "1", id: `${id}-slider` });
    slider.setAttribute("aria-label", `${unknown.key}, slider`);
    const ends = document.createElement("div");
    ends.className = "ends";
    ends.append(...["", "fitted", ""].map((name) => {
      const span = document.createElement("span");
      span.className = name;
      return span;
    }));
    const note = document.createElement("p");
    note.className = "note";
    note.id = `${id}-note`;
    note.setAttribute("role", "alert");
    row.append(label, field, hold, slider, ends, note);

    slider.addEventListener("input", () => {
      this.say(index, "");
      this.state.move(index, this.valueAt(index, Number(slider.value)), slider);
    });
    slider.addEventListener("change", () => this.state.commit());
    field.addEventListener("change", () => this.enter(index));
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        this.say(index, "");
        this.update("all");
      }
    });
    box.addEventListener("change", () => {
      if (box.checked) this.state.held.add(unknown.key);
      else this.state.held.delete(unknown.key);
      row.classList.toggle("held", box.checked);
    });
    this.rows.set(index, { row, field, slider, ends, note, shown: null });
    return row;
  }

  /** Return the value at a place of the slider, rounded to what can be read. */
  valueAt(index, place) {
    const { low, high, logarithmic } = this.state.unknowns[index];
    if (place <= 0) return low;
    if (place >= STEPS) return high;
    const part = place / STEPS;
    const value = logarithmic ? low * (high / low) ** part : low + (high - low) * part;
    const digits = logarithmic ? DIGITS : DIGITS + 1;
    const step = (high - low) / STEPS;
    const round = logarithmic
      ? Number(value.toPrecision(digits))
      : Number(value.toFixed(Math.min(Math.max(1 - Math.floor(Math.log10(step)), 0), 100)));
    return Math.min(Math.max(round, low), high);
  }

  /** Return the place of the slider that belongs to a value. */
  placeOf(index, value) {
    const { low, high, logarithmic } = this.state.unknowns[index];
    if (!(high > low)) return 0;
    const part = logarithmic ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return Math.round(Math.min(Math.max(Number.isFinite(part) ? part : 0, 0), 1) * STEPS);
  }

  /** Take the number in a field, or say why it cannot be taken. */
  enter(index) {
    const unknown = this.state.unknowns[index];
    const { field } = this.rows.get(index);
    const value = parsed(field.value);
    const [lower, upper] = [unknown.lower ?? -Infinity, unknown.upper ?? Infinity];
    if (Number.isNaN(value) || !Number.isFinite(value)) {
      this.say(index, "Expected a number such as 0.5 or 1e-3.");
      return;
    }
    if (value < lower || value > upper) {
      this.say(index, `Expected a number from ${short(lower)} to ${short(upper)}, the bounds.`);
      return;
    }
    this.say(index, "");
    this.state.move(index, value, field);
    this.state.commit();
    this.update("all");
  }

  say(index, sentence) {
    const { note, field, row } = this.rows.get(index);
    if (note.textContent !== sentence) note.textContent = sentence;
    row.classList.toggle("wrong", sentence !== "");
    field.setAttribute("aria-invalid", String(sentence !== ""));
  }

  /** Show the values of now; `source` is the control that the user moves, which stays as it is. */
  update(source) {
    for (const [index, parts] of this.rows) {
      const value = this.state.values[index];
      if (parts.shown === value && !["all", "history"].includes(source)) continue;
      parts.shown = value;
      this.stretch(index, value);
      const unknown = this.state.unknowns[index];
      if (parts.slider !== source) parts.slider.value = String(this.placeOf(index, value));
      if (parts.field !== source) parts.field.value = short(value, 5);
      if (source === "all") this.say(index, "");
      const text = `${short(value)} ${unknown.unit}`.trim();
      parts.slider.setAttribute("aria-valuetext", text);
      const [low, fitted, high] = parts.ends.children;
      const [best, error] = [this.state.fit?.[index], this.state.fitErrors?.[index]];
      const known = best !== undefined && best !== null;
      const sure = error === null || error === undefined ? "no standard error" : `± ${short(error, 2)}`;
      fitted.textContent = known ? `fit: ${short(best, 4)} ${sure}` : "";
      low.textContent = short(unknown.low, 3);
      high.textContent = short(unknown.high, 3);
    }
  }

  /** Make a slider long enough for a value. */
  stretch(index, value) {
    const unknown = this.state.unknowns[index];
    if (unknown.logarithmic && value <= 0) {
      unknown.logarithmic = false;
      unknown.low = Math.min(0, value);
    }
    unknown.low = Math.min(unknown.low, value);
    unknown.high = Math.max(unknown.high, value);
  }

  find(text) {
    const wanted = text.trim().toLowerCase();
    for (const [index, { row }] of this.rows) {
      row.hidden = !this.state.unknowns[index].key.toLowerCase().includes(wanted);
    }
  }
}
