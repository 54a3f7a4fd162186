// Figures of the last fit, or of the saved result, as odefit draws them elsewhere.

import { post, Refusal } from "./api.js";

const KINDS = {
  overlay: "All experiments together, with inputs and doses",
  ensemble: "All solutions that fit, with bands",
  forecast: "Forecast beyond the data",
  starts: "Starts: how much worse than the best (waterfall)",
  parallel: "Ends of all starts (parallel coordinates)",
  diagnostics: "Residuals",
};

/** A list of figures, of which one is shown. */
export class FiguresView {
  constructor(state) {
    this.state = state;
    this.element = document.createElement("div");
    const label = document.createElement("label");
    label.className = "inline";
    label.textContent = "Figure ";
    this.select = document.createElement("select");
    this.select.id = "figure-kind";
    for (const [kind, title] of Object.entries(KINDS)) this.select.add(new Option(title, kind));
    this.select.addEventListener("change", () => this.show());
    label.append(this.select);
    this.note = document.createElement("p");
    this.note.className = "small";
    this.note.setAttribute("role", "status");
    this.image = document.createElement("img");
    this.image.className = "drawn";
    this.image.hidden = true;
    const box = document.createElement("div");
    box.className = "scroll";
    box.append(this.image);
    this.element.append(label, this.note, box);
  }

  /** The figures are those of a fit: they are redrawn only when there is another one. */
  draw() {
    if (this.of !== this.state.fit || this.of === undefined) {
      this.of = this.state.fit ?? null;
      this.show();
    }
  }

  async show() {
    const kind = this.select.value;
    this.note.textContent = "Drawing …";
    try {
      const { svg } = await post("figure", { kind });
      if (kind !== this.select.value) return;
      this.image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
      this.image.alt = KINDS[kind];
      this.image.hidden = false;
      this.note.textContent = "";
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.image.hidden = true;
      this.note.textContent = error.message;
    }
  }
}
