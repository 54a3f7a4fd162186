// The curves over the data, the states, and the residuals: one figure each.

import { arrangement, Chart, redrawnWith } from "./charts.js";

const WIDE = 960; // width of a window in pixels from which the figures have a pane of their own

/** The label of the axis of time. */
export function timeLabel(problem) {
  return problem.time_unit ? `time (${problem.time_unit})` : "time t";
}

/** The label of the axis of a quantity, with its unit. */
function valueLabel(problem, name) {
  return problem.units[name] ? `${name} (${problem.units[name]})` : name;
}

/** The title of a panel, which tells that of many measurements some alone are drawn. */
function titled(name, experiment, several) {
  const series = experiment.series[name];
  const title = several ? `${name} · ${experiment.name}` : name;
  if (!series || series.values.length === series.count) return title;
  return `${title} (${series.values.length.toLocaleString("en")} of ${series.count.toLocaleString("en")} values drawn)`;
}

/** Return the lines of the snapshots that are shown and of the scenario, for one quantity. */
function others(state, experiment, part, name) {
  const scenario = state.scenario?.curves.get(experiment);
  const lines = scenario?.[part]?.[name]
    ? [{ x: scenario.times, y: scenario[part][name], style: "scenario" }]
    : [];
  return lines.concat(state.snapshots
    .map((snapshot, i) => ({ snapshot, i }))
    .filter(({ snapshot }) => snapshot.shown && snapshot.curves.get(experiment)?.[part]?.[name])
    .map(({ snapshot, i }) => ({
      x: snapshot.curves.get(experiment).times,
      y: snapshot.curves.get(experiment)[part][name],
      style: `other other-${i % 5}`,
    })));
}

/** A grid of figures, which are kept as long as the same things are shown. */
class Grid {
  constructor(element) {
    this.element = element;
    this.charts = [];
    this.key = "";
    redrawnWith(element, () => this.charts.map(({ chart }) => chart));
  }

  /** Make figures for a list of {title, ...}, unless they are those that are there. */
  arrange(wanted, options) {
    const key = JSON.stringify(wanted.map((w) => [w.experiment, w.name]));
    if (key === this.key && this.element.isConnected) return;
    this.key = key;
    const share = () => this.share();
    this.charts = wanted.map((w) => ({
      ...w, chart: new Chart({ ...options, title: w.title, yLabel: w.yLabel, share }),
    }));
    this.element.replaceChildren(...this.charts.map(({ chart }) => chart.figure));
    if (!wanted.length) this.element.textContent = "There is nothing to draw here.";
  }

  /** Return the height of a figure with which all of them fill the pane; null where they cannot. */
  share() {
    const { element } = this;
    const top = element.getBoundingClientRect().top + window.scrollY;
    const room = window.innerWidth > WIDE && element.clientWidth
      ? arrangement(this.charts.length, element.clientWidth, window.innerHeight - top - 28)
      : null;
    const columns = room ? `repeat(${room.columns}, minmax(0, 1fr))` : "";
    if (element.style.gridTemplateColumns !== columns) element.style.gridTemplateColumns = columns;
    return room?.height ?? null;
  }
}

/** Figures of observables or states. */
export class CurvesView {
  constructor(state, part) {
    this.state = state;
    this.part = part;
    this.element = document.createElement("div");
    this.element.className = "panels";
    this.grid = new Grid(this.element);
  }

  /** Return what is drawn: everything measured, or every state. */
  wanted(experiments) {
    const several = this.state.problem.experiments.length > 1;
    return experiments.flatMap((experiment) => {
      const names = this.part === "states" ? this.state.problem.states : this.names(experiment);
      return names.map((name) => ({
        experiment: experiment.name,
        name,
        title: this.part === "observables" ? titled(name, experiment, several) : several ? `${name} · ${experiment.name}` : name,
        yLabel: valueLabel(this.state.problem, name),
        given: experiment,
      }));
    });
  }

  /** The observables that are measured in an experiment; all of them where none is. */
  names(experiment) {
    const measured = Object.keys(experiment.series);
    return measured.length ? measured : this.state.problem.observables;
  }

  draw(answer, fits, experiments, logValues) {
    this.grid.arrange(this.wanted(experiments), { xLabel: timeLabel(this.state.problem) });
    for (const { chart, experiment, name, given } of this.grid.charts) {
      const lines = others(this.state, experiment, this.part, name);
      const curves = answer.experiments?.[experiment];
      if (curves?.[this.part]?.[name]) {
        lines.push({ x: curves.times, y: curves[this.part][name], style: "live" });
      }
      const points = [];
      const series = this.part === "observables" && given.series[name];
      if (series) {
        const fit = fits?.[experiment]?.[name];
        const { times: x, values: y, censored } = series;
        points.push({ x, y, censored, low: fit?.low, high: fit?.high });
      }
      const { events: marks, log_time: logX, calendar } = given;
      chart.show({ lines, points, marks, logX, calendar, logY: logValues });
    }
  }
}

/** Figures of the residuals at the values of now. */
export class ResidualsView {
  constructor(state) {
    this.state = state;
    this.element = document.createElement("div");
    this.element.className = "panels";
    this.grid = new Grid(this.element);
  }

  draw(_, fits, experiments) {
    const several = this.state.problem.experiments.length > 1;
    const wanted = experiments.flatMap((given) =>
      Object.keys(given.series).map((name) => ({
        experiment: given.name,
        name,
        title: titled(name, given, several),
        yLabel: this.state.problem.weighted ? "residual / sd" : "residual",
        given,
      })),
    );
    this.grid.arrange(wanted, { xLabel: timeLabel(this.state.problem) });
    for (const { chart, experiment, name, given } of this.grid.charts) {
      const fit = fits?.[experiment]?.[name];
      const x = given.series[name].times;
      const points = fit ? [{ x, y: fit.residuals }] : [];
      const known = fit?.known ? [-2, 0, 2] : [0];
      chart.show({
        lines: [{ x, y: x.map(() => 0), style: "zero" }],
        points,
        levels: known,
        include: known,
        times: [given.t0],
        marks: given.events,
        logX: given.log_time,
        calendar: given.calendar,
      });
    }
  }
}
