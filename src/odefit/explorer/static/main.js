// The page: it puts sliders, figures, fits and files together.

import { get, post, Refusal } from "./api.js";
import { CompareView } from "./compare.js";
import { FiguresView } from "./figures.js";
import { Fitting } from "./fitting.js";
import { curvesOfSnapshots, Live } from "./live.js";
import { short } from "./numbers.js";
import { PhaseView } from "./phase.js";
import { Scenario } from "./scenario.js";
import { Saving } from "./saving.js";
import { SensitivitiesView } from "./sensitivities.js";
import { Sliders } from "./sliders.js";
import { loadFiles } from "./loading.js";
import { Snapshots } from "./snapshots.js";
import { State } from "./state.js";
import { CurvesView, ResidualsView } from "./views.js";

const MANY_PANELS = 12; // more panels than that: one experiment at a time, at first

const element = (id) => document.getElementById(id);

let saidAbout = "";

/**
 * Show a sentence about "actions" or about "curves". An empty one takes away what was said about the
 * same: curves that arrive must not take away what an action has answered meanwhile.
 */
function say(sentence, about = "actions") {
  if (!sentence && about !== saidAbout) return;
  saidAbout = about;
  const line = element("message");
  if (line.textContent !== sentence) line.textContent = sentence;
}

const sayOfCurves = (sentence) => say(sentence, "curves");

class Page {
  constructor(problem) {
    this.state = new State(problem);
    this.answer = {};
    this.fits = null;
    this.views = this.makeViews();
    this.chosen = "curves";
    element("name").textContent = problem.name;
    element("name").title = problem.description;
    document.title = `${problem.name} · odefit explore`;
    this.chooseExperiments();
    this.sliders = new Sliders(this.state, element("unknowns"), element("filter-choice"));
    this.snapshots = new Snapshots(this.state, () => this.others());
    loadFiles(element("load"), this.state, this.snapshots, say);
    this.scenario = new Scenario(this.state, () => this.others());
    this.fitting = new Fitting(this.state, (report) => this.fitted(report), (sentence) => say(sentence, "fit"));
    this.saving = new Saving(this.state, say, () => ({
      answer: this.answer,
      experiments: this.wanted().experiments,
      element: this.views[this.chosen].view.element,
    }));
    this.live = new Live(this.state, () => this.wanted(), (answer) => this.take(answer), sayOfCurves);
    // What an action has answered is about the values before.
    this.state.listen((source) => {
      if (source !== "history") say("");
    });
    this.history();
    this.tabs();
    sayOfCurves("The model is being compiled …");
    this.others();
    this.live.ask();
  }

  makeViews() {
    const views = {
      curves: { title: "Curves", view: new CurvesView(this.state, "observables"), parts: ["observables"] },
      states: { title: "States", view: new CurvesView(this.state, "states"), parts: ["states"] },
      residuals: { title: "Residuals", view: new ResidualsView(this.state) },
    };
    if (this.state.problem.states.length > 1) {
      views.phase = { title: "Phase plane", view: new PhaseView(this.state), single: true, parts: ["states"] };
    }
    views.sensitivities = { title: "Sensitivities", view: new SensitivitiesView(this.state), single: true };
    views.figures = { title: "Figures", view: new FiguresView(this.state) };
    views.compare = { title: "Compare", view: new CompareView(this.state) };
    return views;
  }

  /** Fill the list of experiments, of which one or all are drawn. */
  chooseExperiments() {
    const { experiments } = this.state.problem;
    const select = element("experiment");
    const panels = experiments.reduce((n, e) => n + Object.keys(e.series).length, 0);
    if (experiments.length > 1) {
      select.add(new Option(`all ${experiments.length}`, ""));
      for (const { name } of experiments) select.add(new Option(name, name));
      if (panels > MANY_PANELS) select.selectedIndex = 1;
      element("experiment-choice").hidden = false;
    }
    select.addEventListener("change", () => {
      this.allBefore = false;
      this.others();
    });
    element("log-values").addEventListener("change", () => this.draw());
  }

  /** The experiments that are drawn in the view of now. */
  experiments() {
    const { experiments } = this.state.problem;
    const name = element("experiment").value;
    const found = name ? experiments.filter((e) => e.name === name) : experiments;
    return this.views[this.chosen].single ? found.slice(0, 1) : found;
  }

  /** What the view of now needs of the model. */
  wanted() {
    const { parts } = this.views[this.chosen];
    return { experiments: this.experiments().map((e) => e.name), parts: parts ?? [] };
  }

  /** Take the curves of now. */
  take(answer) {
    this.answer = answer;
    if (answer.fits) {
      this.fits = answer.fits;
      this.facts(answer);
    }
    this.draw();
  }

  draw() {
    const { view } = this.views[this.chosen];
    view.draw(this.answer, this.fits, this.experiments(), element("log-values").checked);
  }

  /** Say how well the curves fit. */
  facts(answer) {
    const facts = [["objective", short(answer.objective, 6)]];
    if (answer.log_likelihood !== null) facts.push(["log-likelihood", short(answer.log_likelihood, 6)]);
    const best = this.state.snapshots.find((s) => s.fitted) ?? this.state.snapshots.find((s) => s.saved);
    const known = answer.log_likelihood === null ? best?.objective : best?.likelihood;
    if (known !== undefined && known !== null) facts.push([best.name, short(known, 6)]);
    element("facts").replaceChildren(...facts.map(([title, value]) => {
      const group = document.createElement("div");
      const [term, text] = [document.createElement("dt"), document.createElement("dd")];
      [term.textContent, text.textContent] = [title, value];
      group.append(term, text);
      return group;
    }));
  }

