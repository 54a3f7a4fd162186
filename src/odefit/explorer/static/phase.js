// The phase plane of two states: trajectories, and for models of two states the vector field with
// its nullclines.

import { post, Refusal } from "./api.js";
import { Chart, redrawnWith, shape } from "./charts.js";

const ARROWS = 14; // arrows along each axis

/** A figure of one state over another. */
export class PhaseView {
  constructor(state) {
    this.state = state;
    this.element = document.createElement("div");
    this.bar = document.createElement("div");
    this.bar.className = "row";
    this.selects = ["Across", "Up"].map((title, i) => this.choice(title, i));
    this.bar.append(...this.selects.map((s) => s.closest("label")));
    this.note = document.createElement("p");
    this.note.className = "small";
    this.chart = new Chart({ title: "Phase plane", xLabel: "", yLabel: "", tall: true });
    this.chart.figure.classList.add("alone");
    this.element.append(this.bar, this.chart.figure, this.note);
    this.plane = null;
    this.box = null;
    this.asked = 0;
    redrawnWith(this.element, () => [this.chart]);
  }

  choice(title, number) {
    const label = document.createElement("label");
    label.className = "inline";
    const select = document.createElement("select");
    for (const name of this.state.problem.states) select.add(new Option(name, name));
    select.selectedIndex = Math.min(number, this.state.problem.states.length - 1);
    select.addEventListener("change", () => {
      this.plane = null;
      this.box = null;
      if (this.last) this.draw(...this.last);
    });
    label.append(`${title} `, select);
    return select;
  }

  get names() {
    return this.selects.map((s) => s.value);
  }

  draw(answer, fits, experiments) {
    this.last = [answer, fits, experiments];
    const [across, up] = this.names;
    const experiment = experiments[0];
    const curves = answer.experiments?.[experiment.name];
    this.chart.options.xLabel = across;
    this.chart.options.yLabel = up;
    const several = this.state.problem.experiments.length > 1;
    this.chart.button.textContent = several ? `Phase plane · ${experiment.name}` : "Phase plane";
    const lines = [];
    const points = [];
    this.state.snapshots.forEach((snapshot, i) => {
      const kept = snapshot.shown ? snapshot.curves.get(experiment.name) : null;
      if (kept?.states[across] && kept.states[up]) {
        lines.push({ x: kept.states[across], y: kept.states[up], style: `other other-${i % 5}` });
      }
    });
    if (curves?.states) {
      lines.push({ x: curves.states[across], y: curves.states[up], style: "live" });
      points.push({ x: [curves.states[across][0]], y: [curves.states[up][0]], style: "start" });
    }
    this.box = roomFor(lines, this.box);
    const field = this.plane && this.plane.names === this.names.join() ? this.plane : null;
    this.chart.show({
      lines,
      points,
      box: this.box,
      field: field && ((plot, toX, toY) => drawField(field, plot, toX, toY)),
    });
    this.chart.svg.setAttribute("aria-label", `Phase plane: ${up} over ${across}`);
    this.ask(experiment);
  }

  /** Ask for the vector field at the values of now, where there is one. */
  async ask(experiment) {
    const { no_field: reason } = this.state.problem;
    const [x, y] = this.names;
    if (reason || x === y) {
      this.note.textContent = reason || "Choose two different states.";
      return;
    }
    const key = JSON.stringify([this.state.values, this.box, x, y, experiment.name]);
    if (key === this.key) return;
    this.key = key;
    const number = (this.asked += 1);
    try {
      const question = { values: [...this.state.values], experiment: experiment.name, x, y, box: this.box };
      const found = await post("plane", question);
      if (number !== this.asked) return;
      this.note.textContent = found.none ?? "Arrows: the direction of motion. Lines: where one of "
        + `the states does not change, dashed ${x}, dotted ${y}.`;
      this.plane = found.none ? null : { ...found, names: this.names.join() };
      if (this.last) this.draw(...this.last);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.note.textContent = error.message;
    }
  }
}

