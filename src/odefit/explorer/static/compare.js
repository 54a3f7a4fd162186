// A table of the values of now beside those that were kept.

import { short } from "./numbers.js";

/** Values by unknown, with their differences from those of now. */
export class CompareView {
  constructor(state) {
    this.state = state;
    this.element = document.createElement("div");
    this.element.className = "scroll";
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "region");
    this.element.setAttribute("aria-label", "Kept values");
  }

  draw(answer) {
    this.now = answer.objective ?? this.now;
    const kept = this.state.snapshots;
    if (!kept.length) {
      const hint = document.createElement("p");
      hint.className = "small";
      hint.textContent = "Nothing is kept yet. Keep a snapshot, fit, or start with "
        + "'--result FILE.json': its values appear here beside the present ones.";
      this.element.replaceChildren(hint);
      return;
    }
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    for (const title of ["unknown", "now", ...kept.flatMap((s) => [s.name, "difference"])]) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = title;
      if (title !== "unknown") cell.className = "num";
      head.append(cell);
    }
    const body = table.createTBody();
    this.state.unknowns.forEach((unknown, i) => {
      const value = this.state.values[i];
      const cells = kept.flatMap((s) => [withError(s.values[i], s.errors?.[i]), difference(s.values[i], value)]);
      row(body, unknown.key, [short(value, 5), ...cells]);
    });
    const objectives = kept.flatMap((s) => [short(s.objective, 6), difference(s.objective, this.now)]);
    row(body, "objective", [short(this.now, 6), ...objectives]).className = "total";
    this.element.replaceChildren(table);
  }
}

/** Return a value with its standard error, where it has one. */
function withError(value, error) {
  return error === null || error === undefined ? short(value, 5) : `${short(value, 5)} ± ${short(error, 2)}`;
}

function row(body, title, cells) {
  const made = body.insertRow();
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = title;
  made.append(head);
  for (const text of cells) {
    const cell = made.insertCell();
    cell.className = "num";
    cell.textContent = text;
  }
  return made;
}

/** Return how far a value is from that of now, in per cent of the latter. */
function difference(value, now) {
  if (value === undefined || value === null || now === undefined) return "–";
  if (value === now) return "0";
  if (!now) return `${value > 0 ? "+" : "−"}${short(Math.abs(value), 3)}`;
  const part = (100 * (value - now)) / Math.abs(now);
  return `${part > 0 ? "+" : "−"}${short(Math.abs(part), 3)} %`;
}