  /** Get the curves of snapshots that are shown, then draw everything. */
  async others() {
    this.legend();
    try {
      await curvesOfSnapshots(this.state.snapshots, this.experiments().map((e) => e.name));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      sayOfCurves(error.message);
    }
    this.live?.ask();
  }

  legend() {
    const items = [["line live", "now"]];
    this.scenario?.show(this.experiments()[0].name);
    if (this.scenario?.active) items.push(["line scenario", "scenario"]);
    if (this.chosen === "curves") items.unshift(["dot", "measured"]);
    this.state.snapshots.forEach((s, i) => {
      if (s.shown) items.push([`line other-${i % 5}`, s.name]);
    });
    const drawn = ["curves", "states", "phase"].includes(this.chosen);
    element("legend").replaceChildren(...(drawn ? items : []).map(([style, text]) => {
      const [item, key] = [document.createElement("span"), document.createElement("span")];
      item.className = "legend";
      key.className = `key ${style}`;
      item.append(key, text);
      return item;
    }));
  }

  fitted(report) {
    const values = this.state.vector(report.result.values);
    const errors = this.state.unknowns.map((u) => report.result.errors[u.key] ?? null);
    this.snapshots.keep(report.result.label, values, { fitted: true, errors });
    this.state.fit = values;
    this.state.fitErrors = errors;
    this.resets();
    this.state.set(values);
  }

  /** Undo, redo, and the values to which everything can be reset. */
  history() {
    const update = () => {
      element("undo").disabled = !this.state.past.length;
      element("redo").disabled = !this.state.future.length;
    };
    this.state.listen(update);
    update();
    element("undo").addEventListener("click", () => this.state.undo());
    element("redo").addEventListener("click", () => this.state.redo());
    document.addEventListener("keydown", (event) => {
      if (!(event.ctrlKey || event.metaKey) || event.target.matches("input[type=text], input[type=search]")) return;
      const key = event.key.toLowerCase();
      if (key !== "z" && key !== "y") return;
      event.preventDefault();
      if (key === "y" || event.shiftKey) this.state.redo();
      else this.state.undo();
    });
    this.resets();
    element("reset").addEventListener("change", (event) => {
      const { problem, fit } = this.state;
      const chosen = { guesses: problem.guesses, result: problem.result?.vector, fit }[event.target.value];
      event.target.value = "";
      if (chosen) this.state.set(chosen);
    });
  }

  resets() {
    const select = element("reset");
    const { problem, fit } = this.state;
    const wanted = [["guesses", "the guesses"]];
    if (problem.result) wanted.push(["result", "the saved result"]);
    if (fit) wanted.push(["fit", "the last fit"]);
    select.length = 1;
    for (const [value, text] of wanted) select.add(new Option(text, value));
  }

  tabs() {
    const list = element("tabs");
    const made = Object.entries(this.views).map(([name, { title }]) => {
      const tab = document.createElement("button");
      Object.assign(tab, { type: "button", id: `tab-${name}`, textContent: title });
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", "view");
      tab.addEventListener("click", () => this.choose(name));
      return tab;
    });
    list.append(...made);
    list.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const ends = { Home: 0, End: made.length - 1 }[event.key];
      if (step === undefined && ends === undefined) return;
      event.preventDefault();
      const at = made.indexOf(document.activeElement);
      const next = made[ends ?? (at + step + made.length) % made.length];
      next.focus();
      next.click();
    });
    this.choose(this.chosen);
  }

  /** Where a view shows one experiment alone, the list of experiments offers no more. */
  offerExperiments() {
    const select = element("experiment");
    if (!select.length) return;
    const { single } = this.views[this.chosen];
    select.options[0].disabled = Boolean(single);
    if (single && select.selectedIndex === 0) {
      select.selectedIndex = 1;
      this.allBefore = true;
    } else if (!single && this.allBefore) {
      select.selectedIndex = 0;
      this.allBefore = false;
    }
  }

  choose(name) {
    this.chosen = name;
    this.offerExperiments();
    for (const tab of element("tabs").children) {
      const mine = tab.id === `tab-${name}`;
      tab.setAttribute("aria-selected", String(mine));
      tab.tabIndex = mine ? 0 : -1;
    }
    const panel = element("view");
    panel.setAttribute("aria-labelledby", `tab-${name}`);
    panel.replaceChildren(this.views[name].view.element);
    element("log-values").closest("label").hidden = !["curves", "states"].includes(name);
    this.others();
    this.draw();
  }
}

async function begin() {
  try {
    window.odefit = new Page(await get("problem"));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    element("name").textContent = "odefit explore";
    say(error.message);
  }
  element("quit").addEventListener("click", async () => {
    await post("quit").catch(() => null);
    document.body.replaceChildren();
    const line = document.createElement("p");
    line.className = "message";
    line.textContent = "The server has ended. This page can be closed.";
    document.body.append(line);
  });
}

begin();
