// What the page knows: the problem, the values of the sliders, their history, and what was kept.

/** The values of the unknowns with everything that can be undone. */
export class State {
  constructor(problem) {
    this.problem = problem;
    this.unknowns = problem.unknowns;
    this.values = [...problem.values];
    this.held = new Set();
    this.past = [];
    this.future = [];
    this.committed = [...this.values];
    this.snapshots = [];
    this.fit = null;
    this.fitErrors = null;
    this.listeners = [];
    if (problem.result) {
      const { label, vector, objective, log_likelihood: likelihood, errors: byKey } = problem.result;
      const errors = this.unknowns.map((u) => byKey[u.key] ?? null);
      const kept = { name: label, values: vector, objective, likelihood, errors };
      this.fit = vector;
      this.fitErrors = errors;
      this.snapshots.push({ ...kept, shown: true, saved: true, curves: new Map() });
    }
  }

  /** Call a function whenever values change. */
  listen(listener) {
    this.listeners.push(listener);
  }

  tell(source) {
    for (const listener of this.listeners) listener(source);
  }

  /** Move one value, as a slider does while it is dragged; `commit` makes a step of it. */
  move(index, value, source) {
    if (this.values[index] === value) return;
    this.values[index] = value;
    this.tell(source);
  }

  /** Make what has changed since the last step one that can be undone. */
  commit() {
    if (this.values.every((v, i) => v === this.committed[i])) return;
    this.past.push(this.committed);
    if (this.past.length > 500) this.past.shift();
    this.committed = [...this.values];
    this.future = [];
    this.tell("history");
  }

  /** Take other values for all unknowns, as one step. */
  set(values) {
    this.commit();
    this.values = [...values];
    this.commit();
    this.tell("all");
  }

  undo() {
    this.commit();
    if (!this.past.length) return;
    this.future.push(this.committed);
    this.recall(this.past.pop());
  }

  redo() {
    if (!this.future.length) return;
    this.past.push(this.committed);
    this.recall(this.future.pop());
  }

  recall(values) {
    this.committed = values;
    this.values = [...values];
    this.tell("all");
  }

  /** Return the vector of values by key, those that are missing as they are now. */
  vector(byKey) {
    return this.unknowns.map((u, i) => byKey[u.key] ?? this.values[i]);
  }
}
