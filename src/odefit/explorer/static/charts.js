// Small figures in SVG: axes, lines, measurements with error bars. They are drawn again whenever
// what they show changes, which takes a fraction of a millisecond.

import { dateLabels, dateText } from "./dates.js";
import { linearLabels, logLabels, short } from "./numbers.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const LEAST = 170; // height of a figure in pixels, below which a pane is scrolled
const CHARACTER = 6.4; // width of a character of a label, in pixels
const MANY = 150; // more measurements than that are small dots behind the curve
const MANY_MARKS = 12; // events from which each is a short mark at the bottom
const MARK = 7; // length of such a mark, in pixels
const GROWTH = 3; // a curve goes beyond the data by no more than so many times their size

let count = 0;

/** Return a new element of SVG with attributes, within a parent. */
export function shape(name, attributes, parent, text = "") {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

/** Return the least and the largest of finite numbers; null if there are none. */
function extent(lists, positive) {
  let [low, high] = [Infinity, -Infinity];
  for (const list of lists) {
    for (const v of list) {
      if (v === null || !Number.isFinite(v) || (positive && v <= 0)) continue;
      if (v < low) low = v;
      if (v > high) high = v;
    }
  }
  return low <= high ? [low, high] : null;
}

/** Return the ends of an axis for data and curves, with some room. */
function domain(data, curves, log) {
  const inner = extent(data, log);
  const outer = extent(curves, log);
  let [low, high] = inner ?? outer ?? (log ? [0.1, 1] : [0, 1]);
  if (log) {
    if (outer) {
      const reach = Math.max(high / low, 10) ** GROWTH;
      low = Math.max(Math.min(low, outer[0]), low / reach);
      high = Math.min(Math.max(high, outer[1]), high * reach);
    }
    if (high < low * 1.2) [low, high] = [low / 2, high * 2];
    const room = (high / low) ** 0.05;
    return [low / room, high * room];
  }
  if (outer) {
    const reach = GROWTH * Math.max(Math.abs(low), Math.abs(high), 1e-300);
    low = inner ? Math.max(Math.min(low, outer[0]), low - reach) : Math.min(low, outer[0]);
    high = inner ? Math.min(Math.max(high, outer[1]), high + reach) : Math.max(high, outer[1]);
  }
  if (high - low <= Math.abs(high) * 1e-9) {
    const half = Math.abs(high) * 0.1 || 1;
    [low, high] = [low - half, high + half];
  }
  const room = 0.05 * (high - low);
  return [low >= 0 && low - room < 0 ? 0 - (low === 0 ? 0.02 * high : 0) : low - room, high + room];
}

/** One figure: a title, axes, and whatever `show` is given. */
export class Chart {
  /**
   * @param {{title: string, xLabel: string, yLabel?: string, level?: number}} options What stands
   *   above and below the axes.
   */
  constructor(options) {
    this.options = options;
    this.content = { lines: [], points: [], marks: [] };
    this.id = `chart-${(count += 1)}`;
    this.figure = document.createElement("figure");
    this.figure.className = "panel";
    this.button = document.createElement("button");
    this.button.type = "button";
    this.button.className = "panel-title";
    this.button.textContent = options.title;
    this.button.title = "Larger or smaller";
    this.button.setAttribute("aria-pressed", "false");
    this.button.addEventListener("click", () => {
      const large = this.figure.classList.toggle("large");
      this.button.setAttribute("aria-pressed", String(large));
      this.draw();
    });
    this.svg = shape("svg", { role: "img", "aria-label": options.title });
    this.readout = document.createElement("output");
    this.readout.className = "readout";
    this.figure.append(this.button, this.svg, this.readout);
    this.svg.addEventListener("pointermove", (event) => this.read(event));
    this.svg.addEventListener("pointerleave", () => this.read(null));
  }

  /** Show lines, points and marks; each line is {x, y, style}, see explore.css for styles. */
  show(content) {
    this.content = content;
    this.draw();
  }

  /** Return the height that goes with a width, in pixels. */
  height(width) {
    const most = Math.max(0.42 * window.innerHeight, 200);
    const share = this.options.share?.();
    if (share && !this.figure.classList.contains("large")) return share;
    if (this.figure.classList.contains("large")) return Math.round(Math.min(Math.max(width * 0.5, 240), 460));
    if (this.options.tall) return Math.round(Math.min(width * 0.75, Math.max(most, 260), 520));
    return Math.round(Math.min(Math.max(width * 0.58, 150), 300, most));
  }

  /** Whether the axis of time shows dates. */
  get dated() {
    return Boolean(this.content.calendar) && !this.content.logX;
  }

  /** Draw everything at the size that the figure has. */
  draw() {
    const width = this.figure.clientWidth || this.width || 300;
    const height = this.height(width);
    this.width = width;
    const { lines, points, marks, logX, logY, field } = this.content;
    const xs = this.content.box
      ? [[this.content.box[0], this.content.box[1]]]
      : [...lines.map((l) => l.x), ...points.map((p) => p.x), this.content.times ?? []];
    const x = this.content.box ? xs[0] : exact(xs, logX);
    const data = [...points.flatMap((p) => [p.y, p.low ?? [], p.high ?? []]), this.content.include ?? []];
    const y = this.content.box
      ? [this.content.box[2], this.content.box[3]]
      : domain(data, lines.map((l) => l.y), logY);
    const vertical = (logY ? logLabels : linearLabels)(y[0], y[1], height > 200 ? 5 : 4);
    const longest = Math.max(...vertical.ticks.map((t) => t.label.length), 1);
    const left = Math.max(Math.ceil(longest * CHARACTER) + 12, 26) + (this.options.yLabel ? 16 : 0);
    const [right, top, bottom] = [12, vertical.factor ? 18 : 8, 38];
    const inner = { left, top, width: width - left - right, height: height - top - bottom };
    const labels = Math.max(Math.floor(inner.width / 62), 2);
    const horizontal = this.dated
      ? dateLabels(this.content.calendar, x[0], x[1], labels)
      : (logX ? logLabels : linearLabels)(x[0], x[1], labels);
    this.toX = scale(x, inner.left, inner.width, logX);
    this.toY = scale(y, inner.top + inner.height, -inner.height, logY);
    this.frame = { x, y, inner, logX, logY };

    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("width", width);
    this.svg.setAttribute("height", height);
    this.svg.replaceChildren();
    const clip = shape("clipPath", { id: this.id }, shape("defs", {}, this.svg));
    shape("rect", { x: left, y: top, width: inner.width, height: inner.height }, clip);
    this.axes(horizontal, vertical, inner, height);
    const plot = shape("g", { "clip-path": `url(#${this.id})` }, this.svg);
    for (const at of marks ?? []) {
      const place = this.toX(at);
      const low = top + inner.height;
      const high = marks.length < MANY_MARKS ? top : low - MARK; // many lines would hide the curves
      shape("line", { class: "event", x1: place, x2: place, y1: high, y2: low }, plot);
    }
    for (const level of this.content.levels ?? []) {
      const place = this.toY(level);
      shape("line", { class: "level", x1: left, x2: left + inner.width, y1: place, y2: place }, plot);
    }
    if (field) field(plot, this.toX, this.toY);
    for (const group of points) this.bars(group, plot);
    // Many measurements would hide the curve: it is drawn upon them.
    for (const group of points) if (group.x.length > MANY) this.dots(group, plot);
    for (const line of lines) {
      shape("path", { class: `line ${line.style}`, d: this.path(line) }, plot);
    }
    for (const group of points) if (group.x.length <= MANY) this.dots(group, plot);
    this.cursor = shape("line", { class: "cursor", y1: top, y2: top + inner.height }, this.svg);
    this.cursor.setAttribute("visibility", "hidden");
  }

  /** Draw grid, ticks and labels. */
  axes(horizontal, vertical, inner, height) {
    const { left, top, width } = inner;
    const low = top + inner.height;
    const grid = shape("g", { class: "axis" }, this.svg);
    for (const tick of vertical.ticks) {
      const place = this.toY(tick.at);
      shape("line", { class: "grid", x1: left, x2: left + width, y1: place, y2: place }, grid);
      shape("text", { x: left - 5, y: place + 3.5, "text-anchor": "end" }, grid, tick.label);
    }
    let end = -Infinity;
    for (const tick of horizontal.ticks) {
      const place = this.toX(tick.at);
      shape("line", { class: "grid", x1: place, x2: place, y1: top, y2: low }, grid);
      const half = (tick.label.length * CHARACTER) / 2;
      const middle = Math.min(place, left + width + 12 - half);
      if (middle - half < end + 4) continue;
      shape("text", { x: middle, y: low + 14, "text-anchor": "middle" }, grid, tick.label);
      if (tick.below) {
        const half = (tick.below.length * CHARACTER) / 2;
        const inside = Math.min(Math.max(middle, half), left + width + 12 - half);
        shape("text", { x: inside, y: low + 28, "text-anchor": "middle" }, grid, tick.below);
      }
      end = middle + half;
    }
    shape("path", { class: "frame", d: `M${left},${top}V${low}H${left + width}` }, grid);
    const below = this.dated ? "" : [this.options.xLabel, horizontal.factor].filter(Boolean).join(" ");
    const label = { x: left + width / 2, y: height - 6, "text-anchor": "middle", class: "label" };
    shape("text", label, grid, below);
    if (vertical.factor) shape("text", { x: left, y: 11 }, grid, vertical.factor);
    if (this.options.yLabel) {
      const middle = top + inner.height / 2;
      const turned = `translate(11,${middle}) rotate(-90)`;
      shape("text", { transform: turned, "text-anchor": "middle", class: "label" }, grid, this.options.yLabel);
    }
  }

  /** Return the path of a line, with gaps where there is no number. */
  path(line) {
    const { inner } = this.frame;
    const [least, most] = [inner.top - 4 * inner.height, inner.top + 5 * inner.height];
    let [d, pen] = ["", "M"];
    for (let i = 0; i < line.x.length; i += 1) {
      const [px, py] = [this.toX(line.x[i]), this.toY(line.y[i])];
      if (!Number.isFinite(px) || !Number.isFinite(py)) {
        pen = "M";
        continue;
      }
      d += `${pen}${px.toFixed(1)},${Math.min(Math.max(py, least), most).toFixed(1)}`;
      pen = "L";
    }
    return d;
  }

  /** Draw the error bars of measurements, all as one path. */
  bars(group, plot) {
    if (!group.low) return;
    let d = "";
    for (let i = 0; i < group.x.length; i += 1) {
      const [place, low, high] = [this.toX(group.x[i]), this.toY(group.low[i]), this.toY(group.high[i])];
      if (![place, low, high].every(Number.isFinite)) continue;
      d += `M${place.toFixed(1)},${low.toFixed(1)}V${high.toFixed(1)}`;
    }
    shape("path", { class: "bar", d }, plot);
  }

  /** Draw measurements, all as one path: a line without length and with a round cap is a dot. Those
      that are limits are triangles that point to where the value is. */
  dots(group, plot) {
    let [dots, limits] = ["", ""];
    for (let i = 0; i < group.x.length; i += 1) {
      const [px, py] = [this.toX(group.x[i]), this.toY(group.y[i])];
      if (!Number.isFinite(px) || !Number.isFinite(py)) continue;
      const side = group.censored?.[i] ?? 0;
      if (side) limits += `M${(px - 4).toFixed(1)},${py.toFixed(1)}h8l-4,${6 * side}z`;
      else dots += `M${px.toFixed(1)},${py.toFixed(1)}h0`;
    }
    const size = group.x.length > 1000 ? "dots many dense" : group.x.length > MANY ? "dots many" : "dots";
    if (dots) shape("path", { class: `${size} ${group.style ?? ""}`.trim(), d: dots }, plot);
    if (limits) shape("path", { class: "limit", d: limits }, plot);
  }

  /** Say what the lines are at the place of the pointer. */
  read(event) {
    const first = this.content.lines.find((l) => l.style.startsWith("live"));
    if (!event || !this.frame || !first || this.content.box) {
      this.readout.textContent = "";
      this.cursor?.setAttribute("visibility", "hidden");
      return;
    }
    const place = event.clientX - this.svg.getBoundingClientRect().left;
    let [best, distance] = [-1, Infinity];
    for (let i = 0; i < first.x.length; i += 1) {
      const away = Math.abs(this.toX(first.x[i]) - place);
      if (away < distance) [best, distance] = [i, away];
    }
    if (best < 0 || distance > 30) return;
    const at = this.toX(first.x[best]);
    this.cursor.setAttribute("x1", at);
    this.cursor.setAttribute("x2", at);
    this.cursor.setAttribute("visibility", "visible");
    const { calendar } = this.content;
    const time = this.dated ? dateText(calendar, first.x[best]) : `t = ${short(first.x[best])}`;
    this.readout.textContent = `${time}: ${short(first.y[best])}`;
  }
}

/** Return the ends of an axis without room at its sides. */
function exact(lists, log) {
  const found = extent(lists, log);
  if (!found) return log ? [0.1, 1] : [0, 1];
  let [low, high] = found;
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
  const room = log ? (high / low) ** 0.02 : 0.02 * (high - low);
  return log ? [low / room, high * room] : [low - room, high + room];
}

/** Return the function from values to pixels. */
function scale([low, high], start, length, log) {
  if (log) {
    const [a, b] = [Math.log(low), Math.log(high)];
    return (v) => (v === null || v <= 0 ? NaN : start + (length * (Math.log(v) - a)) / (b - a));
  }
  return (v) => (v === null ? NaN : start + (length * (v - low)) / (high - low));
}

/** Return the number of columns, and the height of a figure, with which figures fill a pane. */
export function arrangement(count, width, height) {
  let best = { columns: 1, height: 0, filled: 0 };
  for (let columns = 1; columns <= Math.min(count, Math.max(Math.floor(width / 300), 1)); columns += 1) {
    const wide = width / columns;
    const high = Math.min(height / Math.ceil(count / columns) - 38, 0.75 * wide);
    const filled = count * high * Math.min(wide, 2.6 * high);
    if (high >= LEAST && filled > best.filled) best = { columns, height: Math.round(high), filled };
  }
  return best.filled ? best : null;
}

/** Return a function that draws all charts again when the width of an element changes. */
export function redrawnWith(element, charts) {
  let width = element.clientWidth;
  new ResizeObserver(() => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    for (const chart of charts()) chart.draw();
  }).observe(element);
  window.addEventListener("resize", () => {
    for (const chart of charts()) chart.draw();
  });
}
