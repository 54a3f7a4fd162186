// A fit from the values of the sliders, in the background.

import { get, post, Refusal } from "./api.js";
import { parsed, short } from "./numbers.js";

const INTERVAL = 300; // milliseconds between two requests for the progress of the fit

/** The buttons and the progress of a fit. */
export class Fitting {
  /** `finished` is called with the name of the fit and its answer, `say` with a sentence on it. */
  constructor(state, finished, say) {
    Object.assign(this, { state, finished, tell: say });
    [this.start, this.stop, this.line] = ["fit", "stop", "progress"].map((id) => document.getElementById(id));
    this.start.addEventListener("click", () => this.begin());
    this.stop.addEventListener("click", () => this.end());
    this.resume();
  }

  /** Follow a fit that was begun before the page was loaded. */
  async resume() {
    const report = await get("fit").catch(() => null);
    if (report && ["running", "stopping"].includes(report.state)) this.follow(report);
  }

  async begin() {
    const limit = document.getElementById("limit");
    const seconds = limit.value.trim() ? parsed(limit.value) : null;
    const wrong = seconds !== null && !(seconds > 0);
    limit.setAttribute("aria-invalid", String(wrong));
    if (wrong) {
      this.line.textContent = "The time limit has to be a positive number of seconds.";
      return;
    }
    this.start.disabled = true;
    try {
      const question = {
        values: [...this.state.values],
        frozen: [...this.state.held],
        method: document.getElementById("method").value,
        time_limit: seconds,
      };
      this.follow(await post("fit/start", question));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.line.textContent = error.message;
      this.start.disabled = false;
    }
  }

  async end() {
    try {
      this.show(await post("fit/stop"));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.line.textContent = error.message;
    }
  }

  async follow(report) {
    this.start.disabled = true;
    this.stop.disabled = false;
    this.show(report);
    let last = report;
    while (["running", "stopping"].includes(last.state)) {
      await new Promise((resolve) => setTimeout(resolve, INTERVAL));
      try {
        last = await get("fit");
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        last = { state: "failed", error: error.message };
      }
      this.show(last);
    }
    this.start.disabled = false;
    this.stop.disabled = true;
    if (last.result) this.finished(last);
    this.tell(this.line.textContent);
  }

  show(report) {
    const { progress, state } = report;
    if (state === "failed") this.line.textContent = report.error;
    else if (state === "done") this.line.textContent = ended(report);
    else {
      const parts = [`${state === "stopping" ? "Stopping" : "Fitting"}, ${short(report.seconds, 3)} s`];
      if (progress?.best !== null && progress) parts.push(`${progress.measure} ${short(progress.best, 5)}`);
      if (progress?.message) parts.push(progress.message);
      this.line.textContent = `${parts.join(" · ")}`;
    }
    this.tell(this.line.textContent);
  }
}

function ended(report) {
  const { result } = report;
  const how = result.status === "converged" ? "" : ` ${result.status}: ${result.message}`;
  const likelihood = result.log_likelihood;
  const value = likelihood === null
    ? `the objective ${short(result.objective, 6)}`
    : `the log-likelihood ${short(likelihood, 6)}`;
  return `Fit ${report.number} has ended after ${short(report.seconds, 3)} s with ${value}; the `
    + `sliders have its values.${how}`;
}
