// A scenario: the experiment that is drawn, with other constants, inputs and doses beside the first.

import { post, Refusal } from "./api.js";
import { parsed, short } from "./numbers.js";

const WORDS = {
  constant: (given) => given.name,
  input: (given) => `input ${given.name} ×`,
  doses: () => "all doses and changes ×",
  shift: () => "doses later by",
};

/** The fields of a scenario, and its curves. */
export class Scenario {
  constructor(state, changed) {
    Object.assign(this, { state, changed, changes: {}, curves: new Map() });
    this.block = document.getElementById("scenario-block");
    this.list = document.getElementById("scenario-fields");
    this.note = document.getElementById("scenario-note");
    document.getElementById("scenario-clear").addEventListener("click", () => this.clear());
    const { givens } = state.problem;
    this.block.hidden = Object.values(givens).every((list) => !list.length);
    state.scenario = this;
  }

  /** Whether anything differs from the experiment as it was. */
  get active() {
    return Object.values(this.changes).some((values) => Object.keys(values).length);
  }

  /** Show the fields of an experiment. */
  show(name) {
    if (this.name === name) return;
    this.name = name;
    this.list.replaceChildren(...(this.state.problem.givens[name] ?? []).map((given) => this.row(given)));
  }

  row(given) {
    const label = document.createElement("label");
    label.className = "scenario-field";
    const field = document.createElement("input");
    Object.assign(field, { type: "text", inputMode: "decimal", autocomplete: "off" });
    const now = this.changes[this.name]?.[given.key] ?? given.value;
    field.value = short(now, 6);
    label.append(`${WORDS[given.kind](given)} `, field, ` ${given.unit}`);
    field.addEventListener("change", () => this.enter(given, field));
    return label;
  }

  enter(given, field) {
    const value = parsed(field.value);
    const wrong = !Number.isFinite(value);
    field.setAttribute("aria-invalid", String(wrong));
    this.note.textContent = wrong ? "Expected a number such as 0.5 or 1e-3." : "";
    if (wrong) return;
    const mine = { ...this.changes[this.name] };
    if (value === given.value) delete mine[given.key];
    else mine[given.key] = value;
    this.changes = { ...this.changes, [this.name]: mine };
    this.changed();
  }

  clear() {
    this.changes = {};
    this.curves = new Map();
    this.note.textContent = "";
    const { name } = this;
    this.name = undefined;
    this.show(name);
    this.changed();
  }

  /** Get the curves at values of the unknowns; what cannot be is told beside the fields. */
  async ask(values, wanted) {
    if (!this.active) {
      this.curves = new Map();
      return;
    }
    try {
      const answer = await post("scenario", { values, ...wanted, changes: this.changes });
      this.note.textContent = answer.failure ?? "";
      this.curves = new Map(Object.entries(answer.experiments ?? {}));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.note.textContent = error.message;
      this.curves = new Map();
    }
  }
}