/** Return a box with room for all lines; the one before is kept while it fits them well. */
function roomFor(lines, before) {
  const all = (axis) => lines.flatMap((l) => l[axis]).filter((v) => v !== null && Number.isFinite(v));
  const [xs, ys] = [all("x"), all("y")];
  if (!xs.length || !ys.length) return before ?? [0, 1, 0, 1];
  const box = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  if (before) {
    const fits = [0, 2].every((i) => {
      const [low, high] = [before[i], before[i + 1]];
      const size = box[i + 1] - box[i];
      return low <= box[i] && high >= box[i + 1] && size > 0.4 * (high - low);
    });
    if (fits) return before;
  }
  return [0, 2].flatMap((i) => {
    const room = 0.08 * (box[i + 1] - box[i]) || 0.1 * Math.abs(box[i]) || 1;
    return [box[i] - room, box[i + 1] + room];
  });
}

/** Draw arrows of equal length, and nullclines. */
function drawField(plane, plot, toX, toY) {
  nullclines(plane, plane.dx, "nullcline-x", plot, toX, toY);
  nullclines(plane, plane.dy, "nullcline-y", plot, toX, toY);
  const n = plane.x.length;
  const step = Math.max(Math.floor(n / ARROWS), 1);
  const length = 0.55 * step * Math.abs(toX(plane.x[1]) - toX(plane.x[0]));
  let d = "";
  for (let j = Math.floor(step / 2); j < n; j += step) {
    for (let i = Math.floor(step / 2); i < n; i += step) {
      const [u, v] = [plane.dx[j][i], plane.dy[j][i]];
      if (u === null || v === null) continue;
      const [px, py] = [toX(plane.x[i]), toY(plane.y[j])];
      const right = (u * (toX(plane.x[1]) - toX(plane.x[0]))) / (plane.x[1] - plane.x[0]);
      const down = (v * (toY(plane.y[1]) - toY(plane.y[0]))) / (plane.y[1] - plane.y[0]);
      const size = Math.hypot(right, down);
      if (!(size > 0) || !Number.isFinite(size)) continue;
      const [a, b] = [(right / size) * length, (down / size) * length];
      const [ex, ey] = [px + a / 2, py + b / 2];
      d += `M${(px - a / 2).toFixed(1)},${(py - b / 2).toFixed(1)}L${ex.toFixed(1)},${ey.toFixed(1)}`;
      d += `M${(ex - 0.35 * a + 0.2 * b).toFixed(1)},${(ey - 0.35 * b - 0.2 * a).toFixed(1)}`;
      d += `L${ex.toFixed(1)},${ey.toFixed(1)}`;
      d += `L${(ex - 0.35 * a - 0.2 * b).toFixed(1)},${(ey - 0.35 * b + 0.2 * a).toFixed(1)}`;
    }
  }
  shape("path", { class: "field", d }, plot);
}

/** Draw the lines on which a function on the grid is zero, cell by cell (marching squares). */
function nullclines(plane, values, style, plot, toX, toY) {
  let d = "";
  const { x, y } = plane;
  for (let j = 0; j + 1 < y.length; j += 1) {
    for (let i = 0; i + 1 < x.length; i += 1) {
      const corners = [values[j][i], values[j][i + 1], values[j + 1][i + 1], values[j + 1][i]];
      if (corners.some((c) => c === null)) continue;
      const places = [[x[i], y[j]], [x[i + 1], y[j]], [x[i + 1], y[j + 1]], [x[i], y[j + 1]]];
      const crossed = [];
      for (let k = 0; k < 4; k += 1) {
        const [a, b] = [corners[k], corners[(k + 1) % 4]];
        if (a < 0 === b < 0) continue;
        const part = a / (a - b);
        const [p, q] = [places[k], places[(k + 1) % 4]];
        crossed.push([p[0] + part * (q[0] - p[0]), p[1] + part * (q[1] - p[1])]);
      }
      for (let k = 0; k + 1 < crossed.length; k += 2) {
        const [p, q] = [crossed[k], crossed[k + 1]];
        d += `M${toX(p[0]).toFixed(1)},${toY(p[1]).toFixed(1)}L${toX(q[0]).toFixed(1)},${toY(q[1]).toFixed(1)}`;
      }
    }
  }
  shape("path", { class: `nullcline ${style}`, d }, plot);
}
