// Dates on the axis of time: ticks at round dates, on an axis whose values stay numbers. A calendar
// has the milliseconds of t = 0 and of a unit of time; times of day are those of the data.

const [SECOND, DAY] = [1000, 86400000];
const MONTH = 30.4375 * DAY;
const MOST = 6; // labels on an axis

const CLOCK = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500], // milliseconds
  ...[1, 5, 15, 30].map((n) => n * SECOND),
  ...[1, 5, 15, 30].map((n) => n * 60 * SECOND),
  ...[1, 3, 6, 12].map((n) => n * 3600 * SECOND),
];
const DAYS = [[1, () => true], [2, (day) => day % 2 === 1 && day < 30], [7, (day) => [1, 8, 15, 22].includes(day)],
  [14, (day) => day === 1 || day === 15]];
const YEARS = [0, 1, 2, 3].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power));
const NAMES = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Return the milliseconds of round dates between two, at least so many apart. */
function roundDates(low, high, apart) {
  const midnight = Math.floor(low / DAY) * DAY;
  const clock = CLOCK.find((step) => apart <= step);
  if (clock) {
    const first = Math.ceil((low - midnight) / clock - 1e-9);
    const last = Math.floor((high - midnight) / clock + 1e-9);
    return Array.from({ length: Math.max(last - first + 1, 0) }, (_, i) => midnight + (first + i) * clock);
  }
  const days = DAYS.find(([step]) => apart <= step * DAY);
  if (days) {
    const count = Math.floor((high - midnight) / DAY) + 1;
    return Array.from({ length: count }, (_, i) => midnight + i * DAY)
      .filter((at) => at >= low && days[1](new Date(at).getUTCDate()));
  }
  const months = [1, 3, 6].find((step) => apart <= step * MONTH);
  const step = months ? 1 : YEARS.find((n) => apart <= n * 12 * MONTH) ?? YEARS.at(-1);
  const found = [];
  const first = new Date(low).getUTCFullYear();
  for (let year = first - (first % step); year <= new Date(high).getUTCFullYear(); year += step) {
    for (let month = 0; month < 12; month += months ?? 12) {
      const at = new Date(0).setUTCFullYear(year, month, 1);
      if (at >= low && at <= high) found.push(at);
    }
  }
  return found;
}

const two = (n) => String(n).padStart(2, "0");

/** Return a date as people write it, without a time of day where that is midnight. */
export function dateText(calendar, time) {
  const at = new Date(Math.round(calendar.origin + time * calendar.unit));
  if (Number.isNaN(at.getTime())) return "–";
  const text = at.toISOString();
  const [day, clock] = [text.slice(0, -14), text.slice(-13, -5)];
  if (clock === "00:00:00") return day;
  return `${day} ${clock.endsWith(":00") ? clock.slice(0, 5) : clock}`;
}

/** Return the ticks of an axis of time with two lines of labels: the second is what neighbours have
    in common. */
export function dateLabels(calendar, low, high, count) {
  const [from, to] = [low, high].map((v) => calendar.origin + v * calendar.unit);
  if (![from, to].every((v) => Math.abs(v) < 8.6e15)) return { ticks: [], factor: "" };
  const places = roundDates(from, to, (to - from) / Math.min(Math.max(count, 2), MOST));
  const dates = places.map((at) => new Date(at));
  const whole = places.every((at) => at % DAY === 0);
  const monthly = whole && dates.every((d) => d.getUTCDate() === 1);
  const yearly = monthly && dates.every((d) => d.getUTCMonth() === 0);
  const seconds = places.some((at) => at % 60000 !== 0);
  let before = null;
  const ticks = dates.map((d, i) => {
    const [day, month, year] = [d.getUTCDate(), NAMES[d.getUTCMonth()], String(d.getUTCFullYear())];
    const clock = `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}${seconds ? `:${two(d.getUTCSeconds())}` : ""}`;
    const rest = places[i] % SECOND ? `.${String(d.getUTCMilliseconds()).padStart(3, "0")}` : "";
    const label = yearly ? year : monthly ? month : whole ? `${day} ${month}` : clock + rest;
    const below = yearly ? "" : whole ? year : `${day} ${month} ${year}`;
    const tick = { at: (places[i] - calendar.origin) / calendar.unit, label, below: below === before ? "" : below };
    before = below;
    return tick;
  });
  return { ticks, factor: "" };
}
