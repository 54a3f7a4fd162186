// A scenario: the experiment that is drawn, with other constants, inputs and doses beside the first.

import { post, Refusal } from "./api.js";
import { parsed, short } from "./numbers.js";

const WORDS = {
  constant: (given) => given.name,
  input: (given) => `input ${given.name} ×`,
  doses: () => "all doses and changes ×",
  shift: () => "doses later by",
  amount: (given) => `${given.name} +`,
  level: (given) => `${given.name} =`,
  factor: (given) => `change of ${given.name} ×`,
  time: () => "at t =",
};

const MOST = 60; // single doses that the server lists

/** The fields of a scenario, and its curves. */
export class Scenario {
  constructor(state, changed) {
    Object.assign(this, { state, changed, changes: {}, curves: new Map() });
    this.block = document.getElementById("scenario-block");
    this.list = document.getElementById("scenario-fields");
    this.of = document.getElementById("scenario-of");
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
    const several = this.state.problem.experiments.length > 1;
    this.of.textContent = several ? `For ${name}; choose another one above the figures.` : "";
    const givens = this.state.problem.givens[name] ?? [];
    const single = givens.filter((given) => given.record !== null);
    const rows = givens.filter((given) => given.record === null).map((given) => this.row(given));
    if (single.length) rows.push(this.records(single));
    this.list.replaceChildren(...rows);
  }

  /** Return the fields of single doses and changes: a row each, with what changes and when. */
  records(givens) {
    const block = document.createElement("details");
    block.open = givens.at(-1).record <= 8;
    const title = document.createElement("summary");
    const count = givens.at(-1).record;
    title.textContent = count === 1 ? "The dose or change" : "Single doses and changes";
    block.append(title);
    const rows = new Map();
    for (const given of givens) {
      if (!rows.has(given.record)) {
        const row = document.createElement("div");
        row.className = "scenario-record";
        row.setAttribute("role", "group");
        row.setAttribute("aria-label", `dose or change ${given.record}`);
        rows.set(given.record, row);
      }
      rows.get(given.record).append(this.row(given));
    }
    block.append(...rows.values());
    if (count === MOST) {
      const note = document.createElement("p");
      note.className = "small";
      note.textContent = `At most ${MOST} are listed; the fields above change all of them.`;
      block.append(note);
    }
    return block;
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
