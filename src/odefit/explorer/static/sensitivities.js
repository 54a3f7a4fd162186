// Sensitivities at a click: how the observables change with the logarithm of each unknown.

import { post, Refusal } from "./api.js";
import { Chart, redrawnWith } from "./charts.js";
import { short } from "./numbers.js";
import { timeLabel } from "./views.js";

const FIRST = 4; // so many unknowns, those that act most, are drawn at first
const COLOURS = 8;

/** Bars of the magnitudes of all unknowns, and curves of those that are chosen. */
export class SensitivitiesView {
  constructor(state) {
    this.state = state;
    this.element = document.createElement("div");
    const row = document.createElement("div");
    row.className = "row";
    this.button = document.createElement("button");
    this.button.type = "button";
    this.button.id = "sensitivities";
    this.button.textContent = "Compute at these values";
    this.button.addEventListener("click", () => this.compute());
    this.note = document.createElement("p");
    this.note.className = "small";
    this.note.setAttribute("role", "status");
    row.append(this.button);
    this.bars = document.createElement("div");
    this.bars.className = "bars";
    this.bars.setAttribute("role", "group");
    this.bars.setAttribute("aria-label", "Magnitudes of the sensitivities; choose what is drawn");
    this.panels = document.createElement("div");
    this.panels.className = "panels";
    this.element.append(row, this.note, this.bars, this.panels);
    this.charts = [];
    this.chosen = new Set();
    redrawnWith(this.panels, () => this.charts.map(({ chart }) => chart));
  }

  draw(_answer, _fits, experiments) {
    const name = experiments[0].name;
    if (name !== this.experiment) {
      this.experiment = name;
      this.given = experiments[0];
      this.compute();
    } else if (this.at && this.at !== JSON.stringify(this.state.values)) {
      this.note.textContent = "The sliders have moved since: these sensitivities are from before.";
    }
  }

  async compute() {
    const values = [...this.state.values];
    const experiment = this.experiment;
    this.note.textContent = "Computing …";
    this.button.disabled = true;
    try {
      const found = await post("sensitivities", { values, experiment });
      if (experiment !== this.experiment) return;
      if (found.failure) {
        this.note.textContent = found.failure;
        return;
      }
      this.found = found;
      this.at = JSON.stringify(values);
      this.note.textContent = "Each bar: the root mean square of p ∂y/∂p over time, relative to the "
        + "largest value of each observable y. A bar draws its curves, or takes them away.";
      this.list();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.note.textContent = error.message;
    } finally {
      this.button.disabled = false;
    }
  }

  list() {
    const sizes = Object.entries(this.found.magnitudes)
      .map(([key, size]) => ({ key, size: size ?? 0 }))
      .sort((a, b) => b.size - a.size);
    if (![...this.chosen].some((key) => key in this.found.magnitudes)) {
      this.chosen = new Set(sizes.filter((s) => s.size > 0).slice(0, FIRST).map((s) => s.key));
    }
    const most = Math.max(...sizes.map((s) => s.size), 1e-300);
    this.colours = new Map(sizes.map(({ key }, rank) => [key, rank % COLOURS]));
    this.bars.replaceChildren(...sizes.map(({ key, size }) => this.bar(key, size, size / most)));
    this.curves();
  }

  bar(key, size, part) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "bar-row";
    button.setAttribute("aria-pressed", String(this.chosen.has(key)));
    const [name, track, value] = ["name", "track", "value"].map((c) => {
      const span = document.createElement("span");
      span.className = c;
      return span;
    });
    name.textContent = key;
    value.textContent = short(size, 3);
    const fill = document.createElement("span");
    fill.className = `fill series-${this.colour(key)}`;
    fill.style.width = `${(100 * part).toFixed(1)}%`;
    track.append(fill);
    button.append(name, track, value);
    button.addEventListener("click", () => {
      const on = !this.chosen.has(key);
      if (on) this.chosen.add(key);
      else this.chosen.delete(key);
      button.setAttribute("aria-pressed", String(on));
      this.curves();
    });
    return button;
  }

  /** The number of a colour: those that act most have colours of their own. */
  colour(key) {
    return this.colours.get(key);
  }

  curves() {
    const names = Object.keys(this.found.curves);
    if (this.charts.map((c) => c.name).join("\n") !== names.join("\n")) {
      const xLabel = timeLabel(this.state.problem);
      this.charts = names.map((name) => ({ name, chart: new Chart({ title: `∂ ${name} / ∂ ln p`, xLabel }) }));
      this.panels.replaceChildren(...this.charts.map(({ chart }) => chart.figure));
    }
    for (const { name, chart } of this.charts) {
      const lines = Object.entries(this.found.curves[name])
        .filter(([key]) => this.chosen.has(key))
        .map(([key, y]) => ({ x: this.found.times, y, style: `sensitivity series-${this.colour(key)}` }));
      const { events: marks, log_time: logX, calendar } = this.given;
      chart.show({ lines, points: [], levels: [0], marks, logX, calendar });
    }
  }
}
