// Numbers as texts, and the ticks of axes.

/** Return a number with so many significant digits, such that it can be read back. */
export function short(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) {
    const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
    return `${Number(mantissa)}e${Number(exponent)}`;
  }
  return String(Number(value.toPrecision(digits)));
}

/** Return the number that a text means, or NaN. */
export function parsed(text) {
  const plain = text.trim().replace("−", "-");
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain) : NaN;
}

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** Return an integer in raised digits. */
export function raised(n) {
  const digits = [...String(Math.abs(n))].map((d) => SUPERSCRIPTS[Number(d)]).join("");
  return n < 0 ? `⁻${digits}` : digits;
}

/** Return round numbers that cover a range, at most about `count` steps of them. */
export function linearTicks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.8);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  const places = Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
  return { places, step };
}

/** Return the ticks of a linear axis with their labels, and the power of ten they are to be
    multiplied by. */
export function linearLabels(low, high, count) {
  const { places, step } = linearTicks(low, high, count);
  const size = Math.max(...places.map(Math.abs), step);
  const power = size >= 1e5 || size < 1e-2 ? Math.floor(Math.log10(size) + 1e-9) : 0;
  const unit = 10 ** power;
  const rounded = Number((step / unit).toPrecision(3));
  const decimals = Math.min((String(rounded).split(".")[1] || "").length, 6);
  return {
    ticks: places.map((p) => ({ at: p, label: (p / unit + 0).toFixed(decimals).replace("-", "−")
      .replace(/^−(0(\.0*)?)$/, "$1") })),
    factor: power ? `×10${raised(power)}` : "",
  };
}

/** Return the ticks of a logarithmic axis with their labels. */
export function logLabels(low, high, count) {
  const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  const decades = last - first + 1;
  if (decades < 2) {
    const { places } = linearTicks(low, high, count);
    const few = places.filter((p) => p > 0);
    const room = [1, 2, 3, 5, 7].flatMap((m) => [first - 1, first, last].map((e) => m * 10 ** e));
    const inside = [...new Set(room)].filter((p) => p >= low && p <= high).sort((a, b) => a - b);
    const chosen = inside.length >= 3 ? inside : few;
    return { ticks: chosen.map((p) => ({ at: p, label: short(p, 3) })), factor: "" };
  }
  const every = Math.ceil(decades / Math.max(count, 2));
  const ticks = [];
  for (let e = first; e <= last; e += every) {
    const label = e >= -2 && e <= 3 ? String(Number((10 ** e).toPrecision(3))) : `10${raised(e)}`;
    ticks.push({ at: 10 ** e, label });
  }
  return { ticks, factor: "" };
}
