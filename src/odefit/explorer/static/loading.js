// Values from a file of this computer, which the page reads itself: nothing of it is sent on.

const MOST_BYTES = 100e6;

/** Return the values by name in a result file, or in values that this page has saved. */
export function valuesIn(text) {
  let content;
  try {
    content = JSON.parse(text);
  } catch {
    throw new Error("it is not JSON; choose a file that odefit fit --json or this page has written");
  }
  const tables = ["parameters", "initial", "noise", "values"].map((name) => content?.[name]);
  const found = new Map();
  for (const table of tables) {
    if (table === null || typeof table !== "object" || Array.isArray(table)) continue;
    for (const [key, value] of Object.entries(table)) {
      if (typeof value === "number" && Number.isFinite(value)) found.set(key, value);
    }
  }
  if (!found.size) throw new Error("it contains no values: it has no solution, or is not a result");
  return found;
}

/** Return the vector for some unknowns, and sentences on what the file does not say. */
export function vectorOf(found, unknowns, now) {
  const [missing, outside] = [[], []];
  const values = unknowns.map((u, i) => {
    const value = found.get(u.key);
    if (value === undefined) {
      missing.push(u.key);
      return now[i];
    }
    const inside = Math.min(Math.max(value, u.lower ?? -Infinity), u.upper ?? Infinity);
    if (inside !== value) outside.push(u.key);
    return inside;
  });
  if (missing.length === unknowns.length) {
    throw new Error(`none of the unknowns of this problem is in it; it has ${[...found.keys()].slice(0, 5).join(", ")}`);
  }
  const remarks = [];
  if (missing.length) remarks.push(`not in the file, and unchanged: ${missing.join(", ")}`);
  if (outside.length) remarks.push(`outside the bounds here, and moved to them: ${outside.join(", ")}`);
  return { values, remarks };
}

/** Make a file chooser keep the values of a file as a snapshot. */
export function loadFiles(chooser, state, snapshots, say) {
  chooser.addEventListener("change", async () => {
    const [file] = chooser.files;
    if (!file) return;
    chooser.value = ""; // the same file may be chosen again
    try {
      if (file.size > MOST_BYTES) throw new Error("it is larger than 100 MB, so it is not a result");
      const { values, remarks } = vectorOf(valuesIn(await file.text()), state.unknowns, state.values);
      const name = file.name.replace(/\.json$/i, "").slice(0, 40);
      snapshots.keep(name, values);
      say(remarks.length ? `${file.name}: ${remarks.join("; ")}.` : "");
    } catch (error) {
      say(`${file.name} cannot be used: ${error.message}.`);
    }
  });
}
