// Values written back to the problem file, copies, and downloads.

import { post, Refusal } from "./api.js";
import { dateText } from "./dates.js";

/** The buttons that save something. `say` shows a sentence, `drawn` returns what is drawn now. */
export class Saving {
  constructor(state, say, drawn) {
    Object.assign(this, { state, say, drawn });
    this.dialog = document.getElementById("difference");
    const { file, folder, name } = state.problem;
    document.getElementById("write-row").hidden = file === null;
    document.getElementById("propose").textContent = `Write to ${file} …`;
    document.getElementById("copy-name").value = `${name.replace(/[^\w-]+/g, "_")}_explored.toml`;
    document.getElementById("copy-place").textContent = `Copies are in ${folder}.`;
    this.on("propose", "click", () => this.propose());
    this.on("write", "click", () => this.write());
    this.on("keep-file", "click", () => this.dialog.close());
    this.on("copy", "submit", () => this.copy());
    for (const button of document.querySelectorAll("[data-download]")) {
      this.on(button, "click", () => this.download(button.dataset.download));
    }
  }

  /** Let an element, or that of an id, do something; a refusal is shown as a sentence. */
  on(element, kind, act) {
    const found = typeof element === "string" ? document.getElementById(element) : element;
    found.addEventListener(kind, async (event) => {
      event.preventDefault();
      try {
        await act();
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        this.dialog.close();
        this.say(error.message);
      }
    });
  }

  async propose() {
    const found = await post("guesses/propose", { values: [...this.state.values] });
    this.digest = found.digest;
    const text = document.getElementById("difference-text");
    text.replaceChildren(...found.difference.split("\n").map(colouredLine));
    if (!found.difference) text.textContent = "Nothing to write: the guesses have these values already.";
    const remarks = document.getElementById("difference-remarks");
    remarks.replaceChildren(...found.remarks.map((remark) => {
      const item = document.createElement("li");
      item.textContent = remark;
      return item;
    }));
    document.getElementById("write").disabled = !found.difference;
    this.dialog.showModal();
  }

  async write() {
    const found = await post("guesses/write", { digest: this.digest });
    this.dialog.close();
    this.state.problem.guesses = [...this.state.values];
    this.say(`The guesses of ${found.written} have these values now.`);
  }

  async copy() {
    const name = document.getElementById("copy-name").value.trim();
    const found = await post("copy", { values: [...this.state.values], name });
    this.say(`Saved as ${found.written}, with its data beside it.`);
  }

  async download(kind) {
    const stem = this.state.problem.name.replace(/[^\w-]+/g, "_");
    const { answer, experiments, element } = this.drawn();
    if (kind === "json") offer(`${stem}_values.json`, "application/json", this.json(answer));
    else if (kind === "csv") {
      const question = { values: [...this.state.values], experiments, objective: false };
      const found = await post("curves", question);
      if (found.failure) throw new Refusal(found.failure);
      offer(`${stem}_curves.csv`, "text/csv", csv(found, this.state.problem));
    } else {
      const svg = figure(element);
      if (!svg) throw new Refusal("There is no figure in this view.");
      offer(`${stem}.svg`, "image/svg+xml", svg);
    }
  }

  json(answer) {
    const values = Object.fromEntries(this.state.unknowns.map((u, i) => [u.key, this.state.values[i]]));
    const found = { problem: this.state.problem.name, values, held: [...this.state.held] };
    if (answer.objective !== undefined) {
      found.objective = answer.objective;
      found.log_likelihood = answer.log_likelihood;
    }
    return `${JSON.stringify(found, null, 2)}\n`;
  }
}

function colouredLine(line) {
  const span = document.createElement("span");
  span.className = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same";
  span.textContent = `${line}\n`;
  return span;
}

/** Return the curves that are drawn as a table: experiment, kind, name, t, value, and dates. */
function csv(answer, problem) {
  const calendars = new Map(problem.experiments.map((e) => [e.name, e.calendar]));
  const dated = [...calendars.values()].some(Boolean);
  const rows = [`experiment,kind,name,t,value${dated ? ",date" : ""}`];
  for (const [experiment, curves] of Object.entries(answer.experiments ?? {})) {
    for (const [kind, part] of [["observable", curves.observables], ["state", curves.states]]) {
      for (const [name, values] of Object.entries(part)) {
        values.forEach((value, i) => {
          const calendar = calendars.get(experiment);
          const [time, date] = [curves.times[i], calendar ? dateText(calendar, curves.times[i]) : ""];
          const row = [quoted(experiment), kind, quoted(name), time ?? "", value ?? ""];
          rows.push([...row, ...(dated ? [date] : [])].join(","));
        });
      }
    }
  }
  return `${rows.join("\n")}\n`;
}

function quoted(text) {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const DRAWN = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity",
  "font-family", "font-size", "font-weight", "visibility"];

/** Return all figures of a view as one file of SVG, its colours written out. */
function figure(element) {
  const panels = [...element.querySelectorAll(".panel")].filter((p) => p.querySelector("svg"));
  if (!panels.length) return null;
  const area = element.getBoundingClientRect();
  const whole = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const paper = getComputedStyle(document.body).backgroundColor;
  let bottom = 0;
  for (const panel of panels) {
    const drawn = panel.querySelector("svg");
    const at = drawn.getBoundingClientRect();
    const copy = drawn.cloneNode(true);
    const [from, to] = [drawn, copy].map((svg) => [...svg.querySelectorAll("*")]);
    from.forEach((node, i) => {
      const style = getComputedStyle(node);
      for (const name of DRAWN) to[i].setAttribute(name, style.getPropertyValue(name));
      to[i].removeAttribute("class");
    });
    copy.setAttribute("x", at.left - area.left);
    copy.setAttribute("y", at.top - area.top);
    const title = document.createElementNS("http://www.w3.org/2000/svg", "text");
    const look = getComputedStyle(panel.querySelector(".panel-title"));
    const place = { x: at.left - area.left + 4, y: at.top - area.top - 6, fill: look.color,
      "font-family": look.fontFamily, "font-size": look.fontSize, "font-weight": look.fontWeight };
    for (const [key, value] of Object.entries(place)) title.setAttribute(key, value);
    title.textContent = panel.querySelector(".panel-title").textContent;
    whole.append(title, copy);
    bottom = Math.max(bottom, at.bottom - area.top);
  }
  whole.setAttribute("viewBox", `0 0 ${Math.ceil(area.width)} ${Math.ceil(bottom)}`);
  whole.setAttribute("width", Math.ceil(area.width));
  whole.setAttribute("height", Math.ceil(bottom));
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [key, value] of Object.entries({ width: "100%", height: "100%", fill: paper })) {
    ground.setAttribute(key, value);
  }
  whole.prepend(ground);
  return new XMLSerializer().serializeToString(whole);
}

/** Let the browser save a text as a file. */
function offer(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
