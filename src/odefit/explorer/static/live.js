// The model at the values of now: at most one question is under way, and the latest values win.

import { post, Refusal } from "./api.js";

/** Ask for curves whenever values change, and hand on what comes back. */
export class Live {
  /**
   * @param {State} state The values.
   * @param {() => {experiments: string[], parts: string[]}} wanted The experiments that are drawn,
   *   and what of them: observables, states, or both.
   * @param {(answer: object) => void} draw What is called with each answer.
   * @param {(sentence: string) => void} say What is called with a sentence where there is none.
   */
  constructor(state, wanted, draw, say) {
    Object.assign(this, { state, wanted, draw, say, busy: false, waiting: false, idle: 0 });
    this.version = 0;
    state.listen((source) => {
      if (source !== "history") this.ask();
    });
  }

  /** Ask for the curves of now, or as soon as the answer before is there. */
  ask() {
    this.version += 1;
    if (this.busy) this.waiting = true;
    else this.run();
  }

  async run() {
    this.busy = true;
    do {
      this.waiting = false;
      const version = this.version;
      const { experiments } = this.wanted();
      // With other experiments than those drawn, the objective takes longer than the curves do: it
      // comes when the sliders rest.
      const whole = experiments.length === this.state.problem.experiments.length;
      await this.once(whole, version);
      if (!whole && !this.waiting) {
        clearTimeout(this.idle);
        this.idle = setTimeout(() => this.rest(version), 150);
      }
    } while (this.waiting);
    this.busy = false;
  }

  async rest(version) {
    if (this.busy || version !== this.version) return;
    this.busy = true;
    await this.once(true, version);
    this.busy = false;
    if (this.waiting) this.run();
  }

  async once(objective, version) {
    const values = [...this.state.values];
    try {
      const answer = await post("curves", { values, objective, ...this.wanted() });
      if (answer.failure) this.say(`${answer.failure} The curves are from before this failure.`);
      else {
        await this.state.scenario?.ask(values, this.wanted());
        this.say("");
        this.draw(answer);
      }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.say(error.message);
    }
    document.dispatchEvent(new CustomEvent("odefit:drawn", { detail: { version } }));
  }
}

/** Make sure that snapshots which are shown have the curves of some experiments. */
export async function curvesOfSnapshots(snapshots, experiments) {
  for (const snapshot of snapshots) {
    const missing = experiments.filter((name) => !snapshot.curves.has(name));
    if (!snapshot.shown || !missing.length) continue;
    const question = { experiments: missing, objective: snapshot.objective === undefined, live: false };
    if (snapshot.saved) question.of = "result";
    else question.values = snapshot.values;
    const answer = await post("curves", question);
    for (const name of missing) snapshot.curves.set(name, answer.experiments?.[name] ?? null);
    if (answer.objective !== undefined) {
      snapshot.objective = answer.objective;
      snapshot.likelihood = answer.log_likelihood;
    }
  }
}
